"""Writes models/: small random checkpoints of the published hybrids, in the layouts their makers
use, and what transformers computes of them in float32. Everything follows from the seeds.

Needs torch and transformers (with qwen3_5, qwen3_next and olmo_hybrid); a few seconds of CPU:

    python make_fixtures.py
"""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors.torch import load_file, save_file

HERE = Path(__file__).resolve().parent
LENGTHS = {"short": 5, "mid": 48}
GREEDY = 16
# Between the two best logits wherever a greedy token is part of the golden values.
MIN_GAP = 0.02
TAPS = 4

COMMON: dict[str, Any] = {
    "vocab_size": 96,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 4,
    "layer_types": ["linear_attention"] * 3 + ["full_attention"],
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 24,
    "hidden_act": "silu",
    "max_position_embeddings": 1024,
    "rms_norm_eps": 1e-6,
    "attention_bias": False,
    "linear_conv_kernel_dim": TAPS,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 6,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 12,
    "tie_word_embeddings": False,
    "eos_token_id": 90,
    "dtype": "bfloat16",
}
ROPE = {"rope_type": "default", "rope_theta": 1e7, "partial_rotary_factor": 0.25}
QWEN35 = COMMON | {
    "model_type": "qwen3_5_text",
    "architectures": ["Qwen3_5ForCausalLM"],
    "attn_output_gate": True,
    "mlp_only_layers": [],
    "rope_parameters": ROPE | {"mrope_interleaved": True, "mrope_section": [1, 1, 1]},
}
NEXT = COMMON | {
    "model_type": "qwen3_next",
    "architectures": ["Qwen3NextForCausalLM"],
    "linear_num_value_heads": 4,
    "mlp_only_layers": [0, 1, 2, 3],
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 16,
    "shared_expert_intermediate_size": 16,
    "rope_theta": 1e7,
    "partial_rotary_factor": 0.25,
    "rope_scaling": None,
}
OLMO = {key: value for key, value in COMMON.items() if key != "head_dim"} | {
    "model_type": "olmo_hybrid",
    "architectures": ["OlmoHybridForCausalLM"],
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "linear_num_value_heads": 2,
    "linear_value_head_dim": 16,
    "linear_allow_neg_eigval": True,
    "pad_token_id": None,
    "rope_parameters": {"rope_theta": None, "rope_type": "default"},
}


def draw(model: torch.nn.Module, seed: int) -> None:
    """Values of the size real ones have, so that every part shows in the logits."""
    generator = torch.Generator().manual_seed(seed)
    olmo = "olmo" in type(model).__name__.lower()
    for name, parameter in sorted(model.named_parameters()):
        values = torch.randn(parameter.shape, generator=generator)
        if name.endswith("A_log"):  # Rates from 0.01 (remembers) to 4 (forgets).
            share = torch.rand(parameter.shape, generator=generator)
            values = math.log(0.01) + share * (math.log(4.0) - math.log(0.01))
        elif parameter.ndim == 1 and not name.endswith("dt_bias"):
            plain = olmo or "linear_attn" in name
            values = values * 0.25 + (1.0 if plain else 0.0)
        elif parameter.ndim == 3:
            values = values * 0.5
        elif "embed_tokens" in name:
            values = values * 0.3
        elif parameter.ndim == 2:
            gain = 2.5 if "lm_head" in name else 1.2
            values = values * gain / math.sqrt(parameter.shape[1])
        parameter.data.copy_(values.to(torch.bfloat16).float())


@torch.no_grad()
def golden(model: torch.nn.Module, config: dict[str, Any], seed: int) -> dict[str, torch.Tensor]:
    for attempt in range(100):
        generator = torch.Generator().manual_seed(1000 * seed + attempt)
        ids = {
            name: torch.randint(0, config["vocab_size"], (length,), generator=generator)
            for name, length in LENGTHS.items()
        }
        tokens, smallest_gap = [], math.inf
        sequence = ids["short"][None]
        for _ in range(GREEDY):
            row = model(input_ids=sequence, use_cache=False).logits[0, -1]
            best = row.topk(2).values
            smallest_gap = min(smallest_gap, float(best[0] - best[1]))
            tokens.append(int(row.argmax()))
            sequence = torch.cat((sequence, torch.tensor([[tokens[-1]]])), 1)
        if smallest_gap > MIN_GAP:
            break
    out = {"greedy.short": torch.tensor(tokens, dtype=torch.int32)}
    for name, sequence in ids.items():
        outputs: dict[int, torch.Tensor] = {}
        hooks = [
            layer.register_forward_hook(lambda _m, _a, y, i=i, to=outputs: to.__setitem__(i, y))
            for i, layer in enumerate(model.model.layers)
        ]
        result = model(input_ids=sequence[None], use_cache=True)
        for hook in hooks:
            hook.remove()
        out[f"ids.{name}"] = sequence.int()
        out[f"logits.{name}"] = result.logits[0]
        if name != "short":
            continue
        for i, kind in enumerate(config["layer_types"]):
            y = outputs[i][0] if isinstance(outputs[i], tuple) else outputs[i]
            out[f"hidden.short.layer{i}"] = y.reshape(len(sequence), -1)
            layer = (getattr(result, "cache", None) or result.past_key_values).layers[i]
            if kind == "linear_attention":
                out[f"state.short.layer{i}.recurrent"] = layer.recurrent_states[0][0]
                out[f"state.short.layer{i}.conv"] = layer.conv_states[0][0][:, 1 - TAPS :]
            else:
                out[f"kv.short.layer{i}.k"] = layer.keys[0]
                out[f"kv.short.layer{i}.v"] = layer.values[0]
    return {name: tensor.detach().clone().contiguous() for name, tensor in out.items()}


