"""A resumable training run in a directory, of the target or of the draft.

A run is a function of its configuration: every step draws its data from generators seeded with
(seed, step), so that a run stopped at a checkpoint and resumed sees the same batches. Budgets are
counted in tokens, not seconds, so that a run may be stopped (SIGSTOP) for as long as one likes.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np
import torch

from backend import make_model
from optim import Optimiser
from params import Parameters
from progress import Progress, duration, note

_MEASURED = 8  # steps, where time allows
_MEASURING_SHARE = 0.15  # of the time given, at most
_MARGIN = 0.8  # optimiser, evaluation and the longer texts at the end are not in the measurement


def tokens_for(
    minutes: float, plan: Path, step_tokens: int, one_step: Callable[[int], None]
) -> int:
    """The budget that fits in ``minutes``; written to ``plan`` the first time, then read back, so
    that a paused run loses nothing.

    At least one step, however short the time. The first step of all is slower than the others and
    counts only where there is no time for another.
    """
    if not plan.exists():
        share = 60 * minutes * _MEASURING_SHARE
        note(f"measuring the speed: one step, and more within {duration(share)}")
        began = time.monotonic()
        seconds = []
        while len(seconds) <= _MEASURED:
            start = time.monotonic()
            one_step(len(seconds))
            now = time.monotonic()
            seconds.append(now - start)
            note(f"  a step of {step_tokens:,} tokens takes {duration(seconds[-1])}")
            if now - began > share:
                break
        warm = seconds[1:] or seconds
        rate = _MARGIN * step_tokens * len(warm) / sum(warm)
        left = 60 * minutes - (time.monotonic() - began)
        tokens = max(step_tokens, int(rate * left))
        plan.write_text(json.dumps({"minutes": minutes, "total_tokens": tokens}))
    return json.loads(plan.read_text())["total_tokens"]


class Schedule:
    """Which stage and which learning-rate factor holds at a token count."""

    def __init__(self, settings: dict, total: int) -> None:
        self.settings, self.total = settings, total

    def stage(self, tokens: int) -> dict:
        stages = self.settings["stages"]
        for stage in stages:
            end = stage["until"] * self.total
            if tokens < min(end, stage.get("until_tokens", end)):
                return stage
        return stages[-1]

    def factor(self, tokens: int, step: int) -> float:
        """Warm-up, constant, then linear towards ``final_factor``."""
        warm = min(1.0, (step + 1) / self.settings["warmup_steps"])
        start, floor = self.settings["decay_from"], self.settings["final_factor"]
        done = tokens / self.total
        return warm * (1.0 if done < start else max(floor, (1 - done) / (1 - start)))


class Run:
    """What is trained on what, and with which loss, is said by a subclass."""

    name: str  # what is trained, to whoever waits
    prefix: str  # of the run's files in its directory
    losses: tuple[str, ...]  # what `gradient` reports

    def __init__(
        self,
        out: Path,
        settings: dict,
        parameters: Parameters,
        backend: str,
        frozen: Iterable[str] = (),
    ) -> None:
        """``parameters`` are where a new run begins; a checkpoint in ``out`` replaces them."""
        self.out, self.settings, self.parameters = out, settings, parameters
        self.out.mkdir(parents=True, exist_ok=True)
        self.tokens = self.step = 0
        self.total = settings["total_tokens"]
        state = self._read_checkpoint()
        self.model = make_model(parameters, backend)
        self.optimiser = Optimiser(
            parameters, self.model.grad, settings["muon_lr"], settings["adam_lr"],
            settings["weight_decay"], settings["clip"], frozen,
            kernels=getattr(self.model, "lib", None),
        )  # fmt: skip
        if state is not None:
            self.optimiser.load(state["optimiser"])
        self._stopping = False

    # --- what a subclass says ---

    def measured_stage(self) -> dict:
        """The stage whose steps stand for all of them when minutes become tokens."""
        raise NotImplementedError

    def before_step(self) -> None:
        """Brings the model up to its weights, which the step before has changed."""
        self.model.refresh()

    def gradient(self, stage: dict, step: int) -> tuple[int, Mapping[str, float]]:
        """Adds the gradient of one batch; returns its tokens and its losses."""
        raise NotImplementedError

    def figures(self, stage: dict, rates: dict, losses: dict) -> dict:
        """What the log says of the steps since the last line, and of the weights as they are."""
        raise NotImplementedError

    def keep(self) -> None:
        """Called at every ``keep_every`` tokens of the settings and at the end."""

    def finish(self) -> None:
        """Writes the result of a run that has used up its budget."""
        raise NotImplementedError

    # --- checkpoints ---

    @property
    def checkpoint(self) -> Path:
        return self.out / f"{self.prefix}last.pt"

    def _read_checkpoint(self) -> dict | None:
        if not self.checkpoint.exists():
            return None
        state = torch.load(self.checkpoint)
        self.parameters.flat.copy_(state["flat"])
        self.tokens, self.step = state["tokens"], state["step"]
        print(f"resuming at step {self.step}, {self.tokens / 1e6:.2f} M tokens", flush=True)
        return state

    def save(self) -> None:
        state = {
            "flat": self.parameters.flat,
            "optimiser": self.optimiser.state(),
            "tokens": self.tokens,
            "step": self.step,
        }
        partial = self.checkpoint.with_name(self.checkpoint.name + ".part")
        torch.save(state, partial)
        os.replace(partial, self.checkpoint)

    # --- the loop ---

    def fit_to(self, minutes: float) -> None:
        """Makes the budget what fits in this time."""

        def one_step(step: int) -> None:
            self.gradient(self.measured_stage(), step)
            self.model.grad.zero_()

        plan = self.out / f"{self.prefix}plan.json"
        self.total = tokens_for(minutes, plan, self.settings["step_tokens"], one_step)

    def train(self) -> None:
        schedule = Schedule(self.settings, self.total)
        every = self.settings["evaluate_every"]
        steps = max(0, -(-(self.total - self.tokens) // self.settings["step_tokens"]))
        note(
            f"the {self.name}: {self.total:,} tokens, {steps:,} steps to go; a checkpoint every "
            f"{every:,} tokens, when stopped, and at the end: {self.checkpoint}"
        )
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        progress = Progress(self.name, self.tokens, self.total)
        last_time, last_tokens, seen = time.monotonic(), self.tokens, []
        with (self.out / f"{self.prefix}log.jsonl").open("a") as log:
            while self.tokens < self.total and not self._stopping:
                stage = schedule.stage(self.tokens)
                self.before_step()
                count, losses = self.gradient(stage, self.step)
                seen.append(losses)
                factor = schedule.factor(self.tokens, self.step)
                norm = self.optimiser.step(factor)
                before, self.tokens = self.tokens, self.tokens + count
                self.step += 1
                progress.at(self.tokens)
                if self.tokens // every == before // every and self.tokens < self.total:
                    continue
                rate = (self.tokens - last_tokens) / (time.monotonic() - last_time)
                record = {"step": self.step, "tokens": self.tokens, "length": stage["length"]}
                record["rate"] = round(rate)
                rates = {"lr": round(factor, 4), "grad_norm": round(norm, 3)}
                record |= self.figures(stage, rates, self._means(seen))
                minutes = (self.total - self.tokens) / rate / 60
                print(json.dumps(record), f"eta {minutes:.0f} min", flush=True)
                log.write(json.dumps(record) + "\n")
                log.flush()
                self.save()
                keep_every = self.settings.get("keep_every", self.total)
                if self.tokens // keep_every != before // keep_every:
                    self.keep()
                last_time, last_tokens, seen = time.monotonic(), self.tokens, []
        self.save()
        if self.tokens >= self.total:
            self.keep()
            self.finish()

    def _means(self, seen: list[Mapping[str, float]]) -> dict[str, float]:
        """Of every loss, over the batches that had it."""
        means = {}
        for name in self.losses:
            values = [losses[name] for losses in seen if name in losses]
            means[name] = round(float(np.mean(values or [0])), 4)
        return means

    def _stop(self, *_: object) -> None:
        self._stopping = True


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of every run."""
    here = Path(__file__).parent
    parser.add_argument("--config", type=Path, default=here / "configs" / "spel-21m.json")
    parser.add_argument("--data", type=Path, default=here / "work" / "data")
    parser.add_argument("--out", type=Path, default=here / "work" / "spel-21m")
    parser.add_argument("--minutes", type=float, help="token budget = what fits in this time")
    parser.add_argument("--backend", choices=("auto", "fused", "torch"), default="auto")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
