"""The joint law of the weights and the covariance of a regression of vectors, against SciPy and draws."""

import numpy as np
import pytest
from scipy import integrate, stats

import suffice as sf
from suffice.families.matrix_regression_distribution import MatrixRegressionDistribution
from suffice.families.regression_distribution import RegressionDistribution

WEIGHTS = np.array([[0.5, -1.0], [0.2, 0.0], [1.0, 2.0]])
SPREAD = np.array([[0.8, 0.2, 0.0], [0.2, 0.4, 0.1], [0.0, 0.1, 0.5]])
SCALE = np.array([[2.0, 0.3], [0.3, 1.0]])
LAW = MatrixRegressionDistribution(WEIGHTS, SPREAD, dof=9.0, inverse_scale=SCALE)


def test_the_density_is_inverse_wishart_times_matrix_normal() -> None:
    rng = np.random.default_rng(0)
    points, covariances = rng.normal(size=(5, 3, 2)), []
    expected = []
    for weights in points:
        half = rng.normal(size=(2, 2))
        covariances.append(half @ half.T + 0.1 * np.eye(2))
        given = stats.matrix_normal(WEIGHTS, SPREAD, covariances[-1]).logpdf(weights)
        expected.append(stats.invwishart(9.0, SCALE).logpdf(covariances[-1]) + given)
    np.testing.assert_allclose(LAW.log_prob((points, covariances)), expected, rtol=1e-10)
    assert LAW.log_prob({"weights": points[0], "covariance": covariances[0]}) == pytest.approx(expected[0])
    assert LAW.log_prob((points[0], [[1.0, 2.0], [2.0, 1.0]])) == -np.inf
    assert LAW.log_prob((points[0], [[1.0, 0.5], [0.0, 1.0]])) == -np.inf


def test_one_response_is_the_law_of_weights_and_variance() -> None:
    one = MatrixRegressionDistribution([[0.5], [-1.0]], SPREAD[:2, :2], dof=6.0, inverse_scale=[[4.0]])
    other = RegressionDistribution([0.5, -1.0], SPREAD[:2, :2], alpha=3.0, beta=2.0)
    point = np.array([0.1, 0.3])
    assert one.log_prob((point[:, None], [[0.7]])) == pytest.approx(other.log_prob((point, 0.7)), rel=1e-12)
    assert one.mean()["covariance"][0, 0] == pytest.approx(other.mean()["variance"])
    assert one.mode()["covariance"][0, 0] == pytest.approx(other.mode()["variance"])
    np.testing.assert_allclose(one.intervals(0.9)["weights"][:, 0], other.intervals(0.9)["weights"])
    np.testing.assert_allclose(one.intervals(0.9)["variances"][0], other.intervals(0.9)["variance"])
    mine, theirs = one.predictive([1.0, 2.0]), other.predictive([2.0])
    assert mine.log_prob([0.4]) == pytest.approx(theirs.log_prob(0.4), rel=1e-12)


def test_draws_have_the_moments_and_quantiles_of_the_law() -> None:
    drawn = LAW.sample(200_000, random_state=1)
    np.testing.assert_allclose(drawn["weights"].mean(axis=0), WEIGHTS, atol=0.01)
    np.testing.assert_allclose(drawn["covariance"].mean(axis=0), LAW.mean()["covariance"], atol=0.005)
    flat = drawn["weights"].swapaxes(1, 2).reshape(-1, 6)
    np.testing.assert_allclose(np.cov(flat.T), LAW.weights_covariance(), atol=0.01)
    ends = LAW.intervals(0.9)
    np.testing.assert_allclose(
        np.quantile(drawn["weights"], [0.05, 0.95], axis=0).transpose(1, 2, 0), ends["weights"], atol=0.01
    )
    variances = np.diagonal(drawn["covariance"], axis1=1, axis2=2)
    np.testing.assert_allclose(np.quantile(variances, [0.05, 0.95], axis=0).T, ends["variances"], rtol=0.02)


def test_the_mode_is_where_no_nearby_point_is_higher() -> None:
    mode = LAW.mode()
    top = LAW.log_prob(mode)
    rng = np.random.default_rng(3)
    for _ in range(50):
        turn = 0.05 * rng.normal(size=(2, 2))
        covariance = (np.eye(2) + turn) @ mode["covariance"] @ (np.eye(2) + turn).T
        assert LAW.log_prob((mode["weights"] + 0.02 * rng.normal(size=(3, 2)), covariance)) < top


def test_the_predictive_law_integrates_the_covariance_out() -> None:
    # One response: the t density is the integral of normal densities over the inverse-gamma law of the variance.
    law = MatrixRegressionDistribution([[0.5], [-1.0]], SPREAD[:2, :2], dof=6.0, inverse_scale=[[4.0]])
    row = np.array([1.0, 2.0])
    wide = 1.0 + row @ SPREAD[:2, :2] @ row

    def integrand(v: float) -> float:
        return float(stats.norm.pdf(0.4, row @ [0.5, -1.0], np.sqrt(v * wide)) * stats.invgamma.pdf(v, 3.0, scale=2.0))

    found = np.exp(law.predictive(row).log_prob([0.4]))
    assert found == pytest.approx(integrate.quad(integrand, 0.0, np.inf)[0], rel=1e-7)
    # Two responses: the average of normal densities over draws.
    row, y = np.array([1.0, 0.5, -0.5]), np.array([0.3, -1.5])
    drawn = LAW.sample(200_000, random_state=2)
    away = y - np.einsum("k,nkm->nm", row, drawn["weights"])
    square = np.einsum("ni,ni->n", away, np.linalg.solve(drawn["covariance"], away[..., None])[..., 0])
    density = np.exp(-0.5 * square) / (2 * np.pi * np.sqrt(np.linalg.det(drawn["covariance"])))
    assert np.exp(LAW.predictive(row).log_prob(y)) == pytest.approx(density.mean(), rel=0.02)


def test_wrong_shapes_are_said() -> None:
    with pytest.raises(sf.OptionError, match="expected a row for each weight"):
        MatrixRegressionDistribution([0.0, 1.0], np.eye(2), 5, [[1.0]])
    with pytest.raises(sf.OptionError, match="dof"):
        MatrixRegressionDistribution(WEIGHTS, SPREAD, 1.0, SCALE)
    with pytest.raises(sf.OptionError, match="expected"):
        LAW.log_prob((np.zeros(3), SCALE))
    with pytest.raises(sf.OptionError, match="3 weights"):
        LAW.predictive([1.0])
    with pytest.raises(sf.EstimateError, match="dof > 3"):
        MatrixRegressionDistribution(WEIGHTS, SPREAD, 2.5, SCALE).mean()
