"""Undirected graphs: checks, scopes, components, chordality with a witness."""

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.errors import OptionError
from suffice.graphs.chordality import chordless_cycle, is_chordal, maximum_cardinality_search
from suffice.graphs.undirected import connected_components, graph_of_scopes, neighbours_of

CHORDAL = {
    "nothing": [],
    "edge": [(0, 1)],
    "tree": [(0, 1), (1, 2), (1, 3), (3, 4)],
    "triangle": [(0, 1), (1, 2), (2, 0)],
    "square with a chord": [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)],
    "two triangles apart": [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)],
    "complete": [(i, j) for i in range(6) for j in range(i)],
}
CHORDLESS = {
    "square": [(0, 1), (1, 2), (2, 3), (3, 0)],
    "hexagon": [(i, (i + 1) % 6) for i in range(6)],
    "wheel": [*((i, (i + 1) % 5) for i in range(5)), *((5, i) for i in range(5))],
    "grid": [(3 * i + j, 3 * i + j + 1) for i in range(3) for j in range(2)]
    + [(3 * i + j, 3 * i + j + 3) for i in range(2) for j in range(3)],
    "square in a tail": [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 2)],
}


@st.composite
def graphs(draw: st.DrawFn) -> dict[int, set[int]]:
    count = draw(st.integers(1, 9))
    pairs = [(i, j) for i in range(count) for j in range(i)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    return neighbours_of(edges, range(count))  # type: ignore[return-value]


def check_witness(graph: dict[Any, set[Any]], cycle: list[Any]) -> None:
    """A cycle of at least four nodes whose only edges are those between neighbours on it."""
    assert len(set(cycle)) == len(cycle) >= 4
    for index, node in enumerate(cycle):
        assert graph[node] & set(cycle) == {cycle[index - 1], cycle[(index + 1) % len(cycle)]}


def test_edges_go_both_ways() -> None:
    assert neighbours_of([("a", "b"), ("b", "c")], ["d"]) == {"a": {"b"}, "b": {"a", "c"}, "c": {"b"}, "d": set()}


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([("a", "a")], "'a' is joined to itself"),
        ([("a", "b"), ("a", "b")], "between 'a' and 'b' is given more than once"),
        ([("a", "b"), ("b", "a")], "between 'b' and 'a' is given more than once"),
        (["ab"], "An edge is a pair"),
    ],
)
def test_wrong_edges_are_named(edges: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        neighbours_of(edges)


def test_scopes_join_all_their_nodes() -> None:
    graph = graph_of_scopes([("a", "b", "c"), ("c", "d"), ("c",), (), ("e",)], ["f"])
    expected = {"a": {"b", "c"}, "b": {"a", "c"}, "c": {"a", "b", "d"}, "d": {"c"}, "e": set(), "f": set()}
    assert graph == expected


def test_components_are_sorted() -> None:
    graph = neighbours_of([(5, 3), (3, 4), (1, 0)], [2])
    assert connected_components(graph) == [(0, 1), (2,), (3, 4, 5)]


@pytest.mark.parametrize("edges", CHORDAL.values(), ids=CHORDAL)
def test_chordal_graphs_have_no_witness(edges: list[tuple[int, int]]) -> None:
    graph = neighbours_of(edges)
    assert is_chordal(graph)
    assert chordless_cycle(graph) == []


@pytest.mark.parametrize("edges", CHORDLESS.values(), ids=CHORDLESS)
def test_other_graphs_have_one(edges: list[tuple[int, int]]) -> None:
    graph = neighbours_of(edges)
    assert not is_chordal(graph)
    check_witness(graph, chordless_cycle(graph))


@given(graphs())
def test_chordality_and_its_witness_agree_with_networkx(graph: dict[int, set[int]]) -> None:
    networkx = pytest.importorskip("networkx")
    other = networkx.Graph({node: list(others) for node, others in graph.items()})
    assert is_chordal(graph) == networkx.is_chordal(other)
    assert connected_components(graph) == sorted(tuple(sorted(part)) for part in networkx.connected_components(other))
    cycle = chordless_cycle(graph)
    assert bool(cycle) != is_chordal(graph)
    if cycle:
        check_witness(graph, cycle)


@given(graphs())
def test_the_search_visits_a_node_with_the_most_visited_neighbours(graph: dict[int, set[int]]) -> None:
    order = maximum_cardinality_search(graph)
    assert sorted(order) == sorted(graph)  # type: ignore[type-var]
    for index, node in enumerate(order):
        seen = set(order[:index])
        best = max(len(graph[other] & seen) for other in graph if other not in seen)
        ties = [other for other in graph if other not in seen and len(graph[other] & seen) == best]
        assert node == min(ties)


@given(graphs(), st.randoms(use_true_random=False))
def test_order_of_nodes_does_not_matter(graph: dict[int, set[int]], chance: random.Random) -> None:
    names = list(graph)
    chance.shuffle(names)
    shuffled = {name: graph[name] for name in names}
    assert chordless_cycle(shuffled) == chordless_cycle(graph)
    assert maximum_cardinality_search(shuffled) == maximum_cardinality_search(graph)
    assert connected_components(shuffled) == connected_components(graph)
