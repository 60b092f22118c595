"""A thousand clients that ask for much and read nothing."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import time
from pathlib import Path

from abuse.figures import Figure, percentile
from abuse.server import Context, Server
from abuse.wire import Wire, ask, completion, get

ABOUT = "a thousand clients that ask for much and read nothing"

_WRITE_TIMEOUT = 10.0
_STREAMS = 4  # of them: streams, that hold a sequence each; the others pipeline a large page
_PAGES_EACH = 8
_CONNECT_SECONDS = 2.0
_RECEIVE_BUFFER = 4096
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def _kernel_bytes() -> int:
    """Memory of all TCP sockets of this machine, both ends of ours included."""
    for line in Path("/proc/net/sockstat").read_text().splitlines():
        if line.startswith("TCP:"):
            return int(line.split()[-1]) * _PAGE_BYTES
    raise RuntimeError("no line TCP: in /proc/net/sockstat")


async def _stall(port: int, number: int) -> Wire:
    wire = await Wire.open(port, _RECEIVE_BUFFER)
    wire.pause()
    if number < _STREAMS:
        wire.send(completion(prompt=f"Reader {number}", max_tokens=3900, stream=True))
    else:
        wire.send(get("/openapi.json") * _PAGES_EACH)
    return wire


async def _hold(port: int, readers: int) -> None:
    wires = []
    for number in range(readers):
        wires.append(await _stall(port, number))
        await asyncio.sleep(_CONNECT_SECONDS / readers)
    await asyncio.sleep(3600)


def _readers(port: int, readers: int) -> None:
    """In a process of their own, so as not to disturb who measures."""
    asyncio.run(_hold(port, readers))


async def _latencies(port: int, until: asyncio.Event) -> list[float]:
    """Of another client's completions."""
    found = []
    while not until.is_set():
        answer = await ask(port, completion(max_tokens=8))
        found.append(answer.seconds if answer.status == 200 else float("inf"))
    return found


async def _latencies_for(port: int, seconds: float) -> list[float]:
    until = asyncio.Event()
    asyncio.get_running_loop().call_later(seconds, until.set)
    return await _latencies(port, until)


async def _measure(server: Server, readers: int, write_timeout: float) -> list[Figure]:
    # Every sequence's memory is touched before, so that only connections add to it.
    warm = [completion(prompt=f"Warm {n}", max_tokens=300, temperature=1) for n in range(8)]
    await asyncio.gather(*(ask(server.port, request) for request in warm))
    before = await _latencies_for(server.port, write_timeout)
    rss, kernel = server.rss_bytes(), _kernel_bytes()
    connected = server.metrics()["spel_http_connections"]
    crowd = multiprocessing.get_context("fork").Process(
        target=_readers, args=(server.port, readers), daemon=True
    )
    crowd.start()
    began = time.perf_counter()
    until = asyncio.Event()
    other = asyncio.create_task(_latencies(server.port, until))
    most_rss = most_kernel = most_connections = 0
    dropped = None
    while dropped is None and time.perf_counter() - began < 6 * write_timeout:
        await asyncio.sleep(0.2)
        connections = server.metrics()["spel_http_connections"]
        most_connections = max(most_connections, connections)
        most_rss = max(most_rss, server.rss_bytes() - rss)
        most_kernel = max(most_kernel, _kernel_bytes() - kernel)
        # Ours and the other client's come and go.
        if most_connections >= readers and connections <= connected + 2:
            dropped = time.perf_counter() - began - _CONNECT_SECONDS
    until.set()
    during = await other
    crowd.kill()
    crowd.join()
    p99 = percentile(before, 99), percentile(during, 99)
    each = 1024 * readers
    return [
        Figure("readers", most_connections, "", (">=", readers)),
        Figure("dropped_after", dropped or float("inf"), "s", ("<=", write_timeout + 3)),
        Figure("rss_each", most_rss / each, "KiB", ("<=", 10)),
        Figure("kernel_memory_each", most_kernel / each, "KiB", ("<=", 96)),
        Figure("others_p99_before", 1e3 * p99[0], "ms"),
        Figure("others_p99_during", 1e3 * p99[1], "ms"),
        Figure("others_p99_growth", p99[1] / p99[0], "x", ("<=", 1.2), timed=True),
    ]


def run(context: Context) -> list[Figure]:
    readers = context.count(1000, 200)
    write_timeout = 3.0 if context.quick else _WRITE_TIMEOUT
    with Server(context, "--write-timeout", str(write_timeout)) as server:
        return asyncio.run(_measure(server, readers, write_timeout))
