"""Writes the model directory, and SPELW001 with its verification footer.

python3 export.py --target RUN/target.pt --draft RUN/draft.pt --out engine/models/spel-21m
"""

from __future__ import annotations

import argparse
import hashlib
import json
import struct
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch

import reference
from config import HEAD_DIM, ROPE_THETA, SHARED, ModelConfig
from model_directory import NAMES, PRODUCTS, model_spec
from params import Parameters
from quantise import inference_values, int8_rows, pack_ternary, ternary_rows

_SHIPPED = Path(__file__).resolve().parent.parent / "models" / "spel-21m"
GOLDEN_TEXT = b"The key is 1907."
_DTYPES = {
    torch.bfloat16: "BF16",
    torch.float32: "F32",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.int32: "I32",
}
Tensors = dict[str, torch.Tensor]


def write_safetensors(path: Path, tensors: Tensors, metadata: dict[str, str]) -> None:
    header: dict[str, object] = {"__metadata__": metadata}
    blobs, at = [], 0
    for name, tensor in tensors.items():
        flat = tensor.contiguous()
        raw = flat.view(torch.int16) if flat.dtype == torch.bfloat16 else flat
        blob = raw.numpy().tobytes()
        header[name] = {
            "dtype": _DTYPES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [at, at + len(blob)],
        }
        blobs.append(blob)
        at += len(blob)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.writelines(blobs)


def layer_parts(config: ModelConfig, w: Mapping[str, torch.Tensor], j: int) -> Tensors:
    """Weights of layer ``j`` under the directory's short names, fused ones taken apart."""
    parts = {k: w[f"{j}.{k}"] for k in ("norm1", "qkv", "out", "norm2", "down")}
    parts["gate"], parts["up"] = w[f"{j}.gate_up"].chunk(2)
    if not config.is_attention(j):
        parts["conv"] = w[f"{j}.conv"].t()
        parts["decay"], parts["write"] = w[f"{j}.gates"].chunk(2)
    return parts


def target_tensors(target: Parameters) -> Tensors:
    tensors = {"embed_tokens.weight": target["embed"]}
    for i in range(target.config.n_layers):
        for part, tensor in layer_parts(target.config, target.views, i).items():
            name = NAMES[part]
            suffix = ".weight" if part in PRODUCTS else ""
            tensors[f"layers.{i}.{name}{suffix}"] = tensor
    tensors |= {"norm.weight": target["final_norm"], "lm_head.weight": target["head"]}
    return {name: tensor.to(torch.bfloat16) for name, tensor in tensors.items()}


def draft_tensors(draft: Parameters) -> Tensors:
    tensors: Tensors = {}
    for j, layer in enumerate(draft.config.draft_layers):
        for part, tensor in layer_parts(draft.config, draft.views, j).items():
            name = f"layers.{layer}.{NAMES[part]}"
            if part in ("qkv", "out"):
                tensors[f"{name}.weight_q8"], tensors[f"{name}.scale"] = int8_rows(tensor)
            elif part in ("gate", "up", "down"):
                q, tensors[f"{name}.scale"] = ternary_rows(tensor)
                tensors[f"{name}.weight_t2"] = pack_ternary(q)
            else:
                tensors[name] = tensor.float()
    return tensors


def packed_bytes(tensors: Tensors) -> int:
    """Size of the quantised matrices with their scales."""
    ends = (".weight_q8", ".weight_t2", ".scale")
    return sum(t.numel() * t.element_size() for n, t in tensors.items() if n.endswith(ends))


def directory_config(name: str, config: ModelConfig) -> dict:
    return {
        "model_type": "spel_hybrid",
        "name": name,
        "d_model": config.d_model,
        "n_layers": config.n_layers,
        "n_heads": config.n_heads,
        "head_dim": HEAD_DIM,
        "d_ff": config.d_ff,
        "vocab_size": config.vocab_size,
        "max_seq": config.max_seq,
        "attn_period": config.attn_period,
        "attn_logit_scale": config.attn_logit_scale,
        "rope_theta": ROPE_THETA,
        "rms_norm_eps": 1e-5,
        "l2_norm_eps": 1e-6,
        "conv_taps": 3,
        "conv_activation": "none",
        "gates": "static",
        "read_order": "before_decay",
        "tie_word_embeddings": False,
        "tokenizer": "ascii",
        "bos_token_id": None,
        "eos_token_id": None,
        "weights_dtype": "bf16",
        "draft": {"layers": list(config.draft_layers), "attn": "q8", "mlp": "ternary"},
    }


def reference_model(p: Parameters) -> reference.Model:
    """The values the server computes with, for the reference."""
    config, w = p.config, inference_values(p.config, p.views)

    def arrays(part: Tensors) -> dict[str, np.ndarray]:
        return {name: value.numpy() for name, value in part.items()}

    layers = range(config.n_layers)
    attention = [config.is_attention(j) for j in layers]
    spec = model_spec(directory_config("", config), attention, config.quantised)
    parts = tuple(arrays(layer_parts(config, w, j)) for j in layers)
    return reference.Model(spec, arrays({name: w[name] for name in SHARED}), parts)


