"""From an objective over labels to weights: the choice of a solver, early stopping, and how far from the end it is.

Conditional random fields of chains and of graphs differ in their objectives, stochastic steps and certificates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.checks import whole_number
from suffice.engines.workers import with_one_blas_thread
from suffice.errors import EstimateError, OptionError
from suffice.fitting.control import Control, Outcome, State
from suffice.models.conditional_field.curvature import CurvatureProducts, information
from suffice.models.conditional_field.objective import FieldObjective, relative_gap
from suffice.options import Idle
from suffice.solvers import registry
from suffice.solvers.registry import Objective, named

STOCHASTIC = ("sgd", "adam", "perceptron")
#: Options of updates.
_OF_UPDATES = ("step_size", "decay", "batch_size", "average", "shuffle", "expectations", "n_samples", "n_sweeps")
#: What takes the place of a solver where slopes are measured by Gibbs sampling.
ASCENT = "stochastic ascent"
#: Most weights for which a matrix of second derivatives is made.
NEWTON_WEIGHTS = 2000
SMALLER = "Use a smaller step_size"
EPSILON = float(np.finfo(np.float64).eps)
#: Changes of the gradient that L-BFGS remembers.
MEMORY = 8


#: A way up that is not one of the solvers here: from a start, under a control.
Climb = Callable[[Floats, Control], Outcome]


def check_solver(options: Mapping[str, Any]) -> None:
    """Refuse solvers that do not exist, and priors for one that has no objective."""
    registry.check_solver(options["solver"], ("auto", *STOCHASTIC))
    if options["solver"] == "perceptron" and options["prior"] is not None:
        raise OptionError("The perceptron has no objective that a prior could enter; give prior=None.")


def chosen_solver(solver: str, objective: FieldObjective[Any]) -> str:
    """The solver that "auto" stands for, and whether the one asked for can do the work."""
    rough, size = objective.penalties.laplace is not None, objective.structure.length
    if solver == "auto" or (solver == "lbfgs" and rough):
        return "owlqn" if rough else "lbfgs"
    if solver in STOCHASTIC:
        return solver
    asked = named(solver)
    if rough and asked.uses == "information":
        raise OptionError("A Laplace prior has no second derivative; use solver='owlqn' or a Normal prior.")
    if rough and not asked.corners:
        raise OptionError(f"solver={solver!r} follows slopes, and a Laplace prior has none at 0; use solver='owlqn'.")
    if asked.uses == "information" and size > NEWTON_WEIGHTS:
        raise OptionError(
            f"solver={solver!r} makes a matrix of {size} by {size}; it takes up to {NEWTON_WEIGHTS} weights. Use "
            "solver='lbfgs'."
        )
    return solver


def method_in_words(solver: str) -> str:
    """What a report calls a solver."""
    return solver if solver in (*STOCHASTIC, ASCENT) else named(solver).title


def climbed(
    objective: FieldObjective[Any],
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
        outcome = with_one_blas_thread(call, of_scipy=False)
    _refuse_far_weights(objective, outcome.state.parameters, solver)
    if best is not None:
        outcome = best.taken(outcome)
    return outcome


def _refuse_far_weights(objective: FieldObjective[Any], weights: Floats, solver: str) -> None:
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


def _solved(objective: FieldObjective[Any], start: Floats, control: Control, solver: str) -> Outcome:
    """By a solver of the registry.

    Second derivatives are central differences of the exact slope: two for each weight, or for each product.
    """
    method, laplace = named(solver), objective.penalties.laplace
    rate = np.zeros(len(start)) if laplace is None else laplace.rate
    return method.maximise(
        Objective(
            objective.smooth,
            start,
            control,
            information=lambda x: information(objective, x),
            products=lambda x: CurvatureProducts(objective, x),
            # Without a Laplace prior those that can turn corners find none.
            rate=rate if method.corners else None,
            gap=relative_gap,
            memory=MEMORY,
        )
    )


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
        warning = "" if reason == "early stopping" else outcome.warning
        return Outcome(state, False, reason, outcome.history[: number + 1], warning)


def idle_unless(updates: Callable[[Mapping[str, Any]], bool]) -> tuple[Idle, ...]:
    """Options that have no effect unless weights are updated by some examples at a time, or some are watched."""
    unused = "it is one of stochastic updates, and this solver takes all examples together (partial_fit makes updates)"
    return (
        *(Idle(name, lambda given: not updates(given), unused) for name in _OF_UPDATES),
        Idle("decay", lambda given: _says_all_steps(given["step_size"]), "step_size= says every step itself"),
        Idle("patience", lambda given: given["validation"] is None, "there are no examples to watch, validation="),
    )


def _says_all_steps(step_size: object) -> bool:
    return callable(step_size) or isinstance(step_size, list | tuple)
