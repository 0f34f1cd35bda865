"""The Poisson law against scipy.stats, sums over the counts, quadrature over the rate and a generic maximiser."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

import suffice as sf
from families.law_oracles import (
    Grid,
    cauchy_cumulants,
    check_entropy_and_divergence,
    check_exponential_family,
    maximise,
    weighted,
)

X = np.array([0, 3, 1, 2, 7, 0, 4, 2, 1, 1])
W = np.array([1, 2, 1, 1, 3, 1, 2, 1, 1, 1])


@pytest.mark.parametrize("rate", [1e-8, 0.3, 2.3, 17.0, 5e4])
def test_evaluation_equals_scipy(rate: float) -> None:
    law, oracle = sf.Poisson(rate), stats.poisson(rate)
    x = np.unique(np.r_[0:40, oracle.ppf([0.01, 0.3, 0.9, 0.999])])
    np.testing.assert_allclose(law.log_prob(x), oracle.logpmf(x), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(law.cdf(x), oracle.cdf(x), rtol=1e-12)
    q = [0, 1e-6, 0.1, 0.5, 0.9, 1 - 1e-9]
    np.testing.assert_array_equal(law.quantile(q), np.maximum(oracle.ppf(q), 0))
    jumps = x[(oracle.cdf(x) > 1e-200) & (oracle.cdf(x) < 1 - 1e-12)]
    np.testing.assert_array_equal(law.quantile(law.cdf(jumps)), jumps)
    assert (law.mean(), law.variance()) == (rate, rate)
    np.testing.assert_allclose(law.prob(x), oracle.pmf(x), rtol=1e-9)


@pytest.mark.parametrize("rate", [0.2, 3.7, 999.0, 1000.0, 1001.0])
def test_entropy_equals_the_sum_on_both_sides_of_the_switch_to_the_series(rate: float) -> None:
    x = np.arange(3000)
    assert sf.Poisson(rate).entropy() == pytest.approx(
        -np.sum(stats.poisson.pmf(x, rate) * stats.poisson.logpmf(x, rate)), rel=1e-11
    )


def test_statistics_maps_and_cumulants() -> None:
    for rate, radius in ((0.4, 1.0), (2.3, 1.0), (30.0, 0.5)):
        check_exponential_family(
            sf.Poisson(), [math.log(rate)], Grid.counts(400), [([1.0], radius), ([-1.5], radius / 2)]
        )


def test_fourth_derivative_is_the_cumulant_and_not_the_central_moment() -> None:
    found = sf.Poisson(2.3).cumulants(4, [1.0])
    np.testing.assert_allclose(
        found, cauchy_cumulants(sf.Poisson(), [math.log(2.3)], [1.0], Grid.counts(200), 1.0, 4), rtol=1e-10
    )
    moment = stats.poisson(2.3).expect(lambda x: (x - 2.3) ** 4)
    assert found[3] == pytest.approx(moment - 3 * 2.3**2)
    assert abs(found[3] - moment) > 10


def test_entropy_and_divergence() -> None:
    for mine, theirs in ((2.3, 4.0), (0.01, 5.0), (100.0, 100.5)):
        check_entropy_and_divergence(sf.Poisson(mine), sf.Poisson(theirs), Grid.counts(600))
    assert sf.Poisson(1e8).kl_divergence(sf.Poisson(1e8 + 1)) == pytest.approx(0.5e-8, rel=1e-7)
    assert sf.Poisson(0).kl_divergence(sf.Poisson(3)) == 3
    assert sf.Poisson(3).kl_divergence(sf.Poisson(0)) == math.inf
    with pytest.raises(sf.OptionError, match="one family"):
        sf.Poisson(1).kl_divergence(sf.Exponential(1))


def test_large_rates_keep_their_digits() -> None:
    # Stirling: the density at the mean of a large rate is that of the normal law, 1 - 1/(12 rate) times.
    rate = 2.0**50
    assert sf.Poisson(rate).log_prob(rate) == pytest.approx(
        -0.5 * math.log(2 * math.pi * rate) - 1 / (12 * rate), abs=1e-12
    )


def test_samples_are_reproducible_and_follow_the_law() -> None:
    draws = sf.Poisson(3.5).sample(20_000, random_state=0)
    np.testing.assert_array_equal(draws, sf.Poisson(3.5).sample(20_000, random_state=0))
    expected = 20_000 * stats.poisson.pmf(np.arange(12), 3.5)
    observed = np.bincount(draws, minlength=12)[:12]
    assert stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), 11) > 1e-4


@pytest.mark.parametrize("weights", [None, W])
def test_maximum_likelihood(weights: np.ndarray | None) -> None:
    rows = X if weights is None else weighted(X, weights)
    law = sf.Poisson().fit(X, sample_weight=weights)
    (best,), value = maximise(lambda p: float(stats.poisson.logpmf(rows, math.exp(p[0])).sum()), [0.0])
    assert law.rate_ == pytest.approx(math.exp(best), rel=1e-6)
    assert law.report_.log_likelihood == pytest.approx(value, rel=1e-12)
    assert law.report_.weight == len(rows)
    assert law.report_.certificate.moment_gap < 1e-12
    assert law.report_.certificate.exists
    assert law.score(X, sample_weight=weights) == pytest.approx(value / len(rows))
    assert law.n_params_ == 1


def test_likelihood_and_divergence_from_the_data_add_up_to_the_entropy_of_the_data() -> None:
    report = sf.Poisson().fit(X).report_
    p = np.bincount(X) / len(X)
    entropy = stats.entropy(p)
    divergence = stats.entropy(p, stats.poisson.pmf(np.arange(len(p)), X.mean()))  # both sides normalised by scipy
    q = stats.poisson.pmf(np.arange(len(p)), X.mean())
    direct = float(np.sum(p[p > 0] * np.log(p[p > 0] / q[p > 0])))
    assert divergence != pytest.approx(direct, rel=1e-6)
    assert report.empirical_entropy == pytest.approx(entropy)
    assert report.kl_divergence == pytest.approx(direct, rel=1e-12)
    assert report.kl_divergence == pytest.approx(-entropy - report.log_likelihood / len(X), rel=1e-12)


def test_all_zero_gives_the_limit_and_says_so() -> None:
    law = sf.Poisson().fit([0, 0, 0])
    assert law.rate_ == 0
    assert law.report_.log_likelihood == 0
    assert law.report_.certificate.exists is False
    assert "-inf" in law.report_.certificate.directions[0]
    assert law.report_.warnings
    np.testing.assert_array_equal(law.log_prob([0, 1, 2]), [0, -np.inf, -np.inf])
    assert (law.entropy(), law.mode(), law.log_normalizer()) == (0, 0, 0)
    np.testing.assert_array_equal(law.natural_parameters_, [-np.inf])
    np.testing.assert_array_equal(law.quantile([0.0, 0.5, 1.0]), [0, 0, 0])
    assert law.score([0, 1]) == -np.inf


def test_posterior_mean_map_and_evidence_against_quadrature() -> None:
    prior = sf.Gamma(shape=2.5, rate=1.5)
    oracle = stats.gamma(2.5, scale=1 / 1.5)

    def joint(rate: float) -> float:
        return float(np.exp(stats.poisson.logpmf(X, rate).sum() + oracle.logpdf(rate) + 20))

    evidence = integrate.quad(joint, 0, 30, epsabs=0, epsrel=1e-12)[0]
    mean = integrate.quad(lambda rate: rate * joint(rate), 0, 30, epsabs=0, epsrel=1e-12)[0] / evidence
    law = sf.Poisson(prior=prior).fit(X)
    assert law.rate_ == pytest.approx(mean, rel=1e-9)
    assert law.log_evidence_ == pytest.approx(math.log(evidence) - 20, rel=1e-10)
    assert law.report_.parameterisation == "in rate"
    mode = sf.Poisson(prior=prior, estimate="map").fit(X)
    (best,), value = maximise(lambda p: float(stats.poisson.logpmf(X, p[0]).sum() + oracle.logpdf(p[0])), [2.0])
    assert mode.rate_ == pytest.approx(best, rel=1e-6)
    assert mode.report_.objective == pytest.approx(value, rel=1e-12)
    assert mode.report_.certificate.moment_gap < 1e-10
    assert mode.report_.parameterisation == "in rate"
    low, high = law.credible_intervals(0.9)["rate"]
    posterior = stats.gamma(law.posterior_.shape_, scale=1 / law.posterior_.rate_)
    np.testing.assert_allclose(posterior.cdf([low, high]), [0.05, 0.95], rtol=1e-10)


def test_predictive_is_negative_binomial_and_chains_to_the_evidence() -> None:
    prior = sf.Gamma(shape=2.5, rate=1.5)
    law = sf.Poisson(prior=prior).fit(X)
    posterior = stats.gamma(law.posterior_.shape_, scale=1 / law.posterior_.rate_)
    for x in (0, 3, 9):
        direct = integrate.quad(
            lambda rate, x=x: stats.poisson.pmf(x, rate) * posterior.pdf(rate), 0, 20, epsrel=1e-11
        )[0]
        assert law.predictive_.log_prob(x) == pytest.approx(math.log(direct), rel=1e-9)
    chain = 0.0
    for k in range(len(X)):
        chain += float(sf.Poisson(prior=prior).fit(X[:k], columns=["x"]).predictive_.log_prob(X[k])) if k else 0.0
    first = integrate.quad(
        lambda r: stats.poisson.pmf(X[0], r) * stats.gamma.pdf(r, 2.5, scale=1 / 1.5), 0, 30, epsrel=1e-12
    )[0]
    assert law.log_evidence_ == pytest.approx(chain + math.log(first), rel=1e-10)


@pytest.mark.parametrize("factor", [1e3, 1e6, 1e9, 1e12, 1e18])
def test_the_predictive_law_of_many_rows_keeps_its_digits(factor: float) -> None:
    law = sf.Poisson(prior=sf.Gamma(2, 1)).fit(sf.summarize(sf.Poisson(), X) * factor)
    assert law.converged_
    # To first order in 1 / shape it is a Poisson law of the same mean, wider by mean^2 / shape.
    x, rate, shape = np.arange(10.0), law.rate_, law.posterior_.shape_
    wider = ((x - rate) ** 2 - x) / (2 * shape)
    expected = sf.Poisson(rate).log_prob(x) + wider
    np.testing.assert_allclose(law.predictive_.log_prob(x), expected, rtol=1e-14, atol=1e-13 + 200 / shape**2)
    assert law.predictive_.mean() == pytest.approx(rate, rel=1e-14)


def test_no_rows_give_the_prior_back() -> None:
    prior = sf.Gamma(shape=3.1, rate=1.7)
    summary = sf.summarize(sf.Poisson(), X) * 0.0
    law = sf.Poisson(prior=prior).fit(summary)
    assert law.posterior_.parameters_ == prior.parameters_
    assert law.rate_ == pytest.approx(3.1 / 1.7)
    assert law.log_evidence_ == 0
    with pytest.raises(sf.EstimateError, match=r"All weights of the \d+ rows are 0"):
        sf.Poisson().fit(summary)


def test_all_zero_with_a_flat_prior_has_its_mode_at_zero() -> None:
    law = sf.Poisson(prior=sf.Gamma(1, 2), estimate="map").fit([0, 0])
    assert law.rate_ == 0
    assert law.report_.objective == pytest.approx(math.log(2))
    assert law.report_.certificate.moment_gap < 1e-10
    with pytest.raises(sf.EstimateError, match="unbounded"):
        sf.Poisson(prior=sf.Gamma(0.5, 2), estimate="map").fit([0, 0])


@given(st.lists(st.integers(0, 50), min_size=2, max_size=30), st.integers(1, 10))
def test_rows_add_up_and_can_be_taken_out(values: list[int], cut: int) -> None:
    cut = min(cut, len(values) - 1)
    whole = sf.Poisson().fit(values)
    parts = sf.Poisson().fit(values[:cut]).partial_fit(values[cut:])
    assert parts.rate_ == whole.rate_
    assert parts.report_.log_likelihood == pytest.approx(whole.report_.log_likelihood, rel=1e-13)
    assert sf.Poisson().fit(values[::-1]).rate_ == whole.rate_
    assert parts.unlearn(values[cut:]).rate_ == sf.Poisson().fit(values[:cut]).rate_
    assert sf.Poisson().fit(values, sample_weight=np.full(len(values), 2)).rate_ == pytest.approx(
        whole.rate_, rel=1e-15
    )


@pytest.mark.parametrize("bad", [[1, -1], [0.5, 1], [1, np.inf], ["a", "b"]])
def test_values_that_are_no_counts_are_refused(bad: list[object]) -> None:
    with pytest.raises(sf.DataError, match="'x'"):
        sf.Poisson().fit(bad)


def test_gaps_are_refused() -> None:
    with pytest.raises(sf.MissingValueError, match="missing values"):
        sf.Poisson().fit([1, np.nan, 2])


def test_off_the_support_the_log_probability_is_minus_infinity() -> None:
    np.testing.assert_array_equal(sf.Poisson(2).log_prob([-1, 0.5, np.inf, -np.inf, np.nan]), np.full(5, -np.inf))
    np.testing.assert_array_equal(sf.Poisson(2).cdf([-0.5, -3]), [0, 0])


def test_options_are_checked() -> None:
    for rate in (-1, np.nan, np.inf, "x", [1, 2]):
        with pytest.raises(sf.OptionError, match="rate"):
            sf.Poisson(rate)  # type: ignore[arg-type]
    with pytest.raises(sf.OptionError, match="nothing to fit"):
        sf.Poisson(2.0).fit(X)
    with pytest.raises(sf.OptionError, match="Gamma"):
        sf.Poisson(prior=sf.Normal(0, 1)).fit(X)
    with pytest.raises(sf.OptionError, match="prior"):
        sf.Poisson(estimate="map").fit(X)
    with pytest.raises(sf.OptionError, match="from 0 to 1"):
        sf.Poisson(2.0).quantile(1.5)
    with pytest.raises(sf.NotFittedError, match="rate"):
        sf.Poisson().log_prob(1)
    with pytest.raises(sf.OptionError, match="one column"):
        sf.Poisson().fit({"a": [1], "b": [2]})
