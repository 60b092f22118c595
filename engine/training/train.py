"""Trains a target model: ``python3 train.py --config configs/spel-21m.json --out RUN``."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from config import ModelConfig
from corpus import Corpus
from export import load_weights
from loss import cross_entropy
from notebank_data import ANSWER, NoteBankGenerator, NoteBankSpec
from params import Parameters
from probes import recall_teacher_forced
from progress import break_silence, free_memory_gb, note
from run import Run, add_arguments

_STEP_GB = 9  # of the shipped configuration


@dataclass
class Batch:
    """Inputs, targets, loss weights; NoteBank rows come last."""

    tokens: torch.Tensor
    targets: torch.Tensor
    weights: torch.Tensor
    answers: torch.Tensor  # bool, of the NoteBank rows
    prose_rows: int


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


class TargetRun(Run):
    """Cross-entropy on prose and NoteBank sequences."""

    name, prefix, losses = "target", "", ("prose", "answers")

    def __init__(self, args: argparse.Namespace) -> None:
        config = json.loads(args.config.read_text())
        settings, data = config["train"], config["data"]
        self.corpus = Corpus(args.data, data["mix"], data["held_out"])
        self.batches = Batches(self.corpus, config["seed"], settings["step_tokens"])
        parameters = Parameters(ModelConfig.load(args.config))
        parameters.initialise(config["seed"])
        if args.start is not None:
            load_weights(args.start, parameters)
        super().__init__(args.out, settings, parameters, args.backend)
        rng = np.random.default_rng(7)
        self.held_out = torch.from_numpy(self.corpus.rows(rng, 24, 513, True).astype(np.int64))

    def measured_stage(self) -> dict:
        stages = self.settings["stages"]
        return stages[len(stages) // 2]

    def gradient(self, stage: dict, step: int) -> tuple[int, dict[str, float]]:
        batch = self.batches.draw(stage, step)
        logits, saved = self.model.forward(batch.tokens)
        _, d_logits, each = cross_entropy(
            logits, batch.targets.to(logits.device), batch.weights.to(logits.device)
        )
        self.model.backward(saved, d_logits)
        each = each.view_as(batch.targets).cpu()
        losses = {}
        if batch.prose_rows:
            losses["prose"] = each[: batch.prose_rows].mean().item()
        if batch.answers.any():
            losses["answers"] = each[batch.prose_rows :][batch.answers].mean().item()
        return batch.tokens.numel(), losses

    def figures(self, stage: dict, rates: dict, losses: dict) -> dict:
        self.model.refresh()
        recall = recall_teacher_forced(self.model, self.corpus, stage["length"])
        return rates | losses | {"held_out": round(self.held_out_loss(), 4), "recall": recall}

    def held_out_loss(self) -> float:
        logits, _ = self.model.forward(self.held_out[:, :-1].contiguous(), keep=False)
        return cross_entropy(logits.cpu(), self.held_out[:, 1:])[2].mean().item()

    def keep(self) -> None:
        self._write_weights(f"target-{self.tokens / 1e6:05.1f}M.pt")

    def finish(self) -> None:
        self._write_weights("target.pt")

    def _write_weights(self, name: str) -> None:
        """The weights alone, rounded as they would be exported."""
        flat = self.parameters.flat.to(torch.bfloat16)
        torch.save({"flat": flat, "tokens": self.tokens}, self.out / name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_arguments(parser)
    parser.add_argument("--start", type=Path, help="begin from these weights, not from random ones")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    break_silence()
    note(f"memory: a step takes up to {_STEP_GB} GB; {free_memory_gb():.0f} GB are free")
    run = TargetRun(args)
    if args.minutes is not None:
        run.fit_to(args.minutes)
    run.train()


if __name__ == "__main__":
    main()
