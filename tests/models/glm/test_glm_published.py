"""Regressions whose coefficients and standard errors are printed in the documentation of other programs."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf

DATA = Path(__file__).resolve().parents[4] / "shared" / "data" / "glm"


@pytest.fixture(scope="module")
def expected() -> Any:
    if not (DATA / "expected.json").exists():
        pytest.skip("the folder of published data is not here")
    return json.loads((DATA / "expected.json").read_text())


def table(name: str) -> Any:
    pd = pytest.importorskip("pandas")
    return pd.read_csv(DATA / name)


def flat(figures: dict[str, Sequence[float]]) -> list[float]:
    return [value[0] for value in figures.values()]


def agrees(model: Any, coefficients: Sequence[float], errors: Sequence[float], rtol: float = 1e-6) -> None:
    np.testing.assert_allclose(model.parameters_, coefficients, rtol=rtol, atol=1e-9)
    np.testing.assert_allclose(model.standard_errors_, errors, rtol=rtol)


def test_dobson_counts_typed_in() -> None:
    """The randomised trial of Dobson (1990), table of deviances as printed by R's help page of glm."""
    counts = [18, 17, 15, 20, 10, 20, 25, 13, 12]
    rows = {"outcome": [1, 2, 3] * 3, "treatment": [1, 1, 1, 2, 2, 2, 3, 3, 3]}
    model = sf.GLM(family=sf.Poisson(), categorical=["outcome", "treatment"]).fit(rows, counts)
    np.testing.assert_allclose(model.parameters_, [3.044522, -0.4542553, -0.2929871, 0.0, 0.0], atol=5e-7)
    np.testing.assert_allclose(model.standard_errors_, [0.1708987, 0.2021708, 0.1927423, 0.2, 0.2], atol=5e-7)
    assert round(model.deviance_, 4) == 5.1291
    assert round(model.null_deviance_, 4) == 10.5814
    assert round(model.aic_, 5) == 56.76132


def test_clotting_times_typed_in() -> None:
    """Hurn and others (1945), as in McCullagh and Nelder (1989): gamma times against the log of the concentration."""
    u = np.log([5, 10, 15, 20, 30, 40, 60, 80, 100])[:, None]
    times = [118, 58, 42, 35, 27, 25, 21, 19, 18]
    model = sf.GLM(family=sf.Gamma()).fit(u, times)
    np.testing.assert_allclose(model.parameters_, [-0.0165544, 0.0153431], atol=5e-8)
    np.testing.assert_allclose(model.standard_errors_, [0.0009275, 0.000415], atol=6e-8)
    assert round(model.deviance_, 5) == 0.01673
    assert round(model.null_deviance_, 5) == 3.51283


def polynomials(values: Any, levels: Sequence[str]) -> np.ndarray[Any, Any]:
    """Orthonormal polynomial contrasts of an ordered factor."""
    x = np.arange(len(levels), dtype=float)
    basis = np.linalg.qr(np.vander(x - x.mean(), len(levels), increasing=True))[0]
    basis *= np.sign(basis[-1])
    codes = [list(levels).index(value) for value in values]
    return np.asarray(basis[codes, 1:])


def test_dobson_poisson(expected: Any) -> None:
    figures = expected["r_docs"]["dobson_poisson"]["recomputed_R422"]
    frame = table("dobson_d93.csv")
    model = sf.GLM(family=sf.Poisson(), categorical=["outcome", "treatment"]).fit(frame, y="counts")
    agrees(model, flat(figures["coef"]), flat(figures["se"]))
    assert model.deviance_ == pytest.approx(figures["deviance"], abs=1e-9)
    assert model.null_deviance_ == pytest.approx(figures["null_deviance"], abs=1e-9)
    assert model.aic_ == pytest.approx(figures["aic"], abs=1e-8)


@pytest.mark.parametrize("lot", ["lot1", "lot2"])
def test_clotting_gamma(expected: Any, lot: str) -> None:
    figures = expected["r_docs"][f"clotting_{lot}_gamma"]["recomputed_R422"]
    frame = table("clotting.csv")
    model = sf.GLM(family=sf.Gamma()).fit(np.log(frame[["u"]].to_numpy()), frame[lot])
    # The source stops its iterations at 1e-8 of the deviance, so its own standard errors have seven digits.
    agrees(model, flat(figures["coef"]), flat(figures["se"]), rtol=1e-5)
    assert model.deviance_ == pytest.approx(figures["deviance"], rel=1e-8)
    assert model.dispersion_ == pytest.approx(figures["dispersion"], rel=1e-4)


