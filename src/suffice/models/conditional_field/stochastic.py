"""Fits that go through the examples a few at a time: stochastic ascent, Adam, and the structured perceptron.

The gradient of a minibatch D' is ``(1 / |D'|) sum over D' of [phi(y_n, x_n) - E phi(y, x_n)]``, an estimate of the MEAN
log-likelihood's gradient; steps go up it. Sampled expectations are means over draws of the labels given the example.
The prior belongs to the SUM, so its slope enters divided by the number of examples. An example of weight w_n enters
with ``w_n / u``: u is the mean weight in a fit, so that the mean over minibatches is the gradient of
``sum_n w_n log p_n / sum_n w_n``, and 1 in `partial_fit`, where each call stands for itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats, Ints
from suffice.checks import choice, positive, whole_number
from suffice.choices import ChainExpectations, choices
from suffice.errors import OptionError
from suffice.families.base import generator
from suffice.fitting.control import Control, Outcome, State, iterate
from suffice.models.conditional_field.labels import LARGEST
from suffice.models.conditional_field.priors import WeightPenalties
from suffice.solvers.online import step_sizes
from suffice.sources.held import Held

Measure = Callable[[Floats], tuple[float, float]]

#: Decay rates and guard of Adam.
FIRST, SECOND, GUARD = 0.9, 0.999, 1e-8


@dataclass(frozen=True)
class StochasticPlan:
    """How a stochastic fit goes through the examples.

    step: a number, a list of numbers, or a function of the update; expectations: "exact", "sampled" (independent draws)
    or "gibbs" (chains of samples that begin at the labels given and go on from update to update).
    """

    method: str = "sgd"
    step: Any = 0.1
    decay: float = 0.0
    batch: int = 1
    average: bool = False
    shuffle: bool = True
    expectations: str = "exact"
    samples: int = 10
    sweeps: int = 5
    seed: Any = None

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        choice(self.expectations, "expectations", choices(ChainExpectations))
        for name, value in (("batch_size", self.batch), ("n_samples", self.samples), ("n_sweeps", self.sweeps)):
            whole_number(value, name)
        _schedule(self.step, self.decay)


class LabelledPart(Protocol):
    """Some examples with their labels: codes (steps,), and which of the steps of all examples these are."""

    @property
    def codes(self) -> Ints:
        """Codes of the labels given."""

    @property
    def steps(self) -> Ints:
        """The numbers of the steps, or nodes, among those of all examples."""

    def observed(self, codes: Ints) -> Floats:
        """The features (k,) of labels (steps,), weighted and summed."""

    def slope(self, weights: Floats) -> Floats:
        """Observed less expected features (k,)."""

    def best_codes(self, weights: Floats) -> Ints:
        """The best labels (steps,)."""


P = TypeVar("P", bound=LabelledPart)


class Epochs(ABC):
    """Passes over the examples, from a memory to the next."""

    def __init__(self, plan: StochasticPlan) -> None:
        """How examples are gone through."""
        self.plan, self.rng = plan, generator(plan.seed)

    @abstractmethod
    def epoch(self, memory: dict[str, Any]) -> dict[str, Any]:
        """Go once through the examples; returns the new memory."""

    def run(self, start: Floats, control: Control, gap: Measure, *, problem: str = "") -> Outcome:
        """Epochs until a limit; the state after each is measured by the exact objective, and the last one is taken."""
        ended: list[State] = []

        def step(state: State) -> State:
            kept = self.epoch(state.memory)
            x = kept["mean"] if self.averaged else kept["raw"]
            value, distance = gap(x)
            after = State(x.copy(), value, distance, iteration=state.iteration + 1, memory=kept)
            ended[:] = [after]
            return after

        memory = self.memory_at(start, 0)
        value, distance = gap(start)
        outcome = iterate(step, State(start.copy(), value, distance, memory=memory), control, problem=problem)
        outcome = replace(outcome, warning="")  # A number of epochs is a plan here, not a limit that was hit.
        if not ended:
            return outcome
        before = min(value, gap(np.zeros_like(start))[0]) if start.any() else value
        if self.plan.method != "perceptron" and ended[0].objective < before - abs(before):
            runaway = (
                f"Stochastic ascent runs away: the objective is {ended[0].objective:.6g} after {ended[0].iteration} "
                f"passes and was {before:.6g} before the first. Its steps are too long; lower step_size, or raise "
                "decay."
            )
            outcome = replace(outcome, warning=runaway)
        return replace(outcome, state=ended[0])

    def memory_at(self, start: Floats, updates: int, walk: Mapping[str, Floats] | None = None) -> dict[str, Any]:
        """What the next epoch goes on from: weights, their mean, moments of the gradient, and the updates made.

        walk: what `going_on` said after the last of these updates.
        """
        zeros = np.zeros_like(start)
        memory = {"raw": start.copy(), "mean": start.copy(), "first": zeros, "second": zeros.copy(), "updates": updates}
        memory |= {name: value.copy() for name, value in (walk or {}).items()}
        return memory

    def going_on(self, memory: Mapping[str, Any]) -> dict[str, Floats]:
        """What a later call needs beside the weights returned to take the steps that one long run would take."""
        names = [*(["raw"] if self.averaged else []), *(["first", "second"] if self.plan.method == "adam" else [])]
        return {name: memory[name] for name in names}

    @property
    def averaged(self) -> bool:
        """Whether the mean of all updates is the answer."""
        return self.plan.average or self.plan.method == "perceptron"


class Stochastic(Epochs, Generic[P]):
    """One stochastic fit: its minibatches, its updates and its averages; gradients are those of the shape."""

    def __init__(
        self,
        size: int,
        codes: Ints,
        weights: Floats,
        penalties: WeightPenalties,
        plan: StochasticPlan,
        unit: float | None = None,
        count: int | None = None,
    ) -> None:
        """Codes of the labels, of which there are `size`; weights (n,); unit: the weight that counts once, or None.

        count: how many examples share the prior, those given unless told.
        """
        super().__init__(plan)
        self.size, self.codes, self.weights, self.penalties = size, codes, weights, penalties
        self.count = len(weights) if count is None else count
        self.unit = float(weights.mean()) if unit is None else unit
        self.schedule = _schedule(plan.step, plan.decay)
        #: Where the chains of samples of all examples stand (samples, places); none before an epoch begins.
        self._chains: NDArray[Any] = np.zeros((0, 0), np.uint8)

    @abstractmethod
    def part(self, chosen: Ints) -> P:
        """Some examples."""

    @abstractmethod
    def draws(self, part: P, x: Floats) -> Ints:
        """Draws (samples, steps) of the labels of some examples: from chains that go on, or independent ones."""

    def batch_gradient(self, x: Floats, chosen: Ints) -> Floats:
        """The gradient (k,) of the mean log-likelihood and of the prior's share, estimated by some examples."""
        part = self.part(chosen)
        if self.plan.expectations == "exact":
            slope = part.slope(x)
        else:
            expected = np.mean([part.observed(codes) for codes in self.draws(part, x)], axis=0)
            slope = part.observed(part.codes) - expected
        return np.asarray(slope / (len(chosen) * self.unit) - self._prior_slope(x))

    def perceptron_step(self, x: Floats, chosen: Ints) -> Floats:
        """The features (k,) of the labels less those of the best labels."""
        part = self.part(chosen)
        best = part.best_codes(x)
        return np.zeros_like(x) if (best == part.codes).all() else part.observed(part.codes) - part.observed(best)

    def _prior_slope(self, x: Floats) -> Floats:
        """The slope of the penalties, divided by the number of examples."""
        slope = self.penalties.smooth(x)[1]
        if self.penalties.laplace is not None:
            slope = slope + self.penalties.laplace.rate * np.sign(x)
        return np.asarray(slope / (self.unit * self.count))

    # -- chains of samples -------------------------------------------------------------------------------------------

    def standing(self, places: Ints) -> Ints:
        """Where the chains of some places stand (samples, len(places)): at their labels before the first update."""
        if self._chains.size:
            return self._chains[:, places].astype(np.int64)
        return np.tile(self.codes[places], (self.plan.samples, 1))

    def stand(self, places: Ints, paths: Ints) -> None:
        """Keep where the chains of some places came to."""
        if self._chains.size:
            self._chains[:, places] = paths

    # -- epochs ------------------------------------------------------------------------------------------------------

    def memory_at(self, start: Floats, updates: int, walk: Mapping[str, Floats] | None = None) -> dict[str, Any]:
        """What the next epoch goes on from, with chains of samples that stand at the labels given."""
        memory = super().memory_at(start, updates, walk)
        if self.plan.expectations == "gibbs" and self.plan.method != "perceptron":
            kind = np.uint8 if self.size <= 256 else np.int64
            memory["chains"] = np.tile(self.codes.astype(kind), (self.plan.samples, 1))
        return memory

    def batches(self) -> Iterator[Ints]:
        """The examples of each update of an epoch."""
        count = len(self.weights)
        order = self.rng.permutation(count) if self.plan.shuffle else np.arange(count)
        return (order[first : first + self.plan.batch] for first in range(0, count, self.plan.batch))

    def epoch(self, memory: dict[str, Any]) -> dict[str, Any]:
        """Go once through the examples; returns the new memory."""
        kept = copied(memory)
        for chosen in self.batches():
            self.update(kept, chosen)
        return kept

    def update(self, kept: dict[str, Any], chosen: Ints) -> None:
        """One step of ascent with some examples; their chains of samples go on from where they stood."""
        x, t = kept["raw"], int(kept["updates"])
        self._chains = kept.get("chains", self._chains)
        if self.plan.method == "perceptron":
            x += self.perceptron_step(x, chosen)
        elif self.plan.method == "adam":
            gradient = self.batch_gradient(x, chosen)
            kept["first"] = FIRST * kept["first"] + (1.0 - FIRST) * gradient
            kept["second"] = SECOND * kept["second"] + (1.0 - SECOND) * gradient**2
            first = kept["first"] / (1.0 - FIRST ** (t + 1))
            second = kept["second"] / (1.0 - SECOND ** (t + 1))
            x += self.schedule(t) * first / (np.sqrt(second) + GUARD)
        else:
            x += self.schedule(t) * self.batch_gradient(x, chosen)
        kept["updates"] = t + 1
        if self.averaged:
            kept["mean"] += (x - kept["mean"]) / (t + 1)


