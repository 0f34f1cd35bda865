"""The exact engine for tiny models: the table of all joint states.

It answers what the junction tree answers, by the definitions: one logarithm for each joint state, and sums over them.
It is the oracle of the tests, and the way to look at every state of a small model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.array_types import Floats, RandomState
from suffice.checks import generator
from suffice.engines.contract import Assignment, Nodes, RowAnswers, RowExpectation
from suffice.engines.memory import in_words
from suffice.engines.space import Evidence, SoftEvidence, Space
from suffice.errors import DataError, SizeError
from suffice.graphs.nodes import Node

MOST_STATES = 1 << 22
"""No table of joint states may be larger."""

_IMPOSSIBLE = "The evidence has probability 0 under the model, so there is no distribution given it."


def plan_enumeration(
    cards: Mapping[Any, int], scopes: Sequence[Sequence[Node]], *, limit_bytes: int = 8 * MOST_STATES
) -> EnumerationPlan:
    """Plan to list all joint states; raises SizeError if their table would take more than `limit_bytes`."""
    space = Space.of(cards)
    plan = EnumerationPlan(space, tuple(space.scope(scope) for scope in scopes))
    if plan.bytes > limit_bytes:
        raise SizeError(
            f"The table of all {plan.states:,} joint states would take {in_words(plan.bytes)}, and the limit is "
            f"{in_words(limit_bytes)}. Use the junction tree."
        )
    return plan


@dataclass(frozen=True, eq=False)
class EnumerationPlan:
    """All joint states of some variables; axes are the variables with two states or more, in the order given."""

    space: Space
    scopes: tuple[Nodes, ...]

    @property
    def axes(self) -> tuple[Node, ...]:
        """Variables of the table."""
        return tuple(node for node, card in self.space.cards.items() if card > 1)

    @property
    def states(self) -> int:
        """Number of joint states."""
        return self.space.size(self.space.nodes)

    @property
    def bytes(self) -> int:
        """Memory of the table."""
        return 8 * self.states

    def __str__(self) -> str:
        return f"enumeration over {self.states:,} joint states"

    def spread(self, scope: Sequence[Node], table: Floats) -> Floats:
        """View a table over scope so that it broadcasts against the table of all states."""
        kept = [node for node in scope if self.space.cards[node] > 1]
        order = [kept.index(node) for node in self.axes if node in kept]
        small = np.reshape(table, self.space.shape(kept))
        return np.transpose(small, order)[tuple(slice(None) if node in kept else None for node in self.axes)]

    def load(self, factors: Sequence[ArrayLike | None], *, log: bool = False) -> Enumeration:
        """Take one table for each scope, axes in its order; None is a table of ones. log: tables are logarithms."""
        total = np.zeros(self.space.shape(self.axes))
        for scope, table in zip(self.scopes, self.space.tables(self.scopes, factors, log=log), strict=True):
            if table is not None:
                total = total + self.spread(scope, table if log else _log(table))
        return Enumeration(self, total)


@dataclass(frozen=True, eq=False)
class Enumeration:
    """The log of the product of all factors in each joint state."""

    plan: EnumerationPlan
    logs: Floats

    def condition(self, evidence: Evidence = None, likelihoods: SoftEvidence = None) -> StateTable:
        """The distribution given states (by index) and given likelihoods, one number for each state."""
        return StateTable.of(self.plan, self._given(evidence, likelihoods))

    def log_partition(self, evidence: Evidence = None, likelihoods: SoftEvidence = None) -> float:
        """Log of the sum over all states that agree with the evidence; minus infinity if there is none."""
        return self.condition(evidence, likelihoods).log_partition

    def log_probability(self, evidence: Evidence = None, likelihoods: SoftEvidence = None) -> float:
        """Log-probability of the evidence; minus infinity if it is impossible."""
        total = self.log_partition()
        if total == -np.inf:
            raise DataError("The product of the factors is 0 in every joint state: they define no distribution.")
        return self.log_partition(evidence, likelihoods) - total

    def most_probable(self, evidence: Evidence = None, likelihoods: SoftEvidence = None) -> Assignment:
        """The first joint state of highest probability."""
        logs = self._given(evidence, likelihoods)
        best = float(logs.max())
        if best == -np.inf:
            raise DataError(_IMPOSSIBLE)
        states = dict.fromkeys(self.plan.space.nodes, 0)
        states.update(zip(self.plan.axes, map(int, np.unravel_index(np.argmax(logs), logs.shape)), strict=True))
        return Assignment(states, best)

    def solve_rows(
        self,
        rows: ArrayLike,
        nodes: Sequence[Node] | None = None,
        *,
        scopes: Sequence[Sequence[Node]] = (),
        row_factors: Mapping[Any, ArrayLike] | None = None,
        threads: int = 1,
    ) -> RowAnswers:
        """Condition on each row (n, d) of codes, -1 for a missing value; answers the marginals of any scopes."""
        space = self.plan.space
        asked = [space.scope(scope) for scope in scopes]
        distributions = self._rows(rows, nodes, row_factors)
        return RowAnswers(
            np.array([distribution.log_partition for distribution in distributions]),
            {
                scope: np.array([distribution.weighed(scope) for distribution in distributions]).reshape(
                    -1, *space.shape(scope)
                )
                for scope in asked
            },
        )

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
        distributions = self._rows(rows, nodes, row_factors)
        weight = np.ones(len(distributions)) if weights is None else np.asarray(weights, dtype=np.float64)
        tables = []
        for scope in self.plan.scopes:
            total = np.zeros(self.plan.space.shape(scope))
            for factor, distribution in zip(weight, distributions, strict=True):
                total = total + factor * distribution.weighed(scope)
            tables.append(total)
        return RowExpectation(np.array([distribution.log_partition for distribution in distributions]), tables)

    def _rows(
        self, rows: ArrayLike, nodes: Sequence[Node] | None, row_factors: Mapping[Any, ArrayLike] | None
    ) -> list[StateTable]:
        space = self.plan.space
        scope, codes = space.rows(rows, nodes)
        factors = space.row_factors(row_factors, len(codes))
        distributions = []
        for index, row in enumerate(codes):
            logs = self._given(_seen(scope, row), None)
            for own, table in factors.items():
                logs = logs + self.plan.spread(own, table[index])
            distributions.append(StateTable.of(self.plan, logs))
        return distributions

    def _given(self, evidence: Evidence, likelihoods: SoftEvidence) -> Floats:
        space = self.plan.space
        logs = self.logs
        for node, vector in space.likelihoods(likelihoods).items():
            logs = logs + self.plan.spread((node,), _log(vector))
        for node, state in space.evidence(evidence).items():
            logs = logs + self.plan.spread((node,), _log(np.arange(space.cards[node]) == state))
        return logs


@dataclass(frozen=True, eq=False)
class StateTable:
    """The probability of each joint state given evidence."""

    plan: EnumerationPlan
    distribution: Floats
    log_partition: float

    @classmethod
    def of(cls, plan: EnumerationPlan, logs: Floats) -> StateTable:
        """Normalise logarithms."""
        top = logs.max()
        if top == -np.inf:
            return cls(plan, np.zeros_like(logs), -np.inf)
        values = np.exp(logs - top)
        return cls(plan, values / values.sum(), float(top + np.log(values.sum())))

    def marginal(self, scope: Sequence[Node]) -> Floats:
        """The joint distribution of any variables, axes in the order asked."""
        self._check()
        return self.weighed(self.plan.space.scope(scope))

    def marginals(self) -> dict[Node, Floats]:
        """The distribution of each variable."""
        self._check()
        return {node: self.marginal((node,)) for node in self.plan.space.nodes}

    def factor_marginals(self) -> list[Floats]:
        """The distribution of each scope of the plan, axes in its order."""
        self._check()
        return [self.marginal(scope) for scope in self.plan.scopes]

    def sample(self, n: int, *, random_state: RandomState = None) -> NDArray[np.int32]:
        """Draw n joint states (n, variables), columns in the order of the cards of the plan."""
        self._check()
        cells = generator(random_state).choice(self.distribution.size, size=n, p=self.distribution.ravel())
        columns = np.zeros((n, len(self.plan.space.nodes)), np.int32)
        for node, codes in zip(self.plan.axes, np.unravel_index(cells, self.distribution.shape), strict=True):
            columns[:, self.plan.space.nodes.index(node)] = codes
        return columns

    def weighed(self, scope: Nodes) -> Floats:
        """The marginal, or zeros if the evidence is impossible."""
        axes = self.plan.axes
        kept = [node for node in axes if node in scope]
        table = self.distribution.sum(axis=tuple(index for index, node in enumerate(axes) if node not in scope))
        order = [kept.index(node) for node in scope if node in kept]
        return np.transpose(table, order).reshape(self.plan.space.shape(scope))

    def _check(self) -> None:
        if self.log_partition == -np.inf:
            raise DataError(_IMPOSSIBLE)


def _log(values: ArrayLike) -> Floats:
    with np.errstate(divide="ignore"):
        return np.log(np.asarray(values, dtype=np.float64))


def _seen(scope: Nodes, row: NDArray[np.int32]) -> dict[Node, int]:
    """What a row observes."""
    return {node: int(code) for node, code in zip(scope, row, strict=True) if code >= 0}
