"""What a careful user writes in NumPy: a cell number for each row, `bincount`, a division."""

from __future__ import annotations

import math

import numpy as np

from benchmarks.contender import Data, Run
from benchmarks.network import Network, frame_of


def fit(data: Data, *, prior: str | None = None, frame: bool = False, narrow: bool = False) -> Run:
    """`narrow` numbers the cells in 8 or 16 bits, where they fit, and in place: what an expert may think of."""
    network, codes = Network.of(data), data["codes"]
    table = frame_of(data) if frame else None
    pseudo = network.pseudo_counts(prior)

    def run() -> object:
        columns = codes if table is None else [table[name].cat.codes.to_numpy() for name in network.names]
        tables = []
        for family, extra in zip(network.families, pseudo, strict=True):
            shape = network.shape(family)
            size = math.prod(shape)
            kind = np.int64 if not narrow or size > 1 << 16 else np.uint16 if size > 1 << 8 else np.uint8
            cells = columns[family[0]].astype(kind)
            for variable in family[1:]:
                if narrow:
                    cells *= kind(network.cards[variable])
                    np.add(cells, columns[variable], out=cells, casting="unsafe")
                else:
                    cells = cells * network.cards[variable] + columns[variable]
            counts = np.bincount(cells, minlength=size).reshape(-1, shape[-1]) + extra
            total = counts.sum(axis=1, keepdims=True)
            tables.append(np.divide(counts, total, out=np.full(counts.shape, 1 / shape[-1]), where=total > 0).ravel())
        return np.concatenate(tables)

    return run
