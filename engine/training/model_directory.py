"""Reads an exported model directory, with NumPy alone: for the reference and for the trainer."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np

from reference import AttentionSpec, DeltaSpec, Model, ModelSpec

Tensors = dict[str, np.ndarray]

_READ = {"F32": np.float32, "I8": np.int8, "U8": np.uint8, "I32": np.int32}
_TERNARY = np.array([0, 1, 0, -1], np.int8)  # of codes 0 to 3


def read_safetensors(path: Path) -> Tensors:
    """Tensors by name; bf16 comes as the f32 of the same value."""
    data = path.read_bytes()
    (size,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + size])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        if entry["dtype"] == "BF16":
            array = (np.frombuffer(data[begin:end], "<u2").astype(np.uint32) << 16).view(np.float32)
        else:
            array = np.frombuffer(data[begin:end], _READ[entry["dtype"]]).copy()
        tensors[name] = array.reshape(entry["shape"])
    return tensors


def unpack_ternary(packed: np.ndarray) -> np.ndarray:
    """Four values a byte, low bits first; code 2 decodes as 0."""
    codes = packed[:, :, None] >> np.array([0, 2, 4, 6], np.uint8) & 3
    return _TERNARY[codes.reshape(len(packed), -1)]


def _dequantised(tensors: Tensors) -> Tensors:
    """Quantised matrices as the f32 values they stand for, under ``.weight``."""
    result = {}
    for name, tensor in tensors.items():
        base = name.rsplit(".", 1)[0]
        if name.endswith((".weight_q8", ".weight_t2")):
            values = tensor if name.endswith("8") else unpack_ternary(tensor)
            scale = tensors[f"{base}.scale"][:, None]
            result[f"{base}.weight"] = values.astype(np.float32) * scale
        elif not name.endswith(".scale"):
            result[name] = tensor
    return result


NAMES = {  # of a layer's parts: ours -> the directory's; what is quantised carries more behind it
    "norm1": "input_norm.weight",
    "norm2": "post_norm.weight",
    "qkv": "mixer.qkv_proj",
    "out": "mixer.out_proj",
    "gate": "mlp.gate_proj",
    "up": "mlp.up_proj",
    "down": "mlp.down_proj",
    "conv": "mixer.conv.weight",
    "decay": "mixer.decay",
    "write": "mixer.write",
}
PRODUCTS = ("qkv", "out", "gate", "up", "down")


def _layer_parts(tensors: Tensors, layer: int) -> Tensors:
    parts = {}
    for part, name in NAMES.items():
        full = f"layers.{layer}.{name}" + (".weight" if part in PRODUCTS else "")
        if full in tensors:
            parts[part] = tensors[full]
    return parts


def model_spec(fields: dict, is_attention: list[bool], is_draft: bool) -> ModelSpec:
    """The spec of a target or a draft with such layers, from the fields of a ``config.json``."""
    attention = AttentionSpec(
        fields["n_heads"], fields["l2_norm_eps"], fields["attn_logit_scale"], fields["rope_theta"]
    )
    delta = DeltaSpec(fields["n_heads"], fields["l2_norm_eps"])
    mixers = tuple(attention if here else delta for here in is_attention)
    return ModelSpec(mixers, fields["rms_norm_eps"], is_draft)


def read_config(path: Path) -> dict:
    return json.loads((path / "config.json").read_text())


def read_models(path: Path) -> tuple[Model, Model]:
    """Target and draft."""
    fields = read_config(path)
    tensors = read_safetensors(path / "model.safetensors")
    packed = _dequantised(read_safetensors(path / "draft.safetensors"))
    shared = {
        "embed": tensors["embed_tokens.weight"],
        "head": tensors["lm_head.weight"],
        "final_norm": tensors["norm.weight"],
    }

    def model(source: Tensors, layers: list[int], is_draft: bool) -> Model:
        period = fields["attn_period"]
        spec = model_spec(fields, [i % period == period - 1 for i in layers], is_draft)
        return Model(spec, shared, tuple(_layer_parts(source, i) for i in layers))

    target = model(tensors, list(range(fields["n_layers"])), False)
    return target, model(packed, fields["draft"]["layers"], True)
