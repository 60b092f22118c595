"""Random JSON bodies: deep, wide, long, with many members, with hostile numbers, or cut off."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

WRITE = "/v1/notebanks/abuse/write"
ROUTES = (
    "/v1/completions",
    "/v1/chat/completions",
    "/tokenize",
    "/detokenize",
    WRITE,
    "/v1/notebanks/abuse/address",
    "/v1/notebanks/abuse/replay",
)
# A request each route answers; its members are what hostile values are put in place of.
_PLAIN: dict[str, dict[str, object]] = {
    "/v1/completions": {"prompt": "It was", "max_tokens": 4, "logprobs": 2, "stop": ["x"]},
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "It was"}], "max_tokens": 4},
    "/tokenize": {"content": "It was", "with_pieces": True},
    "/detokenize": {"tokens": [73, 116]},
    WRITE: {"text": "KEY_1=4821 is what it said", "metadata": {"a": 1}},
    "/v1/notebanks/abuse/address": {"query": "KEY_1="},
    "/v1/notebanks/abuse/replay": {"prompt": "KEY_1=", "max_tokens": 4},
}
_UNKNOWN = ("x", "grammar", "tools", "logit_bias", "stop", "speculation", "notebank", "user")
_NUMBERS = (
    b"0", b"-0", b"1e400", b"-1e-400", b"1e308", b"18446744073709551616", b"-9223372036854775809",
    b"9" * 400, b"0." + b"3" * 5000, b"1E+9999999999", b"NaN", b"Infinity", b"01", b"1.", b"2.5",
)  # fmt: skip
_PIECES = (b"a", b"It was ", b"\\u0041", b"\\n", "é".encode(), b"\\ud83d\\ude00", b"\xff")
_LEAVES = (b"{}", b"[]", b'""', b"0", b"null", b"true", b'"a"', b"[0]", b'{"a":0}', b"[[[]]]")


def _fragment(rng: random.Random, depth: int = 0) -> bytes:
    """A small value."""
    choice = rng.random()
    if depth > 4 or choice < 0.5:
        return rng.choice(_LEAVES)
    parts = [_fragment(rng, depth + 1) for _ in range(rng.randint(0, 4))]
    if choice < 0.75:
        return b"[" + b",".join(parts) + b"]"
    return b"{" + b",".join(b'"%d":' % i + part for i, part in enumerate(parts)) + b"}"


def _wide(rng: random.Random, size: int) -> bytes:
    piece = _fragment(rng) + b","
    return b"[" + piece * (size // len(piece)) + b"0]"


def _deep(rng: random.Random, size: int) -> bytes:
    opened, closed = rng.choice(((b"[", b"]"), (b'{"a":', b"}"), (b'[{"a":', b"}]")))
    levels = rng.choice((20, 31, 33, 300, max(1, size // (len(opened) + len(closed)))))
    return opened * levels + b"0" + closed * levels


def _long(rng: random.Random, size: int) -> bytes:
    piece = rng.choice(_PIECES)
    return b'"' + piece * (size // len(piece)) + b'"'


def _members(rng: random.Random, size: int) -> bytes:
    value = rng.choice(_LEAVES)
    pad = b"k" * rng.choice((0, 0, 30, 3000))
    count = max(1, size // (len(pad) + len(value) + 12))
    members = [b'"%s%d":%s' % (pad, number, value) for number in range(count)]
    if rng.random() < 0.3:
        members.append(members[0])  # a key that comes again at the very end
    return b"{" + b",".join(members) + b"}"


def _number(rng: random.Random, size: int) -> bytes:
    if rng.random() < 0.3:
        return b"9" * size
    return rng.choice(_NUMBERS)


def _ids(rng: random.Random, size: int) -> bytes:
    piece = b"%d," % rng.choice((0, 65, 127, 128, 2**31, 2**40))
    return b"[" + piece * (size // len(piece)) + b"1]"


_KINDS: tuple[Callable[[random.Random, int], bytes], ...] = (
    _wide, _deep, _long, _members, _number, _ids,
)  # fmt: skip


def body(rng: random.Random, route: str, most: int) -> bytes:
    """Up to about `most` bytes to a route that takes so many, 1 MiB or a little more to the others,
    with a few far beyond. Half of them are near the limit, the others of any size."""
    if not route.endswith("/write") and rng.random() < 0.9:
        most = min(most, 1 << 20)
    size = int(2 ** rng.uniform(4, most.bit_length() - 1))
    if rng.random() < 0.5:
        size = rng.randint(most // 4, most)
    hostile = rng.choice(_KINDS)(rng, size)
    members = {name: json.dumps(value).encode() for name, value in _PLAIN[route].items()}
    # In place of a member the route reads, or beside them all.
    known = rng.random() < 0.5
    members[rng.choice(tuple(members)) if known else rng.choice(_UNKNOWN)] = hostile
    order = list(members.items())
    rng.shuffle(order)
    text = b"{" + b",".join(b'"%s":%s' % (name.encode(), value) for name, value in order) + b"}"
    damage = rng.random()
    if damage < 0.05:
        return text[: rng.randrange(len(text))]
    if damage < 0.08:
        return text + b" " * (size // 2) + b"x"
    if damage < 0.10:
        return hostile
    return text
