"""Clients no library would be: slow readers and senders of malformed requests, on bare sockets."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from dataclasses import dataclass
from urllib.parse import urlsplit

from driver.client import Ask, Target, body_of
from driver.sample import Outcome, Sample

_RECEIVE_BUFFER = 4096
_SIP_BYTES = 512
_SIP_SECONDS = 0.1
_SLOW_SECONDS = 30.0
_ANSWER_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Malformed:
    """Bytes for POST /v1/completions, or for the whole connection, and what may come back. Closing
    the connection without an answer is right only where `may_close`."""

    name: str
    body: bytes = b""
    whole: bytes = b""
    statuses: tuple[int, ...] = (400,)
    may_close: bool = False


def _json(**members: object) -> bytes:
    return json.dumps({"prompt": "x", "max_tokens": 1} | members).encode()


_POST = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"

MALFORMED: tuple[Malformed, ...] = (
    Malformed("no body", b""),
    Malformed("cut off", b'{"prompt":"x"'),
    Malformed("not an object", b'["x"]'),
    Malformed("text after the end", b'{"prompt":"x"}}'),
    Malformed("invalid UTF-8", b'{"prompt":"\xff\xfe"}'),
    Malformed("too deep", b'{"prompt":"x","a":' + b"[" * 2000 + b"]" * 2000 + b"}"),
    Malformed("the same key twice", b'{"prompt":"x","prompt":"y"}'),
    Malformed("empty prompt", _json(prompt="")),
    Malformed("prompt of the wrong type", _json(prompt={"a": 1})),
    Malformed("token id out of range", _json(prompt=[-1])),
    Malformed("max_tokens negative", _json(max_tokens=-1)),
    Malformed("max_tokens a text", _json(max_tokens="16")),
    Malformed("temperature too high", _json(temperature=9)),
    Malformed("n enormous", _json(n=100_000)),
    Malformed("unknown model", _json(model="no-such-model"), statuses=(404,)),
    Malformed("body too large", b'{"prompt":"' + b"x" * (2 << 20) + b'"}', statuses=(413,)),
    Malformed(
        "two lengths",
        whole=_POST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        may_close=True,
    ),
    Malformed(
        "length and chunks",
        whole=_POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        may_close=True,
    ),
    Malformed(
        "unknown coding",
        whole=_POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        statuses=(400, 501),
        may_close=True,
    ),
    Malformed(
        "not HTTP",
        whole=b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        may_close=True,
    ),
    Malformed("no host", whole=b"GET /health HTTP/1.1\r\n\r\n", may_close=True),
    Malformed(
        "strange verb",
        whole=b"BREW / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        statuses=(405, 501),
    ),
)


def _address(target: Target) -> tuple[str, int]:
    parts = urlsplit(target.base_url)
    return parts.hostname or "127.0.0.1", parts.port or 80


def _request(target: Target, body: bytes) -> bytes:
    host, port = _address(target)
    key = f"Authorization: Bearer {target.api_key}\r\n" if target.api_key else ""
    head = (
        f"POST /v1/completions HTTP/1.1\r\nHost: {host}:{port}\r\n{key}"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode() + body


async def send_malformed(target: Target, case: Malformed, start: float) -> Sample:
    began = time.perf_counter()
    sample = Sample(kind="malformed", began=began - start, outcome=Outcome.WRONG)
    payload = case.whole or _request(target, case.body)
    status: int | None = None
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            reader, writer = await asyncio.open_connection(*_address(target))
            try:
                writer.write(payload)
                if not case.whole.startswith(b"\x16"):
                    await writer.drain()
                else:
                    writer.write_eof()
                line = await reader.readline()
                if line.startswith(b"HTTP/"):
                    status = int(line.split()[1])
            finally:
                writer.close()
    except TimeoutError:
        sample.error = f"{case.name}: no answer in {_ANSWER_SECONDS:.0f} s"
    except (OSError, ValueError, IndexError) as error:
        # A large body may be refused before it has all been read.
        sample.error = f"{case.name}: {type(error).__name__}: {error}"
        if isinstance(error, OSError) and (case.may_close or len(payload) > 1 << 20):
            sample.outcome = Outcome.REJECTED
    else:
        right = case.may_close if status is None else status in case.statuses
        if right:
            sample.outcome = Outcome.REJECTED
        else:
            sample.error = f"{case.name}: answered {status}, not {case.statuses}"
    sample.status = status or 0
    sample.seconds = time.perf_counter() - began
    return sample


async def read_slowly(target: Target, ask: Ask, bank: str, start: float, due: float) -> Sample:
    """Takes the answer a sip at a time, with a small receive buffer, and leaves after a while."""
    sample = Sample(kind="slow reader", began=due - start, outcome=Outcome.CUT)
    host, port = _address(target)
    loop = asyncio.get_running_loop()
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as connection:
        connection.setblocking(False)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
        try:
            await asyncio.wait_for(loop.sock_connect(connection, (host, port)), _ANSWER_SECONDS)
            body = json.dumps(body_of(target, ask, bank)).encode()
            await loop.sock_sendall(connection, _request(target, body))
            sample.outcome, sample.status = await _sip(loop, connection, due)
        except (OSError, TimeoutError) as error:
            sample.outcome = Outcome.DROPPED
            sample.error = f"{type(error).__name__}: {error}"
    sample.seconds = time.perf_counter() - due
    return sample


async def _sip(
    loop: asyncio.AbstractEventLoop, connection: socket.socket, due: float
) -> tuple[Outcome, int]:
    status = 0
    tail = b""
    while time.perf_counter() - due < _SLOW_SECONDS:
        data = await asyncio.wait_for(loop.sock_recv(connection, _SIP_BYTES), _SLOW_SECONDS)
        if not data:
            return (Outcome.OK if b"data: [DONE]" in tail else Outcome.DROPPED), status
        if not status and data.startswith(b"HTTP/"):
            status = int(data.split(maxsplit=2)[1])
            if status in (429, 503):
                return Outcome.REFUSED, status
        tail = (tail + data)[-64:]
        await asyncio.sleep(_SIP_SECONDS)
    return Outcome.CUT, status
