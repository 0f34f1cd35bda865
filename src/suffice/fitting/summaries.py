"""Models that learn from a summary: one pass, statistics that add up and can be taken out again.

A `SummaryTask` says which columns it reads and which statistics it asks for; reading them, joining what was learned and
leaving it again is written here once. The face of such a model is `estimator.SummaryEstimator`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from suffice.domain import Domain, Variable
from suffice.errors import KindWarning, LeftOutWarning, OptionError, Remark, listing
from suffice.fitting.contract import Fitted, Inputs, Problem, Purpose

# A network that is read from a file and asked needs none of these, and starts in half the time without them.
if TYPE_CHECKING:
    from suffice.sources.base import Source
    from suffice.sources.kinds import DecidedKinds, Declarations
    from suffice.sources.sequences import SequenceForm
    from suffice.statistics import Statistic, Summary

#: What is said about columns that are read as states, though their type is float.
_FEW_WHOLE = (
    "{} holds floats of which at most {} are different, all of them whole numbers: read as states. Declare what it is: "
    "{}."
)
#: What it says of columns of floats that would have been states as integers.
_WIDENED = (
    "{} holds floats, all of them whole numbers, with missing values: read as numbers. Integers of which at most "
    "{} are different would be states, and a missing value makes floats of them. Declare what it is: {}."
)
#: What a report says about a column that nobody reads, and that may say how often each row occurred.
_UNREAD_COUNTS = (
    "the column {0!r} was not read: every row counted once. If it says how often a row occurred, give "
    "sample_weight={0!r}"
)
#: Names, in small letters, that such columns have in tables of counts.
_NAMES_OF_COUNTS = frozenset({"freq", "frequency", "count", "counts", "n", "weight", "weights"})
#: Those that no measured column has: weights may be of bodies, and n of anything.
_SURELY_COUNTS = frozenset({"freq", "frequency", "count", "counts"})


@dataclass(frozen=True)
class Declaring:
    """How a user declares what a column is: as states, and as numbers where the model takes them."""

    states: str = "states={{{0!r}: 'discrete'}} for states"
    numbers: str = "states={{{0!r}: 'real'}} for numbers"

    def of(self, column: Hashable) -> Declarations:
        """Both ways, for one column."""
        from suffice.sources.kinds import Declarations

        return Declarations(self.states.format(column), self.numbers.format(column))


@dataclass(frozen=True, eq=False)
class SummaryData:
    """Rows that were read: their statistics, the passes over them, and what the reading has to say."""

    statistics: Summary
    passes: int = 0
    notes: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self.statistics.rows

    @property
    def weight(self) -> float:
        """The sum of their weights."""
        return self.statistics.weight

    @property
    def lasting(self) -> bool:
        """Whether the fit can be measured anew from what is kept of them."""
        return True

    @property
    def rounds(self) -> tuple[str, ...]:
        """What a report says of the rounds in which rows were asked that stay where they are."""
        return ()

    def log_likelihood(self, fitted: SummaryFitted) -> float:
        """That of a fitted value: a sum over the rows."""
        return fitted.log_likelihood(self.statistics)


class SummaryFitted(Fitted, Protocol):
    """A fitted value that scores rows by their statistics alone."""

    def log_likelihood(self, summary: Summary) -> float:
        """Sum over the rows of a summary, natural logarithm."""


F = TypeVar("F", bound=SummaryFitted)


@dataclass(frozen=True, eq=False)
class SummaryTask(ABC, Generic[F]):
    """What a model of sums declares, by its options."""

    options: Mapping[str, Any]

    #: Whether rows are the steps of sequences, of which `lengths`, `group` and `order` speak.
    of_sequences: ClassVar[bool] = False
    #: How a user declares what a column is.
    declaring: ClassVar[Declaring] = Declaring()

    # -- what a model says -------------------------------------------------------------------------------------------

    @abstractmethod
    def required(
        self, columns: Sequence[Hashable], known: F | None, purpose: Purpose
    ) -> Mapping[Hashable, Variable | None]:
        """The variables to read, by column; None leaves the kind to the column."""

    @abstractmethod
    def asked(self, domain: Domain, known: F | None, purpose: Purpose) -> tuple[Statistic, ...]:
        """The statistics that the fit needs, once the kinds of the columns are known."""

    @abstractmethod
    def problem(self, data: SummaryData, start: F | None) -> Problem[F]:
        """The problem of these statistics."""

    def check(self, summary: Summary, known: F | None, purpose: Purpose) -> Summary:
        """A summary of the model's columns, under the names that were learned; another one is an error."""
        return summary

    def marks(self, data: SummaryData) -> Mapping[str, tuple[float, float]]:
        """What tells the rows from others: see `suffice.fitting.row_marks`."""
        from suffice.fitting.row_marks import marks_of_summary

        return marks_of_summary(data.statistics)

    def columns(self, data: SummaryData) -> tuple[Hashable, ...]:
        """The columns whose likelihood a fit to these data has."""
        return tuple(data.statistics.domain.names)

    def condensed(self, data: SummaryData) -> SummaryData:
        """What a fit learns from, of data that were read or joined."""
        return data

    def kept(self, data: SummaryData) -> SummaryData:
        """What a fit keeps of them, so that others may join or leave."""
        return data

    def form_of(self, form: Mapping[str, Any], columns: object) -> Any:
        """How rows are sequences, as a user told `summarize`, for models of which `of_sequences` is true."""
        return sequence_form(form, columns)

    # -- what follows ------------------------------------------------------------------------------------------------

    def read(self, given: Inputs, known: F | None, purpose: Purpose) -> SummaryData:
        """The statistics of rows, or those of a `Summary`."""
        from suffice.statistics import Summary

        if isinstance(given.data, Summary):
            if given["sample_weight"] is not None or given["columns"] is not None:
                raise OptionError("A Summary already holds weights and columns; give neither beside it.")
            data = SummaryData(given.data)
        else:
            from suffice.sources import open_source

            source = open_source(given.data, columns=given["columns"], sample_weight=given["sample_weight"])
            data = self.read_source(source, known, purpose)
        return replace(data, statistics=self.check(data.statistics, known, purpose))

    def read_source(self, source: Source, known: F | None, purpose: Purpose) -> SummaryData:
        """One pass over an open source."""
        required = self.required(source.columns, known, purpose)
        progress = bool(self.options.get("progress", False))
        asked = lambda domain: self.asked(domain, known, purpose)  # noqa: E731
        return answered(source, required, asked, declaring=self.declaring, progress=progress)

    def joined(self, earlier: SummaryData, later: SummaryData, keep: float) -> SummaryData:
        """Rows that were learned, weighted by `keep`, and rows that join them."""
        return replace(later, statistics=earlier.statistics * keep + later.statistics)

    def without(self, earlier: SummaryData, leaving: SummaryData) -> SummaryData:
        """Rows that were learned, without those that leave."""
        return replace(leaving, statistics=earlier.statistics - leaving.statistics)


