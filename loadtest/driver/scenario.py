"""What a run does, and what it must show."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from driver.prompts import Kind


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Closed: `clients` ask again as soon as they are answered. Open: requests come at random
    at `rate` a second whatever the answers do; `load` is a share of the capacity measured first."""

    clients: int = 0
    rate: float | None = None
    load: float | None = None

    @property
    def is_open(self) -> bool:
        return self.clients == 0


@dataclass(frozen=True, slots=True)
class Scenario:
    name: str
    about: str
    seconds: float
    arrivals: Arrivals
    mix: dict[Kind, float]
    max_tokens: tuple[int, int] = (16, 64)
    prompt_scale: float = 1.0
    plain_share: float = 0.0  # asked for with speculation off
    disconnect_share: float = 0.0
    slow_share: float = 0.0
    malformed_share: float = 0.0
    settle_seconds: float = 0.0  # at the start, left out of slopes and drift
    thresholds: dict[str, float] = field(default_factory=dict)


# Name -> (key of the summary, is it an upper bound). Missing figures fail, so that a run that
# measured nothing does not pass.
THRESHOLDS: dict[str, tuple[str, bool]] = {
    "min_answers": ("answers", False),
    "max_error_share": ("error_share", True),
    "max_refused_share": ("refused_share", True),
    "max_ttft_p99_ms": ("ttft_p99_ms", True),
    "max_itl_p99_ms": ("itl_p99_ms", True),
    "min_tokens_per_second": ("tokens_per_second", False),
    "min_acceptance": ("acceptance", False),
    "min_recall": ("recall_exact_share", False),
    "max_texts_differ": ("texts_differ", True),
    "max_malformed_accepted": ("malformed_wrong", True),
    "max_refused_without_retry_after": ("refused_without_retry_after", True),
    "max_left_running": ("left_running", True),
    "max_rss_mib_per_hour": ("rss_mib_per_hour", True),
    "max_fds_growth": ("fds_growth", True),
    "max_threads_growth": ("threads_growth", True),
    "max_p99_drift": ("ttft_p99_drift", True),
}

_ALWAYS = {
    "max_error_share": 0.0,
    "max_texts_differ": 0,
    "max_malformed_accepted": 0,
    "max_refused_without_retry_after": 0,
    "max_left_running": 0,
}
_DOMAIN = {Kind.RECALL: 0.5, Kind.PROSE: 0.3, Kind.RANDOM: 0.2}
_EVERYTHING = {Kind.RECALL: 0.4, Kind.PROSE: 0.3, Kind.RANDOM: 0.2, Kind.NOTEBANK: 0.1}

SCENARIOS: dict[str, Scenario] = {
    scenario.name: scenario
    for scenario in (
        Scenario(
            "smoke",
            "Everything for a moment: for continuous integration, under a minute",
            seconds=20,
            arrivals=Arrivals(clients=4),
            mix=_EVERYTHING,
            max_tokens=(4, 16),
            prompt_scale=0.4,
            plain_share=0.2,
            disconnect_share=0.1,
            slow_share=0.05,
            malformed_share=0.1,
            thresholds=_ALWAYS | {"min_answers": 3},
        ),
        Scenario(
            "closed",
            "Eight clients that always want more: throughput",
            seconds=60,
            arrivals=Arrivals(clients=8),
            mix=_DOMAIN,
            max_tokens=(32, 128),
            thresholds=_ALWAYS | {"min_answers": 20, "max_refused_share": 0},
        ),
        Scenario(
            "open",
            "Random arrivals at 70 % of the measured capacity: latency as users see it",
            seconds=60,
            arrivals=Arrivals(load=0.7),
            mix=_DOMAIN,
            thresholds=_ALWAYS | {"min_answers": 20},
        ),
        Scenario(
            "mixed",
            "Half of capacity, 10 % disconnects, 5 % malformed, some slow readers",
            seconds=120,
            arrivals=Arrivals(load=0.5),
            mix=_EVERYTHING,
            plain_share=0.2,
            disconnect_share=0.10,
            slow_share=0.02,
            malformed_share=0.05,
            thresholds=_ALWAYS | {"min_answers": 30, "max_refused_share": 0.01},
        ),
        Scenario(
            "soak",
            "The mixed load for hours: memory, descriptors, threads and latency must not creep",
            seconds=1800,
            arrivals=Arrivals(load=0.5),
            mix=_EVERYTHING,
            plain_share=0.2,
            disconnect_share=0.10,
            slow_share=0.02,
            malformed_share=0.05,
            settle_seconds=600,
            thresholds=_ALWAYS
            | {
                "min_answers": 100,
                "max_rss_mib_per_hour": 1.0,
                "max_fds_growth": 0,
                "max_threads_growth": 0,
                "max_p99_drift": 0.10,
            },
        ),
    )
}


def soak(hours: float) -> Scenario:
    """The soak for that long; the first third, ten minutes at most, is for settling."""
    seconds = hours * 3600
    return replace(SCENARIOS["soak"], seconds=seconds, settle_seconds=min(600, seconds / 3))
