"""Labelled graphs in shards, and what a shard answers to weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from suffice.array_types import Floats
from suffice.models.conditional_field.priors import WeightPenalties
from suffice.models.conditional_field.shards import LabelledShard, ShardSums
from suffice.models.graph_crf.graphs import Graphs
from suffice.models.graph_crf.objective import Engine, GraphObjective
from suffice.models.graph_crf.structure import CliqueStructure


@dataclass(frozen=True, eq=False)
class CliqueWeights:
    """What goes out in a round: weights (k,), what they belong to, and how examples are worked on."""

    structure: CliqueStructure
    vector: Floats
    engine: Engine


@dataclass(frozen=True)
class ReadGraphs:
    """The work on graphs that are read already, as one shard in this process."""

    def prepare(self, batch: Any) -> Any:
        """The shard is its own preparation."""
        return batch

    def evaluate(self, shard: LabelledShard[Graphs], given: CliqueWeights) -> ShardSums:
        """The log-likelihood and its slope (k,)."""
        labelled = (given.structure, shard.examples, shard.codes, shard.weights)
        return ShardSums(GraphObjective(*labelled, WeightPenalties(), given.engine).evaluate(given.vector))
