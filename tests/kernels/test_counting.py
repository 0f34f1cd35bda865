"""Counts against a loop over the rows, on both paths and for any way of cutting the work."""

import itertools
import math
import tracemalloc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from suffice.errors import DataError, OptionError, SizeError
from suffice.kernels import choice, counting
from suffice.kernels.counting import count, count_cells, count_sparse, plan_counts, tables

PATHS = ("numpy", "compiled")
GROUPED = 1_000_000  # Rows announced to a plan so that it groups families.


def by_hand(codes: NDArray[Any], cards: Sequence[int], family: Sequence[int], weights: Any = None) -> NDArray[Any]:
    """One row after the other."""
    table = np.zeros([cards[variable] for variable in family], np.int64 if weights is None else np.float64)
    for row in range(codes.shape[1]):
        table[tuple(int(codes[variable, row]) for variable in family)] += 1 if weights is None else weights[row]
    return table


def same(found: list[NDArray[Any]], expected: list[NDArray[Any]]) -> None:
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        np.testing.assert_array_equal(one, other)


@contextmanager
def small_steps(block: int = 64, fold: int = 1 << 31) -> Iterator[None]:
    """Cut the work into blocks and chunks small enough that a few hundred rows have several."""
    with (
        mock.patch.object(counting, "_BLOCK", block),
        mock.patch.object(counting, "_CHUNK", 2),
        mock.patch.object(counting, "_FOLD_ROWS", fold),
    ):
        yield


