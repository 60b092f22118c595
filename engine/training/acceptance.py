"""How many of the draft's proposals the target accepts, in the server's speculative loop.

Target and draft run token by token in f32 on the exported values. A round proposes K tokens, the
longest prefix equal to the target's own choices is accepted, and the target's next choice follows.
Sampling is coupled: both models see the same noise at a position.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from params import Parameters
from torch_model import TorchDecoder


def gumbel(seed: int, position: int, shape: tuple[int, int]) -> torch.Tensor:
    """Noise of one position, the same for target and draft (coupled sampling)."""
    generator = torch.Generator().manual_seed(seed * 1_000_003 + position)
    uniform = torch.rand(shape, generator=generator).clamp(1e-7, 1 - 1e-7)
    return -torch.log(-torch.log(uniform))


def choose(logits: torch.Tensor, temperature: float, seed: int, position: int) -> torch.Tensor:
    """argmax of logits / T + noise; plain argmax at temperature 0."""
    if temperature <= 0:
        return logits.argmax(-1)
    return (logits / temperature + gumbel(seed, position, tuple(logits.shape))).argmax(-1)


@dataclass
class Acceptance:
    """Counts over all prompts; alpha is accepted over proposed."""

    proposed: int
    accepted: int
    rounds: int
    by_position: list[float]
    texts: list[str]

    @property
    def alpha(self) -> float:
        return self.accepted / max(1, self.proposed)

    def summary(self) -> dict:
        return {
            "alpha": round(self.alpha, 4),
            "accepted_per_round": round(self.accepted / max(1, self.rounds), 3),
            "by_position": [round(share, 4) for share in self.by_position],
        }


def paths(
    target: Parameters,
    draft: Parameters,
    prompts: torch.Tensor,
    count: int,
    k: int,
    temperature: float,
    seed: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The target's own ``count + k`` tokens, and the draft's ``k`` proposals at each of ``count``."""
    batch, start = prompts.shape
    main = TorchDecoder(target, batch, start + count + k + 1)
    side = TorchDecoder(draft, batch, start + count + k + 1)
    logits, guess = main.feed(prompts), side.feed(prompts)
    path, proposals = [], []
    for j in range(count + k):
        path.append(choose(logits, temperature, seed, start + j))
        if j < count:
            here, ahead, row = side.snapshot(), guess, []
            for i in range(k):
                row.append(choose(ahead, temperature, seed, start + j + i))
                if i + 1 < k:
                    ahead = side.step(row[-1])
            side.restore(here)
            proposals.append(torch.stack(row, 1))
            guess = side.step(path[-1])
        logits = main.step(path[-1])
    return torch.stack(path, 1), torch.stack(proposals, 1)


def measure(
    target: Parameters,
    draft: Parameters,
    prompts: torch.Tensor,
    count: int = 64,
    k: int = 4,
    temperature: float = 0.0,
    seed: int = 1,
) -> Acceptance:
    """Runs the rounds of every prompt over its first ``count`` generated tokens."""
    path, proposals = paths(target, draft, prompts, count, k, temperature, seed)
    proposed = accepted = rounds = 0
    reached = [0] * k
    for own, guesses in zip(path.tolist(), proposals.tolist(), strict=True):
        at = 0
        while at < count:
            size = min(k, count - at)
            good = 0
            while good < size and guesses[at][good] == own[at + good]:
                reached[good] += 1
                good += 1
            proposed, accepted, rounds = proposed + size, accepted + good, rounds + 1
            at += good + 1
    texts = [bytes(row[:count]).decode("ascii", "replace") for row in path.tolist()]
    return Acceptance(proposed, accepted, rounds, [n / rounds for n in reached], texts)
