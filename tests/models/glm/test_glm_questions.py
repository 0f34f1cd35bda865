"""Tests of hypotheses, ratios, contrasts, terms and marginal effects, beside statsmodels, R and differences."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import suffice as sf

RNG = np.random.default_rng(3)
N = 240
ROWS = pd.DataFrame(
    {
        "x": RNG.normal(size=N),
        "z": RNG.normal(2.0, 0.5, size=N),
        "g": RNG.choice(list("uvw"), N),
        "d": RNG.integers(0, 2, N).astype(float),
    }
)
ETA = 0.3 + 0.5 * ROWS["x"] - 0.2 * ROWS["z"] + 0.4 * (ROWS["g"] == "v") + 0.3 * ROWS["d"]
ROWS["ill"] = (RNG.random(N) < 1.0 / (1.0 + np.exp(-ETA))).astype(int)
ROWS["visits"] = RNG.poisson(np.exp(ETA))
ROWS["pain"] = ETA + RNG.normal(size=N)
ROWS["kind"] = RNG.choice(["a", "b", "c"], N)
X = ["x", "z", "g", "d"]


def fitted(family: Any, y: str, **options: Any) -> sf.GLM:
    return sf.GLM(family, **options).fit(ROWS[X], ROWS[y])


# -- hypotheses --------------------------------------------------------------------------------------------------------


def test_linear_hypotheses_are_those_of_statsmodels() -> None:
    smf = pytest.importorskip("statsmodels.formula.api")
    model, peer = fitted("gaussian", "pain"), smf.ols("pain ~ x + z + g + d", ROWS).fit()
    ours, theirs = model.test("g[v] = g[w], x = 0.4"), peer.f_test("g[T.v] = g[T.w], x = 0.4")
    assert (ours.name, ours.df, ours.df_rest) == ("F", 2, peer.df_resid)
    assert ours.statistic == pytest.approx(float(theirs.fvalue), rel=1e-9)
    assert ours.p_value == pytest.approx(float(theirs.pvalue), rel=1e-8)
    R = [[0, 0, 0, 1, -1, 0], [0, 1, 0, 0, 0, 0]]
    assert model.test((R, [0.0, 0.4])).statistic == pytest.approx(ours.statistic, rel=1e-12)
    logit, peer = fitted("binomial", "ill"), smf.logit("ill ~ x + z + g + d", ROWS).fit(disp=0)
    theirs = peer.wald_test("2*x + z = 1, d = 0", scalar=True)
    ours = logit.test("2*x + z = 1, d = 0")
    assert (ours.statistic, ours.p_value) == pytest.approx((float(theirs.statistic), float(theirs.pvalue)), rel=1e-6)
    with pytest.raises(sf.EstimateError, match="say the same twice"):
        logit.test("x = z, z = x")


# -- ratios ------------------------------------------------------------------------------------------------------------


def test_the_odds_ratio_of_a_table_is_that_of_its_cells() -> None:
    """Doll and Hill (1950), men: 647 and 622 smokers among cases and controls, 2 and 27 who were none."""
    table = {"smoker": ["no", "no", "yes", "yes"], "case": [0, 1, 0, 1], "people": [27, 2, 622, 647]}
    model = sf.GLM("binomial").fit({"smoker": table["smoker"]}, table["case"], sample_weight=table["people"])
    odds = 647 * 27 / (622 * 2)
    error = np.sqrt(1 / 647 + 1 / 27 + 1 / 622 + 1 / 2)  # Woolf's.
    made = model.ratios()
    assert made.columns[0] == "odds ratio"
    assert made.params["smoker[yes]"] == pytest.approx(odds, rel=1e-8)
    np.testing.assert_allclose(
        made.conf_int()["smoker[yes]"], odds * np.exp([-1.959964 * error, 1.959964 * error]), 1e-6
    )
    assert made.bse["smoker[yes]"] == pytest.approx(odds * error, rel=1e-6)
    assert made.pvalues["smoker[yes]"] == pytest.approx(2 * stats.norm.sf(np.log(odds) / error), rel=1e-5)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (lambda: fitted("poisson", "visits"), "rate ratio"),
        (lambda: fitted("binomial", "ill", link="cloglog"), "hazard ratio"),
        (lambda: fitted("ordinal", "visits"), "odds ratio"),
        (lambda: fitted("multinomial", "kind"), "relative-risk ratio"),
        (lambda: sf.GLM("gamma", link="log").fit(ROWS[X], np.exp(ROWS["pain"])), "ratio of means"),
    ],
)
def test_ratios_are_named_by_what_they_are(model: Callable[[], sf.GLM], name: str) -> None:
    made, glm = model().ratios(0.9), model()
    assert made.columns[0] == name
    flat = dict(zip([one for one, _ in glm.summary().rows], glm.summary(0.9).rows, strict=True))
    for one, figures in made.rows:
        assert figures[0] == pytest.approx(np.exp(flat[one][1][0]), rel=1e-12)
        assert figures[4:] == pytest.approx(np.exp(flat[one][1][4:]), rel=1e-12)
    assert not any("|" in one for one, _ in made.rows)
    assert made.cov_params().shape == (len(made.rows),) * 2


def test_no_ratio_where_the_exponential_is_none() -> None:
    with pytest.raises(sf.OptionError, match=r"identity link .* no ratio"):
        fitted("gaussian", "pain").ratios()


# -- contrasts and terms -----------------------------------------------------------------------------------------------


def test_contrasts_are_those_of_a_fit_with_another_reference() -> None:
    model = fitted("binomial", "ill")
    turned = sf.GLM("binomial", categorical={"g": ["w", "v", "u"]}).fit(ROWS[X], ROWS["ill"])
    made = model.contrasts("g", against="w")
    for state in "uv":
        name = f"{state} - w"
        assert made.params[name] == pytest.approx(turned.coefficients_[f"g[{state}]"], rel=1e-7)
        assert made.bse[name] == pytest.approx(turned.standard_errors_[f"g[{state}]"], rel=1e-7)
    pairs = model.contrasts("g", pairs=True)
    assert list(pairs.params.names) == ["v - u", "w - u", "w - v"]
    assert pairs.params["w - v"] == pytest.approx(-made.params["v - w"], rel=1e-12)
    ratio = model.contrasts("g", against="w", exponentiate=True, level=0.8)
    assert ratio.params["v - w"] == pytest.approx(np.exp(made.params["v - w"]), rel=1e-12)
    assert ratio.columns[-1] == "90%"


def test_contrasts_of_formulas_and_of_labels() -> None:
    pytest.importorskip("formulaic")
    plain, model = fitted("poisson", "visits"), sf.GLM("poisson", formula="visits ~ x + z + g + d").fit(ROWS)
    again = sf.GLM.from_dict(model.to_dict())
    coded = sf.GLM("poisson", formula="visits ~ x + z + C(g, contr.treatment('v')) + d").fit(ROWS)
    for one, against in ((model, None), (again, None), (coded, "u")):
        np.testing.assert_allclose(one.contrasts("g", against=against).params, plain.contrasts("g").params, rtol=1e-7)
    full = sf.GLM("poisson", fit_intercept=False).fit(ROWS[["g"]], ROWS["visits"])
    means = ROWS.groupby("g")["visits"].mean()
    assert full.contrasts("g", exponentiate=True).params["w - u"] == pytest.approx(means["w"] / means["u"], rel=1e-7)
    labels = fitted("multinomial", "kind").contrasts("g")
    assert "w - u (a)" in labels.params.names
    crossed = sf.GLM("poisson", formula="visits ~ x * g").fit(ROWS)
    with pytest.raises(sf.OptionError, match="depends on other columns"):
        crossed.contrasts("g")
    with pytest.raises(sf.OptionError, match="coded by other contrasts"):
        sf.GLM("poisson", formula="visits ~ C(g, contr.sum)").fit(ROWS).contrasts("g")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda model: model.contrasts("x"), "no factor"),
        (lambda model: model.contrasts("g", against="t"), "no such level"),
        (lambda model: model.contrasts("g", against="u", pairs=True), "no effect"),
        (lambda model: model.term_tests(ROWS[X]), "need no rows"),
        (lambda model: model.term_tests(method="likelihood-ratio"), "need the rows"),
        (lambda model: model.marginal_effects(ROWS, at="median"), "'overall', 'mean'"),
        (lambda model: model.marginal_effects(ROWS, at={"g": "t"}), "one of the levels"),
        (lambda model: model.marginal_effects(ROWS, at={"x": "t"}), "expected a number"),
        (lambda model: model.marginal_effects(ROWS, discrete="g"), "is a factor"),
    ],
)
def test_calls_that_make_no_sense(call: Callable[[sf.GLM], Any], words: str) -> None:
    with pytest.raises(sf.OptionError, match=words):
        call(fitted("binomial", "ill"))


def test_terms_are_tested_together() -> None:
    """By refits without the term, and by statsmodels' Wald tests of terms."""
    smf = pytest.importorskip("statsmodels.formula.api")
    model = fitted("binomial", "ill")
    tests = model.term_tests(ROWS[X], ROWS["ill"], method="likelihood-ratio").to_frame()
    assert list(tests.index) == X
    assert tests["df"].tolist() == [1, 1, 2, 1]
    for term in X:
        smaller = sf.GLM("binomial").fit(ROWS[X].drop(columns=term), ROWS["ill"])
        ratio = sf.likelihood_ratio_test(smaller, model)
        assert tests.loc[term, "chi2"] == pytest.approx(ratio.statistic, rel=1e-7)
        assert tests.loc[term, "p value"] == pytest.approx(ratio.p_value, rel=1e-6)
    peer = smf.logit("ill ~ x + z + g + d", ROWS).fit(disp=0).wald_test_terms(scalar=True).table
    np.testing.assert_allclose(model.term_tests().to_frame()["chi2"], peer.loc[X, "statistic"].astype(float), rtol=1e-6)


