"""Mutual information of nodes and strengths of arcs, beside enumeration and closed forms of the normal distribution."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

import suffice as sf

RNG = np.random.default_rng(8)


def fitted() -> sf.BayesianNetwork:
    n = 200
    a, b = RNG.integers(0, 2, n), RNG.integers(0, 3, n)
    c = np.where(RNG.random(n) < 0.75, (a + b) % 2, RNG.integers(0, 2, n))
    rows = {"a": a, "b": b, "c": c, "d": np.where(RNG.random(n) < 0.6, c, 1 - c)}
    return sf.BayesianNetwork([("a", "c"), ("b", "c"), ("c", "d")], prior=0.5).fit(rows)


NET = fitted()


def joint() -> dict[tuple[int, ...], float]:
    cells: dict[tuple[int, ...], float] = {}
    for a, b, c, d in product(range(2), range(3), range(2), range(2)):
        p = NET.table("a").at(a=a) * NET.table("b").at(b=b)
        cells[a, b, c, d] = p * NET.table("c").at(a=a, b=b, c=c) * NET.table("d").at(c=c, d=d)
    return cells


def entropy(names: str) -> float:
    """Of some nodes, by sums over all joint states."""
    shares: dict[tuple[int, ...], float] = {}
    for cell, p in joint().items():
        key = tuple(cell["abcd".index(name)] for name in names)
        shares[key] = shares.get(key, 0.0) + p
    return -sum(p * math.log(p) for p in shares.values())


@pytest.mark.parametrize(
    ("x", "y", "z"),
    [("a", "c", ""), ("a", "d", ""), ("a", "c", "b"), ("ab", "c", ""), ("a", "d", "bc"), ("a", "b", "d")],
)
def test_mutual_information_is_that_of_the_joint_states(x: str, y: str, z: str) -> None:
    expected = entropy(x + z) + entropy(y + z) - entropy(x + y + z) - (entropy(z) if z else 0.0)
    assert NET.mutual_information(list(x), list(y), given=list(z)) == pytest.approx(expected, abs=1e-12)
    if NET.d_separated(list(x), list(y), given=list(z)):
        assert expected == pytest.approx(0.0, abs=1e-12)
    assert NET.mutual_information(list(y), list(x), given=list(z)) == pytest.approx(expected, abs=1e-12)


def test_arcs_have_their_strengths_and_the_strongest_is_first() -> None:
    table = NET.arc_strengths()
    figures = dict(table.rows)
    alone = entropy("a") + entropy("c") - entropy("ac")
    beside = entropy("ab") + entropy("bc") - entropy("abc") - entropy("b")
    assert figures["a -> c"] == pytest.approx((alone, beside), abs=1e-12)
    assert figures["c -> d"] == pytest.approx([entropy("c") + entropy("d") - entropy("cd")] * 2, abs=1e-12)
    order = [values[1] for _, values in table.rows]
    assert order == sorted(order, reverse=True)
    assert len(table.to_frame()) == 3


def test_removing_an_arc_moves_the_distribution_by_its_strength() -> None:
    cells = joint()
    away = 0.0
    for (a, b, c, _d), p in cells.items():
        of_bc = sum(q for k, q in cells.items() if k[1:3] == (b, c))
        of_b = sum(q for k, q in cells.items() if k[1] == b)
        away += p * (math.log(NET.table("c").at(a=a, b=b, c=c)) - math.log(of_bc / of_b))
    assert dict(NET.arc_strengths().rows)["a -> c"][1] == pytest.approx(away, rel=1e-10)


def test_normal_nodes_have_that_of_their_partial_correlation() -> None:
    rows = RNG.multivariate_normal([0, 0, 0], [[1.0, 0.5, 0.3], [0.5, 2.0, 0.6], [0.3, 0.6, 1.0]], 300)
    net = sf.BayesianNetwork([("x", "y"), ("x", "z"), ("y", "z")]).fit(dict(zip("xyz", rows.T, strict=True)))
    r = np.array(np.corrcoef(rows.T), ndmin=2)
    assert net.mutual_information("x", "y") == pytest.approx(-0.5 * math.log(1 - float(r[0, 1]) ** 2), rel=1e-9)
    precision = np.linalg.inv(np.cov(rows.T))
    partial = precision[0, 2] ** 2 / (precision[0, 0] * precision[2, 2])
    assert dict(net.arc_strengths().rows)["x -> z"][1] == pytest.approx(-0.5 * math.log(1 - partial), rel=1e-8)


def test_what_has_no_closed_form_is_blank_or_refused() -> None:
    kind = RNG.integers(0, 2, 50)
    net = sf.BayesianNetwork([("k", "x"), ("k", "s")]).fit({"k": kind, "x": kind + RNG.normal(size=50), "s": 1 - kind})
    assert math.isnan(dict(net.arc_strengths().rows)["k -> x"][0])
    assert net.mutual_information("k", "s") > 0.5
    with pytest.raises(sf.OptionError, match="no closed form"):
        net.mutual_information("k", "x")
    with pytest.raises(sf.OptionError, match="is twice"):
        NET.mutual_information("a", ["c", "a"])
    with pytest.raises(sf.OptionError, match="No variable is asked for"):
        NET.mutual_information("a", [])


def test_the_structure_answers_as_its_graph_does() -> None:
    graph = sf.DirectedGraph(NET)
    for node in NET.nodes:
        assert NET.markov_blanket(node) == graph.markov_blanket(node)
    assert NET.markov_blanket("a") == ("b", "c")
    assert NET.d_separated("a", "b")
    assert not NET.d_separated("a", "b", given="d")
