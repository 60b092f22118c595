"""Health checks while every sequence runs and the queue is full."""

from __future__ import annotations

import asyncio
import time

from abuse.crowd import Crowd
from abuse.figures import Figure, percentile
from abuse.server import Context, Server
from abuse.wire import Wire, ask, completion, get

ABOUT = "health checks with all sequences busy and the queue full"

_SEQUENCES = 8
_QUEUE = 64
_EVERY_SECONDS = 0.02


async def _probe(port: int, seconds: float) -> tuple[list[float], int]:
    """Latencies of GET /health, on new connections and on a kept one in turns; and failures."""
    latencies: list[float] = []
    failures = 0
    kept = await Wire.open(port)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        answer = await ask(port, get("/health", "Connection: close"), patience=5)
        latencies.append(answer.seconds)
        failures += answer.status != 200
        began = time.perf_counter()
        kept.send(get("/health"))
        failures += (await kept.answer()).status != 200
        latencies.append(time.perf_counter() - began)
        await asyncio.sleep(_EVERY_SECONDS)
    kept.close()
    return latencies, failures


def run(context: Context) -> list[Figure]:
    flags = ("--sequences", str(_SEQUENCES), "--queue", str(_QUEUE))
    with Server(context, *flags) as server, Crowd(server.port, _SEQUENCES + _QUEUE + 8):
        deadline = time.monotonic() + 30
        while server.generations() < _SEQUENCES + _QUEUE:
            if time.monotonic() > deadline:
                raise RuntimeError("the queue did not fill in 30 s")
            time.sleep(0.05)
        refused = asyncio.run(ask(server.port, completion(max_tokens=1)))
        latencies, failures = asyncio.run(_probe(server.port, context.duration(60, 3)))
        still_full = server.generations()
    return [
        Figure("generations_held", still_full, "", (">=", _SEQUENCES + _QUEUE - 8)),
        Figure("refused_while_full", float(refused.status == 503), "", ("==", 1)),
        Figure("health_checks", len(latencies)),
        Figure("health_failures", failures, "", ("==", 0)),
        Figure("health_busy_p50", 1e3 * percentile(latencies, 50), "ms"),
        Figure("health_busy_p99", 1e3 * percentile(latencies, 99), "ms", ("<=", 50), timed=True),
    ]
