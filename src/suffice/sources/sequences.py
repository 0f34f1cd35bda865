"""Sequences in: a list of them, an array with lengths, or a frame with a group column; all become the same thing.

`open_sequences` lays the steps of all sequences end to end and keeps where each sequence begins. A sequence has at
least one step; nothing that reads `Sequences` may look across the end of one. Every model of sequences (Markov chains,
hidden Markov models, chain CRFs) goes on with this one container: reading replaces the values by codes, by the arrays
of an emission or by a design, and adds weights and labels.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, TypedDict, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.array_types import Floats, Ints
from suffice.checks import column_name
from suffice.domain import Variable
from suffice.errors import DataError, OptionError, listing, shortened
from suffice.sources.arrays import array_column
from suffice.sources.base import Source
from suffice.sources.columns import Coded
from suffice.sources.sequence_lists import ACCEPTED, checked_names, flat_values, laid_end_to_end, typed_states
from suffice.sources.sequence_lists import step_offsets as _offsets
from suffice.sources.sequence_tables import is_table, observation_names, read_steps, table_columns, table_elsewhere
from suffice.sources.states import places, resolve_states

__all__ = [
    "FormOptions",
    "SequenceForm",
    "Sequences",
    "code_states",
    "flat_values",
    "is_table",
    "open_sequences",
    "several_observations",
    "table_columns",
    "translated",
]

#: What is known of the steps: an array (steps, ...), a tuple of such arrays, or anything that an index of steps cuts.
V = TypeVar("V", covariant=True)
W = TypeVar("W")


@dataclass(frozen=True, eq=False)
class Sequences(Generic[V]):
    """The steps of all sequences end to end.

    `values` are what is known of each step: an array (steps,) or (steps, width), a tuple of arrays, or a design with
    one row a step; sequence i holds the steps ``offsets[i]`` to ``offsets[i + 1] - 1``. `sample_weight` (n_sequences,)
    says how often each sequence counts, None: each counts once. `labels` (steps,) are codes of states or labels, -1
    where one is not known; None where none is. `columns` are the names of the observations where the data have names.
    `variables` hold the states, in order, of the observations whose type brings them (categories), None for others;
    None where none does.
    """

    values: V
    offsets: Ints
    sample_weight: Floats | None = None
    labels: NDArray[np.int32] | None = None
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
    def lengths(self) -> Ints:
        """Number of steps of each sequence (n_sequences,)."""
        return np.diff(self.offsets)

    def __len__(self) -> int:
        """Number of sequences."""
        return self.n_sequences

    def __getitem__(self, number: int) -> Any:
        """What is known of the steps of one sequence, a view."""
        if not -self.n_sequences <= number < self.n_sequences:
            raise IndexError(f"There are {self.n_sequences} sequences; asked for number {number}.")
        number %= self.n_sequences
        return _cut(self.values, slice(int(self.offsets[number]), int(self.offsets[number + 1])))

    # -- weights -----------------------------------------------------------------------------------------------------

    @cached_property
    def weights(self) -> Floats:
        """How often each sequence counts (n_sequences,)."""
        return np.ones(self.n_sequences) if self.sample_weight is None else self.sample_weight

    @cached_property
    def is_even(self) -> bool:
        """Whether every sequence counts once."""
        return self.sample_weight is None or bool((self.sample_weight == 1.0).all())

    @property
    def weight(self) -> float:
        """Number of steps, weighted."""
        return float(self.weights @ self.lengths)

    @property
    def step_weights(self) -> Floats:
        """How often each step counts (steps,)."""
        return np.repeat(self.weights, self.lengths)

    # -- the same steps, read ----------------------------------------------------------------------------------------

    def reading(self, values: W, **more: Any) -> Sequences[W]:
        """The same sequences with other values of their steps; more: other fields."""
        return replace(self, values=values, **more)  # type: ignore[return-value, arg-type]

    def split(self, rows: NDArray[Any]) -> list[NDArray[Any]]:
        """Rows (steps, ...) of answers, one array for each sequence."""
        return np.split(rows, self.offsets[1:-1])

    # -- some of them ------------------------------------------------------------------------------------------------

    def take(self, first: int, last: int) -> Sequences[V]:
        """The sequences from `first` up to `last`, which is not among them: views."""
        begin, end = int(self.offsets[first]), int(self.offsets[last])
        weights = None if self.sample_weight is None else self.sample_weight[first:last]
        return self._part(slice(begin, end), self.offsets[first : last + 1] - begin, weights)

    def stretch(self, begin: int, end: int) -> Sequences[V]:
        """Some steps in a row of the first sequence, as a sequence: views."""
        weights = None if self.sample_weight is None else self.sample_weight[:1]
        return self._part(slice(begin, end), np.array([0, end - begin], np.int64), weights)

    def head(self, most: int) -> Sequences[V]:
        """The first sequences, of at most so many steps; of a longer first one its beginning."""
        if self.n_steps <= most:
            return self
        last = int(np.searchsorted(self.offsets, most, side="right")) - 1
        return self.take(0, last) if last >= 1 else self.stretch(0, most)

    def chosen(
        self, numbers: Sequence[int] | Ints, sample_weight: Floats | None = None, *, most: int | None = None
    ) -> Sequences[V]:
        """Some sequences in the order asked; `sample_weight` in place of theirs; of each at most the first steps."""
        steps, offsets = self.steps_of(numbers, most)
        if sample_weight is None and self.sample_weight is not None:
            sample_weight = self.sample_weight[numbers]
        return self._part(steps, offsets, sample_weight)

    def steps_of(self, numbers: Sequence[int] | Ints, most: int | None = None) -> tuple[Ints, Ints]:
        """The steps of some sequences in the order asked, of each at most the first, and where each begins."""
        lengths = self.lengths[numbers] if most is None else np.minimum(self.lengths[numbers], most)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        return np.repeat(self.offsets[:-1][numbers] - offsets[:-1], lengths) + np.arange(offsets[-1]), offsets

    def _part(self, steps: slice | Ints, offsets: Ints, sample_weight: Floats | None) -> Sequences[V]:
        labels = None if self.labels is None else self.labels[steps]
        return replace(
            self, values=_cut(self.values, steps), offsets=offsets, sample_weight=sample_weight, labels=labels
        )

    # -- one value a step --------------------------------------------------------------------------------------------

    @property
    def width(self) -> int | None:
        """Observations a step; None where each step is a single value."""
        shape = np.asarray(self.values).shape
        return None if len(shape) == 1 else shape[1]

    def single(self) -> Sequences[NDArray[Any]]:
        """With one value a step: a matrix of one column becomes that column; a wider one is an error."""
        values = np.asarray(self.values)
        if values.ndim == 2 and values.shape[1] != 1:
            raise several_observations(self.columns, values.shape[1])
        return self.reading(values.reshape(len(values)))

    def where(self, step: int) -> tuple[int, int]:
        """The sequence that a step belongs to, and the number of the step in it."""
        number = int(np.searchsorted(self.offsets, step, side="right")) - 1
        return number, step - int(self.offsets[number])


def several_observations(columns: Sequence[Hashable] | None, width: int | None = None) -> DataError:
    """The error for steps of several observations, where one state is expected."""
    named = "" if columns is None else f" ({listing(columns)})"
    return DataError(
        f"Each step holds {len(columns or ()) if width is None else width} observations{named}; expected one state a "
        "step. Name the column to use by columns=, or, where each row of a matrix is a sequence, give list(matrix)."
    )


def _cut(values: Any, steps: slice | Ints) -> Any:
    """What is known of some steps."""
    return tuple(part[steps] for part in values) if isinstance(values, tuple) else values[steps]


# --------------------------------------------------------------------------------------------------------------------
# Opening
# --------------------------------------------------------------------------------------------------------------------


class ColumnOptions(TypedDict, total=False):
    """The keywords by which a user says what columns of a table are."""

    group: Hashable | None
    order: Hashable | None
    columns: Any


class FormOptions(ColumnOptions, total=False):
    """The keywords by which a user says how sequences are laid out: those of `SequenceForm`."""

    lengths: ArrayLike | None


@dataclass(frozen=True, eq=False)
class SequenceForm:
    """How sequences are laid out: their lengths, or the columns of a table that tell them apart and order them.

    `columns` are the columns of a table to read.
    """

    lengths: ArrayLike | None = None
    group: Hashable | None = None
    order: Hashable | None = None
    columns: Sequence[Hashable] | None = None

    def __post_init__(self) -> None:
        """Refuse values of columns in the place of their names."""
        column_name(self.group, "group")
        column_name(self.order, "order")

    def reading(self, columns: Sequence[Hashable] | None) -> SequenceForm:
        """The form with these columns."""
        return replace(self, columns=columns)

    def open(self, data: Any) -> Sequences[NDArray[Any]]:
        """Data of this form as sequences."""
        return open_sequences(data, **vars(self))

    def elsewhere(self, data: Any, sample_weight: str | None = None) -> Source | None:
        """The source of a table whose sequences stay where they are: a group tells them apart, and it is not in memory.

        sample_weight: the column that holds the weights. None for data that are read into memory.
        """
        if self.group is None or self.lengths is not None:
            return None
        return table_elsewhere(data, sample_weight)

    def observations(self, source: Source) -> list[Hashable]:
        """The columns of a table that hold observations."""
        return observation_names(source, self.group, self.order, self.columns)


def open_sequences(
    data: Any,
    *,
    lengths: ArrayLike | None = None,
    group: Hashable | None = None,
    order: Hashable | None = None,
    columns: object = None,
) -> Sequences[NDArray[Any]]:
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
            their own (DuckDB, Dask, Spark, Ray) need it.
        columns: names of the columns that hold the observations; by default all but the group and the order.
    """
    if isinstance(data, Sequences):
        if lengths is not None or group is not None or order is not None:
            raise OptionError("The sequences are open already; give lengths=, group= and order= when they are opened.")
        return data
    if data is None:
        raise DataError(f"The data are None. {ACCEPTED}")
    if isinstance(data, str | bytes) and not is_table(data):
        raise DataError(
            f"The data are the text {shortened(data)}; give [text] for the sequence of its characters. {ACCEPTED}"
        )
    if lengths is not None and group is not None:
        raise OptionError("Give either lengths= or group=, not both: each says where sequences end.")
    if lengths is not None and order is not None:
        raise OptionError("order= sorts the steps of a table; with lengths= they are in order. Give group= instead.")
    if is_table(data):
        steps = read_steps(data, group, columns, order)
        offsets = _offsets(lengths, len(steps.values)) if steps.offsets is None else steps.offsets
        return Sequences(steps.values, offsets, columns=steps.names, variables=steps.variables)
    for name, column in (("order", order), ("group", group)):
        if column is not None:
            raise OptionError(
                f"{name}={column!r} names a column, but the data ({type(data).__name__}) have no column names. Give a "
                "table, or leave it out."
            )
    values, offsets = laid_end_to_end(data, lengths)
    return Sequences(values, offsets, columns=checked_names(columns, values), variables=typed_states(data))


