"""What a generalised linear model reads, and what it says of data that has no maximum."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse, special

import suffice as sf
from suffice.engines import linear_predictor

RNG = np.random.default_rng(31)
N = 400
X = RNG.normal(size=(N, 2))
GROUP = RNG.integers(0, 3, N)
NAMES = np.array(["low", "mid", "high"])[GROUP]
ETA = 0.3 + X @ [0.5, -0.4] + np.array([0.0, 0.5, -0.5])[GROUP]
COUNTS = RNG.poisson(np.exp(ETA)).astype(float)
BINARY = (RNG.random(N) < special.expit(ETA)).astype(float)
DESIGN = np.column_stack([np.ones(N), X, GROUP == 1, GROUP == 2]).astype(float)
LEVELS = {"group": ["low", "mid", "high"]}


def frame() -> dict[str, Any]:
    return {"a": X[:, 0], "b": X[:, 1], "group": NAMES, "y": COUNTS}


@pytest.fixture(scope="module")
def reference() -> Any:
    return sf.GLM("poisson").fit(DESIGN[:, 1:], COUNTS)


def test_frames_of_every_kind_give_one_fit(reference: Any) -> None:
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    ordered = pd.DataFrame(frame())
    ordered["group"] = pd.Categorical(ordered["group"], ["low", "mid", "high"])
    tables = [frame(), pd.DataFrame(frame()), ordered, pl.DataFrame(frame())]
    for table in tables:
        model = sf.GLM("poisson", categorical=LEVELS).fit(table, y="y")
        assert model.coefficients_.names == ("a", "b", "group[mid]", "group[high]")
        np.testing.assert_allclose(model.parameters_, reference.parameters_, rtol=1e-8)
        np.testing.assert_allclose(model.standard_errors_, reference.standard_errors_, rtol=1e-8)
    kept = sf.GLM("poisson").fit(ordered, y="y")
    assert kept.coefficients_.names[2:] == ("group[mid]", "group[high]")
    series = sf.GLM("poisson").fit(ordered[["a", "b", "group"]], ordered["y"])
    np.testing.assert_allclose(series.parameters_, reference.parameters_, rtol=1e-8)
    whole = pd.DataFrame({"n": RNG.integers(0, 5, N), "y": COUNTS})
    assert sf.GLM("poisson").fit(whole, y="y").coefficients_.names == ("n",)


def test_sparse_matrices(reference: Any) -> None:
    for solver in ("irls", "lbfgs"):
        model = sf.GLM("poisson", solver=solver).fit(sparse.csr_array(DESIGN[:, 1:]), COUNTS)
        np.testing.assert_allclose(model.parameters_, reference.parameters_, atol=1e-7)
        np.testing.assert_allclose(model.standard_errors_, reference.standard_errors_, rtol=1e-6)
    np.testing.assert_allclose(
        model.predict(sparse.csc_matrix(DESIGN[:, 1:])), reference.predict(DESIGN[:, 1:]), rtol=1e-6
    )


@pytest.mark.parametrize("name", ["rows.parquet", "rows.csv"])
def test_files_are_read_for_their_levels_and_for_their_rows(reference: Any, tmp_path: Path, name: str) -> None:
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({**frame(), "w": np.ones(N)})
    path = tmp_path / name
    table.to_parquet(path) if name.endswith("parquet") else table.to_csv(path, index=False)
    model = sf.GLM("poisson", categorical=LEVELS).fit(path, y="y", sample_weight="w")
    np.testing.assert_allclose(model.parameters_, reference.parameters_, rtol=1e-8)
    np.testing.assert_allclose(model.standard_errors_, reference.standard_errors_, rtol=1e-8)
    for figure in ("deviance_", "null_deviance_", "log_likelihood_"):
        assert getattr(model, figure) == pytest.approx(getattr(reference, figure), rel=1e-9)
    assert model.report_.passes == 2
    with pytest.raises(sf.DataError, match="name of a column"):
        sf.GLM("poisson").fit(path, y=COUNTS)


def test_files_of_labels_and_of_successes(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({"a": X[:, 0], "label": np.where(BINARY > 0, "yes", "no"), "three": NAMES})
    table["hit"], table["miss"] = BINARY, 1.0 - BINARY
    table.to_parquet(tmp_path / "t.parquet")
    whole = sf.GLM("binomial").fit(X[:, :1], BINARY)
    labels = sf.GLM("binomial").fit(tmp_path / "t.parquet", y="label", columns=["a"])
    pairs = sf.GLM("binomial").fit(tmp_path / "t.parquet", y=("hit", "miss"), columns=["a"])
    np.testing.assert_allclose(labels.parameters_, whole.parameters_, rtol=1e-9)
    np.testing.assert_allclose(pairs.parameters_, whole.parameters_, rtol=1e-9)
    assert tuple(labels.classes_) == ("no", "yes")
    three = sf.GLM("multinomial").fit(tmp_path / "t.parquet", y="three", columns=["a"])
    np.testing.assert_allclose(three.parameters_, sf.GLM("multinomial").fit(X[:, :1], NAMES).parameters_, atol=1e-8)


def test_a_factor_of_many_levels_equals_its_indicators() -> None:
    rng = np.random.default_rng(2)
    levels = rng.integers(0, 90, 3000)
    x = rng.normal(size=3000)
    y = rng.poisson(np.exp(0.2 * x + 0.02 * (levels % 7))).astype(float)
    wide = sf.GLM("poisson").fit({"site": levels.astype(str), "x": x}, y)
    order = sorted(set(levels.astype(str)))
    indicators = np.array([levels.astype(str) == level for level in order[1:]]).T.astype(float)
    dense = sf.GLM("poisson").fit(np.column_stack([indicators, x]), y)
    np.testing.assert_allclose(wide.parameters_, dense.parameters_, atol=1e-8)
    np.testing.assert_allclose(wide.standard_errors_, dense.standard_errors_, rtol=1e-7)
    np.testing.assert_allclose(wide.covariance_, dense.covariance_, atol=1e-9)
    assert wide.coefficients_.names[-1] == "x"


def test_the_result_does_not_depend_on_threads_or_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = sf.GLM("poisson").fit(X, COUNTS)
    monkeypatch.setattr(linear_predictor, "PIECE_ROWS", 37)
    found = []
    for threads in ("1", "2"):
        monkeypatch.setenv("SUFFICE_THREADS", threads)
        found.append(np.asarray(sf.GLM("poisson").fit(X, COUNTS).parameters_))
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_allclose(found[0], whole.parameters_, rtol=1e-12)


def test_a_start_from_some_rows_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from suffice.models.glm import sample

    rng = np.random.default_rng(4)
    x = rng.normal(size=(100_000, 2))
    y = (rng.random(100_000) < special.expit(x @ [1.0, -1.0])).astype(float)
    warm = sf.GLM("binomial", tolerance=1e-10).fit(x, y)
    monkeypatch.setattr(sample, "MANY_ENTRIES", 10**12)
    cold = sf.GLM("binomial", tolerance=1e-10).fit(x, y)
    np.testing.assert_allclose(warm.parameters_, cold.parameters_, rtol=1e-9)
    assert "some rows" in warm.report_.method
    assert cold.report_.method == "IRLS"
    np.testing.assert_allclose(warm.standard_errors_, cold.standard_errors_, rtol=1e-8)


def test_levels_never_seen() -> None:
    table = {name: values for name, values in frame().items() if name != "y"}
    new = {"a": [0.0], "b": [0.0], "group": ["other"]}
    with pytest.raises(sf.UnknownStateError, match="'other'"):
        sf.GLM("poisson").fit(table, COUNTS).predict(new)
    model = sf.GLM("poisson", unknown="pool", categorical=LEVELS).fit(table, COUNTS)
    shares = np.bincount(GROUP) / N
    effects = np.array([0.0, model.coefficients_["group[mid]"], model.coefficients_["group[high]"]])
    assert model.predict(new, kind="link")[0] == pytest.approx(model.intercept_ + shares @ effects)
    assert model.predict(new, interval=0.9).shape == (1, 3)


def test_without_an_intercept_the_first_factor_has_every_level() -> None:
    model = sf.GLM("poisson", fit_intercept=False).fit({"group": NAMES}, COUNTS)
    assert model.coefficients_.names == ("group[high]", "group[low]", "group[mid]")
    for at, name in enumerate(["high", "low", "mid"]):
        assert np.exp(model.coefficients_[at]) == pytest.approx(COUNTS[NAMES == name].mean(), rel=1e-9)


def test_formulas(reference: Any) -> None:
    pd = pytest.importorskip("pandas")
    pytest.importorskip("formulaic")
    table = pd.DataFrame(frame())
    model = sf.GLM("poisson", formula="y ~ a + b + C(group, contr.treatment('low'))").fit(table)
    assert model.deviance_ == pytest.approx(reference.deviance_, rel=1e-9)
    np.testing.assert_allclose(model.predict(table), reference.predict(DESIGN[:, 1:]), rtol=1e-7)


def test_a_missing_formula_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "formulaic", None)
    with pytest.raises(sf.MissingExtraError, match="formula"):
        sf.GLM("poisson", formula="y ~ a").fit(frame())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": None}, "no response"),
        ({"y": COUNTS[:5]}, "400"),
        ({"y": np.where(COUNTS == 0, np.nan, COUNTS)}, "missing value"),
        ({"sample_weight": -np.ones(N)}, "weight"),
        ({"sample_weight": np.zeros(N)}, "weights are zero"),
        ({"offset": np.ones(3)}, "offset"),
        ({"exposure": np.zeros(N)}, "exposure"),
        ({"X": np.where(X > 2, np.nan, X)}, "missing value"),
        ({"X": X[:, :, None]}, "Expected 2D array, got 3D"),
        ({"columns": ["one"]}, "columns="),
    ],
)
def test_wrong_data_is_named(change: dict[str, Any], message: str) -> None:
    given = {"X": X, "y": COUNTS, **change}
    with pytest.raises(sf.DataError, match=message):
        sf.GLM("poisson").fit(given.pop("X"), given.pop("y"), **given)


def test_wrong_responses_are_named() -> None:
    with pytest.raises(sf.DataError, match="positive numbers"):
        sf.GLM("gamma").fit(X, COUNTS - 1.0)
    with pytest.raises(sf.DataError, match="3 labels"):
        sf.GLM("binomial").fit(X, NAMES)
    with pytest.raises(sf.DataError, match="trials"):
        sf.GLM("binomial").fit(X, np.full(N, 0.5))
    with pytest.raises(sf.DataError, match="successes"):
        sf.GLM("binomial").fit(X, np.full(N, 3.0), trials=np.ones(N))
    with pytest.raises(sf.MissingColumnError, match="grp"):
        sf.GLM("poisson", categorical=["grp"]).fit(frame(), y="y")


# -- no maximum --------------------------------------------------------------------------------------------------------


def test_complete_separation_is_flagged_and_a_prior_makes_it_finite() -> None:
    x = np.linspace(-1, 1, 20)
    y = (x > 0.0).astype(int)
    model = sf.GLM("binomial").fit({"dose": x}, y)
    assert model.separated_
    assert model.report_.certificate.exists is False
    assert any("dose to +infinity" in text for text in model.report_.certificate.directions)
    assert model.coefficients_["dose"] == np.inf
    assert model.standard_errors_["dose"] == np.inf
    np.testing.assert_array_equal(model.predict({"dose": x}), y)
    assert model.log_likelihood_ == 0.0
    assert model.score({"dose": x}, y) == 0.0
    finite = sf.GLM("binomial", prior=sf.Normal(variance=4.0)).fit({"dose": x}, y)
    assert not finite.separated_
    assert np.isfinite(finite.parameters_).all()
    assert "infinity" in str(model.summary())


def test_quasi_separation_fits_the_rest() -> None:
    rng = np.random.default_rng(8)
    x = rng.normal(size=60)
    flag = np.arange(60) < 10
    y = (rng.random(60) < special.expit(x)).astype(int)
    y[flag] = 1
    for link in ("logit", "probit", "cloglog"):
        model = sf.GLM("binomial", link=link).fit({"x": x, "flag": flag.astype(float)}, y)
        assert model.separated_
        assert model.coefficients_["flag"] == np.inf
        rest = sf.GLM("binomial", link=link).fit({"x": x[~flag]}, y[~flag])
        assert model.coefficients_["x"] == pytest.approx(rest.coefficients_["x"], rel=1e-6)
        assert model.intercept_ == pytest.approx(rest.intercept_, rel=1e-6)
        assert model.log_likelihood_ == pytest.approx(rest.log_likelihood_, rel=1e-9)
        np.testing.assert_array_equal(model.predict({"x": x, "flag": flag.astype(float)})[flag], 1.0)


def test_a_group_without_counts_runs_to_minus_infinity() -> None:
    y = COUNTS.copy()
    y[GROUP == 2] = 0.0
    model = sf.GLM("poisson", categorical=LEVELS).fit({"group": NAMES}, y)
    assert model.separated_
    assert model.coefficients_["group[high]"] == -np.inf
    assert np.exp(model.intercept_) == pytest.approx(y[GROUP == 0].mean(), rel=1e-8)
    np.testing.assert_array_equal(model.predict({"group": ["high"]}), [0.0])


@pytest.mark.parametrize("family", ["poisson", "binomial"])
def test_a_response_of_zeros(family: Any) -> None:
    model = sf.GLM(family).fit(X, np.zeros(N))
    assert model.separated_
    assert model.log_likelihood_ == 0.0
    np.testing.assert_array_equal(model.predict(X), 0.0)
    assert model.null_deviance_ == 0.0


def test_separated_labels() -> None:
    x = np.linspace(-1, 1, 30)
    labels = np.where(x < -0.3, "a", np.where(x < 0.3, "b", "c"))
    model = sf.GLM("multinomial").fit(x[:, None], labels)
    assert model.separated_
    np.testing.assert_array_equal(model.predict(x[:, None], kind="class"), labels)


def test_no_separation_is_claimed_where_there_is_none() -> None:
    rng = np.random.default_rng(9)
    for _ in range(10):
        x = rng.normal(size=(25, 2))
        y = rng.integers(0, 2, 25)
        if 0 < y.sum() < 25:
            model = sf.GLM("binomial").fit(x, y)
            step = np.abs(np.column_stack([np.ones(25), x]).T @ (y - model.predict(x, kind="response"))).max()
            assert model.separated_ or step < 1e-6


def test_columns_that_say_the_same_are_named() -> None:
    table = {"a": X[:, 0], "b": X[:, 1], "sum": X.sum(axis=1)}
    with pytest.raises(sf.EstimateError, match="'sum'"):
        sf.GLM("poisson").fit(table, COUNTS)
    with pytest.raises(sf.EstimateError, match="'five'"):
        sf.GLM("poisson").fit({"a": X[:, 0], "five": np.full(N, 5.0)}, COUNTS)
    with pytest.raises(sf.EstimateError, match="3 rows for 6"):
        sf.GLM("poisson").fit(RNG.normal(size=(3, 5)), [1, 2, 3])
    ridge = sf.GLM("poisson", prior=sf.Normal(variance=1.0)).fit(table, COUNTS)
    assert np.isfinite(ridge.parameters_).all()


def test_nearly_collinear_columns_keep_their_digits() -> None:
    a = X[:, 0]
    table = np.column_stack([a, a + 1e-7 * X[:, 1]])
    y = ETA
    model = sf.GLM().fit(table, y)
    design = np.column_stack([np.ones(N), table])
    best = np.linalg.lstsq(design, y, rcond=None)[0]
    fitted, exact = model.predict(table), design @ best
    # Coefficients of four million, rounded, move a linear predictor by some 1e-9.
    np.testing.assert_allclose(fitted, exact, atol=1e-8)
    np.testing.assert_allclose(model.coefficients_, best[1:], rtol=1e-6)


@pytest.mark.parametrize("y", [1.0 + X @ [1.0, 2.0], np.zeros(N)])
def test_a_perfect_fit_keeps_its_coefficients_and_says_that_there_is_no_maximum(y: Any) -> None:
    model = sf.GLM().fit(X, y)
    best = np.linalg.lstsq(np.column_stack([np.ones(N), X]), y, rcond=None)[0]
    np.testing.assert_allclose(model.parameters_, best, rtol=1e-10, atol=1e-14)
    assert model.standard_errors_.max() < 1e-13
    found = model.report_.certificate
    assert (found.exists, found.value_gap, found.bound) == (False, None, False)
    assert found.directions == ("dispersion -> 0 (the fit is perfect)",)
    assert found.moment_gap < 1e-14
    assert any("the fit is perfect" in text for text in model.report_.warnings)


def test_a_perfect_fit_by_another_solver_or_of_another_law_is_an_error_that_says_so() -> None:
    for model, y in ((sf.GLM(solver="lbfgs"), np.zeros(N)), (sf.GLM("gamma", link="log"), np.ones(N))):
        with pytest.raises(sf.EstimateError, match="perfect"):
            model.fit(X, y)
    known = sf.GLM(dispersion=1.0).fit(X, 1.0 + X @ [1.0, 2.0])
    np.testing.assert_allclose(known.parameters_, [1.0, 1.0, 2.0], rtol=1e-10)


def test_large_numbers_do_not_overflow() -> None:
    model = sf.GLM("binomial", prior=sf.Normal(variance=1.0)).fit(1e6 * X, BINARY)
    assert np.isfinite(model.parameters_).all()
    poisson = sf.GLM("poisson").fit(1e3 * X, COUNTS)
    np.testing.assert_allclose(1e3 * poisson.coefficients_, sf.GLM("poisson").fit(X, COUNTS).coefficients_, rtol=1e-7)
    gauss = sf.GLM().fit(X, 1e9 + 1e-3 * ETA)
    assert gauss.converged_
    scaled = sf.GLM().fit(X, 1e8 * COUNTS)
    np.testing.assert_allclose(scaled.parameters_ / 1e8, sf.GLM().fit(X, COUNTS).parameters_, rtol=1e-9)
    assert scaled.converged_


NUMBERS = [[1.0, 4.0], [2.0, 1.0], [3.0, 2.0], [4.0, 7.0]]
MIXED = [(1, "u"), (2, "v"), (3, "u"), (4, "v")]


@pytest.mark.parametrize(
    ("rows", "array", "names"),
    [
        (NUMBERS, np.array(NUMBERS), ("intercept", "x0", "x1")),
        (MIXED, np.array(MIXED, dtype=object), ("intercept", "x0", "x1[v]")),
        ([[1.0], [2.0], [3.0], [4.0]], np.array([[1.0], [2.0], [3.0], [4.0]]), ("intercept", "x0")),
    ],
)
def test_lists_of_rows_are_named_as_arrays_are(rows: Any, array: Any, names: Any) -> None:
    y = [1, 2, 5, 3]
    fits = [sf.GLM("poisson").fit(X, y) for X in (rows, array)]
    for fitted in fits:
        assert fitted.fitted_.design.names == names
        for X in (rows, array):
            np.testing.assert_allclose(fitted.predict(X), fits[0].predict(rows), rtol=1e-12)
            assert fitted.score(X, y) == pytest.approx(fits[0].score(rows, y), rel=1e-12)


@pytest.mark.parametrize("X", [np.arange(4.0), [0.0, 1.0, 2.0, 3.0], range(4)])
def test_one_column_is_given_as_a_column(X: Any) -> None:
    with pytest.raises(sf.DataError, match=r"Expected 2D array.*X\.reshape\(-1, 1\)"):
        sf.GLM("poisson").fit(X, [1, 2, 5, 3])
    model = sf.GLM("poisson").fit(np.arange(4.0)[:, None], [1, 2, 5, 3])
    with pytest.raises(sf.DataError, match="Expected 2D array"):
        model.predict(X)


def test_no_columns_are_asked_for() -> None:
    empty, y = np.empty((4, 0)), [1, 2, 5, 4]
    with pytest.raises(sf.DataError, match=r"0 feature\(s\)"):
        sf.GLM("poisson").fit(empty, y)
    alone = sf.GLM("poisson").fit(empty, y, columns=[])
    np.testing.assert_allclose(alone.predict(empty), 3.0, rtol=1e-12)


def test_a_list_predicts_from_a_fit_to_an_array_or_a_table() -> None:
    fitted = sf.GLM("poisson").fit(np.array([[1.0], [2.0], [3.0]]), [1, 2, 5])
    assert fitted.predict([[1.0]]) == pytest.approx(np.exp(fitted.intercept_ + fitted.coefficients_["x0"]))
    named = sf.GLM("poisson").fit({"age": [1.0, 2.0, 3.0]}, [1, 2, 5])
    assert named.predict([[1.0]]) == pytest.approx(fitted.predict([[1.0]]))
    with pytest.raises(sf.DataError, match="X has 2 features, but GLM is expecting 1 features as input"):
        named.predict([[1.0, 2.0]])


def test_columns_name_a_list_of_rows() -> None:
    fitted = sf.GLM("poisson").fit(MIXED, [1, 2, 5, 3], columns=["age", "group"])
    assert fitted.fitted_.design.names == ("intercept", "age", "group[v]")
    with pytest.raises(sf.DataError, match="columns= has 1 names"):
        sf.GLM("poisson").fit(MIXED, [1, 2, 5, 3], columns=["age"])


def test_the_response_is_a_column_of_a_list_of_rows() -> None:
    rows = [[1.0, 1], [2.0, 2], [3.0, 5]]
    fitted = sf.GLM("poisson").fit(rows, "x1")
    alone = sf.GLM("poisson").fit([[1.0], [2.0], [3.0]], [1, 2, 5])
    np.testing.assert_allclose(fitted.parameters_, alone.parameters_, rtol=1e-12)
    np.testing.assert_allclose(fitted.predict(rows), alone.predict([[1.0], [2.0], [3.0]]), rtol=1e-12)
    assert fitted.score(rows, "x1") == pytest.approx(alone.score([[1.0], [2.0], [3.0]], [1, 2, 5]), rel=1e-12)
