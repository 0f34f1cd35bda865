"""Means and covariances of a hundred columns, beside one Gram matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.contender import Contender, Data

NAME = "moments"
ROWS = 100_000
REPEATS = 15
FLOOR = "numpy Gram matrix"
OURS = "suffice"
COLUMNS = 100

_NUMPY = "benchmarks.rivals.with_numpy"
_KERNELS = "benchmarks.rivals.suffice_kernels"
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

CONTENDERS = (
    Contender(FLOOR, _NUMPY, "gram", environment=_ONE_THREAD),
    Contender("numpy Gram matrix, BLAS threads", _NUMPY, "gram"),
    Contender("numpy cov", _NUMPY, "covariance", environment=_ONE_THREAD),
    Contender(OURS, _KERNELS, "moments"),
    Contender("suffice, 2 threads", _KERNELS, "moments", {"threads": 2}),
)


def title(rows: int) -> str:
    return f"Means and covariances of {COLUMNS} columns, {rows:,} rows ({8 * COLUMNS * rows / 1e6:,.0f} MB)"


def make(rows: int) -> Data:
    return {"columns": make_columns(COLUMNS, rows)}


def make_columns(count: int, rows: int) -> NDArray[np.float64]:
    """Normal columns (count, rows) of mean 1000 and variance 1."""
    rng = np.random.default_rng(0)
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
