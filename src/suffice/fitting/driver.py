"""One way from data to a fitted value, for every model: read, solve, judge, receipt.

Receipts are written here and nowhere else, and here alone a checkpoint is given the mark of its problem.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import ConvergenceWarning, SamplingWarning, announce, warn
from suffice.fitting.contract import D, Data, F, Found, Inputs, Judgement, Problem, Purpose, Task
from suffice.fitting.control import Control, fingerprint
from suffice.fitting.fit import Fit
from suffice.kernels.choice import one_path

# A closed form is fitted without its receipt, which is written when someone looks.
if TYPE_CHECKING:
    from suffice.fitting.report import Report

__all__ = ["Fit", "closed_on_failure", "measured", "run", "solve"]

# The allocator of Linux gives memory back to the system as soon as a few hundred kilobytes are free, and faults page
# after page when the next array asks for them: half the time of many small fits. It keeps as much as twice the largest
# block that it has seen come and go, which here is one that is never written to.
np.empty(1_000_000)


def run(
    task: Task[D, F],
    given: Inputs,
    control: Control,
    known: F | None = None,
    start: F | None = None,
    purpose: Purpose = "fit",
    *,
    keep: bool = False,
) -> Fit[F]:
    """Fit a task to what a user gives: under the names of a value that is known, from a start where one is given.

    keep: whether the fit holds its data, because other data may join them or leave them.
    """
    with one_path():
        data = task.read(given, known, purpose)
        with closed_on_failure(data):
            return solve(task.problem(data, start), data, control, keep=keep)


@contextmanager
def closed_on_failure(data: Data) -> Iterator[None]:
    """Let go of the shards that data hold where a fit fails: its traceback would keep them, with their files.

    Data that hold shards have a `close`.
    """
    try:
        yield
    except BaseException:
        close = getattr(data, "close", None)
        if close is not None:
            close()
        raise


def solve(problem: Problem[F], data: Data, control: Control, *, keep: bool = False) -> Fit[F]:
    """Solve a problem and judge what was found: at once, or when someone looks where the problem asks for that."""
    with one_path():
        return _solve(problem, data, control, keep)


def _solve(problem: Problem[F], data: Data, control: Control, keep: bool) -> Fit[F]:
    if control.checkpoint is not None:
        control = replace(control, problem=fingerprint(*problem.identity()))
    solution = problem.solve(control)
    announce(solution.notes)
    if solution.outcome is not None and solution.outcome.warning:
        warn(solution.outcome.warning, ConvergenceWarning)
    held = data if keep else None
    if solution.later:
        return Fit(solution.fitted, later=lambda: measured(solution, data, problem, control), data=held)
    return Fit(solution.fitted, *measured(solution, data, problem, control), data=held)


def _marks(data: Data, judged: Judgement) -> Mapping[str, Any]:
    """What tells the rows from others, of data that keep no statistics."""
    make = getattr(data, "marks", None)
    return judged.marks if make is None else make()


def measured(solution: Found[F], data: Data, problem: Problem[F], control: Control) -> tuple[Report, Judgement]:
    """The receipt of a fit, and what was measured at the value that it returned.

    A fit has converged only where what was measured agrees with what its solver says.
    """
    from suffice.fitting.confirmation import confirmed
    from suffice.fitting.report import Report

    judged, outcome = problem.judge(solution.fitted), solution.outcome
    announce(note for note in judged.notes if note not in solution.notes)
    report = Report(
        model=solution.fitted.title,
        rows=data.rows,
        weight=data.weight,
        passes=data.passes if solution.passes is None else solution.passes,
        method=solution.method,
        estimate=solution.estimate,
        log_likelihood=judged.log_likelihood,
        objective=judged.objective,
        n_params=solution.fitted.n_params if judged.n_params is None else judged.n_params,
        certificate=judged.certificate,
        parameterisation=solution.parameterisation,
        plan=solution.plan,
        log_evidence=judged.log_evidence,
        empirical_entropy=judged.empirical_entropy,
        warnings=tuple(map(str, (*solution.notes, *judged.notes))),
        marks=dict(_marks(data, judged)),
    )
    if outcome is None and judged.verdict:
        return replace(report, converged=False, stop_reason=judged.verdict.partition(":")[0]), judged
    if outcome is None:
        stopped = replace(report, stop_reason="converged") if solution.partly else report
        return confirmed(stopped, gap=judged.gap), judged
    report = replace(
        report,
        converged=outcome.converged,
        iterations=outcome.state.iteration,
        history=outcome.history,
        stop_reason=outcome.stop_reason,
    )
    if outcome.converged and judged.verdict:
        if judged.verdict not in judged.notes:  # A remark has said so already.
            warn(f"The fit has not converged: {judged.verdict}.", ConvergenceWarning)
        return replace(report, converged=False, stop_reason=judged.verdict.partition(":")[0]), judged
    if judged.unreliable:
        warn(judged.unreliable, SamplingWarning)
    return confirmed(report, control.tolerance, judged.gap), judged
