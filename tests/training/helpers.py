"""Small models for the tests."""

import json
import math
from pathlib import Path

import numpy as np
import torch

from config import SHARED, ModelConfig, kind_of, parameter_shapes
from params import Parameters, draft_from_target


def small_model(seed: int = 1, **fields: object) -> Parameters:
    """Four layers of width 128, gates moved away from their common start."""
    settings = {"d_model": 128, "n_layers": 4, "d_ff": 256, "max_seq": 256} | fields
    parameters = Parameters(ModelConfig(**settings))
    parameters.initialise(seed)
    generator = torch.Generator().manual_seed(seed)
    for name, w in parameters.views.items():
        if kind_of(name) == "gates":
            w.add_(torch.randn(w.shape, generator=generator) * 0.3)
    return parameters


def small_pair() -> tuple[Parameters, Parameters]:
    """A target of the default depth and its untrained draft."""
    target = small_model(n_layers=12)
    target.round_to_bf16()
    return target, draft_from_target(target)


def parameter_count(config: ModelConfig, own_only: bool = False) -> int:
    """Number of parameters; a draft's own ones leave out what it shares with the target."""
    shapes = parameter_shapes(config)
    return sum(math.prod(s) for n, s in shapes.items() if not (own_only and n in SHARED))


STAGE = {
    "until": 1.0,
    "length": 128,
    "notebank_share": 0.5,
    "prose_weight": 1.0,
    "class_weights": [0.2, 0.04, 4.0],
    "notebank": {"keys": [1, 3]},
}
RATES = {
    "step_tokens": 512,
    "muon_lr": 0.02,
    "adam_lr": 0.003,
    "weight_decay": 0.0,
    "clip": 1.0,
    "warmup_steps": 1,
    "decay_from": 0.5,
    "final_factor": 0.1,
    "evaluate_every": 2048,
    "keep_every": 2048,
}
SHARES = {"rollouts": 0.5, "prose": 0.25, "notebank": 0.25, "random": 0.0}


def tiny_work(root: Path) -> Path:
    """Text and a configuration (tiny.json) for runs of some steps."""
    (root / "data" / "text").mkdir(parents=True)
    rng = np.random.default_rng(1)
    words = ["river", "stone", "lamp", "winter", "quiet", "morning", "of", "the"]
    text = " ".join(rng.choice(words, 60_000))
    (root / "data" / "text" / "one.txt").write_text(text)
    (root / "data" / "words.txt").write_text("\n".join(words))
    config = {
        "name": "tiny",
        "seed": 1,
        "model": {"d_model": 128, "n_layers": 4, "d_ff": 256, "draft_layers": [0, 3]},
        "data": {"mix": {"one": 1.0}, "held_out": 0.1},
        "train": RATES | {"total_tokens": 4096, "stages": [STAGE]},
        "distill": RATES
        | {
            "total_tokens": 2048,
            "sharpen": 1.3,
            "ternary_from": 0.0,
            "ternary_until": 0.5,
            "stages": [STAGE | {"shares": SHARES}],
        },
    }
    (root / "tiny.json").write_text(json.dumps(config))
    return root
