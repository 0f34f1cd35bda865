"""How the weights of a chain lie in one vector, for all columns of a design or for those that some sequences have.

The vector holds the weights of (feature, label) pairs, packed by feature, then those of (label, label) pairs, those of
first and last labels where asked for, and those of transitions that depend on features, (feature, label, label).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats, Ints
from suffice.engines.label_scores import Packing, ranges

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ChainLayout:
    """How the weights of a chain lie in one vector: numbers alone, which travel to where the sequences are.

    `free` (K, K): transitions that have a weight. `allowed` (K, K) and `ends` (2, K): which transitions, and which
    first and last labels, are possible. `conditioned` (g,): columns of the design that transitions depend on.
    """

    packing: Packing
    free: Mask
    allowed: Mask
    ends: Mask
    boundaries: bool
    conditioned: Ints

    @property
    def size(self) -> int:
        """The number of labels."""
        return self.packing.size

    @cached_property
    def bounds(self) -> tuple[int, ...]:
        """Where each part of the vector ends."""
        parts = (
            len(self.packing.labels),
            int(self.free.sum()),
            int(self.ends.sum()) if self.boundaries else 0,
            len(self.conditioned) * int(self.allowed.sum()),
        )
        return tuple(np.cumsum(parts).tolist())

    @property
    def length(self) -> int:
        """The number of weights."""
        return self.bounds[-1]

    def states(self, weights: Floats) -> Floats:
        """The packed weights of (feature, label) pairs."""
        return weights[: self.bounds[0]]

    def transitions(self, weights: Floats) -> Floats:
        """The weights of transitions (K, K): 0 where there is none, -inf where a transition is impossible."""
        matrix = np.where(self.allowed, 0.0, -np.inf)
        matrix[self.free] = weights[self.bounds[0] : self.bounds[1]]
        return matrix

    def end_weights(self, weights: Floats) -> Floats:
        """The weights of first and last labels (2, K); -inf where impossible."""
        matrix = np.where(self.ends, 0.0, -np.inf)
        if self.boundaries:
            matrix[self.ends] = weights[self.bounds[1] : self.bounds[2]]
        return matrix

    def conditioned_weights(self, weights: Floats) -> Floats:
        """The weights of transitions that depend on features (g, K, K), 0 where a transition is impossible."""
        matrices = np.zeros((len(self.conditioned), self.size, self.size))
        matrices[:, self.allowed] = weights[self.bounds[2] :].reshape(len(self.conditioned), int(self.allowed.sum()))
        return matrices

    def joined(self, states: Floats, transitions: Floats, ends: Floats, conditioned: Floats) -> Floats:
        """The vector of parts: packed (p,), (K, K), (2, K) and (g, K, K)."""
        return np.concatenate(
            (
                states,
                transitions[self.free],
                ends[self.ends] if self.boundaries else np.zeros(0),
                conditioned[:, self.allowed].ravel(),
            )
        )

    def arrays(self) -> list[NDArray[Any]]:
        """What tells it from others."""
        packing = self.packing
        return [packing.pointers, packing.labels, self.free, self.allowed, self.ends, self.conditioned]

    def of_columns(self, own: Ints) -> tuple[ChainLayout, Ints]:
        """The weights of some columns (c,), which rise, with all others; and where they are in the whole vector."""
        packing, (first, _, conditions, _) = self.packing, self.bounds
        counts = np.diff(packing.pointers)[own]
        pairs = ranges(packing.pointers[own], counts)
        pointers = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
        number = np.full(len(packing.pointers), -1)
        number[own] = np.arange(len(own))
        here = np.flatnonzero(number[self.conditioned] >= 0)
        moves = int(self.allowed.sum())
        depending = (conditions + here[:, None] * moves + np.arange(moves)).ravel()
        part = self._with(Packing(pointers, packing.labels[pairs], packing.size), number[self.conditioned[here]])
        return part, np.concatenate((pairs, np.arange(first, conditions), depending))

    def spread_over(self, columns: Ints, width: int) -> ChainLayout:
        """The same weights for a design of more columns, among which those of this layout are (c,), rising."""
        counts = np.zeros(width, np.int64)
        counts[columns] = np.diff(self.packing.pointers)
        pointers = np.concatenate(([0], np.cumsum(counts)))
        return self._with(Packing(pointers, self.packing.labels, self.packing.size), columns[self.conditioned])

    def _with(self, packing: Packing, conditioned: Ints) -> ChainLayout:
        return ChainLayout(packing, self.free, self.allowed, self.ends, self.boundaries, conditioned)
