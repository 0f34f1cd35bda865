"""statsmodels: iteratively reweighted least squares by a pseudo-inverse."""

from __future__ import annotations

import numpy as np
import statsmodels.api as sm

from benchmarks.contender import Data, Run
from benchmarks.regression import Floats, loosest


def fit(data: Data) -> Run:
    """From a dense matrix with a column of ones, made before."""
    design = np.column_stack((np.ones(len(data["X"])), data["X"]))
    family = sm.families.Binomial() if str(data["family"]) == "binomial" else sm.families.Poisson()

    def solved(tolerance: float) -> Floats:
        found = sm.GLM(data["y"], design, family=family).fit(tol=tolerance, tol_criterion="params", maxiter=100)
        return np.asarray(found.params)

    # A change of the coefficients, which Newton's method squares at each step.
    tolerance = loosest(data, solved, (1e-1, 1e-3, 1e-5, 1e-7, 1e-9))
    return lambda: solved(tolerance)