def test_a_column_that_repeats_another_is_named(expected: Any) -> None:
    frame = table("clotting.csv")
    X = {"log u": np.log(frame["u"]), "log u2": np.log(frame["u"] ** 2)}
    with pytest.raises(sf.EstimateError, match="log u2"):
        sf.GLM(family=sf.Gamma()).fit(X, frame["lot1"])
    dropped = sf.GLM(family=sf.Gamma(), collinear="drop").fit(X, frame["lot1"])
    alone = sf.GLM(family=sf.Gamma()).fit({"log u": X["log u"]}, frame["lot1"])
    np.testing.assert_allclose(dropped.coefficients_, [alone.coefficients_[0], 0.0], rtol=1e-9)
    assert dropped.standard_errors_["log u"] == pytest.approx(alone.standard_errors_["log u"], rel=1e-9)


def test_esoph_binomial_counts(expected: Any) -> None:
    figures = expected["r_docs"]["esoph_binomial"]["recomputed_R422"]
    frame = table("esoph.csv")
    ages = sorted(frame["agegp"].unique())
    tobacco = ["0-9g/day", "10-19", "20-29", "30+"]
    alcohol = ["0-39g/day", "40-79", "80-119", "120+"]
    X = np.column_stack(
        [
            polynomials(frame["agegp"], ages),
            [tobacco.index(value) + 1 for value in frame["tobgp"]],
            [alcohol.index(value) + 1 for value in frame["alcgp"]],
        ]
    )
    model = sf.GLM(family=sf.Bernoulli()).fit(X, frame[["ncases", "ncontrols"]].to_numpy())
    agrees(model, flat(figures["coef"]), flat(figures["se"]))
    assert model.deviance_ == pytest.approx(figures["deviance"], abs=1e-6)
    assert model.log_likelihood_ == pytest.approx(figures["loglik"], abs=1e-6)


def test_infert_binomial(expected: Any) -> None:
    frame = table("infert.csv")
    figures = expected["r_docs"]["infert_binomial1"]["recomputed_R422"]
    model = sf.GLM("binomial").fit(frame[["spontaneous", "induced"]], frame["case"])
    agrees(model, flat(figures["coef"]), flat(figures["se"]), rtol=1e-5)
    figures = expected["r_docs"]["infert_binomial2"]["recomputed_R422"]
    names = ["age", "parity", "education", "spontaneous", "induced"]
    levels = {"education": ["0-5yrs", "6-11yrs", "12+ yrs"]}
    wide = sf.GLM("binomial", categorical=levels).fit(frame, y="case", columns=names)
    assert wide.coefficients_.names[2:4] == ("education[6-11yrs]", "education[12+ yrs]")
    agrees(wide, flat(figures["coef"]), flat(figures["se"]), rtol=1e-5)


def test_warpbreaks(expected: Any) -> None:
    frame = table("warpbreaks.csv")
    tension = frame["tension"].map({"L": 0, "M": 1, "H": 2}).to_numpy()
    wool = (frame["wool"] == "B").to_numpy(float)
    m, h = (tension == 1) * 1.0, (tension == 2) * 1.0
    X = np.column_stack([wool, m, h, wool * m, wool * h])
    for key, family in (("warpbreaks_lm", sf.Normal()), ("warpbreaks_poisson", sf.Poisson())):
        figures = expected["r_docs"][key]["recomputed_R422"]
        agrees(sf.GLM(family=family).fit(X, frame["breaks"]), flat(figures["coef"]), flat(figures["se"]))


def test_insurance_offset(expected: Any) -> None:
    figures = expected["r_docs"]["insurance_poisson_offset"]["recomputed_R422"]
    frame = table("Insurance.csv")
    districts = np.stack([frame["District"] == at for at in (2, 3, 4)], axis=1).astype(float)
    X = np.column_stack(
        [
            districts,
            polynomials(frame["Group"], ["<1l", "1-1.5l", "1.5-2l", ">2l"]),
            polynomials(frame["Age"], ["<25", "25-29", "30-35", ">35"]),
        ]
    )
    model = sf.GLM("poisson").fit(X, frame["Claims"], exposure=frame["Holders"])
    agrees(model, flat(figures["coef"]), flat(figures["se"]), rtol=1e-5)
    assert model.deviance_ == pytest.approx(figures["deviance"], abs=1e-6)
    assert model.null_deviance_ == pytest.approx(figures["null_deviance"], abs=1e-6)


