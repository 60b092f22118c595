#!/usr/bin/env python3
"""Asks for the same random completions in several ways; every way has to give the same answer.

fidelity.py --server build/release/spel --model engine/models/spel-21m [--requests N]
fidelity.py --base-url http://127.0.0.1:8080

Each request is asked four times: plain and whole and alone; drafted and streamed and alone; drafted
and whole and in company; plain and streamed and in company. Any two of the three choices thus meet
in every combination; --every-way asks all eight. Text, token ids, offsets, finish reason, usage and
logprobs have to be equal, the latter to the last digit.
Exit status: 0 all equal, 1 a difference (with what reproduces it), 2 could not run.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from driver.cases import make_case
from driver.client import sse_events
from driver.local_server import LocalServer

_COMPANY = 8
_PROGRESS_SECONDS = 15.0
_REQUEST_SECONDS = 400.0
_SHOWN_DIFFERENCES = 10
# A client that is stopped for a while must not look like a difference.
_PATIENT = ["--header-timeout=600", "--body-timeout=600", "--write-timeout=600"]


@dataclass(frozen=True, slots=True)
class Way:
    """How a request is asked."""

    drafted: bool
    streamed: bool
    in_company: bool

    def __str__(self) -> str:
        words = (
            "drafted" if self.drafted else "plain",
            "streamed" if self.streamed else "whole",
            "in company" if self.in_company else "alone",
        )
        return ", ".join(words)


_REFERENCE = Way(drafted=False, streamed=False, in_company=False)
EVERY_WAY = tuple(Way(*choice) for choice in itertools.product((False, True), repeat=3))
HALF_THE_WAYS = tuple(
    way for way in EVERY_WAY if (way.drafted + way.streamed + way.in_company) % 2 == 0
)


@dataclass(slots=True)
class Tally:
    requests: int = 0
    answers: int = 0
    tokens: int = 0
    proposed: int = 0
    accepted: int = 0
    stopped: int = 0
    differences: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0


def body_for(case: dict[str, Any], way: Way) -> dict[str, Any]:
    body = dict(case)
    if not way.drafted:
        body["speculation"] = {"mode": "off"}
    if way.streamed:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    return body


def joined(chunks: list[dict[str, Any]]) -> dict[str, Any]:
    """The whole answer a stream amounts to."""
    choices: dict[int, dict[str, Any]] = {}
    for part in itertools.chain.from_iterable(chunk["choices"] for chunk in chunks):
        choice = choices.setdefault(part["index"], {"index": part["index"], "text": ""})
        choice["text"] += part["text"]
        choice.setdefault("token_ids", []).extend(part.get("token_ids", []))
        choice.setdefault("offsets", []).extend(part.get("spel", {}).get("text_offsets", []))
        # A stream has none where there is no text; the whole answer then has empty ones.
        logprobs = choice.setdefault("logprobs", {})
        for name, values in (part["logprobs"] or {}).items():
            if values:
                logprobs.setdefault(name, []).extend(values)
        choice["finish_reason"] = part["finish_reason"]
        choice["stop_reason"] = part.get("stop_reason")
    last = chunks[-1]
    return {"choices": choices, "usage": last["usage"], "speculation": last["speculation"]}


def judged(answer: dict[str, Any]) -> dict[str, Any]:
    """What has to be the same however the request was asked."""
    usage = answer["usage"]
    counts = ("prompt_tokens", "completion_tokens", "total_tokens")
    return {"choices": answer["choices"], "usage": {name: usage[name] for name in counts}}


async def ask(session: aiohttp.ClientSession, url: str, body: dict[str, Any]) -> dict[str, Any]:
    async with asyncio.timeout(_REQUEST_SECONDS):
        async with session.post(f"{url}/v1/completions", json=body) as response:
            if response.status != 200:
                return {"error": f"{response.status}: {(await response.text())[:300]}"}
            if not body.get("stream"):
                answer = await response.json()
                return answer if "error" in answer else joined([answer])
            chunks: list[dict[str, Any]] = []
            async for event in sse_events(response):
                if event is None:
                    return joined(chunks)
                if "error" in event:
                    return {"error": str(event["error"])[:300]}
                chunks.append(event)
    return {"error": "the stream ended without [DONE]"}


def first_difference(expected: Any, found: Any, place: str = "") -> str:
    """Where the two part, and what stands there."""
    if isinstance(expected, dict) and isinstance(found, dict) and expected.keys() == found.keys():
        pairs = [(f"{place}.{key}", expected[key], found[key]) for key in expected]
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        pairs = [
            (f"{place}[{i}]", *both) for i, both in enumerate(zip(expected, found, strict=True))
        ]
    else:
        return f"{place.lstrip('.')}: {str(expected)[:200]!r} and {str(found)[:200]!r}"
    for name, one, other in pairs:
        if one != other:
            return first_difference(one, other, name)
    return ""


class Fidelity:
    def __init__(
        self,
        session: aiohttp.ClientSession,
        url: str,
        seed: int,
        ways: tuple[Way, ...],
        ids_below: int | None = None,
    ) -> None:
        self._session = session
        self._url = url
        self._seed = seed
        self._ways = ways
        self._ids_below = ids_below
        self._company = asyncio.Semaphore(_COMPANY)
        self.tally = Tally()

    async def _answer(self, case: dict[str, Any], way: Way) -> dict[str, Any]:
        body = body_for(case, way)
        async with self._company if way.in_company else contextlib.nullcontext():
            try:
                answer = await ask(self._session, self._url, body)
            except (aiohttp.ClientError, TimeoutError) as error:
                answer = {"error": f"{type(error).__name__}: {error}"}
        self.tally.answers += 1
        if "error" not in answer:
            self.tally.tokens += answer["usage"]["completion_tokens"]
            self.tally.proposed += answer["speculation"]["proposed"]
            self.tally.accepted += answer["speculation"]["accepted"]
        return answer

    async def group(self, numbers: range) -> None:
        """Some requests, first each alone, then all of them in each other's company."""
        cases = {number: make_case(self._seed, number, self._ids_below) for number in numbers}
        answers: dict[tuple[int, Way], dict[str, Any]] = {}
        for way in (way for way in self._ways if not way.in_company):
            for number, case in cases.items():
                answers[number, way] = await self._answer(case, way)
        crowd = [(number, way) for way in self._ways if way.in_company for number in cases]
        found = await asyncio.gather(*(self._answer(cases[number], way) for number, way in crowd))
        answers |= dict(zip(crowd, found, strict=True))
        for number, case in cases.items():
            self._judge(number, numbers, case, {w: answers[number, w] for w in self._ways})

    def _judge(
        self, number: int, group: range, case: dict[str, Any], answers: dict[Way, dict[str, Any]]
    ) -> None:
        self.tally.requests += 1
        reference = answers[_REFERENCE]
        wrong = {way: answer["error"] for way, answer in answers.items() if "error" in answer}
        if not wrong:
            expected = judged(reference)
            reasons = Counter(c["finish_reason"] for c in expected["choices"].values())
            self.tally.stopped += reasons["stop"]
            wrong = {
                way: first_difference(expected, judged(answer))
                for way, answer in answers.items()
                if judged(answer) != expected
            }
        for way, what in wrong.items():
            self.tally.differences.append(
                {
                    "number": number,
                    "way": str(way),
                    "what": what,
                    "reproduce": f"./run fidelity --seed {self._seed} --first {group.start} "
                    f"--requests {len(group)} --every-way"
                    + ("" if self._ids_below is None else f" --ids-below {self._ids_below}"),
                    "plain": body_for(case, _REFERENCE),
                    "asked": body_for(case, way),
                }
            )

    async def run(self, first: int, requests: int) -> None:
        began = shown = time.monotonic()
        for start in range(first, first + requests, _COMPANY):
            await self.group(range(start, min(start + _COMPANY, first + requests)))
            now = time.monotonic()
            self.tally.seconds = now - began
            if now - shown >= _PROGRESS_SECONDS:
                shown = now
                print(summary(self.tally), file=sys.stderr, flush=True)


