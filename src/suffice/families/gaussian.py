"""Formulas of the normal distribution of several columns on plain arrays, whose units do not matter."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import numpy as np

from suffice.array_types import Floats
from suffice.engines.square_root import LOG_2PI
from suffice.errors import EstimateError, listing
from suffice.families.gamma_function import excess
from suffice.families.matrices import relative, root, solve, whiten

#: A direction counts as one without spread when its variance, among columns of unit variance, is below d times this.
NO_SPREAD = 8 * float(np.finfo(np.float64).eps)


def log_density(mean: Floats, covariance: Floats, rows: Floats) -> Floats:
    """Log density of rows (..., d); -inf where an entry is not finite."""
    d = len(mean)
    finite = np.asarray(np.isfinite(rows).all(axis=-1))
    factor = root(covariance)
    away = (np.where(finite[..., None], rows, mean) - mean).reshape(-1, d)
    with np.errstate(over="ignore"):
        squares = (whiten(factor, away.T) ** 2).sum(axis=0).reshape(rows.shape[:-1])
    constant = 0.5 * d * LOG_2PI + np.log(np.diag(factor)).sum()
    return np.asarray(np.where(finite, -constant - 0.5 * squares, -np.inf))


def log_likelihood(weight: float, scatter: Floats, covariance: Floats) -> float:
    """Sum of log densities of rows whose cross-products about the distribution's mean are `scatter` (d, d)."""
    factor = root(covariance)
    half_log_det = np.log(np.diag(factor)).sum()
    return float(-weight * (0.5 * len(scatter) * LOG_2PI + half_log_det) - 0.5 * np.trace(relative(factor, scatter)))


def log_likelihoods(weight: float, scatters: Floats, halves: Floats) -> Floats:
    """The same for several distributions (n,): cross-products (n, d, d) about their means, and ``L^-1`` of each."""
    half_log_det = -np.log(np.diagonal(halves, axis1=-2, axis2=-1)).sum(axis=-1)
    squares = np.einsum("nij,njk,nik->n", halves, scatters, halves)
    return np.asarray(-weight * (0.5 * scatters.shape[-1] * LOG_2PI + half_log_det) - 0.5 * squares)


def statistics_covariance(mean: Floats, covariance: Floats) -> Floats:
    """Cov of (x, x x' row by row), (d + d^2, d + d^2)."""
    d = len(mean)
    third = np.einsum("ij,k->ijk", covariance, mean)
    third = (third + third.transpose(0, 2, 1)).reshape(d, d * d)
    # Cov[x_i x_j, x_k x_l] pairs each of i, j with each of k, l.
    square = np.outer(mean, mean)
    half = np.einsum("ik,jl->ijkl", covariance, covariance + square) + np.einsum("ik,jl->ijkl", square, covariance)
    fourth = (half + half.transpose(0, 1, 3, 2)).reshape(d * d, d * d)
    return np.block([[covariance, third], [third.T, fourth]])


def quadratic_cumulants(mean: Floats, covariance: Floats, vector: Floats, matrix: Floats, order: int) -> Floats:
    """Cumulants 2 to `order` of ``vector . x + x' matrix x``, matrix symmetric.

    In coordinates that make x - mean white and the matrix diagonal it is a sum of independent terms: cumulants add.
    """
    factor = root(covariance)
    curves, axes = np.linalg.eigh(factor.T @ matrix @ factor)
    slopes = axes.T @ (factor.T @ (vector + 2 * matrix @ mean))
    largest = float(np.abs(curves).max()) or 1.0
    cumulants = []
    for s in range(2, order + 1):
        # In units of the largest curve: powers beyond float64 of opposite signs have no difference.
        total = ((curves / largest) ** s).sum()
        square = 2.0 ** (s - 1) * math.factorial(s - 1) * (total * np.float64(largest) ** s if total else 0.0)
        steep = (slopes**2 * (curves / largest) ** (s - 2)).sum()
        rise = steep * np.float64(largest) ** (s - 2) if steep else 0.0
        cumulants.append(square + 2.0 ** (s - 3) * math.factorial(s) * rise)
    return np.array(cumulants)


def divergence(mine: tuple[Floats, Floats], theirs: tuple[Floats, Floats]) -> float:
    """KL between normal distributions given as (mean, covariance).

    The eigenvalues of one covariance in the units of the other, less 1, make it a sum of terms that are never negative.
    """
    factor = root(theirs[1])
    away = whiten(factor, mine[0] - theirs[0])
    ratios = np.linalg.eigvalsh(relative(factor, mine[1] - theirs[1]))
    return 0.5 * float(excess(ratios).sum() + away @ away)


def mean_gap(away: Floats, covariance: Floats) -> tuple[float, float]:
    """Gap of the observed means, `away` (d,) from the expected ones: largest in standard deviations, and decrement."""
    largest = float(np.max(np.abs(away) / np.sqrt(np.diag(covariance))))
    return largest, float(np.linalg.norm(whiten(root(covariance), away)))


def spread_gap(observed: Floats, covariance: Floats) -> tuple[float, float]:
    """Gap of the observed cross-products a row (d, d) about the expected mean: largest and decrement, as `mean_gap`."""
    away, units = observed - covariance, np.sqrt(np.diag(covariance))
    correlations = covariance / units[:, None] / units
    largest = float(np.max(np.abs(away / units[:, None] / units) / np.sqrt(1 + correlations**2)))
    return largest, float(np.linalg.norm(relative(root(covariance), away))) / math.sqrt(2)


def update_mean(
    prior: tuple[Floats, Floats], weight: float, average: Floats, covariance: Floats
) -> tuple[Floats, Floats]:
    """Posterior (mean, covariance) of a normal mean with known row covariance.

    The posterior precision is ``prior^-1 + N covariance^-1``; in the form of a gain neither precision is inverted, and
    the prior may be as vague or as sharp as it likes.
    """
    centre, spread = prior
    noise = covariance / weight
    gain = solve(spread + noise, spread).T
    posterior = gain @ noise
    return centre + gain @ (average - centre), (posterior + posterior.T) / 2


def refuse_singular(scatter: Floats, names: Sequence[Hashable], rows: int) -> None:
    """Raise where a scatter matrix (d, d) is singular, naming the columns to blame."""
    problem = _without_spread(scatter, names)
    if not problem:
        return
    d = len(names)
    few = f" A covariance of {d} columns needs more than {d} rows." if rows <= d else ""
    raise EstimateError(
        f"The covariance is singular: {problem} over the n = {rows} rows (d = {d} columns), so the likelihood grows "
        f"without bound.{few} Leave out columns, or give a prior=NormalWishart(...) or a known covariance=."
    )


def _without_spread(scatter: Floats, names: Sequence[Hashable]) -> str:
    """Which columns have no spread of their own, in words; empty where all have."""
    spread = np.diag(scatter)
    constant = [name for name, s in zip(names, spread, strict=True) if not s > 0]
    if constant:
        return f"{listing(constant)} {'is' if len(constant) == 1 else 'are'} constant"
    units = np.sqrt(spread)
    values, vectors = np.linalg.eigh(scatter / np.outer(units, units))
    free = values <= NO_SPREAD * len(values)
    share = np.sqrt((vectors[:, free] ** 2).sum(axis=1))
    involved = [name for name, part in zip(names, share, strict=True) if part > 1e-6]
    return f"{listing(involved)} are linearly dependent" if involved else ""
