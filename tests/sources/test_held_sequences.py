"""Shards of whole sequences: rows in any order, from any source, come together by their group and in their order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from suffice.domain import state_key
from suffice.errors import DataError, OptionError
from suffice.sources import open_source, shards, stream
from suffice.sources.base import Batch

ROWS = 3000


@dataclass(frozen=True)
class AsWritten:
    """The sequences of a shard, step by step."""

    def prepare(self, batch: Batch) -> list[list[tuple[Any, ...]]]:
        assert batch.offsets is not None
        assert batch.offsets[-1] == batch.rows
        states = batch.domain["s"].states
        steps = list(
            zip(
                [batch.number(row) for row in range(batch.rows)],
                [states[code] for code in batch.codes[0]],
                batch.reals[0].tolist(),
                batch.raw["words"].to_pylist(),
                strict=True,
            )
        )
        return [steps[i:j] for i, j in zip(batch.offsets, batch.offsets[1:], strict=False)]

    def evaluate(self, prepared: list[list[tuple[Any, ...]]], parameters: None) -> list[list[tuple[Any, ...]]]:
        return prepared


def table(name: Callable[[int], Any] = int) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "g": [name(value) for value in rng.integers(0, 300, ROWS)],
            "t": rng.permutation(ROWS),
            "s": np.array(list("abc"))[rng.integers(0, 3, ROWS)],
            "x": rng.normal(size=ROWS),
            "words": [[f"w{value}"] * (value % 3) for value in rng.integers(0, 10, ROWS)],
        }
    )


def by_pandas(frame: pd.DataFrame, order: str | None) -> list[list[tuple[Any, ...]]]:
    """The sequences, by another way."""
    groups = frame.groupby("g", sort=order is not None)
    parts = [part if order is None else part.sort_values(order) for _, part in groups]
    return [list(zip(part.index, part["s"], part["x"], part["words"], strict=True)) for part in parts]


def held(data: object, **options: Any) -> list[list[tuple[Any, ...]]]:
    source = open_source(data)
    settled = source.settle(source.infer(["s", "x"]))
    with source.hold(AsWritten(), settled, group="g", raw=["words"], **options) as shards_:
        return shards_.sum(None)  # type: ignore[no-any-return]


def written(frame: pd.DataFrame, folder: Path) -> str:
    frame.to_parquet(folder / "rows.parquet", row_group_size=130)
    return str(folder / "rows.parquet")


SOURCES: dict[str, Callable[[pd.DataFrame, Path], object]] = {
    "pandas": lambda frame, _: frame,
    "polars": lambda frame, _: pl.DataFrame(frame.to_dict("list")),
    "Arrow": lambda frame, _: pa.Table.from_pandas(frame),
    "a dict": lambda frame, _: frame.to_dict("list"),
    "Parquet": written,
    "lazy polars": lambda frame, folder: pl.scan_parquet(written(frame, folder)),
    "DuckDB": lambda frame, folder: duckdb.from_parquet(written(frame, folder)),
}


@pytest.mark.parametrize("order", [None, "t"])
@pytest.mark.parametrize("name", [int, lambda number: f"person {number}"], ids=["numbers", "text"])
@pytest.mark.parametrize("kind", SOURCES)
def test_small_tables_are_one_shard_in_the_order_of_the_table_in_memory(
    kind: str, name: Callable[[int], Any], order: str | None, tmp_path: Path
) -> None:
    frame = table(name)
    if kind == "DuckDB" and order is None:
        with pytest.raises(OptionError, match="no order of their own"):
            held(SOURCES[kind](frame, tmp_path))
        return
    assert held(SOURCES[kind](frame, tmp_path), order=order) == by_pandas(frame, order)


@pytest.mark.parametrize("order", [None, "t"])
@pytest.mark.parametrize("name", [int, lambda number: f"person {number}"], ids=["numbers", "text"])
def test_files_hold_the_same_sequences_in_any_number_of_shards(
    name: Callable[[int], Any], order: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = table(name)
    path = written(frame, tmp_path)
    whole = by_pandas(frame, order)
    for size in (1_000, 30_000):
        monkeypatch.setattr(shards, "SHARD_BYTES", size)
        parts = held(path, order=order)
        assert parts != whole
        assert sorted(parts, key=lambda steps: steps[0][0]) == sorted(whole, key=lambda steps: steps[0][0])
        # In the same order whatever the chunks and the threads.
        monkeypatch.setattr(stream, "BATCH_ROWS", 57)
        assert held(path, order=order, threads=1) == held(path, order=order, threads=2) == parts
        monkeypatch.undo()


@pytest.mark.parametrize(
    "order",
    [
        lambda t: pd.Timestamp("2020-01-01") + pd.to_timedelta(t, unit="s"),
        lambda t: t.astype(float) / 7,
        lambda t: [f"{value:05}" for value in t],
        lambda t: pd.array(t, dtype="Int64"),
    ],
    ids=["times", "floats", "text", "nullable"],
)
def test_steps_are_ordered_by_any_kind_of_column(
    order: Callable[[pd.Series], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = table()
    frame["t"] = order(frame["t"])
    expected = sorted(by_pandas(frame, "t"))
    assert sorted(held(frame, order="t")) == expected
    monkeypatch.setattr(shards, "SHARD_BYTES", 20_000)
    path = written(frame, tmp_path)
    assert sorted(held(path, order="t")) == sorted(held(pl.scan_parquet(path), order="t")) == expected


def test_csv_files_hold_text_as_it_stands(tmp_path: Path) -> None:
    frame = table()
    frame["words"] = [" ".join(words) for words in frame["words"]]
    frame.to_csv(tmp_path / "rows.csv", index=False)
    expected = [[(n, s, x, w) for n, s, x, w in steps] for steps in by_pandas(frame, "t")]
    assert held(str(tmp_path / "rows.csv"), order="t") == expected


def test_sequences_in_memory_are_cut_where_memory_is_limited() -> None:
    frame = table()
    source = open_source(frame)
    settled = source.settle(source.infer(["s", "x"]))
    with source.hold(AsWritten(), settled, group="g", raw=["words"], memory_limit=40_000) as shards_:
        assert shards_.shards > 3
        assert shards_.sum(None) == by_pandas(frame, None)


def test_groups_of_equal_numbers_of_different_types_are_one_sequence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = table()
    frame[:1500].to_parquet(tmp_path / "1.parquet")
    frame[1500:].astype({"g": "float64"}).to_parquet(tmp_path / "2.parquet")
    monkeypatch.setattr(shards, "SHARD_BYTES", 10_000)
    parts = held([str(tmp_path / "1.parquet"), str(tmp_path / "2.parquet")])
    assert sorted(parts) == sorted(by_pandas(frame, None))


def test_the_work_of_grouping_is_linear_in_the_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels looked at: those of each chunk once to spread the rows, and once more to bring them together."""
    looked_at, key = [], state_key
    for rows in (2_000, 4_000, 8_000):
        path = tmp_path / f"{rows}.parquet"
        frame = pd.DataFrame({"g": [f"person {row // 5}" for row in range(rows)], "s": "a", "x": 0.0})
        frame["words"] = [[]] * rows
        frame.to_parquet(path, row_group_size=100)
        calls = 0

        def counted(label: Any) -> Any:
            nonlocal calls
            calls += 1
            return key(label)

        with monkeypatch.context() as patch:
            patch.setattr(stream, "BATCH_ROWS", 100)
            patch.setattr(shards, "SHARD_BYTES", 20_000)
            patch.setattr(shards, "state_key", counted)
            assert len(held(str(path))) == rows // 5
        looked_at.append(calls)
    assert looked_at[0] >= 400
    assert looked_at[1] <= 2.1 * looked_at[0]
    assert looked_at[2] <= 2.1 * looked_at[1]


