"""Ordered labels: cumulative links against a generic optimiser, differences, repetition, and what cannot be fitted."""

from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import integrate, optimize, sparse, special

import suffice as sf
from suffice.models.glm.cumulative import CumulativeDistribution, CumulativeProblem, log_between
from suffice.models.glm.links import LINKS

RNG = np.random.default_rng(3)
N = 240
X = RNG.normal(size=(N, 3))
ETA = X @ [0.8, -0.5, 0.3]
THETA = np.array([-1.0, 0.2, 1.5])
LOWER: dict[str, Any] = {
    "logit": special.expit,
    "probit": special.ndtr,
    "cloglog": lambda x: -np.expm1(-np.exp(x)),
    "loglog": lambda x: np.exp(-np.exp(-x)),
}


def codes(link: str, seed: int = 0) -> Any:
    cumulative = np.column_stack([LOWER[link](theta - ETA) for theta in THETA])
    return (np.random.default_rng(seed).random((N, 1)) > cumulative).sum(axis=1)


def log_terms(link: str, parameters: Any, y: Any, rows: Any = X, offset: Any = 0.0) -> Any:
    """Log probability of each row, straight from the definition."""
    theta, eta = parameters[:3], rows @ parameters[3:] + offset
    ends = np.column_stack([np.zeros(len(eta)), *(LOWER[link](one - eta) for one in theta), np.ones(len(eta))])
    return np.log(np.diff(ends, axis=1)[np.arange(len(y)), y])


def log_likelihood(link: str, parameters: Any, y: Any, rows: Any = X, offset: Any = 0.0) -> float:
    if (np.diff(parameters[:3]) <= 0).any():
        return -np.inf
    return float(log_terms(link, parameters, y, rows, offset).sum())


def best(link: str, y: Any, variance: float | None = None, offset: Any = 0.0) -> Any:
    def loss(p: Any) -> float:
        ridge = 0.0 if variance is None else 0.5 * float((p[3:] ** 2).sum()) / variance
        return ridge - log_likelihood(link, p, y, offset=offset)

    limits: Any = {"xatol": 1e-9, "fatol": 1e-11, "maxiter": 20_000, "maxfev": 20_000}
    return optimize.minimize(loss, np.r_[-1.0, 0.0, 1.0, 0.0, 0.0, 0.0], method="Nelder-Mead", options=limits)


@pytest.mark.parametrize("variance", [None, 0.5])
@pytest.mark.parametrize("link", list(LOWER))
def test_every_solver_and_link_finds_the_optimum_of_a_generic_search(link: Any, variance: float | None) -> None:
    y = codes(link)
    found = best(link, y, variance)
    prior = None if variance is None else sf.Normal(variance=variance)
    for solver in ("irls", "lbfgs", "cg", "newton-cg", "cd", *(["sgd"] if link == "logit" else [])):
        model = sf.GLM("ordinal", link=link, solver=solver, prior=prior, random_state=1, max_iter=2_000).fit(X, y)  # type: ignore[arg-type]
        assert model.converged_, solver
        np.testing.assert_allclose(model.parameters_, found.x, atol=2e-7, err_msg=solver)
        assert model.report_.objective == pytest.approx(-found.fun, abs=1e-10)
        assert model.report_.certificate.exists is True


