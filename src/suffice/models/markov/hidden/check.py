"""The slope of the observed likelihood once more, row by row through the engine that answers queries.

Nothing here is used by the steps of EM, so that a fault of theirs shows.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from suffice.array_types import Floats
from suffice.engines.junction_tree import JunctionTree
from suffice.models.em.held_rows import HeldRows
from suffice.models.em.rows import ObservedRows, code_matrix
from suffice.models.markov.family import LogLinearFamily
from suffice.models.markov.log_linear import LogLinear
from suffice.models.markov.priors import penalised_slope
from suffice.solvers.penalties import Penalty
from suffice.sources.reduction import Answers

#: Rows that are solved at a time.
BLOCK = 2048


@dataclass(frozen=True)
class _JudgedCounts:
    """Sum of the log masses that agree with each row, and the counts of all scopes that rows are expected in."""

    scopes: tuple[tuple[Hashable, ...], ...]

    def __call__(self, rows: ObservedRows, tree: JunctionTree) -> Answers:
        names, codes = code_matrix(rows)
        mass, totals = 0.0, [np.zeros(tree.plan.space.shape(scope)) for scope in self.scopes]
        for start in range(0, len(codes), BLOCK):
            some = slice(start, start + BLOCK)
            answer = tree.solve_rows(tree.plan.rows(codes[some], names, calls=1), scopes=list(self.scopes))
            mass += float(rows.weights[some] @ answer.log_partition)
            for scope, total in zip(self.scopes, totals, strict=True):
                total += np.tensordot(rows.weights[some], answer.marginals[scope], 1)
        return Answers((mass, *totals))


def row_scores(rows: ObservedRows, parameters: tuple[JunctionTree, float]) -> float:
    """The sum of the log-probabilities of rows, missing values summed out; parameters: a tree, and log Z."""
    tree, log_z = parameters
    mass: float = _JudgedCounts(())(rows, tree).parts[0]
    return mass - float(rows.weights.sum()) * log_z


def expected_shares(tree: JunctionTree, model: LogLinear, rows: HeldRows) -> tuple[float, Floats]:
    """Sum of the log masses that agree with each row, and the shares of all cells (n_cells,) that rows are expected in.

    tree: that of the model, loaded with its potentials.
    """
    mass, *totals = rows.ask(_JudgedCounts(tuple(model.scopes)), tree).parts
    return mass, np.concatenate([np.zeros(0), *(total.ravel() for total in totals)]) / rows.weight


def stationarity(family: LogLinearFamily, weights: Floats, rows: HeldRows, penalty: Penalty | None) -> Floats:
    """Features that rows are expected to have less those of the distribution, a row, with the prior (n_weights,)."""
    model, tree = family.model, family.tree(weights)
    _, shares = expected_shares(tree, model, rows)
    tables = tree.condition().factor_marginals()[: len(model.scopes)]
    marginals = np.concatenate([np.zeros(0), *(table.ravel() for table in tables)])
    return penalised_slope(penalty, weights, model.expected(shares - marginals), rows.weight)
