"""DuckDB."""

from __future__ import annotations

import math

import duckdb
import numpy as np
import pyarrow as pa

from benchmarks.alarm import CARDS, FAMILIES
from benchmarks.contender import Data, Run


def counts(data: Data) -> Run:
    """One GROUP BY for each family on a table of its own format."""
    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")
    arrow = pa.table({f"v{index}": column for index, column in enumerate(data["codes"])})
    connection.register("arrow", arrow)
    connection.execute("CREATE TABLE codes AS SELECT * FROM arrow")
    connection.unregister("arrow")

    def run() -> object:
        tables = []
        for family in FAMILIES:
            names = ", ".join(f"v{variable}" for variable in family)
            found = connection.execute(f"SELECT {names}, count(*) AS n FROM codes GROUP BY {names}").fetchnumpy()
            shape = tuple(CARDS[variable] for variable in family)
            table = np.zeros(math.prod(shape), np.int64)
            table[np.ravel_multi_index(tuple(found[f"v{variable}"] for variable in family), shape)] = found["n"]
            tables.append(table)
        return np.concatenate(tables)

    return run