def test_terms_of_other_responses_by_refits() -> None:
    pytest.importorskip("formulaic")
    real = sf.GLM(formula="pain ~ x * g + np.exp(z)").fit(ROWS)
    table = real.term_tests(ROWS, method="likelihood-ratio").to_frame()
    assert list(table.index) == ["x", "g", "np.exp(z)", "x:g"]
    np.testing.assert_allclose(table["F"], real.term_tests().to_frame()["F"], rtol=1e-7)  # Least squares: one test.
    smaller = sf.GLM(formula="pain ~ x + g + np.exp(z)").fit(ROWS)
    assert table.loc["x:g", "F"] == pytest.approx(smaller.likelihood_ratio_test(real).statistic, rel=1e-7)
    family: Any
    for family, y in (("multinomial", "kind"), ("ordinal", "visits")):
        model = fitted(family, y)
        left = sf.GLM(family).fit(ROWS[["x", "z", "d"]], ROWS[y])
        table = model.term_tests(ROWS[X], ROWS[y], method="likelihood-ratio").to_frame()
        assert table.loc["g", "chi2"] == pytest.approx(2 * (model.log_likelihood_ - left.log_likelihood_), rel=1e-6)
        assert table.loc["g", "df"] == model.n_params_ - left.n_params_
    with pytest.raises(sf.EstimateError, match="not those of the fit"):
        fitted("poisson", "visits").term_tests(ROWS[X], ROWS["visits"][::-1].to_numpy(), method="likelihood-ratio")


