"""Answers of weights about graphs: the best labels, marginals, log Z, draws."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from suffice.array_types import Floats, Ints, RandomState
from suffice.engines.tempering import climbed
from suffice.errors import SamplingWarning, warn
from suffice.families.base import generator
from suffice.models.conditional_field.decoding import FieldDecoder, spans
from suffice.models.conditional_field.labels import counted
from suffice.models.conditional_field.marginals import Marginals
from suffice.models.graph_crf.graphs import EXAMPLES, Graphs, flat_labels, read_graphs
from suffice.models.graph_crf.inference import GraphBeliefs, GraphInference, nodes_of, unary_scores
from suffice.models.graph_crf.objective import Engine
from suffice.models.graph_crf.sampling import GibbsLabels, SampledMarginals, SampledNodes, exact_draws, sampled_nodes
from suffice.models.graph_crf.structure import CliqueStructure

#: Sweeps of Gibbs sampling before labels of a wide graph are taken as draws.
BURN_IN = 200
#: Passes of loopy messages before annealing takes over.
FIRST_PASSES = 30


class GraphDecoder(FieldDecoder[Graphs]):
    """A structure with its weights, asked about graphs by an engine."""

    words = EXAMPLES

    def __init__(
        self, structure: CliqueStructure, weights: Floats, engine: Engine, random_state: RandomState = 0
    ) -> None:
        """random_state: the seed of what an engine draws."""
        super().__init__(structure.labels)
        self.structure, self.weights, self.engine, self.random_state = structure, weights, engine, random_state

    def read(self, X: Iterable[Any]) -> Graphs:
        """Examples with the features of the fit."""
        structure = self.structure
        return read_graphs(X, [template.name for template in structure.templates[2:]], structure.widths)

    def given_labels(self, y: Iterable[Any] | None, examples: Graphs) -> Any:
        """Labels of each example, those of pictures laid out row by row."""
        return flat_labels(y, examples)

    def best_codes(self, examples: Graphs) -> Ints:
        """The most probable labels (nodes,)."""
        return best_codes(self.structure, examples, self.weights, self.engine, generator(self.random_state))

    def marginals(self, examples: Graphs) -> list[Marginals]:
        """Probabilities (nodes, K) of each example."""
        beliefs, sampled = self._beliefs(examples)
        table, ranges = beliefs.tables[0], spans(examples.offsets)
        if sampled is None:
            return [Marginals(table[a:b], self.labels) for a, b in ranges]
        return [
            SampledMarginals.drawn(table[a:b], self.labels, sampled, number, (a, b))
            for number, (a, b) in enumerate(ranges)
        ]

    def drawn_codes(self, examples: Graphs, count: int, rng: np.random.Generator) -> Ints:
        """Draws (count, nodes) of the labels; warns where chains that draw them do not mix."""
        codes, sampled = drawn_codes(self.structure, examples, self.weights, self.engine, count, rng)
        if sampled is not None and sampled.words():
            warn(f"The labels drawn are not to be relied on: {sampled.words()}.", SamplingWarning)
        return codes

    def log_likelihoods(self, examples: Graphs, codes: Ints) -> Floats:
        """Log p(labels | example) of each example (n,)."""
        scores = self.structure.scores(self.weights, examples)
        return label_scores(self.structure, examples, scores, codes) - self.log_partitions(examples)

    def log_partitions(self, examples: Graphs) -> Floats:
        """Log Z of each example (n,); of those too wide Bethe's approximation, with a warning."""
        return self._beliefs(examples, partition=True)[0].log_partition

    def _beliefs(self, graphs: Graphs, *, partition: bool = False) -> tuple[GraphBeliefs, SampledNodes | None]:
        rng = generator(self.random_state)
        beliefs, wide, sampled = beliefs_of(self.structure, graphs, self.weights, self.engine, rng)
        if sampled is not None and not partition and sampled.words():
            warn(f"The sampled marginals are not to be relied on: {sampled.words()}.", SamplingWarning)
        words = []
        if partition and len(wide):
            words.append(
                f"{counted(len(wide), 'graph')} {'is' if len(wide) == 1 else 'are'} too wide for exact inference, "
                f"example {int(wide[0])} the first: the log partition is Bethe's approximation."
            )
        if not beliefs.converged and (partition or self.engine.method != "gibbs"):
            words.append("Loopy belief propagation did not come to rest; use inference='gibbs' for marginals.")
        if words:
            warn(" ".join(words))
        return beliefs, sampled


