"""Prepared text: a weighted mix of sources, the end of each held out for validation."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np


class Corpus:
    """Sources of one mix, as bytes; every character is one token."""

    def __init__(self, data: Path, mix: Mapping[str, float], held_out: float) -> None:
        text_dir = Path(data) / "text"
        missing = [name for name in mix if not (text_dir / f"{name}.txt").exists()]
        if missing:
            raise FileNotFoundError(
                f"{text_dir} lacks {', '.join(missing)}; run prepare_data.py --data {data}"
            )
        self.names = list(mix)
        weights = np.array([mix[n] for n in self.names])
        self.weights = weights / weights.sum()
        self.train: list[np.ndarray] = []
        self.validation: list[np.ndarray] = []
        for name in self.names:
            text = np.frombuffer((text_dir / f"{name}.txt").read_bytes(), np.uint8)
            cut = int(len(text) * (1 - held_out))
            self.train.append(text[:cut])
            self.validation.append(text[cut:])
        self.words = (Path(data) / "words.txt").read_text().split()

    def rows(
        self,
        rng: np.random.Generator,
        count: int,
        length: int,
        validation: bool = False,
        source: str | None = None,
    ) -> np.ndarray:
        """``count`` windows of ``length`` characters at random places, uint8."""
        sets = self.validation if validation else self.train
        rows = np.zeros((count, length), np.uint8)
        for row in rows:
            which = (
                rng.choice(len(self.names), p=self.weights)
                if source is None
                else self.names.index(source)
            )
            text = sets[which]
            at = rng.integers(0, len(text) - length)
            row[:] = text[at : at + length]
        return rows

    def prose_strings(self, validation: bool = False) -> list[str]:
        """Whole sources as single lines, for the filler of NoteBank sequences."""
        sets = self.validation if validation else self.train
        return [text.tobytes().decode("ascii").replace("\n", " ") for text in sets]
