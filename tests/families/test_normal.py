"""The normal law against scipy.stats, quadrature and a generic maximiser."""

import cmath
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import integrate, stats

import suffice as sf
from families.law_oracles import Grid, check_entropy_and_divergence, check_exponential_family, maximise, weighted
from untyped import untyped

X = np.array([1.5, -0.25, 3.0, 2.0, 7.5, 2.25, -1.0, 0.5])
W = np.array([1, 2, 1, 3, 1, 1, 2, 4])


@pytest.mark.parametrize(("mean", "variance"), [(0.0, 1.0), (-3.0, 0.04), (1e6, 25.0), (1e-8, 1e-20)])
def test_evaluation_equals_scipy(mean: float, variance: float) -> None:
    law, oracle = sf.Normal(mean, variance), stats.norm(mean, math.sqrt(variance))
    x = oracle.ppf([1e-9, 0.2, 0.5, 0.9, 1 - 1e-9])
    np.testing.assert_allclose(law.log_prob(x), oracle.logpdf(x), rtol=1e-9)
    np.testing.assert_allclose(law.cdf(x), oracle.cdf(x), rtol=1e-9)
    q = [0, 1e-9, 0.3, 0.999, 1]
    np.testing.assert_allclose(law.quantile(q), oracle.ppf(q), rtol=1e-13)
    assert (law.mean(), law.variance(), law.mode()) == (mean, variance, mean)
    assert law.entropy() == pytest.approx(oracle.entropy(), rel=1e-13)


def test_the_second_parameter_is_the_variance_and_not_the_standard_deviation() -> None:
    assert float(sf.Normal(0, 16).log_prob(4)) == pytest.approx(stats.norm(0, 4).logpdf(4), rel=1e-14)
    assert sf.Normal(0, 16).sample(50_000, random_state=0).std() == pytest.approx(4, rel=0.02)
    # A dispersion of sigma^2 enters the base measure as well: h(y) exp((eta y - eta^2/2) / sigma^2) with eta = mean.
    y, eta, dispersion = 1.3, 0.7, 4.0
    h = -(y**2) / (2 * dispersion) - 0.5 * math.log(2 * math.pi * dispersion)
    assert float(sf.Normal(eta, dispersion).log_prob(y)) == pytest.approx(
        h + (eta * y - eta**2 / 2) / dispersion, rel=1e-13
    )


def test_far_values_and_gaps_have_no_density_and_raise_no_warning() -> None:
    np.testing.assert_array_equal(sf.Normal(0, 1).log_prob([np.inf, -np.inf, np.nan, 1e200]), np.full(4, -np.inf))


def test_statistics_maps_and_cumulants() -> None:
    for mean, variance in ((0.0, 1.0), (-1.5, 0.3), (2.0, 6.0)):
        grid = Grid.real(mean - 14 * math.sqrt(variance), mean + 14 * math.sqrt(variance), 4001)
        radius = 0.3 / variance
        directions = [
            ([1.0, 0.0], 0.5),
            ([0.0, 1.0], radius / (1 + abs(mean))),
            ([0.7, -0.6], radius / (1 + abs(mean))),
        ]
        check_exponential_family(sf.Normal(), [mean / variance, -0.5 / variance], grid, directions)
    assert sf.Normal().log_normalizer([0.0, 0.5]) == math.inf


def test_entropy_and_divergence() -> None:
    for mine, theirs in (((0.0, 1.0), (1.0, 2.0)), ((3.0, 0.5), (2.0, 4.0))):
        check_entropy_and_divergence(sf.Normal(*mine), sf.Normal(*theirs), Grid.real(-40, 40, 8001))
    assert sf.Normal(0, 1).kl_divergence(sf.Normal(0, 1 + 1e-9)) == pytest.approx(0.25e-18, rel=1e-6)


@pytest.mark.parametrize("weights", [None, W])
def test_maximum_likelihood_divides_by_n(weights: NDArray[np.int64] | None) -> None:
    rows = X if weights is None else weighted(X, weights)
    law = sf.Normal().fit(X, sample_weight=weights)
    best, value = maximise(lambda p: float(stats.norm.logpdf(rows, p[0], math.exp(p[1])).sum()), [0.0, 0.0])
    assert law.mean_ == pytest.approx(best[0], rel=1e-6)
    assert law.variance_ == pytest.approx(math.exp(2 * best[1]), rel=1e-6)
    assert (law.mean_, law.variance_) == pytest.approx((rows.mean(), rows.var(ddof=0)), rel=1e-14)
    assert law.report_.log_likelihood == pytest.approx(value, rel=1e-12)
    assert law.report_.certificate.moment_gap < 1e-14
    assert law.report_.certificate.exists
    assert law.n_params_ == 2
    # The mean is also the least-squares fit to a column of ones.
    roots = np.sqrt(np.ones(len(X)) if weights is None else weights)
    assert law.mean_ == pytest.approx(np.linalg.lstsq(roots[:, None], roots * X)[0][0], rel=1e-13)


