"""Rows of numbers that nearly all miss something else: EM beside steps by hand, row by row."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import pytest

import suffice as sf
from suffice.engines.gaussian_rows import RealRows, RealStructure

NAMES = [f"x{j}" for j in range(8)]
TREE = [(f"x{(j - 1) // 2}", f"x{j}") for j in range(1, 8)]
COMPLETE = [(f"x{i}", f"x{j}") for j in range(5) for i in range(j)]


def scattered(d: int, n: int = 150, seed: int = 1) -> np.ndarray:
    """Rows about (10, ..., 10) of which each value is missing with probability 0.3."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, d)) @ (np.eye(d) + np.triu(rng.normal(0, 0.5, (d, d)), 1)) + 10.0
    rows[rng.random((n, d)) < 0.3] = np.nan
    return rows


def expected_row(row: np.ndarray, mean: np.ndarray, cover: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Log density, filled row and what its products lack, by the textbook's formulas of one row."""
    o, m = np.flatnonzero(~np.isnan(row)), np.flatnonzero(np.isnan(row))
    inverse = np.linalg.inv(cover[np.ix_(o, o)])
    away = row[o] - mean[o]
    log = -0.5 * (away @ inverse @ away + np.linalg.slogdet(cover[np.ix_(o, o)])[1] + len(o) * np.log(2 * np.pi))
    filled, lacks = row.copy(), np.zeros_like(cover)
    filled[m] = mean[m] + cover[np.ix_(m, o)] @ inverse @ away
    lacks[np.ix_(m, m)] = cover[np.ix_(m, m)] - cover[np.ix_(m, o)] @ inverse @ cover[np.ix_(o, m)]
    return float(log), filled, lacks


def joint(parents: list[list[int]], weights: list[np.ndarray], variances: list[float]) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of a network in topological order, by inverting I - B."""
    slopes, d = np.zeros((len(parents), len(parents))), len(parents)
    for j, above in enumerate(parents):
        slopes[j, above] = weights[j][1:]
    spread = np.linalg.inv(np.eye(d) - slopes)
    return spread @ [w[0] for w in weights], spread @ np.diag(variances) @ spread.T


def by_hand(rows: np.ndarray, parents: list[list[int]], steps: int) -> tuple[float, list[np.ndarray], list[float]]:
    """EM from independent standard normal nodes: the log-likelihood before the last step, and what it leads to."""
    d = len(parents)
    weights = [np.zeros(len(above) + 1) for above in parents]
    variances = [1.0] * d
    value = 0.0
    for _ in range(steps):
        mean, cover = joint(parents, weights, variances)
        parts = [expected_row(row, mean, cover) for row in rows]
        value = sum(log for log, _, _ in parts)
        filled = np.array([row for _, row, _ in parts])
        centre = filled.mean(axis=0)
        products = (filled - centre).T @ (filled - centre) + sum(lacks for _, _, lacks in parts)
        for j, above in enumerate(parents):
            slopes = np.linalg.solve(products[np.ix_(above, above)], products[above, j])
            weights[j] = np.concatenate([[centre[j] - slopes @ centre[above]], slopes])
            variances[j] = (products[j, j] - slopes @ products[above, j]) / len(rows)
    return value, weights, variances


@pytest.mark.parametrize("edges", [TREE, COMPLETE], ids=["tree", "complete"])
def test_steps_of_em_are_those_by_hand(edges: list[tuple[str, str]]) -> None:
    names = sorted({name for edge in edges for name in edge})
    rows = scattered(len(names))
    parents = [[names.index(above) for above, below in edges if below == name] for name in names]
    start = {name: (np.zeros(len(above) + 1), 1.0) for name, above in zip(names, parents, strict=True)}
    with pytest.warns(sf.ConvergenceWarning):
        net = sf.BayesianNetwork(
            edges, start=start, max_iter=3, tolerance=0.0, acceleration=None, variance_floor=0.0
        ).fit(dict(zip(names, rows.T, strict=True)))
    _, weights, variances = by_hand(rows, parents, 3)
    for name, w, v in zip(names, weights, variances, strict=True):
        np.testing.assert_allclose(net.node(name).weights_, w, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(net.node(name).variance_, v, rtol=1e-10)
    value, _, _ = by_hand(rows, parents, 4)
    assert net.log_likelihood_ == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(net.score_samples(dict(zip(names, rows.T, strict=True))).sum(), value, rtol=1e-12)


def test_components_not_patterns_are_worked_on() -> None:
    """A tree of 20 nodes: thousands of patterns, of which few components differ, and far fewer layouts."""
    rng = np.random.default_rng(0)
    order = tuple(range(20))
    inner: dict[Hashable, tuple[Hashable, ...]] = {j: ((j - 1) // 2,) if j else () for j in order}
    values = np.where(rng.random((20, 5000)) < 0.1, np.nan, 0.0)
    assert len(np.unique(np.isnan(values), axis=1).T) > 1500
    rows = RealRows(RealStructure(order, inner, dict.fromkeys(order, ()), {}, 1), values, {})
    assert len(rows.layouts) < 200
    hidden = np.zeros_like(values)
    for layout in rows.layouts:
        np.add.at(hidden, (layout.hidden[:, :, None], layout.rows[:, None, :]), 1)
    np.testing.assert_array_equal(hidden, np.isnan(values))
