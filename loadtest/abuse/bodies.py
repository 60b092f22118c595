"""Random JSON bodies of up to 32 MiB to every POST route of a server in a container's memory."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import random
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from multiprocessing.connection import Connection

from abuse.cage import Cage
from abuse.figures import Figure, percentile
from abuse.json_bodies import ROUTES, WRITE, body
from abuse.server import Context, Server
from abuse.wire import Wire, ask, completion, get, post

ABOUT = "random JSON bodies of up to 32 MiB: no exit, no stall, the memory comes back"

_MEMORY_BYTES = 2 << 30
_BODY_BYTES = 32 << 20
_SENDERS = 4
_PATIENCE_SECONDS = 15.0  # a text that is being read is left then
_STREAMS = 2
_HEALTH_SECONDS = 0.02
_SETTLE_SECONDS = 60.0
_RIGHT_SERVER_ERRORS = (503, 507)


@dataclass(slots=True)
class Findings:
    sent: int = 0
    bytes: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


async def _exchange(port: int, request: bytes) -> int:
    """The status; 0: none came, -1: not within our patience."""
    wire = None
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            wire = await Wire.open(port)
            wire.send(request)
            return (await wire.answer()).status
    except TimeoutError:
        return -1
    except (OSError, asyncio.IncompleteReadError, ValueError):
        return 0
    finally:
        if wire is not None:
            wire.close()


async def _sender(port: int, seed: int, count: int, found: Findings) -> None:
    for turn in range(count):
        rng = random.Random(f"{seed}-{turn}")
        # Every other one to the route that takes the largest.
        route = ROUTES[turn // 2 % len(ROUTES)] if turn % 2 else WRITE
        payload = body(rng, route, _BODY_BYTES)
        status = await _exchange(port, post(route, payload))
        found.sent += 1
        found.bytes += len(payload)
        found.statuses[status] += 1
        if status >= 500 and status not in _RIGHT_SERVER_ERRORS:
            found.wrong.append(f"{status} {route} seed {seed}-{turn} {payload[:80]!r}")


def _send_all(port: int, seed: int, count: int, out: Connection) -> None:
    """In a process of its own, so as not to disturb who measures."""
    found = Findings()
    asyncio.run(_sender(port, seed, count, found))
    out.send(found)


@dataclass(slots=True)
class Watch:
    health: list[float] = field(default_factory=list)
    failures: int = 0
    stall: float = 0.0
    tokens: int = 0
    most_rss: int = 0


async def _stream(port: int, number: int, watch: Watch) -> None:
    """Streams without end; remembers the longest wait between two chunks of one."""
    request = completion(prompt=f"Stream {number}", max_tokens=3000, temperature=1, stream=True)
    while True:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, ValueError):
            wire = await Wire.open(port)
            try:
                wire.send(request)
                if (await wire.head()).status == 200:
                    last = None
                    async for _ in wire.chunks():
                        now = time.perf_counter()
                        watch.stall = max(watch.stall, now - (last or now))
                        watch.tokens += 1
                        last = now
            finally:
                wire.close()
        await asyncio.sleep(0.05)


async def _health(server: Server, watch: Watch) -> None:
    while True:
        answer = await ask(server.port, get("/health", "Connection: close"), patience=10)
        watch.health.append(answer.seconds)
        watch.failures += answer.status != 200
        if server.alive():
            watch.most_rss = max(watch.most_rss, server.rss_bytes())
        await asyncio.sleep(_HEALTH_SECONDS)


async def _measure(server: Server, context: Context, count: int) -> tuple[Findings, Watch]:
    total, watch = Findings(), Watch()
    tasks = [asyncio.create_task(_stream(server.port, i, watch)) for i in range(_STREAMS)]
    tasks.append(asyncio.create_task(_health(server, watch)))
    fork = multiprocessing.get_context("fork")
    each = [count // _SENDERS + (i < count % _SENDERS) for i in range(_SENDERS)]
    pipes, senders = [], []
    for number, share in enumerate(each):
        ours, theirs = fork.Pipe(duplex=False)
        seed = context.seed * 1000 + number
        senders.append(
            fork.Process(target=_send_all, args=(server.port, seed, share, theirs), daemon=True)
        )
        senders[-1].start()
        theirs.close()
        pipes.append(ours)
    for pipe in pipes:
        found = await asyncio.to_thread(pipe.recv)
        total.sent += found.sent
        total.bytes += found.bytes
        total.statuses += found.statuses
        total.wrong += found.wrong
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for sender in senders:
        sender.join()
    return total, watch


async def _warm(server: Server) -> None:
    """The memory of every sequence and of every kept prompt is touched before, so that only bodies
    add to it."""
    prompts = [f"Warm {n} " + "and it was said that " * 40 for n in range(8)]
    warm = [completion(prompt=prompt, max_tokens=600, temperature=1) for prompt in prompts]
    for _ in range(2):
        await asyncio.gather(*(ask(server.port, request, 120) for request in warm))
    text = {"text": "KEY_1=4821 is what it said. " * 400}
    await ask(server.port, post("/v1/notebanks/abuse/write", text), 120)
    await ask(server.port, post("/v1/notebanks/abuse/address", {"query": "KEY_1="}), 120)


def _settle(server: Server, before: int) -> int:
    """The memory held once everything has ended."""
    deadline = time.monotonic() + _SETTLE_SECONDS
    server.wait_idle(_SETTLE_SECONDS)
    while server.rss_bytes() > 1.05 * before and time.monotonic() < deadline:
        time.sleep(0.5)
    return server.rss_bytes()


def run(context: Context) -> list[Figure]:
    count = context.count(1000, 60)
    with Cage(_MEMORY_BYTES) as cage:
        if cage.path is None:
            print("no control group here: memory is watched, not held", file=sys.stderr)
        server = Server(context, inside=cage.enter)
        with server:
            asyncio.run(_warm(server))
            before = server.rss_bytes()
            found, watch = asyncio.run(_measure(server, context, count))
            alive = server.alive()
            after = _settle(server, before) if alive else 0
            status = server.stop()
        kills, peak = cage.kills(), cage.peak_bytes()
    for line in found.wrong[:5]:
        print(line, file=sys.stderr)
    mib = float(1 << 20)
    answered = dict(sorted(found.statuses.items()))
    print(f"statuses (0: none, -1: left by us): {answered}", file=sys.stderr)
    return [
        Figure("bodies", found.sent, "", ("==", count)),
        Figure("body_bytes", found.bytes / mib, "MiB"),
        Figure("in_control_group", float(cage.path is not None)),
        Figure("exits", float(not alive or status != 0 or kills > 0), "", ("==", 0)),
        Figure("server_errors", len(found.wrong), "", ("==", 0)),
        Figure("rss_before", before / mib, "MiB"),
        Figure("rss_most", watch.most_rss / mib, "MiB", ("<=", _MEMORY_BYTES / mib)),
        Figure("control_group_most", peak / mib, "MiB"),
        Figure("rss_after_over_before", after / before, "x", ("<=", 1.05)),
        Figure("health_checks", len(watch.health)),
        Figure("health_failures", watch.failures, "", ("==", 0)),
        Figure("health_p99", 1e3 * percentile(watch.health, 99), "ms", ("<=", 50), timed=True),
        Figure("stream_chunks", watch.tokens, "", (">=", 1)),
        Figure("longest_stall", watch.stall, "s", ("<=", 1), timed=True),
    ]
