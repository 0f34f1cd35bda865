"""Answers to statistics from coded batches: all in one call, so that a pass over the data serves a whole model."""

from __future__ import annotations

import math
import operator
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from suffice.answers import DENSE_CELLS, Answer, CountTable, MomentSums, PatternTable, TermSums, total_weight
from suffice.array_types import Floats
from suffice.checks import choice
from suffice.domain import MOST_AXES, Domain
from suffice.double_double import pair
from suffice.errors import DataError, MissingValueError, OptionError, listing
from suffice.grouped_answers import MomentsByTable
from suffice.kernels.counting import CountPlan, count_cells, count_sparse, plan_counts, spread_cells, tables
from suffice.kernels.grouped_moments import grouped_moment_sums
from suffice.kernels.moments import column_sums, moment_sums
from suffice.kernels.patterns import distinct_rows, label_codes
from suffice.sources.base import Batch, Progress, Source, missing_columns
from suffice.sources.held import Settled, survey
from suffice.sources.kinds import check_declared
from suffice.statistics import (
    FUNCTIONS,
    Counts,
    FamilyCounts,
    Moments,
    MomentsBy,
    Patterns,
    Statistic,
    Summary,
    Sums,
    empty_summary,
)

Missing = Literal["raise", "available"]

#: Plans for more rows than this are all alike.
_MOST_ROWS = 1 << 18


def summarize_source(
    source: Source,
    domain: Domain,
    statistics: Sequence[Statistic],
    *,
    missing: Missing = "raise",
    threads: int | None = None,
    progress: Progress | None = None,
) -> Summary:
    """The answers to some statistics from one pass over a source.

    Missing values in counts, moments and sums are errors (``missing="raise"``), or each statistic uses the rows in
    which its own variables are complete (``"available"``). Patterns keep their missing values.
    """
    task = Tally(tuple(statistics), missing)
    names = dict.fromkeys(chain.from_iterable([statistic.columns for statistic in statistics]))
    if names.keys() - domain.names:
        raise missing_columns([name for name in names if name not in domain], domain.names)
    needed = domain.select([name for name in domain.names if name in names]) if names else domain
    # Columns that no statistic asks for are not read; the summary still knows the whole domain.
    summary = source.reduce(task, needed, threads=threads, progress=progress)
    check_declared(summary.domain, source.undeclared)
    whole = domain.merge(summary.domain)
    return Summary(whole, summary.align(whole).answers, summary.rows, summary.weight)


@dataclass(frozen=True)
class Tally:
    """The task that answers some statistics; it can be sent to other processes."""

    statistics: tuple[Statistic, ...]
    missing: Missing = "raise"

    def __post_init__(self) -> None:
        """Check the option."""
        choice(self.missing, "missing", ("raise", "available"))

    def __call__(self, batch: Batch) -> Summary:
        """The answers for a batch."""
        return tally(batch, self.statistics, self.missing)


@dataclass(frozen=True)
class Complete:
    """What one pass says: the summary of rows, or None where some value is missing; and what it met either way."""

    summary: Summary | None
    settled: Settled

    @property
    def rows(self) -> int:
        """How many there are."""
        return self.settled.rows

    def __add__(self, other: Complete) -> Complete:
        """Of both sets of rows."""
        both = None if self.summary is None or other.summary is None else self.summary + other.summary
        return Complete(both, self.settled + other.settled)


@dataclass(frozen=True)
class TallyComplete:
    """The task that answers some statistics of rows without missing values, and counts those where there are some."""

    statistics: tuple[Statistic, ...]

    def __call__(self, batch: Batch) -> Complete:
        """The answers for a batch, or its missing values: these are an answer too, and no failure of whoever reads."""
        try:
            summary = tally(batch, self.statistics)
        except MissingValueError:
            return Complete(None, survey(batch))
        return Complete(summary, Settled(batch.domain, batch.rows, summary.weight))


def summarize_complete(
    source: Source, domain: Domain, statistics: Sequence[Statistic], *, progress: Progress | None = None
) -> Complete:
    """As `summarize_source`, where rows may turn out to have missing values."""
    met = source.reduce(TallyComplete(tuple(statistics)), domain, progress=progress)
    check_declared(met.settled.domain, source.undeclared)
    if met.summary is None:
        return met
    whole = domain.merge(met.summary.domain)
    summary = Summary(whole, met.summary.align(whole).answers, met.summary.rows, met.summary.weight)
    return Complete(summary, met.settled)


