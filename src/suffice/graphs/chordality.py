"""Chordal graphs: every cycle of four or more nodes has a chord.

Maximum cardinality search visits next a node with the most visited neighbours. A graph is chordal if and only if, at
every visit, the visited neighbours are joined to each other (Tarjan and Yannakakis 1984).
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator

from suffice.graphs.nodes import Node, in_order, numbered
from suffice.graphs.undirected import Graph


def maximum_cardinality_search(graph: Graph) -> list[Node]:
    """Visit all nodes, always one with the most visited neighbours; ties go to the smallest by `node_key`.

    For a chordal graph the reverse is a perfect elimination order: it adds no edge.
    """
    number = numbered(graph)
    names = list(number)
    near = [[number[other] for other in graph[node]] for node in names]
    count = [0] * len(names)
    buckets: list[list[int]] = [list(range(len(names)))]  # A heap of nodes for each number of visited neighbours.
    order: list[Node] = []
    visited = [False] * len(names)
    top = 0
    while len(order) < len(names):
        while not buckets[top]:
            top -= 1
        node = heapq.heappop(buckets[top])
        if visited[node] or count[node] != top:
            continue
        visited[node] = True
        order.append(names[node])
        for other in near[node]:
            if not visited[other]:
                count[other] += 1
                if count[other] == len(buckets):
                    buckets.append([])
                heapq.heappush(buckets[count[other]], other)
        top = min(top + 1, len(buckets) - 1)
    return order


def is_chordal(graph: Graph) -> bool:
    """Whether every cycle of four or more nodes has a chord."""
    return next(_unjoined(graph), None) is None


def chordless_cycle(graph: Graph) -> list[Node]:
    """A cycle of at least four nodes without a chord, as a list of its nodes; empty if the graph is chordal."""
    for node, first, second in _unjoined(graph):
        path = _path_around(graph, node, first, second)
        if path:
            return [node, *path]
    return []


def _unjoined(graph: Graph) -> Iterator[tuple[Node, Node, Node]]:
    """Nodes with two neighbours that were visited before them and are not joined.

    The visited neighbours of a node must all be neighbours of the one visited last, which it suffices to test.
    """
    position = {node: index for index, node in enumerate(maximum_cardinality_search(graph))}
    for node in position:
        before = [other for other in graph[node] if position[other] < position[node]]
        if not before:
            continue
        last = max(before, key=position.__getitem__)
        for other in in_order(set(before) - graph[last] - {last}):
            yield node, last, other


def _path_around(graph: Graph, node: Node, start: Node, end: Node) -> list[Node]:
    """A shortest path from start to end that meets no other neighbour of node; empty if there is none.

    Being shortest it has no chord, so together with node it is a chordless cycle.
    """
    closed = (graph[node] | {node}) - {end}
    came_from: dict[Node, Node] = {start: start}
    queue = deque([start])
    while queue:
        here = queue.popleft()
        if here == end:
            path = [end]
            while path[-1] != start:
                path.append(came_from[path[-1]])
            return path[::-1]
        for other in in_order(graph[here] - closed):
            if other not in came_from:
                came_from[other] = here
                queue.append(other)
    return []
