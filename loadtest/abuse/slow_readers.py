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
_CONNECT_SECONDS = 2.0  # for a thousand
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
        await asyncio.sleep(_CONNECT_SECONDS / 1000)
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


class _Watch:
    """The most there was of everything."""

    def __init__(self, server: Server, readers: int, rss: int, kernel: int) -> None:
        self._server = server
        self._readers = readers
        self._before = rss, kernel
        self._generated = -1.0
        self.connections = self.most_connections = self.most_rss = self.most_kernel = 0.0

    def look(self) -> float:
        """Connections now."""
        samples = self._server.metrics()
        self.connections = samples["spel_http_connections"]
        self.most_connections = max(self.most_connections, self.connections)
        self.most_rss = max(self.most_rss, self._server.rss_bytes() - self._before[0])
        self.most_kernel = max(self.most_kernel, _kernel_bytes() - self._before[1])
        return self.connections

    def all_stalled(self) -> bool:
        """Everybody is there, and no stream has brought a token since the last look."""
        generated = self._server.metrics()["spel_generation_tokens_total"]
        unchanged = generated == self._generated
        self._generated = generated
        return self.look() >= 0.95 * self._readers and unchanged


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
    watch = _Watch(server, readers, rss, kernel)
    while not watch.all_stalled() and time.perf_counter() - began < 4 * write_timeout:
        await asyncio.sleep(0.2)
    until = asyncio.Event()
    # From here on: until then the streams were as good as anybody else's.
    other = asyncio.create_task(_latencies(server.port, until))
    dropped = None
    while dropped is None and time.perf_counter() - began < 6 * write_timeout:
        await asyncio.sleep(0.2)
        if watch.look() <= readers / 2:
            until.set()  # They are going: the end of the time that counts.
        if watch.connections <= connected + 2:  # Ours and the other client's come and go.
            dropped = time.perf_counter() - began - readers * _CONNECT_SECONDS / 1000
    until.set()
    during = await other
    crowd.kill()
    crowd.join()
    p99 = percentile(before, 99), percentile(during, 99)
    each = 1024 * readers
    # What the process and the kernel hold beside the readers, a MiB or so, does not grow with them:
    # over a fifth of the readers it weighs five times as much.
    beside = 1024 * (1000 / readers - 1)
    return [
        Figure("readers", watch.most_connections, "", (">=", 0.95 * readers)),
        Figure(
            "dropped_after", dropped or float("inf"), "s", ("<=", write_timeout + 3), timed=True
        ),
        Figure("rss_each", watch.most_rss / each, "KiB", ("<=", 10 + beside / 1000)),
        Figure(
            "kernel_memory_each", watch.most_kernel / each, "KiB", ("<=", 96 + 10 * beside / 1000)
        ),
        Figure("others_p99_before", 1e3 * p99[0], "ms"),
        Figure("others_p99_during", 1e3 * p99[1], "ms"),
        Figure("others_p99_growth", p99[1] / p99[0], "x", ("<=", 1.2), timed=True),
    ]


def run(context: Context) -> list[Figure]:
    readers = context.count(1000, 200)
    write_timeout = 4.0 if context.quick else _WRITE_TIMEOUT
    with Server(context, "--write-timeout", str(write_timeout)) as server:
        return asyncio.run(_measure(server, readers, write_timeout))
