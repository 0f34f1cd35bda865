"""The closed form of decomposable models against fractions, plain scaling and the total mass."""

from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from joint_tables import DECOMPOSABLE, SCOPES, Scope, joint, margin, scale, sparse_tables, spread, variables
from suffice.errors import DataError, EstimateError
from suffice.graphs.decomposition import decompose
from suffice.solvers.closed_form import closed_form


def counts(scopes: list[Scope], seed: int = 0) -> tuple[list[Any], Any]:
    nodes = variables(scopes)
    rng = np.random.default_rng(seed)
    return nodes, rng.integers(1, 9, size=tuple(2 + (node % 2) for node in nodes)).astype(float)


def solve(scopes: list[Scope], nodes: list[Any], table: Any) -> list[Any]:
    cards = dict(zip(nodes, table.shape, strict=True))
    return closed_form(scopes, [margin(table, scope, nodes) for scope in scopes], decompose(scopes, cards))


@pytest.mark.parametrize("name", SCOPES)
def test_models_are_recognised(name: str) -> None:
    cards = dict.fromkeys(variables(SCOPES[name]), 2)
    found = decompose(SCOPES[name], cards)
    assert (found.tree is not None) == (name in DECOMPOSABLE)
    assert (found.reason == "") == (name in DECOMPOSABLE)


def test_pairs_of_a_triangle_are_chordal_and_not_decomposable() -> None:
    found = decompose([("a", "b"), ("b", "c"), ("a", "c")], {"a": 2, "b": 2, "c": 2})
    assert found.tree is None
    assert found.reason == "'a', 'b', 'c' are joined pairwise and no scope holds them all"


def test_the_cycle_is_named() -> None:
    found = decompose(SCOPES["cycle"], dict.fromkeys(range(4), 2))
    assert "has no chord" in found.reason
    assert all(str(node) in found.reason for node in range(4))


def test_a_constant_variable_joins_nothing() -> None:
    cards = {0: 2, 1: 1, 2: 3, 3: 2}
    found = decompose(SCOPES["cycle"], cards)
    assert found.tree is not None
    assert set(found.tree.cliques) == {(2, 3), (0, 3)}


@pytest.mark.parametrize("name", DECOMPOSABLE)
def test_the_product_sums_to_one_and_has_the_observed_margins(name: str) -> None:
    scopes = SCOPES[name]
    nodes, table = counts(scopes)
    law = joint(solve(scopes, nodes, table), scopes, table.shape, nodes)
    assert law.sum() == pytest.approx(1.0, abs=1e-14)
    for scope in scopes:
        np.testing.assert_allclose(margin(law, scope, nodes), margin(table, scope, nodes) / table.sum(), rtol=1e-13)
    np.testing.assert_allclose(law, scale(table, scopes, np.ones_like(table), nodes) / table.sum(), rtol=1e-12)


def test_cliques_over_separators_in_fractions() -> None:
    """Cliques 123, 234 and 245: separators 23 and 24. Dividing by every intersection, also by 2, loses the mass."""
    scopes: list[Scope] = [(1, 2, 3), (2, 3, 4), (2, 4, 5)]
    nodes = [1, 2, 3, 4, 5]
    table = np.random.default_rng(3).integers(1, 20, size=(2, 3, 2, 2, 2))
    exact = np.vectorize(Fraction)(table) / Fraction(int(table.sum()))

    def part(scope: Scope) -> Any:
        return spread(margin(exact, scope, nodes), scope, nodes)

    law = part(scopes[0]) * part(scopes[1]) * part(scopes[2]) / (part((2, 3)) * part((2, 4)))
    assert law.sum() == 1
    assert (law / part((2,))).sum() != 1
    assert (part(scopes[0]) * part(scopes[1]) * part(scopes[2])).sum() != 1
    found = solve(scopes, nodes, table.astype(float))
    np.testing.assert_allclose(joint(found, scopes, table.shape, nodes), law.astype(float), rtol=1e-13)
    assert [values.shape for values in found] == [(2, 3, 2), (3, 2, 2), (3, 2, 2)]


def test_a_separator_counts_as_often_as_it_occurs() -> None:
    """A star with four leaves: p(0,1) p(0,2) p(0,3) p(0,4) / p(0)^3."""
    scopes = SCOPES["star"]
    nodes, table = counts(scopes)
    law = table / table.sum()
    parts = [spread(margin(law, scope, nodes), scope, nodes) for scope in scopes]
    expected = np.prod(np.broadcast_arrays(*parts), axis=0) / spread(margin(law, (0,), nodes), (0,), nodes) ** 3
    np.testing.assert_allclose(joint(solve(scopes, nodes, table), scopes, table.shape, nodes), expected, rtol=1e-13)


@given(sparse_tables(DECOMPOSABLE))
def test_zeros_stay_zeros(case: tuple[list[Scope], list[Any], Any]) -> None:
    scopes, nodes, table = case
    found = solve(scopes, nodes, table)
    assert not any(np.isnan(values).any() for values in found)
    law = joint(found, scopes, table.shape, nodes)
    assert law.sum() == pytest.approx(1.0, abs=1e-13)
    for scope in scopes:
        wanted = margin(table, scope, nodes) / table.sum()
        np.testing.assert_allclose(margin(law, scope, nodes), wanted, rtol=1e-12, atol=1e-15)
        assert (margin(law, scope, nodes)[wanted == 0] == 0).all()


def test_scale_of_the_margins_does_not_matter() -> None:
    scopes = SCOPES["triples"]
    nodes, table = counts(scopes)
    for one, other in zip(solve(scopes, nodes, table), solve(scopes, nodes, table / table.sum()), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-13)


def test_ten_rows_of_a_chain() -> None:
    rows = [
        (0, 0, 0),
        (0, 0, 1),
        (1, 1, 0),
        (1, 0, 1),
        (0, 0, 1),
        (1, 0, 1),
        (1, 1, 1),
        (0, 0, 1),
        (1, 0, 0),
        (0, 1, 0),
    ]
    table = np.zeros((2, 2, 2))
    np.add.at(table, tuple(np.transpose(rows)), 1.0)
    law = joint(solve([(0, 1), (1, 2)], [0, 1, 2], table), [(0, 1), (1, 2)], (2, 2, 2), [0, 1, 2])
    # p(x0, x1) p(x1, x2) / p(x1): 4/10 * 5/10 / (7/10) for the state (0, 0, 1).
    assert law[0, 0, 1] == pytest.approx(4 * 5 / 70, rel=1e-14)
    assert law[1, 1, 0] == pytest.approx(2 * 2 / 30, rel=1e-14)


def test_no_scopes_and_empty_scopes() -> None:
    assert closed_form([], [], decompose([], {})) == []
    (table,) = closed_form([()], [np.array(5.0)], decompose([()], {}))
    assert table == 0.0


def test_what_cannot_be_solved_says_why() -> None:
    scopes = [tuple(pair) for pair in combinations(range(3), 2)]
    with pytest.raises(EstimateError, match="joined pairwise"):
        solve(scopes, [0, 1, 2], np.ones((2, 2, 2)))
    with pytest.raises(EstimateError, match="adds up to 0"):
        solve([(0, 1)], [0, 1], np.zeros((2, 2)))
    with pytest.raises(DataError, match="not negative"):
        solve([(0, 1)], [0, 1], np.array([[1.0, -1.0], [1.0, 1.0]]))
