"""The model in plain PyTorch: for CUDA, for CPUs without the fused kernels, and for decoding in f32.

Recurrent layers run in chunks of 64 tokens; any float type works, so that the tests hold this form
against the reference in float64, and the fused gradients against its own.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.nn.functional as F

from config import HEAD_DIM, ROPE_THETA, SHARED, ModelConfig
from forward import forward
from params import Parameters, rope_tables
from quantise import inference_values

_CHUNK = 64
Weights = Mapping[str, torch.Tensor]


def rms_norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * weight


def unit(x: torch.Tensor) -> torch.Tensor:
    return x * torch.rsqrt((x * x).sum(-1, keepdim=True) + 1e-6)


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Interleaved rotary positions; the tables are those of `rope_tables`."""
    swapped = x.unflatten(-1, (-1, 2)).flip(-1).flatten(-2)
    return x * cos + swapped * sin


def quantise_rows(x: torch.Tensor) -> torch.Tensor:
    """Rounds every row to int8 levels of its own range; gradients pass straight through."""
    with torch.no_grad():
        scale = x.abs().amax(-1, keepdim=True).clamp_min(1e-12) / 127
        rounded = torch.round(x / scale) * scale
    return x + (rounded - x).detach()


def short_convolution(past: torch.Tensor, h: torch.Tensor, taps: torch.Tensor) -> torch.Tensor:
    """Three causal taps over [batch, time, width], oldest first, behind the two inputs before."""
    x = torch.cat([past, h], 1)
    return x[:, 2:] * taps[2] + x[:, 1:-1] * taps[1] + x[:, :-2] * taps[0]