def test_errors_name_the_column_the_row_and_the_file(tmp_path: Path) -> None:
    frame = table()
    frame["g"] = frame["g"].astype("Int64")
    frame.loc[2000, "g"] = pd.NA
    path = written(frame, tmp_path)
    with pytest.raises(DataError, match=r"group column 'g' has a missing value \(row 2000\)") as caught:
        held(path)
    assert str(caught.value).endswith(f"That is row 2000 of {path!r}.")
    frame = table()
    frame["t"] = frame["t"].astype("Int64")
    frame.loc[2500, "t"] = pd.NA
    with pytest.raises(DataError, match=r"order column 't' has a missing value \(row 2500\)") as caught:
        held(written(frame, tmp_path), order="t")
    assert str(caught.value).endswith(f"That is row 2500 of {path!r}.")
    frame = table()
    frame.loc[3, ["g", "t"]] = frame.loc[8, ["g", "t"]]
    with pytest.raises(DataError, match=r"order column 't' holds .* twice in the sequence"):
        held(written(frame, tmp_path), order="t")
    with pytest.raises(OptionError, match="both name 'g'"):
        held(frame, order="g")
    with pytest.raises(DataError, match="no column 'day'"):
        held(frame, order="day")
    with pytest.raises(DataError, match="There are no sequences"):
        held(written(frame[:0], tmp_path))
