"""Noisy-OR nodes: against SciPy's bounded optimiser, saturated tables and enumeration."""

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize

import suffice as sf
from suffice.domain import Domain, Variable
from suffice.models.bayesian.nodes.noisy_max_chain import Auxiliary
from suffice.models.bayesian.nodes.noisy_or import NoisyOrNode

Floats = NDArray[np.float64]


def causes(parents: int) -> list[str]:
    return [f"x{k}" for k in range(parents)]


def draw(parents: int, n: int, seed: int, prevalence: float = 0.3, leak: float = 0.1) -> dict[str, Any]:
    """Rows in which each active parent causes y by itself."""
    rng = np.random.default_rng(seed)
    x = (rng.random((n, parents)) < prevalence).astype(int)
    weights = rng.gamma(1.0, 0.6, parents) * (rng.random(parents) < 0.8)
    y = (rng.random(n) < -np.expm1(np.log1p(-leak) - x @ weights)).astype(int)
    return {name: x[:, k] for k, name in enumerate(causes(parents))} | {"y": y}


def network(parents: int, kind: Any = "noisy-or", **options: Any) -> sf.BayesianNetwork:
    states = {name: [0, 1] for name in (*causes(parents), "y")}
    return sf.BayesianNetwork({"y": causes(parents)}, states=states, nodes={"y": kind}, **options)


def optimised(rows: dict[str, Any], pseudo: float = 0.0) -> tuple[float, Floats]:
    """The best log-likelihood (with pseudo-rows) and weights that a generic optimiser finds."""
    names = [name for name in rows if name != "y"]
    design = np.column_stack([np.ones(len(rows["y"])), *(rows[name] for name in names)])
    present = np.asarray(rows["y"]) == 1

    def loss(w: Floats) -> tuple[float, Floats]:
        t = design @ w
        value = np.where(present, np.log(-np.expm1(-t)), -t).sum() + pseudo * (np.log(-np.expm1(-w)) - w).sum()
        slope = design.T @ np.where(present, 1 / np.expm1(t), -1.0) + pseudo * (1 / np.expm1(w) - 1)
        return -float(value), -slope

    options: Any = {"ftol": 1e-15, "gtol": 1e-11, "maxiter": 10_000}
    bounds: Any = [(1e-13, 60.0)] * (len(names) + 1)
    start: Any = np.full(len(names) + 1, 0.2)
    found: Any = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return -float(found.fun), found.x


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.integers(1, 5), st.integers(5, 120), st.sampled_from([0.0, 0.5, 2.0]))
def test_weights_are_those_of_a_generic_optimiser(seed: int, parents: int, n: int, pseudo: float) -> None:
    rows = draw(parents, n, seed)
    net = network(parents, prior={"y": pseudo} if pseudo else None).fit(rows)
    node = net.node("y")
    value, _ = optimised(rows, pseudo)
    reached = node.log_prob({name: np.asarray(column) for name, column in rows.items()}).sum()
    if pseudo:
        reached += pseudo * (np.log(-np.expm1(-node.weights)) - node.weights).sum()
        assert node.estimate == "map"
    # The optimiser stops at bounds 1e-13 and 60 and may be a little short of the best.
    assert reached >= value - 1e-9 * max(1.0, abs(value))
    assert reached <= value + 1e-6 * max(1.0, abs(value))
    assert net.report_.certificate.moment_gap < 1e-12
    assert (node.weights >= 0).all()


