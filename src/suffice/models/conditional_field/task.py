"""The fit of a conditional random field, whatever the shape of its graphs: read, climb, judge.

A shape (chains, graphs) says how examples are read, what their objective is and how its gradient is estimated from a
few of them; everything else is here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from suffice.array_types import Floats, Ints
from suffice.errors import DataError, OptionError
from suffice.fitting.contract import Found, Inputs, Judgement, Purpose
from suffice.fitting.control import LIMITS, Control, Outcome, State
from suffice.models.conditional_field.certificate import SlopeByChains, certify
from suffice.models.conditional_field.decoding import Examples
from suffice.models.conditional_field.existence import (
    UNDECIDED,
    FieldExistence,
    SeparableLabels,
    along_known_directions,
    check_existence,
)
from suffice.models.conditional_field.fitted import FieldFitted
from suffice.models.conditional_field.labels import (
    SEQUENCES,
    Words,
    check_labels,
    listed_labels,
    read_labels,
    sequence_weights,
)
from suffice.models.conditional_field.learning import STOCHASTIC, Climb, chosen_solver, climbed, method_in_words
from suffice.models.conditional_field.objective import FieldObjective, S, measured
from suffice.models.conditional_field.priors import WeightPenalties, read_prior
from suffice.models.conditional_field.rank import FeatureRank
from suffice.models.conditional_field.shards import LabelledShard, extent, label_counts
from suffice.models.conditional_field.stochastic import Epochs, StochasticPlan
from suffice.models.conditional_field.tables import FieldTable, TableForm
from suffice.sources.held import Held, HeldHere

#: The mean log-likelihood of a validation set, as a function of the weights.
Watch = Callable[[Floats], float]


Field = TypeVar("Field", bound=FieldObjective[Any])
E = TypeVar("E", bound=Examples)
D = TypeVar("D", bound="FieldData[Any]")


@dataclass(frozen=True, eq=False)
class FieldData(Generic[E]):
    """Labelled examples, held where they are: how many there are, their steps, and how many examples they stand for."""

    held: Held[Any]
    structure: Any
    rows: int
    steps: int
    weight: float
    watch: Watch | None = None
    passes: int = 1

    @classmethod
    def of(cls, held: Held[Any], structure: Any, **more: Any) -> Self:
        """With the numbers of what is held; more: other fields."""
        rows, steps, weight = held.sum(None, extent).tolist()
        return cls(held, structure, int(rows), int(steps), weight, **more)

    def close(self) -> None:
        """Let the examples go."""
        self.held.close()

    @property
    def together(self) -> bool:
        """Whether all examples are one shard in this process."""
        return isinstance(self.held, HeldHere) and self.held.shards == 1

    @property
    def shard(self) -> LabelledShard[E]:
        """All examples, where they are one shard in this process."""
        if not isinstance(self.held, HeldHere) or self.held.shards != 1:
            raise AssertionError("These examples are in several shards.")
        shard: LabelledShard[E] = self.held.prepared[0]
        return shard

    @property
    def examples(self) -> E:
        """All examples, where they are in this process."""
        return self.shard.examples

    @property
    def codes(self) -> Ints:
        """Codes (steps,) of their labels."""
        return self.shard.codes

    @property
    def weights(self) -> Floats:
        """How often each of them counts (n,)."""
        return self.shard.weights


@dataclass(frozen=True, eq=False)
class FieldTask(ABC, Generic[Field, E, D, S]):
    """What a conditional random field declares, by its options."""

    options: Mapping[str, Any]
    #: Solvers whose next step does not follow from what a checkpoint holds.
    without_checkpoint: ClassVar[tuple[str, ...]] = ()
    #: What messages call the things that have labels, and what has one label.
    words: ClassVar[Words] = SEQUENCES
    #: How a table of examples is laid out.
    form: ClassVar[type[TableForm]] = TableForm

    # -- what a shape says -------------------------------------------------------------------------------------------

    @abstractmethod
    def table(self, X: object, form: Any, y: object = None, sample_weight: object = None) -> FieldTable[Any, Any]:
        """A table of examples that is open."""

    @abstractmethod
    def listed(self, X: Iterable[Any]) -> list[Any]:
        """The examples that a user gives, in a list."""

    @abstractmethod
    def coded(self, listed: list[Any], known: FieldFitted[S] | None) -> E:
        """The examples of a list, with the features of a fitted value, where one is known."""

    @abstractmethod
    def compared(self, X: Iterable[Any], y: Iterable[Any], structure: S) -> tuple[Any, Ints]:
        """Examples and codes of their labels that a structure must know."""

    @abstractmethod
    def structured(
        self,
        examples: E,
        named: Any,
        codes: Ints,
        labels: tuple[Any, ...],
        weights: Floats,
        known: FieldFitted[S] | None,
    ) -> D:
        """The data of labelled examples: named labels, their codes (steps,), and weights (n,) of the examples."""

    @abstractmethod
    def together(self, examples: Any, codes: Ints, weights: Floats, structure: S) -> D:
        """Labelled examples in this process, as one shard."""

    @abstractmethod
    def objective(self, data: D) -> Field:
        """The penalised log-likelihood, or what takes its place."""

    @abstractmethod
    def stochastic(self, data: D, objective: Field, solver: str, *, online: bool = False) -> Epochs:
        """The gradient from a few examples; online: examples in their order, each call for itself."""

    @abstractmethod
    def moved(self, vector: Floats, before: S, structure: S) -> Floats:
        """Weights, or a vector beside them, of one structure in another one."""

    @abstractmethod
    def rank(self, data: D, objective: Field, *, bounded: bool) -> FeatureRank:
        """The number of weights that the examples tell apart, or a bound of it."""

    @abstractmethod
    def separable(self, data: D, objective: Field) -> SeparableLabels | None:
        """The labels given, to be told from all others; None where that says nothing about the objective."""

    @abstractmethod
    def fitted(
        self, data: D, weights: Floats, rank: FeatureRank, updates: int, walk: Mapping[str, Floats]
    ) -> FieldFitted[Any]:
        """The fitted value."""

    @abstractmethod
    def plan_in_words(self, data: D, objective: Field) -> str:
        """How expectations are computed."""

    @abstractmethod
    def marks(self, data: D) -> Iterable[Any]:
        """What tells labelled examples from others."""

    def given_labels(self, y: Iterable[Any], examples: E) -> Any:
        """The labels that a user gives, as one list for each example."""
        return listed_labels(y, examples.offsets, words=self.words)

    def declared(self, known: FieldFitted[S] | None) -> tuple[Any, ...] | None:
        """The labels there may be; None: those seen."""
        return None if self.options["labels"] is None else check_labels(self.options["labels"])

    def solver(self, objective: Field) -> str:
        """The solver asked for, or the one that "auto" stands for."""
        return chosen_solver(self.options["solver"], objective)

    def chains(self, objective: Field, weights: Floats) -> SlopeByChains | None:
        """The slope by fresh chains, where expectations are sampled; else None."""
        return None

    def notes(self, objective: Field) -> tuple[str, ...]:
        """What a receipt says about an objective that is not the likelihood itself."""
        return ()

    # -- reading -----------------------------------------------------------------------------------------------------

    def read(self, given: Inputs, known: FieldFitted[S] | None, purpose: Purpose) -> D:
        """Examples and labels; with those of a fitted value that is known, where they join it."""
        listed = self.listed(given.data)
        examples = self.coded(listed, known)
        named = self.given_labels(given["y"], examples)
        weights = sequence_weights(given["sample_weight"], len(examples), words=self.words)
        declared = self.declared(known)
        codes, labels = read_labels(named, examples.offsets, declared, words=self.words)
        if not weights.all():  # Read first as they stand, so that an error names the example that the user knows.
            kept = np.flatnonzero(weights).tolist()
            examples, weights = self.coded([listed[number] for number in kept], known), weights[kept]
            named = [named[number] for number in kept]
            codes, labels = read_labels(named, examples.offsets, declared, words=self.words)
        data = self.structured(examples, named, codes, labels, weights, known)
        if given["validation"] is None:
            return data
        return replace(data, watch=self.watch(given["validation"], data.structure))

    def watch(self, validation: tuple[Any, Any] | list[Any], structure: S) -> Watch:
        """The mean log-likelihood of a validation set, or what takes its place, as a function of the weights."""
        if not isinstance(validation, tuple | list) or len(validation) != 2:
            raise OptionError(f"validation is no pair; expected (X, y), {self.words[0]}s and their labels.")
        try:
            examples, codes = self.compared(validation[0], validation[1], structure)
        except DataError as error:
            raise type(error)(f"In the validation set: {error}") from None
        data = self.together(examples, codes, np.ones(len(examples)), structure)
        objective = type(self)({**self.options, "prior": None}).objective(data)
        return lambda weights: objective.log_likelihood(weights) / len(examples)

    # -- what follows ------------------------------------------------------------------------------------------------

    def climb(self, data: D, objective: Field, solver: str) -> Climb | None:
        """The way of a stochastic solver; None for others."""
        if solver not in STOCHASTIC:
            return None
        return partial(self.stochastic(data, objective, solver).run, gap=partial(measured, objective))

    def penalties(self, structure: S) -> WeightPenalties:
        """What the prior takes off."""
        return read_prior(self.options["prior"], structure.length)

    def plan(self, solver: str, *, expectations: str, online: bool = False) -> StochasticPlan:
        """How a stochastic fit goes through the examples."""
        options = self.options
        return StochasticPlan(
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

    def problem(self, data: D, start: FieldFitted[Any] | None) -> FieldProblem:
        """The weights of these examples, from zeros or from where a start stands."""
        objective = self.objective(data)
        return FieldProblem(self, data, objective, self.start(data, start), self.solver(objective))

    def one_pass(self, data: D, known: FieldFitted[Any] | None) -> OneFieldPass:
        """One pass of stochastic ascent over these examples, by the updates asked for or else plain ones."""
        solver = self.options["solver"] if self.options["solver"] in STOCHASTIC else "sgd"
        return OneFieldPass(self, data, self.objective(data), self.start(data, known), solver, before=known)

    def start(self, data: D, known: FieldFitted[Any] | None) -> Floats:
        """The weights of a fitted value, or zeros."""
        if known is None:
            return np.zeros(data.structure.length)
        return self.moved(known.weights, known.structure, data.structure)


@dataclass(frozen=True, eq=False)
class FieldProblem:
    """Labelled examples meet weights."""

    task: FieldTask[Any, Any, Any, Any]
    data: FieldData[Any]
    objective: FieldObjective[Any]
    start: Floats
    solver: str

    @property
    def estimate(self) -> str:
        """What is aimed at."""
        if self.solver == "perceptron":
            return "averaged perceptron"
        return "maximum likelihood" if self.task.options["prior"] is None else "MAP"

    def solve(self, control: Control) -> Found[FieldFitted[Any]]:
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
        return self.solution(outcome, task.rank(data, self.objective, bounded=False))

    def solution(
        self, outcome: Outcome, rank: FeatureRank, updates: int = 0, walk: Mapping[str, Floats] | None = None
    ) -> Found[FieldFitted[Any]]:
        """What was found, with its rank."""
        task, data = self.task, self.data
        if self.objective.penalties.laplace is not None:  # Weights that it holds at 0 are not estimated.
            rank = replace(rank, value=min(rank.value, int(np.count_nonzero(outcome.state.parameters))))
        return Found(
            task.fitted(data, outcome.state.parameters, rank, updates, walk or {}),
            method_in_words(self.solver),
            self.estimate,
            outcome,
            (*task.notes(self.objective), *rank.notes()),
            task.plan_in_words(data, self.objective),
        )

    def existence(self, fitted: FieldFitted[Any]) -> FieldExistence | None:
        """Whether the likelihood has a maximum; None where the weights do not stand for one."""
        if self.solver == "perceptron":
            return None
        if self.task.options["prior"] is not None:
            return UNDECIDED
        labels = self.task.separable(self.data, self.objective)
        return UNDECIDED if labels is None else check_existence(labels, self.objective, fitted.weights, fitted.rank)

    def judge(self, fitted: FieldFitted[Any]) -> Judgement:
        """Slope, bound and existence at the weights of a fitted value."""
        objective = self.objective
        counts = self.data.held.sum(self.data.structure.size, label_counts)
        return certify(
            objective,
            fitted.weights,
            np.asarray(counts / counts.sum()),
            self.task.options["tolerance"],
            self.existence(fitted),
            self.task.chains(objective, fitted.weights),
        )

    def identity(self) -> Iterable[Any]:
        """The options but those that say how long to go on, the examples, and the start."""
        options = {name: _in_words(value) for name, value in self.task.options.items() if name not in LIMITS}
        data, structure = self.data, self.data.structure
        parts = (*self.task.marks(data), structure.arrays(), self.start)
        return type(self.task).__name__, self.solver, options, *parts, repr(structure.labels)


@dataclass(frozen=True, eq=False)
class OneFieldPass(FieldProblem):
    """One pass over the examples, in their order, from where a fitted value stands."""

    before: FieldFitted[Any] | None = field(default=None, kw_only=True)

    def solve(self, control: Control) -> Found[FieldFitted[Any]]:
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
        return self.solution(outcome, rank, int(after["updates"]), run.going_on(after))

    def existence(self, fitted: FieldFitted[Any]) -> FieldExistence:
        """Whether the examples of a first call are seen to be separated; of later calls the earlier ones are gone."""
        if self.before is not None or self.task.options["prior"] is not None:
            return UNDECIDED
        labels = self.task.separable(self.data, self.objective)
        return UNDECIDED if labels is None else along_known_directions(labels, self.objective, fitted.weights)


def _in_words(value: Any) -> str:
    """An option in words that are the same in every process: functions have none."""
    if isinstance(value, Mapping):
        return repr({name: _in_words(inner) for name, inner in value.items()})
    return "a function" if callable(value) else repr(value)