def tally(batch: Batch, statistics: Sequence[Statistic], missing: Missing = "raise") -> Summary:
    """The answers to some statistics for the rows of a batch.

    Rows of weight 0 count as rows read and are otherwise as if they were not there.
    """
    counts = [key for key in statistics if type(key) is Counts]
    for statistic in statistics if batch.domain.numbers or len(counts) < len(statistics) else ():
        check_kinds(statistic, batch.domain)
    rows = _WeightedRows.of(batch)
    if missing == "raise" and (rows.at_real or not rows.complete_codes):
        rows.refuse_missing({name for key in statistics if type(key) is not Patterns for name in key.columns})
    if rows.size and len(counts) == len(statistics) and (together := _counts_together(rows, counts)) is not None:
        return Summary(batch.domain, together, batch.rows, total_weight(batch.weights, batch.rows))
    answers: dict[Statistic, Answer] = {}
    if rows.size:
        answers |= _counts(rows, counts)
    if rows.size and len(answers) < len(statistics):
        answers |= {key: _moments(rows, key) for key in statistics if isinstance(key, Moments)}
        answers |= {key: _moments_by(rows, key) for key in statistics if isinstance(key, MomentsBy)}
        answers |= {key: _sums(rows, key) for key in statistics if isinstance(key, Sums)}
        answers |= {key: _patterns(rows, key) for key in statistics if isinstance(key, Patterns)}
    elif not rows.size:
        answers |= empty_summary(batch.domain, statistics).answers
    in_order = answers if tuple(answers) == tuple(statistics) else {key: answers[key] for key in statistics}
    return Summary(batch.domain, in_order, batch.rows, total_weight(batch.weights, batch.rows))


def check_kinds(statistic: Statistic, domain: Domain) -> None:
    """Raise where a statistic asks for numbers of a discrete variable, or for states of one that has none."""
    if isinstance(statistic, Patterns):
        return
    discrete = statistic.variables if isinstance(statistic, Counts) else getattr(statistic, "by", ())
    question = type(statistic).__name__
    for name in statistic.columns:
        variable = domain[name]
        if name in discrete and variable.kind != "discrete":
            raise OptionError(
                f"{question} needs discrete variables, and {name!r} is {variable.kind}. Declare the states of the "
                "column, or ask for its Moments or Sums."
            )
        if name not in discrete and variable.kind == "discrete":
            number = all(isinstance(state, int | float) for state in variable.states)
            remedy = "Declare the column 'real'" if number else "Correct the column if it should hold numbers"
            raise OptionError(
                f"{question} needs real variables, and {name!r} is discrete ({listing(variable.states, 3)}). {remedy}, "
                "or ask for its Counts."
            )


class _WeightedRows:
    """The rows of a batch that carry weight, with what is known about their missing values."""

    def __init__(self, batch: Batch, kept: NDArray[np.intp] | None) -> None:
        self.domain = batch.domain
        self.start = batch.start
        self.kept = kept
        self.codes = batch.codes if kept is None else np.ascontiguousarray(batch.codes[:, kept])
        self.reals = batch.reals if kept is None else np.ascontiguousarray(batch.reals[:, kept])
        self.weights = batch.weights if kept is None or batch.weights is None else batch.weights[kept]
        self.size = batch.rows if kept is None else len(kept)
        #: Discrete variables in order.
        self.names = batch.discrete
        self.at_real = {name: row for row, name in enumerate(batch.real)}
        self._missing: dict[Hashable, NDArray[np.bool_] | None] = dict.fromkeys(batch.real) if batch.finite else {}
        if batch.complete:
            self.complete_codes = True

    @classmethod
    def of(cls, batch: Batch) -> _WeightedRows:
        if batch.weights is None or batch.weights.all():
            return cls(batch, None)
        return cls(batch, np.flatnonzero(batch.weights))

    def number(self, row: int) -> int:
        """The number of a row in the data."""
        return self.start + (row if self.kept is None else int(self.kept[row]))

    def missing(self, name: Hashable) -> NDArray[np.bool_] | None:
        """Which rows lack a value, or None where none does."""
        if name not in self._missing:
            if name in self.at_code:
                row, card = self.at_code[name], self.domain[name].card
                missing = self.codes[row] == card if self.size and self._highest[row] == card else None
            else:
                values = self.reals[self.at_real[name]]
                # A sum is NaN if a term is, and costs less than looking at each; overflow may make it NaN as well.
                with np.errstate(over="ignore", invalid="ignore"):
                    suspect = math.isnan(values.sum())
                missing = np.isnan(values) if suspect and np.isnan(values).any() else None
            self._missing[name] = missing
        return self._missing[name]

    @cached_property
    def at_code(self) -> dict[Hashable, int]:
        """Rows of `codes`, by variable."""
        return {name: row for row, name in enumerate(self.names)}

    @cached_property
    def _highest(self) -> list[int]:
        """The largest code of each discrete variable."""
        return list(self.codes.max(axis=1).tolist())

    @cached_property
    def complete_codes(self) -> bool:
        """Whether no discrete variable has a missing value."""
        cards = self.domain.shape(self.names)
        return not self.size or all(map(operator.lt, self._highest, cards))

    def complete(self, names: Sequence[Hashable]) -> NDArray[np.intp] | None:
        """The rows in which all of some variables have a value, or None for all rows."""
        incomplete = [missing for missing in map(self.missing, names) if missing is not None]
        return np.flatnonzero(~np.logical_or.reduce(incomplete)) if incomplete else None

    def refuse_missing(self, names: set[Hashable]) -> None:
        """Raise for the first variable of the domain that has missing values."""
        for name in self.at_real if self.complete_codes else self.domain:
            missing = self.missing(name) if name in names else None
            if missing is not None:
                count, row = int(missing.sum()), self.number(int(missing.argmax()))
                raise MissingValueError(
                    f"Column {name!r} has {count} missing value{'s' * (count > 1)} among the rows {self.number(0)} to "
                    f"{self.number(self.size - 1)}, the first in row {row}; a value is needed in every row. Fill the "
                    "missing values, or leave those rows out."
                )

    def numbers(self, statistic: Statistic) -> tuple[Floats, Floats | None, NDArray[np.intp] | None]:
        """Values (d, n) of the real variables of a statistic, weights, and the rows they come from."""
        places = [self.at_real[name] for name in statistic.variables]
        chosen = self.complete(statistic.columns)
        values = self.reals if places == list(range(len(self.reals))) else self.reals[places]
        if chosen is None:
            return values, self.weights, None
        return values[:, chosen], None if self.weights is None else self.weights[chosen], chosen

    def code_places(self, names: Sequence[Hashable]) -> tuple[int, ...]:
        """Rows of `codes` that hold some variables."""
        return tuple([self.at_code[name] for name in names])


