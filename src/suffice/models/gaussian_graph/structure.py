"""The structure of a Gaussian graph: edges, cliques, a networkx graph, or the support of a matrix."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.checks import listed_names
from suffice.errors import OptionError, listing
from suffice.graphs.chordality import chordless_cycle, maximum_cardinality_search
from suffice.graphs.clique_tree import CliqueTree, clique_tree
from suffice.graphs.cliques import cliques_of
from suffice.graphs.triangulation import eliminate, triangulate
from suffice.models.markov.feature import Feature
from suffice.models.markov.structure import read_terms
from suffice.solvers.covariance_selection import PlacedTree, Tour

Names = tuple[Hashable, ...]

#: Maximal cliques, for each node, above which proportional fitting takes the edges instead.
CLIQUES_PER_NODE = 20


@dataclass(frozen=True)
class GraphStructure:
    """Nodes in the order of all arrays, and the pairs of nodes that are joined."""

    nodes: Names
    edges: tuple[tuple[Hashable, Hashable], ...]

    @cached_property
    def number(self) -> dict[Hashable, int]:
        """The number of each node, its column in all arrays."""
        return {node: number for number, node in enumerate(self.nodes)}

    @cached_property
    def pairs(self) -> NDArray[np.intp]:
        """The places of both ends of each edge (m, 2), smaller first."""
        ends = [sorted((self.number[first], self.number[second])) for first, second in self.edges]
        return np.array(ends, dtype=np.intp).reshape(-1, 2)

    @cached_property
    def entries(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Rows and columns of the free entries of the precision: the diagonal, then the edges."""
        rows, columns = np.concatenate([np.tile(np.arange(len(self.nodes))[:, None], 2), self.pairs]).T
        return rows, columns

    @cached_property
    def support(self) -> NDArray[np.bool_]:
        """Which entries of the precision (p, p) are free."""
        present = np.eye(len(self.nodes), dtype=bool)
        rows, columns = self.pairs.T
        present[rows, columns] = present[columns, rows] = True
        return present

    @cached_property
    def graph(self) -> dict[int, set[int]]:
        """Neighbours of each place."""
        graph: dict[int, set[int]] = {node: set() for node in range(len(self.nodes))}
        for first, second in self.pairs.tolist():
            graph[first].add(second)
            graph[second].add(first)
        return graph

    @cached_property
    def cycle(self) -> Names:
        """A cycle of four or more nodes without a chord; empty if the graph is chordal."""
        return tuple(self.nodes[number] for number in chordless_cycle(self.graph))  # type: ignore[call-overload]

    @cached_property
    def cliques(self) -> tuple[tuple[int, ...], ...]:
        """The maximal cliques by place; where there are far too many, the edges and the nodes without any."""
        cliques = cliques_of(self.graph, most=CLIQUES_PER_NODE * len(self.nodes))
        if cliques is None:
            alone = [(node,) for node, near in self.graph.items() if not near]
            return (*map(tuple, self.pairs.tolist()), *alone)
        return tuple(cliques)  # type: ignore[arg-type]

    @cached_property
    def tree(self) -> PlacedTree:
        """The clique tree of the graph, which gains edges by elimination where it is not chordal."""
        if self.cycle:
            order = triangulate(self.graph, dict.fromkeys(self.graph, 2))
        else:
            order = eliminate(self.graph, maximum_cardinality_search(self.graph)[::-1], dict.fromkeys(self.graph, 2))
        return _placed(clique_tree(order))

    @cached_property
    def tour(self) -> Tour:
        """The cliques, each in a cluster that holds it."""
        sets = [frozenset(cluster.tolist()) for cluster in self.tree.clusters]
        holders: dict[int, list[int]] = {}
        for number, cluster in enumerate(sets):
            for node in cluster:
                holders.setdefault(node, []).append(number)
        homes = [
            next(number for number in holders[clique[0]] if sets[number].issuperset(clique)) for clique in self.cliques
        ]
        return Tour(self.tree, tuple(np.array(c, dtype=np.intp) for c in self.cliques), tuple(homes))

    @property
    def non_edges(self) -> int:
        """Pairs of nodes that are not joined."""
        p = len(self.nodes)
        return p * (p - 1) // 2 - len(self.edges)


