"""One sequence at a time, by the compiled loops, with as little around them as can be: for stochastic ascent.

What a minibatch tells is held by step and label, not by weight, so that an update touches the weights of the features
at hand alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from suffice.array_types import Floats, Ints
from suffice.kernels.arrays import frozen
from suffice.kernels.chain_batches import LEAST, NO_PAIRS
from suffice.kernels.label_scores import Matrix, Packing, compiled

#: Transitions (1, W, W), their transpose, and ends (2, W), as the loops take them.
Link = tuple[Any, ...]

#: Labels are padded to a multiple of this, the numbers in one vector register.
TILE = 4


class SequenceSteps:
    """The sequences of a design (steps, features); sequence s has the steps ``offsets[s]`` to ``offsets[s + 1]``."""

    def __init__(self, design: Matrix, packing: Packing, offsets: Ints) -> None:
        """See the class."""
        from suffice.kernels.compiled import chain, chain_paths, exponentials, label_scores

        self._chain, self._paths, self._labels, self._exponentials = chain, chain_paths, label_scores, exponentials
        self._arrays, self._size = (*design.arrays, *packing.arrays), packing.size
        self._width = -(-packing.size // TILE) * TILE
        self._offsets: list[int] = offsets.tolist()
        longest = int(np.diff(offsets).max())
        self._potentials, self._shift = np.zeros((longest, self._width)), np.empty(longest)
        self._bounds, self._mass = np.zeros(2, np.int64), np.empty((1, 1))
        self._begin, self._length = frozen(np.zeros(1, np.uint64)), np.zeros((1, 1), np.uint64)
        self._lengths = frozen(self._length)
        self._back, self._path = np.zeros((longest, self._width), np.int64), np.empty(longest, np.int64)
        width = self._width
        self._linked = np.empty((1, width, width)), np.empty((1, width, width)), np.empty((2, width))
        # The same memory, in the form that the loops are compiled for: see `frozen`.
        self._given = (frozen(self._potentials), frozen(self._bounds))
        self._link: Link = tuple(map(frozen, self._linked))
        self._one = frozen(np.ones((1, 1)))

    @staticmethod
    def pay(design: Matrix, size: int, calls: int) -> bool:
        """Whether the compiled loops pay, where the whole design is gone through `calls` times."""
        return compiled(design, size, calls)

    def link(self, transitions: Floats, ends: Floats, *, logs: bool = False) -> Link:
        """Log weights (K, K) and (2, K), -inf where impossible; unless logs are wanted, exp with a maximum of 1.

        It holds until the next one is asked for.
        """
        size, (matrix, turned, borders) = self._size, self._linked
        matrix.fill(-np.inf)
        borders.fill(-np.inf)
        matrix[0, :size, :size], borders[:, :size] = transitions, ends
        if not logs:
            for part in (matrix, borders[:1], borders[1:]):
                top = part.max()
                part -= top if top > -np.inf else 0.0
                np.exp(part, out=part)
            turned[0] = matrix[0].T
        return self._link

    def posteriors(self, s: int, states: Floats, scale: float, link: Link) -> tuple[Floats, Floats] | None:
        """Posteriors of the labels (steps, W) and sums of those of transitions (K, K); None: log space is needed.

        states (p,): packed weights, divided by `scale` and read-only.
        """
        potentials, steps = self._scores(s, states, scale)
        self._exponentials.scale_rows(self._potentials[:steps], self._size, self._shift[:steps])
        matrix, turned, ends = link
        rows, sums = np.empty((steps, self._width)), np.zeros((self._width, self._width))
        flat, lengths = potentials.reshape(-1), self._lengths
        self._length[0, 0] = steps
        shape = (np.uint64(self._width), None, self._begin, lengths, LEAST)
        self._chain.forward(flat, matrix.reshape(-1), ends.reshape(-1), *shape, self._mass, rows.reshape(-1))
        if self._mass[0, 0] == self._mass[0, 0]:
            given = (flat, matrix.reshape(-1), turned.reshape(-1), ends.reshape(-1), *shape, self._one)
            self._chain.backward(*given, self._mass, rows.reshape(-1), sums.reshape(-1), NO_PAIRS)
        if not self._mass[0, 0] == self._mass[0, 0]:
            return None
        return rows, (sums * matrix[0])[: self._size, : self._size]

    def best_path(self, s: int, states: Floats, link: Link) -> Ints:
        """The best labels (steps,) of a sequence, as `best_paths` of the chains; link: of logarithms."""
        scores, steps = self._scores(s, states, 1.0)
        values, path = np.empty(1), self._path[:steps]
        given = (scores, link[0], link[2], self._given[1], (0, 1), self._back[:steps])
        self._paths.best_paths(*given, path, values)
        return path.copy()

    def add(self, s: int, rows: Floats, out: Floats) -> None:
        """Add feature times rows (steps, W) of one sequence to packed sums (p,)."""
        given = rows.view()
        given.flags.writeable = False
        self._labels.add_features(*self._arrays, given, self._size, self._span(s), out)

    def _scores(self, s: int, states: Floats, scale: float) -> tuple[Floats, int]:
        """Scores (steps, W) of one sequence, and how many steps it has."""
        span = self._span(s)
        steps = span[1] - span[0]
        scores = self._potentials[:steps]
        self._labels.add_scores(*self._arrays, states, self._size, span, scores)
        if scale != 1.0:
            scores *= scale
        self._bounds[1] = steps
        return self._given[0][:steps], steps

    def _span(self, s: int) -> tuple[int, int]:
        return self._offsets[s], self._offsets[s + 1]
