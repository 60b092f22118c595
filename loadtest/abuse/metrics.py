"""The books at rest, and what odd names do to them."""

from __future__ import annotations

import asyncio
import contextlib
import random
import shutil
import string
import subprocess
import time

from abuse.figures import Figure, percentile
from abuse.server import Context, Server
from abuse.wire import Wire, ask, completion, get, post

ABOUT = "counters that add up at rest, and series that do not multiply"

_PIPELINED = 50
_SCRAPES = 50
_TEXT = string.ascii_letters + string.digits + '"\\{}=,%/.-_~'


async def _mixture(port: int, count: int, rng: random.Random) -> None:
    """Requests that end well, are refused, or are left."""

    async def one(number: int) -> None:
        kind = number % 4
        if kind == 0:
            await ask(port, completion(max_tokens=rng.randint(0, 20), stream=rng.random() < 0.5))
        elif kind == 1:
            await ask(port, completion(temperature=9))
        elif kind == 2:
            await ask(port, completion(max_tokens=5, n=3, stop=["e"]))
        else:
            with contextlib.suppress(OSError):
                wire = await Wire.open(port)
                wire.send(completion(max_tokens=500, stream=True))
                await asyncio.sleep(rng.uniform(0, 0.1))
                wire.reset()

    for start in range(0, count, 16):
        await asyncio.gather(*(one(number) for number in range(start, start + 16)))


async def _odd_names(port: int, count: int, rng: random.Random) -> dict[int, int]:
    """Asks for paths and models nobody has; the statuses that came."""
    statuses: dict[int, int] = {}
    wire = await Wire.open(port)
    for start in range(0, count, _PIPELINED):
        for number in range(start, start + _PIPELINED):
            # "//" counts as "/" and "?" begins a query: the first letter keeps the name odd.
            name = "x" + "".join(rng.choices(_TEXT, k=rng.randint(1, 40)))
            if number % 2:
                wire.send(post("/v1/completions", {"prompt": "a", "model": name}))
            else:
                wire.send(get(rng.choice(("/", "/v1/models/", "/v1/notebanks/")) + name))
        for _ in range(_PIPELINED):
            answer = await wire.answer()
            statuses[answer.status] = statuses.get(answer.status, 0) + 1
            if answer.fields.get("connection") == "close":
                raise RuntimeError(f"the connection was closed after status {answer.status}")
    wire.close()
    return statuses


def _total(samples: dict[str, float], family: str) -> float:
    return sum(value for name, value in samples.items() if name.partition("{")[0] == family)


def _promtool(page: str) -> list[Figure]:
    if shutil.which("promtool") is None:
        return []
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=page, capture_output=True, text=True, check=False
    )
    complaints = len((done.stdout + done.stderr).strip().splitlines())
    return [Figure("promtool_complaints", complaints, "", ("==", 0))]


def run(context: Context) -> list[Figure]:
    rng = random.Random(context.seed)
    odd = context.count(100_000, 2_000)
    with Server(context) as server:
        asyncio.run(_mixture(server.port, 320 if not context.quick else 64, rng))
        idle = server.wait_idle(10)
        before = server.metrics()
        answered = _total(before, "spel_http_requests_total")
        statuses = asyncio.run(_odd_names(server.port, odd, rng))
        after = server.metrics()
        # The scrapes themselves are requests: `before` does not see its own, `after` does.
        counted = _total(after, "spel_http_requests_total") - answered - 1
        scrapes = []
        for _ in range(_SCRAPES):
            began = time.perf_counter()
            _, page = server.get("/metrics")
            scrapes.append(time.perf_counter() - began)
    started = after["spel_requests_started_total"]
    finished = _total(after, "spel_requests_finished_total")
    return [
        Figure("idle_after", idle, "s", ("<=", 10)),
        Figure("requests_started", started, "", (">=", 1)),
        Figure("started_minus_finished", started - finished, "", ("==", 0)),
        Figure(
            "running_and_waiting",
            _total(after, "spel_num_requests_running") + _total(after, "spel_num_requests_waiting"),
            "",
            ("==", 0),
        ),
        Figure("odd_names", odd),
        Figure(
            "odd_names_not_refused",
            odd - statuses.get(404, 0) - statuses.get(400, 0),
            "",
            ("==", 0),
        ),
        Figure("http_requests_miscounted", counted - odd, "", ("==", 0)),
        Figure("series", len(after)),
        Figure("series_added_by_odd_names", len(after.keys() - before.keys()), "", ("==", 0)),
        Figure("scrape_p99", 1e3 * percentile(scrapes, 99), "ms", ("<=", 20), timed=True),
        *_promtool(page),
    ]
