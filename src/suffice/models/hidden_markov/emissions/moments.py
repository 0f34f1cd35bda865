"""What a fixed point of EM makes equal: statistics expected given the sequences, and by the parameters.

The E-step finds n(i, j), the expected transitions; at a fixed point they are n(i) transitions[i, j]. So it is with
first states, symbols, and the sufficient statistics of other distributions, each times the indicator of its state.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats

#: A state whose expected steps are below this number is unused.
UNUSED = 1e-8


@dataclass(frozen=True, eq=False)
class MatchedPart:
    """Names, and for each what is expected given the sequences, what by the parameters, and what a prior adds."""

    names: list[str]
    seen: Floats
    expected: Floats
    pull: Floats

    def chosen(self, places: NDArray[np.intp]) -> MatchedPart:
        """Some of them."""
        return MatchedPart(
            [self.names[index] for index in places], self.seen[places], self.expected[places], self.pull[places]
        )


def without_pull(names: list[str], seen: Floats, expected: Floats) -> MatchedPart:
    """Statistics on which no pseudo-counts act."""
    return MatchedPart(names, seen, expected, np.zeros(len(names)))


def of_rows(names: list[list[str]], counts: Floats, rows: Floats, pseudo: Floats) -> Iterator[MatchedPart]:
    """Counts (K, M) and n(row) times its probabilities, in shares of all counts; a prior adds a - sum(a) p."""
    mass = counts.sum(axis=1, keepdims=True)
    kept = np.flatnonzero((mass[:, 0] > UNUSED) & np.isfinite(rows).all(axis=1))
    total = float(mass.sum())
    if not len(kept):
        return
    pull = pseudo - pseudo.sum(axis=1, keepdims=True) * rows
    flat = [((part[kept]) / total).ravel() for part in (counts, mass * rows, pull)]
    yield MatchedPart([name for row in kept for name in names[row]], *flat)
