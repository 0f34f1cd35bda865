"""Sequences in: a list of them, an array with lengths, or a frame with a group column; all become the same thing.

`open_sequences` lays the steps of all sequences end to end and keeps where each sequence begins. A sequence has at
least one step; nothing that reads `Sequences` may look across the end of one.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.domain import Variable, is_gap
from suffice.errors import DataError, OptionError, listing
from suffice.sources.arrays import array_column
from suffice.sources.columns import Coded, holds_whole_numbers, with_whole_labels
from suffice.sources.opening import any_column
from suffice.sources.sequence_tables import (
    concatenated,
    has_names,
    is_table,
    read_steps,
    table_columns,
    type_of_columns,
    values_of,
)
from suffice.sources.states import places, resolve_states

__all__ = ["Sequences", "code_states", "flat_values", "is_table", "open_sequences", "table_columns"]

Integers = NDArray[np.int64]

_ACCEPTED = (
    "Accepted are: a list of sequences (lists, tuples, texts, arrays), one array of all steps with lengths=, or a "
    "table with group= naming the column that tells the sequences apart."
)


@dataclass(frozen=True, eq=False)
class Sequences:
    """The steps of all sequences end to end.

    `values` is (steps,) for one observation a step, or (steps, width); sequence i holds the steps ``offsets[i]`` to
    ``offsets[i + 1] - 1``. `columns` are the names of the observations where the data have names. `variables` hold the
    states, in order, of the observations whose type brings them (categories), None for others; None where none does.
    """

    values: NDArray[Any]
    offsets: Integers
    columns: list[Hashable] | None = None
    variables: tuple[Variable | None, ...] | None = None

    @property
    def n_sequences(self) -> int:
        """Number of sequences."""
        return len(self.offsets) - 1

    @property
    def n_steps(self) -> int:
        """Number of steps of all sequences."""
        return int(self.offsets[-1])

    @property
    def lengths(self) -> Integers:
        """Number of steps of each sequence (n_sequences,)."""
        return np.diff(self.offsets)

    @property
    def width(self) -> int | None:
        """Observations a step; None where each step is a single value."""
        return None if self.values.ndim == 1 else int(self.values.shape[1])

    def __getitem__(self, place: int) -> NDArray[Any]:
        """The steps of one sequence, a view."""
        if not -self.n_sequences <= place < self.n_sequences:
            raise IndexError(f"There are {self.n_sequences} sequences; asked for number {place}.")
        at = place % self.n_sequences
        return self.values[self.offsets[at] : self.offsets[at + 1]]

    def __len__(self) -> int:
        """Number of sequences."""
        return self.n_sequences

    def per_step(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Weights of sequences (n_sequences,) repeated for their steps (steps,)."""
        return np.repeat(weights, self.lengths)

    def single(self) -> Sequences:
        """With one value a step: a matrix of one column becomes that column; a wider one is an error."""
        if self.values.ndim == 1:
            return self
        if self.values.shape[1] != 1:
            named = "" if self.columns is None else f" ({listing(self.columns)})"
            raise DataError(
                f"Each step holds {self.values.shape[1]} observations{named}; expected one state a step. Name the "
                "column to use by columns=, or, where each row of a matrix is a sequence, give list(matrix)."
            )
        return Sequences(self.values[:, 0], self.offsets, self.columns, self.variables)


