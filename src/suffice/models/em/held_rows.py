"""The rows that EM learns from, where they stay: every question about them is one round, whose answers add up.

Rows in memory are one shard in this process, and so are distinct rows that are few. All others stay where they are: an
E-step, a start, the judge and the observed information send them parameters and get sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.answers import PatternTable
from suffice.array_types import Floats
from suffice.domain import Domain
from suffice.errors import EstimateError, OptionError
from suffice.fitting.summaries import SummaryData
from suffice.models.em.rows import ObservedRows, compact_rows, has_missing
from suffice.sources.base import Batch, Progress, Source
from suffice.sources.held import Held, HeldHere, Settled
from suffice.sources.reduction import Answers, add_answers
from suffice.sources.releasing import Disclosed
from suffice.sources.tally import tally
from suffice.statistics import Patterns, Statistic, Summary

#: Numbers (distinct rows times columns) up to which distinct rows are brought together in this process: 32 MB.
FEW_NUMBERS = 2**22
#: Marks by which distinct rows are counted, and the excess over the most from which on that is beyond doubt.
LOWEST, MARGIN = 1024, 1.25
#: Rows on other machines come here only where so many are equal that they are no rows any more but counts.
EQUAL_ROWS = 4

#: Rows of a block: what a question makes of them on its way takes many times their bytes.
BLOCK_ROWS = 2**16

#: A question to the rows of a shard, with parameters: a function at the top of a module, or a frozen data class.
Question = Callable[[ObservedRows, Any], Any]


#: The rows of a shard, block by block.
Blocks = tuple[ObservedRows, ...]


@dataclass(frozen=True)
class KeepRows:
    """The work of EM: the distinct rows of a shard, which then answer one question a round.

    `names` are the columns, and `domain` has the hidden variables besides. `tables` are the variables of each part of
    the model, whose joint states are counted or expected.
    """

    names: tuple[Hashable, ...]
    domain: Domain
    tables: tuple[tuple[Hashable, ...], ...] = ()

    def prepare(self, batch: Batch) -> Blocks:
        """The distinct rows of each block, in narrow codes."""
        starts = range(0, max(batch.rows, 1), BLOCK_ROWS)
        return tuple(self.distinct(batch.part(slice(start, start + BLOCK_ROWS))) for start in starts)

    def distinct(self, batch: Batch) -> ObservedRows:
        """The distinct rows of a batch."""
        question = Patterns(self.names)
        return compact_rows(self.names, tally(batch, (question,))[question], self.domain)

    def disclosed(self) -> Disclosed:
        """The tables of the model, as far as rows show them."""
        return Disclosed(self.tables, expected=True)

    def evaluate(self, blocks: Blocks, parameters: tuple[Question, Any]) -> Any:
        """The answer of a shard to a question with its parameters."""
        question, values = parameters
        return add_answers(question(rows, values) for rows in blocks)


@dataclass(frozen=True, eq=False)
class HeldRows:
    """The rows of a fit, wherever they are. Variables of the domain of which no row has a value are hidden.

    `names` are the columns. Copies and pickles know what was asked before, and no rows.
    """

    names: tuple[Hashable, ...]
    domain: Domain
    held: Held[Blocks] | None

    @classmethod
    def here(cls, rows: ObservedRows) -> HeldRows:
        """Rows in this process: one shard."""
        names = tuple(rows.columns)
        return cls(names, rows.domain, HeldHere(KeepRows(names, rows.domain), [(rows,)]))

    def __getstate__(self) -> dict[str, Any]:
        """What is known without the rows: what was asked before."""
        return {**vars(self), "held": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """As they were."""
        vars(self).update(state)

    def ask(self, question: Question, parameters: Any = None, shards: Sequence[int] | None = None) -> Any:
        """The sum of what all shards answer, or those with these numbers: one round."""
        if self.held is None:
            raise EstimateError(
                "The rows of this fit have stayed where they were and are not held any more, so nothing can be asked "
                "of them. Fit again; what a fit from such data says about its rows is said in its report."
            )
        return self.held.sum((question, parameters), shards=shards)

    @property
    def local(self) -> ObservedRows | None:
        """The rows, where they are one shard in this process."""
        return self.held.prepared[0][0] if isinstance(self.held, HeldHere) else None

    # -- what many ask -----------------------------------------------------------------------------------------------

    @cached_property
    def overview(self) -> Overview:
        """How many rows there are, and which columns they show."""
        seen: Overview = self.ask(_overview)
        return seen

    @property
    def weight(self) -> float:
        """The weight of all rows."""
        return self.overview.weight

    @property
    def count(self) -> int:
        """How many rows are gone through in a round."""
        return self.overview.rows

    @property
    def seen(self) -> tuple[Hashable, ...]:
        """The columns of which some row has a value."""
        return tuple(name for name in self.names if self.overview.values.get(name, 0))

    def show(self, names: Iterable[Hashable]) -> bool:
        """Whether every row shows all of these variables."""
        shown = self.overview.values
        return all(name in shown and shown[name] == self.overview.rows for name in names)

    @cached_property
    def units(self) -> dict[Hashable, tuple[float, float]]:
        """Mean and standard deviation of the values seen of each real variable; 0 and 1 where there is no spread."""
        real = self.domain.numbers
        if not real:
            return {}
        totals = self.ask(_Totals(real)).parts
        means = [total / weight if weight > 0 else 0.0 for weight, total in zip(totals[::2], totals[1::2], strict=True)]
        squares = self.ask(_Squares(real), means).parts
        units = {}
        for name, mean, weight, total in zip(real, means, totals[::2], squares, strict=True):
            spread = math.sqrt(total / weight) if weight > 0 else 0.0
            units[name] = mean, spread if spread > 1e-12 * abs(mean) else 1.0
        return units

    @property
    def squares(self) -> dict[Hashable, float]:
        """Sums of the squares of each real variable, weighted."""
        real = self.domain.numbers
        with np.errstate(over="ignore"):
            return dict(zip(real, self.ask(_Squares(real), [0.0] * len(real)).parts, strict=True)) if real else {}

    def identity(self) -> Iterable[Any]:
        """What tells these rows from others: themselves, or the sum of their marks where they are elsewhere."""
        rows = self.local
        if rows is None:
            return self.domain, self.ask(_Marks(self.names)), self.weight
        return rows.domain, [[repr(name), values] for name, values in rows.columns.items()], rows.weights

    @property
    def notes(self) -> tuple[str, ...]:
        """Rounds, shards and where the rows have stayed, for the report; nothing for one shard in this process."""
        if self.held is None or self.local is not None:
            return ()
        shards = "1 shard" if self.held.shards == 1 else f"{self.held.shards} shards"
        return (f"{self.held.rounds} rounds over {shards}; the rows stayed {self.held.location}",)

    def close(self) -> None:
        """Let the rows go."""
        if self.held is not None:
            self.held.close()


@dataclass(frozen=True, eq=False)
class HeldData(SummaryData):
    """Rows that stay where they are; of their statistics only rows and weight are known before they are asked."""

    held: HeldRows | None = None

    @classmethod
    def of(cls, held: HeldRows, settled: Settled, passes: int, notes: tuple[str, ...]) -> HeldData:
        """The data of rows that are held."""
        return cls(_without_rows(settled.domain, settled.rows, settled.weight), passes, notes, held)

    @property
    def lasting(self) -> bool:
        """Nothing is kept of rows that were elsewhere."""
        return False

    @property
    def rounds(self) -> tuple[str, ...]:
        """Those of the rows."""
        return () if self.held is None else self.held.notes

    def close(self) -> None:
        """Let the rows go."""
        if self.held is not None:
            self.held.close()

    def at_rest(self) -> HeldData:
        """The same without the rows, which are let go."""
        return replace(self, held=copy(self.held))


@dataclass(frozen=True, eq=False)
class ScoredData(SummaryData):
    """Rows with missing values that were compared with a fitted value where they are; `score` is their sum."""

    score: float = 0.0

    def log_likelihood(self, fitted: Any) -> float:
        """That of the value with which they were compared."""
        return self.score


@dataclass(frozen=True)
class RowScores:
    """The task that adds up log-probabilities of rows: a function of rows and of the parameters of a fitted value."""

    work: KeepRows
    question: Question
    parameters: Any

    def __call__(self, batch: Batch) -> Answers:
        """Log-likelihood, rows and weight of a batch."""
        blocks = self.work.prepare(batch)
        score = self.work.evaluate(blocks, (self.question, self.parameters))
        return Answers((score, batch.rows, sum(float(rows.weights.sum()) for rows in blocks)))


def score_rows(source: Source, domain: Domain, question: Question, parameters: Any) -> ScoredData:
    """The log-likelihood of the rows of a source by one pass; domain: the columns to read, whose states are known."""
    score, rows, weight = source.reduce(RowScores(KeepRows(domain.names, domain), question, parameters), domain).parts
    return ScoredData(_without_rows(domain, rows, weight), max(source.passes, 1), (), score)


def _without_rows(domain: Domain, rows: int, weight: float) -> Summary:
    """What is known of rows that are elsewhere."""
    answers: dict[Statistic, Any] = {Patterns(domain.names): PatternTable.empty(domain.names, domain)}
    return Summary(domain, answers, rows, weight)


def rows_are_kept(summary: Summary) -> bool:
    """Whether a summary holds what was learned from, and not only how many rows there were."""
    if not has_missing(summary) or not summary.weight > 0:
        return True
    return bool(len(summary[next(iter(summary.answers))].weights))


def refuse_unkept(summary: Summary) -> None:
    """An error where the rows of a summary have stayed where they were."""
    if not rows_are_kept(summary):
        raise OptionError(
            f"The {summary.rows:,} rows that were learned have missing values, hidden variables or GLM nodes and "
            "stayed where they were: nothing is kept of them that rows could join or leave, or that could be measured "
            "anew. Fit all rows at once."
        )


def hold_rows(
    source: Source,
    settled: Settled,
    domain: Domain,
    tables: Iterable[tuple[Hashable, ...]],
    *,
    memory_limit: int | str | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> HeldRows | Summary:
    """The rows of a source, each shard where it is; or their distinct rows, where these are few.

    domain: the columns that were settled, and hidden variables; tables: the variables of each part of the model.
    """
    names = tuple(n for n in settled.domain.names if settled.missing.get(n, 0) < settled.rows)
    work = KeepRows(names, domain, tuple(tables))
    held = source.hold(work, settled, memory_limit=memory_limit, threads=threads, progress=progress)
    rows = HeldRows(names, domain, held)
    if source.residence == "sites":
        return rows
    most = FEW_NUMBERS // max(len(names), 1)
    if source.residence == "elsewhere":
        most = min(most, settled.rows // EQUAL_ROWS)
    if settled.rows > most and settled.domain.select(names).numbers:
        return rows  # Numbers are seldom equal: there is nothing to bring together.
    lowest: LowestMarks = rows.ask(_Lowest(names))
    if lowest.distinct > MARGIN * most:
        return rows  # Distinct rows of all shards that are then left where they are would take memory.
    few: FewRows = rows.ask(_few_rows, most)
    if few.table is None:
        return rows
    rows.close()
    everything = _with_absent(few.table, names, settled.domain)
    return Summary(settled.domain, {Patterns(settled.domain.names): everything}, settled.rows, settled.weight)


def _with_absent(table: PatternTable, names: Sequence[Hashable], domain: Domain) -> PatternTable:
    """The distinct rows of some columns among all of a domain, whose other columns have no values."""
    if tuple(names) == domain.names:
        return table
    nothing: Any = np.nan if domain.numbers else -1
    rows = np.full((len(table.weights), len(domain)), nothing, np.float64 if domain.numbers else np.int32)
    rows[:, [domain.names.index(name) for name in names]] = table.rows
    return PatternTable(rows, table.weights)


# --------------------------------------------------------------------------------------------------------------------
# Questions
# --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Overview:
    """How many rows there are, their weight, and by column how many show a value."""

    rows: int
    weight: float
    values: dict[Hashable, int] = field(default_factory=dict)

    def __add__(self, other: Overview) -> Overview:
        """Of both sets of rows."""
        values = {
            name: self.values.get(name, 0) + other.values.get(name, 0) for name in {**self.values, **other.values}
        }
        return Overview(self.rows + other.rows, self.weight + other.weight, values)


def _overview(rows: ObservedRows, _: None) -> Overview:
    values = {name: int(np.count_nonzero(~missing(column))) for name, column in rows.columns.items()}
    return Overview(len(rows.weights), float(rows.weights.sum()), values)


def missing(column: NDArray[Any]) -> NDArray[np.bool_]:
    """Which rows (n,) of a column have no value."""
    return np.asarray(column < 0 if column.dtype.kind == "i" else np.isnan(column))


@dataclass(frozen=True)
class _Totals:
    """Weight and sum of the values seen of each real variable."""

    names: tuple[Hashable, ...]

    def __call__(self, rows: ObservedRows, _: None) -> Answers:
        parts: list[float] = []
        for name in self.names:
            weights, values = _seen(rows, name)
            parts += [float(weights.sum()), float(weights @ values)]
        return Answers(tuple(parts))


@dataclass(frozen=True)
class _Squares:
    """Sums of the squares about some means."""

    names: tuple[Hashable, ...]

    def __call__(self, rows: ObservedRows, means: Sequence[float]) -> Answers:
        pairs = [(*_seen(rows, name), mean) for name, mean in zip(self.names, means, strict=True)]
        return Answers(tuple(float(weights @ (values - mean) ** 2) for weights, values, mean in pairs))


def _seen(rows: ObservedRows, name: Hashable) -> tuple[Floats, Floats]:
    """Weights and values of the rows that show a real variable."""
    values = rows.columns.get(name)
    if values is None:
        return np.empty(0), np.empty(0)
    seen = ~np.isnan(values)
    return rows.weights[seen], values[seen]


@dataclass(frozen=True, eq=False)
class LowestMarks:
    """The lowest marks of distinct rows, of which the last says how many rows there are (Bar-Yossef et al. 2002)."""

    marks: NDArray[np.uint64]

    def __add__(self, other: LowestMarks) -> LowestMarks:
        """Of both sets of rows."""
        return LowestMarks(np.unique(np.concatenate([self.marks, other.marks]))[:LOWEST])

    @property
    def distinct(self) -> float:
        """About how many distinct rows there are: with a standard error of 3 %, or exactly where they are few."""
        if len(self.marks) < LOWEST:
            return len(self.marks)
        return (LOWEST - 1) * 2.0**64 / (float(self.marks[-1]) + 1.0)


@dataclass(frozen=True)
class _Lowest:
    """The lowest marks of the rows of a shard."""

    names: tuple[Hashable, ...]

    def __call__(self, rows: ObservedRows, _: None) -> LowestMarks:
        return LowestMarks(np.unique(row_marks(rows, self.names, 0))[:LOWEST])


@dataclass(frozen=True)
class FewRows:
    """Distinct rows, up to `most`; None where there are more."""

    table: PatternTable | None
    most: int

    def __add__(self, other: FewRows) -> FewRows:
        """Of both sets of rows."""
        if self.table is None or other.table is None:
            return FewRows(None, self.most)
        both = self.table + other.table
        return FewRows(both if len(both.weights) <= self.most else None, self.most)


def _few_rows(rows: ObservedRows, most: int) -> FewRows:
    if len(rows.weights) > most:
        return FewRows(None, most)
    numbers = any(column.dtype.kind == "f" for column in rows.columns.values())
    table = np.empty((len(rows.weights), len(rows.columns)), np.float64 if numbers else np.int32)
    for number, column in enumerate(rows.columns.values()):
        gone = missing(column) & (column.dtype.kind == "i") & numbers
        table[:, number] = np.where(gone, np.nan, column)
    return FewRows(PatternTable.of(table, rows.weights), most)


@dataclass(frozen=True)
class _Marks:
    """The sum of the marks of all rows with their weights: equal for equal rows in any order and in any shards."""

    names: tuple[Hashable, ...]

    def __call__(self, rows: ObservedRows, _: None) -> NDArray[np.uint64]:
        # The order of rows must not matter, and equal rows may be apart: a weight multiplies the mark of its row.
        marks = row_marks(rows, self.names, 0)
        parts = np.modf(rows.weights)
        return np.array([(marks * part.astype(np.uint64)).sum() for part in (parts[1], parts[0] * 2.0**32)])


def row_marks(rows: ObservedRows, names: Sequence[Hashable], seed: int) -> NDArray[np.uint64]:
    """A number (n,) for each row that depends on its values and a seed alone (Steele, Lea and Flood's SplitMix64).

    Random numbers that follow from the values do not depend on the order of the rows, nor on where they are.
    """
    marks = np.full(len(rows.weights), seed, np.uint64)
    for name in names:
        # All missing values are alike, and so are 0 and -0.
        values = np.where(missing(rows.columns[name]), np.nan, rows.columns[name].astype(np.float64)) + 0.0
        marks = mixed_bits((marks ^ values.view(np.uint64)) + np.uint64(0x9E3779B97F4A7C15))
    return marks


def mixed_bits(marks: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Numbers whose every bit depends on all bits of others."""
    marks = (marks ^ (marks >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    marks = (marks ^ (marks >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return marks ^ (marks >> np.uint64(31))


def uniforms(rows: ObservedRows, names: Sequence[Hashable], seed: int) -> Floats:
    """A random number between 0 and 1 (n,) for each row, by its values and a seed."""
    return np.asarray(((row_marks(rows, names, seed) >> np.uint64(11)) + 0.5) * 2.0**-53)
