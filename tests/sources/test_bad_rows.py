"""A value that a model cannot use is named with its column and its row, wherever the rows are."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import suffice as sf
from suffice.choices import FamilyName

ROWS, BAD = 60, 47
SEQUENCES: dict[str, Any] = {"group": "g", "order": "t"}


def table(column: str, value: Any) -> pd.DataFrame:
    """Ten sequences of six steps, and one value that is not as the others."""
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"g": np.arange(ROWS) // 6, "t": np.arange(ROWS) % 6, "x": rng.normal(size=ROWS)})
    data["count"] = rng.poisson(1.0, ROWS).astype(float)
    data["truth"] = rng.integers(0, 2, ROWS).astype(float)
    data["label"] = np.array(["p", "q"])[rng.integers(0, 2, ROWS)]
    data["near"] = [[] for _ in range(ROWS)]
    data.loc[BAD, column] = value
    return data


def regression(family: FamilyName, y: str) -> Callable[[Any], Any]:
    return lambda rows: sf.GLM(family).fit(rows, y=y, columns=["x"])


#: The column, the bad value, the fit, the words of the error before and after its row.
CASES: dict[str, tuple[str, Any, Callable[[Any], Any], str, str]] = {
    "Poisson regression": ("count", -1.0, regression("poisson", "count"), "'count' holds -1.0", "takes counts"),
    "logistic regression": ("truth", 3.0, regression("binomial", "truth"), "'truth' holds 3.0", "expected 0 and 1"),
    "chain CRF": (
        "label",
        None,
        lambda rows: sf.ChainCRF().fit(rows, y="label", columns=["x"], **SEQUENCES),
        "'label' has a missing value",
        "every step needs a label",
    ),
    "graph CRF": (
        "label",
        None,
        lambda rows: sf.GraphCRF().fit(rows, y="label", group="g", node="t", neighbours="near", columns=["x"]),
        "'label' has a missing value",
        "every node needs a label",
    ),
    "Poisson emissions": (
        "count",
        -1.0,
        lambda rows: sf.HiddenMarkovModel(2, emission="poisson").fit(rows, columns="count", **SEQUENCES),
        "'count': -1.0",
        "is outside of the support of Poisson",
    ),
}


def written(data: pd.DataFrame, folder: Path) -> str:
    path = str(folder / "rows.parquet")
    data.to_parquet(path, row_group_size=20)
    return path


@pytest.mark.parametrize("name", CASES)
def test_of_files(name: str, tmp_path: Path) -> None:
    column, value, fit, found, expected = CASES[name]
    with pytest.raises(sf.DataError, match=rf"Column {found} \(row {BAD}\).*{expected}"):
        fit(written(table(column, value), tmp_path))


def test_of_regressions_in_memory() -> None:
    with pytest.raises(sf.DataError, match=rf"The response 'count' holds -1.0 \(row {BAD}\)"):
        regression("poisson", "count")(table("count", -1.0))


def test_emissions_raise_one_error_wherever_the_sequences_are(tmp_path: Path) -> None:
    data, fit = table("count", -1.0), CASES["Poisson emissions"][2]
    with pytest.raises(sf.DataError) as here:
        fit(data)
    with pytest.raises(sf.DataError) as there:
        fit(written(data, tmp_path))
    assert here.type is there.type
    assert str(there.value).startswith(str(here.value).replace("step", "row") + " That is row 47 of ")
    assert pickle.loads(pickle.dumps(there.value)).args == there.value.args


@pytest.mark.parametrize("name", CASES)
def test_of_partitions(name: str) -> None:
    """With the partition, whose rows are counted; where a shuffle brought sequences together, those after it."""
    frames, dask = pytest.importorskip("dask.dataframe"), pytest.importorskip("dask")
    column, value, fit, found, expected = CASES[name]
    data = table(column, value)
    with dask.config.set({"scheduler": "synchronous", "dataframe.convert-string": False}):
        rows = frames.from_map(lambda k: data.iloc[20 * k : 20 * k + 20], range(3), meta=data.iloc[:0])
        place = r"\(row \d+\)" if "CRF" in name else r"\(row 7\)"
        with pytest.raises(sf.DataError, match=rf"Column {found} {place}.*{expected}.*partition \d of a Dask"):
            fit(rows)


def test_answers_for_rows_name_the_partition() -> None:
    frames, dask = pytest.importorskip("dask.dataframe"), pytest.importorskip("dask")
    data = pd.DataFrame({"x": np.arange(60.0), "n": [1, 2, 4] * 20})
    model = sf.GLM("poisson").fit(data, y="n")
    data.loc[47, "x"] = np.nan
    with dask.config.set({"scheduler": "synchronous", "dataframe.convert-string": False}):
        rows = frames.from_map(lambda k: data.iloc[20 * k : 20 * k + 20], range(3), meta=data.iloc[:0])
        answers: tuple[Any, ...] = (model.predict(rows), model.score_samples(rows, "n"))
        for answer in answers:
            with pytest.raises(sf.MissingValueError, match=r"'x' .*\(row 7\).*partition 2 of a Dask DataFrame"):
                answer.compute()
