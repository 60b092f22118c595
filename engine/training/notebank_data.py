"""Generator of NoteBank sequences: facts hidden in filler, and questions about them.

A fact is ``KEY_nn=dddd`` followed by a separator, a question is ``?KEY_nn=`` and its answer
``dddd.``. The sequences teach the model to look a value up over its whole context. Four kinds exist
because each one is a way the server uses the model:

* ``scatter``: several keys at random places, questions in between and at the end.
* ``document``: one key stated several times, then asked (the benchmark prompt of the paper).
* ``overwrite``: keys are stated again with another value; the last value is the answer.
* ``replay``: note spans, cut at arbitrary places, stand right before the question. Half of the time
  they are about other keys (wrong-note controls), and the right fact is further back.

Every character carries a class, so that the trainer can weigh what is predictable (answers) and
what is not (the digits of a fact that is stated for the first time).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

FILLER, FACT, ANSWER = 0, 1, 2
KINDS = ("scatter", "document", "overwrite", "replay")
SEPARATORS = (" ", "; ", ". ", "\n")
_QUERY_ROOM = 16  # longest question with its answer: "?KEY_nnn=dddd. "


@dataclass
class NoteBankSpec:
    """What one batch of sequences looks like; a training stage overrides these."""

    keys: tuple[int, int] = (1, 8)
    query_rates: Sequence[float] = (0.0, 0.3, 1.0, 2.0)
    kinds: Sequence[float] = (0.5, 0.1, 0.15, 0.25)  # weights, in the order of KINDS
    prose_share: float = 0.5
    three_digit_share: float = 0.35
    mixed_width_share: float = 0.1
    separators: Sequence[float] = (0.55, 0.35, 0.05, 0.05)  # in the order of SEPARATORS
    tail_share: float = 0.6  # sequences that go on after the last question
    quiz_share: float = 0.6  # pieces of that tail which are questions again


@dataclass
class _Writer:
    """Text and character classes, grown together."""

    text: list[str] = field(default_factory=list)
    classes: bytearray = field(default_factory=bytearray)

    def __len__(self) -> int:
        return len(self.classes)

    def put(self, text: str, char_class: int = FILLER) -> None:
        self.text.append(text)
        self.classes.extend(bytes([char_class]) * len(text))

    def fact(self, key: str, value: str, separator: str) -> None:
        self.put(f"KEY_{key}=")
        self.put(value, FACT)
        self.put(separator)

    def query(self, key: str, value: str) -> None:
        self.put(f"?KEY_{key}=")
        self.put(value + ".", ANSWER)
        self.put(" ")


class Filler:
    """Text between the facts: dictionary words, or prose read on from a random place."""

    def __init__(self, rng: random.Random, words: Sequence[str], prose: str | None) -> None:
        self._rng, self._words, self._prose = rng, words, prose
        if prose is not None:
            self._at = rng.randrange(max(1, len(prose) - 8192))

    def take(self, length: int, exact: bool = False) -> str:
        """Up to ``length`` characters that end with a space, at a word's end where one is near."""
        if length <= 0:
            return ""
        if self._prose is not None:
            text = self._prose[self._at : self._at + length]
            if len(text) < length:
                self._at = 0
                text = self._prose[:length]
        else:
            parts, size = [], 0
            while size < length:
                parts.append(self._rng.choice(self._words))
                size += len(parts[-1]) + 1
            text = (" ".join(parts) + " ")[:length]
        cut = text.rfind(" ", max(0, length - 16)) + 1
        if exact or cut == 0:
            text = text[:-1] + " "
        else:
            text = text[:cut]
        if self._prose is not None:
            self._at += len(text)
        return text


