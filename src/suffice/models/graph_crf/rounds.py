"""Labelled graphs in shards, and what a shard answers to weights: one round of a fit or of its judge."""

from __future__ import annotations

import hashlib
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.models.conditional_field.existence import SeparableLabels
from suffice.models.conditional_field.objective import FieldObjective
from suffice.models.conditional_field.priors import WeightPenalties
from suffice.models.conditional_field.shards import LabelledShard, LabelSeparation, LargestOfShards
from suffice.models.graph_crf.existence import SeparableGraphs
from suffice.models.graph_crf.graphs import Graphs
from suffice.models.graph_crf.objective import WORDS, Engine, GraphObjective
from suffice.models.graph_crf.structure import CliqueStructure
from suffice.sources.held import Held
from suffice.sources.reduction import Answers


@dataclass(frozen=True, eq=False)
class GraphShard(LabelledShard[Graphs]):
    """Some labelled graphs."""

    def __getstate__(self) -> dict[str, Any]:
        """What travels: not what was made for the last weights."""
        return {name: value for name, value in vars(self).items() if name != "_made"}

    def under(self, given: CliqueWeights) -> GraphObjective:
        """The log-likelihood of the graphs; the last one made is kept, because junction trees are made once."""
        made = vars(self).get("_made")
        if made is None or made[0] is not given.structure:
            labelled = (given.structure, self.examples, self.codes, self.weights)
            made = given.structure, GraphObjective(*labelled, WeightPenalties(), given.engine)
            object.__setattr__(self, "_made", made)
        objective: GraphObjective = made[1]
        # A shard may be prepared again anywhere: what it answers depends on the weights alone.
        objective.forget()
        return objective


@dataclass(frozen=True, eq=False)
class CliqueWeights:
    """What goes out in a round: weights (k,), what they belong to, and how examples are worked on."""

    structure: CliqueStructure
    vector: Floats
    engine: Engine

    def separable(self, shard: GraphShard) -> SeparableGraphs:
        """The labels of a shard, to be told from all others."""
        return SeparableGraphs(self.structure, shard.examples, shard.codes, self.engine)


def census(shard: GraphShard, given: CliqueWeights) -> Answers:
    """Features of the labels given where the likelihood is exact, and of all; how many graphs are too wide for it."""
    objective = shard.under(given)
    return Answers((objective.features, objective.observed(), len(objective.chosen.wide)))


def variance(shard: GraphShard, given: CliqueWeights) -> Floats:
    """A bound of the variance of the sum of every feature from below."""
    return shard.under(given).variance(given.vector)


def separated(shard: GraphShard, given: CliqueWeights) -> LabelSeparation:
    """Whether the direction given lifts the labels given above all others."""
    return given.separable(shard).separation(given.vector)


def even_features(shard: GraphShard, given: CliqueWeights) -> Answers:
    """Where every graph counts once: features of the labels given, their ends over all labels, the slope at 0."""
    labels = given.separable(shard)
    return Answers((labels.observed, *labels.ends(), labels.first_slope()))


def reach(shard: GraphShard, given: CliqueWeights) -> LargestOfShards:
    """Bounds of the range of every feature over the labels of any one graph."""
    return LargestOfShards(given.separable(shard).ranges())


def best_features(shard: GraphShard, given: CliqueWeights) -> Floats:
    """The features of the best labels."""
    return given.separable(shard).best_features(given.vector)


def digest(shard: GraphShard, _: object) -> tuple[str, ...]:
    """What tells the shards from others."""
    mark = hashlib.sha256()
    for array in (*shard.examples.arrays(), shard.codes, shard.weights):
        mark.update(np.ascontiguousarray(array).tobytes())
    return (mark.hexdigest(),)


@dataclass(frozen=True, eq=False)
class LabelDraws:
    """The features of random labels less those of others, (count, k), with random shares of the graphs."""

    structure: CliqueStructure
    count: int
    seed: int

    def __call__(self, shard: GraphShard, _: object) -> Floats:
        """Those of one shard."""
        graphs, rows = shard.examples, []
        rng = np.random.default_rng([self.seed, zlib.crc32(shard.codes.tobytes())])
        for _ in range(self.count):
            shares = rng.standard_normal(len(graphs))
            one, other = rng.integers(0, self.structure.size, (2, len(shard.codes)))
            observed = self.structure.observed
            rows.append(observed(graphs, one, shares) - observed(graphs, other, shares))
        return np.array(rows)


