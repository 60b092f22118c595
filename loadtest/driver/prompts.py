"""Prompts by kind, the same for the same seed and number."""

from __future__ import annotations

import random
import string
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What a prompt is made of; each is a different case for a speculating server."""

    RECALL = "recall"  # facts and a query: in-domain, drafts are accepted
    PROSE = "prose"
    RANDOM = "random"  # nothing to predict: drafting should be given up
    NOTEBANK = "notebank"  # the facts are in a bank, only the query is in the prompt


@dataclass(frozen=True, slots=True)
class Prompt:
    kind: Kind
    key: str  # equal keys: equal prompts
    text: str
    expected: str = ""  # what a right answer begins with, where there is one


_FILLER = (
    "the lamp was lit ",
    "rain fell on the roof ",
    "she closed the book ",
    "they walked home ",
    "a cart went by ",
    "the fire burned low ",
)
OPENINGS = (
    "It is a truth universally acknowledged, that a single man in possession of a good "
    "fortune, must be in want of a wife.",
    "In the beginning God created the heaven and the earth. And the earth was without form, "
    "and void; and darkness was upon the face of the deep.",
    "She was the youngest of the two daughters of a most affectionate, indulgent father; and "
    "had, in consequence of her sister's marriage, been mistress of his house",
    "The family of Dashwood had long been settled in Sussex. Their estate was large, and "
    "their residence was at Norland Park, in the centre of their property,",
    "About thirty years ago, Miss Maria Ward, of Huntingdon, with only seven thousand pounds,",
    "No one who had ever seen Catherine Morland in her infancy would have supposed her born "
    "to be an heroine.",
)


def facts(rng: random.Random, count: int) -> list[tuple[str, str]]:
    """(key, four-digit value) pairs, the keys distinct."""
    keys = rng.sample(range(10, 100), count)
    return [(f"KEY_{key}", f"{rng.randrange(1000, 10000)}") for key in keys]


def facts_text(rng: random.Random, pairs: list[tuple[str, str]]) -> str:
    return "".join(f"{key}={value} {rng.choice(_FILLER)}" for key, value in pairs)


class PromptSource:
    """Makes prompt number n of a kind. `variety` numbers exist, so that prompts come again and
    their greedy texts can be compared."""

    def __init__(self, seed: int, variety: int = 24, scale: float = 1.0) -> None:
        self._seed = seed
        self._variety = max(1, variety)
        self._scale = scale

    def make(self, kind: Kind, number: int) -> Prompt:
        number %= self._variety
        rng = random.Random(f"{self._seed}/{kind}/{number}")
        key = f"{kind}-{number}"
        if kind is Kind.RECALL:
            pairs = facts(rng, max(2, round(8 * self._scale)))
            asked, value = rng.choice(pairs)
            return Prompt(kind, key, f"{facts_text(rng, pairs)}?{asked}=", value)
        if kind is Kind.PROSE:
            start = rng.randrange(len(OPENINGS))
            whole = " ".join(OPENINGS[start:] + OPENINGS[:start])
            return Prompt(kind, key, whole[: round(rng.randint(60, 400) * self._scale)].rstrip())
        if kind is Kind.RANDOM:
            alphabet = string.ascii_letters + string.digits + string.punctuation + " "
            length = max(8, round(rng.randint(40, 300) * self._scale))
            return Prompt(kind, key, "".join(rng.choice(alphabet) for _ in range(length)))
        asked, value = self.bank_facts()[number % len(self.bank_facts())]
        return Prompt(kind, key, f"?{asked}=", value)

    def bank_facts(self) -> list[tuple[str, str]]:
        return facts(random.Random(f"{self._seed}/bank"), 8)

    def bank_text(self) -> str:
        """What the bank is written from."""
        return facts_text(random.Random(f"{self._seed}/bank-text"), self.bank_facts())
