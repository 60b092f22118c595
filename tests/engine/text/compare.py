"""Random strings, encoded by this program and by Hugging Face's library: the ids have to be equal.

    python compare.py ENCODE_LINES TOKENIZER.JSON [--strings N] [--seed S]

Needs tokenizers. Only code points whose properties all the libraries agree on are drawn: those that
Python's own Unicode version has assigned and, of combining marks, those that Unicode 3.2 had (the
other library orders later ones as if they combined with nothing).
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time
import unicodedata

from tokenizers import Tokenizer

RANGES = (
    (0x20, 0x7E),
    (0xA0, 0x24F),
    (0x300, 0x36F),
    (0x370, 0x52F),
    (0x590, 0x6FF),
    (0x900, 0xDFF),
    (0xE00, 0x11FF),
    (0x1E00, 0x206F),
    (0x2070, 0x2BFF),
    (0x3000, 0x30FF),
    (0x4E00, 0x9FFF),
    (0xAC00, 0xD7A3),
    (0xF900, 0xFAFF),
    (0x10000, 0x103FF),
    (0x1F300, 0x1FAFF),
    (0x20000, 0x2A6DF),
)
BLANKS = (
    "\x0b",
    "\x0c",
    "\x1c",
    "\x85",
    "\u180e",
    "\u2003",
    "\ufeff",
    " ",
    "  ",
    "\n",
    "\r\n",
    "\t",
    "\n\n",
    " \n",
    "\u00a0",
    "\u3000",
    "\u2028",
    "   ",
)
PIECES = ("'s", "'RE", "'ll", "1", "42", "the", " The", "é", "e\u0301", "<|im_end|>", "<think>")
PIECES += ("</think>", "<|im_", "ſ", "İ", "ǆ", "\u200d", "\ufe0f", "(", "...", "!", "=\n", "_", "-")


def is_known(found: str) -> bool:
    if unicodedata.category(found) in ("Cn", "Cs", "Co"):
        return False
    return unicodedata.combining(found) == unicodedata.ucd_3_2_0.combining(found)


def character(rng: random.Random) -> str:
    while True:
        low, high = rng.choice(RANGES)
        found = chr(rng.randint(low, high))
        if is_known(found):
            return found


def string(rng: random.Random) -> str:
    kind = rng.random()
    parts: list[str] = []
    script = rng.choice(RANGES)
    for _ in range(rng.randint(1, 40)):
        draw = rng.random()
        if draw < 0.2:
            parts.append(rng.choice(BLANKS))
        elif draw < 0.4:
            parts.append(rng.choice(PIECES))
        elif kind < 0.5:
            found = chr(rng.randint(*script))
            parts.append(found if is_known(found) else "x")
        else:
            parts.append(character(rng))
    return "".join(parts)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("program")
    parser.add_argument("tokenizer")
    parser.add_argument("--strings", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    texts = [string(rng) for _ in range(options.strings)]
    size = sum(len(text.encode()) for text in texts)
    theirs = Tokenizer.from_file(options.tokenizer)
    began = time.monotonic()
    expected = [theirs.encode(text, add_special_tokens=False).ids for text in texts]
    their_seconds = time.monotonic() - began
    lines = "".join(json.dumps(text) + "\n" for text in texts)
    empty = "".join('""\n' for _ in texts)
    seconds = []
    for given in (empty, lines):
        began = time.monotonic()
        run = subprocess.run(
            [options.program, options.tokenizer],
            input=given,
            capture_output=True,
            text=True,
            check=True,
        )
        seconds.append(time.monotonic() - began)
    found = [json.loads(line) for line in run.stdout.splitlines()]
    wrong = [i for i in range(len(texts)) if found[i] != expected[i]]
    for i in wrong[:10]:
        print(f"{texts[i]!r}\n  expected {expected[i]}\n  found    {found[i]}")
    print(
        f"{len(texts) - len(wrong)} of {len(texts)} equal, {size / 1e6:.1f} MB: "
        f"this program {size / 1e6 / (seconds[1] - seconds[0]):.1f} MB/s (its JSON counted), "
        f"the library {size / 1e6 / their_seconds:.1f} MB/s"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
