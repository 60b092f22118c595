"""Figures of a run, and whether they are good enough."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

from driver.histogram import LogHistogram
from driver.runner import Run
from driver.sample import Outcome, Sample
from driver.scenario import THRESHOLDS
from driver.watch import Look

Figures = dict[str, float | int | None]


@dataclass(frozen=True, slots=True)
class Verdict:
    name: str
    limit: float
    measured: float | None
    passed: bool


def _ms(value: float | None) -> float | None:
    return None if value is None else round(1000 * value, 2)


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def histogram(values: list[float]) -> LogHistogram:
    result = LogHistogram()
    for value in values:
        result.add(value)
    return result


def figures_of(samples: list[Sample], seconds: float) -> Figures:
    """Of the answers among the samples; seconds: how long they took altogether."""
    answers = [
        sample for sample in samples if sample.outcome is Outcome.OK and sample.ttft is not None
    ]
    first = histogram([sample.ttft for sample in answers if sample.ttft is not None])
    whole = histogram([sample.seconds for sample in answers])
    rates = histogram(
        [rate for sample in answers if (rate := sample.tokens_per_second) is not None]
    )
    gaps = LogHistogram()
    for sample in answers:
        gaps.merge(sample.gaps)
    tokens = sum(sample.tokens for sample in samples)
    proposed = sum(sample.proposed for sample in answers)
    recalls = [sample.recalled for sample in answers if sample.recalled is not None]
    speedups = [sample.speedup for sample in answers if sample.speedup and sample.proposed]
    figures: Figures = {
        "requests": len(samples),
        "answers": len(answers),
        "tokens": tokens,
        "answers_per_second": _share(len(answers), seconds),
        "tokens_per_second": _share(tokens, seconds),
        "tokens_per_second_each": rates.mean,
        "acceptance": _share(sum(sample.accepted for sample in answers), proposed),
        "speedup": _share(sum(speedups), len(speedups)),
        "recall_exact_share": _share(sum(recalls), len(recalls)),
    }
    for name, values in (("ttft", first), ("itl", gaps), ("e2e", whole)):
        for percent in (50, 95, 99):
            figures[f"{name}_p{percent}_ms"] = _ms(values.percentile(percent))
    return figures


def texts_that_differ(samples: list[Sample]) -> int:
    """Prompts that got more than one greedy text: alone or in company, drafted or not."""
    texts: dict[str, set[str]] = defaultdict(set)
    for sample in samples:
        if sample.text_key:
            texts[sample.text_key].add(sample.text)
    return sum(len(seen) > 1 for seen in texts.values())


def slope_per_hour(looks: list[Look], name: str) -> float | None:
    """Least squares; None with less than a minute to look at."""
    points = [(look.seconds, look.figures[name]) for look in looks if name in look.figures]
    if len(points) < 3 or points[-1][0] - points[0][0] < 60:
        return None
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return 3600 * sum((x - mean_x) * (y - mean_y) for x, y in points) / spread


def growth(looks: list[Look], name: str, less: str = "") -> float | None:
    """The least of the last third over the least of the first: what stays when nobody is there.
    `less` is taken off first: open connections are descriptors that are not lost."""
    values = [
        look.figures[name] - (look.figures.get(less, 0) if less else 0)
        for look in looks
        if name in look.figures
    ]
    if len(values) < 6:
        return None
    third = len(values) // 3
    return min(values[-third:]) - min(values[:third])


def drift(samples: list[Sample], settle: float, seconds: float) -> float | None:
    """p99 of the time to the first token, second half over first, less 1."""
    middle = settle + (seconds - settle) / 2
    halves: tuple[list[float], list[float]] = ([], [])
    for sample in samples:
        if sample.ttft is not None and sample.began >= settle:
            halves[sample.began >= middle].append(sample.ttft)
    before, after = (histogram(half).percentile(99) for half in halves)
    if before is None or after is None:
        return None
    return after / before - 1


def summarise(run: Run) -> dict[str, Any]:
    samples = run.samples
    settle = run.scenario.settle_seconds
    tally = Counter(sample.outcome for sample in samples)
    sound = len(samples) - tally[Outcome.REJECTED] - tally[Outcome.WRONG]
    looks = [look for look in (run.watch.looks if run.watch else []) if look.seconds >= settle]
    rss = slope_per_hour(looks, "rss")
    figures = figures_of(samples, run.seconds)
    figures |= {
        "seconds": round(run.seconds, 2),
        "rate": run.rate,
        "error_share": _share(tally[Outcome.ERROR], sound) or 0.0,
        "refused_share": _share(tally[Outcome.REFUSED] + run.not_sent, sound + run.not_sent) or 0.0,
        "refused_without_retry_after": sum(
            sample.outcome is Outcome.REFUSED and not sample.retry_after
            for sample in samples
            if sample.kind != "slow reader"
        ),
        "malformed_wrong": tally[Outcome.WRONG],
        "texts_differ": texts_that_differ(samples),
        "left_running": run.left_running,
        "rss_mib_per_hour": None if rss is None else rss / 2**20,
        "fds_growth": growth(looks, "fds", less="connections"),
        "threads_growth": growth(looks, "threads"),
        "ttft_p99_drift": drift(samples, settle, run.scenario.seconds),
    }
    kinds: dict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        kinds[sample.kind].append(sample)
    return {
        "figures": figures,
        "outcomes": {outcome.value: tally[outcome] for outcome in Outcome},
        "by_kind": {kind: figures_of(kinds[kind], run.seconds) for kind in sorted(kinds)},
        "errors": Counter(
            sample.error
            for sample in samples
            if sample.outcome in (Outcome.ERROR, Outcome.WRONG) and sample.error
        ).most_common(20),
        "remarks": run.remarks,
    }


def judge(figures: Figures, thresholds: dict[str, float], is_spel: bool) -> list[Verdict]:
    """What SPEL alone promises or reports is not asked of other servers."""
    only_spel = {"max_texts_differ", "max_malformed_accepted", "max_left_running"}
    verdicts = []
    for name, limit in thresholds.items():
        if name in only_spel and not is_spel:
            continue
        key, is_upper = THRESHOLDS[name]
        value = figures.get(key)
        passed = value is not None and (value <= limit if is_upper else value >= limit)
        verdicts.append(Verdict(name, limit, value, passed))
    return verdicts
