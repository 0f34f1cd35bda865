"""Fits that go through the sequences a few at a time: stochastic ascent, Adam, and the structured perceptron.

The gradient of a minibatch D' is ``(1 / |D'|) sum over D' of [phi(y_n, x_n) - E phi(y, x_n)]``, an estimate of the MEAN
log-likelihood's gradient. The prior belongs to the SUM, so its slope enters divided by the number of sequences. A
sequence of weight w_n enters with ``w_n / u``: u is the mean weight in a fit, so that the mean over minibatches is the
gradient of ``sum_n w_n log p_n / sum_n w_n``, and 1 in `partial_fit`, where each call stands for itself.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.engines.chain_gibbs import gibbs
from suffice.errors import ConvergenceWarning, OptionError
from suffice.families.base import generator
from suffice.fitting.control import Control, Outcome, State, iterate
from suffice.models.chain_crf.features import Sequences
from suffice.models.chain_crf.names import LARGEST
from suffice.models.chain_crf.objective import EVALUATIONS, Block, subset
from suffice.models.chain_crf.sparse_updates import Residuals, SparseEpoch, uniform_pull
from suffice.models.chain_crf.structure import Structure
from suffice.models.labelled import whole_number
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
        if self.expectations not in ("exact", "sampled", "gibbs"):
            raise OptionError(f"expectations is {self.expectations!r}; expected 'exact', 'sampled' or 'gibbs'.")
        for name, value in (("batch_size", self.batch), ("n_samples", self.samples), ("n_sweeps", self.sweeps)):
            whole_number(value, name)
        _schedule(self.step, self.decay)


class Stochastic:
    """One stochastic fit: its minibatches, its updates and its averages."""

    def __init__(
        self,
        structure: Structure,
        sequences: Sequences,
        codes: Ints,
        weights: Floats,
        penalties: Any,
        plan: Plan,
        *,
        unit: float | None = None,
    ) -> None:
        """Codes (steps,), weights (n,) as in the objective; unit: the weight that counts once, None is their mean."""
        self.structure, self.sequences, self.codes, self.weights = structure, sequences, codes, weights
        self.penalties, self.plan = penalties, plan
        self.rng = generator(plan.seed)
        self.unit = float(weights.mean()) if unit is None else unit
        self.schedule = _schedule(plan.step, plan.decay)
        #: Where the chains of samples of all sequences stand (samples, steps); none before an epoch begins.
        self._chains: NDArray[Any] = np.zeros((0, 0), np.uint8)
        self._residuals = self.fast_residuals()

    def fast_residuals(self) -> Residuals | None:
        """What makes updates touch the weights of a minibatch alone, where there is such a thing."""
        if self.plan.expectations != "exact" and self.plan.method != "perceptron":
            return None
        return Residuals.where_they_pay(self.structure, self.sequences, self.codes)

    def batch_gradient(self, x: Floats, chosen: Ints) -> Floats:
        """The gradient (k,) of the mean log-likelihood and of the prior's share, estimated by some sequences."""
        if self._residuals is not None:
            found = self._residuals.gradient(x, chosen, self._shares(chosen))
            if found is not None:
                return found - self._prior_slope(x)
        block, codes, places = self._block(chosen)
        expected = block.expected(x)[1] if self.plan.expectations == "exact" else self._sampled(block, places, x)
        return (block.observed(codes) - expected) / (len(chosen) * self.unit) - self._prior_slope(x)

    def _shares(self, chosen: Ints) -> Floats:
        """What each sequence of a minibatch counts in its gradient; in the perceptron, its weight."""
        weights = self.weights[chosen]
        return weights if self.plan.method == "perceptron" else weights / (len(chosen) * self.unit)

    def _prior_slope(self, x: Floats) -> Floats:
        """The slope of the penalties, divided by the number of sequences."""
        slope = self.penalties.smooth(x)[1]
        if self.penalties.laplace is not None:
            slope = slope + self.penalties.laplace.rate * np.sign(x)
        return np.asarray(slope / (self.unit * len(self.weights)))

    def _block(self, chosen: Ints) -> tuple[Block, Ints, Ints]:
        """Some sequences, the codes of their labels, and the places of their steps among all."""
        part, places = subset(self.sequences, chosen)
        return Block(self.structure, part, self.weights[chosen], threads=1, once=True), self.codes[places], places

    def _sampled(self, block: Block, places: Ints, x: Floats) -> Floats:
        """Expected features by samples: from chains of samples that go on, or independent ones."""
        plan = self.plan
        paths = np.empty((plan.samples, len(places)), np.int64)
        for chains, steps in block.steps.chains(block.parts(x)):
            here = slice(*steps)
            if plan.expectations == "gibbs":
                paths[:, here] = gibbs(chains, self.standing(places[here]), plan.sweeps, self.rng)
            else:
                paths[:, here] = chains.sample(plan.samples, random_state=self.rng, threads=1, calls=EVALUATIONS)
        self.stand(places, paths)
        return np.asarray(np.mean([block.observed(path) for path in paths], axis=0))

    # -- chains of samples -------------------------------------------------------------------------------------------

    def standing(self, places: Ints) -> Ints:
        """Where the chains of some steps stand (samples, len(places)): at their labels before the first update."""
        if self._chains.size:
            return self._chains[:, places].astype(np.int64)
        return np.tile(self.codes[places], (self.plan.samples, 1))

    def stand(self, places: Ints, paths: Ints) -> None:
        """Keep where the chains of some steps came to."""
        if self._chains.size:
            self._chains[:, places] = paths

    def perceptron_step(self, x: Floats, chosen: Ints) -> Floats:
        """The features of the labels less those of the best path."""
        block, codes, _ = self._block(chosen)
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
        if not ended:
            return outcome
        before = min(value, gap(np.zeros_like(start))[0]) if start.any() else value
        if self.plan.method != "perceptron" and ended[0].objective < before - abs(before):
            warnings.warn(
                f"Stochastic ascent runs away: the objective is {ended[0].objective:.6g} after {ended[0].iteration} "
                f"passes and was {before:.6g} before the first. Its steps are too long; lower step_size, or raise "
                "decay.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return replace(outcome, state=ended[0])

    def memory_at(self, start: Floats, updates: int, walk: Mapping[str, Floats] | None = None) -> dict[str, Any]:
        """What the next epoch goes on from: weights, their mean, moments of the gradient, and the updates made.

        walk: what `going_on` said after the last of these updates.
        """
        zeros = np.zeros_like(start)
        found = {"raw": start.copy(), "mean": start.copy(), "first": zeros, "second": zeros.copy(), "updates": updates}
        found |= {name: value.copy() for name, value in (walk or {}).items()}
        if self.plan.expectations == "gibbs" and self.plan.method != "perceptron":
            kind = np.uint8 if self.structure.size <= 256 else np.int64
            found["chains"] = np.tile(self.codes.astype(kind), (self.plan.samples, 1))
        return found

    def going_on(self, memory: Mapping[str, Any]) -> dict[str, Floats]:
        """What a later call needs beside the weights returned to take the steps that one long run would take."""
        names = [*(["raw"] if self.averaged else []), *(["first", "second"] if self.plan.method == "adam" else [])]
        return {name: memory[name] for name in names}

    @property
    def averaged(self) -> bool:
        """Whether the mean of all updates is the answer."""
        return self.plan.average or self.plan.method == "perceptron"

    def epoch(self, memory: dict[str, Any]) -> dict[str, Any]:
        """Go once through the sequences; returns the new memory."""
        kept = {name: value.copy() if hasattr(value, "copy") else value for name, value in memory.items()}
        count = len(self.sequences)
        order = self.rng.permutation(count) if self.plan.shuffle else np.arange(count)
        batches = (order[first : first + self.plan.batch] for first in range(0, count, self.plan.batch))
        pull = uniform_pull(self.penalties) if self._residuals is not None and self.plan.method != "adam" else None
        if self._residuals is not None and pull is not None:
            pull /= self.unit * len(self.weights)
            schedule = None if self.plan.method == "perceptron" else self.schedule
            epoch = SparseEpoch(self._residuals, kept, averaged=self.averaged, pull=pull)
            epoch.run(batches, self._shares, schedule, self.update)
            return kept
        for chosen in batches:
            self.update(kept, chosen)
        return kept

    def update(self, kept: dict[str, Any], chosen: Ints) -> None:
        """One step of ascent with some sequences; their chains of samples go on from where they stood."""
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
    found = step_sizes(step, decay)
    if not callable(step) and step > LARGEST:
        raise OptionError(f"step_size is {step!r}; expected a positive number of at most {LARGEST:g}.")
    return found