def test_known_weights_are_recovered() -> None:
    parents = {"flu": 0.9, "cold": 0.4, "smoke": 0.0}
    rng = np.random.default_rng(3)
    rows: dict[str, Any] = {name: rng.random(200_000) < 0.2 for name in parents}
    fails = 0.95 * np.prod([np.where(rows[name], 1 - p, 1.0) for name, p in parents.items()], axis=0)
    rows["fever"] = np.where(rng.random(200_000) < fails, "no", "yes")
    net = sf.BayesianNetwork({"fever": list(parents)}, nodes={"fever": sf.NoisyOr()}).fit(rows)
    node = net.node("fever")
    assert node.leak_ == pytest.approx(0.05, abs=4e-3)
    for name, probability in parents.items():
        assert node.inhibitors_[name][True] == pytest.approx(1 - probability, abs=0.01)
        assert node.inhibitors_[name][False] == 1.0
    assert node.n_params == 4
    assert net.n_params_ == 3 + 4
    errors = node.standard_errors_
    truth = dict(zip([("flu", True), ("cold", True)], -np.log([0.1, 0.6]), strict=True))
    for label, weight in truth.items():
        assert abs(node.weights_.at(coefficient=label) - weight) < 4 * errors.at(coefficient=label)


def test_one_parent_with_a_leak_is_the_saturated_table() -> None:
    rows = draw(1, 500, 3)
    plain = sf.BayesianNetwork({"y": ["x0"]}, states={"x0": [0, 1], "y": [0, 1]}).fit(rows)
    assert plain.table("y").values[1, 1] > plain.table("y").values[0, 1]  # otherwise the weight would be 0
    net = network(1).fit(rows)
    np.testing.assert_allclose(net.table("y").values, plain.table("y").values, rtol=1e-12)
    assert net.report_.log_likelihood == pytest.approx(plain.report_.log_likelihood, rel=1e-13)


def test_standard_errors_are_those_of_numerical_curvature() -> None:
    rows = draw(3, 2000, 12)
    node = network(3).fit(rows).node("y")
    design = np.column_stack([np.ones(2000), *(rows[name] for name in causes(3))])
    present = rows["y"] == 1

    def slope(w: Floats) -> Floats:
        return design.T @ np.where(present, 1 / np.expm1(design @ w), -1.0)

    step = 1e-6
    information = -np.array([(slope(node.weights + step * e) - slope(node.weights - step * e)) for e in np.eye(4)]) / (
        2 * step
    )
    assert (node.weights > 0).all()
    np.testing.assert_allclose(node.standard_errors_.values, np.sqrt(np.diag(np.linalg.inv(information))), rtol=1e-6)


def test_the_edges_of_the_likelihood() -> None:
    rows = {"a": [0, 0, 0, 0, 1, 1, 0], "b": [0, 0, 0, 0, 0, 0, 1], "y": [0, 0, 0, 1, 1, 1, 0]}
    net = sf.BayesianNetwork({"y": ["a", "b"]}, nodes={"y": "noisy-or"}).fit(rows)
    node = net.node("y")
    assert node.weights_.at(coefficient=("a", 1)) == math.inf
    assert node.inhibitors_["a"][1] == 0.0
    assert node.weights_.at(coefficient=("b", 1)) == 0.0
    assert node.leak_ == pytest.approx(0.2, rel=1e-12)
    assert np.isnan(node.standard_errors_.values[1:]).all()
    assert net.report_.certificate.exists is False
    assert net.report_.certificate.directions == ("weight of ('a', 1) in 'y' -> inf",)
    assert net.report_.certificate.value_gap == pytest.approx(0.0, abs=1e-14)
    certain = net.query("y", given={"a": 1})
    assert certain.at(y=0) == 0.0
    assert certain.at(y=1) == pytest.approx(1.0, rel=1e-15)
    assert net.report_.log_likelihood == pytest.approx(
        4 * math.log(0.8) + math.log(0.2) + sum(n * math.log(n / 7) for n in (5, 2, 6, 1)), rel=1e-12
    )


def test_the_certificate_bounds_what_is_lost() -> None:
    rows = draw(5, 400, 5)
    net = network(5).fit(rows)
    node, summary = net.node("y"), net.statistics_
    best = node.log_likelihood(summary)
    assert node.loss_bound(summary) == pytest.approx(0.0, abs=1e-11)
    away = NoisyOrNode(node.domain, node.weights + 0.1, node.order, node.inactive)
    loss = away.loss_bound(summary)
    assert loss is not None
    assert away.log_likelihood(summary) + loss >= best
    assert away.log_likelihood(summary) < best
    bound = net.report_.certificate.value_gap
    assert bound is not None
    assert bound < 1e-12


