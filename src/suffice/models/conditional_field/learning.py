"""From an objective over labels to weights: the choice of a solver, early stopping, and how far from the end it is.

Conditional random fields of chains and of graphs differ in their objectives, stochastic steps and certificates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from suffice.checks import choice, whole_number
from suffice.engines.workers import with_one_blas_thread
from suffice.errors import EstimateError, OptionError
from suffice.fitting.control import Control, Outcome, State
from suffice.models.conditional_field.priors import Penalties
from suffice.solvers.gradient import lbfgs, owlqn, pseudo_gradient
from suffice.solvers.newton import damped_newton

Floats = NDArray[np.float64]

SOLVERS = ("auto", "lbfgs", "owlqn", "newton", "sgd", "adam", "perceptron")
STOCHASTIC = ("sgd", "adam", "perceptron")
#: Most weights for which a matrix of second derivatives is made.
NEWTON_WEIGHTS = 2000
#: Rounding of a second derivative, as a share of the sum of a feature: that of gradients over a step of 1e-4.
FLAT = 1e-11
SMALLER = "Use a smaller step_size"
EPSILON = float(np.finfo(np.float64).eps)
#: Changes of the gradient that L-BFGS remembers.
MEMORY = 8


#: A way up that is not one of the solvers here: from a start, under a control.
Climb = Callable[[Floats, Control], Outcome]


class LabelObjective(Protocol):
    """A log-likelihood, or what takes its place, less the penalties of a prior."""

    @property
    def penalties(self) -> Penalties:
        """What the prior takes off."""

    @property
    def features(self) -> Floats:
        """Sums of the features over the labels given (k,)."""

    @property
    def weight(self) -> float:
        """How many examples there are."""

    @property
    def structure(self) -> Any:
        """The weights there are."""

    @property
    def examples(self) -> str:
        """What a receipt calls the examples."""

    @property
    def exact(self) -> bool:
        """Whether every expectation is exact."""

    @property
    def concave(self) -> bool:
        """Whether what was maximised is concave and known, so that a prior bounds what is left of it."""

    @property
    def at_most_one(self) -> bool:
        """Whether what takes the place of a probability is at most 1, so that with a prior there is a maximum."""

    @property
    def engine_in_words(self) -> str:
        """How expectations were computed that are not exact; empty where all are."""

    def observed(self) -> Floats:
        """The features (k,) of the labels of all examples, weighted and summed, also those of other engines."""

    def smooth(self, weights: Floats) -> tuple[float, Floats]:
        """Value and slope (k,) without a Laplace penalty."""


def relative_gap(x: Floats, slopes: Floats) -> float:
    """The norm of the slopes relative to that of the weights, at least 1."""
    return float(np.linalg.norm(slopes)) / max(1.0, float(np.linalg.norm(x)))


def check_solver(options: Mapping[str, Any]) -> None:
    """Refuse solvers that do not exist, and priors for one that has no objective."""
    choice(options["solver"], "solver", SOLVERS)
    if options["solver"] == "perceptron" and options["prior"] is not None:
        raise OptionError("The perceptron has no objective that a prior could enter; give prior=None.")


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


def climbed(
    objective: LabelObjective,
    start: Floats,
    control: Control,
    *,
    solver: str,
    climb: Climb | None = None,
    watch: Callable[[Floats], float] | None = None,
    patience: int = 5,
) -> Outcome:
    """Maximise the objective from a start.

    climb: the way of a stochastic solver. watch: the mean log-likelihood of a validation set at given weights; the fit
    ends when it has not risen for `patience` iterations. However the fit ends, the best weights by it are taken.
    """
    best = Best(watch, patience, control.callback, start) if watch is not None else None
    if best is not None:
        control = replace(control, callback=best)

    def call() -> Outcome:
        if climb is None:
            return _solved(objective, start, control, solver)
        try:
            return climb(start, control)
        except EstimateError as error:
            raise EstimateError(f"{error} {SMALLER}, or give a prior.") from None

    # Threads of BLAS for the long vectors of the solver would fight with ours for the same cores.
    with np.errstate(over="ignore", invalid="ignore"):  # What is not a number ends a fit, and is told there.
        outcome = with_one_blas_thread(call)
    _refuse_far_weights(objective, outcome.state.parameters, solver)
    if best is not None:
        outcome = best.taken(outcome)
    return outcome


def _refuse_far_weights(objective: LabelObjective, weights: Floats, solver: str) -> None:
    """Raise where weights are so large that the scores of an example are told apart no more."""
    with np.errstate(over="ignore", invalid="ignore"):
        score = float(np.abs(objective.features) @ np.abs(weights)) / objective.weight
    if not score * EPSILON < 0.01:
        largest = float(np.abs(weights).max())
        what = SMALLER if solver in STOCHASTIC else "Divide features by their largest values"
        raise EstimateError(
            f"The fit took a weight to {largest:.1e}, where float64 cannot tell the scores of labels apart. {what}, or "
            "give a prior."
        )


def _solved(objective: LabelObjective, start: Floats, control: Control, solver: str) -> Outcome:
    if solver == "newton":
        return _newton(objective, start, control)
    if solver == "owlqn":
        laplace = objective.penalties.laplace
        rate = np.zeros(len(start)) if laplace is None else laplace.rate
        return owlqn(objective.smooth, rate, start, control, memory=MEMORY, gap=relative_gap)
    return lbfgs(objective.smooth, start, control, memory=MEMORY, gap=relative_gap)


class Best:
    """The best weights so far by a validation set, the start among them; says stop when patience is over."""

    def __init__(
        self,
        watch: Callable[[Floats], float],
        patience: int,
        inner: Callable[[State], Any] | None,
        start: Floats,
    ) -> None:
        self.watch, self.patience, self.inner = watch, whole_number(patience, "patience"), inner
        self.value, self.waited, self.ended = watch(start), 0, False
        self.weights, self.state = start.copy(), State(start.copy(), math.nan, math.inf)
        self.last = self.weights

    def __call__(self, state: State) -> bool:
        """Look at a state; True ends the fit."""
        # Some methods keep their answer for many updates while they measure it: that is no lack of a rise.
        if not np.array_equal(state.parameters, self.last):
            self._judge(state)
        self.ended = self.waited >= self.patience
        stop = self.inner is not None and self.inner(state) is True
        return stop or self.ended

    def _judge(self, state: State) -> None:
        value, self.last = self.watch(state.parameters), state.parameters.copy()
        if value > self.value:
            self.value, self.waited = value, 0
            self.weights, self.state = self.last, state
        else:
            self.waited += 1

    def taken(self, outcome: Outcome) -> Outcome:
        """The outcome with the best state; its history ends there, and it has converged only if it is the optimum."""
        if not self.ended and np.array_equal(self.weights, outcome.state.parameters):
            return outcome
        number = self.state.iteration
        state = replace(self.state, parameters=self.weights, objective=outcome.history[number])
        reason = "early stopping" if self.ended or outcome.converged else outcome.stop_reason
        return Outcome(state, False, reason, outcome.history[: number + 1])


def _newton(objective: LabelObjective, start: Floats, control: Control) -> Outcome:
    """Newton's method; second derivatives are central differences of the exact gradient, two for each weight.

    Without a prior they are singular: adding a number to the weights of a feature for all labels changes nothing. Of
    all steps the shortest is taken.
    """
    if len(start) > NEWTON_WEIGHTS:
        raise OptionError(
            f"solver='newton' makes a matrix of {len(start)} by {len(start)}; it takes up to {NEWTON_WEIGHTS} weights. "
            "Use solver='lbfgs'."
        )
    return damped_newton(objective.smooth, lambda x: information(objective, x), start, control)


def information(objective: LabelObjective, x: Floats) -> Floats:
    """Minus the matrix of second derivatives (k, k): the covariance of the features, and the prior's precision.

    Without a prior some directions change nothing: gradients are 0 along them, so that rows show them exactly, while
    columns have the error of differences. They are taken out: an error of 1e-8 over a curvature of 1e-12 would send the
    weights far away.
    """
    found = np.empty((len(x), len(x)))
    for place in range(len(x)):
        size = 1e-4 * max(1.0, abs(float(x[place])))
        moved = x.copy()
        moved[place] += size
        ahead = objective.smooth(moved)[1]
        moved[place] -= 2.0 * size
        found[place] = (objective.smooth(moved)[1] - ahead) / (2.0 * size)
    if objective.penalties.gaussian is not None:  # It bends the objective everywhere.
        return 0.5 * (found + found.T)
    _, curvatures, rows = np.linalg.svd(found)
    least = FLAT * (10.0 * float(curvatures.max(initial=0.0)) + float(np.abs(objective.features).max(initial=0.0)))
    rows = rows[curvatures > least]
    within = rows @ found @ rows.T
    return np.asarray(0.5 * rows.T @ (within + within.T) @ rows)


def slopes(objective: LabelObjective, x: Floats) -> tuple[float, Floats, Floats]:
    """Value and slope of the whole objective, and the slope of its log-likelihood.

    With a Laplace prior the slope is the one of least size.
    """
    value, gradient = objective.smooth(x)
    likelihood = gradient + objective.penalties.smooth(x)[1]
    laplace = objective.penalties.laplace
    if laplace is None:
        return value, gradient, likelihood
    return value - laplace.value(x), pseudo_gradient(x, gradient, laplace.rate), likelihood


def measured(objective: LabelObjective, x: Floats) -> tuple[float, float]:
    """Value and relative gap at x."""
    value, slope, _ = slopes(objective, x)
    return value, relative_gap(x, slope)
