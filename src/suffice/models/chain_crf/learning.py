"""From an objective to weights: the choice of a solver, early stopping, and the certificate."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.errors import OptionError
from suffice.iteration import Control, Outcome, State
from suffice.models.chain_crf.objective import ChainObjective
from suffice.models.chain_crf.priors import Penalties
from suffice.models.chain_crf.stochastic import Stochastic
from suffice.report import Certificate
from suffice.solvers.gradient import lbfgs, owlqn, pseudo_gradient
from suffice.solvers.newton import newton

Floats = NDArray[np.float64]

SOLVERS = ("auto", "lbfgs", "owlqn", "newton", "sgd", "adam", "perceptron")
STOCHASTIC = ("sgd", "adam", "perceptron")
#: Most weights for which a matrix of second derivatives is made.
NEWTON_WEIGHTS = 2000
#: Changes of the gradient that L-BFGS remembers.
MEMORY = 8


def relative_gap(x: Floats, slopes: Floats) -> float:
    """The norm of the slopes relative to that of the weights, at least 1."""
    return float(np.linalg.norm(slopes)) / max(1.0, float(np.linalg.norm(x)))


@dataclass(frozen=True, eq=False)
class Fit:
    """What a fit gives: the weights, how it ended and by which method."""

    weights: Floats
    outcome: Outcome
    method: str

    @classmethod
    def passed(cls, weights: Floats, objective: ChainObjective, method: str) -> Fit:
        """The end of one pass over the sequences, which makes no claim to have converged."""
        value, gap = measured(objective, weights)
        state = State(weights, value, gap, iteration=1)
        return cls(weights, Outcome(state, False, "one pass", (value,)), method)


def chosen_solver(solver: str, penalties: Penalties) -> str:
    """The solver that "auto" stands for, and whether the one asked for can do the work."""
    rough = penalties.laplace is not None
    if solver == "auto":
        return "owlqn" if rough else "lbfgs"
    if solver == "lbfgs" and rough:
        return "owlqn"
    if solver == "newton" and rough:
        raise OptionError("A Laplace prior has no second derivative; use solver='owlqn' or a Normal prior.")
    return solver


def learn(
    objective: ChainObjective,
    start: Floats,
    control: Control,
    *,
    solver: str,
    stochastic: Stochastic | None,
    watch: Callable[[Floats], float] | None = None,
    patience: int = 5,
    problem: str = "",
) -> Fit:
    """Maximise the objective from a start.

    watch: the mean log-likelihood of a validation set at given weights; the fit ends when it has not risen for
    `patience` iterations, and the best weights by it are taken. problem: what a checkpoint is known by.
    """
    best = _Best(watch, patience, control.callback) if watch is not None else None
    if best is not None:
        control = replace(control, callback=best)
    if stochastic is not None:
        outcome = stochastic.run(start, control, lambda x: measured(objective, x))
    elif solver == "newton":
        outcome = _newton(objective, start, control, problem)
    elif solver == "owlqn":
        rate = objective.penalties.laplace.rate if objective.penalties.laplace is not None else np.zeros(len(start))
        outcome = owlqn(objective.smooth, rate, start, control, memory=MEMORY, gap=relative_gap, problem=problem)
    else:
        outcome = lbfgs(objective.smooth, start, control, memory=MEMORY, gap=relative_gap, problem=problem)
    if best is not None and best.weights is not None and outcome.stop_reason in ("callback", "max_iter"):
        reason = "early stopping" if best.ended else outcome.stop_reason
        outcome = replace(outcome, stop_reason=reason)
        return Fit(best.weights, outcome, solver)
    return Fit(outcome.state.parameters, outcome, solver)


class _Best:
    """The best weights so far by a validation set; says stop when patience is over."""

    def __init__(self, watch: Callable[[Floats], float], patience: int, inner: Callable[[State], Any] | None) -> None:
        if not (isinstance(patience, int | np.integer) and patience >= 1):
            raise OptionError(f"patience is {patience!r}; expected a whole number of at least 1.")
        self.watch, self.patience, self.inner = watch, patience, inner
        self.value, self.waited, self.ended = -math.inf, 0, False
        self.weights: Floats | None = None

    def __call__(self, state: State) -> bool:
        value = self.watch(state.parameters)
        if value > self.value:
            self.value, self.waited, self.weights = value, 0, state.parameters.copy()
        else:
            self.waited += 1
        self.ended = self.waited >= self.patience
        stop = self.inner is not None and self.inner(state) is True
        return stop or self.ended


def _newton(objective: ChainObjective, start: Floats, control: Control, problem: str) -> Outcome:
    """Newton's method; second derivatives are central differences of the exact gradient, two for each weight."""
    if len(start) > NEWTON_WEIGHTS:
        raise OptionError(
            f"solver='newton' makes a matrix of {len(start)} by {len(start)}; it takes up to {NEWTON_WEIGHTS} weights. "
            "Use solver='lbfgs'."
        )

    def function(x: Floats) -> tuple[float, Floats, Floats]:
        value, gradient = objective.smooth(x)
        return value, gradient, information(objective, x)

    return newton(function, start, control, magnitude=np.abs(objective.features), problem=problem)


def information(objective: ChainObjective, x: Floats) -> Floats:
    """Minus the matrix of second derivatives (k, k): the covariance of the features, and the prior's precision."""
    found = np.empty((len(x), len(x)))
    for place in range(len(x)):
        size = 1e-4 * max(1.0, abs(float(x[place])))
        moved = x.copy()
        moved[place] += size
        ahead = objective.smooth(moved)[1]
        moved[place] -= 2.0 * size
        found[place] = (objective.smooth(moved)[1] - ahead) / (2.0 * size)
    return 0.5 * (found + found.T)


def slopes(objective: ChainObjective, x: Floats) -> tuple[float, Floats]:
    """Value and slope of the whole objective; with a Laplace prior the slope of least size."""
    value, gradient = objective.smooth(x)
    laplace = objective.penalties.laplace
    if laplace is None:
        return value, gradient
    return value - laplace.value(x), pseudo_gradient(x, gradient, laplace.rate)


def measured(objective: ChainObjective, x: Floats) -> tuple[float, float]:
    """Value and relative gap at x."""
    value, slope = slopes(objective, x)
    return value, relative_gap(x, slope)


def certify(objective: ChainObjective, x: Floats) -> tuple[Certificate, float, float, float]:
    """The certificate at x, the log-likelihood, the objective, and the relative norm of the slope."""
    value, slope = slopes(objective, x)
    penalties = objective.penalties
    bound = None
    if penalties.gaussian is not None:
        # The objective is as strongly concave as the prior, whatever else is taken off it.
        bound = penalties.gaussian.loss_bound(slope)
    elif penalties.laplace is not None:
        bound = penalties.laplace.loss_bound(slope, x, -value)
    per_row = None if bound is None else bound / objective.weight
    certificate = Certificate(
        moment_gap=float(np.abs(slope).max(initial=0.0)),
        value_gap=per_row,
        bound=bound is not None,
        exact=True,
        exists=True if bound is not None else None,
        scale="counts, summed over sequences",
    )
    return certificate, value + penalties.value(x), value, relative_gap(x, slope)
