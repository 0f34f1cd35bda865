"""Maximal cliques of any graph, chordal or not."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from suffice.graphs.nodes import Node, in_order, numbered
from suffice.graphs.undirected import Graph


def cliques_of(graph: Graph, *, most: int | None = None) -> list[tuple[Node, ...]] | None:
    """All maximal cliques, each one and all of them in the order of `node_key`; None where there are more than `most`.

    By Bron and Kerbosch (1973) with the pivot of Tomita and others (2006): what is joined to the pivot is left for
    later, as every maximal clique holds the pivot or something that is not joined to it. A graph of n nodes may have
    3^(n/3) maximal cliques, hence the limit.
    """
    number = numbered(graph)
    cliques: list[tuple[Node, ...]] = []
    left: list[tuple[tuple[Node, ...], set[Node], set[Node]]] = [((), set(graph), set())]
    while left:
        clique, candidates, done = left.pop()
        if not candidates and not done:
            if clique:
                cliques.append(tuple(sorted(clique, key=number.__getitem__)))
            if most is not None and len(cliques) > most:
                return None
            continue
        if not candidates:
            continue
        for node in in_order(candidates - graph[_pivot(graph, candidates, done, number)]):
            left.append(((*clique, node), candidates & graph[node], done & graph[node]))
            candidates = candidates - {node}
            done = done | {node}
    return sorted(cliques, key=lambda clique: [number[node] for node in clique])


def _pivot(graph: Graph, candidates: AbstractSet[Node], done: AbstractSet[Node], number: Mapping[Any, int]) -> Node:
    """The node that is joined to the most candidates; the smallest of several."""
    return min(candidates | done, key=lambda node: (-len(candidates & graph[node]), number[node]))