def sequence_form(form: Mapping[str, Any], columns: object) -> SequenceForm:
    """How sequences of steps are laid out in data: by their lengths, or by columns that tell them apart."""
    from suffice.sources.sequences import SequenceForm

    timed = [name for name in ("time", "step") if name in form]
    if timed:
        raise OptionError(
            f"{timed[0]}= is for networks through time, which have missing slices; steps have an order alone. Name the "
            "column by order=."
        )
    return SequenceForm(**form, columns=columns)  # type: ignore[arg-type]


# -- statistics by themselves ------------------------------------------------------------------------------------------


def resolved_domain(
    source: Source, required: Mapping[Hashable, Variable | None], declaring: Declaring = Declaring()
) -> Domain:
    """What the columns of a source hold: as required; where nothing is said by the rule of `suffice.sources.kinds`."""
    return _resolved(source, required, declaring).domain


def _resolved(source: Source, required: Mapping[Hashable, Variable | None], declaring: Declaring) -> DecidedKinds:
    """The domain, and the columns of floats whose kind a user is told."""
    domain: Domain = source.infer(list(required), {name: v for name, v in required.items() if v is not None})
    return source.decide_kinds(domain, {n: declaring.of(n) for n, v in required.items() if v is None})


def answered(
    source: Source,
    required: Mapping[Hashable, Variable | None],
    asked: Callable[[Domain], tuple[Statistic, ...]],
    *,
    declaring: Declaring = Declaring(),
    progress: bool = False,
) -> SummaryData:
    """The statistics asked for, from one pass over an open source."""
    from suffice.sources import summarize_source

    domain, notes = read_columns(source, required, declaring)
    with rows_bar(progress) as advance:
        summary = summarize_source(source, domain, asked(domain), progress=advance)
    return SummaryData(summary, max(source.passes, 1), notes)


def read_columns(
    source: Source, required: Mapping[Hashable, Variable | None], declaring: Declaring = Declaring()
) -> tuple[Domain, tuple[str, ...]]:
    """What the columns of an open source hold, and what there is to say about them."""
    from suffice.sources.kinds import MOST_INTEGERS, MOST_WHOLE_FLOATS

    domain, few, widened = _resolved(source, required, declaring)
    sentences = ((few, _FEW_WHOLE, MOST_WHOLE_FLOATS), (widened, _WIDENED, MOST_INTEGERS))
    notes: tuple[str, ...] = tuple(
        Remark(sentence.format(listing(names), most, ", or ".join(declaring.of(names[0]))), KindWarning)
        for names, sentence, most in sentences
        if names
    )
    kinds = {"discrete": "states"}
    notes += tuple(
        f"the column {v.name!r} holds {held}: all are read as {kinds.get(v.kind, 'numbers')}"
        for v in domain.variables
        if (held := source.promoted(v.name))
    )
    if not source.weighted and len(source.columns) > len(required):
        unread = [name for name in source.columns if name not in required and _may_count(name)]
        lines = ((_UNREAD_COUNTS.format(name), str(name).lower() in _SURELY_COUNTS) for name in unread)
        notes += tuple(Remark(text, LeftOutWarning) if sure else text for text, sure in lines)
    return domain, notes


def _may_count(column: Hashable) -> bool:
    """Whether a column is named as those are that hold how often each row occurred."""
    return isinstance(column, str) and column.lower() in _NAMES_OF_COUNTS


@contextmanager
def rows_bar(wanted: bool) -> Iterator[Callable[[int, int | None], None] | None]:
    """A bar over the rows of one pass."""
    if not wanted:
        yield None
        return
    from tqdm.auto import tqdm

    with tqdm(unit=" rows", unit_scale=True, leave=False) as bar:

        def advance(done: int, total: int | None) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield advance
