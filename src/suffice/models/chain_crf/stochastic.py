"""Fits that go through the sequences a few at a time: stochastic ascent, Adam, and the structured perceptron.

The gradient of a minibatch D' is ``(1 / |D'|) sum over D' of [phi(y_n, x_n) - E phi(y, x_n)]``, an estimate of the MEAN
log-likelihood's gradient. The prior belongs to the SUM, so its slope enters divided by the number of sequences.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.engines.chain_gibbs import gibbs
from suffice.errors import ConvergenceWarning, OptionError
from suffice.iteration import Control, Outcome, State, iterate
from suffice.models.chain_crf.features import Sequences
from suffice.models.chain_crf.objective import EVALUATIONS, Block, subset
from suffice.models.chain_crf.structure import Structure
from suffice.solvers.online import step_sizes

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Measure = Callable[[Floats], tuple[float, float]]

#: Decay rates and guard of Adam.
FIRST, SECOND, GUARD = 0.9, 0.999, 1e-8


@dataclass(frozen=True)
class Plan:
    """How a stochastic fit goes through the sequences.

    step: a number, a list of numbers, or a function of the update; expectations: "exact", "sampled" (independent paths)
    or "gibbs" (chains of samples started at the labels given).
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
        if self.expectations not in ("exact", "sampled", "gibbs"):
            raise OptionError(f"expectations is {self.expectations!r}; expected 'exact', 'sampled' or 'gibbs'.")
        for name in ("batch", "samples", "sweeps"):
            value = getattr(self, name)
            if not (isinstance(value, int | np.integer) and value >= 1):
                shown = {"batch": "batch_size", "samples": "n_samples", "sweeps": "n_sweeps"}[name]
                raise OptionError(f"{shown} is {value!r}; expected a whole number of at least 1.")


class Stochastic:
    """One stochastic fit: its minibatches, its updates and its averages."""

    def __init__(
        self, structure: Structure, sequences: Sequences, codes: Ints, weights: Floats, penalties: Any, plan: Plan
    ) -> None:
        """Codes (steps,) and weights (n,) as in the objective."""
        self.structure, self.sequences, self.codes, self.weights = structure, sequences, codes, weights
        self.penalties, self.plan = penalties, plan
        self.rng = np.random.default_rng(plan.seed)
        self.total = float(weights.sum())
        self.schedule = _schedule(plan.step, plan.decay)

    def batch_gradient(self, x: Floats, chosen: Ints) -> Floats:
        """The gradient (k,) of the mean log-likelihood and of the prior's share, estimated by some sequences."""
        block, codes = self._block(chosen)
        if self.plan.expectations == "exact":
            expected = block.expected(x)[1]
        else:
            expected = self._sampled(block, codes, x)
        found = (block.observed(codes) - expected) / max(float(self.weights[chosen].sum()), 1e-300)
        return found - self._prior_slope(x)

    def _prior_slope(self, x: Floats) -> Floats:
        """The slope of the penalties, divided by the number of sequences."""
        slope = self.penalties.smooth(x)[1]
        if self.penalties.laplace is not None:
            slope = slope + self.penalties.laplace.rate * np.sign(x)
        return np.asarray(slope / self.total)

    def _block(self, chosen: Ints) -> tuple[Block, Ints]:
        part, places = subset(self.sequences, chosen)
        codes = self.codes[places]
        return Block(self.structure, part, self.weights[chosen], threads=1, once=True), codes

    def _sampled(self, block: Block, codes: Ints, x: Floats) -> Floats:
        """Expected features by samples: from chains of samples that start at the labels, or independent ones."""
        plan = self.plan
        paths = np.empty((plan.samples, len(codes)), np.int64)
        for chains, steps in block.steps.chains(block.parts(x)):
            here = slice(*steps)
            if plan.expectations == "gibbs":
                paths[:, here] = gibbs(chains, np.tile(codes[here], (plan.samples, 1)), plan.sweeps, self.rng)
            else:
                paths[:, here] = chains.sample(plan.samples, random_state=self.rng, threads=1, calls=EVALUATIONS)
        return np.asarray(np.mean([block.observed(path) for path in paths], axis=0))

    def perceptron_step(self, x: Floats, chosen: Ints) -> Floats:
        """The features of the labels less those of the best path."""
        block, codes = self._block(chosen)
        best = [
            chains.best_paths(threads=1, calls=EVALUATIONS)[0][0] for chains, _ in block.steps.chains(block.parts(x))
        ]
        path = np.concatenate(best)
        return np.zeros_like(x) if (path == codes).all() else block.observed(codes) - block.observed(path)

    # -- epochs ------------------------------------------------------------------------------------------------------

    def run(self, start: Floats, control: Control, gap: Measure, *, problem: str = "") -> Outcome:
        """Epochs until a limit; the state after each is measured by the exact objective, and the last one is taken."""
        ended: list[State] = []

        def step(state: State) -> State:
            kept = self.epoch(state.memory)
            x = kept["mean"] if self.averaged else kept["raw"]
            value, distance = gap(x)
            found = State(x.copy(), value, distance, iteration=state.iteration + 1, memory=kept)
            ended[:] = [found]
            return found

        memory = self.memory_at(start, 0)
        value, distance = gap(start)
        with warnings.catch_warnings():
            # A number of epochs is a plan here, not a limit that was hit.
            warnings.simplefilter("ignore", ConvergenceWarning)
            outcome = iterate(step, State(start.copy(), value, distance, memory=memory), control, problem=problem)
        return replace(outcome, state=ended[0]) if ended else outcome

    def memory_at(self, start: Floats, updates: int) -> dict[str, Any]:
        """What the next epoch goes on from: weights, their mean, moments of the gradient, and the updates made."""
        zeros = np.zeros_like(start)
        return {"raw": start.copy(), "mean": start.copy(), "first": zeros, "second": zeros.copy(), "updates": updates}

    @property
    def averaged(self) -> bool:
        """Whether the mean of all updates is the answer."""
        return self.plan.average or self.plan.method == "perceptron"

    def epoch(self, memory: dict[str, Any]) -> dict[str, Any]:
        """Go once through the sequences; returns the new memory."""
        kept = {name: value.copy() if hasattr(value, "copy") else value for name, value in memory.items()}
        count = len(self.sequences)
        order = self.rng.permutation(count) if self.plan.shuffle else np.arange(count)
        for first in range(0, count, self.plan.batch):
            self.update(kept, order[first : first + self.plan.batch])
        return kept

    def update(self, kept: dict[str, Any], chosen: Ints) -> None:
        """One step of ascent with some sequences."""
        x, t = kept["raw"], int(kept["updates"])
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


def _schedule(step: Any, decay: float) -> Callable[[int], float]:
    """Steps of updates 0, 1, ...: from a number with its decay, a function, or a list whose last entry stays."""
    if isinstance(step, list | tuple | np.ndarray):
        sizes = [float(value) for value in step]
        if not sizes or not all(value > 0.0 for value in sizes):
            raise OptionError(f"step_size is {step!r}; expected positive numbers.")
        return lambda t: sizes[min(t, len(sizes) - 1)]
    return step_sizes(step, decay)
