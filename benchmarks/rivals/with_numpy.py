"""NumPy."""

from __future__ import annotations

import numpy as np

from benchmarks.contender import Data, Run


def mean_and_variance(data: Data) -> Run:
    """`mean` and `var` of one column."""
    column = data["columns"][0]
    return lambda: (np.array([column.mean()]), np.array([[column.var()]]))


def gram(data: Data) -> Run:
    """One Gram matrix and the column sums; the covariance follows by subtraction, with its loss of digits."""
    columns = data["columns"]

    def run() -> object:
        rows = columns.shape[1]
        product, mean = columns @ columns.T, columns.sum(axis=1) / rows
        return mean, product / rows - np.outer(mean, mean)

    return run


def covariance(data: Data) -> Run:
    """`mean` and `cov`."""
    columns = data["columns"]
    return lambda: (columns.mean(axis=1), np.cov(columns, ddof=0))
