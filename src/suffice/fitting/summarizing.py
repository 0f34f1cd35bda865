"""Statistics by themselves: what a model asks for, or what is named, from one pass over the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from suffice.domain import declare
from suffice.errors import DataError, OptionError
from suffice.fitting.contract import Inputs
from suffice.fitting.estimator import Estimator, SummaryEstimator
from suffice.fitting.summaries import answered

if TYPE_CHECKING:
    from suffice.statistics import Statistic, Summary


def summarize(
    questions: Estimator | Statistic | Sequence[Statistic],
    data: object,
    sample_weight: object = None,
    *,
    columns: object = None,
    states: Mapping[Any, Any] | None = None,
) -> Summary:
    """The statistics that a model asks for, or those named, from one pass over the data.

    Summaries of several files or sites add up, and ``model.fit(summary)`` learns from them alone.

    Args:
        questions: a model, or one or several of `Counts`, `Moments`, `Sums` and `Patterns`.
        data: any table, file or array that the library reads.
        sample_weight: one weight a row, or the name of the column that holds it.
        columns: names for the columns of an array, or the columns to read.
        states: declared states by column (or "real" or "count"), where statistics are named; a model has its own.

    >>> from suffice.statistics import Counts
    >>> summary = summarize(Counts(("x",)), {"x": ["a", "b", "a"]})
    >>> summary[Counts(("x",))].dense()
    array([2., 1.])
    """
    from suffice.sources import open_source
    from suffice.statistics import Statistic, Summary

    if isinstance(questions, Estimator) and not isinstance(questions, SummaryEstimator):
        raise OptionError(
            f"A {type(questions).__name__} has no finite statistics of rows: {questions._without_summary}."
        )
    if isinstance(data, Summary):
        raise DataError("The data are a Summary already. Fit it, or add it to others.")
    if isinstance(questions, SummaryEstimator):
        given = Inputs(data, {"sample_weight": sample_weight, "columns": columns})
        return questions._task().read(given, None, "join").statistics
    asked = (questions,) if isinstance(questions, Statistic) else tuple(questions)
    if isinstance(questions, str) or not all(isinstance(question, Statistic) for question in asked):
        raise OptionError(
            f"Cannot summarise for {questions!r}; expected a model, or Counts, Moments, Sums or Patterns."
        )
    declared = states or {}
    names = dict.fromkeys(name for question in asked for name in question.variables)
    required = {name: declare(name, declared[name]) if name in declared else None for name in names}
    source = open_source(data, columns=columns, sample_weight=sample_weight)
    return answered(source, required, lambda domain: asked).statistics
