"""Beliefs about the labels of many graphs: log Z of each, and the distribution of every clique.

Nodes that stand alone are softmax distributions, paths go through forward-backward together, graphs of one shape share
a junction tree and run through it side by side, and loopy belief propagation takes all graphs that are too wide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats, Ints
from suffice.engines.chain import Chains, chains_from_logs
from suffice.engines.loopy import LoopyBeliefs
from suffice.engines.tree_batches import PlanBatch, TreeBatch
from suffice.engines.workers import worker_count
from suffice.models.graph_crf.engine_choice import EngineChoice, PathSteps, ShapeGroup, steps_of
from suffice.models.graph_crf.graphs import Graphs
from suffice.models.graph_crf.structure import CliqueStructure

#: Evaluations to expect of a fit, for the choice between NumPy and compiled loops.
EVALUATIONS = 100
#: Messages that change by less than this stand still; more digits would cost passes and change no slope that matters.
STILL, PASSES = 1e-11, 200
#: Numbers of the examples that go through a junction tree in one call.
_NUMBERS = 1 << 22


@dataclass(frozen=True, eq=False)
class GraphBeliefs:
    """log_partition (n,) of each example and, for each template, the distributions of its cliques (c, cells).

    converged: whether the messages of loopy propagation stood still, where there were any.
    """

    log_partition: Floats
    tables: list[Floats]
    converged: bool = True


class GraphInference:
    """Solves the graphs of some examples for any scores; what depends on shapes alone is made once."""

    def __init__(
        self,
        structure: CliqueStructure,
        graphs: Graphs,
        chosen: EngineChoice,
        *,
        threads: int | None = None,
        calls: int | None = None,
        passes: int = PASSES,
    ) -> None:
        """calls: how often it will be asked, by estimate; passes: most passes of loopy messages."""
        self.structure, self.graphs, self.chosen = structure, graphs, chosen
        self.threads, self.calls = worker_count(threads), calls
        self._lone = nodes_of(graphs, chosen.alone)
        counts = np.diff(graphs.offsets)[chosen.alone]
        self._lone_starts = np.cumsum(counts) - counts
        self.steps: PathSteps | None = steps_of(graphs, chosen.paths) if chosen.paths else None
        self.trees = [TreeGroup(structure, graphs, group) for group in chosen.trees]
        self._loopy = _Loopy(structure, graphs, chosen.wide, passes) if len(chosen.wide) else None

    def forget(self) -> None:
        """Let loopy messages begin anew, so that answers do not depend on what was asked before."""
        if self._loopy is not None:
            self._loopy.beliefs.forget()

    def solve(self, scores: Sequence[Floats]) -> GraphBeliefs:
        """Beliefs for scores (c, cells) of each template."""
        unary = unary_scores(self.structure, self.graphs, scores)
        log_z = np.zeros(len(self.graphs))
        tables = [np.empty_like(table) for table in scores]
        self._alone(unary, log_z, tables)
        self._paths(unary, scores, log_z, tables)
        # All shapes share the compiled loops, so their calls pay for them together.
        calls = None if self.calls is None else self.calls * len(self.trees)
        for tree in self.trees:
            tree.solve(unary, scores, log_z, tables, threads=self.threads, calls=calls)
        converged = self._loopy is None or self._loopy.solve(unary, scores, log_z, tables)
        for number, template in enumerate(self.structure.templates):
            if number and template.size == 1:
                tables[number] = tables[0][self.graphs.places(number)[:, 0]]
        return GraphBeliefs(log_z, tables, converged)

    def chains(self, unary: Floats, scores: Sequence[Floats]) -> Chains | None:
        """All paths, as the engine of chains takes them."""
        steps = self.steps
        if steps is None:
            return None
        size = self.structure.size
        transitions = np.zeros((len(steps.nodes), size, size))
        for number, into, cliques, turned in steps.links:
            transitions[into] = _turned(scores[number][cliques].reshape(-1, size, size), turned)
        return chains_from_logs(unary[steps.nodes], transitions, offsets=steps.offsets)

    def _alone(self, unary: Floats, log_z: Floats, tables: list[Floats]) -> None:
        if not len(self.chosen.alone):
            return
        places = self._lone
        logs = unary[places]
        tops = logs.max(axis=1, keepdims=True)
        shares = np.exp(logs - tops)
        sums = shares.sum(axis=1, keepdims=True)
        tables[0][places] = shares / sums
        log_z[self.chosen.alone] = np.add.reduceat((np.log(sums) + tops)[:, 0], self._lone_starts)

    def _paths(self, unary: Floats, scores: Sequence[Floats], log_z: Floats, tables: list[Floats]) -> None:
        steps, chains = self.steps, self.chains(unary, scores)
        if steps is None or chains is None:
            return
        posterior = chains.expectations(pairs=True, threads=self.threads, calls=self.calls)
        np.add.at(log_z, steps.owner, posterior.log_partition)
        tables[0][steps.nodes] = posterior.posteriors
        for number, into, cliques, turned in steps.links:
            pairs = np.zeros(0) if posterior.pairs is None else posterior.pairs[into]
            tables[number][cliques] = _turned(pairs, turned).reshape(len(cliques), -1)


class TreeGroup:
    """Examples of one shape, by their junction tree or by another engine."""

    def __init__(self, structure: CliqueStructure, graphs: Graphs, group: ShapeGroup) -> None:
        """See the class."""
        self.structure, self.examples = structure, group.examples
        starts = graphs.offsets[group.examples]
        self.nodes = starts[:, None] + np.arange(int(graphs.offsets[group.examples[0] + 1] - starts[0]))
        self.scopes = [*((node,) for node in range(self.nodes.shape[1])), *group.scopes]
        if group.plan is not None:
            self.batch: PlanBatch = TreeBatch(group.plan, self.scopes)
        elif group.planner is not None:
            cards, planned = dict.fromkeys(range(self.nodes.shape[1]), structure.size), list(dict.fromkeys(self.scopes))
            self.batch = PlanBatch(group.planner(cards, planned), planned, cards, self.scopes)
        else:
            raise AssertionError("A group has a junction tree, or what plans for it.")
        #: For each template its number, and its cliques (b, m) in the order of the scopes.
        self.cliques: list[tuple[int, Ints]] = []
        for number in dict.fromkeys(number for number, _ in group.cliques):
            places = np.array([clique for other, clique in group.cliques if other == number])
            self.cliques.append((number, graphs.parts[number].offsets[group.examples][:, None] + places))

    def logs(self, unary: Floats, scores: Sequence[Floats], rows: slice = slice(None)) -> Floats:
        """Log-potentials (b, numbers) of these examples."""
        nodes = self.nodes[rows]
        parts = [unary[nodes].reshape(len(nodes), -1)]
        parts += [scores[number][places[rows]].reshape(len(nodes), -1) for number, places in self.cliques]
        return np.concatenate(parts, axis=1)

    def _blocks(self) -> list[slice]:
        size = max(1, _NUMBERS // max(self.batch.width, 1))
        return [slice(first, first + size) for first in range(0, len(self.examples), size)]

    def solve(
        self,
        unary: Floats,
        scores: Sequence[Floats],
        log_z: Floats,
        tables: list[Floats],
        *,
        threads: int,
        calls: int | None,
    ) -> None:
        """Write log Z and the distributions of the cliques of these examples."""
        size = self.structure.size
        for rows in self._blocks():
            logs = self.logs(unary, scores, rows)
            log_z[self.examples[rows]], beliefs = self.batch.solve(logs, threads=threads, calls=calls)
            start = size * self.nodes.shape[1]
            tables[0][self.nodes[rows]] = beliefs[:, :start].reshape(len(beliefs), -1, size)
            for number, places in self.cliques:
                stop = start + places.shape[1] * self.structure.templates[number].cells
                tables[number][places[rows]] = beliefs[:, start:stop].reshape(len(beliefs), places.shape[1], -1)
                start = stop

    def best(self, unary: Floats, scores: Sequence[Floats], codes: Ints) -> None:
        """Write the most probable labels of these examples into codes (nodes,)."""
        for rows in self._blocks():
            codes[self.nodes[rows]] = self.batch.best(self.logs(unary, scores, rows))

    def draw(self, unary: Floats, scores: Sequence[Floats], codes: Ints, rng: np.random.Generator) -> None:
        """Write independent draws of the labels of these examples into codes (draws, nodes)."""
        for nodes, row in zip(self.nodes, self.logs(unary, scores), strict=True):
            codes[:, nodes] = self.batch.draw(row, len(codes), random_state=rng)


class _Loopy:
    """All wide examples as one large graph in as many pieces."""

    def __init__(self, structure: CliqueStructure, graphs: Graphs, examples: Ints, passes: int) -> None:
        self.union = Union(structure, graphs, examples)
        cards = [structure.size] * self.union.count
        self.beliefs = LoopyBeliefs(cards, self.union.scopes, tolerance=STILL, most_passes=passes)

    def solve(self, unary: Floats, scores: Sequence[Floats], log_z: Floats, tables: list[Floats]) -> bool:
        """Write Bethe's log Z and the beliefs; returns whether the messages stood still."""
        logs = self.union.flat(unary, scores)
        beliefs = self.beliefs.solve(logs)
        self.union.write(beliefs.shares, tables)
        self.union.add_bethe(logs, beliefs.shares, log_z)
        return beliefs.converged


