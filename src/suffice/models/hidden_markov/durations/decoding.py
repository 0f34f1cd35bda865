"""Questions to chains of explicit durations: paths, probabilities of states, what follows, new paths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.engines.segment_chains import SegmentChains
from suffice.errors import OptionError
from suffice.models.hidden_markov.chains import Observed
from suffice.models.hidden_markov.durations.segments import segment_chains
from suffice.models.hidden_markov.emissions.contract import Emission
from suffice.models.hidden_markov.parameters import ChainParameters


@dataclass(frozen=True, eq=False)
class SegmentBlock:
    """A block of sequences whose states have explicit durations, asked as `decoding.PlainBlock` is.

    Answers come with log P of each sequence (n,).
    """

    chain: SegmentChains

    @classmethod
    def of(cls, observed: Observed, emission: Emission, parameters: ChainParameters, more: int = 0) -> SegmentBlock:
        """The sequences; `more` steps may follow them."""
        return cls(segment_chains(observed, emission, parameters, more=more))

    def posteriors(self) -> tuple[Floats, Floats]:
        """P(state at a step | whole sequence) (steps, K)."""
        expected = self.chain.expectations(np.ones(len(self.chain.offsets) - 1))
        return expected.log_partition, expected.posteriors

    def filtered(self) -> tuple[Floats, Floats]:
        """P(state at a step | sequence up to that step) (steps, K)."""
        return self.chain.filtered()

    def pairs(self) -> tuple[Floats, Floats]:
        """P(state before a step, state at it | whole sequence) (steps, K, K)."""
        return self.chain.pairs()

    def paths(self, most: int) -> tuple[Floats, tuple[NDArray[Any], Floats]]:
        """The most probable path (1, steps), and its log-probability (n, 1)."""
        if most > 1:
            raise OptionError(
                "With explicit durations the most probable path is found, and no second best: ask for n=1, or for "
                "sample_paths, which draws paths by their probability."
            )
        codes, values = self.chain.best_paths()
        return values, (codes[None], values[:, None])

    def ahead(self, steps: int) -> tuple[Floats, Floats]:
        """P(state | sequence) (n, steps, K) of the steps that follow."""
        return self.chain.ahead(steps)

    def drawn(self, count: int, rng: np.random.Generator) -> NDArray[Any]:
        """Paths (count, steps) from P(states | sequence)."""
        return self.chain.draw(count, rng)


def draw_paths(parameters: ChainParameters, count: int, steps: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Numbers of states (count, steps) of new sequences, segment by segment; the last is cut off at the end."""
    codes = np.empty((count, steps), np.intp)
    first, rows = parameters.initial.cumsum(), parameters.transitions.cumsum(axis=1)
    for path in codes:
        t, shares = 0, first
        while t < steps:
            state = min(int(np.searchsorted(shares, rng.random() * shares[-1], side="right")), len(shares) - 1)
            duration = int(parameters.durations[state].draw(1, rng)[0])
            path[t : t + duration] = state
            t, shares = t + duration, rows[state]
    return codes
