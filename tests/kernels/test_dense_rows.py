"""Products of dense rows with a vector and back: compiled loops beside BLAS, and exact sums."""

import math

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


def test_the_path_depends_on_the_size_alone() -> None:
    if not choice.numba_installed():
        pytest.skip("nothing to compile with")
    with choice.force("auto"):
        assert [row_products(size).compiled for size in (10**7, 10**9, 10**7, 10**9)] == [False, True, False, True]
    with choice.force("numpy"):
        assert not row_products(10**9).compiled