# -- marginal effects --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("family", "peer"), [("binomial", "logit"), ("poisson", "poisson")])
@pytest.mark.parametrize("at", ["overall", "mean"])
def test_marginal_effects_are_those_of_statsmodels(family: Any, peer: str, at: str) -> None:
    smf = pytest.importorskip("statsmodels.formula.api")
    y = "ill" if family == "binomial" else "visits"
    theirs = getattr(smf, peer)(f"{y} ~ x + z + d", ROWS).fit(disp=0, tol=1e-12)
    model = sf.GLM(family).fit(ROWS[["x", "z", "d"]], ROWS[y])
    made = model.marginal_effects(ROWS, at=at)
    expected = theirs.get_margeff(at=at)
    np.testing.assert_allclose(made.params, expected.margeff, rtol=1e-7)
    np.testing.assert_allclose(made.bse, expected.margeff_se, rtol=1e-6)
    np.testing.assert_allclose(made.conf_int(), expected.conf_int(), rtol=1e-5)
    steps = model.marginal_effects(ROWS, at=at, discrete=["d"], columns="d")
    expected = theirs.get_margeff(at=at, dummy=True)
    assert steps.params["d"] == pytest.approx(expected.margeff[-1], rel=1e-7)
    assert steps.bse["d"] == pytest.approx(expected.margeff_se[-1], rel=1e-6)


