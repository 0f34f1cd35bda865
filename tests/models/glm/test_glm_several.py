"""Several linear predictors: every solver of the softmax, priors on vectors, robust errors, draws."""

from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats

import suffice as sf
from untyped import untyped

RNG = np.random.default_rng(12)
N = 300
X = RNG.normal(size=(N, 3))
LABELS = (X @ RNG.normal(size=(3, 3)) + RNG.gumbel(size=(N, 3))).argmax(axis=1)
Y = X @ RNG.normal(size=(3, 2)) + RNG.normal(size=(N, 2)) @ np.array([[1.0, 0.5], [0.0, 1.0]])
DESIGN = np.column_stack([np.ones(N), X])


def softmax_loss(theta: Any) -> float:
    """Minus the log-likelihood with the last class as reference; theta is (4, 2) in one row."""
    eta = np.column_stack([DESIGN @ theta.reshape(4, 2), np.zeros(N)])
    return float(np.logaddexp.reduce(eta, axis=1).sum() - eta[np.arange(N), LABELS].sum())


@pytest.mark.parametrize("solver", ["irls", "lbfgs", "cg", "newton-cg", "sgd", "cd"])
@pytest.mark.parametrize("variance", [None, 0.5])
def test_all_solvers_of_the_softmax_find_one_optimum(solver: Any, variance: float | None) -> None:
    prior = None if variance is None else sf.Normal(variance=variance)
    model = sf.GLM("multinomial", solver=solver, prior=prior, random_state=1, max_iter=2_000).fit(X, LABELS)

    def loss(theta: Any) -> float:
        ridge = 0.0 if variance is None else 0.5 * float((theta.reshape(4, 2)[1:] ** 2).sum()) / variance
        return softmax_loss(theta) + ridge

    best = optimize.minimize(loss, np.zeros(8), method="BFGS", options={"gtol": 1e-7})
    np.testing.assert_allclose(model.parameters_, best.x.reshape(4, 2), atol=2e-6)
    assert model.converged_


@pytest.mark.parametrize("solver", ["cd", "lbfgs"])
def test_a_laplace_prior_on_the_softmax_obeys_its_conditions(solver: Any) -> None:
    rate = 20.0
    model = sf.GLM("multinomial", solver=solver, prior=sf.Laplace(scale=1 / rate)).fit(X, LABELS)
    beta = np.asarray(model.parameters_)
    slope = -optimize.approx_fprime(beta.ravel(), softmax_loss, 1e-6).reshape(4, 2)
    np.testing.assert_allclose(slope[0], 0.0, atol=1e-3)
    zero = beta[1:] == 0.0
    assert zero.any()
    assert not zero.all()
    assert (np.abs(slope[1:][zero]) <= rate + 1e-3).all()
    np.testing.assert_allclose(slope[1:][~zero], rate * np.sign(beta[1:][~zero]), atol=1e-3)


def test_a_factor_of_many_levels_beside_a_softmax() -> None:
    rng = np.random.default_rng(0)
    level, y = rng.integers(0, 70, 900), rng.integers(0, 3, 900)
    model = sf.GLM("multinomial", prior=sf.Normal(variance=1.0), categorical=["level"]).fit({"level": level}, y)
    indicators = (level[:, None] == np.arange(1, 70)).astype(float)
    plain = sf.GLM("multinomial", prior=sf.Normal(variance=1.0)).fit(indicators, y)
    np.testing.assert_allclose(model.parameters_, plain.parameters_, atol=1e-8)


def test_robust_errors_of_a_softmax_are_the_sandwich() -> None:
    model = sf.GLM("multinomial", covariance="robust").fit(X, LABELS)
    shares = model.predict_proba(X)[:, :2]
    away = np.stack([LABELS == 0, LABELS == 1], axis=1) - shares
    scores = np.concatenate([away[:, [a]] * DESIGN for a in range(2)], axis=1)
    blocks = [
        [DESIGN.T @ ((shares[:, a] * ((a == b) - shares[:, b]))[:, None] * DESIGN) for b in range(2)] for a in range(2)
    ]
    bread = np.linalg.inv(np.block(blocks))
    np.testing.assert_allclose(model.covariance_, bread @ (scores.T @ scores) @ bread, rtol=1e-7)


def test_start_of_a_softmax() -> None:
    best = sf.GLM("multinomial").fit(X, LABELS)
    again = sf.GLM("multinomial", start=best.parameters_).fit(X, LABELS)
    assert again.n_iter_ == 0
    with pytest.raises(sf.EstimateError, match=r"expected \(4, 2\)"):
        sf.GLM("multinomial", start=np.zeros(4)).fit(X, LABELS)


