"""Mixtures of normal distributions: what real variables follow once discrete ones are summed out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from suffice.array_types import Floats, RandomState
from suffice.checks import generator
from suffice.engines.square_root import ObservedColumns
from suffice.errors import DataError, unknown_variable
from suffice.graphs.nodes import Node


@dataclass(frozen=True)
class GaussianMixture:
    """Normal distributions of some real variables with their weights.

    `weights` (c,) add up to one; `means` (c, u); `roots` (c, u, r) are square roots of the covariances, which may be
    singular: a distribution without spread is a point mass.
    """

    names: tuple[Node, ...]
    weights: Floats
    means: Floats
    roots: Floats

    @property
    def covariances(self) -> Floats:
        """Covariances of the distributions (c, u, u)."""
        return self.roots @ self.roots.swapaxes(-1, -2)

    @property
    def mean(self) -> Floats:
        """Mean of the mixture (u,)."""
        return np.asarray(self.weights @ self.means)

    @property
    def covariance(self) -> Floats:
        """Covariance of the mixture (u, u): that within the distributions and that between their means."""
        away = self.means - self.mean
        between = (self.weights[:, None] * away).T @ away
        return np.asarray(np.einsum("c,cur,cvr->uv", self.weights, self.roots, self.roots) + between)

    def marginal(self, names: Sequence[Node]) -> GaussianMixture:
        """The mixture of some of the variables, in the order asked."""
        unknown = [name for name in names if name not in self.names]
        if unknown:
            raise unknown_variable(unknown[0], self.names)
        columns = [self.names.index(name) for name in names]
        return GaussianMixture(tuple(names), self.weights, self.means[:, columns], self.roots[:, columns])

    def log_prob(self, rows: ArrayLike) -> Floats:
        """Log density of rows (n, u).

        Distributions on which a row is a point outweigh those with a density there: the log density is that of the
        former.
        """
        values = np.asarray(rows, dtype=np.float64)
        if values.ndim != 2 or values.shape[1] != len(self.names):
            raise DataError(f"The rows have shape {values.shape}; expected {len(self.names)} columns.")
        observed = ObservedColumns.of(self.roots)
        logs = observed.log_density(*observed.whiten(self.means[:, None], values))
        with np.errstate(divide="ignore"):
            logs = logs + np.log(self.weights)[:, None]
        points = np.where(logs > -np.inf, observed.n_points[:, None], -1)
        logs = np.where(points == points.max(axis=0), logs, -np.inf)
        top = np.maximum(logs.max(axis=0), np.finfo(np.float64).min)
        with np.errstate(divide="ignore"):
            return np.asarray(top + np.log(np.exp(logs - top).sum(axis=0)))

    def sample(self, n: int = 1, random_state: RandomState = None) -> Floats:
        """`n` draws (n, u)."""
        rng = generator(random_state)
        chosen = rng.choice(len(self.weights), size=n, p=self.weights / self.weights.sum())
        z = rng.standard_normal((n, self.roots.shape[2], 1))
        return np.asarray(self.means[chosen] + (self.roots[chosen] @ z)[..., 0])
