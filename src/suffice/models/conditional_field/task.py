"""The fit of a conditional random field, whatever the shape of its graphs: read, climb, judge.

A shape (chains, graphs) says how examples are read, what their objective is and how its gradient is estimated from a
few of them; everything else is here.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from suffice.errors import OptionError
from suffice.fitting.contract import Found, Inputs, Judgement, Purpose
from suffice.fitting.control import Control, Outcome, State
from suffice.models.conditional_field.certificate import Measured, SlopeByChains, certify
from suffice.models.conditional_field.existence import NO_MAXIMUM, UNDECIDED, Standing
from suffice.models.conditional_field.fitted import FieldFitted
from suffice.models.conditional_field.learning import STOCHASTIC, Climb, climbed, method_in_words
from suffice.models.conditional_field.objective import FieldObjective, measured
from suffice.models.conditional_field.priors import Penalties, read_prior
from suffice.models.conditional_field.rank import FeatureRank
from suffice.models.conditional_field.stochastic import Plan, Stochastic

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
#: Standard errors that a fit with the usual tolerance may be away from the maximum.
AWAY, USUAL = 0.1, 1e-5
#: Options that do not change what is fitted.
LIMITS = frozenset({"max_iter", "max_seconds", "tolerance", "progress", "callback", "checkpoint", "threads"})
#: The mean log-likelihood of a validation set, as a function of the weights.
Watch = Callable[[Floats], float]


@dataclass(frozen=True, eq=False)
class FieldData:
    """Labelled examples that were read: codes of the labels of all places, and weights (n,) of the examples."""

    examples: Any
    codes: Ints
    weights: Floats
    structure: Any
    watch: Watch | None = None
    passes: int = 1

    @property
    def rows(self) -> int:
        """How many examples there are."""
        return len(self.examples)

    @property
    def weight(self) -> float:
        """How many they stand for."""
        return float(self.weights.sum())


Objective = TypeVar("Objective", bound=FieldObjective[Any])


@dataclass(frozen=True, eq=False)
class FieldTask(ABC, Generic[Objective]):
    """What a conditional random field declares, by its options."""

    options: Mapping[str, Any]
    #: Solvers whose next step does not follow from what a checkpoint holds.
    without_checkpoint: ClassVar[tuple[str, ...]] = ()

    # -- what a shape says -------------------------------------------------------------------------------------------

    @abstractmethod
    def read(self, given: Inputs, known: Any, purpose: Purpose) -> FieldData:
        """Examples and labels; with those of a fitted value that is known, where they join it."""

    @abstractmethod
    def objective(self, data: FieldData) -> Objective:
        """The penalised log-likelihood, or what takes its place."""

    @abstractmethod
    def stochastic(self, data: FieldData, objective: Objective, solver: str, *, online: bool = False) -> Stochastic:
        """The gradient from a few examples; online: examples in their order, each call for itself."""

    @abstractmethod
    def solver(self, objective: Objective) -> str:
        """The solver that is asked for, or that "auto" stands for."""

    @abstractmethod
    def moved(self, vector: Floats, before: Any, structure: Any) -> Floats:
        """Weights, or a vector beside them, of one structure in another one."""

    @abstractmethod
    def rank(self, data: FieldData, objective: Objective, *, bounded: bool) -> FeatureRank:
        """The number of weights that the examples tell apart, or a bound of it."""

    @abstractmethod
    def existence(self, data: FieldData, objective: Objective, weights: Floats, rank: FeatureRank) -> Standing:
        """Whether the likelihood has a maximum; weights (k,): where a fit ended."""

    @abstractmethod
    def fitted(self, data: FieldData, weights: Floats, rank: FeatureRank, updates: int, walk: Any) -> FieldFitted:
        """The fitted value."""

    @abstractmethod
    def plan_in_words(self, data: FieldData, objective: Objective) -> str:
        """How expectations are computed."""

    def chains(self, objective: Objective, weights: Floats) -> SlopeByChains | None:
        """The slope by fresh chains, where expectations are sampled; else None."""
        return None

    def notes(self, objective: Objective) -> tuple[str, ...]:
        """What a receipt says about an objective that is not the likelihood itself."""
        return ()

    # -- what follows ------------------------------------------------------------------------------------------------

    def climb(self, data: FieldData, objective: Objective, solver: str) -> Climb | None:
        """The way of a stochastic solver; None for others."""
        if solver not in STOCHASTIC:
            return None
        return partial(self.stochastic(data, objective, solver).run, gap=partial(measured, objective))

    def penalties(self, structure: Any) -> Penalties:
        """What the prior takes off."""
        return read_prior(self.options["prior"], structure.length)

    def plan(self, solver: str, *, expectations: str, online: bool = False) -> Plan:
        """How a stochastic fit goes through the examples."""
        options = self.options
        return Plan(
            solver,
            0.1 if options["step_size"] is None else options["step_size"],
            options["decay"],
            options["batch_size"],
            options["average"],
            options["shuffle"] and not online,
            expectations,
            options["n_samples"],
            options["n_sweeps"],
            options["random_state"],
        )

    def problem(self, data: FieldData, start: FieldFitted | None) -> FieldProblem:
        """The weights of these examples, from zeros or from where a start stands."""
        objective = self.objective(data)
        return FieldProblem(self, data, objective, self.start(data, start), self.solver(objective))

    def one_pass(self, data: FieldData, known: FieldFitted | None) -> OnePass:
        """One pass of stochastic ascent over these examples, by the updates asked for or else plain ones."""
        solver = self.options["solver"] if self.options["solver"] in STOCHASTIC else "sgd"
        return OnePass(self, data, self.objective(data), self.start(data, known), solver, before=known)

    def start(self, data: FieldData, known: FieldFitted | None) -> Floats:
        """The weights of a fitted value, or zeros."""
        if known is None:
            return np.zeros(data.structure.length)
        return self.moved(known.weights, known.structure, data.structure)


@dataclass(frozen=True, eq=False)
class FieldProblem:
    """Labelled examples meet weights."""

    task: FieldTask[Any]
    data: FieldData
    objective: FieldObjective[Any]
    start: Floats
    solver: str

    @property
    def estimate(self) -> str:
        """What is aimed at."""
        if self.solver == "perceptron":
            return "averaged perceptron"
        return "maximum likelihood" if self.task.options["prior"] is None else "posterior mode"

    def solve(self, control: Control) -> Found[FieldFitted]:
        """Climb to the maximum, or as far as the control lets."""
        task, data = self.task, self.data
        if control.checkpoint is not None and (self.solver in task.without_checkpoint or data.watch is not None):
            without = "".join(f"solver={name!r}, " for name in task.without_checkpoint)
            raise OptionError(
                f"checkpoint is for fits whose next step follows from the weights: not for {without}and not with a "
                "validation set."
            )
        outcome = climbed(
            self.objective,
            self.start,
            control,
            solver=self.solver,
            climb=task.climb(data, self.objective, self.solver),
            watch=data.watch,
            patience=task.options["patience"],
        )
        if self.solver == "perceptron":  # It has no objective, and so no end.
            outcome = replace(outcome, converged=False)
        return self.found(outcome, task.rank(data, self.objective, bounded=False))

    def found(self, outcome: Outcome, rank: FeatureRank, updates: int = 0, walk: Any = None) -> Found[FieldFitted]:
        """What was found, with its rank."""
        task, data = self.task, self.data
        return Found(
            task.fitted(data, outcome.state.parameters, rank, updates, walk or {}),
            method_in_words(self.solver),
            self.estimate,
            outcome,
            (*task.notes(self.objective), *rank.notes()),
            task.plan_in_words(data, self.objective),
        )

    def standing(self, fitted: FieldFitted) -> Standing | None:
        """Whether the likelihood has a maximum; None where the weights do not stand for one."""
        if self.solver == "perceptron":
            return None
        if self.task.options["prior"] is not None:
            return UNDECIDED
        return self.task.existence(self.data, self.objective, fitted.weights, fitted.rank)

    def judge(self, fitted: FieldFitted) -> Judgement:
        """Slope, bound and existence at the weights of a fitted value."""
        data = self.data
        chains = self.task.chains(self.objective, fitted.weights)
        found = certify(self.objective, fitted.weights, self.standing(fitted), chains)
        separated = found.certificate.exists is False
        shares = (data.codes, data.examples.offsets, data.weights)
        return Judgement(
            found.log_likelihood,
            found.objective,
            found.certificate,
            gap=self._distance(found),
            slope=found.slope,
            kept=found.totals.with_shares(*shares, data.structure.size),
            verdict=NO_MAXIMUM if separated else "",
            notes=(NO_MAXIMUM,) if separated else (),
        )

    def _distance(self, found: Measured) -> float:
        """How far from stationary a fit is, in the unit of its tolerance.

        That is relative to the norm of the weights, which hides the slope where weights are large, as those of features
        in small units are. The Newton decrement, in standard errors, has no unit.
        """
        certificate, tolerance = found.certificate, self.task.options["tolerance"]
        if certificate.monte_carlo is not None:  # Fresh chains have confirmed the fit, or have not.
            return 0.0
        if certificate.value_gap is not None and not certificate.bound:
            decrement = math.sqrt(2.0 * certificate.value_gap * self.objective.weight)
            if decrement > AWAY * max(1.0, tolerance / USUAL):
                return decrement
        return min(found.slope, certificate.moment_gap)

    def identity(self) -> Iterable[Any]:
        """The options but those that say how long to go on, the examples, and the start."""
        options = {name: _in_words(value) for name, value in self.task.options.items() if name not in LIMITS}
        data, structure = self.data, self.data.structure
        parts = (data.examples.arrays(), data.codes, data.weights, structure.arrays(), self.start)
        return type(self.task).__name__, self.solver, options, *parts, repr(structure.labels)


@dataclass(frozen=True, eq=False)
class OnePass(FieldProblem):
    """One pass over the examples, in their order, from where a fitted value stands."""

    before: FieldFitted | None = field(default=None, kw_only=True)

    def solve(self, control: Control) -> Found[FieldFitted]:
        """Go through the examples once; this makes no claim to have converged."""
        task, data, before = self.task, self.data, self.before
        run = task.stochastic(data, self.objective, self.solver, online=True)
        updates, walk = 0, {}
        if before is not None:
            updates, structures = before.updates, (before.structure, data.structure)
            walk = {name: task.moved(vector, *structures) for name, vector in before.walk.items()}
        after = run.epoch(run.memory_at(self.start, updates, walk))
        weights = after["mean"] if run.averaged else after["raw"]
        value, gap = measured(self.objective, weights)
        outcome = Outcome(State(weights, value, gap, iteration=1), False, "one pass", (value,))
        rank = task.rank(data, self.objective, bounded=True)
        return self.found(outcome, rank, int(after["updates"]), run.going_on(after))

    def standing(self, fitted: FieldFitted) -> None:
        """One pass is no maximum."""


def _in_words(value: Any) -> str:
    """An option in words that are the same in every process: functions have none."""
    if isinstance(value, Mapping):
        return repr({name: _in_words(inner) for name, inner in value.items()})
    return "a function" if callable(value) else repr(value)