@pytest.mark.parametrize("link", list(LOWER))
def test_gradient_information_and_products_are_those_of_differences(link: Any) -> None:
    y = codes(link)
    weights = np.random.default_rng(1).integers(0, 3, N).astype(float)
    design = sf.GLM("ordinal", link=link).fit(X, y).fitted_.design
    from suffice.models.glm.design import DesignRows
    from suffice.models.glm.held_rows import RegressionRows

    law: Any = CumulativeDistribution(LINKS[link])
    block = design.block(DesignRows(X), y.astype(float), weights, 0.2 * X[:, 0])
    problem = CumulativeProblem(RegressionRows.of(block), design.layout, law, classes=4)
    at = np.array([-0.7, 0.3, 1.3, 0.5, -0.1, 0.9])
    value, gradient, information = problem.evaluate(at)
    repeated = np.repeat(np.arange(N), weights.astype(int))

    def plain(p: Any) -> float:
        return log_likelihood(link, p, y[repeated], X[repeated], 0.2 * X[repeated, 0])

    assert value == pytest.approx(plain(at), rel=1e-12)
    steps = 1e-5 * np.eye(6)
    slope = [(plain(at + one) - plain(at - one)) / 2e-5 for one in steps]
    np.testing.assert_allclose(gradient, slope, rtol=1e-6, atol=1e-6)
    hessian = [(problem.objective(at + one)[1] - problem.objective(at - one)[1]) / 2e-5 for one in steps]
    np.testing.assert_allclose(information.dense(), -np.array(hessian), rtol=1e-6, atol=1e-6)
    vector = np.arange(6.0) - 2.0
    np.testing.assert_allclose(problem.product(at)(vector), information.dense() @ vector, rtol=1e-10)
    assert np.linalg.eigvalsh(information.dense()).min() > 0


def test_errors_come_from_the_hessian_and_the_sandwich_from_the_scores() -> None:
    y = codes("probit")
    model = sf.GLM("ordinal", link="probit").fit(X, y)
    at = np.asarray(model.parameters_)

    def scores(p: Any) -> Any:
        steps = 1e-5 * np.eye(6)
        return np.stack(
            [(log_terms("probit", p + one, y) - log_terms("probit", p - one, y)) / 2e-5 for one in steps], axis=1
        )

    hessian = [(scores(at + one).sum(axis=0) - scores(at - one).sum(axis=0)) / 2e-3 for one in 1e-3 * np.eye(6)]
    covariance = np.linalg.inv(-np.array(hessian))
    np.testing.assert_allclose(model.covariance_, covariance, rtol=1e-4)
    np.testing.assert_allclose(model.standard_errors_, np.sqrt(np.diagonal(covariance)), rtol=1e-4)
    own = scores(at)
    robust = sf.GLM("ordinal", link="probit", covariance="robust").fit(X, y)
    np.testing.assert_allclose(robust.covariance_, covariance @ own.T @ own @ covariance, rtol=1e-3)


def test_weights_are_repetition_and_the_offset_is_taken_off_the_thresholds() -> None:
    y = codes("logit")
    weights = np.random.default_rng(2).integers(0, 4, N)
    rows = np.repeat(np.arange(N), weights)
    offset = 0.7 * X[:, 1]
    heavy = sf.GLM("ordinal").fit(X, y, weights, offset=offset)
    long = sf.GLM("ordinal").fit(X[rows], y[rows], offset=offset[rows])
    np.testing.assert_allclose(heavy.parameters_, long.parameters_, rtol=1e-9)
    np.testing.assert_allclose(heavy.covariance_, long.covariance_, rtol=1e-9)
    for name in ("log_likelihood_", "deviance_", "null_deviance_", "aic_", "bic_", "df_resid_"):
        assert getattr(heavy, name) == pytest.approx(getattr(long, name), rel=1e-11), name
    np.testing.assert_allclose(
        sf.GLM("ordinal").fit(X, y, offset=offset).parameters_, best("logit", y, offset=offset).x, atol=3e-7
    )
    # A column with a known coefficient, in place of the offset, changes that coefficient alone.
    plain = sf.GLM("ordinal").fit(X, y, weights)
    assert plain.coefficients_["x1"] == pytest.approx(heavy.coefficients_["x1"] + 0.7, abs=1e-9)
    assert plain.log_likelihood_ == pytest.approx(heavy.log_likelihood_, abs=1e-9)


