#!/usr/bin/env python3
"""tiny_model.py OUT --tokenizer TOKENIZER.JSON[.xz] [--chat-template FILE]

Writes a model directory in the layout of Qwen3.5: a few small layers of random weights behind the
vocabulary of a real one (248,320 rows), for trying what clients do with such a server. What it
writes means nothing. Python's standard library only.
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
import shutil
from pathlib import Path

_ROWS = 248_320
_HIDDEN = 32
_LAYERS = 4
_HEADS = 2
_HEAD_DIM = 32
_KEY_HEADS = 2
_VALUE_HEADS = 4
_DIM = 16
_FFN = 64
_TAPS = 4

_CONFIG = {
    "architectures": ["Qwen3_5ForCausalLM"],
    "model_type": "qwen3_5_text",
    "vocab_size": _ROWS,
    "hidden_size": _HIDDEN,
    "intermediate_size": _FFN,
    "num_hidden_layers": _LAYERS,
    "layer_types": ["linear_attention"] * 3 + ["full_attention"],
    "num_attention_heads": _HEADS,
    "num_key_value_heads": 1,
    "head_dim": _HEAD_DIM,
    "attn_output_gate": True,
    "hidden_act": "silu",
    "linear_num_key_heads": _KEY_HEADS,
    "linear_num_value_heads": _VALUE_HEADS,
    "linear_key_head_dim": _DIM,
    "linear_value_head_dim": _DIM,
    "linear_conv_kernel_dim": _TAPS,
    "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-6,
    "rope_parameters": {
        "rope_type": "default",
        "rope_theta": 1e7,
        "partial_rotary_factor": 0.25,
        "mrope_section": [2, 1, 1],
        "mrope_interleaved": True,
    },
    "tie_word_embeddings": True,
    "eos_token_id": 248_044,
    "dtype": "bfloat16",
}

# Of a random byte, the upper half of a bf16: a sign, and an exponent that makes it 0.03 to 0.12.
_UPPER_BYTES = bytes(0x3D if byte < 128 else 0xBD for byte in range(256))


def _values(rng: random.Random, count: int) -> bytes:
    out = bytearray(2 * count)
    out[0::2] = rng.randbytes(count)
    out[1::2] = rng.randbytes(count).translate(_UPPER_BYTES)
    return bytes(out)


def _shapes() -> dict[str, list[int]]:
    qkv = 2 * _KEY_HEADS * _DIM + _VALUE_HEADS * _DIM
    values = _VALUE_HEADS * _DIM
    shapes = {"model.embed_tokens.weight": [_ROWS, _HIDDEN], "model.norm.weight": [_HIDDEN]}
    for layer, kind in enumerate(_CONFIG["layer_types"]):
        at = f"model.layers.{layer}."
        shapes |= {
            at + "input_layernorm.weight": [_HIDDEN],
            at + "post_attention_layernorm.weight": [_HIDDEN],
            at + "mlp.gate_proj.weight": [_FFN, _HIDDEN],
            at + "mlp.up_proj.weight": [_FFN, _HIDDEN],
            at + "mlp.down_proj.weight": [_HIDDEN, _FFN],
        }
        if kind == "full_attention":
            shapes |= {
                at + "self_attn.q_proj.weight": [2 * _HEADS * _HEAD_DIM, _HIDDEN],
                at + "self_attn.k_proj.weight": [_HEAD_DIM, _HIDDEN],
                at + "self_attn.v_proj.weight": [_HEAD_DIM, _HIDDEN],
                at + "self_attn.o_proj.weight": [_HIDDEN, _HEADS * _HEAD_DIM],
                at + "self_attn.q_norm.weight": [_HEAD_DIM],
                at + "self_attn.k_norm.weight": [_HEAD_DIM],
            }
        else:
            shapes |= {
                at + "linear_attn.in_proj_qkv.weight": [qkv, _HIDDEN],
                at + "linear_attn.in_proj_z.weight": [values, _HIDDEN],
                at + "linear_attn.in_proj_b.weight": [_VALUE_HEADS, _HIDDEN],
                at + "linear_attn.in_proj_a.weight": [_VALUE_HEADS, _HIDDEN],
                at + "linear_attn.conv1d.weight": [qkv, 1, _TAPS],
                at + "linear_attn.A_log": [_VALUE_HEADS],
                at + "linear_attn.dt_bias": [_VALUE_HEADS],
                at + "linear_attn.norm.weight": [_DIM],
                at + "linear_attn.out_proj.weight": [_HIDDEN, values],
            }
    return shapes


def _write_weights(path: Path, seed: int) -> None:
    rng = random.Random(seed)
    header: dict[str, object] = {}
    sizes = []
    offset = 0
    for name, shape in _shapes().items():
        count = 1
        for extent in shape:
            count *= extent
        header[name] = {
            "dtype": "BF16",
            "shape": shape,
            "data_offsets": [offset, offset + 2 * count],
        }
        sizes.append(count)
        offset += 2 * count
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as out:
        out.write(len(text).to_bytes(8, "little"))
        out.write(text)
        for count in sizes:
            out.write(_values(rng, count))


def write_model(
    out: Path, tokenizer: Path, chat_template: Path | None = None, seed: int = 1
) -> None:
    out.mkdir(parents=True, exist_ok=True)
    (out / "config.json").write_text(json.dumps(_CONFIG, indent=1) + "\n")
    (out / "generation_config.json").write_text(json.dumps({"eos_token_id": [248_046, 248_044]}))
    (out / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<|im_end|>"}))
    raw = tokenizer.read_bytes()
    (out / "tokenizer.json").write_bytes(lzma.decompress(raw) if tokenizer.suffix == ".xz" else raw)
    if chat_template is not None:
        shutil.copyfile(chat_template, out / "chat_template.jinja")
    _write_weights(out / "model.safetensors", seed)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[1])
    parser.add_argument("out", type=Path)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--chat-template", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    write_model(options.out, options.tokenizer, options.chat_template, options.seed)


if __name__ == "__main__":
    main()
