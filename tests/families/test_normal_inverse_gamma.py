"""The normal-inverse-gamma law against scipy.stats, sequential predictives, quadrature and a generic maximiser."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

import suffice as sf
from families.law_oracles import Grid, maximise, weighted
from untyped import untyped

PRIOR = sf.NormalInverseGamma(alpha=2.5, beta=1.7, gamma=0.8, delta=0.4)
X = np.array([1.5, -0.25, 3.0, 2.0, 2.25, -1.0, 0.5])
W = np.array([1, 2, 1, 3, 1, 1, 2])


def scipy_log_prob(prior: sf.NormalInverseGamma, mean: float, variance: float) -> float:
    spread = stats.invgamma(prior.alpha_, scale=prior.beta_).logpdf(variance)
    return float(spread + stats.norm(prior.delta_, math.sqrt(variance / prior.gamma_)).logpdf(mean))


def test_density_equals_a_normal_times_an_inverse_gamma() -> None:
    for mean, variance in ((0.0, 1.0), (3.0, 0.2), (-1.0, 40.0)):
        point = {"mean": mean, "variance": variance}
        assert PRIOR.log_prob(point) == pytest.approx(scipy_log_prob(PRIOR, mean, variance), rel=1e-12)
        assert PRIOR.log_prob((mean, variance)) == PRIOR.log_prob(point)
    both = PRIOR.log_prob((np.array([0.0, 3.0]), np.array([1.0, 0.2])))
    np.testing.assert_allclose(both, [scipy_log_prob(PRIOR, 0.0, 1.0), scipy_log_prob(PRIOR, 3.0, 0.2)], rtol=1e-12)
    np.testing.assert_array_equal(PRIOR.log_prob((np.zeros(3), np.array([0.0, -1.0, np.nan]))), np.full(3, -np.inf))
    with pytest.raises(sf.OptionError, match="coordinates"):
        PRIOR.log_prob((1.0, 2.0, 3.0))


def test_mode_is_taken_in_mean_and_variance() -> None:
    best, value = maximise(lambda p: scipy_log_prob(PRIOR, p[0], math.exp(p[1])), [0.0, 0.0])
    mode = PRIOR.mode()
    assert mode["mean"] == pytest.approx(best[0], abs=1e-6)
    assert mode["variance"] == pytest.approx(math.exp(best[1]), rel=1e-6)
    assert mode["variance"] == pytest.approx(1.7 / (2.5 + 1.5), rel=1e-15)
    assert PRIOR.log_prob(mode) == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(PRIOR.stationarity(mode), 0, atol=1e-14)
    # The mode in (mean, precision) is another point.
    other, _ = maximise(lambda p: scipy_log_prob(PRIOR, p[0], math.exp(-p[1])) - 2 * p[1], [0.0, 0.0])
    assert math.exp(-other[1]) != pytest.approx(mode["variance"], rel=1e-2)


def test_stationarity_is_the_slope_of_the_log_density() -> None:
    slope = PRIOR.stationarity((0.9, 1.3))
    for k, (step_mean, step_variance) in enumerate(((1e-6, 0.0), (0.0, 1e-6))):
        rise = scipy_log_prob(PRIOR, 0.9 + step_mean, 1.3 + step_variance) - scipy_log_prob(
            PRIOR, 0.9 - step_mean, 1.3 - step_variance
        )
        assert slope[k] == pytest.approx(rise / 2e-6, rel=1e-7)


def test_samples_are_reproducible_and_follow_the_law() -> None:
    draws = PRIOR.sample(5000, random_state=0)
    np.testing.assert_array_equal(draws["mean"], PRIOR.sample(5000, random_state=0)["mean"])
    assert stats.kstest(draws["variance"], stats.invgamma(2.5, scale=1.7).cdf).pvalue > 1e-4
    scale = math.sqrt(1.7 / (2.5 * 0.8))
    assert stats.kstest(draws["mean"], stats.t(5.0, 0.4, scale).cdf).pvalue > 1e-4
    intervals = PRIOR.intervals(0.9)
    np.testing.assert_allclose(stats.invgamma(2.5, scale=1.7).cdf(intervals["variance"]), [0.05, 0.95], rtol=1e-10)
    np.testing.assert_allclose(stats.t(5.0, 0.4, scale).cdf(intervals["mean"]), [0.05, 0.95], rtol=1e-10)


@pytest.mark.parametrize("weights", [None, W])
def test_map_maximises_the_raw_posterior(weights: NDArray[np.int64] | None) -> None:
    rows = X if weights is None else weighted(X, weights)
    law = sf.Normal(prior=PRIOR, estimate="map").fit(X, sample_weight=weights)

    def objective(p: NDArray[np.float64]) -> float:
        return float(stats.norm.logpdf(rows, p[0], math.exp(0.5 * p[1])).sum()) + scipy_log_prob(
            PRIOR, p[0], math.exp(p[1])
        )

    best, value = maximise(objective, [0.0, 0.0])
    assert law.mean_ == pytest.approx(best[0], rel=1e-6)
    assert law.variance_ == pytest.approx(math.exp(best[1]), rel=1e-6)
    assert law.report_.objective == pytest.approx(value, rel=1e-12)
    n = len(rows)
    mean = (rows.sum() + 0.8 * 0.4) / (n + 0.8)
    spread = ((rows - mean) ** 2).sum() + 2 * 1.7 + 0.8 * (0.4 - mean) ** 2
    assert (law.mean_, law.variance_) == pytest.approx((mean, spread / (n + 3 + 2 * 2.5)), rel=1e-13)
    assert law.report_.parameterisation == "in (mean, variance)"
    assert law.report_.certificate.moment_gap < 1e-10
    assert law.report_.log_evidence == pytest.approx(sf.Normal(prior=PRIOR).fit(X, sample_weight=weights).log_evidence_)


def test_map_variance_is_taken_about_the_map_mean() -> None:
    law = sf.Normal(prior=PRIOR, estimate="map").fit(X)
    wrong = (((X - 1.0) ** 2).sum() + 2 * 1.7 + 0.8 * (0.4 - 1.0) ** 2) / (len(X) + 3 + 5)
    assert law.variance_ < wrong


def test_posterior_mean_against_quadrature() -> None:
    law = sf.Normal(prior=PRIOR).fit(X)
    means, variances = Grid.real(-14, 16, 1501), Grid.positive(-5, 9, 701)
    m, v = means.x[:, None], variances.x[None, :]
    logs = -0.5 * len(X) * np.log(2 * np.pi * v) - ((X[:, None, None] - m) ** 2).sum(axis=0) / (2 * v)
    logs = logs + stats.invgamma(2.5, scale=1.7).logpdf(v) + stats.norm.logpdf(m, 0.4, np.sqrt(v / 0.8))
    joint = np.exp(logs + 15) * means.w[:, None] * variances.w
    assert law.log_evidence_ == pytest.approx(math.log(joint.sum()) - 15, rel=1e-8)
    assert law.mean_ == pytest.approx((joint * m).sum() / joint.sum(), rel=1e-7)
    assert law.variance_ == pytest.approx((joint * v).sum() / joint.sum(), rel=1e-6)
    assert law.report_.parameterisation == "in (mean, variance)"


def test_evidence_is_the_product_of_student_predictives() -> None:
    state, evidence = PRIOR, 0.0
    for x in X:
        scale = math.sqrt(state.beta_ * (state.gamma_ + 1) / (state.alpha_ * state.gamma_))
        evidence += float(stats.t(2 * state.alpha_, state.delta_, scale).logpdf(x))
        assert float(state._predictive_distribution().log_prob(x)) == pytest.approx(
            stats.t(2 * state.alpha_, state.delta_, scale).logpdf(x)
        )
        state = state._updated(1.0, float(x), 0.0)
    law = sf.Normal(prior=PRIOR).fit(X)
    assert law.log_evidence_ == pytest.approx(evidence, rel=1e-12)
    for name, value in untyped(law.posterior_).parameters_.items():
        assert state.parameters_[name] == pytest.approx(value, rel=1e-12)
    assert untyped(law.predictive_).df_ == 2 * 2.5 + len(X)
    n, mean = len(X), X.mean()
    beta = 1.7 + 0.5 * ((X - mean) ** 2).sum() + 0.5 * 0.8 * n * (mean - 0.4) ** 2 / (0.8 + n)
    assert untyped(law.posterior_).beta_ == pytest.approx(beta, rel=1e-13)


def test_estimates_run_from_the_prior_to_the_data() -> None:
    empty = sf.summarize(sf.Normal(), X) * 0.0
    nothing = sf.Normal(prior=PRIOR, estimate="map").fit(empty)
    assert (nothing.mean_, nothing.variance_) == (0.4, 1.7 / 4.0)
    assert untyped(nothing.posterior_).parameters_ == PRIOR.parameters_
    assert nothing.report_.log_evidence == 0
    one = sf.Normal(prior=PRIOR, estimate="map").fit([2.0])
    assert one.mean_ == pytest.approx((2.0 + 0.8 * 0.4) / 1.8)
    many = sf.summarize(sf.Normal(), X) * 1e9
    mle = sf.Normal().fit(X)
    for estimate in ("map", "mean"):
        law = sf.Normal(prior=PRIOR, estimate=estimate).fit(many)
        assert (law.mean_, law.variance_) == pytest.approx((mle.mean_, mle.variance_), rel=1e-8)


def test_what_does_not_exist_is_said() -> None:
    loose = sf.NormalInverseGamma(alpha=0.4, beta=1, gamma=1, delta=0)
    with pytest.raises(sf.EstimateError, match="alpha"):
        loose.mean()
    with pytest.raises(sf.EstimateError, match="alpha"):
        sf.Normal(prior=loose).fit([1.0])
    assert sf.Normal(prior=loose, estimate="map").fit([1.0]).variance_ > 0
    for name in ("alpha", "beta", "gamma"):
        with pytest.raises(sf.OptionError, match=name):
            sf.NormalInverseGamma(**{"alpha": 1.0, "beta": 1.0, "gamma": 1.0, "delta": 0.0, name: 0.0})
    with pytest.raises(sf.OptionError, match="not fitted"):
        PRIOR.fit(X)
    with pytest.raises(sf.OptionError, match="between 0 and 1"):
        PRIOR.intervals(1.0)


def test_posterior_from_a_summary() -> None:
    summary = sf.summarize(sf.Normal(), X)
    assert PRIOR.posterior(summary).parameters_ == untyped(sf.Normal(prior=PRIOR).fit(X).posterior_).parameters_
    assert PRIOR.posterior(summary, likelihood=sf.Normal()).parameters_ == PRIOR.posterior(summary).parameters_
    with pytest.raises(sf.OptionError, match="not a conjugate prior"):
        PRIOR.posterior(summary, likelihood=sf.Poisson())
    with pytest.raises(sf.OptionError, match="Summary"):
        PRIOR.posterior([1, 2])
