"""What one request came to."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from driver.histogram import LogHistogram


class Outcome(StrEnum):
    OK = "ok"
    REFUSED = "refused"  # 503 or 429: the server protects itself
    ERROR = "error"
    CUT = "cut"  # we went away, as the scenario wanted
    DROPPED = "dropped"  # the server hung up on a slow reader, as it may
    REJECTED = "rejected"  # malformed, and told so
    WRONG = "wrong"  # malformed, and not told so


@dataclass(slots=True)
class Sample:
    kind: str
    began: float  # seconds since the run's start; with open arrivals, when it was due
    outcome: Outcome = Outcome.ERROR
    status: int = 0
    seconds: float = 0.0
    ttft: float | None = None
    tokens: int = 0
    gaps: LogHistogram = field(default_factory=LogHistogram)
    proposed: int = 0
    accepted: int = 0
    speedup: float | None = None
    retry_after: bool = False
    recalled: bool | None = None
    text_key: str = ""  # equal keys must have equal texts
    text: str = ""
    error: str = ""

    @property
    def tokens_per_second(self) -> float | None:
        """Between the first token and the last."""
        if self.ttft is None or self.tokens < 2 or self.seconds <= self.ttft:
            return None
        return (self.tokens - 1) / (self.seconds - self.ttft)