def test_states_that_count_as_active() -> None:
    rows = draw(2, 300, 2)
    plain = network(2).fit(rows)
    turned = {name: np.where(np.asarray(column) == 1, "a", "z") for name, column in rows.items()}
    kind = sf.NoisyOr(active={"y": "a", "x0": "a", "x1": ["a"]})
    net = sf.BayesianNetwork({"y": causes(2)}, nodes={"y": kind}).fit(turned)
    np.testing.assert_allclose(net.node("y").weights, plain.node("y").weights, rtol=1e-12)
    assert net.node("y").inhibitors_["x0"]["z"] == 1.0
    assert net.query("y", given={"x0": "a"}).at(y="a") == pytest.approx(
        plain.query("y", given={"x0": 1}).at(y=1), rel=1e-12
    )
    with pytest.raises(sf.OptionError, match=r"names 'x7'; expected the node or one of its parents 'x0', 'x1'"):
        sf.BayesianNetwork({"y": causes(2)}, nodes={"y": sf.NoisyOr(active={"x7": 1})}).fit(rows)
    with pytest.raises(sf.OptionError, match="leaves 0 of the states 0, 1 inactive"):
        sf.BayesianNetwork({"y": causes(2)}, nodes={"y": sf.NoisyOr(active={"x0": [0, 1]})}).fit(rows)


def test_parents_with_several_states_have_a_weight_each() -> None:
    rng = np.random.default_rng(0)
    grade = rng.integers(0, 3, 5000)
    y = rng.random(5000) < -np.expm1(-np.array([0.1, 0.5, 1.5])[grade])
    net = sf.BayesianNetwork({"y": ["grade"]}, nodes={"y": "noisy-or"}).fit({"grade": grade, "y": y})
    node = net.node("y")
    shares = [y[grade == k].mean() for k in range(3)]
    np.testing.assert_allclose(net.table("y").values[:, 1], shares, rtol=1e-12)
    assert list(node.inhibitors_["grade"]) == [0, 1, 2]
    assert node.coefficients == ("(leak)", ("grade", 1), ("grade", 2))


def test_without_a_leak() -> None:
    rows = {"a": [0, 0, 1, 1, 1, 1], "y": [0, 0, 0, 1, 1, 1]}
    net = sf.BayesianNetwork({"y": ["a"]}, nodes={"y": sf.NoisyOr(leak=False)}).fit(rows)
    assert net.node("y").leak_ == 0.0
    assert net.node("y").inhibitors_["a"][1] == pytest.approx(0.25, rel=1e-12)
    assert net.n_params_ == 2
    with pytest.raises(sf.EstimateError, match=r"no parent is active.*NoisyOr\(leak=True\)"):
        net.fit({"a": [0, 1], "y": [1, 0]})


def test_a_state_that_never_occurs() -> None:
    rows = {"a": [0, 0, 0], "y": [0, 1, 0]}
    states = {"a": [0, 1], "y": [0, 1]}
    net = sf.BayesianNetwork({"y": ["a"]}, states=states, nodes={"y": "noisy-or"}).fit(rows)
    assert net.node("y").weights_.at(coefficient=("a", 1)) == 0.0
    assert any("('a', 1) of 'y' never occur; their weight is 0" in text for text in net.report_.warnings)
    with pytest.raises(sf.EstimateError, match=r"\('a', 1\) of 'y' never occur"):
        sf.BayesianNetwork({"y": ["a"]}, states=states, nodes={"y": "noisy-or"}, unseen="raise").fit(rows)
    held = sf.BayesianNetwork({"y": ["a"]}, states=states, nodes={"y": "noisy-or"}, prior={"y": 2.0}).fit(rows)
    assert held.node("y").inhibitors_["a"][1] == pytest.approx(0.5, rel=1e-12)
    assert held.node("y").leak_ == pytest.approx((1 + 2) / (3 + 4), rel=1e-12)


