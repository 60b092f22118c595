"""Four times as many requests as the server can take."""

from __future__ import annotations

import asyncio
import time

from abuse.figures import Figure, percentile
from abuse.server import Context, Server
from abuse.wire import Answer, ask, completion

ABOUT = "four times the capacity: refusals are quick and say when to come back"

_TIMES = 4.0
_CAPACITY_CLIENTS = 24
_CAPACITY_ROUNDS = 3  # the best of them: what the machine did besides makes it look smaller
_MAX_TOKENS = 32


def _request(number: int) -> bytes:
    return completion(prompt=f"Request {number} was", max_tokens=_MAX_TOKENS)


async def _capacity(port: int, seconds: float) -> float:
    """Answers a second for clients that always want more."""
    began = time.perf_counter()
    done = 0

    async def client(first: int) -> None:
        nonlocal done
        number = first
        while time.perf_counter() - began < seconds:
            answer = await ask(port, _request(number))
            done += answer.status == 200
            number += _CAPACITY_CLIENTS

    await asyncio.gather(*(client(number) for number in range(_CAPACITY_CLIENTS)))
    return done / (time.perf_counter() - began)


async def _overload(server: Server, rate: float, seconds: float) -> tuple[list[Answer], list[int]]:
    """Requests on time, whatever has become of those before; and RSS once a second."""
    tasks: list[asyncio.Task[Answer]] = []
    rss: list[int] = []
    began = time.perf_counter()
    while (now := time.perf_counter() - began) < seconds:
        while len(tasks) < now * rate:
            request = _request(len(tasks))
            tasks.append(asyncio.create_task(ask(server.port, request, patience=120)))
        if len(rss) <= now:
            rss.append(server.rss_bytes())
        await asyncio.sleep(0.002)
    return await asyncio.gather(*tasks), rss


def run(context: Context) -> list[Figure]:
    seconds = context.duration(120, 5)
    with Server(context, "--queue", "16") as server:
        each = 1 if context.quick else 4
        rate = max(asyncio.run(_capacity(server.port, each)) for _ in range(_CAPACITY_ROUNDS))
        if rate == 0:
            raise RuntimeError("no request was answered while the capacity was measured")
        answers, rss = asyncio.run(_overload(server, _TIMES * rate, seconds))
        left = server.wait_idle(10)
    refused = [answer for answer in answers if answer.status == 503]
    odd = [answer for answer in answers if answer.status not in (200, 503)]
    latencies = [answer.seconds for answer in refused]
    settled = rss[len(rss) // 4 :]
    return [
        Figure("capacity", rate, "/s"),
        Figure("offered", len(answers) / seconds, "/s"),
        Figure("answered", sum(answer.status == 200 for answer in answers) / seconds, "/s"),
        Figure("refused", len(refused), "", (">=", 1)),
        Figure("neither_answered_nor_refused", len(odd), "", ("==", 0)),
        Figure(
            "refusals_without_retry_after",
            sum("retry-after" not in answer.fields for answer in refused),
            "",
            ("==", 0),
        ),
        Figure("refusal_p50", 1e3 * percentile(latencies, 50), "ms"),
        Figure("refusal_p99", 1e3 * percentile(latencies, 99), "ms", ("<=", 20), timed=True),
        Figure("rss_spread", 100 * (max(settled) / min(settled) - 1), "%", ("<=", 5)),
        Figure("generations_left", float(left == float("inf")), "", ("==", 0)),
    ]
