"""Rows on disk for predictions and scores, formulas in files, and fits that go on after an interruption."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf

pd = pytest.importorskip("pandas")

RNG = np.random.default_rng(21)
N = 900
FRAME = pd.DataFrame(
    {
        "a": RNG.normal(size=N),
        "size": RNG.random(N) + 0.5,
        "kind": RNG.integers(0, 4, N),
        "group": RNG.choice(["low", "mid", "top"], N),
        "times": RNG.integers(1, 3, N),
        "good": RNG.integers(0, 3, N),
        "bad": RNG.integers(1, 3, N),
        "class": RNG.choice(["x", "y", "z"], N),
    }
)
FRAME["count"] = RNG.poisson(FRAME["size"] * np.exp(0.3 * FRAME["a"]))
FRAME["answer"] = np.where(RNG.random(N) < 0.5, "no", "yes")


@pytest.fixture(scope="module", params=["parquet", "csv"])
def path(request: Any, tmp_path_factory: Any) -> str:
    found = tmp_path_factory.mktemp("rows") / f"rows.{request.param}"
    if request.param == "parquet":
        pytest.importorskip("pyarrow")
        FRAME.to_parquet(found, row_group_size=200)
    else:
        FRAME.to_csv(found, index=False)
    return str(found)


# -- files -------------------------------------------------------------------------------------------------------------


def test_predictions_and_scores_of_a_file_are_those_of_its_rows(path: str) -> None:
    sides = {"exposure": "size", "sample_weight": "times"}
    model = sf.GLM("poisson", categorical=["kind"]).fit(FRAME, "count", columns=["a", "kind", "group"], **sides)
    expected = model.predict(FRAME, exposure="size")
    np.testing.assert_array_equal(model.predict(path, exposure="size"), expected)
    by_hand = np.exp(model.predict(path, kind="link")) * FRAME["size"]
    np.testing.assert_allclose(expected, by_hand, rtol=1e-12)
    assert model.predict(path, exposure="size", interval=0.9).shape == (N, 3)
    assert model.score(path, "count", **sides) == pytest.approx(model.score(FRAME, "count", **sides), rel=1e-13)
    for kind in ("response", "pearson", "deviance", "working"):
        found = model.residuals(path, "count", exposure="size", kind=kind)
        np.testing.assert_array_equal(found, model.residuals(FRAME, "count", exposure="size", kind=kind))
    assert model.leverage(path, "count", **sides).sum() == pytest.approx(model.n_params_, rel=1e-7)


def test_responses_of_every_kind_in_a_file(path: str) -> None:
    columns = ["a", "group"]
    answer = sf.GLM("binomial").fit(path, "answer", columns=columns)
    assert answer.score(path, "answer") == pytest.approx(answer.report_.log_likelihood / N, rel=1e-12)
    assert (answer.predict(path, kind="class") == answer.predict(FRAME, kind="class")).all()
    np.testing.assert_allclose(answer.predict_proba(path).sum(axis=1), 1.0, rtol=1e-14)
    trials = sf.GLM("binomial").fit(path, ("good", "bad"), columns=columns)
    assert trials.score(path, ("good", "bad")) == pytest.approx(trials.report_.log_likelihood / N, rel=1e-12)
    labels = sf.GLM("multinomial").fit(path, "class", columns=columns)
    assert labels.score(path, "class") == pytest.approx(labels.report_.log_likelihood / N, rel=1e-12)


def test_levels_never_seen_in_a_file(path: str) -> None:
    known = FRAME[FRAME["group"] != "top"]
    strict = sf.GLM("poisson").fit(known, "count", columns=["a", "group"])
    with pytest.raises(sf.UnknownStateError, match="'top'"):
        strict.predict(path)
    pooled = sf.GLM("poisson", unknown="pool").fit(known, "count", columns=["a", "group"])
    np.testing.assert_array_equal(pooled.predict(path), pooled.predict(FRAME))


def test_arrays_beside_a_file_are_refused(path: str) -> None:
    model = sf.GLM("poisson").fit(FRAME, "count", columns=["a"])
    with pytest.raises(sf.DataError, match="names of columns"):
        model.score(path, FRAME["count"])
    with pytest.raises(sf.DataError, match="no response"):
        model.score(path)


def test_profile_intervals_from_a_file(path: str) -> None:
    model = sf.GLM("poisson").fit(FRAME, "count", columns=["a"])
    found = model.intervals(method="profile", X=path, y="count", columns=["a"])
    np.testing.assert_allclose(found, model.intervals(method="profile", X=FRAME, y="count", columns=["a"]), rtol=1e-7)


# -- formulas ----------------------------------------------------------------------------------------------------------

FORMULAS = [
    "count ~ a",
    "count ~ center(a) + C(group, contr.treatment('mid'))",
    "count ~ 0 + a*group + np.log(size)",
    "count ~ scale(a) + bs(size, df=4) + C(group, contr.sum)",
    "count ~ poly(a, 2) + I(size**2) + {a + size}",
]


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("ending", [".json", ".suffice"])
def test_a_formula_survives_a_file(formula: Any, ending: str, tmp_path: Path, path: str) -> None:
    pytest.importorskip("formulaic")
    collinear = "drop" if "{" in formula else "raise"
    model = sf.GLM("poisson", formula=formula, collinear=collinear).fit(FRAME)  # type: ignore[arg-type]
    model.write(tmp_path / f"model{ending}")
    again: Any = sf.read(tmp_path / f"model{ending}")
    some = FRAME[FRAME["group"] != "low"].head(7)  # Neither all levels nor the mean of the fit are in these rows.
    np.testing.assert_array_equal(again.predict(some), model.predict(some))
    np.testing.assert_array_equal(again.predict({name: some[name] for name in some}), model.predict(some))
    np.testing.assert_allclose(again.predict(path), model.predict(FRAME), rtol=1e-12)
    assert again.score(FRAME, FRAME["count"]) == model.score(FRAME, FRAME["count"])


def test_a_level_that_a_formula_never_saw_is_an_error() -> None:
    pytest.importorskip("formulaic")
    model = sf.GLM("poisson", formula="count ~ a + group").fit(FRAME)
    with pytest.raises(sf.UnknownStateError, match="has not seen"):
        model.predict(FRAME.head(3).assign(group="new"))
    with pytest.raises(sf.DataError, match=r"Column .a. has a missing value in row 1"):
        model.predict(FRAME.head(3).assign(a=[1.0, np.nan, 2.0]))


@pytest.mark.parametrize(
    "term", ["I(__import__('os').getpid())", "I(a.__class__)", "I(open('x'))", "I(np.load('x'))", "a} + {a"]
)
def test_a_file_whose_formula_would_run_code_is_refused(term: str, tmp_path: Path) -> None:
    pytest.importorskip("formulaic")
    file = tmp_path / "model.json"
    sf.GLM("poisson", formula="count ~ I(a ** 2)").fit(FRAME).write(file)
    text = file.read_text()
    assert "I(a ** 2)" in text
    file.write_text(text.replace("I(a ** 2)", term))
    with pytest.raises(sf.FileFormatError, match="term"):
        sf.read(file)


# -- checkpoints -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["irls", "lbfgs", "newton-cg"])
@pytest.mark.parametrize("family", ["poisson", "gamma", "negative_binomial", "multinomial"])
def test_an_interrupted_fit_goes_on_from_its_checkpoint(family: Any, solver: str, tmp_path: Path) -> None:
    file = tmp_path / "fit.json"
    X = FRAME[["a", "size"]].to_numpy()
    y = FRAME["count"] + 1.0 if family == "gamma" else FRAME["count"] % 3 if family == "multinomial" else FRAME["count"]
    options: dict[str, Any] = {"solver": solver, "link": "log" if family == "gamma" else None}
    broken = sf.GLM(family, checkpoint=file, callback=lambda state: state.iteration >= 2, **options).fit(X, y)
    assert not broken.converged_
    assert file.exists()
    whole = sf.GLM(family, **options).fit(X, y)
    again = sf.GLM(family, checkpoint=file, **options).fit(X, y)
    assert again.converged_
    assert not file.exists()
    np.testing.assert_allclose(again.parameters_, whole.parameters_, atol=1e-6)


@pytest.mark.parametrize("family", ["poisson", "multinomial", "ordinal"])
def test_an_interrupted_fit_by_lbfgs_goes_on_to_the_same_digits(family: Any, path: Any, tmp_path: Path) -> None:
    y = {"poisson": "count", "multinomial": "class", "ordinal": "kind"}[family]
    columns = ["a", "size", "group"]
    options: dict[str, Any] = {"solver": "lbfgs", "tolerance": 1e-7}
    whole = sf.GLM(family, **options).fit(path, y, columns=columns)
    file = tmp_path / "fit.suffice"
    broken = sf.GLM(family, checkpoint=file, callback=lambda state: state.iteration >= 4, **options)
    assert not broken.fit(path, y, columns=columns).converged_
    again = sf.GLM(family, checkpoint=file, **options).fit(path, y, columns=columns)
    np.testing.assert_array_equal(again.parameters_, whole.parameters_)
    assert again.report_.iterations == whole.report_.iterations > 4
    assert again.report_.history == whole.report_.history
    assert not file.exists()


def test_a_checkpoint_of_another_fit_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "fit.suffice"
    X = FRAME[["a", "size"]].to_numpy()
    sf.GLM("poisson", checkpoint=file, callback=lambda state: True).fit(X, FRAME["count"])
    for model, y in ((sf.GLM("poisson"), FRAME["count"] + 1), (sf.GLM("poisson", link="sqrt"), FRAME["count"])):
        with pytest.raises(sf.OptionError, match="another fit"):
            model.set_params(checkpoint=file).fit(X, y)


def test_truths_of_a_csv_file_are_numbers(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    frame = pd.DataFrame({"x": rng.normal(size=50), "flag": rng.random(50) < 0.4})
    frame["y"] = frame["x"] + frame["flag"] + rng.normal(size=50)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    model, expected = sf.GLM().fit(str(tmp_path / "rows.csv"), y="y"), sf.GLM().fit(frame, y="y")
    assert model.parameters_.names == expected.parameters_.names == ("intercept", "x", "flag")
    np.testing.assert_allclose(model.parameters_, expected.parameters_, rtol=1e-12)
