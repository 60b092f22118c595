"""Clients that keep a server full, in a process of their own so as not to disturb who measures."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
from types import TracebackType

from abuse.wire import Wire, completion

_RETRY_SECONDS = 0.05


async def _client(port: int, number: int, max_tokens: int) -> None:
    request = completion(
        prompt=f"Client {number} says that", temperature=1, max_tokens=max_tokens, stream=True
    )
    while True:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, ValueError):
            wire = await Wire.open(port)
            try:
                wire.send(request)
                head = await wire.head()
                if head.status == 200:
                    async for _ in wire.chunks():
                        pass
                    continue
            finally:
                wire.close()
        await asyncio.sleep(_RETRY_SECONDS)


async def _clients(port: int, count: int, max_tokens: int) -> None:
    await asyncio.gather(*(_client(port, number, max_tokens) for number in range(count)))


def _run(port: int, count: int, max_tokens: int) -> None:
    asyncio.run(_clients(port, count, max_tokens))


class Crowd:
    """`with Crowd(port, 80):` so many streams are asked for at any moment."""

    def __init__(self, port: int, clients: int, max_tokens: int = 2000) -> None:
        self._process = multiprocessing.get_context("fork").Process(
            target=_run, args=(port, clients, max_tokens), daemon=True
        )

    def __enter__(self) -> Crowd:
        self._process.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.join()
