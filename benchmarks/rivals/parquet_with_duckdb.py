"""DuckDB on a Parquet file."""

from __future__ import annotations

import math

import duckdb
import numpy as np

from benchmarks.alarm import CARDS, FAMILIES, VARIABLES
from benchmarks.contender import Data, Run


def counts(data: Data) -> Run:
    """One GROUP BY for each family."""
    names = list(VARIABLES)

    def run() -> object:
        connection = duckdb.connect()
        tables = []
        for family in FAMILIES:
            columns = ", ".join(f'"{names[variable]}"' for variable in family)
            query = f"SELECT {columns}, count(*) AS n FROM read_parquet(?) GROUP BY {columns}"
            shape = tuple(CARDS[variable] for variable in family)
            table = np.zeros(math.prod(shape), np.int64)
            for *labels, number in connection.execute(query, [str(data["path"])]).fetchall():
                table[np.ravel_multi_index([int(label[1:]) for label in labels], shape)] = number
            tables.append(table)
        return np.concatenate(tables)

    return run
