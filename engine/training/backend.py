"""Chooses between the fused CPU kernels and plain PyTorch."""

from __future__ import annotations

import sys
from collections.abc import Callable

import torch

from fused import FusedDecoder, FusedModel, KernelsUnavailable
from params import Parameters
from torch_model import TorchDecoder, TorchModel


def _unavailable(error: KernelsUnavailable) -> None:
    print(f"fused kernels unavailable ({error}); using plain PyTorch", file=sys.stderr)


def make_model(parameters: Parameters, backend: str = "auto") -> FusedModel | TorchModel:
    """A model with ``forward``, ``backward``, ``refresh`` and a flat ``grad``."""
    if backend != "torch" and not (backend == "auto" and torch.cuda.is_available()):
        try:
            return FusedModel(parameters)
        except KernelsUnavailable as error:
            if backend == "fused":
                raise
            _unavailable(error)
    return TorchModel(parameters)


def decoders(parameters: Parameters) -> Callable[[int, int], FusedDecoder | TorchDecoder]:
    """What makes a decoder for (sequences, their length); without the fused kernels a slow one."""
    try:
        model = FusedModel(parameters)
    except KernelsUnavailable as error:
        _unavailable(error)
        return lambda rows, length: TorchDecoder(parameters, rows, length)
    return lambda rows, length: FusedDecoder(model, rows, length)
