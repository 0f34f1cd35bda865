"""scikit-learn: logistic and Poisson regression."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression, PoissonRegressor

from benchmarks.contender import Data, Run
from benchmarks.regression import Floats, indicators, loosest


def fit(data: Data, *, solver: str, equal: bool = False) -> Run:
    """From a dense matrix, or from a sparse one that holds the indicators of a factor."""
    rows: Any = indicators(data) if "codes" in data else data["X"]
    ridge = float(data["ridge"])
    options: dict[str, Any] = {"solver": solver}

    def solved(tolerance: float | None) -> Floats:
        aim = {} if tolerance is None else {"tol": tolerance, "max_iter": 10_000}
        if str(data["family"]) == "binomial":
            model: Any = LogisticRegression(C=1.0 / ridge if ridge else np.inf, **aim, **options)
        else:
            model = PoissonRegressor(alpha=ridge / len(data["y"]), **aim, **options)
        model.fit(rows, data["y"])
        return np.concatenate((np.atleast_1d(model.intercept_), np.ravel(model.coef_)))

    tolerance = loosest(data, solved) if equal else None
    return lambda: solved(tolerance)
