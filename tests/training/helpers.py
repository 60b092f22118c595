"""Small models for the tests."""

import torch

from config import ModelConfig, kind_of
from params import Parameters


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
    from params import draft_from_target

    target = small_model(n_layers=12)
    target.round_to_bf16()
    return target, draft_from_target(target)