def test_the_null_deviance_is_that_of_the_thresholds_alone() -> None:
    y = codes("logit")
    shares = np.bincount(y) / N
    model = sf.GLM("ordinal").fit(X, y)
    assert model.null_deviance_ == pytest.approx(-2 * N * float(shares @ np.log(shares)), rel=1e-12)
    offset = X[:, 0]
    alone = sf.GLM("ordinal").fit(np.empty((N, 0)), y, offset=offset, columns=[])
    assert sf.GLM("ordinal").fit(X, y, offset=offset).null_deviance_ == pytest.approx(alone.deviance_, rel=1e-10)
    assert alone.null_deviance_ == pytest.approx(alone.deviance_, rel=1e-10)


@pytest.mark.parametrize("link", list(LOWER))
def test_two_labels_are_a_binomial_regression(link: Any) -> None:
    y = codes(link) > 1
    # The second label is beyond the threshold: its share is one minus F, which is F of the mirrored link.
    mirrored = {"cloglog": "loglog", "loglog": "cloglog"}.get(link, link)
    one = sf.GLM("binomial", link=mirrored, covariance="observed").fit(X, y)
    two = sf.GLM("ordinal", link=link).fit(X, y)
    np.testing.assert_allclose(two.coefficients_, one.coefficients_, rtol=1e-6)
    np.testing.assert_allclose(two.thresholds_, [-one.intercept_], rtol=1e-6)
    np.testing.assert_allclose(two.standard_errors_, one.standard_errors_, rtol=1e-5)
    np.testing.assert_allclose(two.predict_proba(X)[:, 1], one.predict_proba(X)[:, 1], rtol=1e-7)
    assert two.log_likelihood_ == pytest.approx(one.log_likelihood_, rel=1e-11)


def test_predictions_scores_draws_and_names() -> None:
    labels = np.array(["low", "middle", "high", "top"])
    y = labels[codes("logit")]
    model = sf.GLM("ordinal", states=labels).fit(X, y)
    assert model.classes_.tolist() == labels.tolist()
    assert model.thresholds_.names == ("low|middle", "middle|high", "high|top")
    assert model.parameters_.names == (*model.thresholds_.names, "x0", "x1", "x2")
    assert model.intercept_ == 0.0
    assert (np.diff(model.thresholds_) > 0).all()
    shares = model.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-12)
    below = special.expit(np.asarray(model.thresholds_) - (X @ np.asarray(model.coefficients_))[:, None])
    np.testing.assert_allclose(shares.cumsum(axis=1)[:, :-1], below, rtol=1e-9)
    np.testing.assert_allclose(special.expit(model.predict(X, kind="link")), below, rtol=1e-12)
    np.testing.assert_array_equal(model.predict(X, kind="class"), labels[shares.argmax(axis=1)])
    assert N * model.score(X, y) == pytest.approx(model.log_likelihood_, rel=1e-12)
    assert model.score(X[y == "top"], y[y == "top"]) < 0  # The labels of the fit, not those of these rows.
    assert model.deviance_ == pytest.approx(-2 * model.log_likelihood_)
    assert model.n_params_ == 6
    assert model.df_resid_ == N - 6
    drawn = model.sample(np.repeat(X[:1], 20_000, axis=0), random_state=5)
    np.testing.assert_allclose([(drawn == one).mean() for one in labels], shares[0], atol=0.015)
    table = model.summary()
    assert [name for name, _ in table.rows] == list(model.parameters_.names)
    assert "ordinal, logit" in str(table)
    ends = np.asarray(model.intervals(0.9))
    np.testing.assert_allclose(ends.mean(axis=1), model.parameters_, rtol=1e-12)


