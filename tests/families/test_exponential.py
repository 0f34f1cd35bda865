"""The exponential law and its predictive law, Lomax, against scipy.stats, quadrature and a generic maximiser."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

import suffice as sf
from families.law_oracles import Grid, check_entropy_and_divergence, check_exponential_family, maximise, weighted

X = np.array([0.5, 0.0, 2.25, 4.5, 0.125, 1.0, 3.0])
W = np.array([1, 2, 3, 1, 1, 2, 1])


@pytest.mark.parametrize("rate", [1e-6, 0.7, 12.0, 1e9])
def test_evaluation_equals_scipy(rate: float) -> None:
    law, oracle = sf.Exponential(rate), stats.expon(scale=1 / rate)
    x = np.r_[0, oracle.ppf([1e-12, 0.1, 0.5, 0.999]), 30 / rate]
    np.testing.assert_allclose(law.log_prob(x), oracle.logpdf(x), rtol=1e-13)
    np.testing.assert_allclose(law.cdf(x), oracle.cdf(x), rtol=1e-14)
    q = [0, 1e-15, 0.3, 0.999, 1]
    np.testing.assert_allclose(law.quantile(q), oracle.ppf(q), rtol=1e-14)
    np.testing.assert_allclose(
        [law.mean(), law.variance(), law.entropy()], [oracle.mean(), oracle.var(), oracle.entropy()]
    )
    assert law.mode() == 0


def test_statistics_maps_and_cumulants() -> None:
    grid = Grid.positive(-40, 6, 8_001)
    for rate in (0.4, 1.0, 5.0):
        check_exponential_family(sf.Exponential(), [-rate], grid, [([1.0], rate / 3), ([-2.0], rate / 6)])
    assert sf.Exponential().log_normalizer([0.5]) == math.inf


def test_entropy_and_divergence() -> None:
    for mine, theirs in ((0.7, 2.0), (2.0, 0.1), (1.0, 1.01)):
        check_entropy_and_divergence(sf.Exponential(mine), sf.Exponential(theirs), Grid.positive(-40, 6, 8_001))
    assert sf.Exponential(1.0).kl_divergence(sf.Exponential(1 + 1e-9)) == pytest.approx(0.5e-18, rel=1e-6)


def test_samples_are_reproducible_and_follow_the_law() -> None:
    draws = sf.Exponential(2.5).sample(5000, random_state=1)
    np.testing.assert_array_equal(draws, sf.Exponential(2.5).sample(5000, random_state=1))
    assert stats.kstest(draws, stats.expon(scale=0.4).cdf).pvalue > 1e-4


@pytest.mark.parametrize("weights", [None, W])
def test_maximum_likelihood(weights: np.ndarray | None) -> None:
    rows = X if weights is None else weighted(X, weights)
    law = sf.Exponential().fit(X, sample_weight=weights)
    (best,), value = maximise(lambda p: float(stats.expon.logpdf(rows, scale=math.exp(p[0])).sum()), [0.0])
    assert law.rate_ == pytest.approx(math.exp(-best), rel=1e-6)
    assert law.report_.log_likelihood == pytest.approx(value, rel=1e-12)
    assert law.report_.certificate.moment_gap < 1e-12
    assert law.report_.kl_divergence is None


def test_posterior_against_quadrature_and_a_generic_maximiser() -> None:
    prior, oracle = sf.Gamma(shape=2.5, rate=1.5), stats.gamma(2.5, scale=1 / 1.5)

    def log_joint(rate: float) -> float:
        return float(stats.expon.logpdf(X, scale=1 / rate).sum() + oracle.logpdf(rate))

    evidence = integrate.quad(lambda r: math.exp(log_joint(r)), 0, 20, epsabs=0, epsrel=1e-12)[0]
    mean = integrate.quad(lambda r: r * math.exp(log_joint(r)), 0, 20, epsabs=0, epsrel=1e-12)[0] / evidence
    law = sf.Exponential(prior=prior).fit(X)
    assert law.rate_ == pytest.approx(mean, rel=1e-10)
    assert law.log_evidence_ == pytest.approx(math.log(evidence), rel=1e-11)
    posterior = stats.gamma(law.posterior_.shape_, scale=1 / law.posterior_.rate_)
    for x in (0.0, 0.4, 9.0):
        direct = integrate.quad(lambda r, x=x: r * math.exp(-r * x) * posterior.pdf(r), 0, 20, epsabs=0, epsrel=1e-12)[
            0
        ]
        assert law.predictive_.log_prob(x) == pytest.approx(math.log(direct), rel=1e-10)
    mode = sf.Exponential(prior=prior, estimate="map").fit(X)
    (best,), value = maximise(lambda p: log_joint(p[0]), [1.0])
    assert mode.rate_ == pytest.approx(best, rel=1e-6)
    assert mode.report_.objective == pytest.approx(value, rel=1e-12)
    assert mode.rate_ < law.rate_
    np.testing.assert_allclose(posterior.cdf(law.credible_intervals()["rate"]), [0.025, 0.975], rtol=1e-10)


def test_evidence_is_the_product_of_the_predictives() -> None:
    prior = sf.Gamma(shape=0.7, rate=1.5)
    steps = [float(sf.Lomax(0.7 + k, 1.5 + X[:k].sum()).log_prob(X[k])) for k in range(len(X))]
    assert sf.Exponential(prior=prior).fit(X).log_evidence_ == pytest.approx(sum(steps), rel=1e-12)


def test_no_rows_give_the_prior_back() -> None:
    prior = sf.Gamma(shape=3.1, rate=1.7)
    empty = sf.summarize(sf.Exponential(), X) * 0.0
    law = sf.Exponential(prior=prior).fit(empty)
    assert law.posterior_.parameters_ == prior.parameters_
    assert law.log_evidence_ == 0
    with pytest.raises(sf.EstimateError, match=r"All weights of the \d+ rows are 0"):
        sf.Exponential().fit(empty)
    with pytest.raises(sf.EstimateError, match="rate 0"):
        sf.Exponential(prior=sf.Gamma(1, 1), estimate="map").fit(empty)


def test_all_zero_has_no_maximum_and_a_prior_mends_it() -> None:
    with pytest.raises(sf.EstimateError, match="without bound"):
        sf.Exponential().fit([0.0, 0.0])
    assert sf.Exponential(prior=sf.Gamma(1, 1)).fit([0.0, 0.0]).rate_ == 3
    assert sf.Exponential(prior=sf.Gamma(1, 1)).fit([2.0]).rate_ == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("bad", "word"), [([1, -0.5], "row 1"), ([np.inf, 1], "row 0"), ([1, np.nan], "missing value")]
)
def test_values_off_the_support_are_refused(bad: list[float], word: str) -> None:
    with pytest.raises(sf.DataError, match=word):
        sf.Exponential().fit(bad)


def test_off_the_support_the_log_density_is_minus_infinity() -> None:
    np.testing.assert_array_equal(sf.Exponential(2).log_prob([-1e-300, -np.inf, np.inf, np.nan]), np.full(4, -np.inf))
    np.testing.assert_array_equal(sf.Exponential(2).cdf([-1, np.inf]), [0, 1])


def test_options_are_checked() -> None:
    for rate in (0, -1, np.nan, "x"):
        with pytest.raises(sf.OptionError, match="rate"):
            sf.Exponential(rate)  # type: ignore[arg-type]
    with pytest.raises(sf.OptionError, match="nothing to fit"):
        sf.Exponential(2.0).fit(X)


@given(st.lists(st.floats(0, 1e6), min_size=3, max_size=20).filter(lambda v: v[0] > 1e-3), st.integers(1, 2))
def test_rows_add_up_and_can_be_taken_out(values: list[float], cut: int) -> None:
    whole = sf.Exponential().fit(values)
    parts = sf.Exponential().fit(values[:cut]).partial_fit(values[cut:])
    assert parts.rate_ == whole.rate_
    assert parts.unlearn(values[cut:]).rate_ == pytest.approx(sf.Exponential().fit(values[:cut]).rate_, rel=1e-12)
    # Another unit of time scales the rate.
    assert sf.Exponential().fit(np.array(values) * 4).rate_ == pytest.approx(whole.rate_ / 4, rel=1e-14)


@pytest.mark.parametrize(("shape", "scale"), [(0.4, 2.0), (1.0, 1.0), (3.5, 0.2), (1e7, 1e7)])
def test_lomax_equals_scipy(shape: float, scale: float) -> None:
    law, oracle = sf.Lomax(shape, scale), stats.lomax(shape, scale=scale)
    x = np.r_[0, oracle.ppf([1e-9, 0.2, 0.9, 0.9999])]
    np.testing.assert_allclose(law.log_prob(x), oracle.logpdf(x), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(law.cdf(x), oracle.cdf(x), rtol=1e-8)
    q = [0, 1e-12, 0.4, 0.99, 1]
    np.testing.assert_allclose(law.quantile(q)[:4], oracle.ppf(q)[:4], rtol=1e-8)
    np.testing.assert_allclose(law.cdf(law.quantile(q)), q, rtol=1e-12)
    assert law.entropy() == pytest.approx(
        integrate.quad(lambda p: -float(law.log_prob(law.quantile(p))), 0, 1, limit=200)[0], rel=1e-6
    )
    assert law.mode() == 0
    if shape > 2:
        assert (law.mean(), law.variance()) == pytest.approx((oracle.mean(), oracle.var()), rel=1e-6)
    np.testing.assert_array_equal(law.log_prob([-1, np.inf, np.nan]), np.full(3, -np.inf))
    assert stats.kstest(law.sample(3000, random_state=0), oracle.cdf).pvalue > 1e-4


def test_lomax_says_what_does_not_exist() -> None:
    with pytest.raises(sf.EstimateError, match="no mean"):
        sf.Lomax(1.0).mean()
    with pytest.raises(sf.EstimateError, match="no variance"):
        sf.Lomax(2.0).variance()
    with pytest.raises(sf.OptionError, match="not fitted"):
        sf.Lomax(2.0).fit(X)
    with pytest.raises(sf.OptionError, match="scale"):
        sf.Lomax(2.0, 0.0)


def test_rows_with_the_same_statistics_give_the_same_fit() -> None:
    one, two = (sf.Exponential(prior=sf.Gamma(2, 1)).fit(rows) for rows in ([1.0, 3.0, 0.5], [2.25, 2.25, 0.0]))
    assert one.parameters_ == two.parameters_
    assert one.posterior_.parameters_ == two.posterior_.parameters_
    assert one.log_evidence_ == two.log_evidence_
    assert one.report_.log_likelihood == two.report_.log_likelihood
