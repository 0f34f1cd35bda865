"""What every kind of node of a Bayesian network can do.

A node is frozen: `learn` makes a new one from statistics. Columns are given by name: codes for discrete variables,
numbers for real ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from suffice.domain import Domain
from suffice.statistics import Summary

Floats = NDArray[np.float64]
Columns = Mapping[Any, NDArray[Any]]


class Node(Protocol):
    """P(node | parents), fitted. `domain` holds the parents in declared order, then the node."""

    kind: ClassVar[str]

    @property
    def domain(self) -> Domain:
        """The parents in declared order, then the node."""
        ...

    @property
    def n_params(self) -> int:
        """Free parameters."""
        ...

    def log_likelihood(self, summary: Summary) -> float:
        """Sum over rows of log P(node | parents), from the statistics."""
        ...

    def gap(self, summary: Summary) -> float:
        """Slope of the node's objective at its parameters, a row."""
        ...

    def log_evidence(self) -> float | None:
        """Log marginal likelihood of the node's data under its prior; None without one."""
        ...

    def log_prob(self, columns: Columns) -> Floats:
        """Log P(node | parents) of each row (n,)."""
        ...

    def sample(self, columns: Columns, rng: np.random.Generator, n: int) -> NDArray[Any]:
        """One value for each of n rows of the parents."""
        ...

    def to_plain(self) -> dict[str, Any]:
        """Plain data for a file."""
        ...

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self:
        """Rebuild from plain data, checking it."""
        ...
