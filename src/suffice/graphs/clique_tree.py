"""Maximal cliques of a triangulated graph, and the tree that joins them.

In a clique tree the cliques that hold a node are connected (running intersection). All clique trees of a chordal graph
have the same separators with the same multiplicities; they differ in which cliques an edge joins. Passing a message
touches both tables, so the tree here minimises the sum of |Ci| + |Cj| over its edges.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from suffice.graphs.nodes import Node, node_key, numbered
from suffice.graphs.triangulation import Triangulation
from suffice.records import record


@record(frozen=True)
class CliqueTree:
    """Cliques, and the parent of each in a rooted forest, -1 for a root; one tree for each connected component.

    Nodes of a clique are in the order of `node_key`. Roots are the cliques with the largest tables.
    """

    cliques: tuple[tuple[Node, ...], ...]
    parents: tuple[int, ...]
    cards: Mapping[Any, int]

    @cached_property
    def separators(self) -> tuple[tuple[Node, ...], ...]:
        """What each clique shares with its parent, in the order of `node_key`; () for a root."""
        return tuple(
            () if parent < 0 else tuple(node for node in clique if node in self._sets[parent])
            for clique, parent in zip(self.cliques, self.parents, strict=True)
        )

    @cached_property
    def _sets(self) -> tuple[frozenset[Node], ...]:
        return tuple(map(frozenset, self.cliques))

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Cells of the table of each clique."""
        return tuple(math.prod([self.cards[node] for node in clique]) for clique in self.cliques)

    @cached_property
    def order(self) -> tuple[int, ...]:
        """Cliques by depth first, children before their parent: a message is used soon after it is made."""
        children: list[list[int]] = [[] for _ in self.cliques]
        for index, parent in enumerate(self.parents):
            if parent >= 0:
                children[parent].append(index)
        order: list[int] = []
        left = [index for index, parent in enumerate(self.parents) if parent < 0]
        while left:
            index = left.pop()
            order.append(index)
            left.extend(children[index])
        return tuple(reversed(order))

    @property
    def width(self) -> int:
        """Nodes of the largest clique, less one; -1 for no cliques."""
        return max(map(len, self.cliques), default=0) - 1

    @property
    def multiplicities(self) -> Counter[tuple[Node, ...]]:
        """How many edges of the tree have each separator."""
        return Counter(
            separator for separator, parent in zip(self.separators, self.parents, strict=True) if parent >= 0
        )


def clique_tree(triangulation: Triangulation) -> CliqueTree:
    """The maximal cliques of a triangulation, joined by the cheapest clique tree."""
    number = numbered(triangulation.order)
    maximal, separators = _maximal(triangulation)
    cliques = sorted((tuple(sorted(clique, key=number.__getitem__)) for clique in maximal), key=_clique_key)
    sizes = [math.prod([triangulation.cards[node] for node in clique]) for clique in cliques]
    return CliqueTree(tuple(cliques), _hang(_join(cliques, sizes, separators), sizes), triangulation.cards)


def _clique_key(clique: tuple[Node, ...]) -> tuple[object, ...]:
    return tuple(map(node_key, clique))


def _maximal(triangulation: Triangulation) -> tuple[list[tuple[Node, ...]], list[frozenset[Node]]]:
    """Maximal cliques, and the separators of a tree of them (empty ones left out).

    The nodes of one home are eliminated from the same clique; what the last of them leaves is a separator.
    """
    last = {home: index for index, home in enumerate(triangulation.homes)}
    cliques = [(triangulation.order[home], *triangulation.later[home]) for home in sorted(last)]
    separators = [frozenset(triangulation.later[last[home]]) for home in sorted(last)]
    return cliques, [separator for separator in separators if separator]


def _join(
    cliques: Sequence[tuple[Node, ...]], sizes: Sequence[int], separators: Iterable[frozenset[Node]]
) -> list[list[int]]:
    """Neighbours of each clique in the tree with the least sum of |Ci| + |Cj|.

    Take separators from the largest to the smallest. The cliques that contain S fall into parts already joined by
    larger separators; the cheapest way to join the parts is to join the smallest clique of each to the smallest of all.
    """
    holders: dict[Node, list[int]] = {}
    for index, clique in enumerate(cliques):
        for node in clique:
            holders.setdefault(node, []).append(index)
    sets = list(map(frozenset, cliques))
    part = list(range(len(cliques)))

    def find(index: int) -> int:
        while part[index] != index:
            part[index] = part[part[index]]
            index = part[index]
        return index

    near: list[list[int]] = [[] for _ in cliques]
    for separator in sorted(dict.fromkeys(separators), key=len, reverse=True):
        rarest = min((holders[node] for node in separator), key=len)
        smallest: dict[int, int] = {}
        for index in sorted((index for index in rarest if separator <= sets[index]), key=lambda i: (sizes[i], i)):
            smallest.setdefault(find(index), index)
        hub, *others = smallest.values()
        for index in others:
            near[hub].append(index)
            near[index].append(hub)
            part[find(index)] = find(hub)
    return near


def _hang(near: Sequence[Sequence[int]], sizes: Sequence[int]) -> tuple[int, ...]:
    """Parents in the forest whose roots are the largest cliques of their trees."""
    parents = [-2] * len(near)
    for root in sorted(range(len(near)), key=lambda index: (-sizes[index], index)):
        if parents[root] != -2:
            continue
        parents[root] = -1
        left = [root]
        while left:
            index = left.pop()
            for other in sorted(near[index]):
                if parents[other] == -2:
                    parents[other] = index
                    left.append(other)
    return tuple(parents)
