#!/usr/bin/env python3
"""Whole requests with speculation and without, in turns: what drafting gains and what it costs.

pairs.py --server build/release/spel [--model DIR] [--only requests|clients|bystanders] [--quick]

requests: prompts of 300, 1,000 and 3,000 characters x 1, 8, 64 and 256 tokens x prose, recall and
random text, one request at a time. Each pair asks the same prompt with speculation, without, and
without once more as a control, in random order, and forms the ratios off/on and off/off of wall
time (sending to the last byte, prompt included) and of the server's processor time. A cell shows
the median ratio and its 95 % interval; wide ones get more pairs. FAIL where an interval of off/on
lies wholly below 0.98, or the mean over the cells below 0.99; a cell that stays wider than 0.03
either way is unshown.
clients: tokens a second of 4 and of 16 clients at a time, on over off.
bystanders: one client on recall with speculation and three on random text without: each of the
three against its speed when nobody speculates.
The server's prefix cache is off, so that a prompt asked again is read again.
Exit status: 0 as said, 1 a cell fails, 2 could not run.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import json
import math
import random
import string
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from driver.local_server import LocalServer
from driver.prompts import OPENINGS, facts, facts_text

_LENGTHS = (300, 1000, 3000)
_TOKENS = (1, 8, 64, 256)
_KINDS = ("prose", "recall", "random")
_PAIRS_MIN = 15
_PAIRS_MAX = 60
_HALF_WIDTH = 0.03
_CELL_LEAST = 0.98
_MEAN_LEAST = 0.99
_ROUNDS = 7  # Of clients, each way.


def make_prompt(kind: str, length: int, rng: random.Random) -> str:
    if kind == "prose":
        text = " ".join(OPENINGS) + " "
        start = rng.randrange(len(text))
        return (text * (2 + length // len(text)))[start : start + length]
    if kind == "recall":
        pairs = facts(rng, max(2, min(80, length // 36)))
        body = facts_text(rng, pairs)
        asked = f"?{rng.choice(pairs)[0]}="
        while len(body) < length:
            body += facts_text(rng, pairs[:2])
        return body[: length - len(asked)] + asked
    alphabet = string.ascii_letters + string.digits + string.punctuation + " "
    return "".join(rng.choice(alphabet) for _ in range(length))


def processor_seconds(pid: int) -> float:
    """Of all threads, to the nanosecond: /proc/PID/stat counts in hundredths."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        total += int((task / "schedstat").read_text().split()[0])
    return total / 1e9


class Client:
    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        self._connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=600)

    def ask(self, prompt: str, tokens: int, *, speculate: bool) -> dict[str, Any]:
        body = {"prompt": prompt, "max_tokens": tokens, "temperature": 0, "ignore_eos": True}
        if not speculate:
            body["speculation"] = {"mode": "off"}
        self._connection.request(
            "POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"}
        )
        response = self._connection.getresponse()
        answer = json.loads(response.read())
        if response.status != 200:
            raise RuntimeError(f"{response.status}: {answer}")
        return answer


@dataclass(slots=True)
class Ratios:
    values: list[float] = field(default_factory=list)

    def median(self) -> float:
        ordered = sorted(self.values)
        middle = len(ordered) // 2
        return (ordered[middle] + ordered[~middle]) / 2

    def interval(self) -> tuple[float, float]:
        """95 % of the median, from the order of the values: nothing is assumed about them."""
        n = len(self.values)
        ordered = sorted(self.values)
        tail, chance = 0, 0.5**n
        cumulative = chance
        while tail < n // 2 and cumulative + math.comb(n, tail + 1) * 0.5**n <= 0.025:
            tail += 1
            cumulative += math.comb(n, tail) * 0.5**n
        return ordered[tail], ordered[n - 1 - tail]

    def shown(self) -> bool:
        low, high = self.interval()
        return max(high - self.median(), self.median() - low) <= _HALF_WIDTH

    def __str__(self) -> str:
        low, high = self.interval()
        return f"{self.median():.3f} [{low:.3f}-{high:.3f}]"


def measure_cell(
    client: Client, pid: int, kind: str, length: int, tokens: int, most: int, rng: random.Random
) -> dict[str, Ratios]:
    cell = {name: Ratios() for name in ("wall", "cpu", "wall off/off", "cpu off/off")}
    while len(cell["wall"].values) < most:
        prompt = make_prompt(kind, length, rng)
        ways = ["on", "off", "again"]
        rng.shuffle(ways)
        seconds: dict[str, tuple[float, float]] = {}
        texts = set()
        for way in ways:
            processor, began = processor_seconds(pid), time.perf_counter()
            answer = client.ask(prompt, tokens, speculate=way == "on")
            seconds[way] = (time.perf_counter() - began, processor_seconds(pid) - processor)
            texts.add(answer["choices"][0]["text"])
        if len(texts) != 1:
            raise RuntimeError(f"speculation changed the answer to {prompt!r}")
        for i, clock in enumerate(("wall", "cpu")):
            cell[clock].values.append(seconds["off"][i] / seconds["on"][i])
            cell[f"{clock} off/off"].values.append(seconds["off"][i] / seconds["again"][i])
        if len(cell["wall"].values) >= min(_PAIRS_MIN, most) and all(
            cell[clock].shown() for clock in ("wall", "cpu")
        ):
            break
    return cell


