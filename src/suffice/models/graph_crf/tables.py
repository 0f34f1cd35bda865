"""Tables of nodes: a row is a node of a graph, its neighbours a list; read where they are."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from suffice.domain import Variable
from suffice.errors import DataError
from suffice.models.conditional_field.tables import (
    FieldTable,
    ReadExamples,
    TableForm,
    codes_in_column,
    weights_in_column,
)
from suffice.models.graph_crf.decoding import GraphDecoder
from suffice.models.graph_crf.example import GraphExample
from suffice.models.graph_crf.graphs import EDGES, NODES, Graphs, read_graphs
from suffice.models.graph_crf.rounds import GraphShard, GraphWork
from suffice.sources.base import Batch
from suffice.sources.held import Held, Settled


@dataclass(frozen=True)
class NodeForm(TableForm):
    """How a table of nodes is laid out: what tells graphs and nodes apart, who is joined to whom, the features."""

    node: Hashable | None = None
    neighbours: Hashable | None = None

    needed = ("group", "node", "neighbours")


@dataclass(frozen=True)
class NodeReading:
    """How rows of a table become graphs: an edge joins a node to each of its neighbours.

    Two nodes that name each other have one edge, from the first of them.
    """

    columns: tuple[Hashable, ...]
    node: Hashable
    neighbours: Hashable

    @property
    def widths(self) -> dict[str, tuple[int, int]]:
        """Members and features of nodes and edges."""
        return {NODES: (1, len(self.columns)), EDGES: (2, 1)}

    def graphs(self, batch: Batch) -> Graphs:
        """The graphs of a batch."""
        assert batch.offsets is not None
        features = batch.reals[[batch.real.index(name) for name in self.columns]].T
        names, lists = (batch.raw[name].to_pylist() for name in (self.node, self.neighbours))
        examples = []
        for first, last in pairwise(batch.offsets.tolist()):
            number = {name: k for k, name in enumerate(names[first:last])}
            edges: dict[tuple[int, int], None] = {}
            for one, named in enumerate(lists[first:last]):
                for other in named or ():
                    if other not in number:
                        raise DataError(
                            f"Node {names[first + one]!r} names the neighbour {other!r} in column {self.neighbours!r}; "
                            f"its graph has no such node in column {self.node!r}."
                        )
                    if (number[other], one) not in edges:
                        edges[one, number[other]] = None
            pairs = np.array(list(edges), np.int64).reshape(-1, 2)
            examples.append(GraphExample(features[first:last], pairs))
        return read_graphs(examples, (), self.widths)


@dataclass(frozen=True)
class NodeWork(GraphWork):
    """Graphs of a table become shards of labelled graphs; those of weight 0 are left out."""

    reading: NodeReading
    label: Hashable

    def prepare(self, batch: Batch) -> GraphShard:
        """The graphs, the codes of labels and the weights of a batch."""
        graphs = self.reading.graphs(batch)
        codes = codes_in_column(batch, self.label, "node").astype(np.int64)
        weights = weights_in_column(batch, "node", "graph")
        if weights.all():
            return GraphShard(graphs, codes, weights)
        kept = np.flatnonzero(weights)
        return GraphShard(graphs.chosen(kept), codes[np.repeat(weights > 0.0, np.diff(graphs.offsets))], weights[kept])


@dataclass(frozen=True, eq=False)
class HeldNodes:
    """Labelled graphs of a table in shards, how they are read, their labels, and the passes that it took."""

    held: Held[Any]
    reading: NodeReading
    labels: tuple[Any, ...]
    passes: int


class NodeTable(FieldTable[NodeForm, GraphDecoder]):
    """A table of nodes that is open."""

    unit = "node"

    @property
    def beside(self) -> list[Hashable]:
        """The columns that say how the table is laid out."""
        return [self.form.group, self.form.node, self.form.neighbours]

    @property
    def order(self) -> Hashable | None:
        """Nodes are numbered in the order of their names."""
        return self.form.node

    @property
    def raw(self) -> list[Hashable]:
        """Names of nodes and lists of neighbours are read as they are."""
        return [self.form.node, self.form.neighbours]

    def reading(self, label: Hashable | None) -> NodeReading:
        """Features are the columns named, or all others."""
        form = self.form
        if form.columns is None:
            names = [name for name in self.source.columns if name not in (*self.beside, label)]
        else:
            given = form.columns
            names = [given] if isinstance(given, str) or not isinstance(given, Iterable) else list(given)
        self.source.check_columns(names)
        return NodeReading(tuple(names), form.node, form.neighbours)

    def kinds(self, names: Sequence[Hashable]) -> dict[Hashable, Variable]:
        """Features are numbers."""
        return {name: Variable(name, "real") for name in names}

    def held(self, labels: tuple[Any, ...] | None) -> HeldNodes:
        """The graphs of the table with their labels, where they are; labels: those there may be, None: those seen."""
        label = self.checked_label()
        reading = self.reading(label)
        variable = Variable(label, "discrete") if labels is None else Variable.discrete(label, labels)
        settled = self.settle(reading.columns, variable)
        held = self.hold(NodeWork(reading, label), settled)
        return HeldNodes(held, reading, settled.domain[label].states, self.source.passes)

    def read_by(self, decoder: GraphDecoder, label: Variable | None) -> tuple[Settled, ReadExamples[Graphs]]:
        """What is settled of the columns of features, and how they are read."""
        reading = self.reading(None if label is None else label.name)
        return self.settle(reading.columns, label), ReadExamples(decoder, reading.graphs)
