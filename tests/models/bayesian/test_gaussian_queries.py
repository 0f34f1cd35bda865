"""Linear-Gaussian networks as one normal law: dense matrices and scipy are the judges."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

import suffice as sf
from random_networks import cases, network_of, real_networks
from suffice.domain import Domain, Variable
from suffice.models.bayesian.nodes.linear_gaussian import LinearGaussianNode


@st.composite
def questions(draw: st.DrawFn) -> tuple[sf.BayesianNetwork, list[Any], dict[Any, float]]:
    """A network, nodes that are asked for, and values of others."""
    net = draw(real_networks())
    known = draw(st.lists(st.sampled_from(net.nodes), unique=True, max_size=len(net.nodes) - 1))
    free = [node for node in net.nodes if node not in known]
    asked = draw(st.permutations(draw(st.lists(st.sampled_from(free), unique=True, min_size=1))))
    return net, list(asked), {node: draw(st.floats(-3, 3)) for node in known}


@settings(max_examples=80, deadline=None)
@given(questions())
def test_conditional_mean_covariance_and_density_equal_dense_matrices(case: Any) -> None:
    net, asked, given_values = case
    (truth,) = cases(net, given_values)
    at = [truth.names.index(name) for name in asked]
    law = net.query(asked, given_values)
    assert law.names == tuple(asked)
    np.testing.assert_allclose(law.mean, truth.mean[at], rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(law.covariance, truth.covariance[np.ix_(at, at)], rtol=1e-8, atol=1e-9)
    assert net.log_probability(given_values) == pytest.approx(truth.log_weight, rel=1e-8, abs=1e-9)
    best = net.map_query(given_values)
    assert list(best) == list(net.nodes)
    np.testing.assert_allclose([best[name] for name in truth.names], truth.mean, rtol=1e-8, atol=1e-9)
    assert {name: best[name] for name in given_values} == given_values
    some = net.map_query(given_values, variables=asked)
    np.testing.assert_allclose([some[name] for name in asked], truth.mean[at], rtol=1e-8, atol=1e-9)
    for name, one in net.marginals(given_values).items():
        assert one.variance_of(name) == pytest.approx(truth.covariance[(truth.names.index(name),) * 2], rel=1e-8)


@settings(max_examples=40, deadline=None)
@given(real_networks())
def test_information_form_is_the_inverse_and_shows_the_moral_graph(net: sf.BayesianNetwork) -> None:
    law = net.joint_gaussian()
    h, precision = law.information
    np.testing.assert_allclose(precision @ law.covariance, np.eye(len(net.nodes)), atol=1e-8)
    np.testing.assert_allclose(h, precision @ law.mean, rtol=1e-8, atol=1e-8)
    families = [{*net.parents(node), node} for node in net.nodes]
    for i, one in enumerate(law.names):
        for j, other in enumerate(law.names):
            if not any({one, other} <= family for family in families):
                assert precision[i, j] == 0.0
    part = law.marginal(list(net.nodes)[:2])
    np.testing.assert_allclose(part.precision, np.linalg.inv(part.covariance), rtol=1e-7)


@settings(max_examples=60, deadline=None)
@given(real_networks(points=True), st.data())
def test_nodes_without_variance_condition_by_the_pseudo_inverse(net: sf.BayesianNetwork, data: Any) -> None:
    """A row that the network draws is possible, and S_ab S_bb^+ (x_b - m_b) is its regression whatever the rank."""
    row = {name: float(values[0]) for name, values in net.sample(1, random_state=data.draw(st.integers(0, 99))).items()}
    known = data.draw(st.lists(st.sampled_from(net.nodes), unique=True, max_size=len(net.nodes) - 1))
    asked = [node for node in net.nodes if node not in known]
    law = net.joint_gaussian().marginal([*asked, *known])
    a, b = slice(0, len(asked)), slice(len(asked), None)
    gain = law.covariance[a, b] @ np.linalg.pinv(law.covariance[b, b], rcond=1e-10)
    mean = law.mean[a] + gain @ (np.array([row[name] for name in known]) - law.mean[b])
    found = net.query(asked, {name: row[name] for name in known})
    np.testing.assert_allclose(found.mean, mean, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found.covariance, law.covariance[a, a] - gain @ law.covariance[b, a], atol=1e-6)
    assert net.score_samples({name: [value] for name, value in row.items()})[0] > -np.inf


def test_a_complete_graph_gives_back_the_sample_covariance() -> None:
    rng = np.random.default_rng(0)
    d, n = 8, 500
    rows = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + rng.normal(size=d) * 10
    names = [f"x{k}" for k in range(d)]
    net = sf.BayesianNetwork({name: names[:k] for k, name in enumerate(names)}).fit(
        dict(zip(names, rows.T, strict=True))
    )
    law = net.joint_gaussian().marginal(names)
    np.testing.assert_allclose(law.covariance, np.cov(rows.T, ddof=0), rtol=1e-10)
    np.testing.assert_allclose(law.mean, rows.mean(axis=0), rtol=1e-10)
    assert law.covariance_of("x2", "x5") == pytest.approx(np.cov(rows.T, ddof=0)[2, 5], rel=1e-10)
    assert law.mean_of("x3") == pytest.approx(rows[:, 3].mean(), rel=1e-10)


def test_rows_with_gaps_equal_scipy() -> None:
    rng = np.random.default_rng(1)
    n = 200
    a = rng.normal(size=n)
    b = a + rng.normal(size=n)
    c = 2 * a - b + rng.normal(size=n)
    net = sf.BayesianNetwork({"a": [], "b": ["a"], "c": ["a", "b"]}).fit({"a": a, "b": b, "c": c})
    law = net.joint_gaussian().marginal(["a", "b", "c"])
    rows = np.stack([a, b, c], axis=1)
    rows[rng.random(rows.shape) < 0.4] = np.nan
    columns = dict(zip("abc", rows.T, strict=True))
    logs, means = net.score_samples(columns), net.predict(columns, "c")
    for k, row in enumerate(rows):
        seen = np.flatnonzero(~np.isnan(row))
        inner = law.covariance[np.ix_(seen, seen)]
        expected = multivariate_normal(law.mean[seen], inner).logpdf(row[seen]) if len(seen) else 0.0
        assert logs[k] == pytest.approx(expected, rel=1e-9, abs=1e-12)
        seen = seen[seen < 2]
        gain = (
            law.covariance[2, seen] @ np.linalg.pinv(law.covariance[np.ix_(seen, seen)]) if len(seen) else np.zeros(0)
        )
        assert means[k] == pytest.approx(law.mean[2] + gain @ (row[seen] - law.mean[seen]), rel=1e-9, abs=1e-12)
    assert net.score_samples(columns, threads=2).tobytes() == logs.tobytes()


def determined() -> sf.BayesianNetwork:
    """Total = first + second, without noise."""
    real = {name: Variable(name, "real") for name in ("first", "second", "total")}
    nodes = {
        "first": LinearGaussianNode.given(Domain([real["first"]]), [1.0], 4.0),
        "second": LinearGaussianNode.given(Domain([real["second"]]), [2.0], 1.0),
        "total": LinearGaussianNode.given(Domain([real["first"], real["second"], real["total"]]), [0.0, 1.0, 1.0], 0.0),
    }
    return network_of({"first": [], "second": [], "total": ["first", "second"]}, nodes)


def test_a_node_without_variance_is_a_function_of_its_parents() -> None:
    net = determined()
    law = net.joint_gaussian()
    np.testing.assert_allclose(law.marginal(["total", "first"]).covariance, [[5.0, 4.0], [4.0, 4.0]], rtol=1e-14)
    with pytest.raises(sf.EstimateError, match="'total' have variance 0"):
        law.precision  # noqa: B018  computed on demand
    # first | total ~ N(1 + 4/5 (t - 3), 4 - 16/5), and second = total - first.
    found = net.query(["first", "second"], {"total": 8.0})
    np.testing.assert_allclose(found.mean, [5.0, 3.0], rtol=1e-12)
    np.testing.assert_allclose(found.covariance, [[0.8, -0.8], [-0.8, 0.8]], rtol=1e-10)
    exact = net.query(["total", "second"], {"first": 1.0, "total": 8.0})
    np.testing.assert_allclose(exact.mean, [8.0, 7.0], rtol=1e-12)
    np.testing.assert_allclose(exact.covariance, np.zeros((2, 2)), atol=1e-14)
    with pytest.raises(sf.EstimateError, match="density zero"):
        net.query("second", {"first": 1.0, "second": 2.0, "total": 8.0})
    assert net.log_probability({"first": 1.0, "second": 2.0, "total": 8.0}) == -np.inf
    real = Variable("double", "real")
    twice = LinearGaussianNode.given(Domain([Variable("first", "real"), real]), [0.0, 2.0], 0.0)
    wider = network_of(
        {**{n: net.parents(n) for n in net.nodes}, "double": ["first"]}, {**net.fitted_.nodes, "double": twice}
    )
    with pytest.raises(sf.EstimateError, match="1 rows have probability 0 under the network, the first is row 1"):
        wider.predict({"first": [1.0, 1.0], "double": [2.0, 3.0]}, "second")


def test_samples_given_evidence_follow_the_conditional_law() -> None:
    net = determined()
    n = 40_000
    drawn = net.sample(n, {"total": 8.0}, random_state=0)
    assert list(drawn) == list(net.nodes)
    assert (drawn["total"] == 8.0).all()
    np.testing.assert_allclose(drawn["first"] + drawn["second"], 8.0, rtol=1e-12)
    assert drawn["first"].mean() == pytest.approx(5.0, abs=4 * np.sqrt(0.8 / n))
    assert drawn["first"].var() == pytest.approx(0.8, rel=4 * np.sqrt(2 / n))
    again = net.sample(n, {"total": 8.0}, random_state=0)
    assert all(again[name].tobytes() == drawn[name].tobytes() for name in drawn)


def test_only_real_networks_are_one_normal_law() -> None:
    net = sf.BayesianNetwork([("kind", "x")]).fit({"kind": ["a", "b", "a", "b"], "x": [1.0, 2.0, 1.5, 2.5]})
    with pytest.raises(sf.OptionError, match="'kind' are not linear-Gaussian"):
        net.joint_gaussian()
    real = determined()
    with pytest.raises(sf.OptionError, match="no joint table"):
        real.to_joint()
    with pytest.raises(sf.DataError, match="finite number"):
        real.query("first", {"total": float("nan")})
    with pytest.raises(sf.DataError, match="'much'; expected a finite number"):
        real.query("first", {"total": "much"})
    with pytest.raises(sf.OptionError, match="Soft evidence is for discrete nodes"):
        real.query("first", {"total": [0.5, 0.5]})
    with pytest.raises(sf.OptionError, match="is real and has no table"):
        real.predict_proba({"total": [1.0]}, "first")


def test_the_law_prints_and_becomes_a_frame() -> None:
    pytest.importorskip("pandas")
    law = determined().joint_gaussian()
    assert "standard deviation" in str(law)
    frame = law.to_frame()
    assert frame.loc["total", "first"] == pytest.approx(4.0)
    assert frame.loc["first", "mean"] == pytest.approx(1.0)
    given_total = determined().joint_gaussian({"total": 8.0})
    assert set(given_total.names) == {"first", "second"}
    columns = law.sample(5, random_state=0)
    np.testing.assert_allclose(law.log_prob(columns), determined().score_samples(columns), rtol=1e-12)
