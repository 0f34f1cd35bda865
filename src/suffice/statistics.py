"""What may be asked of data, and the answers, which add up.

A question is a `Statistic`: `Counts`, `Moments`, `MomentsBy`, `Sums` or `Patterns` of some variables. The answers to
all questions of a model travel together as a `Summary`. Summaries add (batches, threads, sites), subtract (unlearning),
scale (forgetting), compare and save; a model learns from a summary alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from suffice.answers import Answer, CountTable, MomentSums, PatternTable, TermSums
from suffice.array_types import Floats
from suffice.domain import Domain
from suffice.errors import FileFormatError, MergeError, OptionError, listing
from suffice.grouped_answers import MomentsByTable

if TYPE_CHECKING:
    from suffice.storage.files import FilePath


@dataclass(frozen=True)
class Statistic:
    """A question about some variables."""

    variables: tuple[Hashable, ...]

    answer_type: ClassVar[type[Answer]]

    def __post_init__(self) -> None:
        """Accept any sequence of names."""
        given: Any = self.variables
        if type(given) is not tuple and isinstance(given, str):
            raise OptionError(f"{type(self).__name__}({self.variables!r}) takes several names: give a list of them.")
        if type(given) is not tuple:
            object.__setattr__(self, "variables", tuple(given))
        try:
            distinct = len(set(self.variables))
        except TypeError:
            raise OptionError(f"{type(self).__name__}{self.variables!r} has a name that cannot be a column.") from None
        if distinct != len(self.variables):
            raise OptionError(f"{type(self).__name__}{self.variables!r} names a variable twice.")

    @property
    def columns(self) -> tuple[Hashable, ...]:
        """Every column that the question reads."""
        return self.variables

    def describe(self) -> dict[str, Any]:
        """Plain data for a file."""
        return {"question": type(self).__name__, "variables": list(self.variables)}

    @classmethod
    def from_description(cls, plain: Mapping[str, Any]) -> Statistic:
        """Rebuild from plain data."""
        return cls(tuple(plain["variables"]))


@dataclass(frozen=True)
class Counts(Statistic):
    """Weight of every joint state of discrete variables; axes in the order of the variables."""

    answer_type = CountTable


@dataclass(frozen=True)
class Moments(Statistic):
    """Weight, sums and cross-products of real variables."""

    answer_type = MomentSums


@dataclass(frozen=True)
class MomentsBy(Statistic):
    """Weight, sums and cross-products of real variables for each joint state of the discrete variables `by`."""

    by: tuple[Hashable, ...] = ()

    answer_type = MomentsByTable

    def __post_init__(self) -> None:
        """Check that the names differ."""
        super().__post_init__()
        by: Any = self.by
        if isinstance(by, str):
            raise OptionError(f"MomentsBy(..., by={by!r}) takes several names: give a list of them.")
        object.__setattr__(self, "by", tuple(by))
        if len(set(self.columns)) != len(self.columns):
            raise OptionError(f"MomentsBy{self.columns!r} names a variable twice.")

    @property
    def columns(self) -> tuple[Hashable, ...]:
        """The real variables, then the discrete ones."""
        return (*self.variables, *self.by)

    def describe(self) -> dict[str, Any]:
        """With the discrete variables."""
        return {**super().describe(), "by": list(self.by)}

    @classmethod
    def from_description(cls, plain: Mapping[str, Any]) -> MomentsBy:
        """Rebuild from plain data."""
        return cls(tuple(plain["variables"]), tuple(plain["by"]))


@dataclass(frozen=True)
class Patterns(Statistic):
    """Distinct rows with their weights, missing values included."""

    answer_type = PatternTable


@dataclass(frozen=True)
class CompleteRows(Patterns):
    """Distinct rows with their weights, where every value is needed: a missing one is an error, as in counts."""


@dataclass(frozen=True)
class Sums(Statistic):
    """Weighted sums of functions of single columns, one entry for each term ``(variable, function)``.

    The functions are named, so that a summary can be saved; `FUNCTIONS` lists them.
    """

    terms: tuple[tuple[Hashable, str], ...] = ()

    answer_type = TermSums

    @classmethod
    def of(cls, *terms: tuple[Hashable, str]) -> Sums:
        """Ask for these terms; the variables follow from them."""
        return cls(tuple(dict.fromkeys(name for name, _ in terms)), terms)

    def __post_init__(self) -> None:
        """Check the function names."""
        super().__post_init__()
        object.__setattr__(self, "terms", tuple((name, function) for name, function in self.terms))
        for name, function in self.terms:
            if function not in FUNCTIONS or name not in self.variables:
                raise OptionError(f"Sums has the term {(name, function)!r}; known functions: {listing(FUNCTIONS)}.")

    def describe(self) -> dict[str, Any]:
        """With the terms."""
        return {**super().describe(), "terms": [list(term) for term in self.terms]}

    @classmethod
    def from_description(cls, plain: Mapping[str, Any]) -> Sums:
        """Rebuild from plain data."""
        return cls(tuple(plain["variables"]), tuple(map(tuple, plain["terms"])))


#: Functions of one column that `Sums` may add up, with the condition on the values and its name.
FUNCTIONS: dict[str, tuple[Callable[[Floats], Floats], Callable[[Floats], Any], str]] = {
    "x": (lambda x: x, np.isfinite, "finite"),
    "nonnegative": (lambda x: x, lambda x: x >= 0, "zero or more"),
    "log": (np.log, lambda x: x > 0, "positive"),
    "log1m": (lambda x: np.log1p(-x), lambda x: x < 1, "below one"),
    "reciprocal": (np.reciprocal, lambda x: x > 0, "positive"),
    "cos": (np.cos, np.isfinite, "finite"),
    "sin": (np.sin, np.isfinite, "finite"),
}


def register_function(
    name: str,
    function: Callable[[Floats], Floats],
    allowed: Callable[[Floats], Any] = np.isfinite,
    condition: str = "finite",
) -> None:
    """Let `Sums` add up a function of one column under a name.

    Summaries hold the name alone: a process that reads them, or that answers them, must have registered the function.

    Args:
        name: what a term ``(variable, name)`` calls it; a name that is taken by another function is an error.
        function: of an array (n,), one number for each value.
        allowed: which values it takes, one truth value for each.
        condition: that condition in words, as in "expected positive numbers".
    """
    known = FUNCTIONS.get(name)
    if known is not None and known[0] is not function:
        raise OptionError(f"The name {name!r} is taken by another function; known functions: {listing(FUNCTIONS)}.")
    FUNCTIONS[name] = (function, allowed, condition)


QUESTIONS: Mapping[str, type[Statistic]] = {
    kind.__name__: kind for kind in (Counts, Moments, MomentsBy, Patterns, CompleteRows, Sums)
}


class FamilyCounts(Mapping[Statistic, CountTable]):
    """The answers to `Counts` of some families, which lie one after the other in `cells`.

    A table is made when it is asked for: models that learn from all cells at once need none. `families` lists the
    variables of each, `shapes` the numbers of their states.
    """

    def __init__(
        self, families: tuple[tuple[Hashable, ...], ...], shapes: tuple[tuple[int, ...], ...], cells: Floats
    ) -> None:
        """Keep the cells."""
        self.families, self.shapes, self.cells = families, shapes, cells

    @cached_property
    def _tables(self) -> dict[Statistic, CountTable]:
        ends = accumulate(map(math.prod, self.shapes), initial=0)
        parts = zip(self.families, self.shapes, pairwise(ends), strict=True)
        return {
            Counts(names): CountTable(shape, self.cells[slice(*span)].reshape(shape)) for names, shape, span in parts
        }

    def __getitem__(self, question: Statistic) -> CountTable:
        """The table of a family."""
        return self._tables[question]

    def __iter__(self) -> Iterator[Statistic]:
        """The questions in order."""
        return iter(self._tables)

    def __len__(self) -> int:
        """Number of families."""
        return len(self.families)


@dataclass(frozen=True, eq=False)
class Summary:
    """The answers to a set of questions about the same rows.

    `rows` is the number of rows read; `weight` their total weight. ``a + b`` is the summary of both sets of rows,
    ``a - b`` takes rows out again (an error where the answers show that they were never in), ``factor * a`` weights
    rows down.
    """

    domain: Domain
    answers: Mapping[Statistic, Answer]
    rows: int
    weight: float

    def __getitem__(self, statistic: Statistic) -> Any:
        """The answer to a question."""
        try:
            return self.answers[statistic]
        except KeyError:
            raise MergeError(
                f"This summary does not answer {statistic!r}; it answers {listing(self.answers)}. "
                "Summarise the data for this model with suffice.summarize(model, data)."
            ) from None

    def __add__(self, other: Summary) -> Summary:
        """The summary of both sets of rows."""
        mine, theirs, domain = self._together(other)
        answers = {key: mine[key] + theirs[key] for key in mine}
        return Summary(domain, answers, self.rows + other.rows, self.weight + other.weight)

    def __radd__(self, other: object) -> Summary:
        """Let ``sum(summaries)`` start from 0."""
        return self if other == 0 else NotImplemented

    def __sub__(self, other: Summary) -> Summary:
        """Take the rows of the other summary out again."""
        mine, theirs, domain = self._together(other)
        if other.rows > self.rows:
            raise MergeError(f"Cannot take {other.rows} rows out of {self.rows}: those rows were never all in.")
        answers = {key: mine[key] - theirs[key] for key in mine}
        rows = self.rows - other.rows
        weight = self.weight - other.weight
        return Summary(domain, answers, rows, 0.0 if rows == 0 and abs(weight) < 1e-9 * self.weight else weight)

    def __mul__(self, factor: float) -> Summary:
        """Every weight times a factor."""
        if not (isinstance(factor, int | float | np.integer | np.floating) and np.isfinite(factor) and factor >= 0):
            raise OptionError(f"A summary is scaled by a finite factor of at least 0, not {factor!r}.")
        if factor == 1:
            return self
        answers = {key: answer * float(factor) for key, answer in self.answers.items()}
        return Summary(self.domain, answers, self.rows, self.weight * factor)

    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        """Same questions, same answers to the bit."""
        if not isinstance(other, Summary):
            return NotImplemented
        return (
            self.domain == other.domain
            and self.rows == other.rows
            and self.weight == other.weight
            and dict(self.answers) == dict(other.answers)
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def row_columns(self) -> tuple[Hashable, ...]:
        """The columns whose values are kept together, row by row, in the order of the first question that keeps them.

        Missing values, hidden variables and GLM nodes need the distinct rows, with their weights. A single column of
        states or of counts is none: its distinct values and their weights are a table of frequencies.
        """
        kept = (
            key.columns
            for key in self.answers
            if isinstance(key, Patterns) and (len(key.columns) > 1 or self.domain[key.columns[0]].kind == "real")
        )
        return tuple(dict.fromkeys(name for names in kept for name in names))

    @property
    def holds_rows(self) -> bool:
        """Whether the rows can be read from the summary, all but their order: it is then as private as they are."""
        return bool(self.row_columns)

    def __repr__(self) -> str:
        """Size, questions, and whether rows can be read from it, in one line."""
        asked = ", ".join(f"{type(key).__name__}{key.columns!r}" for key in list(self.answers)[:4])
        more = "" if len(self.answers) <= 4 else f", ... ({len(self.answers)} in all)"
        rows = ", holds_rows=True" if self.holds_rows else ""
        return f"Summary(rows={self.rows}, weight={self.weight:g}, {asked}{more}{rows})"

    def align(self, domain: Domain) -> Summary:
        """The same answers laid out for another domain that covers every state of this one."""
        if domain == self.domain:
            return self
        answers = {key: answer.aligned(key.columns, self.domain, domain) for key, answer in self.answers.items()}
        return Summary(domain, answers, self.rows, self.weight)

    def _together(self, other: Summary) -> tuple[Mapping[Statistic, Any], Mapping[Statistic, Any], Domain]:
        if not isinstance(other, Summary):
            raise MergeError(f"A summary can only be merged with a summary, not with {type(other).__name__}.")
        if set(self.answers) != set(other.answers):
            odd = set(self.answers) ^ set(other.answers)
            rows = [[type(key) for key in side.answers] == [Patterns] for side in (self, other)]
            if rows[0] != rows[1]:
                names = next(key.variables for key in odd if isinstance(key, Patterns))
                raise MergeError(
                    "One summary holds distinct rows, as missing values and hidden variables need them; the other "
                    "holds the counts or sums of complete rows, from which the rows cannot be had again. Fit all rows "
                    f"together, or summarise both parts by summarize(Patterns({names!r}), data) and fit the sum."
                )
            raise MergeError(f"The summaries answer different questions; only one of them answers {listing(odd, 3)}.")
        domain = self.domain.merge(other.domain)
        return self.align(domain).answers, other.align(domain).answers, domain

    def write(self, path: FilePath) -> None:
        """Save to a ``.json`` or ``.suffice`` file, exact to the bit; `suffice.read` loads it."""
        from suffice import storage

        storage.save(path, self)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a file."""
        answers = [{**key.describe(), "answer": answer.to_dict()} for key, answer in self.answers.items()]
        size = {"rows": self.rows, "weight": self.weight}
        return {"holds_rows": self.holds_rows, "domain": self.domain, "answers": answers, **size}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Summary:
        """Rebuild from plain data, checking every shape and value."""
        domain, rows, weight = plain["domain"], plain["rows"], plain["weight"]
        if not isinstance(domain, Domain) or type(rows) is not int or not isinstance(weight, int | float):
            raise FileFormatError("A summary needs a domain, a whole number of rows and a weight.")
        if rows < 0 or not (np.isfinite(weight) and weight >= 0):
            raise FileFormatError(f"A summary cannot have {rows} rows of weight {weight}.")
        answers: dict[Statistic, Answer] = {}
        for entry in plain["answers"]:
            key = QUESTIONS[entry["question"]].from_description(entry)
            size = len(key.terms) if isinstance(key, Sums) else None
            domain.select(key.columns)  # Every name must be known.
            answers[key] = key.answer_type.from_dict(entry["answer"], key.columns, domain, size)
        if len(answers) != len(plain["answers"]):
            raise FileFormatError("A summary answers a question twice.")
        summary = cls(domain, answers, rows, float(weight))
        # Files of older versions do not say.
        if plain.get("holds_rows", summary.holds_rows) is not summary.holds_rows:
            raise FileFormatError(f"A summary says holds_rows: {plain['holds_rows']!r}, and its answers say otherwise.")
        return summary


def empty_summary(domain: Domain, statistics: Sequence[Statistic]) -> Summary:
    """The summary of no rows: what the answers to batches are added to."""
    answers = {key: key.answer_type.empty(key.columns, domain, getattr(key, "terms", ())) for key in statistics}
    return Summary(domain, answers, 0, 0.0)
