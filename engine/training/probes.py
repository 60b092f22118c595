"""Recall measured on test prompts: how often the stated value is the model's answer."""

from __future__ import annotations

import numpy as np
import torch

from corpus import Corpus
from notebank_data import NoteBankGenerator

_SEED = 99


def recall_rows(
    corpus: Corpus,
    count: int,
    length: int,
    keys: int,
    kind: str,
    width: int,
    seed: int = _SEED,
) -> np.ndarray:
    """Prompts with their answers, ``length`` characters in all; half of them in prose filler."""
    generator = NoteBankGenerator(corpus.words, corpus.prose_strings(validation=True), seed)
    rows = np.zeros((count, length), np.uint8)
    for row in rows:
        separator = generator.rng.choice((" ", "; "))
        prompt, value = generator.probe(length - 4, keys, kind, width, separator)
        row[:] = np.frombuffer((prompt + value).encode("ascii", "replace"), np.uint8)
    return rows


def exact_share(model, rows: np.ndarray, batch: int = 8) -> float:
    """Share of rows whose last four characters are the model's choices (teacher-forced)."""
    right = 0
    for start in range(0, len(rows), batch):
        tokens = torch.from_numpy(rows[start : start + batch].astype(np.int64))
        logits, _ = model.forward(tokens, keep=False)
        logits = logits.view(*tokens.shape, -1)
        choices = logits[:, -5:-1].argmax(-1).to(tokens.device)
        right += (choices == tokens[:, -4:]).all(1).sum().item()
    return right / len(rows)


def recall_teacher_forced(model, corpus: Corpus, length: int) -> dict[str, float]:
    """The quick probes of a training log; few sequences, so steps of some per cent."""
    count = max(6, min(16, 8192 // length))
    probes = {
        "k8": (length, 8, "scatter", 2),
        "k8_512": (512, 8, "scatter", 2),
        "w3": (min(length, 1024), 8, "scatter", 3),
        "over": (min(length, 1024), 4, "overwrite", 2),
        "replay": (512, 4, "replay", 2),
        "wrong": (512, 4, "wrong_note", 2),
    }
    return {
        name: round(exact_share(model, recall_rows(corpus, count, *probe)), 3)
        for name, probe in probes.items()
    }
