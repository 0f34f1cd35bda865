"""Elimination orders, and the chordal graphs that they make.

Eliminating a node joins all its neighbours to each other and removes it. The node with its neighbours at that moment is
a clique of the triangulated graph; its table has as many cells as the product of their cards. No fast way to the best
order is known, so the next node is chosen by a greedy rule.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

from suffice.errors import OptionError
from suffice.graphs.nodes import Node, numbered
from suffice.graphs.undirected import Graph
from suffice.records import record

Rule = Literal["fill", "weighted-fill", "boundary", "size", "degree"]
RULES: tuple[Rule, ...] = ("fill", "weighted-fill", "boundary", "size", "degree")

_NOISE = 0.4  # Standard deviation, in bits, of what a seed adds to the scores.
_SMALL = 2_000  # Trees of up to this many cells are not worth a second look.
_CELLS_PER_TRY = 20_000
_MOST_WORK = 500_000  # Pairs of neighbours that all tries together may look at.
_ABOVE = 64.0  # Keeps scores with noise above 0, the score of a node that adds nothing.


@record(frozen=True)
class Triangulation:
    """An elimination order, and for each node of it the neighbours that it had when it was eliminated."""

    order: tuple[Node, ...]
    later: tuple[tuple[Node, ...], ...]
    cards: Mapping[Any, int]

    @cached_property
    def homes(self) -> tuple[int, ...]:
        """For each place of the order, the place whose elimination clique is maximal and contains this one's.

        The clique of node u lies in that of an earlier v if u is the first neighbour of v to be eliminated after v, and
        v had one neighbour more than u: then the neighbours of v are u and the neighbours of u.
        """
        rank = {node: index for index, node in enumerate(self.order)}
        homes = list(range(len(self.order)))
        for index, others in enumerate(self.later):
            first = min([rank[other] for other in others], default=-1)
            if first >= 0 and homes[first] == first and len(others) == len(self.later[first]) + 1:
                homes[first] = homes[index]
        return tuple(homes)

    @cached_property
    def cells(self) -> int:
        """Cells of the tables of all maximal cliques together: what calibrating the tree costs."""
        return sum(
            self.cards[self.order[index]] * math.prod([self.cards[other] for other in self.later[index]])
            for index, home in enumerate(self.homes)
            if home == index
        )

    @property
    def width(self) -> int:
        """Nodes of the largest clique, less one; -1 for no nodes."""
        return max(map(len, self.later), default=-1)

    def fill(self, graph: Graph) -> set[frozenset[Node]]:
        """The edges that were added to the graph."""
        return {
            frozenset((node, other))
            for node, others in zip(self.order, self.later, strict=True)
            for other in others
            if other not in graph[node]
        }


def triangulate(
    graph: Graph, cards: Mapping[Any, int] | None = None, *, rule: Rule = "fill", seed: int | None = None
) -> Triangulation:
    """Eliminate all nodes, greedily by one rule.

    "fill" takes the node that adds the fewest edges; "weighted-fill" weighs an added edge by the product of its cards;
    "boundary" takes the smallest table of the neighbours, "size" the smallest table of the node and its neighbours, and
    "degree" the fewest neighbours. Ties go to the smallest table, then to the smallest by `node_key`. A seed shakes the
    scores at random, so that several tries can find a better order. Cards are 2 if not given.
    """
    if rule not in RULES:
        raise OptionError(f"Triangulation has the rule {rule!r}; known rules: {', '.join(RULES)}.")
    number = numbered(graph)
    names = list(number)
    near = [{number[other] for other in graph[node]} for node in names]
    sizes = [2 if cards is None else int(cards[node]) for node in names]
    elimination = _Elimination(near, sizes, rule, seed)
    order, later = elimination.run()
    return Triangulation(
        tuple(names[node] for node in order),
        tuple(tuple(names[other] for other in others) for others in later),
        dict(zip(names, sizes, strict=True)),
    )


def eliminate(graph: Graph, order: Sequence[Node], cards: Mapping[Any, int] | None = None) -> Triangulation:
    """Eliminate the nodes in a given order."""
    if set(order) != set(graph) or len(order) != len(graph):
        raise OptionError(f"An elimination order holds each node once; {len(order)} are given for {len(graph)} nodes.")
    number = numbered(graph)
    near = {node: set(others) for node, others in graph.items()}
    later = []
    for node in order:
        others = near.pop(node)
        for other in others:
            near[other] |= others
            near[other] -= {node, other}
        later.append(tuple(sorted(others, key=number.__getitem__)))
    return Triangulation(tuple(order), tuple(later), {node: 2 if cards is None else int(cards[node]) for node in order})


def best_triangulation(graph: Graph, cards: Mapping[Any, int], *, tries: int | None = None) -> Triangulation:
    """The triangulation with the fewest cells that several rules find, and further tries where the tables are large.

    By default there are as many tries as cost about as much as one calibration of the tree: one for every 20,000 cells
    and node, and fewer if they would take long. Their number depends on the graph alone, so the result is the same on
    every machine.
    """
    best = triangulate(graph, cards, rule="fill")
    if best.cells > _SMALL and len(set(cards.values())) > 1:
        best = min(best, triangulate(graph, cards, rule="weighted-fill"), key=_cost)
    if tries is None:
        work = sum(1 + len(others) ** 2 for others in best.later)
        tries = min(best.cells // (_CELLS_PER_TRY * max(len(graph), 1)), _MOST_WORK // max(work, 1))
    plain: tuple[Rule, ...] = ("boundary", "size")
    for number in range(tries):
        if number < len(plain):
            trial = triangulate(graph, cards, rule=plain[number])
        else:
            trial = triangulate(graph, cards, rule=RULES[number % 3], seed=number)
        best = min(best, trial, key=_cost)
    return best


def _cost(triangulation: Triangulation) -> int:
    return triangulation.cells


def _noise(seed: int, count: int) -> list[float]:
    """Normal numbers that depend on the seed alone."""
    from random import Random  # Most graphs never need it.

    chance = Random(seed)
    return [chance.gauss(0.0, _NOISE) for _ in range(count)]


class _Elimination:
    """Greedy elimination with exact scores, updated only where the graph changes.

    near: neighbours of each node, changed in place. For node v with neighbours N(v): fill[v] is the sum of
    unit[a] unit[b] over the pairs a, b of N(v) that are not joined; sums[v] the sum of unit over N(v); sizes[v] the
    product of cards over v and N(v). unit is 1, or the cards for weighted fill.
    """

    def __init__(self, near: list[set[int]], cards: list[int], rule: Rule, seed: int | None) -> None:
        self.near = near
        self.cards = cards
        self.rule = rule
        self.unit = cards if rule == "weighted-fill" else [1] * len(cards)
        self.sums = [sum(self.unit[other] for other in others) for others in near]
        self.sizes = [cards[node] * math.prod([cards[other] for other in others]) for node, others in enumerate(near)]
        self.fill = [self._missing(node) for node in range(len(near))]
        self.noise = None if seed is None else _noise(seed, len(near))

    def run(self) -> tuple[list[int], list[list[int]]]:
        """The order, and the neighbours of each node when it was eliminated, sorted."""
        keys = [self._key(node) for node in range(len(self.near))]
        queue = [(*key, node) for node, key in enumerate(keys)]
        heapq.heapify(queue)
        order: list[int] = []
        later: list[list[int]] = []
        done = [False] * len(self.near)
        while queue:
            *key, node = heapq.heappop(queue)
            if done[node] or tuple(key) != keys[node]:
                continue
            done[node] = True
            order.append(node)
            later.append(sorted(self.near[node]))
            for other in self._remove(node):
                fresh = self._key(other)
                if fresh != keys[other]:
                    keys[other] = fresh
                    heapq.heappush(queue, (*fresh, other))
        return order, later

    def _key(self, node: int) -> tuple[float, int]:
        size = self.sizes[node]
        if self.rule == "size":
            score = size
        elif self.rule == "boundary":
            score = size // self.cards[node]
        elif self.rule == "degree":
            score = len(self.near[node])
        else:
            score = self.fill[node]
        if self.noise is None or score == 0:
            return score, size
        return math.log2(score) + self.noise[node] + _ABOVE, size

    def _missing(self, node: int) -> int:
        others = sorted(self.near[node])
        unit = self.unit
        total = 0
        for index, first in enumerate(others):
            known = self.near[first]
            total += unit[first] * sum([unit[second] for second in others[index + 1 :] if second not in known])
        return total

    def _remove(self, node: int) -> set[int]:
        """Join the neighbours of a node and remove it; returns the nodes whose scores may have changed."""
        near, fill, sums, sizes, cards, unit = self.near, self.fill, self.sums, self.sizes, self.cards, self.unit
        others = sorted(near[node])
        touched = set(others)
        if fill[node]:
            for index, first in enumerate(others):
                for second in others[index + 1 :]:
                    if second not in near[first]:
                        touched |= self._join(first, second)
        around = sums[node]
        for other in others:
            # All neighbours of the node are joined by now, so it is not joined to the rest of near[other] alone.
            fill[other] -= unit[node] * (sums[other] - unit[node] - (around - unit[other]))
            sums[other] -= unit[node]
            sizes[other] //= cards[node]
            near[other].discard(node)
        near[node] = set()
        return touched

    def _join(self, first: int, second: int) -> set[int]:
        """Add an edge; returns the nodes joined to both its ends, for which it is no longer missing."""
        near, fill, sums, unit = self.near, self.fill, self.sums, self.unit
        common = near[first] & near[second]
        weight = unit[first] * unit[second]
        shared = 0
        for other in common:
            fill[other] -= weight
            shared += unit[other]
        fill[first] += unit[second] * (sums[first] - shared)
        fill[second] += unit[first] * (sums[second] - shared)
        sums[first] += unit[second]
        sums[second] += unit[first]
        self.sizes[first] *= self.cards[second]
        self.sizes[second] *= self.cards[first]
        near[first].add(second)
        near[second].add(first)
        return common
