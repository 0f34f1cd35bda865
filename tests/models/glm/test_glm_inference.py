"""What a fitted generalised linear model says of itself: tests, intervals, residuals, priors, posteriors, files."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import optimize, special, stats

import suffice as sf
from untyped import untyped

Floats = NDArray[np.float64]

RNG = np.random.default_rng(21)
X = RNG.normal(size=(150, 2))
DESIGN = np.column_stack([np.ones(150), X])
RATE = np.exp(0.5 + X @ [0.5, -0.3])
COUNTS = RNG.poisson(RATE).astype(float)
BINARY = (RNG.random(150) < special.expit(X @ [1.0, -0.5])).astype(float)
REAL = 1.0 + X @ [2.0, -1.0] + RNG.normal(size=150)


def log_likelihood(theta: Floats) -> float:
    return float(np.sum(stats.poisson.logpmf(COUNTS, np.exp(DESIGN @ theta))))


def test_robust_errors_are_the_sandwich() -> None:
    model = sf.GLM("poisson", covariance="robust").fit(X, COUNTS)
    mu = np.exp(DESIGN @ model.parameters_)
    bread = np.linalg.inv(DESIGN.T @ (DESIGN * mu[:, None]))
    meat = DESIGN.T @ (DESIGN * ((COUNTS - mu) ** 2)[:, None])
    np.testing.assert_allclose(model.covariance_, bread @ meat @ bread, rtol=1e-8)
    gauss = sf.GLM(covariance="robust").fit(X, REAL)
    left = REAL - DESIGN @ gauss.parameters_
    bread = np.linalg.inv(DESIGN.T @ DESIGN)
    np.testing.assert_allclose(gauss.covariance_, bread @ (DESIGN.T * left**2) @ DESIGN @ bread, rtol=1e-8)


def test_robust_errors_of_trials() -> None:
    rng = np.random.default_rng(4)
    trials = rng.integers(1, 9, 150).astype(float)
    hits = rng.binomial(trials.astype(int), special.expit(X @ [0.5, 0.2])).astype(float)
    model = sf.GLM("binomial", covariance="robust").fit(X, hits, trials=trials)
    mu = model.predict(X)
    bread = np.linalg.inv(DESIGN.T @ (DESIGN * (trials * mu * (1 - mu))[:, None]))
    meat = DESIGN.T @ (DESIGN * ((hits - trials * mu) ** 2)[:, None])
    np.testing.assert_allclose(model.covariance_, bread @ meat @ bread, rtol=1e-8)


def test_wald_intervals_and_summary() -> None:
    model = sf.GLM("poisson").fit(X, COUNTS)
    ends = model.intervals(0.9)
    reach = stats.norm.ppf(0.95) * np.asarray(model.standard_errors_)
    np.testing.assert_allclose(ends, np.column_stack([model.parameters_ - reach, model.parameters_ + reach]))
    frame = pytest.importorskip("pandas") and model.summary(0.9).to_frame()
    assert list(frame.index) == ["intercept", "x0", "x1"]
    z = np.asarray(model.parameters_ / model.standard_errors_)
    np.testing.assert_allclose(frame["p value"], 2 * stats.norm.sf(np.abs(z)), rtol=1e-8)
    assert "intercept" in str(model.summary())
    assert "<table>" in model.summary()._repr_html_()
    gauss = sf.GLM().fit(X, REAL).summary().to_frame()
    np.testing.assert_allclose(gauss["p value"], 2 * stats.t.sf(np.abs(gauss["t"]), 147), rtol=1e-8)


def test_profile_intervals_are_where_the_likelihood_has_fallen() -> None:
    model = sf.GLM("poisson").fit(X, COUNTS)
    ends = model.intervals(0.95, method="profile", X=X, y=COUNTS)
    drop = 0.5 * stats.chi2.ppf(0.95, 1)
    for at in range(3):
        for end in ends[at]:

            def loss(rest: Floats, at: int = at, end: float = float(end)) -> float:
                return -log_likelihood(np.insert(rest, at, end))

            best = optimize.minimize(loss, np.delete(np.asarray(model.parameters_), at), method="BFGS")
            assert -best.fun == pytest.approx(model.log_likelihood_ - drop, abs=1e-6)


def test_a_profile_of_other_rows_or_of_an_edge_is_refused() -> None:
    """Their likelihood has its maximum elsewhere, or falls at another speed, so that the ends would be wrong."""
    model, twice = (
        sf.GLM("poisson").fit(X, COUNTS),
        sf.GLM("poisson").fit(X, COUNTS, sample_weight=np.full(len(X), 2.0)),
    )
    with pytest.raises(sf.EstimateError, match="rises by"):
        model.intervals(method="profile", X=X, y=COUNTS[::-1])
    with pytest.raises(sf.EstimateError, match=r"have the weight 150 \(the fit 300\)"):
        twice.confidence_intervals(0.95, X, COUNTS, method="profile")
    with pytest.raises(sf.EstimateError, match="Laplace prior"):
        sf.GLM("poisson", prior=sf.Laplace(scale=0.1)).fit(X, COUNTS).intervals(method="profile", X=X, y=COUNTS)


def test_likelihood_ratio_between_nested_fits() -> None:
    small, large = sf.GLM("poisson").fit(X[:, :1], COUNTS), sf.GLM("poisson").fit(X, COUNTS)
    test = small.likelihood_ratio_test(large)
    drop = 2 * (large.log_likelihood_ - small.log_likelihood_)
    assert test.statistic == pytest.approx(drop, rel=1e-8)
    assert test.p_value == pytest.approx(stats.chi2.sf(drop, 1), rel=1e-8)
    small, large = sf.GLM().fit(X[:, :1], REAL), sf.GLM().fit(X, REAL)
    ratio = (small.deviance_ - large.deviance_) / (large.deviance_ / 147)
    assert large.anova(small).p_value == pytest.approx(stats.f.sf(ratio, 1, 147), rel=1e-8)
    with pytest.raises(sf.OptionError, match="family or link"):
        small.anova(sf.GLM("poisson").fit(X, COUNTS))


def test_analysis_of_deviance_of_randomised_trial_counts() -> None:
    # Dobson (1990), table 6.4; R prints for anova(glm(counts ~ outcome + treatment, poisson()), test = "Chisq"):
    # outcome 2 df, deviance 5.4523, p 0.06547; treatment 2 df, deviance 0.0000, p 1.00000.
    counts = np.array([18, 17, 15, 20, 10, 20, 25, 13, 12.0])
    outcome, treatment = np.tile(["1", "2", "3"], 3), np.repeat(["1", "2", "3"], 3)
    null = sf.GLM("poisson").fit(np.empty((9, 0)), counts, columns=[])
    one = sf.GLM("poisson").fit({"outcome": outcome}, counts)
    both = sf.GLM("poisson").fit({"outcome": outcome, "treatment": treatment}, counts)
    first, second = one.anova(null), both.anova(one)
    assert (first.name, first.df, first.df_rest) == ("chi2", 2.0, None)
    assert (round(first.statistic, 4), round(first.p_value, 5)) == (5.4523, 0.06547)
    assert (round(second.statistic, 4), round(second.p_value, 5)) == (0.0, 1.0)


def test_a_known_dispersion_makes_the_test_chi_squared() -> None:
    # Clotting times of blood (McCullagh and Nelder 1989, p. 300), as in R's help of glm.
    u = np.log([5.0, 10, 15, 20, 30, 40, 60, 80, 100])[:, None]
    times = np.array([118.0, 58, 42, 35, 27, 25, 21, 19, 18])
    null, fit = (sf.GLM("gamma").fit(rows, times, columns=names) for rows, names in ((np.empty((9, 0)), []), (u, None)))
    estimated = fit.anova(null)
    # R prints: null deviance 3.51283, residual deviance 0.01673 on 7 df, dispersion 0.002446.
    assert (round(null.deviance_, 5), round(fit.deviance_, 5)) == (3.51283, 0.01673)
    assert (estimated.name, estimated.df, estimated.df_rest) == ("F", 1.0, 7.0)
    assert estimated.statistic == pytest.approx((3.51283 - 0.01673) / 0.002446, rel=3e-4)
    for phi in (0.5, 1.0):
        null, fit = (
            sf.GLM("gamma", dispersion=phi).fit(rows, times, columns=names)
            for rows, names in ((np.empty((9, 0)), []), (u, None))
        )
        means = [model.predict(rows) for model, rows in ((null, np.empty((9, 0))), (fit, u))]
        small, large = (stats.gamma.logpdf(times, 1 / phi, scale=phi * mean).sum() for mean in means)  # type: ignore[union-attr]
        found = null.anova(fit)
        assert (found.name, found.df_rest) == ("chi2", None)
        assert found.statistic == pytest.approx(2 * (large - small), rel=1e-9)
        assert found.p_value == pytest.approx(stats.chi2.sf(2 * (large - small), 1), rel=1e-8)
    waits = [
        sf.GLM(sf.Exponential()).fit(rows, times, columns=names) for rows, names in ((np.empty((9, 0)), []), (u, None))
    ]
    assert waits[0].anova(waits[1]).statistic == pytest.approx(found.statistic, rel=1e-9)
    with pytest.raises(sf.OptionError, match=r"the dispersions 1\.0 and None"):
        sf.GLM("gamma").fit(np.empty((9, 0)), times, columns=[]).anova(fit)


def test_the_ratio_of_vector_regressions_is_that_of_wilks() -> None:
    Y = np.column_stack((REAL, COUNTS))
    small, large = sf.GLM().fit(X[:, :1], Y), sf.GLM().fit(X, Y)
    residuals = []
    for design in (DESIGN[:, :2], DESIGN):
        away = Y - design @ np.linalg.lstsq(design, Y, rcond=None)[0]
        residuals.append(np.linalg.slogdet(away.T @ away)[1])
    expected = len(Y) * (residuals[0] - residuals[1])
    found = small.anova(large)
    assert (found.name, found.df) == ("chi2", 2.0)
    assert found.statistic == pytest.approx(expected, rel=1e-9)


def test_residuals_and_leverage() -> None:
    model = sf.GLM("poisson").fit(X, COUNTS)
    mu = np.exp(DESIGN @ model.parameters_)
    np.testing.assert_allclose(model.residuals(X, COUNTS, kind="response"), COUNTS - mu, rtol=1e-9)
    pearson = model.residuals(X, COUNTS, kind="pearson")
    np.testing.assert_allclose(pearson, (COUNTS - mu) / np.sqrt(mu), rtol=1e-9)
    assert (pearson**2).sum() == pytest.approx(model.pearson_chi2_, rel=1e-10)
    assert (model.residuals(X, COUNTS) ** 2).sum() == pytest.approx(model.deviance_, rel=1e-10)
    np.testing.assert_allclose(model.residuals(X, COUNTS, kind="working"), (COUNTS - mu) / mu, rtol=1e-9)
    root = DESIGN * np.sqrt(mu)[:, None]
    hat = np.diag(root @ np.linalg.inv(root.T @ root) @ root.T)
    np.testing.assert_allclose(model.leverage(X, COUNTS), hat, rtol=1e-8)
    gauss = sf.GLM().fit(X, REAL)
    assert gauss.leverage(X, REAL).sum() == pytest.approx(3.0, rel=1e-9)


def test_predictions_and_their_intervals() -> None:
    model = sf.GLM("poisson").fit(X, COUNTS)
    new = X[:5] + 0.1
    eta = np.column_stack([np.ones(5), new]) @ model.parameters_
    np.testing.assert_allclose(model.predict(new, kind="link"), eta, rtol=1e-12)
    np.testing.assert_allclose(model.predict(new, exposure=np.full(5, 2.0)), 2 * np.exp(eta), rtol=1e-12)
    rows = np.column_stack([np.ones(5), new])
    error = np.sqrt(np.einsum("ij,jk,ik->i", rows, model.covariance_, rows))
    ends = np.exp(eta[:, None] + np.array([-1, 1]) * stats.norm.ppf(0.975) * error[:, None])
    np.testing.assert_allclose(model.predict(new, interval=0.95)[:, 1:], ends, rtol=1e-8)
    assert model.score(X, COUNTS) == pytest.approx(model.log_likelihood_ / 150, rel=1e-12)
    drawn = model.sample(np.repeat(new[:1], 20_000, axis=0), random_state=0)
    assert drawn.mean() == pytest.approx(np.exp(eta[0]), rel=0.03)


# -- priors ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("penalize", [False, True])
def test_a_normal_prior_is_taken_off_the_sum(penalize: bool) -> None:
    prior = sf.Normal(mean=0.5, variance=0.1)
    model = sf.GLM("poisson", prior=prior, penalize_intercept=penalize).fit(X, COUNTS)
    held = np.array([float(penalize), 1.0, 1.0])

    def loss(theta: Floats) -> float:
        return -log_likelihood(theta) + float(held @ (theta - 0.5) ** 2) / 0.2

    best = optimize.minimize(loss, np.zeros(3), method="BFGS", options={"gtol": 1e-7})
    np.testing.assert_allclose(model.parameters_, best.x, atol=1e-6)
    assert model.report_.objective == pytest.approx(-best.fun, rel=1e-10)
    certificate = model.report_.certificate
    assert certificate.bound is penalize
    assert certificate.value_gap is not None
    assert certificate.value_gap < 1e-14
    posterior = untyped(model.posterior_)
    np.testing.assert_allclose(posterior.mean_, model.parameters_)
    mu = np.exp(DESIGN @ model.parameters_)
    information = DESIGN.T @ (DESIGN * mu[:, None]) + np.diag(held / 0.1)
    np.testing.assert_allclose(posterior.covariance_, np.linalg.inv(information), rtol=1e-8)


def test_a_full_prior_covariance() -> None:
    covariance = np.array([[0.2, 0.1], [0.1, 0.3]])
    model = sf.GLM("poisson", prior=sf.MultivariateNormal(mean=[0.0, 1.0], covariance=covariance)).fit(X, COUNTS)
    away = np.asarray(model.coefficients_) - [0.0, 1.0]
    score = DESIGN.T @ (COUNTS - np.exp(DESIGN @ model.parameters_))
    score[1:] -= np.linalg.solve(covariance, away)
    assert np.abs(score).max() < 1e-7


def test_ridge_with_an_unknown_variance_is_the_joint_mode() -> None:
    model = sf.GLM(prior=sf.Normal(variance=0.05), dispersion="ml").fit(X, REAL)

    def loss(theta: Floats) -> float:
        value = np.sum(stats.norm.logpdf(REAL, DESIGN @ theta[:3], np.exp(theta[3])))
        return -float(value) + float(theta[1:3] @ theta[1:3]) / 0.1

    best = optimize.minimize(loss, np.zeros(4), method="BFGS", options={"gtol": 1e-7})
    np.testing.assert_allclose(model.parameters_, best.x[:3], atol=1e-5)
    assert model.dispersion_ == pytest.approx(np.exp(2 * best.x[3]), rel=1e-5)
    known = sf.GLM(prior=sf.Normal(variance=0.05), dispersion=1.0).fit(X, REAL)
    ridge = np.linalg.solve(DESIGN.T @ DESIGN + np.diag([0, 20.0, 20.0]), DESIGN.T @ REAL)
    np.testing.assert_allclose(known.parameters_, ridge, rtol=1e-8)


@pytest.mark.parametrize("solver", ["cd", "lbfgs"])
@pytest.mark.parametrize("ridge", [False, True])
def test_a_laplace_prior_obeys_its_conditions(solver: Any, ridge: bool) -> None:
    wide = np.column_stack([X, np.random.default_rng(1).normal(size=(150, 4))])
    prior: Any = sf.Laplace(scale=1 / 12.0)
    prior = (prior, sf.Normal(variance=0.2)) if ridge else prior
    model = sf.GLM("poisson", prior=prior, solver=solver, max_iter=1000).fit(wide, COUNTS)
    mu = np.exp(model.predict(wide, kind="link"))
    slope = wide.T @ (COUNTS - mu) - (np.asarray(model.coefficients_) / 0.2 if ridge else 0.0)
    beta = np.asarray(model.coefficients_)
    assert abs((COUNTS - mu).sum()) < 1e-5
    assert (beta == 0).any()
    assert (beta != 0).any()
    np.testing.assert_allclose(slope[beta != 0], 12.0 * np.sign(beta[beta != 0]), atol=1e-5)
    assert np.abs(slope[beta == 0]).max() <= 12.0 + 1e-6


@pytest.mark.parametrize("family", ["poisson", "multinomial"])
def test_coefficients_that_a_laplace_prior_holds_are_no_estimates(family: Any) -> None:
    """Neither parameters nor errors; the others have the errors of the fit to their columns alone."""
    rng = np.random.default_rng(3)
    X = pd.DataFrame(rng.normal(size=(150, 3)), columns=["x", "z", "w"])
    y = np.clip(rng.poisson(np.exp(0.7 * X["x"])), 0, 2)
    lasso = sf.GLM(family, prior=sf.Laplace(scale=0.04), tolerance=1e-10).fit(X, y)
    values, errors = np.asarray(lasso.parameters_), np.asarray(lasso.standard_errors_)
    held = values == 0.0
    assert held.any()
    assert np.isnan(errors).tolist() == held.tolist()
    assert lasso.n_params_ == (~held).sum()
    assert lasso.aic_ == pytest.approx(2 * (~held).sum() - 2 * lasso.log_likelihood_)
    table = lasso.summary()
    assert np.isnan(np.asarray(table.pvalues)).tolist() == held.T.ravel().tolist()
    assert "held" not in str(table)
    assert "take no account of the choice" in str(table)
    with pytest.raises(sf.EstimateError, match="rows do not tell"):
        sf.wald_test(lasso, table.params.names[int(np.flatnonzero(held.T.ravel())[0])])
    if family == "poisson":
        mean = np.exp(np.column_stack([np.ones(len(X)), X]) @ values)
        used = np.column_stack([np.ones(len(X)), X])[:, ~held]
        expected = np.sqrt(np.diag(np.linalg.inv(used.T @ (mean[:, None] * used))))
        assert errors[~held] == pytest.approx(expected, rel=1e-6)
    again = sf.GLM.from_dict(lasso.to_dict())
    assert np.asarray(again.standard_errors_) == pytest.approx(errors, nan_ok=True)


def test_a_dropped_column_has_no_estimate() -> None:
    """R has NA for estimate, error and p value."""
    rng = np.random.default_rng(3)
    X = pd.DataFrame(rng.normal(size=(80, 2)), columns=["x", "z"]).assign(k=lambda t: 2 * t["x"])
    y = rng.poisson(np.exp(0.3 * X["x"]))
    dropped = sf.GLM("poisson", collinear="drop").fit(X, y)
    table, plain = dropped.summary(), sf.GLM("poisson").fit(X[["x", "z"]], y)
    assert np.isnan(table.to_frame().loc["k"]).all()
    assert "dropped" in str(table)
    assert math.isnan(dropped.standard_errors_["k"])
    assert np.asarray(dropped.standard_errors_)[:3] == pytest.approx(np.asarray(plain.standard_errors_))
    assert dropped.predict(X) == pytest.approx(plain.predict(X[["x", "z"]]))


def test_the_conjugate_posterior_of_a_gaussian_regression() -> None:
    frame = {"a": X[:, 0], "b": X[:, 1], "y": REAL}
    for on in ("all", "parents"):
        prior = sf.LinearGaussianPrior(alpha=3.0, beta=2.0, mean=0.3, on=on)
        model = sf.GLM(prior=prior).fit(frame, y="y")
        held = np.array([float(on == "all"), 1.0, 1.0])
        precision = DESIGN.T @ DESIGN + np.diag(held)
        mean = np.linalg.solve(precision, DESIGN.T @ REAL + 0.3 * held)
        np.testing.assert_allclose(model.parameters_, mean, rtol=1e-10)
        posterior = untyped(model.posterior_)
        shape = 3.0 + 0.5 * (150 - (on == "parents"))
        left = REAL - DESIGN @ mean
        scale = 2.0 + 0.5 * (left @ left + held @ (mean - 0.3) ** 2)
        assert posterior.alpha_ == pytest.approx(shape)
        assert posterior.beta_ == pytest.approx(scale, rel=1e-10)
        np.testing.assert_allclose(posterior.spread_, np.linalg.inv(precision), rtol=1e-9)
        assert model.dispersion_ == pytest.approx(scale / (shape - 1), rel=1e-10)
    with pytest.raises(sf.EstimateError, match="Gaussian"):
        sf.GLM("poisson", prior=sf.NormalInverseGamma(alpha=2, beta=1, gamma=1, delta=0)).fit(X, COUNTS)


# -- rows as they come -------------------------------------------------------------------------------------------------


def test_least_mean_squares_pass_by_hand() -> None:
    model = sf.GLM("poisson", step_size=0.05, decay=0.5).partial_fit(X[:20], COUNTS[:20])
    theta = np.zeros(3)
    for t in range(20):
        mu = np.exp(DESIGN[t] @ theta)
        theta = theta + 0.05 / (1 + t) ** 0.5 * (COUNTS[t] - mu) * DESIGN[t]
    np.testing.assert_allclose(model.parameters_, theta, rtol=1e-12)
    model.partial_fit(X[20:30], COUNTS[20:30])
    for t in range(20, 30):
        mu = np.exp(DESIGN[t] @ theta)
        theta = theta + 0.05 / (1 + t) ** 0.5 * (COUNTS[t] - mu) * DESIGN[t]
    np.testing.assert_allclose(model.parameters_, theta, rtol=1e-12)
    assert model.updates_ == 30
    assert not model.converged_


def test_the_prior_enters_each_row_with_its_share() -> None:
    """Over a pass at a fixed point the rows' slopes add up to the slope of the whole objective."""
    start = np.array([0.2, -0.1, 0.3])
    model = sf.GLM(
        "binomial", prior=sf.Normal(variance=0.5), penalize_intercept=True, step_size=1e-9, start=start
    ).partial_fit(X, BINARY)
    slope = DESIGN.T @ (BINARY - special.expit(DESIGN @ start)) - start / 0.5
    np.testing.assert_allclose((np.asarray(model.parameters_) - start) / 1e-9, slope, rtol=1e-5)


