"""The gamma law, its use as a prior and its predictive law, beta-prime."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, special, stats

import suffice as sf
from families.law_oracles import Grid, check_entropy_and_divergence, check_exponential_family, maximise, weighted
from moved_parameters import with_parameters
from suffice.families import gamma_function as gf

X = np.array([0.5, 0.1, 2.25, 4.5, 0.125, 1.0, 3.0, 1.75])
W = np.array([1, 2, 3, 1, 1, 2, 1, 4])
LAWS = [(0.3, 2.0), (1.0, 0.5), (2.5, 1.5), (40.0, 8.0)]


@pytest.mark.parametrize(("shape", "rate"), [*LAWS, (1e-3, 3.0), (1e5, 1e-3)])
def test_evaluation_equals_scipy(shape: float, rate: float) -> None:
    law, oracle = sf.Gamma(shape, rate), stats.gamma(shape, scale=1 / rate)
    x = oracle.ppf([0.05, 0.2, 0.5, 0.9, 0.9999])
    x = x[x > 0]
    np.testing.assert_allclose(law.log_prob(x), oracle.logpdf(x), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(law.cdf(x), oracle.cdf(x), rtol=1e-12)
    q = [0, 0.01, 0.4, 0.999, 1]
    np.testing.assert_allclose(law.quantile(q), oracle.ppf(q), rtol=1e-12)
    np.testing.assert_allclose([law.mean(), law.variance()], [oracle.mean(), oracle.var()])
    assert law.entropy() == pytest.approx(oracle.entropy(), rel=1e-9)


def test_at_zero_the_log_density_is_its_limit_and_below_it_is_minus_infinity() -> None:
    np.testing.assert_array_equal([sf.Gamma(a, 2).log_prob(0) for a in (0.5, 1, 1.5)], [np.inf, math.log(2), -np.inf])
    np.testing.assert_array_equal(sf.Gamma(0.5, 2).log_prob([-1, np.inf, -np.inf, np.nan]), np.full(4, -np.inf))
    tiny, rate = 1e-300, 2.0
    assert sf.Gamma(3, rate).log_prob(tiny) == pytest.approx(
        2 * math.log(tiny) + 3 * math.log(2) - math.log(2), rel=1e-14
    )
    assert sf.Gamma(3, 1e300).log_prob(1e300) == -np.inf
    np.testing.assert_array_equal(sf.Gamma(3, 2).cdf([-1, 0, np.inf]), [0, 0, 1])


def test_statistics_maps_and_cumulants() -> None:
    for shape, rate in LAWS:
        directions = [([0.0, 1.0], rate / 3), ([1.0, 0.0], shape / 3), ([0.7, -0.4], min(rate, shape) / 2)]
        check_exponential_family(sf.Gamma(), [shape - 1, -rate], Grid.positive(-160, 8, 6_001), directions)
    assert sf.Gamma().log_normalizer([-1.0, -1.0]) == math.inf
    assert sf.Gamma().log_normalizer([1.0, 0.0]) == math.inf
    with pytest.raises(sf.OptionError, match="log E"):
        sf.Gamma().with_mean_parameters([1.0, 1.0])


def test_entropy_and_divergence() -> None:
    grid = Grid.positive(-160, 8, 6_001)
    for mine, theirs in ((LAWS[0], LAWS[2]), (LAWS[2], LAWS[1]), (LAWS[3], (41.0, 8.1)), ((2.0, 3.0), (2.0, 3.1))):
        check_entropy_and_divergence(sf.Gamma(*mine), sf.Gamma(*theirs), grid)


def test_divergence_of_near_laws_keeps_its_digits() -> None:
    # To second order KL is half the quadratic form of the Fisher information in (shape, log mean).
    for shape, step in ((1.5, 1e-7), (1e8, 1.0)):
        information = special.polygamma(1, shape) - 1 / shape if shape < 100 else 0.5 / shape**2
        found = sf.Gamma(shape, shape).kl_divergence(sf.Gamma(shape + step, shape + step))
        assert found == pytest.approx(0.5 * information * step**2, rel=1e-5)


def test_large_shapes_keep_their_digits() -> None:
    # A gamma law of large shape is nearly normal: at the mean its density is 1 - 1/(12 shape) times the normal one.
    shape = 2.0**50
    law = sf.Gamma(shape, 1.0)
    assert law.log_prob(shape) == pytest.approx(-0.5 * math.log(2 * math.pi * shape), abs=1e-12)
    assert law.log_prob(shape + 2.0**25) == pytest.approx(law.log_prob(shape) - 0.5, abs=1e-7)
    assert law.entropy() == pytest.approx(0.5 * math.log(2 * math.pi * math.e * shape), rel=1e-12)


def test_samples_are_reproducible_and_follow_the_law() -> None:
    draws = sf.Gamma(2.5, 3.0).sample(5000, random_state=0)
    np.testing.assert_array_equal(draws, sf.Gamma(2.5, 3.0).sample(5000, random_state=0))
    assert stats.kstest(draws, stats.gamma(2.5, scale=1 / 3).cdf).pvalue > 1e-4


@pytest.mark.parametrize("weights", [None, W])
def test_maximum_likelihood(weights: np.ndarray | None) -> None:
    rows = X if weights is None else weighted(X, weights)
    law = sf.Gamma().fit(X, sample_weight=weights)
    best, value = maximise(
        lambda p: float(stats.gamma.logpdf(rows, math.exp(p[0]), scale=math.exp(p[1])).sum()), [0.0, 0.0]
    )
    np.testing.assert_allclose([law.shape_, 1 / law.rate_], np.exp(best), rtol=1e-6)
    assert law.report_.log_likelihood == pytest.approx(value, rel=1e-12)
    assert law.report_.certificate.moment_gap < 1e-12
    assert law.report_.certificate.value_gap is not None
    assert law.report_.certificate.value_gap < 1e-22
    assert law.converged_
    assert 1 <= law.n_iter_ <= 6
    assert law.n_params_ == 2


@pytest.mark.parametrize("shape", [1e-3, 0.05, 0.8, 3.0, 200.0, 1e6])
def test_newton_finds_every_shape_in_a_few_steps(shape: float) -> None:
    gap = float(-gf.rest_slope(shape))
    law = sf.Gamma().with_mean_parameters([-gap, 1.0])
    assert law.shape_ == pytest.approx(shape, rel=1e-9 if shape < 1e5 else 1e-6)
    draws = np.maximum(sf.Gamma(shape, 2.0).sample(400, random_state=0), 1e-280)
    fitted = sf.Gamma().fit(draws)
    assert fitted.report_.certificate.moment_gap < 1e-11
    assert fitted.n_iter_ <= 8


def test_known_shape_leaves_one_parameter() -> None:
    law = sf.Gamma(shape=2.0).fit(X, sample_weight=W)
    (best,), value = maximise(
        lambda p: float(stats.gamma.logpdf(weighted(X, W), 2.0, scale=math.exp(p[0])).sum()), [0.0]
    )
    assert law.shape_ == 2
    assert law.rate_ == pytest.approx(math.exp(-best), rel=1e-6)
    assert law.report_.log_likelihood == pytest.approx(value, rel=1e-12)
    assert law.n_params_ == 1
    assert law.report_.certificate.moment_gap < 1e-12


@pytest.mark.parametrize("known", [0.6, 1.0, 2.5])
def test_posterior_of_the_rate_against_quadrature_and_a_generic_maximiser(known: float) -> None:
    prior, oracle = sf.Gamma(shape=2.5, rate=1.5), stats.gamma(2.5, scale=1 / 1.5)

    def log_joint(rate: float) -> float:
        return float(stats.gamma.logpdf(X, known, scale=1 / rate).sum() + oracle.logpdf(rate))

    evidence = integrate.quad(lambda r: math.exp(log_joint(r)), 0, 20, epsabs=0, epsrel=1e-12)[0]
    mean = integrate.quad(lambda r: r * math.exp(log_joint(r)), 0, 20, epsabs=0, epsrel=1e-12)[0] / evidence
    law = sf.Gamma(shape=known, prior=prior).fit(X)
    assert (law.shape_, law.rate_) == pytest.approx((known, mean), rel=1e-10)
    assert law.log_evidence_ == pytest.approx(math.log(evidence), rel=1e-11)
    mode = sf.Gamma(shape=known, prior=prior, estimate="map").fit(X)
    (best,), value = maximise(lambda p: log_joint(p[0]), [1.0])
    assert mode.rate_ == pytest.approx(best, rel=1e-6)
    assert mode.report_.objective == pytest.approx(value, rel=1e-12)
    assert mode.report_.parameterisation == "in rate (shape known)"
    posterior = stats.gamma(law.posterior_.shape_, scale=1 / law.posterior_.rate_)
    for x in (0.05, 0.4, 9.0):
        direct = integrate.quad(
            lambda r, x=x: stats.gamma.pdf(x, known, scale=1 / r) * posterior.pdf(r), 0, 20, epsabs=0, epsrel=1e-12
        )
        assert law.predictive_.log_prob(x) == pytest.approx(math.log(direct[0]), rel=1e-9)
    np.testing.assert_allclose(posterior.cdf(law.credible_intervals()["rate"]), [0.025, 0.975], rtol=1e-10)
    steps, state = 0.0, prior
    for x in X:
        steps += float(sf.BetaPrime(known, state.shape_, state.rate_).log_prob(x))
        state = state._updated(known, x)
    assert law.log_evidence_ == pytest.approx(steps, rel=1e-11)


def test_as_a_prior_it_serves_three_laws() -> None:
    prior = sf.Gamma(2.0, 3.0)
    counts = sf.summarize(sf.Poisson(), [1, 4])
    assert prior.posterior(counts).parameters_ == {"shape": 7.0, "rate": 5.0}
    assert prior.posterior(counts, likelihood=sf.Poisson()).parameters_ == {"shape": 7.0, "rate": 5.0}
    times = sf.summarize(sf.Exponential(), [1.0, 4.0])
    assert prior.posterior(times, likelihood=sf.Exponential()).parameters_ == {"shape": 4.0, "rate": 8.0}
    sizes = sf.summarize(sf.Gamma(shape=0.5), [1.0, 4.0])
    assert prior.posterior(sizes, likelihood=sf.Gamma(shape=0.5)).parameters_ == {"shape": 3.0, "rate": 8.0}
    with pytest.raises(sf.OptionError, match="not a conjugate prior"):
        prior.posterior(sizes, likelihood=sf.Normal())
    with pytest.raises(sf.OptionError, match="Summary"):
        prior.posterior([1, 2, 3])
    with pytest.raises(sf.MergeError, match="does not answer"):
        prior.posterior(times)


def test_slope_of_the_log_density_is_zero_at_the_mode() -> None:
    law = sf.Gamma(3.5, 2.0)
    assert law.mode() == 1.25
    assert law.stationarity(1.25) == pytest.approx(0, abs=1e-15)
    for x in (0.2, 1.0, 4.0):
        step = 1e-6 * x
        slope = (stats.gamma.logpdf(x + step, 3.5, scale=0.5) - stats.gamma.logpdf(x - step, 3.5, scale=0.5)) / (
            2 * step
        )
        assert law.stationarity(x)[0] == pytest.approx(slope, rel=1e-7)
    assert sf.Gamma(1, 2).mode() == 0
    assert sf.Gamma(1, 2).stationarity(0) == 0
    with pytest.raises(sf.EstimateError, match="below 1"):
        sf.Gamma(0.9, 2).mode()


@pytest.mark.parametrize("constant", [3.0, 0.1, 1e-12, 7e11])
def test_a_constant_column_has_no_maximum(constant: float) -> None:
    with pytest.raises(sf.EstimateError, match="constant"):
        sf.Gamma().fit(np.full(7, constant))
    with pytest.raises(sf.EstimateError, match="constant"):
        sf.Gamma().fit([constant])
    assert sf.Gamma(shape=2.0).fit([constant]).rate_ == pytest.approx(2 / constant)


def test_no_rows_give_the_prior_back() -> None:
    prior = sf.Gamma(shape=3.1, rate=1.7)
    empty = sf.summarize(sf.Gamma(), X) * 0.0
    law = sf.Gamma(shape=2.0, prior=prior).fit(empty)
    assert law.posterior_.parameters_ == prior.parameters_
    assert law.log_evidence_ == 0
    with pytest.raises(sf.EstimateError, match=r"All weights of the \d+ rows are 0"):
        sf.Gamma().fit(empty)
    with pytest.raises(sf.EstimateError, match="rate 0"):
        sf.Gamma(shape=2.0, prior=sf.Gamma(1, 1), estimate="map").fit(empty)


@pytest.mark.parametrize("bad", [[1, 0.0], [1, -2], [np.inf, 1], [1, np.nan]])
def test_values_off_the_support_are_refused(bad: list[float]) -> None:
    with pytest.raises(sf.DataError, match="'x'"):
        sf.Gamma().fit(bad)


def test_options_are_checked() -> None:
    for options in ({"shape": 0}, {"rate": -1.0}, {"shape": np.nan}):
        with pytest.raises(sf.OptionError, match=next(iter(options))):
            sf.Gamma(**{"shape": 1.0, "rate": 1.0} | options)
    with pytest.raises(sf.OptionError, match="nothing to fit"):
        sf.Gamma(2.0, 1.0).fit(X)
    with pytest.raises(sf.OptionError, match="without shape"):
        sf.Gamma(rate=1.0).fit(X)
    with pytest.raises(sf.OptionError, match="known shape"):
        sf.Gamma(prior=sf.Gamma(1, 1)).fit(X)
    with pytest.raises(sf.OptionError, match="conjugate prior"):
        sf.Gamma(shape=1.0, prior=sf.Lomax(1, 1)).fit(X)


def test_a_fit_that_is_stopped_says_so() -> None:
    with pytest.warns(sf.ConvergenceWarning, match="max_iter"):
        law = sf.Gamma(max_iter=1, tolerance=1e-15).fit(X)
    assert not law.converged_
    assert law.stop_reason_ == "max_iter"
    assert law.shape_ == pytest.approx(sf.Gamma().fit(X).shape_, rel=1e-2)


@given(st.lists(st.integers(1, 4000), min_size=4, max_size=20, unique=True), st.floats(0.01, 100))
def test_units_order_and_batches_do_not_matter(quarters: list[int], unit: float) -> None:
    values = [quarter / 4 for quarter in quarters]
    whole = sf.Gamma().fit(values)
    assert sf.Gamma().fit(values[::-1]).parameters_ == whole.parameters_
    assert sf.Gamma().fit(values[:2]).partial_fit(values[2:]).parameters_ == whole.parameters_
    scaled = sf.Gamma().fit(np.array(values) * unit)
    assert scaled.shape_ == pytest.approx(whole.shape_, rel=1e-6)
    assert scaled.rate_ == pytest.approx(whole.rate_ / unit, rel=1e-6)


@pytest.mark.parametrize(
    ("alpha", "beta", "scale"), [(0.4, 0.7, 2.0), (1.0, 3.0, 0.5), (4.5, 6.0, 1.0), (2.0, 1e6, 1e6)]
)
def test_beta_prime_equals_scipy(alpha: float, beta: float, scale: float) -> None:
    law, oracle = sf.BetaPrime(alpha, beta, scale), stats.betaprime(alpha, beta, scale=scale)
    x = oracle.ppf([1e-6, 0.2, 0.5, 0.9, 0.999])
    np.testing.assert_allclose(law.log_prob(x), oracle.logpdf(x), rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(law.cdf(x), oracle.cdf(x), rtol=1e-9)
    q = [1e-6, 0.2, 0.5, 0.9, 0.999]
    np.testing.assert_allclose(law.cdf(law.quantile(q)), q, rtol=1e-10)
    np.testing.assert_array_equal(law.quantile([0, 1]), [0, np.inf])
    np.testing.assert_array_equal(law.log_prob([-1, np.inf, np.nan]), np.full(3, -np.inf))
    if beta > 2:
        np.testing.assert_allclose([law.mean(), law.variance()], [oracle.mean(), oracle.var()], rtol=1e-9)
    if alpha > 1:
        (best,), _ = maximise(lambda p: float(oracle.logpdf(math.exp(p[0]))), [math.log(law.mode()) + 0.3])
        assert law.mode() == pytest.approx(math.exp(best), rel=1e-5)
    assert stats.kstest(law.sample(3000, random_state=0), oracle.cdf).pvalue > 1e-4


def test_beta_prime_with_alpha_one_is_lomax() -> None:
    x = np.array([0.0, 0.1, 3.0, 1e5])
    np.testing.assert_allclose(sf.BetaPrime(1, 2.5, 3).log_prob(x), sf.Lomax(2.5, 3).log_prob(x), rtol=1e-13)


def test_beta_prime_says_what_does_not_exist() -> None:
    for call, word in (
        (sf.BetaPrime(2, 1).mean, "mean"),
        (sf.BetaPrime(2, 2).variance, "variance"),
        (sf.BetaPrime(0.5, 2).mode, "mode"),
    ):
        with pytest.raises(sf.EstimateError, match=word):
            call()


@given(st.floats(1e-3, 1e3))
def test_the_remainder_of_the_log_gamma_function_is_what_its_definition_says(a: float) -> None:
    bulk = abs(special.gammaln(a)) + abs(a * math.log(a)) + a
    assert float(gf.rest(a)) == pytest.approx(special.gammaln(a) - a * math.log(a) + a, abs=1e-14 * bulk)
    assert float(gf.rest_slope(a)) == pytest.approx(
        special.digamma(a) - math.log(a), abs=1e-14 * (abs(special.digamma(a)) + 8)
    )
    assert float(gf.rest_curvature(a)) == pytest.approx(
        special.polygamma(1, a) - 1 / a, abs=1e-14 * special.polygamma(1, a)
    )


def test_series_and_definition_meet() -> None:
    below, above = np.nextafter(gf.LARGE, 0), gf.LARGE
    for function in (gf.rest, gf.rest_slope, gf.rest_curvature):
        assert float(function(below)) == pytest.approx(float(function(above)), rel=2e-14)
    assert float(gf.excess(np.nextafter(gf.NEAR_ONE, 0))) == pytest.approx(float(gf.excess(gf.NEAR_ONE)), rel=1e-13)


@given(st.floats(0.01, 1e4), st.floats(-0.9, 1e3))
def test_ratios_of_gamma_functions(a: float, step: float) -> None:
    step = max(step, -0.9 * a)
    bulk = abs(special.gammaln(a + step)) + abs(special.gammaln(a)) + 1
    assert float(gf.log_gamma_ratio(a, step)) == pytest.approx(
        special.gammaln(a + step) - special.gammaln(a), abs=1e-14 * bulk
    )


def test_ratios_of_gamma_functions_at_large_arguments() -> None:
    # log Gamma(a + 1) - log Gamma(a) is log a exactly, and half a step is half of it less 1/(8 a).
    assert float(gf.log_gamma_ratio(1e15, 1.0)) == pytest.approx(math.log(1e15), rel=1e-15)
    assert float(gf.log_gamma_ratio(1e9, 0.5)) == pytest.approx(0.5 * math.log(1e9) - 0.125e-9, rel=1e-15)


@pytest.mark.parametrize(("shape", "rate"), [(0.4, 2.0), (3.0, 1.0), (60.0, 50.0)])
def test_the_certificate_measures_wrong_parameters_as_its_definition_says(shape: float, rate: float) -> None:
    summary = sf.summarize(sf.Gamma(), X, sample_weight=W)
    law = sf.Gamma().fit(summary)
    law = with_parameters(law, {"shape": shape, "rate": rate})
    gap, decrement = law.fitted_.member.gap(summary)
    rows = weighted(X, W)
    slope = np.array([np.log(rows).mean(), rows.mean()]) - [special.digamma(shape) - math.log(rate), shape / rate]
    covariance = np.array([[special.polygamma(1, shape), 1 / rate], [1 / rate, shape / rate**2]])
    assert gap == pytest.approx(np.max(np.abs(slope) / np.sqrt(np.diag(covariance))), rel=1e-11)
    assert decrement == pytest.approx(math.sqrt(slope @ np.linalg.solve(covariance, slope)), rel=1e-10)


@pytest.mark.parametrize(
    ("alpha", "beta", "x", "expected"),
    [  # The density in 60 digits.
        (1e14, 1e8, 1e6, -5.5241092200258474433),
        (1e8, 1e14, 1e-6, 22.10691189590270081),
        (2.5, 1e14, 2e-14, 30.991229202283627131),
        (1e14, 3.5, 2.5e13, -31.198840279224222266),
    ],
)
def test_the_beta_prime_density_keeps_its_digits_with_large_shapes(
    alpha: float, beta: float, x: float, expected: float
) -> None:
    np.testing.assert_allclose(sf.BetaPrime(alpha, beta).log_prob(x), expected, rtol=1e-14)