def test_anorexia_offset(expected: Any) -> None:
    figures = expected["r_docs"]["anorexia_gaussian"]["recomputed_R422"]
    frame = table("anorexia.csv")
    treat = np.stack([frame["Treat"] == name for name in ("Cont", "FT")], axis=1).astype(float)
    model = sf.GLM().fit(
        np.column_stack([frame["Prewt"], treat]), frame["Postwt"].to_numpy(), offset=frame["Prewt"].to_numpy()
    )
    agrees(model, flat(figures["coef"]), flat(figures["se"]))
    assert model.deviance_ == pytest.approx(figures["deviance"], rel=1e-9)


def test_housing_multinomial(expected: Any) -> None:
    figures = expected["r_docs"]["housing_multinom"]["recomputed_R422"]
    frame = table("housing.csv")
    levels = {
        "Infl": ["Low", "Medium", "High"],
        "Type": ["Tower", "Apartment", "Atrium", "Terrace"],
        "Cont": ["Low", "High"],
    }
    model = sf.GLM(family=sf.Categorical(states=["Low", "Medium", "High"]), reference="Low", categorical=levels).fit(
        frame, y="Sat", sample_weight="Freq"
    )
    assert model.deviance_ == pytest.approx(figures["deviance"], abs=1e-5)
    assert model.coefficients_.shape == (6, 3)
    assert not np.any(model.coefficients_[:, 0])
    for place, key in ((0, "coef_Medium"), (1, "coef_High")):
        # The source stops at a relative change of 1e-8 of the deviance.
        np.testing.assert_allclose(model.parameters_[:, place], flat(figures[key]), atol=2e-4)


def test_quine_negative_binomial(expected: Any) -> None:
    entry = expected["r_docs"]["quine_negbin"]
    frame = table("quine.csv")
    formulaic = pytest.importorskip("formulaic")
    assert formulaic
    model = sf.GLM(family=sf.NegativeBinomial(), formula="Days ~ Sex/(Age + Eth*Lrn)", collinear="drop").fit(frame)
    assert model.size_ == pytest.approx(entry["recomputed_R422"]["m1"]["theta"], rel=1e-5)
    assert 2 * model.log_likelihood_ == pytest.approx(entry["recomputed_R422"]["m1"]["twologlik"], abs=1e-6)


@pytest.mark.parametrize(
    ("key", "name", "y", "family"),
    [
        ("scotland_gamma_inverse", "scotland.csv", "YES", "gamma"),
        ("cpunish_poisson_log", "cpunish.csv", "EXECUTIONS", "poisson"),
        ("longley_gaussian", "longley.csv", "TOTEMP", "gaussian"),
        ("spector_logit", "spector.csv", "GRADE", "binomial"),
        ("spector_probit", "spector.csv", "GRADE", "binomial"),
    ],
)
def test_published_with_the_constant_last(expected: Any, key: str, name: str, y: str, family: Any) -> None:
    entry = expected["statsmodels_results"][key]
    frame = table(name)
    if key.startswith("cpunish"):
        frame["VC100k96"] = np.log(frame["VC100k96"])
    # The source prints the errors of the observed information, which for the probit link are others.
    probit = key.endswith("probit")
    model = sf.GLM(family, link="probit" if probit else None, covariance="observed" if probit else "expected")
    model.fit(frame, y=y)
    coefficients, errors = np.roll(model.parameters_, -1), np.roll(model.standard_errors_, -1)
    published = entry["published"]
    np.testing.assert_allclose(coefficients, published["params"], rtol=2e-5)
    np.testing.assert_allclose(errors, published["bse"], rtol=2e-4)
    assert model.report_.certificate.moment_gap < 1e-7


def test_star98_counts(expected: Any) -> None:
    entry = expected["statsmodels_results"]["star98_binomial_logit"]
    frame = table("star98.csv.gz")
    model = sf.GLM("binomial").fit(frame, y=("NABOVE", "NBELOW"))
    np.testing.assert_allclose(np.roll(model.parameters_, -1), entry["published"]["params"], rtol=1e-5)
    np.testing.assert_allclose(np.roll(model.standard_errors_, -1), entry["published"]["bse"], rtol=1e-4)


