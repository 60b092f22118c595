"""Looks at the server's own figures while it is under load."""

from __future__ import annotations

import asyncio
import re
import time
from dataclasses import dataclass, field

import aiohttp

from driver.client import Target

_LINE = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{[^}]*\})? (\S+)$")
_FIGURES = {
    "process_resident_memory_bytes": "rss",
    "process_open_fds": "fds",
    "process_threads": "threads",
    "spel_http_connections": "connections",
    "spel_num_requests_running": "running",
    "spel_num_requests_waiting": "waiting",
    "spel_acceptance_ratio": "acceptance",
    "spel_draft_cost_ratio": "c",
    "spel_verify_cost_ratio": "v",
    "spel_tokens_per_second": "rate",
}


@dataclass(slots=True)
class Look:
    seconds: float  # since the run's start
    figures: dict[str, float]


def parse(text: str) -> dict[str, float]:
    """The figures we follow, from a page in Prometheus's text format."""
    figures: dict[str, float] = {}
    for line in text.splitlines():
        match = _LINE.match(line)
        if match and match[1] in _FIGURES:
            figures[_FIGURES[match[1]]] = float(match[2])
    return figures


@dataclass(slots=True)
class Watch:
    """Scrapes /metrics every few seconds; a server without it leaves `looks` empty."""

    target: Target
    start: float
    every: float = 2.0
    looks: list[Look] = field(default_factory=list)
    _off: bool = False

    async def look(self, session: aiohttp.ClientSession) -> dict[str, float]:
        if self._off:
            return {}
        try:
            url = f"{self.target.base_url}/metrics"
            timeout = aiohttp.ClientTimeout(total=10)
            async with session.get(url, headers=self.target.headers, timeout=timeout) as response:
                if response.status != 200:
                    self._off = response.status in (404, 501)
                    return {}
                figures = parse(await response.text())
        except (aiohttp.ClientError, TimeoutError):
            return {}
        if figures:
            self.looks.append(Look(time.perf_counter() - self.start, figures))
        return figures

    async def run(self, session: aiohttp.ClientSession) -> None:
        while not self._off:
            await self.look(session)
            await asyncio.sleep(self.every)

    async def wait_idle(self, session: aiohttp.ClientSession, seconds: float = 15.0) -> int | None:
        """Generations still there when nobody waits for them any more; None where unknown."""
        deadline = time.perf_counter() + seconds
        left: int | None = None
        while time.perf_counter() < deadline:
            figures = await self.look(session)
            if "running" not in figures:
                return left
            left = int(figures["running"] + figures.get("waiting", 0))
            if left == 0:
                return 0
            await asyncio.sleep(0.25)
        return left
