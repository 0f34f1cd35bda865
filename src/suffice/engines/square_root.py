"""Normal distributions by a square root of their covariance, many at once: x = mean + root z with standard z.

Observing coordinates in order is Gram-Schmidt on the rows of the root. A conditional standard deviation then keeps its
digits down to 1e-12 of the marginal one, twice as many as from the covariance. A coordinate that those before it
determine is a point mass: it has no density, and its value must be the determined one.

Leading axes (...) run over distributions, such as the joint states of discrete variables.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from suffice.array_types import Flags, Floats

LOG_2PI = math.log(2 * math.pi)
#: A conditional standard deviation below this share of the marginal one is rounding.
DETERMINED = 1e-12
#: A value lies on its point mass when it is this near, as a share of the terms that make up the point.
ON_POINT = 1e-9


def log_density(values: Floats | float, mean: Floats | float, variance: Floats | float) -> Floats:
    """Log density of values under normal distributions, entry by entry, in units that no square overflows in."""
    away = (values - mean) / np.sqrt(variance)
    return np.asarray(-0.5 * (LOG_2PI + np.log(variance) + away * away))


def log_density_or_mass(values: Floats | float, mean: Floats, variance: Floats, size: Floats) -> Floats:
    """Log density, where there is a variance; that of a point mass is 0 on its point and -inf beside it.

    `size` is that of the terms that make up the mean.
    """
    point = variance == 0
    with np.errstate(over="ignore"):
        density = log_density(values, mean, np.where(point, 1.0, variance))
    if not point.any():
        return density
    away = np.abs(values - mean)
    mass = np.where(np.isnan(away), np.nan, np.where(away <= ON_POINT * (size + np.abs(values)), 0.0, -np.inf))
    return np.where(point, mass, density)


@dataclass(frozen=True)
class ObservedColumns:
    """Rows of a root (..., m, r) as ``triangle @ basis``.

    `basis` (..., m, r) has orthonormal rows, `triangle` (..., m, m) is lower triangular; where a coordinate is
    determined, `points` (..., m) is set, its row of the basis is zero and so is its place on the diagonal.
    """

    basis: Floats
    triangle: Floats
    points: Flags

    @classmethod
    def of(cls, root: Floats) -> ObservedColumns:
        """Gram-Schmidt, each row twice: what the first pass leaves of the earlier rows, the second removes."""
        *_, m, _ = root.shape
        basis = np.zeros_like(root)
        triangle = np.zeros((*root.shape[:-1], m))
        points = np.zeros(root.shape[:-1], dtype=bool)
        for j in range(m):
            rest = root[..., j, :]
            size = np.linalg.norm(rest, axis=-1)
            for _ in range(2):
                share = np.einsum("...kr,...r->...k", basis[..., :j, :], rest)
                rest = rest - np.einsum("...k,...kr->...r", share, basis[..., :j, :])
                triangle[..., j, :j] += share
            length = np.linalg.norm(rest, axis=-1)
            points[..., j] = ~(length > DETERMINED * size)
            triangle[..., j, j] = np.where(points[..., j], 0.0, length)
            safe = np.where(points[..., j], 1.0, length)[..., None]
            basis[..., j, :] = np.where(points[..., j, None], 0.0, rest / safe)
        return cls(basis, triangle, points)

    @property
    def n_points(self) -> Any:
        """Number of determined coordinates (...)."""
        return self.points.sum(axis=-1)

    def whiten(self, mean: Floats, values: Floats) -> tuple[Floats, Flags]:
        """Standard scores (..., n, m) of values under means (..., n, m), and which rows are possible (..., n).

        The values are (n, m), or have leading axes too. A row is impossible where it leaves a point mass.
        """
        away = values - mean
        if self.triangle.ndim == 2 and not self.points.any():
            from scipy.linalg import solve_triangular

            return np.asarray(solve_triangular(self.triangle, away.T, lower=True)).T, np.ones(len(away), dtype=bool)
        scores = np.zeros_like(away)
        possible = np.ones(away.shape[:-1], dtype=bool)
        for j in range(away.shape[-1]):
            before, factors = scores[..., :j], self.triangle[..., j, :j, None]
            rest = away[..., j] - (before @ factors)[..., 0]
            point = self.points[..., j, None]
            scores[..., j] = np.where(point, 0.0, rest / np.where(point, 1.0, self.triangle[..., j, j, None]))
            if point.any():
                size = np.abs(values[..., j]) + np.abs(mean[..., j]) + (np.abs(before) @ np.abs(factors))[..., 0]
                possible &= ~point | (np.abs(rest) <= ON_POINT * size)
        return scores, possible

    def log_density(self, scores: Floats, possible: Flags) -> Floats:
        """Log density (..., n) of rows with these scores, point masses counted as 0; -inf for impossible rows."""
        diagonal = np.diagonal(self.triangle, axis1=-2, axis2=-1)
        logs = np.where(self.points, 0.0, np.log(np.where(self.points, 1.0, diagonal)) + 0.5 * LOG_2PI)
        densities = -0.5 * (scores**2).sum(axis=-1) - logs.sum(axis=-1)[..., None]
        return np.where(possible, densities, -np.inf)

    def condition(self, mean: Floats, root: Floats, scores: Floats) -> tuple[Floats, Floats]:
        """Conditional means (..., n, t) and root (..., t, r) of other coordinates, given theirs."""
        share = np.einsum("...tr,...mr->...tm", root, self.basis)
        means = mean + np.einsum("...nm,...tm->...nt", scores, share)
        return means, root - np.einsum("...tm,...mr->...tr", share, self.basis)


def network_root(parents: Sequence[Sequence[int]], slopes: Sequence[Floats], variances: Sequence[Floats]) -> Floats:
    """Root (..., d, d) of a linear-Gaussian network in topological order, by forward substitution.

    Node j has `parents[j]` among the earlier nodes, slopes (..., p) and a variance (...).
    """
    d = len(parents)
    root = np.zeros((*variances[0].shape, d, d)) if d else np.zeros((0, 0))
    for j, above in enumerate(parents):
        root[..., j, :] = np.einsum("...p,...pr->...r", slopes[j], root[..., list(above), :])
        root[..., j, j] = np.sqrt(variances[j])
    return root


def network_mean(parents: Sequence[Sequence[int]], slopes: Sequence[Floats], intercepts: Sequence[Floats]) -> Floats:
    """Means (..., n, d) of such a network, with intercepts (..., n) and slopes (..., p)."""
    mean = np.zeros((*intercepts[0].shape, len(parents))) if parents else np.zeros((1, 0))
    for j, above in enumerate(parents):
        mean[..., j] = intercepts[j] + (mean[..., list(above)] @ slopes[j][..., None])[..., 0]
    return mean


def dense_root(slopes: Floats, variances: Floats) -> Floats:
    """Roots (..., d, d) of networks in topological order; slopes (..., d, d), those of a node below its diagonal."""
    root = np.zeros_like(slopes)
    for j in range(slopes.shape[-1]):
        root[..., j, :] = (slopes[..., j, None, :j] @ root[..., :j, :])[..., 0, :]
        root[..., j, j] = np.sqrt(variances[..., j])
    return root


def dense_mean(slopes: Floats, intercepts: Floats) -> Floats:
    """Means (..., n, d) of such networks, with intercepts (..., n, d)."""
    mean = intercepts.copy()
    for j in range(1, slopes.shape[-1]):
        mean[..., j] += (mean[..., :j] @ slopes[..., j, :j, None])[..., 0]
    return mean
