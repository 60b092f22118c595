"""Reads an exported model directory back into parameters."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import torch

from config import ModelConfig
from params import Parameters
from quantise import unpack_ternary

_READ = {
    "BF16": (np.int16, torch.bfloat16),
    "F32": (np.float32, torch.float32),
    "I8": (np.int8, torch.int8),
    "U8": (np.uint8, torch.uint8),
    "I32": (np.int32, torch.int32),
}


def read_safetensors(path: Path) -> dict[str, torch.Tensor]:
    data = path.read_bytes()
    (size,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + size])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        as_numpy, as_torch = _READ[entry["dtype"]]
        array = np.frombuffer(data[begin:end], as_numpy).copy()
        tensors[name] = torch.from_numpy(array).view(as_torch).view(entry["shape"])
    return tensors


def _fill_layer(p: Parameters, j: int, part: dict[str, torch.Tensor]) -> None:
    p[f"{j}.norm1"].copy_(part["input_norm.weight"])
    p[f"{j}.norm2"].copy_(part["post_norm.weight"])
    p[f"{j}.qkv"].copy_(part["mixer.qkv_proj.weight"])
    p[f"{j}.out"].copy_(part["mixer.out_proj.weight"])
    p[f"{j}.down"].copy_(part["mlp.down_proj.weight"])
    gate_up = (part["mlp.gate_proj.weight"], part["mlp.up_proj.weight"])
    p[f"{j}.gate_up"].copy_(torch.cat(gate_up))
    if not p.config.is_attention(j):
        p[f"{j}.conv"].copy_(part["mixer.conv.weight"].t())
        p[f"{j}.gates"].copy_(torch.cat([part["mixer.decay"], part["mixer.write"]]))


def _dequantised(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Quantised matrices as the f32 values they stand for, under ``.weight``."""
    result = {}
    for name, tensor in tensors.items():
        base = name.rsplit(".", 1)[0]
        if name.endswith(".weight_q8"):
            result[f"{base}.weight"] = tensor.float() * tensors[f"{base}.scale"][:, None]
        elif name.endswith(".weight_t2"):
            values = unpack_ternary(tensor).float()
            result[f"{base}.weight"] = values * tensors[f"{base}.scale"][:, None]
        elif not name.endswith(".scale"):
            result[name] = tensor
    return result


def _layer(tensors: dict[str, torch.Tensor], layer: int) -> dict[str, torch.Tensor]:
    prefix = f"layers.{layer}."
    return {n[len(prefix) :]: t for n, t in tensors.items() if n.startswith(prefix)}


def read_directory(path: Path) -> tuple[Parameters, Parameters]:
    """Target and draft. Quantising the draft's values again gives the same values."""
    fields = json.loads((path / "config.json").read_text())
    config = ModelConfig(
        d_model=fields["d_model"],
        n_layers=fields["n_layers"],
        d_ff=fields["d_ff"],
        vocab_size=fields["vocab_size"],
        max_seq=fields["max_seq"],
        attn_period=fields["attn_period"],
        attn_logit_scale=fields["attn_logit_scale"],
        draft_layers=tuple(fields["draft"]["layers"]),
    )
    tensors = read_safetensors(path / "model.safetensors")
    target = Parameters(config)
    for i in range(config.n_layers):
        _fill_layer(target, i, _layer(tensors, i))
    target["embed"].copy_(tensors["embed_tokens.weight"])
    target["final_norm"].copy_(tensors["norm.weight"])
    target["head"].copy_(tensors["lm_head.weight"])
    packed = _dequantised(read_safetensors(path / "draft.safetensors"))
    draft = Parameters(config.draft())
    for j, layer in enumerate(config.draft_layers):
        _fill_layer(draft, j, _layer(packed, layer))
    for name in ("embed", "head", "final_norm"):
        draft[name].copy_(target[name])
    return target, draft
