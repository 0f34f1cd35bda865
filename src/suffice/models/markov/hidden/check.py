"""The slope of the observed likelihood once more, row by row through the engine that answers queries.

Nothing here is used by the steps of EM, so that a fault of theirs shows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.engines.junction_tree import JunctionTree
from suffice.models.em.rows import ObservedRows
from suffice.models.markov.family import LogLinearFamily
from suffice.models.markov.log_linear import LogLinear
from suffice.models.markov.priors import penalised_slope
from suffice.solvers.penalties import Penalty

#: Rows that are solved at a time.
BLOCK = 2048


def code_matrix(rows: ObservedRows) -> tuple[NDArray[np.int32], tuple[object, ...]]:
    """Codes (n, d) of the columns, and their names."""
    names = tuple(rows.columns)
    empty = np.zeros((len(rows.weights), 0), np.int32)
    return np.stack([rows.columns[name] for name in names], axis=1) if names else empty, names


def expected_shares(tree: JunctionTree, model: LogLinear, rows: ObservedRows) -> tuple[float, Floats]:
    """Sum of the log masses that agree with each row, and the shares of all cells (n_cells,) that rows are expected in.

    tree: that of the model, loaded with its potentials.
    """
    codes, names = code_matrix(rows)
    mass, totals = 0.0, [np.zeros(model.shape(number)) for number in range(len(model.scopes))]
    for start in range(0, len(codes), BLOCK):
        some = slice(start, start + BLOCK)
        answer = tree.solve_rows(tree.plan.rows(codes[some], names, calls=1), scopes=list(model.scopes))
        mass += float(rows.weights[some] @ answer.log_partition)
        for scope, total in zip(model.scopes, totals, strict=True):
            total += np.tensordot(rows.weights[some], answer.marginals[scope], 1)
    return mass, np.concatenate([np.zeros(0), *(total.ravel() for total in totals)]) / float(rows.weights.sum())


def stationarity(family: LogLinearFamily, weights: Floats, rows: ObservedRows, penalty: Penalty | None) -> Floats:
    """Features that rows are expected to have less those of the distribution, a row, with the prior (n_weights,)."""
    model, tree = family.model, family.tree(weights)
    _, shares = expected_shares(tree, model, rows)
    tables = tree.condition().factor_marginals()[: len(model.scopes)]
    marginals = np.concatenate([np.zeros(0), *(table.ravel() for table in tables)])
    return penalised_slope(penalty, weights, model.expected(shares - marginals), float(rows.weights.sum()))
