"""The prior of a linear-Gaussian node, as a law and as a prior; and the law of weights and variance."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

import suffice as sf
from suffice.families.regression_distribution import RegressionDistribution
from suffice.sources import open_source, summarize_source
from suffice.statistics import Moments, Summary


def moments(**columns: Any) -> Summary:
    """The moments of real columns in the order given."""
    source = open_source({name: np.asarray(values, dtype=float) for name, values in columns.items()})
    return summarize_source(source, source.infer(), (Moments(tuple(columns)),))


def by_scipy(prior: sf.LinearGaussianPrior, weights: Any, variance: float) -> float:
    held = weights if prior.on_ == "all" else weights[1:]
    found = stats.invgamma(prior.alpha_, scale=prior.beta_).logpdf(variance)
    return float(found + stats.norm(prior.mean_, math.sqrt(variance)).logpdf(held).sum())


@pytest.mark.parametrize("on", ["parents", "all"])
def test_density_is_the_product_of_its_parts(on: str) -> None:
    prior = sf.LinearGaussianPrior(alpha=2.5, beta=1.5, mean=0.3, on=on)
    for weights in ([0.7], [0.7, -1.0, 2.0]):
        found = prior.log_prob({"weights": weights, "variance": 0.8})
        assert found == pytest.approx(by_scipy(prior, np.array(weights), 0.8), rel=1e-14)
    many = prior.log_prob((np.array([[0.1, 0.2], [0.3, 0.4]]), np.array([0.5, -1.0])))
    np.testing.assert_allclose(many, [by_scipy(prior, np.array([0.1, 0.2]), 0.5), -np.inf])


def test_a_root_is_normal_inverse_gamma_with_gamma_one() -> None:
    prior = sf.LinearGaussianPrior(alpha=2.0, beta=1.0, mean=0.5, on="all")
    twin = sf.NormalInverseGamma(alpha=2.0, beta=1.0, gamma=1.0, delta=0.5)
    assert prior.log_prob(([0.2], 0.7)) == pytest.approx(twin.log_prob((0.2, 0.7)), rel=1e-14)
    assert prior.mode()["variance"] == pytest.approx(twin.mode()["variance"], rel=1e-15)
    summary = moments(y=[1.0, 2.5, 0.3])
    found, expected = prior.posterior(summary), twin.posterior(summary)
    assert found.mean()["variance"] == pytest.approx(expected.mean()["variance"], rel=1e-14)
    assert found.weights_[0] == pytest.approx(expected.delta_, rel=1e-14)
    np.testing.assert_allclose(found.intervals(0.9)["variance"], expected.intervals(0.9)["variance"], rtol=1e-12)
    np.testing.assert_allclose(found.intervals(0.9)["weights"][0], expected.intervals(0.9)["mean"], rtol=1e-12)


@pytest.mark.parametrize("on", ["parents", "all"])
def test_posterior_is_prior_times_likelihood(on: str) -> None:
    prior = sf.LinearGaussianPrior(alpha=1.5, beta=2.0, mean=-0.2, on=on)
    x, y = np.array([0.1, 1.2, -0.7, 2.0]), np.array([1.0, 2.5, 0.3, 3.0])
    law = prior.posterior(moments(x=x, y=y))
    points = [([0.3, 0.9], 0.5), ([1.0, 1.0], 1.5), ([-2.0, 0.0], 4.0)]
    gaps = []
    for weights, variance in points:
        fit = stats.norm(weights[0] + weights[1] * x, math.sqrt(variance)).logpdf(y).sum()
        gaps.append(law.log_prob((weights, variance)) - by_scipy(prior, np.array(weights), variance) - fit)
    np.testing.assert_allclose(gaps, gaps[0], rtol=1e-12)


def test_slope_vanishes_at_the_mode_and_follows_the_density() -> None:
    prior = sf.LinearGaussianPrior(alpha=2.0, beta=3.0, mean=0.4, on="all")
    mode = prior.mode(parents=2)
    np.testing.assert_allclose(prior.stationarity(mode), np.zeros(4), atol=1e-14)
    weights, variance, step = np.array([0.1, -0.5]), 0.9, 1e-6
    for on in ("parents", "all"):
        prior = sf.LinearGaussianPrior(alpha=2.0, beta=3.0, mean=0.4, on=on)
        slopes = []
        for k in range(3):
            ends = []
            for sign in (1, -1):
                point = np.array([*weights, variance])
                point[k] += sign * step
                ends.append(prior.log_prob((point[:2], point[2])))
            slopes.append((ends[0] - ends[1]) / (2 * step))
        np.testing.assert_allclose(prior.stationarity((weights, variance)), slopes, rtol=1e-7, atol=1e-8)


def test_a_flat_intercept_has_no_law_before_the_first_row() -> None:
    prior = sf.LinearGaussianPrior(alpha=2.0, beta=1.0)
    for ask in (prior.mean, prior.mode, prior.sample):
        with pytest.raises(sf.EstimateError, match="on='all'"):
            ask()
    empty = moments(y=[])
    with pytest.raises(sf.EstimateError, match="until it has seen a row"):
        prior.posterior(empty)
    assert sf.LinearGaussianPrior(2.0, 1.0, on="all").posterior(empty).alpha_ == 2.0


def test_options_are_checked_and_saved(tmp_path: Any) -> None:
    with pytest.raises(sf.OptionError, match="on is 'none'"):
        sf.LinearGaussianPrior(1.0, 1.0, on="none")
    with pytest.raises(sf.OptionError, match="alpha is 0"):
        sf.LinearGaussianPrior(0, 1.0)
    prior = sf.LinearGaussianPrior(1.0, 2.0, 0.5, "all")
    assert prior.get_params() == {"alpha": 1.0, "beta": 2.0, "mean": 0.5, "on": "all"}
    prior.write(tmp_path / "prior.json")
    assert sf.read(tmp_path / "prior.json").parameters_ == prior.parameters_
    assert repr(prior) == "LinearGaussianPrior(alpha=1.0, beta=2.0, mean=0.5, on='all')"


# -- the law of weights and variance -----------------------------------------------------------------------------------

LAW = RegressionDistribution(weights=[0.5, -1.0], spread=[[0.8, 0.2], [0.2, 0.4]], alpha=3.0, beta=2.0)


def test_law_against_scipy() -> None:
    weights, variance = np.array([0.1, 0.4]), 0.7
    expected = stats.invgamma(3.0, scale=2.0).logpdf(variance)
    expected += stats.multivariate_normal(LAW.weights_, variance * LAW.spread_).logpdf(weights)
    assert LAW.log_prob((weights, variance)) == pytest.approx(expected, rel=1e-13)
    assert LAW.log_prob((weights, -1.0)) == -np.inf
    with pytest.raises(sf.OptionError, match="intercept first"):
        LAW.log_prob(([1.0], 1.0))
    assert LAW.mean()["variance"] == 1.0
    with pytest.raises(sf.EstimateError, match="needs alpha > 1"):
        RegressionDistribution([0.0], [[1.0]], 1.0, 1.0).mean()


def test_predictive_is_the_mixture_of_normals() -> None:
    x, y = 1.5, 0.3
    row = np.array([1.0, x])

    def integrand(variance: float) -> float:
        spread = math.sqrt(variance * (1 + row @ LAW.spread_ @ row))
        return float(stats.invgamma(3.0, scale=2.0).pdf(variance) * stats.norm(row @ LAW.weights_, spread).pdf(y))

    expected, _ = integrate.quad(integrand, 0, np.inf, epsabs=1e-12)
    assert LAW.predictive([x]).log_prob(y) == pytest.approx(math.log(expected), rel=1e-9)
    with pytest.raises(sf.OptionError, match="the regression has 1 parents"):
        LAW.predictive([1.0, 2.0])


def test_samples_have_the_moments_of_the_law() -> None:
    draws = LAW.sample(200_000, random_state=0)
    np.testing.assert_allclose(draws["weights"].mean(axis=0), LAW.weights_, atol=0.01)
    np.testing.assert_allclose(draws["variance"].mean(), 1.0, atol=0.01)
    np.testing.assert_allclose(np.cov(draws["weights"].T), LAW.spread_ * 1.0, atol=0.02)
    low, high = LAW.intervals(0.8)["weights"][1]
    assert ((draws["weights"][:, 1] > low) & (draws["weights"][:, 1] < high)).mean() == pytest.approx(0.8, abs=0.005)
    low, high = LAW.intervals(0.8)["variance"]
    assert ((draws["variance"] > low) & (draws["variance"] < high)).mean() == pytest.approx(0.8, abs=0.005)
