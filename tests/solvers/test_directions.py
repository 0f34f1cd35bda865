"""Single steps of the solvers: directions, bounds and exact zeros, each against its formula."""

import numpy as np
import pytest

from suffice.errors import DataError
from suffice.fitting.control import State
from suffice.graphs.decomposition import decompose
from suffice.solvers import gradient
from suffice.solvers.closed_form import closed_form
from suffice.solvers.line_search import Point
from suffice.solvers.margins import check_margins, find_conflict
from suffice.solvers.newton import shortest_direction


def test_a_gradient_outside_of_the_range_is_followed_as_far_as_can_be_told() -> None:
    """I = diag(2, 0): along the second axis the least curvature counts, n eps times the largest."""
    information, slope = np.diag([2.0, 0.0]), np.array([4.0, 1e-3])
    found, rank = shortest_direction(information, slope, 1e-6)
    least = 2 * np.finfo(np.float64).eps * 2.0
    np.testing.assert_allclose(found, [2.0, 1e-3 / least], rtol=1e-12)
    assert rank == 1
    within, rank = shortest_direction(information, slope, 1e-2)
    np.testing.assert_allclose(within, [2.0, 0.0], atol=1e-15)
    assert rank == 1
    nothing, rank = shortest_direction(np.zeros((2, 2)), slope, 1e-6)
    np.testing.assert_array_equal(nothing, slope)
    assert rank == 0


def test_zeros_leave_on_the_side_that_rises() -> None:
    """The curvature pairs turn the direction of the second component against its slope: it stays at 0."""
    curve = np.array([[2.0, 1.8], [1.8, 2.0]])
    steps = np.eye(2)
    pairs = steps, steps @ curve
    start, slopes = np.array([1.0, 0.0]), np.array([3.0, 0.5])
    assert gradient.inverse_product(pairs, slopes - [0.1, 0.1], np.ones(2))[1] < 0.0
    seen = []

    def objective(x: np.ndarray) -> tuple[float, np.ndarray]:
        seen.append(x)
        away = x - start
        return float(slopes @ away - 0.5 * away @ curve @ away), slopes - curve @ away

    point = Point(start, 0.0, slopes)
    state = State(start, 0.0, 1.0, memory={"magnitude": 1.0})
    found = gradient._orthant_step(objective, point, pairs, (np.full(2, 0.1), np.ones(2)), state, np.ones(2))
    assert found is not None
    assert found.point.x[1] == 0.0
    assert found.point.x[0] > 1.0
    assert all(x[1] == 0.0 for x in seen)


def test_the_share_of_the_last_direction_is_bounded_from_below() -> None:
    """Hager and Zhang: b >= -1 / (|d| min(0.01 |g_old|, |g_new|)); here the formula alone would give far less."""
    old, new, direction = np.array([2e3, 0.0]), np.array([-1e3, 1e3]), np.array([100.0, 0.0])
    change = old - new
    along = direction @ change
    share = -(change @ new - 2.0 * (change @ change) * (direction @ new) / along) / along
    least = -1.0 / (100.0 * min(0.01 * 2e3, np.sqrt(2.0) * 1e3))
    assert share < least
    found = gradient._conjugate(old, new, direction, np.ones(2))
    np.testing.assert_allclose(found, new + least * direction, rtol=1e-12)
    # Above the bound the formula counts.
    other = np.array([1e3, 1e3])
    change = old - other
    along = direction @ change
    share = -(change @ other - 2.0 * (change @ change) * (direction @ other) / along) / along
    assert share > least
    np.testing.assert_allclose(gradient._conjugate(old, other, direction, np.ones(2)), other + share * direction)


def test_an_empty_cell_of_the_closed_form_is_exactly_minus_infinity() -> None:
    scopes = [("a", "b"), ("b", "c")]
    margins = [np.array([[3.0, 0.0], [1.0, 4.0]]), np.array([[4.0, 0.0], [1.0, 3.0]])]
    found = closed_form(scopes, margins, decompose(scopes, {"a": 2, "b": 2, "c": 2}))
    assert found[0][0, 1] == -np.inf
    assert found[1][0, 1] == -np.inf
    assert np.isfinite(np.delete(found[0].ravel(), 1)).all()
    joint = np.exp(found[0])[:, :, None] * np.exp(found[1])[None]
    np.testing.assert_allclose(joint.sum(axis=2), margins[0] / 8, rtol=1e-14)


def test_totals_come_before_cells() -> None:
    """The first two margins disagree by 5 in a cell, the last by 1 in its total: the total is named."""
    margins = [np.array([[5.0, 0.0], [0.0, 5.0]]), np.array([[10.0, 0.0], [0.0, 0.0]]), np.array([5.0, 6.0])]
    found = find_conflict([("a", "b"), ("b", "c"), ("a",)], margins)
    assert found is not None
    assert (found.shared, found.values) == ((), (10.0, 11.0))


@pytest.mark.parametrize(("difference", "agrees"), [(1e-8, False), (5e-10, True)])
def test_how_exactly_margins_have_to_agree(difference: float, agrees: bool) -> None:
    """Sums may differ by 1e-9 of the total: one unit of the eighth digit is named."""
    scopes = [("a", "b"), ("b", "c")]
    one = np.full((2, 2), 0.25)
    other = one + np.array([[difference, 0.0], [-difference, 0.0]])
    if agrees:
        check_margins(scopes, [one, other])
    else:
        with pytest.raises(DataError, match=r"they give 0\.5 and 0\.(50000001|49999999)\."):
            check_margins(scopes, [one, other])
    check_margins(scopes, [one, other], tolerance=2e-8)
