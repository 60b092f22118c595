"""A histogram with logarithmic bins: any number of latencies in bounded memory."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

_BINS_PER_E = 50  # each bin 2 % wide: the percentiles' error


class LogHistogram:
    def __init__(self) -> None:
        self._bins: Counter[int] = Counter()
        self._count = 0
        self._sum = 0.0
        self._max = 0.0

    def add(self, value: float, count: int = 1) -> None:
        if value < 0 or not math.isfinite(value) or count <= 0:
            return
        self._bins[math.floor(math.log(max(value, 1e-9)) * _BINS_PER_E)] += count
        self._count += count
        self._sum += value * count
        self._max = max(self._max, value)

    def merge(self, other: LogHistogram) -> None:
        self._bins.update(other._bins)
        self._count += other._count
        self._sum += other._sum
        self._max = max(self._max, other._max)

    @property
    def count(self) -> int:
        return self._count

    @property
    def mean(self) -> float | None:
        return self._sum / self._count if self._count else None

    def percentile(self, percent: float) -> float | None:
        """The middle of the bin that holds it; None when nothing was added."""
        if not self._count:
            return None
        rank = max(1, math.ceil(self._count * percent / 100))
        for key, seen in self._cumulative():
            if seen >= rank:
                return min(math.exp((key + 0.5) / _BINS_PER_E), self._max)
        return self._max

    def curve(self) -> list[tuple[float, float]]:
        """(value, share of all that are at most it), for a plot."""
        return [
            (math.exp((key + 1) / _BINS_PER_E), seen / self._count)
            for key, seen in self._cumulative()
        ]

    def _cumulative(self) -> Iterator[tuple[int, int]]:
        seen = 0
        for key in sorted(self._bins):
            seen += self._bins[key]
            yield key, seen