def read_structure(structure: object, nodes: Iterable[Hashable] | None) -> GraphStructure:
    """Read the structure of a graph.

    Args:
        structure: edges and cliques (tuples of nodes); a networkx graph; a square matrix, or a fitted model with
            `precision_`, whose entries off the diagonal are edges where they are not 0; another Gaussian graph.
        nodes: all nodes, in the order of the arrays; unless given, in the order in which the structure names them.
    """
    if isinstance(nodes, str):
        raise OptionError(f"nodes is {nodes!r}; expected a list of names.")
    given = None if nodes is None else listed_names(nodes, "nodes", otherwise=", or None")
    if given is not None and len(set(given)) != len(given):
        raise OptionError(f"nodes is {listing(given)}; expected each name once.")
    if isinstance(structure, GraphStructure):
        return structure
    own = getattr(structure, "_structure", None)
    if isinstance(own, GraphStructure):
        return _joined(own.nodes, [*own.edges], given)
    matrix = _matrix_of(structure)
    if matrix is not None:
        return _from_support(matrix, given or _names_of(structure, len(matrix)))
    terms = read_terms(structure)
    features = [term for term in terms if isinstance(term, Feature)]
    if features:
        raise OptionError(
            f"Found {features[0]!r}; expected edges and cliques of nodes: a Gaussian graph has no features."
        )
    return _joined((), list(terms), given)  # type: ignore[arg-type]


def _joined(first: Names, cliques: list[Names], given: Names | None) -> GraphStructure:
    """Nodes and edges of cliques, each edge once and in the order in which it is met."""
    named = tuple(dict.fromkeys([*first, *(name for clique in cliques for name in clique)]))
    known = set(named if given is None else given)
    unknown = [name for name in named if name not in known]
    if unknown:
        raise OptionError(f"The structure joins {listing(unknown)}, not among nodes={listing(given or ())}.")
    pairs = [(a, b) for clique in cliques for number, a in enumerate(clique) for b in clique[number + 1 :]]
    edges = {frozenset(pair): pair for pair in reversed(pairs)}
    all_nodes = given or named
    if not all_nodes:
        raise OptionError("The graph has no nodes. Give edges, cliques or nodes=.")
    return GraphStructure(all_nodes, tuple(reversed(edges.values())))


def _matrix_of(structure: object) -> NDArray[Any] | None:
    """The matrix whose support is meant, where the structure is one or has one."""
    entries = getattr(structure, "precision_", structure)
    if not hasattr(entries, "shape"):
        return None
    matrix = entries.toarray() if hasattr(entries, "toarray") else np.asarray(entries)
    square = matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1]
    # Two rows of integers of an array may be two edges, unless they are 0 and 1, which would join nodes to themselves.
    named = hasattr(entries, "columns") or bool(square and np.isin(matrix, (0, 1)).all())
    if not square or matrix.dtype.kind not in "bif" or (matrix.dtype.kind == "i" and len(matrix) == 2 and not named):
        raise OptionError(
            f"The structure is an array of shape {matrix.shape} and type {matrix.dtype}; expected a square matrix "
            "whose entries say which columns are joined. Give pairs of nodes as a list of tuples."
        )
    return matrix


def _names_of(structure: object, size: int) -> Names:
    """Names of the columns of a matrix: its own, those that a fitted model has seen, or 0, 1, ..."""
    named = getattr(structure, "feature_names_in_", getattr(structure, "columns", None))
    names = tuple(range(size)) if named is None else tuple(named)
    if hasattr(structure, "index") and tuple(structure.index) != names:
        raise OptionError(
            f"The rows of the matrix are {listing(structure.index)}, and its columns {listing(names)}; expected the "
            "same names in the same order."
        )
    return names


def _from_support(matrix: NDArray[Any], names: Names) -> GraphStructure:
    if len(names) != len(matrix):
        raise OptionError(f"The matrix has {len(matrix)} columns and there are {len(names)} names.")
    present = matrix != 0
    if not (present == present.T).all():
        first, second = np.argwhere(present != present.T)[0]
        raise OptionError(
            f"The matrix joins {names[first]!r} to {names[second]!r} and not the other way round; expected a "
            "symmetric one."
        )
    rows, columns = np.nonzero(np.triu(present, 1))
    return GraphStructure(names, tuple((names[a], names[b]) for a, b in zip(rows, columns, strict=True)))


def _placed(tree: CliqueTree) -> PlacedTree:
    """The tree with parents before their children."""
    order = list(reversed(tree.order))
    new = {old: number for number, old in enumerate(order)}
    return PlacedTree(
        tuple(np.array(tree.cliques[number], dtype=np.intp) for number in order),
        tuple(np.array(tree.separators[number], dtype=np.intp) for number in order),
        tuple(-1 if tree.parents[number] < 0 else new[tree.parents[number]] for number in order),
    )