def _delta_chunk(
    state: torch.Tensor,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    log_a: torch.Tensor,
    beta: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """One chunk; ``state`` is the transposed state [batch, head, dk, dv]."""
    size = q.shape[2]
    step = torch.arange(size, device=q.device, dtype=q.dtype)
    age = step[:, None] - step[None, :]
    a, b = log_a.view(-1, 1, 1), beta.view(-1, 1, 1)
    read_mask = (b * torch.exp(a * age.clamp_min(0))).tril()
    write_mask = (b * torch.exp(a * (age - 1).clamp_min(0))).tril(-1)
    decay = torch.exp(a * step[:, None])  # before token i
    keys = k @ k.transpose(-1, -2)
    right = v - decay * (k @ state)
    eye = torch.eye(size, device=q.device, dtype=q.dtype)
    low = keys * write_mask + eye
    u = torch.linalg.solve_triangular(low, right, upper=False)
    through = torch.exp(a)
    out = decay * through * (q @ state) + (q @ k.transpose(-1, -2) * read_mask) @ u
    write = b * torch.exp(a * (size - 1 - step)[:, None])
    whole = torch.exp(a * size)
    return whole * state + (k * write).transpose(-1, -2) @ u, out


def delta_rule(
    state: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, gates: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The state after, and the outputs: gated delta rule over [batch, head, time, 64], in chunks."""
    heads = q.shape[1]
    log_a = F.logsigmoid(gates[:heads])
    beta = torch.sigmoid(gates[heads:])
    q = q / HEAD_DIM**0.5
    outs = []
    for at in range(0, q.shape[2], _CHUNK):
        part = slice(at, at + _CHUNK)
        state, out = _delta_chunk(state, q[:, :, part], k[:, :, part], v[:, :, part], log_a, beta)
        outs.append(out)
    return state, torch.cat(outs, 2)


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float) -> torch.Tensor:
    """q of the last positions of k and v, both already rotated."""
    time, seen = q.shape[2], k.shape[2]
    later = torch.ones(time, seen, dtype=torch.bool, device=q.device).triu(1 + seen - time)
    scores = q @ k.transpose(-1, -2) * scale
    return scores.masked_fill(later, float("-inf")).softmax(-1) @ v


class TorchPass:
    """The operations of a forward pass over whole sequences, [batch, time]."""

    def __init__(
        self,
        config: ModelConfig,
        weights: Weights,
        tables: tuple[torch.Tensor, torch.Tensor],
    ) -> None:
        self.config, self.w, self._tables = config, weights, tables

    def embed(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.w["embed"][tokens]

    def add_norm(
        self, x: torch.Tensor, y: torch.Tensor | None, name: str
    ) -> tuple[torch.Tensor, torch.Tensor]:
        x = x if y is None else x + y
        return x, rms_norm(x, self.w[name])

    def product(self, x: torch.Tensor, name: str) -> torch.Tensor:
        if self.config.quantised and name != "head":
            x = quantise_rows(x)
        return x @ self.w[name].t()

    def swiglu(self, _: int, gate_up: torch.Tensor) -> torch.Tensor:
        gate, up = gate_up.chunk(2, -1)
        return F.silu(gate) * up

    def convolution(self, i: int, h: torch.Tensor) -> torch.Tensor:
        past = h.new_zeros(h.shape[0], 2, h.shape[2])
        return short_convolution(past, h, self.w[f"{i}.conv"])

    def delta_rule(self, i: int, qkv: torch.Tensor) -> torch.Tensor:
        q, k, v = self._heads(qkv)
        state = q.new_zeros(*q.shape[:2], HEAD_DIM, HEAD_DIM)
        return _rows(delta_rule(state, q, k, v, self.w[f"{i}.gates"])[1])

    def attention(self, i: int, qkv: torch.Tensor) -> torch.Tensor:
        q, k, v = self._heads(qkv)
        q, k = self._rotated(q, 0), self._rotated(k, 0)
        return _rows(attention(q, k, v, self.config.attn_logit_scale))

    def _heads(self, qkv: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """q, k, v [batch, head, time, 64], the first two of unit length."""
        q, k, v = qkv.unflatten(-1, (3, self.config.n_heads, HEAD_DIM)).permute(2, 0, 3, 1, 4)
        return unit(q), unit(k), v

    def _rotated(self, x: torch.Tensor, at: int) -> torch.Tensor:
        where = slice(at, at + x.shape[2])
        return rotate(x, *(table[where].to(x) for table in self._tables))


def _rows(out: torch.Tensor) -> torch.Tensor:
    return out.transpose(1, 2).flatten(2)


class TorchModel:
    """The interface of `FusedModel` on autograd; weights live on the CPU, work on the device."""

    def __init__(self, parameters: Parameters) -> None:
        self.config, self.p = parameters.config, parameters
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.grad = torch.zeros_like(parameters.flat)
        self.g = parameters.view_of(self.grad)
        self.ternary_blend = 1.0
        self._tables = tuple(
            t.to(self.device) for t in rope_tables(self.config.max_seq, ROPE_THETA, HEAD_DIM)
        )
        self.refresh()

    def refresh(self) -> None:
        """Copies the master weights to the device; call after every weight change."""
        self._flat = self.p.flat.to(self.device, copy=True).requires_grad_()

    def _weights(self) -> dict[str, torch.Tensor]:
        views = self.p.view_of(self._flat)
        if not self.config.quantised:
            return views
        with torch.no_grad():
            values = inference_values(self.config, views, self.ternary_blend)
        return {n: w if values[n] is w else w + (values[n] - w).detach() for n, w in views.items()}

    def forward(self, tokens: torch.Tensor, keep: bool = True) -> tuple[torch.Tensor, dict]:
        with torch.set_grad_enabled(keep):
            ops = TorchPass(self.config, self._weights(), self._tables)
            logits = forward(ops, tokens.to(self.device)).flatten(0, 1)
        return logits.detach(), {"logits": logits}

    def backward(self, saved: dict, d_logits: torch.Tensor, shared: bool = True) -> None:
        saved.pop("logits").backward(d_logits.to(self.device))
        grad = self._flat.grad.to(self.grad.device)
        self._flat.grad = None
        if not shared:
            for name in SHARED:
                self.p.view_of(grad)[name].zero_()
        self.grad.add_(grad)


class TorchDecoder(TorchPass):
    """A batch of sequences in lock step, in f32 on the values the server computes with."""

    def __init__(self, parameters: Parameters, batch: int, max_len: int) -> None:
        config, heads = parameters.config, parameters.config.n_heads
        tables = rope_tables(max_len, ROPE_THETA, HEAD_DIM)
        super().__init__(config, inference_values(config, parameters.views), tables)
        self.at = 0
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
        self.at, self.state, self.past = snapshot[0], dict(snapshot[1]), dict(snapshot[2])

    def step(self, tokens: torch.Tensor) -> torch.Tensor:
        """Consumes one token a sequence and returns the logits [batch, vocab] for the next."""
        return self.feed(tokens[:, None])

    @torch.no_grad()
    def feed(self, tokens: torch.Tensor) -> torch.Tensor:
        """Consumes [batch, time] and returns the logits after the last token."""
        logits = forward(self, tokens)
        self.at += tokens.shape[1]
        return logits[:, -1]

    def convolution(self, i: int, h: torch.Tensor) -> torch.Tensor:
        past = self.past[i]
        self.past[i] = torch.cat([past, h], 1)[:, -2:]
        return short_convolution(past, h, self.w[f"{i}.conv"])

    def delta_rule(self, i: int, qkv: torch.Tensor) -> torch.Tensor:
        q, k, v = self._heads(qkv)
        self.state[i], out = delta_rule(self.state[i], q, k, v, self.w[f"{i}.gates"])
        return _rows(out)

    def attention(self, i: int, qkv: torch.Tensor) -> torch.Tensor:
        q, k, v = self._heads(qkv)
        end = self.at + q.shape[2]
        self.keys[i][:, :, self.at : end] = self._rotated(k, self.at)
        self.values[i][:, :, self.at : end] = v
        keys, values = self.keys[i][:, :, :end], self.values[i][:, :, :end]
        return _rows(
            attention(self._rotated(q, self.at), keys, values, self.config.attn_logit_scale)
        )
