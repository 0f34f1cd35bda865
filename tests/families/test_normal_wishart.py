"""The normal-Wishart law against scipy.stats, sequential predictives, quadrature and a generic maximiser."""

import math

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import stats

import suffice as sf
from families.law_oracles import Grid, maximise, weighted
from untyped import untyped

Floats = NDArray[np.float64]

T = np.array([[3.0, 0.4, -0.5], [0.4, 2.0, 0.3], [-0.5, 0.3, 1.5]])
PRIOR = sf.NormalWishart(mean=[0.5, -1.0, 0.0], strength=1.7, dof=5.5, inverse_scale=T)
ROWS = np.random.default_rng(3).normal(size=(7, 3)).round(3) @ np.array([[1.0, 0.4, 0], [0, 1.2, -0.3], [0, 0, 0.7]])
W = np.array([1, 2, 1, 3, 1, 1, 2])
FRAME = pd.DataFrame(ROWS, columns=["a", "b", "c"])


def scipy_log_prob(prior: sf.NormalWishart, mean: Floats, precision: Floats) -> float:
    wishart = stats.wishart(prior.dof_, scale=np.linalg.inv(prior.inverse_scale_))
    normal = stats.multivariate_normal(prior.mean_, np.linalg.inv(prior.strength_ * precision))
    return float(wishart.logpdf(precision) + normal.logpdf(mean))


def test_density_equals_scipy_with_the_inverse_scale() -> None:
    for seed in range(4):
        precision = np.asarray(stats.wishart(6, scale=np.eye(3)).rvs(random_state=seed))
        mean = np.random.default_rng(seed).normal(size=3)
        point = {"mean": mean, "precision": precision}
        assert PRIOR.log_prob(point) == pytest.approx(scipy_log_prob(PRIOR, mean, precision), rel=1e-11)
        assert PRIOR.log_prob((mean, precision)) == PRIOR.log_prob(point)


def test_trace_enters_with_a_minus_sign() -> None:
    one = sf.NormalWishart(mean=[0.0], strength=1.0, dof=3.0, inverse_scale=[[2.0]])
    rates, means = Grid.positive(-40, 5, 901), Grid.real(-9, 9, 181)
    w, z = (part.ravel() for part in np.meshgrid(rates.x, means.x, indexing="ij"))
    density = np.exp(one.log_prob((z[:, None] / np.sqrt(w)[:, None], w[:, None, None]))) / np.sqrt(w)
    assert rates.total(density.reshape(901, 181) @ means.w) == pytest.approx(1, rel=1e-10)
    near, far = (one.log_prob(([0.0], [[w]])) for w in (10.0, 20.0))
    assert far - near == pytest.approx(math.log(2) - 10, rel=1e-12)  # |W|^((dof - n)/2) exp(-tr(T W)/2)


def test_points_that_are_no_precision_have_no_density() -> None:
    bad = [np.diag([1.0, 1.0, -1.0]), np.array([[1.0, 0.5, 0], [0, 1, 0], [0, 0, 1]]), np.zeros((3, 3))]
    for precision in bad:
        assert PRIOR.log_prob((np.zeros(3), precision)) == -np.inf
    both = PRIOR.log_prob((np.zeros((2, 3)), np.stack([np.eye(3), bad[0]])))
    assert both.shape == (2,)
    assert both[0] == pytest.approx(PRIOR.log_prob((np.zeros(3), np.eye(3))))
    with pytest.raises(sf.OptionError, match="shapes"):
        PRIOR.log_prob((np.zeros(2), np.eye(2)))


def test_mode_is_the_joint_one_in_mean_and_precision() -> None:
    prior = PRIOR.marginal([0, 1])

    def objective(p: Floats) -> float:
        factor = np.array([[math.exp(p[2]), 0], [p[3], math.exp(p[4])]])
        return scipy_log_prob(prior, p[:2], factor @ factor.T)

    best, value = maximise(objective, [0.0, 0.0, 0.0, 0.0, 0.0])
    factor = np.array([[math.exp(best[2]), 0], [best[3], math.exp(best[4])]])
    mode = prior.mode()
    np.testing.assert_allclose(mode["mean"], best[:2], atol=1e-5)
    np.testing.assert_allclose(mode["precision"], factor @ factor.T, rtol=1e-4)
    assert prior.log_prob(mode) == pytest.approx(value, rel=1e-9)
    np.testing.assert_allclose(mode["precision"], (prior.dof_ - 2) * np.linalg.inv(prior.inverse_scale_), rtol=1e-12)
    np.testing.assert_allclose(mode["covariance"] @ mode["precision"], np.eye(2), atol=1e-12)
    np.testing.assert_allclose(prior.stationarity(mode), 0, atol=1e-12)
    with pytest.raises(sf.EstimateError, match="no mode"):
        sf.NormalWishart([0, 0], 1, 1.5, np.eye(2)).mode()


