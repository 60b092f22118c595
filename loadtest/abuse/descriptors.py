"""More clients than file descriptors."""

from __future__ import annotations

import asyncio
import time

from abuse.figures import Figure
from abuse.server import Context, Server
from abuse.wire import Wire, ask, get

ABOUT = "200 clients and 64 file descriptors: no spinning, metrics work, quick recovery"

_DESCRIPTORS = 64
_CLIENTS = 200


async def _knock(port: int) -> Wire | None:
    try:
        async with asyncio.timeout(2):
            return await Wire.open(port)
    except (OSError, TimeoutError):
        return None


async def _measure(server: Server, seconds: float) -> list[Figure]:
    wires = [await _knock(server.port) for _ in range(_CLIENTS)]
    await asyncio.sleep(2)  # until those let in for a moment have gone
    cpu, began = server.cpu_seconds(), time.perf_counter()
    await asyncio.sleep(seconds)
    spin = 100 * (server.cpu_seconds() - cpu) / (time.perf_counter() - began)
    watched = [await ask(server.port, get("/metrics")) for _ in range(10)]
    turned_away = await ask(server.port, get("/v1/models"))
    for wire in wires:
        if wire is not None:
            wire.close()
    began = time.perf_counter()
    while (await ask(server.port, get("/v1/models"), patience=2)).status != 200:
        if time.perf_counter() - began > 20:
            break
        await asyncio.sleep(0.01)
    recovery = time.perf_counter() - began
    return [
        Figure("idle_cpu_when_exhausted", spin, "%", ("<=", 5)),
        Figure("metrics_answered_of_10", sum(a.status == 200 for a in watched), "", ("==", 10)),
        Figure("others_told_503", float(turned_away.status == 503), "", ("==", 1)),
        Figure("recovery", recovery, "s", ("<=", 1), timed=True),
    ]


async def _storm(server: Server, seconds: float) -> list[Figure]:
    """Clients that come again at once when they are turned away."""
    end = time.perf_counter() + seconds
    answered = 0

    async def client() -> None:
        nonlocal answered
        while time.perf_counter() < end:
            answer = await ask(server.port, get("/health"), patience=2)
            answered += answer.status in (200, 503)
            await asyncio.sleep(0.01)

    await asyncio.gather(*(client() for _ in range(_CLIENTS)))
    await asyncio.sleep(0.5)
    return [
        Figure("answered_in_a_storm", answered, "", (">=", _CLIENTS)),
        Figure("alive_after", float(server.get("/v1/models")[0] == 200), "", ("==", 1)),
    ]


def run(context: Context) -> list[Figure]:
    with Server(context, "--sequences", "2", descriptors=_DESCRIPTORS) as server:
        # Shorter than the patience with clients that say nothing.
        held = asyncio.run(_measure(server, context.duration(6, 2)))
        return held + asyncio.run(_storm(server, context.duration(10, 2)))
