"""Tables that are reached in other ways: datasets, folders by value, URLs, readers, generators."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import suffice as sf
from suffice.errors import DataError, MissingColumnError, MissingExtraError
from suffice.sources import files, open_source
from suffice.sources.base import Batch
from suffice.sources.sequences import open_sequences


@dataclass(frozen=True)
class Sums:
    """Counts of states and sums of a column, by sequence."""

    def prepare(self, batch: Batch) -> np.ndarray:
        assert batch.offsets is not None
        return np.array([np.add.reduceat(batch.reals[0], batch.offsets[:-1]), np.diff(batch.offsets)])

    def evaluate(self, prepared: np.ndarray, parameters: None) -> np.ndarray:
        return np.asarray(prepared.sum(axis=1) + (prepared**2).sum(axis=1))


def frame() -> pd.DataFrame:
    rng = np.random.default_rng(4)
    years = np.repeat([2023, 2024, 2025], 100)
    return pd.DataFrame(
        {
            "x": rng.normal(size=300),
            "s": np.array(list("abc"))[rng.integers(0, 3, 300)],
            "g": rng.integers(0, 20, 300),
            "year": years,
        }
    )


def parts(data: pd.DataFrame) -> list[pd.DataFrame]:
    return [part for _, part in data.groupby("year")]


def hive(data: pd.DataFrame, folder: Path) -> Path:
    for part in parts(data):
        inner = folder / "hive" / f"year={part['year'].iloc[0]}"
        inner.mkdir(parents=True)
        part.drop(columns="year").to_parquet(inner / "rows.parquet")
    return folder / "hive"


def files_of(data: pd.DataFrame, folder: Path) -> list[str]:
    paths = [str(folder / f"{number}.parquet") for number in range(3)]
    for path, part in zip(paths, parts(data), strict=True):
        part.to_parquet(path)
    return paths


def remote(data: pd.DataFrame, ending: str) -> str:
    system = fsspec.filesystem("memory")
    system.makedirs("/rows", exist_ok=True)
    for number, part in enumerate(parts(data)):
        with fsspec.open(f"memory://rows/{number}.{ending}", "wb", compression="infer") as file:
            part.to_parquet(file) if ending == "parquet" else part.to_csv(file, index=False)
    return f"memory://rows/*.{ending}"


def generated(data: pd.DataFrame) -> Iterator[Any]:
    first, second, third = parts(data)
    yield first
    yield pl.DataFrame(second.to_dict("list"))
    yield pa.Table.from_pandas(third, preserve_index=False).to_batches()[0]


WAYS: dict[str, Callable[[pd.DataFrame, Path], Any]] = {
    "a list of files": files_of,
    "a dataset": lambda data, folder: ds.dataset(files_of(data, folder)),
    "folders by value": hive,
    "a file URL": lambda data, folder: [Path(path).as_uri() for path in files_of(data, folder)],
    "Parquet elsewhere": lambda data, _: remote(data, "parquet"),
    "CSV elsewhere": lambda data, _: remote(data, "csv"),
    "zipped CSV elsewhere": lambda data, _: remote(data, "csv.gz"),
    "a reader": lambda data, _: pa.Table.from_pandas(data).to_reader(max_chunksize=70),
    "a generator": lambda data, _: generated(data),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_gives_the_fit_and_the_sequences_in_memory(way: str, tmp_path: Path) -> None:
    data = frame()
    expected = sf.BayesianNetwork([("s", "year"), ("s", "x")]).fit(data)
    net = sf.BayesianNetwork([("s", "year"), ("s", "x")]).fit(WAYS[way](data, tmp_path))
    assert np.array_equal(net.table("year").values, expected.table("year").values)
    assert np.array_equal(net.node("x").variance_, expected.node("x").variance_)
    answers = []
    (tmp_path / "again").mkdir()
    for table in (data, WAYS[way](data, tmp_path / "again")):
        source = open_source(table)
        settled = source.settle(source.infer(["x", "s", "year"]))
        assert settled.rows == 300
        assert settled.domain["year"].states == (2023, 2024, 2025)
        with source.hold(Sums(), settled, group="g") as held:
            answers.append(held.sum(None))
    assert np.array_equal(*answers)


@pytest.mark.parametrize("way", ["a list of files", "a dataset", "folders by value"])
def test_sequences_are_read_from_files_and_folders(way: str, tmp_path: Path) -> None:
    data = frame()
    expected = open_sequences(data, group="g", columns=["s"])
    sequences = open_sequences(WAYS[way](data, tmp_path), group="g", columns=["s"])
    assert np.array_equal(sequences.offsets, expected.offsets)
    assert sequences.values.tolist() == expected.values.tolist()


def test_what_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match=r"There is no file 'memory://nowhere/rows.parquet'"):
        open_source("memory://nowhere/rows.parquet")
    with pytest.raises(DataError, match=r"Cannot open 'strange://rows.parquet'"):
        open_source("strange://rows.parquet")
    with pytest.raises(DataError, match="iterator of int"):
        open_source(iter([1, 2]))
    with pytest.raises(DataError, match="at least one"):
        open_source(iter([]))
    frames = [pd.DataFrame({"a": [1]}), pd.DataFrame({"b": [1]})]
    source = open_source(iter(frames))
    with pytest.raises(MissingColumnError, match="no column 'a' in frame 1"):
        source.settle(source.infer())

    def refused(module: str, *, extra: str, purpose: str) -> None:
        raise MissingExtraError(f"{purpose} {extra}")

    monkeypatch.setattr(files, "require", refused)
    with pytest.raises(MissingExtraError, match="remote"):
        open_source("memory://rows/0.parquet")
