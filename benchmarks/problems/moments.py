"""Means and covariances of a hundred columns, beside one Gram matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.contender import Contender, Data

NAME = "moments"
ROWS = 100_000
REPEATS = 5
COLUMNS = 100

_NUMPY = "benchmarks.rivals.with_numpy"
_OURS = "benchmarks.rivals.families_with_suffice"

CONTENDERS = (
    Contender("numpy Gram matrix", _NUMPY, "gram"),
    Contender("numpy cov", _NUMPY, "covariance"),
    Contender("suffice", _OURS, "multivariate_normal"),
)


def title(rows: int) -> str:
    return f"Means and covariances of {COLUMNS} columns, {rows:,} rows ({8 * COLUMNS * rows / 1e6:,.0f} MB)"


def make(rows: int, seed: int) -> Data:
    return {"columns": make_columns(COLUMNS, rows, seed)}


def make_columns(count: int, rows: int, seed: int) -> NDArray[np.float64]:
    """Normal columns (count, rows) of mean 1000 and variance 1."""
    rng = np.random.default_rng(seed)
    columns = np.empty((count, rows))
    for column in columns:
        for start in range(0, rows, 1 << 20):
            column[start : start + (1 << 20)] = rng.normal(1000.0, 1.0, min(1 << 20, rows - start))
    return columns


def judge(data: Data) -> Callable[[str, Any], str]:
    """Against two passes in extended precision over the first columns: largest error of a covariance."""
    columns = data["columns"][:8]
    rows = columns.shape[1]
    blocks = [slice(start, start + (1 << 20)) for start in range(0, rows, 1 << 20)]
    mean = sum(columns[:, block].astype(np.longdouble).sum(axis=1) for block in blocks) / rows
    truth = np.zeros((len(columns), len(columns)), np.longdouble)
    for block in blocks:
        centred = columns[:, block].astype(np.longdouble) - mean[:, None]
        truth += (centred[:, None] * centred[None]).sum(axis=2)
    truth /= rows

    def verdict(_: str, answer: Any) -> str:
        if answer is None:
            return ""
        return f"{float(np.max(np.abs(answer[1][: len(truth), : len(truth)] - truth))):.0e} off"

    return verdict