def golden(target: Parameters, draft: Parameters) -> Tensors:
    """Logits of 16 tokens from a reset state, computed in float64."""
    tokens = np.frombuffer(GOLDEN_TEXT, np.uint8)
    result: Tensors = {"tokens": torch.from_numpy(tokens.astype(np.int32))}
    for name, parameters in (("target_logits", target), ("draft_logits", draft)):
        logits = reference.logits(reference_model(parameters).astype(np.float64), tokens)
        result[name] = torch.from_numpy(logits).float()
    return result


def write_directory(out: Path, name: str, target: Parameters, draft: Parameters) -> None:
    """All files but the model card; SHA256SUMS covers every file that is there."""
    out.mkdir(parents=True, exist_ok=True)
    meta = {"format": "pt", "model": name}
    write_safetensors(out / "model.safetensors", target_tensors(target), meta)
    write_safetensors(out / "draft.safetensors", draft_tensors(draft), meta)
    write_safetensors(out / "golden.safetensors", golden(target, draft), meta)
    text = json.dumps(directory_config(name, target.config), indent=2) + "\n"
    (out / "config.json").write_text(text)
    for file in ("tokenizer.json", "tokenizer_config.json"):  # The same for every model of ours.
        (out / file).write_bytes((_SHIPPED / file).read_bytes())
    write_sums(out)


def write_sums(out: Path) -> None:
    files = sorted(f for f in out.iterdir() if f.is_file() and f.name != "SHA256SUMS")
    lines = [f"{hashlib.sha256(f.read_bytes()).hexdigest()}  {f.name}\n" for f in files]
    (out / "SHA256SUMS").write_text("".join(lines))


def write_spelw(path: Path, target: Parameters, draft: Parameters) -> None:
    """The document's single-file format: header, raw f32, and the golden logits as footer."""
    c = target.config
    header = struct.pack(
        "<8s14I", b"SPELW001", c.d_model, c.n_layers, c.n_heads, HEAD_DIM, c.d_ff, c.vocab_size,
        c.max_seq, c.attn_period, len(c.draft_layers), *c.draft_layers, 1,
    )  # fmt: skip
    order = (
        "norm1",
        "qkv",
        "out",
        "conv",
        "decay",
        "write",
        "norm2",
        "gate",
        "up",
        "down",
    )

    def layer_bytes(p: Parameters, j: int) -> bytes:
        parts = layer_parts(p.config, p.views, j)
        return b"".join(raw(parts[k]) for k in order if k in parts)

    def raw(tensor: torch.Tensor) -> bytes:
        return tensor.float().contiguous().numpy().tobytes()

    logits = golden(target, draft)
    with path.open("wb") as file:
        file.write(header + raw(target["embed"]))
        for i in range(c.n_layers):
            file.write(layer_bytes(target, i))
        file.write(raw(target["final_norm"]) + raw(target["head"]))
        for j in range(draft.config.n_layers):
            file.write(layer_bytes(draft, j))
        file.write(struct.pack("<8sI", b"SPELV001", len(GOLDEN_TEXT)))
        file.write(logits["tokens"].numpy().astype("<u4").tobytes())
        file.write(raw(logits["target_logits"]) + raw(logits["draft_logits"]))


def load_weights(path: Path, parameters: Parameters) -> int:
    """Fills ``parameters`` from a checkpoint of weights; returns the tokens it has seen."""
    state = torch.load(path, map_location="cpu")
    parameters.flat.copy_(state["flat"].float())
    return state["tokens"]


def load_pair(
    config: ModelConfig, target_path: Path, draft_path: Path
) -> tuple[Parameters, Parameters]:
    """Target rounded to bf16, and its draft with the shared parts of that target."""
    target = Parameters(config)
    load_weights(target_path, target)
    target.round_to_bf16()
    draft = Parameters(config.draft())
    load_weights(draft_path, draft)
    for name in SHARED:
        draft[name].copy_(target[name])
    return target, draft


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    here = Path(__file__).parent
    parser.add_argument("--config", type=Path, default=here / "configs" / "spel-21m.json")
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--draft", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--spelw", type=Path, help="also write the single-file format here")
    args = parser.parse_args()
    name = json.loads(args.config.read_text())["name"]
    target, draft = load_pair(ModelConfig.load(args.config), args.target, args.draft)
    write_directory(args.out, name, target, draft)
    if args.spelw:
        write_spelw(args.spelw, target, draft)
    size = packed_bytes(draft_tensors(draft))
    print(f"wrote {args.out}: packed draft {size} bytes, golden text {GOLDEN_TEXT.decode()!r}")


if __name__ == "__main__":
    main()
