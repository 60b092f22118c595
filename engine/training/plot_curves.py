"""Training curves as one PNG: ``python3 plot_curves.py --run RUN --out curves.png``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def read(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    target, draft = read(args.run / "log.jsonl"), read(args.run / "draft-log.jsonl")
    figure, (prose, recall, agreement) = plt.subplots(1, 3, figsize=(12, 3.2), layout="constrained")
    millions = [r["tokens"] / 1e6 for r in target]
    prose.plot(millions, [r["held_out"] for r in target], label="held out")
    prose.plot(millions, [r["prose"] for r in target], alpha=0.5, label="training")
    prose.set(title="target, prose", xlabel="million tokens", ylabel="nats per character")
    prose.legend()
    for key, label in (
        ("k8", "8 keys, trained length"),
        ("w3", "three digits"),
        ("over", "overwritten"),
        ("wrong", "wrong note"),
    ):
        recall.plot(millions, [r["recall"][key] for r in target], label=label)
    recall.set(title="target, recall", xlabel="million tokens", ylabel="exact answers")
    recall.legend()
    millions = [r["tokens"] / 1e6 for r in draft]
    for key, label in (("prose", "prose"), ("recall", "recall text"), ("answers", "answers")):
        agreement.plot(millions, [r[key] for r in draft], label=label)
    agreement.set(title="draft", xlabel="million tokens", ylabel="same first choice as target")
    agreement.legend()
    figure.savefig(args.out, dpi=80)


if __name__ == "__main__":
    main()