def test_birthwt_binomial(expected: Any) -> None:
    entry = expected["r_docs"]["birthwt_binomial"]
    frame = table("birthwt.csv")
    chosen = frame[["age", "lwt"]].copy()
    chosen["race"] = frame["race"].map({1: "white", 2: "black", 3: "other"})
    for name, column in (("smoke", "smoke"), ("ptd", "ptl"), ("ht", "ht"), ("ui", "ui")):
        chosen[name] = (frame[column] > 0).astype(float)
    chosen["ftv"] = frame["ftv"].clip(upper=2).map({0: "0", 1: "1", 2: "2+"})
    levels = {"race": ["white", "black", "other"], "ftv": ["0", "1", "2+"]}
    model = sf.GLM("binomial", categorical=levels).fit(chosen, frame["low"])
    figures = entry["recomputed_R422"]
    agrees(model, flat(figures["coef"]), flat(figures["se"]), rtol=1e-5)
    np.testing.assert_allclose(model.parameters_, entry["published"]["coef"], atol=6e-6)
    assert model.null_deviance_ == pytest.approx(figures["null_deviance"], rel=1e-9)
    assert model.aic_ == pytest.approx(figures["aic"], rel=1e-9)


def test_bacteria_with_successive_differences(expected: Any) -> None:
    entry = expected["r_docs"]["bacteria_binomial"]
    frame = table("bacteria.csv")
    levels = ["placebo", "drug", "drug+"]
    code = frame["trt"].map(levels.index)
    # The pseudo-inverse of the differences of neighbours: a step of one level has the effect of its own coefficient.
    steps = np.linalg.pinv(np.array([[-1.0, 1.0, 0.0], [0.0, -1.0, 1.0]]))
    X = np.column_stack([steps[code], frame["week"]])
    model = sf.GLM(sf.Bernoulli(states=("n", "y"))).fit(X, frame["y"])
    np.testing.assert_allclose(model.parameters_, entry["published"]["coef"], atol=6e-6)
    # The source stops at a relative change of 1e-8 of the deviance, and prints five digits of errors from there.
    np.testing.assert_allclose(model.standard_errors_, entry["published"]["se"], atol=2e-5)
    assert model.deviance_ == pytest.approx(entry["recomputed_R422"]["deviance"], rel=1e-9)
    assert model.aic_ == pytest.approx(entry["recomputed_R422"]["aic"], rel=1e-9)


def housing_frame() -> Any:
    pd = pytest.importorskip("pandas")
    frame = table("housing.csv")
    levels = {
        "Sat": ["Low", "Medium", "High"],
        "Infl": ["Low", "Medium", "High"],
        "Type": ["Tower", "Apartment", "Atrium", "Terrace"],
        "Cont": ["Low", "High"],
    }
    for name, states in levels.items():
        frame[name] = pd.Categorical(frame[name], categories=states)
    return frame


def test_housing_poisson(expected: Any) -> None:
    pytest.importorskip("formulaic")
    entry = expected["r_docs"]["housing_poisson"]
    frame = housing_frame()
    base = "Freq ~ Infl*Type*Cont + C(Sat, contr.poly)*(Infl + Type + Cont)"
    model = sf.GLM("poisson", formula=base).fit(frame)
    figures = entry["recomputed_R422"]
    assert model.deviance_ == pytest.approx(figures["deviance"], abs=1e-8)
    assert model.null_deviance_ == pytest.approx(figures["null_deviance"], abs=1e-8)
    assert model.df_resid_ == 34
    assert model.aic_ == pytest.approx(figures["aic"], abs=1e-7)
    np.testing.assert_allclose(sorted(model.parameters_), sorted(flat(figures["coef"])), atol=2e-7)
    np.testing.assert_allclose(sorted(model.standard_errors_), sorted(flat(figures["se"])), rtol=1e-6)
    added = {"Infl_Type_Sat": "Infl:Type", "Infl_Cont_Sat": "Infl:Cont", "Type_Cont_Sat": "Type:Cont"}
    for key, product in added.items():
        larger = sf.GLM("poisson", formula=f"{base} + C(Sat, contr.poly):{product}").fit(frame)
        assert larger.deviance_ == pytest.approx(entry["published"]["deviance_adding"][key], abs=6e-4)
    smaller = sf.GLM("poisson", formula="Freq ~ Infl*Type*Cont + C(Sat, contr.poly)*(Type + Cont)").fit(frame)
    assert smaller.deviance_ == pytest.approx(entry["published"]["deviance_without"]["Infl_Sat"], abs=6e-3)
    test = smaller.likelihood_ratio_test(model)
    assert test.statistic == pytest.approx(147.78 - 38.662, abs=6e-3)
    assert test.df == 4


