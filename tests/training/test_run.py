"""A run that was stopped goes on to the same bits, from the files that runs have always written."""

from __future__ import annotations

import contextlib
import io
import json
import signal
import sys
import tempfile
import unittest
from argparse import Namespace
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "engine" / "training"), str(HERE)]

import torch

from distill import DraftRun
from helpers import tiny_work
from train import TargetRun


def tensors(value: object, name: str = "") -> dict[str, object]:
    """A checkpoint's leaves."""
    if not isinstance(value, dict):
        return {name: value}
    return {k: v for key, part in value.items() for k, v in tensors(part, f"{name}/{key}").items()}


class ResumeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.work = tiny_work(Path(folder.name))
        cls.addClassCleanup(torch.set_num_threads, torch.get_num_threads())
        torch.set_num_threads(1)
        for number in (signal.SIGTERM, signal.SIGINT):
            cls.addClassCleanup(signal.signal, number, signal.getsignal(number))
        cls.go(TargetRun, "whole")

    @classmethod
    def go(cls, kind: type, folder: str, stop_at: int | None = None) -> str:
        """Runs to the end, or as if a signal had come at that step; returns what it prints."""

        class Stopped(kind):
            def gradient(self, stage, step):
                if step + 1 == stop_at:
                    signal.raise_signal(signal.SIGTERM)
                return super().gradient(stage, step)

        target = cls.work / "whole" / "target.pt"
        args = Namespace(
            config=cls.work / "tiny.json", data=cls.work / "data", out=cls.work / folder, start=None,
            backend="auto", target=target, rollouts=None, tokens=None,
        )  # fmt: skip
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
            Stopped(args).train()
        return printed.getvalue()

    def assert_same(self, first: Path, second: Path) -> None:
        one, two = (tensors(torch.load(path)) for path in (first, second))
        self.assertEqual(one.keys(), two.keys())
        for name, value in one.items():
            same = torch.equal(value, two[name]) if torch.is_tensor(value) else value == two[name]
            self.assertTrue(same, name)

    def records(self, path: Path) -> list[dict]:
        return [json.loads(line) for line in path.read_text().splitlines()]

    def test_target(self):
        self.go(TargetRun, "stopped", stop_at=3)
        self.assertFalse((self.work / "stopped" / "target.pt").exists())
        self.assertIn("resuming at step 3", self.go(TargetRun, "stopped"))
        for name in ("last.pt", "target.pt"):
            self.assert_same(self.work / "whole" / name, self.work / "stopped" / name)

    def test_draft(self):
        self.go(DraftRun, "draft")
        self.go(DraftRun, "stopped-draft", stop_at=2)
        self.assertIn("resuming at step 2", self.go(DraftRun, "stopped-draft"))
        for name in ("draft-last.pt", "draft.pt"):
            self.assert_same(self.work / "draft" / name, self.work / "stopped-draft" / name)

    def test_files_of_a_run(self):
        whole = self.work / "whole"
        names = {"last.pt", "log.jsonl", "target-000.0M.pt", "target.pt"}
        self.assertEqual({path.name for path in whole.iterdir()}, names)
        state = tensors(torch.load(whole / "last.pt"))
        optimiser = {"/optimiser/momentum", "/optimiser/second", "/optimiser/count"}
        self.assertEqual(set(state), {"/flat", "/tokens", "/step"} | optimiser)
        self.assertEqual(
            (state["/tokens"], state["/step"], state["/optimiser/count"]), (4096, 8, 8)
        )
        records = self.records(whole / "log.jsonl")
        self.assertEqual([record["tokens"] for record in records], [2048, 4096])
        self.assertEqual(
            " ".join(records[0]),
            "step tokens length rate lr grad_norm prose answers held_out recall",
        )


if __name__ == "__main__":
    unittest.main()
