"""NumPy."""

from __future__ import annotations

import math

import numpy as np

from benchmarks.alarm import CARDS, FAMILIES
from benchmarks.contender import Data, Run


def counts(data: Data, *, weighted: bool = False) -> Run:
    """`bincount` of the cell numbers of each family, in the narrowest type that holds them."""
    codes, weights = data["codes"], data["weights"] if weighted else None

    def run() -> object:
        tables = []
        for family in FAMILIES:
            size = math.prod(CARDS[variable] for variable in family)
            dtype = np.dtype(np.uint8 if size <= 256 else np.uint16)
            cells = codes[family[0]].astype(dtype)
            for variable in family[1:]:
                cells *= dtype.type(CARDS[variable])
                cells += codes[variable]
            tables.append(np.bincount(cells, weights, size))
        return np.concatenate(tables)

    return run


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
