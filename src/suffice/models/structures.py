"""Structures to be asked as graphs: what separates what, which cliques there are, the tree that joins them.

They take every form in which a model takes its structure, fitted models among them, and know no probabilities.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import combinations
from typing import Any

from suffice.errors import OptionError, listing, shortened
from suffice.graphs.chordality import chordless_cycle
from suffice.graphs.clique_tree import CliqueTree, clique_tree
from suffice.graphs.cliques import cliques_of
from suffice.graphs.directed import ancestors, reachable, topological_order
from suffice.graphs.nodes import in_order
from suffice.graphs.triangulation import Rule, Triangulation, eliminate, triangulate
from suffice.graphs.undirected import connected_components, graph_of_scopes, joined_to
from suffice.models.bayesian.structure import check_node, open_structure, read_structure
from suffice.models.markov.feature import Feature
from suffice.models.markov.structure import read_terms

Names = tuple[Hashable, ...]
Edge = tuple[Hashable, Hashable]


class DirectedGraph:
    """The arcs of a Bayesian network: ancestors, Markov blankets, which variables are independent given which.

    Args:
        structure: edges (parent, child), text such as ``"a -> b <- c"``, a dict of parents, a graph of networkx,
            igraph or pyAgrum, a matrix (parents in rows), a network, fitted or not, or the path of a file that has one.

    >>> graph = DirectedGraph("rain -> wet <- sprinkler; rain <- season -> sprinkler")
    >>> graph.markov_blanket("rain")
    ('season', 'sprinkler', 'wet')
    >>> graph.d_separated("rain", "sprinkler", given="season")
    True
    >>> graph.d_separated("rain", "sprinkler", given=["season", "wet"])
    False
    """

    def __init__(self, structure: Any) -> None:
        """See the class."""
        self._parents = read_structure(open_structure(structure))

    @property
    def nodes(self) -> Names:
        """All nodes, in the order of the structure."""
        return tuple(self._parents)

    @property
    def edges(self) -> tuple[Edge, ...]:
        """The arcs (parent, child)."""
        return tuple((parent, node) for node, above in self._parents.items() for parent in above)

    def parents(self, node: Hashable) -> Names:
        """What the arcs into a node come from, in the order of the structure."""
        return self._parents[check_node(node, self._parents)]

    def children(self, node: Hashable) -> Names:
        """What the arcs out of a node lead to."""
        return self._children[check_node(node, self._parents)]

    def ancestors(self, node: Hashable) -> Names:
        """All from which a path of arcs leads to a node."""
        return tuple(in_order(ancestors(self._parents, [check_node(node, self._parents)]) - {node}))

    def descendants(self, node: Hashable) -> Names:
        """All to which a path of arcs leads from a node."""
        return tuple(in_order(ancestors(self._children, [check_node(node, self._parents)]) - {node}))

    def topological_order(self) -> Names:
        """Every node after its parents."""
        return tuple(topological_order(self._parents))

    def markov_blanket(self, node: Hashable) -> Names:
        """The parents, the children and their other parents: given these the node is independent of all the rest."""
        below = self.children(node)
        blanket = {*self.parents(node), *below, *(parent for child in below for parent in self._parents[child])}
        return tuple(in_order(blanket - {node}))

    def d_separated(self, first: Any, second: Any, *, given: Any = ()) -> bool:
        """Whether every network of this structure makes the first independent of the second, given the third.

        Args:
            first: a node, or a list of them.
            second: likewise.
            given: what is known: a node, or a list of them.
        """
        near, far, known = _three_sets(first, second, given, self._parents)
        return not reachable(self._parents, self._children, near, known) & far

    def v_structures(self) -> tuple[tuple[Hashable, Hashable, Hashable], ...]:
        """Colliders (a, node, b) whose parents a and b are not joined, which make the class of equivalent graphs."""
        joined = {frozenset(edge) for edge in self.edges}
        return tuple(
            (a, node, b)
            for node, above in self._parents.items()
            for a, b in combinations(in_order(above), 2)
            if frozenset((a, b)) not in joined
        )

    def equivalent(self, other: Any) -> bool:
        """Whether another structure says the same about independence: same lines and colliders (Verma and Pearl)."""
        other = other if isinstance(other, DirectedGraph) else DirectedGraph(other)
        mine, theirs = ({frozenset(edge) for edge in graph.edges} for graph in (self, other))
        same_nodes = set(self.nodes) == set(other.nodes)
        return same_nodes and mine == theirs and set(self.v_structures()) == set(other.v_structures())

    def moral(self) -> UndirectedGraph:
        """Without directions, with the parents of each node joined."""
        return UndirectedGraph(self)

    @cached_property
    def _children(self) -> Mapping[Hashable, Names]:
        below: dict[Hashable, list[Hashable]] = {node: [] for node in self._parents}
        for parent, child in self.edges:
            below[parent].append(child)
        return {node: tuple(children) for node, children in below.items()}

    def __repr__(self) -> str:
        """How large it is."""
        return f"DirectedGraph({len(self.nodes)} nodes, {len(self.edges)} arcs)"


class UndirectedGraph:
    """The lines of a Markov network or a Gaussian graph: separation, cliques, chordality, triangulations.

    Args:
        structure: pairs, cliques, text such as ``"a -- b -- c"``, a dict of neighbours, an undirected graph of
            networkx, igraph or pyAgrum, a symmetric matrix, a Markov network or a Gaussian graph, fitted or not; of a
            directed model the parents of each node are joined.

    >>> square = UndirectedGraph("a -- b -- c -- d -- a")
    >>> square.chordless_cycle()
    ('d', 'c', 'b', 'a')
    >>> wide = square.triangulate()
    >>> wide.fill, wide.width
    ((('b', 'd'),), 2)
    >>> wide.clique_tree().cliques
    (('a', 'b', 'd'), ('b', 'c', 'd'))
    """

    def __init__(self, structure: Any) -> None:
        """See the class."""
        scopes = [scope for term in read_terms(structure) for scope in _scopes(term)]
        self._near = graph_of_scopes(scopes, [node for scope in scopes for node in scope])

    @property
    def nodes(self) -> Names:
        """All nodes, in the order of the structure."""
        return tuple(self._near)

    @property
    def edges(self) -> tuple[Edge, ...]:
        """The lines, each once."""
        numbers = {node: number for number, node in enumerate(self._near)}
        both_ways = ((node, other) for node, near in self._near.items() for other in in_order(near))
        return tuple(edge for edge in both_ways if numbers[edge[0]] < numbers[edge[1]])

    def neighbours(self, node: Hashable) -> Names:
        """What a node is joined to, which is its Markov blanket."""
        return tuple(in_order(self._near[check_node(node, self._near)]))

    def components(self) -> tuple[Names, ...]:
        """The sets of nodes that paths join."""
        return tuple(connected_components(self._near))

    def separated(self, first: Any, second: Any, *, given: Any = ()) -> bool:
        """Whether every path from the first to the second goes through what is given: then they are independent.

        Args:
            first: a node, or a list of them.
            second: likewise.
            given: what is known: a node, or a list of them.
        """
        near, far, known = _three_sets(first, second, given, self._near)
        return not joined_to(self._near, near, known) & far

    def cliques(self) -> tuple[Names, ...]:
        """All maximal cliques; there may be 3^(n/3) of them."""
        return tuple(cliques_of(self._near) or ())

    @property
    def is_chordal(self) -> bool:
        """Whether every cycle of four or more nodes has a chord: then maximum likelihood has a closed form."""
        return not self.chordless_cycle()

    def chordless_cycle(self) -> Names:
        """A cycle of four or more nodes without a chord; empty where the graph is chordal."""
        return tuple(chordless_cycle(self._near))

    def triangulate(
        self,
        *,
        rule: Rule = "fill",
        order: Sequence[Hashable] | None = None,
        states: Mapping[Any, int] | None = None,
    ) -> TriangulatedGraph:
        """Eliminate the nodes one by one, joining the neighbours of each, which makes the graph chordal.

        Args:
            rule: how the next node is chosen: "fill" (fewest new lines), "weighted-fill", "boundary", "size" (smallest
                table) or "degree".
            order: the order of elimination, where it is known.
            states: the number of states of each node, 2 unless given.
        """
        if states is not None and set(states) != set(self._near):
            raise OptionError(
                f"states has the nodes {listing(tuple(states))}; expected those of the graph: {listing(self.nodes)}."
            )
        if order is None:
            return TriangulatedGraph(self, triangulate(self._near, states, rule=rule))
        if rule != "fill":
            raise OptionError(f"rule={rule!r} chooses an order, and order= is one. Give one of the two.")
        return TriangulatedGraph(self, eliminate(self._near, list(order), states))

    def __repr__(self) -> str:
        """How large it is."""
        return f"UndirectedGraph({len(self.nodes)} nodes, {len(self.edges)} lines)"


class TriangulatedGraph:
    """A graph made chordal by eliminating its nodes in an order; from `UndirectedGraph.triangulate`."""

    def __init__(self, graph: UndirectedGraph, triangulation: Triangulation) -> None:
        """See the class."""
        self.graph = graph
        self._triangulation = triangulation

    @property
    def order(self) -> Names:
        """The nodes as they were eliminated."""
        return self._triangulation.order

    @property
    def fill(self) -> tuple[Edge, ...]:
        """The lines that were added."""
        numbers = {node: number for number, node in enumerate(in_order(self.graph.nodes))}
        added = [in_order(pair) for pair in self._triangulation.fill(self.graph._near)]
        added.sort(key=lambda pair: [numbers[node] for node in pair])
        return tuple((first, second) for first, second in added)

    @property
    def width(self) -> int:
        """Nodes of the largest clique, less one: of the best of all orders this is the treewidth."""
        return self._triangulation.width

    @property
    def cells(self) -> int:
        """Cells of the tables of all its cliques together: what exact inference by this order needs."""
        return self._triangulation.cells

    def chordal(self) -> UndirectedGraph:
        """The graph with the lines that were added."""
        return UndirectedGraph([*self.graph.edges, *self.fill, *((node,) for node in self.graph.nodes)])

    def clique_tree(self) -> CliqueTree:
        """The maximal cliques, joined so that those which hold a node are connected (running intersection)."""
        return clique_tree(self._triangulation)

    def __repr__(self) -> str:
        """How wide it is."""
        return f"TriangulatedGraph(width {self.width}, {len(self.fill)} lines added, {self.cells:,} cells)"


def _scopes(term: Names | Feature) -> Iterable[Names]:
    return term.placements if isinstance(term, Feature) else (term,)


def _three_sets(first: Any, second: Any, given: Any, nodes: Mapping[Any, Any]) -> tuple[set[Any], set[Any], set[Any]]:
    """Three sets of nodes without a node in common, the first two not empty."""
    near, far, known = (
        _names(one, nodes, name) for one, name in ((first, "first"), (second, "second"), (given, "given"))
    )
    for name, chosen in (("first", near), ("second", far)):
        if not chosen:
            raise OptionError(f"{name} has no nodes; expected a node or a list of them.")
    twice = (near & far) | (near & known) | (far & known)
    if twice:
        raise OptionError(f"{listing(in_order(twice))} stands in two of first, second and given. Name each node once.")
    return near, far, known


def _names(names: Any, nodes: Mapping[Any, Any], what: str) -> set[Any]:
    """A node, or several of them."""
    if isinstance(names, Hashable) and names in nodes:
        return {names}
    if isinstance(names, list | tuple | set | frozenset):
        return {check_node(node, nodes) for node in names}
    if not isinstance(names, Hashable):
        raise OptionError(f"{what} is {shortened(names)}; expected a node or a list of them.")
    return {check_node(names, nodes)}