def summary(tally: Tally) -> str:
    return (
        f"{tally.requests} requests, {tally.answers} answers, {tally.tokens} tokens, "
        f"{tally.accepted} of {tally.proposed} proposals accepted, {tally.stopped} texts stopped, "
        f"{len(tally.differences)} differences, {tally.seconds:.0f} s"
    )


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("fidelity.py", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--base-url", help="a server that runs already")
    parser.add_argument("--server", type=Path, help="a spel binary to start and stop")
    parser.add_argument("--model", type=Path, default=Path("engine/models/spel-21m"))
    parser.add_argument("--server-flag", action="append", default=[], metavar="FLAG=VALUE")
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first request")
    parser.add_argument(
        "--ids-below", type=int, metavar="N", help="prompts of token ids below N, not of text"
    )
    parser.add_argument("--every-way", action="store_true", help="eight ways instead of four")
    parser.add_argument("--json", action="store_true", help="the result as one JSON object")
    parser.add_argument("--out", type=Path, default=Path("build/load"), help="for the server's log")
    return parser.parse_args()


async def run_all(url: str, options: argparse.Namespace) -> Tally:
    # A connection for each request: one that was idle too long is no difference either.
    connector = aiohttp.TCPConnector(limit=0, force_close=True)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        ways = EVERY_WAY if options.every_way else HALF_THE_WAYS
        fidelity = Fidelity(session, url, options.seed, ways, options.ids_below)
        await fidelity.run(options.first, options.requests)
        return fidelity.tally


def main() -> int:
    options = parse_arguments()
    if (options.base_url is None) == (options.server is None):
        raise RuntimeError("either --base-url or --server is needed")
    options.out.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        url = (options.base_url or "").rstrip("/").removesuffix("/v1")
        server = None
        if options.server is not None:
            flags = [*_PATIENT, *options.server_flag]
            log = options.out / "fidelity-server.log"
            server = LocalServer(options.server, options.model, log, flags)
            url = stack.enter_context(server).url
        tally = asyncio.run(run_all(url, options))
    if server is not None and server.process.returncode != 0:
        raise RuntimeError(f"the server ended with status {server.process.returncode}")
    for difference in tally.differences[:_SHOWN_DIFFERENCES]:
        print(f"request {difference['number']}, {difference['way']}: {difference['what']}")
        print(f"  again: {difference['reproduce']}")
        print(f"  plain: {json.dumps(difference['plain'])}")
        print(f"  asked: {json.dumps(difference['asked'])}")
    if options.json:
        figures = {name: getattr(tally, name) for name in Tally.__slots__}
        print(json.dumps({"seed": options.seed, "first": options.first, **figures}))
    shown = sys.stderr if options.json else sys.stdout
    print(summary(tally), file=shown)
    print("FAIL: answers differ" if tally.differences else "PASS: all answers equal", file=shown)
    return 1 if tally.differences else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (RuntimeError, OSError, aiohttp.ClientError) as error:
        print(f"fidelity.py: {error}", file=sys.stderr)
        sys.exit(2)
