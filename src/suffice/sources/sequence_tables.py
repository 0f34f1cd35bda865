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

from suffice.array_types import Ints
from suffice.domain import Variable
from suffice.errors import DataError, OptionError, listing
from suffice.sources.arrays import array_column
from suffice.sources.base import Source, missing_columns
from suffice.sources.columns import Coded, Column
from suffice.sources.files import are_paths, format_of
from suffice.sources.grouping import check_group, concatenated, order_values, sequence_rows, values_of
from suffice.sources.memory import MemorySource
from suffice.sources.opening import open_source


def is_table(data: object) -> bool:
    """Whether the data are a table with named columns, or the path of one."""
    if isinstance(data, str | os.PathLike):
        return format_of(os.fspath(data)) is not None or os.path.isdir(data)
    return has_names(data) or (isinstance(data, list | tuple) and are_paths(data))


def has_names(data: object) -> bool:
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
    return columns or (hasattr(kind, "schema") and (hasattr(kind, "column") or hasattr(kind, "to_batches")))


def table_columns(data: object) -> list[Hashable]:
    """The names of the columns of a table."""
    return list(open_source(data).columns)


@dataclass(frozen=True, eq=False)
class TableSteps:
    """The steps of a table, sequence by sequence: values (steps,) of one column, or (steps, width) of several.

    `variables` are those of columns whose type brings their states, None where none does. `offsets` says where each
    sequence begins; None without a column that tells them apart.
    """

    names: list[Hashable]
    values: NDArray[Any]
    variables: tuple[Variable | None, ...] | None
    offsets: Ints | None = None


def read_steps(data: object, group: Hashable | None, columns: object, order: Hashable | None = None) -> TableSteps:
    """The named columns, by default all but those of the group and of the order."""
    source = open_source(data)
    if order is None and source.unordered:
        raise OptionError(
            f"The rows of {source.unordered} come in no order of their own, and the steps of a sequence have one. Name "
            "the column that orders the steps of each sequence by order=, such as a time or a number."
        )
    names = observation_names(source, group, order, columns)
    beside = [name for name in (group, order) if name is not None]
    held = _held(source, dict.fromkeys([*names, *beside]))
    variables = tuple(_typed(held[name]) for name in names)
    parts = [values_of(held[name]) for name in names]
    # One column is one value a step, as in a list; several make a matrix.
    values = parts[0] if len(parts) == 1 else side_by_side(parts)
    rows, offsets = _sequences(held, group, order, len(values)) if beside else (None, None)
    known = variables if any(variable is not None for variable in variables) else None
    return TableSteps(names, values if rows is None else values[rows], known, offsets)


def table_elsewhere(data: object, sample_weight: str | None = None) -> Source | None:
    """The source of a table that is not in memory and can be read more than once; None for all others."""
    if not is_table(data):
        return None
    source = open_source(data, sample_weight=sample_weight)
    return None if isinstance(source, MemorySource) or source.one_pass else source


def side_by_side(columns: list[NDArray[Any]]) -> NDArray[Any]:
    """Columns as a matrix: of numbers where all are numbers, else of objects."""
    alike = all(column.dtype.kind in "iuf" for column in columns) or all(column.dtype.kind == "b" for column in columns)
    return np.column_stack(columns if alike else [column.astype(object) for column in columns])


def step_order(data: object, group: Hashable | None, order: Hashable | None, steps: int) -> Ints:
    """The rows (steps,) of a table in memory in the order of sequences and their steps."""
    held = _held(open_source(data), [name for name in (group, order) if name is not None])
    rows, _ = _sequences(held, group, order, steps)
    return np.arange(steps) if rows is None else rows


def laid_out(
    source: Source, group: Hashable | None, order: Hashable | None, steps: int
) -> tuple[Ints | None, Ints, NDArray[Any] | None]:
    """The order of rows that makes sequences of them (None where they are), where each begins, and what orders them."""
    wanted = [name for name in (group, order) if name is not None]
    held = _held(source, wanted) if wanted else {}
    rows, offsets = _sequences(held, group, order, steps)
    values = None if order is None else order_values(held[order])
    ordered = values if values is None or rows is None else values[rows]
    return rows, np.array([0, steps], np.int64) if offsets is None else offsets, ordered


def _sequences(
    held: dict[Hashable, Column], group: Hashable | None, order: Hashable | None, steps: int
) -> tuple[Ints | None, Ints | None]:
    """The order of rows that makes sequences of them (None where they are), and where each begins (None for one)."""
    coded = None if group is None else check_group(held[group].code(), group)
    return sequence_rows(coded, None if order is None else held[order], steps)


def observation_names(
    source: Source, group: Hashable | None, order: Hashable | None, columns: object
) -> list[Hashable]:
    """The columns of a table that hold observations: those asked for, or all but the group and the order."""
    known = list(source.columns)
    for what, name in (("group", group), ("order", order)):
        if name is not None and name not in known:
            raise missing_columns([name], known, f"the data, which {what}= names")
    if group is not None and group == order:
        raise OptionError(
            f"group= and order= both name {group!r}; one tells sequences apart, the other their steps. Name two "
            f"columns."
        )
    if columns is None:
        names = [name for name in known if name not in (group, order)]
    else:
        names = [columns] if isinstance(columns, str) or not isinstance(columns, Iterable) else list(columns)
    for name in names:
        if name not in known:
            raise missing_columns([name], known)
    if not names:
        beside = listing([name for name in (group, order) if name is not None])
        raise DataError(
            f"The table has {beside} alone, which tells sequences or steps apart; none holds observations. Give "
            f"a column of these."
        )
    return names


def _held(source: Source, names: Iterable[Hashable]) -> dict[Hashable, Column]:
    """Columns in memory: as they are, or read in one pass."""
    wanted, opened = list(names), getattr(source, "column", None)
    if opened is not None:
        return {name: opened(name) for name in wanted}
    domain = source.infer(wanted)
    parts: dict[Hashable, list[NDArray[Any]]] = {name: [] for name in wanted}
    for columns in source.columns_in_parts(domain):
        for name in wanted:
            parts[name].append(_part(columns[name], domain[name]))
    held: dict[Hashable, Column] = {}
    for name in wanted:
        values = concatenated(parts[name]) if parts[name] else np.zeros(0, object)
        typed = domain[name].origin == "category"
        held[name] = _StatesColumn(name, values, domain[name]) if typed else array_column(name, values)
    return held


def _part(column: Column, variable: Variable) -> NDArray[Any]:
    """Some rows of a column: numbers, or labels with None for a missing value."""
    if variable.kind != "discrete":
        return column.floats(slice(0, len(column)))
    coded = column.code()
    labels = np.empty(len(coded.labels) + 1, dtype=object)
    labels[:-1] = list(coded.labels)
    return labels[coded.indices]


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
    variable = column.infer()
    return variable if variable.kind == "discrete" and variable.origin == "category" else None


def type_of_columns(columns: list[Column]) -> Variable | None:
    """The variable of columns that bring the same states."""
    variables = [_typed(column) for column in columns]
    return variables[0] if variables and all(one is not None and one == variables[0] for one in variables) else None
