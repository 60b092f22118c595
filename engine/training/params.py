"""Parameters as views into one flat vector: initialisation, copies between target and draft."""

from __future__ import annotations

import math
from pathlib import Path

import torch

from config import ALIGNMENT, SHARED, ModelConfig, kind_of, parameter_shapes
from model_directory import read_config, read_models
from reference import Model

_SHORTEST, _LONGEST = 4.0, 6000.0  # time constants of the heads at the start, in tokens


class Parameters:
    """A flat f32 vector and named views of it."""

    def __init__(self, config: ModelConfig, flat: torch.Tensor | None = None) -> None:
        self.config = config
        self.shapes = parameter_shapes(config)
        self.offsets: dict[str, int] = {}
        at = 0
        for name, shape in self.shapes.items():
            self.offsets[name] = at
            at += -(-math.prod(shape) // ALIGNMENT) * ALIGNMENT
        self.size = at
        self.flat = torch.zeros(at) if flat is None else flat
        self.views = self.view_of(self.flat)

    def view_of(self, flat: torch.Tensor) -> dict[str, torch.Tensor]:
        """Named views of any vector with this layout."""
        return {
            name: flat[at : at + math.prod(self.shapes[name])].view(self.shapes[name])
            for name, at in self.offsets.items()
        }

    def __getitem__(self, name: str) -> torch.Tensor:
        return self.views[name]

    def initialise(self, seed: int) -> None:
        """Random weights; decays spread over time constants, for static gates hardly move later."""
        config = self.config
        generator = torch.Generator().manual_seed(seed)
        for name, w in self.views.items():
            kind = kind_of(name)
            noise = torch.randn(w.shape, generator=generator) if w.dim() == 2 else None
            if noise is None:
                w.fill_(1.0)
            elif kind == "embed":
                w.copy_(noise * 0.5)
            elif kind == "head":
                w.copy_(noise * (0.5 / math.sqrt(config.d_model)))
            elif kind == "conv":
                w.copy_(noise * 0.3)
                w[2] = 1.0
            else:
                gain = 0.7 / math.sqrt(w.shape[1])
                if kind in ("out", "down"):
                    gain *= 1.4 / math.sqrt(2 * config.n_layers)
                w.copy_(noise * gain)
            if kind == "gates":
                heads = config.n_heads
                spread = torch.logspace(math.log10(_SHORTEST), math.log10(_LONGEST), heads)
                w[:heads] = torch.logit(1 - 1 / spread)
                w[heads:] = 0.0

    def round_to_bf16(self) -> None:
        """What is exported is bf16, and everything is measured on the rounded values."""
        self.flat.copy_(self.flat.to(torch.bfloat16).float())


def draft_from_target(target: Parameters) -> Parameters:
    """A draft that starts as copies of the selected target layers."""
    config = target.config
    draft = Parameters(config.draft())
    for name in SHARED:
        draft[name].copy_(target[name])
    for j, layer in enumerate(config.draft_layers):
        for name, w in target.views.items():
            if name.startswith(f"{layer}."):
                draft[f"{j}.{kind_of(name)}"].copy_(w)
    return draft


def _fill(p: Parameters, model: Model) -> None:
    for name in SHARED:
        p[name].copy_(torch.from_numpy(model.shared[name]))
    for j, part in enumerate(model.layers):
        w = {name: torch.from_numpy(value) for name, value in part.items()}
        for name in ("norm1", "norm2", "qkv", "out", "down"):
            p[f"{j}.{name}"].copy_(w[name])
        p[f"{j}.gate_up"].copy_(torch.cat([w["gate"], w["up"]]))
        if not p.config.is_attention(j):
            p[f"{j}.conv"].copy_(w["conv"].t())
            p[f"{j}.gates"].copy_(torch.cat([w["decay"], w["write"]]))


def read_directory(path: Path) -> tuple[Parameters, Parameters]:
    """Target and draft. Quantising the draft's values again gives the same values."""
    config = ModelConfig.of_directory(read_config(path))
    pair = Parameters(config), Parameters(config.draft())
    for parameters, model in zip(pair, read_models(path), strict=True):
        _fill(parameters, model)
    return pair


def rope_tables(length: int, theta: float, head_dim: int) -> tuple[torch.Tensor, torch.Tensor]:
    """cos and sin [length][head_dim], each pair's value twice, sin with the rotation's sign."""
    frequency = 1.0 / theta ** (torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim)
    angle = torch.arange(length, dtype=torch.float64)[:, None] * frequency
    cos = angle.cos().repeat_interleave(2, 1)
    sin = angle.sin().repeat_interleave(2, 1)
    sin[:, 0::2] *= -1
    return cos.float().contiguous(), sin.float().contiguous()
