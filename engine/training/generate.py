"""Token by token in f32: the reference definition of the forward pass, target and draft.

Everything that is promised about the exported weights (golden logits, acceptance) is computed
here, on exactly the exported values.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

from config import HEAD_DIM, MATRICES, ROPE_THETA, kind_of
from params import Parameters, rope_tables
from quantise import fake_quantise
from torch_model import quantise_rows, rms_norm, rotate, unit


def inference_values(parameters: Parameters) -> dict[str, torch.Tensor]:
    """The values the server computes with: a draft's matrices are quantised."""
    if not parameters.config.quantised:
        return dict(parameters.views)
    return {
        name: fake_quantise(kind_of(name), w) if kind_of(name) in MATRICES else w
        for name, w in parameters.views.items()
    }


class StepDecoder:
    """A batch of sequences in lock step."""

    def __init__(self, parameters: Parameters, batch: int, max_len: int) -> None:
        self.config, self.w = parameters.config, inference_values(parameters)
        self.batch, self.at = batch, 0
        config, heads = self.config, self.config.n_heads
        self._round = quantise_rows if config.quantised else (lambda x: x)
        self._cos, self._sin = rope_tables(max_len, ROPE_THETA, HEAD_DIM)
        self.state: dict[int, torch.Tensor] = {}
        self.past: dict[int, torch.Tensor] = {}  # the last two inputs of the convolution
        self.keys: dict[int, torch.Tensor] = {}
        self.values: dict[int, torch.Tensor] = {}
        for i in range(config.n_layers):
            if config.is_attention(i):
                self.keys[i] = torch.zeros(batch, heads, max_len, HEAD_DIM)
                self.values[i] = torch.zeros(batch, heads, max_len, HEAD_DIM)
            else:
                self.state[i] = torch.zeros(batch, heads, HEAD_DIM, HEAD_DIM)
                self.past[i] = torch.zeros(batch, 2, config.d_model)

    def snapshot(self) -> tuple[int, dict, dict]:
        """Steps replace states and never write into them, so references are enough."""
        return self.at, dict(self.state), dict(self.past)

    def restore(self, snapshot: tuple[int, dict, dict]) -> None:
        """Back to an earlier position of the same sequence; later keys are dead, not erased."""
        self.at, self.state, self.past = (
            snapshot[0],
            dict(snapshot[1]),
            dict(snapshot[2]),
        )

    @torch.no_grad()
    def step(self, tokens: torch.Tensor) -> torch.Tensor:
        """Consumes one token a sequence and returns the logits [batch, vocab] for the next."""
        w, config = self.w, self.config
        x = w["embed"][tokens]
        for i in range(config.n_layers):
            h = rms_norm(x, w[f"{i}.norm1"])
            if i in self.state:
                past, taps = self.past[i], w[f"{i}.conv"]
                self.past[i] = torch.stack([past[:, 1], h], 1)
                h = h * taps[2] + past[:, 1] * taps[1] + past[:, 0] * taps[0]
            qkv = self._round(h) @ w[f"{i}.qkv"].t()
            q, k, v = qkv.unflatten(-1, (3, config.n_heads, HEAD_DIM)).unbind(1)
            mixer = self._recur if i in self.state else self._attend
            out = mixer(i, unit(q), unit(k), v)
            x = x + self._round(out.flatten(1)) @ w[f"{i}.out"].t()
            h = self._round(rms_norm(x, w[f"{i}.norm2"]))
            gate, up = (h @ w[f"{i}.gate_up"].t()).chunk(2, -1)
            x = x + self._round(F.silu(gate) * up) @ w[f"{i}.down"].t()
        self.at += 1
        return rms_norm(x, w["final_norm"]) @ w["head"].t()

    def _recur(self, i: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        decay, write = torch.sigmoid(self.w[f"{i}.gates"]).view(2, -1, 1, 1)
        state = self.state[i]
        error = v[..., None] - state @ k[..., None]
        state = decay * state + write * error * k[..., None, :]
        self.state[i] = state
        return (state @ q[..., None])[..., 0] / HEAD_DIM**0.5

    def _attend(self, i: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        cos, sin = self._cos[self.at], self._sin[self.at]
        self.keys[i][:, :, self.at] = rotate(k, cos, sin)
        self.values[i][:, :, self.at] = v
        seen = slice(0, self.at + 1)
        scores = self.keys[i][:, :, seen] @ rotate(q, cos, sin)[..., None]
        weights = (scores * self.config.attn_logit_scale).softmax(2)
        return (weights * self.values[i][:, :, seen]).sum(2)

    def feed(self, tokens: torch.Tensor) -> torch.Tensor:
        """Consumes [batch, time] and returns the logits after the last token."""
        for t in range(tokens.shape[1]):
            logits = self.step(tokens[:, t])
        return logits


def gumbel(seed: int, position: int, shape: tuple[int, int]) -> torch.Tensor:
    """Noise of one position, the same for target and draft (coupled sampling)."""
    generator = torch.Generator().manual_seed(seed * 1_000_003 + position)
    uniform = torch.rand(shape, generator=generator).clamp(1e-7, 1 - 1e-7)
    return -torch.log(-torch.log(uniform))


def choose(logits: torch.Tensor, temperature: float, seed: int, position: int) -> torch.Tensor:
    """argmax of logits / T + noise; plain argmax at temperature 0."""
    if temperature <= 0:
        return logits.argmax(-1)
    return (logits / temperature + gumbel(seed, position, tuple(logits.shape))).argmax(-1)