# --------------------------------------------------------------------------------------------------------------------
# Counts
# --------------------------------------------------------------------------------------------------------------------


def _plan(cards: tuple[int, ...], families: tuple[tuple[int, ...], ...], rows: int) -> CountPlan:
    """A plan for about that many rows: it serves all batches of a size between two powers of two."""
    return _planned(cards, families, min(_MOST_ROWS, 1 << (rows.bit_length() - 1)))


_planned = lru_cache(maxsize=64)(plan_counts)


def _counts_together(rows: _WeightedRows, statistics: Sequence[Counts]) -> FamilyCounts | None:
    """All tables in one array, where there are no missing values, no weights, and few cells; else None."""
    if rows.weights is not None or not rows.complete_codes:
        return None
    cards = rows.domain.shape(rows.names)
    asked = tuple([key.variables for key in statistics])
    dense, others = _families(rows.names, cards, asked, DENSE_CELLS)
    if others or not dense or len(set(asked)) < len(asked):
        return None
    plan = _plan(cards, tuple(dense.values()), rows.size)
    if plan.spread is None:
        return None
    cells = spread_cells(plan, count_cells(rows.codes, plan))
    assert cells is not None
    return FamilyCounts(asked, plan.shapes, cells.astype(np.float64))


def _counts(rows: _WeightedRows, statistics: Sequence[Counts]) -> dict[Statistic, Answer]:
    """Dense tables together through one plan, those that would be larger than the rows warrant one by one.

    A variable with missing values is counted with one more state, which is then cut off.
    """
    names = rows.names
    states = rows.domain.shape(names)
    cards = states
    if not rows.complete_codes:
        cards = tuple([card + (rows.missing(name) is not None) for name, card in zip(names, states, strict=True)])
    asked = tuple([key.variables for key in statistics])
    dense, others = _families(names, cards, asked, max(DENSE_CELLS, rows.size))
    answers: dict[Statistic, Answer] = {}
    if dense:
        plan = _plan(cards, tuple(dense.values()), rows.size)
        cells = count_cells(rows.codes, plan, rows.weights).astype(np.float64, copy=False)
        for number, table in zip(dense, tables(plan, cells, whole=rows.weights is None), strict=True):
            inside = table if cards is states else table[tuple([slice(states[variable]) for variable in dense[number]])]
            answer = CountTable(inside.shape, inside) if inside.size <= DENSE_CELLS else CountTable.of(inside)
            answers[statistics[number]] = answer
    for number, variables in others.items():
        shape = tuple(states[variable] for variable in variables)
        cells, values = count_sparse(rows.codes, cards, variables, rows.weights)
        kept = (cells < np.array(shape)).all(axis=1)
        answers[statistics[number]] = CountTable.sparse(shape, cells[kept], values[kept])
    return answers


