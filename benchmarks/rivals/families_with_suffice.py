"""Our own normal distributions."""

from __future__ import annotations

import numpy as np

from benchmarks.contender import Data, Run
from suffice import MultivariateNormal, Normal


def normal(data: Data) -> Run:
    """From the column to mean and variance."""
    column = data["columns"][0]

    def run() -> object:
        fitted = Normal().fit(column)
        return np.array([fitted.mean_]), np.array([[fitted.variance_]])

    return run


def multivariate_normal(data: Data) -> Run:
    """From an array of rows to mean and covariance."""
    rows = data["columns"].T

    def run() -> object:
        fitted = MultivariateNormal().fit(rows)
        return fitted.mean_, fitted.covariance_

    return run
