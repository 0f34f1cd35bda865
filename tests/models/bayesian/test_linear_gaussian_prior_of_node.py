"""Linear-Gaussian nodes with priors: against raw maximisers, sequential prediction, and other directions of an edge."""

import gzip
import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import integrate, optimize, stats

import suffice as sf
from network_files import shared
from regression_data import codes_of, domain_of, learn, mixed, summarised
from suffice.models.bayesian.nodes.linear_gaussian_learner import JointPrior, LinearGaussianLearner
from untyped import untyped

Floats = NDArray[np.float64]


def log_posterior(prior: sf.LinearGaussianPrior, frame: pd.DataFrame, parents: Sequence[str]) -> Any:
    """Prior times likelihood as a function of (weights, log variance), from the densities of scipy."""
    x = np.column_stack([np.ones(len(frame)), *(frame[name] for name in parents)])

    def at(point: Floats) -> float:
        weights, variance = point[:-1], math.exp(point[-1])
        held = weights if prior.on_ == "all" else weights[1:]
        value = stats.invgamma(prior.alpha_, scale=prior.beta_).logpdf(variance)
        value += stats.norm(prior.mean_, math.sqrt(variance)).logpdf(held).sum()
        return float(value + stats.norm(x @ weights, math.sqrt(variance)).logpdf(frame["y"]).sum())

    return at


@pytest.mark.parametrize("on", ["parents", "all"])
@pytest.mark.parametrize("rows", [1, 2, 25])
def test_map_maximises_the_raw_posterior(on: str, rows: int) -> None:
    prior = sf.LinearGaussianPrior(alpha=1.5, beta=0.8, mean=0.4, on=on)
    frame = mixed(rows, seed=rows)
    node = learn(frame, ("a", "b", "y"), prior=prior, estimate="map")
    objective = log_posterior(prior, frame, ("a", "b"))
    search: Any = optimize.minimize
    # The mode in the variance itself, not in its logarithm: no Jacobian.
    found = search(lambda p: -objective(p), [*node.weights_, math.log(node.variance_)], method="BFGS", tol=1e-10)
    start = search(lambda p: -objective(p), np.zeros(4), method="BFGS", tol=1e-10)
    assert -start.fun == pytest.approx(-found.fun, rel=1e-9)
    np.testing.assert_allclose(node.weights_, start.x[:-1], rtol=1e-4, atol=1e-5)
    assert node.variance_ == pytest.approx(math.exp(start.x[-1]), rel=1e-4)
    assert objective(np.array([*node.weights_, math.log(node.variance_)])) >= -start.fun - 1e-12
    assert node.gap(summarised(frame, LinearGaussianLearner(prior), node.domain)) < 1e-13


@pytest.mark.parametrize("on", ["parents", "all"])
def test_the_stated_formula(on: str) -> None:
    alpha, beta, mu = 2.0, 1.5, -0.3
    frame = mixed(40)
    node = learn(frame, ("a", "b", "y"), prior=sf.LinearGaussianPrior(alpha, beta, mu, on), estimate="map")
    x = np.column_stack([np.ones(40), frame.a, frame.b])
    d = np.diag([1.0 if on == "all" else 0.0, 1.0, 1.0])
    weights = np.linalg.solve(x.T @ x + d, x.T @ frame.y + d @ np.full(3, mu))
    np.testing.assert_allclose(node.weights_, weights, rtol=1e-10)
    squares = ((frame.y - x @ weights) ** 2).sum() + (np.diag(d) * (weights - mu) ** 2).sum() + 2 * beta
    held = 3 if on == "all" else 2
    assert node.variance_ == pytest.approx(squares / (40 + held + 2 * alpha + 2), rel=1e-12)
    mean = learn(frame, ("a", "b", "y"), prior=sf.LinearGaussianPrior(alpha, beta, mu, on))
    shape = alpha + (40 + held - 3) / 2
    assert mean.variance_ == pytest.approx(squares / 2 / (shape - 1), rel=1e-12)
    spread = np.linalg.inv(x.T @ x + d)
    np.testing.assert_allclose(mean.standard_errors_, np.sqrt(mean.variance_ * np.diag(spread)), rtol=1e-10)
    summary = summarised(frame, LinearGaussianLearner(), mean.domain)
    assert mean.gap(summary) < 1e-13