@lru_cache(maxsize=64)
def _families(
    names: tuple[Hashable, ...], cards: tuple[int, ...], asked: tuple[tuple[Hashable, ...], ...], most: int
) -> tuple[dict[int, tuple[int, ...]], dict[int, tuple[int, ...]]]:
    """Places of the variables of each family that is asked for, by its number: of dense tables, and of the others.

    `names` are the discrete variables in order, `cards` their cards; `most` is the number of cells of a dense table.
    """
    at_code = {name: row for row, name in enumerate(names)}
    by_family = [tuple([at_code[name] for name in family]) for family in asked]
    fits = [len(rows) <= MOST_AXES and math.prod([cards[row] for row in rows]) <= most for rows in by_family]
    dense = {number: rows for number, rows in enumerate(by_family) if fits[number]}
    return dense, {number: rows for number, rows in enumerate(by_family) if not fits[number]}


# --------------------------------------------------------------------------------------------------------------------
# Sums of numbers
# --------------------------------------------------------------------------------------------------------------------


def _weight_pair(weights: Floats | None, size: int) -> Floats:
    return pair(float(size)) if weights is None else column_sums(weights[None])[:, 0]


def _moments(rows: _WeightedRows, statistic: Moments) -> MomentSums:
    values, weights, _ = rows.numbers(statistic)
    return MomentSums(*moment_sums(values, weights))


def _moments_by(rows: _WeightedRows, statistic: MomentsBy) -> MomentsByTable:
    places = rows.code_places(statistic.by)
    values, weights, chosen = rows.numbers(statistic)
    codes = rows.codes if chosen is None else rows.codes[:, chosen]
    cells, labels = label_codes(codes, rows.domain.shape(statistic.by), places)
    return MomentsByTable(cells.astype(np.int32), *grouped_moment_sums(values, labels, len(cells), weights))


def _sums(rows: _WeightedRows, statistic: Sums) -> TermSums:
    values, weights, chosen = rows.numbers(statistic)
    terms = np.empty((len(statistic.terms), values.shape[1]))
    for term, (name, function) in enumerate(statistic.terms):
        column = values[statistic.variables.index(name)]
        compute, allowed, condition = FUNCTIONS[function]
        good = np.asarray(allowed(column))
        if not good.all():
            row = int(np.argmin(good))
            number = rows.number(row if chosen is None else int(chosen[row]))
            raise DataError(
                f"Column {name!r} holds {float(column[row])!r} (row {number}); expected {condition} values. "
                "Correct the value, or choose a family that allows it."
            )
        with np.errstate(over="ignore"):
            terms[term] = compute(column)
        finite = np.isfinite(terms[term])
        if not finite.all():
            row = int(np.argmin(finite))
            raise DataError(
                f"Column {name!r} holds {float(column[row])!r}, and one over it is beyond the largest number, "
                "1.8e+308. Correct the value, or give the column in another unit."
            )
    sums = column_sums(terms, weights)
    if not np.isfinite(sums).all():
        name = statistic.terms[int(np.argmin(np.isfinite(sums).all(axis=0)))][0]
        largest = float(np.max(values[statistic.variables.index(name)]))
        raise DataError(
            f"Column {name!r} holds {largest!r}, and the sum of its values is beyond the largest number, 1.8e+308. "
            "Correct the values, or give the column in another unit."
        )
    return TermSums(_weight_pair(weights, values.shape[1]), sums)


# --------------------------------------------------------------------------------------------------------------------
# Distinct rows
# --------------------------------------------------------------------------------------------------------------------


def _patterns(rows: _WeightedRows, statistic: Patterns) -> PatternTable:
    """Codes as int32 with -1 for a missing value; with a real variable among them, all as float64 with NaN."""
    names = statistic.variables
    if all(name in rows.at_code for name in names):
        codes = np.ascontiguousarray(rows.codes[[rows.at_code[name] for name in names]])
        distinct, weights = distinct_rows(codes, rows.weights)
        cards = np.array([rows.domain[name].card for name in names], dtype=np.int32)
        distinct = distinct.astype(np.int32)
        if not (distinct == cards).any():
            return PatternTable(distinct, weights.astype(np.float64))
        # Missing values come first among the rows of a table, and last among codes.
        return PatternTable.of(np.where(distinct == cards, np.int32(-1), distinct), weights)
    values = np.empty((len(names), rows.size))
    for row, name in enumerate(names):
        if name in rows.at_real:
            values[row] = rows.reals[rows.at_real[name]]
        else:
            codes = rows.codes[rows.at_code[name]]
            values[row] = np.where(codes == rows.domain[name].card, np.nan, codes)
    distinct, weights = distinct_rows(values, rows.weights)
    return PatternTable(distinct, weights.astype(np.float64))
