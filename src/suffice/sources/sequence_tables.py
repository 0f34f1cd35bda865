"""Tables of steps: their columns in memory, and the column that tells sequences apart.

A table that is not in memory is read once, batch by batch. Rows of a sequence need not be neighbours, so that all of
them are kept; of a column of states only its labels are.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.domain import Variable
from suffice.errors import DataError, MissingColumnError, listing
from suffice.sources.arrays import array_column
from suffice.sources.base import Batch, Source
from suffice.sources.columns import Coded, Column
from suffice.sources.files import format_of
from suffice.sources.opening import open_source

Integers = NDArray[np.int64]


def is_table(data: Any) -> bool:
    """Whether the data are a table with named columns, or the path of one."""
    if isinstance(data, str | os.PathLike):
        return format_of(os.fspath(data)) is not None
    return has_names(data)


def has_names(data: Any) -> bool:
    """Whether the data are a table with named columns."""
    if isinstance(data, dict | Source):
        return True
    if isinstance(data, np.ndarray):
        return data.dtype.names is not None
    if isinstance(data, list | tuple):
        return bool(len(data)) and all(isinstance(row, dict) for row in data)
    # By the type: the columns of a lazy frame cost a query.
    kind = type(data)
    columns = hasattr(kind, "columns") or "columns" in getattr(data, "__dict__", ())
    return columns or (hasattr(kind, "schema") and hasattr(kind, "column"))


def table_columns(data: Any) -> list[Hashable]:
    """The names of the columns of a table."""
    return list(open_source(data).columns)


@dataclass(frozen=True, eq=False)
class Steps:
    """Columns (steps,) of a table by name, and the variables of those whose type brings their states.

    `order` puts the rows of a sequence together (None where they are), and `offsets` says where each begins; None
    without a column that tells them apart.
    """

    names: list[Hashable]
    columns: list[NDArray[Any]]
    variables: tuple[Variable | None, ...]
    order: Integers | None = None
    offsets: Integers | None = None


def read_steps(data: Any, group: Hashable | None, columns: Any) -> Steps:
    """The named columns, by default all but the group."""
    source = open_source(data)
    names = _observation_names(source, group, columns)
    wanted = names if group is None else [*names, group]
    held = _held(source, dict.fromkeys(wanted))
    variables = tuple(_typed(held[name]) for name in names)
    found = [values_of(held[name]) for name in names]
    if group is None:
        return Steps(names, found, variables)
    coded = held[group].code()
    if bool((coded.indices == len(coded.labels)).any()):
        row = int(np.argmax(coded.indices == len(coded.labels)))
        raise DataError(f"The group column {group!r} holds a gap (row {row}); every row must belong to a sequence.")
    order, offsets = _grouped(_by_first_row(coded))
    return Steps(names, found, variables, order, offsets)


def _observation_names(source: Source, group: Hashable | None, columns: Any) -> list[Hashable]:
    known = list(source.columns)
    if group is not None and group not in known:
        raise MissingColumnError(f"There is no group column {group!r}; the table has {listing(known)}.")
    if columns is None:
        names = [name for name in known if name != group]
    else:
        names = [columns] if isinstance(columns, str) or not isinstance(columns, Iterable) else list(columns)
    for name in names:
        if name not in known:
            raise MissingColumnError(f"There is no column {name!r}; the table has {listing(known)}.")
    if not names:
        raise DataError(f"The only column, {group!r}, tells the sequences apart; none holds observations.")
    return names


def _held(source: Source, names: Iterable[Hashable]) -> dict[Hashable, Column]:
    """Columns in memory: as they are, or read in one pass."""
    wanted, opened = list(names), getattr(source, "column", None)
    if opened is not None:
        return {name: opened(name) for name in wanted}
    domain = source.infer(wanted)
    whole = source.reduce(lambda batch: _Read([_decoded(batch)]), domain)
    found: dict[Hashable, Column] = {}
    for name in wanted:
        parts = concatenated([part[name] for part in whole.parts])
        kept = _StatesColumn(name, parts, domain[name]) if domain[name].origin == "category" else None
        found[name] = array_column(name, parts) if kept is None else kept
    return found


@dataclass(frozen=True, eq=False)
class _Read:
    """Decoded batches in order; they add up."""

    parts: list[dict[Hashable, NDArray[Any]]]

    def __add__(self, other: _Read) -> _Read:
        return _Read(self.parts + other.parts)


def _decoded(batch: Batch) -> dict[Hashable, NDArray[Any]]:
    """The columns of a batch by name: numbers, or labels with None for a gap."""
    found = {name: np.array(reals) for name, reals in zip(batch.real, batch.reals, strict=True)}
    for name, codes in zip(batch.discrete, batch.codes, strict=True):
        states = batch.domain[name].states
        plain = {type(state) for state in states}
        complete = bool((codes < len(states)).all())
        if complete and len(plain) == 1 and plain <= {int, bool}:
            found[name] = np.array(states)[codes]
            continue
        labels = np.empty(len(states) + 1, dtype=object)
        labels[:-1] = states
        found[name] = labels[codes]
    return found


class _StatesColumn(Column):
    """Labels that were read from a column of categories."""

    def __init__(self, name: Hashable, values: NDArray[Any], variable: Variable) -> None:
        super().__init__(name)
        self._inner, self._variable = array_column(name, values), variable

    def __len__(self) -> int:
        return len(self._inner)

    def infer(self) -> Variable:
        return self._variable

    def code(self) -> Coded:
        return self._inner.code()

    def floats(self, rows: slice) -> NDArray[np.float64]:
        return self._inner.floats(rows)


def _typed(column: Column) -> Variable | None:
    """The variable of a column whose type brings its states."""
    found = column.infer()
    return found if found.kind == "discrete" and found.origin == "category" else None


def type_of_columns(columns: list[Column]) -> Variable | None:
    """The variable of columns that bring the same states."""
    found = [_typed(column) for column in columns]
    return found[0] if found and all(one is not None and one == found[0] for one in found) else None


def values_of(column: Column) -> NDArray[Any]:
    """The values of a column: numbers as they are (NaN for gaps), anything else as objects (None for gaps)."""
    plain = getattr(column, "values", None)
    if isinstance(plain, np.ndarray) and plain.dtype.kind in "biuf" and getattr(column, "gaps", None) is None:
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


def _by_first_row(coded: Coded) -> Integers:
    """The group of each row, numbered in the order of first rows."""
    found, first, inverse = np.unique(coded.indices, return_index=True, return_inverse=True)
    rank = np.empty(len(found), np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(len(found))
    return rank[inverse]


def _grouped(group: Integers) -> tuple[Integers | None, Integers]:
    """The order of rows that puts groups together (None where they are), and the offsets of the groups."""
    lengths = np.bincount(group)
    if len(group) == 0:
        raise DataError("There are no sequences: the table has no rows.")
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    together = bool((np.diff(group) >= 0).all())
    return (None if together else np.argsort(group, kind="stable")), offsets
