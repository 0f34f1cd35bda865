"""The slope of the observed likelihood once more, row by row through the engine that answers queries.

Nothing here is used by the steps of EM, so that a fault of theirs shows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from suffice.models.em.rows import ObservedRows
from suffice.models.markov.hidden.steps import penalised_slope
from suffice.models.markov.law import LawFamily
from suffice.solvers.penalties import Penalty

Floats = NDArray[np.float64]

#: Rows that are solved at a time.
BLOCK = 2048


def code_matrix(rows: ObservedRows) -> tuple[NDArray[np.int32], tuple[object, ...]]:
    """Codes (n, d) of the columns, and their names."""
    names = tuple(rows.columns)
    empty = np.zeros((len(rows.weights), 0), np.int32)
    return np.stack([rows.columns[name] for name in names], axis=1) if names else empty, names


def stationarity(family: LawFamily, weights: Floats, rows: ObservedRows, penalty: Penalty | None) -> Floats:
    """Features that the rows are expected to have less those that the law has, a row, with the prior (n_weights,)."""
    model, tree = family.model, family.tree(weights)
    codes, names = code_matrix(rows)
    scopes = list(model.scopes)
    totals = [np.zeros(model.shape(place)) for place in range(len(scopes))]
    for start in range(0, len(codes), BLOCK):
        some = slice(start, start + BLOCK)
        answer = tree.solve_rows(tree.plan.rows(codes[some], names, calls=1), scopes=scopes)
        for scope, total in zip(scopes, totals, strict=True):
            total += np.tensordot(rows.weights[some], answer.marginals[scope], 1)
    law = tree.condition().factor_marginals()[: len(scopes)]
    weight = float(rows.weights.sum())
    away = [np.zeros(0), *((total / weight - own).ravel() for total, own in zip(totals, law, strict=True))]
    return penalised_slope(penalty, weights, model.expected(np.concatenate(away)), weight)