def test_the_two_readings_of_the_prior_differ() -> None:
    frame = mixed(10)
    flat = learn(frame, ("a", "y"), prior=sf.LinearGaussianPrior(2.0, 1.0, 3.0))
    held = learn(frame, ("a", "y"), prior=sf.LinearGaussianPrior(2.0, 1.0, 3.0, on="all"))
    assert abs(flat.weights_[0] - held.weights_[0]) > 0.1
    assert learn(frame, ("y",), prior=sf.LinearGaussianPrior(2.0, 1.0)).weights_[0] == pytest.approx(frame.y.mean())


def test_a_root_is_a_normal_law_with_its_conjugate_prior() -> None:
    frame = mixed(30)
    for estimate in ("mean", "map"):
        node = learn(frame, ("y",), prior=sf.LinearGaussianPrior(2.0, 1.0, 0.5, "all"), estimate=estimate)
        law = sf.Normal(prior=sf.NormalInverseGamma(2.0, 1.0, gamma=1.0, delta=0.5), estimate=estimate).fit(
            frame[["y"]]
        )
        assert node.weights_[0] == pytest.approx(law.mean_, rel=1e-13)
        assert node.variance_ == pytest.approx(law.variance_, rel=1e-13)
        assert node.log_evidence() == pytest.approx(law.report_.log_evidence, rel=1e-12)


# -- evidence ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("on", ["parents", "all"])
@pytest.mark.parametrize("names", [("y",), ("a", "b", "y"), ("g", "a", "y")])
def test_evidence_is_the_product_of_predictions(on: str, names: tuple[str, ...]) -> None:
    prior = sf.LinearGaussianPrior(1.5, 0.8, 0.2, on)
    frame = mixed(12)
    states = {"g": list("uvw")}
    total = 0.0
    for row in range(12):
        before = frame[:row]
        domain = domain_of(frame, names, states)
        columns = codes_of(frame[row : row + 1], domain)
        first = (
            on == "parents" and ("g" not in names or frame.g[row] not in set(before.g)) and (row == 0 or "g" in names)
        )
        if not first:  # With a flat intercept the first row of a configuration has density one.
            learner = LinearGaussianLearner(prior, estimate="map")
            node = learner.learn(domain, summarised(before, learner, domain))
            total += node.predictive_log_prob(columns)[0]
    whole = learn(frame, names, states, prior=prior)
    assert whole.log_evidence() == pytest.approx(total, rel=1e-11)


def test_evidence_by_quadrature() -> None:
    frame = mixed(4)
    prior = sf.LinearGaussianPrior(2.0, 1.5, 0.0, "all")
    objective = log_posterior(prior, frame, ("a",))

    def given_variance(log_variance: float) -> float:
        # The weights by a normal integral around their mode, which is exact for a quadratic.
        x = np.column_stack([np.ones(4), frame.a])
        precision = (x.T @ x + np.eye(2)) / math.exp(log_variance)
        mode = np.linalg.solve(x.T @ x + np.eye(2), x.T @ frame.y)
        peak = objective(np.array([*mode, log_variance]))
        return math.exp(peak + math.log(2 * math.pi) - 0.5 * np.linalg.slogdet(precision)[1] + log_variance)

    expected, _ = integrate.quad(given_variance, -12, 12, epsabs=1e-14, limit=200)
    node = learn(frame, ("a", "y"), prior=prior)
    assert node.log_evidence() == pytest.approx(math.log(expected), rel=1e-9)


def network_evidence(frame: pd.DataFrame, parents: dict[str, tuple[str, ...]], law: sf.NormalWishart) -> float:
    prior = JointPrior(law, tuple(parents))
    found = [learn(frame, (*above, name), prior=prior).log_evidence() for name, above in parents.items()]
    return sum(value for value in found if value is not None)


LAW = sf.NormalWishart(
    mean=[0.5, -1.0, 2.0], strength=1.5, dof=4.5, inverse_scale=[[2.0, 0.3, 0.1], [0.3, 1.0, -0.2], [0.1, -0.2, 3.0]]
)


def test_the_direction_of_an_edge_does_not_change_the_evidence() -> None:
    frame = mixed(20)[["a", "b", "y"]]
    nothing: tuple[str, ...] = ()
    pairs = [
        ({"a": nothing, "b": ("a",), "y": nothing}, {"a": ("b",), "b": nothing, "y": nothing}),
        ({"a": nothing, "b": ("a",), "y": ("b",)}, {"a": ("b",), "b": ("y",), "y": nothing}),
        ({"a": nothing, "b": ("a",), "y": ("b", "a")}, {"a": ("b", "y"), "b": ("y",), "y": nothing}),
    ]
    values = []
    for one, other in pairs:
        left, right = network_evidence(frame, one, LAW), network_evidence(frame, other, LAW)
        assert left == pytest.approx(right, rel=1e-12)
        values.append(left)
    assert len({round(value, 6) for value in values}) == 3
    collider = {"a": nothing, "b": ("a", "y"), "y": nothing}
    assert network_evidence(frame, collider, LAW) != pytest.approx(values[1], rel=1e-6)


