"""Chains whose potentials are linear in sparse features: ``log potential[t, y] = sum_f x[t, f] weight[f, y]``.

Sequences are taken in pieces that stay in the cache from scores to gradients, so that memory follows the pieces and not
the steps. Pieces and the order of their sums depend on the sequences alone, not on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from suffice.array_types import Floats, Ints
from suffice.engines.chain import Chains
from suffice.engines.chain_statistics import counts_by_code
from suffice.engines.workers import worker_count
from suffice.kernels import chain as chain_kernels
from suffice.kernels import label_scores as kernels
from suffice.kernels.chain_batches import TILE, filled_up
from suffice.kernels.label_scores import Matrix as Matrix
from suffice.kernels.label_scores import Packing as Packing
from suffice.kernels.label_scores import label_pairs as label_pairs
from suffice.kernels.label_scores import ranges as ranges
from suffice.kernels.label_steps import SequenceSteps as SequenceSteps
from suffice.kernels.threads import run

#: Sums that are kept apart until the end: at most this many, and this many numbers in all.
MOST_SLOTS, SLOT_NUMBERS = 16, 4_000_000
#: More calls than any estimate: compiled, however small.
EVER = 1 << 60
#: Bytes that matrices of transitions for each step may take at once.
MATRIX_BYTES = 32_000_000


@dataclass(frozen=True, eq=False)
class ChainWeights:
    """Weights of a chain, as logarithms: packed states (p,), transitions (K, K), ends (2, K).

    `conditioned` (g, K, K) are weights of transitions that depend on g features of the step they lead into.
    """

    states: Floats
    transitions: Floats
    ends: Floats
    conditioned: Floats


@dataclass(frozen=True, eq=False)
class ExpectedFeatures:
    """Log partition (n,), and expected features in the layout of `ChainWeights`, weighted and summed."""

    log_partition: Floats
    states: Floats
    transitions: Floats
    ends: Floats
    conditioned: Floats


class ScoredSteps:
    """The steps of sequences with their sparse features: from weights to chains and to expected features.

    Args:
        design: (steps, features).
        packing: which weights there are.
        offsets: (n + 1,), where each sequence begins.
        conditions: a SciPy matrix (steps, g) of the features that transitions depend on, or None.
        threads: None is one for each core.
        calls: how many evaluations are to be expected; None leaves the choice of the path to what has been spent.
    """

    def __init__(
        self,
        design: Matrix,
        packing: Packing,
        offsets: Ints,
        *,
        conditions: Any = None,
        threads: int | None = None,
        calls: int | None = None,
    ) -> None:
        """See the class."""
        self.design, self.packing, self.offsets, self.conditions = design, packing, offsets, conditions
        self.threads = worker_count(threads)
        self.use = kernels.compiled(design, packing.size, calls, besides=chain_kernels.seconds(offsets, packing.size))
        # One choice for scores and chains, and for small pieces as for large ones: the price is paid once.
        self.calls = None if calls is None else EVER if self.use else 0
        most = None if conditions is None else max(MATRIX_BYTES // (8 * packing.size**2), 1)
        self.pieces = chain_kernels.pieces(offsets, packing.size, most)
        # Rows of whole vectors are read and written half as fast again; what is beyond the labels has no mass.
        self.width = filled_up(packing.size) if self.use and packing.size > TILE else packing.size
        self._buffers: dict[int, tuple[Floats, Floats, Floats]] = {}

    def chains(self, weights: ChainWeights) -> Iterator[tuple[Chains, tuple[int, int]]]:
        """The distribution of the labels, piece by piece, each with the range of its steps."""
        for piece in self.pieces:
            steps = self._steps(piece)
            potentials = np.empty((steps[1] - steps[0], self.packing.size))
            yield self._chains(piece, weights, potentials, np.empty(len(potentials))), steps

    def expected(self, weights: ChainWeights, shares: Floats) -> ExpectedFeatures:
        """Log partition and expected features; shares (n,): how often each sequence counts."""
        size, count = self.packing.size, len(self.packing.labels)
        slots = self._slots
        log_partition = np.zeros(len(self.offsets) - 1)
        states = np.zeros((len(slots), count))
        transitions, ends = np.zeros((len(slots), size, size)), np.zeros((len(slots), 2, size))
        conditioned = np.zeros((len(slots), *weights.conditioned.shape))

        def task(item: tuple[int, list[tuple[int, int]]], worker: int) -> None:
            slot, pieces = item
            for piece in pieces:
                sums, joint = self._piece(piece, weights, shares, states[slot], worker)
                log_partition[slice(*piece)] = sums[0]
                transitions[slot] += sums[1][:size, :size]
                ends[slot] += sums[2][:, :size]
                if joint is not None:
                    conditioned[slot] += joint

        run(task, enumerate(slots), min(self.threads, len(slots)))
        sums = (np.add.reduce(part, axis=0) for part in (states, transitions, ends, conditioned))
        return ExpectedFeatures(log_partition, *sums)

    def _piece(
        self, piece: tuple[int, int], weights: ChainWeights, shares: Floats, states: Floats, worker: int
    ) -> tuple[tuple[Floats, Floats, Floats], Floats | None]:
        """One piece: adds to states (p,); log partition, transitions and ends, and what depends on features."""
        steps = self._steps(piece)
        potentials, rows, shift = (buffer[: steps[1] - steps[0]] for buffer in self._buffer(worker))
        share = shares[slice(*piece)]
        chains = self._chains(piece, weights, potentials, shift)
        posterior = chains.expectations(share, pairs=self.conditions is not None, out=rows, threads=1, calls=self.calls)
        by_step = None if (share == 1.0).all() else np.repeat(share, np.diff(chains.offsets))
        if by_step is not None:
            rows *= by_step[:, None]
        kernels.add_features(self.design, self.packing, rows, steps, states, use=self.use)
        ends = np.stack((rows[chains.offsets[:-1]].sum(axis=0), rows[chains.offsets[1:] - 1].sum(axis=0)))
        joint = None
        if posterior.pairs is not None:
            flat = posterior.pairs.reshape(len(rows), -1)
            joint = self.conditions[slice(*steps)].T @ (flat if by_step is None else flat * by_step[:, None])
            joint = joint.reshape(-1, self.width, self.width)[:, : self.packing.size, : self.packing.size]
        return (posterior.log_partition, posterior.transition_sums, ends), joint

    def observed(self, codes: Ints, shares: Floats) -> ExpectedFeatures:
        """The features of one path of labels (steps,) through all sequences; its log partition is 0."""
        size, by_step = self.packing.size, np.repeat(shares, np.diff(self.offsets))
        states = kernels.count_labels(self.design, self.packing, codes, by_step)
        inner = np.ones(len(codes), np.bool_)
        inner[self.offsets[:-1]] = False
        after = np.flatnonzero(inner)
        cells = codes[after - 1] * size + codes[after]
        transitions = np.bincount(cells, by_step[after], minlength=size * size).reshape(size, size)
        ends = np.stack(
            [np.bincount(codes[edge], shares, minlength=size) for edge in (self.offsets[:-1], self.offsets[1:] - 1)]
        )
        conditioned = np.zeros((0, size, size))
        if self.conditions is not None:
            from scipy.sparse import csr_matrix

            paths = csr_matrix((by_step[after], (after, cells)), shape=(len(codes), size * size))
            conditioned = (self.conditions.T @ paths).toarray().reshape(-1, size, size)
        sums = (part.astype(np.float64) for part in (states, transitions, ends, conditioned))
        return ExpectedFeatures(np.zeros(len(self.offsets) - 1), *sums)

    def conditional_variance(self, weights: ChainWeights, codes: Ints, shares: Floats) -> ExpectedFeatures:
        """Half the sum over steps of the variance of every feature where the label of that step alone is open.

        All other labels are those given, codes (steps,). Let every second step be open: given the others these are
        independent, so that the variance is the sum of their terms, which by the law of total variance is at most that
        of all labels, in the mean over labels. Half the sum over all steps is the mean of the two choices. A sequence
        of one step counts in full.
        """
        size = self.packing.size
        states, ends = np.zeros(len(self.packing.labels)), np.zeros((2, size))
        transitions, conditioned = np.zeros((size, size)), np.zeros(weights.conditioned.shape)
        squared = replace(self.design, values=self.design.values**2)
        for piece in self.pieces:
            steps = self._steps(piece)
            lengths = np.diff(self.offsets[piece[0] : piece[1] + 1])
            # The labels on both sides of each step; K outside of the sequence.
            left, right = np.roll(codes[slice(*steps)], 1), np.roll(codes[slice(*steps)], -1)
            left[np.cumsum(lengths) - lengths] = right[np.cumsum(lengths) - 1] = size
            shares_open = self._open_probabilities(weights, steps, left, right)
            weight = np.repeat(shares[slice(*piece)] * np.where(lengths > 1, 0.5, 1.0), lengths)
            spread = np.zeros((len(left), self.width))
            spread[:, :size] = weight[:, None] * shares_open * (1.0 - shares_open)
            kernels.add_features(squared, self.packing, spread, steps, states, use=self.use)
            moves = _OpenMoves(left, right, shares_open, spread[:, :size], weight)
            here, at_ends = moves.variance()
            transitions += here
            ends += at_ends
            if self.conditions is not None:
                columns = self.conditions[slice(*steps)].toarray().T
                conditioned += np.array([moves.variance(column)[0] for column in columns])
        return ExpectedFeatures(np.zeros(len(self.offsets) - 1), states, transitions, ends, conditioned)

    def _open_probabilities(self, weights: ChainWeights, steps: tuple[int, int], left: Ints, right: Ints) -> Floats:
        """Probabilities (steps, K) of the label of each step of a range, given the labels beside it, K for none."""
        size = self.packing.size
        logs = np.empty((len(left), self.width))
        kernels.scores(self.design, self.packing, weights.states, steps, logs, use=self.use)
        logs = logs[:, :size]
        logs += np.vstack([weights.transitions, weights.ends[:1]])[left]
        logs += np.vstack([weights.transitions.T, weights.ends[1:]])[right]
        if self.conditions is not None:
            own = weights.conditioned.reshape(len(weights.conditioned), -1)
            moves = (self.conditions[slice(*steps)] @ own).reshape(-1, size, size)
            after, before = np.flatnonzero(left < size), np.flatnonzero(right < size)
            logs[after] += moves[after, left[after]]
            logs[before] += moves[before + 1, :, right[before]]
        logs -= logs.max(axis=1, keepdims=True)
        np.exp(logs, out=logs)
        logs /= logs.sum(axis=1, keepdims=True)
        return logs

    def _chains(self, piece: tuple[int, int], weights: ChainWeights, potentials: Floats, shift: Floats) -> Chains:
        """The chains of one piece; potentials (steps, width) may be wider than there are labels."""
        steps, size, width = self._steps(piece), self.packing.size, potentials.shape[1]
        kernels.scores(self.design, self.packing, weights.states, steps, potentials, use=self.use)
        kernels.scale_rows(potentials, size, shift, use=self.use)
        offsets = self.offsets[piece[0] : piece[1] + 1] - steps[0]
        inside = weights.transitions[None]
        if self.conditions is not None:
            own = weights.conditioned.reshape(len(weights.conditioned), -1)
            inside = inside + (self.conditions[slice(*steps)] @ own).reshape(-1, size, size)
        matrices, ends = inside, weights.ends
        if width > size:
            matrices, ends = np.full((len(inside), width, width), -np.inf), np.full((2, width), -np.inf)
            matrices[:, :size, :size], ends[:, :size] = inside, weights.ends
        return Chains.scaled(potentials, shift, self._logs(weights, steps[0], width), matrices, ends, offsets)

    def _logs(self, weights: ChainWeights, base: int, width: int) -> Callable[[slice], Floats]:
        """Log potentials of a range of steps of a piece, less their maximum: for log space and best paths."""

        def logs(span: slice) -> Floats:
            out = np.empty((span.stop - span.start, width))
            steps = (base + span.start, base + span.stop)
            kernels.scores(self.design, self.packing, weights.states, steps, out, use=self.use)
            out[:, self.packing.size :] = -np.inf
            out -= out.max(axis=1, keepdims=True)
            return out

        return logs

    @cached_property
    def _slots(self) -> list[list[tuple[int, int]]]:
        """Consecutive pieces whose sums are taken together."""
        most = max(2, min(MOST_SLOTS, SLOT_NUMBERS // max(len(self.packing.labels), 1)))
        bounds = np.linspace(0, len(self.pieces), min(most, len(self.pieces)) + 1).round().astype(int).tolist()
        return [self.pieces[a:b] for a, b in pairwise(bounds)]

    def _steps(self, piece: tuple[int, int]) -> tuple[int, int]:
        return int(self.offsets[piece[0]]), int(self.offsets[piece[1]])

    def _buffer(self, worker: int) -> tuple[Floats, Floats, Floats]:
        """Potentials, posteriors and shifts of one worker; made once, as new pages cost more than the arithmetic."""
        if worker not in self._buffers:
            most = max(self._steps(piece)[1] - self._steps(piece)[0] for piece in self.pieces)
            shape = (most, self.width)
            self._buffers[worker] = (np.empty(shape), np.empty(shape), np.empty(most))
        return self._buffers[worker]


@dataclass(frozen=True, eq=False)
class _OpenMoves:
    """Transitions where one label at a time is open, between those on its left and on its right (steps,), K for none.

    probabilities (steps, K) are those of the open labels, spread (steps, K) their variances, weighted.
    """

    left: Ints
    right: Ints
    probabilities: Floats
    spread: Floats
    weight: Floats

    def variance(self, column: Floats | None = None) -> tuple[Floats, Floats]:
        """Sums over steps of the variances of transitions (K, K), times a feature (steps,), and of ends (2, K).

        A transition (i, j) has the open label as j where i is on its left, and as i where j is on its right; where both
        happen the two are not independent, and twice their covariance enters. The feature is that of where it leads.
        """
        size = self.spread.shape[1]
        into = onward = np.ones(len(self.left))
        if column is not None:
            into, onward = column, np.append(column[1:], 0.0)
        after = _by_label(self.left, self.spread, into**2)
        before = _by_label(self.right, self.spread, onward**2)
        inner = np.flatnonzero((self.left < size) & (self.right < size))
        left, right = self.left[inner], self.right[inner]
        p, q = self.probabilities[inner, left], self.probabilities[inner, right]
        both = 2.0 * (self.weight * into * onward)[inner] * (np.where(left == right, p, 0.0) - p * q)
        cross = np.bincount(left * size + right, both, size * size).reshape(size, size)
        return after[:size] + before[:size].T + cross, np.stack([after[size], before[size]])


def _by_label(labels: Ints, rows: Floats, weight: Floats) -> Floats:
    """Rows (r, K), weighted (r,), summed by label (r,), of which K stands for none: (K + 1, K)."""
    return counts_by_code(labels.astype(np.int32), rows * weight[:, None], rows.shape[1] + 1)
