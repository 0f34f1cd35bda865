"""The negative binomial law against scipy.stats, sums over the counts, quadrature and a generic maximiser."""

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


@pytest.mark.parametrize(("size", "p"), [(1, 0.3), (3, 0.6), (0.25, 0.1), (7.5, 0.99), (2e3, 0.5), (4, 1e-3)])
def test_evaluation_equals_scipy(size: float, p: float) -> None:
    law, oracle = sf.NegativeBinomial(size, p), stats.nbinom(size, p)
    x = np.unique(np.r_[0:30, oracle.ppf([0.01, 0.3, 0.9, 0.999])])
    np.testing.assert_allclose(law.log_prob(x), oracle.logpmf(x), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(law.cdf(x), oracle.cdf(x), rtol=1e-12)
    np.testing.assert_allclose(law.cdf(x + 0.5), oracle.cdf(x), rtol=1e-12)
    q = [1e-6, 0.1, 0.5, 0.9, 1 - 1e-9, 1.0]
    np.testing.assert_array_equal(law.quantile(q), oracle.ppf(q))
    assert law.quantile(0.0) == 0
    np.testing.assert_allclose([law.mean(), law.variance()], oracle.stats("mv"), rtol=1e-12)
    near = np.arange(max(0, law.mode() - 50), law.mode() + 50)
    assert law.log_prob(law.mode()) == pytest.approx(float(law.log_prob(near).max()), abs=1e-12)


def test_quantiles_undo_the_distribution_function() -> None:
    for size, p in ((2.5, 0.3), (0.01, 0.9), (1e6, 0.999), (3.0, 1e-9)):
        law = sf.NegativeBinomial(size, p)
        x = law.quantile([0.001, 0.25, 0.75, 0.9999])
        np.testing.assert_array_equal(law.quantile(law.cdf(x)), x)
        assert (law.cdf(x) >= [0.001, 0.25, 0.75, 0.9999]).all()
        assert (law.cdf(x - 1) < [0.001, 0.25, 0.75, 0.9999]).all()


@pytest.mark.parametrize(("size", "p"), [(1, 0.3), (3, 0.6), (0.25, 0.1), (40.5, 0.9), (2, 0.02)])
def test_entropy_equals_the_sum(size: float, p: float) -> None:
    x = np.arange(20_000)
    mass = stats.nbinom.pmf(x, size, p)
    logs = stats.nbinom.logpmf(x, size, p)
    expected = -float((mass * np.where(mass > 0, logs, 0)).sum())
    assert sf.NegativeBinomial(size, p).entropy() == pytest.approx(expected, rel=1e-12)


def test_entropy_costs_the_same_for_huge_means() -> None:
    # With a large mean the law is nearly Gamma(size, rate), whose entropy is that of the counts.
    size, p = 3.0, 1e-12
    expected = float(stats.gamma(size, scale=1 / p).entropy())
    assert sf.NegativeBinomial(size, p).entropy() == pytest.approx(expected, rel=1e-10)
    # With a huge size and a small rate of failures it is nearly Poisson.
    nearly = sf.NegativeBinomial(3 * 2.0**40, 1 - 2.0**-40).entropy()
    assert nearly == pytest.approx(float(stats.poisson(3.0).entropy()), rel=1e-9)


def test_statistics_maps_and_cumulants() -> None:
    for size, eta, radius in ((1.0, -0.5, 0.25), (3.5, -1.0, 0.5), (0.4, -2.0, 1.0)):
        check_exponential_family(
            sf.NegativeBinomial(size), [eta], Grid.counts(900), [([1.0], radius), ([-1.0], radius), ([0.5], radius)]
        )


def test_natural_parameter_is_the_log_probability_of_a_failure() -> None:
    for p in (1e-9, 0.2, 0.999):
        law = sf.NegativeBinomial(2.5, p)
        assert -math.expm1(law.natural_parameters_[0]) == pytest.approx(p, rel=1e-13)
        assert law.log_normalizer() == pytest.approx(-2.5 * math.log(p), rel=1e-13)
    assert sf.NegativeBinomial(2.5).log_normalizer([0.0]) == math.inf
    # Rare successes: the mean is size / p, which 1 - exp(eta) would not give.
    assert sf.NegativeBinomial(2.0).expected_statistics([-1e-14])[0] == pytest.approx(2e14, rel=1e-13)


def test_fourth_derivative_is_the_cumulant_and_not_the_central_moment() -> None:
    law = sf.NegativeBinomial(3.0, 0.6)
    found = law.cumulants(4, [1.0])
    grid = Grid.counts(300)
    np.testing.assert_allclose(found, cauchy_cumulants(law, [math.log(0.4)], [1.0], grid, 0.4, 4), rtol=1e-9)
    mass = stats.nbinom.pmf(grid.x, 3, 0.6)
    moment = float(mass @ (grid.x - 2) ** 4)
    assert found[3] == pytest.approx(moment - 3 * law.variance() ** 2, rel=1e-10)
    assert abs(found[3] - moment) > 10


def test_entropy_and_divergence() -> None:
    for size, mine, theirs in ((2.5, 0.3, 0.6), (0.3, 0.9, 0.2), (10.0, 0.5, 0.501)):
        pair = sf.NegativeBinomial(size, mine), sf.NegativeBinomial(size, theirs)
        check_entropy_and_divergence(*pair, Grid.counts(1500))
    assert sf.NegativeBinomial(2, 1.0).kl_divergence(sf.NegativeBinomial(2, 0.5)) == pytest.approx(2 * math.log(2))
    assert sf.NegativeBinomial(2, 0.5).kl_divergence(sf.NegativeBinomial(2, 1.0)) == math.inf
    with pytest.raises(sf.OptionError, match="one size"):
        sf.NegativeBinomial(2, 0.5).kl_divergence(sf.NegativeBinomial(3, 0.5))


def test_large_sizes_keep_their_digits() -> None:
    # The Poisson limit: size log(p) and the rising factorial cancel to the size of log x!.
    size, rate = 2.0**50, 4.0
    law = sf.NegativeBinomial(size, size / (size + rate))
    np.testing.assert_allclose(law.log_prob(np.arange(12)), stats.poisson.logpmf(np.arange(12), rate), rtol=1e-12)


def test_samples_are_reproducible_and_follow_the_law() -> None:
    law = sf.NegativeBinomial(2.5, 0.4)
    draws = law.sample(20_000, random_state=0)
    np.testing.assert_array_equal(draws, law.sample(20_000, random_state=0))
    expected = 20_000 * stats.nbinom.pmf(np.arange(15), 2.5, 0.4)
    observed = np.bincount(draws, minlength=15)[:15]
    assert stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), 14) > 1e-4