def test_the_complete_network_has_the_evidence_of_the_joint_law() -> None:
    frame = mixed(9)[["a", "b", "y"]]
    rows, total, law = frame.to_numpy(), 0.0, LAW
    for row in rows:  # one Student-t prediction after the other
        df = law.dof_ - 2
        shape = law.inverse_scale_ * (law.strength_ + 1) / (law.strength_ * df)
        total += float(stats.multivariate_t(law.mean_, shape, df=df).logpdf(row))  # type: ignore[arg-type]
        away = row - law.mean_
        law = sf.NormalWishart(
            mean=law.mean_ + away / (law.strength_ + 1),
            strength=law.strength_ + 1,
            dof=law.dof_ + 1,
            inverse_scale=law.inverse_scale_ + law.strength_ / (law.strength_ + 1) * np.outer(away, away),
        )
    complete: dict[str, tuple[str, ...]] = {"a": (), "b": ("a",), "y": ("a", "b")}
    assert network_evidence(frame, complete, LAW) == pytest.approx(total, rel=1e-12)


def test_joint_prior_estimates() -> None:
    frame = mixed(15)[["a", "b", "y"]]
    prior = JointPrior(LAW, ("a", "b", "y"))
    node = learn(frame, ("a", "b", "y"), prior=prior)
    posterior = untyped(sf.MultivariateNormal(prior=LAW).fit(frame).posterior_)
    scale, mean = posterior.inverse_scale_, posterior.mean_
    slopes = np.linalg.solve(scale[:2, :2], scale[:2, 2])
    np.testing.assert_allclose(node.weights_, [mean[2] - slopes @ mean[:2], *slopes], rtol=1e-11)
    left = scale[2, 2] - slopes @ scale[:2, 2]
    assert node.variance_ == pytest.approx(left / 2 / (posterior.dof_ / 2 - 1), rel=1e-11)
    mode = learn(frame, ("a", "b", "y"), prior=prior, estimate="map")
    assert mode.variance_ == pytest.approx(untyped(mode.posterior_).mode()["variance"], rel=1e-13)
    law = untyped(node.posterior_)
    draws = posterior.sample(100_000, random_state=0)
    covariance = np.linalg.inv(draws["precision"])
    slope = np.linalg.solve(covariance[:, :2, :2], covariance[:, :2, 2:])[..., 0]
    variance = covariance[:, 2, 2] - (slope * covariance[:, :2, 2]).sum(axis=1)
    assert variance.mean() == pytest.approx(law.mean()["variance"], rel=0.02)
    intercept = draws["mean"][:, 2] - (slope * draws["mean"][:, :2]).sum(axis=1)
    assert np.var(intercept) == pytest.approx(node.standard_errors_[0] ** 2, rel=0.03)
    with pytest.raises(sf.OptionError, match="3 dimensions; the network has 2 real columns"):
        JointPrior(LAW, ("a", "b"))


def test_bge_score_published_for_gaussian_test() -> None:
    with gzip.open(shared("tables/gaussian.test.csv.gz"), "rt") as stream:
        frame = pd.read_csv(stream)
    expected = json.loads(shared("tables/expected.json").read_text())["bayesnet_fits"]["gaussian.test"]
    n = frame.shape[1]
    # That score's defaults: means as observed with strength 1, dof n + 2, and T = t I with t = (dof - n - 1) / 2.
    law = sf.NormalWishart(frame.mean().to_numpy(), strength=1.0, dof=n + 2.0, inverse_scale=0.5 * np.eye(n))
    parents = {name: tuple(expected["mle"][name]["parents"]) for name in frame.columns}
    assert network_evidence(frame, parents, law) == pytest.approx(expected["published"]["bge"], rel=1e-12)


# -- intervals, and the edge -------------------------------------------------------------------------------------------


