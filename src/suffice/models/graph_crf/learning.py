"""From an objective to weights: the choice of a solver, and the certificate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from suffice.errors import OptionError
from suffice.iteration import Control, Outcome, State
from suffice.models.chain_crf.learning import MEMORY, NEWTON_WEIGHTS, Best, Fit, information, relative_gap, slopes
from suffice.models.feature_sums import Sums
from suffice.models.graph_crf.ascent import ascend
from suffice.models.graph_crf.objective import WORDS, GraphObjective
from suffice.models.graph_crf.sampling import slope_by_chains
from suffice.models.graph_crf.stochastic import GraphStochastic
from suffice.report import Certificate
from suffice.solvers.gradient import lbfgs, owlqn
from suffice.solvers.newton import damped_newton

Floats = NDArray[np.float64]

#: What the report calls the ascent along gradients that chains measure.
ASCENT = "stochastic ascent"


def learn(
    objective: GraphObjective,
    start: Floats,
    control: Control,
    *,
    solver: str,
    stochastic: GraphStochastic | None = None,
    watch: Callable[[Floats], float] | None = None,
    patience: int = 5,
    problem: str = "",
) -> Fit:
    """Maximise the objective from a start; watch and patience as in the fit of a chain."""
    best = Best(watch, patience, control.callback, start) if watch is not None else None
    if best is not None:
        control = replace(control, callback=best)
    if stochastic is not None and solver == ASCENT:
        outcome = ascend(objective, stochastic, start, control, problem=problem)
    elif stochastic is not None:
        outcome = stochastic.run(start, control, lambda x: measured(objective, x), problem=problem)
    elif solver == "newton":
        outcome = _newton(objective, start, control, problem)
    elif solver == "owlqn":
        laplace = objective.penalties.laplace
        rate = np.zeros(len(start)) if laplace is None else laplace.rate
        outcome = owlqn(objective.smooth, rate, start, control, memory=MEMORY, gap=relative_gap, problem=problem)
    else:
        outcome = lbfgs(objective.smooth, start, control, memory=MEMORY, gap=relative_gap, problem=problem)
    if best is not None:
        outcome = best.taken(outcome)
    return Fit(outcome.state.parameters, outcome, solver)


def passed(weights: Floats, objective: GraphObjective, method: str) -> Fit:
    """The end of one pass over the examples, which makes no claim to have converged."""
    value, gap = measured(objective, weights)
    return Fit(weights, Outcome(State(weights, value, gap, iteration=1), False, "one pass", (value,)), method)


def _newton(objective: GraphObjective, start: Floats, control: Control, problem: str) -> Outcome:
    """Newton's method; of weights that the examples say nothing about the shortest change is taken."""
    if len(start) > NEWTON_WEIGHTS:
        raise OptionError(
            f"solver='newton' makes a matrix of {len(start)} by {len(start)}; it takes up to {NEWTON_WEIGHTS} weights. "
            "Use solver='lbfgs'."
        )
    return damped_newton(objective.smooth, lambda x: curvature(objective, x), start, control, problem=problem)


def curvature(objective: GraphObjective, x: Floats) -> Floats:
    """Minus the matrix of second derivatives (k, k), by central differences of the gradient."""
    return information(cast(Any, objective), x)


def measured(objective: GraphObjective, x: Floats) -> tuple[float, float]:
    """Value and relative gap at x."""
    value, slope, _ = slopes(cast(Any, objective), x)
    return value, relative_gap(x, slope)


def certify(objective: GraphObjective, x: Floats) -> tuple[Certificate, float, float, float, Sums]:
    """The certificate at x, the log-likelihood, the objective, the relative norm of the slope, and sums of features."""
    value, slope, likelihood = slopes(cast(Any, objective), x)
    penalties, bound, chains = objective.penalties, None, None
    if objective.concave and penalties.gaussian is not None:
        # The objective is as strongly concave as the prior, whatever else is taken off it.
        bound = penalties.gaussian.loss_bound(slope)
    elif objective.concave and penalties.laplace is not None:
        bound = penalties.laplace.loss_bound(slope, x, -value)
    if objective.engine.wide == "gibbs" and objective.apart is not None:
        slope, chains = slope_by_chains(objective, x)
        likelihood = slope + penalties.smooth(x)[1]
    certificate = Certificate(
        moment_gap=float(np.abs(slope).max(initial=0.0)),
        value_gap=None if bound is None else bound / objective.weight,
        bound=bound is not None,
        exact=objective.exact,
        # Likelihoods and pseudo-likelihoods are at most 1: with a prior there is a maximum. Bethe's have no bound.
        exists=True if bound is not None or (penalties.any and objective.engine.wide != "loopy") else None,
        scale="counts, summed over examples",
        engine="" if objective.exact else objective.routes.said(WORDS[objective.engine.wide]),
        monte_carlo=chains,
    )
    sums = Sums.of(objective.observed(), likelihood, slope, prior=penalties.any)
    return certificate, value + penalties.value(x), value, relative_gap(x, slope), sums