def test_a_normal_prior_on_vectors_is_the_joint_mode() -> None:
    model = sf.GLM("multivariate_gaussian", prior=sf.Normal(mean=0.2, variance=0.3)).fit(X, Y)

    def loss(theta: Any) -> float:
        beta = theta[:8].reshape(4, 2)
        root = np.array([[np.exp(theta[8]), 0.0], [theta[9], np.exp(theta[10])]])
        left = np.linalg.solve(root, (Y - DESIGN @ beta).T)
        return float(0.5 * (left**2).sum() + N * (theta[8] + theta[10]) + 0.5 * ((beta[1:] - 0.2) ** 2).sum() / 0.3)

    best = optimize.minimize(loss, np.zeros(11), method="BFGS", options={"gtol": 1e-6})
    np.testing.assert_allclose(model.parameters_, best.x[:8].reshape(4, 2), atol=1e-6)
    root = np.array([[np.exp(best.x[8]), 0.0], [best.x[9], np.exp(best.x[10])]])
    np.testing.assert_allclose(model.residual_covariance_, root @ root.T, atol=1e-5)
    assert model.report_.objective == pytest.approx(-best.fun - N * np.log(2 * np.pi), rel=1e-9)
    # Errors given the covariance: the inverse of S^-1 (x) X'X plus the precision of the prior.
    precision = np.kron(np.linalg.inv(model.residual_covariance_), DESIGN.T @ DESIGN)
    precision += np.kron(np.eye(2), np.diag([0.0, 1.0, 1.0, 1.0]) / 0.3)
    np.testing.assert_allclose(model.covariance_, np.linalg.inv(precision), rtol=1e-8)


def test_a_normal_wishart_prior_on_vectors_is_pseudo_rows() -> None:
    prior = sf.NormalWishart(mean=[0.5, -0.5], strength=2.0, dof=7.0, inverse_scale=[[2.0, 0.3], [0.3, 1.0]])
    model = sf.GLM("multivariate_gaussian", prior=prior, penalize_intercept=True).fit(X, Y)
    # Rows sqrt(2) e_j with response sqrt(2) mean have the same products as the prior.
    ghost, target = np.sqrt(2.0) * np.eye(4), np.sqrt(2.0) * np.tile([0.5, -0.5], (4, 1))
    rows, response = np.vstack([DESIGN, ghost]), np.vstack([Y, target])
    beta = np.linalg.lstsq(rows, response, rcond=None)[0]
    np.testing.assert_allclose(model.parameters_, beta, atol=1e-10)
    left = response - rows @ beta
    scale = np.array([[2.0, 0.3], [0.3, 1.0]]) + left.T @ left
    np.testing.assert_allclose(model.residual_covariance_, scale / (7.0 + N - 3.0), rtol=1e-9)
    with pytest.raises(sf.OptionError, match="3 dimensions; the response has 2"):
        sf.GLM("multivariate_gaussian", prior=sf.NormalWishart([0, 0, 0], 1, 5, np.eye(3))).fit(X, Y)


@pytest.mark.parametrize("penalize", [True, False])
def test_the_posterior_under_a_normal_wishart_prior_is_prior_times_likelihood(penalize: bool) -> None:
    prior = sf.NormalWishart(mean=[0.5, -0.5], strength=2.0, dof=7.0, inverse_scale=[[2.0, 0.3], [0.3, 1.0]])
    model = sf.GLM("multivariate_gaussian", prior=prior, penalize_intercept=penalize).fit(X, Y)
    law, rng = untyped(model.posterior_), np.random.default_rng(0)
    mean, believed = np.tile([0.5, -0.5], (4, 1)), slice(0 if penalize else 1, None)
    apart = []
    for _ in range(6):
        half = np.eye(2) + 0.2 * rng.normal(size=(2, 2))
        weights, covariance = np.asarray(model.parameters_) + 0.1 * rng.normal(size=(4, 2)), half @ half.T
        rows = 0.5 * np.eye(4)[believed, believed]
        # An intercept that is exempt has a flat prior, with density one.
        value = stats.matrix_normal(mean[believed], rows, covariance).logpdf(weights[believed])
        value += stats.invwishart(7.0, [[2.0, 0.3], [0.3, 1.0]]).logpdf(covariance)
        value += stats.multivariate_normal([0, 0], covariance).logpdf(Y - DESIGN @ weights).sum()
        apart.append(value - law.log_prob((weights, covariance)))
    np.testing.assert_allclose(apart, apart[0], rtol=1e-10)
    np.testing.assert_allclose(law.mean()["weights"], model.parameters_)
    np.testing.assert_allclose(law.mean()["covariance"], model.residual_covariance_)
    np.testing.assert_allclose(law.weights_covariance(), model.covariance_, rtol=1e-9)


