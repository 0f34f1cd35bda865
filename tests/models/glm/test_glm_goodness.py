"""Measures like R-squared and tests of dispersion, beside statsmodels and by their definitions."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import suffice as sf

sm = pytest.importorskip("statsmodels.api")

RNG = np.random.default_rng(8)
N = 120
ROWS = pd.DataFrame({"x": RNG.normal(size=N), "z": RNG.exponential(size=N)})
ETA = 0.3 + 0.5 * ROWS["x"] - 0.4 * ROWS["z"]
ROWS["real"] = ETA + RNG.normal(size=N)
ROWS["count"] = RNG.negative_binomial(1.5, 1.5 / (1.5 + np.exp(1.0 + ETA)))
ROWS["ill"] = (RNG.random(N) < 1.0 / (1.0 + np.exp(-ETA))).astype(int)
ROWS["kind"] = np.array(["a", "b", "c"])[RNG.integers(0, 3, N)]
X = ["x", "z"]
DESIGN = sm.add_constant(ROWS[X])


def measures(model: sf.GLM) -> dict[str, float]:
    return dict(model.r_squared().to_frame()["R-squared"])


def test_least_squares() -> None:
    peer = sm.OLS(ROWS["real"], DESIGN).fit()
    made = measures(sf.GLM().fit(ROWS[X], ROWS["real"]))
    assert made["deviance"] == pytest.approx(peer.rsquared, rel=1e-12)
    assert made["adjusted"] == pytest.approx(peer.rsquared_adj, rel=1e-12)
    assert made["Cox-Snell"] == pytest.approx(peer.rsquared, rel=1e-12)
    assert "McFadden" not in made


def test_published_measures_of_spector_and_mazzeo() -> None:
    """Greene's logit of the grades: McFadden 0.3740, as statsmodels and Stata print it."""
    rows = sm.datasets.spector.load_pandas()
    made = measures(sf.GLM("binomial").fit(rows.exog, rows.endog))
    peer = sm.Logit(rows.endog, sm.add_constant(rows.exog)).fit(disp=0)
    assert made["McFadden"] == pytest.approx(0.3740, abs=5e-5)
    assert made["McFadden"] == pytest.approx(peer.prsquared, rel=1e-10)
    n, shares = 32, 1.0 - np.exp(2.0 * (peer.llnull - peer.llf) / 32)
    assert made["Cox-Snell"] == pytest.approx(shares, rel=1e-10)
    assert made["Nagelkerke"] == pytest.approx(shares / (1.0 - np.exp(2.0 * peer.llnull / n)), rel=1e-10)
    assert made["McFadden, adjusted"] == pytest.approx(1.0 - (peer.llf - 4.0) / peer.llnull, rel=1e-10)


@pytest.mark.parametrize(
    ("family", "y", "make"), [("multinomial", "kind", sm.MNLogit), ("poisson", "count", sm.Poisson)]
)
def test_likelihoods_of_labels_and_counts(family: Any, y: str, make: Any) -> None:
    response = ROWS[y].astype("category").cat.codes if y == "kind" else ROWS[y]
    peer = make(response, DESIGN).fit(disp=0)
    made = measures(sf.GLM(family).fit(ROWS[X], ROWS[y]))
    assert made["McFadden"] == pytest.approx(peer.prsquared, rel=1e-8)
    gain = peer.llf - peer.llnull
    assert made["Cox-Snell"] == pytest.approx(-np.expm1(-2.0 * gain / N), rel=1e-8)
    assert made["McFadden, adjusted"] == pytest.approx(1.0 - (peer.llf - peer.params.size) / peer.llnull, rel=1e-8)


def test_an_offset_and_a_known_size_enter_the_intercept_alone() -> None:
    offset = np.linspace(-1.0, 1.0, N)
    whole = sf.GLM(sf.NegativeBinomial(size=1.5)).fit(ROWS[X], ROWS["count"], offset=offset)
    null = sf.GLM(sf.NegativeBinomial(size=1.5)).fit(ROWS[X], ROWS["count"], offset=offset, columns=[])
    made = measures(whole)
    assert made["McFadden"] == pytest.approx(1.0 - whole.log_likelihood_ / null.log_likelihood_, rel=1e-9)
    assert made["deviance"] == pytest.approx(1.0 - whole.deviance_ / null.deviance_, rel=1e-9)


