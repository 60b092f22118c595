"""Requests that HTTP servers are known to read in two ways, and how they are bent further."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass

_HOST = b"Host: localhost\r\n"
_JSON = b"Content-Type: application/json\r\n"
# Sent after a vector: whoever answers it has read the vector's framing in the other way.
SMUGGLED = b"GET /health HTTP/1.1\r\n" + _HOST + b"\r\n"


@dataclass(frozen=True, slots=True)
class Vector:
    """The connection ends after its one answer, which has one of the statuses."""

    name: str
    data: bytes
    statuses: tuple[int, ...]


def _post(fields: bytes, body: bytes = b"hello") -> bytes:
    return b"POST /tokenize HTTP/1.1\r\n" + _HOST + _JSON + fields + b"\r\n" + body


def _chunked(body: bytes) -> bytes:
    return _post(b"Transfer-Encoding: chunked\r\n", body)


def _lines(*lines: bytes) -> bytes:
    return b"\r\n".join((*lines, b"", b""))


_CHUNKS = b"5\r\nhello\r\n0\r\n\r\n"
_GET = b"GET /health HTTP/1.1"
_LOCAL = b"Host: localhost"

VECTORS: tuple[Vector, ...] = (
    Vector(
        "length, then chunked",
        _post(b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", _CHUNKS),
        (400,),
    ),
    Vector(
        "chunked, then length",
        _post(b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", _CHUNKS),
        (400,),
    ),
    Vector(
        "gzip coding, then length",
        _post(b"Transfer-Encoding: gzip\r\nContent-Length: 5\r\n"),
        (400, 501),
    ),
    Vector(
        "length, then gzip coding",
        _post(b"Content-Length: 5\r\nTransfer-Encoding: gzip\r\n"),
        (400, 501),
    ),
    Vector("unknown coding", _post(b"Transfer-Encoding: xchunked\r\n", _CHUNKS), (501,)),
    Vector("coding list", _post(b"Transfer-Encoding: chunked, identity\r\n", _CHUNKS), (501,)),
    Vector("length list", _post(b"Content-Length: 5, 5\r\n"), (400,)),
    Vector("equal lengths", _post(b"Content-Length: 5\r\nContent-Length: 5\r\n"), (400,)),
    Vector("two lengths", _post(b"Content-Length: 5\r\nContent-Length: 4\r\n"), (400,)),
    Vector("signed length", _post(b"Content-Length: +5\r\n"), (400,)),
    Vector("negative length", _post(b"Content-Length: -1\r\n"), (400,)),
    Vector("length of 2^64", _post(b"Content-Length: 18446744073709551616\r\n"), (400,)),
    Vector("length beyond the limit", _post(b"Content-Length: 2000000\r\n"), (413,)),
    Vector("space before the colon", _post(b"Content-Length : 5\r\n"), (400,)),
    Vector("NUL in a field", _lines(_GET, _LOCAL, b"X-A: a\0b"), (400,)),
    Vector("line feed alone", _GET + b"\n" + _LOCAL + b"\n\n", (400,)),
    Vector("HTTP/0.9", b"GET /health\r\n\r\n", (400, 505)),
    Vector("HTTP/1.2", _lines(b"GET /health HTTP/1.2", _LOCAL), (505,)),
    Vector("HTTP/2.0", _lines(b"GET /health HTTP/2.0", _LOCAL), (505,)),
    Vector("folded line", _lines(_GET, _LOCAL, b"X-A: a", b" b"), (400,)),
    Vector("no host", _lines(_GET), (400,)),
    Vector("two hosts", _lines(_GET, _LOCAL, _LOCAL), (400,)),
    Vector("lower-case method", _lines(b"get /health HTTP/1.1", _LOCAL), (501,)),
    Vector("unknown method", _lines(b"BREW /health HTTP/1.1", _LOCAL), (501,)),
    Vector(
        "HTTP/1.0 and chunks",
        _chunked(_CHUNKS).replace(b"1.1", b"1.0"),
        (400,),
    ),
    Vector("long request line", _lines(b"GET /" + b"a" * 9000 + b" HTTP/1.1", _LOCAL), (414,)),
    Vector("long header", _lines(_GET, _LOCAL, b"X-A: " + b"a" * 9000), (431,)),
    Vector("many fields", _lines(_GET, _LOCAL, *[b"a:"] * 1500), (431,)),
    Vector(
        "negative chunk size",
        _chunked(b"-2\r\nhello\r\n0\r\n\r\n"),
        (400,),
    ),
    Vector(
        "chunk of 2^64",
        _chunked(b"10000000000000000\r\nhello\r\n"),
        (400,),
    ),
    Vector(
        "chunk size in words",
        _chunked(b"five\r\nhello\r\n0\r\n\r\n"),
        (400,),
    ),
    Vector(
        "chunk without its end",
        _chunked(b"5\r\nhelloXX0\r\n\r\n"),
        (400,),
    ),
    Vector(
        "two authorizations", _lines(_GET, _LOCAL, b"Authorization: a", b"Authorization: b"), (400,)
    ),
    Vector("compressed body", _post(b"Content-Encoding: gzip\r\nContent-Length: 5\r\n"), (415,)),
    Vector("strange expectation", _post(b"Expect: miracles\r\nContent-Length: 5\r\n"), (417,)),
)


def _request(path: str, body: object) -> bytes:
    payload = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = b"POST " + path.encode() + b" HTTP/1.1\r\n" + _HOST + _JSON
    return head + b"Content-Length: " + str(len(payload)).encode() + b"\r\n\r\n" + payload


# Well-formed, so that some of what comes of them reaches the parser behind HTTP.
SEEDS: tuple[bytes, ...] = (
    SMUGGLED,
    _request("/tokenize", {"content": "a b c", "with_pieces": True}),
    _request("/detokenize", {"tokens": [72, 105]}),
    _request("/v1/completions", {"prompt": "a", "max_tokens": 0, "echo": True, "logprobs": 2}),
    _request("/v1/completions", {"prompt": [1, 2], "max_tokens": 1, "stop": ["a"], "stream": True}),
    _request(
        "/v1/chat/completions",
        {"messages": [{"role": "user", "content": "a"}], "n": 2, "max_tokens": 1},
    ),
    _request(
        "/v1/completions",
        {
            "prompt": "a",
            "max_tokens": 1,
            "logit_bias": {"7": 1.5},
            "seed": -1,
            "speculation": {"k": 3},
        },
    ),
    _request("/v1/notebanks/b/address", {"query": "a", "top": 1}),
    _request("/v1/completions", b'{"prompt":"\\ud800","a":' + b"[" * 40 + b"]" * 40 + b"}"),
    _post(
        b"Transfer-Encoding: chunked\r\n", b'c;x="y"\r\n{"content":1\r\n1\r\n}\r\n0\r\nT: 1\r\n\r\n'
    ),
    _post(b"Expect: 100-continue\r\nContent-Length: 15\r\n", b'{"content":"a"}'),
    b"OPTIONS * HTTP/1.1\r\n" + _HOST + b"\r\n",
    b"HEAD /v1/models HTTP/1.0\r\n\r\n",
    b"GET http://localhost/v1/models?a=b HTTP/1.1\r\n" + _HOST + b"Connection: close\r\n\r\n",
)

_PIECES = (
    b"\r\n",
    b"\r",
    b"\n",
    b"\0",
    b":",
    b" ",
    b"\t",
    b",",
    b";",
    b"\xff",
    b"\xc3\xa9",
    b"0",
    b"-1",
    b"1e400",
    b"18446744073709551616",
    b"99999999999999999999",
    b"chunked",
    b"Content-Length: 5\r\n",
    b"{",
    b"}",
    b"Transfer-Encoding: chunked\r\n",
    b"Host: x\r\n",
    b"HTTP/1.1",
    b"null",
    b"NaN",
    b'"',
    b"\\u0000",
    b"[[[[",
)


def mutate(rng: random.Random) -> bytes:
    """A vector or a seed with a few things done to it."""
    sources = SEEDS if rng.random() < 0.6 else [vector.data for vector in VECTORS]
    data = bytearray(rng.choice(sources))
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data) + 1)
        to = min(len(data), at + rng.randint(1, 12))
        kind = rng.randrange(7)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del data[at:to]
        elif kind == 2:
            data[at:at] = data[at:to] * rng.randint(1, 8)
        elif kind == 3:
            data[at:at] = rng.choice(_PIECES)
        elif kind == 4:
            data[at:to] = rng.choice(_PIECES)
        elif kind == 5:
            other = rng.choice(sources)
            cut = rng.randrange(len(other))
            data[at:] = other[cut:]
        else:
            data[at:to] = rng.randbytes(to - at)
    return bytes(data)
