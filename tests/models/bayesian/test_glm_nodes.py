"""Generalised linear models as nodes: against the model fitted by itself and against written-out likelihoods."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats
from scipy.optimize import minimize
from scipy.special import gammaln, logsumexp

import suffice as sf
from curvature import hessian
from suffice.statistics import Summary
from untyped import untyped

Floats = NDArray[np.float64]

EDGES = [
    ("sex", "visits"),
    ("region", "visits"),
    ("age", "visits"),
    ("sex", "ill"),
    ("region", "ill"),
    ("visits", "cost"),
]


def clinic(n: int = 300, seed: int = 0) -> dict[str, Any]:
    """Rows of a network with tables, a real root, a Poisson, a logistic and a gamma node."""
    rng = np.random.default_rng(seed)
    sex, region, age = rng.choice(["f", "m"], n), rng.choice(["north", "south", "west"], n), rng.normal(40.0, 10.0, n)
    visits = rng.poisson(np.exp(-1.0 + 0.03 * age + 0.4 * (sex == "m") - 0.3 * (region == "south")))
    ill = np.where(rng.random(n) < 1 / (1 + np.exp(0.5 - 0.8 * (sex == "m") - 0.4 * (region == "west"))), "yes", "no")
    cost = rng.gamma(2.0, 0.5 * np.exp(1.0 + 0.1 * visits))
    return {"sex": sex, "region": region, "age": age, "visits": visits, "ill": ill, "cost": cost}


def kinds() -> dict[str, Any]:
    return {"visits": sf.GLM(family=sf.Poisson()), "ill": sf.GLM("binomial"), "cost": sf.GLM(sf.Gamma(), link="log")}


def part(rows: dict[str, Any], some: Any) -> dict[str, Any]:
    return {name: np.asarray(values)[some] for name, values in rows.items()}


@pytest.fixture(scope="module")
def rows() -> dict[str, Any]:
    return clinic()


@pytest.fixture(scope="module")
def net(rows: dict[str, Any]) -> sf.BayesianNetwork:
    return sf.BayesianNetwork(EDGES, nodes=kinds()).fit(rows)


# --------------------------------------------------------------------------------------------------------------------
# The fit
# --------------------------------------------------------------------------------------------------------------------


def test_nodes_of_every_kind_in_one_fit_equal_models_fitted_alone(
    net: sf.BayesianNetwork, rows: dict[str, Any]
) -> None:
    for node, parents in (("visits", ("sex", "region", "age")), ("ill", ("sex", "region")), ("cost", ("visits",))):
        alone = kinds()[node].fit({name: rows[name] for name in parents}, rows[node])
        found = net.node(node)
        assert found.coefficients_.names == alone.coefficients_.names
        np.testing.assert_allclose(found.coefficients_, alone.coefficients_, rtol=1e-9)
        np.testing.assert_allclose(found.intercept_, alone.intercept_, rtol=1e-9)
        np.testing.assert_allclose(found.standard_errors_, alone.standard_errors_, rtol=1e-8)
        np.testing.assert_allclose(found.glm_.deviance_, alone.deviance_, rtol=1e-10)
        assert str(found.summary()).splitlines()[-1].split()[0] == str(alone.summary()).splitlines()[-1].split()[0]
    assert net.node("visits").coefficients_.names == ("sex[m]", "region[south]", "region[west]", "age")
    counts = np.array([(rows["sex"] == state).sum() for state in ("f", "m")])
    np.testing.assert_allclose(net.table("sex").values, counts / 300, rtol=1e-14)
    np.testing.assert_allclose(net.node("age").variance_, rows["age"].var(), rtol=1e-12)


def test_figures_of_the_network_are_those_of_the_written_out_law(net: sf.BayesianNetwork, rows: dict[str, Any]) -> None:
    visits, ill, cost = (net.node(name) for name in ("visits", "ill", "cost"))
    male, south, west = rows["sex"] == "m", rows["region"] == "south", rows["region"] == "west"
    c = visits.coefficients_.to_dict()
    rate = np.exp(
        visits.intercept_ + c["sex[m]"] * male + c["region[south]"] * south + c["region[west]"] * west
        + c["age"] * rows["age"]
    )  # fmt: skip
    d = ill.coefficients_.to_dict()
    odds = ill.intercept_ + d["sex[m]"] * male + d["region[south]"] * south + d["region[west]"] * west
    mean = np.exp(cost.intercept_ + cost.coefficients_["visits"] * rows["visits"])
    logs = stats.poisson.logpmf(rows["visits"], rate)
    logs += np.where(rows["ill"] == "yes", -np.logaddexp(0, -odds), -np.logaddexp(0, odds))
    logs += stats.gamma.logpdf(rows["cost"], 1 / cost.dispersion_, scale=cost.dispersion_ * mean)
    for name in ("sex", "region"):
        table = dict(zip(net.states(name), net.table(name).values, strict=True))
        logs += np.log([table[state] for state in rows[name]])
    logs += stats.norm.logpdf(rows["age"], rows["age"].mean(), rows["age"].std())
    np.testing.assert_allclose(net.score_samples(rows), logs, rtol=1e-10)
    np.testing.assert_allclose(net.report_.log_likelihood, logs.sum(), rtol=1e-12)
    np.testing.assert_allclose(net.score(rows), logs.mean(), rtol=1e-12)
    # Tables 1 + 2, the normal root 2, coefficients 5 + 4 + 2 and one dispersion.
    assert net.n_params_ == 17
    assert net.report_.bic is not None
    np.testing.assert_allclose(net.report_.bic, 17 * math.log(300) - 2 * logs.sum(), rtol=1e-12)
    np.testing.assert_allclose(net.report_.aic, 34 - 2 * logs.sum(), rtol=1e-12)
    assert net.report_.certificate.moment_gap < 1e-8
    assert net.report_.certificate.exists is True


def test_gamma_node_is_the_maximum_of_its_likelihood_in_mean_and_shape() -> None:
    rows = clinic()
    node = sf.BayesianNetwork(
        [("visits", "cost")], nodes={"cost": sf.GLM("gamma", link="log")}, states={"visits": "real"}
    )
    found = node.fit({"visits": rows["visits"], "cost": rows["cost"]}).node("cost")

    def loss(t: Floats) -> float:
        mean, shape = np.exp(t[0] + t[1] * rows["visits"]), math.exp(t[2])
        return -float(stats.gamma.logpdf(rows["cost"], shape, scale=mean / shape).sum())

    best = minimize(loss, np.zeros(3), method="BFGS", options={"gtol": 1e-8})
    np.testing.assert_allclose([found.intercept_, found.coefficients_["visits"]], best.x[:2], atol=1e-5)
    np.testing.assert_allclose(1 / found.dispersion_, math.exp(best.x[2]), rtol=1e-5)
    np.testing.assert_allclose(found.log_likelihood(node.statistics_), -best.fun, rtol=1e-10)


def test_softmax_node_is_the_maximum_of_its_likelihood() -> None:
    rng = np.random.default_rng(3)
    x, a = rng.normal(size=250), rng.choice(["p", "q"], 250)
    scores = np.stack([0.5 + x, 0.2 - 0.7 * (a == "q"), np.zeros(250)], axis=1)
    c = np.array(["one", "two", "three"])[(scores + rng.gumbel(size=scores.shape)).argmax(axis=1)]
    states = ["one", "two", "three"]
    model = sf.BayesianNetwork([("a", "c"), ("x", "c")], nodes={"c": sf.GLM(sf.Categorical(states=states))})
    node = model.fit({"a": a, "x": x, "c": c}).node("c")
    design, codes = np.stack([np.ones(250), a == "q", x], axis=1), np.array([states.index(label) for label in c])

    def loss(t: Floats) -> float:
        eta = np.column_stack([design @ t.reshape(3, 2), np.zeros(250)])
        return -float((eta[np.arange(250), codes] - logsumexp(eta, axis=1)).sum())

    best = minimize(loss, np.zeros(6), method="BFGS", options={"gtol": 1e-8})
    np.testing.assert_allclose(node.parameters_, best.x.reshape(3, 2), atol=1e-5)
    np.testing.assert_allclose(node.coefficients_["x"], [*best.x[4:], 0.0], atol=1e-5)
    errors = np.sqrt(np.diag(np.linalg.inv(hessian(loss, node.parameters_.ravel()))))
    np.testing.assert_allclose(node.standard_errors_, errors.reshape(3, 2), rtol=1e-5)
    assert model.states("c") == ("one", "two", "three")
    assert model.standard_errors_["c"].values.shape == (3, 2)


def test_gaussian_node_equals_the_linear_gaussian_node() -> None:
    rows = clinic()
    edges = [("age", "cost"), ("visits", "cost")]
    real = {"visits": "real"}
    glm = sf.BayesianNetwork(edges, states=real, nodes={"cost": sf.GLM("gaussian")}).fit(rows)
    line = sf.BayesianNetwork(edges, states=real).fit(rows)
    np.testing.assert_allclose(glm.node("cost").parameters_, line.node("cost").weights_, rtol=1e-9)
    np.testing.assert_allclose(glm.node("cost").dispersion_, line.node("cost").variance_, rtol=1e-12)
    np.testing.assert_allclose(glm.report_.log_likelihood, line.report_.log_likelihood, rtol=1e-12)
    assert glm.n_params_ == line.n_params_


@pytest.mark.parametrize(
    ("family", "shapes"),
    [
        ("inverse_gaussian", 1),
        (sf.Gamma(), 1),
        (sf.Exponential(), 0),
        (sf.NegativeBinomial(), 1),
        (sf.NegativeBinomial(size=2.0), 0),
    ],
)
def test_other_families(family: Any, shapes: int) -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=200)
    positive = rng.gamma(2.0, np.exp(0.3 * x) / 2)
    y = rng.poisson(positive) if isinstance(family, sf.NegativeBinomial) else positive
    model = sf.GLM(family, link="log")
    net = sf.BayesianNetwork([("x", "y")], nodes={"y": model}).fit({"x": x, "y": y})
    alone = sf.GLM(family, link="log").fit({"x": x}, y)
    np.testing.assert_allclose(net.node("y").parameters_, alone.parameters_, rtol=1e-9)
    np.testing.assert_allclose(net.node("y").log_likelihood(net.statistics_), alone.log_likelihood_, rtol=1e-10)
    assert net.node("y").n_params == 2 + shapes
    assert net.report_.certificate.moment_gap < 1e-7
    drawn = net.sample(20_000, random_state=0)["y"]
    expected = np.exp(
        alone.intercept_ + alone.coefficients_["x"] ** 2 * x.var() / 2 + alone.coefficients_["x"] * x.mean()
    )
    assert abs(drawn.mean() - expected) < 5 * drawn.std() / math.sqrt(20_000)


def test_a_kind_by_its_name_follows_the_column() -> None:
    rows = clinic()
    found = sf.BayesianNetwork([("sex", "ill"), ("age", "ill")], nodes={"ill": "glm"}).fit(rows)
    alone = sf.GLM("binomial").fit({"sex": rows["sex"], "age": rows["age"]}, rows["ill"])
    np.testing.assert_allclose(found.node("ill").parameters_, alone.parameters_, rtol=1e-8)
    assert sf.BayesianNetwork([("age", "region")], nodes={"region": "glm"}).fit(rows).node("region").n_params == 4


def test_many_parents_cost_linearly() -> None:
    rng = np.random.default_rng(5)
    x = rng.integers(0, 2, (3000, 40))
    y = (rng.random(3000) < 1 / (1 + np.exp(-(x - 0.5) @ np.linspace(-1, 1, 40)))).astype(int)
    rows = {f"x{k}": x[:, k] for k in range(40)} | {"y": y}
    net = sf.BayesianNetwork([(f"x{k}", "y") for k in range(40)], nodes={"y": sf.GLM("binomial")}).fit(rows)
    assert net.n_params_ == 40 + 41
    alone = sf.GLM("binomial").fit(x.astype(float), y)
    np.testing.assert_allclose(net.node("y").coefficients_, alone.coefficients_, atol=1e-8)
    known = {f"x{k}": 1 for k in range(40)}
    odds = net.node("y").intercept_ + float(net.node("y").coefficients_.sum())
    np.testing.assert_allclose(net.query("y", known).at(y=1), 1 / (1 + math.exp(-odds)), rtol=1e-10)
    with pytest.raises(sf.SizeError, match="coefficients_"):
        net.table("y")


# --------------------------------------------------------------------------------------------------------------------
# Laws
# --------------------------------------------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=8, deadline=None)
def test_rows_parents_and_weights_change_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = clinic(80, seed % 1000)
    net = sf.BayesianNetwork(EDGES, nodes=kinds(), prior=1.0).fit(rows)
    shuffled = sf.BayesianNetwork(EDGES, nodes=kinds(), prior=1.0).fit(part(rows, rng.permutation(80)))
    np.testing.assert_array_equal(net.node("visits").parameters_, shuffled.node("visits").parameters_)
    turned = [EDGES[k] for k in rng.permutation(len(EDGES))]
    other = sf.BayesianNetwork(turned, nodes=kinds(), prior=1.0).fit(rows)
    mine = net.node("visits").coefficients_.to_dict()
    theirs = other.node("visits").coefficients_.to_dict()
    assert mine == pytest.approx(theirs, rel=1e-7, abs=1e-8)
    weights = rng.integers(0, 4, 80)
    weighted = sf.BayesianNetwork(EDGES, nodes=kinds(), prior=1.0, states=_states(rows)).fit(
        rows, sample_weight=weights
    )
    repeated = sf.BayesianNetwork(EDGES, nodes=kinds(), prior=1.0, states=_states(rows)).fit(
        part(rows, np.repeat(np.arange(80), weights))
    )
    for name in ("visits", "ill", "cost"):
        np.testing.assert_array_equal(weighted.node(name).parameters_, repeated.node(name).parameters_)
        np.testing.assert_array_equal(weighted.node(name).standard_errors_, repeated.node(name).standard_errors_)


def _states(rows: dict[str, Any]) -> dict[str, Any]:
    return {name: sorted(set(rows[name])) for name in ("sex", "region", "ill")}


def test_rows_can_be_added_taken_out_and_merged(rows: dict[str, Any], net: sf.BayesianNetwork) -> None:
    first, second = part(rows, slice(0, 200)), part(rows, slice(200, None))
    model = sf.BayesianNetwork(EDGES, nodes=kinds(), states=_states(rows)).fit(first)
    before = model.score_samples(rows)
    model.partial_fit(second)
    np.testing.assert_array_equal(model.node("visits").parameters_, net.node("visits").parameters_)
    model.unlearn(second)
    np.testing.assert_array_equal(model.score_samples(rows), before)
    merged = sf.summarize(net, first) + sf.summarize(net, second)
    assert isinstance(merged, Summary)
    again = sf.BayesianNetwork(EDGES, nodes=kinds()).fit(merged)
    np.testing.assert_array_equal(again.node("cost").parameters_, net.node("cost").parameters_)
    assert again.report_.log_likelihood == net.report_.log_likelihood


@pytest.mark.parametrize("ending", ["suffice", "json"])
def test_a_file_keeps_every_bit(net: sf.BayesianNetwork, rows: dict[str, Any], ending: str, tmp_path: Path) -> None:
    net.write(tmp_path / f"net.{ending}")
    found = sf.read(tmp_path / f"net.{ending}")
    np.testing.assert_array_equal(found.score_samples(rows), net.score_samples(rows))
    np.testing.assert_array_equal(found.node("visits").standard_errors_, net.node("visits").standard_errors_)
    assert str(found.node("visits").summary()) == str(net.node("visits").summary())
    np.testing.assert_array_equal(found.sample(9, random_state=1)["cost"], net.sample(9, random_state=1)["cost"])
    found.partial_fit(rows)
    np.testing.assert_allclose(found.node("visits").parameters_, net.node("visits").parameters_, rtol=1e-7)


def test_samples_have_the_moments_of_the_law(net: sf.BayesianNetwork) -> None:
    drawn = net.sample(40_000, random_state=7)
    assert drawn["visits"].dtype.kind == "i"
    assert drawn["visits"].min() == 0
    rate = net.predict({name: drawn[name] for name in ("sex", "region", "age")}, "visits")
    gap = drawn["visits"] - rate
    assert abs(gap.mean()) < 5 * gap.std() / 200
    assert abs((gap**2 - rate).mean()) < 5 * (gap**2 - rate).std() / 200
    share = net.predict_proba({name: drawn[name] for name in ("sex", "region")}, "ill")[:, 1]
    assert abs(((drawn["ill"] == "yes") - share).mean()) < 5 * 0.5 / 200
    refit = sf.BayesianNetwork(EDGES, nodes=kinds()).fit(drawn)
    away = (refit.node("visits").parameters_ - net.node("visits").parameters_) / refit.node("visits").standard_errors_
    assert np.abs(away).max() < 5


def test_tied_nodes_share_their_coefficients() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=150)
    rows = {"x": x, "u": rng.poisson(np.exp(0.5 * x)), "v": rng.poisson(np.exp(0.5 * x))}
    net = sf.BayesianNetwork([("x", "u"), ("x", "v")], nodes={"u": sf.GLM("poisson")}, tied=[("u", "v")]).fit(rows)
    both = sf.GLM("poisson").fit(np.r_[x, x][:, None], np.r_[rows["u"], rows["v"]])
    np.testing.assert_allclose(net.node("v").parameters_, both.parameters_, rtol=1e-9)
    np.testing.assert_array_equal(net.node("u").parameters_, net.node("v").parameters_)
    assert net.n_params_ == 4


def test_tied_nodes_name_their_own_parents(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    rows: dict[str, Any] = {}
    for side in "lr":
        rows[f"x{side}"] = rng.normal(size=200)
        rows[f"k{side}"] = rng.choice(["a", "b", "c"], 200)
        rows[f"y{side}"] = rng.poisson(np.exp(0.3 * rows[f"x{side}"] + 0.5 * (rows[f"k{side}"] == "b")))
    edges = [(f"{parent}{side}", f"y{side}") for side in "lr" for parent in "xk"]
    net = sf.BayesianNetwork(edges, nodes={"yl": sf.GLM("poisson")}, tied=[("yl", "yr")]).fit(rows)
    net.write(tmp_path / "net.suffice")
    for found in (net, sf.read(tmp_path / "net.suffice")):
        for side in "lr":
            names = (f"x{side}", f"k{side}[b]", f"k{side}[c]")
            assert found.node(f"y{side}").coefficients_.names == names
            assert found.node(f"y{side}").standard_errors_.names == ("intercept", *names)
            assert [row[0] for row in found.node(f"y{side}").summary().rows] == ["intercept", *names]
        np.testing.assert_array_equal(found.node("yl").coefficients_, found.node("yr").coefficients_)
    new = {"xr": [0.5], "kr": ["b"]}
    table = {"xl": [0.5], "kl": ["b"]}
    np.testing.assert_array_equal(net.node("yr").glm_.predict(new), net.node("yl").glm_.predict(table))


# --------------------------------------------------------------------------------------------------------------------
# Priors, fixed nodes
# --------------------------------------------------------------------------------------------------------------------


def test_prior_of_the_model_and_of_the_network(rows: dict[str, Any]) -> None:
    prior = sf.Normal(mean=0.0, variance=0.04)
    parents = {name: rows[name] for name in ("sex", "region", "age")}
    alone = sf.GLM("poisson", prior=prior).fit(parents, rows["visits"])
    edges = EDGES[:3]
    own = sf.BayesianNetwork(edges, nodes={"visits": sf.GLM("poisson", prior=prior)}).fit(rows)
    told = sf.BayesianNetwork(edges, nodes={"visits": sf.GLM("poisson")}, prior={"visits": prior}).fit(rows)
    for net in (own, told):
        np.testing.assert_allclose(net.node("visits").parameters_, alone.parameters_, rtol=1e-9)
        assert list(untyped(net.posterior_)) == ["visits"]
        np.testing.assert_allclose(
            untyped(net.posterior_)["visits"].covariance_, untyped(alone.posterior_).covariance_, rtol=1e-8
        )
        assert net.report_.certificate.moment_gap < 1e-8
        penalty = 0.5 / 0.04 * float((alone.coefficients_**2).sum())
        np.testing.assert_allclose(net.report_.objective, net.report_.log_likelihood - penalty, rtol=1e-12)
    with pytest.raises(sf.OptionError, match="give one of them"):
        sf.BayesianNetwork(edges, nodes={"visits": sf.GLM("poisson", prior=prior)}, prior={"visits": prior}).fit(rows)
    with pytest.raises(sf.EstimateError, match="no posterior"):
        _ = untyped(sf.BayesianNetwork(edges, nodes={"visits": sf.GLM("poisson")}).fit(rows).node("visits").posterior_)


def test_fixed_nodes_stay_as_they_are(net: sf.BayesianNetwork, rows: dict[str, Any]) -> None:
    other = clinic(100, 9)
    fitted = sf.GLM("poisson").fit({name: rows[name] for name in ("sex", "region", "age")}, rows["visits"])
    numbers = {"coefficients": fitted.parameters_.to_dict()}
    for given_node in (net.node("visits"), fitted, numbers):
        kept = sf.BayesianNetwork(EDGES, nodes=kinds(), fixed={"visits": given_node}).fit(other)
        np.testing.assert_allclose(kept.node("visits").parameters_, net.node("visits").parameters_, rtol=1e-9)
        assert kept.n_params_ == 12
        assert not np.allclose(kept.node("ill").parameters_, net.node("ill").parameters_)
    same = sf.BayesianNetwork(EDGES, nodes=kinds(), fixed={"visits": net.node("visits")}).fit(other)
    np.testing.assert_array_equal(same.node("visits").parameters_, net.node("visits").parameters_)
    shaped = {"coefficients": [1.0, 0.1], "dispersion": 0.5}
    gamma = sf.BayesianNetwork(EDGES, nodes=kinds(), fixed={"cost": shaped}).fit(rows).node("cost")
    x, y = rows["visits"][:5], rows["cost"][:5]
    expected = stats.gamma.logpdf(y, 2.0, scale=0.5 * np.exp(1.0 + 0.1 * x))
    np.testing.assert_allclose(gamma.log_prob({"visits": x.astype(float), "cost": y}), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"coefficients": [1.0, 2.0]}, "positive 'dispersion'"),
        ({"coefficients": {"intercept": 1.0}, "dispersion": 1.0}, "expected 'intercept', 'visits'"),
        ({"coefficients": [1.0], "dispersion": 1.0}, "shape"),
        ({"coefficients": [1.0, 2.0], "dispersion": 1.0, "size": 2.0}, "has not"),
        ([1.0, 2.0], "given as"),
    ],
)
def test_numbers_that_are_no_node(values: Any, says: str, rows: dict[str, Any]) -> None:
    with pytest.raises(sf.OptionError, match=says):
        sf.BayesianNetwork(EDGES, nodes=kinds(), fixed={"cost": values}).fit(rows)


# --------------------------------------------------------------------------------------------------------------------
# Existence and certificate
# --------------------------------------------------------------------------------------------------------------------


def test_separation_is_in_the_certificate() -> None:
    rng = np.random.default_rng(4)
    a, b = rng.choice(["p", "q", "r"], 200), rng.choice(["u", "w"], 200)
    y = np.where(a == "p", "yes", rng.choice(["no", "yes"], 200))
    net = sf.BayesianNetwork([("a", "y"), ("b", "y")], nodes={"y": sf.GLM("binomial")}).fit({"a": a, "b": b, "y": y})
    certificate = net.report_.certificate
    assert certificate.exists is False
    assert set(certificate.directions) == {
        "coefficient intercept to +infinity in 'y'",
        "coefficient a[q] to -infinity in 'y'",
        "coefficient a[r] to -infinity in 'y'",
    }
    assert certificate.moment_gap < 1e-8
    # The limit: certain where a is p, and the fit of the other rows elsewhere.
    rest = a != "p"
    alone = sf.GLM("binomial").fit({"a": a[rest], "b": b[rest]}, y[rest])
    table = net.table("y")
    assert table.at(a="p", b="u", y="yes") == 1.0
    for state in ("u", "w"):
        expected = alone.predict_proba({"a": ["q", "r"], "b": [state, state]})[:, 1]
        np.testing.assert_allclose([table.at(a=s, b=state, y="yes") for s in ("q", "r")], expected, rtol=1e-7)
    assert net.query("a", {"y": "no"}).at(a="p") == 0.0
    assert np.isinf(net.node("y").standard_errors_["a[q]"])
    finite = sf.BayesianNetwork([("a", "y")], nodes={"y": sf.GLM("binomial", prior=sf.Normal(0.0, 4.0))})
    finite.fit({"a": a, "y": y})
    assert finite.report_.certificate.exists is not False
    assert np.isfinite(finite.node("y").parameters_).all()


def test_counts_that_are_all_zero_in_a_state_run_away() -> None:
    a = np.array(["p"] * 5 + ["q"] * 5)
    rows = {"a": a, "t": np.array([0, 0, 0, 0, 0, 1, 2, 3, 1, 0])}
    net = sf.BayesianNetwork([("a", "t")], nodes={"t": sf.GLM("poisson")}).fit(rows)
    assert net.report_.certificate.exists is False
    assert any("in 't'" in words for words in net.report_.certificate.directions)
    np.testing.assert_allclose(
        net.report_.log_likelihood, 10 * math.log(0.5) + stats.poisson.logpmf(rows["t"][5:], 1.4).sum()
    )
    assert net.sample(50, random_state=0)["t"][net.sample(50, random_state=0)["a"] == "p"].sum() == 0


@given(st.integers(0, 2**32 - 1), st.sampled_from(["binomial", "poisson", "multinomial", "gaussian"]))
@settings(max_examples=20, deadline=None)
def test_the_bound_of_what_is_left_is_never_exceeded(seed: int, family: Any) -> None:
    """At coefficients beside the maximum, the bound is above the likelihood at the maximum, and near it."""
    rng = np.random.default_rng(seed)
    x, a = rng.normal(size=120), rng.integers(0, 2, 120)
    columns = {
        "binomial": rng.integers(0, 2, 120),
        "poisson": rng.poisson(2.0, 120),
        "multinomial": rng.integers(0, 3, 120),
        "gaussian": rng.normal(size=120),
    }
    edges = [("x", "y"), ("a", "y")]
    net = sf.BayesianNetwork(edges, nodes={"y": sf.GLM(family)}).fit({"x": x, "a": a, "y": columns[family]})
    node, summary = net.node("y"), net.statistics_
    best = node.log_likelihood(summary)
    loss = node.loss_bound(summary)
    assert loss is not None
    assert loss < 1e-8
    assert node.gap(summary) < 1e-8
    moved = node.with_parameters(node.parameters() + 0.03 * rng.normal(size=len(node.parameters())))
    if family == "gaussian":  # Its variance goes with its coefficients.
        left = float(np.mean((columns[family] - moved.mean({"x": x, "a": a}, 120)) ** 2))
        moved = replace(moved, dispersion=left)
    value, loss = moved.log_likelihood(summary), moved.loss_bound(summary)
    assert loss is not None
    assert value + loss >= best - 1e-9
    assert loss <= 1.5 * (best - value) + 1e-9
    assert moved.gap(summary) > 1e-5


def test_a_fit_that_stops_early_says_so(rows: dict[str, Any]) -> None:
    model = sf.BayesianNetwork(EDGES[:3], nodes={"visits": sf.GLM("poisson", max_iter=1)})
    with pytest.warns(sf.ConvergenceWarning):
        model.fit(rows)
    assert not model.converged_
    assert any("did not come to rest" in words for words in model.report_.warnings)
    assert model.report_.certificate.moment_gap > 1e-6


# --------------------------------------------------------------------------------------------------------------------
# States and columns
# --------------------------------------------------------------------------------------------------------------------


def test_states_that_never_occur() -> None:
    rng = np.random.default_rng(8)
    rows = {"a": rng.choice(["p", "q"], 100), "y": rng.choice(["no", "yes"], 100)}
    states = {"a": ["o", "p", "q"]}

    def model(unseen: Any) -> sf.BayesianNetwork:
        return sf.BayesianNetwork([("a", "y")], nodes={"y": sf.GLM("binomial")}, states=states, unseen=unseen)

    net = model("uniform").fit(rows)
    share = (rows["y"][rows["a"] == "p"] == "yes").mean()
    np.testing.assert_allclose([net.table("y").at(a=s, y="yes") for s in ("o", "p")], share, rtol=1e-8)
    assert any("'o' of 'a' never occur" in words for words in net.report_.warnings)
    undefined = model("nan").fit(rows)
    assert np.isnan(undefined.table("y").at(a="o", y="yes"))
    np.testing.assert_allclose(undefined.table("y").at(a="p", y="yes"), share, rtol=1e-8)
    with pytest.raises(sf.EstimateError, match="never occur"):
        model("raise").fit(rows)
    with pytest.raises(sf.UnknownStateError, match="'z'"):
        net.score({"a": ["z"], "y": ["no"]})


def test_declared_states_keep_their_order(rows: dict[str, Any]) -> None:
    states = {"region": ["west", "south", "north"], "ill": ["yes", "no"]}
    net = sf.BayesianNetwork(EDGES, nodes=kinds(), states=states).fit(rows)
    assert net.node("ill").coefficients_.names == ("sex[m]", "region[south]", "region[north]")
    plain = sf.BayesianNetwork(EDGES, nodes=kinds()).fit(rows)
    # Success is the second state, so that the other order has the other sign.
    np.testing.assert_allclose(
        net.node("ill").coefficients_["sex[m]"], -plain.node("ill").coefficients_["sex[m]"], rtol=1e-8
    )
    said = {"ill": sf.GLM(sf.Bernoulli(states=("yes", "no")))}
    other = sf.BayesianNetwork(EDGES[3:5], nodes=said).fit(rows)
    np.testing.assert_allclose(
        other.node("ill").coefficients_["sex[m]"], net.node("ill").coefficients_["sex[m]"], rtol=1e-8
    )
    with pytest.raises(sf.OptionError, match="Declare them once"):
        sf.BayesianNetwork(EDGES[3:5], nodes=said, states={"ill": ["no", "yes"]}).fit(rows)


def test_counts_may_be_declared(rows: dict[str, Any]) -> None:
    nodes = {"visits": sf.GLM("poisson")}
    net = sf.BayesianNetwork(EDGES[:3], nodes=nodes, states={"visits": "count"}).fit(rows)
    plain = sf.BayesianNetwork(EDGES[:3], nodes=nodes).fit(rows)
    np.testing.assert_array_equal(net.node("visits").parameters_, plain.node("visits").parameters_)
    with pytest.raises(sf.OptionError, match="not one for counts"):
        sf.BayesianNetwork(EDGES[:3], states={"visits": "count"})


@pytest.mark.parametrize(
    ("nodes", "change", "says"),
    [
        ({"visits": sf.GLM("poisson")}, {"visits": np.full(300, -0.5)}, "at least 0"),
        ({"cost": sf.GLM("gamma")}, {"cost": np.zeros(300)}, "positive"),
        ({"region": sf.GLM("binomial")}, {}, "two states"),
        ({"ill": sf.GLM("multinomial")}, {"ill": np.full(300, "yes")}, "single state"),
        ({"ill": sf.GLM("binomial", formula="ill ~ sex")}, {}, "formula"),
        ({"cost": sf.GLM("multivariate_gaussian")}, {}, "vectors"),
        ({"visits": sf.GLM("poisson", categorical="age")}, {}, "states="),
    ],
)
def test_columns_and_options_that_a_node_does_not_take(
    nodes: Any, change: Any, says: str, rows: dict[str, Any]
) -> None:
    with pytest.raises(sf.SufficeError, match=says):
        sf.BayesianNetwork([*EDGES, ("sex", "region")], nodes=kinds() | nodes).fit(rows | change)


def test_one_node_alone_is_no_gap() -> None:
    y = np.array([0, 1, 3, 2, 4])
    net = sf.BayesianNetwork({"y": []}, nodes={"y": sf.GLM("poisson")}).fit({"y": y})
    np.testing.assert_allclose(math.exp(net.node("y").intercept_), 2.0, rtol=1e-10)
    np.testing.assert_allclose(net.report_.log_likelihood, float((y * math.log(2.0) - 2.0 - gammaln(y + 1)).sum()))
