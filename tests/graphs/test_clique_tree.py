"""Triangulation, maximal cliques, and the tree that joins them."""

import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.errors import OptionError
from suffice.graphs.chordality import is_chordal
from suffice.graphs.clique_tree import CliqueTree, clique_tree
from suffice.graphs.nodes import Node
from suffice.graphs.triangulation import RULES, Rule, best_triangulation, eliminate, triangulate
from suffice.graphs.undirected import connected_components, graph_of_scopes, neighbours_of

Edges = list[tuple[int, int]]


def grid(rows: int, columns: int) -> Edges:
    across = [((i, j), (i, j + 1)) for i in range(rows) for j in range(columns - 1)]
    down = [((i, j), (i + 1, j)) for i in range(rows - 1) for j in range(columns)]
    return [(a * columns + b, c * columns + d) for (a, b), (c, d) in across + down]


@st.composite
def weighted_graphs(draw: st.DrawFn) -> tuple[dict[Node, set[Node]], dict[Node, int]]:
    count = draw(st.integers(1, 9))
    pairs = list(combinations(range(count), 2))
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    cards = draw(st.lists(st.integers(2, 5), min_size=count, max_size=count))
    return neighbours_of(edges, range(count)), dict(enumerate(cards))


def filled(graph: dict[Node, set[Node]], fill: set[frozenset[Node]]) -> dict[Node, set[Node]]:
    new = {node: set(others) for node, others in graph.items()}
    for first, second in fill:
        new[first].add(second)
        new[second].add(first)
    return new


def edges_of(tree: CliqueTree) -> Edges:
    return [(child, parent) for child, parent in enumerate(tree.parents) if parent >= 0]


@pytest.mark.parametrize("rule", RULES)
@given(case=weighted_graphs(), seed=st.none() | st.integers(0, 3))
def test_elimination_gives_a_chordal_graph(
    case: tuple[dict[Node, set[Node]], dict[Node, int]], seed: int | None, rule: Rule
) -> None:
    graph, cards = case
    found = triangulate(graph, cards, rule=rule, seed=seed)
    chordal = filled(graph, found.fill(graph))
    assert is_chordal(chordal)
    assert found.later == eliminate(graph, found.order).later
    assert found.width == max(len(others) for others in found.later)
    if is_chordal(graph) and rule in ("fill", "weighted-fill"):
        assert not found.fill(graph)


def score(graph: dict[Node, set[Node]], cards: dict[Node, int], node: Node, rule: Rule) -> tuple[int, int]:
    """What a rule minimises, and the table that breaks ties, worked out anew."""
    around = math.prod(cards[other] for other in graph[node])
    missing = [pair for pair in combinations(graph[node], 2) if pair[1] not in graph[pair[0]]]
    scores = {
        "fill": len(missing),
        "weighted-fill": sum(cards[first] * cards[second] for first, second in missing),
        "boundary": around,
        "size": around * cards[node],
        "degree": len(graph[node]),
    }
    return scores[rule], around * cards[node]


@pytest.mark.parametrize("rule", RULES)
@given(case=weighted_graphs())
def test_each_step_takes_a_best_node(case: tuple[dict[Node, set[Node]], dict[Node, int]], rule: Rule) -> None:
    graph, cards = case
    left = {node: set(others) for node, others in graph.items()}
    for node in triangulate(graph, cards, rule=rule).order:
        best = min((*score(left, cards, other, rule), other) for other in left)
        assert (*score(left, cards, node, rule), node) == best
        others = left.pop(node)
        for other in others:
            left[other] |= others
            left[other] -= {other, node}


