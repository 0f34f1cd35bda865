"""Stochastic ascent for graphs: minibatches of a few examples, with exact or sampled expectations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from suffice.array_types import Floats, Ints
from suffice.models.conditional_field.priors import WeightPenalties
from suffice.models.conditional_field.stochastic import Stochastic, StochasticPlan
from suffice.models.graph_crf.decoding import best_codes
from suffice.models.graph_crf.graphs import Graphs
from suffice.models.graph_crf.inference import GraphInference, nodes_of, unary_scores
from suffice.models.graph_crf.objective import Engine, GraphObjective
from suffice.models.graph_crf.rounds import GraphShard
from suffice.models.graph_crf.sampling import GibbsLabels, exact_draws
from suffice.models.graph_crf.structure import CliqueStructure

#: Samplers of minibatches that are kept.
KEPT = 256


@dataclass(frozen=True, eq=False)
class GraphPart:
    """Some labelled graphs, which are those chosen of all: see `LabelledPart`."""

    structure: CliqueStructure
    graphs: Graphs
    codes: Ints
    steps: Ints
    shares: Floats
    engine: Engine
    rng: np.random.Generator
    chosen: Ints

    def observed(self, codes: Ints) -> Floats:
        """The features (k,) of labels (nodes,), weighted and summed."""
        return self.structure.observed(self.graphs, codes, self.shares)

    def slope(self, weights: Floats) -> Floats:
        """Observed less expected features (k,)."""
        given = (self.structure, self.graphs, self.codes, self.shares)
        return GraphObjective(*given, WeightPenalties(), self.engine).evaluate(weights)[1]

    def best_codes(self, weights: Floats) -> Ints:
        """The best labels (nodes,)."""
        return best_codes(self.structure, self.graphs, weights, self.engine, self.rng)


class GraphStochastic(Stochastic[GraphPart]):
    """One stochastic fit of a graph CRF; epochs, updates and averages are those of `Stochastic`.

    The draws of an epoch depend on the seed and on the number of updates before it alone, so that a fit that goes on
    from a checkpoint takes the same steps.
    """

    def __init__(
        self,
        structure: CliqueStructure,
        graphs: Graphs,
        codes: Ints,
        weights: Floats,
        penalties: WeightPenalties,
        plan: StochasticPlan,
        engine: Engine,
        *,
        unit: float | None = None,
        count: int | None = None,
    ) -> None:
        """Codes (nodes,) of the labels and weights (n,) of the examples; unit and count as in `Stochastic`."""
        super().__init__(structure.size, codes, weights, penalties, plan, unit, count)
        self.structure, self.graphs, self.engine = structure, graphs, engine
        self.seed = int(self.rng.integers(2**62))
        self._samplers: dict[tuple[int, ...], GibbsLabels] = {}

    def epoch(self, memory: dict[str, Any]) -> dict[str, Any]:
        """Go once through the examples; returns the new memory."""
        self.rng = np.random.default_rng([self.seed, int(memory["updates"])])
        return super().epoch(memory)

    def part(self, chosen: Ints) -> GraphPart:
        """Some examples."""
        chosen = np.sort(chosen)
        graphs, nodes = self.graphs.chosen(chosen), nodes_of(self.graphs, chosen)
        return GraphPart(
            self.structure, graphs, self.codes[nodes], nodes, self.weights[chosen], self.engine, self.rng, chosen
        )

    def draws(self, part: GraphPart, x: Floats) -> Ints:
        """Draws (samples, nodes) of the labels of some examples: of chains that began at the labels, or independent."""
        structure, plan, graphs = self.structure, self.plan, part.graphs
        scores = structure.scores(x, graphs)
        if plan.expectations == "sampled":
            chosen = Engine("exact", self.engine.most_cells).choose(structure, graphs)
            return exact_draws(GraphInference(structure, graphs, chosen, threads=1), scores, plan.samples, self.rng)
        sampler = self._sampler(part)
        logs = sampler.union.flat(unary_scores(structure, graphs, scores), scores)
        codes = sampler.draw(logs, self.standing(part.steps), plan.samples, plan.sweeps, self.rng)[0]
        self.stand(part.steps, codes)
        return codes

    def _sampler(self, part: GraphPart) -> GibbsLabels:
        """The sampler of some examples; the last ones made are kept, as laying out a large graph takes a while."""
        key = tuple(part.chosen.tolist())
        if key not in self._samplers:
            if len(self._samplers) >= KEPT:
                self._samplers.clear()
            self._samplers[key] = GibbsLabels(self.structure, part.graphs, np.arange(len(part.graphs)), threads=1)
        return self._samplers[key]


@dataclass(frozen=True, eq=False)
class GraphEpoch:
    """One pass over the graphs of a shard, from a memory to the next; it travels to where the shard is."""

    structure: CliqueStructure
    penalties: WeightPenalties
    plan: StochasticPlan
    engine: Engine
    unit: float
    count: int

    def __call__(self, shard: GraphShard, memory: dict[str, Any]) -> dict[str, Any]:
        """The memory after the updates of all minibatches of the shard."""
        if not len(shard.examples):
            return memory
        labelled = (self.structure, shard.examples, shard.codes, shard.weights)
        steps = GraphStochastic(*labelled, self.penalties, self.plan, self.engine, unit=self.unit, count=self.count)
        return steps.epoch(memory)
