"""NumPy: least squares node by node, or all nodes from one matrix of cross-products."""

from __future__ import annotations

import numpy as np

from benchmarks.contender import Data, Run
from benchmarks.problems.linear_gaussian import families


def by_least_squares(data: Data) -> Run:
    """`lstsq` with a column of ones."""
    columns, parents = data["columns"], families(data)

    def run() -> object:
        answers = []
        for node, above in enumerate(parents):
            design = np.column_stack([np.ones(columns.shape[1]), *columns[above]])
            weights, *_ = np.linalg.lstsq(design, columns[node])
            answers.append(np.append(weights, np.mean((columns[node] - design @ weights) ** 2)))
        return answers

    return run


def by_gram_matrix(data: Data) -> Run:
    """One product of the centred columns with themselves, then a small solve for each node."""
    columns, parents = data["columns"], families(data)

    def run() -> object:
        mean = columns.mean(axis=1)
        centred = columns - mean[:, None]
        products = centred @ centred.T / columns.shape[1]
        answers = []
        for node, above in enumerate(parents):
            weights = np.linalg.solve(products[np.ix_(above, above)], products[above, node])
            variance = products[node, node] - weights @ products[above, node]
            answers.append(np.array([mean[node] - weights @ mean[above], *weights, variance]))
        return answers

    return run
