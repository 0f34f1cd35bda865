"""What every model says about its parameters: their covariance through one door, refits of what is drawn as a whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import optimize
from scipy.stats import norm

import suffice as sf
from curvature import hessian

minimize: Any = optimize.minimize
RNG = np.random.default_rng(31)
TWO = np.concatenate([RNG.normal(size=120), RNG.normal(5.0, 1.5, 90)])
N = 120
SERIES = pd.DataFrame({"u": RNG.choice(list("ab"), N), "v": RNG.choice(list("cd"), N), "s": np.repeat(range(12), 10)})
WORDS = [[{f"w={letter}": 1.0} for letter in RNG.choice(list("xyz"), 6)] for _ in range(30)]
TAGS = [["A" if RNG.random() < (0.8 if "w=x" in word else 0.3) else "B" for word in words] for words in WORDS]


# -- one covariance of estimates ---------------------------------------------------------------------------------------


def test_the_covariance_of_estimates_is_one_method_of_every_model() -> None:
    X = RNG.normal(size=(80, 2))
    y = RNG.poisson(np.exp(0.3 * X[:, 0]))
    regression = sf.GLM("poisson").fit(X, y)
    assert np.asarray(regression.parameter_covariance()) == pytest.approx(regression.covariance_)
    normal = sf.Normal().fit(TWO)
    spread = normal.parameter_covariance()
    assert spread.names == ("mean", "variance")
    variance = float(np.var(TWO))
    assert np.asarray(spread) == pytest.approx(np.diag([variance, 2 * variance**2]) / len(TWO), rel=1e-8, abs=1e-12)
    # Of a distribution of vectors, covariance_ is its own and not that of the estimates.
    joint = sf.MultivariateNormal().fit(X)
    assert joint.covariance_.shape == (2, 2)
    assert joint.parameter_covariance().shape == (5, 5)
    field = sf.ChainCRF(prior=sf.Normal(variance=4.0)).fit(WORDS, TAGS)
    errors = np.sqrt(np.diagonal(np.asarray(field.parameter_covariance(WORDS, TAGS))))
    assert errors == pytest.approx(field.standard_errors_of(WORDS, TAGS))


def test_models_without_such_an_attribute_name_the_method() -> None:
    with pytest.raises(AttributeError, match=r"parameter_covariance\(\)"):
        sf.Normal().fit(TWO).covariance_  # type: ignore[attr-defined]  # noqa: B018
    field: Any = sf.ChainCRF().fit(WORDS, TAGS)
    for name in ("standard_errors_", "covariance_"):
        with pytest.raises(AttributeError, match=r"standard_errors_of\(X, y\)"):
            getattr(field, name)
    with pytest.raises(sf.EstimateError, match=r"parameter_covariance\(X, y\)"):
        field.parameter_covariance()


# -- mixtures ----------------------------------------------------------------------------------------------------------


def log_likelihood(point: np.ndarray) -> float:
    """Of two normal components: share of the first, means and variances."""
    share, *rest = point
    parts = [norm.logpdf(TWO, rest[k], np.sqrt(rest[k + 2])) for k in (0, 1)]
    return float(np.logaddexp(np.log(share) + parts[0], np.log1p(-share) + parts[1]).sum())


def test_errors_of_a_mixture_are_those_of_its_curvature() -> None:
    mixture = sf.Mixture(sf.Normal(), 2).fit(TWO, tolerance=1e-12, max_iter=5_000)
    table = mixture.summary()
    values = np.asarray(table.params)
    point = np.array([values[0], *values[2:]])
    covariance = np.linalg.inv(-hessian(log_likelihood, point))
    errors = np.sqrt(np.diagonal(covariance))
    assert np.asarray(table.bse)[[0, 2, 3, 4, 5]] == pytest.approx(errors, rel=2e-3)
    assert np.asarray(mixture.standard_errors_) == pytest.approx(np.asarray(table.bse))
    ends = mixture.confidence_intervals(0.9)
    assert np.asarray(ends)[2] == pytest.approx(values[2] + np.array([-1, 1]) * norm.ppf(0.95) * errors[1], rel=1e-2)
    test = sf.wald_test(mixture, {table.params.names[2]: 0.0})
    assert test.statistic == pytest.approx((values[2] / np.asarray(table.bse)[2]) ** 2)


def test_a_mixture_counts_its_own_parameters_and_no_transitions() -> None:
    mixture = sf.Mixture(sf.Normal(), 2).fit(TWO)
    assert mixture.n_params_ == mixture.report_.n_params == 5
    assert mixture.aic_ == pytest.approx(10 - 2 * mixture.log_likelihood_)
    assert mixture.bic_ == pytest.approx(5 * np.log(len(TWO)) - 2 * mixture.log_likelihood_)
    letters = sf.Mixture(sf.Categorical(), 2).fit(list("aabbccab") * 6)
    assert letters.n_params_ == 5


def test_refits_of_a_mixture_keep_the_places_of_its_components() -> None:
    mixture = sf.Mixture(sf.Normal(), 2).fit(TWO)
    for drawn in (mixture.bootstrap(TWO, n=12), mixture.bootstrap(n=12)):
        assert drawn.n == 12
        assert (np.abs(drawn.estimates[:, 2] - drawn.original[2]) < 1.5).all()
    with pytest.raises(sf.DataError, match="not those of the fit"):
        mixture.bootstrap(TWO + 1.0, n=2)


# -- networks through time ---------------------------------------------------------------------------------------------


def test_series_of_one_table_are_drawn_as_a_whole() -> None:
    net = sf.DynamicBayesianNetwork([("u", "v"), (("u", -1), "u")]).fit(SERIES, group="s")
    parts = [part for _, part in SERIES.groupby("s")]
    columns = {name: SERIES[name].to_numpy() for name in SERIES}
    drawn = net.bootstrap(SERIES, group="s", n=6)
    assert np.array_equal(drawn.estimates, net.bootstrap(parts, n=6).estimates)
    assert np.array_equal(drawn.estimates, net.bootstrap(columns, group="s", n=6).estimates)
    table = sf.compare(net, net, names=["one", "again"], data=SERIES, group="s", folds=3)
    assert np.isfinite(table["held out"]["one"])
    alike = net.bootstrap(SERIES, group="s", n=60, kind="parametric")
    spread = np.asarray(net.summary().bse)
    assert np.asarray(alike.standard_errors)[2:] == pytest.approx(spread[2:], rel=0.5)
    with pytest.raises(sf.OptionError, match="number and lengths"):
        net.bootstrap(n=3)


# -- intervals that there are not --------------------------------------------------------------------------------------


def test_a_mean_of_a_gaussian_graph_has_the_profile_of_its_column() -> None:
    rows = pd.DataFrame(RNG.normal(size=(60, 3)) @ [[1, 0.5, 0], [0, 1, 0.5], [0, 0, 1]], columns=list("pqr"))
    graph = sf.GaussianGraph([("p", "q"), ("q", "r")]).fit(rows)
    ends = graph.confidence_intervals(0.9, method="profile")
    law = sf.Normal().fit(rows["q"]).confidence_intervals(0.9, method="profile")
    assert ends["mean[q]"] == pytest.approx(law["mean"], rel=1e-7)


def test_what_has_no_profile_is_named() -> None:
    shares = RNG.dirichlet([1.0, 2.0, 3.0], 50)
    with pytest.warns(sf.SufficeWarning, match=r"no profile interval of 'alpha\[0\]'"):
        ends = sf.Dirichlet().fit(shares).confidence_intervals(method="profile")
    assert np.isnan(np.asarray(ends)).all()
