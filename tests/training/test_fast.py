"""The fast forms against the reference: PyTorch in float64, the decoders, the fused kernels."""

from __future__ import annotations

import ctypes
import sys
import unittest
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT / "engine" / "training"), str(HERE)]

import torch

import reference
from config import HEAD_DIM, ROPE_THETA
from export import reference_model
from forward import forward
from fused import FusedDecoder, FusedModel, KernelsUnavailable, kernels
from helpers import small_model, small_pair
from params import read_directory, rope_tables
from quantise import inference_values
from torch_model import TorchDecoder, TorchPass

MODEL = ROOT / "engine" / "models" / "spel-21m"
BF16 = torch.bfloat16


def text(rows: int, time: int) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(1).integers(0, 128, (rows, time)))


def reference_logits(parameters, tokens: torch.Tensor) -> np.ndarray:
    """[batch, time, vocab] in float64."""
    model = reference_model(parameters).astype(np.float64)
    return np.stack([reference.logits(model, row) for row in tokens.numpy()])


def parallel_logits(parameters, tokens: torch.Tensor) -> np.ndarray:
    values = inference_values(parameters.config, parameters.views)
    weights = {name: w.double() for name, w in values.items()}
    tables = rope_tables(tokens.shape[1], ROPE_THETA, HEAD_DIM)
    with torch.no_grad():
        return forward(TorchPass(parameters.config, weights, tables), tokens).numpy()


def distance(got: np.ndarray, wanted: np.ndarray) -> float:
    return float(np.linalg.norm(got - wanted) / np.linalg.norm(wanted))


class TorchTest(unittest.TestCase):
    # The tables of the rotation are f32 there, hence 1e-6 and not 1e-12.

    def test_target_is_the_reference_across_chunks(self):
        p, tokens = small_model(), text(2, 150)
        self.assertLess(distance(parallel_logits(p, tokens), reference_logits(p, tokens)), 1e-6)

    def test_draft_is_the_reference_across_chunks(self):
        _, p = small_pair()
        tokens = text(1, 100)
        self.assertLess(distance(parallel_logits(p, tokens), reference_logits(p, tokens)), 1e-6)

    def test_the_shipped_pair_is_the_reference(self):
        for p in read_directory(MODEL):
            tokens = text(1, 70)
            self.assertLess(distance(parallel_logits(p, tokens), reference_logits(p, tokens)), 1e-6)

    def test_decoder_is_the_reference_however_the_text_is_fed(self):
        p, tokens = small_model(), text(2, 90)
        wanted = reference_logits(p, tokens)
        decoder = TorchDecoder(p, 2, 90)
        self.assertLess(distance(decoder.feed(tokens[:, :70]).numpy(), wanted[:, 69]), 1e-5)
        for t in range(70, 90):
            logits = decoder.step(tokens[:, t]).numpy()
            self.assertLess(distance(logits, wanted[:, t]), 1e-5)


