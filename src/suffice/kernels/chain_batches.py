"""The forward-backward recursion on sequences side by side: which sequences make a batch, and the calls of the loops.

A batch is only worth its while where most of its sequences have something to do: one long sequence is not, and is done
alone. Which sequences go together depends on their lengths alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats, Ints
from suffice.kernels.arrays import frozen

Places = NDArray[np.uint64]

#: Sequences side by side, as in the compiled loops.
WIDTH = 32
#: Labels of a batch are filled up to a multiple of this.
TILE = 4
#: Bytes that the steps of one batch may take.
MOST_BYTES = 64_000_000
#: A scaled row with less mass than this sends its sequence to log space: what underflows is smaller still.
LEAST = 1e-200
#: The joint posteriors by step that nobody asked for.
NO_PAIRS = np.zeros(0)


def batches(lengths: Ints, size: int, busy: float = 0.5) -> Ints:
    """Sequences (batches, `WIDTH`) where a batch pays, from the longest to the shortest; -1 for none.

    busy: the share of its steps that must be those of a sequence, as a step of a sequence alone costs ``1 / busy`` as
    much. A batch takes at most `MOST_BYTES`.
    """
    longest = MOST_BYTES // (16 * filled_up(size) * WIDTH)
    order = np.argsort(-lengths, kind="stable")
    ordered = lengths[order].tolist()
    totals = np.concatenate(([0], np.cumsum(lengths[order]))).tolist()
    starts, first = [], 0
    while first < len(ordered):
        last = min(first + WIDTH, len(ordered))
        if 0 < ordered[first] <= longest and busy * WIDTH * ordered[first] <= totals[last] - totals[first]:
            starts.append(first)
            first = last
        else:
            first += 1
    places = np.array(starts, np.int64)[:, None] + np.arange(WIDTH)
    return np.asarray(np.append(order, -1)[np.minimum(places, len(order))])


def filled_up(size: int) -> int:
    """Labels, with those that fill up."""
    return -(-size // TILE) * TILE


def spans(costs: Ints, most: int) -> list[tuple[int, int]]:
    """Ranges of things in a row whose costs sum to about `most`."""
    ends = np.cumsum(costs)
    marks = np.searchsorted(ends, np.arange(most, int(ends[-1]) if len(ends) else 0, most)) + 1
    return list(pairwise(np.unique(np.concatenate(([0], marks, [len(ends)]))).tolist()))


@dataclass(frozen=True, eq=False)
class Layout:
    """Where sequences lie: `begins` (batches,) in flat arrays, and `lengths` (batches, width), falling."""

    begins: Places
    lengths: Places
    numbers: int

    @classmethod
    def of(cls, lengths: Places, size: int) -> Layout:
        """Batches one after another; size: labels of a step."""
        numbers = lengths[:, 0] * np.uint64(size * lengths.shape[1])
        ends = np.cumsum(numbers)
        return cls(frozen(ends - numbers), frozen(lengths), int(ends[-1]) if len(ends) else 0)


class Recursion:
    """Forward and backward with given transitions (1 or steps, K, K) and ends (2, K).

    batched: whether sequences lie side by side, with labels that fill up; else one after another, width 1.
    """

    def __init__(self, transitions: Floats, ends: Floats, *, batched: bool) -> None:
        """Bring the numbers into the form that the loops take."""
        size = transitions.shape[1]
        self.size = filled_up(size) if batched else size
        if self.size > size:
            matrix, edges = np.zeros((1, self.size, self.size)), np.zeros((2, self.size))
            matrix[:, :size, :size], edges[:, :size] = transitions, ends
            transitions, ends = matrix, edges
        self._batch, self._labels, self._ends = True if batched else None, size, frozen(ends.reshape(-1))
        self._matrices = frozen(transitions.reshape(-1))
        self._turned = frozen(np.ascontiguousarray(transitions.transpose(0, 2, 1)).reshape(-1))

    def forward(self, potentials: Floats, layout: Layout, out: Floats, rows: Floats) -> None:
        """Log Z of each sequence (batches, width), NaN where log space is needed, and flat forward rows."""
        from suffice.kernels.compiled.chain import forward

        given = (frozen(potentials), self._matrices, self._ends, np.uint64(self.size), self._batch)
        forward(*given, layout.begins, layout.lengths, LEAST, out, rows)

    def posteriors(
        self, potentials: Floats, layout: Layout, shares: Floats, out: Floats, rows: Floats, pairs: Floats = NO_PAIRS
    ) -> Floats:
        """Log Z, posteriors, and the sums (K, K) of joint posteriors, weighted by shares, which are returned.

        The sums lack the factor of the transitions where those are shared. Sequences whose log Z is NaN are in no sum.
        """
        self.forward(potentials, layout, out, rows)
        fine = ~np.isnan(out)
        sums = self._backward(potentials, layout, shares, out, rows, pairs)
        lost = np.isnan(out)
        if lost[fine].any():  # Found too small on the way back, when part of its sums had been added.
            self.forward(potentials, layout, out, rows)
            out[lost] = np.nan
            sums = self._backward(potentials, layout, shares, out, rows, pairs)
        return sums

    def _backward(
        self, potentials: Floats, layout: Layout, shares: Floats, out: Floats, rows: Floats, pairs: Floats
    ) -> Floats:
        from suffice.kernels.compiled.chain import backward

        size = np.uint64(self.size)
        given = (frozen(potentials), self._matrices, self._turned, self._ends, size, self._batch)
        sums = np.zeros(self.size * self.size)
        backward(*given, layout.begins, layout.lengths, LEAST, frozen(shares), out, rows, sums, pairs)
        return sums.reshape(self.size, self.size)[: self._labels, : self._labels]