@given(weighted_graphs())
def test_cliques_are_the_maximal_ones(case: tuple[dict[Node, set[Node]], dict[Node, int]]) -> None:
    graph, cards = case
    found = triangulate(graph, cards)
    chordal = filled(graph, found.fill(graph))
    complete = [
        frozenset(nodes)
        for size in range(1, len(chordal) + 1)
        for nodes in combinations(chordal, size)
        if all(second in chordal[first] for first, second in combinations(nodes, 2))
    ]
    maximal = {nodes for nodes in complete if not any(nodes < other for other in complete)}
    assert {frozenset(clique) for clique in clique_tree(found).cliques} == maximal
    assert found.cells == sum(math.prod(cards[node] for node in clique) for clique in maximal)


def broken_intersection(cliques: Sequence[Iterable[Node]], edges: Iterable[tuple[int, int]]) -> Node | None:
    """A node whose cliques the edges do not connect, or None: then the running intersection property holds.

    The edges must form a forest over the indices of the cliques. In a forest, k cliques that hold a node are connected
    if and only if k - 1 edges join two of them.
    """
    sets = list(map(frozenset, cliques))
    surplus: Counter[Node] = Counter(node for clique in sets for node in clique)
    for first, second in edges:
        surplus.subtract(sets[first] & sets[second])
    return min((node for node, count in surplus.items() if count != 1), key=str, default=None)


@given(weighted_graphs())
def test_the_tree_has_running_intersections(case: tuple[dict[Node, set[Node]], dict[Node, int]]) -> None:
    graph, cards = case
    tree = clique_tree(triangulate(graph, cards))
    edges = edges_of(tree)
    assert broken_intersection(tree.cliques, edges) is None
    assert tree.parents.count(-1) == len(connected_components(graph))
    place = {clique: index for index, clique in enumerate(tree.order)}
    assert all(place[child] < place[parent] for child, parent in edges)
    for child, parent in edges:
        shared = set(tree.cliques[child]) & set(tree.cliques[parent])
        assert set(tree.separators[child]) == shared != set()


@given(weighted_graphs())
def test_the_tree_is_the_cheapest_of_all_clique_trees(case: tuple[dict[Node, set[Node]], dict[Node, int]]) -> None:
    """Among spanning trees with the largest separators, the least sum of |Ci| + |Cj|: Kruskal over all pairs."""
    graph, cards = case
    tree = clique_tree(triangulate(graph, cards))
    sets = list(map(set, tree.cliques))
    pairs = sorted(
        (-len(sets[i] & sets[j]), tree.sizes[i] + tree.sizes[j], i, j)
        for i, j in combinations(range(len(sets)), 2)
        if sets[i] & sets[j]
    )
    part = list(range(len(sets)))
    weight, cost, separators = 0, 0, Counter[tuple[Any, ...]]()
    for shared, sizes, i, j in pairs:
        if part[i] != part[j]:
            part = [part[i] if label == part[j] else label for label in part]
            weight, cost = weight - shared, cost + sizes
            separators[tuple(sorted(sets[i] & sets[j]))] += 1  # type: ignore[type-var]
    own = edges_of(tree)
    assert sum(len(tree.separators[child]) for child, _ in own) == weight
    assert sum(tree.sizes[child] + tree.sizes[parent] for child, parent in own) == cost
    assert tree.multiplicities == separators


def test_separators_are_counted_with_multiplicity() -> None:
    tree = clique_tree(triangulate(graph_of_scopes([("a", "b"), ("a", "c"), ("a", "d"), ("d", "e"), ("f",)])))
    assert tree.cliques == (("a", "b"), ("a", "c"), ("a", "d"), ("d", "e"), ("f",))
    assert tree.multiplicities == {("a",): 2, ("d",): 1}
    assert tree.width == 1


def test_roots_are_the_largest_cliques() -> None:
    cards: dict[Node, int] = {"a": 2, "b": 3, "c": 5, "d": 2, "e": 2}
    tree = clique_tree(triangulate(graph_of_scopes([("a", "b"), ("b", "c"), ("d", "e")]), cards))
    roots = [tree.cliques[index] for index, parent in enumerate(tree.parents) if parent < 0]
    assert roots == [("b", "c"), ("d", "e")]


