"""Polars."""

from __future__ import annotations

import math

import numpy as np
import polars as pl

from benchmarks.alarm import CARDS, FAMILIES
from benchmarks.contender import Data, Run


def counts(data: Data) -> Run:
    """One lazy `group_by` for each family, collected together so that Polars may share the scan and the threads."""
    frame = pl.DataFrame({f"v{index}": column for index, column in enumerate(data["codes"])})
    queries = [frame.lazy().group_by([f"v{variable}" for variable in family]).len() for family in FAMILIES]

    def run() -> object:
        tables = []
        for family, found in zip(FAMILIES, pl.collect_all(queries), strict=True):
            shape = tuple(CARDS[variable] for variable in family)
            cells = np.ravel_multi_index(tuple(found[f"v{variable}"].to_numpy() for variable in family), shape)
            table = np.zeros(math.prod(shape), np.int64)
            table[cells] = found["len"].to_numpy()
            tables.append(table)
        return np.concatenate(tables)

    return run
