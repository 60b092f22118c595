"""Forward and backward pass on the CPU with the fused kernels, without autograd.

Master weights are f32 in one flat vector; products run in bf16 with f32 accumulation. Two packed
copies of every matrix (one for x w^T, one for dy w) are rebuilt by `refresh` after a step.
"""

from __future__ import annotations

import ctypes
import subprocess
from functools import lru_cache
from pathlib import Path

import torch

from config import HEAD_DIM, MATRICES, ROPE_THETA, kind_of
from forward import forward
from params import Parameters, rope_tables
from quantise import fake_quantise

_KERNELS = Path(__file__).parent / "kernels"
_BF16 = torch.bfloat16
Saved = dict


class KernelsUnavailable(RuntimeError):
    """The fused kernels cannot be built or run here; the message says why."""


@lru_cache(maxsize=1)
def kernels() -> ctypes.CDLL:
    """Builds the kernels when they are missing or older than their source, and loads them."""
    library = Path(__file__).parent / "work" / "kernels.so"
    library.parent.mkdir(exist_ok=True)
    sources = [*_KERNELS.glob("*.cpp"), *_KERNELS.glob("*.hpp"), _KERNELS / "build.sh"]
    if not library.exists() or library.stat().st_mtime < max(s.stat().st_mtime for s in sources):
        done = subprocess.run(
            [str(_KERNELS / "build.sh"), str(library)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise KernelsUnavailable(done.stderr.strip()[:2000])
    lib = ctypes.CDLL(str(library))
    if lib.kernels_init() < 0:
        raise KernelsUnavailable("the operating system refuses the use of AMX tiles")
    return lib


def _p(tensor: torch.Tensor | None) -> ctypes.c_void_p:
    return ctypes.c_void_p(0 if tensor is None else tensor.data_ptr())


class FusedModel:
    """A target, or a draft when the configuration says ``quantised``."""

    def __init__(self, parameters: Parameters) -> None:
        self.lib = kernels()
        self.config = parameters.config
        self.p = parameters
        self.grad = torch.zeros_like(parameters.flat)
        self.g = parameters.view_of(self.grad)
        self.ternary_blend = 1.0  # 0: the draft's MLP in full precision, 1: ternary
        self._matrices = [n for n in parameters.shapes if kind_of(n) in MATRICES or n == "head"]
        self.packed = {n: torch.empty(self.p[n].numel(), dtype=_BF16) for n in self._matrices}
        self._backward = {n: torch.empty(self.p[n].numel(), dtype=_BF16) for n in self._matrices}
        self.cos, self.sin = rope_tables(self.config.max_seq, ROPE_THETA, HEAD_DIM)
        self.refresh()

    def refresh(self) -> None:
        """Rounds (or quantises) the matrices and packs them; call after every weight change."""
        for name in self._matrices:
            w = self.p[name]
            if self.config.quantised and name != "head":
                w = fake_quantise(kind_of(name), w, self.ternary_blend)
            w = w.to(_BF16).contiguous()
            rows, cols = w.shape
            self.lib.pack_forward(_p(w), _p(self.packed[name]), rows, cols)
            self.lib.pack_backward(_p(w), _p(self._backward[name]), rows, cols)

    def forward(self, tokens: torch.Tensor, keep: bool = True) -> tuple[torch.Tensor, Saved]:
        """Logits [batch*time][vocab] in bf16; time is a multiple of 64, batch*time of 32."""
        saved: Saved = {}
        ops = FusedPass(self, *tokens.shape, saved if keep else None)
        return forward(ops, tokens), saved

    def backward(self, saved: Saved, d_logits: torch.Tensor, shared: bool = True) -> None:
        """Adds gradients; without ``shared``, embedding, head and final norm are left alone."""
        tokens = saved.pop("tokens")
        ff, width = self.config.d_ff, 3 * self.config.d_model
        dh = self._product_back(saved, d_logits.to(_BF16), "head", own=shared)
        dx = torch.zeros_like(saved["final_norm"][0])
        rows = dx.shape[0]
        flow = self._norm_back(saved, dx, dh, "final_norm")
        for i in reversed(range(self.config.n_layers)):
            d_gated = self._product_back(saved, flow, f"{i}.down")
            d_ab = torch.empty(rows, 2 * ff, dtype=_BF16)
            ab = saved.pop(f"{i}.swiglu")
            self.lib.swiglu_backward(_p(ab), _p(d_gated), _p(d_ab), rows, ff)
            dh = self._product_back(saved, d_ab, f"{i}.gate_up")
            flow = self._norm_back(saved, dx, dh, f"{i}.norm2")
            d_out = self._product_back(saved, flow, f"{i}.out")
            d_qkv = torch.empty(rows, width, dtype=_BF16)
            if self.config.is_attention(i):
                self._attention_back(saved, i, d_out, d_qkv, *tokens.shape)
                dh = self._product_back(saved, d_qkv, f"{i}.qkv")
            else:
                self._delta_back(saved, i, d_out, d_qkv, *tokens.shape)
                dh = self._product_back(saved, d_qkv, f"{i}.qkv")
                dh = self._convolution_back(saved, i, dh, *tokens.shape)
            flow = self._norm_back(saved, dx, dh, f"{i}.norm1")
        if shared:
            flat = tokens.reshape(-1).contiguous()
            self.lib.embedding_backward(_p(flat), _p(dx), _p(self.g["embed"]), *dx.shape)
        else:
            self.g["final_norm"].zero_()

    def _product_back(
        self, saved: Saved, dy: torch.Tensor, name: str, own: bool = True
    ) -> torch.Tensor:
        """Adds the weight's gradient and returns the input's."""
        x, (rows, cols) = saved.pop(name), self.p.shapes[name]
        if own:
            self.lib.gemm_weight_grad(_p(dy), _p(x), _p(self.g[name]), dy.shape[0], rows, cols)
        dx = torch.empty(dy.shape[0], cols, dtype=_BF16)
        self.lib.gemm(_p(dy), _p(self._backward[name]), _p(dx), dy.shape[0], rows, cols)
        return dx

    def _norm_back(
        self, saved: Saved, dx: torch.Tensor, dh: torch.Tensor, name: str
    ) -> torch.Tensor:
        """Adds to the residual stream's gradient; returns it in bf16 for the product before."""
        x, rstd = saved.pop(name)
        copy = torch.empty(x.shape, dtype=_BF16)
        self.lib.norm_backward(
            _p(dx), _p(dh), _p(x), _p(rstd), _p(self.p[name]), _p(self.g[name]), _p(copy), *x.shape
        )
        return copy

    def _attention_back(
        self, saved: Saved, i: int, d_out: torch.Tensor, d_qkv: torch.Tensor, batch: int, time: int
    ) -> None:
        qkv, out, sums = saved.pop(f"{i}.attention")
        self.lib.attention_backward(
            _p(qkv), batch, time, self.config.n_heads, ctypes.c_float(self.config.attn_logit_scale),
            _p(self.cos), _p(self.sin), _p(out), _p(sums), _p(d_out), _p(d_qkv),
        )  # fmt: skip

    def _delta_back(
        self, saved: Saved, i: int, d_out: torch.Tensor, d_qkv: torch.Tensor, batch: int, time: int
    ) -> None:
        qkv, log_a, beta, states, us = saved.pop(f"{i}.delta_rule")
        heads = self.config.n_heads
        d_log_a, d_beta = torch.empty_like(log_a), torch.empty_like(beta)
        self.lib.delta_backward(
            _p(qkv), batch, time, heads, _p(log_a), _p(beta), 1, _p(d_out), _p(states), _p(us),
            _p(d_qkv), _p(d_log_a), _p(d_beta),
        )  # fmt: skip
        gates = torch.sigmoid(self.p[f"{i}.gates"])
        d_gates = torch.cat([d_log_a.sum(0), d_beta.sum(0) * gates[heads:]])
        self.g[f"{i}.gates"].add_(d_gates * (1 - gates))

    def _convolution_back(
        self, saved: Saved, i: int, dy: torch.Tensor, batch: int, time: int
    ) -> torch.Tensor:
        h, name = saved.pop(f"{i}.conv"), f"{i}.conv"
        dh = torch.empty_like(h)
        self.lib.conv_backward(
            _p(dy), _p(h), _p(self.p[name]), _p(dh), _p(self.g[name]), batch, time, h.shape[1]
        )
        return dh


class FusedPass:
    """The operations of a forward pass over whole sequences; rows are [batch*time].

    What the backward pass needs goes into ``saved`` under the name of the operation's weight.
    """

    def __init__(self, model: FusedModel, batch: int, time: int, saved: Saved | None) -> None:
        self.config, self.m, self.lib = model.config, model, model.lib
        self._batch, self._time, self._saved = batch, time, saved

    def _keep(self, name: str, value: object) -> None:
        if self._saved is not None:
            self._saved[name] = value

    def embed(self, tokens: torch.Tensor) -> torch.Tensor:
        self._keep("tokens", tokens)
        return self.m.p["embed"][tokens.reshape(-1)]

    def add_norm(
        self, x: torch.Tensor, y: torch.Tensor | None, name: str
    ) -> tuple[torch.Tensor, torch.Tensor]:
        total = x if y is None else torch.empty_like(x)
        h, rstd = torch.empty(x.shape, dtype=_BF16), torch.empty(x.shape[0])
        weight = self.m.p[name]
        self.lib.add_norm(_p(x), _p(y), _p(total), _p(weight), _p(h), _p(rstd), *x.shape)
        self._keep(name, (total, rstd))
        return total, h

    def product(self, x: torch.Tensor, name: str) -> torch.Tensor:
        """A draft rounds the input to int8 row by row, in place."""
        if self.config.quantised and name != "head":
            self.lib.fake_quantise_rows(_p(x), *x.shape)
        self._keep(name, x)
        rows, cols = self.m.p.shapes[name]
        y = torch.empty(x.shape[0], rows, dtype=_BF16)
        self.lib.gemm(_p(x), _p(self.m.packed[name]), _p(y), x.shape[0], cols, rows)
        return y

    def swiglu(self, i: int, ab: torch.Tensor) -> torch.Tensor:
        self._keep(f"{i}.swiglu", ab)
        gated = torch.empty(ab.shape[0], ab.shape[1] // 2, dtype=_BF16)
        self.lib.swiglu_forward(_p(ab), _p(gated), *gated.shape)
        return gated

    def convolution(self, i: int, h: torch.Tensor) -> torch.Tensor:
        self._keep(f"{i}.conv", h)
        out = torch.empty_like(h)
        taps = self.m.p[f"{i}.conv"]
        self.lib.conv_forward(_p(h), _p(taps), _p(out), self._batch, self._time, h.shape[1])
        return out

    def delta_rule(self, i: int, qkv: torch.Tensor) -> torch.Tensor:
        heads, rows = self.config.n_heads, qkv.shape[0]
        gates = torch.sigmoid(self.m.p[f"{i}.gates"]).expand(rows, 2 * heads)
        log_a = torch.log(gates[:, :heads]).contiguous()
        beta = gates[:, heads:].contiguous()
        out = torch.empty(rows, heads * HEAD_DIM, dtype=_BF16)
        states = torch.empty(self._batch * heads * (self._time // 64), HEAD_DIM * HEAD_DIM)
        us = torch.empty_like(states)
        self.lib.delta_forward(
            _p(qkv), self._batch, self._time, heads, _p(log_a), _p(beta), 1, _p(out), _p(states),
            _p(us),
        )  # fmt: skip
        self._keep(f"{i}.delta_rule", (qkv, log_a, beta, states, us))
        return out

    def attention(self, i: int, qkv: torch.Tensor) -> torch.Tensor:
        heads = self.config.n_heads
        out = torch.empty(qkv.shape[0], heads * HEAD_DIM, dtype=_BF16)
        sums = torch.empty(self._batch * heads, self._time)
        self.lib.attention_forward(
            _p(qkv), self._batch, self._time, heads, ctypes.c_float(self.config.attn_logit_scale),
            _p(self.m.cos), _p(self.m.sin), _p(out), _p(sums),
        )  # fmt: skip
        self._keep(f"{i}.attention", (qkv, out, sums))
        # The backward pass wants it as it is, and a draft's next product rounds its input in place.
        return out.clone() if self.config.quantised else out


class FusedDecoder(FusedPass):
    """A batch (a multiple of 32) of sequences in lock step, in bf16."""

    def __init__(self, model: FusedModel, batch: int, max_len: int) -> None:
        super().__init__(model, batch, 1, None)
        self._max_len, self._at = max_len, 0
        heads, d = self.config.n_heads, self.config.d_model
        self._state, self._past, self._gates = {}, {}, {}
        self._keys, self._values = {}, {}
        for i in range(self.config.n_layers):
            if self.config.is_attention(i):
                shape = (batch, heads, max_len, HEAD_DIM)
                self._keys[i] = torch.empty(shape, dtype=_BF16)
                self._values[i] = torch.empty(shape, dtype=_BF16)
            else:
                self._state[i] = torch.zeros(batch, heads, HEAD_DIM, HEAD_DIM)
                self._past[i] = torch.zeros(2, batch, d)
                self._gates[i] = torch.sigmoid(model.p[f"{i}.gates"]).view(2, heads).contiguous()

    def step(self, tokens: torch.Tensor) -> torch.Tensor:
        """Logits [batch, vocab] after these tokens."""
        logits = forward(self, tokens).float()
        self._at += 1
        return logits

    def convolution(self, i: int, h: torch.Tensor) -> torch.Tensor:
        taps, past, now = self.m.p[f"{i}.conv"], self._past[i], h.float()
        self._past[i] = torch.stack([past[1], now])
        return (now * taps[2] + past[1] * taps[1] + past[0] * taps[0]).to(_BF16)

    def delta_rule(self, i: int, qkv: torch.Tensor) -> torch.Tensor:
        out = torch.empty(self._batch, self.config.d_model, dtype=_BF16)
        decay, write = self._gates[i]
        self.lib.delta_step(
            _p(qkv), self._batch, self.config.n_heads, _p(decay), _p(write), _p(self._state[i]),
            _p(out),
        )  # fmt: skip
        return out

    def attention(self, i: int, qkv: torch.Tensor) -> torch.Tensor:
        out = torch.empty(self._batch, self.config.d_model, dtype=_BF16)
        self.lib.attention_step(
            _p(qkv), self._batch, self.config.n_heads, ctypes.c_float(self.config.attn_logit_scale),
            _p(self.m.cos[self._at]), _p(self.m.sin[self._at]), _p(self._keys[i]),
            _p(self._values[i]), self._max_len, self._at, _p(out),
        )  # fmt: skip
        return out
