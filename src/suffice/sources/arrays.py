"""Columns from NumPy arrays and Python lists."""

from __future__ import annotations

import datetime
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.domain import Variable
from suffice.errors import DataError
from suffice.sources.columns import (
    Coded,
    Codes,
    Column,
    arrow_pays,
    blocks,
    code_arrow_dictionary,
    code_dtype,
    number_label,
)
from suffice.sources.objects import ObjectColumn

#: Whole numbers that span at most this many values are coded by their distance from the smallest.
SPAN = 65_536


def array_column(name: Hashable, values: object, start: int = 0) -> Column:
    """A column from a NumPy array, a list, or anything that NumPy reads as one value a row."""
    # Its package loads for no plain array or list.
    if isinstance(values, np.ndarray) and type(values) is not np.ndarray and isinstance(values, np.ma.MaskedArray):
        missing = np.ma.getmaskarray(values)
        if values.dtype.kind in "biuf" and values.ndim == 1:
            return NumberColumn(name, values.data, missing, start)
        values = values.tolist()
    if not isinstance(values, np.ndarray) and hasattr(values, "__array__"):
        values = np.asarray(values)
    if isinstance(values, np.ndarray):
        return _from_array(name, values, start)
    if isinstance(values, str | bytes) or not hasattr(values, "__iter__"):
        raise DataError(
            f"Column {name!r} is the single value {values!r}; expected one value a row: a list or an array."
        )
    values = values if isinstance(values, list | tuple) else list(values)
    return _from_list(name, values, start)


def _from_array(name: Hashable, values: NDArray[Any], start: int) -> Column:
    if values.ndim != 1:
        raise DataError(
            f"Column {name!r} has shape {values.shape}; expected one value for each row, shape (rows,). Give its "
            f"columns one by one."
        )
    if values.dtype.kind in "biuf":
        return NumberColumn(name, values, start=start)
    if values.dtype.kind in "mM":
        return TimeColumn(name, values, start)
    if values.dtype.kind in "OUST":
        return ObjectColumn(name, values, start)
    raise DataError(
        f"Column {name!r} has the type {values.dtype}; expected text, numbers, truth values, dates or objects."
    )


def _from_list(name: Hashable, values: Sequence[Any], start: int) -> Column:
    """Lists of one plain number type become arrays; anything else stays as it is."""
    types = set(map(type, values))
    if types and (types <= {float} or types <= {bool} or types <= {int}):
        array = np.asarray(values)
        if array.dtype.kind in "biuf" and (types != {int} or array.dtype.kind in "iu"):
            return NumberColumn(name, array, start=start)
    return ObjectColumn(name, values, start)


class NumberColumn(Column):
    """A NumPy array of truth values, whole numbers or floats; `missing` marks the rows without a value."""

    def __init__(
        self, name: Hashable, values: NDArray[Any], missing: NDArray[np.bool_] | None = None, start: int = 0
    ) -> None:
        """Keep the array."""
        self.name, self.start, self.values = name, start, values
        self.missing = missing if missing is not None and missing.any() else None

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.values)

    def infer(self) -> Variable:
        """Floats are real; whole numbers and truth values discrete."""
        return self.real() if self.values.dtype.kind == "f" else self.discrete()

    def code(self) -> Coded:
        """Truth values and small ranges of whole numbers without sorting."""
        if self.values.dtype.kind == "b":
            return _with_missing(np.ascontiguousarray(self.values).view(np.uint8), (False, True), self.missing)
        if self.values.dtype.kind == "f":
            return self._code_floats()
        if self.missing is None and self.values.dtype.char == "B" and len(self.values):
            high = int(np.maximum.reduce(self.values))
            if high < 0xFF:  # As below, for most columns of codes.
                return Coded(self.values, range(high + 1))
        return _code_integers(self.values, self.missing)

    def as_codes(self, variable: Variable) -> NDArray[np.uint8] | None:
        """Small whole numbers, where the states are 0, 1, 2, ..."""
        return self.values if variable.counts_up and self.missing is None and self.values.dtype.char == "B" else None

    def _code_floats(self) -> Coded:
        """Floats that are whole numbers are coded as such, and labelled as integers."""
        with np.errstate(over="ignore"):
            values = self.values.astype(np.float64, copy=False)
        missing = np.isnan(values) if self.missing is None else self.missing | np.isnan(values)
        filled = np.where(missing, 0.0, values)
        if np.abs(filled).max(initial=0.0) < 2**53 and np.array_equal(whole := filled.astype(np.int64), filled):
            return _code_integers(whole, missing)
        coded = _code_sorted(filled, missing)
        return Coded(coded.indices, list(map(number_label, coded.labels)))

    def floats(self, rows: slice) -> Floats:
        """As float64."""
        with np.errstate(over="ignore"):  # Wider floats beyond float64, which are refused as infinite.
            values = self.values[rows].astype(np.float64, copy=False)
        return values if self.missing is None else np.where(self.missing[rows], np.nan, values)


