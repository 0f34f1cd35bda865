"""Covariance selection by a generic optimiser, and by hand in NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmarks.contender import Data, Run


def fit(data: Data) -> Run:
    """SciPy's L-BFGS over diagonal and edges of the precision of standardised columns, with the exact gradient."""
    from scipy.optimize import minimize

    S, p = data["covariance"], len(data["covariance"])
    rows, columns = np.concatenate([np.tile(np.arange(p)[:, None], 2), data["edges"]]).T
    twice = np.where(rows == columns, 0.5, 1.0)

    def run() -> object:
        units = np.sqrt(np.outer(np.diag(S), np.diag(S)))
        R = S / units

        def loss(x: Any) -> tuple[float, Any]:
            K = np.zeros((p, p))
            K[rows, columns] = K[columns, rows] = x
            try:
                factor = np.linalg.cholesky(K)
            except np.linalg.LinAlgError:
                return 1e10, np.zeros_like(x)  # Far enough for the line search to turn back.
            half = np.linalg.inv(factor)
            value = np.log(np.diag(factor)).sum() - 0.5 * np.vdot(R, K)
            return -value, -twice * (half.T @ half - R)[rows, columns]

        start = np.concatenate([np.ones(p), np.zeros(len(rows) - p)])
        options: Any = {"maxiter": 10_000, "maxfun": 20_000, "ftol": 1e-16, "gtol": 1e-8}
        x = minimize(loss, start, jac=True, method="L-BFGS-B", options=options).x
        K = np.zeros((p, p))
        K[rows, columns] = K[columns, rows] = x
        return K / units

    return run


def by_regressions(data: Data) -> Run:
    """The regression of each node on its neighbours, in a Python loop until nothing moves by 1e-10."""
    S = data["covariance"]
    near = [np.concatenate([data["edges"][data["edges"][:, k] == j, 1 - k] for k in (0, 1)]) for j in range(len(S))]

    def run() -> object:
        W, K = S.copy(), np.zeros_like(S)
        change = math.inf
        while change > 1e-10:
            change = 0.0
            for j, at in enumerate(near):
                weights = np.linalg.solve(W[np.ix_(at, at)], S[at, j])
                row = weights @ W[at]
                row[j] = S[j, j]
                change = max(change, np.abs(row - W[j]).max())
                W[j] = W[:, j] = row
                K[j, j] = 1.0 / (S[j, j] - weights @ S[at, j])
                K[j, at] = -weights * K[j, j]
        return (K + K.T) / 2

    return run
