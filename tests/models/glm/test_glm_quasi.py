"""Poisson regression of numbers that are no counts: quasi-likelihood, as scikit-learn and statsmodels fit it."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import optimize

import suffice as sf

RNG = np.random.default_rng(21)
X = RNG.normal(size=(120, 2))
Y = np.exp(0.3 + X @ [0.5, -0.2]) * RNG.gamma(2.0, 0.5, 120) * (RNG.random(120) < 0.9)
NOTE = "holds numbers that are no counts: coefficients are those of quasi-likelihood"


def test_the_score_equations_hold_as_for_counts() -> None:
    with pytest.warns(sf.SufficeWarning, match=NOTE):
        model = sf.GLM("poisson").fit(X, Y)
    assert any(NOTE in line for line in model.report_.warnings)
    design = np.column_stack((np.ones(len(X)), X))

    def score(beta: Any) -> Any:
        return design.T @ (Y - np.exp(design @ beta))

    best = optimize.root(score, np.zeros(3), tol=1e-13).x
    np.testing.assert_allclose(model.parameters_, best, rtol=1e-9)
    mean = np.exp(design @ best)
    terms = Y * np.log(mean) - mean - np.array([math.lgamma(y + 1.0) for y in Y])
    assert model.log_likelihood_ == pytest.approx(terms.sum(), rel=1e-12)
    assert model.report_.certificate.exists is True


@pytest.mark.filterwarnings("ignore:the response holds numbers that are no counts")
def test_peers_have_the_same_coefficients_and_robust_errors() -> None:
    linear = pytest.importorskip("sklearn.linear_model")
    theirs = linear.PoissonRegressor(alpha=0.0, tol=1e-12, max_iter=10_000).fit(X, Y)
    ours = sf.GLM("poisson", covariance="robust").fit(X, Y)
    np.testing.assert_allclose(ours.coefficients_, theirs.coef_, rtol=1e-5)
    design = np.column_stack((np.ones(len(X)), X))
    mean = np.exp(design @ np.asarray(ours.parameters_))
    bread = np.linalg.inv((design * mean[:, None]).T @ design)
    meat = (design * ((Y - mean) ** 2)[:, None]).T @ design
    np.testing.assert_allclose(ours.standard_errors_, np.sqrt(np.diag(bread @ meat @ bread)), rtol=1e-7)


@pytest.mark.filterwarnings("ignore:the response holds numbers that are no counts")
def test_rates_with_exposure_as_weights_are_counts_with_exposure() -> None:
    exposure = RNG.uniform(0.5, 3.0, len(X))
    counts = RNG.poisson(exposure * np.exp(0.3 + X @ [0.5, -0.2]))
    by_rate = sf.GLM("poisson").fit(X, counts / exposure, sample_weight=exposure)
    by_count = sf.GLM("poisson").fit(X, counts, exposure=exposure)
    np.testing.assert_allclose(by_rate.parameters_, by_count.parameters_, rtol=1e-9)
    np.testing.assert_allclose(by_rate.standard_errors_, by_count.standard_errors_, rtol=1e-7)


def test_negative_numbers_and_other_counts_are_refused() -> None:
    with pytest.raises(sf.DataError, match="takes counts, or other numbers of at least 0"):
        sf.GLM("poisson").fit(X, Y - 1.0)
    with pytest.raises(sf.DataError, match="takes counts"):
        sf.GLM("negative_binomial").fit(X, Y)
    with pytest.raises(sf.DataError):
        sf.GLM(sf.Geometric()).fit(X, Y)
