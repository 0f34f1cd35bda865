"""Pyarrow, alone and with NumPy."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.alarm import CARDS, FAMILIES, VARIABLES
from benchmarks.contender import Data, Run

_ROWS = 1 << 17


def decode(data: Data) -> Run:
    """Read every column as a dictionary and do nothing with it."""

    def run() -> None:
        for _ in _batches(str(data["path"])):
            pass

    return run


def counts(data: Data) -> Run:
    """`bincount` of each family, batch by batch, after a look-up of the codes."""

    def run() -> object:
        sizes = [math.prod(CARDS[variable] for variable in family) for family in FAMILIES]
        tables = [np.zeros(size, np.int64) for size in sizes]
        for batch in _batches(str(data["path"])):
            codes = [_codes(column) for column in batch.columns]
            for family, table in zip(FAMILIES, tables, strict=True):
                cells = codes[family[0]]
                for variable in family[1:]:
                    cells = cells * CARDS[variable] + codes[variable]
                table += np.bincount(cells, minlength=len(table))
        return np.concatenate(tables)

    return run


def _batches(path: str) -> Iterator[Any]:
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path, read_dictionary=list(VARIABLES))
    return iter(file.iter_batches(_ROWS, columns=list(VARIABLES)))


def _codes(column: Any) -> Any:
    places = np.array([int(label[1:]) for label in column.dictionary.to_pylist()], np.int64)
    return places[column.indices.to_numpy()]
