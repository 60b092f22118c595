"""Trains a target model: ``python3 train.py --config configs/spel-21m.json --out RUN``.

The run is a function of the configuration alone: every step draws its data from generators seeded
with (seed, step), so that a run stopped at a checkpoint and resumed sees the same batches. Budgets
are counted in tokens, not seconds, so that a run may be stopped (SIGSTOP) for as long as one likes.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from backend import make_model, set_threads
from budget import tokens_for
from config import ModelConfig
from corpus import Corpus
from export import load_weights
from loss import cross_entropy
from notebank_data import ANSWER, NoteBankGenerator, NoteBankSpec
from optim import Optimiser
from params import Parameters
from probes import recall_teacher_forced
from progress import Progress, break_silence, free_memory_gb, note

_STEP_GB = 9  # of the shipped configuration


@dataclass
class Batch:
    """Inputs, targets, loss weights; NoteBank rows come last."""

    tokens: torch.Tensor
    targets: torch.Tensor
    weights: torch.Tensor
    answers: torch.Tensor  # bool, of the NoteBank rows
    prose_rows: int


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


class Batches:
    """Draws the batch of a step."""

    def __init__(self, corpus: Corpus, seed: int, step_tokens: int) -> None:
        self.corpus, self.seed, self.step_tokens = corpus, seed, step_tokens
        self.proses = corpus.prose_strings()

    def draw(self, stage: dict, step: int) -> Batch:
        rng = np.random.default_rng([self.seed, step])
        length = stage["length"]
        rows = max(1, self.step_tokens // length)
        share = rows * stage["notebank_share"]
        noted = int(share) + int(rng.random() < share % 1)
        prose = self.corpus.rows(rng, rows - noted, length + 1)
        spec = NoteBankSpec(**stage["notebank"])
        generator = NoteBankGenerator(self.corpus.words, self.proses, int(rng.integers(1 << 62)))
        notes, classes = generator.batch(noted, length + 1, spec)
        text = torch.from_numpy(np.concatenate([prose, notes]).astype(np.int64))
        kinds = torch.from_numpy(classes.astype(np.int64))[:, 1:]
        weights = torch.full((rows, length), float(stage["prose_weight"]))
        weights[rows - noted :] = torch.tensor(stage["class_weights"])[kinds]
        return Batch(
            text[:, :-1].contiguous(),
            text[:, 1:].contiguous(),
            weights,
            kinds == ANSWER,
            rows - noted,
        )


class Run:
    """A resumable training run in a directory."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.config = json.loads(args.config.read_text())
        settings = self.config["train"]
        data = self.config["data"]
        self.out: Path = args.out
        self.out.mkdir(parents=True, exist_ok=True)
        self.corpus = Corpus(args.data, data["mix"], data["held_out"])
        self.batches = Batches(self.corpus, self.config["seed"], settings["step_tokens"])
        self.parameters = Parameters(ModelConfig.load(args.config))
        self.parameters.initialise(self.config["seed"])
        if args.start is not None:
            load_weights(args.start, self.parameters)
        self.tokens = self.step = 0
        self.total = settings["total_tokens"]
        state = self._read_checkpoint()
        self.model = make_model(self.parameters, args.backend)
        self.optimiser = Optimiser(
            self.parameters, self.model.grad, settings["muon_lr"], settings["adam_lr"],
            settings["weight_decay"], settings["clip"], kernels=getattr(self.model, "lib", None),
        )  # fmt: skip
        if state is not None:
            self.optimiser.load(state["optimiser"])
        if args.minutes is not None:
            self._fit_to_minutes(args.minutes)
        self.schedule = Schedule(settings, self.total)
        self._say_plan()
        rng = np.random.default_rng(7)
        self.held_out = torch.from_numpy(self.corpus.rows(rng, 24, 513, True).astype(np.int64))
        self.stopping = False

    # --- checkpoints ---

    def _read_checkpoint(self) -> dict | None:
        path = self.out / "last.pt"
        if not path.exists():
            return None
        state = torch.load(path)
        self.parameters.flat.copy_(state["flat"])
        self.tokens, self.step = state["tokens"], state["step"]
        print(
            f"resuming at step {self.step}, {self.tokens / 1e6:.2f} M tokens",
            flush=True,
        )
        return state

    def save(self) -> None:
        state = {
            "flat": self.parameters.flat,
            "optimiser": self.optimiser.state(),
            "tokens": self.tokens,
            "step": self.step,
        }
        partial = self.out / "last.pt.part"
        torch.save(state, partial)
        os.replace(partial, self.out / "last.pt")

    def keep(self) -> None:
        """A copy of the weights alone, rounded as they would be exported."""
        name = f"target-{self.tokens / 1e6:05.1f}M.pt"
        flat = self.parameters.flat.to(torch.bfloat16)
        torch.save({"flat": flat, "tokens": self.tokens}, self.out / name)

    # --- the loop ---

    def _fit_to_minutes(self, minutes: float) -> None:
        stages = self.config["train"]["stages"]
        stage = stages[len(stages) // 2]

        def one_step(step: int) -> None:
            self._gradient(self.batches.draw(stage, step))
            self.model.grad.zero_()

        step_tokens = self.config["train"]["step_tokens"]
        self.total = tokens_for(minutes, self.out / "plan.json", step_tokens, one_step)

    def _say_plan(self) -> None:
        settings = self.config["train"]
        steps = -(-(self.total - self.tokens) // settings["step_tokens"])
        note(
            f"the target: {self.total:,} tokens, {max(0, steps):,} steps to go; a checkpoint every "
            f"{settings['evaluate_every']:,} tokens, when stopped, and at the end: {self.out}/last.pt"
        )

    def _gradient(self, batch: Batch) -> torch.Tensor:
        logits, saved = self.model.forward(batch.tokens)
        _, d_logits, each = cross_entropy(logits, batch.targets, batch.weights)
        self.model.backward(saved, d_logits)
        return each.view_as(batch.targets)

    def held_out_loss(self) -> float:
        logits, _ = self.model.forward(self.held_out[:, :-1].contiguous(), keep=False)
        return cross_entropy(logits, self.held_out[:, 1:])[2].mean().item()

    def train(self) -> None:
        settings = self.config["train"]
        log = (self.out / "log.jsonl").open("a")
        last_time, last_tokens = time.monotonic(), self.tokens
        prose, answers = [], []
        progress = Progress("target", self.tokens, self.total)
        while self.tokens < self.total and not self.stopping:
            stage = self.schedule.stage(self.tokens)
            batch = self.batches.draw(stage, self.step)
            each = self._gradient(batch)
            factor = self.schedule.factor(self.tokens, self.step)
            norm = self.optimiser.step(factor)
            self.model.refresh()
            before, self.tokens = self.tokens, self.tokens + batch.tokens.numel()
            self.step += 1
            progress.at(self.tokens)
            if batch.prose_rows:
                prose.append(each[: batch.prose_rows].mean().item())
            if batch.answers.any():
                answers.append(each[batch.prose_rows :][batch.answers].mean().item())
            every = settings["evaluate_every"]
            if self.tokens // every == before // every and self.tokens < self.total:
                continue
            now = time.monotonic()
            record = {
                "step": self.step, "tokens": self.tokens, "length": stage["length"],
                "rate": round((self.tokens - last_tokens) / (now - last_time)),
                "lr": round(factor, 4), "grad_norm": round(norm, 3),
                "prose": round(float(np.mean(prose or [0])), 4),
                "answers": round(float(np.mean(answers or [0])), 4),
                "held_out": round(self.held_out_loss(), 4),
                "recall": recall_teacher_forced(self.model, self.corpus, stage["length"]),
            }  # fmt: skip
            minutes = (self.total - self.tokens) / max(1, record["rate"]) / 60
            print(json.dumps(record), f"eta {minutes:.0f} min", flush=True)
            log.write(json.dumps(record) + "\n")
            log.flush()
            self.save()
            if self.tokens // settings["keep_every"] != before // settings["keep_every"]:
                self.keep()
            prose, answers = [], []
            last_time, last_tokens = time.monotonic(), self.tokens
        self.save()
        if self.tokens >= self.total:
            self.keep()
            flat = self.parameters.flat.to(torch.bfloat16)
            torch.save({"flat": flat, "tokens": self.tokens}, self.out / "target.pt")

    def stop(self, *_: object) -> None:
        self.stopping = True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    here = Path(__file__).parent
    parser.add_argument("--config", type=Path, default=here / "configs" / "spel-21m.json")
    parser.add_argument("--data", type=Path, default=here / "work" / "data")
    parser.add_argument("--out", type=Path, default=here / "work" / "spel-21m")
    parser.add_argument("--start", type=Path, help="begin from these weights, not from random ones")
    parser.add_argument("--minutes", type=float, help="token budget = what fits in this time")
    parser.add_argument("--backend", choices=("auto", "fused", "torch"), default="auto")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    args = parser.parse_args()
    set_threads(args.threads)
    break_silence()
    note(f"memory: a step takes up to {_STEP_GB} GB; {free_memory_gb():.0f} GB are free")
    run = Run(args)
    signal.signal(signal.SIGTERM, run.stop)
    signal.signal(signal.SIGINT, run.stop)
    run.train()


if __name__ == "__main__":
    main()
