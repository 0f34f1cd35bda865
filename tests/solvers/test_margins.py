"""Margins that do not belong together are found and named."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given

from joint_tables import Scope, margin, sparse_tables
from suffice.errors import DataError
from suffice.solvers.margins import check_margins, find_conflict

STATES: dict[str, list[Any]] = {"a": ["low", "high"], "b": [1, 2], "c": ["x", "y", "z"]}
SCOPES: list[Scope] = [("a", "b"), ("c", "b"), ("a",)]


def margins_of(table: Any) -> list[Any]:
    return [margin(table, scope, ["a", "b", "c"]) for scope in SCOPES]


@given(sparse_tables())
def test_margins_of_one_table_agree(case: tuple[list[Scope], list[Any], Any]) -> None:
    scopes, nodes, table = case
    check_margins(scopes, [margin(table / 3, scope, nodes) for scope in scopes])


def test_different_totals() -> None:
    tables = margins_of(np.ones((2, 2, 3)))
    with pytest.raises(DataError, match=r"\('a', 'b'\) and \('a',\) have different totals: 12 and 24\."):
        check_margins(SCOPES, [tables[0], tables[1], 2 * tables[2]])


def test_the_shared_variables_the_cell_and_both_values_are_named() -> None:
    tables = margins_of(np.arange(12.0).reshape(2, 2, 3))
    moved = tables[1].copy()
    moved[0, 0] += 2.5
    moved[0, 1] -= 2.5
    with pytest.raises(
        DataError, match=r"\('a', 'b'\) and \('c', 'b'\) disagree on what they share: at b=1 they give 24 and 26\.5"
    ):
        check_margins(SCOPES, [tables[0], moved, tables[2]], states=STATES)
    found = find_conflict(SCOPES, [tables[0], moved, tables[2]])
    assert found is not None
    assert (found.first, found.second, found.shared, found.cell) == (0, 1, ("b",), (0,))
    assert found.size == pytest.approx(2.5 / 66)


def test_margins_of_the_same_variables_in_another_order() -> None:
    table = np.array([[1.0, 2.0], [3.0, 4.0]])
    check_margins([("a", "b"), ("b", "a")], [table, table.T])
    with pytest.raises(DataError, match=r"at a='low', b=2 they give 2 and 3"):
        check_margins([("a", "b"), ("b", "a")], [table, table], states=STATES)


def test_printed_digits_are_reported_and_rounding_is_not() -> None:
    """Tables of a ternary example printed with three digits, cut off: their totals are 0.995 and 0.997."""
    p12 = np.array([[0.249, 0.002, 0.311], [0.017, 0.024, 0.015], [0.029, 0.348, 0.0]])
    p13 = np.array([[0.136, 0.118, 0.309], [0.003, 0.029, 0.025], [0.348, 0.014, 0.015]])
    with pytest.raises(DataError, match=r"different totals: 0\.995 and 0\.997"):
        check_margins([(1, 2), (1, 3)], [p12, p13])
    with pytest.raises(DataError, match="disagree on what they share: at 1="):
        check_margins([(1, 2), (1, 3)], [p12 / p12.sum(), p13 / p13.sum()])
    assert find_conflict([(1, 2), (1, 3)], [p12, p13], tolerance=0.01) is None
    thirds = np.full((3, 3), 1 / 9)
    check_margins([(1, 2), (2, 3)], [thirds, thirds * (1 + 1e-14)])


@pytest.mark.parametrize("wrong", [-1.0, np.nan, np.inf])
def test_numbers_that_are_no_counts(wrong: float) -> None:
    tables = margins_of(np.ones((2, 2, 3)))
    tables[1][2, 1] = wrong
    with pytest.raises(DataError, match=r"holds .* at c='z', b=2; counts are finite and not negative"):
        check_margins(SCOPES, tables, states=STATES)


def test_nothing_and_single_numbers() -> None:
    check_margins([], [])
    check_margins([(), ("a",)], [np.array(3.0), np.array([1.0, 2.0])])
    with pytest.raises(DataError, match="different totals: 4 and 3"):
        check_margins([(), ("a",)], [np.array(4.0), np.array([1.0, 2.0])])
    with pytest.raises(DataError, match="its one cell"):
        check_margins([()], [np.array(-1.0)])
