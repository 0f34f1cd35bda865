"""Maximal cliques beside those of networkx."""

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suffice.graphs.cliques import cliques_of


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 12), st.floats(0, 1), st.integers(0, 10_000))
def test_all_maximal_cliques_are_found_once(n: int, share: float, seed: int) -> None:
    graph = nx.gnp_random_graph(n, share, seed=seed)
    found = cliques_of({node: set(graph[node]) for node in graph})
    assert found is not None
    assert sorted(found) == sorted(tuple(sorted(clique)) for clique in nx.find_cliques(graph))
    assert found == sorted(found)


@pytest.mark.parametrize(("most", "known"), [(26, False), (27, True)])
def test_more_cliques_than_allowed_are_not_listed(most: int, known: bool) -> None:
    graph = {i: {j for j in range(9) if j // 3 != i // 3} for i in range(9)}
    assert (cliques_of(graph, most=most) is not None) == known