@pytest.mark.parametrize("weights", [None, W])
@pytest.mark.parametrize("size", [1.0, 0.7, 12.0])
def test_maximum_likelihood(size: float, weights: np.ndarray | None) -> None:
    rows = X if weights is None else weighted(X, weights)
    law = sf.NegativeBinomial(size).fit(X, sample_weight=weights)
    (best,), value = maximise(lambda z: float(stats.nbinom.logpmf(rows, size, expit(z[0])).sum()), [0.0])
    assert law.probability_ == pytest.approx(float(expit(best)), rel=1e-6)
    assert law.size_ == size
    assert law.report_.log_likelihood == pytest.approx(value, rel=1e-12)
    assert law.report_.certificate.moment_gap < 1e-14
    assert law.report_.certificate.exists is True
    assert law.report_.n_params == 1
    assert law.score(X, sample_weight=weights) == pytest.approx(value / len(rows), rel=1e-12)


def test_likelihood_and_divergence_from_the_data_add_up_to_the_entropy_of_the_data() -> None:
    report = sf.NegativeBinomial(2.0).fit(X).report_
    p = np.bincount(X) / len(X)
    q = stats.nbinom.pmf(np.arange(len(p)), 2, 2 / (2 + X.mean()))
    direct = float(np.sum(p[p > 0] * np.log(p[p > 0] / q[p > 0])))
    assert report.empirical_entropy == pytest.approx(stats.entropy(p), rel=1e-13)
    assert report.kl_divergence == pytest.approx(direct, rel=1e-11)
    assert report.kl_divergence == pytest.approx(-stats.entropy(p) - report.log_likelihood / len(X), rel=1e-11)


