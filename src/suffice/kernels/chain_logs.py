"""One sequence in log space: slow, and safe where scaled rows would run out of numbers."""

from __future__ import annotations

import math

import numpy as np

from suffice.array_types import Floats, Ints


def log_sum(x: Floats, axis: int) -> Floats:
    """The log of the sum of exp(x) along an axis; -inf where nothing is there."""
    top = x.max(axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(x - top).sum(axis=axis)) + np.squeeze(top, axis=axis))


def forward(scores: Floats, transitions: Floats, initial: Floats) -> Floats:
    """Log forward rows (L, K); transitions (1, K, K) or (L, K, K)."""
    rows = np.empty_like(scores)
    rows[0] = initial + scores[0]
    for t in range(1, len(scores)):
        rows[t] = log_sum(rows[t - 1][:, None] + transitions[min(t, len(transitions) - 1)], 0) + scores[t]
    return rows


def expectations(scores: Floats, transitions: Floats, ends: Floats, pairs: Floats) -> tuple[float, Floats, Floats]:
    """Log mass, posteriors (L, K) and the sum of joint posteriors (K, K) of one sequence.

    Where the mass is zero, so are posteriors and sums. pairs (L, K, K), where it is not empty, takes the joint
    posteriors of each step and the one before.
    """
    rows = forward(scores, transitions, ends[0])
    total = float(log_sum(rows[-1] + ends[1], 0))
    sums = np.zeros_like(transitions[0])
    if not math.isfinite(total):
        return -math.inf, np.zeros_like(rows), sums
    posteriors, back = np.empty_like(rows), ends[1]
    posteriors[-1] = np.exp(rows[-1] + back - total)
    for t in range(len(scores) - 1, 0, -1):
        matrix = transitions[min(t, len(transitions) - 1)]
        joint = matrix + (scores[t] + back)[None, :]
        both = np.exp(rows[t - 1][:, None] + joint - total)
        sums += both
        if len(pairs):
            pairs[t] = both
        back = log_sum(joint, 1)
        posteriors[t - 1] = np.exp(rows[t - 1] + back - total)
    return total, posteriors, sums


def draw(scores: Floats, transitions: Floats, ends: Floats, uniforms: Floats) -> Ints:
    """Paths (n, L) from uniform numbers (n, L), the last label first."""
    rows = forward(scores, transitions, ends[0])
    paths = np.empty(uniforms.shape, np.int64)
    weights = np.broadcast_to(rows[-1] + ends[1], (len(uniforms), rows.shape[1]))
    for t in range(len(scores) - 1, -1, -1):
        if t < len(scores) - 1:
            weights = rows[t] + transitions[min(t + 1, len(transitions) - 1)][:, paths[:, t + 1]].T
        sums = np.cumsum(np.exp(weights - weights.max(axis=1, keepdims=True)), axis=1)
        marks = uniforms[:, t] * sums[:, -1]
        paths[:, t] = np.minimum((sums <= marks[:, None]).sum(axis=1), rows.shape[1] - 1)
    return paths
