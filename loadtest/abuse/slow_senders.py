"""A thousand clients that send their headers and bodies a byte at a time."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time

from abuse.figures import Figure, percentile
from abuse.server import Context, Server
from abuse.wire import Wire, ask, completion, get

ABOUT = "a thousand clients that send a byte at a time: everybody else is served"

_BYTE_SECONDS = 1.0
_CHECK_SECONDS = 0.1
_HEAD = b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-Slow: " + b"a" * 4000
_BODY = (
    b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Content-Length: 4000\r\n\r\n"
)


async def _slow_client(port: int, number: int, lives: list[float]) -> None:
    """Comes again whenever it is dropped; `lives`: how long each connection lasted."""
    for turn in itertools.count(number):
        began = time.perf_counter()
        with contextlib.suppress(OSError):
            wire = await Wire.open(port)
            # Odd ones are slow in the body, even ones in the header.
            wire.send(_BODY if turn % 2 else _HEAD[:30])
            ended = asyncio.create_task(wire.at_end())
            while not ended.done():
                wire.send(b"a")
                await asyncio.wait([ended], timeout=_BYTE_SECONDS)
            wire.close()
            lives.append(time.perf_counter() - began)
        await asyncio.sleep(0.05)


async def _measure(server: Server, clients: int, seconds: float) -> list[Figure]:
    lives: list[float] = []
    slow = [asyncio.create_task(_slow_client(server.port, i, lives)) for i in range(clients)]
    deadline = time.perf_counter() + 30
    while server.metrics()["spel_http_connections"] < 0.95 * clients:
        if time.perf_counter() > deadline:
            raise RuntimeError(f"{clients} connections were not open in 30 s")
        await asyncio.sleep(0.1)
    held: list[float] = []
    health: list[float] = []
    completions: list[float] = []
    failures = 0
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for request, found in ((get("/health"), health), (completion(max_tokens=4), completions)):
            answer = await ask(server.port, request, patience=5)
            failures += answer.status != 200
            found.append(answer.seconds)
        held.append(server.metrics()["spel_http_connections"])
        await asyncio.sleep(_CHECK_SECONDS)
    for task in slow:
        task.cancel()
    await asyncio.gather(*slow, return_exceptions=True)
    checks = len(health) + len(completions)
    return [
        Figure("slow_connections_median", percentile(held, 50), "", (">=", 0.9 * clients)),
        Figure("checks", checks),
        Figure("availability", 100 * (1 - failures / checks), "%", ("==", 100)),
        Figure("health_p99", 1e3 * percentile(health, 99), "ms"),
        Figure("completion_p99", 1e3 * percentile(completions, 99), "ms"),
        Figure("dropped_slow_connections", len(lives), "", (">=", 1)),
        Figure("longest_slow_connection", max(lives, default=float("nan")), "s", ("<=", 33)),
    ]


def run(context: Context) -> list[Figure]:
    clients = context.count(1000, 300)
    flags = ("--header-timeout", "2", "--body-timeout", "4") if context.quick else ()
    with Server(context, *flags) as server:
        return asyncio.run(_measure(server, clients, context.duration(240, 6)))
