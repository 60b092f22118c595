"""Stages, learning rates and batches are functions of the configuration and the step alone."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from corpus import Corpus
from distill import DistillBatches
from run import Schedule
from train import Batches

CONFIGS = Path(__file__).resolve().parents[2] / "engine" / "training" / "configs"


@pytest.fixture
def corpus(tmp_path):
    (tmp_path / "text").mkdir()
    rng = np.random.default_rng(1)
    for name in ("one", "two"):
        text = bytes(rng.integers(97, 123, 60_000, dtype=np.uint8))
        (tmp_path / "text" / f"{name}.txt").write_bytes(text)
    (tmp_path / "words.txt").write_text("red green blue\n")
    return Corpus(tmp_path, {"one": 0.5, "two": 0.5}, 0.2)


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.json")), ids=lambda p: p.stem)
def test_stages_of_the_shipped_configurations(path):
    config = json.loads(path.read_text())
    for part in ("train", "distill"):
        settings = config[part]
        total = settings["total_tokens"]
        schedule = Schedule(settings, total)
        lengths = [schedule.stage(t)["length"] for t in range(0, total, total // 50)]
        assert lengths == sorted(lengths)
        assert all(length % 64 == 0 for length in lengths)
        factors = [schedule.factor(t, 10_000) for t in range(0, total, total // 50)]
        assert factors == sorted(factors, reverse=True)
        assert factors[0] == 1.0 and factors[-1] < 0.1


def test_batches_do_not_depend_on_what_came_before(corpus):
    settings = json.loads((CONFIGS / "spel-21m.json").read_text())["train"]
    stage = settings["stages"][2]
    first, second = Batches(corpus, 1, 4096), Batches(corpus, 1, 4096)
    first.draw(stage, 0)
    a, b = first.draw(stage, 5), second.draw(stage, 5)
    assert torch.equal(a.tokens, b.tokens) and torch.equal(a.weights, b.weights)
    assert torch.equal(a.tokens[:, 1:], a.targets[:, :-1])
    assert a.tokens.shape == (8, 512)


def test_distillation_batches_hold_their_shares(corpus):
    settings = json.loads((CONFIGS / "spel-21m.json").read_text())["distill"]
    rollouts = torch.full((40, 512), ord("#"), dtype=torch.uint8)
    batches = DistillBatches(corpus, rollouts, 1, 8192)
    for stage in settings["stages"]:
        tokens, weights = batches.draw(stage, 3)
        assert tokens.shape == weights.shape
        own = (tokens == ord("#")).all(1).float().mean().item()
        assert abs(own - stage["shares"]["rollouts"]) <= 1.0 / len(tokens) + 1e-6


def test_validation_text_is_never_trained_on(corpus):
    rng = np.random.default_rng(0)
    held_out = corpus.validation[0].tobytes()
    for row in corpus.rows(rng, 20, 64, source="one"):
        assert row.tobytes() not in held_out
    with pytest.raises(FileNotFoundError, match="prepare_data"):
        Corpus(Path("/nonexistent"), {"x": 1.0}, 0.1)
