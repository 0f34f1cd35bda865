"""What a fit keeps to know its rows again, so that no test sets fits to different rows beside one another in silence.

Marks are weighted sums over the rows, by what they are of: the sum of a column, and of the product of two. States enter
such sums by a number that is drawn from their label. Marks do not depend on the order of rows, a weight of two is a row
twice, and those of shards add up. Statistics of a model have them for nothing; a model of rows makes a few of them once
(`Data.marks`), and the receipt keeps these.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from suffice.answers import CountTable, MomentSums, PatternTable, TermSums
from suffice.array_types import Floats
from suffice.domain import Domain
from suffice.errors import DataError, listing
from suffice.grouped_answers import MomentsByTable
from suffice.statistics import Counts, Moments, MomentsBy, Patterns, Summary, Sums

if TYPE_CHECKING:
    from suffice.fitting.estimator import Estimator
    from suffice.fitting.fit import Fit

#: Sums by name, each with the size of what was added up: rounding is a share of that.
Marks = Mapping[str, tuple[float, float]]
#: Sums that differ by a larger share of their size are of different rows.
SAME = 1e-9
#: Functions of a column that are the column itself.
_PLAIN = ("x", "nonnegative")
#: Columns of one statistic up to which products of pairs are compared.
MOST_COLUMNS = 50
#: Sums of extreme numbers may overflow; such a sum tells nothing apart, and `difference` passes over it.
passing_over_overflow = np.errstate(over="ignore", invalid="ignore")


@dataclass(frozen=True, eq=False)
class MarkedRows:
    """Rows that were read again: the sum of their weights, and their marks."""

    weight: float
    made: Marks

    def marks(self) -> Marks:
        """What tells them from others."""
        return self.made


def state_number(label: Hashable) -> float:
    """A number between 1 and 2 for a state, the same wherever it is met."""
    plain = label.item() if isinstance(label, np.generic) else label
    number = isinstance(plain, int | float) and not isinstance(plain, bool) and abs(plain) < 2.0**1023
    text = str(float(plain)) if number else repr(plain)  # type: ignore[arg-type]
    drawn = hashlib.blake2b(text.encode(), digest_size=6).digest()
    return 1.0 + int.from_bytes(drawn, "big") / 2.0**48


def named(*columns: Hashable) -> str:
    """The name of the sum of a column, or of the product of some."""
    return " times ".join(sorted(repr(column) for column in columns))


# -- of statistics -----------------------------------------------------------------------------------------------------


@passing_over_overflow
def marks_of_summary(summary: Summary) -> dict[str, tuple[float, float]]:
    """The marks that the statistics of rows hold."""
    marks: dict[str, tuple[float, float]] = {}
    for question, answer in summary.answers.items():
        for name, mark in _marks_of_answer(question, answer, summary.domain):
            marks.setdefault(name, mark)
    return marks


def _marks_of_answer(question: Any, answer: Any, domain: Domain) -> Iterator[tuple[str, tuple[float, float]]]:
    if isinstance(question, Counts) and isinstance(answer, CountTable):
        cells, weights = answer.items()
        columns = {name: _numbers(domain, name)[cells[:, axis]] for axis, name in enumerate(question.variables)}
        yield from _of_columns(columns, weights)
    elif isinstance(question, Patterns) and isinstance(answer, PatternTable) and len(answer.weights):
        columns = {name: _values(answer.rows[:, axis], domain, name) for axis, name in enumerate(question.variables)}
        yield from _of_columns(columns, answer.weights)
    elif isinstance(question, MomentsBy) and isinstance(answer, MomentsByTable):
        totals, cross = answer.total_pair.sum(axis=0), answer.cross_pair.sum(axis=0)
        yield from _of_moments(question.variables, totals.sum(axis=0), cross.sum(axis=0), float(answer.weight.sum()))
        for axis, name in enumerate(question.by):
            states = _numbers(domain, name)[answer.cells[:, axis]]
            for number, other in enumerate(question.variables):
                # The spread of each cell bounds what was added up.
                sizes = np.sqrt(np.clip(cross[:, number, number] * answer.weight, 0.0, None))
                yield named(name, other), (float(states @ totals[:, number]), float(states @ sizes))
    elif isinstance(question, Sums) and isinstance(answer, TermSums):
        for (name, function), total in zip(question.terms, answer.sums_pair.sum(axis=0).tolist(), strict=True):
            yield named(name) if function in _PLAIN else f"{function} of {named(name)}", (total, abs(total))
    elif isinstance(question, Moments) and isinstance(answer, MomentSums):
        totals, cross = answer.total_pair.sum(axis=0), answer.cross_pair.sum(axis=0)
        yield from _of_moments(question.variables, totals, cross, answer.weight)


def _numbers(domain: Domain, name: Hashable) -> Floats:
    return np.array([state_number(state) for state in domain[name].states])


def _values(column: NDArray[Any], domain: Domain, name: Hashable) -> Floats:
    """A column of codes or numbers as numbers, a missing value as 0."""
    if domain[name].kind != "discrete":
        return np.nan_to_num(np.asarray(column, dtype=np.float64), nan=0.0)
    codes = np.nan_to_num(np.asarray(column, dtype=np.float64), nan=-1.0).astype(np.intp)
    return np.where(codes >= 0, np.append(_numbers(domain, name), 0.0)[codes], 0.0)


def _of_columns(columns: Mapping[Hashable, Floats], weights: Floats) -> Iterator[tuple[str, tuple[float, float]]]:
    """Sums of columns and of products of pairs, over rows with weights."""
    for name, values in columns.items():
        yield named(name), _mark(values, weights)
    if len(columns) <= MOST_COLUMNS:
        for one, other in combinations(columns, 2):
            yield named(one, other), _mark(columns[one] * columns[other], weights)


def _mark(values: Floats, weights: Floats) -> tuple[float, float]:
    return float(weights @ values), float(weights @ np.abs(values))


def _of_moments(
    names: tuple[Hashable, ...], totals: Floats, cross: Floats, weight: float
) -> Iterator[tuple[str, tuple[float, float]]]:
    """Sums and products about the origin, whose sizes follow from the squares (Cauchy and Schwarz)."""
    sizes = np.sqrt(np.clip(np.diagonal(cross), 0.0, None))
    for axis, name in enumerate(names):
        yield named(name), (float(totals[axis]), float(math.sqrt(max(weight, 0.0)) * sizes[axis]))
        yield named(name, name), (float(cross[axis, axis]), float(cross[axis, axis]))
    if len(names) <= MOST_COLUMNS:
        for one, other in combinations(range(len(names)), 2):
            yield named(names[one], names[other]), (float(cross[one, other]), float(sizes[one] * sizes[other]))


# -- of rows -----------------------------------------------------------------------------------------------------------


@passing_over_overflow
def marks_of_steps(columns: Mapping[Hashable, NDArray[Any]], offsets: Any, weights: Floats | None) -> Marks:
    """The marks of sequences, steps end to end: sums of columns, of squares and of products with the step before.

    offsets (n + 1,): where each sequence begins; weights (n,): how often it counts.
    """
    lengths = np.diff(offsets)
    each = np.repeat(np.ones(len(lengths)) if weights is None else weights, lengths)
    inside = np.ones(len(each), dtype=bool)
    inside[np.asarray(offsets[:-1])[lengths > 0]] = False
    marks: dict[str, tuple[float, float]] = {}
    for name, column in columns.items():
        values = _as_numbers(column)
        before = np.concatenate([np.zeros(1), values[:-1]])[: len(values)]
        marks[named(name)] = _mark(values, each)
        marks[named(name, name)] = _mark(values**2, each)
        marks[f"{named(name)} times the step before"] = _mark(values * before, each * inside)
    return marks


def _as_numbers(column: NDArray[Any]) -> Floats:
    """Numbers as they are, a missing one as 0; labels by the number that is drawn from each."""
    if column.dtype.kind in "biuf":
        return np.nan_to_num(column.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    labels = column.ravel().tolist()
    known = {label: 0.0 if label is None or label != label else state_number(label) for label in set(labels)}
    return np.array([known[label] for label in labels])


# -- of fits -----------------------------------------------------------------------------------------------------------


def marks_of(fit: Fit[Any] | None) -> Marks:
    """The marks of the rows of a fit; none where it has no statistics and its rows were never in memory."""
    if fit is None or fit.report is None:
        return {}
    return fit.report.marks if fit.data is None or fit.task is None else dict(_of_statistics(fit.task, fit.data))


def _of_statistics(task: Any, data: Any) -> Marks:
    return task.marks(data) if isinstance(getattr(data, "statistics", None), Summary) else {}


def marks_read(model: Any, data: Any) -> Marks:
    """The marks of rows that a model has read again."""
    if isinstance(getattr(data, "statistics", None), Summary):
        return _of_statistics(model._fit.task or model._task(), data)
    make: Callable[[], Marks] | None = getattr(data, "marks", None)
    return {} if make is None else make()


def difference(first: Marks, second: Marks) -> str:
    """Which sum differs between two sets of rows, in words; empty where none does that both have."""
    for name in sorted(first.keys() & second.keys()):
        (one, size), (other, size_too) = first[name], second[name]
        if abs(one - other) > SAME * max(size, size_too, 1e-300):
            return f"the sum of {name} over the rows is {one:,.6g} and {other:,.6g}"
    return ""


def check_same_rows(models: Mapping[str, Estimator]) -> None:
    """Refuse fits that have learned from different rows; models: by what to call them."""
    (name, first), *others = models.items()
    for other_name, other in others:
        one, two = first.report_.weight, other.report_.weight
        why = f"they have the weights {one:,.6g} and {two:,.6g}" if abs(one - two) > SAME * max(one, two) else ""
        why = why or difference(marks_of(first._fit), marks_of(other._fit))
        if why:
            raise DataError(
                f"{name} and {other_name} have learned from different rows: {why}. Give fits to the same rows, with "
                "the same response, weights and offset."
            )


def check_same_columns(models: Mapping[str, Estimator]) -> None:
    """Refuse fits of different columns, whose likelihoods are of different data; models: by what to call them."""
    known = {name: _columns(model._fit) for name, model in models.items()}
    named_columns = {name: columns for name, columns in known.items() if columns is not None}
    for (name, first), (other_name, other) in pairwise(named_columns.items()):
        # A single column may have been given with a name and without.
        if first != other and max(len(first), len(other)) > 1:
            apart = sorted(first ^ other, key=str)
            raise DataError(
                f"{name} and {other_name} are models of different columns: one alone has {listing(apart)}. The "
                "likelihoods of different data are no ground to choose; fit both to the same columns."
            )


def _columns(fit: Fit[Any] | None) -> frozenset[Hashable] | None:
    """The columns whose likelihood a fit has; None where that is not known."""
    if fit is None or fit.task is None or not isinstance(getattr(fit.data, "statistics", None), Summary):
        return None
    columns: tuple[Hashable, ...] = fit.task.columns(fit.data)
    return frozenset(columns)


def check_rows_again(model: Any, rows: Mapping[str, Any]) -> None:
    """Refuse rows that are not those that a model has learned from; rows: by the names of the arguments of `fit`."""
    data = model._read_again(rows)
    try:
        check_marks(model, data)
    finally:
        close = getattr(data, "close", None)
        if close is not None:
            close()


def check_marks(model: Any, data: Any) -> None:
    """As `check_rows_again`, of rows that were read again."""
    one, two = float(data.weight), float(model.report_.weight)
    why = f"their weight is {one:,.6g}, not {two:,.6g}" if abs(one - two) > SAME * max(one, two) else ""
    why = why or difference(marks_read(model, data), marks_of(model._fit))
    if why:
        raise DataError(
            f"The rows are not those of the fit: {why}. Give the same rows, response, weights and offset as to fit."
        )
