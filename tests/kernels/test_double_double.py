"""Double-double arithmetic against exact fractions."""

import math
from collections.abc import Iterable
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice import double_double

# Products of such numbers, and the errors of those products, are neither infinite nor subnormal.
moderate = st.floats(-1e140, 1e140).filter(lambda x: x == 0 or abs(x) > 1e-100)
values = st.lists(moderate, min_size=1, max_size=40)
EPS = Fraction(1, 2**104)


def exact(pair: np.ndarray) -> Fraction:
    return Fraction(float(pair[0])) + Fraction(float(pair[1]))


def as_pair(high: float, low: float) -> np.ndarray:
    """A normalised pair near high with some low part."""
    return np.array(double_double.two_sum(np.float64(high), np.float64(high * low * 2.0**-54)))


pairs = st.builds(as_pair, moderate, st.floats(-1, 1))


@given(moderate, moderate)
def test_two_sum_is_exact(a: float, b: float) -> None:
    total, error = double_double.two_sum(np.float64(a), np.float64(b))
    assert total == a + b
    assert Fraction(float(total)) + Fraction(float(error)) == Fraction(a) + Fraction(b)


@given(moderate, moderate)
def test_two_product_is_exact(a: float, b: float) -> None:
    product, error = double_double.two_product(a, b)
    assert product == a * b
    assert exact(np.array([product, error])) == Fraction(a) * Fraction(b)


@pytest.mark.parametrize(("a", "b"), [(1.7e308, 0.3), (-1.1e300, 1.3e-20), (1e300, 1e8), (2.0**1023, 1.0)])
def test_two_product_is_exact_where_splitting_would_overflow(a: float, b: float) -> None:
    assert exact(np.array(double_double.two_product(a, b))) == Fraction(a) * Fraction(b)


@pytest.mark.parametrize("bad", [math.inf, -math.inf, math.nan, 1e200])
def test_a_product_that_is_not_finite_has_no_error(bad: float) -> None:
    product, error = double_double.two_product([bad, 0.1], [1e200, 0.1])
    assert not np.isfinite(product[0])
    assert error[0] == 0
    assert exact(np.array([product[1], error[1]])) == Fraction(0.1) ** 2


@given(pairs, pairs)
def test_sums_and_differences_of_pairs(x: np.ndarray, y: np.ndarray) -> None:
    assert abs(exact(double_double.add(x, y)) - (exact(x) + exact(y))) <= EPS * abs(exact(x) + exact(y))
    assert abs(exact(double_double.subtract(x, y)) - (exact(x) - exact(y))) <= EPS * abs(exact(x) - exact(y))


@given(pairs, pairs, moderate)
def test_products_of_pairs(x: np.ndarray, y: np.ndarray, factor: float) -> None:
    assert abs(exact(double_double.multiply(x, y)) - exact(x) * exact(y)) <= 8 * EPS * abs(exact(x) * exact(y))
    assert abs(exact(double_double.scale(x, factor)) - exact(x) * Fraction(factor)) <= 8 * EPS * abs(
        exact(x) * Fraction(factor)
    )


@given(pairs, pairs.filter(lambda y: y[0] != 0))
def test_quotients_of_pairs(x: np.ndarray, y: np.ndarray) -> None:
    quotient = exact(x) / exact(y)
    assert abs(exact(double_double.divide(x, y)) - quotient) <= 16 * EPS * abs(quotient)


@given(pairs, pairs)
def test_adding_and_taking_out_again_rounds_to_the_same_number(x: np.ndarray, y: np.ndarray) -> None:
    back = double_double.subtract(double_double.add(x, y), y)
    assert abs(exact(back) - exact(x)) <= 4 * EPS * (abs(exact(x)) + abs(exact(y)))


@given(values)
def test_column_sums_are_rounded_correctly(column: list[float]) -> None:
    total = double_double.sum_columns(np.array([column, column[::-1]]))
    truth = sum(map(Fraction, column))
    size = sum(abs(Fraction(value)) for value in column)
    assert total.shape == (2, 2)
    assert abs(exact(total[:, 0]) - truth) <= 64 * EPS * size
    assert abs(exact(total[:, 1]) - truth) <= 64 * EPS * size


