"""The joint distribution of discrete and real variables: a table, and in each cell a mixture of normal ones."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.domain import Domain
from suffice.engines.mixtures import GaussianMixture
from suffice.errors import EstimateError
from suffice.models.bayesian.nodes.regressions import named
from suffice.table import Table


class MixedDistribution:
    """P(discrete) p(real | discrete), exactly.

    `table` holds the probabilities of the joint states of the discrete variables, axes in the order asked. `mean`
    (cards..., u) and `covariance` (cards..., u, u) are those of the real variables in each cell, NaN where a cell has
    probability 0. `at(state)` is the distribution of the real variables in a cell.
    """

    def __init__(self, domain: Domain, cells: NDArray[np.intp], mixture: GaussianMixture) -> None:
        """Take the discrete variables, normal distributions with their weights, and the cell (c,) of each of them."""
        shape = domain.shape(domain.names)
        weights = np.bincount(cells, mixture.weights, int(np.prod(shape, dtype=np.int64)))
        self.table = Table(domain, weights.reshape(shape))
        self._cells, self._mixture = cells, mixture

    @property
    def discrete(self) -> tuple[Hashable, ...]:
        """The discrete variables."""
        return self.table.variables

    @property
    def names(self) -> tuple[Hashable, ...]:
        """The real variables."""
        return self._mixture.names

    def at(self, where: Mapping[Hashable, Hashable] | None = None, /, **states: Hashable) -> GaussianMixture:
        """The mixture of the real variables given a state of every discrete one."""
        wanted = named(where, states)
        probability = self.table.at(wanted)
        if isinstance(probability, Table):
            raise EstimateError(f"Give a state of each of {self.discrete!r}; found {wanted!r}.")
        if not probability > 0:
            raise EstimateError(f"The state {wanted!r} has probability 0, so nothing follows from it.")
        codes = tuple(self.table.domain[name].index(wanted[name]) for name in self.discrete)
        return self._at(int(np.ravel_multi_index(codes, self.table.values.shape)))

    def _at(self, cell: int) -> GaussianMixture:
        some = self._cells == cell
        weights = self._mixture.weights[some]
        return GaussianMixture(
            self.names, weights / weights.sum(), self._mixture.means[some], self._mixture.roots[some]
        )

    @cached_property
    def _moments(self) -> tuple[Floats, Floats]:
        u, cells = len(self.names), self.table.values.size
        mean, covariance = np.full((cells, u), np.nan), np.full((cells, u, u), np.nan)
        for cell in np.flatnonzero(self.table.values.ravel() > 0):
            distribution = self._at(int(cell))
            mean[cell], covariance[cell] = distribution.mean, distribution.covariance
        shape = self.table.values.shape
        return mean.reshape(*shape, u), covariance.reshape(*shape, u, u)

    @property
    def mean(self) -> Floats:
        """Mean of the real variables in each cell (cards..., u)."""
        return self._moments[0]

    @property
    def covariance(self) -> Floats:
        """Covariance of the real variables in each cell (cards..., u, u)."""
        return self._moments[1]

    def __str__(self) -> str:
        rows: list[list[Any]] = [[*self.discrete, "probability", *(f"mean of {name}" for name in self.names)]]
        means = self.mean.reshape(-1, len(self.names))
        for cell, (states, probability) in enumerate(self.table.items()):
            rows.append([*states, f"{probability:.4g}", *(f"{value:.4g}" for value in means[cell])])
        widths = [max(len(str(row[k])) for row in rows) for k in range(len(rows[0]))]
        return "\n".join("  ".join(str(c).rjust(w) for c, w in zip(row, widths, strict=True)) for row in rows)

    __repr__ = __str__
