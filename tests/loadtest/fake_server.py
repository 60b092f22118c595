"""An OpenAI-compatible server that misbehaves on demand; not SPEL, as it must work with others."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any

from aiohttp import web


class FakeServer:
    def __init__(
        self, status: int = 200, finish: bool = True, texts: tuple[str, ...] = ("ab", "cd")
    ) -> None:
        self.status = status
        self.finish = finish
        self.texts = texts
        self.bodies: list[dict[str, Any]] = []
        self.url = ""

    async def __aenter__(self) -> FakeServer:
        app = web.Application()
        app.router.add_get("/v1/models", self._models)
        app.router.add_post("/v1/completions", self._complete)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _models(self, _: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": "fake"}]})

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        try:
            self.bodies.append(await request.json())
        except ValueError:
            return web.json_response({"error": {"message": "not JSON"}}, status=400)
        if self.status != 200:
            headers = {"Retry-After": "1"} if self.status == 503 else {}
            return web.json_response({"error": {}}, status=self.status, headers=headers)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        with contextlib.suppress(ConnectionResetError):  # clients hang up
            await self._stream(response)
        return response

    async def _stream(self, response: web.StreamResponse) -> None:
        for text in self.texts:
            await asyncio.sleep(0.01)
            choice = {"index": 0, "text": text, "finish_reason": None}
            await self._send(response, {"choices": [choice], "usage": None})
        usage = {"completion_tokens": 2 * len(self.texts)}
        timings = {"draft_n": 4, "draft_n_accepted": 3}
        await self._send(response, {"choices": [], "usage": usage, "timings": timings})
        if self.finish:
            await response.write(b"data: [DONE]\n\n")

    async def _send(self, response: web.StreamResponse, event: dict[str, Any]) -> None:
        await response.write(b"data: " + json.dumps(event).encode() + b"\n\n")