@given(st.lists(st.tuples(moderate, st.floats(0, 1e6).filter(lambda w: w == 0 or w > 1e-6)), min_size=1, max_size=40))
def test_weighted_column_sums(rows: list[tuple[float, float]]) -> None:
    column, weights = (list(part) for part in zip(*rows, strict=True))
    total = double_double.sum_columns([column], weights)[:, 0]
    terms = [Fraction(x) * Fraction(w) for x, w in rows]
    assert abs(exact(total) - sum(terms)) <= 64 * EPS * sum(map(abs, terms))


def test_long_columns_agree_with_fsum_in_any_order() -> None:
    rng = np.random.default_rng(1)
    column = rng.normal(size=100_003) * 10.0 ** rng.integers(-8, 9, 100_003)
    total = double_double.sum_columns(np.stack((column, np.sort(column), column[::-1])))
    assert list(double_double.rounded(total)) == [math.fsum(column)] * 3


def test_no_rows_sum_to_zero() -> None:
    assert double_double.sum_columns(np.empty((3, 0))).tolist() == [[0, 0, 0], [0, 0, 0]]


def test_rounding_keeps_what_is_not_finite() -> None:
    pair = np.array([[math.inf, -math.inf, math.nan, 1.0], [math.nan, math.nan, math.nan, 2.0**-60]])
    assert double_double.rounded(pair)[:2].tolist() == [math.inf, -math.inf]
    assert math.isnan(double_double.rounded(pair)[2])
    assert double_double.rounded(pair)[3] == 1.0


def total_of(terms: Iterable[Fraction]) -> Fraction:
    return sum(terms, Fraction(0))


def raw_sums(columns: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Raw sums as pairs from exact fractions: the high part rounded, the low part the rounded rest."""

    def as_rounded(value: Fraction) -> list[float]:
        return [float(value), float(value - Fraction(float(value)))]

    w = [Fraction(float(weight)) for weight in weights]
    x = [[Fraction(float(value)) for value in column] for column in columns]
    total = [as_rounded(total_of(a * b for a, b in zip(w, row, strict=True))) for row in x]
    cross = [[as_rounded(total_of(a * b * c for a, b, c in zip(w, p, q, strict=True))) for q in x] for p in x]
    return np.array(as_rounded(total_of(w))), np.array(total).T, np.array(cross).transpose(2, 0, 1)


@pytest.mark.parametrize("ratio", [0.0, 1.0, 1e3, 1e6, 1e9])
def test_centred_sums_are_accurate_far_from_the_origin(ratio: float) -> None:
    rng = np.random.default_rng(2)
    columns = rng.normal(ratio, 1.0, (3, 300))
    weights = rng.uniform(0.5, 2.0, 300)
    w = [Fraction(float(weight)) for weight in weights]
    x = [[Fraction(float(value)) for value in column] for column in columns]
    mean = [sum(a * b for a, b in zip(w, row, strict=True)) / sum(w) for row in x]
    truth = [
        [
            float(sum(a * (b - m) * (c - k) for a, b, c in zip(w, p, q, strict=True)))
            for q, k in zip(x, mean, strict=True)
        ]
        for p, m in zip(x, mean, strict=True)
    ]
    found = double_double.centred(*raw_sums(columns, weights))
    scale = np.sqrt(np.diagonal(truth))
    assert np.max(np.abs(found - truth) / np.outer(scale, scale)) < 1e-15 + 1e-31 * ratio**2
    assert (found == found.T).all()


@pytest.mark.parametrize("value", [0.1, -1e9 / 3, 1e-30, 7.0])
def test_a_constant_column_has_no_variance(value: float) -> None:
    columns = np.array([np.full(1000, value), np.linspace(0, 1, 1000)])
    found = double_double.centred(*raw_sums(columns, np.ones(1000)))
    assert found[0].tolist() == [0.0, 0.0]
    assert found[1, 1] > 0


def test_neighbouring_floats_still_differ() -> None:
    steps = [0.1]
    for _ in range(199):
        steps.append(math.nextafter(steps[-1], 1.0))
    assert all(a < b for a, b in pairwise(steps))
    found = double_double.centred(*raw_sums(np.array([steps]), np.ones(200)))
    spacing = math.ulp(0.1)
    assert found[0, 0] == pytest.approx(spacing**2 * 200 * (200**2 - 1) / 12, rel=1e-2)


@given(st.lists(st.one_of(st.integers(-(2**60), 2**60), st.floats(-1e12, 1e12)), max_size=12))
def test_an_exact_total_is_the_sum_of_fractions_rounded_once(values: list[float]) -> None:
    numbers = [float(value) for value in values]
    assert double_double.exact_total(numbers) == float(sum(map(Fraction, numbers)))