def test_the_posterior_of_vectors_survives_a_file_and_the_order_of_columns(tmp_path: Any) -> None:
    prior = sf.NormalWishart(mean=[0.0, 0.0], strength=1.0, dof=5.0, inverse_scale=np.eye(2))
    table = {"a": X[:, 0], "level": np.where(X[:, 1] > 0, "high", "low"), "b": X[:, 2]}
    model = sf.GLM("multivariate_gaussian", prior=prior).fit(table, Y)
    plain = np.column_stack((X[:, 0], X[:, 1] <= 0, X[:, 2]))
    other = untyped(sf.GLM("multivariate_gaussian", prior=prior).fit(plain, Y).posterior_)
    model.write(tmp_path / "model.suffice")
    for law in (untyped(model.posterior_), untyped(sf.read(tmp_path / "model.suffice").posterior_)):
        np.testing.assert_allclose(law.weights_, other.weights_, atol=1e-12)
        np.testing.assert_allclose(law.spread_, other.spread_, atol=1e-12)
        np.testing.assert_allclose(law.inverse_scale_, other.inverse_scale_, rtol=1e-10)
        assert law.dof_ == other.dof_


def test_the_posterior_of_vectors_under_a_normal_prior_is_that_of_laplace() -> None:
    model = sf.GLM("multivariate_gaussian", prior=sf.Normal(variance=0.3)).fit(X, Y)
    law, inverse = untyped(model.posterior_), np.linalg.inv(model.residual_covariance_)

    def loss(theta: Any) -> float:
        beta = theta.reshape(2, 4).T
        away = Y - DESIGN @ beta
        return float(0.5 * np.einsum("ni,ij,nj->", away, inverse, away) + 0.5 * (beta[1:] ** 2).sum() / 0.3)

    mode = law.mean_
    np.testing.assert_allclose(mode, np.asarray(model.parameters_).T.ravel())
    unit = np.eye(8)
    # Minus the log posterior given the covariance is quadratic: its second differences are its curvature.
    curve = [[loss(mode + a + b) - loss(mode + a) - loss(mode + b) + loss(mode) for b in unit] for a in unit]
    np.testing.assert_allclose(law.covariance_, np.linalg.inv(np.array(curve)), rtol=1e-8, atol=1e-12)
    with pytest.raises(sf.NotFittedError, match="no posterior without"):
        untyped(sf.GLM("multivariate_gaussian").fit(X, Y).posterior_)


def test_what_vectors_do_not_take_is_said() -> None:
    with pytest.raises(sf.OptionError, match="NormalWishart"):
        sf.GLM("multivariate_gaussian", prior=sf.Laplace(scale=1.0)).fit(X, Y)
    with pytest.raises(sf.OptionError, match="partial_fit"):
        sf.GLM("multinomial").partial_fit(X, LABELS)


def test_draws_follow_the_fitted_law() -> None:
    labels = sf.GLM("multinomial").fit(X, LABELS)
    rows = np.repeat(X[:1], 20_000, axis=0)
    drawn = labels.sample(rows, random_state=3)
    shares = np.bincount(drawn, minlength=3) / len(drawn)
    np.testing.assert_allclose(shares, labels.predict_proba(X[:1])[0], atol=0.015)
    vectors = sf.GLM("multivariate_gaussian").fit(X, Y)
    points = vectors.sample(rows, random_state=3)
    np.testing.assert_allclose(points.mean(axis=0), vectors.predict(X[:1])[0], atol=0.05)
    np.testing.assert_allclose(np.cov(points.T), vectors.residual_covariance_, atol=0.08)


@pytest.mark.parametrize("solver", ["auto", "lbfgs", "newton-cg"])
def test_a_softmax_of_two_classes_is_a_logistic_regression(solver: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = np.where(X[:, 0] + rng.normal(size=60) > 0, "a", "b")
    prior = sf.Normal(variance=1.0)
    two = sf.GLM(family=sf.Categorical(), prior=prior, solver=solver).fit(X, y)
    one = sf.GLM(family=sf.Bernoulli(), prior=prior).fit(X, y == "a")
    np.testing.assert_allclose(np.asarray(two.coefficients_)[:, 0], one.coefficients_, rtol=1e-6)
    np.testing.assert_allclose(two.predict_proba(X)[:, 0], one.predict_proba(X)[:, 1], rtol=1e-6)
    np.testing.assert_allclose(np.ravel(two.standard_errors_), one.standard_errors_, rtol=1e-6)


def test_directions_name_classes_as_they_are() -> None:
    rows = {"u": np.arange(9.0)}
    with pytest.warns(sf.SeparationWarning, match="the columns separate the response"):
        model = sf.GLM("multinomial").fit(rows, [0] * 3 + [1] * 3 + [2] * 3)
    directions = model.report_.certificate.directions
    assert any("of 0 " in text for text in directions), directions
    assert not any("'0'" in text for text in directions)
