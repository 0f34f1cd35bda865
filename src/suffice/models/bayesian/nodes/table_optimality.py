"""How far a table that keeps constraints is from the best one: conditions of Karush, Kuhn and Tucker, and a bound.

The multipliers come from the table and the counts alone, by non-negative least squares over the constraints that bind.
Whatever they are, weak duality makes a bound of them.
"""

from __future__ import annotations

import math

import numpy as np

from suffice.array_types import Floats
from suffice.families.gamma_function import excess
from suffice.models.bayesian.nodes.table_region import KEPT, TableRegion

#: A constraint binds where its slack is below this.
BINDING = 1e-6
#: Steps of Newton's method for the multiplier of the sum of a row.
MOST_STEPS = 60


def optimality(region: TableRegion, table: Floats, counts: Floats) -> tuple[Floats, float | None]:
    """What the multipliers leave of the slopes by the logarithms of the probabilities (rows, card), and the loss bound.

    counts: weights (rows, card) of the logarithms. The bound is None where the table breaks a constraint, or where an
    event of probability 0 has weight.
    """
    residuals, loss = np.zeros_like(table), 0.0
    total = counts.sum(axis=1, keepdims=True)
    for block in region.blocks:
        rows = block.rows
        cells, weights = region.packed(np.nan_to_num(table), rows), region.packed(counts, rows)
        slopes = weights - cells * region.packed(np.broadcast_to(total, counts.shape), rows)
        low, high = region.bounds(rows)
        left = slopes.copy()
        for number in range(len(rows)):
            pulls, slack = np.zeros(cells.shape[1]), 0.0
            if np.abs(slopes[number]).max() > 1e-13 * max(float(weights[number].sum()), 1.0):
                pulls, slack = _pulls(
                    region.steps, cells[number], weights[number], low[number], high[number], region.card
                )
            left[number], lost = _measured(cells[number], weights[number], pulls, region.card)
            loss += lost + slack
        region.unpacked(left, rows, residuals)
    kept = region.violation(table) <= KEPT
    return residuals, loss if kept and math.isfinite(loss) else None


def _pulls(steps: Floats, cells: Floats, counts: Floats, low: Floats, high: Floats, card: int) -> tuple[Floats, float]:
    """What the multipliers of the constraints that bind add to the slopes (c,), and their products with the slacks."""
    from scipy.optimize import nnls

    every = np.concatenate([steps, np.eye(len(cells)), -np.eye(len(cells))])
    slacks = np.concatenate([steps @ cells, cells - low, high - cells])
    # A probability that nothing asks for has no slope by its logarithm where it is 0: what holds it there is free.
    gone = (cells <= BINDING) & (counts <= 0) & (low <= 0)
    idle = np.concatenate([np.zeros(len(steps), dtype=bool), gone, high >= 1])
    binding = np.flatnonzero((slacks <= BINDING) & ~idle)
    if not len(binding):
        return np.zeros(len(cells)), 0.0
    scale = np.sqrt(np.maximum(cells, 1e-300))
    p, n = cells.reshape(-1, card), counts.reshape(-1, card)
    per_row = every[binding].reshape(len(binding), -1, card)
    # The multiplier of the sum of a row is its weight and the mean of the pulls: what is left are equations in these.
    # Over the square roots of the probabilities, which is Fisher's metric.
    about = (per_row - (per_row * p).sum(axis=2, keepdims=True)).reshape(len(binding), -1)
    total = np.broadcast_to(n.sum(axis=1, keepdims=True), p.shape).ravel()
    design = np.where(gone, about, about * cells / scale)
    target = np.where(gone, total, (cells * total - counts) / scale)
    # Of probabilities of 0 the equations are bounds: a slack of each is one more unknown.
    design = np.concatenate([design, np.eye(len(cells))[gone]])
    units = np.sqrt((design**2).sum(axis=1))
    units = np.where(units > 0, units, 1.0)
    multipliers = (nnls((design / units[:, None]).T, target, maxiter=50 * len(design))[0] / units)[: len(binding)]
    return multipliers @ every[binding], float(multipliers @ np.maximum(slacks[binding], 0.0))


def _measured(cells: Floats, counts: Floats, pulls: Floats, card: int) -> tuple[Floats, float]:
    """Slopes n + p (c - v) that are left (c,), and what the dual value has more than the likelihood, slacks apart.

    The dual value of multipliers with the pulls c, and v of the sum of a row, is the sum of n log(n / (v - c)) - n, and
    of v, where v is at least c. With e = p (v - c) / n - 1 it exceeds the likelihood by the sum of n (e - log(1 + e)),
    of p (v - c) where n = 0, and of the multipliers times their slacks.
    """
    p, n, c = (values.reshape(-1, card) for values in (cells, counts, pulls))
    seen = n > 0
    v = np.where(seen, c + n, -np.inf).max(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        for _ in range(MOST_STEPS):  # From the left of the root of a convex function that falls, steps stay there.
            away = np.where(seen, v[:, None] - c, 1.0)
            value = np.where(seen, n / away, 0.0).sum(axis=1) - 1.0
            slope = np.where(seen, n / away**2, 0.0).sum(axis=1)
            step = np.where((slope > 0) & (value > 0), value / slope, 0.0)
            if not (step > 1e-16 * np.abs(v)).any():
                break
            v = v + step
        v = np.maximum(v, np.where(seen, -np.inf, c).max(axis=1))
        v = np.where(np.isfinite(v), v, 0.0)[:, None]
        left = n + p * (c - v)
        lost = np.where(seen, n * excess(np.where(seen, p * (v - c) / np.where(seen, n, 1.0), 1.0) - 1.0), p * (v - c))
    return left.ravel(), float(lost.sum())
