"""The von Mises distribution against scipy.stats, quadrature and a generic maximiser."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import integrate, optimize, stats

import suffice as sf

ANGLES = np.array([0.2, 0.9, -0.4, 2.5, 6.4, 0.1, -0.8, 1.3, 3.0, -2.9])
WEIGHTS = np.array([1, 2, 1, 1, 3, 2, 1, 1, 1, 2])
LAWS = [(0.0, 0.0), (1.0, 0.3), (-2.5, 4.0), (3.1, 80.0), (0.5, 1e5)]


@pytest.mark.parametrize(("direction", "concentration"), LAWS)
def test_evaluation_equals_scipy(direction: float, concentration: float) -> None:
    law = sf.VonMises(direction, concentration)
    x = direction + np.array([-3.0, -0.5, 0.0, 1e-3, 2.0, 9.0])
    if concentration > 0:
        oracle = stats.vonmises(concentration, loc=direction)
        np.testing.assert_allclose(law.log_prob(x), oracle.logpdf(x), rtol=1e-9, atol=1e-9)
        assert law.entropy() == pytest.approx(oracle.entropy(), rel=1e-7, abs=1e-7)
    else:
        np.testing.assert_allclose(law.log_prob(x), -math.log(2 * math.pi))
    assert law.mean() == law.mode() == pytest.approx(direction)
    assert law.log_prob([math.nan, math.inf]).tolist() == [-math.inf, -math.inf]


@pytest.mark.parametrize(("direction", "concentration"), [(0.4, 0.2), (-2.0, 3.0), (1.0, 40.0)])
def test_statistics_are_derivatives_and_moments_by_quadrature(direction: float, concentration: float) -> None:
    law = sf.VonMises(direction, concentration)

    def moment(f: Callable[[float], float]) -> float:
        ends = direction - math.pi, direction + math.pi
        value, _ = integrate.quad(lambda x: f(x) * float(law.prob(x)), *ends, epsabs=1e-13)
        return float(value)

    cos, sin = moment(math.cos), moment(math.sin)
    assert moment(lambda x: 1.0) == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(law.expected_statistics(), [cos, sin], atol=1e-11)
    squares = [moment(lambda x: math.cos(x) ** 2), moment(lambda x: math.sin(x) ** 2)]
    both = moment(lambda x: math.cos(x) * math.sin(x)) - cos * sin
    covariance = [[squares[0] - cos * cos, both], [both, squares[1] - sin * sin]]
    np.testing.assert_allclose(law.statistics_covariance(), covariance, atol=1e-11)
    assert law.variance() == pytest.approx(1 - moment(lambda x: math.cos(x - direction)), abs=1e-11)
    eta = law.natural_parameters_

    def normalizer(e: np.ndarray) -> float:
        return float(law.log_normalizer(e))

    slope = optimize.approx_fprime(eta, normalizer, 1e-6)
    np.testing.assert_allclose(law.expected_statistics(), slope, atol=1e-6)
    back = law.with_mean_parameters(law.mean_parameters_)
    assert (back.direction_, back.concentration_) == pytest.approx((direction, concentration), rel=1e-9)
    other = sf.VonMises(0.3, 1.5)
    expected = moment(lambda x: float(law.log_prob(x) - other.log_prob(x)))
    assert law.kl_divergence(other) == pytest.approx(expected, abs=1e-10)


def test_derivatives_of_a_large_concentration_do_not_cancel() -> None:
    for size in (999.0, 1001.0, 1e6):  # Of a normal distribution of variance 1 / size, to the next order.
        slope = sf.VonMises(0.0, size).statistics_covariance()
        assert slope[0, 0] == pytest.approx(1 / (2 * size**2) * (1 + 1 / (2 * size) + 3 / (4 * size**2)), rel=1e-6)
        assert sf.VonMises(0.0, size).variance() == pytest.approx(1 / (2 * size) * (1 + 1 / (4 * size)), rel=1e-6)


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_maximum_likelihood_equals_that_of_scipy(weights: np.ndarray | None) -> None:
    rows = ANGLES if weights is None else np.repeat(ANGLES, weights)
    law = sf.VonMises().fit(ANGLES, sample_weight=weights)
    concentration, direction, _ = stats.vonmises.fit(rows, fscale=1)
    assert law.concentration_ == pytest.approx(concentration, rel=1e-9)
    assert law.direction_ == pytest.approx(direction, rel=1e-9)
    assert law.report_.log_likelihood == pytest.approx(stats.vonmises.logpdf(rows, concentration, direction).sum())
    assert law.report_.certificate.exists
    assert law.report_.certificate.moment_gap < 1e-8
    assert law.converged_
    turned = sf.VonMises().fit(ANGLES + 2 * math.pi * np.arange(10), sample_weight=weights)
    assert turned.concentration_ == pytest.approx(law.concentration_, rel=1e-9)


def test_standard_errors_are_those_of_the_information() -> None:
    angles = sf.VonMises(1.0, 2.0).sample(500, random_state=0)
    law = sf.VonMises().fit(angles)
    r = float(np.linalg.norm(law.mean_parameters_))
    kappa = law.concentration_
    errors, slope = law.standard_errors_, 1 - r / kappa - r * r
    assert errors["direction"] == pytest.approx(1 / math.sqrt(500 * kappa * r), rel=1e-5)
    assert errors["concentration"] == pytest.approx(1 / math.sqrt(500 * slope), rel=1e-5)


def test_samples_follow_the_law() -> None:
    draws = sf.VonMises(3.0, 2.0).sample(4000, random_state=0)
    assert np.abs(draws).max() <= math.pi
    away = np.mod(draws - 3.0 + math.pi, 2 * math.pi) - math.pi
    assert stats.kstest(away, stats.vonmises(2.0).cdf).pvalue > 1e-4


def test_what_makes_no_sense_is_an_error() -> None:
    with pytest.raises(sf.OptionError, match="Add pi to the direction"):
        sf.VonMises(0.0, -1.0)
    with pytest.raises(sf.OptionError, match="Give both, or neither"):
        sf.VonMises(direction=1.0).fit(ANGLES)
    with pytest.raises(sf.EstimateError, match="All angles are the same"):
        sf.VonMises().fit([0.0, 0.0, 0.0])
    assert sf.VonMises().fit([0.0, math.pi / 2, math.pi, -math.pi / 2]).concentration_ == pytest.approx(0.0, abs=1e-15)
    assert sf.HiddenMarkovModel(2, "von_mises").get_params()["emission"] == "von_mises"