def test_counts_may_be_fractions_and_rows_may_leave_again() -> None:
    rows, more = draw(3, 200, 1), draw(3, 50, 2)
    net = network(3).fit(rows)
    both = network(3).fit({name: np.concatenate([rows[name], more[name]]) for name in rows})
    np.testing.assert_array_equal(net.clone().fit(rows).partial_fit(more).node("y").weights, both.node("y").weights)
    np.testing.assert_array_equal(both.unlearn(more).node("y").weights, net.node("y").weights)
    half = network(3).fit(rows, sample_weight=np.full(200, 0.25))
    np.testing.assert_allclose(half.node("y").weights, net.node("y").weights, rtol=1e-9, atol=1e-12)


# -- inference -------------------------------------------------------------------------------------------------------


def bipartite(parents: int, seed: int) -> tuple[sf.BayesianNetwork, sf.BayesianNetwork]:
    """Two noisy-OR children of the same causes, and the same law in whole tables."""
    rng = np.random.default_rng(seed)
    names, children = causes(parents), ["s", "t"]
    rows: dict[str, Any] = {name: (rng.random(60) < 0.4).astype(int) for name in names}
    rows |= {name: rng.integers(0, 2, 60) for name in children}
    states = {name: [0, 1] for name in rows}
    kinds = {"s": sf.NoisyOr(), "t": sf.NoisyOr(active={"t": 0, "x1": 0})}
    structure: dict[Any, Any] = dict.fromkeys(children, names)
    net = sf.BayesianNetwork(structure, states=states, nodes=kinds, prior=1.0).fit(rows)
    domain = Domain(Variable.discrete(name, [0, 1]) for name in net.nodes)
    tables = {name: net.table(name).values for name in net.nodes}
    parents_of = {name: net.parents(name) for name in net.nodes}
    return net, sf.BayesianNetwork.from_tables(domain, parents_of, tables)


@pytest.mark.parametrize("parents", [4, 5, 8])
def test_queries_agree_with_whole_tables(parents: int) -> None:
    net, whole = bipartite(parents, parents)
    chained = any(isinstance(name, Auxiliary) for names, _ in net.node("s").factors() for name in names)
    assert chained == (parents > 4)
    for given_states in ({}, {"s": 1}, {"s": 1, "t": 0, "x1": 1}, {"t": 1, "x0": 0}, {"s": [0.2, 0.9]}):
        mine, theirs = net.marginals(given_states), whole.marginals(given_states)
        assert list(mine) == list(net.nodes)
        for name in net.nodes:
            np.testing.assert_allclose(mine[name].values, theirs[name].values, rtol=1e-11)
        assert net.log_probability(given_states) == pytest.approx(whole.log_probability(given_states), rel=1e-11)
        assert net.map_query(given_states) == whole.map_query(given_states)
    joint = net.query(["x0", "t", "s"], given={"x2": 1})
    np.testing.assert_allclose(joint.values, whole.query(["x0", "t", "s"], given={"x2": 1}).values, rtol=1e-11)


def test_queries_agree_with_enumeration() -> None:
    net, _ = bipartite(5, 0)
    total, seen = 0.0, 0.0
    for states in itertools.product([0, 1], repeat=7):
        row = {name: np.array([state]) for name, state in zip(net.nodes, states, strict=True)}
        probability = math.exp(sum(net.node(name).log_prob(row)[0] for name in net.nodes))
        total += probability
        seen += probability * (row["s"][0] == 1 and row["x3"][0] == 1)
    assert total == pytest.approx(1.0, rel=1e-12)
    assert net.query(["s", "x3"]).at(s=1, x3=1) == pytest.approx(seen, rel=1e-12)


