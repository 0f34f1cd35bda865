"""Distinct rows against a dictionary of rows."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from suffice.errors import DataError
from suffice.kernels import choice
from suffice.kernels.compiled.patterns import MOST_LABELS
from suffice.kernels.patterns import distinct_rows

PATHS = ("numpy", "compiled")
INTEGERS: list[Any] = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]


def by_hand(columns: NDArray[Any], weights: NDArray[Any] | None) -> tuple[list[tuple[Any, ...]], list[float]]:
    """Rows in order with their weights; a NaN is written as infinity and a bit, so that it sorts last."""
    found: dict[tuple[Any, ...], float] = {}
    for row in range(columns.shape[1]):
        key = tuple((1, 0) if value != value else (0, value) for value in columns[:, row].tolist())
        found[key] = found.get(key, 0) + (1 if weights is None else float(weights[row]))
    return sorted(found), [found[key] for key in sorted(found)]


def check(columns: NDArray[Any], weights: NDArray[Any] | None, path: str) -> None:
    with choice.force(path):
        rows, sums = distinct_rows(columns, weights)
    expected, totals = by_hand(columns, weights)
    assert rows.dtype == columns.dtype
    assert rows.shape == (len(expected), len(columns))
    assert sums.dtype == (np.int64 if weights is None else np.float64)
    keys = [tuple((1, 0) if value != value else (0, value) for value in row) for row in rows.tolist()]
    assert keys == expected
    np.testing.assert_allclose(sums, totals, rtol=1e-13)


@st.composite
def integer_columns(draw: st.DrawFn) -> NDArray[Any]:
    """Columns of one type; some span all its values, some only a few."""
    dtype: Any = draw(st.sampled_from(INTEGERS))
    info = np.iinfo(dtype)
    shape = draw(st.integers(1, 5)), draw(st.integers(0, 60))
    few = draw(st.lists(st.integers(int(info.min), int(info.max)), min_size=1, max_size=4))
    near = st.integers(0, 3).map(lambda step: max(int(info.min), min(int(info.max), few[0] + step)))
    return draw(hnp.arrays(dtype, shape, elements=st.one_of(st.sampled_from(few), near)))


@pytest.mark.parametrize("path", PATHS)
@given(integer_columns(), st.booleans())
@settings(max_examples=150)
def test_distinct_rows_of_integers(path: str, columns: NDArray[Any], weighted: bool) -> None:
    check(columns, np.arange(columns.shape[1]) * 0.5 if weighted else None, path)


@pytest.mark.parametrize("path", PATHS)
@given(
    hnp.arrays(
        np.float64,
        st.tuples(st.integers(1, 4), st.integers(0, 60)),
        elements=st.one_of(st.sampled_from([0.0, -0.0, 1.5, -2.5, math.nan, math.inf, -math.inf, 5e-324]), st.floats()),
    ),
    st.booleans(),
)
@settings(max_examples=150)
def test_distinct_rows_of_floats(path: str, columns: NDArray[Any], weighted: bool) -> None:
    check(columns, np.arange(columns.shape[1]) * 0.5 if weighted else None, path)


def test_zero_has_one_sign_and_nan_one_form() -> None:
    odd_nan = np.array([0xFFF8000000000123, 0x7FF8000000000000], np.uint64).view(np.float64)
    rows, sums = distinct_rows(np.array([[-0.0, 0.0, *odd_nan]]))
    assert not np.signbit(rows[0, 0])
    assert math.isnan(rows[1, 0])
    assert sums.tolist() == [2, 2]


@pytest.mark.parametrize("path", PATHS)
def test_truth_values(path: str) -> None:
    columns = np.array([[True, False, True], [False, False, False]])
    with choice.force(path):
        rows, sums = distinct_rows(columns)
    assert rows.dtype == np.bool_
    assert rows.tolist() == [[False, False], [True, False]]
    assert sums.tolist() == [1, 2]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("weights", [None, np.ones(100_000)])
def test_more_distinct_rows_than_the_hash_table_holds(path: str, weights: NDArray[np.float64] | None) -> None:
    rng = np.random.default_rng(1)
    columns = rng.integers(0, 2**40, (3, 90_000))[:, rng.integers(0, 90_000, 100_000)]
    with choice.force(path):
        rows, sums = distinct_rows(columns, weights)
    expected, counts = np.unique(columns, axis=1, return_counts=True)
    assert len(rows) > MOST_LABELS // 2
    np.testing.assert_array_equal(rows, expected.T)
    np.testing.assert_array_equal(sums, counts)


@pytest.mark.parametrize("path", PATHS)
def test_all_rows_distinct(path: str) -> None:
    columns = np.random.default_rng(2).permutation(3 * MOST_LABELS).reshape(1, -1) * 1.0
    with choice.force(path):
        rows, sums = distinct_rows(columns, np.ones(columns.shape[1]))
    np.testing.assert_array_equal(rows[:, 0], np.arange(3 * MOST_LABELS))
    assert (sums == 1).all()


@pytest.mark.parametrize("path", PATHS)
def test_many_small_columns_and_rows_of_no_weight(path: str) -> None:
    rng = np.random.default_rng(3)
    columns = rng.integers(0, 4, (37, 200)).astype(np.uint8)[:, rng.integers(0, 200, 5000)]
    weights = np.zeros(5000)
    with choice.force(path):
        rows, sums = distinct_rows(columns, weights)
    np.testing.assert_array_equal(rows, np.unique(columns, axis=1).T)
    assert (sums == 0).all()


@pytest.mark.parametrize("dtype", [np.int32, np.float64, np.bool_])
def test_no_rows_and_no_columns(dtype: type[Any]) -> None:
    rows, sums = distinct_rows(np.empty((3, 0), dtype))
    assert (rows.shape, sums.shape) == ((0, 3), (0,))
    assert rows.dtype == dtype
    rows, sums = distinct_rows(np.empty((0, 4), dtype), np.full(4, 0.5))
    assert (rows.shape, sums.tolist()) == ((1, 0), [2.0])
    rows, sums = distinct_rows(np.empty((0, 0), dtype))
    assert (rows.shape, sums.tolist()) == ((0, 0), [])


def test_arguments_are_checked() -> None:
    with pytest.raises(DataError, match=r"type <U1; expected \(d, n\) integers or floats"):
        distinct_rows(np.array([["a"]]))
    with pytest.raises(DataError, match=r"shape \(3,\)"):
        distinct_rows(np.arange(3))
    with pytest.raises(DataError, match=r"Weights have shape \(2,\) for 3 rows"):
        distinct_rows(np.zeros((1, 3)), np.ones(2))