class TimeColumn(Column):
    """A NumPy array of dates or durations."""

    def __init__(self, name: Hashable, values: NDArray[Any], start: int = 0) -> None:
        """Keep the array."""
        super().__init__(name, start)
        self.values = values

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.values)

    def infer(self) -> Variable:
        """Dates are discrete."""
        return self.discrete()

    def code(self) -> Coded:
        """Sorted by time."""
        missing = np.isnat(self.values)
        coded = _code_sorted(np.where(missing, 0, self.values.view(np.int64)), missing)
        return Coded(coded.indices, list(np.array(coded.labels, dtype=np.int64).view(self.values.dtype)))

    def floats(self, rows: slice) -> Floats:
        """Dates are no numbers."""
        if len(self.values[rows]) == 0:
            return np.empty(0)
        raise self.not_a_number(self.values[rows][0], rows.start)


def plain_time(value: Any) -> Any:
    """A NumPy date as a Python datetime; anything else unchanged."""
    if not isinstance(value, np.datetime64):
        return value
    plain = value.astype("M8[us]").item()
    return plain if isinstance(plain, datetime.datetime) else value


# --------------------------------------------------------------------------------------------------------------------
# Dictionary forms
# --------------------------------------------------------------------------------------------------------------------


def _with_missing(indices: Codes, labels: Sequence[Hashable], missing: NDArray[np.bool_] | None) -> Coded:
    """Mark the missing values with the index after the last label."""
    if missing is None or not missing.any():
        return Coded(indices, labels)
    marked = indices.astype(code_dtype(len(labels)))
    marked[missing] = len(labels)
    return Coded(marked, labels)


def _code_integers(values: NDArray[Any], missing: NDArray[np.bool_] | None) -> Coded:
    """Whole numbers: by distance from the smallest if the span is small, else sorted."""
    if len(values) == 0:
        return Coded(np.empty(0, np.uint8), ())
    if values.dtype == np.int64 and (high := int(np.maximum.reduce(values.view(np.uint64)))) < 0xFF:
        return _with_missing(values.astype(np.uint8), range(high + 1), missing)  # Numbers below 0 would be huge.
    low, high = 0 if values.dtype == np.uint8 else int(values.min()), int(values.max())
    if 0 <= low and high <= 0xFF:
        low = 0
    span = high - low + 1
    if span > max(256, min(SPAN, len(values))):
        return _code_sorted(values, missing)
    dtype = code_dtype(span)
    if low == 0 and values.dtype == dtype:
        return _with_missing(values, range(low, high + 1), missing)
    if low == 0:
        return _with_missing(values.astype(dtype), range(high + 1), missing)
    indices = np.empty(len(values), dtype)
    for block in blocks(len(values)):
        # Differences are below `span`, so wrapping around 2**64 does no harm to the largest unsigned numbers.
        indices[block] = values[block].astype(np.int64) - np.int64(low if low < 2**63 else low - 2**64)
    return _with_missing(indices, range(low, high + 1), missing)


def _code_sorted(values: NDArray[Any], missing: NDArray[np.bool_] | None) -> Coded:
    """Numbers of any kind, by sorting or, when there are many, by Arrow's hash table."""
    if arrow_pays(len(values)):
        import pyarrow as pa

        return code_arrow_dictionary(pa.array(values, mask=missing).dictionary_encode())
    labels, indices = np.unique(values, return_inverse=True)
    return _with_missing(indices.astype(code_dtype(len(labels))), labels.tolist(), missing)
