"""Contingency tables of the 37 families of ALARM from a Parquet file of text."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.alarm import CARDS, FAMILIES, VARIABLES, draw
from benchmarks.contender import Contender, Data

NAME = "parquet"
ROWS = 10_000_000
REPEATS = 3

_GROUP_ROWS = 250_000
_ARROW = "benchmarks.rivals.with_pyarrow"
_SOURCES = "benchmarks.rivals.suffice_sources"

CONTENDERS = (
    Contender("decode the file", _ARROW, "decode", requires="pyarrow", limit=True),
    Contender("suffice", _SOURCES, "counts", {"threads": 1}, "pyarrow"),
    Contender("suffice, states not declared", _SOURCES, "counts", {"threads": 1, "declared": False}, "pyarrow"),
    Contender("pyarrow and numpy bincount", _ARROW, "counts", requires="pyarrow"),
    Contender("polars group_by, streaming", "benchmarks.rivals.parquet_with_polars", "counts", requires="polars"),
    Contender("duckdb GROUP BY", "benchmarks.rivals.parquet_with_duckdb", "counts", requires="duckdb"),
)

# Kept until the process ends: the contenders read the file from processes of their own.
_folder: list[tempfile.TemporaryDirectory[str]] = []


def title(rows: int) -> str:
    return f"Counts of the {len(FAMILIES)} ALARM families from a Parquet file of text, {rows:,} rows"


def make(rows: int, seed: int) -> Data:
    """The path of the file, and the tables one after the other."""
    _folder[:] = [tempfile.TemporaryDirectory()]
    path = Path(_folder[0].name) / "alarm.parquet"
    codes = draw(rows, seed)
    write(codes, path)
    return {"path": np.array(str(path)), "counts": np.concatenate(list(_tables(codes)))}


def write(codes: Any, path: Path) -> None:
    """Text columns with dictionaries that differ between row groups, as files from elsewhere have them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    states = [np.array([f"s{state}" for state in range(card)]) for card in CARDS]
    schema = pa.schema([(name, pa.dictionary(pa.int8(), pa.string())) for name in VARIABLES])
    with pq.ParquetWriter(path, schema, compression="zstd", store_schema=False) as writer:
        for group, start in enumerate(range(0, codes.shape[1], _GROUP_ROWS)):
            block = codes[:, start : start + _GROUP_ROWS].view(np.int8)
            columns = []
            for column, labels in zip(block, states, strict=True):
                turned = group % 2 == 1
                indices = np.int8(len(labels) - 1) - column if turned else column
                columns.append(pa.DictionaryArray.from_arrays(indices, labels[::-1] if turned else labels))
            writer.write_table(pa.table(columns, schema=schema))


def _tables(codes: Any) -> Iterator[Any]:
    for family in FAMILIES:
        shape = tuple(CARDS[variable] for variable in family)
        table = np.zeros(math.prod(shape), np.int64)
        for start in range(0, codes.shape[1], 1 << 20):
            cells = np.ravel_multi_index(tuple(codes[list(family), start : start + (1 << 20)]), shape)
            table += np.bincount(cells, minlength=len(table))
        yield table


def judge(data: Data) -> Callable[[str, Any], str]:
    """Against the tables of the codes that the file was written from."""
    truth = data["counts"]

    def verdict(_: str, answer: Any) -> str:
        return "" if answer is None else "exact" if np.array_equal(answer, truth) else "WRONG"

    return verdict
