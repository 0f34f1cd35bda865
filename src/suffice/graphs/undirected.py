"""Undirected graphs, given as a mapping from each node to the set of its neighbours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from itertools import combinations
from typing import Any

from suffice.errors import OptionError, shortened
from suffice.graphs.nodes import Node, in_order

Graph = Mapping[Any, AbstractSet[Any]]


def neighbours_of(edges: Iterable[tuple[Node, Node]], nodes: Iterable[Node] = ()) -> dict[Node, set[Node]]:
    """Collect edges into a mapping from every node to its neighbours.

    `nodes` adds nodes that have no edge. Raises OptionError for a self loop, and for an edge given twice, in the same
    or in the other direction.
    """
    graph: dict[Node, set[Node]] = {node: set() for node in nodes}
    for edge in edges:
        if isinstance(edge, str) or len(edge) != 2:
            raise OptionError(
                f"An edge is a pair of nodes; found {shortened(edge)}. Give pairs, as in [('a', 'b'), ('b', 'c')]."
            )
        first, second = edge
        if first == second:
            raise OptionError(f"Node {first!r} is joined to itself. Remove that edge.")
        if second in graph.get(first, ()):
            raise OptionError(f"The edge between {first!r} and {second!r} is given more than once. Give it once.")
        graph.setdefault(first, set()).add(second)
        graph.setdefault(second, set()).add(first)
    return graph


def graph_of_scopes(scopes: Iterable[Iterable[Node]], nodes: Iterable[Node] = ()) -> dict[Node, set[Node]]:
    """The graph that joins two nodes whenever some scope holds both; `nodes` adds nodes that are in no scope."""
    graph: dict[Node, set[Node]] = {node: set() for node in nodes}
    for scope in dict.fromkeys(frozenset(scope) for scope in scopes):
        for node in scope:
            graph.setdefault(node, set())
        for first, second in combinations(scope, 2):
            graph[first].add(second)
            graph[second].add(first)
    return graph


def connected_components(graph: Graph) -> list[tuple[Node, ...]]:
    """Sets of nodes joined by paths; each one, and the list by its first nodes, in the order of `node_key`."""
    seen: set[Node] = set()
    components = []
    for start in in_order(graph):
        if start not in seen:
            members = joined_to(graph, [start])
            seen |= members
            components.append(tuple(in_order(members)))
    return components


def joined_to(graph: Graph, sources: Iterable[Node], known: AbstractSet[Node] = frozenset()) -> set[Node]:
    """The sources and all to which paths lead from them, none of them through what is known."""
    reached = set(sources)
    left = list(reached)
    while left:
        fresh = graph[left.pop()] - reached - known
        reached |= fresh
        left.extend(fresh)
    return reached