def test_stationarity_is_the_slope_of_the_log_density() -> None:
    mean, precision = np.array([0.2, 0.1, -0.4]), np.linalg.inv(T) * 2 + 0.1 * np.eye(3)
    slope = PRIOR.stationarity((mean, precision))
    for k in range(3):
        step = 1e-6 * np.eye(3)[k]
        rise = PRIOR.log_prob((mean + step, precision)) - PRIOR.log_prob((mean - step, precision))
        assert slope[k] == pytest.approx(rise / 2e-6, rel=1e-6)
    for i in range(3):
        for j in range(i + 1):
            step = np.zeros((3, 3))
            step[i, j] = step[j, i] = 1e-6
            rise = PRIOR.log_prob((mean, precision + step)) - PRIOR.log_prob((mean, precision - step))
            entry = slope[3:].reshape(3, 3)
            assert (entry[i, j] + entry[j, i]) / (1 + (i == j)) == pytest.approx(rise / 2e-6, rel=1e-5)


def test_samples_are_reproducible_and_have_the_stated_means() -> None:
    prior = sf.NormalWishart(mean=[0.5, -1.0], strength=2.0, dof=9.0, inverse_scale=T[:2, :2])
    draws = prior.sample(20_000, random_state=0)
    np.testing.assert_array_equal(draws["precision"], prior.sample(20_000, random_state=0)["precision"])
    expected = prior.mean()
    np.testing.assert_allclose(draws["precision"].mean(axis=0), expected["precision"], rtol=0.03, atol=0.06)
    np.testing.assert_allclose(
        np.linalg.inv(draws["precision"]).mean(axis=0), expected["covariance"], rtol=0.03, atol=0.03
    )
    np.testing.assert_allclose(draws["mean"].mean(axis=0), [0.5, -1.0], atol=0.01)
    # Each mean is Student-t, each variance inverse-gamma: the intervals hold their share of the draws.
    intervals = prior.intervals(0.9)
    variances = np.linalg.inv(draws["precision"])[:, [0, 1], [0, 1]]
    for values, bounds in ((draws["mean"], intervals["mean"]), (variances, intervals["variance"])):
        low, high = bounds.T
        np.testing.assert_allclose((values < low).mean(axis=0), 0.05, atol=0.007)
        np.testing.assert_allclose((values > high).mean(axis=0), 0.05, atol=0.007)


def test_mean_of_the_covariance_exists_only_above_n_plus_one() -> None:
    assert "covariance" not in sf.NormalWishart([0, 0], 1, 3, np.eye(2)).mean()
    np.testing.assert_allclose(sf.NormalWishart([0, 0], 1, 3.5, np.eye(2)).mean()["covariance"], 2 * np.eye(2))


