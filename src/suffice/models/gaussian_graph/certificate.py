"""What a precision is worth, measured from it alone: how far its covariances are from those of the rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from suffice.answers import MomentSums
from suffice.array_types import Floats
from suffice.engines.square_root import LOG_2PI
from suffice.families.member import ROUNDING
from suffice.families.moments import hidden_far_out, mean_away
from suffice.fitting.report import in_standard_errors
from suffice.models.gaussian_graph.existence import completed, is_definite
from suffice.models.gaussian_graph.structure import GraphStructure
from suffice.solvers.covariance_newton import Ridge


@dataclass(frozen=True)
class PrecisionMeasurement:
    """How near a precision is to the maximum.

    `gap` is the largest difference of an edge, or a variance, of K^-1 and of the rows in standard deviations of the
    product in one row, which tolerances are about; `moment_gap` is the same in standard errors of the total, `slope` in
    nats. `value_gap` bounds what the objective can still rise by, in nats per row, where that is known; `exists` says
    whether a maximum does; `spurious` counts entries other than 0 where the graph has no edge.
    """

    gap: float
    moment_gap: float
    slope: float
    value_gap: float | None
    exists: bool | None
    spurious: int


def measure(
    structure: GraphStructure, K: Floats, S: Floats, ridge: Ridge | None, weight: float
) -> PrecisionMeasurement:
    """How far the edges of W = K^-1 are from those of S, and how much the objective can still rise (nats per row).

    Put S on the diagonal and the edges of W. If the result V is positive definite then ``-log det V - p`` bounds the
    objective ``log det K - tr(S K)`` of every K from above (duality), so the maximum exists and the gap is at most
    ``(tr(V K) - p - log det(V K)) / 2``. With a normal prior the bound is that of a function at least as curved.
    """
    rows, columns = structure.entries
    spurious = int(np.count_nonzero(K[~structure.support]) // 2)
    # In units in which every column has variance 1: products of small variances would be 0.
    units = units_of(S)
    K, R = K * units[:, None] * units, in_units(S)
    half = np.linalg.cholesky(K)
    root = np.linalg.inv(half)
    W = root.T @ root
    # An edge stands in K twice. The variance of a product of two normal variables is W_ii W_jj + W_ij^2 (Isserlis).
    twice, spread = np.where(rows == columns, 0.5, 1.0), np.sqrt(np.diag(W))
    slope, deviation = twice * (W - R)[rows, columns], twice * np.hypot(np.outer(spread, spread), W)[rows, columns]
    error, held = deviation, None if ridge is None else ridge_in_units(ridge, units, structure, weight)
    if held is not None:
        slope = slope - held.precision * (K[rows, columns] - held.mean)
        error = np.hypot(deviation, np.sqrt(held.precision))
    gap, largest = float(np.max(np.abs(slope) / deviation)), weight * float(np.max(np.abs(slope)))
    # Squares of deviations may overflow where a prior is far from the rows.
    moment_gap = in_standard_errors(math.sqrt(weight) * slope / error, np.ones_like(slope))
    if held is not None:
        value_gap = 0.5 * float(slope @ (slope / held.precision))
        return PrecisionMeasurement(gap, moment_gap, largest, value_gap, True, spurious)
    V = completed(W, R, structure)
    exists = True if is_definite(V) else None
    bound = _loss_bound(half.T @ V @ half - np.eye(len(K))) if exists else None
    return PrecisionMeasurement(gap, moment_gap, largest, bound, exists, spurious)


def with_mean(
    measured: PrecisionMeasurement, moments: MomentSums, mean: Floats, W: Floats, K: Floats
) -> PrecisionMeasurement:
    """The same, with how far the fitted mean (p,), which is a float, is from that of the rows; W is K^-1 (p, p).

    The objective falls by ``d' K d / 2`` at a distance d. Rounding of the sums hides a part of a gap.
    """
    away, variance = mean_away(moments, mean), np.diag(W)
    units = np.sqrt(variance)
    gap, value = math.sqrt(moments.weight) * float(np.max(np.abs(away) / units)), measured.value_gap
    if value is not None:
        values = np.linalg.eigvalsh(W / units[:, None] / units)
        hidden = (ROUNDING + hidden_far_out(mean, variance)) * len(units) * float(values[-1] / values[0])
        root = (1.0 + ROUNDING) * math.sqrt(value + 0.5 * float(away @ K @ away)) + hidden
        value = root * root
    return replace(measured, moment_gap=max(measured.moment_gap, gap), value_gap=value)


def _loss_bound(difference: Floats) -> float | None:
    """``(sum of e - log(1 + e)) / 2`` over the eigenvalues e of a symmetric matrix; None where some e is not above -1.

    Where all are small, each term is at most ``e^2 / (2 (1 - |e|))``.
    """
    size = float(np.linalg.norm(difference))
    if size < 0.5:
        return 0.25 * size * size / (1.0 - size)
    values = np.linalg.eigvalsh(difference)
    return 0.5 * float((values - np.log1p(values)).sum()) if values[0] > -1.0 else None


def units_of(S: Floats) -> Floats:
    """The standard deviations of the columns (p,); 1 where there is none."""
    return np.sqrt(np.where(np.diag(S) > 0, np.diag(S), 1.0))


def in_units(S: Floats) -> Floats:
    """S (p, p) in the units of the columns, in which a variance is exactly 1, or 0."""
    units = units_of(S)
    R = S / units[:, None] / units
    np.fill_diagonal(R, np.where(np.diag(S) > 0, 1.0, 0.0))
    return R


def ridge_in_units(ridge: Ridge, units: Floats, structure: GraphStructure, weight: float) -> Ridge:
    """A normal prior on the free entries of the precision as one on those in the units of the columns, a row."""
    spread = np.concatenate([units**2, np.prod(units[structure.pairs], axis=1)])
    return Ridge(ridge.mean * spread, ridge.precision / spread**2 / weight)


def log_likelihood(K: Floats, scatter: Floats, weight: float) -> float:
    """Sum of log densities of rows whose products about the mean are `scatter`."""
    sign, log_det = np.linalg.slogdet(K)
    assert sign > 0
    return 0.5 * float(weight * (log_det - len(K) * LOG_2PI) - np.vdot(scatter, K))
