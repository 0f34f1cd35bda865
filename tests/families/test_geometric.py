"""The geometric law against scipy.stats, sums, quadrature, and as the negative binomial law of size one."""

import math
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats
from scipy.special import expit

import suffice as sf
from families.law_oracles import Grid, check_entropy_and_divergence, check_exponential_family, maximise, weighted

X = np.array([0, 3, 1, 2, 7, 0, 4, 2, 1, 1])
W = np.array([1, 2, 1, 1, 3, 1, 2, 1, 1, 1])


@pytest.mark.parametrize("p", [1e-9, 0.01, 0.3, 0.5, 0.97, 1.0])
def test_evaluation_equals_scipy(p: float) -> None:
    # scipy counts the trials, success included: one more than the failures.
    law, oracle = sf.Geometric(p), stats.geom(p, loc=-1)
    x = np.arange(40)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(law.log_prob(x), oracle.logpmf(x), rtol=1e-13)
        np.testing.assert_allclose(law.cdf(x), oracle.cdf(x), rtol=1e-13)
    if 1e-3 < p < 1:
        q = [1e-6, 0.1, 0.45, 0.9, 1 - 1e-9]
        np.testing.assert_array_equal(law.quantile(q), np.maximum(oracle.ppf(q), 0))
    np.testing.assert_allclose([law.mean(), law.variance()], [(1 - p) / p, (1 - p) / p**2], rtol=1e-13)
    failures = (1 - p) * math.log1p(-p) if p < 1 else 0.0
    assert law.entropy() == pytest.approx(-(failures + p * math.log(p)) / p, rel=1e-13)
    assert law.mode() == 0


@given(st.floats(1e-6, 1), st.integers(0, 1000))
def test_it_is_the_negative_binomial_law_of_size_one(p: float, x: int) -> None:
    mine, parent = sf.Geometric(p), sf.NegativeBinomial(1, p)
    assert mine.log_prob(x) == pytest.approx(float(parent.log_prob(x)), rel=1e-12)
    assert mine.cdf(x) == pytest.approx(float(parent.cdf(x)), rel=1e-9)
    assert mine.entropy() == pytest.approx(parent.entropy(), rel=1e-9, abs=1e-14)
    np.testing.assert_array_equal(mine.cumulants(5), parent.cumulants(5))


def test_statistics_maps_and_cumulants() -> None:
    for eta, radius in ((-0.5, 0.25), (-1.5, 0.7)):
        check_exponential_family(sf.Geometric(), [eta], Grid.counts(900), [([1.0], radius), ([-0.5], radius)])


def test_entropy_and_divergence() -> None:
    check_entropy_and_divergence(sf.Geometric(0.3), sf.Geometric(0.6), Grid.counts(1500))
    with pytest.raises(sf.OptionError, match="one family"):
        sf.Geometric(0.3).kl_divergence(sf.NegativeBinomial(1, 0.3))


def test_samples_are_reproducible_and_follow_the_law() -> None:
    draws = sf.Geometric(0.3).sample(20_000, random_state=0)
    np.testing.assert_array_equal(draws, sf.Geometric(0.3).sample(20_000, random_state=0))
    assert draws.min() == 0
    expected = 20_000 * stats.geom.pmf(np.arange(1, 15), 0.3)
    observed = np.bincount(draws, minlength=14)[:14]
    assert stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), 13) > 1e-4
    assert sf.Geometric(1.0).sample(5, random_state=0).tolist() == [0] * 5


@pytest.mark.parametrize("weights", [None, W])
def test_maximum_likelihood(weights: np.ndarray | None) -> None:
    rows = X if weights is None else weighted(X, weights)
    law = sf.Geometric().fit(X, sample_weight=weights)
    (best,), value = maximise(lambda z: float(stats.geom.logpmf(rows + 1, expit(z[0])).sum()), [0.0])
    assert law.probability_ == pytest.approx(float(expit(best)), rel=1e-6)
    assert law.probability_ == pytest.approx(1 / (1 + rows.mean()), rel=1e-15)
    assert law.report_.log_likelihood == pytest.approx(value, rel=1e-12)
    assert law.report_.certificate.moment_gap < 1e-14
    p = np.bincount(rows) / len(rows)
    assert law.report_.kl_divergence == pytest.approx(-stats.entropy(p) - value / len(rows), rel=1e-11)


def test_all_zero_gives_the_limit_and_says_so() -> None:
    law = sf.Geometric().fit([0, 0])
    assert law.parameters_ == {"probability": 1.0}
    assert law.report_.certificate.exists is False
    assert law.report_.log_likelihood == 0
    np.testing.assert_array_equal(law.log_prob([0, 1]), [0, -np.inf])
    assert law.entropy() == 0


def test_posterior_against_quadrature() -> None:
    prior, oracle = sf.Beta(2.5, 1.5), stats.beta(2.5, 1.5)

    def joint(p: float) -> float:
        return float(np.exp(stats.geom.logpmf(X + 1, p).sum() + oracle.logpdf(p) + 20))

    evidence = integrate.quad(joint, 0, 1, epsabs=0, epsrel=1e-12)[0]
    mean = integrate.quad(lambda p: p * joint(p), 0, 1, epsabs=0, epsrel=1e-12)[0] / evidence
    law = sf.Geometric(prior=prior).fit(X)
    assert law.probability_ == pytest.approx(mean, rel=1e-10)
    assert law.log_evidence_ == pytest.approx(math.log(evidence) - 20, rel=1e-10)
    assert law.posterior_.parameters_ == {"alpha": 2.5 + len(X), "beta": 1.5 + X.sum()}
    assert law.predictive_.parameters_["size"] == 1
    mode = sf.Geometric(prior=prior, estimate="map").fit(X)
    (best,), value = maximise(lambda z: math.log(joint(float(expit(z[0])))) - 20, [0.0])
    assert mode.probability_ == pytest.approx(float(expit(best)), rel=1e-6)
    assert mode.report_.objective == pytest.approx(value, rel=1e-11)
    assert mode.report_.certificate.moment_gap < 1e-10
    assert set(law.credible_intervals()) == {"probability"}


def test_files_pickles_and_options(tmp_path: Path) -> None:
    law = sf.Geometric(prior=sf.Beta(2, 1)).fit(X)
    law.write(tmp_path / "law.json")
    for back in (sf.read(tmp_path / "law.json"), pickle.loads(pickle.dumps(law))):
        assert back.parameters_ == law.parameters_
        assert back.posterior_.parameters_ == law.posterior_.parameters_
    assert list(law.get_params(deep=False)) == ["probability", "prior", "estimate", "progress"]
    assert repr(sf.Geometric(0.5)) == "Geometric(probability=0.5)"
    for bad in (0, 1.5, -1, np.nan, "x"):
        with pytest.raises(sf.OptionError, match="probability"):
            sf.Geometric(bad)  # type: ignore[arg-type]
    with pytest.raises(sf.OptionError, match="nothing to fit"):
        sf.Geometric(0.5).fit(X)
    with pytest.raises(sf.DataError, match="'x'"):
        sf.Geometric().fit([1, -1])
    with pytest.raises(sf.NotFittedError, match="probability"):
        sf.Geometric().mean()
