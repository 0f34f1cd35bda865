"""The mixture of Dirichlet laws against its definition, quadrature and sequential prediction."""

import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, special, stats

import suffice as sf
from untyped import untyped

WEIGHTS = np.array([0.5, 0.3, 0.2])
ALPHAS = np.array([[9.0, 1.0, 2.0], [1.0, 7.0, 0.5], [0.8, 0.8, 0.8]])


def mixture() -> sf.DirichletMixture:
    return sf.DirichletMixture(weights=WEIGHTS, alphas=ALPHAS)


def plain_density(x: np.ndarray) -> float:
    return float(sum(w * stats.dirichlet(alpha).pdf(x) for w, alpha in zip(WEIGHTS, ALPHAS, strict=True)))


def test_density_mean_and_variance() -> None:
    law = mixture()
    points = np.array([[0.2, 0.3, 0.5], [0.9, 0.05, 0.05], [0.01, 0.98, 0.01]])
    np.testing.assert_allclose(np.exp(law.log_prob(points)), [plain_density(x) for x in points], rtol=1e-10)
    np.testing.assert_array_equal(law.log_prob([[0.2, 0.2, 0.2], [1.2, -0.2, 0.0]]), [-np.inf, -np.inf])
    # Moments of the first part from the mixture of its beta laws, by quadrature in the log odds.
    rest = ALPHAS.sum(axis=1) - ALPHAS[:, 0]

    def part(z: float, power: int) -> float:
        x = special.expit(z)
        return float(WEIGHTS @ stats.beta.pdf(x, ALPHAS[:, 0], rest)) * x**power * x * special.expit(-z)

    first, second = (integrate.quad(part, -60, 35, (k,), epsabs=0, epsrel=1e-11, limit=300)[0] for k in (1, 2))
    assert law.mean()[0] == pytest.approx(first, rel=1e-9)
    assert law.variance()[0] == pytest.approx(second - first**2, rel=1e-8)


def test_one_component_is_a_dirichlet() -> None:
    law, plain = sf.DirichletMixture([1.0], [[2.0, 3.0, 4.0]]), sf.Dirichlet([2, 3, 4])
    x = [[0.2, 0.3, 0.5]]
    np.testing.assert_allclose(law.log_prob(x), plain.log_prob(x), rtol=1e-14)
    np.testing.assert_allclose(law.mean(), plain.mean())
    np.testing.assert_allclose(law.intervals(0.9), plain.intervals(0.9), rtol=1e-12)
    assert law.log_evidence([1, 0, 5]) == pytest.approx(plain.log_evidence([1, 0, 5]), rel=1e-14)
    np.testing.assert_array_equal(law.posterior([1, 0, 5]).alphas_, [[3, 3, 9]])


def test_posterior_weights_follow_bayes_on_the_components() -> None:
    counts = np.array([3, 1, 0])
    mass = [stats.dirichlet_multinomial.pmf(counts, alpha, np.array(4)) for alpha in ALPHAS]
    expected = WEIGHTS * mass / (WEIGHTS @ mass)
    posterior = mixture().posterior(counts)
    np.testing.assert_allclose(posterior.weights_, expected, rtol=1e-11)
    np.testing.assert_allclose(mixture().responsibilities(counts), expected, rtol=1e-11)
    np.testing.assert_array_equal(posterior.alphas_, ALPHAS + counts)
    # Of one sequence rather than of the counts: without the multinomial coefficient.
    assert mixture().log_evidence(counts) == pytest.approx(math.log(WEIGHTS @ mass / 4), rel=1e-11)
    # The posterior density is prior times likelihood over evidence, at any point.
    x = np.array([0.5, 0.3, 0.2])
    direct = math.log(plain_density(x) * 0.5**3 * 0.3) - mixture().log_evidence(counts)
    assert float(posterior.log_prob(x)) == pytest.approx(direct, rel=1e-10)


def test_posterior_of_no_counts_is_the_prior() -> None:
    posterior = mixture().posterior([0, 0, 0])
    np.testing.assert_allclose(posterior.weights_, WEIGHTS, rtol=1e-15)
    np.testing.assert_array_equal(posterior.alphas_, ALPHAS)
    assert mixture().log_evidence([0, 0, 0]) == pytest.approx(0, abs=1e-15)


@given(st.lists(st.integers(0, 2), min_size=1, max_size=12))
@settings(max_examples=30)
def test_one_step_predictions_multiply_to_the_evidence(rows: list[int]) -> None:
    law, chain = mixture(), 0.0
    for row in rows:
        chain += math.log(law.mean()[row])
        law = law.posterior(np.eye(3)[row])
    assert mixture().log_evidence(np.bincount(rows, minlength=3)) == pytest.approx(chain, rel=1e-11)
    np.testing.assert_allclose(law.mean(), mixture().posterior(np.bincount(rows, minlength=3)).mean(), rtol=1e-11)


