"""Numbers that carry labels: priors, fixed nodes and starts are read by label; wrong labels are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import suffice as sf

ROWS = {"a": [0, 0, 1, 1, 2], "c": [1, 0, 1, 0, 0], "b": ["x", "y", "x", "x", "y"]}
EDGES = [("a", "b")]
#: Rows and columns in another order than the states; by (a, b): (0, x) 8, (0, y) 2, (1, x) 5, ...
COUNTS = pd.DataFrame(
    [[9, 1], [2, 8], [5, 5]], index=pd.Index([2, 0, 1], name="a"), columns=pd.Index(["y", "x"], name="b")
)
IN_ORDER = np.array([[8.0, 2.0], [5.0, 5.0], [1.0, 9.0]])
ROWS_OF_ONE = COUNTS.div(COUNTS.sum(axis=1), axis=0)


def pseudo(prior: Any) -> Any:
    return sf.BayesianNetwork(EDGES, prior={"b": prior}).fit(ROWS).node("b").alpha


@pytest.mark.parametrize(
    "prior",
    [COUNTS, COUNTS.T, COUNTS.rename_axis(index=None, columns=None), COUNTS.stack(), COUNTS.T.stack()],
    ids=["frame", "turned", "without names", "series", "turned series"],
)
def test_a_prior_is_read_by_label(prior: Any) -> None:
    np.testing.assert_array_equal(pseudo(prior), IN_ORDER)


def test_two_parents_in_another_order() -> None:
    index = pd.MultiIndex.from_product([[1, 0], [2, 1, 0]], names=["c", "a"])
    frame = pd.DataFrame({"y": np.arange(1.0, 7.0), "x": np.arange(11.0, 17.0)}, index=index)
    net = sf.BayesianNetwork({"b": ["a", "c"]}, prior={"b": frame}).fit(ROWS)
    alpha = net.node("b").alpha.reshape(3, 2, 2)
    for a in range(3):
        for c in range(2):
            assert alpha[a, c].tolist() == [frame.loc[(c, a), "x"], frame.loc[(c, a), "y"]]


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        (COUNTS.rename_axis(index="zz"), "levels 'zz'; expected 'a'"),
        (COUNTS.iloc[:2], r"gives \{'a': 1, 'b': 'x'\} not at all"),
        (pd.concat([COUNTS, COUNTS.iloc[:1]]), r"gives \{'a': 2, 'b': 'x'\} twice"),
        (COUNTS.rename(columns={"y": "q"}), "names 'q' as states of 'b'"),
        (COUNTS.stack().rename_axis([None, None]), "levels None, None; expected 'a', 'b'"),
        (COUNTS.T.rename_axis(index=None, columns=None), "as states of 'a'"),
        (COUNTS.astype(object).map(lambda count: "many" if count == 9 else count), "expected numbers"),
        (pl.DataFrame({"x": [1, 2, 3], "y": [1, 2, 3]}), "without labels of its rows"),
        ({"x": 1, "y": 2}, "that is for a node without parents"),
    ],
)
def test_labels_that_do_not_match_are_refused(prior: Any, message: str) -> None:
    with pytest.raises(sf.OptionError, match=message):
        pseudo(prior)


def test_fixed_nodes_and_starts_are_read_by_label() -> None:
    expected = IN_ORDER / 10
    net = sf.BayesianNetwork(EDGES, fixed={"b": ROWS_OF_ONE, "a": pd.Series({2: 0.5, 1: 0.3, 0: 0.2})}).fit(ROWS)
    np.testing.assert_allclose(net.table("b").values, expected, rtol=1e-15)
    assert net.table("a").values.tolist() == [0.2, 0.3, 0.5]
    gaps = {"a": [0, 1, 2, None], "b": ["x", "y", "x", "x"]}
    begun = sf.BayesianNetwork(EDGES, start={"b": ROWS_OF_ONE}, max_iter=0)
    with pytest.warns(sf.ConvergenceWarning):
        begun.fit(gaps)
    np.testing.assert_allclose(begun.table("b").values, expected, rtol=1e-15)


@pytest.mark.parametrize("node", ["a", "b"])
def test_a_table_survives_the_way_through_a_frame(node: str) -> None:
    net = sf.BayesianNetwork(EDGES).fit(ROWS)
    again = sf.BayesianNetwork(EDGES, fixed={node: net.table(node).to_frame()}).fit(ROWS)
    np.testing.assert_array_equal(again.table(node).values, net.table(node).values)


@pytest.mark.parametrize(("option", "frame"), [("prior", COUNTS), ("fixed", ROWS_OF_ONE)])
def test_labels_survive_a_file(option: str, frame: Any, tmp_path: Path) -> None:
    options: dict[str, Any] = {option: {"b": frame}}
    net = sf.BayesianNetwork(EDGES, **options).fit(ROWS)
    net.write(tmp_path / "net.json")
    again = sf.read(tmp_path / "net.json").fit(ROWS)
    np.testing.assert_array_equal(again.table("b").values, net.table("b").values)


def test_numbers_by_state_of_a_root() -> None:
    prior = sf.BayesianNetwork(EDGES, prior={"a": {2: 1, 0: 100, 1: 2}}).fit(ROWS)
    np.testing.assert_allclose(prior.table("a").values, np.array([102, 4, 2]) / 108, rtol=1e-15)
    fixed = sf.BayesianNetwork(EDGES, fixed={"a": {1: 0.1, 0: 0.7, 2: 0.2}}).fit(ROWS)
    assert fixed.table("a").values.tolist() == [0.7, 0.1, 0.2]
    with pytest.raises(sf.OptionError, match=r"gives \{'a': 2\} not at all"):
        sf.BayesianNetwork(EDGES, prior={"a": {0: 100, 1: 1}}).fit(ROWS)


# --------------------------------------------------------------------------------------------------------------------
# Options of the wrong type
# --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fixed": 3}, "fixed is 3; expected a dict by node"),
        ({"hidden": 3}, "hidden is 3; expected a dict by node"),
        ({"nodes": 3}, "nodes is 3; expected a dict by node"),
        ({"states": 3}, "states is 3; expected a dict by node"),
        ({"states": {"a": 3}}, r"states\['a'\] is 3; expected a list"),
        ({"checkpoint": 3}, "checkpoint is 3; expected the path"),
        ({"random_state": "a"}, "random_state is 'a'"),
        ({"estimate": "mode"}, "estimate is 'mode'"),
        ({"fixed": {"b": "hi"}}, "'hi'; expected numbers"),
        ({"fixed": {"b": [[0.5, 0.5], [0.5, 0.4], [1, 0]]}}, r"at \{'a': 1\}: 0.5, 0.4, which adds up to 0.9"),
        ({"fixed": {"a": [-0.5, 1.0, 0.5]}}, "not a distribution: -0.5, 1.0, 0.5"),
        ({"prior": [1, 2]}, "give a dict by node"),
        ({"equivalent_sample_size": 0}, "equivalent_sample_size is 0"),
        ({"equivalent_sample_size": float("nan")}, "equivalent_sample_size is nan"),
        ({"equivalent_sample_size": -3, "prior": 1.0}, "equivalent_sample_size is -3"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(sf.OptionError, match=message):
        sf.BayesianNetwork(EDGES, **options).fit({"a": [0, 1, 2], "b": ["x", None, "y"]})


def test_other_wrong_values_are_named(tmp_path: Path) -> None:
    for structure in ([(["x"], "a")], {"a": [["x"]]}):
        with pytest.raises(sf.OptionError, match=r"A node is named \['x'\]"):
            sf.BayesianNetwork(structure)
    net = sf.BayesianNetwork(EDGES).fit(ROWS)
    with pytest.raises(sf.OptionError, match=r"n is 2\.5"):
        net.sample(2.5)  # type: ignore[arg-type]
    with pytest.raises(sf.OptionError, match="random_state is 'q'"):
        net.sample(2, random_state="q")
    for soft in ([1e308, 1e308], ["u", "v"], {"x": "u"}, [[1], [2, 3]]):
        with pytest.raises(sf.OptionError, match="The likelihoods of 'b'"):
            net.query("a", {"b": soft})
    with pytest.raises(sf.OptionError, match="sample_weight names 'a', which is a node"):
        sf.BayesianNetwork(EDGES).fit(ROWS, sample_weight="a")
    reals = {"x": [1.0, 2.0, 3.0], "y": [2.0, 3.0, 5.0]}
    kinds = {"x": "real", "y": "real"}
    with pytest.raises(sf.OptionError, match="'x' has the variance -2"):
        sf.BayesianNetwork([("x", "y")], states=kinds, fixed={"x": ([1.0], -2.0)}).fit(reals)
    with pytest.raises(sf.OptionError, match=r"'x', 'y' hold numbers; this format has discrete nodes only"):
        sf.BayesianNetwork([("x", "y")], states=kinds).fit(reals).write(tmp_path / "net.bif")


def test_impossible_evidence_is_one_error() -> None:
    net = sf.BayesianNetwork(EDGES, fixed={"a": [0.5, 0.5, 0.0]}).fit(ROWS)
    given = {"a": 2}
    for question in (
        lambda: net.query("b", given),
        lambda: net.marginals(given),
        lambda: net.map_query(given),
        lambda: net.sample(3, given),
        lambda: net.predict({"a": [2]}, "b"),
        lambda: net.predict_proba({"a": [2]}, "b"),
    ):
        with pytest.raises(sf.EstimateError, match="probability 0"):
            question()