def test_a_broken_tree_is_found() -> None:
    cliques = [("a", "b"), ("b", "c"), ("a", "d")]
    assert broken_intersection(cliques, [(0, 1), (0, 2)]) is None
    assert broken_intersection(cliques, [(0, 1), (1, 2)]) == "a"
    assert broken_intersection(cliques, [(0, 1)]) == "a"


def test_a_cycle_needs_one_chord_less_than_nodes_less_two() -> None:
    cycle = neighbours_of([(i, (i + 1) % 10) for i in range(10)])
    found = triangulate(cycle)
    assert len(found.fill(cycle)) == 7
    assert found.width == 2


@pytest.mark.parametrize(("rows", "columns", "width"), [(3, 3, 3), (4, 4, 4), (5, 5, 5), (2, 9, 2)])
def test_min_fill_finds_the_width_of_grids(rows: int, columns: int, width: int) -> None:
    graph = neighbours_of(grid(rows, columns))
    assert best_triangulation(graph, dict.fromkeys(graph, 2), tries=12).width == width


def test_ties_prefer_small_tables() -> None:
    """Of the two diagonals of a square, the one between the small cards is added."""
    square = neighbours_of([("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")])
    found = triangulate(square, {"a": 2, "b": 9, "c": 2, "d": 9})
    assert found.fill(square) == {frozenset("ac")}
    assert found.cells == 2 * (2 * 9 * 2)


def test_tries_never_make_it_worse() -> None:
    chance = random.Random(1)
    edges = {tuple(sorted(chance.sample(range(40), 2))) for _ in range(90)}
    graph = neighbours_of(sorted(edges), range(40))  # type: ignore[arg-type]
    cards: dict[Node, int] = {node: 2 + node % 4 for node in range(40)}
    few, many = (best_triangulation(graph, cards, tries=tries).cells for tries in (0, 30))
    assert many < few


def test_no_nodes_are_no_problem() -> None:
    tree = clique_tree(triangulate({}))
    assert (tree.cliques, tree.width, tree.order) == ((), -1, ())


def test_unknown_rules_and_orders_are_refused() -> None:
    with pytest.raises(OptionError, match="rule 'luck'"):
        triangulate({}, rule="luck")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="each node once"):
        eliminate(neighbours_of([(0, 1)]), [0, 0])


@given(weighted_graphs(), st.randoms(use_true_random=False))
def test_order_of_nodes_and_edges_does_not_matter(
    case: tuple[dict[Node, set[Node]], dict[Node, int]], chance: random.Random
) -> None:
    graph, cards = case
    names = list(graph)
    chance.shuffle(names)
    shuffled = {name: graph[name] for name in names}
    for rule in RULES:
        assert clique_tree(triangulate(shuffled, cards, rule=rule)) == clique_tree(triangulate(graph, cards, rule=rule))


HASHES = """
from suffice.graphs.clique_tree import clique_tree
from suffice.graphs.chordality import chordless_cycle
from suffice.graphs.directed import moral_graph, topological_order
from suffice.graphs.triangulation import best_triangulation
parents = {}
names = [f"node {i * 7 % 31}" for i in range(31)] + [("t", i) for i in range(9)] + [None]
for i, name in enumerate(names):
    parents[name] = tuple(dict.fromkeys(names[j] for j in (i // 2, i - 1, i * i % (i + 1)) if 0 <= j < i))
graph = moral_graph(parents)
tree = clique_tree(best_triangulation(graph, {name: 2 + len(str(name)) % 3 for name in names}, tries=6))
print(tree.cliques, tree.parents, tree.separators, topological_order(parents), chordless_cycle(graph))
"""


def test_hash_seeds_do_not_matter(fresh_python: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    answers = set()
    for seed in ("0", "1", "77"):
        monkeypatch.setenv("PYTHONHASHSEED", seed)
        answers.add(fresh_python(HASHES))
    assert len(answers) == 1
