"""Error bars of answers of Markov networks: derivatives by differences of the weights, variances by their formula."""

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import suffice as sf

Floats = NDArray[np.float64]
EDGES = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]


def rows(n: int, seed: int = 0) -> dict[str, NDArray[Any]]:
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 2, n)
    b = (rng.random(n) < 0.3 + 0.4 * a).astype(int)
    d = (rng.random(n) < 0.6 - 0.3 * a).astype(int)
    c = (rng.random(n) < 0.2 + 0.3 * b + 0.3 * d).astype(int)
    return {"a": a, "b": b, "c": c, "d": d}


@pytest.mark.parametrize("prior", [None, sf.Normal(variance=4.0)])
@pytest.mark.parametrize(
    ("asked", "given"), [("a", {"c": 1}), (["b", "d"], {"a": 0}), ("c", {"b": [0.2, 0.9]}), ("d", {})]
)
def test_standard_errors_are_the_delta_method(asked: Any, given: dict[str, Any], prior: Any) -> None:
    net = sf.MarkovNetwork(EDGES, prior=prior).fit(rows(400))
    weights, information = net.weights_, 400 * net.information_
    covariance = np.linalg.pinv(information, rcond=1e-10)
    if prior is not None:
        covariance = np.linalg.inv(information + np.eye(len(weights)) / 4.0)
    slopes = np.zeros((net.query(asked, given).values.size, len(weights)))
    for k in range(len(weights)):
        step = np.eye(len(weights))[k] * 1e-5
        up, down = (net.with_weights(weights + sign * step).query(asked, given).values.ravel() for sign in (1, -1))
        slopes[:, k] = (up - down) / 2e-5
    expected = np.sqrt(np.einsum("ai,ij,aj->a", slopes, covariance, slopes))
    found = net.query(asked, given).standard_errors.values.ravel()
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-12)


def test_a_saturated_network_has_the_error_of_a_share() -> None:
    data = rows(300)
    net = sf.MarkovNetwork([("a", "b")]).fit({"a": data["a"], "b": data["b"]})
    answer = net.query("b", {"a": 1})
    p, n = answer.values, int((data["a"] == 1).sum())
    np.testing.assert_allclose(answer.standard_errors.values, np.sqrt(p * (1 - p) / n), rtol=1e-7)
    reach = 1.959963984540054 * answer.standard_errors.values / (p * (1 - p))
    np.testing.assert_allclose(answer.interval()[0].values, 1 / (1 + np.exp(-(np.log(p / (1 - p)) - reach))), rtol=1e-9)
    assert (net.query("a", {"a": 1}).standard_errors.values == 0).all()


def test_draws_agree_where_rows_are_many() -> None:
    net = sf.MarkovNetwork(EDGES, prior=sf.Normal(variance=10.0)).fit(rows(5000))
    answer = net.query("a", {"c": 1})
    delta, drawn = answer.interval(), answer.interval(method="posterior", draws=1500, random_state=0)
    width = float(delta[1].values[0] - delta[0].values[0])
    for one, other in zip(delta, drawn, strict=True):
        np.testing.assert_allclose(one.values, other.values, atol=0.08 * width)


def test_what_has_no_error_bar_says_why() -> None:
    net = sf.MarkovNetwork(EDGES).fit(rows(200))
    with pytest.raises(sf.EstimateError, match="without a normal prior"):
        net.query("a").interval(method="posterior")
    with pytest.raises(sf.EstimateError, match="Laplace"):
        _ = sf.MarkovNetwork(EDGES, prior=sf.Laplace(scale=1.0)).fit(rows(200)).query("a").standard_errors
    data: dict[str, Any] = rows(60)
    data["a"] = [None, *data["a"].tolist()[1:]]
    with pytest.raises(sf.EstimateError, match="missing values"):
        _ = sf.MarkovNetwork(EDGES).fit(data).query("a").standard_errors
    never = {"a": [0, 0, 1, 1], "b": [0, 1, 1, 1]}
    unseen = sf.MarkovNetwork([("a", "b")]).fit(never).query("b", {"a": 1})
    assert np.isnan(unseen.standard_errors.values).all()
    assert math.isfinite(net.query("a").standard_errors.values[0])
