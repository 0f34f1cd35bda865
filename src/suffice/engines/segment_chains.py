"""Chains whose labels last: segments of explicit lengths, each followed by one of another label.

A segment of label j has d steps with the probability exp(lasts[d - 1, j]), and at least d with exp(stays[d - 1, j]). A
sequence begins with a segment; the last one is cut off by its end, and counts for every length that it may yet reach
(it is censored on the right). Labels that last for one step and may follow themselves make plain chains, so that chains
of both kinds of label are one recursion. In log space throughout; see `kernels.segments`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from suffice.array_types import Floats, Ints
from suffice.kernels.chain_logs import log_sum
from suffice.kernels.segments import SegmentLoops, SegmentSums


@dataclass(frozen=True, eq=False)
class SegmentExpectations:
    """Log Z (n,), -inf where a sequence has no path, posteriors (steps, K), which are then 0, and weighted sums."""

    log_partition: Floats
    posteriors: Floats
    sums: SegmentSums


@dataclass(frozen=True, eq=False)
class SegmentChains:
    """Sequences of steps with scores (steps, K); the logs of first labels (K,), moves (K, K) and durations (D, K).

    calls: as in `kernels.choice.use_compiled`.
    """

    scores: Floats
    offsets: Ints
    first: Floats
    moves: Floats
    lasts: Floats
    stays: Floats
    calls: int | None = None

    @cached_property
    def _loops(self) -> SegmentLoops:
        given = (self.first, self.moves, self.lasts, self.stays)
        return SegmentLoops.of(*given, len(self.scores), self.calls)

    @property
    def _size(self) -> int:
        return len(self.first)

    def _parts(self) -> list[tuple[int, slice, Floats]]:
        """Number, span and scores of each sequence."""
        bounds = self.offsets.tolist()
        spans = [slice(begin, end) for begin, end in pairwise(bounds)]
        return [(number, span, np.ascontiguousarray(self.scores[span])) for number, span in enumerate(spans)]

    def log_partition(self) -> Floats:
        """The log of the total of all paths (n,)."""
        return np.array([self._loops.forward(scores)[0] for _, _, scores in self._parts()])

    def expectations(self, weights: Floats) -> SegmentExpectations:
        """One pass forward and one backward; weights (n,) of the sequences in the sums."""
        log_z, posteriors = np.empty(len(self.offsets) - 1), np.zeros_like(self.scores)
        sums = SegmentSums.none(self._size, len(self.lasts))
        for number, span, scores in self._parts():
            log_z[number], begins, ends = self._loops.forward(scores)
            if log_z[number] > -np.inf:
                given = (scores, float(log_z[number]), begins, ends, float(weights[number]))
                posteriors[span], _ = self._loops.backward(*given, sums)
        return SegmentExpectations(log_z, posteriors, sums)

    def pairs(self) -> tuple[Floats, Floats]:
        """Log Z (n,), and P(label before a step, label of it | sequence) (steps, K, K), 0 at first steps."""
        log_z = np.empty(len(self.offsets) - 1)
        joint = np.zeros((len(self.scores), self._size, self._size))
        for number, span, scores in self._parts():
            log_z[number], begins, ends = self._loops.forward(scores)
            if log_z[number] == -np.inf:
                continue
            sums = SegmentSums.none(self._size, len(self.lasts))
            rows, back = self._loops.backward(scores, float(log_z[number]), begins, ends, 1.0, sums)
            moved = np.exp(ends[:-1, :, None] + self.moves + back[1:, None, :] - log_z[number])
            # A step in a segment that does not end is followed by one of the same label.
            went = np.exp(ends[:-1] + log_sum(self.moves + back[1:, None, :], 2) - log_z[number])
            labels = np.arange(self._size)
            moved[:, labels, labels] += np.maximum(rows[:-1] - went, 0.0)
            joint[span][1:] = moved
        return log_z, joint

    def filtered(self) -> tuple[Floats, Floats]:
        """Log Z (n,), and P(label of a step | the steps so far) (steps, K)."""
        log_z, rows = np.empty(len(self.offsets) - 1), np.zeros_like(self.scores)
        for number, span, scores in self._parts():
            log_z[number], begins, _ = self._loops.forward(scores)
            logs = self._loops.reached(scores, begins)
            top = log_sum(logs, 1)
            rows[span] = np.exp(logs - np.where(np.isfinite(top), top, 0.0)[:, None])
        return log_z, rows

    def best_paths(self) -> tuple[Ints, Floats]:
        """The most probable paths (steps,), and the log-probability of each sequence with its own (n,)."""
        paths, values = np.zeros(len(self.scores), np.int64), np.empty(len(self.offsets) - 1)
        for number, span, scores in self._parts():
            values[number], paths[span] = self._loops.best_path(scores)
        return paths, values

    def draw(self, count: int, rng: np.random.Generator) -> Ints:
        """Paths (count, steps) drawn from P(labels | sequence), the last segment first."""
        paths = np.zeros((count, len(self.scores)), np.int64)
        for _, span, scores in self._parts():
            _, begins, ends = self._loops.forward(scores)
            for path in paths[:, span]:
                self._draw_one(scores, begins, ends, path, rng)
        return paths

    def _draw_one(self, scores: Floats, begins: Floats, ends: Floats, path: Ints, rng: np.random.Generator) -> None:
        last = len(scores) - 1
        t, logs = last, ends[last]
        while t >= 0:
            label = _drawn(logs, rng)
            count = min(len(self.lasts), t + 1)
            some = slice(t + 1 - count, t + 1)
            table = self.stays if t == last else self.lasts
            run = scores[some, label][::-1].cumsum()
            duration = 1 + _drawn(run + begins[some, label][::-1] + table[:count, label], rng)
            begin = t - duration + 1
            path[begin : t + 1] = label
            t = begin - 1
            if t >= 0:
                logs = ends[t] + self.moves[:, label]

    def ahead(self, steps: int) -> tuple[Floats, Floats]:
        """Log Z (n,), and P(label | sequence) (n, steps, K) of the steps that follow; D covers those too."""
        log_z, rows = np.empty(len(self.offsets) - 1), np.zeros((len(self.offsets) - 1, steps, self._size))
        with np.errstate(invalid="ignore"):
            ending = np.where(self.stays > -np.inf, np.exp(self.lasts - self.stays), 1.0)
        moves = np.exp(self.moves)
        for number, _, scores in self._parts():
            log_z[number], begins, _ = self._loops.forward(scores)
            count = min(len(self.lasts), len(scores))
            logs = scores[::-1][:count].cumsum(axis=0) + begins[::-1][:count] + self.stays[:count]
            lasting = np.zeros_like(self.lasts)
            lasting[:count] = np.exp(logs - log_z[number]) if np.isfinite(log_z[number]) else 0.0
            for step in range(steps):
                ended = (lasting * ending).sum(axis=0)
                lasting *= 1.0 - ending
                lasting[1:], lasting[0] = lasting[:-1].copy(), ended @ moves
                rows[number, step] = lasting.sum(axis=0)
        return log_z, rows


def _drawn(logs: Floats, rng: np.random.Generator) -> int:
    """An index, with probabilities in proportion to exp(logs)."""
    shares = np.exp(logs - logs.max()).cumsum()
    return int(np.searchsorted(shares, rng.random() * shares[-1], side="right"))
