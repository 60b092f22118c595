"""Malformed requests by the million."""

from __future__ import annotations

import errno
import multiprocessing
import random
import socket
import time
from collections import Counter
from dataclasses import dataclass, field

from abuse.figures import Figure
from abuse.server import Context, Server
from abuse.vectors import SMUGGLED, VECTORS, mutate

ABOUT = "malformed requests by the million: one answer each, no 5xx, no hang, no leak"

_WORKERS = 2
_HANG_SECONDS = 1.0
_PATIENCE_SECONDS = 10.0
# 501: an unknown method or coding; 505: an unknown version. Both speak of the request.
_RIGHT_SERVER_ERRORS = (501, 505)
_SHOWN = 5


@dataclass(slots=True)
class Findings:
    sent: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    silent: int = 0
    server_errors: int = 0
    hangs: int = 0
    garbled: int = 0  # not HTTP, or bytes after an answer that was to be the last
    slowest: float = 0.0
    examples: list[str] = field(default_factory=list)

    def add(self, other: Findings) -> None:
        self.sent += other.sent
        self.statuses += other.statuses
        self.silent += other.silent
        self.server_errors += other.server_errors
        self.hangs += other.hangs
        self.garbled += other.garbled
        self.slowest = max(self.slowest, other.slowest)
        self.examples += other.examples

    def note(self, what: str, data: bytes) -> None:
        if len(self.examples) < _SHOWN:
            self.examples.append(f"{what}: {data[:400]!r}")


def exchange(port: int, data: bytes, source: str) -> tuple[bytes, float]:
    """All that comes back until the server closes, and how long that took. Our side is closed for
    sending at once, so a server that waits for more learns that there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as connection:
        connection.settimeout(_PATIENCE_SECONDS)
        connection.bind((source, 0))
        connection.connect(("127.0.0.1", port))
        began = time.perf_counter()
        received = bytearray()
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            while more := connection.recv(65536):
                received += more
        except TimeoutError:
            return bytes(received), _PATIENCE_SECONDS
        except OSError as error:
            # Refused while we were still sending; what it said before counts.
            if error.errno not in (errno.ECONNRESET, errno.EPIPE, errno.ENOTCONN):
                raise
        return bytes(received), time.perf_counter() - began


def split_answers(received: bytes) -> list[tuple[int, bool]] | None:
    """(status, last one?) of each answer; None if that is not what the bytes are."""
    answers: list[tuple[int, bool]] = []
    while received:
        head, end, received = received.partition(b"\r\n\r\n")
        if not end or not head.startswith(b"HTTP/1.1 ") or not head[9:12].isdigit():
            return None
        status = int(head[9:12])
        fields = dict(line.lower().partition(b": ")[::2] for line in head.split(b"\r\n")[1:])
        if answers and answers[-1][1]:
            return None
        if status == 100:
            continue
        last = fields.get(b"connection") == b"close"
        answers.append((status, last))
        if fields.get(b"transfer-encoding") == b"chunked":
            _, end, received = received.partition(b"\r\n0\r\n\r\n")
            if not end:
                return answers  # A stream cut off by our leaving.
        else:
            length = int(fields.get(b"content-length", b"0"))
            # The answer to HEAD announces a body that does not come.
            if received[:length].startswith(b"HTTP/1.1 ") or not received:
                continue
            received = received[length:]
    return answers


def judge(findings: Findings, data: bytes, received: bytes, seconds: float) -> None:
    findings.sent += 1
    findings.slowest = max(findings.slowest, seconds)
    if seconds > _HANG_SECONDS:
        findings.hangs += 1
        findings.note(f"{seconds:.1f} s", data)
    answers = split_answers(received)
    if answers is None:
        findings.garbled += 1
        findings.note(f"answered {received[:300]!r}", data)
        return
    findings.silent += not answers
    for status, _ in answers:
        findings.statuses[status] += 1
        if status >= 500 and status not in _RIGHT_SERVER_ERRORS:
            findings.server_errors += 1
            findings.note(f"status {status}", data)


def _worker(port: int, seed: int, number: int, count: int, end: float) -> Findings:
    rng = random.Random(f"malformed/{seed}/{number}")
    findings = Findings()
    # Closed connections block their port for a minute: 28,000 are not enough, so spread them.
    sources = [f"127.0.{number + 1}.{last}" for last in range(1, 251)]
    for turn in range(count):
        if time.monotonic() > end:
            break
        data = mutate(rng)
        received, seconds = exchange(port, data, sources[turn % len(sources)])
        judge(findings, data, received, seconds)
    return findings


def _all_workers(server: Server, seed: int, count: int, seconds: float) -> Findings:
    end = time.monotonic() + seconds
    total = Findings()
    with multiprocessing.get_context("fork").Pool(_WORKERS) as pool:
        jobs = [(server.port, seed, n, count // _WORKERS, end) for n in range(_WORKERS)]
        for findings in pool.starmap(_worker, jobs):
            total.add(findings)
    return total


def _vectors_wrong(port: int) -> list[str]:
    """Each must be answered once, rightly, and be the last on its connection."""
    wrong = []
    for vector in VECTORS:
        received, _ = exchange(port, vector.data + SMUGGLED, "127.0.0.1")
        answers = split_answers(received)
        if answers is None or len(answers) != 1 or answers[0][0] not in vector.statuses:
            wrong.append(f"{vector.name}: expected one of {vector.statuses}, got {answers}")
        elif not answers[0][1]:
            wrong.append(f"{vector.name}: the connection was not said to end")
    return wrong


def run(context: Context) -> list[Figure]:
    count = context.count(1_000_000, 4_000)
    seconds = context.duration(3600, 20)
    # Small bodies and few sequences: what is measured is what requests leave behind.
    with Server(
        context, "--sequences", "2", "--prefix-cache", "0", "--log-level", "info"
    ) as server:
        wrong = _vectors_wrong(server.port)
        warm = _all_workers(server, context.seed + 1, max(200, count // 20), seconds)
        rss, began = server.rss_bytes(), time.monotonic()
        found = _all_workers(server, context.seed, count, seconds)
        took = time.monotonic() - began
        growth = server.rss_bytes() - rss
        alive = server.alive()
        left = server.wait_idle(5) if alive else float("inf")
    found.add(warm)
    for line in wrong + found.examples:
        print(f"  {line}")
    return [
        Figure("known_vectors", len(VECTORS)),
        Figure("known_vectors_answered_wrongly", len(wrong), "", ("==", 0)),
        Figure("mutants", found.sent, "", (">=", 1)),
        Figure("rate", (found.sent - warm.sent) / took, "/s"),
        Figure("answers", found.statuses.total()),
        Figure("silently_closed", found.silent),
        Figure("exits", float(not alive), "", ("==", 0)),
        Figure("server_errors", found.server_errors, "", ("==", 0)),
        Figure("hangs", found.hangs, "", ("==", 0)),
        Figure("slowest", found.slowest, "s"),
        Figure("answers_after_the_last", found.garbled, "", ("==", 0)),
        Figure("rss_growth", growth / (1 << 20), "MiB", ("<=", 8)),
        Figure("generations_left", float(left == float("inf")), "", ("==", 0)),
    ]
