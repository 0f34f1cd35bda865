"""Least squares from sums of products, and the bound of what other weights lose, beside rational arithmetic."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

import exact_squares as exact
from suffice.answers import MomentSums
from suffice.families.orthogonal import orthogonalised, residuals
from suffice.families.regression import Products, least_squares
from suffice.families.regression_check import shares_to_fall
from suffice.kernels.moments import moment_sums

Floats = NDArray[np.float64]


def products_of(x: Floats, y: Floats) -> Products:
    return Products.of(MomentSums(*moment_sums(np.vstack([x.T, y[None]]))), list(range(x.shape[1] + 1)))


def with_ones(x: Floats) -> Floats:
    return np.column_stack([np.ones(len(x)), x])


def drawn(rng: np.random.Generator, kind: str) -> tuple[Floats, Floats]:
    """Columns that are apart, nearly the same, far from 0, or powers of one; in any unit."""
    p = int(rng.integers(1, 5))
    n = int(rng.integers(p + 3, 20))
    x = rng.normal(size=(n, p))
    if kind == "near" and p > 1:
        x[:, -1] = x[:, 0] + 10.0 ** -rng.integers(1, 12) * rng.normal(size=n)
    if kind == "far":
        x += 10.0 ** rng.integers(0, 8)
    if kind == "powers":
        x = rng.uniform(1, 3, size=(n, 1)) ** np.arange(1, p + 1)
    x *= 10.0 ** rng.integers(-3, 4, size=p)
    return x, x @ rng.normal(size=p) + 10.0 ** rng.integers(-4, 2) * rng.normal(size=n)


@pytest.mark.parametrize("kind", ["apart", "near", "far", "powers"])
def test_weights_are_those_of_rational_arithmetic(kind: str) -> None:
    rng = np.random.default_rng([7, len(kind)])
    for _ in range(8):
        x, y = drawn(rng, kind)
        design, products = with_ones(x), products_of(x, y)
        expected = exact.solution(design, y)
        found = orthogonalised(products.raw)
        assert not found.dependent.any()
        # Pairs carry some 31 digits, of which products lose the square of the condition.
        condition = np.linalg.cond(design / np.linalg.norm(design, axis=0))
        np.testing.assert_allclose(found.weights[0], [float(w) for w in expected], rtol=1e-14 + 1e-31 * condition**2)
        left = exact.squares(design, y, expected)
        assert abs(Fraction(float(found.squares[0, 0, -1])) / left - 1) < 1e-9
        solved = least_squares(products)
        # Rounding the weights costs so much of the squares at most; terms may be large beside what they leave.
        size = float((solved.weights[0] ** 2) @ (design**2).sum(axis=0))
        assert exact.squares(design, y, exact.rational(solved.weights[0])) - left <= 1e-29 * size + 1e-24 * left


@pytest.mark.parametrize("kind", ["apart", "near", "far", "powers"])
@pytest.mark.parametrize("tampered", [False, True])
def test_no_weights_lose_more_than_the_bound(kind: str, tampered: bool) -> None:
    rng = np.random.default_rng([8, len(kind), int(tampered)])
    tight = []
    for _ in range(25):
        x, y = drawn(rng, kind)
        design, products = with_ones(x), products_of(x, y)
        weights = least_squares(products).weights
        if tampered:
            weights = weights * (1 + 10.0 ** -rng.integers(1, 15) * rng.normal(size=weights.shape))
        share = float(shares_to_fall(products, weights)[0])
        here = exact.squares(design, y, exact.rational(weights[0]))
        truth = 1 - exact.squares(design, y, exact.solution(design, y)) / here
        assert Fraction(share) >= truth
        if share < 1:
            tight.append(share / max(float(truth), 1e-20))
        else:
            assert truth > 0.99
    assert np.median(tight) < 2


def test_rounded_products_of_many_columns_leave_the_bound_unknown_where_columns_nearly_agree() -> None:
    """Products that are good to float64 cannot tell what columns explain whose difference is below their rounding."""
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(50, 2)), rng.normal(size=50)
    for gap, known in ((1.0, True), (1e-3, True), (1e-9, False)):
        columns = np.column_stack([x[:, 0], x[:, 0] + gap * x[:, 1]])
        products = products_of(columns, y)
        rough = replace(products, exact=False)
        share = float(shares_to_fall(rough, least_squares(rough).weights)[0])
        assert (share < 1e-6) == known
        assert float(shares_to_fall(products, least_squares(products).weights)[0]) < 1e-12


@pytest.mark.parametrize("kind", ["apart", "near", "far", "powers"])
def test_a_regression_through_the_origin_is_that_of_rational_arithmetic(kind: str) -> None:
    rng = np.random.default_rng([11, len(kind)])
    for _ in range(8):
        x, y = drawn(rng, kind)
        sums = MomentSums(*moment_sums(np.vstack([x.T, y[None]])))
        products = Products.through_origin(sums, list(range(x.shape[1] + 1)))
        expected = exact.solution(x, y)
        solved = least_squares(products, careful=True)
        assert solved.weights[0, 0] == 0.0
        condition = np.linalg.cond(x / np.linalg.norm(x, axis=0))
        bound = 1e-14 + 1e-31 * condition**2
        np.testing.assert_allclose(solved.weights[0, 1:], [float(w) for w in expected], rtol=bound)
        size = float((solved.weights[0, 1:] ** 2) @ (x**2).sum(axis=0))
        left = float(exact.squares(x, y, expected))
        assert abs(float(solved.squares[0]) - left) <= 1e-28 * size + 1e-14 * left
        root = products.root[0, 1:, 1:]
        np.testing.assert_allclose(root.T @ root, x.T @ x, rtol=1e-12, atol=1e-12 * np.abs(x.T @ x).max())
        inverse = np.linalg.pinv(root) @ np.linalg.pinv(root).T
        np.testing.assert_allclose(np.diag(solved.spread[0])[1:], np.diag(inverse), rtol=1e-9 + 1e-15 * condition)


def test_slopes_and_squares_at_any_weights_are_those_of_rational_arithmetic() -> None:
    rng = np.random.default_rng(3)
    for kind in ("apart", "near", "far", "powers"):
        x, y = drawn(rng, kind)
        design, raw = with_ones(x), products_of(x, y).raw
        weights = rng.normal(size=(design.shape[1],))
        slopes, squares = residuals(raw, weights[None])
        assert float(squares[0]) == pytest.approx(float(exact.squares(design, y, exact.rational(weights))), rel=1e-15)
        away = [
            value - sum((a * b for a, b in zip(exact.rational(row), exact.rational(weights), strict=True)), Fraction())
            for row, value in zip(design, exact.rational(y), strict=True)
        ]
        for column, (high, low) in zip(design.T, slopes[:, 0].T.tolist(), strict=True):
            terms = [a * b for a, b in zip(exact.rational(column), away, strict=True)]
            size = sum(map(abs, terms), Fraction()) + max(abs(Fraction(float(v))) for v in np.ravel(raw[0]))
            assert abs(Fraction(high) + Fraction(low) - sum(terms, Fraction())) <= Fraction(2.0**-90) * size
