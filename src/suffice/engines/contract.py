"""What every exact discrete engine offers, and the answers it gives.

An `InferencePlan` is made once for a structure: cards of the variables and scopes of the factors. `load` gives it the
factors, and the `Model` that comes back conditions on evidence, which gives a `Posterior`, or answers many rows at
once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.array_types import Floats, RandomState
from suffice.engines.space import Evidence, SoftEvidence
from suffice.graphs.nodes import Node

Nodes = tuple[Node, ...]


@dataclass(frozen=True)
class Assignment:
    """The best joint state: an index for each variable, and the log of the product of all factors there."""

    states: Mapping[Any, int]
    log_value: float


@dataclass(frozen=True)
class RowAnswers:
    """Answers to n rows: log_partition (n,), and for each scope asked its marginals (n, cards of the scope).

    A row of probability 0 has a log_partition of minus infinity and marginals of 0.
    """

    log_partition: Floats
    marginals: Mapping[Any, Floats]


@dataclass(frozen=True)
class RowExpectation:
    """Expected counts of n weighted rows: log_partition (n,), and for each scope of the plan sum_r w_r P(scope | row).

    A row of probability 0 has a log_partition of minus infinity and adds nothing.
    """

    log_partition: Floats
    tables: Sequence[Floats]


class Posterior(Protocol):
    """The distribution of all variables given evidence: the product of all factors, restricted to it, over its sum."""

    @property
    def log_partition(self) -> float:
        """Log of the sum over all states that agree with the evidence; minus infinity if there is none."""

    def marginal(self, scope: Sequence[Node]) -> Floats:
        """The joint distribution of any variables, axes in the order asked."""

    def marginals(self) -> dict[Node, Floats]:
        """The distribution of each variable."""

    def factor_marginals(self) -> list[Floats]:
        """The distribution of each scope of the plan, axes in its order."""

    def sample(self, n: int, *, random_state: RandomState = None) -> NDArray[np.int32]:
        """Draw n joint states (n, variables), columns in the order of the cards of the plan."""


class Model(Protocol):
    """A plan with its factors."""

    def condition(self, evidence: Evidence = None, likelihoods: SoftEvidence = None) -> Posterior:
        """The distribution given states (by index), and given how likely the rest of the evidence is in each state."""

    def log_partition(self, evidence: Evidence = None, likelihoods: SoftEvidence = None) -> float:
        """`condition(...).log_partition` at half the cost."""

    def log_probability(self, evidence: Evidence = None, likelihoods: SoftEvidence = None) -> float:
        """Log-probability of the evidence: `log_partition` with it less `log_partition` without."""

    def most_probable(self, evidence: Evidence = None, likelihoods: SoftEvidence = None) -> Assignment:
        """A joint state of highest probability given the evidence; of equal ones that with the lowest indices."""

    def solve_rows(
        self,
        rows: ArrayLike,
        nodes: Sequence[Node] | None = None,
        *,
        scopes: Sequence[Sequence[Node]] = (),
        row_factors: Mapping[Any, ArrayLike] | None = None,
        threads: int = 1,
    ) -> RowAnswers:
        """Condition on each row (n, d) of codes, -1 for a missing value; answers the marginals of the scopes asked."""

    def expect(
        self,
        rows: ArrayLike,
        nodes: Sequence[Node] | None = None,
        *,
        weights: ArrayLike | None = None,
        row_factors: Mapping[Any, ArrayLike] | None = None,
        threads: int = 1,
    ) -> RowExpectation:
        """Add up the distributions of all scopes of the plan given each row, times its weight."""


class InferencePlan(Protocol):
    """How a structure will be worked on; prints what that costs."""

    @property
    def bytes(self) -> int:
        """Memory that one calibration takes."""

    def load(self, factors: Sequence[ArrayLike | None], *, log: bool = False) -> Model:
        """Take one table for each scope, axes in its order; None is a table of ones. log: tables are logarithms."""
