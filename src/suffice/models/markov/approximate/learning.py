"""Whether an approximate fit is done: its own chains say so, and fresh ones, which know nothing of the fit, agree."""

from __future__ import annotations

import time
from dataclasses import replace

from suffice.errors import SamplingWarning, warn
from suffice.fitting.control import Control, Outcome
from suffice.fitting.report import DENIED as DENIED_BY_CERTIFICATE
from suffice.models.markov.approximate.measure import SampledMeasurement, measure, unmeasured
from suffice.models.markov.approximate.own_slope import Own
from suffice.models.markov.approximate.problem import SampledProblem
from suffice.models.markov.approximate.solvers import Ascended, StuckError, affordable, solve, tolerance_of
from suffice.models.markov.family import LogLinearFamily

#: Why a fit has not converged whose own chains say that it has.
DENIED = "denied by fresh chains"
#: Why a fit has not converged whose weights run to infinity.
NO_MAXIMUM = "no maximum"
#: Times that a fit goes on after fresh chains have found it short of its tolerance, each time to half of that.
ROUNDS = 3


def learn_and_measure(
    problem: SampledProblem, solver: str, exact: LogLinearFamily | None
) -> tuple[Ascended, SampledMeasurement]:
    """Find the weights, and measure them to see whether to go on; exact: the laws by a junction tree, where one fits.

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
        carlo = measured.monte_carlo
        helps = carlo is not None and carlo.levels > 1 and not tempered and affordable(problem)
        if carlo is None or (carlo.distrust and not helps):
            break  # Longer runs of chains that do not mix tell no more.
        tempered = tempered or helps
        problem = _finer(replace(problem, start=fitted.weights, control=control))
        earlier = fitted.outcome
        fitted, measured = _measured(problem, solver, exact, tolerance, tempered=tempered)
        fitted = replace(fitted, outcome=_joined(earlier, fitted.outcome))
    return fitted, measured


def verdict(measured: SampledMeasurement, own: Own | None) -> str:
    """Why a fit has not converged that its own chains call done, before a colon its short form; empty where it has.

    own: what a solver that climbs something else than the likelihood has measured of its own objective. Warns where
    what a report says is not to be relied on.
    """
    carlo, against = measured.monte_carlo, measured.doubt if own is None else own.doubt
    if (own is not None or not against) and carlo is not None and carlo.exact_gap is None and carlo.distrust:
        warn(f"The moment gap in the certificate is not to be relied on: {carlo.distrust}.", SamplingWarning)
    if measured.likelihood_doubt:
        warn(f"The log-likelihood in the report is not to be relied on: {measured.likelihood_doubt}.", SamplingWarning)
    if against:
        return f"{DENIED if own is None else DENIED_BY_CERTIFICATE}: {against}"
    if measured.exists is False:  # A point on the way to infinity is no end.
        return f"{NO_MAXIMUM}: {'; '.join(measured.directions[:3])}. Give a prior"
    return ""


def _finer(problem: SampledProblem) -> SampledProblem:
    """The same problem with half the tolerance."""
    control = replace(problem.control, tolerance=0.5 * problem.control.tolerance)
    sampling = replace(problem.sampling, accuracy=0.5 * problem.sampling.accuracy)
    return replace(problem, control=control, sampling=sampling)


def _measured(
    problem: SampledProblem, solver: str, exact: LogLinearFamily | None, tolerance: float, *, tempered: bool = False
) -> tuple[Ascended, SampledMeasurement]:
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
