"""The reference against the shipped model's golden logits, and its parts against their definitions.

Needs NumPy alone.
"""

from __future__ import annotations

import sys
import unittest
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "engine" / "training"))

import reference
from model_directory import read_models, read_safetensors

MODEL = ROOT / "engine" / "models" / "spel-21m"


class GoldenTest(unittest.TestCase):
    """In float64, whose result is the same on every machine to far below these bounds."""

    @classmethod
    def setUpClass(cls):
        cls.golden = read_safetensors(MODEL / "golden.safetensors")
        cls.target, cls.draft = read_models(MODEL)

    def differences(self, model, name):
        """The largest of every token."""
        logits = reference.logits(model, self.golden["tokens"])
        return np.abs(logits - self.golden[name]).max(1)

    def test_target(self):
        for dtype in (np.float64, np.float32):
            differences = self.differences(self.target.astype(dtype), "target_logits")
            self.assertLess(differences.max(), 1e-4, dtype)

    def test_draft(self):
        differences = self.differences(self.draft.astype(np.float64), "draft_logits")
        self.assertLess(differences[:13].max(), 1e-4)
        # In f32 an activation of token 13 lands on the other side of a tie between two int8 levels.
        self.assertLess(differences.max(), 0.1)

    def test_a_token_changes_nothing_before_it(self):
        tokens = self.golden["tokens"]
        other = tokens.copy()
        other[9] += 1
        model = self.target.astype(np.float64)
        changed = np.abs(reference.logits(model, tokens) - reference.logits(model, other)).max(1)
        self.assertEqual(changed[:9].max(), 0.0)
        self.assertGreater(changed[9:].min(), 0.0)


class PartsTest(unittest.TestCase):
    def setUp(self):
        self.rng = np.random.default_rng(1)

    def heads(self, time, heads=2, dim=8):
        return (self.rng.standard_normal((time, heads, dim)) for _ in range(3))

    def test_delta_rule_recalls_what_was_written_under_a_key(self):
        _, k, v = self.heads(3, dim=64)
        k = np.broadcast_to(np.eye(64)[:3, None], k.shape)
        kept = np.ones(2)
        out = reference.delta_rule(k[[0, 1, 0]], k[[0, 1, 1]], v, kept, kept)
        np.testing.assert_allclose(out * 8, v[[0, 1, 0]])  # the rewritten key 1 leaves key 0 alone

    def test_delta_rule_decays_a_value_by_a_step(self):
        _, k, v = self.heads(2, dim=64)
        k = np.broadcast_to(np.eye(64)[:2, None], k.shape)
        decay = np.array([0.5, 0.25])
        out = reference.delta_rule(k[[0, 0]], k, v, decay, np.ones(2))
        np.testing.assert_allclose(out[1], out[0] * decay[:, None])

    def test_attention_to_one_position_is_its_value(self):
        q, k, v = self.heads(1)
        np.testing.assert_allclose(reference.attention(q, k, v, 16.0, 1e4), v)

    def test_attention_sees_distances_not_positions(self):
        q, k, _ = self.heads(5)
        scores = []
        for shift in (0, 3):
            pad = np.zeros((shift, 2, 8))
            turned = [reference.rotate(np.concatenate([pad, x]), 1e4)[shift:] for x in (q, k)]
            scores.append(np.einsum("thd,shd->hts", *turned))
        np.testing.assert_allclose(*scores)

    def test_convolution_reads_the_oldest_tap_first(self):
        x = np.arange(1.0, 6.0)[:, None]
        for taps in ([100.0, 10.0, 1.0], [1000.0, 100.0, 10.0, 1.0]):
            out = reference.short_convolution(x, np.array([taps]))[:, 0]
            wanted = [sum(taps[-1 - j] * x[t - j, 0] for j in range(min(t + 1, len(taps))))
                      for t in range(5)]  # fmt: skip
            np.testing.assert_allclose(out, wanted)

    def test_int8_levels_are_127_of_the_largest_value(self):
        x = self.rng.standard_normal((4, 16))
        rounded = reference.int8_rows(x)
        levels = rounded / np.abs(x).max(1, keepdims=True) * 127
        np.testing.assert_allclose(levels, np.round(levels), atol=1e-9)
        self.assertLessEqual(np.abs(rounded - x).max(), np.abs(x).max() / 254 + 1e-12)


if __name__ == "__main__":
    unittest.main()
