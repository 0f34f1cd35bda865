"""Quasi-Poisson and quasi-binomial regressions: coefficients of the family, errors by Pearson's dispersion."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import suffice as sf
from suffice.choices import FamilyName

RNG = np.random.default_rng(8)
X = RNG.normal(size=(70, 2))
COUNTS = RNG.negative_binomial(2, 2.0 / (2.0 + np.exp(0.8 + X @ [0.5, -0.3])))
TRIALS = RNG.integers(2, 15, len(X))
HITS = RNG.binomial(TRIALS, RNG.beta(2.0, 3.0, len(X)))
DESIGN = np.column_stack((np.ones(len(X)), X))
FAMILIES: tuple[FamilyName, ...] = ("quasipoisson", "quasibinomial")


def rows(family: FamilyName) -> dict[str, Any]:
    return {"y": COUNTS} if family == "quasipoisson" else {"y": HITS, "trials": TRIALS}


def peer(family: FamilyName, design: Any = DESIGN, scale: Any = "X2") -> Any:
    """Statsmodels; of trials as shares with weights, as its pairs of columns forget the trials in the dispersion."""
    sm = pytest.importorskip("statsmodels.api")
    if family == "quasipoisson":
        return sm.GLM(COUNTS, design, family=sm.families.Poisson()).fit(scale=scale)
    binomial = sm.families.Binomial()
    return sm.GLM(HITS / TRIALS, design, family=binomial, var_weights=TRIALS).fit(scale=scale)


@pytest.mark.parametrize("family", FAMILIES)
def test_statsmodels_has_the_same_coefficients_dispersion_and_errors(family: FamilyName) -> None:
    model, theirs = sf.GLM(family).fit(X, **rows(family)), peer(family)
    np.testing.assert_allclose(model.parameters_, theirs.params, rtol=1e-9)
    np.testing.assert_allclose(model.standard_errors_, theirs.bse, rtol=1e-9)
    assert model.dispersion_ == pytest.approx(theirs.scale, rel=1e-9)
    assert model.deviance_ == pytest.approx(theirs.deviance, rel=1e-9)
    assert model.df_resid_ == theirs.df_resid
    assert model.converged_
    assert model.report_.certificate.exists


def test_the_error_of_a_mean_is_the_usual_one() -> None:
    # By hand: under the log link with an intercept alone the error of the mean is sqrt(phi / sum y), phi = s^2 / mean.
    y = np.array([0.0, 2.0, 3.0, 11.0])
    model = sf.GLM("quasipoisson").fit(np.empty((4, 0)), y, columns=[])
    assert model.dispersion_ == pytest.approx(y.var(ddof=1) / y.mean(), rel=1e-8)
    assert model.standard_errors_["intercept"] == pytest.approx(y.std(ddof=1) / 2.0 / y.mean(), rel=1e-8)


@pytest.mark.parametrize("family", FAMILIES)
def test_there_is_no_likelihood_and_the_fit_says_so(family: FamilyName) -> None:
    model = sf.GLM(family).fit(X, **rows(family))
    for name in ("aic_", "bic_", "log_likelihood_"):
        with pytest.raises(sf.NotFittedError, match="mean and variance alone, so that there is no log-likelihood"):
            getattr(model, name)
    assert model.report_.estimate == "quasi-likelihood"
    assert np.isnan(model.report_.aic)
    assert "AIC" not in str(model.summary())
    assert "no likelihood, so no AIC" in str(model.report_)
    assert model.report_.log_likelihood == pytest.approx(-0.5 * model.deviance_ / model.dispersion_, rel=1e-9)
    for name in ("score", "score_samples"):
        with pytest.raises(sf.OptionError, match="has no likelihood"):
            getattr(model, name)(X, **rows(family))
    with pytest.raises(sf.OptionError, match="no distribution to draw from"):
        model.sample(X)


@pytest.mark.parametrize("family", FAMILIES)
def test_nested_fits_have_the_f_test_of_deviances(family: FamilyName) -> None:
    small, large = (sf.GLM(family).fit(columns, **rows(family)) for columns in (X[:, :1], X))
    theirs = [peer(family, design) for design in (DESIGN[:, :2], DESIGN)]
    ratio = (theirs[0].deviance - theirs[1].deviance) / theirs[1].scale
    for test in (small.likelihood_ratio_test(large), sf.likelihood_ratio_test(small, large)):
        assert str(test).startswith("F = ")
        assert test.statistic == pytest.approx(ratio, rel=1e-8)


@pytest.mark.parametrize("family", FAMILIES)
def test_profile_intervals_are_those_of_the_deviance_in_units_of_the_dispersion(family: FamilyName) -> None:
    stats = pytest.importorskip("scipy.stats")
    sm = pytest.importorskip("statsmodels.api")
    model = sf.GLM(family).fit(X, **rows(family))
    ends = model.intervals(0.9, method="profile", X=X, **rows(family))
    reach = stats.t(model.df_resid_).ppf(0.95)
    for end in ends["x0"]:
        fixed = {"offset": end * X[:, 0]}
        if family == "quasipoisson":
            held = sm.GLM(COUNTS, DESIGN[:, [0, 2]], family=sm.families.Poisson(), **fixed).fit()
        else:
            more = {**fixed, "var_weights": TRIALS}
            held = sm.GLM(HITS / TRIALS, DESIGN[:, [0, 2]], family=sm.families.Binomial(), **more).fit()
        assert (held.deviance - model.deviance_) / model.dispersion_ == pytest.approx(reach**2, rel=1e-6)


def test_units_of_the_response_change_the_intercept_alone() -> None:
    model, small = (sf.GLM("quasipoisson").fit(X, COUNTS * unit) for unit in (1.0, 1e-7))
    np.testing.assert_allclose(small.coefficients_, model.coefficients_, rtol=1e-7)
    np.testing.assert_allclose(small.standard_errors_, model.standard_errors_, rtol=1e-7)
    assert small.converged_
    assert small.dispersion_ == pytest.approx(1e-7 * model.dispersion_, rel=1e-7)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_weight_is_a_row_that_is_repeated(family: FamilyName) -> None:
    times = RNG.integers(0, 4, len(X))
    given = rows(family)
    repeated = {name: np.repeat(values, times) for name, values in given.items()}
    once = sf.GLM(family).fit(X, **given, sample_weight=times)
    often = sf.GLM(family).fit(np.repeat(X, times, axis=0), **repeated)
    np.testing.assert_allclose(once.standard_errors_, often.standard_errors_, rtol=1e-9)
    assert once.dispersion_ == pytest.approx(often.dispersion_, rel=1e-9)


@pytest.mark.parametrize("family", FAMILIES)
def test_files_and_saved_models_say_the_same(family: FamilyName, tmp_path: Any) -> None:
    table = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "n": TRIALS, "y": COUNTS if family == "quasipoisson" else HITS})
    table.to_csv(tmp_path / "rows.csv", index=False)
    given = {"y": "y", "columns": ["a", "b"], **({} if family == "quasipoisson" else {"trials": "n"})}
    model, streamed = sf.GLM(family).fit(table, **given), sf.GLM(family).fit(tmp_path / "rows.csv", **given)
    np.testing.assert_allclose(streamed.standard_errors_, model.standard_errors_, rtol=1e-8)
    model.write(tmp_path / "model.json")
    again = sf.read(tmp_path / "model.json")
    assert str(again.summary()) == str(model.summary())
    assert str(again.report_) == str(model.report_)


def test_a_known_dispersion_scales_the_errors_and_takes_a_prior() -> None:
    model = sf.GLM("quasipoisson", dispersion=4.0).fit(X, COUNTS)
    poisson = sf.GLM("poisson").fit(X, COUNTS)
    np.testing.assert_allclose(model.standard_errors_, 2.0 * np.asarray(poisson.standard_errors_), rtol=1e-9)
    # A likelihood in units of 4 under a prior of variance 1 is the likelihood under one of variance 1 / 4.
    ridge = sf.GLM("quasipoisson", dispersion=4.0, prior=sf.Normal(variance=1.0)).fit(X, COUNTS)
    same = sf.GLM("poisson", prior=sf.Normal(variance=0.25)).fit(X, COUNTS)
    np.testing.assert_allclose(ridge.parameters_, same.parameters_, rtol=1e-7)
    assert ridge.report_.estimate == "penalised quasi-likelihood"


def test_what_has_no_meaning_is_refused() -> None:
    with pytest.raises(sf.OptionError, match=r"has no likelihood\. Use 'pearson' or a number"):
        sf.GLM("quasipoisson", dispersion="ml")
    with pytest.raises(sf.OptionError, match="A prior weighs against a likelihood"):
        sf.GLM("quasibinomial", prior=sf.Normal(variance=1.0))
    with pytest.raises(sf.EstimateError, match="Every row is fitted, as where columns separate the response"):
        sf.GLM("quasibinomial").fit([[1.0], [2.0], [3.0], [4.0]], [0, 0, 1, 1])
    with pytest.raises(sf.OptionError, match="no distribution, and a node is one"):
        sf.BayesianNetwork({"a": [], "y": ["a"]}, nodes={"y": sf.GLM("quasipoisson")}).fit({"a": X[:, 0], "y": COUNTS})
    with pytest.raises(sf.DataError, match="takes numbers of at least 0"):
        sf.GLM("quasipoisson").fit(X, COUNTS - 1.0)
