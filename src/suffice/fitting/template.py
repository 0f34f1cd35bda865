"""The template of models that learn from a summary: ask, answer, solve, certify.

A concrete model declares five things and inherits the rest: which variables it wants, which statistics it asks for, how
it solves for its parameters, its log-likelihood, and its certificate.
"""

from __future__ import annotations

import copy
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from suffice.domain import Domain, Variable, declare
from suffice.errors import DataError, FileFormatError, NotFittedError, OptionError
from suffice.fitting.estimator import Estimator, SummaryEstimator
from suffice.records import record, replace

# A network that is read from a file and asked needs none of these, and starts in half the time without them.
if TYPE_CHECKING:
    from suffice.fitting.control import Outcome
    from suffice.fitting.report import Certificate, MatchedStatistics, Report
    from suffice.statistics import Statistic, Summary

Floats = NDArray[np.float64]

#: Why rows are read again: to join those learned or leave them, or to be compared with the model.
Purpose = Literal["join", "compare"]


@record(frozen=True, eq=False)
class Solution:
    """What a model's solve says about itself; the parameters are already in the model.

    With `later` the figures of the report are worked out when it is first read: from the summary and the parameters,
    which a fitted model keeps as they are.
    """

    method: str
    estimate: str
    parameterisation: str | None = None
    outcome: Outcome | None = None
    plan: str | None = None
    log_evidence: float | None = None
    warnings: tuple[str, ...] = ()
    later: bool = False


