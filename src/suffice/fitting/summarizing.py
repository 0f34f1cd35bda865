"""Statistics by themselves: what a model asks for, or what is named, from one pass over the data."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from suffice.checks import whole_number
from suffice.domain import declare
from suffice.errors import DataError, OptionError, announce, listing, warn
from suffice.fitting.contract import Inputs
from suffice.fitting.estimator import Estimator, ResponseEstimator, StatesEstimator, SummaryEstimator
from suffice.fitting.summaries import SummaryData, answered, sequence_form

if TYPE_CHECKING:
    from suffice.statistics import Statistic, Summary


def summarize(
    questions: Estimator | Statistic | Sequence[Statistic],
    data: object,
    y: Hashable | None = None,
    *,
    sample_weight: object = None,
    columns: object = None,
    states: Any = None,
    lengths: object = None,
    group: Hashable | None = None,
    order: Hashable | None = None,
    time: Hashable | None = None,
    step: Any = None,
    minimum_count: int | None = None,
) -> Summary:
    """The statistics that a model asks for, or those named, from one pass over the data.

    Summaries of several files or sites add up, and ``model.fit(summary)`` learns from them alone.

    Args:
        questions: a model, or one or several of `Counts`, `Moments`, `Sums` and `Patterns`.
        data: any table, file or array that the library reads.
        y: column of the response, for a regression (a `GLM` with a Gaussian response and the identity link).
        sample_weight: one weight a row, or the name of the column that holds it.
        columns: names for the columns of an array, or the columns to read.
        states: declared states by column (or "real" or "count"), where statistics are named; a model has its own. For a
            hidden Markov model the state of every step, as its `fit` takes them.
        lengths: steps of each sequence, for a model of sequences, as its `fit` takes them.
        group: column that tells the sequences of a table apart.
        order: column that orders the steps of each sequence.
        time: column that orders the slices of each series, and makes missing ones of its gaps, for a network through
            time.
        step: how long a slice is, such as "1 day", where `time` holds dates: parts that add up share it.
        minimum_count: fewest rows behind every cell and every sum, whatever their weights; a summary with rarer ones,
            or with rows, is then an error that says how many there are and not which.

    >>> from suffice.statistics import Counts
    >>> summary = summarize(Counts(("x",)), {"x": ["a", "b", "a"]})
    >>> summary[Counts(("x",))].dense()
    array([2., 1.])
    """
    from suffice.sources.releasing import check_summary

    given_form = {"lengths": lengths, "group": group, "order": order, "time": time, "step": step}
    form = {name: value for name, value in given_form.items() if value is not None}
    beside = {} if y is None else {"y": y}
    weighted = {**beside, "sample_weight": sample_weight, "columns": columns}
    summary = _summary(questions, data, weighted, states, form)
    if minimum_count is not None:
        minimum, alone = whole_number(minimum_count, "minimum_count"), summary
        if sample_weight is not None:  # Each row counts once: a weight does not make a rare cell common.
            chain = isinstance(questions, SummaryEstimator) and questions._task().of_sequences
            if chain or isinstance(questions, StatesEstimator):
                raise OptionError("minimum_count= counts sequences that have no weights: leave sample_weight= out.")
            names = _columns_beside(data, columns, sample_weight)
            alone = _summary(questions, data, {**beside, "columns": names}, states, form)
        check_summary(alone, minimum)
    elif summary.holds_rows and isinstance(questions, Estimator):
        warn(
            f"The summary holds the distinct rows of {listing(summary.row_columns)}: missing values, hidden variables "
            "and GLM nodes are learned from them. It is as private as the rows; sf.Rounds fits without them."
        )
    return summary


def _columns_beside(data: object, columns: object, sample_weight: object) -> object:
    """The columns to read of rows that are not weighted: not the one of the weights."""
    from suffice.sources import open_source

    return open_source(data, columns=columns, sample_weight=sample_weight).columns


def _summary(
    questions: Estimator | Statistic | Sequence[Statistic],
    data: object,
    beside: Mapping[str, Any],
    states: Any,
    form: Mapping[str, object],
) -> Summary:
    """One pass."""
    from suffice.sources import open_source
    from suffice.statistics import Moments, MomentsBy, Statistic, Summary, Sums

    if isinstance(data, Summary):
        raise DataError("The data are a Summary already. Fit it, or add it to others.")
    if states is not None and isinstance(questions, ResponseEstimator | SummaryEstimator):
        raise OptionError(f"states= has no effect: a {type(questions).__name__} declares its own. Leave it out.")
    if isinstance(questions, StatesEstimator):
        if "y" in beside:
            raise OptionError("y= is the response of a regression; known states are given by states=.")
        sequences = sequence_form(form, beside["columns"])
        given = {"states": states, "sample_weight": beside["sample_weight"], "form": sequences}
        return questions._summarized(Inputs(data, given))
    if isinstance(questions, ResponseEstimator):
        if form:
            raise _no_sequences(f"a {type(questions).__name__}", form)
        summary = questions._summarized(Inputs(data, beside))
        if summary is not None:
            return summary
    if isinstance(questions, Estimator) and not isinstance(questions, SummaryEstimator):
        raise OptionError(
            f"A {type(questions).__name__} has no finite statistics of rows: {questions._without_summary}."
        )
    if "y" in beside:
        raise OptionError(
            "y= is the response of a regression; nothing else that is summarised has one. Leave it out; weights of "
            "rows are given by name, sample_weight=."
        )
    if isinstance(questions, SummaryEstimator):
        task = questions._task()
        if form:
            if not task.of_sequences:
                raise _no_sequences(f"a {type(questions).__name__}", form)
            beside = {**beside, "form": task.form_of(form, beside["columns"])}
        return _said(task.read(Inputs(data, beside), None, "join"))
    if form:
        raise _no_sequences("a statistic", form)
    asked = (questions,) if isinstance(questions, Statistic) else tuple(questions)
    if isinstance(questions, str) or not all(isinstance(question, Statistic) for question in asked):
        raise OptionError(
            f"Cannot summarise for {questions!r}; expected a model, or Counts, Moments, Sums or Patterns."
        )
    names = dict.fromkeys(name for question in asked for name in question.columns)
    # Whoever asks for moments or sums has said that the columns hold numbers.
    sums = [question for question in asked if isinstance(question, Moments | MomentsBy | Sums)]
    real = {name for question in sums for name in question.variables}
    declared = {**dict.fromkeys(real, "real"), **(states or {})}
    required = {name: declare(name, declared[name]) if name in declared else None for name in names}
    source = open_source(data, columns=beside["columns"], sample_weight=beside.get("sample_weight"))
    return _said(answered(source, required, lambda domain: asked))


def _said(data: SummaryData) -> Summary:
    """The statistics, once what matters for what they mean has been said."""
    announce(data.notes)
    return data.statistics


def _no_sequences(what: str, form: Mapping[str, object]) -> OptionError:
    given = " and ".join(f"{name}=" for name in form)
    return OptionError(f"{given} tells sequences and their steps apart; {what} speaks of rows. Leave it out.")
