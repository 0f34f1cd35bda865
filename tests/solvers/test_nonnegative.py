"""Newton over numbers that are not negative: against SciPy's bounded optimisers."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import lsq_linear, minimize

import suffice as sf
from suffice.solvers.nonnegative import newton_nonnegative

Floats = NDArray[np.float64]


@given(st.integers(0, 10_000), st.integers(1, 6))
def test_a_quadratic_takes_its_bounded_maximum(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    design, target = rng.normal(size=(size + 3, size)), rng.normal(size=size + 3)

    def function(x: Floats) -> tuple[float, Floats, Floats]:
        away = target - design @ x
        return -0.5 * float(away @ away), design.T @ away, design.T @ design

    found, rested = newton_nonnegative(function, np.ones(size))
    expected = lsq_linear(design, target, bounds=(0, np.inf), tol=1e-14).x
    assert rested
    assert (found >= 0).all()
    np.testing.assert_allclose(found, expected, atol=1e-6)
    slope = function(found)[1]
    assert np.abs(slope[found > 0]).max(initial=0.0) < 1e-10
    assert slope[found == 0].max(initial=-1.0) < 1e-10


@settings(max_examples=30)
@given(st.integers(0, 10_000))
def test_a_barrier_is_kept_and_slopes_vanish(seed: int) -> None:
    rng = np.random.default_rng(seed)
    design, pull = rng.gamma(1.0, size=(12, 4)), rng.gamma(2.0, size=4)

    def function(x: Floats) -> tuple[float, Floats, Floats]:
        t = design @ x
        return float(np.log(t).sum() - pull @ x), design.T @ (1 / t) - pull, design.T @ (design / t[:, None] ** 2)

    found, rested = newton_nonnegative(function, np.full(4, 5.0))
    bounds: Any = [(1e-9, None)] * 4
    start: Any = np.ones(4)

    def loss(x: Floats) -> tuple[float, Floats]:
        value, slope, _ = function(x)
        return -value, -slope

    other: Any = minimize(loss, start, jac=True, bounds=bounds)
    assert rested
    assert function(found)[0] >= -other.fun - 1e-9
    slope = function(found)[1]
    assert np.abs(slope[found > 0]).max() < 1e-9
    assert slope[found == 0].max(initial=-1.0) < 1e-9


def test_a_start_outside_the_domain_is_refused() -> None:
    with pytest.raises(sf.EstimateError, match="not finite at the start"):
        newton_nonnegative(lambda x: (float(np.log(-x).sum()), 1 / x, np.eye(1)), np.ones(1))


def test_a_way_that_does_not_rise_is_not_called_rest() -> None:
    """The slope promises a rise that the value does not keep, however short the step."""

    def function(x: Floats) -> tuple[float, Floats, Floats]:
        return -float(np.abs(x - 1).sum()), np.ones(1), np.eye(1)

    found, rested = newton_nonnegative(function, np.ones(1))
    assert not rested
    assert found.tolist() == [1.0]


def test_steps_are_shortened_until_they_rise_enough() -> None:
    """The first step of Newton for -sqrt(1 + (x - 5)^2) goes from 0 to 5 (1 + 25), far beyond the maximum at 5."""
    visited: list[tuple[float, float]] = []

    def function(x: Floats) -> tuple[float, Floats, Floats]:
        away = float(x[0]) - 5.0
        root = np.sqrt(1 + away**2)
        visited.append((float(x[0]), -float(root)))
        return -float(root), np.array([-away / root]), np.array([[1 / root**3]])

    found, rested = newton_nonnegative(function, np.zeros(1))
    assert rested
    assert found[0] == pytest.approx(5.0, abs=1e-9)
    assert visited[1][0] == pytest.approx(5 * 26, rel=1e-9)
    # The first step of 130 / 2^k that rises by 1e-4 of what the slope promises.
    start, promised = -np.sqrt(26), 130 * 5 / np.sqrt(26)
    kept = next(k for k in range(60) if -np.sqrt(1 + (130 / 2**k - 5) ** 2) - start >= 1e-4 * promised / 2**k)
    assert kept > 0
    np.testing.assert_allclose([x for x, _ in visited[1 : kept + 2]], [130 / 2**k for k in range(kept + 1)], rtol=1e-9)
    assert visited[kept + 2][0] != pytest.approx(130 / 2 ** (kept + 1), rel=1e-3)
