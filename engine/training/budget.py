"""Token budgets from minutes: measured once, then fixed, so that a paused run loses nothing."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

from progress import duration, note

_MEASURED = 8
_SHARE = 0.15  # of the time given, at most, for measuring
_MARGIN = 0.8  # optimiser, evaluation and the longer texts at the end are not in the measurement


def tokens_for(
    minutes: float, plan: Path, step_tokens: int, one_step: Callable[[int], None]
) -> int:
    """The budget that fits in ``minutes``; written to ``plan`` the first time, then read back.

    At least one step, however short the time. The first step of all is slower than the others and
    counts only where there is no time for another.
    """
    if not plan.exists():
        note(f"measuring the speed: one step, and more within {duration(60 * minutes * _SHARE)}")
        began = time.monotonic()
        seconds = []
        while len(seconds) <= _MEASURED:
            start = time.monotonic()
            one_step(len(seconds))
            now = time.monotonic()
            seconds.append(now - start)
            note(f"  a step of {step_tokens:,} tokens takes {duration(seconds[-1])}")
            if now - began > 60 * minutes * _SHARE:
                break
        warm = seconds[1:] or seconds
        rate = _MARGIN * step_tokens * len(warm) / sum(warm)
        left = 60 * minutes - (time.monotonic() - began)
        tokens = max(step_tokens, int(rate * left))
        plan.write_text(json.dumps({"minutes": minutes, "total_tokens": tokens}))
    return json.loads(plan.read_text())["total_tokens"]
