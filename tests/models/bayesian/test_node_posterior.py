"""Posteriors of nodes and predictions without parameters: SciPy's laws, quadrature and exact identities."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

import suffice as sf
from suffice.models.bayesian.nodes.posterior import RowPosteriors

EDGES = [("a", "b"), ("a", "c"), ("b", "c")]
STATES = {"a": ["x", "y"], "b": [0, 1, 2], "c": [False, True]}


def rows_of(n: int, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 2, n)
    b = (a + rng.integers(0, 2, n)) % 3
    return {"a": np.array(["x", "y"])[a], "b": b, "c": rng.random(n) < 0.2 + 0.2 * b}


def row(rows: dict[str, Any], k: int) -> dict[str, Any]:
    return {name: column[k : k + 1] for name, column in rows.items()}


# -- tables ----------------------------------------------------------------------------------------------------------


def test_rows_of_a_table_are_dirichlet() -> None:
    rows = rows_of(40)
    net = sf.BayesianNetwork(EDGES, states=STATES, prior=1.5).fit(rows)
    posterior = net.node("b").posterior_
    for k, state in enumerate(["x", "y"]):
        alpha = np.array([1.5 + ((rows["a"] == state) & (rows["b"] == b)).sum() for b in range(3)])
        law = stats.dirichlet(alpha)
        np.testing.assert_allclose(posterior.at(a=state).alpha_, alpha)
        np.testing.assert_allclose(posterior.mean().values[k], law.mean(), rtol=1e-14)
        np.testing.assert_allclose(posterior.variance().values[k], law.var(), rtol=1e-13)
        np.testing.assert_allclose(posterior.mode().values[k], (alpha - 1) / (alpha - 1).sum(), rtol=1e-14)
        low, high = posterior.intervals(0.8)
        for b in range(3):
            ends = stats.beta(alpha[b], alpha.sum() - alpha[b]).interval(0.8)
            assert (low.values[k, b], high.values[k, b]) == pytest.approx(ends, rel=1e-10)
    np.testing.assert_array_equal(posterior.predictive().values, net.table("b").values)
    point = np.array([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]])
    expected = sum(stats.dirichlet(a).logpdf(p) for a, p in zip(posterior.alpha_.values, point, strict=True))
    assert posterior.log_prob(point) == pytest.approx(expected, rel=1e-12)
    drawn = posterior.sample(20_000, random_state=0)
    assert drawn.shape == (20_000, 2, 3)
    np.testing.assert_allclose(drawn.mean(axis=0), posterior.mean().values, atol=4e-3)
    np.testing.assert_allclose(drawn.var(axis=0), posterior.variance().values, rtol=0.05)
    np.testing.assert_allclose(net.standard_errors_["b"].values, np.sqrt(posterior.variance().values), rtol=1e-14)


def test_a_row_by_quadrature() -> None:
    net = sf.BayesianNetwork({"c": []}, states={"c": [0, 1]}, prior=0.7).fit({"c": [1, 1, 0, 1]})
    likelihood = [lambda p, k=k: p**3 * (1 - p) * stats.beta(0.7, 0.7).pdf(p) * p**k for k in range(3)]
    evidence, first, second = (integrate.quad(f, 0, 1, epsabs=1e-13)[0] for f in likelihood)
    posterior = net.posterior_["c"]
    assert math.exp(net.report_.log_evidence or 0.0) == pytest.approx(evidence, rel=1e-9)
    assert posterior.mean().at(c=1) == pytest.approx(first / evidence, rel=1e-9)
    assert posterior.variance().at(c=1) == pytest.approx(second / evidence - (first / evidence) ** 2, rel=1e-8)
    assert net.log_predictive({"c": [1]})[0] == pytest.approx(math.log(first / evidence), rel=1e-9)


@pytest.mark.parametrize("prior", [0.3, "bdeu", "jeffreys"])
def test_the_evidence_is_the_product_of_the_predictions(prior: Any) -> None:
    rows = rows_of(25, seed=3)
    net = sf.BayesianNetwork(EDGES, states=STATES, prior=prior)
    total = 0.0
    nothing = {name: column[:0] for name, column in rows.items()}
    net.fit(nothing)
    for k in range(25):
        total += net.log_predictive(row(rows, k))[0]
        net.partial_fit(row(rows, k))
    assert total == pytest.approx(net.report_.log_evidence, rel=1e-12)


def test_equivalent_networks_have_equal_evidence_under_bdeu_only() -> None:
    rows = rows_of(60, seed=1)
    states = {"a": STATES["a"], "b": STATES["b"]}
    forward, backward = [("a", "b")], [("b", "a")]

    def evidence(edges: Any, prior: Any) -> float:
        weight: dict[str, Any] = {} if prior == "k2" else {"equivalent_sample_size": 4.0}
        found = sf.BayesianNetwork(edges, states=states, prior=prior, **weight).fit(rows)
        assert found.report_.log_evidence is not None
        return found.report_.log_evidence

    assert evidence(forward, "bdeu") == pytest.approx(evidence(backward, "bdeu"), rel=1e-12)
    assert abs(evidence(forward, "k2") - evidence(backward, "k2")) > 1e-3


def test_a_table_with_rows_left_out_keeps_the_prior_elsewhere() -> None:
    rng = np.random.default_rng(0)
    parents = [f"p{k}" for k in range(11)]
    rows: dict[str, Any] = {name: rng.integers(0, 4, 30) for name in parents} | {"y": rng.integers(0, 2, 30)}
    states = {name: [0, 1, 2, 3] for name in parents} | {"y": [0, 1]}
    net = sf.BayesianNetwork({"y": parents}, states=states, prior=0.5).fit(rows)
    node = net.node("y")
    assert node.configurations is not None
    seen = {name: np.asarray(column[:1]) for name, column in rows.items()}
    assert math.exp(node.predictive_log_prob(seen)[0]) == pytest.approx(1.5 / 2.0)
    unseen = seen | {"p0": (seen["p0"] + 1) % 4}
    assert math.exp(node.predictive_log_prob(unseen)[0]) == pytest.approx(0.5)
    place = {name: int(column[0]) for name, column in unseen.items() if name != "y"}
    assert node.posterior_.variance().at(place).values == pytest.approx([0.25 / 2.0] * 2)
    assert node.standard_errors_.at(place).values == pytest.approx([math.sqrt(0.125)] * 2)


# -- linear-Gaussian nodes -------------------------------------------------------------------------------------------


def mixed_rows(n: int, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    g = rng.integers(0, 2, n)
    x = rng.normal(g, 1.0)
    return {"g": np.array(["u", "v"])[g], "x": x, "y": 1 + (0.5 + g) * x + rng.normal(0, 0.5, n)}


MIXED: dict[Any, Any] = {"g": [], "x": ["g"], "y": ["g", "x"]}
PRIORS = {
    "g": 1.0,
    "x": sf.LinearGaussianPrior(2.5, 1.0, on="all"),
    "y": sf.LinearGaussianPrior(3.0, 0.5, 0.2, on="all"),
}


def test_predictions_of_regressions_are_student() -> None:
    rows, more = mixed_rows(40), mixed_rows(5, seed=7)
    net = sf.BayesianNetwork(MIXED, states={"g": ["u", "v"]}, prior=PRIORS).fit(rows)
    expected = np.log([net.table("g").at(g=str(g)) for g in more["g"]])
    for k in range(5):
        state = str(more["g"][k])
        for node, parents in (("x", []), ("y", [more["x"][k]])):
            law = net.node(node).posterior_.at(g=state)
            design = np.array([1.0, *parents])
            scale = math.sqrt(law.beta_ / law.alpha_ * (1 + design @ law.spread_ @ design))
            expected[k] += stats.t(2 * law.alpha_, design @ law.weights_, scale).logpdf(more[node][k])
            same = net.node(node).posterior_.predictive(parents, g=state).log_prob(more[node][k])
            assert same == pytest.approx(stats.t(2 * law.alpha_, design @ law.weights_, scale).logpdf(more[node][k]))
    np.testing.assert_allclose(net.log_predictive(more), expected, rtol=1e-11)


def test_the_evidence_of_a_mixed_network_is_the_product_of_its_predictions() -> None:
    rows = mixed_rows(15, seed=2)
    net = sf.BayesianNetwork(MIXED, states={"g": ["u", "v"]}, prior=PRIORS)
    net.fit({"g": rows["g"][:0], "x": rows["x"][:0], "y": rows["y"][:0]})
    total = 0.0
    for k in range(15):
        total += net.log_predictive(row(rows, k))[0]
        net.partial_fit(row(rows, k))
    assert total == pytest.approx(net.report_.log_evidence, rel=1e-10)


def test_moments_of_a_table_of_regressions() -> None:
    net = sf.BayesianNetwork(MIXED, states={"g": ["u", "v"]}, prior=PRIORS).fit(mixed_rows(40))
    posterior = net.posterior_["y"]
    law = posterior.at(g="v")
    assert posterior.mean()["variance"][1] == pytest.approx(law.mean()["variance"])
    assert posterior.mode()["variance"][1] == pytest.approx(law.mode()["variance"])
    spread = stats.invgamma(law.alpha_, scale=law.beta_)
    assert posterior.variance()["variance"][1] == pytest.approx(spread.var(), rel=1e-12)
    weights = stats.t(2 * law.alpha_, 0, np.sqrt(law.beta_ / law.alpha_ * np.diag(law.spread_))).var()
    np.testing.assert_allclose(posterior.variance()["weights"][1], weights, rtol=1e-12)
    errors = net.standard_errors_["y"]
    np.testing.assert_allclose(errors.values[1], np.sqrt([*weights, spread.var()]), rtol=1e-11)
    point = (posterior.weights_ + 0.1, np.array([0.3, 0.4]))
    expected = sum(posterior.at(g=g).log_prob((point[0][k], point[1][k])) for k, g in enumerate("uv"))
    assert posterior.log_prob(point) == pytest.approx(expected, rel=1e-12)
    drawn = posterior.sample(4000, random_state=1)
    assert drawn["weights"].shape == (4000, 2, 2)
    np.testing.assert_allclose(drawn["weights"].mean(axis=0), posterior.mean()["weights"], atol=0.02)
    np.testing.assert_allclose(drawn["variance"].mean(axis=0), posterior.mean()["variance"], rtol=0.05)


# -- what there is not -----------------------------------------------------------------------------------------------


def test_what_has_no_posterior() -> None:
    rows = rows_of(30)
    net = sf.BayesianNetwork(EDGES, states=STATES)
    with pytest.raises(sf.NotFittedError):
        _ = net.posterior_
    with pytest.raises(sf.NotFittedError):
        _ = net.standard_errors_
    net.fit(rows)
    with pytest.raises(sf.EstimateError, match="No node was fitted with a conjugate prior"):
        _ = net.posterior_
    with pytest.raises(sf.EstimateError, match="'a', 'b', 'c' have no posterior"):
        net.log_predictive(rows)
    some = sf.BayesianNetwork(EDGES, states=STATES, prior={"b": 1.0}).fit(rows)
    assert list(some.posterior_) == ["b"]
    assert some.report_.log_evidence is None
    assert some.report_.estimate == "maximum likelihood and posterior mean"
    with pytest.raises(sf.EstimateError, match="'a', 'c' have no posterior"):
        some.log_predictive(rows)


def test_rows_with_gaps_leave_no_conjugate_posterior() -> None:
    rows = rows_of(30)
    holes = rows | {"b": [None if k % 5 == 0 else int(b) for k, b in enumerate(rows["b"])]}
    net = sf.BayesianNetwork(EDGES, states=STATES, prior=1.0).fit(holes)
    for ask in (lambda: net.posterior_, lambda: net.log_predictive(rows), lambda: net.node("b").posterior_):
        with pytest.raises(sf.EstimateError, match="so the posterior has no closed form"):
            ask()
    assert list(net.standard_errors_) == list(net.nodes)


def test_predictions_take_complete_rows_and_known_nodes() -> None:
    rows = rows_of(30)
    net = sf.BayesianNetwork(EDGES, states=STATES, prior=1.0, fixed={"a": [0.25, 0.75]}).fit(rows)
    parts = {name: net.table(name) for name in net.nodes}
    expected = [
        math.log(
            parts["a"].at(a=str(a)) * parts["b"].at(a=str(a), b=int(b)) * parts["c"].at(a=str(a), b=int(b), c=bool(c))
        )
        for a, b, c in zip(rows["a"], rows["b"], rows["c"], strict=True)
    ]
    np.testing.assert_allclose(net.log_predictive(rows), expected, rtol=1e-12)
    assert list(net.posterior_) == ["b", "c"]
    assert list(net.standard_errors_) == ["b", "c"]
    with pytest.raises(sf.MissingColumnError, match="lack the columns 'c'"):
        net.log_predictive({"a": ["x"], "b": [0]})
    with pytest.raises(sf.MissingValueError, match="'c' have missing values"):
        net.log_predictive({"a": ["x"], "b": [0], "c": [None]})


def test_predictions_after_very_many_rows_are_normal_to_the_last_digits() -> None:
    rng = np.random.default_rng(4)
    x, y, weights, alpha = np.ones((5, 1)), rng.normal(size=5), rng.normal(size=(5, 1)), np.full(5, 1e14)
    spread = rng.uniform(0.1, 1.0, size=(5, 1, 1))
    found = RowPosteriors(weights, spread, alpha, 3.0 * alpha).log_density(x, y)
    expected = stats.norm.logpdf(y, weights[:, 0], np.sqrt(3.0 * (1 + spread[:, 0, 0])))
    np.testing.assert_allclose(found, expected, rtol=1e-12)
