"""Sums and cross-products against exact fractions, on all paths."""

import math
from fractions import Fraction
from functools import reduce
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from suffice.double_double import add, centred, rounded, subtract
from suffice.errors import DataError
from suffice.kernels import choice, moments
from suffice.kernels.moments import column_sums, moment_sums

Floats = NDArray[np.float64]
PATHS = ("numpy", "compiled")
SMALL = Fraction(1, 2**92)  # Of the sum of magnitudes: what the pairs may be off.
TINY = Fraction(1, 2**950)  # Products below 2^-900 are kept to float64 only.


def fractions(values: Floats) -> list[Fraction]:
    return [Fraction(float(value)) for value in values]


def exact(pair: Floats) -> Fraction:
    return Fraction(float(pair[0])) + Fraction(float(pair[1]))


def check(columns: Floats, weights: Floats | None, sums: tuple[Floats, Floats, Floats]) -> None:
    """Each sum is within 2^-92 of the sum of the magnitudes of its terms, relative to the column's largest."""
    weight, total, cross = sums
    d, rows = columns.shape
    assert (weight.shape, total.shape, cross.shape) == ((2,), (2, d), (2, d, d))
    w = [Fraction(1)] * rows if weights is None else fractions(weights)
    x = [fractions(column) for column in columns]
    top = [max((abs(a * b) for a, b in zip(w, column, strict=True)), default=Fraction(0)) for column in x]
    most = [max(map(abs, column), default=Fraction(0)) for column in x]
    assert abs(exact(weight) - sum(w)) <= SMALL * sum(map(abs, w))
    for i in range(d):
        truth = sum((a * b for a, b in zip(w, x[i], strict=True)), Fraction(0))
        assert abs(exact(total[:, i]) - truth) <= SMALL * top[i] * rows + TINY
        for j in range(d):
            truth = sum((a * b * c for a, b, c in zip(w, x[i], x[j], strict=True)), Fraction(0))
            bound = max(top[i] * most[j], top[j] * most[i])
            assert abs(exact(cross[:, i, j]) - truth) <= SMALL * bound * rows + rows * TINY
    assert (cross == cross.transpose(0, 2, 1)).all()


moderate = st.one_of(st.floats(-1e100, 1e100), st.floats(-10, 10), st.sampled_from([0.0, -0.0, 1e-150, 0.1, 1e30]))
tables = hnp.arrays(np.float64, st.tuples(st.integers(1, 3), st.integers(0, 20)), elements=moderate)


