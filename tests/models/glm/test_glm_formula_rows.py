"""Formulas of rows that are not in memory give the numbers and the names of the rows in memory."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
pytest.importorskip("formulaic")

N = 600


def rows() -> Any:
    rng = np.random.default_rng(8)
    a, group = rng.normal(1.0, 3.0, size=N), rng.choice(["low", "mid", "top"], N)
    frame = pd.DataFrame({"a": a, "b": rng.normal(size=N), "group": group, "whole": rng.integers(0, 4, N)})
    frame["size"], frame["flag"] = rng.random(N) + 0.5, rng.random(N) < 0.4
    frame["tier"] = pd.Categorical(rng.choice(["top", "low"], N), categories=["top", "low"])
    eta = 0.3 + 0.1 * a - 0.2 * frame["b"] + 0.4 * (group == "top")
    frame["count"], frame["positive"] = rng.poisson(np.exp(eta)), rng.gamma(2.0, np.exp(eta) / 2.0)
    frame["answer"] = np.where(rng.random(N) < 1.0 / (1.0 + np.exp(-eta)), "yes", "no")
    frame["hits"], frame["misses"] = rng.integers(0, 4, N), rng.integers(1, 4, N)
    frame["times"] = rng.integers(0, 3, N)
    # Shards hold different levels, and their means differ.
    return frame.sort_values(["group", "a"], ignore_index=True)


FRAME = rows()
CASES = [
    ("poisson", "count ~ a + group + whole + flag"),
    ("poisson", "count ~ center(a) + C(group, contr.treatment('mid')) + scale(b, ddof=0)"),
    ("poisson", "count ~ tier*a + C(whole) + np.log(size)"),
    ("poisson", "count ~ 0 + group + standardize(b) + scale(a, 1.0, 2.0) + scale(size, False)"),
    ("poisson", "count ~ 1"),
    ("gaussian", "np.log(positive) ~ C(group, contr.sum):b + I(a**2) + np.exp(scale(a)/9) + C(a > 1)"),
    ("binomial", "answer ~ group + C(flag) + {a + size}"),
    ("binomial", "hits + misses ~ C(whole, contr.poly) + b"),
    ("multinomial", "group ~ center(b)"),
]


@pytest.fixture(autouse=True)
def several_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suffice.sources.stream.BATCH_ROWS", 90)
    monkeypatch.setattr("suffice.sources.csv.BLOCK_BYTES", 8_000)
    monkeypatch.setattr("suffice.sources.shards.SHARD_BYTES", 4_000)


def opened(kind: str, folder: Path, frame: Any = FRAME) -> Any:
    if kind == "dask":
        return pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=5)
    if kind == "csv":
        frame.to_csv(folder / "rows.csv", index=False)
        return str(folder / "rows.csv")
    path = folder / "rows.parquet"
    frame.to_parquet(path, row_group_size=90)
    return str(path) if kind == "parquet" else pytest.importorskip("duckdb").sql(f"from '{path}'")


@pytest.mark.parametrize(("family", "formula"), CASES)
@pytest.mark.parametrize("kind", ["parquet", "csv", "duckdb", "dask"])
def test_a_formula_from_every_source_is_that_of_the_rows_in_memory(
    kind: str, family: Any, formula: Any, tmp_path: Path
) -> None:
    if kind in ("csv", "duckdb") and "tier" in formula:
        pytest.skip("Text has no order of categories, and DuckDB reads those of a Parquet file as text.")
    X = opened(kind, tmp_path)
    expected = sf.GLM(family, formula=formula).fit(FRAME, sample_weight="times")
    model = sf.GLM(family, formula=formula).fit(X, sample_weight="times")
    assert model.parameters_.names == expected.parameters_.names
    np.testing.assert_allclose(model.parameters_, expected.parameters_, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(model.standard_errors_, expected.standard_errors_, rtol=1e-10)
    assert model.report_.log_likelihood == pytest.approx(expected.report_.log_likelihood, rel=1e-12)
    assert model.report_.rows == N
    some = FRAME[FRAME["group"] != "low"].head(9)  # Neither all levels nor the mean of the fit are in these rows.
    np.testing.assert_allclose(
        model.predict(some, kind="response"), expected.predict(some, kind="response"), rtol=1e-10
    )
    if kind != "duckdb":  # Its rows come in no order of their own.
        there = model.predict(X, kind="response")
        there = there.compute() if kind == "dask" else there  # type: ignore[attr-defined]
        np.testing.assert_allclose(np.squeeze(there), expected.predict(FRAME, kind="response"), rtol=1e-10)


def test_a_formula_that_was_fitted_from_files_survives_one(tmp_path: Path) -> None:
    formula = "count ~ scale(a) + C(group, contr.treatment('mid'))"
    model = sf.GLM("poisson", formula=formula).fit(opened("parquet", tmp_path))
    model.write(tmp_path / "model.json")
    np.testing.assert_array_equal(sf.read(tmp_path / "model.json").predict(FRAME), model.predict(FRAME))


@pytest.mark.parametrize("kind", ["parquet", "csv", "dask"])
def test_rows_with_missing_values_are_the_error_of_rows_in_memory(kind: str, tmp_path: Path) -> None:
    holes = FRAME.copy()
    holes.loc[7, "a"], holes.loc[500, "group"] = np.nan, None
    messages = (
        "Column 'a' has a missing value in row 7",
        "2 of 600 rows have missing values in the columns of the form",
    )
    for X, message in zip((holes, opened(kind, tmp_path, holes)), messages, strict=True):
        with pytest.raises(sf.MissingValueError, match=message):
            sf.GLM("poisson", formula="count ~ a + group").fit(X)


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        ("count ~ bs(a, df=4)", "transform 'bs' of the formula's term .* needs all rows at once"),
        ("count ~ poly(a, 2)", "transform 'poly'"),
        ("count ~ np.exp(cr(a, df=4))", "transform 'cr'"),
        ("count ~ lag(a)", "transform 'lag'"),
        ("count ~ scale(center(a))", "transform 'center' within another"),
        ("count ~ I(a - a.mean())", "number by number"),
        ("count ~ np.mean(a)", "number by number"),
        ("count ~ nowhere", "names 'nowhere', and there is no such column"),
        ("count ~ a +", "cannot be read"),
        ("count + whole ~ a", "2 columns, 'count', 'whole'; the poisson family takes one"),
        ("group ~ a", r"3 columns, 'group\[low\]'"),
    ],
)
def test_what_one_pass_cannot_learn_is_refused_by_name(formula: str, words: str, tmp_path: Path) -> None:
    with pytest.raises((sf.DataError, sf.OptionError), match=words):
        sf.GLM("poisson", formula=formula).fit(opened("parquet", tmp_path))