def test_rows_and_samples_know_nothing_of_private_variables() -> None:
    net, whole = bipartite(6, 1)
    rows = net.sample(50, random_state=0)
    assert list(rows) == list(net.nodes)
    np.testing.assert_allclose(net.score_samples(rows), whole.score_samples(rows), rtol=1e-11)
    np.testing.assert_allclose(net.predict_proba(rows, "x0"), whole.predict_proba(rows, "x0"), rtol=1e-11)
    drawn = net.sample(4000, given={"s": 1}, random_state=1)
    assert list(drawn) == list(net.nodes)
    assert np.mean(drawn["x0"]) == pytest.approx(net.query("x0", given={"s": 1}).at(x0=1), abs=0.04)


def test_thirty_parents_need_no_table() -> None:
    rows = draw(30, 5000, 0, prevalence=0.05)
    net = network(30).fit(rows)
    assert net.n_params_ == 30 + 31
    node = net.node("y")
    share = np.array([rows[name].mean() for name in causes(30)])
    absent = math.exp(-node.weights[0]) * np.prod(1 - share + share * np.exp(-node.weights[1:]))
    assert net.query("y").at(y=0) == pytest.approx(absent, rel=1e-11)
    inactive = net.query("y", given=dict.fromkeys(causes(30), 0))
    assert inactive.at(y=1) == pytest.approx(node.leak_, rel=1e-11)
    # By Bayes: the law of one cause given the effect.
    fails = absent / (1 - share[0] + share[0] * math.exp(-node.weights[1]))
    posterior = share[0] * (1 - fails * math.exp(-node.weights[1])) / (1 - absent)
    assert net.query("x0", given={"y": 1}).at(x0=1) == pytest.approx(posterior, rel=1e-10)
    with pytest.raises(sf.SizeError, match=r"weights_, \.inhibitors_"):
        net.table("y")
    with pytest.raises(sf.SizeError):
        net.map_query({"y": 1})


# -- files, fixed numbers, options -----------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["json", "suffice"])
def test_files_keep_every_bit(tmp_path: Path, ending: str) -> None:
    net, _ = bipartite(5, 3)
    net.write(tmp_path / f"net.{ending}")
    back = sf.read(tmp_path / f"net.{ending}")
    np.testing.assert_array_equal(back.node("t").weights, net.node("t").weights)
    np.testing.assert_array_equal(back.node("t").errors, net.node("t").errors)
    assert back.node("t").inactive == net.node("t").inactive
    assert back.get_params()["nodes"] == net.get_params()["nodes"]
    np.testing.assert_array_equal(back.query("s").values, net.query("s").values)
    assert back.fit(net.statistics_).report_.log_likelihood == net.report_.log_likelihood


def test_a_damaged_node_is_refused() -> None:
    plain = network(2).fit(draw(2, 50, 0)).node("y").to_dict()
    assert NoisyOrNode.from_dict(plain).name == "y"
    for change in (
        {"weights": np.zeros(2)},
        {"weights": np.array([0.1, -0.2, 0.3])},
        {"weights": [0.1, 0.2, 0.3]},
        {"errors": np.zeros(5)},
        {"order": (0, 2)},
        {"order": (0, 1, 2)},
        {"inactive": (0,)},
        {"inactive": (0, 7)},
        {"domain": None},
    ):
        with pytest.raises(sf.FileFormatError, match=r"codes or arrays that do not fit|expected (Floats|Domain)"):
            NoisyOrNode.from_dict({**plain, **change})


