"""Queries to networks of discrete and real nodes: a list of joint states with a normal law each is the judge."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import suffice as sf
from random_networks import Case, cases, discrete_nodes, joint_states, mixed_networks, network_of, same_state
from suffice.domain import Domain, Variable
from suffice.models.bayesian.nodes.linear_gaussian import LinearGaussianNode
from suffice.models.bayesian.nodes.table import TableNode

Floats = NDArray[np.float64]


@st.composite
def questions(draw: st.DrawFn) -> tuple[sf.BayesianNetwork, dict[Any, Any]]:
    """A network and evidence: states of some nodes, values of others; not all of them."""
    net = draw(mixed_networks())
    discrete = discrete_nodes(net)
    rows = [row for row, _ in joint_states(net)]
    row = draw(st.sampled_from(rows))
    known = draw(st.lists(st.sampled_from(net.nodes), unique=True, max_size=len(net.nodes) - 1))
    return net, {node: row[node] if node in discrete else draw(st.floats(-2, 2)) for node in known}


def weights_of(found: list[Case]) -> tuple[Floats, float]:
    """Posterior weights of the joint states, and the log evidence."""
    logs = np.array([case.log_weight for case in found])
    top = logs.max()
    return np.exp(logs - top) / np.exp(logs - top).sum(), float(top + np.log(np.exp(logs - top).sum()))


def table_of(net: sf.BayesianNetwork, found: list[Case], weights: Floats, names: list[Any]) -> Floats:
    """P(names) of discrete nodes."""
    table = np.zeros([len(net.states(name)) for name in names])
    for case, weight in zip(found, weights, strict=True):
        table[tuple(net.node(name).domain[name].index(case.row[name]) for name in names)] += weight
    return table


def moments_of(found: list[Case], weights: Floats, at: int) -> tuple[float, float]:
    """Mean and variance of one unobserved real node."""
    means = np.array([case.mean[at] for case in found])
    mean = float(weights @ means)
    inner = np.array([case.covariance[at, at] for case in found])
    return mean, float(weights @ (inner + (means - mean) ** 2))


@settings(max_examples=60, deadline=None)
@given(questions())
def test_tables_mixtures_and_evidence_equal_enumeration(case: Any) -> None:
    net, evidence = case
    found = cases(net, evidence)
    weights, log_evidence = weights_of(found)
    assert net.log_probability(evidence) == pytest.approx(log_evidence, rel=1e-8, abs=1e-9)
    for node, law in net.marginals(evidence).items():
        if node in discrete_nodes(net):
            np.testing.assert_allclose(law.values, table_of(net, found, weights, [node]), rtol=1e-7, atol=1e-10)
        else:
            mean, variance = moments_of(found, weights, found[0].names.index(node))
            assert law.mean[0] == pytest.approx(mean, rel=1e-7, abs=1e-8)
            assert law.covariance[0, 0] == pytest.approx(variance, rel=1e-7, abs=1e-8)


@settings(max_examples=60, deadline=None)
@given(questions())
def test_discrete_and_real_nodes_asked_together(case: Any) -> None:
    net, evidence = case
    discrete = discrete_nodes(net)
    real = [node for node in net.nodes if node not in discrete and node not in evidence]
    if not real:
        return
    law = net.query([*real, *discrete], evidence)
    found = cases(net, evidence)
    weights, _ = weights_of(found)
    np.testing.assert_allclose(law.table.values, table_of(net, found, weights, discrete), rtol=1e-7, atol=1e-10)
    assert law.discrete == tuple(discrete)
    assert law.names == tuple(real)
    # All discrete nodes are in the table, so the law in a cell is one normal law.
    for one, weight in zip(found, weights, strict=True):
        order = [one.names.index(name) for name in real]
        place = tuple(net.node(name).domain[name].index(one.row[name]) for name in discrete)
        if weight > 1e-9:
            np.testing.assert_allclose(law.mean[place], one.mean[order], rtol=1e-7, atol=1e-8)
            covariance = one.covariance[np.ix_(order, order)]
            np.testing.assert_allclose(law.covariance[place], covariance, rtol=1e-7, atol=1e-8)
            np.testing.assert_allclose(law.at(one.row).mean, one.mean[order], rtol=1e-7, atol=1e-8)


@settings(max_examples=40, deadline=None)
@given(questions(), st.data())
def test_soft_evidence_weights_the_joint_states(case: Any, data: Any) -> None:
    net, evidence = case
    discrete = discrete_nodes(net)
    node = data.draw(st.sampled_from(discrete))
    evidence = {name: value for name, value in evidence.items() if name != node}
    likelihood = {state: data.draw(st.floats(0.1, 2.0)) for state in net.states(node)}
    found = cases(net, evidence)
    for one in found:
        one.log_weight += np.log(next(w for state, w in likelihood.items() if same_state(state, one.row[node])))
    weights, log_evidence = weights_of(found)
    soft = {**evidence, node: likelihood}
    assert net.log_probability(soft) == pytest.approx(log_evidence, rel=1e-8, abs=1e-9)
    np.testing.assert_allclose(
        net.query(discrete, soft).values, table_of(net, found, weights, discrete), rtol=1e-7, atol=1e-10
    )
    for name in found[0].names:
        mean, _ = moments_of(found, weights, found[0].names.index(name))
        assert net.query(name, soft).mean[0] == pytest.approx(mean, rel=1e-7, abs=1e-8)


@settings(max_examples=25, deadline=None)
@given(mixed_networks(), st.integers(0, 2**32))
def test_rows_with_gaps_give_what_single_queries_give(net: sf.BayesianNetwork, seed: int) -> None:
    rows = net.sample(12, missing=0.4, random_state=seed)
    discrete = discrete_nodes(net)
    known = []
    for k in range(12):
        row = {name: values[k] for name, values in rows.items()}
        known.append({n: v for n, v in row.items() if not (v is None if n in discrete else np.isnan(v))})
    logs = net.score_samples(rows)
    np.testing.assert_allclose(logs, [weights_of(cases(net, row))[1] for row in known], rtol=1e-7, atol=1e-9)
    for target in net.nodes:
        others = [{n: v for n, v in row.items() if n != target} for row in known]
        if target in discrete:
            expected: list[Any] = [net.query(target, row).values for row in others]
            found = net.predict_proba(rows, target)
        else:
            expected = [net.query(target, row).mean[0] for row in others]
            found = net.predict(rows, target)
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(
        net.query_rows(discrete, rows), [net.query(discrete, row).values for row in known], rtol=1e-7, atol=1e-10
    )


def speech() -> sf.BayesianNetwork:
    """Kind of person decides on height, height and kind on weight; a test reads the kind with errors."""
    kind, test = Variable.discrete("kind", ["child", "adult"]), Variable.discrete("test", [False, True])
    height, weight = Variable("height", "real"), Variable("weight", "real")
    nodes: dict[str, Any] = {
        "kind": TableNode.given(Domain([kind]), [0.3, 0.7]),
        "test": TableNode.given(Domain([kind, test]), [[0.9, 0.1], [0.2, 0.8]]),
        "height": LinearGaussianNode.given(Domain([kind, height]), [[1.2], [1.7]], [0.04, 0.01]),
        "weight": LinearGaussianNode.given(Domain([kind, height, weight]), [[-10.0, 40.0], [-50.0, 72.0]], [9.0, 64.0]),
    }
    return network_of({"kind": [], "test": ["kind"], "height": ["kind"], "weight": ["kind", "height"]}, nodes)


def test_samples_given_evidence_follow_the_posterior() -> None:
    net, n = speech(), 60_000
    evidence = {"weight": 55.0, "test": True}
    drawn = net.sample(n, evidence, random_state=0)
    assert set(drawn) == set(net.nodes)
    assert (drawn["weight"] == 55.0).all()
    assert drawn["test"].all()
    law = net.query(["kind", "height"], evidence)
    adult = drawn["kind"] == "adult"
    p = law.table.at(kind="adult")
    assert adult.mean() == pytest.approx(p, abs=4 * np.sqrt(p * (1 - p) / n))
    for kind, rows in (("adult", adult), ("child", ~adult)):
        inner, heights = law.at(kind=kind), drawn["height"][rows]
        assert heights.mean() == pytest.approx(inner.mean[0], abs=4 * np.sqrt(inner.covariance[0, 0] / rows.sum()))
        assert heights.var() == pytest.approx(inner.covariance[0, 0], rel=5 * np.sqrt(2 / rows.sum()))
    soft = net.sample(n, {"kind": {"child": 1.0, "adult": 0.5}}, random_state=1)
    p = 0.3 / (0.3 + 0.35)
    assert (soft["kind"] == "child").mean() == pytest.approx(p, abs=4 * np.sqrt(p * (1 - p) / n))


def test_many_rows_of_discrete_evidence_are_grouped() -> None:
    net, n = speech(), 50_000
    rows = net.sample(n, random_state=0)
    found = net.predict({"kind": rows["kind"], "test": rows["test"]}, "height")
    np.testing.assert_allclose(found, np.where(rows["kind"] == "adult", 1.7, 1.2), rtol=1e-12)
    one, two = (net.predict_proba(rows, "kind", threads=threads) for threads in (1, 2))
    assert one.tobytes() == two.tobytes()
    # Bayes' rule by hand, one normal density for each real node.
    logs = np.stack(
        [net.score_samples({**rows, "kind": np.full(n, kind, dtype=object)}) for kind in ("child", "adult")]
    )
    expected = 1 / (1 + np.exp(logs[0] - logs[1]))
    np.testing.assert_allclose(one[:, 1], expected, rtol=1e-9, atol=1e-12)


def test_the_law_of_both_kinds_prints_and_checks_states() -> None:
    law = speech().query(["kind", "height"])
    assert "mean of height" in str(law)
    with pytest.raises(sf.EstimateError, match="Give a state of each"):
        law.at()
    given_kind = speech().query(["kind", "height"], {"kind": "child"})
    assert given_kind.table.values.tolist() == [1.0, 0.0]
    assert np.isnan(given_kind.mean[1]).all()
    with pytest.raises(sf.EstimateError, match="probability 0"):
        given_kind.at(kind="adult")


def test_the_most_probable_state_of_discrete_nodes_only() -> None:
    net = speech()
    assert net.map_query({"height": 1.75}, variables=["kind", "test"]) == {"kind": "adult", "test": True}
    with pytest.raises(sf.OptionError, match="both kinds of nodes"):
        net.map_query({"height": 1.75})
    with pytest.raises(sf.OptionError, match="'height' is real"):
        net.map_query(variables=["height"])


def test_too_many_joint_states_offer_samples() -> None:
    """The mean of x is a sum over 20 coins, so its exact law has 2^20 normal laws."""
    coins = [f"c{k}" for k in range(20)]
    variables = {coin: Variable.discrete(coin, [0, 1]) for coin in coins}
    nodes: dict[str, Any] = {coin: TableNode.given(Domain([variables[coin]]), [0.5, 0.5]) for coin in coins}
    parents: dict[str, list[str]] = {coin: [] for coin in coins}
    for k, coin in enumerate(coins):
        above = [f"s{k - 1}"] if k else []
        real = [Variable(name, "real") for name in (*above, f"s{k}")]
        weights = [[0.0] + [1.0] * len(above), [1.0] + [1.0] * len(above)]
        nodes[f"s{k}"] = LinearGaussianNode.given(Domain([variables[coin], *real]), weights, [0.01, 0.01])
        parents[f"s{k}"] = [coin, *above]
    net = network_of(parents, nodes)
    with pytest.raises(sf.SizeError, match=r"1,048,576 joint states.*engine='sampling'"):
        net.query("s19")
    law = net.query("s19", engine="sampling", n=20_000, random_state=0)
    assert law.mean[0] == pytest.approx(10.0, abs=4 * law.standard_errors[0])
    assert law.covariance[0, 0] == pytest.approx(5.2, rel=0.05)
    np.testing.assert_allclose(net.query("s3", {"c0": 1, "c1": 1, "c2": 1, "c3": 0}).mean, [3.0], rtol=1e-12)


def test_undefined_rows_are_an_error_for_inference() -> None:
    rows = {"a": ["x", "x"], "b": ["u", "v"], "y": [1.0, 2.0]}
    net = sf.BayesianNetwork({"b": ["a"], "y": ["b"]}, states={"a": ["x", "z"], "y": "real"}, unseen="nan").fit(rows)
    with pytest.raises(sf.EstimateError, match="'b' have undefined rows"):
        net.query("y")


def test_a_number_that_depends_on_a_state_which_is_not_asked_for() -> None:
    """P(a) and the first two moments of x given a, with z summed out: x is a mixture over z | a."""
    a, z, x = Variable.discrete("a", [0, 1]), Variable.discrete("z", [0, 1, 2]), Variable("x", "real")
    share, link = np.array([0.3, 0.7]), np.array([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]])
    means, variances = np.array([-1.0, 0.5, 4.0]), np.array([0.5, 1.0, 2.0])
    nodes: dict[str, Any] = {
        "a": TableNode.given(Domain([a]), share),
        "z": TableNode.given(Domain([a, z]), link),
        "x": LinearGaussianNode.given(Domain([z, x]), means[:, None], variances),
    }
    found = network_of({"a": [], "z": ["a"], "x": ["z"]}, nodes).query(["a", "x"])
    np.testing.assert_allclose(found.table.values, share, rtol=1e-14)
    np.testing.assert_allclose(found.mean[:, 0], link @ means, rtol=1e-13)
    spread = link @ (variances + means**2) - (link @ means) ** 2
    np.testing.assert_allclose(found.covariance[:, 0, 0], spread, rtol=1e-12)
