"""Directed acyclic graphs, given as a mapping from each node to its parents."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import combinations
from typing import Any

from suffice.errors import OptionError, listing, shortened
from suffice.graphs.nodes import Node, in_order, numbered

Parents = Mapping[Any, Sequence[Any]]


def parents_of(edges: Iterable[tuple[Node, Node]], nodes: Iterable[Node] = ()) -> dict[Node, tuple[Node, ...]]:
    """Collect edges (parent, child) into a mapping from every node to its parents, and check it.

    Parents keep the order of the edges; `nodes` adds nodes that have no edge. Raises OptionError for self loops,
    edges given twice, and cycles.
    """
    listed: dict[Node, list[Node]] = {node: [] for node in nodes}
    for edge in edges:
        if isinstance(edge, str) or not isinstance(edge, Sequence) or len(edge) != 2:
            raise OptionError(
                f"An edge is a pair (parent, child); found {shortened(edge)}. Give pairs, as in [('a', 'b'), ('b', "
                f"'c')]."
            )
        parent, child = edge
        listed.setdefault(parent, [])
        listed.setdefault(child, []).append(parent)
    parents = {node: tuple(above) for node, above in listed.items()}
    check_acyclic(parents)
    return parents


def check_acyclic(parents: Parents) -> None:
    """Raise OptionError if a node is its own parent, has a parent twice or an unknown one, or lies on a cycle."""
    for node, above in parents.items():
        if len({node, *above}) > len(above) and all(parent in parents for parent in above):
            continue
        if node in above:
            raise OptionError(f"Node {node!r} is its own parent. Remove the edge from {node!r} to itself.")
        if len(set(above)) != len(above):
            twice = next(parent for index, parent in enumerate(above) if parent in above[:index])
            raise OptionError(f"The edge {twice!r} -> {node!r} is given more than once. Give it once.")
        unknown = [parent for parent in above if parent not in parents]
        if unknown:
            raise OptionError(
                f"Node {node!r} has parents that are not nodes: {listing(in_order(unknown))}. "
                "Add them to the graph, with parents of their own or none."
            )
    if not _ordered_soon(parents):
        topological_order(parents)


def _ordered_soon(parents: Parents, sweeps: int = 8) -> bool:
    """Whether a few sweeps, to and fro, place every node after its parents; no order is made where none is needed."""
    placed: set[Node] = set()
    left = list(parents)
    for _ in range(sweeps):
        waiting = []
        for node in left:
            if placed.issuperset(parents[node]):
                placed.add(node)
            else:
                waiting.append(node)
        if not waiting:
            return True
        left = waiting[::-1]
    return False


def topological_order(parents: Parents) -> list[Node]:
    """Every node after its parents; among the nodes that could be next, the smallest by `node_key` is.

    Raises OptionError naming a cycle if there is one.
    """
    number = numbered(parents)
    names = list(number)
    children: list[list[int]] = [[] for _ in names]
    waiting = [len(parents[node]) for node in names]
    for node, above in parents.items():
        for parent in above:
            children[number[parent]].append(number[node])
    ready = [index for index, count in enumerate(waiting) if count == 0]
    order = []
    while ready:
        index = heapq.heappop(ready)
        order.append(names[index])
        for child in children[index]:
            waiting[child] -= 1
            if waiting[child] == 0:
                heapq.heappush(ready, child)
    if len(order) < len(names):
        cycle = find_cycle(parents)
        raise OptionError(
            f"The graph has a directed cycle: {' -> '.join(map(repr, cycle))}. Remove or turn one of these edges."
        )
    return order


def find_cycle(parents: Parents) -> list[Node]:
    """A shortest directed cycle through its first node, which is repeated at the end; empty if there is none.

    The first node is the smallest one, by `node_key`, that lies on any cycle.
    """
    children: dict[Node, list[Node]] = {node: [] for node in parents}
    for child in in_order(parents):
        for parent in parents[child]:
            children[parent].append(child)
    for start in in_order(parents):
        if parents[start] and (path := _way_back(children, start)):
            return path
    return []


def _way_back(children: Mapping[Any, Sequence[Node]], start: Node) -> list[Node]:
    """A shortest path along the edges from a node to itself, or an empty list."""
    came_from: dict[Node, Node] = {}
    queue = deque([start])
    while queue:
        node = queue.popleft()
        for child in children[node]:
            if child == start:
                path = [node]
                while path[-1] != start:
                    path.append(came_from[path[-1]])
                return [*reversed(path), start]
            if child not in came_from:
                came_from[child] = node
                queue.append(child)
    return []


def ancestors(parents: Parents, nodes: Iterable[Node]) -> set[Node]:
    """The nodes themselves and everything above them."""
    reached = set(nodes)
    left = list(reached)
    while left:
        for parent in parents[left.pop()]:
            if parent not in reached:
                reached.add(parent)
                left.append(parent)
    return reached


def reachable(parents: Parents, children: Parents, sources: Iterable[Node], known: AbstractSet[Node]) -> set[Node]:
    """What the sources are not d-separated from by what is known: all that a path leads to which nothing blocks.

    A path is blocked by a known node between two of which one is its child, and by a node between two parents unless it
    or something below it is known. Each node is met at most twice, from above and from below.
    """
    above_known = ancestors(parents, known)
    left = [(node, False) for node in sources]
    met: set[tuple[Node, bool]] = set()
    reached: set[Node] = set()
    while left:
        step = left.pop()
        if step in met:
            continue
        met.add(step)
        node, from_parent = step
        if node not in known:
            reached.add(node)
            left.extend((child, True) for child in children[node])
            if not from_parent:
                left.extend((parent, False) for parent in parents[node])
        if from_parent and node in above_known:
            left.extend((parent, False) for parent in parents[node])
    return reached


def requisite(
    parents: Parents, asked: Iterable[Node], known: Collection[Node], hinted: Collection[Node] = ()
) -> set[Node]:
    """The nodes whose distributions given their parents enter P(asked | known); all others cancel or add up to one.

    The Bayes ball (Shachter 1998) starts at what is asked: an unknown node passes it from its children on to all its
    neighbours and from its parents on to its children, a known one returns it to its parents. `hinted` are nodes about
    which something is known, but not their state.
    """
    children: dict[Any, list[Any]] = {node: [] for node in parents}
    for node, above in parents.items():
        for parent in above:
            children[parent].append(node)
    upwards, downwards = set[Any](), set[Any]()
    waiting = [(node, True) for node in asked if node not in known]
    while waiting:
        node, from_below = waiting.pop()
        if (node in hinted or (node in known) is not from_below) and node not in upwards:
            upwards.add(node)
            waiting.extend((parent, True) for parent in parents[node])
        if node not in known and node not in downwards:
            downwards.add(node)
            waiting.extend((child, False) for child in children[node])
    return upwards


def moral_graph(parents: Parents) -> dict[Node, set[Node]]:
    """Drop the directions and join all parents of a common child; returns the neighbours of each node."""
    graph: dict[Node, set[Node]] = {node: set() for node in parents}
    for node, above in parents.items():
        for first, second in combinations((*above, node), 2):
            graph[first].add(second)
            graph[second].add(first)
    return graph
