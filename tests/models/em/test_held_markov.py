"""Markov networks with missing values and hidden variables, learned where their rows are: as from rows in memory."""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import duckdb
import numpy as np
import pandas as pd
import pytest

import suffice as sf
from suffice.models.em import held_rows
from suffice.sources import shards as shards_of_batches
from suffice.sources import stream

pytestmark = pytest.mark.filterwarnings("ignore::suffice.errors.SufficeWarning")

CYCLE = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]
MODELS: dict[str, tuple[Any, dict[str, Any]]] = {
    "missing values": (CYCLE, {}),
    "a prior": (CYCLE, {"prior": sf.Normal(variance=4.0)}),
    "features": ([sf.Feature([("a", "b"), ("b", "c"), ("c", "d")], lambda u, v: u == v), ("a",)], {}),
    "hidden": ([("h", "a"), ("h", "b"), ("h", "c")], {"hidden": {"h": 2}, "n_init": 2}),
    "along the slope": (CYCLE, {"acceleration": "lbfgs"}),
}


def table(rows: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(8)
    a = rng.integers(0, 3, rows)
    codes: dict[str, np.ndarray] = {"a": a, "b": (a + (rng.random(rows) < 0.4)) % 3, "c": rng.integers(0, 2, rows)}
    codes["d"] = (codes["a"] > 0) ^ (codes["c"] > 0) ^ (rng.random(rows) < 0.2)
    frame = pd.DataFrame({name: np.array(["u", "v", "w"])[column.astype(int)] for name, column in codes.items()})
    for name in frame.columns:
        frame.loc[rng.random(rows) < 0.1, name] = None
    return frame


@pytest.fixture(scope="module")
def parquet(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    table().to_parquet(path, row_group_size=50)
    return str(path)


@pytest.fixture
def shards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several small shards, and no distinct rows that are few enough to be brought together."""
    monkeypatch.setattr(held_rows, "FEW_NUMBERS", 0)
    monkeypatch.setattr(held_rows, "BLOCK_ROWS", 60)
    monkeypatch.setattr(shards_of_batches, "SHARD_BYTES", 1)
    monkeypatch.setattr(stream, "BATCH_ROWS", 100)


def network(kind: str, **more: Any) -> sf.MarkovNetwork:
    terms, options = MODELS[kind]
    return sf.MarkovNetwork(terms, **{"max_iter": 12, **options, **more})


@pytest.mark.usefixtures("shards")
@pytest.mark.parametrize("kind", MODELS)
def test_a_network_learned_where_its_rows_are_is_that_of_rows_in_memory(kind: str, parquet: str) -> None:
    frame = pd.read_parquet(parquet)
    there = network(kind).fit(frame)
    sources = {
        "Parquet": parquet,
        "DuckDB": duckdb.sql(f"select * from '{parquet}'"),
        "Dask": dd.from_pandas(frame, npartitions=4),
    }
    for name, data in sources.items():
        here = network(kind).fit(data)
        np.testing.assert_allclose(here.weights_, there.weights_, rtol=1e-10, atol=1e-10, err_msg=name)
        np.testing.assert_allclose(here.history_, there.history_, rtol=1e-10, err_msg=name)
        mine, theirs = here.report_, there.report_
        assert mine.log_likelihood == pytest.approx(theirs.log_likelihood, rel=1e-10)
        assert mine.certificate.moment_gap == pytest.approx(theirs.certificate.moment_gap, rel=1e-4, abs=1e-8)
        assert mine.n_params == theirs.n_params
        assert here.score(data) == pytest.approx(there.score(frame), rel=1e-12)
        assert any(re.search("over [2-9] shards; the rows stayed", note) for note in mine.warnings)


@pytest.mark.usefixtures("shards")
def test_errors_are_those_of_rows_in_memory_and_the_rows_are_let_go(parquet: str) -> None:
    there = network("a prior", max_iter=500).fit(pd.read_parquet(parquet))
    here = network("a prior", max_iter=500).fit(parquet)
    np.testing.assert_allclose(here.standard_errors_, there.standard_errors_, rtol=1e-6)
    np.testing.assert_allclose(pickle.loads(pickle.dumps(here)).standard_errors_, here.standard_errors_)
    with pytest.raises(sf.EstimateError, match="no saturated model"):
        here.deviance_  # noqa: B018


@pytest.mark.usefixtures("shards")
def test_rows_that_stayed_elsewhere_cannot_be_joined(parquet: str, tmp_path: Path) -> None:
    net = network("missing values").fit(parquet)
    for change in (net.partial_fit, net.unlearn):
        with pytest.raises(sf.OptionError, match=r"400 rows that were learned .* stayed where they were"):
            change(table(10))
    net.write(tmp_path / "net.json")
    read = sf.read(tmp_path / "net.json")
    assert read.report_.log_likelihood == net.report_.log_likelihood
    with pytest.raises(sf.OptionError, match="stayed where they were"):
        read.standard_errors_  # noqa: B018


def test_few_distinct_rows_are_one_shard_with_the_digits_of_rows_in_memory(parquet: str) -> None:
    there = network("missing values").fit(pd.read_parquet(parquet))
    here = network("missing values").fit(parquet)
    np.testing.assert_array_equal(here.weights_, there.weights_)
    assert here.statistics_ == there.statistics_
