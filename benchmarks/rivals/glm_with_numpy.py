"""What a careful user writes in NumPy: iteratively reweighted least squares with one Gram matrix a step."""

from __future__ import annotations

import numpy as np

from benchmarks.contender import Data, Run
from benchmarks.regression import Floats, loosest


def fit(data: Data, *, equal: bool = False, errors: bool = False) -> Run:
    """Newton's method until the coefficients move by less than 1e-8 of themselves, or than is needed."""
    X, y, logistic = data["X"], data["y"], str(data["family"]) == "binomial"

    def solved(tolerance: float) -> Floats:
        design = np.column_stack([np.ones(len(X)), X])
        beta = np.zeros(design.shape[1])
        if not logistic:
            beta[0] = np.log(y.mean())
        for _ in range(100):
            eta = design @ beta
            mean = 1.0 / (1.0 + np.exp(-eta)) if logistic else np.exp(eta)
            weights = mean * (1.0 - mean) if logistic else mean
            information = design.T @ (design * weights[:, None])
            step = np.linalg.solve(information, design.T @ (y - mean))
            beta += step
            if np.abs(step).max() <= tolerance * np.abs(beta).max():
                break
        if errors:
            np.sqrt(np.diag(np.linalg.inv(information)))
        return beta

    tolerance = loosest(data, solved) if equal else 1e-8
    return lambda: solved(tolerance)