@pytest.mark.parametrize("weights", [None, W])
def test_posterior_predictive_and_evidence(weights: NDArray[np.int64] | None) -> None:
    rows = ROWS if weights is None else weighted(ROWS, weights)
    law = sf.MultivariateNormal(prior=PRIOR).fit(FRAME, sample_weight=weights)
    posterior, n = untyped(law.posterior_), len(rows)
    # log p(rows | mean, W) + log prior - log posterior is the evidence at every point.
    found = []
    for seed in range(3):
        precision = np.asarray(stats.wishart(8, scale=np.eye(3) / 8).rvs(random_state=seed))
        mean = np.random.default_rng(seed).normal(size=3)
        likelihood = stats.multivariate_normal(mean, np.linalg.inv(precision)).logpdf(rows).sum()
        found.append(likelihood + scipy_log_prob(PRIOR, mean, precision) - scipy_log_prob(posterior, mean, precision))
    np.testing.assert_allclose(found, law.log_evidence_, rtol=1e-9)
    assert (posterior.strength_, posterior.dof_) == pytest.approx((1.7 + n, 5.5 + n))
    # One row at a time, each predicted by Student's t with dof - n + 1 degrees of freedom before it is learned.
    state, evidence = PRIOR, 0.0
    for row in rows:
        df = state.dof_ - 3 + 1
        shape = state.inverse_scale_ * (state.strength_ + 1) / (state.strength_ * df)
        evidence += float(stats.multivariate_t(state.mean_, shape, df=df).logpdf(row))  # type: ignore[arg-type]
        np.testing.assert_allclose(
            state._predictive_distribution().log_prob(row),
            stats.multivariate_t(state.mean_, shape, df=df).logpdf(row),  # type: ignore[arg-type]
        )
        state = state._updated(1.0, row, np.zeros((3, 3)))
    assert law.log_evidence_ == pytest.approx(evidence, rel=1e-11)
    np.testing.assert_allclose(posterior.inverse_scale_, state.inverse_scale_, rtol=1e-11)
    np.testing.assert_allclose(posterior.mean_, state.mean_, rtol=1e-11)
    assert untyped(law.predictive_).df_ == pytest.approx(posterior.dof_ - 2)
    np.testing.assert_allclose(law.covariance_, posterior.inverse_scale_ / (posterior.dof_ - 4), rtol=1e-12)
    assert law.report_.parameterisation == "in (mean, covariance)"


def test_map_maximises_the_raw_posterior_in_mean_and_precision() -> None:
    prior = PRIOR.marginal([0, 1])
    rows = ROWS[:, :2]
    law = sf.MultivariateNormal(prior=prior, estimate="map").fit(rows)

    def objective(p: Floats) -> float:
        factor = np.array([[math.exp(p[2]), 0], [p[3], math.exp(p[4])]])
        precision = factor @ factor.T
        likelihood = stats.multivariate_normal(p[:2], np.linalg.inv(precision)).logpdf(rows).sum()
        return float(likelihood + scipy_log_prob(prior, p[:2], precision))

    best, value = maximise(objective, [0.0, 0.0, 0.0, 0.0, 0.0])
    factor = np.array([[math.exp(best[2]), 0], [best[3], math.exp(best[4])]])
    np.testing.assert_allclose(law.mean_, best[:2], atol=1e-5)
    np.testing.assert_allclose(law.precision_, factor @ factor.T, rtol=1e-4)
    assert law.report_.objective == pytest.approx(value, rel=1e-10)
    assert law.report_.certificate.moment_gap < 1e-10
    assert law.report_.parameterisation == "in (mean, precision)"
    # The same mode taken in (mean, covariance) would be another point.
    assert law.covariance_[0, 0] != pytest.approx(
        untyped(law.posterior_).inverse_scale_[0, 0] / (untyped(law.posterior_).dof_ + 2 + 2), rel=1e-2
    )


def test_priors_of_parts_agree_with_the_prior_of_the_whole() -> None:
    # Evidence of some columns under the marginal prior, against the marginalised predictive chain of the whole.
    part = PRIOR.marginal([2, 0])
    assert (part.strength_, part.dof_) == (1.7, 5.5 - 3 + 2)
    state, whole, evidence = part, PRIOR, 0.0
    for row in ROWS:
        law = whole._predictive_distribution()
        places = np.ix_([2, 0], [2, 0])
        evidence += float(
            stats.multivariate_t(law.location_[[2, 0]], law.shape_[places], df=law.df_).logpdf(row[[2, 0]])  # type: ignore[arg-type]
        )
        mine = state._predictive_distribution()
        assert mine.df_ == pytest.approx(law.df_)
        np.testing.assert_allclose(mine.shape_, law.shape_[places], rtol=1e-12)
        state, whole = state._updated(1.0, row[[2, 0]], np.zeros((2, 2))), whole._updated(1.0, row, np.zeros((3, 3)))
    fitted = sf.MultivariateNormal(prior=part).fit(FRAME[["c", "a"]])
    assert fitted.log_evidence_ == pytest.approx(evidence, rel=1e-11)
    # Two orders of a complete network over two columns have the same evidence: p(c) p(a | c) = p(a) p(c | a).
    single = {
        name: sf.MultivariateNormal(prior=PRIOR.marginal([k])).fit(FRAME[[name]]).log_evidence_
        for k, name in ((0, "a"), (2, "c"))
    }
    assert all(np.isfinite(value) and value != fitted.log_evidence_ for value in single.values())
    swapped = sf.MultivariateNormal(prior=PRIOR.marginal([0, 2])).fit(FRAME[["a", "c"]]).log_evidence_
    assert swapped == pytest.approx(fitted.log_evidence_, rel=1e-12)