def test_step_sizes_are_checked() -> None:
    with pytest.raises(sf.OptionError, match="step_size"):
        sf.GLM("poisson", step_size=-1.0).partial_fit(X, COUNTS)
    with pytest.raises(sf.EstimateError, match="step_size"):
        sf.GLM("poisson", step_size=1e3).partial_fit(X, COUNTS)


# -- files and options -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", [".json", ".suffice"])
def test_files_give_back_the_model(tmp_path: Path, ending: str) -> None:
    rows = {"a": X[:, 0], "kind": np.where(X[:, 1] > 0, "u", "v"), "y": COUNTS}
    model = sf.GLM(family=sf.Poisson(), prior=sf.Normal(variance=3.0)).fit(rows, y="y")
    model.write(tmp_path / f"m{ending}")
    again = sf.read(tmp_path / f"m{ending}")
    np.testing.assert_array_equal(again.parameters_, model.parameters_)
    np.testing.assert_array_equal(again.predict(rows), model.predict(rows))
    assert str(again.summary()) == str(model.summary())
    assert str(again.report_) == str(model.report_)
    labels = sf.GLM("multinomial").fit(X, np.where(COUNTS > 2, "many", np.where(COUNTS > 0, "some", "none")))
    labels.write(tmp_path / f"l{ending}")
    np.testing.assert_array_equal(sf.read(tmp_path / f"l{ending}").predict_proba(X), labels.predict_proba(X))


