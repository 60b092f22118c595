"""What HTTP, streaming and company cost, next to the engine alone on the same machine."""

from __future__ import annotations

import asyncio
import itertools
import json
import statistics
import subprocess
import time
from dataclasses import dataclass
from typing import Any

from abuse.figures import Figure, percentile
from abuse.server import Context, Server
from abuse.wire import Wire, completion

ABOUT = "tokens a second over HTTP next to spel bench, first tokens, sixteen clients"

_PLAIN = {"speculation": {"mode": "off"}}
_BENCH_CONTEXT = 64  # where spel bench decodes: an answer around it has the same cost a token
_ANSWER = 96
# Three times what the best of the others reached with this shape, f32, one thread, 16 clients.
_AGGREGATE_GOAL = 3 * 494


@dataclass(slots=True)
class Stream:
    first: float  # seconds to the first token
    last: float
    tokens: int
    gaps: list[float]  # between chunks
    prefill: float  # by the server's own clock

    @property
    def rate(self) -> float:
        return (self.tokens - 1) / (self.last - self.first)


async def _stream(port: int, **members: Any) -> Stream:
    request = completion(stream=True, ignore_eos=True, **members)
    wire = await Wire.open(port)
    began = time.perf_counter()
    wire.send(request)
    head = await wire.head()
    if head.status != 200:
        wire.close()
        raise RuntimeError(f"a stream was answered {head.status}, not 200")
    times = []
    last = b""
    async for chunk in wire.chunks():
        times.append(time.perf_counter() - began)
        last = chunk if b'"usage"' in chunk else last
    wire.close()
    event = next(line for line in last.split(b"\n\n") if b'"usage"' in line)
    receipt = json.loads(event.removeprefix(b"data: "))
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    # The end comes with the last token or right behind it.
    return Stream(
        times[0],
        times[-1],
        receipt["usage"]["completion_tokens"],
        gaps,
        receipt["timings"]["prompt_ms"] / 1e3,
    )


def _bench(context: Context, dtype: str) -> float:
    """Tokens a second of the engine alone."""
    command = [str(context.binary), "bench", "--model", str(context.model)]
    command += ["--only", "plain", "--quick", "--json", "--runs", "3"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    figures = {figure["figure"]: figure["value"] for figure in map(json.loads, lines)}
    return next(v for name, v in figures.items() if name.endswith(f"_{dtype}_tok_s"))


def _one_stream(context: Context, dtype: str, rounds: int) -> list[Figure]:
    """In turns with the bench, so that both see the same machine."""
    ratios, rates, benches = [], [], []
    with _server(context, dtype) as server:
        for _ in range(rounds):
            bench = _bench(context, dtype)
            prompt = "It was the best of times, it was"[: max(1, _BENCH_CONTEXT - _ANSWER // 2)]
            streams = [
                asyncio.run(_stream(server.port, prompt=prompt, max_tokens=_ANSWER, **_PLAIN))
                for _ in range(5)
            ]
            rate = statistics.median(stream.rate for stream in streams)
            ratios.append(rate / bench)
            rates.append(rate)
            benches.append(bench)
    return [
        Figure(f"bench_{dtype}", statistics.median(benches), "tok/s"),
        Figure(f"http_{dtype}", statistics.median(rates), "tok/s"),
        Figure(
            f"http_{dtype}_over_bench", statistics.median(ratios), "x", (">=", 0.97), timed=True
        ),
    ]


def _server(context: Context, dtype: str) -> Server:
    flags = ("--weights-dtype", dtype, "--target-threads", "1", "--prefix-cache", "0")
    return Server(context, *flags)


def _first_tokens(server: Server, count: int) -> list[Figure]:
    extra = []
    for number in range(count):
        prompt = f"Prompt number {number} is this one: " + "the lamp was lit " * 6
        stream = asyncio.run(_stream(server.port, prompt=prompt, max_tokens=2, **_PLAIN))
        extra.append(1e3 * (stream.first - stream.prefill))
    return [
        Figure("first_token_over_prefill_p50", percentile(extra, 50), "ms", ("<=", 2), timed=True),
        Figure("first_token_over_prefill_p99", percentile(extra, 99), "ms"),
    ]


async def _aggregate(port: int, clients: int, seconds: float, **members: Any) -> float:
    """Tokens a second of all clients together, in streams that ended in time."""
    began = time.perf_counter()
    tokens = 0

    async def client(number: int) -> None:
        nonlocal tokens
        turn = 0
        while time.perf_counter() - began < seconds:
            prompt = f"Hello {number}{turn}"[:8]
            stream = await _stream(port, prompt=prompt, max_tokens=_ANSWER, **members)
            tokens += stream.tokens
            turn += 1

    await asyncio.gather(*(client(number) for number in range(clients)))
    return tokens / (time.perf_counter() - began)


async def _newcomer(port: int, count: int) -> list[Figure]:
    """A prompt that comes while seven others decode."""
    prompt = "the lamp was lit " * 6

    async def ask(number: int) -> Stream:
        return await _stream(port, prompt=f"{number} " + prompt, max_tokens=2, **_PLAIN)

    alone = [(await ask(number)).first for number in range(count)]
    others = [
        asyncio.create_task(
            _stream(port, prompt=f"Other {number}", max_tokens=40 * count + 400, **_PLAIN)
        )
        for number in range(7)
    ]
    await asyncio.sleep(0.5)
    busy = []
    for number in range(count):
        busy.append((await ask(number)).first)
        await asyncio.sleep(0.013)
    still = sum(not task.done() for task in others)
    # A pass in which a prompt is read is not a step that others would have had anyway.
    steps = [gap for stream in await asyncio.gather(*others) for gap in stream.gaps]
    step = statistics.median(steps)
    bound = step + statistics.median(alone)
    return [
        Figure("others_still_decoding", still, "", (">=", 7)),
        Figure("newcomer_alone_p50", 1e3 * percentile(alone, 50), "ms"),
        Figure("step_of_seven_p50", 1e3 * step, "ms"),
        Figure("newcomer_p50", 1e3 * percentile(busy, 50), "ms"),
        Figure(
            "newcomer_over_step_and_prefill",
            percentile(busy, 50) / bound,
            "x",
            ("<=", 1),
            timed=True,
        ),
    ]


def run(context: Context) -> list[Figure]:
    rounds = 1 if context.quick else 5
    figures = [f for dtype in ("f32", "bf16") for f in _one_stream(context, dtype, rounds)]
    with _server(context, "f32") as server:
        figures += _first_tokens(server, 10 if context.quick else 100)
        seconds = context.duration(20, 2)
        plain = asyncio.run(_aggregate(server.port, 16, seconds / 2, **_PLAIN))
        drafted = asyncio.run(_aggregate(server.port, 16, seconds))
        figures += [
            Figure("sixteen_clients_f32_plain", plain, "tok/s"),
            Figure("sixteen_clients_f32", drafted, "tok/s", (">=", _AGGREGATE_GOAL), timed=True),
        ]
        figures += asyncio.run(_newcomer(server.port, 8 if context.quick else 40))
    return figures
