"""Writes small/tokenizer.json, a byte-level BPE tokenizer of this repository's own text, and
small/vectors.jsonl: strings, and what Hugging Face's library makes of them.

    python make_tokenizer.py        (needs tokenizers)
"""

from __future__ import annotations

import json
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
TEXTS = ("README.md", "engine/README.md", "memory/README.md", "proto/README.md")
VOCABULARY = 600
PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}"
    r"| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
ADDED = (
    ("<|endoftext|>", True),
    ("<|im_start|>", True),
    ("<|im_end|>", True),
    ("<think>", False),
    ("</think>", False),
)
STRINGS = (
    "",
    " ",
    "a",
    "The server answers over HTTP.",
    "It's what THEY'D've said, isn't it?",
    "two  spaces, three   and\ttabs\t\tand\n\nlines\r\n",
    "trailing blanks   ",
    "   leading",
    "1234567890 3.14",
    "naïve café e\u0301 \u1e9b\u0323",
    "Ελληνικά, русский, 中文, 日本語, हिन्दी, العربية",
    "👩‍👩‍👧‍👦 🏳️‍🌈 \U0001f9d1\U0001f3fd",
    "\u00a0\u2003\u3000|\u200b|\ufeff",
    "<|im_start|>user\nHello<|im_end|>\n<think>\nwell</think>",
    "<|im_start|",
    "<think><think></think>",
    "<|im_<|im_end|>end|>",
    "for (int i = 0; i < n; ++i) {\n    sum += x[i];\n}\n",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "\x00\x01\x7f",
    "!?!?...---===///",
)


def main() -> None:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PATTERN), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([(ROOT / name).read_text() for name in TEXTS], trainer)
    from tokenizers import AddedToken

    for content, special in ADDED:
        token = AddedToken(content, special=special, normalized=False)
        (tokenizer.add_special_tokens if special else tokenizer.add_tokens)([token])
    folder = HERE / "small"
    folder.mkdir(exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    with (folder / "vectors.jsonl").open("w") as out:
        for text in STRINGS:
            ids = tokenizer.encode(text, add_special_tokens=False).ids
            decoded = tokenizer.decode(ids, skip_special_tokens=False)
            out.write(json.dumps({"text": text, "ids": ids, "decoded": decoded}) + "\n")


if __name__ == "__main__":
    main()
