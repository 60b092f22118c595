"""Text written by the target itself, on which its draft will be judged.

    python3 rollouts.py --target RUN/target.pt --out RUN/rollouts.pt --tokens 400000

A draft is accepted or not on the target's own text, greedy or sampled, so part of what it is
distilled on is such text. Prompts are prose, NoteBank sequences cut after a question, and a few
random characters. The result is a table of sequences of one length.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

import numpy as np
import torch

from backend import decoders
from config import ModelConfig
from corpus import Corpus
from export import load_weights
from fused import FusedDecoder
from notebank_data import NoteBankGenerator
from params import Parameters
from progress import Progress, break_silence
from torch_model import TorchDecoder

# One for every eighth of the rows.
_TEMPERATURES = (0.0, 0.0, 0.0, 0.7, 0.8, 0.8, 1.0, 1.0)


def prompts(corpus: Corpus, rng: np.random.Generator, rows: int, length: int) -> np.ndarray:
    """Half prose, half NoteBank text that ends in a question, most often the paper's prompt."""
    result = corpus.rows(rng, rows, length)
    generator = NoteBankGenerator(corpus.words, corpus.prose_strings(), int(rng.integers(1 << 62)))
    kinds = ("scatter", "document", "document", "overwrite", "replay", "wrong_note")
    for row in result[rows // 2 :]:
        kind = generator.rng.choice(kinds)
        width = generator.rng.choice((2, 2, 3))
        if kind == "document":
            key = f"{generator.rng.randrange(10**width):0{width}d}"
            text = generator.document_prompt(key, generator.value())
            text = text[len(text) - min(length, len(text)) :].rjust(length)
        else:
            keys = generator.rng.randint(1, max(1, min(8, length // 32)))
            separator = generator.rng.choice((" ", "; "))
            text, _ = generator.probe(length, keys, kind, width, separator)
        row[:] = np.frombuffer(text.encode("ascii", "replace"), np.uint8)
    rng.shuffle(result)  # every temperature gets every kind
    return result


def write_texts(
    decoder: FusedDecoder | TorchDecoder,
    corpus: Corpus,
    seed: int,
    rows: int,
    prompt_length: int,
    length: int,
) -> torch.Tensor:
    """``rows`` sequences of ``length`` tokens: a prompt and what the target makes of it."""
    rng = np.random.default_rng([seed, prompt_length])
    generator = torch.Generator().manual_seed(seed)
    start = torch.from_numpy(prompts(corpus, rng, rows, prompt_length).astype(np.int64))
    heat = torch.tensor(_TEMPERATURES).repeat_interleave(rows // len(_TEMPERATURES))[:, None]
    progress = Progress("text by the target", 0, rows * length)
    tokens = torch.empty(rows, length, dtype=torch.long)
    tokens[:, :prompt_length] = start
    for t in range(length - 1):
        logits = decoder.step(tokens[:, t])
        progress.at(rows * (t + 1))
        if t + 1 < prompt_length:
            continue
        noise = -torch.log(-torch.log(torch.rand(logits.shape, generator=generator) + 1e-9))
        tokens[:, t + 1] = (logits + heat * noise).argmax(1)
    return tokens.to(torch.uint8)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    here = Path(__file__).parent
    parser.add_argument("--config", type=Path, default=here / "configs" / "spel-21m.json")
    parser.add_argument("--data", type=Path, default=here / "work" / "data")
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tokens", type=int, default=400_000, help="characters to generate")
    parser.add_argument("--minutes", type=float, help="fewer, if this is over before")
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--rows", type=int, default=256, help="at once, a multiple of 32")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    break_silence()
    config = json.loads(args.config.read_text())
    corpus = Corpus(args.data, config["data"]["mix"], config["data"]["held_out"])
    parameters = Parameters(ModelConfig.load(args.config))
    load_weights(args.target, parameters)
    make_decoder = decoders(parameters)
    tables, written, seed, start = [], 0, config["seed"], time.monotonic()
    while written < args.tokens:
        prompt_length = (128, 384, 256)[len(tables) % 3]
        seed += 1
        decoder = make_decoder(args.rows, args.length)
        tables.append(write_texts(decoder, corpus, seed, args.rows, prompt_length, args.length))
        written += args.rows * (args.length - prompt_length)
        torch.save(torch.cat(tables), args.out)
        seconds = time.monotonic() - start
        print(f"{written} tokens written, {written / seconds:.0f} a second", flush=True)
        if args.minutes is not None and seconds > 60 * args.minutes:
            break


if __name__ == "__main__":
    main()