@st.composite
def problems(draw: st.DrawFn) -> tuple[NDArray[Any], list[int], list[tuple[int, ...]]]:
    """Codes, cards and families; a family may be empty, and several may be equal up to order."""
    cards = draw(st.lists(st.integers(1, 5), min_size=1, max_size=6))
    subsets = st.lists(st.sampled_from(range(len(cards))), unique=True, max_size=4).map(tuple)
    families = draw(st.lists(subsets, min_size=1, max_size=6))
    rows = draw(st.integers(0, 300))
    dtype = draw(st.sampled_from([np.uint8, np.uint16, np.uint32]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    codes = np.stack([rng.integers(0, card, rows) for card in cards]).astype(dtype)
    return codes, cards, families


@pytest.mark.parametrize("path", PATHS)
@given(problems(), st.booleans(), st.integers(1, 3))
@settings(max_examples=60)
def test_counts_are_those_of_a_loop(
    path: str, problem: tuple[NDArray[Any], list[int], list[tuple[int, ...]]], grouped: bool, threads: int
) -> None:
    codes, cards, families = problem
    with small_steps(fold=384), choice.force(path):
        found = count(codes, plan_counts(cards, families, GROUPED if grouped else 1), threads=threads)
    same(found, [by_hand(codes, cards, family) for family in families])


@pytest.mark.parametrize("path", PATHS)
@given(problems(), st.booleans(), st.integers(1, 3), st.integers(0, 2**32))
@settings(max_examples=60)
def test_whole_weights_count_repeated_rows(
    path: str,
    problem: tuple[NDArray[Any], list[int], list[tuple[int, ...]]],
    grouped: bool,
    threads: int,
    seed: int,
) -> None:
    codes, cards, families = problem
    weights = np.random.default_rng(seed).integers(0, 1000, codes.shape[1:])
    repeated = np.repeat(codes, weights, axis=1) if codes.shape[1] else codes
    plan = plan_counts(cards, families, GROUPED if grouped else 1)
    with small_steps(), choice.force(path):
        found = count(codes, plan, weights.astype(np.float64), threads=threads)
        expected = count(repeated, plan, threads=threads)
    same(found, [table.astype(np.float64) for table in expected])


@given(problems(), st.booleans(), st.integers(0, 2**32))
@settings(max_examples=60)
def test_fractional_weights(
    problem: tuple[NDArray[Any], list[int], list[tuple[int, ...]]], grouped: bool, seed: int
) -> None:
    codes, cards, families = problem
    weights = np.random.default_rng(seed).exponential(size=codes.shape[1:])
    with small_steps():
        plan = plan_counts(cards, families, GROUPED if grouped else 1)
        found = {}
        for path, threads in itertools.product(PATHS, (1, 3)):
            with choice.force(path):
                found[path, threads] = count(codes, plan, weights, threads=threads)
    for one in found.values():
        same(one, found["numpy", 1])
    for family, table in zip(families, found["numpy", 1], strict=True):
        np.testing.assert_allclose(table, by_hand(codes, cards, family, weights), rtol=1e-13, atol=0)


@pytest.fixture(scope="module")
def many() -> tuple[NDArray[Any], list[int], list[tuple[int, ...]], NDArray[np.float64]]:
    """Enough rows for several blocks, chunks and pieces at their true size, and an odd end."""
    rng = np.random.default_rng(5)
    cards = [2, 3, 4, 9, 1, 30, 7, 2]
    codes = np.stack([rng.integers(0, card, 300_007) for card in cards]).astype(np.uint8)
    families = [(0, 1), (1, 2, 3), (5, 6), (6, 5, 3), (4,), (7, 5, 3, 6), (), (0, 7), (2, 0, 7)]
    return codes, cards, families, rng.exponential(size=300_007)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("path", PATHS)
def test_many_rows(path: str, threads: int, many: tuple[Any, ...]) -> None:
    codes, cards, families, weights = many
    plan = plan_counts(cards, families, codes.shape[1])
    assert len(plan.groups) < len(families)
    with choice.force(path):
        found = count(codes, plan, threads=threads)
        weighed = count(codes, plan, weights, threads=threads)
        halves = [count(half, plan) for half in np.array_split(codes, 2, axis=1)]
    for family, table, weight, one, two in zip(families, found, weighed, *halves, strict=True):
        shape = tuple(cards[variable] for variable in family)
        place = np.ravel_multi_index(tuple(codes[list(family)]), shape) if family else np.zeros(codes.shape[1], int)
        np.testing.assert_array_equal(table, np.bincount(place, minlength=math.prod(shape)).reshape(shape))
        np.testing.assert_array_equal(table, one + two)
        expected = [math.fsum(weights[place == cell]) for cell in range(min(40, math.prod(shape)))]
        np.testing.assert_allclose(weight.ravel()[: len(expected)], expected, rtol=1e-14)


def test_paths_and_threads_agree_to_the_bit_with_fractional_weights(many: tuple[Any, ...]) -> None:
    codes, cards, families, weights = many
    plan = plan_counts(cards, families, codes.shape[1])
    with choice.force("numpy"):
        reference = count(codes, plan, weights)
    for threads in (1, 2, 3):
        with choice.force("compiled"):
            same(count(codes, plan, weights, threads=threads), reference)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
def test_wide_tables(path: str, dtype: type[Any]) -> None:
    rng = np.random.default_rng(6)
    cards = [256, 200, 3, 256]
    codes = np.stack([rng.integers(0, card, 5000) for card in cards]).astype(dtype)
    families = [(0, 1, 2), (1, 3), (3, 0), (0, 2)]
    weights = rng.integers(0, 9, 5000).astype(float)
    plan = plan_counts(cards, families, 5000)
    assert [plan.sizes[index] for index in plan.wide] == [153_600]
    with choice.force(path):
        found = count(codes, plan, threads=2)
        weighed = count(codes, plan, weights, threads=2)
    for family, table, weight in zip(families, found, weighed, strict=True):
        expected = np.zeros(table.shape, np.int64)
        np.add.at(expected, tuple(codes[list(family)]), 1)
        np.testing.assert_array_equal(table, expected)
        np.add.at(expected, tuple(codes[list(family)]), weights.astype(int) - 1)
        np.testing.assert_array_equal(weight, expected)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("card", "dtype"), [(256, np.uint8), (65_536, np.uint16), (65_537, np.uint32), (90_000, np.uint32)]
)
def test_cards_at_the_edge_of_a_type(path: str, card: int, dtype: type[Any]) -> None:
    codes = np.array([[0, card - 1, card - 1], [0, 0, 0]], dtype)
    with choice.force(path):
        one, two, three = count(codes, plan_counts([card, 1], [(0,), (0, 1), (1, 0)], 3))
    for table in (one, two.ravel(), three.ravel()):
        assert (table[0], table[-1], table.sum()) == (1, 2, 3)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rows", [0, 1])
def test_few_rows_and_the_empty_family(path: str, weighted: bool, rows: int) -> None:
    codes = np.zeros((2, rows), np.uint8)
    weights = np.full(rows, 2.5) if weighted else None
    for announced in (rows, GROUPED):
        plan = plan_counts([3, 1], [(), (0,), (1, 0)], announced)
        with choice.force(path):
            whole, one, both = count(codes, plan, weights)
        assert (whole.shape, one.shape, both.shape) == ((), (3,), (1, 3))
        assert whole == rows * (2.5 if weighted else 1)
        assert one.tolist() == [whole, 0, 0]
        assert both.tolist() == [[whole, 0, 0]]
    with choice.force(path):
        assert count(codes, plan_counts([3, 1], [()], rows), weights)[0] == rows * (2.5 if weighted else 1)


def test_no_families_and_no_variables() -> None:
    assert count(np.zeros((2, 5), np.uint8), plan_counts([2, 2], [], 5)) == []
    assert count(np.zeros((0, 5), np.uint8), plan_counts([], [()], 5))[0] == 5


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("row", [0, 2047, 33_000, 69_999])
def test_codes_out_of_range_are_refused(path: str, weighted: bool, threads: int, row: int) -> None:
    codes = np.zeros((4, 70_000), np.uint8)
    codes[2, row] = 255
    weights = np.ones(70_000) if weighted else None
    plan = plan_counts([2, 3, 3, 4], [(0, 1), (1, 2), (3, 2, 0)], 70_000)
    message = r"Variable 2 has the code 255, but its card is 3: codes run from 0 to 2"
    with small_steps(4096), choice.force(path), pytest.raises(DataError, match=message):
        count(codes, plan, weights, threads=threads)
    unused = plan_counts([2, 3, 3, 4], [(0, 1), (3,)], 70_000)
    with choice.force(path):
        assert count(codes, unused, weights)[1][0] == 70_000


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("weights", [None, np.ones(3)])
def test_codes_out_of_range_are_refused_in_wide_tables(path: str, weights: NDArray[np.float64] | None) -> None:
    codes = np.array([[0, 1, 2], [0, 65_535, 1]], np.uint16)
    plan = plan_counts([300, 300], [(0, 1)], 3)
    with choice.force(path), pytest.raises(DataError, match="Variable 1 has the code 65535, but its card is 300"):
        count(codes, plan, weights)


def test_arguments_are_checked() -> None:
    plan = plan_counts([2, 2], [(0, 1)], 5)
    with pytest.raises(DataError, match=r"type int64; expected uint8, uint16 or uint32"):
        count(np.zeros((2, 5), np.int64), plan)
    with pytest.raises(DataError, match=r"shape \(3, 5\); expected \(2 variables, rows\)"):
        count(np.zeros((3, 5), np.uint8), plan)
    with pytest.raises(DataError, match=r"Weights have shape \(4,\) for 5 rows"):
        count(np.zeros((2, 5), np.uint8), plan, np.ones(4))
    with pytest.raises(OptionError, match=r"Family \(0, 0\) must hold different variables out of 0..1"):
        plan_counts([2, 2], [(0, 0)], 5)
    with pytest.raises(OptionError, match=r"Family \(0, 2\)"):
        plan_counts([2, 2], [(0, 2)], 5)
    with pytest.raises(OptionError, match="card 0"):
        plan_counts([2, 0], [(0, 1)], 5)
    with pytest.raises(SizeError, match="64,000,000,000 cells; use count_sparse"):
        plan_counts([4000] * 3, [(0, 1, 2)], 5)


def test_columns_need_not_be_contiguous() -> None:
    codes = np.random.default_rng(3).integers(0, 3, (100, 4)).astype(np.uint8).T
    plan = plan_counts([3] * 4, [(0, 3)], 100)
    for path in PATHS:
        with choice.force(path):
            same(count(codes, plan), [by_hand(codes, [3] * 4, (0, 3))])


def test_cells_of_batches_add_up() -> None:
    codes = np.random.default_rng(4).integers(0, 3, (6, 1000)).astype(np.uint8)
    plan = plan_counts([3] * 6, [(0, 1, 2), (3, 4), (5, 0)], GROUPED)
    cells = sum(count_cells(part, plan) for part in np.array_split(codes, 7, axis=1))
    same(tables(plan, np.asarray(cells)), count(codes, plan))


def test_a_plan_prints_its_size() -> None:
    plan = plan_counts([2, 3, 4, 5], [(0, 1), (1, 2), (3,)], GROUPED)
    assert str(plan) == "3 families in 1 tables of 120 cells (largest 120): 1 increments a row"


# Sparse counts -------------------------------------------------------------------------------------------------------


@given(problems(), st.booleans(), st.integers(0, 2**32))
@settings(max_examples=60)
def test_sparse_counts_are_the_cells_in_use(
    problem: tuple[NDArray[Any], list[int], list[tuple[int, ...]]], weighted: bool, seed: int
) -> None:
    codes, cards, families = problem
    weights = np.random.default_rng(seed).uniform(0.5, 2, codes.shape[1:]) if weighted else None
    for family in families:
        cells, values = count_sparse(codes, cards, family, weights)
        table = by_hand(codes, cards, family, weights)
        used = np.argwhere(table > 0)
        np.testing.assert_array_equal(cells, used.reshape(len(used), len(family)))
        np.testing.assert_allclose(values, table[table > 0], rtol=1e-13)
        assert values.dtype == table.dtype


def test_sparse_counts_need_memory_for_rows_only() -> None:
    codes = np.random.default_rng(8).integers(0, 20, (6, 10_000)).astype(np.uint8)
    tracemalloc.start()
    cells, values = count_sparse(codes, [20] * 6, range(6))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    expected, counts = np.unique(codes, axis=1, return_counts=True)
    np.testing.assert_array_equal(cells, expected.T)
    np.testing.assert_array_equal(values, counts)
    assert peak < 4_000_000


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("weights", [None, np.arange(2000.0)])
def test_sparse_counts_of_more_cells_than_a_word_can_number(path: str, weights: NDArray[np.float64] | None) -> None:
    rng = np.random.default_rng(9)
    codes = rng.integers(0, 4_000_000_000, (7, 50)).astype(np.uint32)[:, rng.integers(0, 50, 2000)]
    with choice.force(path):
        cells, values = count_sparse(codes, [2**32 - 1] * 7, (6, 0, 3, 1, 2, 4, 5), weights)
    expected: dict[tuple[int, ...], float] = {}
    for row in range(2000):
        key = tuple(int(codes[variable, row]) for variable in (6, 0, 3, 1, 2, 4, 5))
        expected[key] = expected.get(key, 0) + (1 if weights is None else weights[row])
    assert [tuple(cell) for cell in cells.tolist()] == sorted(expected)
    assert values.tolist() == [expected[key] for key in sorted(expected)]


def test_sparse_counts_refuse_codes_out_of_range() -> None:
    codes = np.array([[0, 1], [0, 9]], np.uint8)
    with pytest.raises(DataError, match="Variable 1 has the code 9, but its card is 3"):
        count_sparse(codes, [2, 3], (0, 1))
    assert count_sparse(codes, [2, 3], (0,))[1].tolist() == [1, 1]
    with pytest.raises(OptionError, match=r"Family \(1, 1\)"):
        count_sparse(codes, [2, 3], (1, 1))