def test_score_of_variance_has_the_factor_one_half() -> None:
    mean, variance, step = 0.4, 2.7, 1e-20

    def log_likelihood(v: complex) -> complex:
        return sum((-0.5 * cmath.log(2 * math.pi * v) - (x - mean) ** 2 / (2 * v) for x in X.tolist()), 0j)

    slope = log_likelihood(variance + 1j * step).imag / step
    squares = float(((X - mean) ** 2).sum())
    assert slope == pytest.approx(-len(X) / (2 * variance) + squares / (2 * variance**2), rel=1e-13)
    # In natural parameters the score is the observed less the expected statistics: chain rule through eta2 = -1/(2 v).
    law = sf.Normal(mean, variance)
    gap = law.sufficient_statistics(X).sum(axis=0) - len(X) * law.expected_statistics()
    chained = gap @ np.array([-mean / variance**2, 0.5 / variance**2])
    assert chained == pytest.approx(slope, rel=1e-12)
    assert chained != pytest.approx(-len(X) / variance + squares / variance**2, rel=1e-3)


def test_variance_is_taken_about_the_estimated_mean() -> None:
    law = sf.Normal().fit(X)
    elsewhere = float(((X - 1.0) ** 2).mean())
    assert law.variance_ < elsewhere
    assert sf.Normal(mean=1.0).fit(X).variance_ == pytest.approx(elsewhere, rel=1e-14)
    assert sf.Normal(mean=1.0).fit(X).mean_ == 1.0
    assert sf.Normal(mean=1.0).fit(X).n_params_ == 1
    known = sf.Normal(variance=9.0).fit(X)
    assert (known.mean_, known.variance_, known.n_params_) == (X.mean(), 9.0, 1)
    assert known.report_.certificate.moment_gap < 1e-14


def test_large_offsets_and_narrow_floats_keep_the_variance() -> None:
    for offset in (1e6, 1e9):
        assert sf.Normal().fit(X * 64 + offset).variance_ == pytest.approx(X.var() * 4096, rel=1e-12)
    narrow = sf.Normal().fit(np.array([9999, 0], dtype=np.float32))
    assert narrow.variance_ == pytest.approx(9999**2 / 4, rel=1e-14)


@pytest.mark.parametrize("constant", [0.0, 3.0, 0.1, 1e15, -7e-13])
def test_a_constant_column_has_no_maximum_and_a_prior_mends_it(constant: float) -> None:
    with pytest.raises(sf.EstimateError, match="constant"):
        sf.Normal().fit(np.full(1000, constant))
    with pytest.raises(sf.EstimateError, match="constant"):
        sf.Normal().fit([constant])
    mended = sf.Normal(prior=sf.NormalInverseGamma(2, 1, 1, constant)).fit([constant, constant])
    assert mended.variance_ == pytest.approx(1 / 2)
    assert sf.Normal(variance=2.0).fit([constant]).mean_ == constant


def test_normal_prior_on_the_mean_against_quadrature() -> None:
    prior = sf.Normal(mean=0.5, variance=4.0)
    known, offset = 2.5, 30.0

    def joint(m: float) -> float:
        return math.exp(stats.norm.logpdf(X, m, math.sqrt(known)).sum() + stats.norm.logpdf(m, 0.5, 2.0) + offset)

    total = integrate.quad(joint, -8, 12, epsabs=0, epsrel=1e-12)[0]
    law = sf.Normal(variance=known, prior=prior).fit(X)
    assert law.mean_ == pytest.approx(
        integrate.quad(lambda m: m * joint(m), -8, 12, epsabs=0, epsrel=1e-12)[0] / total, rel=1e-9
    )
    assert law.log_evidence_ == pytest.approx(math.log(total) - offset, rel=1e-11)
    assert untyped(law.predictive_).variance_ == pytest.approx(untyped(law.posterior_).variance_ + known)
    mode = sf.Normal(variance=known, prior=prior, estimate="map").fit(X)
    (best,), value = maximise(lambda p: math.log(joint(p[0])) - offset, [1.0])
    assert mode.mean_ == pytest.approx(best, rel=1e-6)
    assert mode.report_.objective == pytest.approx(value, rel=1e-10)
    assert mode.report_.parameterisation == "in mean (variance known)"
    steps, state = 0.0, (0.5, 4.0)
    for x in X:
        m, v = state
        steps += float(stats.norm.logpdf(x, m, math.sqrt(v + known)))
        state = (m + v / (v + known) * (x - m), v * known / (v + known))
    assert law.log_evidence_ == pytest.approx(steps, rel=1e-12)
    assert (untyped(law.posterior_).mean_, untyped(law.posterior_).variance_) == pytest.approx(state, rel=1e-12)
    low, high = law.credible_intervals(0.8)["mean"]
    np.testing.assert_allclose(stats.norm(state[0], math.sqrt(state[1])).cdf([low, high]), [0.1, 0.9], rtol=1e-12)


