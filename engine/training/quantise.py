"""The draft's low-bit formats: int8 per row and ternary per row, values and packed bytes."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from config import MATRICES, ModelConfig, kind_of

_REFINEMENTS = 3  # least-squares refinements of a ternary row's scale
_TERNARY_KINDS = ("gate_up", "down", "gate", "up")


def int8_rows(w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Integers in [-127, 127] and one scale a row."""
    scale = w.abs().amax(1).clamp_min(1e-8) / 127
    q = torch.round(w / scale[:, None]).clamp(-127, 127).to(torch.int8)
    return q, scale


def ternary_rows(w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Values in {-1, 0, 1} and one scale a row, refined by least squares."""
    size = w.abs()
    scale = size.mean(1, keepdim=True)
    for _ in range(_REFINEMENTS):
        kept = (size > scale * 0.5).float()
        scale = (size * kept).sum(1, keepdim=True) / kept.sum(1, keepdim=True).clamp_min(1)
    q = torch.sign(w) * (size > scale * 0.5).float()
    return q.to(torch.int8), scale[:, 0]


def fake_quantise(kind: str, w: torch.Tensor, ternary_blend: float = 1.0) -> torch.Tensor:
    """The values a quantised matrix stands for; ternary ones can be blended in gradually."""
    if kind not in _TERNARY_KINDS:
        q, scale = int8_rows(w)
        return q.float() * scale[:, None]
    q, scale = ternary_rows(w)
    value = q.float() * scale[:, None]
    return value if ternary_blend >= 1 else w + (value - w) * ternary_blend


def inference_values(
    config: ModelConfig, weights: Mapping[str, torch.Tensor], ternary_blend: float = 1.0
) -> dict[str, torch.Tensor]:
    """The values the server computes with: the layers' matrices of a draft are quantised."""
    if not config.quantised:
        return dict(weights)
    return {
        name: fake_quantise(kind_of(name), w, ternary_blend) if kind_of(name) in MATRICES else w
        for name, w in weights.items()
    }


def pack_ternary(q: torch.Tensor) -> torch.Tensor:
    """Four codes a byte, low bits first: 0 -> 0, 1 -> +1, 3 -> -1."""
    codes = torch.where(q < 0, torch.full_like(q, 3), q).to(torch.uint8)
    codes = codes.view(q.shape[0], -1, 4)
    return codes[:, :, 0] | codes[:, :, 1] << 2 | codes[:, :, 2] << 4 | codes[:, :, 3] << 6
