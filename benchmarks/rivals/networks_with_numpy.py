"""What a careful user writes in NumPy: a cell number for each row, `bincount`, a division."""

from __future__ import annotations

import math

import numpy as np

from benchmarks.contender import Data, Run
from benchmarks.network import Network, frame_of


def fit(data: Data, *, prior: str | None = None, frame: bool = False) -> Run:
    network, codes = Network.of(data), data["codes"]
    table = frame_of(data) if frame else None
    pseudo = network.pseudo_counts(prior)

    def run() -> object:
        columns = codes if table is None else [table[name].cat.codes.to_numpy() for name in network.names]
        tables = []
        for family, extra in zip(network.families, pseudo, strict=True):
            cells = columns[family[0]].astype(np.int64)
            for variable in family[1:]:
                cells = cells * network.cards[variable] + columns[variable]
            shape = network.shape(family)
            counts = np.bincount(cells, minlength=math.prod(shape)).reshape(-1, shape[-1]) + extra
            total = counts.sum(axis=1, keepdims=True)
            tables.append(np.divide(counts, total, out=np.full(counts.shape, 1 / shape[-1]), where=total > 0).ravel())
        return np.concatenate(tables)

    return run
