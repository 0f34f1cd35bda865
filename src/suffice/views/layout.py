"""Where the nodes of a graph are drawn: in layers where edges have a direction, by distances where they have none.

Layers follow Sugiyama, Tagawa and Toda (1981): every edge points down, the order within layers has few crossings, and
nodes stand near the middle of their neighbours. Undirected graphs are placed by stress majorisation: distances in the
plane approach those in the graph (Gansner, Koren and North 2004). Both are deterministic.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from suffice.array_types import Floats
from suffice.fitting.portrait import Graph
from suffice.graphs.directed import topological_order
from suffice.graphs.undirected import neighbours_of

Edge = tuple[Hashable, Hashable]
Point = tuple[float, float]

#: Room for one letter, and around the text of a node, in pixels.
LETTER, MARGIN, HEIGHT = 7.2, 12.0, 28.0
#: Between neighbours in one layer, between the lines of long edges, and between layers.
BESIDE, LINES, BELOW = 16.0, 14.0, 62.0
#: Longer names are cut.
LONGEST_NAME = 20
#: Graphs of more nodes whose share of all possible lines is larger are drawn on a circle.
FEW, DENSE = 8, 0.4
SWEEPS = 12


@dataclass(frozen=True)
class Placement:
    """`places` are the middles of the nodes, `widths` their boxes, `routes` the points of each edge, in their order."""

    places: Mapping[Hashable, Point]
    widths: Mapping[Hashable, float]
    routes: tuple[tuple[Point, ...], ...]
    width: float
    height: float
    directed: bool


def short_name(name: object) -> str:
    """The name as it is drawn."""
    text = str(name)
    return text if len(text) <= LONGEST_NAME else text[: LONGEST_NAME - 1] + "…"


def box_width(name: object) -> float:
    """The width of the box around a name."""
    return max(LETTER * len(short_name(name)) + 2 * MARGIN, 44.0)


def place_graph(graph: Graph) -> Placement:
    """Place the nodes of a graph; a directed one has no cycle."""
    return _in_layers(graph.nodes, graph.edges) if graph.directed else _by_distance(graph.nodes, graph.edges)


# -- layers ----------------------------------------------------------------------------------------------------------


def layers_of(nodes: Sequence[Hashable], edges: Sequence[Edge]) -> dict[Hashable, int]:
    """The layer of each node: below all parents, and so near to its neighbours that edges are short."""
    parents: dict[Hashable, tuple[Hashable, ...]] = dict.fromkeys(nodes, ())
    children: dict[Hashable, list[Hashable]] = {node: [] for node in nodes}
    for parent, child in edges:
        parents[child] += (parent,)
        children[parent].append(child)
    layer: dict[Hashable, int] = {}
    order = topological_order(parents)
    for node in order:
        layer[node] = 1 + max((layer[parent] for parent in parents[node]), default=-1)
    for _ in range(4):
        for node in reversed(order):
            lowest = min((layer[child] for child in children[node]), default=layer[node] + 1) - 1
            if len(children[node]) > len(parents[node]):
                layer[node] = lowest
    return layer


def _in_layers(nodes: Sequence[Hashable], edges: Sequence[Edge]) -> Placement:
    layer = layers_of(nodes, edges)
    rows: list[list[Hashable]] = [[] for _ in range(1 + max(layer.values(), default=-1))]
    for node in nodes:
        rows[layer[node]].append(node)
    up: dict[Hashable, list[Hashable]] = {node: [] for node in nodes}
    chains = []
    for number, (parent, child) in enumerate(edges):
        between = [_Bend(number, depth) for depth in range(layer[parent] + 1, layer[child])]
        for bend in between:
            rows[bend.depth].append(bend)
            up[bend] = []
        chain: list[Hashable] = [parent, *between, child]
        for above, below in pairwise(chain):
            up[below].append(above)
        chains.append(chain)
    down: dict[Hashable, list[Hashable]] = {node: [] for node in up}
    for below, aboves in up.items():
        for above in aboves:
            down[above].append(below)
    rows = _with_few_crossings(rows, up, down)
    x = _abscissae(rows, up, down)
    left = min((x[node] - _half(node) for node in x), default=0.0)
    y = {node: HEIGHT / 2 + depth * (HEIGHT + BELOW) for depth, row in enumerate(rows) for node in row}
    places = {node: (x[node] - left, y[node]) for node in x}
    return Placement(
        places={node: places[node] for node in nodes},
        widths={node: box_width(node) for node in nodes},
        routes=tuple(tuple(places[node] for node in chain) for chain in chains),
        width=max((places[node][0] + _half(node) for node in x), default=0.0),
        height=max(0.0, len(rows) * (HEIGHT + BELOW) - BELOW),
        directed=True,
    )


@dataclass(frozen=True)
class _Bend:
    """Where a long edge passes a layer."""

    edge: int
    depth: int


def _half(node: Hashable) -> float:
    return LINES / 2 if isinstance(node, _Bend) else box_width(node) / 2


Links = Mapping[Hashable, Sequence[Hashable]]


def _with_few_crossings(rows: list[list[Hashable]], up: Links, down: Links) -> list[list[Hashable]]:
    """Order each layer by the middle of its neighbours above and below in turn, and keep the order with least cost."""
    best, least = [list(row) for row in rows], _crossings(rows, up)
    for sweep in range(2 * SWEEPS):
        downward = sweep % 2 == 0
        links = up if downward else down
        for depth in range(1, len(rows)) if downward else range(len(rows) - 2, -1, -1):
            row, beside = rows[depth], rows[depth - 1 if downward else depth + 1]
            where = {node: rank for rank, node in enumerate(beside)}
            now = {node: rank for rank, node in enumerate(row)}
            middle = {n: float(np.mean([where[m] for m in links[n]])) if links[n] else float(now[n]) for n in row}
            row.sort(key=lambda node: (middle[node], now[node]))
        _swap_neighbours(rows, up, down)
        cost = _crossings(rows, up)
        if cost < least:
            best, least = [list(row) for row in rows], cost
        if least == 0:
            break
    return best


def _crossings(rows: Sequence[Sequence[Hashable]], up: Links) -> int:
    """How often edges between neighbouring layers cross."""
    total = 0
    for above, row in pairwise(rows):
        where = {node: rank for rank, node in enumerate(above)}
        ends = np.array([(where[m], rank) for rank, node in enumerate(row) for m in up[node]]).reshape(-1, 2)
        over = np.sign(ends[:, None, :] - ends[None, :, :])
        total += int((over[..., 0] * over[..., 1] < 0).sum()) // 2
    return total


def _swap_neighbours(rows: list[list[Hashable]], up: Links, down: Links) -> None:
    """Swap two neighbours of a layer wherever that takes crossings away."""
    for depth, row in enumerate(rows):
        beside = [(up, rows[depth - 1])] if depth else []
        beside += [(down, rows[depth + 1])] if depth + 1 < len(rows) else []
        sides = [(links, {node: rank for rank, node in enumerate(other)}) for links, other in beside]
        for rank in range(len(row) - 1):
            gain = 0
            for links, where in sides:
                first = np.array([where[m] for m in links[row[rank]]])
                second = np.array([where[m] for m in links[row[rank + 1]]])
                gain += int(np.sign(first[:, None] - second[None, :]).sum())
            if gain > 0:
                row[rank], row[rank + 1] = row[rank + 1], row[rank]


def _abscissae(rows: Sequence[Sequence[Hashable]], up: Links, down: Links) -> dict[Hashable, float]:
    """Middles of nodes near those of their neighbours, the order and the room between them kept."""
    x: dict[Hashable, float] = {}
    rooms = [np.array([_room(a, b) for a, b in pairwise(row)]) for row in rows]
    for row, room in zip(rows, rooms, strict=True):
        middles = np.concatenate([[0.0], np.cumsum(room)]) if row else np.zeros(0)
        x |= dict(zip(row, middles - (middles[-1] / 2 if len(middles) else 0.0), strict=True))
    depths = list(range(len(rows)))
    for sweep in range(2 * SWEEPS):
        last = sweep >= 2 * SWEEPS - 2
        for depth in depths if sweep % 2 == 0 else reversed(depths):
            row, target, weight = rows[depth], [], []
            for node in rows[depth]:
                near = [*up[node], *down[node]] if last else (up if sweep % 2 == 0 else down)[node]
                target.append(float(np.mean([x[m] for m in near])) if near else x[node])
                weight.append((4.0 if isinstance(node, _Bend) else 1.0) if near else 0.2)
            x |= dict(zip(row, spread_out(np.array(target), np.array(weight), rooms[depth]).tolist(), strict=True))
    return x


def _room(left: Hashable, right: Hashable) -> float:
    gap = LINES if isinstance(left, _Bend) or isinstance(right, _Bend) else BESIDE
    return _half(left) + _half(right) + (0.0 if isinstance(left, _Bend) and isinstance(right, _Bend) else gap)


def spread_out(target: Floats, weight: Floats, room: Floats) -> Floats:
    """The x (n,) nearest to a target (n,) with ``x[k + 1] - x[k] >= room[k]``: weighted least squares.

    Less the sums of the rooms it is an isotonic regression, which pooling adjacent violators solves.
    """
    shift = np.concatenate([[0.0], np.cumsum(room)])[: len(target)]
    blocks: list[tuple[float, float, int]] = []
    for value, mass in zip(target - shift, weight, strict=True):
        block = (float(value), float(mass), 1)
        while blocks and blocks[-1][0] >= block[0]:
            before, total, size = blocks.pop()
            joint = total + block[1]
            block = ((before * total + block[0] * block[1]) / joint, joint, size + block[2])
        blocks.append(block)
    return np.asarray(np.concatenate([np.full(size, value) for value, _, size in blocks] or [np.zeros(0)]) + shift)


# -- distances -------------------------------------------------------------------------------------------------------


def _by_distance(nodes: Sequence[Hashable], edges: Sequence[Edge]) -> Placement:
    if not nodes:
        return Placement({}, {}, (), 0.0, 0.0, directed=False)
    widths = {node: box_width(node) for node in nodes}
    if len(nodes) > FEW and 2 * len(edges) > DENSE * len(nodes) * (len(nodes) - 1):
        points = _on_a_circle(np.array(list(widths.values())))
    else:
        points = majorise(_distances(nodes, edges)) if len(nodes) > 1 else np.zeros((1, 2))
    points *= _stretch(points, np.array(list(widths.values())))
    halves = np.array([[width / 2, HEIGHT / 2] for width in widths.values()])
    points -= (points - halves).min(axis=0)
    places = {node: (float(x), float(y)) for node, (x, y) in zip(nodes, points, strict=True)}
    far = (points + halves).max(axis=0)
    routes = tuple((places[a], places[b]) for a, b in edges)
    return Placement(places, widths, routes, float(far[0]), float(far[1]), directed=False)


def _on_a_circle(widths: Floats) -> Floats:
    """Points (n, 2) on a circle where boxes do not touch: of a dense graph no node lies upon the lines of others."""
    turn = 2 * np.pi * (np.arange(len(widths)) + 0.5) / len(widths) - np.pi / 2
    return np.column_stack([np.cos(turn), np.sin(turn)])


def _distances(nodes: Sequence[Hashable], edges: Sequence[Edge]) -> Floats:
    """Steps between all nodes (n, n); nodes that no path joins are a little further apart than any others."""
    number = {node: row for row, node in enumerate(nodes)}
    near = neighbours_of(edges, nodes)
    steps = np.full((len(nodes), len(nodes)), np.inf)
    for node, row in number.items():
        steps[row, row] = 0.0
        reached: list[Hashable] = [node]
        for seen in reached:
            for other in sorted(near[seen], key=number.__getitem__):
                if np.isinf(steps[row, number[other]]):
                    steps[row, number[other]] = steps[row, number[seen]] + 1
                    reached.append(other)
    apart = steps[np.isfinite(steps)].max(initial=1.0) * 0.7 + 1.0
    return np.where(np.isfinite(steps), steps, apart)


def majorise(distances: Floats, *, steps: int = 200) -> Floats:
    """Points (n, 2) whose distances are near those given (n, n), errors in shares of the distance."""
    n = len(distances)
    weight = 1.0 / np.where(distances > 0, distances, np.inf) ** 2
    turn = 2 * np.pi * np.arange(n) / n
    points = np.column_stack([np.cos(turn), np.sin(turn)]) * distances.max() / 2
    laplacian = np.diag(weight.sum(axis=1)) - weight
    inverse = np.linalg.pinv(laplacian)
    for _ in range(steps):
        away = points[:, None, :] - points[None, :, :]
        length = np.sqrt((away**2).sum(axis=2))
        ratio = weight * distances / np.where(length > 1e-12, length, np.inf)
        points = inverse @ (ratio.sum(axis=1)[:, None] * points - ratio @ points)
    return np.asarray(points)


def _stretch(points: Floats, widths: Floats) -> float:
    """By how much to scale points, in which an edge is about 1 long, so that no two boxes overlap."""
    away = np.abs(points[:, None, :] - points[None, :, :])
    room = np.stack([(widths[:, None] + widths[None, :]) / 2 + BESIDE, np.full((len(widths),) * 2, HEIGHT + 14)], 2)
    with np.errstate(divide="ignore"):
        needed = (room / away).min(axis=2)
    np.fill_diagonal(needed, 0.0)
    # On a circle only room for the boxes counts: its radius is 1.
    return float(np.clip(needed.max(), 100.0, max(260.0, 14.0 * len(points))))