class EpochOfShard(Protocol):
    """One pass over the examples of a shard, from a memory to the next; it travels to where the shard is.

    A frozen data class, whose seed is set for each pass.
    """

    @property
    def plan(self) -> StochasticPlan:
        """How the examples are gone through."""

    def __call__(self, shard: Any, memory: dict[str, Any]) -> dict[str, Any]:
        """The memory after the updates of all minibatches of the shard."""


class ShardedStochastic(Epochs):
    """Stochastic ascent over held examples: shards are drawn, and each goes through its own examples.

    What goes from shard to shard is the memory of the ascent. Without `shuffle` the updates are those of all examples
    in one shard; a minibatch ends where its shard does.
    """

    def __init__(self, held: Held[Any], pass_over_shard: EpochOfShard) -> None:
        """See the class."""
        super().__init__(pass_over_shard.plan)
        self.held, self.pass_over_shard = held, pass_over_shard
        if self.plan.expectations == "gibbs" and self.plan.method != "perceptron":
            raise OptionError(
                "expectations='gibbs' keeps chains beside all examples, and these are in several shards. Use "
                "expectations='sampled' or 'exact'."
            )

    def epoch(self, memory: dict[str, Any]) -> dict[str, Any]:
        """Go once through the shards; returns the new memory."""
        shards = np.arange(self.held.shards)
        for shard in (self.rng.permutation(shards) if self.plan.shuffle else shards).tolist():
            plan = replace(self.plan, seed=int(self.rng.integers(2**62)))
            memory = self.held.sum(memory, replace(self.pass_over_shard, plan=plan), shards=[shard])  # type: ignore[type-var]
        return memory


def copied(memory: Mapping[str, Any]) -> dict[str, Any]:
    """A memory whose arrays an epoch may change."""
    return {name: value.copy() if hasattr(value, "copy") else value for name, value in memory.items()}


def _schedule(step: Any, decay: float) -> Callable[[int], float]:
    """Steps of updates 0, 1, ...: from a number with its decay, a function, or a list whose last entry stays."""
    if isinstance(step, list | tuple | np.ndarray):
        try:
            sizes = np.asarray(step, np.float64).ravel().tolist()
        except (TypeError, ValueError):
            sizes = []
        if not sizes or not all(0.0 < value <= LARGEST for value in sizes):
            raise OptionError(f"step_size is {step!r}; expected positive numbers of at most {LARGEST:g}.")
        return lambda t: sizes[min(t, len(sizes) - 1)]
    sizes_by_decay = step_sizes(step, decay)
    if not callable(step):
        positive(step, "step_size", LARGEST)
    return sizes_by_decay
