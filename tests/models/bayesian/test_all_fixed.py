"""Networks whose nodes are all given need no rows."""

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import suffice as sf


def model() -> sf.BayesianNetwork:
    return sf.BayesianNetwork(
        [("a", "x"), ("x", "t")],
        states={"a": ["u", "w"]},
        nodes={"x": "linear-gaussian", "t": sf.GLM("poisson")},
        fixed={"a": [0.3, 0.7], "x": ([[0.0], [1.0]], [1.0, 2.0]), "t": {"coefficients": [0.1, 0.2]}},
    )


def test_questions_samples_and_scores_without_a_fit(tmp_path: Path) -> None:
    net = model()
    law = np.array([0.3, 0.7]) * stats.norm.pdf(1.5, [0.0, 1.0], np.sqrt([1.0, 2.0]))
    np.testing.assert_allclose(net.query("a", {"x": 1.5}).values, law / law.sum(), rtol=1e-12)
    expected = math.log(law[1]) + stats.poisson.logpmf(2, math.exp(0.1 + 0.2 * 1.5))
    np.testing.assert_allclose(net.score({"a": ["w"], "x": [1.5], "t": [2]}), expected, rtol=1e-12)
    np.testing.assert_allclose(net.predict({"x": [1.5]}, "t"), [math.exp(0.4)], rtol=1e-12)
    assert set(net.sample(20, random_state=0)["a"]) == {"u", "w"}
    net.write(tmp_path / "net.suffice")
    found = sf.read(tmp_path / "net.suffice")
    np.testing.assert_array_equal(found.query("a", {"x": 1.5}).values, net.query("a", {"x": 1.5}).values)


def test_other_numbers_are_used_at_once() -> None:
    net = model()
    np.testing.assert_allclose(net.query("a").values, [0.3, 0.7])
    net.set_params(fixed={**net.fixed, "a": [0.5, 0.5]})  # type: ignore[attr-defined]
    np.testing.assert_allclose(net.query("a").values, [0.5, 0.5])
    net.set_params(fixed={"a": [0.5, 0.5]})
    with pytest.raises(sf.NotFittedError, match="has not learned 'x', 't' yet"):
        net.query("a")


def test_what_is_not_known_is_said() -> None:
    with pytest.raises(sf.NotFittedError, match="states of 'a', 'b' are not known"):
        sf.BayesianNetwork([("a", "b")], fixed={"a": [0.3, 0.7], "b": [[0.5, 0.5], [0.1, 0.9]]}).query("a")
    with pytest.raises(sf.NotFittedError, match="Call fit first"):
        sf.BayesianNetwork([("a", "b")]).query("a")


def test_fitted_nodes_bring_their_states() -> None:
    rows = {"a": ["p", "q", "q", "p"], "b": [0, 1, 1, 1]}
    first = sf.BayesianNetwork([("a", "b")]).fit(rows)
    copy = sf.BayesianNetwork([("a", "b")], fixed={name: first.node(name) for name in ("a", "b")})
    np.testing.assert_array_equal(copy.query("a", {"b": 1}).values, first.query("a", {"b": 1}).values)
