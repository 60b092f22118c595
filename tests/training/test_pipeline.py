"""The scripts one after the other on a tiny model: train, resume, write text, distil, export."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from fused import KernelsUnavailable, kernels
from helpers import tiny_work
from params import read_directory

TRAINING = Path(__file__).resolve().parents[2] / "engine" / "training"


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    return tiny_work(tmp_path_factory.mktemp("training"))


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