def test_all_zero_gives_the_limit_and_says_so() -> None:
    law = sf.NegativeBinomial(2.0).fit([0, 0, 0])
    assert law.probability_ == 1
    assert law.report_.log_likelihood == 0
    assert law.report_.certificate.exists is False
    assert "-inf" in law.report_.certificate.directions[0]
    assert law.report_.warnings
    np.testing.assert_array_equal(law.log_prob([0, 1, 2]), [0, -np.inf, -np.inf])
    assert (law.entropy(), law.mode(), law.mean(), law.variance()) == (0, 0, 0, 0)
    np.testing.assert_array_equal(law.quantile([0.0, 0.5, 1.0]), [0, 0, 0])
    np.testing.assert_array_equal(law.natural_parameters_, [-np.inf])
    np.testing.assert_array_equal(law.cumulants(4, [1.0]), np.zeros(4))
    assert law.score([0, 1]) == -np.inf


def test_posterior_mean_map_and_evidence_against_quadrature() -> None:
    prior, oracle, size = sf.Beta(2.5, 1.5), stats.beta(2.5, 1.5), 1.7

    def joint(p: float) -> float:
        return float(np.exp(stats.nbinom.logpmf(X, size, p).sum() + oracle.logpdf(p) + 20))

    evidence = integrate.quad(joint, 0, 1, epsabs=0, epsrel=1e-12)[0]
    mean = integrate.quad(lambda p: p * joint(p), 0, 1, epsabs=0, epsrel=1e-12)[0] / evidence
    law = sf.NegativeBinomial(size, prior=prior).fit(X)
    assert law.probability_ == pytest.approx(mean, rel=1e-10)
    assert law.log_evidence_ == pytest.approx(math.log(evidence) - 20, rel=1e-10)
    assert law.report_.parameterisation == "in probability"
    mode = sf.NegativeBinomial(size, prior=prior, estimate="map").fit(X)
    (best,), value = maximise(lambda z: math.log(joint(float(expit(z[0])))) - 20, [0.0])
    assert mode.probability_ == pytest.approx(float(expit(best)), rel=1e-6)
    assert mode.report_.objective == pytest.approx(value, rel=1e-11)
    assert mode.report_.certificate.moment_gap < 1e-10
    assert mode.report_.parameterisation == "in probability"
    low, high = law.credible_intervals(0.9)["probability"]
    posterior = stats.beta(2.5 + size * len(X), 1.5 + X.sum())
    np.testing.assert_allclose(posterior.cdf([low, high]), [0.05, 0.95], rtol=1e-10)
    for x in (0, 3, 9):
        direct = integrate.quad(
            lambda p, x=x: stats.nbinom.pmf(x, size, p) * posterior.pdf(p), 0, 1, epsabs=0, epsrel=1e-11
        )[0]
        assert law.predictive_.log_prob(x) == pytest.approx(math.log(direct), rel=1e-9)


def test_one_step_predictions_multiply_to_the_evidence() -> None:
    prior, size = sf.Beta(0.7, 1.3), 2.25
    nothing = sf.summarize(sf.NegativeBinomial(size), X) * 0.0
    chain = 0.0
    for k in range(len(X)):
        law = sf.NegativeBinomial(size, prior=prior).fit(X[:k] if k else nothing)
        chain += float(law.predictive_.log_prob(X[k]))
    assert sf.NegativeBinomial(size, prior=prior).fit(X).log_evidence_ == pytest.approx(chain, rel=1e-12)


def test_no_rows_give_the_prior_back() -> None:
    nothing = sf.summarize(sf.NegativeBinomial(2), X) * 0.0
    law = sf.NegativeBinomial(2, prior=sf.Beta(3, 1)).fit(nothing)
    assert law.posterior_.parameters_ == {"alpha": 3.0, "beta": 1.0}
    assert law.probability_ == 0.75
    assert law.log_evidence_ == 0
    with pytest.raises(sf.EstimateError, match=r"All weights of the \d+ rows are 0"):
        sf.NegativeBinomial(2).fit(nothing)
    with pytest.raises(sf.EstimateError, match="no success"):
        sf.NegativeBinomial(2, prior=sf.Beta(1, 3), estimate="map").fit(nothing)
    assert sf.NegativeBinomial(2, prior=sf.Beta(1, 1)).fit([3]).probability_ == pytest.approx(3 / 7)