def requests(url: str, pid: int, most: int, seed: int, lengths: tuple[int, ...]) -> bool:
    rng = random.Random(seed)
    client = Client(url)
    for _ in range(3):
        client.ask(make_prompt("prose", 300, rng), 64, speculate=True)
    print(f"{'prompt':>14} {'tokens':>6} {'pairs':>5}  off/on: wall, cpu; off/off: wall, cpu")
    medians: dict[str, list[float]] = {"wall": [], "cpu": []}
    passed = True
    for kind, length, tokens in itertools.product(_KINDS, lengths, _TOKENS):
        cell = measure_cell(client, pid, kind, length, tokens, most, rng)
        verdict = ""
        for clock in ("wall", "cpu"):
            medians[clock].append(cell[clock].median())
            if cell[clock].interval()[1] < _CELL_LEAST:
                verdict += f" FAIL({clock})"
                passed = False
            elif not cell[clock].shown():
                verdict += f" unshown({clock})"
        pairs = len(cell["wall"].values)
        figures = "  ".join(str(ratios) for ratios in cell.values())
        print(f"{kind:>8} {length:>5} {tokens:>6} {pairs:>5}  {figures}{verdict}", flush=True)
    for clock, values in medians.items():
        mean = sum(values) / len(values)
        print(f"mean over cells, {clock}: {mean:.3f}")
        passed = passed and mean >= _MEAN_LEAST
    return passed


def crowd(
    url: str, clients: int, each: int, ask: Callable[[Client, int, int], int]
) -> tuple[float, list[float]]:
    """Tokens a second of all together, and seconds a request of each client."""
    tokens = [0] * clients
    seconds = [0.0] * clients
    begin = threading.Barrier(clients + 1)

    def work(number: int) -> None:
        client = Client(url)
        begin.wait()
        began = time.perf_counter()
        for i in range(each):
            tokens[number] += ask(client, number, i)
        seconds[number] = (time.perf_counter() - began) / each

    threads = [threading.Thread(target=work, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    begin.wait()
    began = time.perf_counter()
    for thread in threads:
        thread.join()
    return sum(tokens) / (time.perf_counter() - began), seconds


def clients_rows(url: str, counts: tuple[int, ...], rounds: int, seed: int, label: str) -> None:
    for count, kind in itertools.product(counts, ("prose", "recall")):
        ratios = Ratios()
        rates: dict[bool, list[float]] = {True: [], False: []}
        for turn in range(rounds):
            for speculate in (True, False) if turn % 2 else (False, True):

                def ask(
                    client: Client,
                    number: int,
                    i: int,
                    on: bool = speculate,
                    run: int = turn,
                    kind: str = kind,
                ) -> int:
                    rng = random.Random(f"{seed}/{kind}/{run}/{number}/{i}")
                    prompt = make_prompt(kind, 300, rng)
                    return client.ask(prompt, 96, speculate=on)["usage"]["completion_tokens"]

                rates[speculate].append(crowd(url, count, 4, ask)[0])
            ratios.values.append(rates[True][-1] / rates[False][-1])
        on, off = Ratios(rates[True]).median(), Ratios(rates[False]).median()
        print(
            f"{count} clients, {kind}, {label}: {ratios}, {on:.0f} over {off:.0f} tok/s", flush=True
        )


def bystanders(url: str, rounds: int, seed: int) -> None:
    ratios = [Ratios() for _ in range(3)]
    for turn in range(rounds):
        seconds: dict[bool, list[float]] = {}
        for speculate in (True, False) if turn % 2 else (False, True):

            def ask(
                client: Client, number: int, i: int, on: bool = speculate, run: int = turn
            ) -> int:
                rng = random.Random(f"{seed}/{run}/{number}/{i}")
                kind = "recall" if number == 0 else "random"
                prompt = make_prompt(kind, 300, rng)
                answer = client.ask(prompt, 96, speculate=on)
                return answer["usage"]["completion_tokens"]

            seconds[speculate] = crowd(url, 4, 4, ask)[1]
        for i in range(3):
            ratios[i].values.append(seconds[False][i + 1] / seconds[True][i + 1])
    print("beside one client on recall, each of three on random text:", *ratios, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser("pairs.py", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--server", type=Path, required=True)
    parser.add_argument("--model", type=Path, default=Path("engine/models/spel-21m"))
    parser.add_argument("--server-flag", action="append", default=[], metavar="FLAG=VALUE")
    parser.add_argument("--only", choices=("requests", "clients", "bystanders"))
    parser.add_argument("--pairs", type=int, default=_PAIRS_MAX, help="the most of a cell")
    parser.add_argument("--lengths", type=int, nargs="+", default=_LENGTHS, help="of the prompts")
    parser.add_argument("--quick", action="store_true", help="five pairs a cell, three rounds")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("build/load"), help="for the server's log")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    most, rounds = (5, 3) if options.quick else (options.pairs, _ROUNDS)
    passed = True

    def served(*flags: str) -> LocalServer:
        log = options.out / "pairs-server.log"
        everything = ["--prefix-cache", "0", *flags, *options.server_flag]
        return LocalServer(options.server, options.model, log, everything)

    if options.only in (None, "requests"):
        with served() as server:
            passed = requests(
                server.url, server.process.pid, most, options.seed, tuple(options.lengths)
            )
    if options.only in (None, "clients"):
        lone = ("--weights-dtype", "f32", "--target-threads", "1")
        with served(*lone) as server:
            clients_rows(server.url, (4, 16), rounds, options.seed, "8 sequences")
        with served(*lone, "--sequences", "16") as server:
            clients_rows(server.url, (16,), rounds, options.seed, "16 sequences")
    if options.only in (None, "bystanders"):
        with served("--weights-dtype", "f32", "--target-threads", "1") as server:
            bystanders(server.url, rounds, options.seed)
    print("PASS" if passed else "FAIL: drafting cost more than it may")
    return 0 if passed else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (RuntimeError, OSError, http.client.HTTPException) as error:
        print(f"pairs: {error}", file=sys.stderr)
        sys.exit(2)
