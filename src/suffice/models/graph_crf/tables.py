"""Tables of nodes: a row is a node of a graph, its neighbours a list; read where they are."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypedDict

import numpy as np

from suffice.array_types import Floats
from suffice.domain import Variable
from suffice.errors import DataError, OptionError
from suffice.models.conditional_field.tables import ScoreExamples, codes_in_column, reads_table
from suffice.models.graph_crf.decoding import GraphDecoder
from suffice.models.graph_crf.example import GraphExample
from suffice.models.graph_crf.graphs import EDGES, NODES, Graphs, read_graphs
from suffice.models.graph_crf.rounds import GraphShard, GraphWork
from suffice.models.sequence_answers import answers_of_sequences
from suffice.sources.base import Batch, Source
from suffice.sources.held import Held, Settled
from suffice.sources.mapped import RowTask, free_names
from suffice.sources.opening import open_source


class NodeColumns(TypedDict, total=False):
    """How a table of nodes is laid out, as keywords: see `GraphCRF.fit`."""

    group: Hashable | None
    node: Hashable | None
    neighbours: Hashable | None
    columns: Any


@dataclass(frozen=True)
class NodeForm:
    """How a table of nodes is laid out: what tells graphs and nodes apart, who is joined to whom, the features."""

    group: Hashable | None = None
    node: Hashable | None = None
    neighbours: Hashable | None = None
    columns: Any = None

    def reads(self, X: object) -> bool:
        """Whether X is a table to be read by this form; an error where it cannot be."""
        return reads_table(X, vars(self), ("group", "node", "neighbours"))


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
        first = graphs.offsets[:-1]
        weights = np.ones(len(graphs)) if batch.weights is None else batch.weights[first]
        if batch.weights is not None and (np.repeat(weights, np.diff(graphs.offsets)) != batch.weights).any():
            raise DataError("The nodes of a graph have different weights; a weight is that of a whole graph.")
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


class NodeTable:
    """A table of nodes that is open."""

    def __init__(self, X: object, form: NodeForm, options: Mapping[str, Any], sample_weight: object = None) -> None:
        """options: those of the model."""
        self.source: Source = open_source(X, sample_weight=sample_weight)
        self.form, self.options = form, options
        self.source.check_columns([name for name in (form.group, form.node, form.neighbours) if name is not None])

    def reading(self, label: Hashable | None) -> NodeReading:
        """Features are the columns named, or all others."""
        form, beside = self.form, (self.form.group, self.form.node, self.form.neighbours, label)
        if form.columns is None:
            names = [name for name in self.source.columns if name not in beside]
        else:
            given = form.columns
            names = [given] if isinstance(given, str) or not isinstance(given, Iterable) else list(given)
        self.source.check_columns(names)
        return NodeReading(tuple(names), form.node, form.neighbours)

    def settled(self, reading: NodeReading, label: Variable | None) -> Settled:
        """States of the labels, in one pass; features are numbers."""
        declared = {name: Variable(name, "real") for name in reading.columns}
        declared |= {} if label is None else {label.name: label}
        return self.source.settle(self.source.infer(list(declared), declared), threads=self.options["threads"])

    def held(self, label: Hashable, labels: tuple[Any, ...] | None) -> HeldNodes:
        """The graphs of the table with their labels, where they are; labels: those there may be, None: those seen."""
        reading = self._labelled(label)
        variable = Variable(label, "discrete") if labels is None else Variable.discrete(label, labels)
        settled = self.settled(reading, variable)
        held: Held[Any] = self.source.hold(
            NodeWork(reading, label),
            settled,
            group=self.form.group,
            order=self.form.node,
            raw=(reading.node, reading.neighbours),
            memory_limit=self.options["memory_limit"],
            threads=self.options["threads"],
        )
        return HeldNodes(held, reading, settled.domain[label].states, self.source.passes)

    def _labelled(self, label: Hashable | None) -> NodeReading:
        if label is None:
            raise OptionError("y is missing: name the column of the table that holds the labels, as in y='label'.")
        self.source.check_columns([label])
        return self.reading(label)

    def scores(self, label: Hashable, decoder: GraphDecoder) -> Floats:
        """Log p(labels | graph) of each graph (n,)."""
        reading = self._labelled(label)
        settled = self.settled(reading, Variable.discrete(label, decoder.labels))
        ask = ScoreExamples(decoder, reading.graphs, label, "node")
        form, raw = self.form, (reading.node, reading.neighbours)
        threads = self.options["threads"]
        logs = answers_of_sequences(ask, self.source, settled, form.group, form.node, threads, raw)
        return np.array(logs, dtype=np.float64)

    def mapped(self, decoder: GraphDecoder, *, marginals: bool) -> Any:
        """The label of every row, or the probabilities of all labels."""
        reading = self.reading(None)
        domain = self.settled(reading, None).domain
        wanted = decoder.labels if marginals else ["predicted"]
        task = NodeLabels(decoder, reading, marginals, free_names(wanted, self.source.columns))
        form, raw = self.form, (reading.node, reading.neighbours)
        return self.source.map(
            task, domain, group=form.group, order=form.node, raw=raw, threads=self.options["threads"]
        )


@dataclass(frozen=True, eq=False)
class NodeLabels(RowTask):
    """The best labels of the rows of whole graphs, or probabilities of all labels; it travels to where the rows are."""

    decoder: GraphDecoder
    reading: NodeReading
    marginals: bool
    names: tuple[str, ...]

    def __call__(self, batch: Batch) -> dict[Hashable, Any]:
        """Columns of one value a row."""
        graphs = self.reading.graphs(batch)
        if self.marginals:
            return dict(zip(self.names, np.concatenate(self.decoder.marginals(graphs)).T, strict=True))
        return {self.names[0]: [self.decoder.labels[code] for code in self.decoder.best_codes(graphs).tolist()]}

    def example(self) -> dict[Hashable, Any]:
        """A probability for each label, or the first label."""
        return dict.fromkeys(self.names, np.zeros(1)) if self.marginals else {self.names[0]: [self.decoder.labels[0]]}
