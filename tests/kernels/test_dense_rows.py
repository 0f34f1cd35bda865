"""Products of dense rows with a vector and back: compiled loops beside BLAS, and exact sums."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest

from suffice.kernels import choice
from suffice.kernels.dense_rows import RowProducts, row_products

ROWS = np.random.default_rng(0).normal(size=(23, 7))


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 23])
def test_both_products_are_sums_of_products(compiled: bool, count: int) -> None:
    rng = np.random.default_rng(count)
    X, vector, values = ROWS[:count], rng.normal(size=7), rng.normal(size=count)
    products = RowProducts(compiled)
    forward = [math.fsum(X[i] * vector) for i in range(count)]
    back = [math.fsum(X[:, j] * values) for j in range(7)]
    np.testing.assert_allclose(products.forward(X, vector), forward, rtol=0, atol=1e-14)
    np.testing.assert_allclose(products.back(values, X), back, rtol=0, atol=1e-14)


@pytest.mark.parametrize("X", [np.asfortranarray(ROWS), ROWS[:, ::2], ROWS[::3], ROWS[:, :0]])
def test_rows_in_any_layout_and_vectors_that_are_slices(X: np.ndarray) -> None:
    vector, values = np.linspace(-1.0, 1.0, 2 * X.shape[1])[::2], np.linspace(0.0, 1.0, 2 * len(X))[::2]
    products = RowProducts(compiled=True)
    np.testing.assert_allclose(products.forward(X, vector), X @ vector, rtol=0, atol=1e-14)
    np.testing.assert_allclose(products.back(values, X), X.T @ values, rtol=0, atol=1e-14)


def test_what_is_no_number_stays_so() -> None:
    X = ROWS.copy()
    X[2, 3], X[4, 0] = np.nan, np.inf
    found = RowProducts(compiled=True).forward(X, np.ones(7))
    assert np.flatnonzero(~np.isfinite(found)).tolist() == [2, 4]
    assert np.isnan(found[2])
    assert np.isinf(found[4])


def exact_slopes(law: str, eta: float, y: float) -> tuple[float, float]:
    """Value and score of a row in long decimals."""
    with localcontext() as context:
        context.prec = 60
        mean = Decimal(eta).exp()
        if law == "poisson":
            return float(Decimal(y) * Decimal(eta) - mean), float(Decimal(y) - mean)
        value = Decimal(y) * Decimal(eta) - (1 + mean).ln()
        return float(value), float(Decimal(y) - mean / (1 + mean))


@pytest.mark.parametrize("law", ["logistic", "poisson"])
@pytest.mark.parametrize("count", [1, 23, 128, 300])
@pytest.mark.parametrize("sides", [False, True])
def test_one_pass_gives_value_and_slopes(law: str, count: int, sides: bool) -> None:
    rng = np.random.default_rng(count)
    X, beta = rng.normal(size=(count, 7)), rng.normal(size=7)
    y = rng.poisson(2.0, count).astype(float) if law == "poisson" else rng.random(count).round(1)
    offset, weights = (rng.normal(size=count), rng.integers(0, 3, count) / 2.0) if sides else (None, None)
    known = RowProducts(compiled=True).slopes(law, X, y, offset, weights, np.append(0.3, beta), constant=True)
    assert known is not None
    etas = [math.fsum([*(X[i] * beta), 0.3, 0.0 if offset is None else offset[i]]) for i in range(count)]
    rows = np.array([exact_slopes(law, eta, one) for eta, one in zip(etas, y, strict=True)])
    rows *= 1.0 if weights is None else weights[:, None]
    size = np.abs(rows).sum(axis=0)
    assert known[0] == pytest.approx(math.fsum(rows[:, 0]), rel=0, abs=1e-14 * size[0])
    slopes = [math.fsum(column * rows[:, 1]) for column in (np.ones(count), *X.T)]
    np.testing.assert_allclose(known[1], slopes, rtol=0, atol=1e-13 * max(1.0, np.abs(X).max()) * size[1])


def test_slopes_keep_what_is_no_number_and_what_is_far_out() -> None:
    def value(law: str, eta: float, y: float) -> tuple[float, float]:
        given = np.ones((1, 1)), np.array([y]), None, None, np.array([eta])
        known = RowProducts(compiled=True).slopes(law, *given, constant=False)
        assert known is not None
        return known[0], float(known[1][0])

    assert all(np.isnan(value(law, math.nan, 0.0)).any() for law in ("logistic", "poisson"))
    assert value("logistic", 800.0, 0.0) == (-800.0, -1.0)
    assert value("logistic", -800.0, 0.0) == (0.0, 0.0)
    assert value("poisson", 800.0, 2.0) == (-math.inf, -math.inf)
    assert value("poisson", -800.0, 2.0) == (-1600.0, 2.0)
    rows = np.ones((1, 1)), np.ones(1), None, None, np.ones(1)
    assert RowProducts(compiled=True).slopes("gaussian", *rows, constant=False) is None


@pytest.mark.parametrize("X", [ROWS, np.asfortranarray(ROWS), ROWS[:0]])
def test_sizes_of_columns(X: np.ndarray) -> None:
    expected = [max([0.0, *np.abs(column)]) for column in X.T]
    assert RowProducts(compiled=True).column_sizes(X).tolist() == expected


def test_the_path_depends_on_the_size_alone() -> None:
    if not choice.numba_installed():
        pytest.skip("nothing to compile with")
    with choice.force("auto"):
        sizes = ((10**5, 100), (10**7, 100), (10**5, 100), (10**7, 100))
        assert [row_products(*size).compiled for size in sizes] == [False, True, False, True]
        assert row_products(10**6, 20, "logistic").compiled
    with choice.force("numpy"):
        assert not row_products(10**7, 100).compiled
