"""Mean and variance of one column."""

from __future__ import annotations

from benchmarks.contender import Contender, Data
from benchmarks.problems.moments import judge, make_columns

__all__ = ["judge"]

NAME = "normal"
ROWS = 100_000_000
REPEATS = 5
FLOOR = "read the column"
OURS = "suffice"

_KERNELS = "benchmarks.rivals.suffice_kernels"
_FLOOR = "benchmarks.rivals.floor"

CONTENDERS = (
    Contender(FLOOR, _FLOOR, "read", {"names": ("columns",)}, "numba"),
    Contender("read the column, 2 threads", _FLOOR, "read", {"names": ("columns",), "threads": 2}, "numba"),
    Contender(OURS, _KERNELS, "moments"),
    Contender("suffice, 2 threads", _KERNELS, "moments", {"threads": 2}),
    Contender("numpy mean and var", "benchmarks.rivals.with_numpy", "mean_and_variance"),
)


def title(rows: int) -> str:
    return f"Mean and variance of {rows:,} values ({8 * rows / 1e6:,.0f} MB)"


def make(rows: int) -> Data:
    return {"columns": make_columns(1, rows)}
