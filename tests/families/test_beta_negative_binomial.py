"""The beta negative binomial law against scipy.stats and quadrature over the probability."""

import math
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

import suffice as sf


@pytest.mark.parametrize(("size", "a", "b"), [(1, 3.0, 4.0), (5, 2.5, 0.7), (12, 40.0, 3.0)])
def test_evaluation_equals_scipy(size: int, a: float, b: float) -> None:
    law, oracle = sf.BetaNegativeBinomial(size, a, b), stats.betanbinom(size, a, b)
    x = np.arange(60)
    np.testing.assert_allclose(law.log_prob(x), oracle.logpmf(x), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(law.cdf(x), np.cumsum(oracle.pmf(x)), rtol=1e-11)
    np.testing.assert_allclose(law.cdf([-1, 3.7, np.inf]), [0, np.cumsum(oracle.pmf(x))[3], 1], rtol=1e-11)
    np.testing.assert_allclose([law.mean(), law.variance()], oracle.stats("mv"), rtol=1e-12)


@pytest.mark.parametrize(("size", "a", "b"), [(0.5, 2.0, 3.0), (2.25, 0.6, 1.4), (30.0, 5.0, 9.0)])
def test_mass_equals_the_mixture_of_negative_binomial_laws(size: float, a: float, b: float) -> None:
    law = sf.BetaNegativeBinomial(size, a, b)
    for x in (0, 1, 5, 40):
        direct = integrate.quad(
            lambda p, x=x: stats.nbinom.pmf(x, size, p) * stats.beta.pdf(p, a, b),
            0,
            1,
            epsabs=0,
            epsrel=1e-10,
            limit=200,
        )[0]
        assert float(law.log_prob(x)) == pytest.approx(math.log(direct), rel=1e-8)


@given(st.floats(0.2, 30), st.floats(0.2, 30), st.floats(0.2, 30))
def test_mode_is_the_largest_mass(size: float, a: float, b: float) -> None:
    law = sf.BetaNegativeBinomial(size, a, b)
    mode = law.mode()
    around = law.log_prob(np.arange(2 * mode + 50))
    assert float(law.log_prob(mode)) == pytest.approx(float(around.max()), abs=1e-11)


def test_far_out_the_mass_falls_like_a_power() -> None:
    # P(x) ~ x^-(alpha + 1) Gamma(alpha + size) Gamma(alpha + beta) / (Gamma(size) Gamma(alpha) Gamma(beta)).
    law = sf.BetaNegativeBinomial(2.5, 1.5, 0.5)
    constant = math.gamma(4.0) * math.gamma(2.0) / (math.gamma(2.5) * math.gamma(1.5) * math.gamma(0.5))
    assert float(law.log_prob(2.0**50)) == pytest.approx(math.log(constant) - 2.5 * 50 * math.log(2), rel=1e-14)


def test_the_tail_of_size_one_has_a_closed_form() -> None:
    law = sf.BetaNegativeBinomial(1, 0.8, 2.0)
    x = np.array([0, 10, 10_000])
    sums = np.cumsum(np.exp(law.log_prob(np.arange(10_001))))[x]
    np.testing.assert_allclose(law.cdf(x), sums, rtol=1e-10)
    np.testing.assert_allclose(1 - law.cdf(1e12), (1e12) ** -0.8 * math.gamma(2.8) / math.gamma(2.0), rtol=1e-6)


def test_large_parameters_approach_the_negative_binomial_law() -> None:
    # Beta(0.3 n, 0.7 n) closes in on 0.3; at n = 10^14 the masses agree to about 1/n.
    law, limit = sf.BetaNegativeBinomial(4.0, 0.3e14, 0.7e14), stats.nbinom(4, 0.3)
    np.testing.assert_allclose(law.log_prob(np.arange(30)), limit.logpmf(np.arange(30)), rtol=1e-11)


def test_moments_that_do_not_exist_are_refused() -> None:
    with pytest.raises(sf.EstimateError, match="no mean"):
        sf.BetaNegativeBinomial(2, 1.0, 3).mean()
    with pytest.raises(sf.EstimateError, match="no variance"):
        sf.BetaNegativeBinomial(2, 2.0, 3).variance()
    with pytest.raises(sf.SizeError, match="sum over"):
        sf.BetaNegativeBinomial(2, 2.0, 3).cdf(1e12)


def test_samples_are_reproducible_and_follow_the_law() -> None:
    law = sf.BetaNegativeBinomial(2.5, 4.0, 3.0)
    draws = law.sample(20_000, random_state=0)
    np.testing.assert_array_equal(draws, law.sample(20_000, random_state=0))
    expected = 20_000 * np.exp(law.log_prob(np.arange(12)))
    observed = np.bincount(draws, minlength=12)[:12]
    assert stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), 11) > 1e-4


def test_draws_far_out_are_whole_numbers() -> None:
    draws = sf.BetaNegativeBinomial(0.01, 0.001, 3.0).sample(2000, random_state=0)
    assert draws.dtype == np.int64
    assert draws.min() >= 0
    assert draws.max() > 1e17


def test_off_the_support_options_and_files(tmp_path: Path) -> None:
    law = sf.BetaNegativeBinomial(size=2, alpha=3, beta=4)
    np.testing.assert_array_equal(law.log_prob([-1, 0.5, np.inf, np.nan]), np.full(4, -np.inf))
    law.write(tmp_path / "law.json")
    assert sf.read(tmp_path / "law.json").parameters_ == law.parameters_
    assert pickle.loads(pickle.dumps(law)).parameters_ == law.parameters_
    for name in ("size", "alpha", "beta"):
        with pytest.raises(sf.OptionError, match=name):
            sf.BetaNegativeBinomial(**{"size": 1.0, "alpha": 1.0, "beta": 1.0, name: 0.0})
    with pytest.raises(sf.OptionError, match="not fitted"):
        law.fit([1, 2])