def test_options() -> None:
    model = sf.GLM(family=sf.Poisson(), prior=sf.Normal(variance=2.0))
    assert model.get_params()["prior__variance"] == 2.0
    copy = model.set_params(prior__variance=0.01).clone().fit(X, COUNTS)
    assert abs(copy.coefficients_[0]) < abs(sf.GLM("poisson").fit(X, COUNTS).coefficients_[0])
    with pytest.raises(sf.NotFittedError):
        sf.GLM().coefficients_  # noqa: B018
    for wrong in ({"family": "cauchy"}, {"solver": "magic"}, {"dispersion": -1}, {"unknown": "x"}, {"family": 3}):
        with pytest.raises(sf.OptionError):
            sf.GLM(**wrong)
    with pytest.raises(sf.OptionError, match="link"):
        sf.GLM("poisson", link="logit").fit(X, COUNTS)
    with pytest.raises(sf.OptionError, match="prior"):
        sf.GLM("poisson", prior=sf.Beta(1, 1)).fit(X, COUNTS)


def test_a_failed_fit_leaves_the_model_as_it_was() -> None:
    model = sf.GLM("poisson").fit(X, COUNTS)
    before = np.array(model.parameters_)
    with pytest.raises(sf.DataError, match="counts"):
        model.fit(X, COUNTS - 5.0)
    np.testing.assert_array_equal(model.parameters_, before)


