"""SIGTERM, SIGHUP and SIGINT, once and twice, at moments that do not suit."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from abuse.figures import Figure
from abuse.server import Context
from abuse.wire import Wire, ask, completion, get

ABOUT = "signals, once and twice: log read by nobody, model loading, 200 streams"

_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
_STREAMS = 200
_LOGGED = 800
_DRAIN_SECONDS = 2.0
_READY_SECONDS = 180.0
_PIPE_BYTES = 4096
# The grace for what was cancelled, and the end, come on top of the drain.
_END_SECONDS = 3.0
_SECOND_SIGNAL_AFTER = 0.1


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextlib.contextmanager
def _process(context: Context, *flags: str) -> Iterator[subprocess.Popen[bytes]]:
    """A server whose standard error is a small pipe that we do not read."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    command = [str(context.binary), "serve", "--model", str(context.model), *flags]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=writer)
    os.close(writer)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        os.close(reader)


def _end(process: subprocess.Popen[bytes], first: int, second: int | None) -> tuple[float, int]:
    """Seconds from the last signal to the end, and the exit status; infinite after 30."""
    process.send_signal(first)
    if second is not None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_SECOND_SIGNAL_AFTER)
        process.send_signal(second)
    began = time.perf_counter()
    try:
        status = process.wait(30)
    except subprocess.TimeoutExpired:
        return float("inf"), -1
    return time.perf_counter() - began, status


def _good(status: int, second: int | None) -> bool:
    """128 + the signal where the end could not wait for a pass; never a death by signal."""
    return status == 0 or (second is not None and status == 128 + second)


async def _ready(port: int) -> None:
    deadline = time.monotonic() + _READY_SECONDS
    while (await ask(port, get("/health"), 2)).status != 200:
        if time.monotonic() > deadline:
            raise RuntimeError("the server did not get ready")
        await asyncio.sleep(0.05)


async def _log_much(port: int) -> None:
    await _ready(port)
    wire = await Wire.open(port)
    for _ in range(_LOGGED):
        wire.send(get("/v1/models"))
        await wire.answer()
    wire.close()


def _stuck(context: Context, first: int, second: int | None) -> tuple[float, int]:
    port = _free_port()
    with _process(context, "--port", str(port)) as process:
        asyncio.run(_log_much(port))
        return _end(process, first, second)


def _loading(context: Context, first: int, second: int | None) -> tuple[float, int, bool]:
    """The last: the file of the Unix socket is still there."""
    path = Path(context.out / "signals.sock")
    with _process(context, "--unix-socket", str(path)) as process:
        deadline = time.monotonic() + _READY_SECONDS
        while not path.exists() and time.monotonic() < deadline:
            time.sleep(0.001)
        seconds, status = _end(process, first, second)
    return seconds, status, path.exists()


async def _over_streams(
    process: subprocess.Popen[bytes], port: int, first: int, second: int | None
) -> tuple[float, int]:
    await _ready(port)
    wires = [await Wire.open(port) for _ in range(_STREAMS)]
    for number, wire in enumerate(wires):
        wire.send(completion(prompt=f"Stream {number}", max_tokens=2000, stream=True))
    await wires[0].head()
    ended = await asyncio.to_thread(_end, process, first, second)
    for wire in wires:
        wire.close()
    return ended


def _streams(context: Context, first: int, second: int | None) -> tuple[float, int]:
    port = _free_port()
    flags = ("--port", str(port), "--queue", str(_STREAMS), "--drain-timeout", str(_DRAIN_SECONDS))
    with _process(context, *flags) as process:
        return asyncio.run(_over_streams(process, port, first, second))


@contextlib.contextmanager
def _hangups_heeded() -> Iterator[None]:
    """The server lets SIGHUP be where it starts with it ignored, as nohup and some shells do."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


def run(context: Context) -> list[Figure]:
    with _hangups_heeded():
        return _measure(context)


def _measure(context: Context) -> list[Figure]:
    once: dict[str, list[float]] = {"stuck": [], "loading": [], "streams": []}
    twice: dict[str, list[float]] = {"stuck": [], "loading": [], "streams": []}
    bad_statuses = sockets_left = 0
    pairs = [(number, None) for number in _SIGNALS]
    pairs += [(number, other) for number in _SIGNALS for other in _SIGNALS if not context.quick]
    pairs += [(signal.SIGTERM, signal.SIGTERM)] if context.quick else []
    for first, second in pairs:
        seconds, status = _stuck(context, first, second)
        (once if second is None else twice)["stuck"].append(seconds)
        bad_statuses += not _good(status, second)
        seconds, status, left = _loading(context, first, second)
        (once if second is None else twice)["loading"].append(seconds)
        bad_statuses += not _good(status, second)
        sockets_left += left
        seconds, status = _streams(context, first, second)
        (once if second is None else twice)["streams"].append(seconds)
        bad_statuses += not _good(status, second)
    return [
        Figure("signals_tried", len(pairs) * 3),
        Figure("stuck_log_exit_after", max(once["stuck"]), "s", ("<=", 1), timed=True),
        Figure("loading_exit_after", max(once["loading"]), "s", ("<=", 1), timed=True),
        Figure(
            "streams_exit_after",
            max(once["streams"]),
            "s",
            ("<=", _DRAIN_SECONDS + _END_SECONDS),
            timed=True,
        ),
        Figure("stuck_log_second_signal", max(twice["stuck"]), "s", ("<=", 1)),
        Figure("loading_second_signal", max(twice["loading"]), "s", ("<=", 1)),
        Figure("streams_second_signal", max(twice["streams"]), "s", ("<=", 1)),
        Figure("bad_exit_statuses", bad_statuses, "", ("==", 0)),
        Figure("sockets_left_behind", sockets_left, "", ("==", 0)),
    ]
