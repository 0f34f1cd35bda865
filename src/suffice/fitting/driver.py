"""One way from data to a fitted value, for every model: read, solve, judge, receipt.

Receipts are written here and nowhere else, and here alone a checkpoint is given the mark of its problem.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Generic

from suffice.errors import ConvergenceWarning, warn
from suffice.fitting.contract import D, Data, F, Found, Inputs, Judgement, Problem, Purpose, Task
from suffice.fitting.control import Control, fingerprint
from suffice.fitting.report import Report, confirmed


class Fit(Generic[F]):
    """A fit that is done: the fitted value, its receipt, and what was measured at it.

    A closed form is measured when someone first looks; until then the fit holds its problem.
    """

    def __init__(
        self, fitted: F, report: Report | None = None, judgement: Judgement | None = None, later: Any = None
    ) -> None:
        """later: a function that gives report and judgement, where they are not given."""
        self.fitted, self._report, self._judgement, self._later = fitted, report, judgement, later

    @property
    def report(self) -> Report:
        """The receipt."""
        self._look()
        assert self._report is not None
        return self._report

    @property
    def judgement(self) -> Judgement:
        """What was measured at the fitted value."""
        self._look()
        assert self._judgement is not None
        return self._judgement

    def _look(self) -> None:
        if self._later is not None:
            self._report, self._judgement = self._later()
            self._later = None

    def __getstate__(self) -> dict[str, Any]:
        """Pickles and copies hold what was measured, not the data."""
        self._look()
        return dict(self.__dict__)


def run(
    task: Task[D, F],
    given: Inputs,
    control: Control,
    known: F | None = None,
    start: F | None = None,
    purpose: Purpose = "fit",
) -> Fit[F]:
    """Fit a task to what a user gives: under the names of a value that is known, from a start where one is given."""
    data = task.read(given, known, purpose)
    return solve(task.problem(data, start), data, control)


def solve(problem: Problem[F], data: Data, control: Control) -> Fit[F]:
    """Solve a problem and judge what was found: a closed form when someone looks, all others at once."""
    if control.checkpoint is not None:
        control = replace(control, problem=fingerprint(*problem.identity()))
    found = problem.solve(control)
    if found.outcome is None:
        return Fit(found.fitted, later=lambda: measured(found, data, problem, control))
    return Fit(found.fitted, *measured(found, data, problem, control))


def measured(found: Found[F], data: Data, problem: Problem[F], control: Control) -> tuple[Report, Judgement]:
    """The receipt of a fit, and what was measured at the value that it returned.

    A fit has converged only where what was measured agrees with what its solver says.
    """
    judged, outcome = problem.judge(found.fitted), found.outcome
    report = Report(
        model=found.fitted.title,
        rows=data.rows,
        weight=data.weight,
        passes=data.passes,
        method=found.method,
        estimate=found.estimate,
        log_likelihood=judged.log_likelihood,
        objective=judged.objective,
        n_params=found.fitted.n_params,
        certificate=judged.certificate,
        parameterisation=found.parameterisation,
        plan=found.plan,
        log_evidence=judged.log_evidence,
        empirical_entropy=judged.empirical_entropy,
        warnings=(*found.notes, *judged.notes),
    )
    if outcome is None:
        return confirmed(report, gap=judged.gap), judged
    report = replace(
        report,
        converged=outcome.converged,
        iterations=outcome.state.iteration,
        history=outcome.history,
        stop_reason=outcome.stop_reason,
    )
    if outcome.converged and judged.verdict:
        warn(f"The fit has not converged: {judged.verdict}.", ConvergenceWarning)
        return replace(report, converged=False, stop_reason=judged.verdict.partition(":")[0]), judged
    return confirmed(report, control.tolerance, judged.gap), judged
