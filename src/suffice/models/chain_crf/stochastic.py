"""Stochastic ascent for chains: minibatches of a few sequences, with exact or sampled expectations.

Where expectations are exact, updates touch the weights of the features of a minibatch alone (`sparse_updates`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from suffice.array_types import Floats, Ints
from suffice.engines.chain_gibbs import gibbs
from suffice.models.chain_crf.blocks import EVALUATIONS, SequenceBlock
from suffice.models.chain_crf.layout import ChainLayout
from suffice.models.chain_crf.rounds import ChainShard, FeatureSequences
from suffice.models.chain_crf.sparse_updates import Residuals, SparseEpoch, uniform_precision
from suffice.models.conditional_field.priors import WeightPenalties
from suffice.models.conditional_field.stochastic import Stochastic, StochasticPlan, copied


@dataclass(frozen=True, eq=False)
class SequencePart:
    """Some labelled sequences: see `LabelledPart`."""

    block: SequenceBlock
    codes: Ints
    steps: Ints

    def observed(self, codes: Ints) -> Floats:
        """The features (k,) of labels (steps,), weighted and summed."""
        return self.block.observed(codes)

    def slope(self, weights: Floats) -> Floats:
        """Observed less expected features (k,)."""
        return self.block.observed(self.codes) - self.block.expected(weights)[1]

    def best_codes(self, weights: Floats) -> Ints:
        """The best paths (steps,)."""
        return self.block.best_codes(weights)


class ChainStochastic(Stochastic[SequencePart]):
    """One stochastic fit of a chain CRF."""

    def __init__(
        self,
        layout: ChainLayout,
        sequences: FeatureSequences,
        codes: Ints,
        weights: Floats,
        penalties: WeightPenalties,
        plan: StochasticPlan,
        *,
        unit: float | None = None,
        count: int | None = None,
    ) -> None:
        """Codes (steps,), weights (n,) as in the objective; unit and count as in `Stochastic`."""
        super().__init__(layout.size, codes, weights, penalties, plan, unit, count)
        self.layout, self.sequences = layout, sequences
        #: What makes updates touch the weights of a minibatch alone, where there is such a thing.
        self._residuals = None
        if plan.expectations == "exact" or plan.method == "perceptron":
            self._residuals = Residuals.where_they_pay(layout, sequences, codes)

    def batch_gradient(self, x: Floats, chosen: Ints) -> Floats:
        """The gradient (k,) of the mean log-likelihood and of the prior's share, estimated by some sequences."""
        if self._residuals is not None:
            slope = self._residuals.gradient(x, chosen, self._shares(chosen))
            if slope is not None:
                return slope - self._prior_slope(x)
        return super().batch_gradient(x, chosen)

    def _shares(self, chosen: Ints) -> Floats:
        """What each sequence of a minibatch counts in its gradient; in the perceptron, its weight."""
        weights = self.weights[chosen]
        return weights if self.plan.method == "perceptron" else weights / (len(chosen) * self.unit)

    def part(self, chosen: Ints) -> SequencePart:
        """Some sequences."""
        steps = self.sequences.steps_of(chosen)[0]
        block = SequenceBlock(self.layout, self.sequences.chosen(chosen), self.weights[chosen], threads=1)
        return SequencePart(block, self.codes[steps], steps)

    def draws(self, part: SequencePart, x: Floats) -> Ints:
        """Draws (samples, steps) of the labels: from chains of samples that go on, or independent ones."""
        plan, block = self.plan, part.block
        paths = np.empty((plan.samples, len(part.steps)), np.int64)
        for chains, span in block.steps.chains(block.parts(x)):
            here = slice(*span)
            if plan.expectations == "gibbs":
                paths[:, here] = gibbs(chains, self.standing(part.steps[here]), plan.sweeps, self.rng)
            else:
                paths[:, here] = chains.sample(plan.samples, random_state=self.rng, threads=1, calls=EVALUATIONS)
        self.stand(part.steps, paths)
        return paths

    def epoch(self, memory: dict[str, Any]) -> dict[str, Any]:
        """Go once through the sequences; returns the new memory."""
        precision = (
            uniform_precision(self.penalties) if self._residuals is not None and self.plan.method != "adam" else None
        )
        if self._residuals is None or precision is None:
            return super().epoch(memory)
        kept = copied(memory)
        schedule = None if self.plan.method == "perceptron" else self.schedule
        precision /= self.unit * self.count
        epoch = SparseEpoch(self._residuals, kept, averaged=self.averaged, precision=precision)
        epoch.run(self.batches(), self._shares, schedule, self.update)
        return kept


@dataclass(frozen=True, eq=False)
class ShardEpoch:
    """One pass over the sequences of a shard, from a memory to the next; it travels to where the shard is."""

    layout: ChainLayout
    penalties: WeightPenalties
    plan: StochasticPlan
    unit: float
    count: int

    def __call__(self, shard: ChainShard, memory: dict[str, Any]) -> dict[str, Any]:
        """The memory after the updates of all minibatches of the shard."""
        sequences = shard.everywhere(len(self.layout.packing.pointers) - 1)
        labelled = (self.layout, sequences, shard.codes, shard.weights)
        return ChainStochastic(*labelled, self.penalties, self.plan, unit=self.unit, count=self.count).epoch(memory)
