"""Stochastic ascent for graphs: minibatches of a few examples, with exact or sampled expectations.

The gradient of a minibatch D' is ``(1 / |D'|) sum over D' of [phi(y_n, x_n) - E phi(y, x_n)]``, an estimate of the MEAN
log-likelihood's gradient; steps go up it. Sampled expectations are means over draws of the labels given the example.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.models.conditional_field.priors import Penalties
from suffice.models.conditional_field.stochastic import Plan, Stochastic
from suffice.models.graph_crf.decoding import best_codes
from suffice.models.graph_crf.graphs import Graphs
from suffice.models.graph_crf.inference import Inference, nodes_of, unary_scores
from suffice.models.graph_crf.objective import Engine, GraphObjective
from suffice.models.graph_crf.sampling import GibbsLabels, exact_draws
from suffice.models.graph_crf.structure import Structure

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Samplers of minibatches that are kept.
KEPT = 256


class GraphStochastic(Stochastic):
    """One stochastic fit of a graph CRF; epochs, updates and averages are those of `Stochastic`.

    The draws of an epoch depend on the seed and on the number of updates before it alone, so that a fit that goes on
    from a checkpoint takes the same steps.
    """

    def __init__(
        self,
        structure: Structure,
        graphs: Graphs,
        codes: Ints,
        weights: Floats,
        penalties: Penalties,
        plan: Plan,
        engine: Engine,
        *,
        unit: float | None = None,
    ) -> None:
        """Codes (nodes,) of the labels and weights (n,) of the examples; unit as in `Stochastic`."""
        super().__init__(structure.size, codes, weights, penalties, plan, unit)
        self.structure, self.graphs, self.engine = structure, graphs, engine
        self.seed = int(self.rng.integers(2**62))
        self._samplers: dict[tuple[int, ...], GibbsLabels] = {}

    def epoch(self, memory: dict[str, Any]) -> dict[str, Any]:
        """Go once through the examples; returns the new memory."""
        self.rng = np.random.default_rng([self.seed, int(memory["updates"])])
        return super().epoch(memory)

    def batch_gradient(self, x: Floats, chosen: Ints) -> Floats:
        """The gradient (k,) of the mean log-likelihood and of the prior's share, estimated by some examples."""
        chosen = np.sort(chosen)
        structure, shares = self.structure, self.weights[chosen]
        part, codes = self._part(chosen)
        total = len(chosen) * self.unit
        if self.plan.expectations == "exact":
            slope = GraphObjective(structure, part, codes, shares, Penalties(), self.engine).smooth(x)[1]
            return np.asarray(slope / total - self._prior_slope(x))
        draws = self.draws(chosen, part, codes, structure.scores(x, part))
        expected = np.mean([structure.observed(part, draw, shares) for draw in draws], axis=0)
        return np.asarray((structure.observed(part, codes, shares) - expected) / total - self._prior_slope(x))

    def draws(self, chosen: Ints, part: Graphs, codes: Ints, scores: list[Floats]) -> Ints:
        """Draws (samples, nodes) of the labels of some examples: of chains that began at the labels, or independent."""
        structure, plan = self.structure, self.plan
        if plan.expectations == "sampled":
            routes = Engine("exact", self.engine.most_cells).routes(structure, part)
            return exact_draws(Inference(structure, part, routes, threads=1), scores, plan.samples, self.rng)
        sampler = self._sampler(chosen, part)
        logs = sampler.union.flat(unary_scores(structure, part, scores), scores)
        nodes = nodes_of(self.graphs, chosen)
        found = sampler.draw(logs, self.standing(nodes), plan.samples, plan.sweeps, self.rng)[0]
        self.stand(nodes, found)
        return found

    def _sampler(self, chosen: Ints, part: Graphs) -> GibbsLabels:
        """The sampler of some examples; the last ones made are kept, as laying out a large graph takes a while."""
        key = tuple(chosen.tolist())
        if key not in self._samplers:
            if len(self._samplers) >= KEPT:
                self._samplers.clear()
            self._samplers[key] = GibbsLabels(self.structure, part, np.arange(len(part)), threads=1)
        return self._samplers[key]

    def perceptron_step(self, x: Floats, chosen: Ints) -> Floats:
        """The features of the labels less those of the best labels."""
        structure, shares = self.structure, self.weights[chosen]
        part, codes = self._part(chosen)
        best = best_codes(structure, part, x, self.engine, self.rng)
        if (best == codes).all():
            return np.zeros_like(x)
        return structure.observed(part, codes, shares) - structure.observed(part, best, shares)

    def _part(self, chosen: Ints) -> tuple[Graphs, Ints]:
        return self.graphs.chosen(chosen), self.codes[nodes_of(self.graphs, chosen)]
