"""Shards that stay prepared: rounds give what one pass over all rows gives."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from suffice.domain import Domain, Variable
from suffice.errors import DataError
from suffice.sources import Source, open_source, parquet, stream
from suffice.sources.base import Batch


@dataclass(frozen=True)
class Powers:
    """Sums of a power of a column."""

    def prepare(self, batch: Batch) -> np.ndarray:
        return np.asarray(batch.reals[0].copy())

    def evaluate(self, prepared: np.ndarray, parameters: int) -> np.ndarray:
        return np.array([(prepared**parameters).sum(), len(prepared)])


def largest(prepared: np.ndarray, parameters: object) -> np.ndarray:
    """Another question to the same shards."""
    return np.array([prepared.max()])


def frame(rows: int = 1000) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    return pd.DataFrame({"x": rng.normal(size=rows), "s": np.array(["a", "b", "c"])[rng.integers(0, 3, rows)]})


def test_a_table_is_settled_by_its_labels_and_missing_values(tmp_path: Path) -> None:
    data = frame()
    data.loc[::10, "x"] = np.nan
    data.loc[990:, "s"] = "0 comes last and sorts first"
    path = tmp_path / "rows.parquet"
    data.to_parquet(path, row_group_size=100)
    for given in (data, str(path)):
        source = open_source(given)
        settled = source.settle(source.infer(["x", "s"]))
        assert settled.domain["s"].states == ("0 comes last and sorts first", "a", "b", "c")
        assert settled.rows == 1000
        assert settled.weight == 1000.0
        assert dict(settled.missing) == {"x": 100}


def test_rounds_ask_all_shards_or_some(tmp_path: Path) -> None:
    data = frame()
    path = tmp_path / "rows.parquet"
    data.to_parquet(path, row_group_size=100)
    source = open_source(str(path))
    settled = source.settle(source.infer(["x"], {"x": Variable("x", "real")}))
    with source.hold(Powers(), settled) as held:
        for power in (1, 2, 3):
            total, rows = held.sum(power)
            np.testing.assert_allclose(total, (data["x"] ** power).sum(), rtol=1e-12)
            assert rows == 1000
        assert held.rounds == 3
        first = held.sum(1, shards=[0])
        assert 0 < first[1] <= 1000
        assert held.sum(None, by=largest)[0] > 0


def declared(source: Source) -> Domain:
    variables = [Variable.discrete("s", ["c", "b", "a"]), Variable("n", "count"), Variable("x", "real")]
    return source.infer(["s", "n", "x"], {variable.name: variable for variable in variables})


def test_what_footers_say_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = frame()
    data["n"] = pd.array(np.arange(1000) % 7, dtype="Int64")
    data.loc[5::100, "n"] = pd.NA
    data.loc[::50, "s"] = None
    data.loc[3, "x"] = np.nan
    for number, part in enumerate((data[:300], data[300:])):
        part.to_parquet(tmp_path / f"{number}.parquet", row_group_size=100)
    memory = open_source(data)
    expected = memory.settle(declared(memory))
    assert dict(expected.missing) == {"s": 20, "n": 10, "x": 1}
    read: list[tuple[object, ...]] = []
    chunks = parquet.ParquetSource._chunks

    def watched(self: parquet.ParquetSource, domain: Domain, names: Sequence[Hashable]) -> Iterator[stream.Chunk]:
        read.append(tuple(names))
        return chunks(self, domain, names)

    monkeypatch.setattr(parquet.ParquetSource, "_chunks", watched)
    source = open_source(str(tmp_path / "*.parquet"))
    assert source.settle(declared(source)) == expected
    assert read == [("x",)]
    assert source.passes == 1
    exact = Domain(v for v in declared(source).variables if v.name != "x")
    settled = open_source(str(tmp_path / "*.parquet")).settle(exact)
    assert (settled.rows, settled.weight, dict(settled.missing)) == (1000, 1000.0, {"s": 20, "n": 10})
    assert read == [("x",)]
    for weights in ("n", np.full(1000, 0.5)):
        source = open_source(str(tmp_path / "*.parquet"), sample_weight=weights)
        if isinstance(weights, str):
            with pytest.raises(DataError, match="weight must be finite"):
                source.settle(Domain([exact["s"]]))
        else:
            assert source.settle(exact).weight == 500.0


def test_footers_without_statistics_are_read_past(tmp_path: Path) -> None:
    data = frame().assign(n=1)
    table = pa.Table.from_pandas(data)
    pq.write_table(table, tmp_path / "rows.parquet", write_statistics=False)
    source = open_source(str(tmp_path / "rows.parquet"))
    assert source.settle(declared(source)).missing == {}
    assert source.passes == 1


@pytest.mark.parametrize("columns", [2, 200])
def test_batches_are_bounded_by_their_bytes(columns: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "BATCH_BYTES", 1 << 18)
    rows = 20_000
    wide = pd.DataFrame(np.zeros((rows, columns)), columns=[f"x{number}" for number in range(columns)])
    path = str(tmp_path / "wide.parquet")
    wide.to_parquet(path)
    for data in (path, pl.scan_parquet(path), duckdb.from_parquet(path), pa.Table.from_pandas(wide).to_reader()):
        source = open_source(data)
        sizes = [batch.reals.nbytes for batch in source.batches(source.infer())]
        # DuckDB's vectors have 2048 rows, which it does not cut.
        assert max(sizes) <= (1 << 18 if columns > 2 else rows * 16)
        assert sum(sizes) == rows * columns * 8