def test_large_counts_do_not_underflow() -> None:
    counts = np.array([9e8, 1e8, 2e8])
    posterior = mixture().posterior(counts)
    assert np.isfinite(posterior.weights_).all()
    assert posterior.weights_.sum() == pytest.approx(1, rel=1e-15)
    assert posterior.weights_[0] > 0.9
    np.testing.assert_allclose(posterior.mean(), counts / counts.sum(), rtol=1e-7)


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_intervals_hold_the_mass_they_promise(level: float) -> None:
    intervals = mixture().intervals(level)
    rest = ALPHAS.sum(axis=1, keepdims=True) - ALPHAS
    for k in range(3):
        for x, q in zip(intervals[k], ((1 - level) / 2, (1 + level) / 2), strict=True):
            assert WEIGHTS @ stats.beta.cdf(x, ALPHAS[:, k], rest[:, k]) == pytest.approx(q, rel=1e-10)
    np.testing.assert_allclose(mixture().cdf(intervals[:, 0]), (1 - level) / 2, rtol=1e-10)


def test_intervals_near_zero_keep_their_digits() -> None:
    # Most of the mass of the first part is below 1e-50.
    law = sf.DirichletMixture([0.6, 0.4], [[0.01, 1.0], [5.0, 5.0]])
    low, _ = law.intervals(0.9)[0]
    assert 0.6 * stats.beta.cdf(low, 0.01, 1.0) == pytest.approx(0.05, rel=1e-9)
    assert 0 < low < 1e-50


def test_categorical_fits_with_a_mixture_prior() -> None:
    data = ["a", "b", "a", "a"]
    law = sf.Categorical(states=["a", "b", "c"], prior=mixture()).fit(data)
    expected = mixture().posterior([3, 1, 0])
    np.testing.assert_allclose(law.probabilities_, expected.mean(), rtol=1e-13)
    np.testing.assert_allclose(untyped(law.posterior_).weights_, expected.weights_, rtol=1e-13)
    assert law.log_evidence_ == pytest.approx(mixture().log_evidence([3, 1, 0]), rel=1e-14)
    np.testing.assert_allclose(np.exp(untyped(law.predictive_).log_prob(["a", "b", "c"])), expected.mean(), rtol=1e-13)
    assert law.credible_intervals(0.9)["probabilities"].shape == (3, 2)
    assert law.report_.certificate.moment_gap < 1e-10
    summary = sf.summarize(sf.Categorical(states=["a", "b", "c"]), data)
    np.testing.assert_allclose(mixture().posterior(summary).weights_, expected.weights_, rtol=1e-13)
    with pytest.raises(sf.EstimateError, match="no closed-form mode"):
        sf.Categorical(states=["a", "b", "c"], prior=mixture(), estimate="map").fit(data)
    with pytest.raises(sf.OptionError, match="3 parts and there are 2 states"):
        sf.Categorical(prior=mixture()).fit(data)


def test_samples_are_reproducible_and_follow_the_law() -> None:
    draws = mixture().sample(4000, random_state=0)
    np.testing.assert_array_equal(draws, mixture().sample(4000, random_state=0))
    np.testing.assert_allclose(draws.sum(axis=1), 1)

    def marginal(x: Any) -> Any:
        rest = ALPHAS.sum(axis=1) - ALPHAS[:, 1]
        return np.asarray(stats.beta.cdf(np.asarray(x)[..., None], ALPHAS[:, 1], rest) @ WEIGHTS)

    assert stats.kstest(draws[:, 1], marginal).pvalue > 1e-4
    # Components are not drawn in blocks.
    assert stats.kstest(draws[:2000, 1], marginal).pvalue > 1e-4


def test_a_component_of_weight_zero_has_no_say() -> None:
    law = sf.DirichletMixture([1.0, 0.0], [[2.0, 3.0], [1e-8, 1e-8]])
    plain = sf.Dirichlet([2, 3])
    np.testing.assert_allclose(law.log_prob([[0.0, 1.0], [0.3, 0.7]]), plain.log_prob([[0.0, 1.0], [0.3, 0.7]]))
    np.testing.assert_allclose(law.intervals(), plain.intervals(), rtol=1e-12)
    assert law.posterior([1, 1]).weights_.tolist() == [1.0, 0.0]


def test_options_and_files(tmp_path: Path) -> None:
    law = mixture()
    law.write(tmp_path / "law.json")
    for back in (sf.read(tmp_path / "law.json"), pickle.loads(pickle.dumps(law))):
        np.testing.assert_array_equal(back.weights_, law.weights_)
        np.testing.assert_array_equal(back.alphas_, law.alphas_)
    for weights in ([0.5, 0.6], [-0.5, 1.5], [], [np.nan, 1], [[0.5, 0.5]]):
        with pytest.raises(sf.OptionError, match="weights"):
            sf.DirichletMixture(weights, [[1, 2], [3, 4]])
    wrong: list[Any] = [[[1, 2]], [1, 2], [[1, 0], [1, 1]], [[], []]]
    for alphas in wrong:
        with pytest.raises(sf.OptionError, match="alphas"):
            sf.DirichletMixture([0.5, 0.5], alphas)
    for counts in ([1, 2], [-1, 0, 0], "abc"):
        with pytest.raises(sf.OptionError, match="counts"):
            law.posterior(counts)
    with pytest.raises(sf.EstimateError, match="mode"):
        law.mode()
    with pytest.raises(sf.OptionError, match="not fitted"):
        law.fit([[0.5, 0.5]])
    with pytest.raises(sf.OptionError, match="not a conjugate prior of Bernoulli"):
        law.posterior([1, 2, 3], likelihood=sf.Bernoulli())
