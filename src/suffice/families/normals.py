"""Many normal distributions at once, of one column or of several: as nodes, cells and hidden states have them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.array_types import Floats
from suffice.engines import square_root
from suffice.engines.square_root import LOG_2PI
from suffice.families import gaussian
from suffice.families.gamma_function import ratio_excess
from suffice.families.matrices import root


def log_density(x: ArrayLike, mean: Floats | float, variance: Floats | float) -> Floats:
    """Log density of values under normal distributions, entry by entry; -inf for a missing value."""
    values = np.asarray(x, dtype=np.float64)
    return np.asarray(np.where(np.isnan(values), -np.inf, square_root.log_density(values, mean, variance)))


@dataclass(frozen=True, eq=False)
class Normals:
    """Normal distributions N(mean, variance), one for each cell: two arrays (...).

    Statistics of a cell are the weight of its rows, their mean, and the weighted sum of squares about it (...),
    observed or expected. Answers about values have the values first: (n, ...).
    """

    mean: Floats
    variance: Floats

    @classmethod
    def most_likely(cls, weight: Floats, average: Floats, scatter: Floats, *, least: Floats | float = 0.0) -> Normals:
        """The mean of the rows, and their variance (divisor N) or `least`; NaN without rows.

        Between variances of at least a bound the likelihood is largest at the nearest one.
        """
        used = np.asarray(weight) > 0
        variance = np.where(used, scatter / np.where(used, weight, 1.0), np.nan)
        return cls(np.where(used, average, np.nan), np.maximum(variance, least))

    def squares(self, weight: Floats | float, average: Floats | float, scatter: Floats | float) -> Floats:
        """Sum of squares about the means (...)."""
        away = np.asarray(average) - self.mean
        return np.asarray(scatter + weight * away * away)

    def log_likelihood(self, weight: Floats | float, average: Floats | float, scatter: Floats | float) -> Floats:
        """Sum of log densities of the rows (...)."""
        square = self.squares(weight, average, scatter)
        return np.asarray(-0.5 * (weight * (LOG_2PI + np.log(self.variance)) + square / self.variance))

    def log_prob(self, x: ArrayLike) -> Floats:
        """Log density of values (n,) in each cell (n, ...); -inf for a missing value."""
        values = np.asarray(x, dtype=np.float64)
        return log_density(values.reshape(-1, *[1] * self.mean.ndim), self.mean, self.variance)

    def entropy(self) -> Floats:
        """(1 + log(2 pi variance))/2 (...)."""
        return np.asarray(0.5 * (1 + LOG_2PI + np.log(self.variance)))

    def divergence(self, other: Normals) -> Floats:
        """KL of each cell from that of another (...), by terms that are never negative."""
        away = (self.mean - other.mean) / np.sqrt(other.variance)
        return np.asarray(0.5 * (ratio_excess(self.variance, other.variance) + away * away))

    def sample(self, n: int, random: np.random.Generator) -> Floats:
        """`n` draws in each cell (n, ...)."""
        return random.normal(self.mean, np.sqrt(self.variance), size=(n, *np.shape(self.mean)))


@dataclass(frozen=True, eq=False)
class MultivariateNormals:
    """Normal distributions of d columns, one for each cell: mean (..., d) and covariance (..., d, d).

    Statistics of a cell are the weight of its rows (...), their mean (..., d), and their products about it (..., d, d).
    Answers about rows have the rows first: (n, ...). Each cell is factored by itself, in units of its own.
    """

    mean: Floats
    covariance: Floats

    @classmethod
    def most_likely(cls, weight: Floats, average: Floats, scatter: Floats) -> MultivariateNormals:
        """The mean of the rows and their covariance (divisor N); NaN without rows."""
        used = np.asarray(weight) > 0
        divisor = np.where(used, weight, np.nan)
        return cls(np.where(used[..., None], average, np.nan), scatter / divisor[..., None, None])

    def _each(self, function: Callable[..., ArrayLike], *arrays: Floats) -> Floats:
        """A function of mean, covariance and further arrays, cell by cell (...)."""
        cells = [function(*(array[cell] for array in (self.mean, self.covariance, *arrays))) for cell in self._places]
        shape = np.shape(cells[0]) if cells else ()
        return np.asarray(cells, dtype=np.float64).reshape(*self.mean.shape[:-1], *shape)

    @property
    def _places(self) -> list[tuple[int, ...]]:
        return list(np.ndindex(self.mean.shape[:-1]))

    def log_likelihood(self, weight: Floats | float, average: Floats | float, scatter: Floats | float) -> Floats:
        """Sum of log densities of the rows (...)."""

        def of_cell(mean: Floats, covariance: Floats, n: Floats, centre: Floats, products: Floats) -> float:
            away = centre - mean
            return gaussian.log_likelihood(float(n), products + n * np.outer(away, away), covariance)

        return self._each(of_cell, np.asarray(weight), np.asarray(average), np.asarray(scatter))

    def log_prob(self, rows: Floats) -> Floats:
        """Log density of rows (n, d) in each cell (n, ...); -inf where an entry is not finite."""
        logs = self._each(lambda mean, covariance: gaussian.log_density(mean, covariance, rows))
        return np.moveaxis(logs, -1, 0)

    def entropy(self) -> Floats:
        """(d (1 + log 2 pi) + log det covariance) / 2 (...)."""
        d = self.mean.shape[-1]
        logs = self._each(lambda _, covariance: float(np.log(np.diag(root(covariance))).sum()))
        return np.asarray(0.5 * d * (1 + LOG_2PI) + logs)

    def divergence(self, other: MultivariateNormals) -> Floats:
        """KL of each cell from that of another (...)."""
        return self._each(
            lambda mean, covariance, centre, spread: gaussian.divergence((mean, covariance), (centre, spread)),
            other.mean,
            other.covariance,
        )

    def sample(self, n: int, random: np.random.Generator) -> Floats:
        """`n` draws in each cell (n, ..., d)."""
        z = random.standard_normal((n, *self.mean.shape))
        factors = self._each(lambda _, covariance: root(covariance))
        return np.asarray(self.mean + np.einsum("...ij,n...j->n...i", factors, z))

    def log_prob_of_many(self, rows: Floats) -> Floats:
        """As `log_prob` of very many rows without missing entries, by one product with the inverse of each factor."""
        logs, d = np.empty((len(rows), len(self.mean))), self.mean.shape[-1]
        for cell, (mean, covariance) in enumerate(zip(self.mean, self.covariance, strict=True)):
            factor = root(covariance)
            with np.errstate(over="ignore", invalid="ignore"):
                z = (rows - mean) @ np.linalg.inv(factor).T
                square = np.einsum("ij,ij->i", z, z)
            logs[:, cell] = -0.5 * (square + d * LOG_2PI) - np.log(np.diag(factor)).sum()
        # Numbers whose squares are too large for a float have no density that is not.
        return np.where(np.isnan(logs), -np.inf, logs)

    def draw(self, cells: NDArray[np.intp], random: np.random.Generator) -> Floats:
        """One draw of each cell asked for (n, d), of cells along one axis."""
        z = random.standard_normal((len(cells), self.mean.shape[-1]))
        factors = self._each(lambda _, covariance: root(covariance))
        return np.asarray(self.mean[cells] + np.einsum("nij,nj->ni", factors[cells], z))

    @staticmethod
    def n_params(d: int) -> int:
        """Free parameters of a cell: d means, and d(d + 1)/2 variances and covariances."""
        return d + d * (d + 1) // 2
