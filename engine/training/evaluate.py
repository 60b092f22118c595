"""All figures of the model card, as JSON: ``python3 evaluate.py --target T --draft D --out F``.

Prose and recall are teacher-forced with the training forward pass on the bf16-rounded weights;
acceptance and samples are generated token by token in f32.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

import numpy as np
import torch

from acceptance import choose, measure
from backend import make_model
from config import ModelConfig
from corpus import Corpus
from export import load_pair, load_weights
from loss import cross_entropy
from notebank_data import NoteBankGenerator
from params import Parameters, read_directory
from probes import exact_share, recall_rows
from progress import break_silence, note
from torch_model import TorchDecoder

# name: characters, keys, kind, digits of the key, sequences
RECALL = {
    "512 characters, 8 keys": (512, 8, "scatter", 2, 192),
    "1024 characters, 8 keys": (1024, 8, "scatter", 2, 128),
    "2048 characters, 8 keys": (2048, 8, "scatter", 2, 64),
    "4096 characters, 16 keys": (4096, 16, "scatter", 2, 40),
    "1024 characters, 8 keys of three digits": (1024, 8, "scatter", 3, 64),
    "2048 characters, 8 keys of three digits": (2048, 8, "scatter", 3, 48),
    "overwritten, 1024 characters, 4 keys": (1024, 4, "overwrite", 2, 96),
    "overwritten, 2048 characters, 6 keys": (2048, 6, "overwrite", 2, 48),
    "replay, right note, 512 characters": (512, 6, "replay", 2, 96),
    "replay, right note, 2048 characters": (2048, 8, "replay", 2, 48),
    "replay, wrong note, 512 characters": (512, 6, "wrong_note", 2, 96),
    "replay, wrong note, 2048 characters": (2048, 8, "wrong_note", 2, 48),
}
_SAMPLE_PROMPTS = (
    "It was a fine morning, and ",
    "And the LORD said unto ",
    "The country's economy ",
    "hacker: ",
)


def prose_losses(model, corpus: Corpus, rows: int, length: int) -> dict[str, float]:
    """Nats per character on held-out text: the mix, and every source alone."""
    result = {}
    for source in (None, *corpus.names):
        note(f"prose: {source or 'the mix'}")
        rng = np.random.default_rng(2024)
        count = rows if source is None else max(8, rows // 4)
        losses = []
        for _ in range(-(-count // 8)):
            text = corpus.rows(rng, 8, length + 1, True, source).astype(np.int64)
            text = torch.from_numpy(text)
            logits, _ = model.forward(text[:, :-1].contiguous(), keep=False)
            losses.append(cross_entropy(logits.cpu(), text[:, 1:])[2].mean().item())
        result[source or "mix"] = round(float(np.mean(losses)), 4)
    return result


def recall_shares(model, corpus: Corpus, scale: float) -> dict[str, dict]:
    result = {}
    for name, (length, keys, kind, width, count) in RECALL.items():
        count = max(4, round(count * scale))
        note(f"recall: {name}, {count} texts")
        rows = recall_rows(corpus, count, length, keys, kind, width, seed=2024)
        batch = max(1, 8192 // length)
        result[name] = {
            "exact": round(exact_share(model, rows, batch), 4),
            "sequences": count,
        }
    return result


def _as_tokens(texts: list[str]) -> torch.Tensor:
    return torch.tensor([list(t.encode("ascii")) for t in texts], dtype=torch.long)


def acceptance_figures(
    target: Parameters, draft: Parameters, corpus: Corpus, prompts: int
) -> dict[str, dict]:
    """Greedy and sampled acceptance at K = 4 (and 8) over 64 generated characters."""
    rng = np.random.default_rng(2024)
    generator = NoteBankGenerator(corpus.words, corpus.prose_strings(True), 2024)
    documents = [generator.document_prompt()]
    documents += [
        generator.document_prompt(f"{generator.rng.randrange(100):02d}", generator.value())
        for _ in range(max(0, prompts // 2 - 1))
    ]
    recall = [generator.probe(508, 4)[0] for _ in range(prompts // 2)]
    prose = torch.from_numpy(corpus.rows(rng, prompts, 256, True).astype(np.int64))
    noise = torch.from_numpy(rng.integers(32, 127, (prompts // 2, 256)))
    jobs = {
        "document prompt, greedy, K=4": (_as_tokens(documents), 4, 0.0),
        "recall prompt, greedy, K=4": (_as_tokens(recall), 4, 0.0),
        "held-out prose, greedy, K=4": (prose, 4, 0.0),
        "held-out prose, greedy, K=8": (prose, 8, 0.0),
        "held-out prose, temperature 0.8, K=4": (prose, 4, 0.8),
        "random characters, greedy, K=4": (noise, 4, 0.0),
    }
    result = {}
    for name, (tokens, k, temperature) in jobs.items():
        note(f"acceptance: {name}, {len(tokens)} prompts")
        found = measure(target, draft, tokens, 64, k, temperature)
        result[name] = found.summary() | {
            "prompts": len(tokens),
            "example": found.texts[0],
        }
    return result


def samples(target: Parameters, length: int, temperature: float) -> list[str]:
    texts = []
    for n, prompt in enumerate(_SAMPLE_PROMPTS):
        note(f"sample: {prompt!r}")
        decoder = TorchDecoder(target, 1, len(prompt) + length)
        logits = decoder.feed(_as_tokens([prompt]))
        out = []
        for _ in range(length):
            token = choose(logits, temperature, n, decoder.at)
            out.append(token.item())
            logits = decoder.step(token)
        texts.append(prompt + bytes(out).decode("ascii", "replace"))
    return texts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    here = Path(__file__).parent
    parser.add_argument("--config", type=Path, default=here / "configs" / "spel-21m.json")
    parser.add_argument("--data", type=Path, default=here / "work" / "data")
    parser.add_argument("--model", type=Path, help="an exported model directory")
    parser.add_argument("--target", type=Path, help="a checkpoint, instead of --model")
    parser.add_argument("--draft", type=Path, help="a draft checkpoint to go with --target")
    parser.add_argument("--out", type=Path, help="where the figures go (JSON)")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the test prompts used")
    parser.add_argument("--backend", choices=("auto", "fused", "torch"), default="auto")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    break_silence()
    config = json.loads(args.config.read_text())
    corpus = Corpus(args.data, config["data"]["mix"], config["data"]["held_out"])
    draft = None
    if args.target is None:
        target, draft = read_directory(args.model or here.parent / "models" / config["name"])
    elif args.draft is None:
        target = Parameters(ModelConfig.load(args.config))
        load_weights(args.target, target)
        target.round_to_bf16()
    else:
        target, draft = load_pair(ModelConfig.load(args.config), args.target, args.draft)
    start = time.monotonic()
    note(
        "four parts: prose, recall, acceptance of the draft, samples; --scale 0.1 is a tenth of it"
    )
    model = make_model(target, args.backend)
    figures: dict = {}

    def report(part: str, value: object) -> None:
        figures[part] = value
        print(json.dumps({part: value}, indent=2), flush=True)

    report(
        "held_out_nats_per_char",
        prose_losses(model, corpus, round(64 * args.scale), 1024),
    )
    report("recall", recall_shares(model, corpus, args.scale))
    if draft is not None:
        count = max(4, round(32 * args.scale))
        report("acceptance", acceptance_figures(target, draft, corpus, count))
    report("samples_temperature_0.8", samples(target, 240, 0.8))
    figures["seconds"] = round(time.monotonic() - start)
    if args.out:
        args.out.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
