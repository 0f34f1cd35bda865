"""Covariance selection by regressions: each node in turn on its neighbours.

Given a positive definite W that agrees with S on the diagonal and on the edges, row j of the W with the largest
determinant, all other rows held, is ``W[:, N] W[N, N]^-1 S[N, j]`` with N the neighbours of j.
"""

from __future__ import annotations

import numpy as np

from suffice.array_types import Floats, Ints
from suffice.kernels.choice import use_compiled

#: Sweeps to expect of one fit, and seconds of a node on the NumPy path: a call, and its arithmetic.
_SWEEPS = 30
_SECONDS_PER_NODE = 25e-6
_SECONDS_PER_ENTRY = 1e-9


def compiled_pays(nodes: int, entries: int) -> bool:
    """Whether the sweeps of one fit are worth the compiled loop, with so many neighbours of all nodes together."""
    seconds = nodes * _SECONDS_PER_NODE + nodes * entries * _SECONDS_PER_ENTRY
    return use_compiled("node regression", seconds, calls=_SWEEPS, once=True)


def sweep(S: Floats, W: Floats, starts: Ints, neighbours: Ints, weights: Floats, *, compiled: bool) -> float:
    """Regress every node on its neighbours, once and in order.

    S (p, p) holds the observed covariances and W (p, p) those of the model, which is changed; node j has the neighbours
    ``neighbours[starts[j]:starts[j + 1]]``, whose weights are left in the same places of `weights`.

    Returns:
        The largest change of an entry of W; -1 where W has ceased to be positive definite.
    """
    if compiled:
        from suffice.kernels.compiled import node_regression

        return float(node_regression.sweep(S, W, starts, neighbours, weights))
    largest = 0.0
    for j in range(len(S)):
        part = slice(starts[j], starts[j + 1])
        near = neighbours[part]
        try:
            L = np.linalg.cholesky(W[np.ix_(near, near)])
        except np.linalg.LinAlgError:
            return -1.0
        beta = np.linalg.solve(L.T, np.linalg.solve(L, S[near, j]))
        if not S[j, j] - beta @ S[near, j] > 0:
            return -1.0
        weights[part] = beta
        row = beta @ W[near]
        row[j] = S[j, j]
        largest = max(largest, float(np.abs(row - W[j]).max()))
        W[j], W[:, j] = row, row
    return largest
