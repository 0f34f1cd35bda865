"""Robust errors: HC0 to HC3, clusters and Newey-West beside statsmodels, Petersen's figures and definitions."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import suffice as sf

RNG = np.random.default_rng(5)
N = 200
ROWS = pd.DataFrame({"x": RNG.normal(size=N), "z": RNG.exponential(size=N)})
ROWS["firm"] = RNG.integers(0, 24, N)
ROWS["year"] = RNG.integers(2000, 2009, N)
SHIFT = RNG.normal(size=24)[ROWS["firm"]]
ETA = 0.4 + 0.6 * ROWS["x"] - 0.3 * ROWS["z"] + 0.5 * SHIFT
ROWS["y"] = ETA + (0.3 + ROWS["z"]) * RNG.normal(size=N)
ROWS["count"] = RNG.poisson(np.exp(ETA))
ROWS["ill"] = (RNG.random(N) < 1.0 / (1.0 + np.exp(-ETA))).astype(int)
ROWS["kind"] = np.array(["a", "b", "c"])[RNG.integers(0, 3, N)]
X = ["x", "z"]


def errors(model: sf.GLM) -> Any:
    return np.asarray(model.standard_errors_)


# -- beside statsmodels and what was published ---------------------------------------------------------------------


def test_petersens_panel() -> None:
    """Petersen (2009), his test data: errors as printed on his page, for White, firms, years and both."""
    statsmodels = pytest.importorskip("statsmodels")
    path = Path(statsmodels.__file__).parent / "stats" / "tests" / "test_data.txt"
    if not path.exists():
        pytest.skip("statsmodels is installed without its tests")
    rows = pd.read_csv(path, sep=r"\s+", header=None, names=["firm", "year", "x", "y"])
    covariance: Any
    for covariance, expected in (
        ("HC1", [0.0284, 0.0284]),
        (sf.Clustered("firm"), [0.0670, 0.0506]),
        (sf.Clustered("year"), [0.0234, 0.0334]),
        (sf.Clustered(["firm", "year"]), [0.0651, 0.0536]),
    ):
        columns = rows if not isinstance(covariance, str) else rows[["x", "y"]]
        given: Any = {"columns": ["x"]}
        model = sf.GLM(covariance=covariance).fit(columns, "y", **given)
        np.testing.assert_allclose(errors(model), expected, atol=5.1e-5)
    summary = str(model.summary())
    assert "clustered by firm (500 clusters) and year (10 clusters)" in summary
    assert model._df() == 9


@pytest.mark.parametrize("kind", ["HC0", "HC1", "HC2", "HC3"])
def test_heteroscedastic_errors_of_least_squares(kind: Any) -> None:
    sm = pytest.importorskip("statsmodels.api")
    peer = sm.OLS(ROWS["y"], sm.add_constant(ROWS[X])).fit(cov_type=kind)
    model = sf.GLM(covariance=kind).fit(ROWS[X], ROWS["y"])
    np.testing.assert_allclose(errors(model), peer.bse, rtol=1e-9)
    plain = sf.GLM().fit(ROWS[X], ROWS["y"])
    later = plain.with_covariance(kind, ROWS[X], ROWS["y"])
    np.testing.assert_allclose(errors(later), peer.bse, rtol=1e-9)
    assert not np.allclose(errors(plain), peer.bse, rtol=1e-3)
    assert later.test("x = 0").statistic == pytest.approx(float(peer.tvalues["x"]) ** 2, rel=1e-8)
    assert f"{kind} (sandwich)" in str(later.summary())
    assert later.confidence_intervals()["x"][1] - later.coefficients_["x"] > 1.9 * peer.bse["x"]
    back = later.with_covariance("expected")
    np.testing.assert_allclose(errors(back), errors(plain), rtol=1e-12)


@pytest.mark.parametrize("family", ["binomial", "poisson"])
@pytest.mark.parametrize("two", [False, True])
def test_clusters_of_other_responses(family: Any, two: bool) -> None:
    sm = pytest.importorskip("statsmodels.api")
    y = "ill" if family == "binomial" else "count"
    kind = {"binomial": sm.families.Binomial(), "poisson": sm.families.Poisson()}[family]
    groups: Any = ["firm", "year"] if two else "firm"
    peer = sm.GLM(ROWS[y], sm.add_constant(ROWS[X]), kind).fit(
        cov_type="cluster", cov_kwds={"groups": ROWS[groups].to_numpy()}, tol=1e-12
    )
    model = sf.GLM(family, covariance=sf.Clustered(groups)).fit(ROWS[[*X, "firm", "year"]], ROWS[y], columns=X)
    np.testing.assert_allclose(errors(model), peer.bse, rtol=1e-6)
    arrays: Any = [ROWS["firm"].to_numpy(), ROWS["year"].to_numpy()] if two else ROWS["firm"].to_numpy()
    given = sf.GLM(family).fit(ROWS[X], ROWS[y]).with_covariance(sf.Clustered(arrays), ROWS[X], ROWS[y])
    np.testing.assert_allclose(errors(given), errors(model), rtol=1e-9)
    if not two:
        none = model.with_covariance(sf.Clustered("firm", "none"), ROWS, ROWS[y])
        groups_alone = model.with_covariance(sf.Clustered("firm", "groups"), ROWS, ROWS[y])
        np.testing.assert_allclose(errors(groups_alone) / errors(none), np.sqrt(24 / 23), rtol=1e-12)
        np.testing.assert_allclose(errors(model) / errors(none), np.sqrt(24 / 23 * (N - 1) / (N - 3)), rtol=1e-12)


@pytest.mark.parametrize(("kernel", "lags"), [("bartlett", 4), ("uniform", 2), ("bartlett", None)])
def test_newey_west(kernel: Any, lags: int | None) -> None:
    sm = pytest.importorskip("statsmodels.api")
    from statsmodels.stats import sandwich_covariance

    weights = getattr(sandwich_covariance, f"weights_{kernel}")
    keywords = {"maxlags": int(4 * (N / 100) ** (2 / 9)) if lags is None else lags, "kernel": weights}
    for family, y, kind in (("gaussian", "y", None), ("poisson", "count", sm.families.Poisson())):
        design = sm.add_constant(ROWS[X])
        peer = sm.OLS(ROWS[y], design) if kind is None else sm.GLM(ROWS[y], design, kind)
        result = peer.fit(cov_type="HAC", cov_kwds=keywords)
        name: Any = family
        model = sf.GLM(name, covariance=sf.NeweyWest(lags, kernel)).fit(ROWS[X], ROWS[y])
        np.testing.assert_allclose(errors(model), result.bse, rtol=1e-6)
    times = ROWS.assign(t=np.arange(N)).sample(frac=1.0, random_state=1)
    turned = sf.GLM("poisson", covariance=sf.NeweyWest(lags, kernel, order="t")).fit(times[[*X, "t"]], times["count"])
    np.testing.assert_allclose(errors(turned), errors(model), rtol=1e-6)
    more = model.with_covariance(sf.NeweyWest(lags, kernel, correction=True), ROWS[X], ROWS["count"])
    np.testing.assert_allclose(errors(more) / errors(model), np.sqrt(N / (N - 3)), rtol=1e-12)


# -- by definition, for every response ---------------------------------------------------------------------------------


RESPONSES: dict[str, Callable[[], tuple[sf.GLM, Any]]] = {
    "multinomial": lambda: (sf.GLM("multinomial", reference="b"), ROWS["kind"]),
    "ordinal": lambda: (sf.GLM("ordinal", link="probit"), np.minimum(ROWS["count"], 3)),
    "gamma": lambda: (sf.GLM("gamma", link="log"), np.exp(ROWS["y"])),
    "negative binomial": lambda: (sf.GLM(sf.NegativeBinomial(size=1.5)), ROWS["count"]),
    "vectors": lambda: (sf.GLM(), ROWS[["y", "count"]].to_numpy(dtype=float)),
}


@pytest.mark.parametrize("case", RESPONSES)
def test_scores_are_derivatives_of_log_likelihoods(case: str) -> None:
    """The middle of the sandwich, from differences of log-likelihoods of rows at other parameters."""
    import copy
    from dataclasses import replace

    model, y = RESPONSES[case]()
    model.fit(ROWS[X], y)
    fit, held = model.fitted_, len(model.fitted_.thresholds)
    theta, m = fit.values.T.ravel(), fit.beta.shape[1]

    def log_likelihoods(values: Any) -> Any:
        whole, other = values.reshape(m, -1).T, copy.copy(model)
        other._fit = copy.copy(model._fit)
        changed = replace(fit, thresholds=whole[:held, 0].copy(), beta=whole[held:].copy())
        other._fit.fitted = changed  # type: ignore[union-attr]
        return other.score_samples(ROWS[X], y)

    scores = np.empty((N, len(theta)))
    for number in range(len(theta)):
        step = np.zeros(len(theta))
        step[number] = 1e-5
        scores[:, number] = (log_likelihoods(theta + step) - log_likelihoods(theta - step)) / 2e-5
    V = model.covariance_
    by_firm = pd.DataFrame(scores).groupby(ROWS["firm"].to_numpy()).sum().to_numpy()
    white = model.with_covariance("HC0", ROWS[X], y)
    np.testing.assert_allclose(white.covariance_, V @ scores.T @ scores @ V, rtol=2e-5, atol=1e-9)
    none = model.with_covariance(sf.Clustered("firm", "none"), ROWS, y)
    np.testing.assert_allclose(none.covariance_, V @ by_firm.T @ by_firm @ V, rtol=2e-5, atol=1e-9)
    fitted: Any = model.clone().set_params(covariance="robust").fit(ROWS[X], y)
    np.testing.assert_allclose(white.covariance_, fitted.covariance_, rtol=1e-6, atol=1e-12)
    if case == "vectors":
        for column in range(2):
            alone = sf.GLM(covariance="HC3").fit(ROWS[X], y[:, column])
            both = model.with_covariance("HC3", ROWS[X], y)
            np.testing.assert_allclose(errors(both)[:, column], errors(alone), rtol=1e-8)
    if case in ("multinomial", "ordinal"):
        with pytest.raises(sf.OptionError, match="leverage"):
            model.with_covariance("HC2", ROWS[X], y)


def test_hat_values_of_other_links() -> None:
    """HC3 by its definition, from the leverages of a fit of trials with a link that is not canonical."""
    trials = RNG.integers(3, 9, N)
    hits = RNG.binomial(trials, 0.4)
    model = sf.GLM("binomial", link="probit").fit(ROWS[X], hits, trials=trials)
    mean = np.asarray(model.predict(ROWS[X], kind="response"))
    from scipy.stats import norm

    eta = np.asarray(model.predict(ROWS[X], kind="link"))
    score = (hits - trials * mean) * norm.pdf(eta) / (mean * (1 - mean))
    hat = model.leverage(ROWS[X], hits, trials=trials)
    design = np.column_stack((np.ones(N), ROWS[X]))
    for kind, power in (("HC2", 0.5), ("HC3", 1.0)):
        u = design * (score / (1 - hat) ** power)[:, None]
        expected = model.covariance_ @ u.T @ u @ model.covariance_
        other = model.with_covariance(kind, ROWS[X], hits, trials=trials)  # type: ignore[arg-type]
        np.testing.assert_allclose(other.covariance_, expected, rtol=1e-9)


# -- laws --------------------------------------------------------------------------------------------------------------

KINDS: list[Any] = ["HC0", "HC1", "HC2", "HC3", sf.Clustered("firm"), sf.Clustered(["firm", "year"])]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_weight_is_a_row_repeated(kind: Any) -> None:
    weights = RNG.integers(0, 4, N)
    rows = ROWS[[*X, "firm", "year"]]
    again = np.repeat(np.arange(N), weights)
    model = sf.GLM("poisson", covariance=kind).fit(rows, ROWS["count"], weights, columns=X)
    repeated = sf.GLM("poisson", covariance=kind).fit(rows.iloc[again], ROWS["count"].iloc[again], columns=X)
    np.testing.assert_allclose(errors(model), errors(repeated), rtol=1e-7)


def test_rows_in_files_and_the_order_of_rows(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "rows.csv"
    shown = ROWS[[*X, "firm", "year", "count"]]
    shown.to_csv(path, index=False)
    turned = shown.sample(frac=1.0, random_state=2)
    for kind in KINDS:
        own: Any = {} if not isinstance(kind, str) else {"columns": X}
        if isinstance(kind, sf.Clustered) and kind.groups == "firm":
            own = {"columns": X}
        memory = sf.GLM("poisson", covariance=kind).fit(shown, "count", **own)
        np.testing.assert_allclose(
            errors(sf.GLM("poisson", covariance=kind).fit(path, "count", **own)), errors(memory), rtol=1e-7
        )
        np.testing.assert_allclose(
            errors(sf.GLM("poisson", covariance=kind).fit(turned, "count", **own)), errors(memory), rtol=1e-7
        )
        assert "firm" not in (memory.coefficients_.names if kind == KINDS[-1] else ())
    later = sf.GLM("poisson").fit(path, "count", columns=X).with_covariance(sf.NeweyWest(3), path, "count")
    ahead = sf.GLM("poisson", covariance=sf.NeweyWest(3)).fit(shown[[*X, "count"]], "count")
    np.testing.assert_allclose(errors(later), errors(ahead), rtol=1e-7)


def test_files_keep_the_kind_and_formulas_find_the_clusters(tmp_path: Path) -> None:
    pytest.importorskip("formulaic")
    model = sf.GLM("poisson", formula="count ~ x + z", covariance=sf.Clustered("firm")).fit(ROWS)
    model.write(tmp_path / "model.json")
    again = sf.read(tmp_path / "model.json")
    np.testing.assert_array_equal(errors(again), errors(model))
    assert again.covariance.groups == "firm"
    assert "clustered by firm (24 clusters)" in str(again.summary())
    plain = sf.GLM("poisson", formula="count ~ x + z").fit(ROWS)
    np.testing.assert_allclose(errors(plain.with_covariance(sf.Clustered("firm"), ROWS)), errors(model), rtol=1e-10)
    assert plain.marginal_effects(ROWS).bse["x"] != model.marginal_effects(ROWS).bse["x"]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda model: model.with_covariance("HC4", ROWS[X], ROWS["count"]), "expected one of 'expected'"),
        (lambda model: model.with_covariance("observed", ROWS[X], ROWS["count"]), "constructor"),
        (lambda model: model.with_covariance("HC1"), "needs the rows"),
        (lambda model: model.with_covariance("expected", ROWS[X]), "leave the rows out"),
        (lambda model: model.with_covariance(sf.Clustered, ROWS[X]), "is the class"),
        (lambda model: model.with_covariance(sf.Clustered("town"), ROWS[X], ROWS["count"]), "town"),
        (lambda model: model.with_covariance(sf.Clustered(np.arange(3)), ROWS[X], ROWS["count"]), "3 values"),
        (lambda model: model.with_covariance(sf.Clustered(np.zeros(N)), ROWS[X], ROWS["count"]), "two at least"),
        (lambda model: model.with_covariance(sf.NeweyWest(N), ROWS[X], ROWS["count"]), "fewer lags"),
        (lambda model: model.with_covariance("HC1", ROWS[X], ROWS["count"][::-1].to_numpy()), "not those of the fit"),
        (lambda model: model.with_covariance("HC1", ROWS[X][:99], ROWS["count"][:99]), "not those of the fit"),
        (lambda model: sf.Clustered(["a", "b", "c"]), "one way or of two"),
        (lambda model: sf.Clustered(None), "name of a column"),
        (lambda model: sf.Clustered("a", "half"), "correction"),  # type: ignore[arg-type]
        (lambda model: sf.NeweyWest(-1), "lags"),
        (lambda model: sf.NeweyWest(2, "flat"), "kernel"),  # type: ignore[arg-type]
        (
            lambda model: sf.GLM(covariance=sf.NeweyWest(2)).fit(ROWS[X], ROWS["y"], np.full(N, 2.0)),
            "one after the other",
        ),
    ],
)
def test_calls_that_make_no_sense(call: Callable[[sf.GLM], Any], words: str) -> None:
    model = sf.GLM("poisson").fit(ROWS[X], ROWS["count"])
    with pytest.raises(sf.SufficeError, match=words):
        call(model)


def test_a_row_that_decides_its_own_fit() -> None:
    rows = {"a": [0.0, 0.0, 0.0, 0.0, 1.0], "b": [1.0, 2.0, 3.0, 4.0, 5.0]}
    with pytest.raises(sf.EstimateError, match=r"Row 4 decides .* HC3"):
        sf.GLM(covariance="HC3").fit(rows, [1.0, 3.0, 2.0, 5.0, 1.0])


def test_rows_elsewhere() -> None:
    dask = pytest.importorskip("dask.dataframe")
    shown = ROWS[[*X, "firm", "count"]]
    parts = dask.from_pandas(shown, npartitions=3)
    kinds: list[Any] = ["HC3", sf.Clustered("firm")]
    for kind in kinds:
        memory, elsewhere = (
            sf.GLM("poisson", covariance=kind).fit(rows, "count", columns=X) for rows in (shown, parts)
        )
        np.testing.assert_allclose(errors(elsewhere), errors(memory), rtol=1e-7)
    np.testing.assert_allclose(elsewhere.marginal_effects(parts).bse, memory.marginal_effects(shown).bse, rtol=1e-7)
    with pytest.raises(sf.OptionError, match="one after the other"):
        elsewhere.with_covariance(sf.NeweyWest(2), parts, "count")
