"""Shares under inequalities: against a generic optimiser, and isotonic regression of scikit-learn."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import xlogy

from suffice.solvers.bounded_shares import Polytopes, most_likely_shares
from suffice.solvers.isotonic import isotonic_shares

Floats = NDArray[np.float64]


def rising(k: int, r: int) -> tuple[Floats, Floats, Floats]:
    """Directions, inequalities and an inner point of k distributions of r states whose tails do not fall."""
    cuts: list[Floats] = []
    span: list[Floats] = []
    for row in range(k):
        for level in range(1, r):
            way = np.zeros((k, r))
            way[row, level], way[row, level - 1] = 1.0, -1.0
            span.append(way.ravel())
            if row:
                cut = np.zeros((k, r))
                cut[row, level:], cut[row - 1, level:] = 1.0, -1.0
                cuts.append(cut.ravel())
    tails = (1 - np.arange(r + 1) / r) ** np.linspace(1.4, 0.6, k)[:, None]
    return np.array(span).T, np.concatenate([np.array(cuts), np.eye(k * r)]), -np.diff(tails, axis=1).ravel()


@pytest.mark.parametrize(("k", "r"), [(3, 3), (5, 2), (2, 5)])
def test_many_problems_side_by_side_are_those_of_a_generic_optimiser(k: int, r: int) -> None:
    rng = np.random.default_rng(k)
    counts = rng.integers(0, 7, (12, k * r)).astype(float)
    span, cuts, inside = rising(k, r)
    polytopes = Polytopes(np.tile(inside, (12, 1)), span, cuts, np.zeros((12, len(cuts))))
    shares, rested = most_likely_shares(counts, polytopes)
    assert rested.all()
    np.testing.assert_allclose(shares.reshape(12, k, r).sum(axis=2), 1.0, atol=1e-14)
    assert (shares @ cuts.T).min() > -1e-13
    sums = np.kron(np.eye(k), np.ones(r))
    solve: Any = minimize
    for number in range(12):
        n = counts[number]
        found = solve(
            lambda p, n=n: -xlogy(n, p).sum(),
            inside,
            jac=lambda p, n=n: -n / p,
            method="SLSQP",
            bounds=[(1e-10, 1.0)] * (k * r),
            constraints=[
                {"type": "eq", "fun": lambda p: sums @ p - 1, "jac": lambda _: sums},
                {"type": "ineq", "fun": lambda p: cuts @ p, "jac": lambda _: cuts},
            ],
            options={"ftol": 1e-13, "maxiter": 1000},
        )
        reached = float(xlogy(n, shares[number]).sum())
        assert -found.fun - 1e-7 <= reached <= -found.fun + 1e-5
    alone, _ = most_likely_shares(counts[3:4], polytopes.take(np.array([3])))
    np.testing.assert_allclose(alone[0], shares[3], atol=1e-12)


def test_isotonic_shares_within_bounds_that_rise() -> None:
    """The best of all grids of values in steps of 1/20, bounds among them."""
    rng = np.random.default_rng(1)
    grid = np.linspace(0.0, 1.0, 21)
    for _ in range(20):
        total = rng.integers(1, 9, 3).astype(float)
        present = np.floor(rng.random(3) * (total + 1))
        low = np.sort(rng.choice(grid[:9], 3))
        high = np.sort(rng.choice(grid[11:], 3))
        found = isotonic_shares(present, total, low, high)
        assert (np.diff(found) >= 0).all()
        assert (found >= low).all()
        assert (found <= high).all()
        a, b, c = np.meshgrid(grid, grid, grid, indexing="ij")
        points = np.stack([a.ravel(), b.ravel(), c.ravel()], axis=1)
        kept = (np.diff(points, axis=1) >= 0).all(axis=1)
        kept &= ((points >= low - 1e-12) & (points <= high + 1e-12)).all(axis=1)
        values = (xlogy(present, points[kept]) + xlogy(total - present, 1 - points[kept])).sum(axis=1)
        reached = float((xlogy(present, found) + xlogy(total - present, 1 - found)).sum())
        assert reached >= values.max() - 1e-12
        assert reached <= values.max() + 0.2


def test_places_without_rows_stay_between_their_neighbours() -> None:
    low, high = np.zeros(5), np.ones(5)
    found = isotonic_shares(np.array([0.0, 3.0, 0.0, 9.0, 0.0]), np.array([0.0, 10.0, 0.0, 10.0, 0.0]), low, high)
    np.testing.assert_allclose(found, [0.3, 0.3, 0.5, 0.9, 0.9], atol=1e-15)
