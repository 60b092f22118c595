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
        self._forward = {n: torch.empty(self.p[n].numel(), dtype=_BF16) for n in self._matrices}
        self._backward = {n: torch.empty(self.p[n].numel(), dtype=_BF16) for n in self._matrices}
        self._cos, self._sin = rope_tables(self.config.max_seq, ROPE_THETA, HEAD_DIM)
        self.refresh()

    def refresh(self) -> None:
        """Rounds (or quantises) the matrices and packs them; call after every weight change."""
        for name in self._matrices:
            w = self.p[name]
            if self.config.quantised and name != "head":
                w = fake_quantise(kind_of(name), w, self.ternary_blend)
            w = w.to(_BF16).contiguous()
            rows, cols = w.shape
            self.lib.pack_forward(_p(w), _p(self._forward[name]), rows, cols)
            self.lib.pack_backward(_p(w), _p(self._backward[name]), rows, cols)

    # --- products ---

    def _times(self, x: torch.Tensor, name: str) -> torch.Tensor:
        rows, cols = self.p.shapes[name]
        y = torch.empty(x.shape[0], rows, dtype=_BF16)
        self.lib.gemm(_p(x), _p(self._forward[name]), _p(y), x.shape[0], cols, rows)
        return y

    def _grads(
        self, dy: torch.Tensor, x: torch.Tensor, name: str, own: bool = True
    ) -> torch.Tensor:
        """Adds the weight's gradient and returns the input's."""
        rows, cols = self.p.shapes[name]
        if own:
            self.lib.gemm_weight_grad(_p(dy), _p(x), _p(self.g[name]), dy.shape[0], rows, cols)
        dx = torch.empty(dy.shape[0], cols, dtype=_BF16)
        self.lib.gemm(_p(dy), _p(self._backward[name]), _p(dx), dy.shape[0], rows, cols)
        return dx

    # --- forward ---

    def _norm(
        self, x: torch.Tensor, y: torch.Tensor | None, name: str
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        n, d = x.shape
        total = x if y is None else torch.empty(n, d)
        h, rstd = torch.empty(n, d, dtype=_BF16), torch.empty(n)
        self.lib.add_norm(_p(x), _p(y), _p(total), _p(self.p[name]), _p(h), _p(rstd), n, d)
        return total, h, rstd

    def _quantise(self, x: torch.Tensor, copy: bool = False) -> torch.Tensor:
        """The draft rounds the input of every product to int8, row by row."""
        if not self.config.quantised:
            return x
        x = x.clone() if copy else x
        self.lib.fake_quantise_rows(_p(x), *x.shape)
        return x

    def forward(self, tokens: torch.Tensor, keep: bool = True) -> tuple[torch.Tensor, Saved]:
        """Logits [batch*time][vocab] in bf16; time is a multiple of 64, batch*time of 32."""
        batch, time = tokens.shape
        saved: Saved = {"tokens": tokens}
        x, y = self.p["embed"][tokens.reshape(-1)], None
        for i in range(self.config.n_layers):
            layer = self._mixer_forward(i, x, y, batch, time)
            x, y = self._mlp_forward(i, layer)
            if keep:
                saved[i] = layer
        x, h, rstd = self._norm(x, y, "final_norm")
        saved["final"] = (x, h, rstd)
        return self._times(h, "head"), saved

    def _mixer_forward(
        self, i: int, x: torch.Tensor, y: torch.Tensor | None, batch: int, time: int
    ) -> Saved:
        config, lib = self.config, self.lib
        d, heads, n = config.d_model, config.n_heads, batch * time
        x, h, rstd = self._norm(x, y, f"{i}.norm1")
        layer: Saved = {"x1": x, "h1": h, "rstd1": rstd}
        if config.is_attention(i):
            inner = self._quantise(h, copy=True)
            qkv = self._times(inner, f"{i}.qkv")
            out, sums = torch.empty(n, d, dtype=_BF16), torch.empty(batch * heads, time)
            lib.attention_forward(
                _p(qkv), batch, time, heads, ctypes.c_float(config.attn_logit_scale),
                _p(self._cos), _p(self._sin), _p(out), _p(sums),
            )  # fmt: skip
            layer["sums"] = sums
        else:
            inner = torch.empty(n, d, dtype=_BF16)
            lib.conv_forward(_p(h), _p(self.p[f"{i}.conv"]), _p(inner), batch, time, d)
            inner = self._quantise(inner)
            qkv = self._times(inner, f"{i}.qkv")
            gates = torch.sigmoid(self.p[f"{i}.gates"]).expand(n, 2 * heads)
            log_a, beta = (
                torch.log(gates[:, :heads]).contiguous(),
                gates[:, heads:].contiguous(),
            )
            out = torch.empty(n, d, dtype=_BF16)
            states = torch.empty(batch * heads * (time // 64), 4096)
            us = torch.empty_like(states)
            lib.delta_forward(
                _p(qkv),
                batch,
                time,
                heads,
                _p(log_a),
                _p(beta),
                1,
                _p(out),
                _p(states),
                _p(us),
            )
            layer |= {"log_a": log_a, "beta": beta, "states": states, "us": us}
        read = self._quantise(out, copy=True)
        return layer | {
            "inner": inner,
            "qkv": qkv,
            "out": out,
            "read": read,
            "shape": (batch, time),
        }

    def _mlp_forward(self, i: int, layer: Saved) -> tuple[torch.Tensor, torch.Tensor]:
        ff = self.config.d_ff
        y = self._times(layer["read"], f"{i}.out")
        x, h, rstd = self._norm(layer["x1"], y, f"{i}.norm2")
        h = self._quantise(h)
        ab = self._times(h, f"{i}.gate_up")
        gated = torch.empty(h.shape[0], ff, dtype=_BF16)
        self.lib.swiglu_forward(_p(ab), _p(gated), h.shape[0], ff)
        gated = self._quantise(gated)
        layer |= {"x2": x, "h2": h, "rstd2": rstd, "ab": ab, "gated": gated}
        return x, self._times(gated, f"{i}.down")

    # --- backward ---

    def _norm_back(
        self,
        dx: torch.Tensor,
        dh: torch.Tensor,
        name: str,
        x: torch.Tensor,
        rstd: torch.Tensor,
    ) -> torch.Tensor:
        n, d = x.shape
        copy = torch.empty(n, d, dtype=_BF16)
        self.lib.norm_backward(
            _p(dx),
            _p(dh),
            _p(x),
            _p(rstd),
            _p(self.p[name]),
            _p(self.g[name]),
            _p(copy),
            n,
            d,
        )
        return copy

    def backward(self, saved: Saved, d_logits: torch.Tensor, shared: bool = True) -> None:
        """Adds gradients; without ``shared``, embedding, head and final norm are left alone."""
        config, lib = self.config, self.lib
        ff, d = config.d_ff, config.d_model
        x, h, rstd = saved["final"]
        dh = self._grads(d_logits.to(_BF16), h, "head", own=shared)
        dx = torch.zeros_like(x)
        flow = self._norm_back(dx, dh, "final_norm", x, rstd)
        for i in reversed(range(config.n_layers)):
            layer = saved.pop(i)
            d_gated = self._grads(flow, layer["gated"], f"{i}.down")
            d_ab = torch.empty(x.shape[0], 2 * ff, dtype=_BF16)
            lib.swiglu_backward(_p(layer["ab"]), _p(d_gated), _p(d_ab), x.shape[0], ff)
            dh = self._grads(d_ab, layer["h2"], f"{i}.gate_up")
            flow = self._norm_back(dx, dh, f"{i}.norm2", layer["x2"], layer["rstd2"])
            d_out = self._grads(flow, layer["read"], f"{i}.out")
            d_qkv = torch.empty(x.shape[0], 3 * d, dtype=_BF16)
            dh = self._mixer_backward(i, layer, d_out, d_qkv)
            flow = self._norm_back(dx, dh, f"{i}.norm1", layer["x1"], layer["rstd1"])
        if shared:
            tokens = saved["tokens"].reshape(-1).contiguous()
            lib.embedding_backward(_p(tokens), _p(dx), _p(self.g["embed"]), *dx.shape)
        else:
            self.g["final_norm"].zero_()

    def _mixer_backward(
        self, i: int, layer: Saved, d_out: torch.Tensor, d_qkv: torch.Tensor
    ) -> torch.Tensor:
        config, lib = self.config, self.lib
        d, heads = config.d_model, config.n_heads
        batch, time = layer["shape"]
        n = batch * time
        if config.is_attention(i):
            lib.attention_backward(
                _p(layer["qkv"]), batch, time, heads, ctypes.c_float(config.attn_logit_scale),
                _p(self._cos), _p(self._sin), _p(layer["out"]), _p(layer["sums"]), _p(d_out),
                _p(d_qkv),
            )  # fmt: skip
            return self._grads(d_qkv, layer["inner"], f"{i}.qkv")
        d_log_a, d_beta = torch.empty(n, heads), torch.empty(n, heads)
        lib.delta_backward(
            _p(layer["qkv"]), batch, time, heads, _p(layer["log_a"]), _p(layer["beta"]), 1,
            _p(d_out), _p(layer["states"]), _p(layer["us"]), _p(d_qkv), _p(d_log_a), _p(d_beta),
        )  # fmt: skip
        gates = torch.sigmoid(self.p[f"{i}.gates"])
        d_gates = torch.cat([d_log_a.sum(0), d_beta.sum(0) * gates[heads:]])
        self.g[f"{i}.gates"].add_(d_gates * (1 - gates))
        dh = self._grads(d_qkv, layer["inner"], f"{i}.qkv")
        result = torch.empty(n, d, dtype=_BF16)
        lib.conv_backward(
            _p(dh), _p(layer["h1"]), _p(self.p[f"{i}.conv"]), _p(result), _p(self.g[f"{i}.conv"]),
            batch, time, d,
        )  # fmt: skip
        return result
