"""What a scenario found, against what it has to find."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
}
# On a machine that does other things as well, a quick run only catches what has gone badly wrong.
QUICK_SLACK = 10.0


@dataclass(frozen=True, slots=True)
class Figure:
    """`timed`: it depends on how fast and how idle the machine is."""

    name: str
    value: float
    unit: str = ""
    goal: tuple[str, float] | None = None  # none: for information
    timed: bool = False

    def passed(self, quick: bool) -> bool:
        if self.goal is None:
            return True
        relation, bound = self.goal
        if self.timed and quick:
            bound = bound * QUICK_SLACK if relation == "<=" else bound / QUICK_SLACK
        return not math.isnan(self.value) and _COMPARE[relation](self.value, bound)

    def line(self, quick: bool) -> str:
        goal = "" if self.goal is None else f"{self.goal[0]} {self.goal[1]:g}"
        verdict = "" if self.goal is None else "ok" if self.passed(quick) else "MISSED"
        return f"  {self.name:42} {self.value:>12.4g} {self.unit:9} {goal:12} {verdict}"


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that at least `percent` of them do not exceed; nan of none."""
    if not values:
        return math.nan
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]
