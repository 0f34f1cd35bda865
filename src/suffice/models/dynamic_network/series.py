"""Series of slices: the values of all nodes in every slice, one series after another.

A slice that a time column leaves out has missing values alone. What families look at, values in this slice, in slices
before and in the first ones, are columns cut from these (`Series.window`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats, Ints
from suffice.checks import column_name, weights_of
from suffice.domain import Domain, Variable
from suffice.errors import DataError, OptionError, SizeError, listing
from suffice.fitting.summaries import Declaring, read_columns
from suffice.models.dynamic_network.clock import Step, jumps_of, read_step, same_step
from suffice.models.dynamic_network.structure import SliceStructure, Span, is_timed, lag_of, name_of
from suffice.models.em.rows import ObservedRows
from suffice.models.row_answers import coded
from suffice.sources.base import Source
from suffice.sources.grouping import concatenated, values_of
from suffice.sources.held import Settled
from suffice.sources.opening import open_source
from suffice.sources.sequence_tables import has_names, laid_out

#: Slices that gaps in time may add for each row that there is.
MOST_GAPS = 1000

Column = NDArray[Any]


class SeriesOptions(TypedDict, total=False):
    """The keywords by which a user says how a table holds series: those of `SeriesForm`."""

    group: Hashable | None
    order: Hashable | None
    time: Hashable | None
    step: Any


@dataclass(frozen=True)
class SeriesForm:
    """How a table holds series: the columns that tell them apart, that order their rows, and that hold their times.

    `step` is how long a slice is, where the times are dates; `apart` says that it is one of several parts, which add up
    only where slices are equally long in all of them.
    """

    group: Hashable | None = None
    order: Hashable | None = None
    time: Hashable | None = None
    step: Any = None
    apart: bool = False

    def __post_init__(self) -> None:
        """Refuse values of columns in the place of their names, and two columns for one purpose."""
        for option in ("group", "order", "time"):
            column_name(getattr(self, option), option)
        if self.order is not None and self.time is not None:
            raise OptionError(
                "order= and time= both put the rows of a series in order; time= makes missing slices of the gaps too. "
                "Give one of them."
            )
        if self.step is not None and self.time is None:
            raise OptionError("step= is how long a slice is, where time= names a column of dates. Give both, or none.")

    @cached_property
    def length(self) -> Step | None:
        """How long a slice is, where that was said."""
        return None if self.step is None else read_step(self.step)

    @property
    def by(self) -> Hashable | None:
        """The column that orders the rows."""
        return self.time if self.order is None else self.order

    @property
    def is_plain(self) -> bool:
        """Whether nothing is said."""
        return self.group is None and self.by is None


@dataclass(frozen=True, eq=False)
class Series:
    """Slices end to end: `columns` (slices,) are codes with -1 and numbers with NaN where a value is missing.

    Series i has the slices ``offsets[i]`` to ``offsets[i + 1] - 1`` and counts `weights[i]` times. `listed` says
    whether several were given, so that answers come as a list. `notes` are for the report.
    """

    domain: Domain
    columns: Mapping[Hashable, Column]
    offsets: Ints
    weights: Floats
    rows: int
    listed: bool = True
    notes: tuple[str, ...] = ()
    passes: int = 1
    #: Columns of the data that were not read.
    ignored: tuple[Hashable, ...] = ()
    #: How long a slice of dates is.
    step: Step | None = None
    #: By node in which slices (slices,) it is set from outside: its family says nothing there.
    cut: Mapping[Hashable, NDArray[np.bool_]] = field(default_factory=dict)

    @property
    def n_series(self) -> int:
        """How many series there are."""
        return len(self.offsets) - 1

    @property
    def n_slices(self) -> int:
        """How many slices all of them have."""
        return int(self.offsets[-1])

    @property
    def lengths(self) -> Ints:
        """Slices of each series (n_series,)."""
        return np.diff(self.offsets)

    @property
    def weight(self) -> float:
        """Slices, weighted."""
        return float(self.weights @ self.lengths)

    @cached_property
    def owner(self) -> Ints:
        """The series of each slice (slices,)."""
        return np.repeat(np.arange(self.n_series), self.lengths)

    @cached_property
    def place(self) -> Ints:
        """The number of each slice in its series (slices,), from 0."""
        return np.arange(self.n_slices) - self.offsets[:-1][self.owner]

    @cached_property
    def slice_weights(self) -> Floats:
        """How often each slice counts (slices,)."""
        return self.weights[self.owner]

    def rows_of(self, span: Span) -> Ints:
        """The slices in which families of a span hold."""
        begin, end = span
        inside = self.place >= begin
        if end is not None:
            inside &= self.place < end
        return np.flatnonzero(inside)

    def column(self, variable: Hashable, rows: Ints) -> Column:
        """The values of a variable of a family, which holds in these slices."""
        values = self.columns[name_of(variable)]
        if not is_timed(variable):
            return values[rows]
        if variable[1] < 0:  # type: ignore[index]
            return values[rows - lag_of(variable)]
        return values[self.offsets[:-1][self.owner[rows]] + variable[1]]  # type: ignore[index]

    def window(self, span: Span, names: Iterable[Hashable], domain: Domain) -> ObservedRows:
        """The values of variables of families of one span, a row for each slice in which these hold."""
        rows = self.rows_of(span)
        columns = {n: self.column(n, rows) for n in dict.fromkeys(names) if name_of(n) in self.columns}
        return ObservedRows(domain, columns, self.slice_weights[rows])

    def missing(self, name: Hashable) -> NDArray[np.bool_]:
        """In which slices a column has no value (slices,)."""
        values = self.columns[name]
        return np.asarray(values < 0 if values.dtype.kind == "i" else np.isnan(values))

    @property
    def is_complete(self) -> bool:
        """Whether no value is missing."""
        return not any(self.missing(name).any() for name in self.columns)

    def take(self, first: int, last: int) -> Series:
        """Some series in a row."""
        begin, end = int(self.offsets[first]), int(self.offsets[last])
        columns = {name: values[begin:end] for name, values in self.columns.items()}
        cut = {name: mask[begin:end] for name, mask in self.cut.items()}
        offsets, weights = self.offsets[first : last + 1] - begin, self.weights[first:last]
        return replace(self, columns=columns, cut=cut, offsets=offsets, weights=weights)

    def where(self, number: int) -> str:
        """A slice in words."""
        return f"slice {int(self.place[number])} of series {int(self.owner[number])}"


# --------------------------------------------------------------------------------------------------------------------
# Reading
# --------------------------------------------------------------------------------------------------------------------

Required = Callable[[Sequence[Hashable]], Mapping[Hashable, Variable | None]]


def settled_columns(
    source: Source, form: SeriesForm, required: Required, declaring: Declaring
) -> tuple[Settled, tuple[Hashable, ...], tuple[Any, ...]]:
    """The columns of a table of slices, settled; the names of those left out, and what there is to say."""
    if source.unordered and form.by is None:
        raise OptionError(
            f"The rows of {source.unordered} come in no order of their own, and slices have one. Name the column that "
            "orders them by order=, or by time= where its gaps are missing slices."
        )
    beside = [name for name in (form.group, form.by) if name is not None]
    source.check_columns(beside)
    readable = [name for name in source.columns if name not in beside]
    domain, notes = read_columns(source, required(readable), declaring)
    settled = source.settle(domain)
    if not settled.rows:
        raise DataError("There are no slices: the table has no rows. Give at least one.")
    return settled, tuple(name for name in readable if name not in settled.domain), notes


def idle_step(time: Hashable) -> OptionError:
    """What to raise where step= is given beside numbered slices."""
    return OptionError(f"step= has no effect: {time!r} holds whole numbers, one a slice. Leave it out.")


def read_series(
    data: Any,
    form: SeriesForm,
    sample_weight: Any,
    required: Required,
    declaring: Declaring,
    *,
    step: Step | None = None,
    guess: bool = False,
) -> Series:
    """Series from a table, or from a list of tables.

    required: the variables to read, given the columns that there are. step: how long a slice of dates is, where that
    was learned; guess: whether it may be the shortest step of these.
    """
    step = same_step(form.length, step)
    tables = list_of_tables(data)
    lengths: Ints | None = None
    if tables is not None:
        if not form.is_plain:
            raise OptionError(
                "group=, order= and time= name columns of one table; the data are a list of tables, one a series, "
                "whose rows are in order. Leave them out, or join the tables."
            )
        data, lengths = _end_to_end(tables)
    if isinstance(data, np.ndarray) and data.dtype.names is None:
        raise DataError(
            f"Series are tables with a column for each node; found an array of shape {data.shape}, whose columns have "
            "no names. Give a frame, or a dict such as {'rain': array[:, 0]}."
        )
    source = open_source(data)
    settled, ignored, notes = settled_columns(source, form, required, declaring)
    parts: dict[Hashable, list[Column]] = {name: [] for name in settled.domain.names}
    for batch in source.batches(settled.domain):
        for name, column in coded(batch).items():
            parts[name].append(column)
    columns = {name: np.concatenate(pieces) if pieces else np.zeros(0) for name, pieces in parts.items()}
    if lengths is None:
        order, offsets, times = laid_out(source, form.group, form.by, settled.rows)
        if order is not None:
            columns = {name: column[order] for name, column in columns.items()}
    else:
        offsets, times = np.concatenate([[0], np.cumsum(lengths)]), None
    if form.time is not None and times is not None:
        jumps, learned = jumps_of(times, offsets, form.time, step, guess=guess)
        if form.step is not None and learned is None:
            raise idle_step(form.time)
        if learned is not None and step is None:
            notes = (*notes, f"a slice is {learned}, the shortest step of {form.time!r}")
        step = learned or step
        columns, offsets, words = with_gaps(columns, offsets, jumps, form.time)
        notes = (*notes, *words)
    weights = weights_of(sample_weight, len(offsets) - 1)
    listed = tables is not None or form.group is not None
    passes = max(source.passes, 1)
    return Series(settled.domain, columns, offsets, weights, settled.rows, listed, notes, passes, ignored, step)


def list_of_tables(data: Any) -> list[Any] | None:
    """The tables, where the data are a list of them; None for one table, which may be a list of rows."""
    if not isinstance(data, list | tuple) or not data:
        return None
    if all(isinstance(item, Mapping) for item in data):
        held = [value for item in data for value in item.values()]
        nested = [isinstance(v, list | tuple | range | np.ndarray) or hasattr(v, "__array__") for v in held]
        return list(data) if held and all(nested) else None
    return list(data) if all(has_names(item) for item in data) else None


def _end_to_end(tables: list[Any]) -> tuple[dict[Hashable, Column], Ints]:
    """One table of all rows, and how many each has had; a column that some lack is missing there."""
    sources = [open_source(table) for table in tables]
    names = dict.fromkeys(name for source in sources for name in source.columns)
    lengths = np.array([source.rows for source in sources], np.int64)
    if not (lengths > 0).all():
        raise DataError(f"Series {int(np.argmin(lengths))} has no slices. Give each at least one, or leave it out.")
    columns = {}
    for name in names:
        parts = []
        for source, length in zip(sources, lengths.tolist(), strict=True):
            held = name in source.columns
            parts.append(values_of(source.column(name)) if held else np.full(length, None, object))  # type: ignore[attr-defined]
        columns[name] = concatenated(parts)
    return columns, lengths


def with_gaps(
    values: Mapping[Hashable, Column], offsets: Ints, jumps: Ints, name: Hashable
) -> tuple[dict[Hashable, Column], Ints, tuple[str, ...]]:
    """Slices with missing values where times leave some out; jumps: how many slices a row comes after the last one."""
    total = int(jumps.sum())
    if total > MOST_GAPS * len(jumps):
        raise SizeError(
            f"The time column {name!r} makes {total:,} slices of {len(jumps):,} rows, nearly all of them missing. Give "
            "times in larger units, or a longer step=."
        )
    places = np.cumsum(jumps) - 1
    filled = {}
    for column, given in values.items():
        filled[column] = np.full(total, -1 if given.dtype.kind == "i" else np.nan, given.dtype)
        filled[column][places] = given
    gaps = total - len(jumps)
    notes = (f"{gaps} slices that {name!r} leaves out are missing",) if gaps else ()
    return filled, np.append(places[offsets[:-1]], total), notes


def with_inputs(series: Series, structure: SliceStructure) -> Series:
    """The series with a value of every input in every slice: the last one before, where the structure says so."""
    columns = dict(series.columns)
    for name in structure.carry:
        columns[name] = _carried(series, name)
    filled = replace(series, columns=columns) if structure.carry else series
    for name in structure.inputs:
        gone = filled.missing(name)
        if not gone.any():
            continue
        where = series.where(int(gone.argmax()))
        if name in structure.carry:
            raise DataError(
                f"{name!r} is one of carry=, and has no value in {where}, before which there is none to carry on. Give "
                "the first slice of each series its inputs."
            )
        raise DataError(
            f"{name!r} is one of inputs= and has no value in {where}. Inputs are given in every slice, also in those "
            f"that gaps in time leave out: fill the value in, let the last one hold on by carry={[name]!r}, leave "
            f"{listing([name])} out of inputs=, or end the series there."
        )
    return filled


def _carried(series: Series, name: Hashable) -> Column:
    """A column with the last value of its series where there is none."""
    slices = np.arange(series.n_slices)
    last = np.maximum.accumulate(np.where(series.missing(name), -1, slices))
    known = last >= series.offsets[:-1][series.owner]
    return series.columns[name][np.where(known, last, slices)]


def read_series_again(model: Any, rows: Mapping[str, Any]) -> Any:
    """What the task of a model reads of series that are given again, by the names of the arguments of its `fit`."""
    from suffice.fitting.contract import Inputs

    form = SeriesForm(**{name: rows[name] for name in ("group", "order", "time", "step") if name in rows})
    more = {"sample_weight": rows.get("sample_weight"), "form": form}
    return model._task().read(Inputs(rows["data"], more), None, "fit")
