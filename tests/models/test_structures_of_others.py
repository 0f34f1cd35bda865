"""One structure in all the forms that people have it in, and the mix-ups of directed and undirected ones."""

from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import suffice as sf

igraph = pytest.importorskip("igraph")

ARCS = [("a", "b"), ("c", "b")]
MATRIX = pd.DataFrame([[0, 1, 0], [0, 0, 0], [0, 1, 0]], index=list("abc"), columns=list("abc"))
DIRECTED: dict[str, Any] = {
    "text": "a -> b <- c",
    "R": "[a][c][b|a:c]",
    "frame": MATRIX,
    "networkx": nx.DiGraph(ARCS),
    "igraph": igraph.Graph.TupleList(ARCS, directed=True),
}
UNDIRECTED: dict[str, Any] = {
    "text": "a -- b -- c",
    "frame": MATRIX | MATRIX.T,
    "networkx": nx.Graph(ARCS),
    "igraph": igraph.Graph.TupleList(ARCS, directed=False),
}
JOINED = {frozenset("ab"), frozenset("bc")}


@pytest.mark.parametrize("form", DIRECTED)
def test_directed_forms_are_one_network(form: str) -> None:
    assert set(sf.BayesianNetwork(DIRECTED[form]).edges) == set(ARCS)


@pytest.mark.parametrize("kind", [sf.MarkovNetwork, sf.GaussianGraph])
@pytest.mark.parametrize("form", UNDIRECTED)
def test_undirected_forms_are_one_graph(kind: Any, form: str) -> None:
    assert {frozenset(edge) for edge in kind(UNDIRECTED[form]).edges} == JOINED


@pytest.mark.parametrize("kind", [sf.MarkovNetwork, sf.GaussianGraph])
@pytest.mark.parametrize("form", DIRECTED)
def test_directed_graphs_are_refused_where_lines_are_meant(kind: Any, form: str) -> None:
    with pytest.raises(sf.OptionError, match=r"arrow|directions|other way round"):
        kind(DIRECTED[form])


@pytest.mark.parametrize("form", UNDIRECTED)
def test_undirected_graphs_are_refused_where_arrows_are_meant(form: str) -> None:
    with pytest.raises(sf.OptionError, match=r"line|no directions|directed cycle"):
        sf.BayesianNetwork(UNDIRECTED[form])


def test_arrays_and_nodes_without_edges() -> None:
    array = np.zeros((4, 4), dtype=int)
    array[0, 1] = array[1, 0] = 1
    assert sf.MarkovNetwork(array).nodes == (0, 1, 2, 3)
    alone = igraph.Graph(n=3, edges=[(0, 2)])
    assert set(sf.MarkovNetwork(alone).nodes) == {0, 1, 2}
    with pytest.raises(sf.OptionError, match="same names in the same order"):
        sf.MarkovNetwork((MATRIX | MATRIX.T).loc[["b", "a", "c"]])


def test_a_network_of_pyagrum_is_directed() -> None:
    gum = pytest.importorskip("pyagrum")
    theirs = gum.fastBN("a->b<-c")
    assert set(sf.BayesianNetwork(theirs).edges) == set(ARCS)
    with pytest.raises(sf.OptionError, match="from_bayesian_network"):
        sf.MarkovNetwork(theirs)
