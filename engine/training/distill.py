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
from pathlib import Path

import numpy as np
import torch

from backend import make_model
from config import SHARED, ModelConfig
from corpus import Corpus
from export import load_weights
from loss import distillation
from notebank_data import NoteBankGenerator, NoteBankSpec
from params import Parameters, draft_from_target
from progress import break_silence
from run import Run, add_arguments

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


class DraftRun(Run):
    """Distillation from a target that stays as it is."""

    name, prefix, losses = "draft", "draft-", ("kl",)

    def __init__(self, args: argparse.Namespace) -> None:
        config = json.loads(args.config.read_text())
        settings = config["distill"]
        corpus = Corpus(args.data, config["data"]["mix"], config["data"]["held_out"])
        rollouts = torch.load(args.rollouts) if args.rollouts else None
        self.batches = DistillBatches(corpus, rollouts, config["seed"], settings["step_tokens"])
        target = Parameters(ModelConfig.load(args.config))
        load_weights(args.target, target)
        target.round_to_bf16()
        self.target = make_model(target, args.backend)
        self.warm_start = args.start is not None
        parameters = draft_from_target(target)
        if args.start is not None:
            load_weights(args.start, parameters)
        super().__init__(args.out, settings, parameters, args.backend, frozen=SHARED)
        for name in SHARED:  # also after a change of the target
            parameters[name].copy_(target[name])
        self.model.refresh()
        self.total = args.tokens or self.total
        held_out = torch.from_numpy(
            corpus.rows(np.random.default_rng(7), 12, 512, True).astype(np.int64)
        )
        stage = settings["stages"][0] | {"shares": {"notebank": 1.0, "rollouts": 0.0, "prose": 0.0}}
        recall = DistillBatches(corpus, rollouts, 99, 12 * 512).draw(stage, 0)
        self.probes = {"prose": (held_out, None), "recall": recall}

    def measured_stage(self) -> dict:
        return self.settings["stages"][0]

    def _blend(self) -> float:
        """The ternary grid is faded in, so that the copied layers are not destroyed at once."""
        if self.warm_start:
            return 1.0
        start, end = self.settings["ternary_from"], self.settings["ternary_until"]
        return min(1.0, max(0.0, (self.tokens / self.total - start) / (end - start)))

    def before_step(self) -> None:
        self.model.ternary_blend = self._blend()
        self.model.refresh()

    def gradient(self, stage: dict, step: int) -> tuple[int, dict[str, float]]:
        tokens, weights = self.batches.draw(stage, step)
        teacher, _ = self.target.forward(tokens, keep=False)
        logits, saved = self.model.forward(tokens)
        loss, d_logits = distillation(
            logits, teacher, weights.to(logits.device), self.settings["sharpen"]
        )
        self.model.backward(saved, d_logits, shared=False)
        return tokens.numel(), {"kl": loss}

    def agreement(self) -> dict[str, float]:
        """How often the draft's first choice is the target's, teacher-forced on held-out text."""
        self.model.ternary_blend = 1.0
        self.model.refresh()
        result = {}
        for name, (tokens, weights) in self.probes.items():
            goal = self.target.forward(tokens, keep=False)[0].argmax(1)
            same = self.model.forward(tokens, keep=False)[0].argmax(1) == goal
            result[name] = round(same.float().mean().item(), 4)
            if weights is not None:
                answers = weights.reshape(-1) == weights.max()
                result["answers"] = round(same[answers].float().mean().item(), 4)
        return result

    def figures(self, stage: dict, rates: dict, losses: dict) -> dict:
        return losses | self.agreement()

    def finish(self) -> None:
        weights = {"flat": self.parameters.flat.clone(), "tokens": self.tokens}
        torch.save(weights, self.out / "draft.pt")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_arguments(parser)
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--rollouts", type=Path, help="text written by the target")
    parser.add_argument("--start", type=Path, help="begin from this draft, not from target layers")
    parser.add_argument("--tokens", type=int, help="budget, instead of the configuration's")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    break_silence()
    run = DraftRun(args)
    if args.minutes is not None:
        run.fit_to(args.minutes)
    print(json.dumps({"tokens": run.tokens} | run.agreement()), flush=True)
    run.train()


if __name__ == "__main__":
    main()