def test_profile_intervals_drop_the_log_likelihood_by_half_the_quantile() -> None:
    y = codes("logit")
    y[y == 1] = np.where(np.arange((y == 1).sum()) < 4, 1, 2)  # A rare label: its two thresholds are close.
    model = sf.GLM("ordinal").fit(X, y)
    ends = model.intervals(method="profile", X=X, y=y)
    top, start = model.log_likelihood_, np.asarray(model.parameters_)
    for at in (0, 1, 4):
        for side in (0, 1):
            others = np.setdiff1d(np.arange(6), [at])

            def loss(p: Any, at: int = at, side: int = side, others: Any = others) -> float:
                whole = np.empty(6)
                whole[at], whole[others] = ends[at, side], p
                return min(-log_likelihood("logit", whole, y), 1e6)

            begin = start.copy()
            begin[at] = ends[at, side]
            if at < 3:  # The other thresholds make room.
                begin[at + 1 : 3] = np.maximum(begin[at + 1 : 3], begin[at] + 0.01 * np.arange(1, 3 - at))
                begin[:at] = np.minimum(begin[:at], begin[at] - 0.01)
            limits: Any = {"xatol": 1e-9, "fatol": 1e-10, "maxiter": 9_000, "maxfev": 9_000}
            found = optimize.minimize(loss, begin[others], method="Nelder-Mead", options=limits)
            assert 2 * (top + found.fun) == pytest.approx(special.ndtri(0.975) ** 2, abs=1e-5), (at, side)


def test_a_larger_model_is_tested_against_a_smaller_one() -> None:
    y = codes("logit")
    small, large = sf.GLM("ordinal").fit(X[:, :2], y), sf.GLM("ordinal").fit(X, y)
    test = small.likelihood_ratio_test(large)
    assert test.statistic == pytest.approx(2 * (large.log_likelihood_ - small.log_likelihood_), rel=1e-9)
    assert test.df == 1
    assert test.p_value == pytest.approx(special.chdtrc(1, test.statistic), rel=1e-12)


# -- data --------------------------------------------------------------------------------------------------------------


def test_the_order_of_labels_is_known_or_asked_for() -> None:
    pd, pl, pa = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    labels = ["low", "middle", "high", "top"]
    y = np.array(labels)[codes("logit")]
    told = sf.GLM("ordinal", states=labels).fit(X, y)
    kept = pd.Categorical(y, categories=labels, ordered=True)
    enum = pl.Series(y, dtype=pl.Enum(labels))
    arrow = pa.DictionaryArray.from_arrays(codes("logit").astype(np.int32), labels, ordered=True)
    for column in (kept, pd.Series(kept), enum, arrow):
        np.testing.assert_array_equal(sf.GLM("ordinal").fit(X, column).parameters_, told.parameters_)
    np.testing.assert_array_equal(sf.GLM("ordinal").fit(X, codes("logit")).parameters_, told.parameters_)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=kept)
    np.testing.assert_array_equal(sf.GLM("ordinal").fit(frame, y="y").parameters_, told.parameters_)
    for column in (y, y.tolist(), pd.Categorical(y, categories=labels), pl.Series(y)):
        with pytest.raises(sf.DataError, match=r"order of the labels .* is not known. Give states="):
            sf.GLM("ordinal").fit(X, column)
    with pytest.raises(sf.SufficeError, match="top"):
        sf.GLM("ordinal", states=labels[:3]).fit(X, y)


def test_sparse_dense_factors_and_formula_agree() -> None:
    pytest.importorskip("formulaic")
    pd = pytest.importorskip("pandas")
    y = codes("logit")
    level = np.random.default_rng(4).integers(0, 3, N)
    frame = pd.DataFrame({"a": X[:, 0], "g": np.array(["u", "v", "w"])[level], "y": y})
    indicators = np.column_stack([X[:, 0], level == 1, level == 2]).astype(float)
    dense = sf.GLM("ordinal").fit(indicators, y)
    thin = sf.GLM("ordinal").fit(sparse.csr_array(indicators), y)
    coded = sf.GLM("ordinal").fit(frame, y="y")
    formula = sf.GLM("ordinal", formula="y ~ a + g").fit(frame)
    for other in (thin, coded, formula):
        np.testing.assert_allclose(other.parameters_, dense.parameters_, rtol=1e-9)
        np.testing.assert_allclose(other.standard_errors_, dense.standard_errors_, rtol=1e-9)
    assert coded.coefficients_.names == ("a", "g[v]", "g[w]")  # The first level is the reference: no intercept is lost.
    np.testing.assert_allclose(formula.predict_proba(frame), coded.predict_proba(frame), rtol=1e-9)
    with pytest.raises(sf.UnknownStateError, match="'z'"):
        coded.predict(frame.assign(g="z"))
    assert sf.GLM("ordinal", unknown="pool").fit(frame, y="y").predict_proba(frame.assign(g="z")).shape == (N, 4)


