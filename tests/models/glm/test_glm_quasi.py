"""Regressions of counts on numbers that are none: quasi-likelihood, as scikit-learn and statsmodels fit it."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import optimize, special

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
    for family in (sf.NegativeBinomial(), sf.NegativeBinomial(size=2.0), sf.Geometric()):
        with pytest.raises(sf.DataError, match="takes counts, or other numbers of at least 0"):
            sf.GLM(family).fit(X, Y - 1.0)


def continued(y: Any, mean: Any, size: Any) -> Any:
    """The negative binomial log-likelihood with gamma functions in place of factorials."""
    choices = special.gammaln(y + size) - special.gammaln(size) - special.gammaln(y + 1.0)
    return choices + size * np.log(size / (size + mean)) + y * np.log(mean / (size + mean))


@pytest.mark.parametrize("size", [None, 1.0, 0.3])
def test_a_negative_binomial_likelihood_goes_on_between_the_counts(size: float | None) -> None:
    design = np.column_stack((np.ones(len(X)), X))

    def loss(at: Any) -> float:
        return -float(continued(Y, np.exp(design @ at[:3]), np.exp(at[3]) if size is None else size).sum())

    start = np.zeros(4 if size is None else 3)
    best = optimize.minimize(
        loss, start, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 9000}
    )
    family = sf.Geometric() if size == 1.0 else sf.NegativeBinomial(size=size)
    with pytest.warns(sf.SufficeWarning, match=NOTE):
        model = sf.GLM(family).fit(X, Y)
    np.testing.assert_allclose(model.parameters_, best.x[:3], rtol=2e-6)
    assert model.log_likelihood_ == pytest.approx(-best.fun, rel=1e-11)
    assert model.report_.certificate.exists is True
    assert model.converged_
    if size is None:
        assert model.size_ == pytest.approx(np.exp(best.x[3]), rel=2e-6)


@pytest.mark.filterwarnings("ignore:the response holds numbers that are no counts")
@pytest.mark.parametrize("family", [sf.Poisson(), sf.NegativeBinomial(size=0.4), sf.Geometric()])
def test_rows_have_the_terms_of_the_log_likelihood(family: Any) -> None:
    # Below 1, too, where the gamma function bends most.
    y = np.concatenate((Y, [1e-9, 1e-3, 0.2, 0.9]))
    rows = np.concatenate((X, RNG.normal(size=(4, 2))))
    model = sf.GLM(family).fit(rows, y)
    mean = model.predict(rows)
    size = {"Geometric()": 1.0, "Poisson()": None}.get(repr(family), 0.4)
    poisson = y * np.log(mean) - mean - special.gammaln(y + 1.0)
    np.testing.assert_allclose(
        model.score_samples(rows, y), poisson if size is None else continued(y, mean, size), rtol=1e-9
    )
    assert model.score_samples(rows, y).sum() == pytest.approx(model.log_likelihood_, rel=1e-12)
    assert model.score(rows, y) == pytest.approx(model.log_likelihood_ / len(y), rel=1e-12)


@pytest.mark.filterwarnings("ignore:.*the response holds numbers that are no counts")
def test_a_node_of_a_network_has_the_same_log_likelihood() -> None:
    table = {"a": X[:, 0], "y": Y}
    net = sf.BayesianNetwork([("a", "y")], nodes={"y": sf.GLM("poisson")}, states={"a": "real", "y": "real"}).fit(table)
    parts = sf.GLM("poisson").fit({"a": X[:, 0]}, Y).log_likelihood_, sf.Normal().fit(X[:, 0]).log_likelihood_
    assert net.log_likelihood_ == pytest.approx(sum(parts), rel=1e-12)
    assert 0.0 <= (net.report_.certificate.value_gap or 0.0) < 1e-9


@pytest.mark.parametrize(
    "member", [sf.Poisson(rate=0.7), sf.NegativeBinomial(size=0.4, probability=0.3), sf.Geometric(0.2)]
)
def test_distributions_of_counts_stay_on_the_counts(member: Any) -> None:
    assert member.log_prob([0.5, 1e-3, -1.0, np.nan]).tolist() == [-np.inf] * 4
    assert np.isfinite(member.log_prob([0.0, 1.0, 7.0])).all()


def test_a_node_that_has_learned_counts_gives_other_numbers_no_probability() -> None:
    """Its likelihood goes on between the counts only where it has learned such numbers."""
    table = {"a": X[:, 0], "y": np.round(Y)}
    net = sf.BayesianNetwork([("a", "y")], nodes={"y": sf.GLM("poisson")}, states={"a": "real", "y": "real"}).fit(table)
    assert net.log_probability({"a": 0.1, "y": 2.5}) == -np.inf
    assert np.isfinite(net.log_probability({"a": 0.1, "y": 2.0}))
