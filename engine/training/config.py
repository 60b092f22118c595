"""Shape of a SPEL model, and the layout of its parameters in one flat vector."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

HEAD_DIM = 64
ROPE_THETA = 10000.0
ALIGNMENT = 16  # every parameter starts at a multiple of this in the flat vector


@dataclass(frozen=True)
class ModelConfig:
    """The default shape of the server; `attention_layers` is derived unless given."""

    d_model: int = 384
    n_layers: int = 12
    d_ff: int = 1024
    vocab_size: int = 128
    max_seq: int = 4096
    attn_period: int = 4
    attn_logit_scale: float = 16.0
    draft_layers: tuple[int, ...] = (0, 3, 6, 9)
    attention_layers: tuple[int, ...] | None = None
    quantised: bool = False

    @property
    def n_heads(self) -> int:
        return self.d_model // HEAD_DIM

    def is_attention(self, layer: int) -> bool:
        if self.attention_layers is not None:
            return layer in self.attention_layers
        return layer % self.attn_period == self.attn_period - 1

    def draft(self) -> ModelConfig:
        """The draft of this model: a quantised model of the selected layers."""
        attention = tuple(
            j for j, layer in enumerate(self.draft_layers) if self.is_attention(layer)
        )
        fields = asdict(self) | {
            "n_layers": len(self.draft_layers),
            "attention_layers": attention,
            "quantised": True,
        }
        return ModelConfig(**fields)

    @staticmethod
    def load(path: Path) -> ModelConfig:
        """Reads the "model" object of a training configuration."""
        fields = json.loads(Path(path).read_text())["model"]
        fields["draft_layers"] = tuple(fields["draft_layers"])
        return ModelConfig(**fields)

    @staticmethod
    def of_directory(fields: dict) -> ModelConfig:
        """From the ``config.json`` of a model directory."""
        names = (
            "d_model", "n_layers", "d_ff", "vocab_size", "max_seq", "attn_period",
            "attn_logit_scale",
        )  # fmt: skip
        own = {name: fields[name] for name in names}
        return ModelConfig(**own, draft_layers=tuple(fields["draft"]["layers"]))


SHARED = ("embed", "head", "final_norm")  # what the draft takes over from its target
MATRICES = ("qkv", "out", "gate_up", "down")
# Matrices that are several maps on top of each other: the optimiser treats each map alone.
STACKED = {"qkv": 3, "gate_up": 2}


def parameter_shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Names and shapes, in the order of the flat vector."""
    d, ff = config.d_model, config.d_ff
    shapes: dict[str, tuple[int, ...]] = {
        "embed": (config.vocab_size, d),
        "head": (config.vocab_size, d),
        "final_norm": (d,),
    }
    for i in range(config.n_layers):
        shapes[f"{i}.norm1"] = (d,)
        shapes[f"{i}.norm2"] = (d,)
        shapes[f"{i}.qkv"] = (3 * d, d)
        shapes[f"{i}.out"] = (d, d)
        shapes[f"{i}.gate_up"] = (2 * ff, d)
        shapes[f"{i}.down"] = (d, ff)
        if not config.is_attention(i):
            shapes[f"{i}.gates"] = (2 * config.n_heads,)  # decay, then write
            shapes[f"{i}.conv"] = (3, d)  # oldest tap first
    return shapes


def kind_of(name: str) -> str:
    """The part of a parameter's name after the layer number."""
    return name.rsplit(".", 1)[-1]
