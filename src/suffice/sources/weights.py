"""Weights of rows: where they come from and what they must be."""

from __future__ import annotations

import numbers
from collections.abc import Hashable

import numpy as np

from suffice.array_types import Floats
from suffice.checks import check_total
from suffice.errors import DataError


def check_weights(values: Floats, start: int, column: Hashable | None = None) -> Floats:
    """The weights, once they are known to be finite, not negative, and small enough to be added up."""
    good = np.isfinite(values) & (values >= 0)
    what = "sample_weight" if column is None else f"The column of weights {column!r}"
    if not good.all():
        row = int(np.argmin(good))
        raise DataError(
            f"{what} holds {float(values[row])!r} (row {start + row}); a weight must be finite and at least 0."
        )
    check_total(values, what)
    return values


def check_length(weights: int, rows: int) -> None:
    """Raise unless there is one weight a row."""
    if weights != rows:
        raise DataError(f"sample_weight has {weights} values for {rows} rows; give one weight a row.")


def is_column_name(sample_weight: object, columns: tuple[Hashable, ...]) -> bool:
    """Whether `sample_weight` names a column rather than listing weights."""
    if sample_weight is None:
        return False
    if isinstance(sample_weight, tuple):
        return sample_weight in columns
    if isinstance(sample_weight, numbers.Number) and sample_weight not in columns:
        raise DataError(
            f"sample_weight is {sample_weight!r}; expected one weight a row, or the name of the column that holds them."
        )
    return isinstance(sample_weight, str | bytes) or not hasattr(sample_weight, "__iter__")
