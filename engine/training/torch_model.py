"""The model in plain PyTorch: for CUDA, for CPUs without the fused kernels, and as a reference.

`parallel_logits` is the definition in parallel form (recurrent layers in chunks of 64 tokens) and
works in any dtype; the tests hold the fused kernels against it in float64.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.nn.functional as F

from config import HEAD_DIM, MATRICES, ROPE_THETA, ModelConfig, kind_of
from params import Parameters, rope_tables
from quantise import fake_quantise

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


def short_convolution(h: torch.Tensor, taps: torch.Tensor) -> torch.Tensor:
    """Three causal taps over [batch, time, width], oldest first."""
    before = F.pad(h, (0, 0, 2, 0))
    return before[:, 2:] * taps[2] + before[:, 1:-1] * taps[1] + before[:, :-2] * taps[0]


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
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, gates: torch.Tensor
) -> torch.Tensor:
    """Gated delta rule over [batch, head, time, 64], in chunks."""
    heads = q.shape[1]
    log_a = F.logsigmoid(gates[:heads])
    beta = torch.sigmoid(gates[heads:])
    state = q.new_zeros(*q.shape[:2], HEAD_DIM, HEAD_DIM)
    q = q / HEAD_DIM**0.5
    outs = []
    for at in range(0, q.shape[2], _CHUNK):
        part = slice(at, at + _CHUNK)
        state, out = _delta_chunk(state, q[:, :, part], k[:, :, part], v[:, :, part], log_a, beta)
        outs.append(out)
    return torch.cat(outs, 2)


def attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    scale: float,
    cos: torch.Tensor,
    sin: torch.Tensor,
) -> torch.Tensor:
    time = q.shape[2]
    cos, sin = cos[:time].to(q), sin[:time].to(q)
    scores = rotate(q, cos, sin) @ rotate(k, cos, sin).transpose(-1, -2) * scale
    later = torch.ones(time, time, dtype=torch.bool, device=q.device).triu(1)
    return scores.masked_fill(later, float("-inf")).softmax(-1) @ v


def parallel_logits(
    config: ModelConfig,
    w: Weights,
    tokens: torch.Tensor,
    tables: tuple[torch.Tensor, torch.Tensor],
) -> torch.Tensor:
    """Logits [batch, time, vocab]; matrices of a draft are expected to be quantised already."""
    heads = config.n_heads
    rounded = quantise_rows if config.quantised else (lambda x: x)
    x = w["embed"][tokens]
    for i in range(config.n_layers):
        h = rms_norm(x, w[f"{i}.norm1"])
        if not config.is_attention(i):
            h = short_convolution(h, w[f"{i}.conv"])
        qkv = (rounded(h) @ w[f"{i}.qkv"].t()).unflatten(-1, (3, heads, HEAD_DIM))
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        q, k = unit(q), unit(k)
        if config.is_attention(i):
            out = attention(q, k, v, config.attn_logit_scale, *tables)
        else:
            out = delta_rule(q, k, v, w[f"{i}.gates"])
        x = x + rounded(out.transpose(1, 2).flatten(2)) @ w[f"{i}.out"].t()
        h = rounded(rms_norm(x, w[f"{i}.norm2"]))
        gate, up = (h @ w[f"{i}.gate_up"].t()).chunk(2, -1)
        x = x + rounded(F.silu(gate) * up) @ w[f"{i}.down"].t()
    return rms_norm(x, w["final_norm"]) @ w["head"].t()


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
        for name, w in views.items():
            if kind_of(name) in MATRICES:
                with torch.no_grad():
                    q = fake_quantise(kind_of(name), w, self.ternary_blend)
                views[name] = w + (q - w).detach()
        return views

    def forward(self, tokens: torch.Tensor, keep: bool = True) -> tuple[torch.Tensor, dict]:
        with torch.set_grad_enabled(keep):
            logits = parallel_logits(
                self.config, self._weights(), tokens.to(self.device), self._tables
            ).flatten(0, 1)
        return logits.detach(), {"logits": logits}

    def backward(self, saved: dict, d_logits: torch.Tensor, shared: bool = True) -> None:
        saved.pop("logits").backward(d_logits.to(self.device))
        grad = self._flat.grad.to(self.grad.device)
        self._flat.grad = None
        if not shared:
            for name in ("embed", "head", "final_norm"):
                self.p.view_of(grad)[name].zero_()
        self.grad.add_(grad)
