"""Columns made of every row come back in the order of the rows, from any source, also by whole sequences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from suffice.domain import Domain, Variable
from suffice.errors import DataError, UnknownStateError
from suffice.sources import mapped, open_source, shards, stream
from suffice.sources.base import Batch, Progress

ROWS = 2000
DOMAIN = Domain([Variable.discrete("s", ["a", "b", "c"], "seen"), Variable("x", "real")])


@dataclass(frozen=True)
class Running:
    """The state of each row, and the running sum of a column in its sequence."""

    def __call__(self, batch: Batch) -> Mapping[str, Any]:
        bounds = [0, batch.rows] if batch.offsets is None else batch.offsets
        sums = [np.cumsum(batch.reals[0][i:j]) for i, j in pairwise(bounds)]
        return {"state": np.array(["a", "b", "c"])[batch.codes[0]], "sum": np.concatenate(sums)}


def short(batch: Batch) -> Mapping[str, Any]:
    """One value too few."""
    return {"one": batch.reals[0][1:]}


def frame() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    x = rng.integers(0, 100, ROWS).astype(float)
    return pd.DataFrame({"g": rng.integers(0, 200, ROWS), "s": np.array(list("abc"))[rng.integers(0, 3, ROWS)], "x": x})


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(stream, "BATCH_ROWS", 100)
    monkeypatch.setattr(shards, "SHARD_BYTES", 5_000)
    frame().to_parquet(tmp_path / "rows.parquet", row_group_size=100)
    return str(tmp_path / "rows.parquet")


def test_rows_keep_their_order(path: str, tmp_path: Path) -> None:
    for data in (frame(), path, pl.scan_parquet(path), duckdb.from_parquet(path)):
        table = pa.Table.from_batches(open_source(data).map(Running(), DOMAIN))
        assert table["state"].to_pylist() == frame()["s"].tolist()
    batches = open_source(path).map(Running(), DOMAIN)
    assert sum(1 for _ in batches) > 5


def noted(calls: list[int]) -> Progress:
    """Progress that keeps the rows done."""
    return lambda done, total: calls.append(done)


@pytest.mark.parametrize("threads", [1, 2])
def test_sequences_come_back_as_rows_of_the_table(path: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapped, "RANGE_ROWS", 300)
    expected = frame().groupby("g")["x"].cumsum().tolist()
    for data in (frame(), path):
        calls: list[int] = []
        source = open_source(data)
        batches = source.map(Running(), DOMAIN, group="g", threads=threads, progress=noted(calls))
        table = pa.Table.from_batches(batches)
        assert table["sum"].to_pylist() == expected
        assert table["state"].to_pylist() == frame()["s"].tolist()
        assert calls[-1] == ROWS
        assert source.passes == 1


def test_a_file_is_there_when_it_is_whole(path: str, tmp_path: Path) -> None:
    target = tmp_path / "answers.parquet"
    assert open_source(path).map(Running(), DOMAIN, group="g", path=target) == str(target)
    assert pq.read_table(target)["sum"].to_pylist() == frame().groupby("g")["x"].cumsum().tolist()
    target.unlink()
    with pytest.raises(DataError, match="gives one a row"):
        open_source(path).map(short, DOMAIN, path=target)
    assert list(tmp_path.glob("answers*")) == []


def test_states_are_closed(path: str) -> None:
    known = Domain([Variable.discrete("s", ["a", "b"], "seen"), Variable("x", "real")])
    row = int(np.argmax(frame()["s"] == "c"))
    with pytest.raises(UnknownStateError, match=rf"'c' \(str\) \(row {row}\)"):
        list(open_source(path).map(Running(), known))
