"""A regression with a Gaussian response is learned from merged moments as from all rows."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import suffice as sf
from suffice.statistics import Moments

RNG = np.random.default_rng(11)
ROWS = 240
FRAME = pd.DataFrame(
    {
        "dose": RNG.normal(50.0, 3.0, ROWS),
        "ward": RNG.choice(["north", "south", "west"], ROWS),
        "age": RNG.integers(20, 60, ROWS),
        "sex": RNG.choice(["f", "m"], ROWS),
        "n": RNG.integers(1, 4, ROWS),
    }
)
FRAME["y"] = 2.0 + 0.4 * FRAME.dose - 0.1 * FRAME.age + 1.5 * (FRAME.ward == "west") + RNG.normal(size=ROWS)
FIGURES = ("dispersion_", "log_likelihood_", "deviance_", "null_deviance_", "df_resid_", "bic_")


def merged(columns: list[str], weight: str | None = None, **options: Any) -> sf.Summary:
    """Two sites, of which neither has met all wards."""
    sites = (FRAME[FRAME.ward == "west"], FRAME[FRAME.ward != "west"])
    model = sf.GLM("gaussian", **options)
    return sum(sf.summarize(model, site, sample_weight=weight, y="y", columns=columns) for site in sites)  # type: ignore[return-value]


def design(columns: list[str], *, constant: bool) -> NDArray[Any]:
    """Indicators by pandas."""
    matrix = pd.get_dummies(FRAME[columns], drop_first=True, dtype=float)
    return np.column_stack([np.ones(ROWS), matrix]) if constant else matrix.to_numpy(float)


@pytest.mark.parametrize("weight", [None, "n"])
@pytest.mark.parametrize(
    ("columns", "constant"),
    [(["dose", "age"], True), (["dose", "age"], False), (["dose", "age", "ward", "sex"], True), (["ward"], True)],
)
def test_merged_moments_have_the_least_squares_of_all_rows(
    columns: list[str], weight: str | None, *, constant: bool
) -> None:
    model = sf.GLM("gaussian", fit_intercept=constant).fit(merged(columns, weight, fit_intercept=constant))
    w = np.ones(ROWS) if weight is None else FRAME[weight].to_numpy(float)
    x, y = design(columns, constant=constant), FRAME.y.to_numpy()
    beta = np.linalg.lstsq(np.sqrt(w)[:, None] * x, np.sqrt(w) * y, rcond=None)[0]
    left = float(w @ (y - x @ beta) ** 2)
    dispersion = left / (w.sum() - x.shape[1])
    errors = np.sqrt(dispersion * np.diagonal(np.linalg.inv(x.T @ (w[:, None] * x))))
    np.testing.assert_allclose(model.parameters_, beta, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(model.standard_errors_, errors, rtol=1e-10)
    assert model.dispersion_ == pytest.approx(dispersion, rel=1e-10)
    assert model.deviance_ == pytest.approx(left, rel=1e-10)
    likelihood = -0.5 * w.sum() * (np.log(2.0 * np.pi * left / w.sum()) + 1.0)
    assert model.log_likelihood_ == pytest.approx(likelihood, rel=1e-10)
    assert (model.report_.rows, model.report_.weight, model.report_.passes) == (ROWS, w.sum(), 0)
    assert model.converged_


@pytest.mark.parametrize("prior", [None, sf.Normal(variance=0.5), sf.Laplace(scale=0.2)])
def test_it_is_the_fit_of_all_rows_whatever_the_prior(prior: Any) -> None:
    columns = ["dose", "ward", "age"]
    model = sf.GLM("gaussian", prior=prior).fit(merged(columns))
    alone = sf.GLM("gaussian", prior=prior).fit(FRAME, y="y", columns=columns)
    assert model.fitted_.parameters.names == alone.fitted_.parameters.names
    np.testing.assert_allclose(model.parameters_, alone.parameters_, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(model.standard_errors_, alone.standard_errors_, rtol=1e-10)
    for name in FIGURES:
        assert getattr(model, name) == pytest.approx(getattr(alone, name), rel=1e-10), name
    np.testing.assert_allclose(model.predict(FRAME), alone.predict(FRAME), rtol=1e-10)
    np.testing.assert_allclose(model.residuals(FRAME, "y"), alone.residuals(FRAME, "y"), atol=1e-9)
    ours, theirs = model.matched_statistics(), alone.matched_statistics()
    assert ours is not None
    assert theirs is not None
    np.testing.assert_allclose(ours.observed, theirs.observed, rtol=1e-10)


def test_summaries_travel_in_files(tmp_path: Path) -> None:
    summary = merged(["dose", "ward"])
    for name in ("moments.json", "moments.suffice"):
        summary.write(tmp_path / name)
        read = sf.read(tmp_path / name)
        assert read == summary
        np.testing.assert_array_equal(sf.GLM().fit(read).parameters_, sf.GLM().fit(summary, "y").parameters_)
    assert not summary.holds_rows
    FRAME.to_parquet(tmp_path / "rows.parquet")
    there = sf.summarize(sf.GLM(), tmp_path / "rows.parquet", y="y", columns=["dose", "ward"])
    np.testing.assert_allclose(sf.GLM().fit(there).parameters_, sf.GLM().fit(summary).parameters_, rtol=1e-10)


def test_arrays_declared_factors_and_dependent_columns() -> None:
    array = FRAME[["dose", "age", "y"]].to_numpy(float)
    model = sf.GLM().fit(sf.summarize(sf.GLM(), array, y="y", columns=["dose", "age", "y"]))
    np.testing.assert_allclose(
        model.parameters_, sf.GLM().fit(FRAME, y="y", columns=["dose", "age"]).parameters_, rtol=1e-10
    )
    declared = sf.GLM(categorical=["n"])
    fitted = declared.fit(sf.summarize(declared, FRAME, y="y", columns=["n", "dose"]))
    assert fitted.fitted_.parameters.names == ("intercept", "n[2]", "n[3]", "dose")
    with pytest.raises(sf.OptionError, match="categorical= speaks of 'n', which has numbers in the Summary"):
        declared.fit(sf.summarize(sf.GLM(), FRAME, y="y", columns=["n", "dose"]))
    twice = FRAME.assign(more=3.0 * FRAME.dose - FRAME.age)
    summary = sf.summarize(sf.GLM(), twice, y="y", columns=["dose", "age", "more"])
    with pytest.raises(sf.EstimateError, match="'more' is a combination"):
        sf.GLM().fit(summary)
    dropped = sf.GLM(collinear="drop").fit(summary)
    np.testing.assert_allclose(dropped.parameters_[:3], model.parameters_, rtol=1e-10)


def test_rare_levels_are_not_released() -> None:
    rare = pd.concat([FRAME, FRAME[:2].assign(ward="east", n=50)])
    for weight in (None, "n"):
        with pytest.raises(sf.DataError, match="1 of the 4 cells in use of 'dose', 'y', 'ward' have fewer rows"):
            sf.summarize(sf.GLM(), rare, sample_weight=weight, y="y", columns=["dose", "ward"], minimum_count=5)
    with pytest.raises(sf.DataError, match="fewer rows than minimum_count=241"):
        sf.summarize(sf.GLM(), FRAME, y="y", columns=["dose"], minimum_count=241)
    sf.summarize(sf.GLM(), FRAME, sample_weight="n", y="y", columns=["dose", "ward"], minimum_count=5)


def test_what_moments_do_not_answer_is_said() -> None:
    summary = merged(["dose", "age"])
    model = sf.GLM().fit(summary)
    for call in (model.residuals, model.leverage, model.score):
        with pytest.raises(sf.DataError, match="a Summary holds sums over rows alone: give the rows"):
            call(summary)
    refused: list[tuple[sf.GLM, str]] = [
        (sf.GLM(covariance="robust"), "robust errors are sums over residuals"),
        (sf.GLM(solver="sgd"), "goes through the rows in an order"),
        (sf.GLM("poisson"), "where the response is Gaussian"),
        (sf.GLM(link="log"), "the link the identity"),
    ]
    for other, words in refused:
        with pytest.raises(sf.OptionError, match=words):
            other.fit(summary)
    with pytest.raises(sf.OptionError, match="the response, which is 'y'; leave sample_weight= out"):
        sf.GLM().fit(summary, sample_weight=np.ones(ROWS))
    with pytest.raises(sf.OptionError, match="which is 'y'; leave y= out"):
        sf.GLM().fit(summary, "dose")
    with pytest.raises(sf.OptionError, match="partial_fit goes through rows"):
        sf.GLM().partial_fit(summary)
    with pytest.raises(sf.EstimateError, match="one of no rows"):
        sf.GLM().fit(0.0 * summary)


def test_a_response_is_named_and_belongs_to_regressions() -> None:
    with pytest.raises(sf.DataError, match="y is None; expected the column of the response"):
        sf.summarize(sf.GLM(), FRAME)
    with pytest.raises(sf.DataError, match="y is 'Series'; expected the column of the response"):
        sf.summarize(sf.GLM(), FRAME, y=FRAME.y)
    with pytest.raises(sf.OptionError, match="a formula makes others"):
        sf.summarize(sf.GLM(formula="y ~ dose"), FRAME, y="y")
    with pytest.raises(sf.OptionError, match="nothing else that is summarised"):
        sf.summarize(sf.Normal(), FRAME.dose, y="y")
    with pytest.raises(sf.OptionError, match="nothing else that is summarised"):
        sf.summarize(Moments(("dose",)), FRAME, y="y")
    for model in (sf.GLM(), sf.Normal()):
        with pytest.raises(sf.OptionError, match="states= has no effect: a "):
            sf.summarize(model, FRAME, states={"dose": "real"})
    with pytest.raises(sf.OptionError, match="group= tells sequences"):
        sf.summarize(sf.GLM(), FRAME, y="y", group="ward")
    with pytest.raises(sf.OptionError, match="no finite statistics of rows"):
        sf.summarize(sf.GLM("poisson"), FRAME, y="n")