class Union:
    """Some examples as one graph: sites are their nodes, one factor for each node and each larger clique."""

    def __init__(self, structure: CliqueStructure, graphs: Graphs, examples: Ints) -> None:
        """See the class."""
        self.structure, self.examples = structure, examples
        self.nodes = nodes_of(graphs, examples)
        self.count = len(self.nodes)
        site = np.full(int(graphs.offsets[-1]), -1, np.int64)
        site[self.nodes] = np.arange(self.count)
        self.owner = graphs.parts[0].owner[self.nodes]
        self.parts: list[tuple[int, Ints, Ints]] = []
        for number, template in enumerate(structure.templates):
            if template.size < 2:
                continue
            part = graphs.parts[number]
            cliques = places_of(part.offsets, examples)
            if len(cliques):
                members = site[graphs.places(number)[cliques]]
                self.parts.append((number, cliques, members))

    @property
    def scopes(self) -> list[tuple[int, ...]]:
        """Sites of each factor: the nodes, then the cliques of each template."""
        scopes: list[tuple[int, ...]] = [(node,) for node in range(self.count)]
        for _, _, members in self.parts:
            scopes += map(tuple, members.tolist())
        return scopes

    def flat(self, unary: Floats, scores: Sequence[Floats]) -> Floats:
        """Log-potentials of all factors (cells,)."""
        parts = [scores[number][cliques].ravel() for number, cliques, _ in self.parts]
        return np.concatenate([unary[self.nodes].ravel(), *parts])

    def _pieces(self, cells: Floats) -> list[Floats]:
        """Numbers of all cells (cells,) as tables (factors, cells): of the nodes, then of each template."""
        start, pieces = self.count * self.structure.size, []
        pieces.append(cells[:start].reshape(self.count, -1))
        for number, cliques, _ in self.parts:
            width = self.structure.templates[number].cells
            pieces.append(cells[start : start + len(cliques) * width].reshape(-1, width))
            start += len(cliques) * width
        return pieces

    def write(self, shares: Floats, tables: list[Floats]) -> None:
        """Write beliefs of all factors (cells,) into the tables of the templates."""
        own, *others = self._pieces(shares)
        tables[0][self.nodes] = own
        for (number, cliques, _), piece in zip(self.parts, others, strict=True):
            tables[number][cliques] = piece

    def add_bethe(self, logs: Floats, shares: Floats, log_z: Floats) -> None:
        """Add Bethe's approximation of log Z of each example.

        It is the sum over factors of ``E[log-potential] + entropy`` less, for each node, its entropy times the number
        of its factors but one.
        """
        beliefs, potentials = self._pieces(shares), self._pieces(logs)
        own = beliefs[0]
        degree = np.ones(self.count)
        for _, _, members in self.parts:
            np.add.at(degree, members.ravel(), 1.0)
        values = (own * potentials[0]).sum(axis=1) + (2.0 - degree) * _entropy(own)
        np.add.at(log_z, self.owner, values)
        for (_, _, members), belief, potential in zip(self.parts, beliefs[1:], potentials[1:], strict=True):
            np.add.at(log_z, self.owner[members[:, 0]], (belief * potential).sum(axis=1) + _entropy(belief))


