"""How a table is learned from the counts of its family, and the Dirichlet prior of its rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from suffice.answers import CountTable
from suffice.domain import Domain
from suffice.models.bayesian.nodes.contract import Alone
from suffice.models.bayesian.nodes.table import TableNode
from suffice.statistics import Counts, Statistic, Summary

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class DirichletRows:
    """Dirichlet pseudo-counts of a table: one number for all cells, or an array with axes (parents, node)."""

    alpha: Floats

    def __eq__(self, other: object) -> bool:
        """Same pseudo-counts to the bit."""
        return isinstance(other, DirichletRows) and np.array_equal(self.alpha, other.alpha)

    __hash__ = None  # type: ignore[assignment]

    def rows(self, codes: Codes | None, card: int) -> Floats:
        """Pseudo-counts (k, card) of parent configurations (k, p); all of them, in order, for None."""
        if self.alpha.ndim == 0:
            return np.full((1 if codes is None else len(codes), card), float(self.alpha))
        flat = self.alpha.reshape(-1, card)
        if codes is None:
            return flat
        return self.alpha[tuple(codes.T)]


@dataclass(frozen=True)
class TableLearner(Alone):
    """Learns a table from the counts of its family."""

    prior: DirichletRows | None = None
    estimate: str = "mean"
    unseen: str = "uniform"

    def statistics(self, domain: Domain) -> tuple[Statistic, ...]:
        """The counts of the family."""
        return (Counts(domain.names),)

    def learn(self, domain: Domain, summary: Summary) -> TableNode:
        """The fitted table."""
        return self.learn_from(domain, summary[Counts(domain.names)])

    def learn_from(self, domain: Domain, table: CountTable) -> TableNode:
        """The fitted table, from counts, expected ones too."""
        return TableNode.from_counts(domain, table, self.prior, self.estimate, self.unseen)