def moved(model: sf.GLM, theta: np.ndarray[Any, Any]) -> sf.GLM:
    """The model at other parameters, predictors first."""
    one, fit = copy.copy(model), model.fitted_
    m, held = fit.beta.shape[1], len(fit.thresholds)
    values = theta.reshape(m, -1).T
    from dataclasses import replace

    one._fit = copy.copy(model._fit)
    one._fit.fitted = replace(fit, thresholds=values[:held, 0].copy(), beta=values[held:].copy())  # type: ignore[union-attr]
    return one


CASES: dict[str, Callable[[], tuple[sf.GLM, Any]]] = {
    "probit": lambda: (fitted("binomial", "ill", link="probit"), {}),
    "labels": lambda: (fitted("multinomial", "kind", reference="b"), {"at": {"x": 0.5, "g": "v"}}),
    "ordered": lambda: (fitted("ordinal", "visits", link="cloglog"), {"discrete": "d"}),
    "formula": lambda: (sf.GLM("poisson", formula="visits ~ x * g + z + I(z**2)").fit(ROWS), {"at": {"x": 1.0}}),
    "vectors": lambda: (sf.GLM().fit(ROWS[X], ROWS[["pain", "z"]].to_numpy() + RNG.normal(size=(N, 2))), {}),
}


@pytest.mark.parametrize("case", CASES)
def test_effects_are_differences_of_predictions_and_errors_those_of_differences(case: str) -> None:
    """Predictions of changed frames give the effects, and their differences in every parameter the delta method."""
    pytest.importorskip("formulaic")
    model, options = CASES[case]()
    frame = ROWS.assign(**options.get("at", {}))
    columns = ["x", "z", "g"] if case == "formula" else X

    def predicted(glm: sf.GLM, **values: Any) -> Any:
        answers = np.asarray(glm.predict(frame.assign(**values)[columns], kind="response"))
        return answers.reshape(len(frame), -1).mean(axis=0)

    def effects(glm: sf.GLM) -> Any:
        found = []
        for column in columns:
            if column == "g":
                found += [predicted(glm, g=state) - predicted(glm, g="u") for state in "vw"]
            elif column in options.get("discrete", ""):
                found.append(predicted(glm, **{column: 1.0}) - predicted(glm, **{column: 0.0}))
            else:
                step = 1e-5
                ends = [predicted(glm, **{column: frame[column] + sign * step}) for sign in (1, -1)]
                found.append((ends[0] - ends[1]) / (2 * step))
        return np.concatenate(found)

    made = model.marginal_effects(ROWS, **options)
    np.testing.assert_allclose(made.params, effects(model), rtol=1e-6, atol=1e-9)
    theta = model.fitted_.values.T.ravel().copy()
    columns_of_slopes = []
    for number in range(len(theta)):
        step = np.zeros_like(theta)
        step[number] = 1e-4
        columns_of_slopes.append((effects(moved(model, theta + step)) - effects(moved(model, theta - step))) / 2e-4)
    slopes = np.array(columns_of_slopes).T
    variances = np.diagonal(slopes @ model.covariance_ @ slopes.T)
    np.testing.assert_allclose(np.asarray(made.bse), np.sqrt(variances), rtol=2e-5, atol=1e-9)


