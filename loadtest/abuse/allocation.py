"""An allocator that fails the k-th call, for every k that a request of each kind reaches."""

from __future__ import annotations

import asyncio
import contextlib
import mmap
import struct
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from abuse.figures import Figure
from abuse.server import Context, Server
from abuse.wire import Answer, Wire, ask, completion, get, post

ABOUT = "the k-th allocation fails, for every k of every kind of request"

_PATIENCE = 10.0  # for an answer, or the end of the connection
_HEALTH_PATIENCE = 5.0
_SETTLE_SECONDS = 0.01  # for what happens behind an answer or a bare connection
_LAST_K = 20_000
_LASTING = 100_000  # calls that fail one after the other: what the heap gives when it is empty
_WORDS = ("out of memory", "not enough memory")
_TEXT = " ".join(f"KEY_{number}={number * 7};" for number in range(40))


class FailingMalloc:
    """Our side of the file that loadtest/failing_malloc shares with the server."""

    _FORM = struct.Struct("QQQQ")  # calls, failed, first, count

    def __init__(self, path: Path) -> None:
        path.write_bytes(bytes(self._FORM.size))
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), self._FORM.size)

    def arm(self, first: int, count: int) -> None:
        self._memory[:] = self._FORM.pack(0, 0, 0, count)
        self._memory[16:24] = struct.pack("Q", first)

    def disarm(self) -> tuple[int, int]:
        """How many calls there were, and how many of them failed."""
        self._memory[16:24] = struct.pack("Q", 0)
        calls, failed, _, _ = self._FORM.unpack(self._memory[:])
        return calls, failed

    def close(self) -> None:
        self._memory.close()


@dataclass(slots=True)
class Tally:
    """What became of the requests of one kind."""

    tried: int = 0
    statuses: Counter[int] = field(default_factory=Counter)  # 0: closed without an answer
    ended_with_a_word: int = 0
    silent: int = 0
    wedged: int = 0

    def add(self, other: Tally) -> None:
        self.tried += other.tried
        self.statuses += other.statuses
        self.ended_with_a_word += other.ended_with_a_word
        self.silent += other.silent
        self.wedged += other.wedged


Kind = Callable[[int], Awaitable[Answer]]


async def _accept(port: int) -> Answer:
    wire = await Wire.open(port)
    await asyncio.sleep(_SETTLE_SECONDS)
    wire.close()
    return Answer(200)


def _request(request: bytes) -> Kind:
    async def send(port: int) -> Answer:
        return await ask(port, request, _PATIENCE)

    return send


def _bank(path: str, **members: object) -> Kind:
    return _request(post(f"/v1/notebanks/b/{path}", dict(members)))


_KINDS: dict[str, Kind] = {
    "accept": _accept,
    "health": _request(get("/health", "Connection: close")),
    "metrics": _request(get("/metrics", "Connection: close")),
    "completion": _request(completion(max_tokens=8)),
    "logprobs": _request(completion(max_tokens=8, logprobs=5, echo=True, n=2)),
    "stream": _request(completion(max_tokens=8, stream=True)),
    "chat": _request(
        post(
            "/v1/chat/completions",
            {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 8, "stop": ["zz"]},
        )
    ),
    "note_write": _bank("write", text=_TEXT),
    "address": _bank("address", query="KEY_7="),
    "replay": _bank("replay", prompt="KEY_7=", max_tokens=8),
}


