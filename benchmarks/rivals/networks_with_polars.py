"""Polars: a `group_by` for each family, then a division in NumPy."""

from __future__ import annotations

import math

import numpy as np
import polars as pl

from benchmarks.contender import Data, Run
from benchmarks.network import Network


def fit(data: Data, *, prior: str | None = None) -> Run:
    """One lazy query for each family, collected together so that Polars may share the scan and the threads."""
    network = Network.of(data)
    pseudo = network.pseudo_counts(prior)
    frame = pl.DataFrame(dict(zip(network.names, data["codes"], strict=True)))
    keys = [[f"v{variable}" for variable in family] for family in network.families]

    def run() -> object:
        found = pl.collect_all([frame.lazy().group_by(key).len() for key in keys])
        tables = []
        for family, key, counted, extra in zip(network.families, keys, found, pseudo, strict=True):
            shape = network.shape(family)
            counts = np.full(math.prod(shape), extra)
            counts[np.ravel_multi_index(tuple(counted[name].to_numpy() for name in key), shape)] += counted[
                "len"
            ].to_numpy()
            rows = counts.reshape(-1, shape[-1])
            total = rows.sum(axis=1, keepdims=True)
            tables.append(np.divide(rows, total, out=np.full(rows.shape, 1 / shape[-1]), where=total > 0).ravel())
        return np.concatenate(tables)

    return run