def test_what_is_left_out_and_why() -> None:
    table = sf.GLM("quasipoisson").fit(ROWS[X], ROWS["count"]).r_squared()
    assert [name for name, _ in table.rows] == ["deviance", "adjusted"]
    assert "the family has none" in str(table)
    assert "size of its own" in str(sf.GLM("negative_binomial").fit(ROWS[X], ROWS["count"]).r_squared())
    assert "a prior" in str(sf.GLM(prior=sf.Normal(variance=1.0)).fit(ROWS[X], ROWS["real"]).r_squared())
    with pytest.raises(sf.EstimateError, match="has none"):
        sf.GLM(fit_intercept=False).fit(ROWS[X], ROWS["real"]).r_squared()
    with pytest.raises(sf.EstimateError, match="does not vary"):
        sf.GLM("poisson").fit(ROWS[X], np.full(N, 2)).r_squared()


def test_dispersion_of_counts(tmp_path: Path) -> None:
    """Beside statsmodels, whose "CT nb1" of 0.14 regresses on the mean: its regression on 1 is least squares here."""
    from statsmodels.discrete._diagnostics_count import test_poisson_dispersion as peer_tests

    result = sm.Poisson(ROWS["count"], DESIGN).fit(disp=0)
    peer = peer_tests(result)
    model = sf.GLM("poisson").fit(ROWS[X], ROWS["count"])
    made = model.dispersion_tests(ROWS[X], ROWS["count"]).to_frame()
    np.testing.assert_allclose(
        made.loc["mean + a mean^2", ["statistic", "p value"]], [peer.statistic[3], peer.pvalue[3]], rtol=1e-7
    )
    mean = result.predict()
    away = ((ROWS["count"] - mean) ** 2 - ROWS["count"]) / mean
    flat = sm.OLS(away, np.ones(N)).fit(use_t=False)
    expected = [flat.params.iloc[0], flat.tvalues.iloc[0], flat.pvalues.iloc[0]]
    np.testing.assert_allclose(made.loc["mean + a mean", ["estimate", "statistic", "p value"]], expected, rtol=1e-7)
    glm = sm.GLM(ROWS["count"], DESIGN, sm.families.Poisson()).fit()
    from scipy import stats

    pearson = [glm.pearson_chi2 / (N - 3), glm.pearson_chi2, N - 3, stats.chi2.sf(glm.pearson_chi2, N - 3)]
    np.testing.assert_allclose(made.loc["Pearson chi2"], pearson, rtol=1e-6)
    path = tmp_path / "rows.csv"
    ROWS.to_csv(path, index=False)
    np.testing.assert_allclose(model.dispersion_tests(path, "count").to_frame(), made, rtol=1e-9)
    quasi = sf.GLM("quasipoisson").fit(ROWS[X], ROWS["count"])
    np.testing.assert_allclose(quasi.dispersion_tests(ROWS[X], ROWS["count"]).to_frame(), made, rtol=1e-9)


def test_weights_are_repetitions() -> None:
    weights = RNG.integers(0, 4, N)
    repeated = ROWS.loc[ROWS.index.repeat(weights)]
    short = sf.GLM("poisson").fit(ROWS[X], ROWS["count"], weights)
    long = sf.GLM("poisson").fit(repeated[X], repeated["count"])
    one = short.dispersion_tests(ROWS[X], ROWS["count"], sample_weight=weights).to_frame()
    np.testing.assert_allclose(one, long.dispersion_tests(repeated[X], repeated["count"]).to_frame(), rtol=1e-8)
    np.testing.assert_allclose(short.r_squared().to_frame(), long.r_squared().to_frame(), rtol=1e-9)
    with pytest.raises(sf.EstimateError, match="not those of the fit"):
        short.dispersion_tests(ROWS[X], ROWS["count"])


def test_dispersion_tests_are_refused_where_they_say_nothing() -> None:
    with pytest.raises(sf.OptionError, match="counts and shares"):
        sf.GLM().fit(ROWS[X], ROWS["real"]).dispersion_tests()
    shares = sf.GLM("binomial").fit(ROWS[X], ROWS["ill"])
    with pytest.raises(sf.OptionError, match="Leave the rows out"):
        shares.dispersion_tests(ROWS[X], ROWS["ill"])
    with pytest.raises(sf.OptionError, match="give X too"):
        sf.GLM("poisson").fit(ROWS[X], ROWS["count"]).dispersion_tests(y=ROWS["count"])
    assert len(shares.dispersion_tests().rows) == 1
