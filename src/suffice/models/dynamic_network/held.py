"""Series that stay where they are, asked round after round: what a fit, its judge and its errors need of them.

In memory they are one shard. Wherever else they are, a shard holds whole series, laid out once, and what it answers
adds up: only parameters and these sums travel.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.checks import weights_of
from suffice.domain import Domain
from suffice.errors import EstimateError, OptionError
from suffice.fitting.summaries import Declaring
from suffice.models.dynamic_network.clock import ShortestSteps, Step, jumps_of, same_step, shortest_steps
from suffice.models.dynamic_network.learning import family_rows
from suffice.models.dynamic_network.series import (
    Required,
    Series,
    SeriesForm,
    idle_step,
    settled_columns,
    with_gaps,
    with_inputs,
)
from suffice.models.dynamic_network.structure import SliceStructure, name_of
from suffice.models.em.held_rows import HeldRows, row_marks
from suffice.models.em.rows import ObservedRows
from suffice.models.row_answers import coded
from suffice.sources.base import Batch, Source
from suffice.sources.held import Held, HeldHere, Settled
from suffice.sources.reduction import Answers
from suffice.sources.sequence_tables import table_elsewhere

#: A question to the series of a shard, with parameters: a function at the top of a module, or a frozen data class.
SeriesQuestion = Callable[[Series, Any], Any]


@dataclass(frozen=True, eq=False)
class SeriesWork:
    """The work of networks through time: whole series, slice by slice, which then answer one question a round.

    `step` is how long a slice of dates is.
    """

    domain: Domain
    structure: SliceStructure
    time: Hashable | None = None
    step: Step | None = None

    def prepare(self, batch: Batch) -> Series:
        """The series of a shard."""
        assert batch.offsets is not None
        columns: Mapping[Hashable, NDArray[Any]] = coded(batch)
        offsets = np.asarray(batch.offsets, np.int64)
        if self.time is not None and batch.rows:
            jumps, _ = jumps_of(times_of(batch, self.time), offsets, self.time, self.step, guess=False)
            columns, offsets, _ = with_gaps(columns, offsets, jumps, self.time)
        weights = weights_of(None, len(offsets) - 1)
        series = Series(self.domain, dict(columns), offsets, weights, batch.rows, step=self.step)
        return with_inputs(series, self.structure)

    def evaluate(self, prepared: Series, parameters: Any) -> Any:
        """The answer to a question."""
        question, asked = parameters
        return question(prepared, asked)


@dataclass(frozen=True)
class StepsWork:
    """The work of finding out how long a slice of dates is: the shortest steps of a shard."""

    time: Hashable

    def prepare(self, batch: Batch) -> ShortestSteps:
        """Of its series."""
        assert batch.offsets is not None
        return shortest_steps(times_of(batch, self.time), np.asarray(batch.offsets, np.int64), self.time)

    def evaluate(self, prepared: ShortestSteps, parameters: object) -> ShortestSteps:
        """As it was prepared."""
        return prepared


def times_of(batch: Batch, name: Hashable) -> NDArray[Any]:
    """The column of times (rows,)."""
    times: NDArray[Any] = batch.raw[name].to_numpy(zero_copy_only=False)
    return times


# --------------------------------------------------------------------------------------------------------------------
# Where they are
# --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SeriesOverview:
    """How many slices and series there are, the weight of the slices, and by column how many show a value."""

    slices: int
    series: int
    weight: float
    values: dict[Hashable, int] = field(default_factory=dict)

    def __add__(self, other: SeriesOverview) -> SeriesOverview:
        """Of both shards."""
        values = {n: self.values.get(n, 0) + other.values.get(n, 0) for n in {**self.values, **other.values}}
        return SeriesOverview(
            self.slices + other.slices, self.series + other.series, self.weight + other.weight, values
        )


def overview_of(series: Series, _: object) -> SeriesOverview:
    """What a shard shows."""
    values = {name: int(np.count_nonzero(~series.missing(name))) for name in series.columns}
    return SeriesOverview(series.n_slices, series.n_series, series.weight, values)


@dataclass(frozen=True, eq=False)
class HeldSeries:
    """Series wherever they are; `held` is None once they were let go.

    A copy does not take them along.
    """

    domain: Domain
    held: Held[Series] | None
    step: Step | None = None
    notes: tuple[str, ...] = ()
    passes: int = 1
    rows: int = 0
    ignored: tuple[Hashable, ...] = ()
    #: By families the slices in which they hold, of series that are elsewhere: what these have said stays known.
    spans: dict[tuple[Hashable, ...], HeldRows] = field(default_factory=dict, repr=False)

    @classmethod
    def here(cls, series: Series, structure: SliceStructure) -> HeldSeries:
        """Series in memory: one shard."""
        held = HeldHere(SeriesWork(series.domain, structure), [series])
        return cls(series.domain, held, series.step, series.notes, series.passes, series.rows, series.ignored)

    def __getstate__(self) -> dict[str, Any]:
        """What is known without the series: what was asked before. Those in memory come along."""
        spans = {families: copy(rows) for families, rows in self.spans.items()}
        return {**vars(self), "held": self.held if self.local is not None else None, "spans": spans}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """As they were."""
        vars(self).update(state)

    @property
    def local(self) -> Series | None:
        """The series, where they are one shard in this process."""
        return self.held.prepared[0] if isinstance(self.held, HeldHere) and self.held.shards == 1 else None

    @property
    def stays_prepared(self) -> bool:
        """Whether shards are the same objects in every round, so that what was planned for them may be kept."""
        return self.held is not None and self.held.location == Held.location

    def ask(self, question: SeriesQuestion, parameters: Any = None, shards: Sequence[int] | None = None) -> Any:
        """The sum of what all shards answer, or those with these numbers: one round."""
        if self.held is None:
            raise EstimateError(
                "The series of this fit have stayed where they were and are not held any more, so nothing can be asked "
                "of them. Fit again; what a fit from such data says about its series is said in its report."
            )
        return self.held.sum((question, parameters), shards=shards)

    @cached_property
    def overview(self) -> SeriesOverview:
        """How many slices there are, and what they show."""
        seen: SeriesOverview = self.ask(overview_of)
        return seen

    def shown(self, name: Hashable) -> bool:
        """Whether every slice shows a node."""
        return self.overview.values.get(name, -1) == self.overview.slices

    @property
    def is_complete(self) -> bool:
        """Whether no value is missing."""
        return all(self.shown(name) for name in self.domain.names)

    @property
    def rounds(self) -> tuple[str, ...]:
        """Where the series stayed and how often they were asked, for the report; nothing of those in memory."""
        held = self.held
        if held is None or self.local is not None:
            return ()
        shards = "1 shard" if held.shards == 1 else f"{held.shards} shards"
        return (f"{held.rounds} rounds over {shards}; the series stayed {held.location}",)

    def identity(self) -> Iterable[Any]:
        """What tells these series from others: themselves, or the sum of their marks where they are elsewhere."""
        series = self.local
        if series is None:
            return self.domain, self.ask(marks_of), self.overview.weight
        columns = [[repr(name), values] for name, values in series.columns.items()]
        return series.domain, columns, series.offsets, series.weights

    def close(self) -> None:
        """Let the series go."""
        if self.held is not None and self.local is None:
            self.held.close()

    def at_rest(self) -> HeldSeries:
        """The same without series that are elsewhere."""
        return copy(self)

    def rows_of(self, structure: SliceStructure, families: tuple[Hashable, ...], domain: Domain) -> HeldRows:
        """The slices in which families of one span hold, a row each; domain: the variables of all families."""
        names = dict.fromkeys(name for family in families for name in structure.family_names(family))
        own = domain.select(names)
        if self.local is not None:
            return HeldRows.here(replace(family_rows(self.local, structure, families), domain=own))
        if families not in self.spans:
            columns = tuple(name for name in names if name_of(name) in self.domain)
            asked: Any = _OfSpan(self, structure, families, own)
            self.spans[families] = HeldRows(columns, own, asked)
        return self.spans[families]

    @cached_property
    def units(self) -> dict[Hashable, tuple[float, float]]:
        """Mean and standard deviation of the values seen of each column of numbers; 1 where there is no spread."""
        names = self.domain.numbers
        if not names:
            return {}
        totals = self.ask(_SumsSeen(names)).parts
        counts, sums = totals[::2], totals[1::2]
        means = [total / count if count else 0.0 for count, total in zip(counts, sums, strict=True)]
        units = {}
        for name, count, mean, square in zip(
            names, counts, means, self.ask(_SquaresSeen(names), means).parts, strict=True
        ):
            spread = float(np.sqrt(square / count)) if count else 0.0
            units[name] = mean, spread if spread > 1e-12 * abs(mean) else 1.0
        return units


def marks_of(series: Series, _: object) -> NDArray[np.uint64]:
    """The sum of the marks of all slices with their places: equal for equal series in any order and in any shards."""
    columns = {**series.columns, "place": series.place.astype(np.float64)}
    rows = ObservedRows(series.domain, columns, series.slice_weights)
    return np.array([row_marks(rows, tuple(columns), 0).sum()])


@dataclass(frozen=True, eq=False)
class _OfSpan:
    """The slices of families of one span as rows that are held: questions about rows are put to the series."""

    series: HeldSeries
    structure: SliceStructure
    families: tuple[Hashable, ...]
    domain: Domain

    @property
    def shards(self) -> int:
        """As many as of series."""
        assert self.series.held is not None
        return self.series.held.shards

    @property
    def rounds(self) -> int:
        """Those of the series."""
        assert self.series.held is not None
        return self.series.held.rounds

    @property
    def location(self) -> str:
        """Where the series stayed."""
        assert self.series.held is not None
        return self.series.held.location

    def sum(self, parameters: Any, by: object = None, *, shards: Sequence[int] | None = None) -> Any:
        """One round."""
        question, asked = parameters
        return self.series.ask(_AskSpan(self.structure, self.families, self.domain, question), asked, shards)

    def close(self) -> None:
        """The series are let go with the data of the fit."""


@dataclass(frozen=True, eq=False)
class _AskSpan:
    """A question about the slices in which some families hold."""

    structure: SliceStructure
    families: tuple[Hashable, ...]
    domain: Domain
    question: Callable[[ObservedRows, Any], Any]

    def __call__(self, series: Series, parameters: Any) -> Any:
        rows = family_rows(series, self.structure, self.families)
        return self.question(replace(rows, domain=self.domain), parameters)


# --------------------------------------------------------------------------------------------------------------------
# Numbers of columns
# --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _SumsSeen:
    """By column of numbers: how many slices show one, and their sum."""

    names: tuple[Hashable, ...]

    def __call__(self, series: Series, _: object) -> Answers:
        parts: list[float] = []
        for name in self.names:
            seen = _seen(series, name)
            parts += [float(len(seen)), float(seen.sum())]
        return Answers(tuple(parts))


@dataclass(frozen=True)
class _SquaresSeen:
    """Sums of the squares about some means."""

    names: tuple[Hashable, ...]

    def __call__(self, series: Series, means: Sequence[float]) -> Answers:
        pairs = zip(self.names, means, strict=True)
        return Answers(tuple(float(((_seen(series, name) - mean) ** 2).sum()) for name, mean in pairs))


def _seen(series: Series, name: Hashable) -> Floats:
    values = series.columns.get(name)
    return np.zeros(0) if values is None else values[~np.isnan(values)]


# --------------------------------------------------------------------------------------------------------------------
# Reading
# --------------------------------------------------------------------------------------------------------------------


def source_elsewhere(data: Any, form: SeriesForm, sample_weight: Any) -> Source | None:
    """The source of a table whose series can stay where they are; None where they have to be read into memory.

    They stay where a column tells them apart, and none has a weight.
    """
    if form.group is None or sample_weight is not None:
        return None
    return table_elsewhere(data)


def hold_series(
    source: Source,
    form: SeriesForm,
    required: Required,
    declaring: Declaring,
    structure: SliceStructure,
    options: Mapping[str, Any],
    step: Step | None,
    *,
    guess: bool,
) -> HeldSeries:
    """The series of a table, held where they are."""
    settled, ignored, notes = settled_columns(source, form, required, declaring)
    ways: dict[str, Any] = {"group": form.group, "order": form.by, "threads": options["threads"]}
    if form.time is not None:
        ways["raw"] = (form.time,)
    step = same_step(form.length, step)
    if form.time is not None:
        step, words = _settled_step(source, settled, form, step, ways, guess=guess)
        notes = (*notes, *words)
    work = SeriesWork(settled.domain, structure, form.time, step)
    held = source.hold(work, settled, memory_limit=options["memory_limit"], **ways)
    series = HeldSeries(settled.domain, held, step, notes, max(source.passes, 1), settled.rows, ignored)
    gaps = series.overview.slices - settled.rows
    if gaps:
        return replace(series, notes=(*notes, f"{gaps} slices that {form.time!r} leaves out are missing"))
    return series


def _settled_step(
    source: Source, settled: Settled, form: SeriesForm, step: Step | None, ways: Mapping[str, Any], *, guess: bool
) -> tuple[Step | None, tuple[str, ...]]:
    """How long a slice of dates is, by one more pass where nobody has said so, and what there is to say about it."""
    if step is not None and form.step is None:
        return step, ()
    with source.hold(StepsWork(form.time), settled, **ways) as held:
        steps: ShortestSteps = held.sum(None)
    if not steps.dates:
        if form.step is not None:
            raise idle_step(form.time)
        return None, ()
    if step is not None:
        return step, ()
    shortest = steps.shortest
    if shortest is None:
        return None, ()
    if not guess:
        raise OptionError(
            f"The time column {form.time!r} holds dates, and how long a slice is has not been learned from any. Say "
            "so: step='1 day', or any other length."
        )
    return shortest, (f"a slice is {shortest}, the shortest step of {form.time!r}",)
