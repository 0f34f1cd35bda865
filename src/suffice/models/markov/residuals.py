"""Residuals of cells: where a table and the log-linear model that was fitted to it differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from suffice.array_types import Floats
from suffice.checks import choice
from suffice.choices import CellResidual, choices
from suffice.errors import EstimateError, SizeError
from suffice.models.markov import comparison
from suffice.models.markov.fitted import MarkovFitted
from suffice.solvers.rank import column_space
from suffice.table import Table

if TYPE_CHECKING:
    from suffice.models.markov.declaration import MarkovNetwork

#: Numbers in the design of all cells up to which leverages are worked out.
MOST_NUMBERS = 2**22
#: 1 - leverage below which a cell is taken as one that the fit makes equal to its count.
EXACT = 1e-9


def residuals(network: MarkovNetwork, kind: CellResidual = "pearson") -> Table:
    """Counts n against expected counts m, cell by cell, axes in the order of `nodes` without hidden ones.

    Args:
        network: a network that was fitted to rows or to a contingency table.
        kind: ``"raw"``, n - m; ``"pearson"``, (n - m) / sqrt(m), whose squares add up to `chi2_`; ``"deviance"``, whose
            squares add up to `deviance_`; or ``"adjusted"``, (n - m) / sqrt(m (1 - h)) with the leverage h of the cell
            in the Poisson regression with the same terms (Haberman 1973): standard normal in large tables if the model
            holds. The last needs maximum likelihood with every variable seen.

    Cells that the limit of the fit rules out have residuals of 0. An adjusted one is NaN there, and where the fit makes
    a cell equal to its count whatever that is, h = 1.
    """
    choice(kind, "kind", choices(CellResidual))
    fitted, observed = network.fitted_, network._learned_by().spec.observed
    codes, seen = comparison.kept_joint(network.statistics_, observed)
    expected = comparison.fitted_counts(network)
    if len(observed) < len(fitted.nodes):
        expected = expected.marginal(list(observed))
    counts = np.zeros(expected.values.shape)
    counts[tuple(codes.T)] = seen
    values = _residuals(counts, expected.values, kind)
    if kind == "adjusted":
        free = 1.0 - _leverages(network, expected.values)
        free_cells = (expected.values > 0.0) & (free > EXACT)
        values = np.where(free_cells, values / np.sqrt(np.where(free_cells, free, 1.0)), np.nan)
    return Table(expected.domain, values)


def _residuals(counts: Floats, expected: Floats, kind: CellResidual) -> Floats:
    """Those that need no leverage; adjusted ones begin as Pearson's."""
    away = counts - expected
    if kind == "raw":
        return away
    with np.errstate(divide="ignore", invalid="ignore"):
        if kind != "deviance":
            return np.where(away == 0.0, 0.0, away / np.sqrt(expected))
        # 2 (n log(n / m) - n + m), whose difference of large numbers keeps its digits as n (r - log(1 + r)).
        ratio = (expected - counts) / counts
        squares = np.where(counts > 0.0, 2.0 * counts * (ratio - np.log1p(ratio)), 2.0 * expected)
    return np.sign(away) * np.sqrt(np.maximum(squares, 0.0))


def _leverages(network: MarkovNetwork, expected: Floats) -> Floats:
    """Diagonal of the hat matrix of the Poisson regression on the cells that are left, 0 elsewhere."""
    fitted: MarkovFitted = network.fitted_
    if network.report_.estimate != "maximum likelihood" or expected.ndim < len(fitted.nodes):
        raise EstimateError(
            f"The fit is {network.report_.estimate}{', with hidden variables' * (expected.ndim < len(fitted.nodes))}; "
            "adjusted residuals are of maximum likelihood with every variable seen. Take kind='pearson'."
        )
    model = fitted.near.model
    if expected.size * (model.n_weights + 1) > MOST_NUMBERS:
        raise SizeError(
            f"Leverages are worked out from a design of {expected.size:,} cells and {model.n_weights:,} weights; the "
            f"limit is {MOST_NUMBERS:,} numbers. Take kind='pearson'."
        )
    left = expected.ravel() > 0.0
    cells = model.all_states()[left]
    space = column_space(np.column_stack([np.ones(len(cells)), model.design(cells)]))
    leverages = np.zeros(expected.size)
    leverages[left] = (np.linalg.qr(np.sqrt(expected.ravel()[left])[:, None] * space)[0] ** 2).sum(axis=1)
    return leverages.reshape(expected.shape)
