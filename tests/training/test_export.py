"""What is written can be read back, and stands for the same numbers."""

import hashlib
import json
import math
import struct

import numpy as np
import torch

import reference
from config import ModelConfig
from export import (
    GOLDEN_TEXT,
    draft_tensors,
    packed_bytes,
    write_directory,
    write_spelw,
)
from helpers import parameter_count, small_pair
from model_directory import read_models, read_safetensors, unpack_ternary
from params import Parameters, draft_from_target, read_directory
from quantise import (
    fake_quantise,
    inference_values,
    int8_rows,
    pack_ternary,
    ternary_rows,
)


def test_ternary_codes_are_the_documents():
    q = torch.tensor([[0, 1, -1, 0, 1, 1, -1, -1]], dtype=torch.int8)
    packed = pack_ternary(q)
    assert packed.tolist() == [[0 | 1 << 2 | 3 << 4, 1 | 1 << 2 | 3 << 4 | 3 << 6]]
    assert np.array_equal(unpack_ternary(packed.numpy()), q.numpy())
    assert unpack_ternary(np.array([[0b10]], np.uint8)).tolist() == [[0, 0, 0, 0]]


def test_quantisers_reproduce_their_own_values():
    w = torch.randn(12, 64, generator=torch.Generator().manual_seed(1))
    for kind in ("qkv", "gate_up"):
        once = fake_quantise(kind, w)
        assert torch.allclose(fake_quantise(kind, once), once, atol=1e-6)
    q, scale = int8_rows(w)
    assert q.abs().max() == 127
    assert (q.float() * scale[:, None] - w).abs().max() <= scale.max() / 2 + 1e-6


def test_ternary_scale_is_the_least_squares_one():
    w = torch.randn(8, 256, generator=torch.Generator().manual_seed(2))
    q, scale = ternary_rows(w)
    best = (w * q).sum(1) / q.abs().sum(1)
    assert torch.allclose(scale, best, rtol=0.05)


def test_directory_round_trip(tmp_path):
    target, draft = small_pair()
    write_directory(tmp_path, "small", target, draft)
    again, again_draft = read_directory(tmp_path)
    assert torch.equal(again.flat, target.flat)
    values = inference_values(again_draft.config, again_draft.views)
    wanted = inference_values(draft.config, draft.views)
    for name, value in wanted.items():
        assert torch.allclose(values[name], value, atol=1e-6), name
    golden = read_safetensors(tmp_path / "golden.safetensors")
    assert bytes(golden["tokens"].tolist()) == GOLDEN_TEXT
    for name, model in zip(("target", "draft"), read_models(tmp_path), strict=True):
        logits = reference.logits(model.astype(np.float64), golden["tokens"])
        assert np.abs(logits - golden[f"{name}_logits"]).max() < 1e-3
    for line in (tmp_path / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split("  ")
        assert hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() == digest
    assert json.loads((tmp_path / "config.json").read_text())["draft"]["layers"] == [
        0,
        3,
        6,
        9,
    ]


def test_sizes_of_the_default_shape(tmp_path):
    target = Parameters(ModelConfig())
    target.initialise(1)
    draft = draft_from_target(target)
    assert packed_bytes(draft_tensors(draft)) == 3_602_432
    path = tmp_path / "spel-21m.bin"
    write_spelw(path, target, draft)
    assert path.stat().st_size == 113_762_508
    data = path.read_bytes()
    header = struct.unpack_from("<8s14I", data)
    assert header == (b"SPELW001", 384, 12, 6, 64, 1024, 128, 4096, 4, 4, 0, 3, 6, 9, 1)
    embed = np.frombuffer(data, "<f4", 128 * 384, 64)
    assert np.array_equal(embed, target["embed"].numpy().reshape(-1))
    footer = 64 + 4 * (parameter_count(target.config) + parameter_count(draft.config, True))
    assert data[footer : footer + 8] == b"SPELV001"
    assert struct.unpack_from("<I", data, footer + 8) == (16,)
    assert math.prod((2, 16, 128)) * 4 + 64 + 12 == len(data) - footer
