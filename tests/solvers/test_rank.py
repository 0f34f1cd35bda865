"""Numbers of parameters against the rank of the whole design."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joint_tables import SCOPES, Scope, design, margin, sparse_tables, variables
from suffice.errors import SizeError
from suffice.solvers import rank as ranks
from suffice.solvers.faces import smallest_face
from suffice.solvers.polytope import MarginalPolytope
from suffice.solvers.rank import dimensions, matrix_rank, rank, table_rank

scopes_of_five = st.lists(st.sets(st.integers(0, 4), max_size=4).map(tuple), min_size=1, max_size=5)


def plain_rank(rows: Any) -> int:
    """Rank of the rows with a constant, less the constant."""
    return int(np.linalg.matrix_rank(np.hstack([rows, np.ones((len(rows), 1))]))) - 1


@settings(max_examples=50)
@given(scopes_of_five, st.lists(st.integers(1, 3), min_size=5, max_size=5))
def test_table_models(scopes: list[Scope], cards: list[int]) -> None:
    sizes = dict(enumerate(cards))
    expected = plain_rank(design(scopes, sizes, range(5)))
    assert table_rank(scopes, sizes) == expected
    assert rank(MarginalPolytope.of(sizes, scopes)) == expected


@given(scopes_of_five, st.lists(st.integers(1, 3), min_size=5, max_size=5))
def test_table_models_without_listing_subsets(scopes: list[Scope], cards: list[int]) -> None:
    sizes = dict(enumerate(cards))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranks, "MOST_SUBSETS", 0)
        found = table_rank(scopes, sizes)
    assert found == table_rank(scopes, sizes)


def test_known_numbers() -> None:
    """Pairs of k variables with r states: k (r - 1) + k (k - 1) / 2 (r - 1)^2; the whole table: all states but one."""
    pairs = list(combinations(range(6), 2))
    assert table_rank(pairs, dict.fromkeys(range(6), 3)) == 6 * 2 + 15 * 4
    assert table_rank([tuple(range(6))], dict.fromkeys(range(6), 3)) == 3**6 - 1
    assert table_rank([tuple(range(40))], dict.fromkeys(range(40), 2)) == 2**40 - 1
    assert table_rank([], {0: 2}) == 0
    assert table_rank([(0,), (1,), (2,)], {0: 4, 1: 4, 2: 2}) == 3 + 3 + 1


@settings(max_examples=40)
@given(sparse_tables())
def test_on_the_face(case: tuple[list[Scope], list[Any], Any]) -> None:
    scopes, nodes, table = case
    cards = dict(zip(nodes, table.shape, strict=True))
    observed = np.concatenate([margin(table, scope, nodes).ravel() for scope in scopes])
    face = smallest_face(cards, scopes, observed, float(table.sum()))
    alive = np.ones(table.shape, dtype=bool)
    states = np.indices(table.shape)
    for scope, values in face.masks():
        alive &= values[tuple(states[nodes.index(node)] for node in scope)] == 0.0
    expected = plain_rank(design(scopes, cards, nodes)[alive.ravel()])
    assert dimensions(face) == (expected, int(alive.sum()) - 1 - expected)


def test_the_face_of_two_zeros_is_saturated() -> None:
    """Six states and five of the six parameters of all pairs of three binary variables are left."""
    table = np.ones((2, 2, 2))
    table[0, 0, 0] = table[1, 1, 1] = 0.0
    observed = np.concatenate([margin(table, scope, [0, 1, 2]).ravel() for scope in SCOPES["triangle"]])
    face = smallest_face(dict.fromkeys(range(3), 2), SCOPES["triangle"], observed, 6.0)
    assert table_rank(SCOPES["triangle"], dict.fromkeys(range(3), 2)) == 6
    assert dimensions(face) == (5, 0)


def test_an_undecided_face_has_no_dimension() -> None:
    face = smallest_face(dict.fromkeys(range(3), 2), SCOPES["triangle"], np.full(12, 2.0), 8.0, most_cells=1)
    assert dimensions(face) == (None, None)


@given(st.lists(st.lists(st.integers(-2, 2), min_size=8, max_size=8), min_size=1, max_size=5))
def test_features(columns: list[list[int]]) -> None:
    """Features on (0, 1), a 2 x 2 table, and on (1, 2), one after another."""
    matrix = np.array(columns, dtype=float).T
    cards = {0: 2, 1: 2, 2: 2}
    scopes: list[Scope] = [(0, 1), (1, 2)]
    rows = design(scopes, cards, range(3)) @ matrix
    expected = plain_rank(rows)
    assert rank(MarginalPolytope.of(cards, scopes, matrix)) == expected


def test_features_of_very_different_scales() -> None:
    matrix = np.diag([1e-8, 1.0, 1e8, 1.0])
    assert rank(MarginalPolytope.of({0: 2, 1: 2}, [(0, 1)], matrix)) == 3
    assert matrix_rank(matrix) == 4
    assert matrix_rank(np.zeros((3, 0))) == 0


def test_too_large_a_matrix_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranks, "MOST_ROWS", 3)
    with pytest.raises(SizeError, match="up to 3 are computed"):
        matrix_rank(np.eye(4))


def test_every_named_model() -> None:
    for scopes in SCOPES.values():
        nodes = variables(scopes)
        cards = {node: 2 + node % 2 for node in nodes}
        assert table_rank(scopes, cards) == plain_rank(design(scopes, cards, nodes))
