"""Our own kernels, compiled."""

from __future__ import annotations

import numpy as np

from benchmarks.alarm import CARDS, FAMILIES
from benchmarks.contender import Data, Run
from suffice.double_double import centred, divide
from suffice.kernels import choice
from suffice.kernels.counting import count, plan_counts
from suffice.kernels.moments import moment_sums


def counts(data: Data, *, weighted: bool = False, threads: int = 1, path: str = "compiled") -> Run:
    """One table for each family; the plan is made in the timed call."""
    codes, weights = data["codes"], data["weights"] if weighted else None

    def run() -> object:
        with choice.force(path):
            tables = count(codes, plan_counts(CARDS, FAMILIES, codes.shape[1]), weights, threads=threads)
        return np.concatenate([table.ravel() for table in tables])

    return run


def moments(data: Data, *, threads: int = 1, path: str = "compiled") -> Run:
    """Mean and covariance by raw double-double sums."""
    columns = data["columns"]

    def run() -> object:
        with choice.force(path):
            sums = moment_sums(columns, threads=threads)
        return divide(sums[1], sums[0])[0], centred(*sums) / sums[0][0]

    return run