@given(st.lists(st.integers(0, 40), min_size=2, max_size=20), st.integers(1, 19), st.floats(0.1, 20))
def test_rows_add_up_and_can_be_taken_out(values: list[int], cut: int, size: float) -> None:
    cut = min(cut, len(values) - 1)
    whole = sf.NegativeBinomial(size).fit(values)
    parts = sf.NegativeBinomial(size).fit(values[:cut]).partial_fit(values[cut:])
    assert parts.probability_ == whole.probability_
    assert parts.report_.log_likelihood == whole.report_.log_likelihood
    assert sf.NegativeBinomial(size).fit(values[::-1]).probability_ == whole.probability_
    first = sf.NegativeBinomial(size).fit(values[:cut])
    assert parts.unlearn(values[cut:]).probability_ == first.probability_
    doubled = sf.NegativeBinomial(size).fit(values, sample_weight=np.full(len(values), 2))
    assert doubled.report_.log_likelihood == sf.NegativeBinomial(size).fit(values * 2).report_.log_likelihood


@pytest.mark.parametrize("bad", [[1, -1], [0.5, 1], [1, np.inf], ["a", "b"]])
def test_values_that_are_no_counts_are_refused(bad: list[object]) -> None:
    with pytest.raises(sf.DataError, match="'x'"):
        sf.NegativeBinomial(2).fit(bad)


def test_gaps_are_refused() -> None:
    with pytest.raises(sf.MissingValueError, match="missing values"):
        sf.NegativeBinomial(2).fit([1, np.nan, 2])


def test_off_the_support_the_log_probability_is_minus_infinity() -> None:
    law = sf.NegativeBinomial(2, 0.5)
    off = [-1, 0.5, np.inf, -np.inf, np.nan]
    np.testing.assert_array_equal(law.log_prob(off), np.full(5, -np.inf))
    np.testing.assert_array_equal(law.log_base_measure(off), np.full(5, -np.inf))
    np.testing.assert_array_equal(law.cdf([-0.5, -np.inf, np.inf]), [0, 0, 1])


def test_files_pickles_and_clones(tmp_path: Path) -> None:
    law = sf.NegativeBinomial(2.5, prior=sf.Beta(2, 1)).fit(X)
    law.write(tmp_path / "law.json")
    for back in (sf.read(tmp_path / "law.json"), pickle.loads(pickle.dumps(law))):
        assert back.parameters_ == law.parameters_
        assert back.predictive_.parameters_ == law.predictive_.parameters_
    assert law.clone().get_params(deep=False)["size"] == 2.5
    assert law.with_mean_parameters([2.5]).parameters_ == {"size": 2.5, "probability": 0.5}


def test_options_are_checked() -> None:
    for bad in (0, -1, np.nan, np.inf, "x", [1, 2]):
        with pytest.raises(sf.OptionError, match="size"):
            sf.NegativeBinomial(bad, 0.5)  # type: ignore[arg-type]
    for bad in (0, -0.1, 1.1, np.nan, "x"):
        with pytest.raises(sf.OptionError, match="probability"):
            sf.NegativeBinomial(2, bad)  # type: ignore[arg-type]
    with pytest.raises(sf.OptionError, match="known size"):
        sf.NegativeBinomial().fit(X)
    with pytest.raises(sf.OptionError, match="known size"):
        sf.NegativeBinomial(prior=sf.Beta(1, 1)).fit(X)
    with pytest.raises(sf.OptionError, match="nothing to fit"):
        sf.NegativeBinomial(2, 0.5).fit(X)
    with pytest.raises(sf.OptionError, match="nothing to fit"):
        sf.NegativeBinomial(2, 0.5, prior=sf.Beta(1, 1)).fit(X)
    with pytest.raises(sf.OptionError, match="Beta"):
        sf.NegativeBinomial(2, prior=1.0).fit(X)
    with pytest.raises(sf.NotFittedError, match="probability"):
        sf.NegativeBinomial(2).log_prob(1)
    with pytest.raises(sf.OptionError, match="from 0 to 1"):
        sf.NegativeBinomial(2, 0.5).quantile(2)


def test_a_size_that_leaves_every_count_at_zero_is_refused() -> None:
    """The probability of a success, 1 - 2e-300, is 1 in float64: no law of these counts."""
    with pytest.raises(sf.EstimateError, match=r"is 1 in float64.*distribution of Poisson"):
        sf.NegativeBinomial(size=1e300).fit([1, 2, 3])
    assert sf.NegativeBinomial(size=1e300).fit([0, 0]).probability_ == 1.0
