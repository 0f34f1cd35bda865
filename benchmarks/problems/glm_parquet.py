"""Logistic regression on a Parquet file that need not fit into memory: the file is read once for each iteration."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.contender import Contender, Data

NAME = "glm, Parquet"
ROWS = 50_000_000
REPEATS = 1

COLUMNS, LEVELS = 6, 12
_GROUP_ROWS = 500_000
_OURS = "benchmarks.rivals.glm_with_suffice"

CONTENDERS = (
    Contender("decode the file", "benchmarks.rivals.glm_floor", "decode", requires="pyarrow", limit=True),
    Contender("suffice", _OURS, "fit_file", requires="pyarrow", once=True),
)

# Kept until the process ends: the contenders read the file from processes of their own.
_folder: list[tempfile.TemporaryDirectory[str]] = []


def title(rows: int) -> str:
    return (
        f"Logistic regression from a Parquet file of {rows:,} rows, {COLUMNS} columns and a factor of {LEVELS} levels"
    )


def make(rows: int, seed: int) -> Data:
    """The path of the file and the coefficients that its rows were drawn with; one row group is in memory at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    _folder[:] = [tempfile.TemporaryDirectory()]
    path = Path(_folder[0].name) / "rows.parquet"
    rng = np.random.default_rng(seed)
    beta = np.concatenate(([-0.5], rng.normal(0.0, 0.4, COLUMNS), [0.0], rng.normal(0.0, 0.4, LEVELS - 1)))
    labels = pa.array([f"level {level:02d}" for level in range(LEVELS)])
    writer = None
    for start in range(0, rows, _GROUP_ROWS):
        size = min(_GROUP_ROWS, rows - start)
        X = rng.normal(size=(size, COLUMNS)).astype(np.float32)
        codes = rng.integers(0, LEVELS, size).astype(np.int8)
        eta = beta[0] + X @ beta[1 : 1 + COLUMNS] + beta[1 + COLUMNS :][codes]
        y = rng.random(size) < 1.0 / (1.0 + np.exp(-eta))
        columns = {f"x{at}": column for at, column in enumerate(X.T)}
        table = pa.table({**columns, "level": pa.DictionaryArray.from_arrays(codes, labels), "y": y.astype(np.int8)})
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()
    return {"path": np.array(str(path)), "beta": np.delete(beta, 1 + COLUMNS)}


def judge(data: Data) -> Callable[[str, Any], str]:
    """How many standard errors the coefficients are from those that drew the rows, at most."""
    truth = data["beta"]

    def verdict(_: str, answer: Any) -> str:
        if answer is None:
            return ""
        found, errors = np.asarray(answer)
        return f"truth within {float((np.abs(found - truth) / errors).max()):.1f} standard errors"

    return verdict
