"""Averages the weights of checkpoints of one run, which removes noise a short decay leaves in.

python3 average.py --out AVERAGE.pt RUN/a.pt:0.4 RUN/b.pt:0.6
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="+", help="CHECKPOINT:WEIGHT")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    total, flat, tokens = 0.0, None, 0
    for part in args.parts:
        path, weight = part.rsplit(":", 1)
        state = torch.load(path, map_location="cpu")
        share = state["flat"].float() * float(weight)
        flat = share if flat is None else flat + share
        total, tokens = total + float(weight), max(tokens, state["tokens"])
    torch.save({"flat": flat / total, "tokens": tokens}, args.out)


if __name__ == "__main__":
    main()