@pytest.mark.parametrize("path", PATHS)
@given(tables, st.integers(0, 2**32), st.sampled_from(["none", "whole", "any"]))
@settings(max_examples=50)
def test_sums_are_exact_to_double_double(path: str, columns: Floats, seed: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    rows = columns.shape[1:]
    some: dict[str, Floats] = {"whole": rng.integers(0, 9, rows).astype(np.float64), "any": rng.random(rows)}
    weights = some.get(kind)
    with choice.force(path):
        check(columns, weights, moment_sums(columns, weights))
        total = column_sums(columns, weights)
    for pair, column in zip(total.T, columns, strict=True):
        terms = fractions(column)
        if weights is not None:
            terms = [a * b for a, b in zip(terms, fractions(weights), strict=True)]
        assert abs(exact(pair) - sum(terms)) <= SMALL * len(terms) * max(map(abs, terms), default=Fraction(0)) + TINY


def sample(kind: str, rows: int, seed: int = 0) -> Floats:
    """Two columns of one character."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(2, rows))
    return {
        "normal": x,
        "far": 1e9 + x,
        "spread": x * 10.0 ** rng.integers(-30, 31, x.shape),
        "waves": x * 10.0 ** (40 * np.sin(np.arange(rows) / 700)),
        "outlier": np.where(rng.random(x.shape) < 1e-3, 1e5, x),
        "sparse": np.where(rng.random(x.shape) < 0.999, 0.0, x),
        "whole": rng.integers(-1000, 1000, x.shape) * 1.0,
        "tiny": x * 1e-155,
        "large": x * 1e150,
    }[kind]


KINDS = ("normal", "far", "spread", "waves", "outlier", "sparse", "whole", "tiny", "large")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_several_blocks_of_rows(path: str, weighted: bool, kind: str) -> None:
    columns = sample(kind, 2_503)
    weights = np.random.default_rng(1).exponential(size=2_503) if weighted else None
    with choice.force(path):
        check(columns, weights, moment_sums(columns, weights))


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("kind", ["normal", "whole", "waves"])
def test_rounded_sums_are_correctly_rounded(path: str, kind: str) -> None:
    columns = sample(kind, 3_000)
    with choice.force(path):
        _, total, cross = moment_sums(columns)
    squares = [float(sum(value**2 for value in fractions(column))) for column in columns]
    assert rounded(total).tolist() == [math.fsum(column) for column in columns]
    assert np.diagonal(rounded(cross)).tolist() == squares


def bits(sums: tuple[Floats, Floats, Floats]) -> list[Any]:
    """The sums as a reader sees them: rounded."""
    return [rounded(pair).tolist() for pair in sums]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("kind", ["normal", "outlier", "whole"])
def test_order_batches_threads_and_path_cannot_be_seen(path: str, kind: str) -> None:
    columns = sample(kind, 20_011)
    with choice.force("numpy"):
        reference = bits(moment_sums(columns))
    with choice.force(path):
        assert bits(moment_sums(columns)) == reference
        assert bits(moment_sums(columns[:, ::-1])) == reference
        parts = [moment_sums(part) for part in np.array_split(columns, 7, axis=1)]
        assert bits(tuple(reduce(add, pairs) for pairs in zip(*parts, strict=True))) == reference
        with mock.patch.object(moments, "_CHUNK", 1):  # Threads take one block of rows at a time.
            assert bits(moment_sums(columns, threads=3)) == reference
            assert rounded(column_sums(columns, threads=3)).tolist() == reference[1]


@pytest.mark.parametrize("path", PATHS)
def test_whole_weights_are_repeated_rows(path: str) -> None:
    columns = sample("normal", 4_000)
    times = np.random.default_rng(2).integers(0, 5, 4_000)
    weights = times.astype(np.float64)
    with choice.force(path):
        again = moment_sums(np.repeat(columns, times, axis=1))
        assert bits(moment_sums(columns, weights)) == bits(again)
        assert rounded(column_sums(columns, weights)).tolist() == rounded(again[1]).tolist()


@pytest.mark.parametrize("path", PATHS)
def test_rows_can_be_taken_out_again(path: str) -> None:
    kept, gone = np.split(sample("normal", 6_000), [2_500], axis=1)
    with choice.force(path):
        both, some = moment_sums(np.hstack((gone, kept))), moment_sums(gone)
        left = tuple(subtract(a, b) for a, b in zip(both, some, strict=True))
        assert bits(left) == bits(moment_sums(kept))  # type: ignore[arg-type]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("ratio", [1e3, 1e6, 1e9])
def test_the_variance_is_accurate_far_from_the_origin(path: str, ratio: float) -> None:
    columns = np.random.default_rng(3).normal(ratio, 1.0, (2, 4_000))
    x = [fractions(column) for column in columns]
    mean = [sum(column) / len(column) for column in x]
    truth = [
        [float(sum((a - m) * (b - k) for a, b in zip(p, q, strict=True))) for q, k in zip(x, mean, strict=True)]
        for p, m in zip(x, mean, strict=True)
    ]
    with choice.force(path):
        found = centred(*moment_sums(columns))
    np.testing.assert_allclose(found, truth, rtol=0, atol=4_000 * (1e-15 + 1e-30 * ratio**2))


@pytest.mark.parametrize("case", ["nearly dependent", "nearly dependent about the origin", "far from the origin"])
def test_loops_and_slices_have_the_same_bits_where_digits_run_out(case: str) -> None:
    rng = np.random.default_rng(0)
    x = 1e11 + rng.normal(size=60)
    columns = {
        "nearly dependent": np.stack((x, x + 1e-3 * rng.normal(size=60), rng.normal(size=60))),
        "nearly dependent about the origin": 1e8 + rng.normal(size=(2, 60)),
        "far from the origin": 1e15 + np.round(4 * rng.normal(size=(1, 60))),
    }[case]
    found = []
    for path in ("numpy", "compiled"):
        with choice.force(path):
            found.append(moment_sums(columns))
    for by_slices, by_loops in zip(*found, strict=True):
        np.testing.assert_array_equal(by_loops, by_slices)
    high, low = found[1][2][:, 0, 0]
    exact = sum(Fraction(float(value)) ** 2 for value in columns[0])
    assert abs(Fraction(float(high)) + Fraction(float(low)) - exact) < exact / 2**100


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("weights", [None, np.full(100_000, 0.3)])
def test_a_constant_column_has_no_variance(path: str, weights: Floats | None) -> None:
    columns = np.vstack((np.full(100_000, 0.1), np.full(100_000, 1e9 / 3), np.arange(100_000.0)))
    with choice.force(path):
        found = centred(*moment_sums(columns, weights))
    assert found[:2].tolist() == [[0.0, 0.0, 0.0]] * 2
    weight = 100_000 if weights is None else 0.3 * 100_000
    assert found[2, 2] == pytest.approx(weight * (100_000**2 - 1) / 12, rel=1e-14)


# Many columns --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ratio", [0.0, 1.0, 1e6, 1e9])
def test_many_columns(ratio: float, weighted: bool) -> None:
    rng = np.random.default_rng(4)
    columns = rng.normal(ratio, 1.0, (20, 10_000)) * 10.0 ** rng.integers(-5, 6, (20, 1))
    weights = rng.exponential(size=10_000) if weighted else None
    assert columns.shape[1] * columns.shape[0] ** 2 >= moments._MANY
    with mock.patch.object(moments, "_by_slices", side_effect=AssertionError):
        found = moment_sums(columns, weights)
        two = moment_sums(columns, weights, threads=2)
    with mock.patch.object(moments, "_MANY", math.inf), choice.force("numpy"):
        reference = moment_sums(columns, weights)
    for sums in (found, two):
        scatter, truth = centred(*sums), centred(*reference)
        scale = np.sqrt(np.diagonal(truth))
        assert np.max(np.abs(scatter - truth) / np.outer(scale, scale)) < 1e-13
        mean = rounded(sums[1]) / rounded(sums[0])
        expected = rounded(reference[1]) / rounded(reference[0])
        deviation = scale / math.sqrt(float(reference[0][0]))
        assert np.max(np.abs(mean - expected) / (deviation + 1e-3 * np.abs(expected))) < 1e-12
        assert rounded(sums[0]) == rounded(reference[0])


def test_many_columns_in_batches_add_up() -> None:
    columns = np.random.default_rng(5).normal(100.0, 1.0, (30, 20_000))
    whole = moment_sums(columns)
    parts = [moment_sums(part) for part in np.array_split(columns, 3, axis=1)]
    together = tuple(reduce(add, pairs) for pairs in zip(*parts, strict=True))
    np.testing.assert_allclose(centred(*together), centred(*whole), rtol=0, atol=1e-13 * 20_000)


# What is not finite, and odd shapes ----------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("row", [0, 1023, 2500])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_value_that_is_not_finite_shows_in_the_sums(path: str, bad: float, row: int, weighted: bool) -> None:
    columns = sample("normal", 2_501)
    columns = np.vstack((columns, columns[::-1]))[:3]
    columns[1, row] = bad
    weights = np.ones(2_501) if weighted else None
    with choice.force(path):
        _, total, cross = moment_sums(columns, weights)
        assert not np.isfinite(rounded(column_sums(columns, weights))[1])
    assert not np.isfinite(rounded(total)[1])
    assert not np.isfinite(rounded(cross)[1]).any()
    assert np.isfinite(rounded(cross)[[0, 0, 2], [0, 2, 2]]).all()


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_value_that_is_not_finite_shows_among_many_columns(bad: float) -> None:
    columns = np.random.default_rng(6).normal(size=(20, 12_000))
    columns[7, 11_999] = bad
    _, total, cross = moment_sums(columns)
    assert np.flatnonzero(~np.isfinite(rounded(total))).tolist() == [7]
    assert not np.isfinite(rounded(cross)[7]).any()


@pytest.mark.parametrize("path", PATHS)
def test_squares_that_overflow_are_not_finite_and_sums_stay_right(path: str) -> None:
    columns = np.vstack((np.full(3_000, 1e200), np.linspace(-1, 1, 3_000)))
    with choice.force(path):
        _, total, cross = moment_sums(columns)
    assert rounded(total)[0] == math.fsum(columns[0])
    assert not np.isfinite(rounded(cross)[0, 0])
    assert rounded(cross)[1, 1] == float(sum(value**2 for value in fractions(columns[1])))


@pytest.mark.parametrize("path", PATHS)
def test_no_rows(path: str) -> None:
    for weights in (None, np.empty(0)):
        with choice.force(path):
            weight, total, cross = moment_sums(np.empty((2, 0)), weights)
            assert column_sums(np.empty((2, 0)), weights).tolist() == [[0, 0], [0, 0]]
        assert (weight.tolist(), total.tolist()) == ([0, 0], [[0, 0], [0, 0]])
        assert cross.shape == (2, 2, 2)
        assert not cross.any()


def test_no_columns() -> None:
    weight, total, cross = moment_sums(np.empty((0, 5)))
    assert (weight.tolist(), total.shape, cross.shape) == ([5, 0], (2, 0), (2, 0, 0))


def test_columns_that_cannot_be_written_to_or_are_strided() -> None:
    columns = sample("normal", 3_000)
    locked = columns.copy()
    locked.flags.writeable = False
    for path in PATHS:
        with choice.force(path):
            assert bits(moment_sums(locked)) == bits(moment_sums(columns))
            assert bits(moment_sums(np.asfortranarray(columns))) == bits(moment_sums(columns))


def test_arguments_are_checked() -> None:
    with pytest.raises(DataError, match=r"shape \(3,\); expected \(d, n\)"):
        moment_sums(np.zeros(3))
    with pytest.raises(DataError, match=r"Weights have shape \(2,\) for 3 rows"):
        moment_sums(np.zeros((1, 3)), np.ones(2))
    with pytest.raises(DataError, match=r"Weights have shape \(2,\) for 3 rows"):
        column_sums(np.zeros((1, 3)), np.ones(2))