def test_intervals_are_those_of_student_and_inverse_gamma() -> None:
    frame = mixed(30)
    node = learn(frame, ("g", "a", "y"), {"g": list("uvwz")}, prior=sf.LinearGaussianPrior(2.0, 1.0, on="all"))
    low, high = node.credible_intervals(0.9)
    law = node.posterior_distribution(g="v")
    scale = np.sqrt(law.beta_ / law.alpha_ * np.diag(law.spread_))
    expected = stats.t(2 * law.alpha_, law.weights_, scale).interval(0.9)
    found = [[table.at(g="v", coefficient=name) for name in ("(intercept)", "a")] for table in (low, high)]
    np.testing.assert_allclose(found, expected, rtol=1e-10)  # type: ignore[arg-type]
    variance = stats.invgamma(law.alpha_, scale=law.beta_).interval(0.9)
    ends = [table.at(g="v", coefficient="(variance)") for table in (low, high)]
    np.testing.assert_allclose(ends, variance, rtol=1e-10)
    # A state without rows keeps the prior.
    prior = stats.t(4.0, 0.0, math.sqrt(0.5)).interval(0.9)
    np.testing.assert_allclose([table.at(g="z", coefficient="a") for table in (low, high)], prior, rtol=1e-10)
    assert node.at(g="z") == pytest.approx({"(intercept)": 0.0, "a": 0.0, "(variance)": 1.0})
    assert node.posterior_distribution(g="z").alpha_ == 2.0
    assert node.standard_errors_[3].tolist() == pytest.approx([1.0, 1.0])
    table = untyped(node.posterior_)
    assert table.at(g="v").weights_.tolist() == law.weights_.tolist()
    intervals = table.intervals(0.9)
    np.testing.assert_allclose(intervals["weights"][1].T, expected, rtol=1e-10)  # type: ignore[arg-type]
    np.testing.assert_allclose(intervals["variance"][1], variance, rtol=1e-10)


def test_no_rows() -> None:
    empty = pd.DataFrame({"a": np.empty(0), "y": np.empty(0)})
    node = learn(empty, ("a", "y"), prior=sf.LinearGaussianPrior(3.0, 4.0, 0.5, "all"))
    assert node.at() == pytest.approx({"(intercept)": 0.5, "a": 0.5, "(variance)": 2.0})
    assert node.log_evidence() == pytest.approx(0.0, abs=1e-13)
    joint = learn(empty, ("a", "y"), prior=JointPrior(LAW.marginal([0, 1]), ("a", "y")))
    assert joint.weights_[1] == pytest.approx(0.3 / 2.0)
    assert joint.log_evidence() == pytest.approx(0.0, abs=1e-13)
    with pytest.raises(sf.EstimateError, match="a prior= that holds every weight"):
        learn(empty, ("a", "y"), prior=sf.LinearGaussianPrior(3.0, 4.0))
    discrete = pd.DataFrame({"g": np.empty(0, dtype=object), "y": np.empty(0)})
    states = {"g": ["u", "v"]}
    held = learn(discrete, ("g", "y"), states, prior=sf.LinearGaussianPrior(3.0, 4.0, 0.5, "all"))
    assert held.weights_.tolist() == [[0.5], [0.5]]
    with pytest.raises(sf.EstimateError, match="its intercept has no prior"):
        learn(discrete, ("g", "y"), states, prior=sf.LinearGaussianPrior(3.0, 4.0))


def test_states_without_rows_and_a_flat_intercept() -> None:
    frame = mixed(30)
    prior = sf.LinearGaussianPrior(2.0, 1.0)
    node = learn(frame, ("g", "a", "y"), {"g": list("uvwz")}, prior=prior)
    assert node.at(g="z") == pytest.approx(learn(frame, ("a", "y"), prior=prior).at(), rel=1e-12)
    assert "their intercept has no prior, so they use all rows together" in node.notes[0]
    assert np.isnan(node.credible_intervals()[0].at(g="z", coefficient="a"))
    with pytest.raises(sf.EstimateError, match="on='all'"):
        node.posterior_distribution(g="z")


def test_a_posterior_mean_that_does_not_exist() -> None:
    frame = mixed(1)
    prior = sf.LinearGaussianPrior(alpha=0.4, beta=1.0, on="all")
    with pytest.raises(sf.EstimateError, match="has no posterior mean"):
        learn(frame, ("a", "y"), prior=prior)
    node = learn(frame, ("a", "y"), prior=prior, estimate="map")
    assert np.isinf(node.standard_errors_).all()


def test_priors_keep_dependent_columns_and_perfect_fits_apart_from_the_edge() -> None:
    a = np.linspace(0, 1, 9)
    frame = pd.DataFrame({"a": a, "b": 2 * a, "y": 3 * a + 1})
    node = learn(frame, ("a", "b", "y"), prior=sf.LinearGaussianPrior(2.0, 1e-3))
    assert node.exists
    assert node.variance_ > 0
    assert node.notes == ()
    assert node.weights_[2] == pytest.approx(2 * node.weights_[1], rel=1e-9)