def test_effects_of_files_weights_and_exposure(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    rows = ROWS.assign(t=RNG.uniform(1, 3, N), w=RNG.integers(0, 4, N))
    model = sf.GLM("poisson").fit(rows[[*X, "t", "w", "visits"]], "visits", "w", exposure="t")
    whole = model.marginal_effects(rows, sample_weight="w", exposure="t")
    path = tmp_path / "rows.csv"
    rows.to_csv(path, index=False)
    np.testing.assert_allclose(model.marginal_effects(path, sample_weight="w", exposure="t").bse, whole.bse, rtol=1e-9)
    repeated = rows.loc[rows.index.repeat(rows["w"])]
    np.testing.assert_allclose(model.marginal_effects(repeated, exposure="t").params, whole.params, rtol=1e-10)
    with pytest.raises(sf.MissingColumnError, match="no column of the fit"):
        model.marginal_effects(rows, columns="visits")
    with pytest.raises(sf.EstimateError, match="infinity"):
        sf.GLM("binomial").fit({"a": [0.0, 1, 2, 3]}, [0, 0, 1, 1]).marginal_effects({"a": [0.0, 1.0]})


# -- reference levels --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["gaussian", "poisson", "multinomial"])
def test_a_reference_level_is_chosen_by_column(family: Any, tmp_path: Path) -> None:
    smf = pytest.importorskip("statsmodels.formula.api")
    y = {"gaussian": "pain", "poisson": "visits", "multinomial": "kind"}[family]
    rows = ROWS[[*X, y]]
    model = sf.GLM(family, reference={"g": "w"}).fit(rows, y)
    turned = sf.GLM(family, categorical={"g": ["w", "u", "v"]}).fit(rows, y)
    assert model.parameters_.names == turned.parameters_.names
    np.testing.assert_allclose(model.parameters_, turned.parameters_, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(model.standard_errors_, turned.standard_errors_, rtol=1e-7)
    assert model.contrasts("g").params.names[0].startswith("u - w")
    path = tmp_path / "rows.csv"
    rows.to_csv(path, index=False)
    held = sf.GLM(family, reference={"g": "w"}).fit(path, y)
    np.testing.assert_allclose(held.parameters_, model.parameters_, rtol=1e-6, atol=1e-8)
    np.testing.assert_array_equal(sf.GLM.from_dict(model.to_dict()).predict(rows), model.predict(rows))
    if family != "multinomial":
        peer = getattr(smf, "ols" if family == "gaussian" else "poisson")(
            f"{y} ~ x + z + C(g, Treatment('w')) + d", rows
        )
        params = peer.fit(**({} if family == "gaussian" else {"disp": 0, "tol": 1e-12})).params
        for state in "uv":
            expected = params[f"C(g, Treatment('w'))[T.{state}]"]
            assert model.coefficients_[f"g[{state}]"] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"reference": {"h": "u"}}, "no .*h|names 'h'"),
        ({"reference": {"x": "u"}}, "holds numbers"),
        ({"reference": {"g": "t"}}, "which no row holds"),
        ({"reference": {"g": "u"}, "fit_intercept": False}, "no effect: without an intercept"),
        ({"reference": {"g": "u"}, "formula": "visits ~ g"}, "contr.treatment"),
        ({"reference": "u"}, "by column"),
    ],
)
def test_reference_levels_that_are_none(options: dict[str, Any], words: str) -> None:
    with pytest.raises(sf.SufficeError, match=words):
        sf.GLM("poisson", **options).fit(ROWS[[*X, "visits"]], "visits")