def code_states(
    values: NDArray[Any], states: Sequence[Hashable] | Variable | None = None, *, name: Hashable = "state"
) -> tuple[NDArray[np.int32], tuple[Hashable, ...]]:
    """Codes (steps,) of discrete values, -1 for a missing one, and the states in order.

    Without `states` those seen, sorted. Given states are closed: any other value is an error that names it; those of a
    variable are closed where they were declared. Whole floats are integers.
    """
    if isinstance(states, Variable):
        variable = states
    elif states is None:
        variable = Variable(name, "discrete")
    else:
        variable = Variable.discrete(name, states)
    coded = array_column(name, values).code()
    settled = resolve_states(variable, coded)
    return translated(settled, coded), settled.states


def translated(variable: Variable, coded: Coded) -> NDArray[np.int32]:
    """Codes among the states of the variable; -1 for a missing value."""
    table = np.append(places(variable, coded.labels), -1).astype(np.int32)
    return table[coded.indices]


def label_windows(codes: NDArray[Any], offsets: Ints, size: int) -> Floats:
    """How many sequences begin with each label (size,), and how many steps follow which label with which (size^2,).

    Weights do not matter, and labels below 0 are unknown.
    """
    first, inner = codes[offsets[:-1]], np.ones(len(codes), np.bool_)
    inner[offsets[:-1]] = False
    later = np.flatnonzero(inner)
    before, after = codes[later - 1], codes[later]
    known = (before >= 0) & (after >= 0)
    pairs = np.bincount(before[known].astype(np.int64) * size + after[known], minlength=size * size)
    return np.concatenate([np.bincount(first[first >= 0], minlength=size), pairs]).astype(np.float64)
