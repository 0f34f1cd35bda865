"""Segments of a chain: one sequence in log space, compiled or by NumPy, a step at a time.

Segments of state j have d + 1 steps with the log-probability ``lasts[d, j]``, and as many or more with ``stays[d, j]``
(D, K). With scores b (T, K), transitions A and first states e a segment that begins at step s has the mass
``B_s(j) = sum_i E_(s-1)(i) A_ij`` before it, ``B_0 = e``, and one that ends at step t
``E_t(j) = sum_d B_(t-d)(j) lasts_d(j) prod_(t-d..t) b(j)``: T K (K + D) terms. The last step cuts the segment that it
is in, so `stays` take the place of `lasts` there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from suffice.array_types import Floats, Ints
from suffice.kernels.arrays import frozen
from suffice.kernels.chain_logs import log_sum
from suffice.kernels.choice import use_compiled

#: Seconds of a step on the NumPy path, and of each duration and state of it.
_STEP, _CELL = 4e-5, 2e-8


@dataclass(frozen=True, eq=False)
class SegmentSums:
    """Weighted sums over sequences: first states (K,), transitions (K, K), segments that ended and were cut (D, K)."""

    initial: Floats
    pairs: Floats
    ended: Floats
    cut: Floats

    @classmethod
    def none(cls, size: int, longest: int) -> SegmentSums:
        """Of no sequence."""
        return cls(np.zeros(size), np.zeros((size, size)), np.zeros((longest, size)), np.zeros((longest, size)))

    @property
    def arrays(self) -> tuple[Floats, Floats, Floats, Floats]:
        """All of them."""
        return self.initial, self.pairs, self.ended, self.cut


@dataclass(frozen=True, eq=False)
class SegmentLoops:
    """The recursions under fixed parameters, all logarithms: first (K,), moves (K, K), lasts and stays (D, K).

    calls: how many sequences of `steps` steps are to be expected; None where that is not known.
    """

    first: Floats
    moves: Floats
    lasts: Floats
    stays: Floats
    compiled: bool

    @classmethod
    def of(
        cls, first: Floats, moves: Floats, lasts: Floats, stays: Floats, steps: int, calls: int | None
    ) -> SegmentLoops:
        """For sequences of so many steps."""
        seconds = steps * (_STEP + _CELL * lasts.size)
        compiled = use_compiled("segments", seconds, calls=calls)
        return cls(frozen(first), frozen(moves), frozen(lasts), frozen(stays), compiled)

    @property
    def _widths(self) -> Ints:
        """How many durations of each state count (K,)."""
        longest = len(self.lasts)
        return frozen(longest - np.argmax((self.stays > -np.inf)[::-1], axis=0).astype(np.int64))

    def forward(self, scores: Floats) -> tuple[float, Floats, Floats]:
        """Log mass of one sequence; the logs of B and E (T, K)."""
        begins, ends = np.empty_like(scores), np.empty_like(scores)
        if self.compiled:
            from suffice.kernels.compiled import segments as loops

            turned = frozen(np.ascontiguousarray(self.moves.T))
            tables = (self._widths, self.lasts, self.stays)
            return loops.forward(frozen(scores), self.first, turned, *tables, begins, ends), begins, ends
        begins[0] = self.first
        steps = len(scores)
        for t in range(steps):
            ends[t] = log_sum(self._arrivals(scores, begins, t, self.stays if t == steps - 1 else self.lasts), 0)
            if t < steps - 1:
                begins[t + 1] = log_sum(ends[t][:, None] + self.moves, 0)
        return float(log_sum(ends[-1], 0)), begins, ends

    def _arrivals(self, scores: Floats, begins: Floats, t: int, table: Floats) -> Floats:
        """The log mass of segments (d, K) that step t ends, or holds, the shortest first."""
        count = min(len(table), t + 1)
        some = slice(t + 1 - count, t + 1)
        return np.asarray(scores[some][::-1].cumsum(axis=0) + begins[some][::-1] + table[:count])

    def reached(self, scores: Floats, begins: Floats) -> Floats:
        """The log mass (T, K) of the steps up to each, and of the state that it is in."""
        out = np.empty_like(scores)
        if self.compiled:
            from suffice.kernels.compiled import segments as loops

            loops.reached(frozen(scores), self._widths, self.stays, frozen(begins), out)
            return out
        for t in range(len(scores)):
            out[t] = log_sum(self._arrivals(scores, begins, t, self.stays), 0)
        return out

    def backward(
        self, scores: Floats, log_z: float, begins: Floats, ends: Floats, weight: float, sums: SegmentSums
    ) -> tuple[Floats, Floats]:
        """Posteriors (T, K), and the logs (T, K) of what follows a segment's beginning; adds to the sums."""
        posteriors, back = np.zeros_like(scores), np.empty_like(scores)
        if self.compiled:
            from suffice.kernels.compiled import segments as loops

            tables = (self._widths, self.lasts, self.stays, frozen(begins), frozen(ends))
            loops.backward(frozen(scores), self.moves, *tables, log_z, float(weight), posteriors, sums.arrays, back)
            return posteriors, back
        steps, after = len(scores), np.empty_like(scores)
        for s in range(steps - 1, -1, -1):
            count = min(len(self.lasts), steps - s)
            inner = count - (s + count == steps)
            run = scores[s : s + count].cumsum(axis=0)
            run[:inner] += self.lasts[:inner] + after[s : s + inner]
            run[inner:] += self.stays[inner:count]
            back[s] = log_sum(run, 0)
            shares = np.exp(begins[s] + run - log_z)
            held = shares[::-1].cumsum(axis=0)[::-1]
            posteriors[s : s + count] += held
            sums.ended[:inner] += weight * shares[:inner]
            sums.cut[inner:count] += weight * shares[inner:]
            if s == 0:
                sums.initial[:] += weight * held[0]
                break
            joint = self.moves + back[s]
            after[s - 1] = log_sum(joint, 1)
            sums.pairs[:] += weight * np.exp(ends[s - 1][:, None] + joint - log_z)
        return posteriors, back

    def best_path(self, scores: Floats) -> tuple[float, Ints]:
        """The most probable path (T,) and its log-probability; of equal ones that with the shortest last segment."""
        steps = len(scores)
        path = np.zeros(steps, np.int64)
        if self.compiled:
            from suffice.kernels.compiled import segments as loops

            given = (frozen(scores), self.first, self.moves, self._widths, self.lasts, self.stays)
            return loops.best_path(*given, path), path
        begins, ends = np.empty_like(scores), np.empty_like(scores)
        lengths, before = np.empty(scores.shape, np.int64), np.zeros(scores.shape, np.int64)
        begins[0] = self.first
        for t in range(steps):
            values = self._arrivals(scores, begins, t, self.stays if t == steps - 1 else self.lasts)
            lengths[t] = values.argmax(axis=0) + 1
            ends[t] = values.max(axis=0)
            if t < steps - 1:
                joint = ends[t][:, None] + self.moves
                before[t + 1], begins[t + 1] = joint.argmax(axis=0), joint.max(axis=0)
        last, t = int(ends[-1].argmax()), steps - 1
        best = float(ends[-1, last])
        while t >= 0 and best > -math.inf:
            begin = t - int(lengths[t, last]) + 1
            path[begin : t + 1] = last
            last, t = int(before[begin, last]), begin - 1
        return best, path
