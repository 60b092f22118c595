"""What a cheap endpoint costs, next to a bare Beast program."""

from __future__ import annotations

import asyncio
import contextlib
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator

from abuse.figures import Figure, percentile
from abuse.server import Context, Server
from abuse.wire import Wire, get

ABOUT = "requests a second of /health, next to a bare Beast program"

_CONNECTIONS = 64
_UNITS = {"us": 1e-3, "ms": 1.0, "s": 1e3}


async def _own_load(port: int, seconds: float) -> tuple[float, float]:
    """Where there is no wrk. Our client is then the slower side: ratios come out flattering."""
    latencies: list[float] = []
    end = time.perf_counter() + seconds

    async def client() -> None:
        wire = await Wire.open(port)
        while (began := time.perf_counter()) < end:
            wire.send(get("/health"))
            if (await wire.answer()).status == 200:
                latencies.append(time.perf_counter() - began)
        wire.close()

    await asyncio.gather(*(client() for _ in range(_CONNECTIONS)))
    return len(latencies) / seconds, 1e3 * percentile(latencies, 99)


def load(port: int, seconds: float) -> tuple[float, float]:
    """(requests a second, p99 in ms)"""
    if shutil.which("wrk") is None:
        print("no wrk here: a slower client of our own is used", file=sys.stderr)
        return asyncio.run(_own_load(port, seconds))
    command = ["wrk", "-t2", f"-c{_CONNECTIONS}", f"-d{max(1, round(seconds))}s", "--latency"]
    command.append(f"http://127.0.0.1:{port}/health")
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rate = re.search(r"Requests/sec:\s+([\d.]+)", text)
    p99 = re.search(r"99%\s+([\d.]+)(us|ms|s)", text)
    if rate is None or p99 is None or "Non-2xx" in text or "Socket errors" in text:
        raise RuntimeError(f"wrk said:\n{text}")
    return float(rate[1]), float(p99[1]) * _UNITS[p99[2]]


@contextlib.contextmanager
def _bare_server(context: Context) -> Iterator[int]:
    if context.bare is None:
        raise RuntimeError("--bare is needed: the bare_http_server program to compare with")
    process = subprocess.Popen([str(context.bare)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def run(context: Context) -> list[Figure]:
    rounds = 1 if context.quick else 5
    seconds = context.duration(60, 2) / (2 * rounds)
    ours: list[tuple[float, float]] = []
    bare: list[float] = []
    with Server(context, "--log-level", "info") as server, _bare_server(context) as bare_port:
        for _ in range(rounds):  # in turns, so that both see the same machine
            bare.append(load(bare_port, seconds)[0])
            ours.append(load(server.port, seconds))
    rate = statistics.median(rate for rate, _ in ours)
    ratio = statistics.median(own / base for (own, _), base in zip(ours, bare, strict=True))
    p99 = statistics.median(p99 for _, p99 in ours)
    return [
        Figure("bare_requests_per_second", statistics.median(bare), "/s"),
        Figure("health_requests_per_second", rate, "/s"),
        Figure("health_over_bare", ratio, "x", (">=", 0.70), timed=True),
        Figure("health_p99", p99, "ms", ("<=", 15), timed=True),
    ]