class TemplateEstimator(Estimator):
    """What is learned comes from a `Summary` alone, so that rows can join it and leave it again."""

    summary_: Summary
    #: What the report of the last fit is made from: what the solve said, and the passes over the rows.
    _to_report: tuple[Solution, int]
    #: What reading the rows has to say; part of the next report.
    _read_notes: tuple[str, ...] = ()

    @property
    def statistics_(self) -> Summary:
        """The sufficient statistics of the rows that were learned."""
        return self.summary_

    # -- what a model declares ---------------------------------------------------------------------------------------

    def _wanted(self, columns: Sequence[Hashable]) -> Mapping[Hashable, Variable | None]:
        """The variables to read, by column; None leaves the kind to the column."""
        raise NotImplementedError

    def _wanted_again(self, columns: Sequence[Hashable], purpose: Purpose) -> Mapping[Hashable, Variable | None]:
        """The variables to read, by column, of rows that join those learned, leave them, or are compared with them."""
        return self._wanted(columns)

    def _ask(self, domain: Domain) -> tuple[Statistic, ...]:
        """The statistics that the fit needs."""
        raise NotImplementedError

    def _solve(self, summary: Summary) -> Solution:
        """Set the parameters from the statistics."""
        raise NotImplementedError

    def _log_likelihood(self, summary: Summary) -> float:
        """Sum over rows, natural logarithm, at the current parameters."""
        raise NotImplementedError

    def _certify(self, summary: Summary) -> Certificate:
        """Measure the gap at the current parameters."""
        raise NotImplementedError

    def _objective(self, summary: Summary, log_likelihood: float) -> float:
        """What was maximised; the log-likelihood unless a prior was used."""
        return log_likelihood

    def _empirical_entropy(self, summary: Summary) -> float | None:
        """Entropy of the observed frequencies; None where the data are not discrete."""
        return None

    @property
    def n_params_(self) -> int:
        """Number of free parameters."""
        raise NotImplementedError

    # -- fitting -----------------------------------------------------------------------------------------------------

    def fit(self, data: Any, sample_weight: Any = None, *, columns: Any = None) -> Self:
        """Learn the parameters from rows or from a `Summary`.

        Args:
            data: any table, file or array that the library reads, or a `Summary` made for this model.
            sample_weight: one weight a row, or the name of the column that holds it; a weight of 2 counts as two rows.
            columns: names for the columns of an array, or the columns to read.

        Returns:
            self
        """
        self._read_notes = ()
        summary, passes = self._summary_of(data, sample_weight, columns)
        return self._learn(self._own(summary), passes)

    def partial_fit(self, data: Any, sample_weight: Any = None, *, columns: Any = None, keep: float = 1.0) -> Self:
        """Add rows to those already learned; the result equals one fit on all of them.

        `keep` below 1 weights the earlier rows down first (forgetting).
        """
        with self._reading("join"):
            summary, passes = self._joining_summary(data, sample_weight, columns)
        earlier = self.__dict__.get("summary_")
        return self._learn(summary if earlier is None else earlier * keep + summary, passes)

    def unlearn(self, data: Any, sample_weight: Any = None, *, columns: Any = None) -> Self:
        """Take rows out again; the result equals a fit that never saw them."""
        if "summary_" not in self.__dict__:
            raise NotFittedError(f"This {type(self).__name__} has learned nothing yet, so nothing can be unlearned.")
        with self._reading("join"):
            summary, passes = self._joining_summary(data, sample_weight, columns)
        return self._learn(self.summary_ - summary, passes)

    def score(self, data: Any, sample_weight: Any = None, *, columns: Any = None) -> float:
        """Mean log-likelihood of a row (weighted), natural logarithm."""
        with self._reading("compare"):
            summary, _ = self._joining_summary(data, sample_weight, columns)
        if summary.weight <= 0:
            raise OptionError("The score of no rows is undefined: the data have no weight.")
        return self._log_likelihood(self._aligned(summary)) / summary.weight

    @contextmanager
    def _reading(self, purpose: Purpose) -> Iterator[None]:
        """While rows are read to join those learned or to be compared with them."""
        self._purpose = purpose
        try:
            yield
        finally:
            del self._purpose

    def _own(self, summary: Summary) -> Summary:
        """The summary, where it is one of the columns that the model describes; another one is an error."""
        return summary

    def _joining(self, summary: Summary) -> Summary:
        """The summary under the names learned before."""
        return summary

    def _aligned(self, summary: Summary) -> Summary:
        """The summary laid out as the fitted parameters are."""
        return summary

    def _joining_summary(self, data: Any, sample_weight: Any, columns: Any) -> tuple[Summary, int]:
        """The summary of rows that join those learned, leave them or are compared with them, and the passes made."""
        summary, passes = self._summary_of(data, sample_weight, columns)
        return self._joining(self._own(summary)), passes

    def _summary_of(self, data: Any, sample_weight: Any, columns: Any) -> tuple[Summary, int]:
        from suffice.statistics import Summary

        if isinstance(data, Summary):
            if sample_weight is not None or columns is not None:
                raise OptionError("A Summary already holds weights and columns; give neither beside it.")
            self._read_notes = ()
            return data, 0
        from suffice.sources import open_source

        source = open_source(data, columns=columns, sample_weight=sample_weight)
        return _answered(self, source), max(source.passes, 1)

    def _learn(self, summary: Summary, passes: int) -> Self:
        """Solve on a copy, so that a fit that fails leaves the model as it was."""
        fresh = object.__new__(type(self))
        fresh.__dict__.update(self.__dict__, _options=dict(self._options))
        fresh.__dict__.pop("report_", None)
        solution = fresh._solve(summary)
        fresh.summary_ = summary
        if self._read_notes:
            solution = replace(solution, warnings=(*self._read_notes, *solution.warnings))
        fresh._to_report = solution, passes
        if not solution.later:
            fresh.report_ = fresh._report(summary, *fresh._to_report)
        self.__dict__.clear()
        self.__dict__.update(fresh.__dict__)
        return self

    def _bare_report(self) -> Report | None:
        held: Report | None = self.__dict__.get("report_")
        if held is None and "_to_report" in self.__dict__:
            held = self.__dict__["report_"] = self._report(self.summary_, *self._to_report)
        return held

    def _set_receipt(self, report: Report) -> None:
        self.__dict__["report_"] = report.bare

    report_ = property(Estimator.report_.fget, _set_receipt)  # type: ignore[attr-defined]

    def matched_statistics(self) -> MatchedStatistics | None:
        """The statistics that the fit makes equal, observed and expected; None where they are not kept."""
        return None

    def _report(self, summary: Summary, solution: Solution, passes: int) -> Report:
        from suffice.fitting.report import Report

        log_likelihood = self._log_likelihood(summary)
        outcome = solution.outcome
        ended = (
            {}
            if outcome is None
            else {
                "converged": outcome.converged,
                "iterations": outcome.state.iteration,
                "history": outcome.history,
                "stop_reason": outcome.stop_reason,
            }
        )
        found = Report(
            model=type(self).__name__,
            rows=summary.rows,
            weight=summary.weight,
            passes=passes,
            method=solution.method,
            estimate=solution.estimate,
            log_likelihood=log_likelihood,
            objective=self._objective(summary, log_likelihood),
            n_params=self.n_params_,
            certificate=self._certify(summary),
            parameterisation=solution.parameterisation,
            plan=solution.plan,
            log_evidence=solution.log_evidence,
            empirical_entropy=self._empirical_entropy(summary),
            warnings=solution.warnings,
            **ended,  # type: ignore[arg-type]
        )
        return self._upheld(found, outcome)

    def _upheld(self, report: Report, outcome: Outcome | None) -> Report:
        """The report, which says that the fit has converged only where the certificate agrees."""
        from suffice.fitting.report import confirmed

        return confirmed(report, None if outcome is None else self._options.get("tolerance") or 0.0)

    def _before_options_change(self) -> None:
        if "_to_report" in self.__dict__:
            self.report_  # noqa: B018  The receipt of the fit under the options that it had.

    # -- files -------------------------------------------------------------------------------------------------------

    def _fitted_state(self) -> dict[str, Any]:
        """The parameters, as plain data."""
        return {}

    def _restore(self, state: Mapping[str, Any]) -> None:
        """Set the parameters from plain data, checking them."""

    def to_plain(self) -> dict[str, Any]:
        """Options, parameters, summary and report as plain data."""
        options = {n: None if n in self._transient else self._options[n] for n in self._option_names()}
        state: dict[str, Any] = {"options": options, "fitted": None}
        if "report_" in self.__dict__ or "_to_report" in self.__dict__:
            state |= {"fitted": self._fitted_state(), "summary": self.summary_, "report": self.report_.to_plain()}
        return state

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self:
        """Rebuild from plain data."""
        model = cls._with_options(plain)
        if plain["fitted"] is not None:
            from suffice.fitting.report import Report
            from suffice.statistics import Summary

            if not isinstance(plain["summary"], Summary):
                raise FileFormatError(f"The summary of the {cls.__name__} is a {type(plain['summary']).__name__}.")
            model.summary_ = plain["summary"]
            model._restore(plain["fitted"])
            model.report_ = Report.from_plain(plain["report"])
        return model


