"""One structure in all the forms that people have it in, and the mix-ups of directed and undirected ones."""

import subprocess
import sys
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


def test_matrices_of_two_nodes_and_sparse_ones() -> None:
    from scipy import sparse

    arc, line = np.array([[0, 1], [0, 0]]), np.array([[0, 1], [1, 0]])
    assert sf.BayesianNetwork(arc).edges == sf.BayesianNetwork(sparse.csr_matrix(arc)).edges == ((0, 1),)
    for kind in (sf.MarkovNetwork, sf.GaussianGraph):
        named = pd.DataFrame(line, list("ab"), list("ab"))
        assert kind(line).edges == kind(sparse.coo_array(line)).edges == ((0, 1),)
        assert kind(named).edges == (("a", "b"),)
        with pytest.raises(sf.OptionError, match="not the other way round"):
            kind(arc)
    with pytest.raises(sf.OptionError, match="other numbers than 0 and 1; 1 in row a, column b is the arc"):
        sf.BayesianNetwork(np.array([[0.0, 0.5], [0.0, 0.0]]))
    assert sf.BayesianNetwork(np.array([[0, 1], [1, 2]])).edges == ((0, 1), (1, 2))


def test_a_frame_whose_rows_are_ordered_otherwise_is_no_gaussian_graph() -> None:
    support = (MATRIX | MATRIX.T).loc[["b", "a", "c"]] + 0.0
    with pytest.raises(sf.OptionError, match="'b', 'a', 'c', and its columns 'a', 'b', 'c'; expected the same names"):
        sf.GaussianGraph(support)


@pytest.mark.parametrize("kind", [sf.MarkovNetwork, sf.GaussianGraph])
def test_a_dict_of_neighbours_is_a_graph(kind: Any) -> None:
    graph = nx.Graph(ARCS)
    graph.add_node("z")
    model = kind(nx.to_dict_of_lists(graph))
    assert {frozenset(edge) for edge in model.edges} == JOINED
    assert set(model.nodes) == set("abcz")
    with pytest.raises(sf.OptionError, match="joins 'b' to 'a' and not the other way round"):
        kind({"b": ["a"], "a": []})
    with pytest.raises(sf.OptionError, match="neighbours of 'b' are 'a'; expected a list"):
        kind({"b": "a"})


def test_the_graph_of_another_model() -> None:
    assert sf.MarkovNetwork(sf.GaussianGraph("a -- b; z")).edges == (("a", "b"),)
    assert set(sf.MarkovNetwork.ising("a -- b; z").nodes) == set("abz")
    with pytest.raises(sf.OptionError, match="directions"):
        sf.MarkovNetwork.ising(nx.DiGraph(ARCS))
    with pytest.raises(sf.OptionError, match="edges join two variables each"):
        sf.MarkovNetwork.potts("{a, b, c}", [0, 1])


def test_formulas_of_r_and_whole_graphs() -> None:
    for formula in ("~a:b + b:c", "~ a*b + b*c", "~c:b+b:a"):
        assert {frozenset(edge) for edge in sf.MarkovNetwork(formula).edges} == JOINED
    three = sf.MarkovNetwork("~a:b:c + d")
    assert (three.cliques, three.nodes) == ((("a", "b", "c"), ("d",)), ("a", "b", "c", "d"))
    assert set(sf.BayesianNetwork("digraph g { a -> b; c -> b }").edges) == set(ARCS)
    assert set(sf.BayesianNetwork("dag {a -> b <- c}").edges) == set(ARCS)
    assert sf.BayesianNetwork("a; b").nodes == ("a", "b")
    with pytest.raises(sf.OptionError, match=r"holds '\.\^2'; a formula of a graph is written ~A:B"):
        sf.MarkovNetwork("~.^2")
    with pytest.raises(sf.OptionError, match="has the line a -- b"):
        sf.BayesianNetwork("~a:b")


def test_single_dashes_and_formulas_without_a_tilde() -> None:
    for text in ("a - b - c", "a - b; b - c", "a:b + b:c", "a*b+b*c", "b:c+a:b"):
        assert {frozenset(edge) for edge in sf.MarkovNetwork(text).edges} == JOINED
        assert {frozenset(edge) for edge in sf.GaussianGraph(text).edges} == JOINED
        with pytest.raises(sf.OptionError, match=r"has the line . -- .; a Bayesian network has arrows"):
            sf.BayesianNetwork(text)
    assert sf.MarkovNetwork("a:b:c + d").cliques == sf.MarkovNetwork("~a:b:c + d").cliques
    # A dash without spaces may belong to a name.
    assert sf.MarkovNetwork("a-b - c").edges == (("a-b", "c"),)
    for text in ("a-b", "a+b", "a:b + ", "a:b - c"):
        with pytest.raises(sf.OptionError, match=r"expected|'a:b' . It holds|not written"):
            sf.MarkovNetwork(text)


def test_names_with_marks_stand_in_quotation_marks() -> None:
    network = sf.BayesianNetwork("""'a->b' -> "x; y" <- driver's age; {'z'}""".replace("; {'z'}", "; 'z -- w'"))
    assert set(network.edges) == {("a->b", "x; y"), ("driver's age", "x; y")}
    assert "z -- w" in network.nodes
    assert sf.MarkovNetwork("{'a, b', c}").edges == (("a, b", "c"),)
    for text in ("a \u2192 b", "a => b", "b ~ a; c ~ b"):
        with pytest.raises(sf.OptionError, match=r"not written as edges are here.*quotation marks"):
            sf.BayesianNetwork(text)


def test_bare_graphs_of_pyagrum() -> None:
    gum = pytest.importorskip("pyagrum")
    graph, lines = gum.DAG(), gum.UndiGraph()
    graph.addNodes(3)
    lines.addNodes(3)
    graph.addArc(0, 1)
    lines.addEdge(0, 1)
    assert (sf.BayesianNetwork(graph).edges, sf.MarkovNetwork(lines).edges) == (((0, 1),), ((0, 1),))
    with pytest.raises(sf.OptionError, match="directions"):
        sf.MarkovNetwork(graph)


FIELD = """
import pyagrum as gum
import suffice as sf
field = gum.fastMRF("a--b;b--c")
print(sf.MarkovNetwork(field).edges, sf.GaussianGraph(field).edges)
try:
    sf.BayesianNetwork(field)
except sf.OptionError as error:
    print(error)
"""


def test_a_markov_random_field_of_pyagrum() -> None:
    """In a process of its own: pyAgrum 2.x makes such a field only where no other library has been loaded before."""
    pytest.importorskip("pyagrum")
    done = subprocess.run([sys.executable, "-c", FIELD], capture_output=True, text=True, check=True)
    edges, refusal = done.stdout.splitlines()
    assert edges == "(('a', 'b'), ('b', 'c')) (('a', 'b'), ('b', 'c'))"
    assert "no directions" in refusal


def test_a_network_of_pyagrum_is_directed() -> None:
    gum = pytest.importorskip("pyagrum")
    theirs = gum.fastBN("a->b<-c")
    assert set(sf.BayesianNetwork(theirs).edges) == set(ARCS)
    with pytest.raises(sf.OptionError, match="from_bayesian_network"):
        sf.MarkovNetwork(theirs)
