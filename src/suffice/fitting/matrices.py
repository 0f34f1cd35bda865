"""Rows in memory as scikit-learn gives them: an array, a frame, a sparse matrix, or lists of numbers."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import chain
from types import NoneType
from typing import Any

import numpy as np

from suffice.errors import DataError, shortened
from suffice.records import record


@record(frozen=True, eq=False)
class RowMatrix:
    """Rows and columns in memory; `names` are those of a frame, None for an array. Lists stay lists until asked for."""

    given: Any
    rows: int
    width: int
    names: tuple[Hashable, ...] | None = None
    sparse: bool = False

    @property
    def values(self) -> Any:
        """As an array, a frame or a sparse matrix."""
        return np.asarray(self.given) if isinstance(self.given, list | tuple) else self.given

    def columns(self, names: Any = None) -> dict[Hashable, Any]:
        """The columns by name: their own, those given, or x0, x1, ..."""
        values = self.values
        if self.names is not None:
            chosen = self.names if names is None else tuple(names)
            return {name: values[name] for name in chosen}
        given = tuple(f"x{number}" for number in range(self.width)) if names is None else tuple(names)
        if len(given) != self.width:
            raise DataError(f"columns= has {len(given)} names, and X has {self.width} columns; give a name for each.")
        return {name: values[:, number] for number, name in enumerate(given)}


def matrix_of(X: Any) -> RowMatrix | None:
    """What X is: an array of two axes, a frame or a sparse matrix in memory, or a list of rows; else None."""
    if isinstance(X, np.ndarray):
        return RowMatrix(X, *X.shape) if X.ndim == 2 and X.dtype.names is None else None
    kind = type(X)
    if hasattr(kind, "tocsr") and hasattr(kind, "nnz"):
        return RowMatrix(X, X.shape[0], X.shape[1], sparse=True)
    if kind.__module__.partition(".")[0] in ("pandas", "polars") and len(getattr(X, "shape", ())) == 2:
        return RowMatrix(X, X.shape[0], X.shape[1], tuple(X.columns))
    return RowMatrix(X, len(X), len(X[0])) if _is_list_of_rows(X) else None


def _is_list_of_rows(X: Any) -> bool:
    """Whether X is a list of lists or tuples of equal length, of numbers or texts."""
    if not isinstance(X, list | tuple) or not X or not all(isinstance(row, list | tuple) for row in X):
        return False
    if any(len(row) != len(X[0]) for row in X):
        return False
    kinds = set(map(type, chain.from_iterable(X)))
    return all(issubclass(kind, int | float | str | np.generic | NoneType) for kind in kinds)


def string_names(names: Sequence[Hashable] | None) -> Any:
    """The names as an array of objects, as scikit-learn keeps them; None where not all of them are texts."""
    if not names or not all(isinstance(name, str) for name in names):
        return None
    return np.array(names, dtype=object)


def one_column(y: Any) -> Any:
    """A response as an array or column of one axis; one of a table with a single column counts."""
    values = np.asarray(y, dtype=object) if isinstance(y, list | tuple) and any(v is None for v in y) else y
    try:
        values = np.asarray(values) if isinstance(values, list | tuple) or not hasattr(values, "shape") else values
    except ValueError:  # Lists of different lengths.
        raise DataError(f"y is {shortened(y)}; y should be a 1d array, one value a row, not lists of values.") from None
    if len(values.shape) == 2 and values.shape[1] == 1:
        values = np.asarray(values)[:, 0]
    if len(values.shape) != 1:
        raise DataError(f"y has the shape {tuple(values.shape)}; y should be a 1d array, one value a row.")
    return values


def same_values(column: Any, y: Any) -> bool:
    """Whether two columns hold the same values, with missing ones in the same rows."""
    first, second = np.asarray(column), np.asarray(y)
    if first.shape != second.shape:
        return False
    equal = np.asarray(first == second)
    return bool((equal | ((first != first) & (second != second))).all())
