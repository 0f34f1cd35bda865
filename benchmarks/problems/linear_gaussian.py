"""A linear-Gaussian network of a hundred nodes: one matrix of cross-products, or one regression a node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.contender import Contender, Data

NAME = "linear-gaussian"
ROWS = 100_000
REPEATS = 5
NODES = 100
MOST_PARENTS = 4

_OURS = "benchmarks.rivals.linear_gaussian_with_suffice"
_NUMPY = "benchmarks.rivals.linear_gaussian_with_numpy"

CONTENDERS = (
    Contender("suffice, dict of columns", _OURS, "fit"),
    Contender("suffice, pandas", _OURS, "fit", {"frame": True}, "pandas"),
    Contender("numpy, one Gram matrix by hand", _NUMPY, "by_gram_matrix"),
    Contender("numpy lstsq, node by node", _NUMPY, "by_least_squares"),
    Contender("pgmpy, pandas", "benchmarks.rivals.linear_gaussian_with_pgmpy", "fit", requires="pgmpy"),
)


def title(rows: int) -> str:
    return f"Linear-Gaussian network, {NODES} nodes with up to {MOST_PARENTS} parents, {rows:,} rows"


def make(rows: int, seed: int) -> Data:
    """Columns (nodes, rows); `parents` (nodes, most) lists the parents of each node, filled up with -1.

    The parents come earlier, and means are some ten standard deviations from zero, as measurements have them.
    """
    rng = np.random.default_rng(seed)
    parents = np.full((NODES, MOST_PARENTS), -1)
    columns = np.empty((NODES, rows))
    for node in range(NODES):
        wanted = min(node, int(rng.integers(1, MOST_PARENTS + 1)))
        above = np.sort(rng.permutation(node)[:wanted])
        parents[node, : len(above)] = above
        weights = rng.normal(size=len(above))
        weights /= max(1.0, float(np.abs(weights).sum()))
        columns[node] = rng.normal(10.0, 1.0, rows) + weights @ columns[above]
    return {"columns": columns, "parents": parents}


def families(data: Data) -> list[list[int]]:
    """The parents of each node."""
    return [[int(parent) for parent in row if parent >= 0] for row in data["parents"]]


def judge(data: Data) -> Callable[[str, Any], str]:
    """Against least squares on centred columns of a few nodes: largest error of a coefficient or variance."""
    chosen = (0, 1, 25, 50, 99)
    truth = {node: _regression(data, node) for node in chosen}

    def verdict(_: str, answer: Any) -> str:
        errors = [np.abs(np.asarray(answer[node]) - values).max() for node, values in truth.items()]
        return f"{float(max(errors)):.0e} off"

    return verdict


def _regression(data: Data, node: int) -> Any:
    """Intercept, weights and variance, in extended precision where the machine has it."""
    columns = data["columns"][[*families(data)[node], node]].astype(np.longdouble)
    mean = columns.mean(axis=1)
    centred = columns - mean[:, None]
    products = np.array([[(a * b).mean() for b in centred] for a in centred])
    weights = np.linalg.solve(products[:-1, :-1].astype(float), products[:-1, -1].astype(float))
    for _ in range(3):  # Refined with the residual in extended precision.
        residual = products[:-1, -1] - products[:-1, :-1] @ weights
        weights = weights + np.linalg.solve(products[:-1, :-1].astype(float), residual.astype(float))
    variance = products[-1, -1] - weights @ products[:-1, -1]
    return np.array([mean[-1] - weights @ mean[:-1], *weights, variance], dtype=float)
