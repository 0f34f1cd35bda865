"""The same regressions by other libraries."""

from typing import Any

import numpy as np
import pytest

import suffice as sf

RNG = np.random.default_rng(41)
X = RNG.normal(size=(300, 3))
RATE = np.exp(0.3 + X @ [0.4, -0.2, 0.1])


@pytest.mark.filterwarnings("ignore:The InversePower link function")
@pytest.mark.parametrize(
    ("family", "link", "peer", "peer_link"),
    [
        ("poisson", "log", "Poisson", "Log"),
        ("gamma", "log", "Gamma", "Log"),
        ("gamma", "inverse", "Gamma", "InversePower"),
        ("inverse_gaussian", "log", "InverseGaussian", "Log"),
        ("binomial", "probit", "Binomial", "Probit"),
        ("binomial", "cloglog", "Binomial", "CLogLog"),
        ("binomial", "loglog", "Binomial", "LogLog"),
        ("gaussian", "identity", "Gaussian", "Identity"),
    ],
)
def test_statsmodels_finds_the_same(family: Any, link: Any, peer: str, peer_link: str) -> None:
    api: Any = pytest.importorskip("statsmodels.api")
    rng = np.random.default_rng(1)
    draw: dict[str, Any] = {
        "poisson": lambda: rng.poisson(RATE),
        "gamma": lambda: rng.gamma(5.0, RATE / 5.0),
        "inverse_gaussian": lambda: rng.wald(RATE, 4.0),
        "binomial": lambda: rng.random(300) < RATE / (1 + RATE),
        "gaussian": lambda: RATE + rng.normal(size=300),
    }
    y = draw[family]().astype(float)
    if link == "inverse":  # Their steps may leave the range of the link; these means do not tempt them to.
        y = rng.gamma(5.0, 0.2 / (3.0 + 0.3 * np.log(RATE)))
    weights = rng.integers(1, 4, 300).astype(float)
    theirs = api.GLM(
        y,
        api.add_constant(X),
        family=getattr(api.families, peer)(getattr(api.families.links, peer_link)()),
        freq_weights=weights,
    ).fit(tol=1e-12, maxiter=200)
    mine = sf.GLM(family, link=link).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(mine.parameters_, theirs.params, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(mine.standard_errors_, theirs.bse, rtol=1e-5)
    assert mine.deviance_ == pytest.approx(theirs.deviance, rel=1e-8)
    assert mine.null_deviance_ == pytest.approx(theirs.null_deviance, rel=1e-8)
    assert mine.pearson_chi2_ == pytest.approx(theirs.pearson_chi2, rel=1e-6)


def test_scikit_learn_finds_the_same_ridge() -> None:
    linear: Any = pytest.importorskip("sklearn.linear_model")
    y = (np.random.default_rng(2).random(300) < RATE / (1 + RATE)).astype(int)
    theirs = linear.LogisticRegression(C=0.7, tol=1e-10, max_iter=1000).fit(X, y)
    mine = sf.GLM("binomial", prior=sf.Normal(variance=0.7)).fit(X, y)
    np.testing.assert_allclose(mine.coefficients_, theirs.coef_[0], atol=1e-5)
    assert mine.intercept_ == pytest.approx(theirs.intercept_[0], abs=1e-5)


def test_glum_finds_the_same_elastic_net() -> None:
    glum: Any = pytest.importorskip("glum")
    y = np.random.default_rng(3).poisson(RATE).astype(float)
    theirs = glum.GeneralizedLinearRegressor(family="poisson", alpha=0.1, l1_ratio=0.5, gradient_tol=1e-9).fit(X, y)
    # Their objective is a mean over rows: the penalties times the number of rows are those of the sum.
    prior = (sf.Laplace(scale=1 / (300 * 0.05)), sf.Normal(variance=1 / (300 * 0.05)))
    mine = sf.GLM("poisson", prior=prior).fit(X, y)
    np.testing.assert_allclose(mine.coefficients_, theirs.coef_, atol=1e-6)


@pytest.mark.parametrize(("link", "law"), [("logit", "logistic"), ("probit", "norm"), ("cloglog", "gumbel_l")])
def test_statsmodels_finds_the_same_thresholds(link: Any, law: str) -> None:
    ordinal: Any = pytest.importorskip("statsmodels.miscmodels.ordinal_model")
    from scipy import stats

    rng = np.random.default_rng(5)
    lower = {"logit": stats.logistic.cdf, "probit": stats.norm.cdf, "cloglog": stats.gumbel_l.cdf}[link]
    ends = np.column_stack([lower(theta - X @ [0.7, -0.4, 0.2]) for theta in (-1.0, 0.3, 1.2)])
    y = (rng.random((300, 1)) > ends).sum(axis=1)
    theirs = ordinal.OrderedModel(y, X, distr=getattr(stats, law)).fit(method="bfgs", disp=False, gtol=1e-6)
    mine = sf.GLM("ordinal", link=link).fit(X, y)
    thresholds = theirs.model.transform_threshold_params(theirs.params)[1:-1]
    # Their gradients are differences, which leaves the sixth digit open.
    np.testing.assert_allclose(mine.thresholds_, thresholds, atol=1e-5)
    np.testing.assert_allclose(mine.coefficients_, theirs.params[:3], atol=1e-5)
    np.testing.assert_allclose(np.asarray(mine.standard_errors_)[3:], theirs.bse[:3], rtol=1e-3)
    assert mine.log_likelihood_ == pytest.approx(theirs.llf, abs=1e-8)
    np.testing.assert_allclose(mine.predict_proba(X), theirs.predict(X), atol=1e-5)
