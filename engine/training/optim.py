"""Muon for the matrices of the layers, AdamW for everything else."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterable

import torch

from config import MATRICES, STACKED, kind_of
from params import Parameters

_MUON_BETA = 0.95
_ADAM_BETAS = (0.9, 0.98)
_QUINTIC = (3.4445, -4.7750, 2.0315)


def orthogonalise(update: torch.Tensor, steps: int = 5) -> torch.Tensor:
    """Newton-Schulz towards the nearest orthogonal matrix, in bf16 (plain PyTorch)."""
    a, b, c = _QUINTIC
    flip = update.shape[0] > update.shape[1]
    x = (update.t() if flip else update).to(torch.bfloat16)
    x = x / (x.float().norm() + 1e-7)
    for _ in range(steps):
        gram = x @ x.t()
        x = a * x + (b * gram + c * gram @ gram) @ x
    return (x.t() if flip else x).float()


class Optimiser:
    """One step over a flat vector; `kernels` selects the fused Muon, else plain PyTorch."""

    def __init__(
        self,
        parameters: Parameters,
        grad: torch.Tensor,
        muon_lr: float,
        adam_lr: float,
        weight_decay: float,
        clip: float = 1.0,
        frozen: Iterable[str] = (),
        kernels: ctypes.CDLL | None = None,
    ) -> None:
        self.p, self.grad = parameters, grad
        self.g = parameters.view_of(grad)
        self.muon_lr, self.adam_lr = muon_lr, adam_lr
        self.weight_decay, self.clip, self.kernels = weight_decay, clip, kernels
        self.momentum = torch.zeros_like(grad)
        self.second = torch.zeros_like(grad)
        self.m, self.v = (
            parameters.view_of(self.momentum),
            parameters.view_of(self.second),
        )
        self.count = 0
        names = [n for n in parameters.shapes if n not in set(frozen)]
        self.muon_names = [n for n in names if kind_of(n) in MATRICES]
        self.adam_names = [n for n in names if kind_of(n) not in MATRICES]
        self._slices = self._muon_slices()

    def _muon_slices(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        slices = []
        for name in self.muon_names:
            rows, cols = self.p.shapes[name]
            parts = STACKED.get(kind_of(name), 1)
            for part in range(parts):
                at = self.p.offsets[name] + part * (rows // parts) * cols
                slices.append((at, rows // parts, cols))
        slices.sort(key=lambda s: -s[1] * s[2])  # long ones first balance the threads
        at, rows, cols = (list(column) for column in zip(*slices, strict=True))
        as_int32 = torch.int32
        return (
            torch.tensor(at),
            torch.tensor(rows, dtype=as_int32),
            torch.tensor(cols, dtype=as_int32),
        )

    def state(self) -> dict:
        return {"momentum": self.momentum, "second": self.second, "count": self.count}

    def load(self, state: dict) -> None:
        self.momentum.copy_(state["momentum"])
        self.second.copy_(state["second"])
        self.count = state["count"]

    def step(self, factor: float) -> float:
        """Applies the gradient at ``factor`` times the rates; returns its norm before clipping."""
        norm = self.grad.norm().item()
        if not math.isfinite(norm):  # a broken batch must not reach the weights
            self.grad.zero_()
            return norm
        self.count += 1
        scale = min(1.0, self.clip / (norm + 1e-12))
        if self.kernels is not None:
            self._muon_fused(scale, self.muon_lr * factor)
        else:
            self._muon_torch(scale, self.muon_lr * factor)
        self._adam(scale, self.adam_lr * factor)
        self.grad.zero_()
        return norm

    def _muon_fused(self, scale: float, lr: float) -> None:
        at, rows, cols = self._slices
        vectors = (self.p.flat, self.grad, self.momentum, at, rows, cols)
        self.kernels.muon_step(
            *(ctypes.c_void_p(v.data_ptr()) for v in vectors), len(at), ctypes.c_float(scale),
            ctypes.c_float(_MUON_BETA), ctypes.c_float(lr), ctypes.c_float(self.weight_decay),
        )  # fmt: skip

    def _muon_torch(self, scale: float, lr: float) -> None:
        for at, rows, cols in zip(*(v.tolist() for v in self._slices), strict=True):
            where = slice(at, at + rows * cols)
            grad = self.grad[where] * ((1 - _MUON_BETA) * scale)
            momentum = self.momentum[where].mul_(_MUON_BETA).add_(grad)
            update = orthogonalise((grad + _MUON_BETA * momentum).view(rows, cols))
            weight = self.p.flat[where].view(rows, cols)
            weight.mul_(1 - lr * self.weight_decay)
            weight.add_(update, alpha=-lr * math.sqrt(max(1.0, rows / cols)))

    def _adam(self, scale: float, lr: float) -> None:
        b1, b2 = _ADAM_BETAS
        c1, c2 = 1 - b1**self.count, 1 - b2**self.count
        for name in self.adam_names:
            g, m, v, w = self.g[name] * scale, self.m[name], self.v[name], self.p[name]
            m.mul_(b1).add_(g, alpha=1 - b1)
            v.mul_(b2).addcmul_(g, g, value=1 - b2)
            if kind_of(name) in ("embed", "head"):
                w.mul_(1 - lr * self.weight_decay)
            w.addcdiv_(m / c1, (v / c2).sqrt_().add_(1e-8), value=-lr)