def summarize(
    questions: Estimator | Statistic | Sequence[Statistic],
    data: Any,
    sample_weight: Any = None,
    *,
    columns: Any = None,
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
    from suffice.statistics import Summary

    if isinstance(questions, SummaryEstimator):
        if isinstance(data, Summary):
            raise DataError("The data are a Summary already. Fit it, or add it to others.")
        from suffice.fitting.contract import Inputs

        given = Inputs(data, {"sample_weight": sample_weight, "columns": columns})
        return questions._task().read(given, None, "fit").statistics
    if isinstance(questions, Estimator) and not isinstance(questions, TemplateEstimator):
        raise OptionError(
            f"A {type(questions).__name__} has no finite statistics of rows: its fit goes over them again and again."
        )
    asked = questions if isinstance(questions, TemplateEstimator) else _Questions(questions, states)
    if isinstance(data, Summary):
        raise DataError("The data are a Summary already. Fit it, or add it to others.")
    # A copy: what a model notes about the rows it reads belongs to its own fits.
    return copy.copy(asked)._summary_of(data, sample_weight, columns)[0]


def _answered(asked: TemplateEstimator, source: Any) -> Summary:
    """The statistics that a model asks for, from one pass over an open source."""
    from suffice.fitting.summaries import answered

    purpose = asked.__dict__.get("_purpose")
    wanted = asked._wanted(source.columns) if purpose is None else asked._wanted_again(source.columns, purpose)
    read = answered(source, wanted, asked._ask, progress=bool(asked._options.get("progress", False)))
    asked._read_notes = read.notes
    return read.statistics


class _Questions(TemplateEstimator):
    """Statistics asked for by themselves, without a model."""

    def __init__(self, questions: Any, states: Mapping[Any, Any] | None) -> None:
        from suffice.statistics import Statistic

        super().__init__()
        self._asked = (questions,) if isinstance(questions, Statistic) else tuple(questions)
        if isinstance(questions, str) or not all(isinstance(question, Statistic) for question in self._asked):
            raise OptionError(
                f"Cannot summarise for {questions!r}; expected a model, or Counts, Moments, Sums or Patterns."
            )
        self._states = states or {}

    def _wanted(self, columns: Sequence[Hashable]) -> Mapping[Hashable, Variable | None]:
        names = dict.fromkeys(name for question in self._asked for name in question.variables)
        return {name: declare(name, self._states[name]) if name in self._states else None for name in names}

    def _ask(self, domain: Domain) -> tuple[Statistic, ...]:
        return self._asked
