"""Sends a scenario's requests, closed or open, and collects the samples."""

from __future__ import annotations

import asyncio
import contextlib
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, replace
from typing import Any

import aiohttp

from driver import client, raw
from driver.client import Ask, Target
from driver.histogram import LogHistogram
from driver.prompts import Kind, PromptSource
from driver.sample import Outcome, Sample
from driver.scenario import Arrivals, Scenario
from driver.watch import Watch

_OUTSTANDING_MAX = 2000  # open arrivals beyond this are counted as refused by ourselves
_GRACE_SECONDS = 120.0  # for answers that are on their way when the time is up
_CALIBRATION_SECONDS = 8.0
_CALIBRATION_CLIENTS = 8
_BACK_OFF_SECONDS = 0.5  # a closed client after a refusal

BANK = "loadtest"


@dataclass(slots=True)
class Run:
    """What a run has to show; the summary is made from it."""

    scenario: Scenario
    target: Target
    rate: float | None = None
    seconds: float = 0.0
    samples: list[Sample] = field(default_factory=list)
    watch: Watch | None = None
    left_running: int | None = None
    not_sent: int = 0  # open arrivals with too many outstanding
    remarks: list[str] = field(default_factory=list)


class Runner:
    def __init__(
        self,
        session: aiohttp.ClientSession,
        target: Target,
        scenario: Scenario,
        seed: int,
        progress_every: float = 2.0,
    ) -> None:
        self._session = session
        self._target = target
        self._rng = random.Random(seed)
        self._source = PromptSource(seed, scale=scenario.prompt_scale)
        self._progress_every = progress_every
        self._run = Run(scenario, target)
        self._start = 0.0
        self._numbers: Counter[Kind] = Counter()

    async def run(self) -> Run:
        await self._prepare_notes()
        arrivals = self._run.scenario.arrivals
        if arrivals.is_open:
            self._run.rate = arrivals.rate or await self._half(arrivals)
        self._start = time.perf_counter()
        self._run.samples.clear()
        watch = self._run.watch = Watch(self._target, self._start)
        side = [
            asyncio.create_task(watch.run(self._session)),
            asyncio.create_task(self._report()),
        ]
        try:
            await self._arrive(arrivals, self._run.rate, self._run.scenario.seconds)
        finally:
            for task in side:
                task.cancel()
            await asyncio.gather(*side, return_exceptions=True)
        self._run.seconds = time.perf_counter() - self._start
        self._run.left_running = await watch.wait_idle(self._session)
        return self._run

    async def _prepare_notes(self) -> None:
        scenario = self._run.scenario
        if Kind.NOTEBANK not in scenario.mix:
            return
        problem: str | None = "the server has none"
        if self._target.has_notebank:
            problem = await client.write_bank(
                self._session, self._target, BANK, self._source.bank_text()
            )
        if problem:
            self._run.remarks.append(f"no NoteBank requests: {problem}")
            mix = {kind: share for kind, share in scenario.mix.items() if kind is not Kind.NOTEBANK}
            self._run.scenario = replace(scenario, mix=mix)

    async def _half(self, arrivals: Arrivals) -> float:
        """The rate that is `load` of what the server gives eight greedy clients."""
        _say(f"measuring capacity for {_CALIBRATION_SECONDS:.0f} s")
        self._start = time.perf_counter()
        await self._arrive(Arrivals(clients=_CALIBRATION_CLIENTS), None, _CALIBRATION_SECONDS)
        seconds = time.perf_counter() - self._start
        answered = sum(sample.outcome is Outcome.OK for sample in self._run.samples)
        if not answered:
            raise RuntimeError("the server answered nothing while its capacity was measured")
        capacity = answered / seconds
        rate = capacity * (arrivals.load or 1.0)
        self._run.remarks.append(
            f"capacity {capacity:.2f} answers/s with 8 clients, arrivals {rate:.2f}/s"
        )
        _say(self._run.remarks[-1])
        return rate

    async def _arrive(self, arrivals: Arrivals, rate: float | None, seconds: float) -> None:
        end = time.perf_counter() + seconds
        tasks: set[asyncio.Task[None]] = set()
        if arrivals.is_open:
            due = time.perf_counter()
            while (due := due + self._rng.expovariate(rate or 1.0)) < end:
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
                if len(tasks) >= _OUTSTANDING_MAX:
                    self._run.not_sent += 1
                    continue
                task = asyncio.create_task(self._one(due))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
        else:
            tasks = {asyncio.create_task(self._client(end)) for _ in range(arrivals.clients)}
            await asyncio.wait(tasks, timeout=max(0.0, end - time.perf_counter()))
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=_GRACE_SECONDS)
            for task in late:
                task.cancel()
            if late:
                self._run.remarks.append(f"{len(late)} requests given up after the end")

    async def _client(self, end: float) -> None:
        while (now := time.perf_counter()) < end:
            await self._one(now)
            if self._run.samples and self._run.samples[-1].outcome is Outcome.REFUSED:
                await asyncio.sleep(_BACK_OFF_SECONDS)

    async def _one(self, due: float) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            self._run.samples.append(await self._choose()(due))

    def _choose(self) -> Callable[[float], Coroutine[Any, Any, Sample]]:
        """The next request, by the scenario's shares."""
        scenario, rng = self._run.scenario, self._rng
        dice = rng.random()
        if dice < scenario.malformed_share:
            case = rng.choice(raw.MALFORMED)
            return lambda _: raw.send_malformed(self._target, case, self._start)
        ask = self._ask()
        if dice < scenario.malformed_share + scenario.slow_share:
            slow = replace(ask, max_tokens=4 * ask.max_tokens)
            return lambda due: raw.read_slowly(self._target, slow, BANK, self._start, due)
        if dice < scenario.malformed_share + scenario.slow_share + scenario.disconnect_share:
            ask = replace(ask, hang_up_after=rng.randrange(0, 6))
        return lambda due: client.complete(self._session, self._target, ask, BANK, self._start, due)

    def _ask(self) -> Ask:
        scenario, rng = self._run.scenario, self._rng
        kind = rng.choices(list(scenario.mix), list(scenario.mix.values()))[0]
        self._numbers[kind] += 1
        prompt = self._source.make(kind, self._numbers[kind])
        # A prompt always asks for the same number of tokens, so that its texts can be compared.
        low, high = scenario.max_tokens
        tokens = random.Random(prompt.key).randint(low, high)
        return Ask(prompt, tokens, plain=rng.random() < scenario.plain_share)

    async def _report(self) -> None:
        seen = 0
        while True:
            await asyncio.sleep(self._progress_every)
            fresh = self._run.samples[seen:]
            seen = len(self._run.samples)
            _say(self._progress_line(fresh))

    def _progress_line(self, fresh: list[Sample]) -> str:
        tally = Counter(sample.outcome for sample in self._run.samples)
        first = LogHistogram()
        for sample in fresh:
            if sample.ttft is not None:
                first.add(sample.ttft)
        rate = sum(sample.tokens for sample in fresh) / self._progress_every
        wait = first.percentile(50)
        looks = self._run.watch.looks if self._run.watch else []
        figures = looks[-1].figures if looks else {}
        parts = [
            f"{time.perf_counter() - self._start:6.0f} s of {self._run.scenario.seconds:.0f}",
            f"{tally[Outcome.OK]} answered",
            f"{rate:.0f} tok/s",
            f"ttft p50 {1000 * wait:.0f} ms" if wait is not None else "ttft -",
            f"running {figures.get('running', 0):.0f} waiting {figures.get('waiting', 0):.0f}",
            f"refused {tally[Outcome.REFUSED]}",
            f"errors {tally[Outcome.ERROR] + tally[Outcome.WRONG]}",
        ]
        return "  ".join(parts)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
