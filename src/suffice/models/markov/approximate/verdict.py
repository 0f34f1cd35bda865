"""Whether an approximate fit is done: its own chains say so, and fresh ones, which know nothing of the fit, agree."""

from __future__ import annotations

import time
from dataclasses import replace

from suffice.errors import ConvergenceWarning, SamplingWarning, warn
from suffice.fitting.control import Control, Outcome
from suffice.fitting.report import DENIED as DENIED_BY_CERTIFICATE
from suffice.models.markov.approximate.measure import Measured, measure, unmeasured
from suffice.models.markov.approximate.own_slope import Own, measure_own
from suffice.models.markov.approximate.problem import SampledProblem
from suffice.models.markov.approximate.solvers import Fitted, StuckError, affordable, solve, tolerance_of
from suffice.models.markov.law import LawFamily

#: Why a fit has not converged whose own chains say that it has.
DENIED = "denied by fresh chains"
#: Why a fit has not converged whose weights run to infinity.
NO_MAXIMUM = "no maximum"
#: Times that a fit goes on after fresh chains have found it short of its tolerance, each time to half of that.
ROUNDS = 3


def learn_and_measure(problem: SampledProblem, solver: str, exact: LawFamily | None) -> tuple[Fitted, Measured]:
    """Find the weights and measure them; exact: the laws of the model by a junction tree, where one fits.

    Persistent chains that do not move between the modes of the law report the slope of their own mode: where fresh
    chains did not mix either, stochastic maximum likelihood goes on with replicas.
    """
    began, spent, tempered, tolerance = time.monotonic(), 0, False, tolerance_of(problem)
    limits = problem.control
    try:
        fitted, measured = _measured(problem, solver, exact, tolerance)
    except StuckError as stuck:
        tempered, spent = True, stuck.updates
        rest = replace(limits, max_iter=max(1, limits.max_iter - spent))
        fitted, measured = _measured(replace(problem, control=rest), solver, exact, tolerance, tempered=True)
    for _ in range(ROUNDS if solver == "sml" else 0):
        control = _rest(limits, fitted.outcome, time.monotonic() - began, spent)
        if not (fitted.outcome.converged and measured.doubt and control is not None):
            break
        carlo = measured.certificate.monte_carlo
        helps = carlo is not None and carlo.levels > 1 and not tempered and affordable(problem)
        if carlo is None or (carlo.distrust and not helps):
            break  # Longer runs of chains that do not mix tell no more.
        tempered = tempered or helps
        problem = _finer(replace(problem, start=fitted.weights, control=control))
        earlier = fitted.outcome
        fitted, measured = _measured(problem, solver, exact, tolerance, tempered=tempered)
        fitted = replace(fitted, outcome=_joined(earlier, fitted.outcome))
    if solver == "sml":
        return _attained(judged(fitted, measured), measured), measured
    try:
        own = measure_own(problem, fitted.weights, solver, tolerance)
    except KeyboardInterrupt:  # The fit is done and is not thrown away.
        own = Own(None, "its measurement was interrupted")
    if own.objective is not None:
        measured = replace(measured, objective=own.objective)
    return _attained(_at_rest(warned(fitted, measured), own), measured), measured


def judged(fitted: Fitted, measured: Measured) -> Fitted:
    """A fit to the likelihood has converged where fresh chains agree; warns where they do not."""
    denied = fitted.outcome.converged and measured.doubt
    warned(fitted, measured, gap=not denied)
    if not denied:
        return fitted
    warn(f"The fit has not converged: {measured.doubt}.", ConvergenceWarning)
    return replace(fitted, outcome=replace(fitted.outcome, converged=False, stop_reason=DENIED))


def _at_rest(fitted: Fitted, own: Own) -> Fitted:
    """A fit to something else has converged where the slope of that vanishes; warns where it does not."""
    if not (fitted.outcome.converged and own.doubt):
        return fitted
    warn(f"The fit has not converged: {own.doubt}.", ConvergenceWarning)
    return replace(fitted, outcome=replace(fitted.outcome, converged=False, stop_reason=DENIED_BY_CERTIFICATE))


def _attained(fitted: Fitted, measured: Measured) -> Fitted:
    """A fit whose maximum is not attained returns a point on the way to infinity, which is no end."""
    if measured.certificate.exists is not False or not fitted.outcome.converged:
        return fitted
    running = "; ".join(measured.certificate.directions[:3])
    warn(f"The fit has not converged, as the likelihood has no maximum: {running}. Give a prior.", ConvergenceWarning)
    return replace(fitted, outcome=replace(fitted.outcome, converged=False, stop_reason=NO_MAXIMUM))


def warned(fitted: Fitted, measured: Measured, *, gap: bool = True) -> Fitted:
    """The fit as it is, with warnings where what the report says about it is not to be relied on; gap: its gap too."""
    carlo = measured.certificate.monte_carlo
    if gap and carlo is not None and carlo.exact_gap is None and carlo.distrust:
        warn(f"The moment gap in the certificate is not to be relied on: {carlo.distrust}.", SamplingWarning)
    if measured.likelihood_doubt:
        warn(f"The log-likelihood in the report is not to be relied on: {measured.likelihood_doubt}.", SamplingWarning)
    return fitted


def _finer(problem: SampledProblem) -> SampledProblem:
    """The same problem with half the tolerance."""
    control = replace(problem.control, tolerance=0.5 * problem.control.tolerance)
    sampling = replace(problem.sampling, accuracy=0.5 * problem.sampling.accuracy)
    return replace(problem, control=control, sampling=sampling)


def _measured(
    problem: SampledProblem, solver: str, exact: LawFamily | None, tolerance: float, *, tempered: bool = False
) -> tuple[Fitted, Measured]:
    fitted = solve(problem, solver, tempered=tempered)
    try:
        found = measure(problem, fitted.weights, solver, exact, tolerance)
    except KeyboardInterrupt:  # The fit is done and is not thrown away.
        found = unmeasured(problem, solver)
    return fitted, found


def _rest(control: Control, outcome: Outcome, seconds: float, spent: int) -> Control | None:
    """What is left of the limits of a fit after an outcome and some updates before it; None where nothing is."""
    steps = control.max_iter - outcome.state.iteration - spent
    left = None if control.max_seconds is None else control.max_seconds - seconds
    if steps < 1 or (left is not None and left <= 0.0):
        return None
    return replace(control, max_iter=steps, max_seconds=left)


def _joined(first: Outcome, second: Outcome) -> Outcome:
    """One run after the other."""
    state = replace(second.state, iteration=first.state.iteration + second.state.iteration)
    return replace(second, state=state, history=first.history + second.history[1:])
