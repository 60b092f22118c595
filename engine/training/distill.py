"""Distils the draft from a trained target, with its low-bit formats in the loop.

    python3 distill.py --target RUN/target.pt --rollouts RUN/rollouts.pt --out RUN

Straight-through training: the forward pass sees int8 and ternary weights and int8 activations, the
gradient goes to f32 masters. The loss is the KL divergence to the target's sharpened distribution
on all characters. Part of the text was written by the target itself (`rollouts.py`), because that
is the text on which the draft will have to guess.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import time
from pathlib import Path

import numpy as np
import torch

from backend import make_model, set_threads
from budget import tokens_for
from config import SHARED, ModelConfig
from corpus import Corpus
from export import load_weights
from loss import distillation
from notebank_data import NoteBankGenerator, NoteBankSpec
from optim import Optimiser
from params import Parameters, draft_from_target
from progress import Progress, break_silence, note
from train import Schedule

_PRINTABLE = (32, 127)
_RANDOM_WEIGHT = 0.3


class DistillBatches:
    """Mixed batches: the target's own text, prose, NoteBank sequences, random characters."""

    def __init__(
        self, corpus: Corpus, rollouts: torch.Tensor | None, seed: int, tokens: int
    ) -> None:
        self.corpus, self.rollouts = corpus, rollouts
        self.seed, self.step_tokens = seed, tokens
        self.proses = corpus.prose_strings()

    def draw(self, stage: dict, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Tokens and loss weights [rows, length]."""
        rng = np.random.default_rng([self.seed, 7, step])
        length = stage["length"]
        rows = max(1, self.step_tokens // length)
        shares = dict(stage["shares"])
        if self.rollouts is None:
            shares["prose"] += shares.pop("rollouts")
        names = list(shares)
        p = np.array([shares[n] for n in names])
        # Systematic sampling: each kind gets its share to within one row.
        marks = (np.arange(rows) + rng.random()) / rows
        kinds = [names[i] for i in np.searchsorted(np.cumsum(p / p.sum()), marks)]
        tokens = np.zeros((rows, length), np.uint8)
        weights = np.ones((rows, length), np.float32)
        generator = NoteBankGenerator(self.corpus.words, self.proses, int(rng.integers(1 << 62)))
        spec = NoteBankSpec(**stage["notebank"])
        by_class = np.array(stage["class_weights"], np.float32)
        for row, kind in enumerate(kinds):
            if kind == "prose":
                tokens[row] = self.corpus.rows(rng, 1, length)[0]
            elif kind == "rollouts":
                tokens[row] = self._rollout(rng, length)
            elif kind == "notebank":
                text, classes = generator.batch(1, length + 1, spec)
                tokens[row] = text[0, :-1]
                weights[row] = by_class[classes[0, 1:]]
            else:
                tokens[row] = rng.integers(*_PRINTABLE, length)
                weights[row] = _RANDOM_WEIGHT
        return torch.from_numpy(tokens.astype(np.int64)), torch.from_numpy(weights)

    def _rollout(self, rng: np.random.Generator, length: int) -> np.ndarray:
        """One rollout, or several in a row where the length asks for it."""
        width = self.rollouts.shape[1]
        count = -(-length // width)
        chosen = rng.integers(0, len(self.rollouts), count)
        text = self.rollouts[torch.from_numpy(chosen)].reshape(-1).numpy()
        start = rng.integers(0, len(text) - length + 1)
        return text[start : start + length]


class Distillation:
    """A resumable distillation run."""

    def __init__(self, args: argparse.Namespace) -> None:
        config = json.loads(args.config.read_text())
        self.settings = config["distill"]
        self.out: Path = args.out
        corpus = Corpus(args.data, config["data"]["mix"], config["data"]["held_out"])
        rollouts = torch.load(args.rollouts) if args.rollouts else None
        self.batches = DistillBatches(
            corpus, rollouts, config["seed"], self.settings["step_tokens"]
        )
        target = Parameters(ModelConfig.load(args.config))
        load_weights(args.target, target)
        target.round_to_bf16()
        self.target = make_model(target, args.backend)
        self.parameters = draft_from_target(target)
        if args.start is not None:
            load_weights(args.start, self.parameters)
        self.tokens = self.step = 0
        state = self._read_checkpoint()
        for name in SHARED:  # also after a change of the target
            self.parameters[name].copy_(target[name])
        self.draft = make_model(self.parameters, args.backend)
        self.optimiser = Optimiser(
            self.parameters, self.draft.grad, self.settings["muon_lr"], self.settings["adam_lr"],
            self.settings["weight_decay"], self.settings["clip"], frozen=SHARED,
            kernels=getattr(self.draft, "lib", None),
        )  # fmt: skip
        if state is not None:
            self.optimiser.load(state["optimiser"])
        self.total = args.tokens or self.settings["total_tokens"]
        self.warm_start = args.start is not None
        if args.minutes is not None:
            plan, step_tokens = self.out / "draft-plan.json", self.settings["step_tokens"]
            self.total = tokens_for(args.minutes, plan, step_tokens, self._measured_step)
        self.schedule = Schedule(self.settings, self.total)
        held_out = torch.from_numpy(
            corpus.rows(np.random.default_rng(7), 12, 512, True).astype(np.int64)
        )
        stage = self.settings["stages"][0] | {
            "shares": {"notebank": 1.0, "rollouts": 0.0, "prose": 0.0}
        }
        recall = DistillBatches(corpus, rollouts, 99, 12 * 512).draw(stage, 0)
        self.probes = {"prose": (held_out, None), "recall": recall}
        self.stopping = False

    def _read_checkpoint(self) -> dict | None:
        path = self.out / "draft-last.pt"
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
        torch.save(state, self.out / "draft-last.pt.part")
        os.replace(self.out / "draft-last.pt.part", self.out / "draft-last.pt")

    def _blend(self) -> float:
        """The ternary grid is faded in, so that the copied layers are not destroyed at once."""
        if self.warm_start:
            return 1.0
        start, end = self.settings["ternary_from"], self.settings["ternary_until"]
        return min(1.0, max(0.0, (self.tokens / self.total - start) / (end - start)))

    def _gradient(self, stage: dict, step: int) -> tuple[float, int]:
        """Adds the gradient of one batch; returns its loss and its size."""
        tokens, weights = self.batches.draw(stage, step)
        teacher, _ = self.target.forward(tokens, keep=False)
        logits, saved = self.draft.forward(tokens)
        loss, d_logits = distillation(
            logits, teacher, weights.to(logits.device), self.settings["sharpen"]
        )
        self.draft.backward(saved, d_logits, shared=False)
        return loss, tokens.numel()

    def _measured_step(self, step: int) -> None:
        self._gradient(self.settings["stages"][0], step)
        self.draft.grad.zero_()

    def agreement(self) -> dict[str, float]:
        """How often the draft's first choice is the target's, teacher-forced on held-out text."""
        self.draft.ternary_blend = 1.0
        self.draft.refresh()
        result = {}
        for name, (tokens, weights) in self.probes.items():
            goal = self.target.forward(tokens, keep=False)[0].argmax(1)
            same = self.draft.forward(tokens, keep=False)[0].argmax(1) == goal
            result[name] = round(same.float().mean().item(), 4)
            if weights is not None:
                answers = weights.reshape(-1) == weights.max()
                result["answers"] = round(same[answers].float().mean().item(), 4)
        return result

    def train(self) -> None:
        every = self.settings["evaluate_every"]
        log = (self.out / "draft-log.jsonl").open("a")
        note(f"the draft: {self.total:,} tokens; checkpoints in {self.out}/draft-last.pt")
        print(json.dumps({"tokens": self.tokens} | self.agreement()), flush=True)
        progress = Progress("draft", self.tokens, self.total)
        last_time, last_tokens, losses = time.monotonic(), self.tokens, []
        while self.tokens < self.total and not self.stopping:
            stage = self.schedule.stage(self.tokens)
            self.draft.ternary_blend = self._blend()
            self.draft.refresh()
            loss, count = self._gradient(stage, self.step)
            self.optimiser.step(self.schedule.factor(self.tokens, self.step))
            losses.append(loss)
            before, self.tokens = self.tokens, self.tokens + count
            self.step += 1
            progress.at(self.tokens)
            if self.tokens // every == before // every and self.tokens < self.total:
                continue
            rate = (self.tokens - last_tokens) / (time.monotonic() - last_time)
            record = {
                "step": self.step,
                "tokens": self.tokens,
                "length": stage["length"],
            }
            record |= {"rate": round(rate), "kl": round(float(np.mean(losses)), 4)}
            record |= self.agreement()
            eta = (self.total - self.tokens) / rate / 60
            print(json.dumps(record), f"eta {eta:.0f} min", flush=True)
            log.write(json.dumps(record) + "\n")
            log.flush()
            self.save()
            last_time, last_tokens, losses = time.monotonic(), self.tokens, []
        self.save()
        if self.tokens >= self.total:
            weights = {"flat": self.parameters.flat.clone(), "tokens": self.tokens}
            torch.save(weights, self.out / "draft.pt")

    def stop(self, *_: object) -> None:
        self.stopping = True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    here = Path(__file__).parent
    parser.add_argument("--config", type=Path, default=here / "configs" / "spel-21m.json")
    parser.add_argument("--data", type=Path, default=here / "work" / "data")
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--rollouts", type=Path, help="text written by the target")
    parser.add_argument("--start", type=Path, help="begin from this draft, not from target layers")
    parser.add_argument("--out", type=Path, default=here / "work" / "spel-21m")
    parser.add_argument("--minutes", type=float, help="token budget = what fits in this time")
    parser.add_argument("--tokens", type=int, help="budget, instead of the configuration's")
    parser.add_argument("--backend", choices=("auto", "fused", "torch"), default="auto")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    args = parser.parse_args()
    set_threads(args.threads)
    break_silence()
    run = Distillation(args)
    signal.signal(signal.SIGTERM, run.stop)
    signal.signal(signal.SIGINT, run.stop)
    run.train()


if __name__ == "__main__":
    main()