class FusedTest(unittest.TestCase):
    """Products in bf16, of eight bits: errors of its size, and of the sums of some of them."""

    @classmethod
    def setUpClass(cls):
        try:
            cls.lib = kernels()
        except KernelsUnavailable as error:
            raise unittest.SkipTest(str(error)) from error

    def setUp(self):
        self.rng = np.random.default_rng(2)

    def random(self, *shape: int) -> torch.Tensor:
        return torch.from_numpy(self.rng.standard_normal(shape)).to(BF16)

    def call(self, name: str, *arguments: object) -> None:
        self.lib[name](
            *(ctypes.c_void_p(a.data_ptr()) if torch.is_tensor(a)
              else ctypes.c_float(a) if isinstance(a, float) else a for a in arguments)
        )  # fmt: skip

    def assert_near(self, got: torch.Tensor, wanted: np.ndarray, bound: float = 0.01) -> None:
        self.assertLess(distance(got.double().numpy().reshape(wanted.shape), wanted), bound)

    def heads(self, qkv: torch.Tensor, heads: int) -> tuple[np.ndarray, ...]:
        """q, k, v of one sequence, the first two of unit length."""
        q, k, v = qkv.double().numpy().reshape(len(qkv), 3, heads, HEAD_DIM).swapaxes(0, 1)
        return reference.unit(q, 1e-6), reference.unit(k, 1e-6), v

    def test_model_and_decoder(self):
        p, tokens = small_model(), text(32, 64)
        model = FusedModel(p)
        wanted = reference_logits(p, tokens[:2])
        logits, _ = model.forward(tokens, keep=False)
        self.assert_near(logits.view(32, 64, -1)[:2], wanted, 0.02)
        decoder = FusedDecoder(model, 32, 64)
        steps = torch.stack([decoder.step(tokens[:, t]) for t in range(64)], 1)
        self.assert_near(steps[:2], wanted, 0.02)

    def test_products(self):
        rows, cols, m = 96, 160, 64
        w, x, dy = self.random(rows, cols), self.random(m, cols), self.random(m, rows)
        packed, y, dx = torch.empty_like(w), torch.empty_like(dy), torch.empty_like(x)
        self.call("pack_forward", w, packed, rows, cols)
        self.call("gemm", x, packed, y, m, cols, rows)
        self.assert_near(y, (x.double() @ w.double().t()).numpy(), 0.005)
        self.call("pack_backward", w, packed, rows, cols)
        self.call("gemm", dy, packed, dx, m, rows, cols)
        self.assert_near(dx, (dy.double() @ w.double()).numpy(), 0.005)
        dw = torch.ones(rows, cols)
        self.call("gemm_weight_grad", dy, x, dw, m, rows, cols)
        self.assert_near(dw, (1 + dy.double().t() @ x.double()).numpy(), 1e-5)

    def test_elementwise(self):
        rows, width = 64, 128
        x, y = torch.randn(rows, width), self.random(rows, width)
        total, h = torch.empty_like(x), torch.empty_like(y)
        weight, rstd = torch.rand(width) + 0.5, torch.empty(rows)
        self.call("add_norm", x, y, total, weight, h, rstd, rows, width)
        added = x.double().numpy() + y.double().numpy()
        self.assert_near(total, added, 1e-6)
        self.assert_near(h, reference.rms_norm(added, weight.double().numpy(), 1e-5), 0.005)
        taps, out = torch.randn(3, width), torch.empty_like(y)
        self.call("conv_forward", y, taps, out, 1, rows, width)
        wanted = reference.short_convolution(y.double().numpy(), taps.double().numpy().T)
        self.assert_near(out, wanted, 0.005)
        gated = torch.empty(rows, width // 2, dtype=BF16)
        self.call("swiglu_forward", y, gated, rows, width // 2)
        gate, up = np.split(y.double().numpy(), 2, 1)
        self.assert_near(gated, gate * reference.sigmoid(gate) * up, 0.005)
        rounded = y.clone()
        self.call("fake_quantise_rows", rounded, rows, width)
        self.assert_near(rounded, reference.int8_rows(y.double().numpy()), 0.005)

    def test_delta_rule_in_chunks_and_step_by_step(self):
        time, heads = 128, 2
        qkv, gates = (
            self.random(time, 3 * heads * HEAD_DIM),
            torch.tensor([[0.9, 0.99], [0.8, 0.3]]),
        )
        wanted = reference.delta_rule(*self.heads(qkv, heads), *gates.double().numpy())
        out = torch.empty(time, heads * HEAD_DIM, dtype=BF16)
        states = torch.empty(heads * time // 64, HEAD_DIM**2)
        us = torch.empty_like(states)
        log_a, beta = (g.expand(time, heads).contiguous() for g in (gates[0].log(), gates[1]))
        self.call("delta_forward", qkv, 1, time, heads, log_a, beta, 1, out, states, us)
        self.assert_near(out, wanted)
        state = torch.zeros(heads, HEAD_DIM, HEAD_DIM)
        for t in range(time):
            self.call("delta_step", qkv[t], 1, heads, gates[0], gates[1], state, out[t])
        self.assert_near(out, wanted)

    def test_attention_over_a_sequence_and_step_by_step(self):
        time, heads, scale = 128, 2, 16.0
        qkv, tables = self.random(time, 3 * heads * HEAD_DIM), rope_tables(time, 1e4, HEAD_DIM)
        wanted = reference.attention(*self.heads(qkv, heads), scale, 1e4)
        out, sums = torch.empty(time, heads * HEAD_DIM, dtype=BF16), torch.empty(heads, time)
        self.call("attention_forward", qkv, 1, time, heads, scale, *tables, out, sums)
        self.assert_near(out, wanted, 0.02)
        cache = [torch.empty(heads, time, HEAD_DIM, dtype=BF16) for _ in range(2)]
        for t in range(time):
            angle = (table[t] for table in tables)
            self.call("attention_step", qkv[t], 1, heads, scale, *angle, *cache, time, t, out[t])
        self.assert_near(out, wanted, 0.02)


if __name__ == "__main__":
    unittest.main()