def test_a_factor_of_many_levels_has_its_own_block() -> None:
    rng = np.random.default_rng(0)
    level, y = rng.integers(0, 70, 900), rng.integers(0, 3, 900)
    prior = sf.Normal(variance=1.0)
    model = sf.GLM("ordinal", prior=prior, categorical=["level"]).fit({"a": rng.normal(size=900), "level": level}, y)
    rng = np.random.default_rng(0)
    rng.integers(0, 70, 900), rng.integers(0, 3, 900)
    columns = np.column_stack([rng.normal(size=900), level[:, None] == np.arange(1, 70)]).astype(float)
    plain = sf.GLM("ordinal", prior=prior).fit(columns, y)
    assert model.fitted_.information.levels is not None
    np.testing.assert_allclose(model.parameters_, plain.parameters_, atol=1e-9)
    np.testing.assert_allclose(model.standard_errors_, plain.standard_errors_, rtol=1e-9)


def test_files_in_batches_give_the_fit_of_the_rows(tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    labels = ["low", "middle", "high", "top"]
    y, weight = codes("logit"), np.arange(N) % 3
    names = dict(zip("abc", X.T, strict=True))
    table = {**names, "g": np.array(["u", "v"])[y % 2 ^ (np.arange(N) % 5 > 0)], "w": weight.astype(float)}
    pq.write_table(pa.table({**table, "y": y, "o": X[:, 0]}), tmp_path / "codes.parquet", row_group_size=50)
    pq.write_table(pa.table({**table, "y": np.array(labels)[y], "o": X[:, 0]}), tmp_path / "text.parquet")
    inside = sf.GLM("ordinal").fit({**table, "o": X[:, 0], "y": y}, "y", "w", offset="o")
    file = sf.GLM("ordinal").fit(tmp_path / "codes.parquet", "y", "w", offset="o")
    text = sf.GLM("ordinal", states=labels).fit(tmp_path / "text.parquet", "y", "w", offset="o")
    for other in (file, text):
        np.testing.assert_allclose(other.parameters_, inside.parameters_, rtol=1e-8)
        assert other.null_deviance_ == pytest.approx(inside.null_deviance_, rel=1e-10)
        assert other.report_.certificate.exists is True
    assert text.score(tmp_path / "text.parquet", "y", "w", offset="o") == pytest.approx(
        inside.score({**table, "y": y, "o": X[:, 0]}, "y", "w", offset="o"), rel=1e-10
    )
    with pytest.raises(sf.DataError, match="Give states="):
        sf.GLM("ordinal").fit(tmp_path / "text.parquet", "y", "w", offset="o")


@pytest.mark.parametrize("ending", [".json", ".suffice"])
def test_saved_and_loaded(tmp_path: Path, ending: str) -> None:
    y = np.array(["low", "middle", "high", "top"])[codes("cloglog")]
    options = {"link": "cloglog", "states": ["low", "middle", "high", "top"], "prior": sf.Normal(variance=2.0)}
    model = sf.GLM("ordinal", **options).fit(X, y)  # type: ignore[arg-type]
    model.write(tmp_path / f"model{ending}")
    again: Any = sf.read(tmp_path / f"model{ending}")
    np.testing.assert_array_equal(again.parameters_, model.parameters_)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_allclose(again.standard_errors_, model.standard_errors_, rtol=1e-12)
    assert again.classes_.tolist() == model.classes_.tolist()
    assert str(again.summary()) == str(model.summary())
    assert again.get_params()["states"] == ["low", "middle", "high", "top"]
    assert model.clone().fit(X, y).log_likelihood_ == model.log_likelihood_
    law = again.posterior_
    np.testing.assert_array_equal(law.mean_, model.parameters_)


def test_an_interrupted_fit_goes_on(tmp_path: Path) -> None:
    y = codes("logit")
    path = tmp_path / "fit.json"
    with pytest.warns(sf.ConvergenceWarning):
        part = sf.GLM("ordinal", max_iter=2, checkpoint=path).fit(X, y)
    assert not part.converged_
    assert path.exists()
    whole = sf.GLM("ordinal", checkpoint=path).fit(X, y)
    assert whole.converged_
    assert not path.exists()
    np.testing.assert_allclose(whole.parameters_, sf.GLM("ordinal").fit(X, y).parameters_, atol=1e-9)


def test_start_and_iterates() -> None:
    y = codes("logit")
    model = sf.GLM("ordinal", keep_iterates=True).fit(X, y)
    shares = np.bincount(y).cumsum()[:-1] / N
    np.testing.assert_allclose(model.iterates_[0], [*special.logit(shares), 0, 0, 0], rtol=1e-12)
    np.testing.assert_array_equal(model.iterates_[-1], model.parameters_)
    assert sf.GLM("ordinal", start=model.parameters_).fit(X, y).n_iter_ == 0
    with pytest.raises(sf.EstimateError, match="6 parameters: the 3 thresholds"):
        sf.GLM("ordinal", start=np.zeros(4)).fit(X, y)
    with pytest.raises(sf.EstimateError, match="expected increasing"):
        sf.GLM("ordinal", start=np.zeros(6)).fit(X, y)


# -- priors ------------------------------------------------------------------------------------------------------------


def test_a_full_covariance_and_a_laplace_prior() -> None:
    y = codes("logit")
    covariance = np.array([[1.0, 0.3, 0.0], [0.3, 0.5, 0.1], [0.0, 0.1, 0.4]])
    model = sf.GLM("ordinal", prior=sf.MultivariateNormal(np.array([0.1, 0.0, 0.2]), covariance)).fit(X, y)

    def loss(p: Any) -> float:
        away = p[3:] - [0.1, 0.0, 0.2]
        return float(0.5 * away @ np.linalg.solve(covariance, away)) - log_likelihood("logit", p, y)

    limits: Any = {"xatol": 1e-9, "fatol": 1e-11, "maxiter": 20_000, "maxfev": 20_000}
    found = optimize.minimize(loss, np.asarray(model.parameters_) + 0.01, method="Nelder-Mead", options=limits)
    np.testing.assert_allclose(model.parameters_, found.x, atol=2e-7)
    for solver in ("cd", "lbfgs"):
        lasso = sf.GLM("ordinal", solver=solver, prior=sf.Laplace(scale=1 / 30.0)).fit(X, y)
        at = np.asarray(lasso.parameters_)
        slope = optimize.approx_fprime(at, partial(log_likelihood, "logit", y=y), 1e-7)
        np.testing.assert_allclose(slope[:3], 0.0, atol=2e-3)
        zero = at[3:] == 0.0
        assert zero.any()
        assert not zero.all()
        assert (np.abs(slope[3:][zero]) <= 30.0 + 1e-2).all()
        np.testing.assert_allclose(slope[3:][~zero], 30.0 * np.sign(at[3:][~zero]), atol=2e-2)


# -- what cannot be fitted ---------------------------------------------------------------------------------------------


def test_a_label_without_rows_is_named() -> None:
    y = codes("logit")
    with pytest.raises(sf.EstimateError, match=r"No row has the class 9 of the ordered labels"):
        sf.GLM("ordinal", states=[0, 1, 9, 2, 3]).fit(X, y)
    weights = (y != 2).astype(float)
    with pytest.raises(sf.EstimateError, match="No row has the class 2 "):
        sf.GLM("ordinal", prior=sf.Normal(variance=1.0)).fit(X, y, weights)
    with pytest.raises(sf.EstimateError, match="single label"):
        sf.GLM("ordinal").fit(X, np.ones(N, dtype=int))
    with pytest.raises(sf.EstimateError, match="at most 1,000"):
        sf.GLM("ordinal").fit(np.arange(1_200.0)[:, None], np.arange(1_200))


@pytest.mark.parametrize("link", list(LOWER))
def test_complete_separation_is_found_and_a_prior_makes_it_finite(link: Any) -> None:
    x = np.arange(12.0)[:, None]
    y = np.repeat([0, 1, 2], 4)
    model = sf.GLM("ordinal", link=link, max_iter=50).fit(x, y)
    assert model.separated_
    assert model.log_likelihood_ == pytest.approx(0.0, abs=1e-12)
    assert model.coefficients_["x0"] == np.inf
    assert any("x0 to +infinity" in one for one in model.report_.certificate.directions)
    np.testing.assert_array_equal(model.predict(x, kind="class"), y)
    assert model.score(x, y) == pytest.approx(0.0, abs=1e-12)
    assert "separated" in str(model.summary())
    held = sf.GLM("ordinal", link=link, prior=sf.Normal(variance=1.0)).fit(x, y)
    assert np.isfinite(np.asarray(held.parameters_)).all()
    assert not held.separated_


def test_partial_separation_keeps_what_the_other_rows_say() -> None:
    """The top label occurs where the indicator is 1, and always there; the two others are a logistic regression."""
    rng = np.random.default_rng(8)
    x = rng.normal(size=200)
    y = (x + rng.logistic(size=200) > 0).astype(int)
    top = np.arange(200) % 5 == 0
    y[top] = 2
    model = sf.GLM("ordinal").fit(np.column_stack([x, top]).astype(float), y)
    assert model.separated_
    assert model.coefficients_["x1"] == np.inf
    rest = sf.GLM("binomial").fit(x[~top, None], y[~top])
    assert model.log_likelihood_ == pytest.approx(rest.log_likelihood_, abs=1e-9)
    assert model.coefficients_["x0"] == pytest.approx(rest.coefficients_["x0"], abs=1e-7)
    assert model.thresholds_["0|1"] == pytest.approx(-rest.intercept_, abs=1e-7)
    rows = np.column_stack([x, top]).astype(float)
    np.testing.assert_allclose(model.predict_proba(rows)[top], np.tile([0.0, 0.0, 1.0], (top.sum(), 1)), atol=1e-12)
    np.testing.assert_allclose(model.predict_proba(rows)[~top, 1], rest.predict_proba(x[~top, None])[:, 1], atol=1e-8)
    assert len(y) * model.score(rows, y) == pytest.approx(model.log_likelihood_, abs=1e-8)


def test_columns_that_say_the_same_are_named_or_dropped() -> None:
    y = codes("logit")
    twice = np.column_stack([X, X[:, 0] - X[:, 1]])
    with pytest.raises(sf.EstimateError, match="x3"):
        sf.GLM("ordinal").fit(twice, y)
    with pytest.raises(sf.EstimateError, match="x1"):  # The thresholds are the constant.
        sf.GLM("ordinal").fit(np.column_stack([X[:, 0], np.full(N, 2.0)]), y)
    plain = sf.GLM("ordinal").fit(X, y)
    dropped = sf.GLM("ordinal", collinear="drop").fit(twice, y)
    np.testing.assert_allclose(dropped.parameters_, [*plain.parameters_, 0.0], atol=1e-9)
    np.testing.assert_allclose(dropped.standard_errors_, [*plain.standard_errors_, np.nan], rtol=1e-8)
    assert dropped.n_params_ == 6
    assert dropped.summary() is not None
    with pytest.raises(sf.EstimateError, match="5 rows for"):
        sf.GLM("ordinal").fit(np.random.default_rng(0).normal(size=(5, 8)), [0, 1, 2, 0, 1])


def test_far_tails_keep_their_digits() -> None:
    """A label that lies between two thresholds far out: the probability comes from the tail that holds it."""
    log_density: dict[str, Any] = {
        "logit": lambda x: -x - 2 * np.logaddexp(0.0, -x),
        "probit": lambda x: -0.5 * x**2 - 0.5 * np.log(2 * np.pi),
        "cloglog": lambda x: x - np.exp(x),
        "loglog": lambda x: -x - np.exp(-x),
    }
    for link, log_f in log_density.items():
        for below, above in ((-5.0, -4.75), (3.0, 3.25), (-0.1, 0.1), (-4.0, 2.0), (1.0, 1.0 + 2**-20), (5.0, 5.1)):
            peak = log_f(np.linspace(below, above, 500)).max()
            points = np.linspace(below, above, 40)
            parts = [
                integrate.quad(lambda x, f=log_f, top=peak: np.exp(f(x) - top), *ends, epsrel=1e-13)[0]
                for ends in pairwise(points)
            ]
            found = log_between(LINKS[link], np.array([above]), np.array([below]))[0]
            assert found == pytest.approx(np.log(sum(parts)) + peak, rel=1e-9), (link, below)
    assert log_between(LINKS["probit"], np.array([1.0]), np.array([1.0]))[0] == -np.inf
    for link in LOWER:  # Ends that touch, or nearly, are outside the model, with slopes that are numbers.
        value, slopes, second = CumulativeDistribution(LINKS[link])(np.array([0.0, 0.0]), np.array([0.0, -1e-200]))
        np.testing.assert_array_equal(value, -np.inf)
        assert np.isfinite([*slopes, *second]).all()


def test_what_is_not_offered_is_said() -> None:
    y = codes("logit")
    model = sf.GLM("ordinal").fit(X, y)
    for ask in (
        lambda: model.residuals(X, y),
        lambda: model.leverage(X, y),
        lambda: model.predict(X, interval=0.9),
        lambda: sf.GLM("ordinal").partial_fit(X, y),
        lambda: sf.GLM("ordinal", link="log").fit(X, y),
        lambda: sf.GLM("ordinal", fit_intercept=False).fit(X, y),
        lambda: sf.GLM("ordinal", penalize_intercept=True, prior=sf.Normal(variance=1.0)).fit(X, y),
        lambda: sf.GLM("ordinal", reference=1).fit(X, y),
        lambda: sf.GLM("ordinal", prior=sf.NormalInverseGamma(1.0, 1.0, 0.0, 1.0)).fit(X, y),
        lambda: sf.GLM("ordinal").fit(X, y, trials=np.ones(N)),
        lambda: sf.GLM("ordinal").fit(X, y, exposure=np.ones(N)),
        lambda: sf.GLM("poisson", states=[0, 1]),
        lambda: sf.GLM(sf.Categorical(states=["a", "b"]), states=["a", "b"]),
    ):
        with pytest.raises(sf.OptionError):
            ask()
    with pytest.raises(sf.NotFittedError, match="no thresholds"):
        _ = sf.GLM("poisson").fit(X, y).thresholds_
    rows = {"a": (y > 1).astype(int).tolist(), "y": y.tolist()}
    with pytest.raises(sf.OptionError, match="ordered labels"):
        sf.BayesianNetwork([("a", "y")], nodes={"y": sf.GLM("ordinal")}).fit(rows)


def test_states_may_be_given_to_the_model_of_any_labels() -> None:
    y = np.array(["no", "yes"])[(codes("logit") > 1).astype(int)]
    flipped = sf.GLM("binomial", states=["yes", "no"]).fit(X, y)
    own = sf.GLM(sf.Bernoulli(states=["yes", "no"])).fit(X, y)
    np.testing.assert_array_equal(flipped.parameters_, own.parameters_)
    three = np.array(["a", "b", "c"])[codes("logit") % 3]
    assert sf.GLM("multinomial", states=["c", "b", "a"]).fit(X, three).classes_.tolist() == ["c", "b", "a"]
