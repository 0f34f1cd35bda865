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

#: Sequences side by side, and the share of the steps of a batch that must be those of a sequence. A step of a sequence
#: in a narrow batch costs somewhat more than one in a wide batch, a step of a sequence alone about twice as much.
WIDTHS = ((32, 0.8), (8, 0.5))
#: Labels that are filled up make a multiple of this, the numbers of a vector register; those of a batch are even.
TILE, EVEN = 4, 2
#: Bytes that the steps of one batch may take.
MOST_BYTES = 64_000_000
#: A scaled row with less mass than this sends its sequence to log space: what underflows is smaller still.
LEAST = 1e-200
#: The joint posteriors by step that nobody asked for.
NO_PAIRS = np.zeros(0)


def batches(lengths: Ints, size: int) -> list[Ints]:
    """Sequences (batches, width) where a batch pays, for each of `WIDTHS`, from the longest to the shortest; -1: none.

    A batch takes at most `MOST_BYTES`.
    """
    order = np.argsort(-lengths, kind="stable")
    chosen = []
    for width, busy in WIDTHS:
        longest = MOST_BYTES // (16 * filled_up(size, EVEN) * width)
        starts = np.array(_starts(lengths[order], width, busy, longest), np.int64)
        rows = np.minimum(starts[:, None] + np.arange(width), len(order))
        chosen.append(np.append(order, -1)[rows])
        order = np.delete(order, rows[rows < len(order)])
    return chosen


def _starts(lengths: Ints, width: int, busy: float, longest: int) -> list[int]:
    """Where batches begin among falling lengths."""
    ordered, totals = lengths.tolist(), np.concatenate(([0], np.cumsum(lengths))).tolist()
    starts, first = [], 0
    while first < len(ordered):
        last = min(first + width, len(ordered))
        pays = 0 < ordered[first] <= longest and busy * width * ordered[first] <= totals[last] - totals[first]
        if pays:
            starts.append(first)
        first = last if pays else first + 1
    return starts


def filled_up(size: int, tile: int = TILE) -> int:
    """Labels, with those that fill up."""
    return -(-size // tile) * tile


def spans(costs: Ints, most: int) -> list[tuple[int, int]]:
    """Ranges of things in a row whose costs sum to about `most`."""
    ends = np.cumsum(costs)
    marks = np.searchsorted(ends, np.arange(most, int(ends[-1]) if len(ends) else 0, most)) + 1
    return list(pairwise(np.unique(np.concatenate(([0], marks, [len(ends)]))).tolist()))


@dataclass(frozen=True, eq=False)
class BatchLayout:
    """Where sequences lie: `begins` (batches,) in flat arrays, and `lengths` (batches, width), falling."""

    begins: Places
    lengths: Places
    numbers: int

    @classmethod
    def of(cls, lengths: Places, size: int) -> BatchLayout:
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
        self.size = filled_up(size, EVEN) if batched else size
        if self.size > size:
            matrix, edges = np.zeros((1, self.size, self.size)), np.zeros((2, self.size))
            matrix[:, :size, :size], edges[:, :size] = transitions, ends
            transitions, ends = matrix, edges
        self._batched, self._labels, self._ends = batched, size, frozen(ends.reshape(-1))
        self._matrices = frozen(transitions.reshape(-1))
        self._turned = frozen(np.ascontiguousarray(transitions.transpose(0, 2, 1)).reshape(-1))

    def forward(self, potentials: Floats, layout: BatchLayout, out: Floats, rows: Floats) -> None:
        """Log Z of each sequence (batches, width), NaN where log space is needed, and flat forward rows."""
        from suffice.kernels.compiled.chain import forward

        given = (frozen(potentials), self._matrices, self._ends, np.uint64(self.size), self._batch(layout))
        forward(*given, layout.begins, layout.lengths, LEAST, out, rows)

    def posteriors(
        self,
        potentials: Floats,
        layout: BatchLayout,
        shares: Floats,
        out: Floats,
        rows: Floats,
        pairs: Floats = NO_PAIRS,
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
        self, potentials: Floats, layout: BatchLayout, shares: Floats, out: Floats, rows: Floats, pairs: Floats
    ) -> Floats:
        from suffice.kernels.compiled.chain import backward

        size, batch = np.uint64(self.size), self._batch(layout)
        given = (frozen(potentials), self._matrices, self._turned, self._ends, size, batch)
        sums = np.zeros(self.size * self.size)
        backward(*given, layout.begins, layout.lengths, LEAST, frozen(shares), out, rows, sums, pairs)
        return sums.reshape(self.size, self.size)[: self._labels, : self._labels]

    def _batch(self, layout: BatchLayout) -> tuple[bool, ...] | None:
        """What tells the loops how many sequences lie side by side."""
        return (True,) * layout.lengths.shape[1] if self._batched else None
