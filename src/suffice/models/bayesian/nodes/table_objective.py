"""The objective of tables, ``sum n log p`` with (pseudo-)counts n, cell by cell: slopes, and what is left of it."""

from __future__ import annotations

import numpy as np

from suffice.array_types import Floats
from suffice.families.gamma_function import excess
from suffice.fitting.report import in_standard_errors

#: What rounding may leave of a difference of counts, as a share of the counts of the row.
ROUNDING = 8 * float(np.finfo(np.float64).eps)


def times_log(factor: Floats, value: Floats) -> Floats:
    """``factor log(value)``, 0 where the factor is 0: as SciPy's xlogy, without loading SciPy for a plain fit."""
    terms = np.zeros_like(factor)
    with np.errstate(divide="ignore"):
        np.log(value, out=terms, where=factor != 0)
    terms *= factor
    return terms


def cell_slopes(counts: Floats, total: Floats, rows: Floats) -> Floats:
    """Slopes ``n - N p`` by the logarithm of each probability, of (pseudo-)counts n with the sum N in their row."""
    return np.asarray(counts - np.nan_to_num(rows) * total)


def steepest_cells(counts: Floats, total: Floats, rows: Floats) -> tuple[float, float]:
    """The largest slope in standard errors, and as it is.

    Of N rows with these parents n have a state, which is binomial: the variance of n is N p (1 - p). A Dirichlet prior
    counts as rows that were never seen.
    """
    slope, p = cell_slopes(counts, total, rows), np.nan_to_num(rows)
    slope = np.where(np.abs(slope) <= ROUNDING * np.abs(total), 0.0, slope)
    return in_standard_errors(slope, total * p * (1 - p)), float(np.abs(slope).max(initial=0.0))


def cell_losses(counts: Floats, total: Floats, rows: Floats) -> Floats:
    """What each cell adds to how far ``sum n log p`` is from its largest value, at p = n / sum n.

    ``n log(n / (N p)) = n (d - log(1 + d)) + n - N p`` with d = N p / n - 1; the rest adds up to 0 in a row whose
    probabilities add up to one, so that no digits are lost to it.
    """
    share = np.where(total > 0, rows, 0.0) * total
    some = counts > 0
    with np.errstate(invalid="ignore"):
        away = np.divide(share, counts, out=np.ones(np.broadcast_shapes(share.shape, counts.shape)), where=some) - 1
        return np.where(some, counts * excess(away), share)
