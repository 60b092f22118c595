"""Token budgets from minutes: measured once, then fixed, so that a paused run loses nothing."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

_WARM_UP, _MEASURED = 2, 8
_MARGIN = 0.8  # optimiser, evaluation and the longer texts at the end are not in the measurement


def tokens_for(
    minutes: float, plan: Path, step_tokens: int, one_step: Callable[[int], None]
) -> int:
    """The budget that fits in ``minutes``; written to ``plan`` the first time, then read back."""
    if not plan.exists():
        for step in range(_WARM_UP + _MEASURED):
            if step == _WARM_UP:
                start = time.monotonic()
            one_step(step)
        rate = _MARGIN * _MEASURED * step_tokens / (time.monotonic() - start)
        plan.write_text(json.dumps({"minutes": minutes, "total_tokens": int(rate * 60 * minutes)}))
    return json.loads(plan.read_text())["total_tokens"]
