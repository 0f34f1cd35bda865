"""Learning without exact inference, to its end: a fit whose own chains call it done goes on where fresh ones do not.

Whether it is done is for the judge to say, who draws chains of his own. Those that are drawn here are fewer, and tell
the solver alone whether to go on.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from suffice.engines.tempering import Lengths
from suffice.fitting.control import Control, Outcome
from suffice.models.markov.approximate.measure import exact_slope, measure_slope, slope_doubt
from suffice.models.markov.approximate.problem import SampledProblem
from suffice.models.markov.approximate.solvers import Ascended, StuckError, affordable, solve, tolerance_of
from suffice.models.markov.family import LogLinearFamily

#: Times that a fit goes on after fresh chains have found it short of its tolerance, each time to half of that.
ROUNDS = 3
#: Of the draws of a certificate the solver takes one in so many, some sweeps apart: features cost more than sweeps.
ONE_IN, APART = 8, 4


def learn(problem: SampledProblem, solver: str, family: LogLinearFamily | None) -> Ascended:
    """Find the weights, in the units of the problem; family: the distributions by a junction tree, where one fits.

    Persistent chains that do not move between the modes of the distribution report the slope of their own mode: where
    fresh chains did not mix either, stochastic maximum likelihood goes on with replicas.
    """
    began, spent, tempered, tolerance = time.monotonic(), 0, False, tolerance_of(problem)
    limits = problem.control
    try:
        ended = solve(problem, solver)
    except StuckError as stuck:
        tempered, spent = True, stuck.updates
        rest = replace(limits, max_iter=max(1, limits.max_iter - spent))
        ended = solve(replace(problem, control=rest), solver, tempered=True)
    for _ in range(ROUNDS if solver == "sml" else 0):
        control = _rest(limits, ended.outcome, time.monotonic() - began, spent)
        if not ended.outcome.converged or control is None:
            break
        try:
            short, unmixed, helps = _look(problem, ended, family, tolerance)
        except KeyboardInterrupt:  # The fit is done and is not thrown away.
            stopped = replace(ended.outcome, converged=False, stop_reason="interrupted")
            return replace(ended, outcome=stopped)
        if not short or (unmixed and (tempered or not helps)):
            break  # Longer runs of chains that do not mix tell no more, unless replicas are still to be tried.
        tempered = tempered or helps
        problem = _finer(replace(problem, start=ended.weights, control=control))
        further = solve(problem, solver, tempered=tempered)
        ended = replace(further, outcome=_joined(ended.outcome, further.outcome))
    return ended


def _look(
    problem: SampledProblem, ended: Ascended, family: LogLinearFamily | None, tolerance: float
) -> tuple[bool, bool, bool]:
    """Whether a fit is short of its tolerance, whether fresh chains do not mix, and whether replicas help."""
    sampling, exact = problem.sampling, None
    if family is not None:
        exact = exact_slope(problem, ended.weights, family)[1]
        error = problem.spread / np.sqrt(sampling.chains * sampling.draws)  # That of independent draws.
        if not slope_doubt(problem, exact, error, tolerance):
            return False, False, False
    lengths = Lengths(sampling.burn_in, max(4, sampling.draws // ONE_IN), sampling.tempering, APART)
    measurement = measure_slope(problem, ended.weights, lengths, exact)
    helps = measurement.means.levels > 1 and affordable(problem)
    return bool(measurement.doubt(tolerance)), bool(measurement.monte_carlo().distrust), helps


def _finer(problem: SampledProblem) -> SampledProblem:
    """The same problem with half the tolerance."""
    control = replace(problem.control, tolerance=0.5 * problem.control.tolerance)
    sampling = replace(problem.sampling, accuracy=0.5 * problem.sampling.accuracy)
    return replace(problem, control=control, sampling=sampling)


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