def new_model(config: dict[str, Any], seed: int) -> torch.nn.Module:
    torch.set_num_threads(1)
    cls = getattr(transformers, config["architectures"][0])
    settings = {k: v for k, v in config.items() if k not in ("architectures", "model_type")}
    model = cls._from_config(
        cls.config_class(**settings), dtype=torch.float32, attn_implementation="eager"
    ).eval()
    draw(model, seed)
    return model


def begin(name: str, config: dict[str, Any]) -> Path:
    path = HERE / "models" / name
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    (path / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    return path


def half(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: tensor.to(torch.bfloat16).contiguous() for name, tensor in tensors.items()}


def write_multimodal(name: str, seed: int) -> None:
    """As the makers publish Qwen3.5: the text part nested, a vision tower and a draft head beside
    it, two shards, some small tensors in float32."""
    model = new_model(QWEN35, seed)
    text = {k: v for k, v in QWEN35.items() if k not in ("architectures", "tie_word_embeddings")}
    path = begin(
        name,
        {
            "architectures": ["Qwen3_5ForConditionalGeneration"],
            "model_type": "qwen3_5",
            "text_config": text,
            "tie_word_embeddings": False,
            "vision_config": {"model_type": "qwen3_5", "depth": 1},
        },
    )
    tensors = half(
        {k.replace("model.", "model.language_model.", 1): v for k, v in model.state_dict().items()}
    )
    for key in [k for k in tensors if k.endswith(("A_log", "linear_attn.norm.weight"))]:
        tensors[key] = tensors[key].float()
    tensors["model.visual.patch_embed.proj.weight"] = torch.zeros(4, 3, 2, 2, 2)
    tensors["mtp.fc.weight"] = torch.zeros(32, 64)
    names = sorted(tensors)
    parts = {
        "model-00001-of-00002.safetensors": names[: len(names) // 2],
        "model-00002-of-00002.safetensors": names[len(names) // 2 :],
    }
    for file, keys in parts.items():
        save_file({key: tensors[key] for key in keys}, path / file)
    index = {"metadata": {}, "weight_map": {key: file for file in parts for key in parts[file]}}
    (path / "model.safetensors.index.json").write_text(json.dumps(index, indent=1) + "\n")
    save_file(golden(model, QWEN35, seed), path / "golden.safetensors")


def write_plain(name: str, config: dict[str, Any], seed: int) -> None:
    model = new_model(config, seed)
    path = begin(name, config)
    tied = {"lm_head.weight"} if config["tie_word_embeddings"] else set()
    tensors = {k: v for k, v in model.state_dict().items() if k not in tied}
    save_file(half(tensors), path / "model.safetensors")
    save_file(golden(model, config, seed), path / "golden.safetensors")


def write_saved(name: str, config: dict[str, Any], seed: int) -> None:
    """By transformers' own exporter, whatever names and splits that uses."""
    model = new_model(config, seed)
    path = begin(name, config)
    model.save_pretrained(path / "saved")
    save_file(half(load_file(path / "saved" / "model.safetensors")), path / "model.safetensors")
    shutil.rmtree(path / "saved")
    save_file(golden(model, config, seed), path / "golden.safetensors")


def main() -> None:
    write_multimodal("qwen35-shards", 1)
    write_plain("qwen35-text", QWEN35 | {"tie_word_embeddings": True}, 2)
    write_plain("qwen3-next", NEXT, 3)
    write_saved("olmo-hybrid", OLMO, 4)


if __name__ == "__main__":
    main()
