"""Streaming requests to an OpenAI-compatible server, timed as a user would feel them."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import aiohttp

from driver.prompts import Kind, Prompt
from driver.sample import Outcome, Sample

REFUSALS = (429, 503)
_REQUEST_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Target:
    """The server under load."""

    base_url: str
    model: str
    is_spel: bool
    has_notebank: bool
    api_key: str = ""

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.api_key}"} if self.api_key else {}


@dataclass(frozen=True, slots=True)
class Ask:
    """A request to make."""

    prompt: Prompt
    max_tokens: int
    plain: bool = False  # without speculation
    hang_up_after: int | None = None  # chunks; 0: before the first


async def discover(session: aiohttp.ClientSession, base_url: str, api_key: str) -> Target:
    """Asks the server what it is; raises when there is none."""
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    async with session.get(f"{base_url}/v1/models", headers=headers) as response:
        response.raise_for_status()
        model = (await response.json())["data"][0]["id"]
        is_spel = response.headers.get("Server", "") == "spel"
    async with session.get(f"{base_url}/v1/notebanks", headers=headers) as response:
        has_notebank = response.status == 200
    return Target(base_url, model, is_spel, has_notebank, api_key)


def body_of(target: Target, ask: Ask, bank: str) -> dict[str, Any]:
    body: dict[str, Any] = {
        "model": target.model,
        "prompt": ask.prompt.text,
        "max_tokens": ask.max_tokens,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if target.is_spel:
        body["return_token_ids"] = True  # how many tokens a chunk brings
        if ask.plain:
            body["speculation"] = {"mode": "off"}
        if ask.prompt.kind is Kind.NOTEBANK:
            body["notebank"] = {"bank": bank}
    return body


async def sse_events(
    response: aiohttp.ClientResponse,
) -> AsyncIterator[dict[str, Any] | None]:
    """The events' data; None for [DONE]."""
    async for line in response.content:
        if not line.startswith(b"data:"):
            continue
        data = line[5:].strip()
        if data == b"[DONE]":
            yield None
            return
        yield json.loads(data)


class _Reading:
    """Fills a sample from the chunks of one stream."""

    def __init__(self, sample: Sample, due: float) -> None:
        self._sample = sample
        self._due = due
        self._last = due
        self._text: list[str] = []
        self.chunks = 0

    def take(self, event: dict[str, Any]) -> None:
        now = time.perf_counter()
        choices = event.get("choices") or []
        if choices and (choices[0].get("text") or choices[0].get("token_ids")):
            self._take_text(choices[0], now)
        usage = event.get("usage")
        if usage:
            self._sample.tokens = usage["completion_tokens"]
        self._take_receipt(event)

    def _take_text(self, choice: dict[str, Any], now: float) -> None:
        sample = self._sample
        self.chunks += 1
        self._text.append(choice.get("text") or "")
        tokens = len(choice.get("token_ids") or "x")
        sample.tokens += tokens
        if sample.ttft is None:
            sample.ttft = now - self._due
            tokens -= 1
        # Tokens that arrive together share the wait equally.
        sample.gaps.add((now - self._last) / max(tokens, 1), tokens)
        self._last = now

    def _take_receipt(self, event: dict[str, Any]) -> None:
        speculation = event.get("speculation")
        timings = event.get("timings") or {}
        if speculation:
            self._sample.proposed = speculation["proposed"]
            self._sample.accepted = speculation["accepted"]
            self._sample.speedup = speculation["speedup"]
        elif "draft_n" in timings:  # llama.cpp
            self._sample.proposed = timings["draft_n"]
            self._sample.accepted = timings["draft_n_accepted"]

    def text(self) -> str:
        return "".join(self._text)


async def complete(
    session: aiohttp.ClientSession,
    target: Target,
    ask: Ask,
    bank: str,
    start: float,
    due: float,
) -> Sample:
    """Sends one request and reads its stream. `start`: the run's; `due`: when the request should
    have been sent, so that a late client does not flatter the server."""
    sample = Sample(kind=ask.prompt.kind.value, began=due - start)
    reading = _Reading(sample, due)
    try:
        async with asyncio.timeout(_REQUEST_SECONDS):
            async with session.post(
                f"{target.base_url}/v1/completions",
                json=body_of(target, ask, bank),
                headers=target.headers,
            ) as response:
                sample.status = response.status
                sample.outcome = await _read(response, ask, sample, reading)
    except (aiohttp.ClientError, TimeoutError, ValueError, KeyError) as error:
        sample.error = f"{type(error).__name__}: {error}"
    sample.seconds = time.perf_counter() - due
    if sample.outcome is Outcome.OK:
        sample.text = reading.text()
        sample.text_key = f"{ask.prompt.key}/{ask.max_tokens}"
        if ask.prompt.expected:
            sample.recalled = sample.text.startswith(ask.prompt.expected)
    return sample


async def _read(
    response: aiohttp.ClientResponse, ask: Ask, sample: Sample, reading: _Reading
) -> Outcome:
    if response.status in REFUSALS:
        sample.retry_after = "Retry-After" in response.headers
        await response.read()
        return Outcome.REFUSED
    if response.status != 200:
        sample.error = f"{response.status}: {(await response.text())[:200]}"
        return Outcome.ERROR
    if ask.hang_up_after == 0:
        response.close()
        return Outcome.CUT
    async for event in sse_events(response):
        if event is None:
            return Outcome.OK
        if "error" in event:
            sample.error = str(event["error"])[:200]
            return Outcome.ERROR
        reading.take(event)
        if ask.hang_up_after is not None and reading.chunks >= ask.hang_up_after:
            response.close()
            return Outcome.CUT
    sample.error = "the stream ended without [DONE]"
    return Outcome.ERROR


async def write_bank(
    session: aiohttp.ClientSession, target: Target, bank: str, text: str
) -> str | None:
    """Writes the bank the NoteBank prompts ask; an error's text, or None."""
    url = f"{target.base_url}/v1/notebanks/{bank}/write"
    async with session.post(url, json={"text": text}, headers=target.headers) as response:
        if response.status in (200, 201):
            return None
        return f"{response.status}: {(await response.text())[:200]}"
