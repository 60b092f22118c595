"""Chooses between the fused CPU kernels and plain PyTorch."""

from __future__ import annotations

import sys

import torch

from params import Parameters


def set_threads(count: int) -> None:
    """Threads of torch and of the kernels (both use OpenMP)."""
    torch.set_num_threads(count)


def make_model(parameters: Parameters, backend: str = "auto"):
    """A model with ``forward``, ``backward``, ``refresh`` and a flat ``grad``."""
    if backend != "torch" and not (backend == "auto" and torch.cuda.is_available()):
        from fused import FusedModel, KernelsUnavailable

        try:
            return FusedModel(parameters)
        except KernelsUnavailable as error:
            if backend == "fused":
                raise
            print(
                f"fused kernels unavailable ({error}); using plain PyTorch",
                file=sys.stderr,
            )
    from torch_model import TorchModel

    return TorchModel(parameters)
