"""Random requests for the fidelity run, the same for the same seed and number."""

from __future__ import annotations

import random
import string
from typing import Any

from driver.prompts import Kind, PromptSource, facts, facts_text

_LONGEST_PROMPT = 300
_LONGEST_ANSWER = 32
# Text the shipped model often writes, so that many stops are hit, some in the middle of a round.
_LIKELY_STOPS = (" ", "e", "th", "the", " a", "and", ", ", ". ", "1", "19", "=", "\n", "er", "ing ")
_VOCABULARY = 128
_CHARACTERS = string.ascii_letters + string.digits + string.punctuation + " \n\t"


def _prompt(rng: random.Random, ids_below: int | None) -> str | list[int]:
    length = rng.randint(1, _LONGEST_PROMPT)
    if ids_below is not None:
        return [rng.randrange(ids_below) for _ in range(length)]
    kind = rng.choice(("prose", "facts", "characters", "ids"))
    if kind == "prose":
        source = PromptSource(rng.randrange(1 << 30), variety=1, scale=2.0)
        return source.make(Kind.PROSE, 0).text[:length]
    if kind == "facts":
        pairs = facts(rng, rng.randint(1, 10))
        query = f"?{rng.choice(pairs)[0]}="
        return (facts_text(rng, pairs) + query)[-length:]
    if kind == "characters":
        return "".join(rng.choice(_CHARACTERS) for _ in range(length))
    return [rng.randrange(_VOCABULARY) for _ in range(length)]


def _stops(rng: random.Random) -> list[str]:
    unlikely = "".join(rng.choice(_CHARACTERS) for _ in range(rng.randint(1, 4)))
    stops = [*rng.sample(_LIKELY_STOPS, rng.randint(1, 3)), unlikely]
    return rng.sample(stops, rng.randint(1, len(stops)))


def _filters(rng: random.Random, vocabulary: int) -> dict[str, Any]:
    members: dict[str, Any] = {}
    if rng.random() < 0.2:
        members["top_k"] = rng.choice((1, 2, 5, 40))
    if rng.random() < 0.2:
        members["top_p"] = rng.choice((0.0, 0.3, 0.9, 0.99))
    if rng.random() < 0.2:
        members["min_p"] = rng.choice((0.01, 0.1, 0.5))
    if rng.random() < 0.2:
        members["repetition_penalty"] = rng.choice((0.8, 1.1, 1.5))
    if rng.random() < 0.2:
        members["presence_penalty"] = rng.choice((-1.0, 0.5, 2.0))
    if rng.random() < 0.2:
        members["frequency_penalty"] = rng.choice((-0.5, 0.3, 1.5))
    if rng.random() < 0.1:
        chosen = rng.sample(range(vocabulary), rng.randint(1, 5))
        members["logit_bias"] = {str(token): rng.choice((-100, -3, 2.5)) for token in chosen}
    return members


def make_case(seed: int, number: int, ids_below: int | None = None) -> dict[str, Any]:
    """The body of request `number`, its speculation included; "stream" is left to the caller. With
    `ids_below` its prompt is token ids below it, for a model that reads no text."""
    vocabulary = _VOCABULARY if ids_below is None else ids_below
    rng = random.Random(f"fidelity/{seed}/{number}")
    body: dict[str, Any] = {
        "prompt": _prompt(rng, ids_below),
        "max_tokens": rng.randint(0, _LONGEST_ANSWER),
        "temperature": rng.choice((0, 0.8, 1.3)),
        "seed": rng.randrange(-(1 << 63), 1 << 63),
        "return_token_ids": True,
        "speculation": {
            "k": rng.choice((0, *range(1, 17))),
            # "off" drafts K tokens in every round; the others change their mind within an answer.
            "governor": rng.choice(("off", "off", "trip", "adaptive")),
        },
        **_filters(rng, vocabulary),
    }
    if rng.random() < 0.5:
        body["stop"] = _stops(rng)
    if rng.random() < 0.1:
        body["stop_token_ids"] = rng.sample(range(vocabulary), 3)
    logprobs = rng.choice((None, 0, 1, 2, 3, 4, 5))
    if logprobs is not None:
        body["logprobs"] = logprobs
    if rng.random() < 0.15:
        body["echo"] = True
    if rng.random() < 0.05:
        body["n"] = rng.randint(2, 3)
    return body
