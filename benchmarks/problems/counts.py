"""Contingency tables of the 37 families of ALARM from coded columns in memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.alarm import CARDS, FAMILIES, draw
from benchmarks.contender import Contender, Data

NAME = "counts"
ROWS = 10_000_000
REPEATS = 5
FLOOR = "read the codes"
OURS = "suffice"

_KERNELS = "benchmarks.rivals.suffice_kernels"
_FLOOR = "benchmarks.rivals.floor"

CONTENDERS = (
    Contender(FLOOR, _FLOOR, "read", {"names": ("codes",)}, "numba"),
    Contender("read the codes, 2 threads", _FLOOR, "read", {"names": ("codes",), "threads": 2}, "numba"),
    Contender("read the codes, plain loop", _FLOOR, "plain_loop", {"names": ("codes",)}, "numba"),
    Contender(OURS, _KERNELS, "counts"),
    Contender("suffice, 2 threads", _KERNELS, "counts", {"threads": 2}),
    Contender("suffice, NumPy path", _KERNELS, "counts", {"path": "numpy"}),
    Contender("suffice, weighted", _KERNELS, "counts", {"weighted": True}),
    Contender("suffice, weighted, 2 threads", _KERNELS, "counts", {"weighted": True, "threads": 2}),
    Contender("numpy bincount", "benchmarks.rivals.with_numpy", "counts"),
    Contender("numpy bincount, weighted", "benchmarks.rivals.with_numpy", "counts", {"weighted": True}),
    Contender("polars group_by", "benchmarks.rivals.with_polars", "counts", requires="polars"),
    Contender("duckdb GROUP BY", "benchmarks.rivals.with_duckdb", "counts", requires="duckdb"),
)


def title(rows: int) -> str:
    return f"Counts of the {len(FAMILIES)} ALARM families over {rows:,} rows of codes ({37 * rows / 1e6:,.0f} MB)"


def make(rows: int) -> Data:
    return {"codes": draw(rows), "weights": np.random.default_rng(1).exponential(size=rows)}


def judge(data: Data) -> Callable[[str, Any], str]:
    """Against `np.unique` for each family; weighted tables of a few families against `math.fsum`."""
    codes, weights = data["codes"], data["weights"]
    reference = [np.unique(_cells(codes, family), return_counts=True) for family in FAMILIES]
    sizes = [math.prod(CARDS[variable] for variable in family) for family in FAMILIES]
    offsets = np.cumsum([0, *sizes])
    exact = {
        offsets[index] + cell: math.fsum(weights[_cells(codes, FAMILIES[index]) == cell])
        for index in (0, 13, 36)
        for cell in range(sizes[index])
    }
    rows = codes.shape[1]

    def verdict(name: str, answer: Any) -> str:
        if answer is None:
            return ""
        if "weighted" in name:
            error = max(abs(answer[cell] - truth) / (truth or 1.0) for cell, truth in exact.items())
            return f"{error:.0e} off"
        for (found, counts), begin, end in zip(reference, offsets[:-1], offsets[1:], strict=True):
            table = answer[begin:end]
            if table.sum() != rows or not np.array_equal(table[found], counts):
                return "WRONG"
        return "exact"

    return verdict


def _cells(codes: Any, family: tuple[int, ...]) -> Any:
    return np.ravel_multi_index(tuple(codes[list(family)]), tuple(CARDS[variable] for variable in family))
