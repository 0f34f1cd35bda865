"""Rows to sequences: which rows belong together, and in which order they come."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Ints
from suffice.domain import as_python, sort_states, state_key
from suffice.errors import DataError
from suffice.sources.columns import Coded, Column

#: Arrow types that NumPy sorts as they are.
_PLAIN = ("int", "uint", "float", "double", "timestamp", "date32")
NO_SEQUENCES = "There are no sequences: the table has no rows. Give at least one."


def sequence_rows(group: Coded | None, order: Column | None, rows: int) -> tuple[Ints | None, Ints | None]:
    """The order of rows that makes sequences of them (None where they are), and where each begins (None for one).

    group: the sequence of each row; no value may be missing. Without `order` rows keep their order and sequences come
    in the order of their first rows; with it they come in the order of their names, as rows in no order of their own
    have no first ones.
    """
    if group is None:
        return (None if order is None else _by_order(order, np.zeros(rows, np.int64), ())), None
    if rows == 0:
        raise DataError(NO_SEQUENCES)
    if order is None:
        number = _by_first_row(group)
        together = bool((np.diff(number) >= 0).all())
        return (None if together else np.argsort(number, kind="stable")), _offsets(number)
    labels = list(group.labels)
    names = sort_states(labels)
    rank = {state_key(name): number for number, name in enumerate(names)}
    number = np.array([rank[state_key(label)] for label in labels], dtype=np.int64)[group.indices]
    used = np.flatnonzero(np.bincount(number, minlength=len(names)))
    table = np.zeros(len(names), np.int64)
    table[used] = np.arange(len(used))
    number = table[number]
    return _by_order(order, number, [names[name] for name in used.tolist()]), _offsets(number)


def check_group(coded: Coded, name: Hashable, start: int = 0) -> Coded:
    """The same rows, once each is known to belong to a sequence."""
    missing = coded.indices == len(coded.labels)
    if missing.any():
        raise DataError(
            f"The group column {name!r} has a missing value (row {start + int(missing.argmax())}); every row must "
            "belong to a sequence."
        )
    return coded


def _by_first_row(coded: Coded) -> Ints:
    """The sequence of each row, numbered in the order of first rows; in time linear in the rows."""
    rows = len(coded.indices)
    first = np.full(len(coded.labels), rows)
    first[coded.indices[::-1]] = np.arange(rows - 1, -1, -1)  # The last one written is the first row.
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first))
    return rank[coded.indices]


def _offsets(number: Ints) -> Ints:
    """Where each sequence begins once its rows are together, and the end."""
    return np.concatenate([[0], np.cumsum(np.bincount(number))]).astype(np.int64)


def _by_order(order: Column, number: Ints, names: Sequence[Hashable]) -> Ints:
    """The rows by the number of their sequence (rows,), then by the column that orders them; a tie is an error."""
    ranks = _ranks(order)
    rows = np.lexsort((ranks, number)).astype(np.int64)
    tie = np.flatnonzero((np.diff(number[rows]) == 0) & (np.diff(ranks[rows]) == 0))
    if len(tie):
        row = int(rows[tie[0]])
        value = values_of(order)[row]
        where = f" in the sequence {names[int(number[row])]!r}" if len(names) else ""
        raise DataError(
            f"The order column {order.name!r} holds {as_python(value)!r} twice{where}, so that it does not say which "
            "step comes first. Give a column that differs between the steps of a sequence."
        )
    return rows


def _ranks(column: Column) -> NDArray[Any]:
    """Numbers (rows,) that sort as the values of a column do."""
    values = values_of(column)
    if values.dtype.kind in "biuf":
        missing = np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), np.bool_)
        ranks: NDArray[Any] = values
    else:
        coded = column.code()
        missing = coded.indices == len(coded.labels)
        labels: list[Any] = list(coded.labels)
        try:
            sorted_ = sorted(range(len(labels)), key=lambda number: labels[number])
        except TypeError as error:
            raise DataError(f"The order column {column.name!r} holds values that cannot be sorted: {error}.") from None
        table = np.zeros(len(coded.labels) + 1, np.int64)
        table[sorted_] = np.arange(len(sorted_))
        ranks = table[coded.indices]
    if missing.any():
        raise _no_place(column, column.start + int(np.argmax(missing)))
    return ranks


def order_values(column: Column, start: int = 0) -> NDArray[Any]:
    """The values of a column that orders steps, as plain as they can be; each row must have one."""
    array = getattr(column, "array", None)
    if array is not None and array.null_count == 0 and str(array.type).startswith(_PLAIN):
        values: NDArray[Any] = column.arrow().to_numpy(zero_copy_only=False)
    else:
        values = values_of(column)
    missing: list[bool] | NDArray[np.bool_] = np.isnan(values) if values.dtype.kind == "f" else []
    if values.dtype == object:
        missing = [value is None for value in values]
    if np.any(missing):
        raise _no_place(column, start + int(np.argmax(missing)))
    return values


def _no_place(column: Column, row: int) -> DataError:
    return DataError(f"The order column {column.name!r} has a missing value (row {row}); every step has a place.")


def values_of(column: Column) -> NDArray[Any]:
    """The values of a column: numbers as they are, anything else as objects; NaN or None where one is missing."""
    plain = getattr(column, "values", None)
    if isinstance(plain, np.ndarray) and plain.dtype.kind in "biuf" and getattr(column, "missing", None) is None:
        return plain
    if column.infer().kind == "real":
        return column.floats(slice(0, len(column)))
    coded = column.code()
    labels = np.empty(len(coded.labels) + 1, dtype=object)
    labels[:-1] = list(coded.labels)
    return labels[coded.indices]


def concatenated(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """End to end; numbers with numbers, text with text, and anything mixed as objects."""
    kinds = {"number" if part.dtype.kind in "iuf" else part.dtype.kind for part in parts}
    if len(kinds) == 1:
        return np.concatenate(parts)
    return np.concatenate([part.astype(object) for part in parts])
