"""Clients that leave at random points."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time

from abuse.figures import Figure, percentile
from abuse.server import Context, Server
from abuse.wire import Wire, ask, completion

ABOUT = "disconnects at random points: the place is free at once, nobody else notices"

_LATEST_SECONDS = 0.25
_CROWD = 16
_OTHER = {"prompt": "It was the best of", "max_tokens": 60, "temperature": 1, "seed": 11}


def _request(rng: random.Random) -> bytes:
    prompt = "".join(rng.choice("abcdefgh KEY_=123") for _ in range(rng.randint(1, 600)))
    speculation = {"k": rng.choice((0, 2, 8, 16)), "governor": rng.choice(("off", "adaptive"))}
    return completion(
        prompt=prompt,
        max_tokens=400,
        stream=rng.random() < 0.7,
        n=rng.choice((1, 1, 1, 2)),
        speculation=speculation,
    )


async def _ask_and_leave(port: int, rng: random.Random) -> None:
    wire = await Wire.open(port)
    wire.send(_request(rng))
    await asyncio.sleep(rng.uniform(0, _LATEST_SECONDS))
    if rng.random() < 0.5:
        wire.reset()
    else:
        wire.close()


async def _one_by_one(server: Server, count: int, rng: random.Random) -> list[float]:
    """Seconds from leaving to nothing left running."""
    freed = []
    for _ in range(count):
        await _ask_and_leave(server.port, rng)
        await asyncio.sleep(0)  # lets the socket close
        freed.append(server.wait_idle(10))
    return freed


async def _other_client(port: int, until: asyncio.Event) -> set[str]:
    """The texts it got; a refused request is asked again."""
    texts = set()
    while not until.is_set():
        answer = await ask(port, completion(**_OTHER))
        if answer.status == 200:
            texts.add(answer.json()["choices"][0]["text"])
        elif answer.status != 503:
            texts.add(f"status {answer.status}")
    return texts


async def _in_a_crowd(server: Server, count: int, seed: int) -> tuple[set[str], float]:
    until = asyncio.Event()
    other = asyncio.create_task(_other_client(server.port, until))

    async def leaver(number: int) -> None:
        rng = random.Random(f"{seed}/{number}")
        for _ in range(count // _CROWD):
            with contextlib.suppress(OSError):
                await _ask_and_leave(server.port, rng)

    await asyncio.gather(*(leaver(number) for number in range(_CROWD)))
    until.set()
    texts = await other
    began = time.perf_counter()
    server.wait_idle(10)
    return texts, time.perf_counter() - began


def run(context: Context) -> list[Figure]:
    count = context.count(1000, 60)
    rng = random.Random(context.seed)
    with Server(context, "--sequences", "4", "--queue", "8") as server:
        alone = asyncio.run(ask(server.port, completion(**_OTHER))).json()["choices"][0]["text"]
        freed = asyncio.run(_one_by_one(server, count // 2, rng))
        texts, idle_after = asyncio.run(_in_a_crowd(server, count // 2, context.seed))
        left = server.generations()
        samples = server.metrics()
        cancelled = sum(
            value
            for name, value in samples.items()
            if name.startswith("spel_requests_finished_total") and "cancelled" in name
        )
    return [
        Figure("cancels_the_server_saw", cancelled, "", (">=", count / 4)),
        Figure("slot_free_p50", 1e3 * percentile(freed, 50), "ms"),
        Figure("slot_free_worst", 1e3 * max(freed), "ms", ("<=", 100), timed=True),
        Figure("idle_after_a_crowd_left", 1e3 * idle_after, "ms", ("<=", 100), timed=True),
        Figure("generations_left", left, "", ("==", 0)),
        Figure("other_clients_texts", len(texts), "", ("==", 1)),
        Figure("other_client_same_as_alone", float(texts == {alone}), "", ("==", 1)),
    ]