#: Satisfaction (low, medium, high) of householders by influence, type of rental and contact: Madsen (1976), in the
#: order contact, type, influence.
HOUSING = [
    *(21, 21, 28, 34, 22, 36, 10, 11, 36, 61, 23, 17, 43, 35, 40, 26, 18, 54),
    *(13, 9, 10, 8, 8, 12, 6, 7, 9, 18, 6, 7, 15, 13, 13, 7, 5, 11),
    *(14, 19, 37, 17, 23, 40, 3, 5, 23, 78, 46, 43, 48, 45, 86, 15, 25, 62),
    *(20, 23, 20, 10, 22, 24, 7, 10, 21, 57, 23, 13, 31, 21, 13, 5, 6, 13),
]


def test_housing_proportional_odds_typed_in() -> None:
    """Venables and Ripley (2002), section 7.3: polr(Sat ~ Infl + Type + Cont), errors from the Hessian."""
    labels = ["Low", "Medium", "High"]
    rentals = ["Tower", "Apartment", "Atrium", "Terrace"]
    cells = [
        (contact, rental, influence, label)
        for contact in labels[::2]
        for rental in rentals
        for influence in labels
        for label in labels
    ]
    rows = dict(zip(("Cont", "Type", "Infl", "Sat"), map(list, zip(*cells, strict=True)), strict=True))
    columns = {"Infl": labels, "Type": rentals, "Cont": labels[::2]}
    table = {**{name: rows[name] for name in columns}, "Sat": rows["Sat"], "Freq": HOUSING}
    model = sf.GLM("ordinal", states=labels, categorical=columns).fit(table, "Sat", "Freq")
    figures = [0.5663937, 1.2888191, -0.5723501, -0.3661866, -1.0910149, 0.3602841]
    # The source follows the gradient until the deviance rests, which leaves the seventh digit open.
    np.testing.assert_allclose(model.coefficients_, figures, atol=4e-7)
    np.testing.assert_allclose(model.thresholds_, [-0.4961353, 0.6907083], atol=4e-7)
    assert model.thresholds_.names == ("Low|Medium", "Medium|High")
    errors = np.asarray(model.standard_errors_)
    np.testing.assert_array_equal(errors[2:].round(4), [0.1047, 0.1272, 0.1192, 0.1552, 0.1515, 0.0955])
    np.testing.assert_array_equal(errors[:2].round(4), [0.1248, 0.1255])
    assert round(model.deviance_, 3) == 3479.149
    assert round(model.aic_, 3) == 3495.149


def test_housing_proportional_odds(expected: Any) -> None:
    entry = expected["r_docs"]["housing_polr"]
    model = sf.GLM("ordinal", states=["Low", "Medium", "High"]).fit(housing_frame(), "Sat", "Freq")
    published, figures = entry["published"], entry["recomputed_R422"]
    np.testing.assert_allclose(model.coefficients_, published["coef"], atol=4e-7)
    np.testing.assert_allclose(model.thresholds_, published["zeta"], atol=4e-7)
    np.testing.assert_array_equal(np.asarray(model.standard_errors_)[2:].round(4), published["se"])
    np.testing.assert_allclose(model.parameters_, flat(figures["zeta"]) + flat(figures["coef"]), atol=2e-8)
    assert round(model.deviance_, 3) == published["resid_deviance"]
    assert round(model.aic_, 3) == published["aic"]
    assert model.deviance_ == pytest.approx(figures["deviance"], abs=1e-8)


@pytest.mark.parametrize(
    ("place", "formula", "parameters"),
    [
        (1, "Days ~ Sex/(Age + Eth*Lrn) + Sex:Age:Lrn", 18),
        (2, "Days ~ Sex*Age*Eth*Lrn", 28),
    ],
)
def test_quine_with_further_products(expected: Any, place: int, formula: str, parameters: int) -> None:
    pytest.importorskip("formulaic")
    entry = expected["r_docs"]["quine_negbin"]
    # No pupil of the last age learns slowly, so that some products have no column of their own.
    model = sf.GLM(sf.NegativeBinomial(), formula=formula, collinear="drop").fit(table("quine.csv"))
    figures = entry["recomputed_R422"][f"m{place + 1}"]
    assert model.size_ == pytest.approx(figures["theta"], rel=1e-5)
    assert 2 * model.log_likelihood_ == pytest.approx(figures["twologlik"], abs=1e-6)
    assert model.deviance_ == pytest.approx(figures["deviance"], rel=1e-5)
    assert model.df_resid_ == entry["published"]["df"][place]
    assert model.n_params_ == parameters + 1