class NoteBankGenerator:
    """Seeded source of sequences; the same seed gives the same text."""

    def __init__(self, words: Sequence[str], proses: Sequence[str] = (), seed: int = 0) -> None:
        self.rng = random.Random(seed)
        self.words, self.proses = list(words), list(proses)

    def keys(self, count: int, three_digit_share: float, mixed_share: float) -> list[str]:
        """Distinct keys; mixed widths put KEY_12 next to KEY_123 in one text."""
        rng = self.rng
        draw = rng.random()
        if draw < mixed_share:
            pool = rng.sample(range(1100), count)
            return [f"{n:02d}" if n < 100 else f"{n - 100:03d}" for n in pool]
        if draw < mixed_share + three_digit_share:
            return [f"{n:03d}" for n in rng.sample(range(1000), count)]
        return [f"{n:02d}" for n in rng.sample(range(100), count)]

    def value(self) -> str:
        return f"{self.rng.randrange(10000):04d}"

    def filler(self, prose_share: float) -> Filler:
        prose = None
        if self.proses and self.rng.random() < prose_share:
            prose = self.rng.choice(self.proses)
        return Filler(self.rng, self.words, prose)

    def sequence(self, length: int, spec: NoteBankSpec) -> tuple[str, bytes]:
        """One training text of exactly ``length`` characters, with the class of each."""
        rng = self.rng
        kind = rng.choices(KINDS, weights=spec.kinds)[0]
        separator = rng.choices(SEPARATORS, weights=spec.separators)[0]
        filler = self.filler(spec.prose_share)
        most = max(1, min(spec.keys[1], (length - 2 * _QUERY_ROOM) // 24))
        count = 1 if kind == "document" else rng.randint(min(spec.keys[0], most), most)
        keys = self.keys(count, spec.three_digit_share, spec.mixed_width_share)
        tail = self._tail_length(length, spec)
        notes_room = 0
        if kind == "replay":
            notes_room = min(rng.randint(1, 3) * 48, (length - tail) // 2)
        body = max(0, length - tail - notes_room - _QUERY_ROOM)
        out, known = _Writer(), {}
        self._body(
            out,
            known,
            body,
            kind,
            keys,
            separator,
            filler,
            rng.choice(spec.query_rates),
        )
        if kind == "replay":
            self._replay(out, known, keys, separator, filler, notes_room)
        else:
            if not known:  # the body was too short for any fact
                known[keys[0]] = self.value()
                out.fact(keys[0], known[keys[0]], separator)
            key = rng.choice(list(known))
            out.query(key, known[key])
        self._tail(out, known, length, filler, spec.quiz_share)
        return "".join(out.text)[:length], bytes(out.classes[:length])

    def _tail_length(self, length: int, spec: NoteBankSpec) -> int:
        if self.rng.random() >= spec.tail_share:
            return 0
        return self.rng.randint(0, min(160, length // 3))

    def _body(
        self,
        out: _Writer,
        known: dict[str, str],
        length: int,
        kind: str,
        keys: Sequence[str],
        separator: str,
        filler: Filler,
        query_rate: float,
    ) -> None:
        """Facts and questions at random places in ``length`` characters of filler."""
        rng = self.rng
        events: list[tuple[int, bool, str, str]] = []
        for key in keys:
            value = self.value()
            states = rng.randint(2, 4) if kind in ("document", "overwrite") else 1
            if kind == "overwrite" and rng.random() < 0.3:
                states = 1
            room = max(0, length - 14)
            places = sorted(rng.randint(0, room) for _ in range(states))
            for place in places:
                events.append((place, False, key, value))
                if kind == "overwrite":
                    value = self.value()
            queries = int(query_rate) + (rng.random() < query_rate % 1)
            for _ in range(queries):
                events.append((rng.randint(places[0], length), True, key, ""))
        events.sort(key=lambda event: event[0])
        for place, is_query, key, value in events:
            if len(out) + 14 > length:
                break
            out.put(filler.take(place - len(out)))
            if not is_query:
                out.fact(key, value, separator)
                known[key] = value
            elif key in known and len(out) + _QUERY_ROOM <= length:
                out.query(key, known[key])
        out.put(filler.take(length - len(out)))

    def _replay(
        self,
        out: _Writer,
        known: dict[str, str],
        keys: Sequence[str],
        separator: str,
        filler: Filler,
        room: int,
    ) -> None:
        """Note spans and then the question; a right note may be the only place of its fact."""
        rng = self.rng
        wrong = bool(known) and rng.random() < 0.4
        if wrong:
            asked = rng.choice(list(known))
            noted = []
        else:
            asked = rng.choice(list(known)) if known and rng.random() < 0.5 else rng.choice(keys)
            known.setdefault(asked, self.value())
            noted = [asked]
        spans = max(1, room // 48)
        while len(noted) < spans:
            other = self._other_key(asked, known)
            noted.append(other)
        rng.shuffle(noted)
        joiner = rng.choice(("", "", " ", "\n"))
        for key in noted:
            value = known.setdefault(key, self.value())
            out.put(*self._span(key, value, separator, filler))
            out.put(joiner)
        out.query(asked, known[asked])

    def _other_key(self, asked: str, known: dict[str, str]) -> str:
        """A key the note is wrongly about: a known one, a neighbour in digits, or a new one."""
        rng = self.rng
        others = [key for key in known if key != asked]
        if others and rng.random() < 0.5:
            return rng.choice(others)
        if rng.random() < 0.5:
            at = rng.randrange(len(asked))
            near = asked[:at] + str(rng.randrange(10)) + asked[at + 1 :]
            if near != asked:
                return near
        while True:
            key = f"{rng.randrange(10 ** len(asked)):0{len(asked)}d}"
            if key != asked:
                return key

    def _span(self, key: str, value: str, separator: str, filler: Filler) -> tuple[str, int]:
        """32 to 48 characters around a fact, cut without regard to words."""
        rng = self.rng
        fact = f"KEY_{key}={value}{separator}"
        width = rng.randint(max(32, len(fact)), 48)
        before = rng.randint(0, width - len(fact))
        after = width - len(fact) - before
        left = filler.take(before + 8, exact=True)[8:]
        return left + fact + filler.take(after + 8, exact=True)[:after], FILLER

    def _tail(
        self,
        out: _Writer,
        known: dict[str, str],
        length: int,
        filler: Filler,
        quiz_share: float,
    ) -> None:
        """What follows the answer: more questions, or more filler."""
        rng = self.rng
        quiz = rng.random() < quiz_share
        while len(out) < length:
            if quiz:
                key = rng.choice(list(known))
                out.query(key, known[key])
            else:
                out.put(filler.take(rng.randint(8, 80)))
            if rng.random() < 0.1:
                quiz = not quiz

    def batch(self, rows: int, length: int, spec: NoteBankSpec) -> tuple[np.ndarray, np.ndarray]:
        """``rows`` sequences: tokens and classes, both uint8 of shape [rows, length]."""
        tokens = np.zeros((rows, length), np.uint8)
        classes = np.zeros((rows, length), np.uint8)
        for row in range(rows):
            text, kinds = self.sequence(length, spec)
            tokens[row] = np.frombuffer(text.encode("ascii", "replace"), np.uint8)
            classes[row] = np.frombuffer(kinds, np.uint8)
        return tokens, classes

    def probe(
        self,
        length: int,
        key_count: int,
        kind: str = "scatter",
        width: int = 2,
        separator: str = " ",
        prose_share: float = 0.5,
    ) -> tuple[str, str]:
        """A test prompt of ``length`` characters that ends in ``?KEY_nn=``, and its value."""
        rng = self.rng
        keys = [f"{n:0{width}d}" for n in rng.sample(range(10**width), key_count)]
        filler = self.filler(prose_share)
        while True:
            out, known = _Writer(), {}
            room = 48 if kind in ("replay", "wrong_note") else 0
            body = length - room - len(f"?KEY_{keys[0]}=")
            base = "overwrite" if kind == "overwrite" else "scatter"
            self._body(out, known, body, base, keys, separator, filler, 0.0)
            if len(known) < key_count:
                continue
            asked = rng.choice(keys)
            if room:
                noted = asked if kind == "replay" else self._other_key(asked, known)
                value = known.get(noted) or self.value()
                out.put(*self._span(noted, value, separator, filler))
            text = "".join(out.text) + f"?KEY_{asked}="
            return filler.take(length - len(text), exact=True) + text, known[asked]

    def document_prompt(self, key: str = "15", value: str = "1907") -> str:
        """The 379-character prompt of the paper: one key stated at 30, 158 and 286, then asked."""
        filler = Filler(self.rng, self.words, None)
        fact, query = f"KEY_{key}={value}; ", f"?KEY_{key}="
        text = ""
        for offset in (30, 158, 286):
            text += filler.take(offset - len(text), exact=True) + fact
        return text + filler.take(379 - len(query) - len(text), exact=True) + query
