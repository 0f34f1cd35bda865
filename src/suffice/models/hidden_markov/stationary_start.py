"""Transitions whose stationary distribution is the distribution of the first state: the M-step has no closed form."""

from __future__ import annotations

import numpy as np

from suffice.array_types import Floats
from suffice.models.hidden_markov.parameters import stationary


def objective(transitions: Floats, first: Floats, counts: Floats) -> tuple[float, Floats]:
    """``first . log delta(P) + sum counts log P`` and its slope in P (K, K), delta the stationary distribution of P.

    With delta (I - P + 1) = 1' a change dP moves delta by ``delta dP (I - P + 1)^-1``.
    """
    from scipy.special import xlogy

    delta = stationary(transitions)
    inverse = np.linalg.inv(np.eye(len(delta)) - transitions + 1.0)
    pull = inverse @ np.divide(first, delta, out=np.zeros_like(first), where=first > 0)
    value = float(xlogy(first, delta).sum() + xlogy(counts, transitions).sum())
    slope = np.outer(delta, pull) + np.divide(counts, transitions, out=np.zeros_like(counts), where=counts > 0)
    return value, slope


def maximise_stationary(first: Floats, counts: Floats, before: Floats) -> Floats:
    """The best transitions, begun at the better of those before and those of the counts alone; zeros are kept."""
    from scipy.optimize import minimize

    free = before > 0
    total = counts.sum(axis=1, keepdims=True)
    plain = np.where(total > 0, counts / np.where(total > 0, total, 1.0), before)
    plain = np.where(free, np.maximum(plain, 1e-12), 0.0)
    plain /= plain.sum(axis=1, keepdims=True)
    start = max((plain, before), key=lambda matrix: objective(matrix, first, counts)[0])

    def matrix_of(logs: Floats) -> Floats:
        table = np.where(free, 0.0, -np.inf)
        table[free] = logs
        table = np.exp(table - table.max(axis=1, keepdims=True))
        return np.asarray(table / table.sum(axis=1, keepdims=True))

    def negative(logs: Floats) -> tuple[float, Floats]:
        matrix = matrix_of(logs)
        value, slope = objective(matrix, first, counts)
        inner = matrix * (slope - (slope * matrix).sum(axis=1, keepdims=True))
        return -value, -inner[free]

    solution = minimize(
        negative, np.log(start[free]), jac=True, method="L-BFGS-B", options={"maxiter": 100, "gtol": 1e-9}
    )
    best = matrix_of(solution.x)
    return best if objective(best, first, counts)[0] >= objective(start, first, counts)[0] else start