def entries(shard: GraphShard, _: object) -> int:
    """What the features of one labelling of all graphs cost."""
    return sum(part.features.size for part in shard.examples.parts) + len(shard.codes)


class GraphWork:
    """What shards of labelled graphs do in each round; `prepare` is that of the data."""

    def evaluate(self, shard: GraphShard, given: CliqueWeights) -> Answers:
        """The log-likelihood, its slope (k,), and how many shards have messages that did not come to rest."""
        objective = shard.under(given)
        value, slope = objective.evaluate(given.vector)
        return Answers((value, slope, int(not objective.converged)))


@dataclass(frozen=True)
class ReadGraphs(GraphWork):
    """The work on graphs that are read already, as one shard in this process."""

    def prepare(self, batch: Any) -> Any:
        """The shard is its own preparation."""
        return batch


class HeldGraphObjective(FieldObjective[CliqueStructure]):
    """The penalised log-likelihood of graphs in shards: each evaluation is one round."""

    apart = None

    def __init__(
        self,
        held: Held[GraphShard],
        structure: CliqueStructure,
        penalties: WeightPenalties,
        weight: float,
        engine: Engine,
    ) -> None:
        """See `GraphObjective`."""
        self.held, self.structure, self.penalties, self.weight, self.engine = held, structure, penalties, weight, engine
        self.converged = True
        self.features, self._observed, self.wide = self.ask(np.zeros(structure.length), census).parts

    def ask(self, vector: Floats, by: Any = None) -> Any:
        """One round with a vector (k,)."""
        return self.held.sum(CliqueWeights(self.structure, vector, self.engine), by)

    @property
    def exact(self) -> bool:
        """Whether every expectation is exact."""
        return not self.wide

    @property
    def at_most_one(self) -> bool:
        """Bethe's approximation has no bound."""
        return self.engine.wide != "loopy"

    @property
    def concave(self) -> bool:
        """Whether what was maximised is concave and known."""
        return self.exact or self.engine.wide == "pseudo-likelihood"

    @property
    def engine_in_words(self) -> str:
        """How expectations were computed that are not exact."""
        return "" if self.exact else f"{WORDS[self.engine.wide]} for {self.wide:,} graphs too wide for exact inference"

    def observed(self) -> Floats:
        """The features (k,) of the labels of all examples, weighted and summed."""
        return np.asarray(self._observed)

    def variance(self, weights: Floats) -> Floats:
        """A bound of the variance of the sum of every feature (k,) from below."""
        return np.asarray(self.ask(weights, variance))

    def evaluate(self, weights: Floats) -> tuple[float, Floats]:
        """The log-likelihood and its slope (k,); of wide examples what takes its place."""
        value, slope, restless = self.ask(weights).parts
        self.converged = not restless
        return float(value), slope


class HeldSeparableGraphs(SeparableLabels):
    """Labels of graphs in shards, and all others."""

    def __init__(self, objective: HeldGraphObjective) -> None:
        """See the class."""
        self.objective, nothing = objective, np.zeros(objective.structure.length)
        self.observed, self._low, self._high, self._slope = objective.ask(nothing, even_features).parts

    def separation(self, direction: Floats) -> LabelSeparation:
        """What a direction (k,) does to the labels given."""
        answer: LabelSeparation = self.objective.ask(direction, separated)
        return answer

    def best_features(self, x: Floats) -> Floats:
        """The features (k,) of the best labels under x."""
        return np.asarray(self.objective.ask(x, best_features))

    def first_slope(self) -> Floats:
        """The slope (k,) at weights of 0."""
        return np.asarray(self._slope)

    def ends(self) -> tuple[Floats, Floats]:
        """Bounds (k,) of the sum of every feature over all labels."""
        return self._low, self._high

    def ranges(self) -> Floats:
        """Bounds (k,) of the range of every feature over the labels of any one example."""
        largest: LargestOfShards = self.objective.ask(self.observed, reach)
        return largest.values
