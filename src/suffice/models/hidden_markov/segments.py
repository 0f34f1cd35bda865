"""A sequence too long for memory, cut into segments.

Messages go through the sequence once forward and once backward, one segment in memory at a time. A segment between two
messages is a chain of its own: the message from the left is the distribution of its first state, that from the right
its final weights. Each segment but the first begins with the last step of the one before, so that no transition is
lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from suffice.array_types import Floats
from suffice.engines.chain import Chains
from suffice.engines.chain_blocks import map_blocks
from suffice.engines.chain_messages import filtered, read_backwards
from suffice.models.hidden_markov.chains import CALLS, Observed, chains
from suffice.models.hidden_markov.emissions.contract import Emission
from suffice.models.hidden_markov.parameters import ChainParameters

#: Numbers (steps times states) above which a sequence is cut, and those of a segment.
LONG = 1 << 26
SEGMENT = 1 << 22


class Segments:
    """One sequence in segments of about `SEGMENT` numbers."""

    def __init__(self, observed: Observed, emission: Emission, parameters: ChainParameters) -> None:
        """Cut the sequence; nothing is computed yet."""
        self._observed, self._emission, self._parameters = observed, emission, parameters
        self._size = len(parameters.initial)
        length = max(SEGMENT // self._size, 2)
        self._bounds = [*range(0, observed.n_steps, length), observed.n_steps]

    def _piece(self, number: int) -> Observed:
        return self._observed.stretch(self._bounds[number], self._bounds[number + 1])

    def _forward(self, number: int, ends: Floats) -> tuple[Chains, Observed]:
        """The chain of a segment with given ends (2, K); the first is P(state before it) but for the first segment."""
        piece = self._piece(number)
        if number == 0:
            return chains(piece, self._emission, self._parameters, ends), piece
        # The distribution of the first state of the segment, before its own step is seen.
        ahead = np.stack([ends[0] @ self._parameters.transitions, ends[1]])
        return chains(piece, self._emission, self._parameters, ahead), piece

    @cached_property
    def _from_left(self) -> tuple[float, list[Floats]]:
        """Log-likelihood, and the filtered distribution of the state before each segment; first the initial one."""
        total, messages = 0.0, [self._parameters.initial]
        for number in range(len(self._bounds) - 1):
            chain, _ = self._forward(number, np.stack([messages[-1], np.ones(self._size)]))
            mass, rows = filtered(chain, threads=1, calls=CALLS)
            total += float(mass[0])
            messages.append(rows[-1].copy())
        return total, messages

    @cached_property
    def _from_right(self) -> list[Floats]:
        """Final weights of each segment: how likely what follows is, by the last state of the segment."""
        messages = [np.ones(self._size)]
        for number in reversed(range(1, len(self._bounds) - 1)):
            chain, _ = self._forward(number, np.ones((2, self._size)))
            _, rows = filtered(read_backwards(chain, messages[-1]), threads=1, calls=CALLS)
            message = self._parameters.transitions @ rows[-1]
            top = message.max()
            messages.append(message / top if top > 0 else message)
        return messages[::-1]

    @property
    def log_likelihood(self) -> float:
        """Of the whole sequence."""
        return self._from_left[0]

    def expectations(self, *, threads: int | None) -> Iterator[tuple[Observed, Floats, Floats]]:
        """Of each segment its steps, their posteriors (steps, K), and the sums of joint posteriors (K, K)."""
        map_blocks(lambda side: getattr(self, side), ["_from_left", "_from_right"], threads)
        for number in range(len(self._bounds) - 1):
            ends = np.stack([self._from_left[1][number], self._from_right[number]])
            chain, piece = self._forward(number, ends)
            expected = chain.expectations(threads=1, calls=CALLS)
            joint = expected.transition_sums
            if number > 0:
                joint = joint + self._across(ends[0], expected.posteriors[0])
            yield piece, expected.posteriors, joint

    def _across(self, before: Floats, after: Floats) -> Floats:
        """Joint posterior of the state before a segment and its first: P(i | past) A_ij P(j | all) / P(j | past)."""
        ahead = before @ self._parameters.transitions
        share = np.divide(after, ahead, out=np.zeros_like(after), where=ahead > 0)
        return np.asarray(before[:, None] * self._parameters.transitions * share)