def open_sequences(
    data: Any, *, lengths: Any = None, group: Hashable | None = None, order: Hashable | None = None, columns: Any = None
) -> Sequences:
    """Sequences from any of the accepted forms.

    Args:
        data: a list of sequences, each a list, tuple, text (its characters), 1-D or 2-D array, Series or frame; one
            1-D or 2-D array (or Series, or flat list) of all steps; a pandas, polars or Arrow table, a Parquet or CSV
            file, a DuckDB relation, a lazy frame or anything else with named columns; or `Sequences`, returned as they
            are. One array or table without `lengths` and `group` is a single sequence.
        lengths: number of steps of each sequence, in order; they must add up to the number of steps.
        group: name of the column that tells the sequences of a table apart. Rows of one group keep their order, need
            not be neighbours, and groups come in the order of their first rows.
        order: name of the column by which the steps of each sequence are sorted, such as a time; it must differ between
            the steps of a sequence. Groups then come in the order of their names. Tables whose rows have no order of
            their own (DuckDB, Dask, Spark) need it.
        columns: names of the columns that hold the observations; by default all but the group and the order.
    """
    if isinstance(data, Sequences):
        if lengths is not None or group is not None or order is not None:
            raise OptionError("The sequences are open already; give lengths=, group= and order= when they are opened.")
        return data
    if data is None:
        raise DataError(f"The data are None. {_ACCEPTED}")
    if isinstance(data, str | bytes) and not is_table(data):
        raise DataError(
            f"The data are the text {_shortened(data)}; give [text] for the sequence of its characters. {_ACCEPTED}"
        )
    if lengths is not None and group is not None:
        raise OptionError("Give either lengths= or group=, not both: each says where sequences end.")
    if lengths is not None and order is not None:
        raise OptionError("order= sorts the steps of a table; with lengths= they are in order. Give group= instead.")
    if is_table(data):
        return _from_table(data, lengths, group, order, columns)
    if order is not None:
        raise OptionError(f"order={order!r} names a column, but the data ({type(data).__name__}) have no column names.")
    if group is not None:
        raise OptionError(f"group={group!r} names a column, but the data ({type(data).__name__}) have no column names.")
    values, offsets = _from_values(data, lengths)
    return Sequences(values, offsets, _checked_names(columns, values), _typed(data))


def _typed(data: Any) -> tuple[Variable, ...] | None:
    """The states that a column of categories brings, or all columns of a list of sequences."""
    items = [data] if _is_column(data) else data if isinstance(data, list | tuple) else []
    if not items or not _is_column(items[0]) or not all(map(_is_column, items)):
        return None
    found = type_of_columns([any_column("state", item) for item in items])
    return None if found is None else (found,)


def code_states(
    values: NDArray[Any], states: Sequence[Hashable] | Variable | None = None, *, name: Hashable = "state"
) -> tuple[NDArray[np.int32], tuple[Hashable, ...]]:
    """Codes (steps,) of discrete values, -1 for a gap, and the states in order.

    Without `states` those seen, sorted. Given states are closed: any other value is an error that names it; those of a
    variable are closed where they were declared. Floats that are whole numbers and gaps are whole numbers.
    """
    if isinstance(states, Variable):
        variable = states
    elif states is None:
        variable = Variable(name, "discrete")
    else:
        variable = Variable.discrete(name, states)
    column = array_column(name, values)
    coded = column.code()
    if values.dtype.kind == "f" and holds_whole_numbers(column):
        coded = with_whole_labels(coded)
    settled = resolve_states(variable, coded)
    return _translated(settled, coded), settled.states


def _translated(variable: Variable, coded: Coded) -> NDArray[np.int32]:
    """Codes among the states of the variable; -1 for a gap."""
    table = np.append(places(variable, coded.labels), -1).astype(np.int32)
    return table[coded.indices]


# --------------------------------------------------------------------------------------------------------------------
# Tables
# --------------------------------------------------------------------------------------------------------------------


def _from_table(
    data: Any, lengths: Any, group: Hashable | None, order: Hashable | None, columns: Any
) -> Sequences:  # fmt: skip
    steps = read_steps(data, group, columns, order)
    # One column is one value a step, as in a list; several make a matrix.
    values = steps.columns[0] if len(steps.columns) == 1 else _side_by_side(steps.columns)
    offsets = _offsets(lengths, len(values)) if steps.offsets is None else steps.offsets
    ordered = values if steps.order is None else values[steps.order]
    return Sequences(ordered, offsets, steps.names, _some(steps.variables))


def _some(variables: tuple[Variable | None, ...]) -> tuple[Variable | None, ...] | None:
    return variables if any(variable is not None for variable in variables) else None


def _side_by_side(found: list[NDArray[Any]]) -> NDArray[Any]:
    """Columns as a matrix: of numbers where all are numbers, else of objects."""
    alike = all(column.dtype.kind in "iuf" for column in found) or all(column.dtype.kind == "b" for column in found)
    if alike:
        return np.column_stack(found)
    matrix = np.empty((len(found[0]), len(found)), dtype=object)
    for place, column in enumerate(found):
        matrix[:, place] = column
    return matrix


# --------------------------------------------------------------------------------------------------------------------
# Lists and arrays
# --------------------------------------------------------------------------------------------------------------------


