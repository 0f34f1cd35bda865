"""Compiled loops over segments, in log space: every segment that ends, or begins, at a step is visited once.

Tables of durations are (D, K): `lasts[d, j]` is the log-probability that a segment of j has d + 1 steps, `stays[d, j]`
that it has as many or more; the first `widths[j]` of them count.
"""

from __future__ import annotations

import math

import numpy as np

from suffice.array_types import Floats, Ints
from suffice.kernels.jit import kernel


@kernel
def _log_sum(terms: Floats, count: int, top: float) -> float:
    """The log of a sum of exp(terms), the largest of which is `top`."""
    if top == -math.inf:
        return top
    total = 0.0
    for k in range(count):
        total += math.exp(terms[k] - top)
    return top + math.log(total)


@kernel
def _row_sum(row: Floats, more: Floats) -> float:
    """The log of the sum of exp(row + more)."""
    top = -math.inf
    for j in range(len(row)):
        top = max(top, row[j] + more[j])
    if top == -math.inf:
        return top
    total = 0.0
    for j in range(len(row)):
        total += math.exp(row[j] + more[j] - top)
    return top + math.log(total)


@kernel
def _arrive(scores: Floats, begins: Floats, table: Floats, width: int, t: int, j: int, terms: Floats) -> float:
    """The log mass of segments of j that a step ends, or holds."""
    run, top, count = 0.0, -math.inf, min(width, t + 1)
    for d in range(count):
        run += scores[t - d, j]
        if run == -math.inf:
            count = d
            break
        terms[d] = begins[t - d, j] + run + table[d, j]
        top = max(top, terms[d])
    return _log_sum(terms, count, top)


@kernel
def forward(
    scores: Floats,
    first: Floats,
    back_moves: Floats,
    widths: Ints,
    lasts: Floats,
    stays: Floats,
    begins: Floats,
    ends: Floats,
) -> float:
    """Log mass of one sequence; back_moves (K, K): the logs of transitions, turned.

    begins[s, j]: of the steps before s, and a segment of j that begins with step s. ends[t, j]: of the steps up to t,
    and a segment of j that ends with it; at the last step one that goes on or not.
    """
    steps, size = scores.shape
    terms = np.empty(len(lasts))
    begins[0] = first
    for t in range(steps):
        table = stays if t == steps - 1 else lasts
        for j in range(size):
            ends[t, j] = _arrive(scores, begins, table, widths[j], t, j, terms)
        if t < steps - 1:
            for j in range(size):
                begins[t + 1, j] = _row_sum(back_moves[j], ends[t])
    return _row_sum(ends[steps - 1], np.zeros(size))


@kernel
def reached(scores: Floats, widths: Ints, stays: Floats, begins: Floats, out: Floats) -> None:
    """out[t, j]: the log mass of the steps up to t, and a segment of j that holds step t."""
    terms = np.empty(len(stays))
    for t in range(len(scores)):
        for j in range(scores.shape[1]):
            out[t, j] = _arrive(scores, begins, stays, widths[j], t, j, terms)


@kernel
def backward(
    scores: Floats,
    moves: Floats,
    widths: Ints,
    lasts: Floats,
    stays: Floats,
    begins: Floats,
    ends: Floats,
    log_z: float,
    weight: float,
    posteriors: Floats,
    sums: tuple[Floats, Floats, Floats, Floats],
    back: Floats,
) -> None:
    """Posteriors (T, K), which are 0 before; weighted sums: first states, transitions, segments ended, segments cut.

    back[s, j]: the log mass of the steps from s on, given that a segment of j begins with step s.
    """
    steps, size = scores.shape
    initial, pairs, ended, cut = sums
    terms, after = np.empty(len(lasts)), np.empty((steps, size))
    for s in range(steps - 1, -1, -1):
        for j in range(size):
            run, top, count = 0.0, -math.inf, min(widths[j], steps - s)
            for d in range(count):
                run += scores[s + d, j]
                if run == -math.inf:
                    count = d
                    break
                terms[d] = run + (stays[d, j] if s + d == steps - 1 else lasts[d, j] + after[s + d, j])
                top = max(top, terms[d])
            back[s, j] = _log_sum(terms, count, top)
            if top == -math.inf or begins[s, j] == -math.inf:
                continue
            held = 0.0
            for d in range(count - 1, -1, -1):
                share = math.exp(begins[s, j] + terms[d] - log_z)
                held += share
                posteriors[s + d, j] += held
                if s + d == steps - 1:
                    cut[d, j] += weight * share
                else:
                    ended[d, j] += weight * share
            if s == 0:
                initial[j] += weight * held
        if s > 0:
            for i in range(size):
                after[s - 1, i] = _row_sum(moves[i], back[s])
                for j in range(size):
                    pairs[i, j] += weight * math.exp(ends[s - 1, i] + moves[i, j] + back[s, j] - log_z)


@kernel
def best_path(
    scores: Floats, first: Floats, moves: Floats, widths: Ints, lasts: Floats, stays: Floats, path: Ints
) -> float:
    """The most probable path (T,) of one sequence, and its log-probability; of equal ones the shortest last segment."""
    steps, size = scores.shape
    begins, ends = np.empty((steps, size)), np.empty((steps, size))
    before, lengths = np.zeros((steps, size), np.int64), np.zeros((steps, size), np.int64)
    begins[0] = first
    for t in range(steps):
        table = stays if t == steps - 1 else lasts
        for j in range(size):
            run, ends[t, j] = 0.0, -math.inf
            for d in range(min(widths[j], t + 1)):
                run += scores[t - d, j]
                value = begins[t - d, j] + run + table[d, j]
                if value > ends[t, j]:
                    ends[t, j], lengths[t, j] = value, d + 1
        if t < steps - 1:
            for j in range(size):
                begins[t + 1, j] = -math.inf
                for i in range(size):
                    value = ends[t, i] + moves[i, j]
                    if value > begins[t + 1, j]:
                        begins[t + 1, j], before[t + 1, j] = value, i
    last = 0
    for j in range(size):
        if ends[steps - 1, j] > ends[steps - 1, last]:
            last = j
    best: float = ends[steps - 1, last]
    t = steps - 1
    while t >= 0 and best > -math.inf:
        begin = t - lengths[t, last] + 1
        path[begin : t + 1] = last
        last, t = before[begin, last], begin - 1
    return best
