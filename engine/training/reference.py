"""The model in plain NumPy: the reference that every faster form is held against.

One sequence, token by token where the model is recurrent, nothing fused, in float32 or float64. A
model is a spec, which says what its layers are, and weights, whose names are the short ones of
`model_directory.NAMES`. What is promised about exported weights (the golden logits) is
computed here, on exactly the exported values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

Array = np.ndarray
Part = Mapping[str, Array]


@dataclass(frozen=True)
class DeltaSpec:
    """Short causal convolution, then the gated delta rule head by head; gates do not move."""

    heads: int
    l2_eps: float


@dataclass(frozen=True)
class AttentionSpec:
    """Causal attention over unit q and k, turned by their position."""

    heads: int
    l2_eps: float
    logit_scale: float
    rope_theta: float


@dataclass(frozen=True)
class ModelSpec:
    """x += mixer(norm(x)), then x += mlp(norm(x)), for every mixer in turn."""

    mixers: tuple[DeltaSpec | AttentionSpec, ...]
    rms_eps: float
    int8_inputs: bool  # a draft rounds the input of every product of its layers


@dataclass(frozen=True)
class Model:
    """``shared`` holds embed, head and final_norm; ``layers`` one mapping a layer."""

    spec: ModelSpec
    shared: Part
    layers: tuple[Part, ...]

    def astype(self, dtype: type) -> Model:
        """The same numbers in another float type, in which `logits` then works."""

        def cast(part: Part) -> Part:
            return {name: value.astype(dtype) for name, value in part.items()}

        return Model(self.spec, cast(self.shared), tuple(cast(part) for part in self.layers))


# --- pieces ---


def rms_norm(x: Array, weight: Array, eps: float) -> Array:
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * weight


def unit(x: Array, eps: float) -> Array:
    return x / np.sqrt((x * x).sum(-1, keepdims=True) + eps)


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def int8_rows(x: Array) -> Array:
    """Every row on the 255 levels of its own range."""
    scale = np.maximum(np.abs(x).max(-1, keepdims=True), x.dtype.type(1e-12)) / 127
    return np.round(x / scale) * scale


def short_convolution(x: Array, taps: Array) -> Array:
    """One filter a channel over [time, width]; ``taps`` [width, n], oldest first."""
    count = taps.shape[1]
    before = np.concatenate([np.zeros_like(x[: count - 1]), x])[-(len(x) + count - 1) :]
    return sum(before[j : j + len(x)] * taps[:, j] for j in range(count))


def rotate(x: Array, theta: float) -> Array:
    """Turns each pair (2i, 2i + 1) of [time, heads, dim] by its position's angle."""
    time, _, dim = x.shape
    frequency = 1.0 / theta ** (np.arange(0, dim, 2) / dim)
    angle = (np.arange(time)[:, None] * frequency)[:, None, :]
    cos, sin = np.cos(angle).astype(x.dtype), np.sin(angle).astype(x.dtype)
    even, odd = x[..., 0::2], x[..., 1::2]
    return np.stack([even * cos - odd * sin, even * sin + odd * cos], -1).reshape(x.shape)


# --- mixers: q, k, v [time, heads, dim], q and k of unit length -> [time, heads, dim] ---


def delta_rule(q: Array, k: Array, v: Array, decay: Array, write: Array) -> Array:
    """S = decay S + write (v - S k) k^T, read by S q / sqrt(dim); S [heads, dv, dk] starts at 0."""
    _, heads, dim = q.shape
    state = np.zeros((heads, dim, dim), q.dtype)
    out = np.empty_like(v)
    for t in range(len(q)):
        error = v[t] - np.einsum("hvk,hk->hv", state, k[t])
        state = decay[:, None, None] * state
        state += write[:, None, None] * np.einsum("hv,hk->hvk", error, k[t])
        out[t] = np.einsum("hvk,hk->hv", state, q[t]) / np.sqrt(q.dtype.type(dim))
    return out


def attention(q: Array, k: Array, v: Array, logit_scale: float, theta: float) -> Array:
    q, k = rotate(q, theta), rotate(k, theta)
    out = np.empty_like(v)
    for t in range(len(q)):
        score = np.einsum("shd,hd->hs", k[: t + 1], q[t]) * q.dtype.type(logit_scale)
        weight = np.exp(score - score.max(-1, keepdims=True))
        weight /= weight.sum(-1, keepdims=True)
        out[t] = np.einsum("hs,shd->hd", weight, v[: t + 1])
    return out


# --- the model ---


def _mixer(spec: ModelSpec, mixer: DeltaSpec | AttentionSpec, w: Part, h: Array) -> Array:
    rounded = int8_rows if spec.int8_inputs else (lambda x: x)
    if isinstance(mixer, DeltaSpec):
        h = short_convolution(h, w["conv"])
    qkv = (rounded(h) @ w["qkv"].T).reshape(len(h), 3, mixer.heads, -1)
    q, k, v = unit(qkv[:, 0], mixer.l2_eps), unit(qkv[:, 1], mixer.l2_eps), qkv[:, 2]
    if isinstance(mixer, DeltaSpec):
        out = delta_rule(q, k, v, sigmoid(w["decay"]), sigmoid(w["write"]))
    else:
        out = attention(q, k, v, mixer.logit_scale, mixer.rope_theta)
    return rounded(out.reshape(len(h), -1)) @ w["out"].T


def _mlp(spec: ModelSpec, w: Part, h: Array) -> Array:
    rounded = int8_rows if spec.int8_inputs else (lambda x: x)
    h = rounded(h)
    gate, up = h @ w["gate"].T, h @ w["up"].T
    return rounded(gate * sigmoid(gate) * up) @ w["down"].T


def logits(model: Model, tokens: Array) -> Array:
    """Logits [time, vocab] of one sequence that starts from nothing."""
    spec, eps = model.spec, model.spec.rms_eps
    x = model.shared["embed"][tokens]
    for mixer, w in zip(spec.mixers, model.layers, strict=True):
        x = x + _mixer(spec, mixer, w, rms_norm(x, w["norm1"], eps))
        x = x + _mlp(spec, w, rms_norm(x, w["norm2"], eps))
    return rms_norm(x, model.shared["final_norm"], eps) @ model.shared["head"].T