def test_a_fixed_node_from_leak_and_inhibitors() -> None:
    rows = draw(2, 100, 0)
    given_numbers = {"leak": 0.1, "inhibitors": {"x0": 0.25, "x1": {1: 0.5}}}
    net = network(2, fixed={"y": given_numbers}).fit(rows)
    assert net.node("y").leak_ == pytest.approx(0.1)
    assert net.table("y").at(x0=1, x1=1, y=0) == pytest.approx(0.9 * 0.25 * 0.5)
    again = network(2, fixed={"y": net.node("y")}).fit(rows)
    np.testing.assert_array_equal(again.node("y").weights, net.node("y").weights)
    assert again.n_params_ == 2
    with pytest.raises(sf.OptionError, match="given for 'x0'; expected 'x0', 'x1'"):
        network(2, fixed={"y": {"leak": 0.1, "inhibitors": {"x0": 0.2}}}).fit(rows)
    with pytest.raises(sf.OptionError, match="must be probabilities"):
        network(2, fixed={"y": {"leak": 0.1, "inhibitors": {"x0": 1.2, "x1": 0.1}}}).fit(rows)
    with pytest.raises(sf.OptionError, match="a noisy-OR node is given as"):
        network(2, fixed={"y": [[0.5, 0.5]]}).fit(rows)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(sf.OptionError, match="'noisy-or', which has two states; found 3: 0, 1, 2"):
        sf.BayesianNetwork({"y": ["a"]}, nodes={"y": "noisy-or"}).fit({"a": [0, 1, 0], "y": [0, 1, 2]})
    with pytest.raises(sf.OptionError, match="has the real parents 'a'; a noisy-or node needs discrete parents"):
        sf.BayesianNetwork({"y": ["a"]}, nodes={"y": "noisy-or"}).fit({"a": [0.5, 1.5], "y": [0, 1]})
    with pytest.raises(sf.OptionError, match="whose column is discrete; states= declares it real"):
        sf.BayesianNetwork({"y": ["a"]}, states={"y": "real"}, nodes={"y": "noisy-or"}).fit({"a": [0, 1], "y": [0, 1]})
    with pytest.raises(sf.OptionError, match=r"prior of the noisy-OR node 'y' is 'bdeu'"):
        network(1, prior="bdeu").fit(draw(1, 10, 0))
    with pytest.raises(sf.OptionError, match="estimate='mean'"):
        network(1, prior=1.0, estimate="mean").fit(draw(1, 10, 0))
    with pytest.raises(sf.EstimateError, match="has no closed form"):
        _ = network(1, prior=1.0).fit(draw(1, 10, 0)).node("y").posterior_


# -- gaps ------------------------------------------------------------------------------------------------------------


def test_gaps_give_a_maximum_of_the_observed_likelihood_with_its_errors() -> None:
    rng = np.random.default_rng(0)
    rows: dict[str, Any] = {name: rng.integers(0, 2, 600) for name in causes(2)}
    rows["y"] = (rng.random(600) < -np.expm1(-(0.2 + 0.5 * rows["x0"] + 0.8 * rows["x1"]))).astype(int)
    nothing: Any = None
    holes = {name: np.where(rng.random(600) < 0.2, nothing, column) for name, column in rows.items()}
    net = network(2, tolerance=1e-10).fit(holes)
    node = net.node("y")
    assert (node.weights > 0).all()
    domain = Domain(net.node(name).domain[name] for name in net.nodes)
    parents = {name: net.parents(name) for name in net.nodes}

    def log_likelihood(v: Floats) -> float:
        strength = np.add.outer([0.0, v[1]], [0.0, v[2]]) + v[0]
        tables = {"y": np.stack([np.exp(-strength), -np.expm1(-strength)], axis=-1)}
        tables |= {name: np.array([1 - p, p]) for name, p in zip(("x0", "x1"), v[3:], strict=True)}
        return float(sf.BayesianNetwork.from_tables(domain, parents, tables).score_samples(holes).sum())

    best = np.array([*node.weights, *(net.table(name).values[1] for name in ("x0", "x1"))])
    step, steps = 1e-3, 1e-3 * np.eye(5)
    slopes = [(log_likelihood(best + e) - log_likelihood(best - e)) / (2 * step) for e in steps]
    np.testing.assert_allclose(slopes, 0.0, atol=2e-3)
    curvature = np.array(
        [
            [
                log_likelihood(best + e + f)
                - log_likelihood(best + e - f)
                - log_likelihood(best - e + f)
                + log_likelihood(best - e - f)
                for e in steps
            ]
            for f in steps
        ]
    ) / (4 * step**2)
    errors = np.sqrt(np.diag(np.linalg.inv(-curvature)))
    np.testing.assert_allclose(net.standard_errors_["y"].values, errors[:3], rtol=1e-3)
