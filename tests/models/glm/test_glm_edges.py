"""Where several parts of a regression meet: formulas with labels, dropped columns, offsets beside labels, streams."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import optimize, special

import suffice as sf

RNG = np.random.default_rng(5)
N = 300
X = 0.5 * RNG.normal(size=(N, 2))
ETA = 0.4 + X @ [0.5, -0.3]
LABELS = np.array(["a", "b", "c"])[(X[:, 0] + RNG.logistic(size=N) > 0).astype(int) + RNG.integers(0, 2, N)]


def frame() -> Any:
    pd = pytest.importorskip("pandas")
    pytest.importorskip("formulaic")
    success = np.random.default_rng(1).random(N) < special.expit(ETA)
    counts = np.random.default_rng(2).poisson(np.exp(ETA))
    return pd.DataFrame(
        {"x": X[:, 0], "z": X[:, 1], "label": LABELS, "won": np.where(success, "yes", "no"), "n": counts}
    )


# -- formulas ----------------------------------------------------------------------------------------------------------


def test_a_formula_takes_labels_as_a_table_does() -> None:
    data = frame()
    for family, name in (("multinomial", "label"), ("binomial", "won")):
        formula = sf.GLM(family, formula=f"{name} ~ x + z").fit(data)  # type: ignore[arg-type]
        table = sf.GLM(family).fit(data, name, columns=["x", "z"])  # type: ignore[arg-type]
        np.testing.assert_allclose(formula.parameters_, table.parameters_, rtol=1e-9)
        assert formula.classes_.tolist() == table.classes_.tolist()
        assert formula.score(data) == pytest.approx(table.score(data, name), rel=1e-12)
    # The second label is the success: "yes" comes after "no".
    chance = sf.GLM("binomial", formula="won ~ 1").fit(data).predict_proba(data)[0, 1]
    assert chance == pytest.approx((data["won"] == "yes").mean(), rel=1e-9)


def test_a_formula_names_the_response_of_scores_and_residuals_too() -> None:
    data = frame()
    model = sf.GLM("poisson", formula="n ~ x + z").fit(data)
    assert N * model.score(data) == pytest.approx(model.log_likelihood_, rel=1e-12)
    np.testing.assert_array_equal(model.residuals(data), model.residuals(data, "n"))
    np.testing.assert_array_equal(model.leverage(data), model.leverage(data, "n"))
    bare = sf.GLM("poisson", formula="x + z").fit(data, y="n")
    np.testing.assert_array_equal(bare.parameters_, model.parameters_)
    with pytest.raises(sf.DataError, match="no response"):
        bare.score(data)


def test_a_formula_does_not_leave_rows_out() -> None:
    data = frame()
    data.loc[3, "x"] = np.nan
    with pytest.raises(sf.MissingValueError, match=r"Column .x. has a missing value in row 3"):
        sf.GLM("poisson", formula="n ~ x").fit(data)
    with pytest.raises(sf.MissingValueError, match=r"Column .x. has a missing value in row 3"):
        sf.GLM("multinomial", formula="label ~ x").fit(data)
    with pytest.raises(sf.DataError, match="nowhere"):
        sf.GLM("poisson", formula="n ~ nowhere").fit(data)


# -- columns that are combinations of others ---------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["gaussian", "poisson", "multinomial", "multivariate_gaussian"])
def test_a_dropped_column_leaves_the_fit_of_the_others(family: Any) -> None:
    rng = np.random.default_rng(3)
    y: dict[str, Any] = {
        "gaussian": ETA + rng.normal(size=N),
        "poisson": rng.poisson(np.exp(ETA)),
        "multinomial": LABELS,
        "multivariate_gaussian": rng.normal(size=(N, 2)),
    }
    more = np.column_stack([X[:, 0], 2.0 * X[:, 0] - 1.0, X[:, 1]])
    plain = sf.GLM(family).fit(X, y[family])
    for solver in ("auto",) if family == "multivariate_gaussian" else ("irls", "lbfgs", "newton-cg", "sgd", "cd"):
        model = sf.GLM(family, solver=solver, collinear="drop", random_state=0, max_iter=2_000).fit(more, y[family])  # type: ignore[arg-type]
        kept = [0, 1, 3]
        np.testing.assert_allclose(np.asarray(model.parameters_)[kept], plain.parameters_, atol=1e-6, err_msg=solver)
        np.testing.assert_allclose(np.asarray(model.standard_errors_)[kept], plain.standard_errors_, rtol=1e-5)
        np.testing.assert_array_equal(np.asarray(model.parameters_)[2], 0.0)
        assert np.isnan(np.asarray(model.standard_errors_)[2]).all()
        assert model.n_params_ == plain.n_params_
        assert model.df_resid_ == plain.df_resid_
        assert any("x1" in one for one in model.report_.warnings)
    np.testing.assert_allclose(model.predict(more, kind="response"), plain.predict(X, kind="response"), atol=1e-6)


def test_the_sandwich_of_a_softmax_without_a_dropped_column() -> None:
    more = np.column_stack([X, X.sum(axis=1)])
    model = sf.GLM("multinomial", covariance="robust", collinear="drop").fit(more, LABELS)
    plain = sf.GLM("multinomial", covariance="robust").fit(X, LABELS)
    np.testing.assert_allclose(np.asarray(model.standard_errors_)[:3], plain.standard_errors_, rtol=1e-8)


def test_numbers_below_zero_under_a_log_link_do_not_blame_the_columns() -> None:
    y = -1.0 - np.abs(np.random.default_rng(4).normal(size=N))
    model = sf.GLM("gaussian", link="log").fit(X, y)  # Means run to 0, the nearest that the link has.
    assert model.report_.certificate.exists is not True
    np.testing.assert_allclose(model.predict(X), 0.0, atol=1e-6)


# -- labels ------------------------------------------------------------------------------------------------------------


def test_the_null_deviance_of_a_softmax_has_the_offset_and_no_intercept_where_there_is_none() -> None:
    offset = X[:, 0] + 0.5
    model = sf.GLM("multinomial").fit(X, LABELS, offset=offset)
    codes = np.searchsorted(["a", "b", "c"], LABELS)

    def loss(theta: Any) -> float:
        eta = np.column_stack([theta[0] + offset, theta[1] + offset, np.zeros(N)])
        return float(np.logaddexp.reduce(eta, axis=1).sum() - eta[np.arange(N), codes].sum())

    best = optimize.minimize(loss, np.zeros(2), method="BFGS", options={"gtol": 1e-7})
    assert model.null_deviance_ == pytest.approx(2 * best.fun, rel=1e-9)
    bare = sf.GLM("multinomial", fit_intercept=False).fit(X, LABELS)
    assert bare.null_deviance_ == pytest.approx(2 * N * np.log(3), rel=1e-12)


def test_rows_of_one_label_are_scored_by_the_labels_of_the_fit() -> None:
    y = (LABELS != "a").astype(int)
    for family in ("binomial", "multinomial", "ordinal"):
        model = sf.GLM(family).fit(X, y)
        shares = model.predict_proba(X)[y == 1, 1]
        assert model.score(X[y == 1], y[y == 1]) == pytest.approx(np.log(shares).mean(), rel=1e-9), family


@pytest.mark.parametrize("reference", ["a", "c", "never"])
def test_a_prior_on_effects_does_not_hold_the_intercept_of_a_class_without_rows(reference: str) -> None:
    prior = sf.Normal(variance=1.0)
    states = ["a", "b", "never", "c"]
    free = sf.GLM("multinomial", states=states, prior=prior, reference=reference).fit(X, LABELS)
    assert free.separated_
    np.testing.assert_array_equal(free.predict_proba(X)[:, 2], 0.0)
    without = sf.GLM("multinomial", prior=prior, reference="c").fit(X, LABELS)
    assert sf.GLM("multinomial", prior=prior).fit(X, LABELS).report_.certificate.exists is True
    if reference == "c":
        np.testing.assert_allclose(free.predict_proba(X)[:, [0, 1, 3]], without.predict_proba(X), atol=1e-6)
    held = sf.GLM("multinomial", states=states, prior=prior, penalize_intercept=True).fit(X, LABELS)
    assert held.report_.certificate.exists is True


@pytest.mark.parametrize(("family", "outcome"), [("poisson", 0.0), ("binomial", 0.0), ("binomial", 1.0)])
def test_a_prior_on_effects_does_not_hold_the_intercept_of_one_outcome(family: Any, outcome: float) -> None:
    y = np.full(N, outcome)
    model = sf.GLM(family, prior=sf.Normal(mean=0.3, variance=1.0)).fit(X, y)
    assert model.separated_
    assert model.intercept_ == (np.inf if outcome else -np.inf)
    np.testing.assert_allclose(model.coefficients_, 0.3, atol=1e-6)
    np.testing.assert_array_equal(model.predict(X), outcome)
    held = sf.GLM(family, prior=sf.Normal(variance=1.0), penalize_intercept=True).fit(X, y)
    assert held.report_.certificate.exists is True
    assert np.isfinite(held.intercept_)


def test_vectors_have_no_classes() -> None:
    model = sf.GLM("multivariate_gaussian").fit(X, RNG.normal(size=(N, 2)))
    with pytest.raises(sf.OptionError, match="no labels"):
        model.predict(X, kind="class")
    with pytest.raises(sf.OptionError, match="no classes"):
        model.predict_proba(X)


@pytest.mark.filterwarnings("ignore::suffice.ConvergenceWarning")
@pytest.mark.parametrize("family", ["binomial", "multinomial", "ordinal"])
@pytest.mark.parametrize("complete", [True, False])
def test_separation_is_found_in_files(tmp_path: Path, family: Any, complete: bool) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    labels = 2 if family == "binomial" else 3
    x = np.arange(30.0) if complete else np.repeat(np.arange(labels), 30 // labels) > 0
    y = np.repeat(np.arange(labels), 30 // labels)
    if not complete:  # The lowest label is always told by x, the others are not.
        y = np.where(x, np.where(np.arange(30) % 3 == 0, labels - 1, 1), 0)
    table = {"x": x.astype(float), "z": np.random.default_rng(0).normal(size=30), "y": y}
    pq.write_table(pa.table(table), tmp_path / "rows.parquet", row_group_size=7)
    file, memory = sf.GLM(family).fit(tmp_path / "rows.parquet", "y"), sf.GLM(family).fit(table, "y")
    for model in (file, memory):
        assert model.separated_
        assert model.report_.certificate.exists is False
        assert any(one.startswith("x") for one in model.report_.certificate.directions)
    assert file.log_likelihood_ == pytest.approx(memory.log_likelihood_, abs=1e-6)


@pytest.mark.parametrize("family", ["binomial", "multinomial", "ordinal", "poisson"])
def test_what_separation_leaves_open_has_no_finite_error(family: Any) -> None:
    x, z = np.repeat([0.0, 1.0], [8, 4]), np.r_[np.zeros(8), 1.0, 2.0, 3.0, 5.0]
    y = np.r_[0, 1, 0, 1, 1, 0, 1, 0, np.full(4, int(family != "poisson"))]
    model = sf.GLM(family).fit(np.column_stack([x, z]), y)
    # Every row with z is decided by x: the others say nothing about its coefficient.
    assert model.separated_
    error = np.ravel(model.standard_errors_)
    assert np.isfinite(error).tolist() == [True, False, False]
    alone = sf.GLM(family).fit(np.empty((8, 0)), y[:8], columns=[])
    assert error[0] == pytest.approx(np.ravel(alone.standard_errors_)[0], rel=1e-6)
    ends = np.asarray(model.intervals()).reshape(3, 2)
    np.testing.assert_array_equal(ends[2], [-np.inf, np.inf])
    if family in ("poisson", "binomial"):
        nothing = sf.GLM(family).fit(X, np.zeros(N))
        np.testing.assert_array_equal(nothing.standard_errors_, np.inf)
        assert "inf" in str(nothing.summary())


def test_a_start_of_partial_fit_has_a_number_for_each_coefficient() -> None:
    with pytest.raises(sf.EstimateError, match="start has 2 numbers; expected 3, one for each coefficient"):
        sf.GLM("poisson", start=[1.0, 2.0]).partial_fit(X, np.ones(N))