def _from_values(data: Any, lengths: Any) -> tuple[NDArray[Any], Integers]:
    if isinstance(data, np.ndarray) and data.dtype != object and data.ndim == 3 and lengths is None:
        return _joined([*data])
    if isinstance(data, np.ndarray) and not (data.dtype == object and data.ndim == 1 and _is_nested(data)):
        return _checked_array(data), _offsets(lengths, len(data))
    if _is_column(data):
        values = values_of(any_column("state", data))
        return values, _offsets(lengths, len(values))
    if not isinstance(data, Iterable):
        raise DataError(f"Cannot read sequences from {type(data).__name__}. {_ACCEPTED}")
    items = data if isinstance(data, list | tuple | np.ndarray) else list(data)
    if len(items) == 0:
        raise DataError("There are no sequences: the data are empty.")
    if lengths is not None or not _is_nested(items):
        return _flat(items, lengths)
    return _joined(items)


def flat_values(values: Any) -> NDArray[Any]:
    """One value a step, each as it is: a text is one value and no sequence of letters."""
    return _plain_array(list(values))


def _flat(items: Any, lengths: Any) -> tuple[NDArray[Any], Integers]:
    """A list of steps rather than of sequences: values, or rows of a matrix."""
    if all(isinstance(item, list | tuple | np.ndarray) for item in items):
        values = _step_matrix(items, "the data")
    else:
        values = _plain_array(list(items))
    return values, _offsets(lengths, len(values))


def _is_column(data: Any) -> bool:
    loaded = {library: sys.modules.get(library) for library in ("pandas", "polars", "pyarrow")}
    pd, pl, pa = (loaded[library] for library in ("pandas", "polars", "pyarrow"))
    return (
        (pd is not None and isinstance(data, pd.Series | pd.Index | pd.api.extensions.ExtensionArray))
        or (pl is not None and isinstance(data, pl.Series))
        or (pa is not None and isinstance(data, pa.Array | pa.ChunkedArray))
    )


def _is_sequence(item: Any) -> bool:
    return isinstance(item, list | tuple | str | np.ndarray) or _is_column(item) or has_names(item)


def _is_nested(items: Any) -> bool:
    """Whether a list holds sequences; a mixture of sequences and single values is an error."""
    examples = {type(item): item for item in items}
    kinds = {kind: _is_sequence(item) for kind, item in examples.items()}
    if any(kinds.values()) and not all(kinds.values()):
        at = next(place for place, item in enumerate(items) if not kinds[type(item)])
        raise DataError(
            f"Sequence {at} is {_shortened(items[at])}, no sequence, while others are; each sequence must be a list, "
            "tuple, text or array, and one of a single step a list of one."
        )
    return any(kinds.values())


def _joined(items: Any) -> tuple[NDArray[Any], Integers]:
    """Lay sequences end to end."""
    lengths = np.fromiter((len(item) for item in items), np.int64, len(items))
    if not lengths.all():
        at = int(np.argmin(lengths))
        raise DataError(f"Sequence {at} is empty; each sequence needs at least one step. Leave it out.")
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    if all(isinstance(item, str) for item in items):
        return np.array(list("".join(items)), dtype=str), offsets
    if all(isinstance(item, list | tuple | str) for item in items) and not _holds_rows(items):
        return _plain_array(list(chain.from_iterable(items))), offsets
    parts = [_one_sequence(item, place) for place, item in enumerate(items)]
    widths = {None if part.ndim == 1 else part.shape[1] for part in parts}
    if len(widths) > 1:
        shape = [None if part.ndim == 1 else part.shape[1] for part in parts]
        at = next(place for place, width in enumerate(shape) if width != shape[0])
        raise DataError(
            f"Sequence 0 has {_described(shape[0])} and sequence {at} has {_described(shape[at])}; all sequences must "
            "have the same number of observations a step."
        )
    return concatenated(parts), offsets


def _described(width: int | None) -> str:
    return "one value a step" if width is None else f"{width} observations a step"


def _holds_rows(items: Any) -> bool:
    """Whether steps are rows of several observations. Tuples stay single values: they may be states."""
    return any(isinstance(step, list | np.ndarray) for item in items if not isinstance(item, str) for step in item)