class Sweep:
    """One server after another, each until it ends."""

    def __init__(self, context: Context) -> None:
        if context.failing_malloc is None:
            raise RuntimeError("--failing-malloc is needed: the library that is preloaded")
        self._context = context
        self._control = context.out / "failing_malloc.control"
        self._environment = {
            "LD_PRELOAD": str(context.failing_malloc.resolve()),
            "FAILING_MALLOC_CONTROL": str(self._control.resolve()),
        }
        self._malloc = FailingMalloc(self._control)
        self._server: Server | None = None
        self.starts = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.stop()
        self._malloc.close()

    def server(self) -> Server:
        if self._server is None or not self._server.alive():
            self._server = Server(self._context, environment=self._environment)
            self._server.__enter__()
            self.starts += 1
            asyncio.run(self._prepare(self._server.port))
        return self._server

    async def _prepare(self, port: int) -> None:
        """A bank to look things up in, and each kind once, so that what is made once is made."""
        for _ in range(2):
            for name in ("note_write", *_KINDS):
                answer = await _KINDS[name](port)
                if answer.status not in (200, 201):
                    raise RuntimeError(f"{name} was answered with {answer.status}")

    def run(self, kind: Kind, count: int, step: Callable[[int], int]) -> Tally:
        tally = Tally()
        k = 1
        while k < _LAST_K:
            server = self.server()
            self._malloc.arm(k, count)
            try:
                answer = asyncio.run(kind(server.port))
            except OSError:
                answer = Answer(0)
            # What comes behind the answer: the log, the books.
            time.sleep(_SETTLE_SECONDS)
            _, failed = self._malloc.disarm()
            if failed == 0:
                return tally
            tally.tried += 1
            tally.statuses[answer.status] += 1
            self._judge(server, tally)
            k = step(k)
        raise RuntimeError(f"there was no end of allocations after {k}")

    def _judge(self, server: Server, tally: Tally) -> None:
        health = asyncio.run(
            ask(server.port, get("/health", "Connection: close"), _HEALTH_PATIENCE)
        )
        if health.status == 200:
            return
        if server.alive():
            # It does not answer: perhaps it is about to end.
            with contextlib.suppress(Exception):
                server.process.wait(_HEALTH_PATIENCE)
        if server.alive():
            tally.wedged += 1
            server.process.kill()
            server.process.wait()
            return
        log = server.log.read_text(errors="replace")
        if any(word in log for word in _WORDS):
            tally.ended_with_a_word += 1
        else:
            tally.silent += 1

    def left_over(self) -> tuple[float, float]:
        """Generations still running, and connections open beside the one that asks."""
        server = self.server()
        server.wait_idle(_PATIENCE)
        # The server closes a connection a moment after its client has: one that is lost stays.
        end = time.monotonic() + _PATIENCE
        while (left := server.metrics()["spel_http_connections"] - 1) > 0:
            if time.monotonic() > end:
                break
            time.sleep(_SETTLE_SECONDS)
        return server.generations(), left

    def text(self) -> str:
        answer = asyncio.run(ask(self.server().port, completion(max_tokens=32)))
        return str(answer.json()["choices"][0]["text"])

    def stop(self) -> int:
        status = self.server().stop()
        self._server = None
        return status


def _each(k: int) -> int:
    return k + 1


def _fewer(k: int) -> int:
    return k + max(1, k // 6)


def _ways(quick: bool) -> Iterator[tuple[str, int, Callable[[int], int]]]:
    """(name, calls that fail in a row, the next k)"""
    yield "once", 1, _fewer if quick else _each
    yield "lasting", _LASTING, _fewer


def run(context: Context) -> list[Figure]:
    figures: list[Figure] = []
    total = Tally()
    with Sweep(context) as sweep:
        text = sweep.text()
        for way, count, step in _ways(context.quick):
            for name, kind in _KINDS.items():
                tally = sweep.run(kind, count, step)
                total.add(tally)
                figures.append(Figure(f"{name}_{way}", tally.tried, "", (">=", 1)))
        generations, connections = sweep.left_over()
        same_text = sweep.text() == text
        starts = sweep.starts
        status = sweep.stop()
    # What could not be had is said with a 503, or by closing; nothing else is the client's fault.
    others = sum(
        count for answer, count in total.statuses.items() if answer not in (0, 200, 201, 503)
    )
    return [
        *figures,
        Figure("tried", total.tried),
        Figure("answered_all_the_same", total.statuses[200] + total.statuses[201]),
        Figure("answered_503", total.statuses[503]),
        Figure("closed_without_an_answer", total.statuses[0]),
        Figure("answered_otherwise", others, "", ("==", 0)),
        Figure("ended_with_a_word", total.ended_with_a_word),
        Figure("ended_silently", total.silent, "", ("==", 0)),
        Figure("wedged", total.wedged, "", ("==", 0)),
        Figure("starts", starts),
        Figure("generations_left", generations, "", ("==", 0)),
        Figure("connections_left", connections, "", ("==", 0)),
        Figure("text_differs", float(not same_text), "", ("==", 0)),
        Figure("exit_status", status, "", ("==", 0)),
    ]