def test_no_rows_give_the_prior_back_to_the_bit() -> None:
    prior = sf.Normal(mean=0.1, variance=0.3)
    empty = sf.summarize(sf.Normal(), X) * 0.0
    law = sf.Normal(variance=0.7, prior=prior).fit(empty)
    assert untyped(law.posterior_).parameters_ == prior.parameters_
    assert law.log_evidence_ == 0
    with pytest.raises(sf.EstimateError, match=r"All weights of the \d+ rows are 0"):
        sf.Normal().fit(empty)


def test_samples_are_reproducible_and_follow_the_law() -> None:
    draws = sf.Normal(2, 9).sample(5000, random_state=0)
    np.testing.assert_array_equal(draws, sf.Normal(2, 9).sample(5000, random_state=0))
    assert stats.kstest(draws, stats.norm(2, 3).cdf).pvalue > 1e-4


def test_options_are_checked() -> None:
    for mean, variance, name in (
        (0.0, 0.0, "variance"),
        (0.0, -1.0, "variance"),
        (0.0, np.nan, "variance"),
        (np.inf, 1.0, "mean"),
    ):
        with pytest.raises(sf.OptionError, match=name):
            sf.Normal(mean, variance)
    with pytest.raises(sf.OptionError, match="nothing to fit"):
        sf.Normal(0.0, 1.0).fit(X)
    with pytest.raises(sf.OptionError, match="nothing to fit"):
        sf.Normal(0.0, 1.0, prior=sf.Normal(0, 1)).fit(X)
    with pytest.raises(sf.OptionError, match="known variance"):
        sf.Normal(prior=sf.Normal(0, 1)).fit(X)
    with pytest.raises(sf.OptionError, match="give neither"):
        sf.Normal(variance=1.0, prior=sf.NormalInverseGamma(1, 1, 1, 0)).fit(X)
    with pytest.raises(sf.OptionError, match="likelihood"):
        sf.Normal(0, 1).posterior(sf.summarize(sf.Normal(), X))
    with pytest.raises(sf.OptionError, match="from 0 to 1"):
        sf.Normal(0, 1).quantile(-0.1)
    with pytest.raises(sf.MissingValueError, match="missing value"):
        sf.Normal().fit([1.0, np.nan])
    with pytest.raises(sf.DataError, match="row 1"):
        sf.Normal().fit([1.0, np.inf])


@settings(max_examples=40)
@given(st.lists(st.floats(-1e6, 1e6), min_size=4, max_size=20, unique=True), st.integers(1, 3), st.floats(0.01, 100))
def test_rows_add_up_move_and_scale(values: list[float], cut: int, unit: float) -> None:
    x = np.round(np.array(values), 3)
    if np.ptp(x[:cut]) == 0 or np.ptp(x) < 1e-2:
        return
    whole = sf.Normal().fit(x)
    parts = sf.Normal().fit(x[:cut]).partial_fit(x[cut:])
    assert parts.parameters_ == whole.parameters_
    assert sf.Normal().fit(x[::-1]).parameters_ == whole.parameters_
    back = parts.unlearn(x[cut:])
    assert back.variance_ == pytest.approx(sf.Normal().fit(x[:cut]).variance_, rel=1e-11)
    scaled = sf.Normal().fit(x * unit)
    assert scaled.variance_ == pytest.approx(whole.variance_ * unit**2, rel=1e-9)


@pytest.mark.parametrize("offset", [0.0, 1e4, 1e6, 1e8, 1e10, 1e12])
@pytest.mark.parametrize("model", ["Normal", "MultivariateNormal", "GaussianGraph"])
def test_a_bound_counts_the_rounding_of_means_of_far_columns(model: str, offset: float) -> None:
    rows = np.random.default_rng(3).normal(size=100) + offset
    fits: dict[str, Callable[[], Any]] = {
        "Normal": lambda: sf.Normal().fit(rows),
        "MultivariateNormal": lambda: sf.MultivariateNormal().fit(rows[:, None]),
        "GaussianGraph": lambda: sf.GaussianGraph([], nodes=["x"]).fit({"x": rows}),
    }
    fit = fits[model]()
    exact = [Fraction(value) for value in rows.tolist()]
    mean = sum(exact, Fraction()) / 100
    variance = sum(((value - mean) ** 2 for value in exact), Fraction()) / 100
    mine = Fraction(float(np.ravel(fit.mean_)[0]))
    spread = Fraction(float(np.ravel(fit.variance_ if model == "Normal" else fit.covariance_)[0]))
    # log v - log s + (s + d^2) / v - 1 of a variance v near the best, s, at a distance d of the means.
    off = float(spread / variance - 1)
    loss = 0.5 * (off * off / 2 + float((mean - mine) ** 2 / spread))
    certificate = fit.report_.certificate
    assert certificate.bound
    hidden = 1e-14 + 1e-30 * offset**2  # Of a standardised gap, by sums of squares in double-double.
    assert loss <= certificate.value_gap <= 1.1 * loss + hidden**2
    error = float(abs(mean - mine)) / math.sqrt(float(variance) / 100)
    assert certificate.moment_gap >= error * (1 - 1e-6)
    assert fit.converged_
