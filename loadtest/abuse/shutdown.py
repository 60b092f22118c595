"""SIGTERM with a hundred streams running."""

from __future__ import annotations

import asyncio
import signal
import time

from abuse.figures import Figure
from abuse.server import Context, Server, accepts
from abuse.wire import Wire, completion

ABOUT = "SIGTERM with 100 streams: told, drained, gone in time, port free"

_STREAMS = 100
_DRAIN_SECONDS = 8
_QUICK_DRAIN_SECONDS = 2
_NO_ACCEPT_SECONDS = 0.05


async def _stream(port: int, number: int, started: asyncio.Semaphore) -> str:
    """How it ended: "done", "error" (told so), "refused" (a status) or "cut"."""
    wire = await Wire.open(port)
    wire.send(completion(prompt=f"Stream {number}", max_tokens=400, stream=True))
    started.release()
    try:
        head = await wire.head()
        if head.status != 200:
            return "refused" if head.status == 503 else "cut"
        text = b""
        async for chunk in wire.chunks():
            text = (text + chunk)[-4096:]
    except (OSError, asyncio.IncompleteReadError):
        return "cut"
    finally:
        wire.close()
    last = text.rstrip().rpartition(b"\n\n")[2]
    return "done" if last == b"data: [DONE]" else "error" if b'"error"' in last else "cut"


async def _terminate(server: Server, signals: int) -> tuple[list[str], float, float, bool]:
    """Ends of the streams; seconds from the first and from the last signal to the exit; whether
    it still accepted after 50 ms."""
    started = asyncio.Semaphore(0)
    streams = [asyncio.create_task(_stream(server.port, n, started)) for n in range(_STREAMS)]
    for _ in streams:
        await started.acquire()
    while server.generations() < _STREAMS:
        await asyncio.sleep(0.02)
    await asyncio.sleep(0.5)
    server.process.send_signal(signal.SIGTERM)
    first = last = time.perf_counter()
    await asyncio.sleep(_NO_ACCEPT_SECONDS)
    accepting = accepts(server.port)
    for _ in range(signals - 1):
        await asyncio.sleep(0.5)
        server.process.send_signal(signal.SIGTERM)
        last = time.perf_counter()
    while server.alive() and time.perf_counter() - last < 30:
        await asyncio.sleep(0.005)
    now = time.perf_counter()
    return list(await asyncio.gather(*streams)), now - first, now - last, accepting


def _restart(context: Context, port: int) -> float:
    """Seconds until a new server listens on the same port; infinite if it could not."""
    began = time.perf_counter()
    again = Server(context, port=port)
    try:
        again.start()
    except RuntimeError:
        return float("inf")
    took = time.perf_counter() - began
    again.stop()
    return took


def run(context: Context) -> list[Figure]:
    drain = _QUICK_DRAIN_SECONDS if context.quick else _DRAIN_SECONDS
    flags = ("--queue", str(_STREAMS), "--drain-timeout", str(drain))
    with Server(context, *flags) as server:
        ends, exit_after, _, accepting = asyncio.run(_terminate(server, 1))
        status = server.process.wait()
        again = _restart(context, server.port)
    with Server(context, *flags) as server:
        hurried_ends, _, hurried, _ = asyncio.run(_terminate(server, 2))
    told = ("done", "error", "refused")
    return [
        Figure("accepting_after_50_ms", float(accepting), "", ("==", 0)),
        Figure("exit_status", status, "", ("==", 0)),
        Figure("exit_after", exit_after, "s", ("<=", 10)),
        Figure("streams_finished", ends.count("done")),
        Figure("streams_told_error", ends.count("error") + ends.count("refused")),
        Figure("streams_told_nothing", sum(end not in told for end in ends), "", ("==", 0)),
        Figure("listening_again_after", again, "s", ("<=", 1), timed=True),
        Figure("second_signal_exit_after", hurried, "s", ("<=", 1)),
        Figure("second_signal_told_nothing", sum(end not in told for end in hurried_ends)),
    ]