def test_no_rows_are_kept() -> None:
    import pickle

    small = len(pickle.dumps(sf.GLM("poisson").fit(X[:75], COUNTS[:75])))
    large = len(pickle.dumps(sf.GLM("poisson").fit(np.tile(X, (20, 1)), np.tile(COUNTS, 20))))
    assert abs(small - large) < 1000


@pytest.mark.parametrize("link", ["inverse", "identity", "log"])
def test_one_pass_begins_where_the_link_has_a_mean(link: Any) -> None:
    from scipy import stats

    rng = np.random.default_rng(3)
    rows, y = rng.normal(size=(60, 2)), rng.gamma(4.0, 0.25, 60) + 0.5
    model = sf.GLM("gamma", link=link, step_size=1e-3).partial_fit(rows, y)
    shape, mean = 1.0 / model.dispersion_, np.asarray(model.predict(rows))
    by_hand = stats.gamma.logpdf(y, shape, scale=mean / shape)
    assert model.log_likelihood_ == pytest.approx(by_hand.sum(), rel=1e-10)  # type: ignore[union-attr]
    assert model.score(rows, y) == pytest.approx(by_hand.mean(), rel=1e-10)  # type: ignore[union-attr]
    assert model.report_.passes == (3 if link == "log" else 4)  # Updates, the start where it is asked for, two sums.
    if link != "log":
        with pytest.raises(sf.EstimateError, match="linear predictor of 0"):
            sf.GLM("gamma", link=link, fit_intercept=False).partial_fit(rows, y)
        with pytest.raises(sf.EstimateError, match=r"no possible mean|run away"):
            sf.GLM("gamma", link=link, step_size=10.0).partial_fit(rows, y)


def test_a_negative_binomial_fit_counts_the_steps_of_all_rounds() -> None:
    model = sf.GLM("negative_binomial", keep_iterates=True).fit(X, COUNTS)
    assert model.report_.iterations == len(model.iterates_) - 1 > 0
