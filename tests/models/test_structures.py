"""Structures asked as graphs, against networkx, enumeration of all graphs and conditional independence in tables."""

import itertools
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import suffice as sf
from suffice.domain import Domain, Variable


def random_arcs(rng: np.random.Generator, names: str, share: float) -> list[tuple[str, str]]:
    order = rng.permutation(list(names)).tolist()
    return [pair for pair in itertools.combinations(order, 2) if rng.random() < share]


def three_sets(rng: np.random.Generator, names: str) -> tuple[list[str], list[str], list[str]]:
    order = rng.permutation(list(names)).tolist()
    first, second = int(rng.integers(1, 3)), int(rng.integers(1, 3))
    known = int(rng.integers(0, len(names) - first - second + 1))
    return order[:first], order[first : first + second], order[first + second : first + second + known]


@pytest.mark.parametrize("seed", range(8))
def test_d_separation_is_that_of_networkx(seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = "abcdefgh"
    oracle = nx.DiGraph(random_arcs(rng, names, rng.uniform(0.1, 0.5)))
    oracle.add_nodes_from(names)
    graph = sf.DirectedGraph(oracle)
    answers = []
    for _ in range(100):
        first, second, known = three_sets(rng, names)
        answers.append(graph.d_separated(first, second, given=known))
        assert answers[-1] == nx.is_d_separator(oracle, set(first), set(second), set(known))
        assert answers[-1] == graph.d_separated(second, first, given=set(known))
    assert {True, False} <= set(answers)
    for node in names:
        assert set(graph.ancestors(node)) == nx.ancestors(oracle, node)
        assert set(graph.descendants(node)) == nx.descendants(oracle, node)
        assert set(graph.parents(node)) == set(oracle.predecessors(node))
        assert set(graph.children(node)) == set(oracle.successors(node))
        rest = set(names) - {node, *graph.markov_blanket(node)}
        assert not rest or graph.d_separated(node, rest, given=graph.markov_blanket(node))
        for member in graph.markov_blanket(node):  # None of them can be left out.
            others = set(graph.markov_blanket(node)) - {member}
            assert not graph.d_separated(node, member, given=others)
    place = {node: number for number, node in enumerate(graph.topological_order())}
    assert all(place[parent] < place[child] for parent, child in graph.edges)
    moral = nx.moral_graph(oracle)
    assert set(map(frozenset, graph.moral().edges)) == set(map(frozenset, moral.edges))


def test_what_is_separated_is_independent_in_a_network() -> None:
    """Tables drawn at random are faithful to their graph: what is not separated depends."""
    rng = np.random.default_rng(5)
    names = "abcde"
    parents: dict[str, list[str]] = {name: [] for name in names} | {"c": ["a", "b"], "d": ["c"], "e": ["b"]}
    domain = Domain(Variable.discrete(name, [0, 1]) for name in names)
    tables = {name: rng.dirichlet([1.0, 1.0], size=(2,) * len(above)) for name, above in parents.items()}
    net = sf.BayesianNetwork.from_tables(domain, parents, tables)
    joint = net.query(list(names)).values
    graph = sf.DirectedGraph(net)
    for first, second in itertools.combinations(names, 2):
        rest = [name for name in names if name not in (first, second)]
        for size in range(len(rest) + 1):
            for known in itertools.combinations(rest, size):
                assert graph.d_separated(first, second, given=known) == independent(joint, names, first, second, known)


def independent(joint: Any, names: str, first: str, second: str, known: tuple[str, ...]) -> bool:
    left = [first, second, *known]
    table = np.einsum(joint, list(range(len(names))), [names.index(name) for name in left])
    product = table.sum(1, keepdims=True) * table.sum(0, keepdims=True)
    return bool(np.allclose(table * table.sum((0, 1), keepdims=True), product, rtol=0.0, atol=1e-12))


def test_equivalent_graphs_are_those_that_separate_the_same() -> None:
    names = "abcd"
    pairs = list(itertools.combinations(names, 2))
    rng = np.random.default_rng(11)
    graphs = []
    for _ in range(120):
        arcs = [rng.permutation(pair).tolist() for pair in pairs if rng.random() < 0.6]
        if nx.is_directed_acyclic_graph(nx.DiGraph(arcs)):
            graphs.append(sf.DirectedGraph({name: [a for a, b in arcs if b == name] for name in names}))
    says = [
        tuple(
            graph.d_separated(first, second, given=known)
            for first, second in pairs
            for size in range(3)
            for known in itertools.combinations([name for name in names if name not in (first, second)], size)
        )
        for graph in graphs
    ]
    same = 0
    for (one, mine), (other, theirs) in itertools.combinations(zip(graphs, says, strict=True), 2):
        assert one.equivalent(other) == (mine == theirs)
        same += mine == theirs
    assert same > 20
    assert sf.DirectedGraph("a -> b <- c").v_structures() == (("a", "b", "c"),)
    assert not sf.DirectedGraph("a -> b").equivalent("a -> b; b -> c")


@pytest.mark.parametrize("seed", range(6))
def test_lines_are_asked_as_networkx_is(seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    oracle = nx.gnp_random_graph(9, rng.uniform(0.15, 0.6), seed=seed)
    graph = sf.UndirectedGraph(oracle)
    assert set(map(frozenset, graph.edges)) == set(map(frozenset, oracle.edges))
    assert set(graph.nodes) == set(oracle)
    assert set(map(frozenset, graph.components())) == set(map(frozenset, nx.connected_components(oracle)))
    assert set(map(frozenset, graph.cliques())) == set(map(frozenset, nx.find_cliques(oracle)))
    assert graph.is_chordal == nx.is_chordal(oracle)
    if not graph.is_chordal:
        cycle = graph.chordless_cycle()
        ring = oracle.subgraph(cycle)
        assert len(cycle) >= 4
        assert all(degree == 2 for _, degree in ring.degree)
        assert nx.is_connected(ring)
    for _ in range(30):
        first, second, known = (set(map(int, part)) for part in three_sets(rng, "012345678"))
        rest = oracle.subgraph(set(oracle) - known)
        paths = any(nx.has_path(rest, a, b) for a in first for b in second)
        assert graph.separated(first, second, given=known) == (not paths)
    for rule in ("fill", "weighted-fill", "boundary", "size", "degree"):
        wide = graph.triangulate(rule=rule, states={node: 2 + node % 3 for node in oracle})
        full = nx.Graph(oracle)
        full.add_edges_from(wide.fill)
        assert nx.is_chordal(full)
        assert wide.chordal().is_chordal
        assert len(full.edges) == len(oracle.edges) + len(wide.fill)
        tree = wide.clique_tree()
        assert set(map(frozenset, tree.cliques)) == set(map(frozenset, nx.find_cliques(full)))
        assert wide.width == tree.width == max(map(len, tree.cliques)) - 1
        assert wide.cells == sum(tree.sizes)
        joined = nx.Graph((k, parent) for k, parent in enumerate(tree.parents) if parent >= 0)
        joined.add_nodes_from(range(len(tree.cliques)))
        for node in oracle:
            assert nx.is_connected(joined.subgraph([k for k, clique in enumerate(tree.cliques) if node in clique]))


def test_an_order_can_be_given() -> None:
    square = sf.UndirectedGraph("a -- b -- c -- d -- a")
    assert square.triangulate(order="badc").fill == (("a", "c"),)
    with pytest.raises(sf.OptionError, match="order= is one"):
        square.triangulate(order="abcd", rule="size")
    with pytest.raises(sf.OptionError, match="holds each node once; 3 are given for 4"):
        square.triangulate(order="abc")
    with pytest.raises(sf.OptionError, match="expected those of the graph"):
        square.triangulate(states={"a": 2})


def test_models_are_structures() -> None:
    rows = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (50, 3)), columns=list("abc"))
    net = sf.BayesianNetwork("a -> b <- c").fit(rows)
    assert sf.DirectedGraph(net).edges == (("a", "b"), ("c", "b"))
    assert sf.UndirectedGraph(net).cliques() == (("a", "b", "c"),)
    agree = sf.Feature([("a", "b"), ("b", "c")], lambda x, y: x == y)
    assert sf.UndirectedGraph(sf.MarkovNetwork([agree, ("d",)])).edges == (("a", "b"), ("b", "c"))
    assert sf.UndirectedGraph([agree, ("d",)]).nodes == ("a", "b", "c", "d")
    assert sf.UndirectedGraph(sf.GaussianGraph("x -- y -- z")).separated("x", "z", given="y")


def test_mistakes_are_named() -> None:
    graph = sf.DirectedGraph("a -> b <- c")
    with pytest.raises(sf.MissingColumnError, match="'d'"):
        graph.markov_blanket("d")
    with pytest.raises(sf.OptionError, match="'a' stands in two of first, second and given"):
        graph.d_separated("a", "b", given=["a"])
    with pytest.raises(sf.OptionError, match="first has no nodes"):
        graph.d_separated([], "b")
    with pytest.raises(sf.OptionError, match="given is"):
        graph.d_separated("a", "b", given={"c": 1})
    with pytest.raises(sf.OptionError, match="no directions"):
        sf.DirectedGraph(nx.Graph([("a", "b")]))
    with pytest.raises(sf.OptionError, match="arrow"):
        sf.UndirectedGraph("a -> b")
