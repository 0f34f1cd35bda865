"""Conflict of findings, surprise of rows and scores of nodes, beside enumeration and published figures."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy import stats

import suffice as sf

RNG = np.random.default_rng(2)
N = 250
A = RNG.integers(0, 2, N)
B = np.where(RNG.random(N) < 0.8, A, 1 - A)
C = np.where(RNG.random(N) < 0.7, A ^ B, RNG.integers(0, 3, N))
ROWS = {"a": A, "b": B, "c": C}
NET = sf.BayesianNetwork([("a", "b"), ("a", "c"), ("b", "c")]).fit(ROWS)
SMOOTH = sf.BayesianNetwork([("a", "b"), ("a", "c"), ("b", "c")], prior=1.0).fit(ROWS)
CELLS = list(product(range(2), range(2), range(3)))


def chance(a: int, b: int, c: int) -> float:
    return float(SMOOTH.table("a").at(a=a) * SMOOTH.table("b").at(a=a, b=b) * SMOOTH.table("c").at(a=a, b=b, c=c))


def test_conflict_of_findings() -> None:
    for b, c in product(range(2), range(3)):
        together = sum(chance(*cell) for cell in CELLS if cell[1:] == (b, c))
        of_b = sum(chance(*cell) for cell in CELLS if cell[1] == b)
        of_c = sum(chance(*cell) for cell in CELLS if cell[2] == c)
        assert SMOOTH.conflict({"b": b, "c": c}) == pytest.approx(math.log(of_b * of_c / together), abs=1e-12)
        soft = SMOOTH.conflict({"b": {b: 1.0}, "c": c})
        assert soft == pytest.approx(math.log(of_b * of_c / together), abs=1e-12)


def test_findings_that_cannot_occur_together_conflict_without_end() -> None:
    net = sf.BayesianNetwork([("a", "b")]).fit({"a": [0, 1], "b": [0, 1]})
    assert net.conflict({"a": 0, "b": 1}) == math.inf
    assert net.conflict({"a": 0, "b": 0}) == pytest.approx(-math.log(2.0), abs=1e-12)
    with pytest.raises(sf.OptionError, match="at least two"):
        net.conflict({"a": 0})


def test_surprise_is_the_mass_of_rows_that_are_not_more_likely() -> None:
    n = 40_000
    shares = SMOOTH.surprise(dict(zip("abc", np.array(CELLS).T, strict=True)), n=n, random_state=0)
    for cell, share in zip(CELLS, shares, strict=True):
        mass = sum(p for p in (chance(*other) for other in CELLS) if p <= chance(*cell) + 1e-12)
        assert share == pytest.approx(mass, abs=1 / n + 4 * math.sqrt(mass * (1 - mass) / n))


def test_what_a_row_lacks_its_draws_lack_too() -> None:
    n = 40_000
    partly = SMOOTH.surprise({"b": [0, 1, None], "c": [None, None, None]}, n=n, random_state=1)
    of_b = [sum(chance(*cell) for cell in CELLS if cell[1] == b) for b in range(2)]
    rarer = int(of_b[1] < of_b[0])
    assert partly[rarer] == pytest.approx(of_b[rarer], abs=4 * math.sqrt(0.25 / n))
    assert partly[[1 - rarer, 2]].tolist() == [1.0, 1.0]


def test_surprise_of_numbers_is_the_tail_of_their_distance() -> None:
    rows = RNG.multivariate_normal([1.0, 2.0], [[1.0, 0.6], [0.6, 2.0]], 100)
    net = sf.BayesianNetwork([("x", "y")]).fit({"x": rows[:, 0], "y": rows[:, 1]})
    n, away = 40_000, np.array([3.0, 0.0]) - rows.mean(axis=0)
    tail = stats.chi2.sf(away @ np.linalg.solve(np.cov(rows.T, bias=True), away), 2)
    share = net.surprise({"x": [3.0], "y": [0.0]}, n=n, random_state=3)[0]
    assert share == pytest.approx(tail, abs=1 / n + 4 * math.sqrt(tail * (1 - tail) / n))
    assert net.surprise({"x": [1e3], "y": [1e3]}, n=99, random_state=3)[0] == pytest.approx(0.01, rel=1e-12)


def test_scores_of_nodes_add_up() -> None:
    scores = SMOOTH.node_scores(ROWS)
    figures = np.array([values for _, values in scores.rows])
    assert figures[:, 0].sum() == pytest.approx(SMOOTH.score_samples(ROWS).sum(), rel=1e-12)
    entropy = -sum(chance(*cell) * math.log(chance(*cell)) for cell in CELLS)
    assert figures[:, 1].sum() == pytest.approx(entropy, rel=1e-12)
    assert (figures[:, 2] > 0).all()
    away = 0.0
    for a, b, c in zip(A, B, C, strict=True):
        share = ((A == a) & (B == b) & (C == c)).sum() / ((A == a) & (B == b)).sum()
        away += math.log(share / SMOOTH.table("c").at(a=a, b=b, c=c)) / N
    assert dict(scores.rows)["c"][2] == pytest.approx(away, rel=1e-9)
    own = dict(NET.node_scores(ROWS).rows)
    assert [own[name][2] for name in "abc"] == pytest.approx([0.0] * 3, abs=1e-12)
    assert sum(values[0] for values in own.values()) == pytest.approx(NET.log_likelihood_, rel=1e-12)


def test_scores_of_real_nodes() -> None:
    x = RNG.normal(size=80) + A[:80]
    net = sf.BayesianNetwork([("a", "x"), ("x", "y")]).fit({"a": A[:80], "x": x, "y": x + RNG.normal(size=80)})
    scores = dict(net.node_scores({"a": A[:80], "x": x, "y": x}).rows)
    share = A[:80].mean()
    entropy = sum(
        w * stats.norm(scale=math.sqrt(v)).entropy()
        for w, v in zip((1 - share, share), net.node("x").variance_, strict=True)
    )
    assert scores["x"][1] == pytest.approx(entropy, rel=1e-12)
    assert math.isnan(scores["x"][2])
    total = net.score_samples({"a": A[:80], "x": x, "y": x}).sum()
    assert sum(values[0] for values in scores.values()) == pytest.approx(total, rel=1e-12)
    with pytest.raises(sf.DataError, match="'x'"):
        net.node_scores({"a": [0, 1], "x": [0.0, None], "y": [1.0, 2.0]})
    with pytest.raises(sf.DataError, match="no rows"):
        net.node_scores({"a": [], "x": [], "y": []})
