"""The inverse-gamma law against scipy.stats, quadrature and a generic maximiser."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

import suffice as sf
from families.law_oracles import Grid, check_entropy_and_divergence, check_exponential_family, maximise, weighted

X = np.array([0.5, 0.1, 2.25, 4.5, 0.125, 1.0, 3.0, 1.75])
W = np.array([1, 2, 3, 1, 1, 2, 1, 4])
LAWS = [(0.4, 2.0), (1.0, 0.5), (2.5, 1.5), (40.0, 8.0)]


@pytest.mark.parametrize(("shape", "scale"), [*LAWS, (1e5, 1e-3)])
def test_evaluation_equals_scipy(shape: float, scale: float) -> None:
    law, oracle = sf.InverseGamma(shape, scale), stats.invgamma(shape, scale=scale)
    x = oracle.ppf([1e-9, 0.2, 0.5, 0.9, 0.9999])
    np.testing.assert_allclose(law.log_prob(x), oracle.logpdf(x), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(law.cdf(x), oracle.cdf(x), rtol=1e-9)
    q = [0, 0.01, 0.4, 0.999, 1]
    np.testing.assert_allclose(law.quantile(q), oracle.ppf(q), rtol=1e-10)
    if shape > 2:
        np.testing.assert_allclose([law.mean(), law.variance()], [oracle.mean(), oracle.var()])
    assert law.entropy() == pytest.approx(oracle.entropy(), rel=1e-9)
    (best,), _ = maximise(lambda p: float(oracle.logpdf(math.exp(p[0]))), [math.log(law.mode()) + 0.2])
    assert law.mode() == pytest.approx(math.exp(best), rel=1e-5)


def test_statistics_maps_and_cumulants() -> None:
    for shape, scale in LAWS:
        directions = [([0.0, 1.0], scale / 3), ([1.0, 0.0], shape / 3), ([0.7, -0.4], min(scale, shape) / 2)]
        check_exponential_family(sf.InverseGamma(), [-shape - 1, -scale], Grid.positive(-8, 120, 6_001), directions)
    assert sf.InverseGamma().log_normalizer([-1.0, -1.0]) == math.inf
    with pytest.raises(sf.OptionError, match="log E"):
        sf.InverseGamma().with_mean_parameters([0.0, 1.0])


def test_entropy_and_divergence() -> None:
    grid = Grid.positive(-8, 120, 6_001)
    for mine, theirs in ((LAWS[0], LAWS[2]), (LAWS[2], LAWS[1]), (LAWS[3], (41.0, 8.1))):
        check_entropy_and_divergence(sf.InverseGamma(*mine), sf.InverseGamma(*theirs), grid)


def test_samples_are_reproducible_and_follow_the_law() -> None:
    draws = sf.InverseGamma(2.5, 3.0).sample(5000, random_state=0)
    np.testing.assert_array_equal(draws, sf.InverseGamma(2.5, 3.0).sample(5000, random_state=0))
    assert stats.kstest(draws, stats.invgamma(2.5, scale=3).cdf).pvalue > 1e-4


@pytest.mark.parametrize("weights", [None, W])
def test_maximum_likelihood(weights: np.ndarray | None) -> None:
    rows = X if weights is None else weighted(X, weights)
    law = sf.InverseGamma().fit(X, sample_weight=weights)
    best, value = maximise(
        lambda p: float(stats.invgamma.logpdf(rows, math.exp(p[0]), scale=math.exp(p[1])).sum()), [0.0, 0.0]
    )
    np.testing.assert_allclose([law.shape_, law.scale_], np.exp(best), rtol=1e-6)
    assert law.report_.log_likelihood == pytest.approx(value, rel=1e-12)
    assert law.report_.certificate.moment_gap < 1e-12
    assert law.converged_
    assert law.n_params_ == 2


@given(st.lists(st.integers(1, 4000), min_size=4, max_size=20, unique=True))
def test_it_is_the_law_of_one_over_a_gamma_variable(quarters: list[int]) -> None:
    values = [quarter / 4 for quarter in quarters]
    mine, other = sf.InverseGamma().fit(values), sf.Gamma().fit(1 / np.array(values))
    assert mine.shape_ == pytest.approx(other.shape_, rel=1e-7)
    assert mine.scale_ == pytest.approx(other.rate_, rel=1e-7)
    assert sf.InverseGamma().fit(values[:2]).partial_fit(values[2:]).parameters_ == mine.parameters_


def test_off_the_support_the_log_density_is_minus_infinity() -> None:
    law = sf.InverseGamma(2.5, 3.0)
    np.testing.assert_array_equal(law.log_prob([0, -1, np.inf, -np.inf, np.nan, 5e-324]), np.full(6, -np.inf))
    np.testing.assert_array_equal(law.cdf([-1, 0, np.inf]), [0, 0, 1])


def test_what_does_not_exist_is_said() -> None:
    with pytest.raises(sf.EstimateError, match="no mean"):
        sf.InverseGamma(1.0, 1.0).mean()
    with pytest.raises(sf.EstimateError, match="no variance"):
        sf.InverseGamma(2.0, 1.0).variance()
    with pytest.raises(sf.EstimateError, match="constant"):
        sf.InverseGamma().fit([2.0, 2.0, 2.0])
    with pytest.raises(sf.DataError, match="row 1"):
        sf.InverseGamma().fit([2.0, 0.0])
    with pytest.raises(sf.OptionError, match="shape"):
        sf.InverseGamma(shape=2.0).fit(X)
    with pytest.raises(sf.OptionError, match="scale"):
        sf.InverseGamma(2.0, -1.0)


def test_the_certificate_measures_wrong_parameters_as_its_definition_says() -> None:
    shape, scale = 3.0, 0.7
    gap, decrement = sf.InverseGamma(shape, scale).fitted_.member.gap(sf.summarize(sf.InverseGamma(), X))
    slope = np.array([np.log(X).mean(), (1 / X).mean()]) - [math.log(scale) - special.digamma(shape), shape / scale]
    covariance = np.array([[special.polygamma(1, shape), -1 / scale], [-1 / scale, shape / scale**2]])
    assert gap == pytest.approx(np.max(np.abs(slope) / np.sqrt(np.diag(covariance))), rel=1e-11)
    assert decrement == pytest.approx(math.sqrt(slope @ np.linalg.solve(covariance, slope)), rel=1e-10)
