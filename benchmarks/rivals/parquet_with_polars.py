"""Polars on a Parquet file."""

from __future__ import annotations

import math

import numpy as np
import polars as pl

from benchmarks.alarm import CARDS, FAMILIES, VARIABLES
from benchmarks.contender import Data, Run


def counts(data: Data) -> Run:
    """One lazy `group_by` for each family over one scan, collected together by the streaming engine."""
    names = list(VARIABLES)

    def run() -> object:
        frame = pl.scan_parquet(str(data["path"]))
        queries = [frame.group_by([names[variable] for variable in family]).len() for family in FAMILIES]
        tables = []
        for family, found in zip(FAMILIES, pl.collect_all(queries, engine="streaming"), strict=True):
            shape = tuple(CARDS[variable] for variable in family)
            labels = [found[names[variable]].str.slice(1).cast(pl.Int64).to_numpy() for variable in family]
            table = np.zeros(math.prod(shape), np.int64)
            table[np.ravel_multi_index(tuple(labels), shape)] = found["len"].to_numpy()
            tables.append(table)
        return np.concatenate(tables)

    return run
