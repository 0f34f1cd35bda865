"""Stochastic ascent for chains: minibatches of a few sequences, with exact or sampled expectations.

Where expectations are exact, updates touch the weights of the features of a minibatch alone (`sparse_updates`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.engines.chain_gibbs import gibbs
from suffice.models.chain_crf.features import Sequences
from suffice.models.chain_crf.objective import EVALUATIONS, Block, subset
from suffice.models.chain_crf.sparse_updates import Residuals, SparseEpoch, uniform_pull
from suffice.models.chain_crf.structure import Structure
from suffice.models.conditional_field.priors import Penalties
from suffice.models.conditional_field.stochastic import Plan, Stochastic, copied

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class ChainStochastic(Stochastic):
    """One stochastic fit of a chain CRF."""

    def __init__(
        self,
        structure: Structure,
        sequences: Sequences,
        codes: Ints,
        weights: Floats,
        penalties: Penalties,
        plan: Plan,
        *,
        unit: float | None = None,
    ) -> None:
        """Codes (steps,), weights (n,) as in the objective; unit as in `Stochastic`."""
        super().__init__(structure.size, codes, weights, penalties, plan, unit)
        self.structure, self.sequences = structure, sequences
        #: What makes updates touch the weights of a minibatch alone, where there is such a thing.
        self._residuals = None
        if plan.expectations == "exact" or plan.method == "perceptron":
            self._residuals = Residuals.where_they_pay(structure, sequences, codes)

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

    def _block(self, chosen: Ints) -> tuple[Block, Ints, Ints]:
        """Some sequences, the codes of their labels, and the places of their steps among all."""
        part, places = subset(self.sequences, chosen)
        return Block(self.structure, part, self.weights[chosen], threads=1), self.codes[places], places

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

    def perceptron_step(self, x: Floats, chosen: Ints) -> Floats:
        """The features of the labels less those of the best path."""
        block, codes, _ = self._block(chosen)
        best = [
            chains.best_paths(threads=1, calls=EVALUATIONS)[0][0] for chains, _ in block.steps.chains(block.parts(x))
        ]
        path = np.concatenate(best)
        return np.zeros_like(x) if (path == codes).all() else block.observed(codes) - block.observed(path)

    def epoch(self, memory: dict[str, Any]) -> dict[str, Any]:
        """Go once through the sequences; returns the new memory."""
        pull = uniform_pull(self.penalties) if self._residuals is not None and self.plan.method != "adam" else None
        if self._residuals is None or pull is None:
            return super().epoch(memory)
        kept = copied(memory)
        schedule = None if self.plan.method == "perceptron" else self.schedule
        pull /= self.unit * len(self.weights)
        epoch = SparseEpoch(self._residuals, kept, averaged=self.averaged, pull=pull)
        epoch.run(self.batches(), self._shares, schedule, self.update)
        return kept
