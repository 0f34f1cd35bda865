"""Penalties on the SUM of the log-likelihood over rows: what priors on weights take off an objective.

The objective is ``sum over rows of log p(row | weights) - penalty(weights)``. Methods that work with means a row divide
both by the number of rows: dividing the likelihood alone would make the prior as strong as all rows together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from suffice.array_types import Floats


@dataclass(frozen=True, eq=False)
class GaussianPenalty:
    """(w - mean)' P (w - mean) / 2 with the precision P, a vector (k,) for its diagonal or a matrix (k, k)."""

    mean: Floats
    precision: Floats

    @property
    def identity(self) -> tuple[Any, ...]:
        """What tells it from other penalties."""
        return "normal", self.mean, self.precision

    def value(self, weights: Floats) -> float:
        """The penalty."""
        return 0.5 * float((weights - self.mean) @ self.slope(weights))

    def slope(self, weights: Floats) -> Floats:
        """Its gradient (k,)."""
        return self.product(weights - self.mean)

    def product(self, vector: Floats) -> Floats:
        """The precision times a vector."""
        return self.precision * vector if self.precision.ndim == 1 else self.precision @ vector

    def matrix(self) -> Floats:
        """The precision (k, k)."""
        return np.diag(self.precision) if self.precision.ndim == 1 else self.precision

    def diagonal(self) -> Floats:
        """The diagonal of the precision (k,)."""
        return self.precision if self.precision.ndim == 1 else np.diagonal(self.precision)

    def in_units(self, units: Floats) -> GaussianPenalty:
        """The same penalty on the weights times their units."""
        square = units**2 if self.precision.ndim == 1 else np.outer(units, units)
        return GaussianPenalty(self.mean * units, self.precision / square)

    def posterior_variances(self, information: Floats) -> Floats:
        """The diagonal of the inverse of information + P (k,), however flat the likelihood is beside the prior.

        In coordinates in which the prior has unit precision no eigenvalue is below 1, so that none has to be dropped.
        """
        return np.asarray(np.sum(self._posterior_root(information) ** 2, axis=1))

    def posterior_covariance(self, information: Floats) -> Floats:
        """The inverse of information + P (k, k)."""
        root = self._posterior_root(information)
        return np.asarray(root @ root.T)

    def _posterior_root(self, information: Floats) -> Floats:
        root = np.diag(1.0 / np.sqrt(self.precision)) if self.precision.ndim == 1 else _root(self.precision)
        values, vectors = np.linalg.eigh(root.T @ information @ root)
        return np.asarray(root @ vectors / np.sqrt(1.0 + np.maximum(values, 0.0)))

    def loss_bound(self, slope: Floats, noise: Floats | float = 0.0) -> float:
        """How far the objective is from its maximum at most, where its slope is g: g' P^-1 g / 2.

        Minus the Hessian of the objective is at least P, because the likelihood is concave. noise (k,): how far the
        slope may be from g.
        """
        if self.precision.ndim == 1:
            return 0.5 * float(np.sum((np.abs(slope) + noise) ** 2 / self.precision))
        inverse = np.linalg.inv(self.precision)
        length = float(np.sqrt(max(0.0, float(slope @ inverse @ slope))))
        unknown = np.broadcast_to(noise, slope.shape)
        return 0.5 * (length + float(np.sqrt(unknown @ np.abs(inverse) @ unknown))) ** 2


@dataclass(frozen=True, eq=False)
class LaplacePenalty:
    """sum_k rate_k |w_k - mean_k|."""

    mean: Floats
    rate: Floats

    @property
    def identity(self) -> tuple[Any, ...]:
        """What tells it from other penalties."""
        return "laplace", self.mean, self.rate

    def value(self, weights: Floats) -> float:
        """The penalty."""
        return float(self.rate @ np.abs(weights - self.mean))

    def in_units(self, units: Floats) -> LaplacePenalty:
        """The same penalty on the weights times their units."""
        return LaplacePenalty(self.mean * units, self.rate / units)

    def loss_bound(self, slope: Floats, weights: Floats, loss: float, noise: Floats | float = 0.0) -> float:
        """How far the objective is from its maximum at most, where its slope of least size is g.

        loss: minus the objective, log-likelihood less penalty. No log-likelihood is above 0, so the penalty of the best
        weights is at most the loss, and a concave function rises by at most ``sum |g_k| |best_k - w_k|``. noise (k,):
        how far the slope may be from g; where it is 0 at the centre of the prior, the corner takes it up.
        """
        size = np.where((slope == 0.0) & (weights == self.mean), 0.0, np.abs(slope) + noise)
        return float(np.max(size / self.rate, initial=0.0)) * (loss + self.value(weights))


Penalty = GaussianPenalty | LaplacePenalty


def _root(precision: Floats) -> Floats:
    """A matrix R with R R' = P^-1."""
    return np.asarray(np.linalg.inv(np.linalg.cholesky(precision)).T)


def pull_of(penalty: Penalty, weights: Floats, slope: Floats) -> Floats:
    """The slope (k,) of the log prior at some weights; `slope` (k,) is that of all else.

    A Laplace prior holds a weight at its mean with any slope up to its rate: it takes of the other what it can.
    """
    if isinstance(penalty, GaussianPenalty):
        return -penalty.slope(weights)
    away = weights - penalty.mean
    return np.where(away != 0.0, -penalty.rate * np.sign(away), np.clip(-slope, -penalty.rate, penalty.rate))
