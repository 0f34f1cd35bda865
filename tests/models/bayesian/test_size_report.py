"""Sizes before the work: cells, bytes, configurations that occur, the junction tree."""

from typing import Any

import numpy as np
import pytest

import suffice as sf

EDGES = {"a": [], "b": ["a"], "c": ["a", "b"]}
STATES = {"a": [0, 1], "b": ["x", "y", "z"], "c": [0, 1, 2, 3]}


def test_cells_and_bytes_before_fitting() -> None:
    report = sf.BayesianNetwork(EDGES, states=STATES).size_report()
    assert [(node.name, node.cells, node.bytes, node.configurations) for node in report.nodes] == [
        ("a", 2, 16, 1),
        ("b", 6, 48, 2),
        ("c", 24, 192, 6),
    ]
    assert report.cells == 32
    assert report.bytes == 256
    assert all(node.observed is None for node in report.nodes)
    assert report.width == 2
    # One clique of 24 cells, and as much scratch.
    assert report.tree_bytes == 8 * 48
    assert report.fits
    assert not report.too_large
    assert "junction tree: width 2, largest table 24 cells" in str(report)


def test_configurations_that_occur_with_data_and_after_a_fit() -> None:
    rows: dict[str, list[Any]] = {"a": [0, 0, 1, 1, None], "b": ["x", "x", "y", "z", "z"], "c": [0, 1, 2, 3, 3]}
    net = sf.BayesianNetwork(EDGES, states=STATES)
    report = net.size_report(rows)
    # The row with a gap in "a" shows no joint state of (a, b).
    assert [report[name].observed for name in "abc"] == [1, 2, 3]
    free = sf.BayesianNetwork(EDGES).size_report({name: values[:4] for name, values in rows.items()})
    assert [node.cells for node in free.nodes] == [2, 6, 24]
    fitted = sf.BayesianNetwork(EDGES, states=STATES).fit({name: values[:4] for name, values in rows.items()})
    assert [fitted.size_report()[name].observed for name in "abc"] == [1, 2, 3]
    lines = str(fitted.size_report()).splitlines()
    assert lines[0].split() == ["node", "kind", "parents", "configurations", "observed", "cells", "bytes"]
    assert lines[1].split() == ["c", "table", "2", "6", "3", "24", "192", "B"]
    with pytest.raises(sf.MissingColumnError, match=r"There is no variable 'd'\. The variables are: 'a', 'b', 'c'\."):
        report["d"]


def test_a_table_that_would_be_too_large_is_named_before_it_is_made() -> None:
    parents = [f"p{k}" for k in range(30)]
    net = sf.BayesianNetwork(
        {"big": parents, "small": ["p0"]}, states={name: [0, 1] for name in (*parents, "big", "small")}
    )
    report = net.size_report()
    assert report.too_large == ("big",)
    assert report["big"].cells == 2**31
    assert report.width == 30
    assert "too large for a full table (16,777,216 cells): 'big'" in str(report)
    rng = np.random.default_rng(0)
    rows = {name: rng.integers(0, 2, 100) for name in (*parents, "big", "small")}
    assert net.size_report(rows)["big"].observed == 100
    assert net.fit(rows).size_report()["big"].observed == 100


def test_a_tree_that_does_not_fit_is_said() -> None:
    parents = [f"p{k}" for k in range(60)]
    net = sf.BayesianNetwork({"big": parents}, states={name: [0, 1] for name in (*parents, "big")})
    report = net.size_report()
    assert not report.fits
    assert report.tree_bytes == 8 * 2**62
    assert "more than the limit of" in str(report)


def test_unknown_states_are_an_error_and_hidden_ones_are_known() -> None:
    with pytest.raises(sf.OptionError, match=r"states of 'a', 'b' are not known\. Give data"):
        sf.BayesianNetwork([("a", "b")]).size_report()
    net = sf.BayesianNetwork({"a": ["h"]}, hidden={"h": 3})
    report = net.size_report({"a": [0, 1, 1]})
    assert report["a"].cells == 6
    assert report["a"].observed is None
    assert report["h"].cells == 3


def test_real_nodes_count_coefficients_and_join_their_discrete_parents() -> None:
    rng = np.random.default_rng(0)
    rows = {"k": ["u", "v"] * 10, "m": ["r", "s", "t", "r"] * 5, "x": rng.normal(size=20), "y": rng.normal(size=20)}
    net = sf.BayesianNetwork({"k": [], "m": [], "x": ["k"], "y": ["m", "x"]})
    report = net.size_report(rows)
    # x: intercept and variance for 2 states; y: intercept, one weight and variance for 3.
    assert [report[name].cells for name in "kmxy"] == [2, 3, 4, 9]
    assert report["y"].kind == "linear-gaussian"
    assert report["y"].observed == 3
    # x and y belong together, so k and m are one clique of 6 cells.
    assert report.plan is not None
    assert report.plan.largest == 6
    real = sf.BayesianNetwork([("x", "y")]).size_report({"x": rows["x"], "y": rows["y"]})
    assert real.plan is None
    assert real.fits
    assert real.width is None
    assert real.tree_bytes is None


@pytest.mark.parametrize("parents", [3, 12, 60])
def test_a_noisy_or_is_as_large_before_the_fit_as_after(parents: int) -> None:
    names = [f"p{k}" for k in range(parents)]
    rng = np.random.default_rng(0)
    rows = {name: rng.integers(0, 2, 100) for name in (*names, "y")}
    states = {name: [0, 1] for name in rows}
    net = sf.BayesianNetwork({"y": names}, states=states, nodes={"y": "noisy-or"}, prior=1.0)
    before, with_rows = net.size_report(), net.size_report(rows)
    after = net.fit(rows).size_report()
    for report in (before, with_rows, after):
        assert (report["y"].kind, report["y"].cells) == ("noisy-or", parents + 1)
        assert report.fits
        assert report.too_large == ()
        assert report.plan is not None
        # A chain has cliques of two private variables and a parent.
        assert report.plan.largest == (16 if parents == 3 else 8)
    assert before.tree_bytes == with_rows.tree_bytes == after.tree_bytes
