"""glum: iteratively reweighted least squares with a Gram matrix of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
from glum import GeneralizedLinearRegressor

from benchmarks.contender import Data, Run
from benchmarks.regression import Floats, loosest


def fit(data: Data, *, equal: bool = False) -> Run:
    """From a dense matrix, or from a dense one beside a categorical one."""
    rows: Any = data["X"]
    if "codes" in data:
        import tabmat

        factor = tabmat.CategoricalMatrix(data["codes"], drop_first=True)
        rows = tabmat.SplitMatrix([tabmat.DenseMatrix(data["X"]), factor])
    alpha = float(data["ridge"]) / len(data["y"])

    def solved(tolerance: float | None) -> Floats:
        model = GeneralizedLinearRegressor(
            family=str(data["family"]), alpha=alpha, l1_ratio=0.0, solver="irls-ls", gradient_tol=tolerance
        ).fit(rows, data["y"])
        return np.concatenate(([model.intercept_], model.coef_))

    tolerance = loosest(data, solved) if equal else None
    return lambda: solved(tolerance)
