"""Weights of rows: where they come from and what they must be."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.errors import DataError

Floats = NDArray[np.float64]


def check_weights(values: Floats, start: int, column: Hashable | None = None) -> Floats:
    """The weights, once they are known to be finite and not negative."""
    good = np.isfinite(values) & (values >= 0)
    if good.all():
        return values
    row = int(np.argmin(good))
    what = "sample_weight" if column is None else f"The column of weights {column!r}"
    raise DataError(f"{what} holds {float(values[row])!r} (row {start + row}); a weight must be finite and at least 0.")


def check_length(weights: int, rows: int) -> None:
    """Raise unless there is one weight a row."""
    if weights != rows:
        raise DataError(f"sample_weight has {weights} values for {rows} rows; give one weight a row.")


def is_column_name(sample_weight: Any, columns: tuple[Hashable, ...]) -> bool:
    """Whether `sample_weight` names a column rather than listing weights."""
    if sample_weight is None:
        return False
    if isinstance(sample_weight, tuple):
        return sample_weight in columns
    return isinstance(sample_weight, str | bytes | int | float) or not hasattr(sample_weight, "__iter__")