def unary_scores(structure: CliqueStructure, graphs: Graphs, scores: Sequence[Floats]) -> Floats:
    """The scores of all cliques of one node, added up by node (nodes, K)."""
    unary = scores[0]
    for number, template in enumerate(structure.templates):
        if number and template.size == 1 and len(scores[number]):
            unary = unary.copy() if unary is scores[0] else unary
            np.add.at(unary, graphs.places(number)[:, 0], scores[number])
    return unary


def nodes_of(graphs: Graphs, examples: Ints) -> Ints:
    """Numbers of the nodes of some examples, among all."""
    return places_of(graphs.offsets, examples)


def places_of(offsets: Ints, examples: Ints) -> Ints:
    """Numbers of the rows of some examples, where offsets (n + 1,) say where those of each begin."""
    counts = np.diff(offsets)[examples]
    before = np.cumsum(counts) - counts
    return np.asarray(np.repeat(offsets[examples] - before, counts) + np.arange(int(counts.sum())), np.int64)


def _entropy(beliefs: Floats) -> Floats:
    """Entropy of each row."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(-np.where(beliefs > 0.0, beliefs * np.log(beliefs), 0.0).sum(axis=1))


def _turned(tables: Floats, turned: NDArray[np.bool_]) -> Floats:
    """Tables (m, K, K) with their axes exchanged where they are turned."""
    return np.where(turned[:, None, None], tables.transpose(0, 2, 1), tables)
