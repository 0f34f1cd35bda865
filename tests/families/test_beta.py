"""The beta law against scipy.stats, quadrature and a generic maximiser; as a prior against quadrature."""

import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats
from scipy.special import expit

import suffice as sf
from families.law_oracles import Grid, check_entropy_and_divergence, check_exponential_family, maximise, weighted

X = np.array([0.11, 0.52, 0.34, 0.85, 0.47, 0.23, 0.61, 0.9, 0.05, 0.37])
W = np.array([1, 2, 1, 3, 1, 1, 2, 1, 1, 4])


def unit_grid(n: int = 8001) -> Grid:
    """The trapezoidal rule in the log odds."""
    odds = Grid.real(-36.0, 34.0, n)
    x = expit(odds.x)
    return Grid(x, odds.w * x * expit(-odds.x))


@pytest.mark.parametrize(("a", "b"), [(2.5, 3.5), (0.3, 0.7), (1.0, 1.0), (1.0, 4.0), (200.0, 3.0), (1e5, 2e5)])
def test_evaluation_equals_scipy(a: float, b: float) -> None:
    law, oracle = sf.Beta(a, b), stats.beta(a, b)
    x = oracle.ppf([1e-6, 0.01, 0.3, 0.5, 0.9, 0.999])
    np.testing.assert_allclose(law.log_prob(x), oracle.logpdf(x), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(law.cdf(x), oracle.cdf(x), rtol=1e-12)
    np.testing.assert_allclose(law.quantile([1e-6, 0.3, 0.999]), oracle.ppf([1e-6, 0.3, 0.999]), rtol=1e-12)
    np.testing.assert_allclose([law.mean(), law.variance()], oracle.stats("mv"), rtol=1e-13)
    assert law.entropy() == pytest.approx(float(oracle.entropy()), rel=1e-7, abs=1e-9)
    np.testing.assert_array_equal(law.cdf([-1, 0, 1, 2]), [0, 0, 1, 1])


def test_ends_of_the_interval_follow_the_exponents() -> None:
    np.testing.assert_array_equal(sf.Beta(2, 3).log_prob([0, 1, -0.1, 1.1, np.nan, np.inf]), np.full(6, -np.inf))
    np.testing.assert_allclose(sf.Beta(1, 3).log_prob([0.0, 1.0]), [math.log(3), -np.inf], rtol=1e-14)
    np.testing.assert_array_equal(sf.Beta(0.5, 0.5).log_prob([0, 1]), [np.inf, np.inf])
    np.testing.assert_allclose(sf.Beta(1, 1).log_prob([0, 0.3, 1]), 0, atol=1e-15)


def test_statistics_maps_and_cumulants() -> None:
    for a, b, radius in ((2.5, 3.5, 1.0), (1.2, 1.9, 0.4), (30.0, 12.0, 4.0)):
        directions = [([1.0, 0.0], radius), ([0.0, 1.0], radius), ([1.0, -0.7], radius / 2)]
        check_exponential_family(sf.Beta(), [a - 1, b - 1], unit_grid(), directions)


def test_expected_statistics_round_trip_for_any_shape() -> None:
    for a, b in ((1e-5, 1e-5), (0.01, 1e6), (2.0, 1e12), (1e4, 3e4), (5.0, 0.02)):
        law = sf.Beta(a, b)
        back = sf.Beta().with_mean_parameters(law.mean_parameters_)
        # Natural parameters are alpha - 1 and beta - 1, whose rounding shows in small alpha.
        rounding = 1e-14 * (10 + min(a, b) + 1 / min(a, b))
        np.testing.assert_allclose([back.alpha_, back.beta_], [a, b], rtol=rounding)
    with pytest.raises(sf.OptionError, match="mean of log x"):
        sf.Beta().with_mean_parameters([-0.1, -0.1])


def test_entropy_and_divergence() -> None:
    check_entropy_and_divergence(sf.Beta(2.5, 3.5), sf.Beta(4.0, 1.5), unit_grid())
    check_entropy_and_divergence(sf.Beta(1.0, 0.8), sf.Beta(0.9, 1.0), unit_grid())
    with pytest.raises(sf.OptionError, match="one family"):
        sf.Beta(1, 2).kl_divergence(sf.Gamma(1, 2))


def test_samples_are_reproducible_and_follow_the_law() -> None:
    law = sf.Beta(2.5, 0.7)
    draws = law.sample(5_000, random_state=0)
    np.testing.assert_array_equal(draws, law.sample(5_000, random_state=0))
    assert stats.kstest(draws, stats.beta(2.5, 0.7).cdf).pvalue > 1e-4


@pytest.mark.parametrize("weights", [None, W])
def test_maximum_likelihood(weights: np.ndarray | None) -> None:
    rows = X if weights is None else weighted(X, weights)
    law = sf.Beta().fit(X, sample_weight=weights)
    best, value = maximise(lambda z: float(stats.beta.logpdf(rows, *np.exp(z)).sum()), [0.0, 0.0])
    np.testing.assert_allclose([law.alpha_, law.beta_], np.exp(best), rtol=1e-6)
    assert law.report_.log_likelihood == pytest.approx(value, rel=1e-12)
    assert law.report_.certificate.moment_gap < 1e-11
    assert law.report_.certificate.value_gap is not None
    assert law.report_.certificate.value_gap < 1e-20
    assert law.report_.certificate.exists is True
    assert law.converged_
    assert law.n_iter_ > 0
    assert np.all(np.diff(law.history_) > -1e-12)
    assert law.score(X, sample_weight=weights) == pytest.approx(value / len(rows), rel=1e-12)


@pytest.mark.parametrize(
    ("centre", "spread"), [(0.5, 1e-3), (0.5, 1e-5), (0.3, 1e-6), (1e-9, 3e-10), (1 - 1e-6, 1e-8), (1e-100, 5e-101)]
)
def test_nearly_constant_columns_converge_without_a_warning(centre: float, spread: float) -> None:
    # With a small variance v about m, alpha + beta is m (1 - m) / v but for a relative error of order v.
    x = centre + spread * np.array([-1.5, -0.5, 0.5, 1.5])
    law = sf.Beta().fit(x)
    assert law.converged_
    assert law.mean() == pytest.approx(x.mean(), rel=max(5 * (spread / centre) ** 2, 1e-12))
    if spread / centre < 0.01:
        total = x.mean() * (1 - x.mean()) / x.var()
        assert law.alpha_ + law.beta_ == pytest.approx(total, rel=max(1e-4, 1e-14 * total))


@given(st.floats(0.1, 30), st.floats(0.1, 30), st.integers(0, 10**6))
@settings(max_examples=30)
def test_fit_matches_the_observed_logarithms(a: float, b: float, seed: int) -> None:
    x = np.clip(np.random.default_rng(seed).beta(a, b, size=20), 1e-12, 1 - 1e-12)
    law = sf.Beta().fit(x)
    np.testing.assert_allclose(law.mean_parameters_, [np.log(x).mean(), np.log1p(-x).mean()], rtol=1e-9, atol=1e-12)
    mirror = sf.Beta().fit(1 - x)
    np.testing.assert_allclose([mirror.beta_, mirror.alpha_], [law.alpha_, law.beta_], rtol=1e-5)


def test_rows_add_up_and_can_be_taken_out() -> None:
    whole = sf.Beta().fit(X)
    parts = sf.Beta().fit(X[:4]).partial_fit(X[4:])
    np.testing.assert_allclose([parts.alpha_, parts.beta_], [whole.alpha_, whole.beta_], rtol=1e-13)
    parts.unlearn(X[4:])
    np.testing.assert_allclose(parts.alpha_, sf.Beta().fit(X[:4]).alpha_, rtol=1e-12)


@pytest.mark.parametrize("data", [[0.3], [0.3, 0.3, 0.3], [1e-8, 1e-8], [1 - 1e-8] * 3, [1e-300] * 7, [0.1] * 1000])
def test_a_constant_column_has_no_estimate(data: list[float]) -> None:
    with pytest.raises(sf.EstimateError, match="without bound"):
        sf.Beta().fit(data)


@pytest.mark.parametrize("bad", [0.0, 1.0, -0.2, 1.5])
def test_values_outside_the_open_interval_are_refused(bad: float) -> None:
    with pytest.raises(sf.DataError, match=r"row 1\)"):
        sf.Beta().fit([0.3, bad, 0.4])
    with pytest.raises(sf.DataError, match="'x'"):
        sf.Beta().fit([0.3, np.inf])


def test_limits_and_callbacks(tmp_path: Path) -> None:
    with pytest.warns(sf.ConvergenceWarning, match="max_iter"):
        stopped = sf.Beta(max_iter=1).fit(X)
    assert not stopped.converged_
    seen: list[int] = []
    sf.Beta(callback=lambda state: seen.append(state.iteration)).fit(X)
    assert seen == list(range(1, len(seen) + 1))
    whole = sf.Beta().fit(X)
    with pytest.warns(sf.ConvergenceWarning):
        sf.Beta(max_iter=2, checkpoint=tmp_path / "state.json").fit(X)
    resumed = sf.Beta(checkpoint=tmp_path / "state.json").fit(X)
    assert (resumed.alpha_, resumed.beta_, resumed.history_) == (whole.alpha_, whole.beta_, whole.history_)


# --------------------------------------------------------------------------------------------------------------------
# As a prior
# --------------------------------------------------------------------------------------------------------------------


def test_counts_come_as_successes_then_failures() -> None:
    posterior = sf.Beta(1, 2).posterior([7, 3])
    assert posterior.parameters_ == {"alpha": 8.0, "beta": 5.0}
    summary = sf.summarize(sf.Bernoulli(), [1, 1, 0, 1])
    assert sf.Beta(1, 2).posterior(summary).parameters_ == {"alpha": 4.0, "beta": 3.0}
    words = sf.summarize(sf.Bernoulli(states=("lost", "won")), ["won", "won", "lost"])
    assert sf.Beta(1, 2).posterior(words).parameters_ == {"alpha": 3.0, "beta": 3.0}
    assert sf.Beta(1, 2).posterior(summary, likelihood=sf.Bernoulli(states=(1, 0))).parameters_ == {
        "alpha": 2.0,
        "beta": 5.0,
    }
    counts = sf.summarize(sf.Geometric(), [0, 3, 1])
    assert sf.Beta(1, 2).posterior(counts, likelihood=sf.Geometric()).parameters_ == {"alpha": 4.0, "beta": 6.0}
    assert sf.Beta(1, 2).posterior([1, 0], likelihood=sf.Geometric()).parameters_ == {"alpha": 2.0, "beta": 2.0}


@pytest.mark.parametrize(("a", "b", "counts"), [(2.5, 0.5, [3, 4]), (1.0, 1.0, [0, 0]), (0.2, 7.0, [2.5, 1.25])])
def test_evidence_equals_quadrature(a: float, b: float, counts: list[float]) -> None:
    s, f = counts
    direct = integrate.quad(
        lambda z: expit(z) ** (a + s) * expit(-z) ** (b + f), -300, 300, epsabs=0, epsrel=1e-12, limit=400
    )[0]
    prior = integrate.quad(lambda z: expit(z) ** a * expit(-z) ** b, -300, 300, epsabs=0, epsrel=1e-12, limit=400)[0]
    assert sf.Beta(a, b).log_evidence(counts) == pytest.approx(math.log(direct / prior), rel=1e-9, abs=1e-12)


def test_mode_and_stationarity() -> None:
    law = sf.Beta(3.5, 2.0)
    (best,), _ = maximise(lambda z: float(stats.beta(3.5, 2.0).logpdf(expit(z[0]))), [0.0])
    assert law.mode() == pytest.approx(float(expit(best)), rel=1e-6)
    np.testing.assert_allclose(law.stationarity(law.mode()), 0, atol=1e-15)
    # In the log odds the slope of the log density is x (1 - x) times the slope in x.
    x, h = 0.3, 1e-6
    slope = float(stats.beta(3.5, 2.0).logpdf(x + h) - stats.beta(3.5, 2.0).logpdf(x - h)) / (2 * h)
    np.testing.assert_allclose(law.stationarity(x), x * (1 - x) * slope, rtol=1e-8)
    assert sf.Beta(1, 3).mode() == 0
    assert sf.Beta(3, 1).mode() == 1
    with pytest.raises(sf.EstimateError, match="unbounded at 0"):
        sf.Beta(0.5, 3).mode()
    with pytest.raises(sf.EstimateError, match="flat"):
        sf.Beta(1, 1).mode()


def test_intervals_hold_the_mass_they_promise() -> None:
    low, high = sf.Beta(2.5, 9.0).intervals(0.8)
    np.testing.assert_allclose(stats.beta(2.5, 9.0).cdf([low, high]), [0.1, 0.9], rtol=1e-12)
    for level in (0, 1, 1.5, -1):
        with pytest.raises(sf.OptionError, match="level"):
            sf.Beta(1, 1).intervals(level)


def test_files_pickles_and_clones(tmp_path: Path) -> None:
    law = sf.Beta().fit(X)
    law.write(tmp_path / "law.json")
    for back in (sf.read(tmp_path / "law.json"), pickle.loads(pickle.dumps(law))):
        assert back.parameters_ == law.parameters_
        assert back.report_.log_likelihood == law.report_.log_likelihood
    prior = sf.Beta(2, 3)
    prior.write(tmp_path / "prior.json")
    assert sf.read(tmp_path / "prior.json").parameters_ == prior.parameters_
    assert prior.clone().set_params(alpha=5).clone().parameters_ == {"alpha": 5.0, "beta": 3.0}


def test_options_are_checked() -> None:
    for bad in (0, -1, np.nan, np.inf, "x", [1, 2]):
        with pytest.raises(sf.OptionError, match="alpha"):
            sf.Beta(bad, 1)  # type: ignore[arg-type]
    for counts in ([1], [1, 2, 3], [-1, 2], [np.nan, 1], "ab"):
        with pytest.raises(sf.OptionError, match="counts"):
            sf.Beta(1, 1).posterior(counts)
    with pytest.raises(sf.OptionError, match="not a conjugate prior of Poisson"):
        sf.Beta(1, 1).posterior([1, 2], likelihood=sf.Poisson())
    with pytest.raises(sf.OptionError, match="nothing to fit"):
        sf.Beta(1, 2).fit(X)
    with pytest.raises(sf.NotFittedError, match="alpha, beta"):
        sf.Beta(1).mean()
    with pytest.raises(sf.OptionError, match="above 0"):
        sf.Beta(1, 2).expected_statistics([-2.0, 1.0])


@pytest.mark.parametrize("known", [{"alpha": 2.0}, {"beta": 2.0}])
def test_one_given_parameter_is_not_overruled(known: dict[str, Any]) -> None:
    with pytest.raises(sf.OptionError, match="both alpha and beta"):
        sf.Beta(**known).fit([0.2, 0.5, 0.7])


def test_parameters_are_copies() -> None:
    given = np.array([1.0, 2.0])
    law = sf.Dirichlet(given)
    given[0] = 100.0
    assert law.alpha_[0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        law.alpha_[0] = 5.0
