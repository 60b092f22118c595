"""A bare HTTP/1.1 client on asyncio: nothing pooled, nothing retried, every byte ours."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

_RESET = struct.pack("ii", 1, 0)


@dataclass(slots=True)
class Answer:
    status: int
    fields: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    seconds: float = 0.0  # from the request's first byte to the answer's last

    def json(self) -> Any:
        return json.loads(self.body)


def get(path: str, *fields: str) -> bytes:
    lines = [f"GET {path} HTTP/1.1", "Host: localhost", *fields, "", ""]
    return "\r\n".join(lines).encode()


def post(path: str, body: bytes | dict[str, Any], *fields: str) -> bytes:
    payload = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [
        f"POST {path} HTTP/1.1",
        "Host: localhost",
        "Content-Type: application/json",
        f"Content-Length: {len(payload)}",
        *fields,
        "",
        "",
    ]
    return "\r\n".join(lines).encode() + payload


def completion(**members: Any) -> bytes:
    return post("/v1/completions", {"prompt": "It was", "temperature": 0} | members)


class Wire:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, port: int, receive_buffer: int | None = None) -> Wire:
        raw = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        raw.setblocking(False)
        if receive_buffer is not None:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        try:
            await asyncio.get_running_loop().sock_connect(raw, ("127.0.0.1", port))
            # A small limit keeps our own buffer from reading on behalf of a slow reader.
            reader, writer = await asyncio.open_connection(sock=raw, limit=1 << 16)
        except BaseException:
            raw.close()
            raise
        return cls(reader, writer)

    def send(self, data: bytes) -> None:
        self._writer.write(data)

    async def head(self) -> Answer:
        """Status 0: the server closed without a word."""
        line = await self._reader.readline()
        if not line.startswith(b"HTTP/1."):
            return Answer(0)
        answer = Answer(int(line.split()[1]))
        while (line := (await self._reader.readline()).rstrip()) != b"":
            name, _, value = line.decode("latin-1").partition(": ")
            answer.fields[name.lower()] = value
        return answer

    async def chunks(self) -> AsyncIterator[bytes]:
        """A chunked body's chunks; ends early, without an error, if the server closes."""
        while (line := await self._reader.readline()) and (size := int(line, 16)) > 0:
            yield (await self._reader.readexactly(size + 2))[:-2]

    async def answer(self) -> Answer:
        answer = await self.head()
        if answer.fields.get("transfer-encoding") == "chunked":
            answer.body = b"".join([chunk async for chunk in self.chunks()])
        else:
            answer.body = await self._reader.readexactly(
                int(answer.fields.get("content-length", 0))
            )
        return answer

    async def at_end(self) -> bool:
        """Waits for the next byte; true if it is the end instead."""
        return await self._reader.read(1) == b""

    def pause(self) -> None:
        """Reads nothing any more, not even into a buffer."""
        self._writer.transport.pause_reading()

    def close(self) -> None:
        self._writer.close()

    def reset(self) -> None:
        raw = self._writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self._writer.transport.abort()


async def ask(port: int, request: bytes, patience: float = 30.0) -> Answer:
    """One request on a connection of its own. Status 0: no answer, or not within `patience`."""
    began = time.perf_counter()
    wire = None
    try:
        async with asyncio.timeout(patience):
            wire = await Wire.open(port)
            wire.send(request)
            answer = await wire.answer()
    except (OSError, TimeoutError, asyncio.IncompleteReadError):
        answer = Answer(0)
    finally:
        if wire is not None:
            wire.close()
    answer.seconds = time.perf_counter() - began
    return answer