def test_one_dimension_is_normal_inverse_gamma() -> None:
    wide = sf.NormalWishart(mean=[0.3], strength=2.0, dof=5.0, inverse_scale=[[4.0]])
    narrow = sf.NormalInverseGamma(alpha=2.5, beta=2.0, gamma=2.0, delta=0.3)
    x = ROWS[:, 0]
    one, two = sf.MultivariateNormal(prior=wide).fit(x[:, None]), sf.Normal(prior=narrow).fit(x)
    assert one.log_evidence_ == pytest.approx(two.log_evidence_, rel=1e-12)
    assert one.mean_[0] == pytest.approx(two.mean_, rel=1e-13)
    assert one.covariance_[0, 0] == pytest.approx(two.variance_, rel=1e-13)
    np.testing.assert_allclose(
        untyped(one.predictive_).log_prob(x[:, None]), untyped(two.predictive_).log_prob(x), rtol=1e-12
    )
    np.testing.assert_allclose(one.credible_intervals()["mean"][0], two.credible_intervals()["mean"], rtol=1e-12)
    np.testing.assert_allclose(
        one.credible_intervals()["variance"][0], two.credible_intervals()["variance"], rtol=1e-12
    )


def test_few_rows_work_with_a_prior() -> None:
    empty = sf.summarize(sf.MultivariateNormal(), FRAME) * 0.0
    law = sf.MultivariateNormal(prior=PRIOR).fit(empty)
    assert untyped(law.posterior_) is PRIOR
    assert law.log_evidence_ == 0
    np.testing.assert_allclose(law.covariance_, T / 1.5)
    one = sf.MultivariateNormal(prior=PRIOR, estimate="map").fit(FRAME[:1])
    assert np.linalg.eigvalsh(one.covariance_).min() > 0
    loose = sf.NormalWishart([0, 0, 0], 1, 2.5, np.eye(3))
    with pytest.raises(sf.EstimateError, match="no posterior mean"):
        sf.MultivariateNormal(prior=loose).fit(FRAME[:1])
    with pytest.raises(sf.EstimateError, match="no mode"):
        sf.MultivariateNormal(prior=loose, estimate="map").fit(empty)


def test_posterior_from_a_summary() -> None:
    summary = sf.summarize(sf.MultivariateNormal(), FRAME)
    fitted = untyped(sf.MultivariateNormal(prior=PRIOR).fit(FRAME).posterior_)
    for found in (PRIOR.posterior(summary), PRIOR.posterior(summary, likelihood=sf.MultivariateNormal())):
        np.testing.assert_array_equal(found.inverse_scale_, fitted.inverse_scale_)
    with pytest.raises(sf.OptionError, match="dimensions"):
        PRIOR.posterior(sf.summarize(sf.MultivariateNormal(), FRAME[["a", "b"]]))
    with pytest.raises(sf.OptionError, match="Summary"):
        PRIOR.posterior([1, 2, 3])


def test_options_are_checked() -> None:
    with pytest.raises(sf.OptionError, match="dof"):
        sf.NormalWishart([0, 0], 1, 1.0, np.eye(2))
    with pytest.raises(sf.OptionError, match="strength"):
        sf.NormalWishart([0, 0], 0, 3, np.eye(2))
    with pytest.raises(sf.OptionError, match="inverse_scale"):
        sf.NormalWishart([0, 0], 1, 3, np.eye(3))
    with pytest.raises(sf.OptionError, match="give neither"):
        sf.MultivariateNormal(covariance=np.eye(3), prior=PRIOR).fit(FRAME)
    with pytest.raises(sf.OptionError, match="places"):
        PRIOR.marginal([0, 3])
    with pytest.raises(sf.OptionError, match="not fitted"):
        PRIOR.fit(FRAME)
