"""Mean and variance of one column."""

from __future__ import annotations

from benchmarks.contender import Contender, Data
from benchmarks.problems.moments import judge, make_columns

__all__ = ["judge"]

NAME = "normal"
ROWS = 10_000_000
REPEATS = 5
CONTENDERS = (
    Contender("read the column", "benchmarks.rivals.floor", "read", {"names": ("columns",)}, "numba", limit=True),
    Contender("suffice", "benchmarks.rivals.families_with_suffice", "normal"),
    Contender("numpy mean and var", "benchmarks.rivals.with_numpy", "mean_and_variance"),
)


def title(rows: int) -> str:
    return f"Mean and variance of {rows:,} values ({8 * rows / 1e6:,.0f} MB)"


def make(rows: int, seed: int) -> Data:
    return {"columns": make_columns(1, rows, seed)}
