"""The scripts one after the other on a tiny model: train, resume, write text, distil, export."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from fused import KernelsUnavailable, kernels
from params import read_directory

TRAINING = Path(__file__).resolve().parents[2] / "engine" / "training"
STAGE = {
    "until": 1.0,
    "length": 128,
    "notebank_share": 0.5,
    "prose_weight": 1.0,
    "class_weights": [0.2, 0.04, 4.0],
    "notebank": {"keys": [1, 3]},
}
RATES = {
    "step_tokens": 512,
    "muon_lr": 0.02,
    "adam_lr": 0.003,
    "weight_decay": 0.0,
    "clip": 1.0,
    "warmup_steps": 1,
    "decay_from": 0.5,
    "final_factor": 0.1,
    "evaluate_every": 2048,
    "keep_every": 2048,
}
SHARES = {"rollouts": 0.5, "prose": 0.25, "notebank": 0.25, "random": 0.0}


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    root = tmp_path_factory.mktemp("training")
    (root / "data" / "text").mkdir(parents=True)
    rng = np.random.default_rng(1)
    words = ["river", "stone", "lamp", "winter", "quiet", "morning", "of", "the"]
    text = " ".join(rng.choice(words, 60_000))
    (root / "data" / "text" / "one.txt").write_text(text)
    (root / "data" / "words.txt").write_text("\n".join(words))
    config = {
        "name": "tiny",
        "seed": 1,
        "model": {"d_model": 128, "n_layers": 4, "d_ff": 256, "draft_layers": [0, 3]},
        "data": {"mix": {"one": 1.0}, "held_out": 0.1},
        "train": RATES | {"total_tokens": 4096, "stages": [STAGE]},
        "distill": RATES
        | {
            "total_tokens": 2048,
            "sharpen": 1.3,
            "ternary_from": 0.0,
            "ternary_until": 0.5,
            "stages": [STAGE | {"shares": SHARES}],
        },
    }
    (root / "tiny.json").write_text(json.dumps(config))
    return root


def script(work: Path, name: str, *arguments: object) -> str:
    command = [sys.executable, "-W", "ignore", TRAINING / name, "--config", work / "tiny.json"]
    command += ["--data", work / "data"] if name != "export.py" else []
    done = subprocess.run(
        [str(part) for part in (*command, *arguments)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def weights(path: Path) -> torch.Tensor:
    return torch.load(path)["flat"].float()


def test_pipeline(work):
    try:
        kernels()
    except KernelsUnavailable as error:
        pytest.skip(str(error))
    run = work / "run"
    script(work, "train.py", "--out", run)
    records = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    assert [r["tokens"] for r in records] == [2048, 4096]
    # Resuming from the middle: half of the budget first, then the whole.
    config = json.loads((work / "tiny.json").read_text())
    again = work / "again"
    again.mkdir()
    (again / "plan.json").write_text('{"total_tokens": 2048}')
    script(work, "train.py", "--out", again, "--minutes", 1)
    (again / "target.pt").unlink()
    assert "resuming at step 4" in script(work, "train.py", "--out", again)
    assert torch.load(again / "last.pt")["tokens"] == config["train"]["total_tokens"]
    rollouts = run / "rollouts.pt"
    script(
        work, "rollouts.py", "--target", run / "target.pt", "--out", rollouts, "--tokens", 1,
        "--length", 192, "--rows", 32,
    )  # fmt: skip
    assert torch.load(rollouts).shape == (32, 192)
    target = ("--target", run / "target.pt")
    script(work, "distill.py", *target, "--rollouts", rollouts, "--out", run)
    script(work, "export.py", *target, "--draft", run / "draft.pt", "--out", work / "model")
    exported, draft = read_directory(work / "model")
    assert torch.equal(exported.flat, weights(run / "target.pt"))
    assert draft.config.n_layers == 2 and draft.config.is_attention(1)


def test_unknown_cpu_gets_a_clear_message(tmp_path):
    text = (TRAINING / "kernels" / "build.sh").read_text()
    stand_in = tmp_path / "build.sh"
    stand_in.write_text(text.replace("/proc/cpuinfo", "/dev/null"))
    done = subprocess.run(["sh", str(stand_in)], capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert "AVX512_BF16" in done.stderr and "torch" in done.stderr