def beliefs_of(
    structure: CliqueStructure, graphs: Graphs, weights: Floats, engine: Engine, rng: np.random.Generator
) -> tuple[GraphBeliefs, Ints, SampledNodes | None]:
    """Beliefs about each graph, which examples (w,) were too wide for exact ones, and what chains say of them."""
    inference = GraphInference(structure, graphs, engine.choose(structure, graphs, asking=True), threads=engine.threads)
    scores = structure.scores(weights, graphs)
    beliefs = inference.solve(scores)
    wide = inference.chosen.wide
    sampled = None
    if engine.method == "gibbs" and len(wide):
        sampled, _ = sampled_nodes(structure, graphs, scores, wide, beliefs.tables[0], rng, engine.threads)
    return beliefs, wide, sampled


def best_codes(
    structure: CliqueStructure, graphs: Graphs, weights: Floats, engine: Engine, rng: np.random.Generator
) -> Ints:
    """The most probable labels (nodes,); of wide graphs the best found by loopy propagation and annealing."""
    chosen = engine.choose(structure, graphs, asking=True)
    inference = GraphInference(structure, graphs, chosen, threads=engine.threads, passes=FIRST_PASSES)
    scores = structure.scores(weights, graphs)
    unary = unary_scores(structure, graphs, scores)
    codes = np.argmax(unary, axis=1).astype(np.int64)
    chains, steps = inference.chains(unary, scores), inference.steps
    if chains is not None and steps is not None:
        codes[steps.nodes] = chains.best_paths(threads=inference.threads)[0][0]
    for tree in inference.trees:
        tree.best(unary, scores, codes)
    wide = inference.chosen.wide
    if len(wide):
        nodes = nodes_of(graphs, wide)
        codes[nodes] = _annealed(structure, graphs, inference, scores, rng)
    return np.asarray(codes, np.int64)


def _annealed(
    structure: CliqueStructure,
    graphs: Graphs,
    inference: GraphInference,
    scores: list[Floats],
    rng: np.random.Generator,
) -> Ints:
    """For each wide example the labels of the highest score: those of loopy beliefs, or of chains that cool down."""
    wide = inference.chosen.wide
    part = graphs.chosen(wide)
    nodes = nodes_of(graphs, wide)
    start = np.argmax(inference.solve(scores).tables[0][nodes], axis=1)
    sampler = GibbsLabels(structure, graphs, wide)
    unary = unary_scores(structure, graphs, scores)
    candidates = sampler.annealed(sampler.union.flat(unary, scores), start.astype(np.int64), rng)
    inside = [table[np.isin(whole.owner, wide)] for table, whole in zip(scores, graphs.parts, strict=True)]
    values = np.stack([label_scores(structure, part, inside, codes) for codes in candidates])
    best = np.argmax(values, axis=0)
    return np.asarray(candidates[best[part.parts[0].owner], np.arange(len(nodes))], np.int64)


def label_scores(structure: CliqueStructure, graphs: Graphs, scores: list[Floats], codes: Ints) -> Floats:
    """The score of labels (nodes,) in each example (n,)."""
    totals = np.zeros(len(graphs))
    for number, part in enumerate(graphs.parts):
        if len(part.members):
            cells = structure.cells(number, graphs.places(number), codes)
            np.add.at(totals, part.owner, scores[number][np.arange(len(cells)), cells])
    return totals


def drawn_codes(
    structure: CliqueStructure, graphs: Graphs, weights: Floats, engine: Engine, count: int, rng: np.random.Generator
) -> tuple[Ints, SampledNodes | None]:
    """Draws (count, nodes) of the labels: exact ones and, for wide graphs, the ends of Gibbs chains; what these say."""
    inference = GraphInference(structure, graphs, engine.choose(structure, graphs, asking=True), threads=engine.threads)
    scores = structure.scores(weights, graphs)
    codes = exact_draws(inference, scores, count, rng)
    wide = inference.chosen.wide
    if not len(wide) or not count:
        return codes, None
    unary = unary_scores(structure, graphs, scores)
    sampled, tempered = sampled_nodes(structure, graphs, scores, wide, np.empty(unary.shape), rng, engine.threads)
    plain = np.array([example for example in wide.tolist() if example not in tempered], np.int64)
    if len(plain):
        sampler = GibbsLabels(structure, graphs, plain, threads=engine.threads)
        drawn = sampler.draw(sampler.union.flat(unary, scores), None, count, BURN_IN, rng)[0]
        codes[:, nodes_of(graphs, plain)] = drawn
    for example, apart in tempered.items():
        one = GibbsLabels(structure, graphs, np.array([example]), threads=engine.threads)
        logs = one.union.flat(unary, scores)
        one.sampler.load(logs)
        replicas = climbed(one.sampler, logs, one.sampler.start(count, rng), BURN_IN, rng, apart)[1]
        codes[:, nodes_of(graphs, np.array([example]))] = replicas.states.T
    return codes, sampled
