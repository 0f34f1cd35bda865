"""Where graphs are drawn: laws of the layers, and distances."""

from collections.abc import Hashable, Sequence
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import LinearConstraint, minimize

from suffice.fitting.portrait import Graph
from suffice.views.layout import (
    BESIDE,
    HEIGHT,
    Placement,
    box_width,
    layers_of,
    majorise,
    place_graph,
    short_name,
    spread_out,
)


def place(nodes: Sequence[Hashable], edges: Sequence[tuple[Hashable, Hashable]], *, directed: bool) -> Placement:
    return place_graph(Graph(tuple(nodes), tuple(edges), directed))


@st.composite
def acyclic(draw: st.DrawFn) -> tuple[list[str], list[tuple[str, str]]]:
    names = [f"node{k}" for k in range(draw(st.integers(1, 12)))]
    pairs = list(combinations(names, 2))
    return names, draw(st.lists(st.sampled_from(pairs), unique=True, max_size=20)) if pairs else []


@settings(max_examples=60)
@given(acyclic())
def test_edges_point_down_and_boxes_do_not_touch(graph: tuple[list[str], list[tuple[str, str]]]) -> None:
    nodes, edges = graph
    placed = place(nodes, edges, directed=True)
    assert set(placed.places) == set(nodes)
    for (parent, child), route in zip(edges, placed.routes, strict=True):
        assert route[0] == placed.places[parent]
        assert route[-1] == placed.places[child]
        assert all(below[1] > above[1] for above, below in pairwise(route))
    for first, second in combinations(nodes, 2):
        (x, y), (u, v) = placed.places[first], placed.places[second]
        apart = abs(x - u) - (placed.widths[first] + placed.widths[second]) / 2
        assert apart >= BESIDE - 1e-6 or abs(y - v) >= 2 * HEIGHT
    for node, (x, y) in placed.places.items():
        half = placed.widths[node] / 2
        assert -1e-6 <= x - half
        assert x + half <= placed.width + 1e-6
        assert HEIGHT / 2 <= y <= placed.height - HEIGHT / 2


def test_layers_are_short() -> None:
    edges = [("a", "b"), ("b", "c"), ("c", "d"), ("late", "d")]
    assert layers_of(["a", "b", "c", "d", "late"], edges) == {"a": 0, "b": 1, "c": 2, "d": 3, "late": 2}


def test_crossings_are_undone() -> None:
    # In the given order all three edges cross one another.
    edges = [("a", "z"), ("b", "y"), ("c", "x")]
    placed = place(["a", "b", "c", "x", "y", "z"], edges, directed=True)
    order = [sorted("abc", key=lambda n: placed.places[n][0]), sorted("xyz", key=lambda n: placed.places[n][0])]
    partner = dict(edges)
    assert [partner[node] for node in order[0]] == order[1]
    for parent, child in edges:
        assert placed.places[parent][0] == pytest.approx(placed.places[child][0], abs=1e-6)


@settings(max_examples=40)
@given(st.data())
def test_spread_out_is_the_nearest_allowed(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 5))
    number = st.floats(-10, 10).map(lambda value: round(value, 2))
    wish = np.array(data.draw(st.lists(number, min_size=n, max_size=n)))
    weight = np.array(data.draw(st.lists(st.sampled_from([0.2, 1.0, 4.0]), min_size=n, max_size=n)))
    room = np.array(data.draw(st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=n - 1, max_size=n - 1)))
    found = spread_out(wish, weight, room)
    assert (np.diff(found) >= room - 1e-9).all()
    start = wish[0] + np.concatenate([[0.0], np.cumsum(room)])
    steps = LinearConstraint(np.diff(np.eye(n), axis=0), lb=room) if n > 1 else ()

    def loss(x: NDArray[np.float64]) -> float:
        return float((weight * (x - wish) ** 2).sum())

    best = minimize(loss, start, method="SLSQP", constraints=steps, tol=1e-12)
    assert loss(found) <= best.fun + 1e-6


def stress(distances: NDArray[np.float64], steps: int) -> float:
    points = majorise(distances, steps=steps)
    away = np.linalg.norm(points[:, None] - points[None, :], axis=2)
    seen = distances > 0
    return float(((away[seen] / distances[seen] - 1) ** 2).sum())


def test_distances_approach_those_of_the_graph() -> None:
    triangle = 1.0 - np.eye(3)
    points = majorise(triangle)
    assert np.linalg.norm(points[:, None] - points[None, :], axis=2) == pytest.approx(triangle, abs=1e-12)
    path = np.abs(np.arange(6)[:, None] - np.arange(6)[None, :]).astype(float)
    falling = [stress(path, steps) for steps in (0, 1, 5, 50, 500)]
    assert falling == sorted(falling, reverse=True)
    assert falling[-1] < 1e-3


@pytest.mark.parametrize(
    "edges",
    [
        [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")],
        [((r, c), (r + 1, c)) for r in range(4) for c in range(5)]
        + [((r, c), (r, c + 1)) for r in range(5) for c in range(4)],
        [("hub", f"spoke {k}") for k in range(12)],
        [("a", "b"), ("c", "d")],
    ],
    ids=["cycle", "grid", "star", "parts"],
)
def test_undirected_boxes_do_not_touch(edges: list[tuple[object, object]]) -> None:
    nodes = list(dict.fromkeys(node for edge in edges for node in edge))
    placed = place(nodes, edges, directed=False)
    for first, second in combinations(nodes, 2):
        (x, y), (u, v) = placed.places[first], placed.places[second]
        room = (placed.widths[first] + placed.widths[second]) / 2
        assert abs(x - u) >= room - 1e-6 or abs(y - v) >= HEIGHT - 1e-6
    assert place(nodes, edges, directed=False) == placed


def test_nothing_and_one_node() -> None:
    assert place([], [], directed=False).places == {}
    assert place([], [], directed=True).places == {}
    one = place(["only"], [], directed=False)
    assert one.places == {"only": (box_width("only") / 2, HEIGHT / 2)}
    assert short_name("x" * 30) == "x" * 19 + "…"