def _one_sequence(item: Any, place: int) -> NDArray[Any]:
    """The steps of one sequence (steps,) or (steps, width)."""
    if isinstance(item, np.ndarray):
        return _checked_array(item, f"sequence {place}")
    if has_names(item):
        return _from_table(item, None, None, None, None).values
    if _is_column(item):
        return values_of(any_column("state", item))
    if isinstance(item, str):
        return np.array(list(item), dtype=str)
    if any(isinstance(step, list | np.ndarray) for step in item):
        return _step_matrix(item, f"sequence {place}")
    return _plain_array(list(item))


def _step_matrix(rows: Any, what: str) -> NDArray[Any]:
    """Rows of observations as a matrix; rows of unequal length are an error."""
    widths = [len(row) if isinstance(row, list | tuple | np.ndarray) else -1 for row in rows]
    wrong = next((place for place, width in enumerate(widths) if width != widths[0] or width < 1), None)
    if wrong is not None:
        raise DataError(
            f"Step {wrong} of {what} has {max(widths[wrong], 0)} observations and step 0 has {max(widths[0], 0)}; all "
            "steps must have the same number, at least one."
        )
    flat = _plain_array(list(chain.from_iterable(rows)))
    return flat.reshape(len(rows), widths[0])


def _checked_array(array: NDArray[Any], what: str = "the data") -> NDArray[Any]:
    if isinstance(array, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(array)
        array = np.asarray(array.data, dtype=np.float64 if array.dtype.kind in "iuf" else object).copy()
        array[mask] = np.nan if array.dtype.kind == "f" else None
    if array.ndim not in (1, 2) or (array.ndim == 2 and array.shape[1] == 0):
        raise DataError(
            f"The array of {what} has shape {array.shape}; expected one value a step, shape (steps,), or several, "
            "shape (steps, width)."
        )
    if array.dtype.kind not in "biufOUSmM":
        raise DataError(f"The array of {what} has the type {array.dtype}; expected numbers, text or objects.")
    return np.asarray(array)


def _plain_array(values: list[Any]) -> NDArray[Any]:
    """Values of one plain type as an array of it; anything else, gaps among them, as objects.

    Numbers with gaps become floats. Truth values among numbers stay what they are, since 1 and True are two states.
    """
    types = set(map(type, values))
    if types == {str}:
        return _objects(values)
    numbers = (int, float, np.integer, np.floating)
    if types == {bool} or all(issubclass(kind, numbers) and kind is not bool for kind in types):
        found = np.asarray(values)
        return found if found.dtype.kind in "biuf" else _objects(values)
    if float in types and all(issubclass(kind, numbers) or kind.__name__ in _GAPS for kind in types - {bool}):
        if bool not in types:
            return np.array([np.nan if is_gap(value) else value for value in values], dtype=np.float64)
    return _objects(values)


_GAPS = frozenset({"NoneType", "NAType", "NaTType"})


def _objects(values: list[Any]) -> NDArray[Any]:
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found


def _offsets(lengths: Any, steps: int) -> Integers:
    """Where each sequence begins, from the lengths; one sequence without them."""
    if lengths is None:
        if steps == 0:
            raise DataError("There are no sequences: the data have no steps.")
        return np.array([0, steps], dtype=np.int64)
    given = np.asarray(lengths)
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise DataError(f"lengths is {_shortened(lengths)}; expected one whole number for each sequence.")
    if len(given) == 0 or (given < 1).any():
        at = int(np.argmax(given < 1)) if len(given) else 0
        found = f"sequence {at} has {int(given[at])} steps" if len(given) else "there is none"
        raise DataError(f"lengths must be at least 1 for each sequence; {found}.")
    if int(given.sum()) != steps:
        raise DataError(f"lengths add up to {int(given.sum())}, but the data have {steps} steps; they must agree.")
    return np.concatenate([[0], np.cumsum(given)]).astype(np.int64)


def _checked_names(columns: Any, values: NDArray[Any]) -> list[Hashable] | None:
    if columns is None:
        return None
    names = [columns] if isinstance(columns, str) or not isinstance(columns, Iterable) else list(columns)
    width = 1 if values.ndim == 1 else values.shape[1]
    if len(names) != width:
        raise DataError(f"columns= has {len(names)} names for {width} observations a step; name each of them.")
    return names


def _shortened(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
