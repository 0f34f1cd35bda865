"""Directed graphs: checks that name what is wrong, orders, ancestors, moral graphs."""

import random
from itertools import combinations, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.errors import OptionError
from suffice.graphs.directed import (
    ancestors,
    check_acyclic,
    find_cycle,
    moral_graph,
    parents_of,
    topological_order,
)
from suffice.graphs.nodes import Node, in_order, node_key

ASIA = [
    *(("asia", "tub"), ("smoke", "lung"), ("smoke", "bronc"), ("tub", "either")),
    *(("lung", "either"), ("either", "xray"), ("either", "dysp"), ("bronc", "dysp")),
]


@st.composite
def acyclic_edges(draw: st.DrawFn) -> list[tuple[int, int]]:
    count = draw(st.integers(1, 9))
    names = draw(st.permutations(range(count)))
    pairs = [(names[i], names[j]) for i, j in combinations(range(count), 2)]
    return draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []


def test_parents_keep_the_order_of_the_edges() -> None:
    parents = parents_of([("b", "x"), ("a", "x"), ("x", "y")], nodes=["alone"])
    assert parents == {"alone": (), "b": (), "a": (), "x": ("b", "a"), "y": ("x",)}


def test_any_hashable_value_names_a_node() -> None:
    parents = parents_of([(0, ""), ((1, "x"), ""), (None, 0)])
    assert parents[""] == (0, (1, "x"))
    assert topological_order(parents)[-1] == ""


def test_a_self_loop_is_named() -> None:
    with pytest.raises(OptionError, match="Node 'a' is its own parent"):
        parents_of([("a", "a")])


def test_an_edge_given_twice_is_named() -> None:
    with pytest.raises(OptionError, match="The edge 'a' -> 'b' is given more than once"):
        parents_of([("a", "b"), ("c", "b"), ("a", "b")])


@pytest.mark.parametrize("edge", ["ab", ("a",), ("a", "b", "c")])
def test_what_is_no_pair_is_no_edge(edge: Any) -> None:
    with pytest.raises(OptionError, match="An edge is a pair"):
        parents_of([edge])


def test_an_unknown_parent_is_named() -> None:
    with pytest.raises(OptionError, match="'b' has parents that are not nodes: 'a'"):
        check_acyclic({"b": ("a",)})


def test_the_error_names_a_shortest_cycle_from_its_smallest_node() -> None:
    edges = [("z", "c"), ("c", "d"), ("d", "b"), ("b", "c"), ("b", "e"), ("e", "f"), ("f", "b"), ("b", "a")]
    with pytest.raises(OptionError, match="directed cycle: 'b' -> 'c' -> 'd' -> 'b'"):
        parents_of(edges)


def test_no_cycle_is_found_where_there_is_none() -> None:
    assert find_cycle(parents_of(ASIA)) == []


@given(acyclic_edges(), st.randoms(use_true_random=False))
def test_every_node_comes_after_its_parents_whatever_the_order_of_edges(
    edges: list[tuple[int, int]], chance: random.Random
) -> None:
    order = topological_order(parents_of(edges))
    place = {node: index for index, node in enumerate(order)}
    assert all(place[parent] < place[child] for parent, child in edges)
    chance.shuffle(edges)
    assert topological_order(parents_of(edges)) == order


@given(acyclic_edges().filter(bool), st.data())
def test_closing_a_path_makes_a_cycle_that_is_found(edges: list[tuple[int, int]], data: st.DataObject) -> None:
    parents = parents_of(edges)
    child = data.draw(st.sampled_from([node for node, above in parents.items() if above]))
    parent = data.draw(st.sampled_from(sorted(ancestors(parents, [child]) - {child})))  # type: ignore[type-var]
    cyclic = {**parents, parent: (*parents[parent], child)}
    cycle = find_cycle(cyclic)
    assert cycle[0] == cycle[-1]
    assert len(set(cycle)) == len(cycle) - 1
    assert all(first in cyclic[second] for first, second in pairwise(cycle))
    with pytest.raises(OptionError, match="directed cycle"):
        topological_order(cyclic)


def test_ancestors_of_asia() -> None:
    assert ancestors(parents_of(ASIA), ["dysp"]) == {"dysp", "either", "bronc", "tub", "lung", "asia", "smoke"}


def test_the_moral_graph_marries_parents() -> None:
    graph = moral_graph(parents_of(ASIA))
    edges = {frozenset((node, other)) for node, others in graph.items() for other in others}
    assert edges == {frozenset(edge) for edge in [*ASIA, ("tub", "lung"), ("either", "bronc")]}


def test_nodes_of_all_types_have_one_order() -> None:
    nodes: list[Node] = ["b", (1, "x"), 2, None, 1.5, "a", frozenset({"q"}), (1, "a"), b"z", "", 10]
    expected = in_order(nodes)
    assert expected[:6] == [1.5, 2, 10, "", "a", "b"]
    assert expected[6:8] == [(1, "a"), (1, "x")]
    for seed in range(20):
        random.Random(seed).shuffle(nodes)
        assert in_order(nodes) == expected


def test_sets_as_nodes_are_ordered_by_their_members() -> None:
    assert node_key(frozenset("abc")) == node_key(frozenset("cba")) < node_key(frozenset("abd"))
