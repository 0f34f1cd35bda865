"""Moments by group: every path gives the exact sums of each group, in whatever order the rows come."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from suffice.kernels.choice import force
from suffice.kernels.grouped_moments import grouped_moment_sums
from suffice.kernels.patterns import label_codes

Floats = NDArray[np.float64]


def exact(columns: Floats, weights: Floats) -> list[list[Fraction]]:
    """Products of (1, x) of the rows of one group, in rational arithmetic."""
    rows = [[Fraction(1), *map(Fraction, row)] for row in columns.T.tolist()]
    d = len(columns) + 1
    return [
        [
            sum((Fraction(w) * r[i] * r[j] for w, r in zip(weights.tolist(), rows, strict=True)), Fraction())
            for j in range(d)
        ]
        for i in range(d)
    ]


def check(columns: Floats, labels: NDArray[np.intp], groups: int, weights: Floats | None) -> None:
    weight, total, cross = grouped_moment_sums(columns, labels, groups, weights)
    counted = np.ones(len(labels)) if weights is None else weights
    for group in range(groups):
        rows = labels == group
        expected = exact(columns[:, rows], counted[rows])
        sizes = exact(np.abs(columns[:, rows]), counted[rows])
        found = np.block(
            [[weight[:, group, None, None], total[:, group, None]], [total[:, group, :, None], cross[:, group]]]
        )
        for i in range(len(expected)):
            for j in range(len(expected)):
                value = Fraction(float(found[0, i, j])) + Fraction(float(found[1, i, j]))
                assert abs(value - expected[i][j]) <= sizes[i][j] * Fraction(2) ** -94


@pytest.mark.parametrize("mode", ["numpy", "compiled"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("rows", "groups"), [(40, 1), (300, 3), (200, 90), (60, 60)])
def test_each_group_has_its_exact_sums(mode: str, weighted: bool, rows: int, groups: int) -> None:
    rng = np.random.default_rng(rows)
    columns = np.stack([rng.normal(1e6, 1.0, rows), rng.normal(0.0, 1e-3, rows)])
    labels = rng.permutation(np.concatenate([np.arange(groups), rng.integers(0, groups, rows - groups)]))
    weights = rng.uniform(0.1, 3.0, rows) if weighted else None
    with force(mode):
        check(columns, labels, groups, weights)


def test_large_groups_and_many_columns() -> None:
    rng = np.random.default_rng(0)
    columns, labels = rng.normal(size=(18, 3000)), rng.integers(0, 2, 3000)
    with force("numpy"):
        weight, total, cross = grouped_moment_sums(columns, labels, 2)
    for group in (0, 1):
        chosen = columns[:, labels == group]
        assert weight[0, group] == (labels == group).sum()
        np.testing.assert_allclose(total[0, group], chosen.sum(axis=1), rtol=1e-11)
        np.testing.assert_allclose(cross[0, group], chosen @ chosen.T, rtol=1e-11, atol=1e-11)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 200)), min_size=1, max_size=30), st.booleans())
def test_labels_name_the_distinct_rows_in_order(rows: list[tuple[int, int]], wide: bool) -> None:
    codes = np.array(rows, dtype=np.uint8).T
    cards = (2**40, 2**30) if wide else (4, 201)
    found, labels = label_codes(codes, cards, (0, 1))
    assert found.tolist() == [list(row) for row in sorted(set(rows))]
    np.testing.assert_array_equal(found[labels], codes.T)


def test_labels_without_variables() -> None:
    codes = np.zeros((1, 4), dtype=np.uint8)
    found, labels = label_codes(codes, (), ())
    assert found.shape == (1, 0)
    assert labels.tolist() == [0, 0, 0, 0]
    assert label_codes(codes[:, :0], (), ())[1].tolist() == []
