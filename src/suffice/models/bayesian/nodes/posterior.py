"""The posterior of the parameters of a node: Dirichlet rows of a table, regressions by joint state of discrete parents.

Each has `mean`, `mode`, `variance`, `intervals`, `sample`, `log_prob`, `at` (the distribution at one joint state) and
`predictive`.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.array_types import Floats
from suffice.domain import Domain
from suffice.errors import EstimateError, OptionError, listing
from suffice.families import student_density
from suffice.families.base import as_floats, generator
from suffice.families.categoricals import Dirichlets
from suffice.families.conjugate import as_point, tails
from suffice.families.dirichlet import Dirichlet
from suffice.families.regression_distribution import RegressionDistribution, variance_quantiles, weight_quantiles
from suffice.families.student import StudentT
from suffice.models.bayesian.nodes.regressions import named
from suffice.table import Table


@dataclass(frozen=True, eq=False)
class DirichletTable:
    """Independent Dirichlet distributions of the rows of P(node | parents); `alpha_` has the axes (parents, node)."""

    alpha_: Table

    @property
    def _rows(self) -> Dirichlets:
        return Dirichlets(self.alpha_.values)

    def at(self, where: Mapping[Hashable, Hashable] | None = None, /, **states: Hashable) -> Dirichlet:
        """The distribution of the row at a joint state of the parents."""
        state = named(where, states)
        parents = self.alpha_.variables[:-1]
        if set(state) != set(parents):
            raise OptionError(f"Give a state for each of {listing(parents)}; found {listing(state)}.")
        return Dirichlet((self.alpha_.at(state) if parents else self.alpha_).values)

    def mean(self) -> Table:
        """The mean of each probability: alpha over the sum of its row."""
        return Table(self.alpha_.domain, self._rows.mean())

    def mode(self) -> Table:
        """The mode of each row, (alpha - 1) / sum(alpha - 1); it exists where no alpha is below one."""
        mode = self._rows.mode()
        if mode is None:
            raise EstimateError(
                "Some row has no single mode: an alpha below one, or nothing but ones. Use mean(), or a prior with "
                "pseudo-counts above one."
            )
        return Table(self.alpha_.domain, mode)

    def variance(self) -> Table:
        """The variance of each probability."""
        return Table(self.alpha_.domain, self._rows.variance())

    def intervals(self, level: float = 0.95) -> tuple[Table, Table]:
        """Lower and upper ends of the central interval of each probability."""
        low, high = (Table(self.alpha_.domain, self._rows.quantiles(share)) for share in tails(level))
        return low, high

    def sample(self, n: int = 1, random_state: Any = None) -> Floats:
        """`n` tables (n, parents..., node)."""
        return self._rows.sample(n, generator(random_state))

    def log_prob(self, table: Table | ArrayLike) -> float:
        """Log density of a table, given by label or as an array (parents..., node)."""
        values = (
            table.transpose(self.alpha_.variables).values if isinstance(table, Table) else as_floats(table, "table")
        )
        if values.shape != self.alpha_.values.shape:
            raise OptionError(f"The table has shape {values.shape}; expected {self.alpha_.values.shape}.")
        return math.fsum(self._rows.log_prob(values).ravel())

    def predictive(self) -> Table:
        """P(node | parents, rows learned): the posterior mean of each row."""
        return self.mean()


@dataclass(frozen=True, eq=False)
class RegressionPosteriors:
    """Independent distributions of (weights, variance), one for each joint state of the discrete parents.

    `weights_` (cards..., q), `spread_` (cards..., q, q), `alpha_` and `beta_` (cards...) are those of
    `RegressionDistribution`; NaN where a joint state has no rows and the prior leaves the intercept flat.
    """

    domain: Domain
    weights_: Floats
    spread_: Floats
    alpha_: Floats
    beta_: Floats

    def at(self, where: Mapping[Hashable, Hashable] | None = None, /, **states: Hashable) -> RegressionDistribution:
        """The distribution at a joint state of the discrete parents."""
        state = named(where, states)
        if set(state) != set(self.domain.names):
            raise OptionError(f"Give a state for each of {listing(self.domain.names)}; found {listing(state)}.")
        index = tuple(self.domain[name].index(state[name]) for name in self.domain.names)
        if np.isnan(self.alpha_[index]):
            raise EstimateError(
                f"{state!r} has no rows and a flat prior of the intercept, so there is no posterior. Use "
                "LinearGaussianPrior(..., on='all')."
            )
        return RegressionDistribution(
            self.weights_[index], self.spread_[index], float(self.alpha_[index]), float(self.beta_[index])
        )

    def mean(self) -> dict[str, Floats]:
        """Means of weights (cards..., q) and variances (cards...); inf where alpha is at most 1."""
        return {"weights": self.weights_, "variance": self._moment(1, self.beta_)}

    def _moment(self, order: int, top: Floats) -> Floats:
        """Top / (alpha - order), inf where alpha is too small for the moment to exist."""
        rest = self.alpha_ - order
        return np.where(rest <= 0, np.inf, top / np.where(rest <= 0, 1.0, rest))

    def mode(self) -> dict[str, Floats]:
        """The joint mode in (weights, variance) at each joint state."""
        return {"weights": self.weights_, "variance": self.beta_ / (self.alpha_ + 1 + 0.5 * self.weights_.shape[-1])}

    def variance(self) -> dict[str, Floats]:
        """Variances of weights (cards..., q) and of variances (cards...); inf where alpha is too small."""
        mean = self._moment(1, self.beta_)
        weights = mean[..., None] * np.diagonal(self.spread_, axis1=-2, axis2=-1)
        return {"weights": weights, "variance": self._moment(2, mean**2)}

    def intervals(self, level: float = 0.95) -> dict[str, Floats]:
        """Central intervals: weights (cards..., q, 2), which are Student-t, and variances (cards..., 2)."""
        shares = np.array(tails(level))
        diagonal = np.diagonal(self.spread_, axis1=-2, axis2=-1)
        weights = weight_quantiles(self.weights_, diagonal, self.alpha_[..., None], self.beta_[..., None], shares)
        return {"weights": weights, "variance": variance_quantiles(self.alpha_, self.beta_, shares)}

    def _places(self) -> list[dict[Hashable, Hashable]]:
        states = [self.domain[name].states for name in self.domain.names]
        return [
            {name: known[code] for name, known, code in zip(self.domain.names, states, codes, strict=True)}
            for codes in np.ndindex(*self.alpha_.shape)
        ]

    def sample(self, n: int = 1, random_state: Any = None) -> dict[str, Floats]:
        """`n` draws of weights (n, cards..., q) and variances (n, cards...)."""
        rng = generator(random_state)
        drawn = [self.at(state).sample(n, rng) for state in self._places()]
        shape = self.alpha_.shape
        return {
            "weights": np.stack([one["weights"] for one in drawn], axis=1).reshape(n, *shape, -1),
            "variance": np.stack([one["variance"] for one in drawn], axis=1).reshape(n, *shape),
        }

    def log_prob(self, x: Any) -> float:
        """Log density at weights (cards..., q) and variances (cards...), given as a dict or a pair."""
        weights, variance = as_point(x, ("weights", "variance"))
        if weights.shape != self.weights_.shape or variance.shape != self.alpha_.shape:
            raise OptionError(
                f"The point has shapes {weights.shape} and {variance.shape}; expected {self.weights_.shape} and "
                f"{self.alpha_.shape}."
            )
        pairs = zip(self._places(), np.ndindex(*self.alpha_.shape), strict=True)
        return math.fsum(float(self.at(state).log_prob((weights[k], variance[k]))) for state, k in pairs)

    def predictive(
        self, x: ArrayLike, where: Mapping[Hashable, Hashable] | None = None, /, **states: Hashable
    ) -> StudentT:
        """The distribution of the node at real parents x (p,) and a joint state of the discrete ones."""
        return self.at(where, **states).predictive(x)


@dataclass(frozen=True)
class RowPosteriors:
    """(weights, variance) are random in each of n rows: `weights` (n, q), `spread` (n, q, q), `alpha`, `beta` (n,)."""

    weights: Floats
    spread: Floats
    alpha: Floats
    beta: Floats

    def log_density(self, x: Floats, y: Floats) -> Floats:
        """Log density (n,) of y (n,) at x (n, q), parameters integrated out: Student's t."""
        scale = np.sqrt(self.beta / self.alpha * (1 + np.einsum("ni,nij,nj->n", x, self.spread, x)))
        away = y - (x * self.weights).sum(axis=1)
        return np.asarray(student_density.log_density(np.abs(away) / scale, 2 * self.alpha) - np.log(scale))

    def after(self, x: Floats, y: Floats, seen: NDArray[np.bool_]) -> RowPosteriors:
        """The distributions after one more observation (x, y) in the rows `seen` (n,): a change of rank one."""
        reach = np.einsum("nij,nj->ni", self.spread, x)
        gain = seen / (1 + (reach * x).sum(axis=1))
        away = y - (x * self.weights).sum(axis=1)
        return RowPosteriors(
            self.weights + (gain * away)[:, None] * reach,
            self.spread - gain[:, None, None] * reach[:, :, None] * reach[:, None, :],
            self.alpha + 0.5 * seen,
            self.beta + 0.5 * gain * away**2,
        )
