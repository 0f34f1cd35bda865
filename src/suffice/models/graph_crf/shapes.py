"""What depends on a graph alone: whether it is a set of paths, and its junction tree; known shapes are kept."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Ints
from suffice.engines.junction_tree import TreePlan, plan_tree
from suffice.engines.plans import CELLS, Kept
from suffice.errors import SizeError

Scope = tuple[int, ...]

#: Shapes whose junction trees are kept for later calls.
SHAPES = 128
_plans: Kept[TreePlan | None] = Kept(SHAPES)


@dataclass(frozen=True, eq=False)
class Paths:
    """A graph of paths: its nodes along them (n,), where each begins, and which clique leads into each node.

    first (n,): whether a path begins here; link (n,): the number of the pair that leads into the node, -1 where a path
    begins; turned (n,): whether that pair names the later node first.
    """

    order: Ints
    first: NDArray[np.bool_]
    link: Ints
    turned: NDArray[np.bool_]


def paths_of(count: int, scopes: Sequence[Scope]) -> Paths | None:
    """The paths that a graph consists of; None if it is no such graph."""
    near: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    if len(scopes) >= count:
        return None
    for number, scope in enumerate(scopes):
        if len(scope) != 2:
            return None
        near[scope[0]].append((scope[1], number))
        near[scope[1]].append((scope[0], number))
    if any(len(others) > 2 for others in near):
        return None
    order: list[int] = []
    links: list[int] = []
    seen = [False] * count
    for start in range(count):
        if len(near[start]) == 2 or seen[start]:
            continue
        node, link = start, -1
        while node >= 0:
            seen[node] = True
            order.append(node)
            links.append(link)
            node, link = next(((other, way) for other, way in near[node] if way != link), (-1, -1))
    if len(order) < count:  # What is left goes round.
        return None
    link_of = np.array(links, np.int64)
    ahead = np.array([scopes[number][0] if number >= 0 else -1 for number in links], np.int64)
    return Paths(np.array(order, np.int64), link_of < 0, link_of, ahead == np.array(order))


def plan_of(count: int, states: int, scopes: tuple[Scope, ...], most_cells: int) -> TreePlan | None:
    """The junction tree of a graph, or None if its tables would have more than `most_cells` cells."""

    def make() -> TreePlan | None:
        if not _narrow(count, states, scopes, most_cells):
            return None
        try:
            plan = plan_tree(dict.fromkeys(range(count), states), scopes)
        except SizeError:
            return None
        return plan if plan.cells <= most_cells else None

    key = (count, states, scopes, most_cells)
    return _plans.answer(key, make, keep=lambda plan: plan is None or plan.cells <= CELLS)


def _narrow(count: int, states: int, scopes: Sequence[Scope], most_cells: int) -> bool:
    """Whether elimination by least degree stays within the cells; it gives up at the first table too large.

    Triangulating a picture takes seconds, and this tells in milliseconds that it would be in vain.
    """
    near: list[set[int]] = [set() for _ in range(count)]
    for scope in scopes:
        for node in scope:
            near[node].update(other for other in scope if other != node)
    heap = [(len(others), node) for node, others in enumerate(near)]
    heapq.heapify(heap)
    gone = [False] * count
    cells = 0
    while heap:
        degree, node = heapq.heappop(heap)
        if gone[node] or degree != len(near[node]):
            continue
        gone[node] = True
        cells += states ** (degree + 1)
        # The better triangulation that follows may be this much smaller.
        if cells > 4 * most_cells:
            return False
        for other in near[node]:
            near[other] |= near[node]
            near[other] -= {node, other}
            heapq.heappush(heap, (len(near[other]), other))
    return True
