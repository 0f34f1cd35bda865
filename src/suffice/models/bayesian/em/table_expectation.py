"""Expected statistics of a network of tables: exact expected counts over the distinct rows, by the junction tree."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.answers import Answer, CountTable, PatternTable
from suffice.array_types import Floats
from suffice.domain import Domain
from suffice.engines.junction_tree import JunctionTree, TreePlan, plan_tree
from suffice.errors import OptionError
from suffice.models.em.counts import ExpectedCounts
from suffice.statistics import Counts, Patterns, Statistic, Summary

Nodes = Mapping[Hashable, Any]
Scope = tuple[Hashable, ...]

#: Expected weights below this share of the least weight of a row are 0: no row feels it, and products of probabilities
#: stay in the range of floats.
NOTHING = 1e-60


def counted(statistic: Statistic, table: Floats) -> Answer:
    """The answer to a statistic of discrete variables, from the expected weight of each joint state."""
    if isinstance(statistic, Counts):
        return CountTable.of(table)
    if isinstance(statistic, Patterns):
        return PatternTable(np.argwhere(table > 0).astype(np.int32), table[table > 0])
    raise OptionError(f"EM cannot give the expected answer to {statistic!r}; it knows counts and moments of a family.")


@dataclass(frozen=True, eq=False)
class TablePlans:
    """Junction trees for the tables of a network and for what the M-step asks for, planned once for all who need them.

    `domain` holds all nodes, and the private variables of their factors.
    """

    domain: Domain
    statistics: tuple[Statistic, ...]

    def __getstate__(self) -> dict[str, Any]:
        """Whoever gets them plans anew."""
        return {"domain": self.domain, "statistics": self.statistics}

    @cached_property
    def _planned(self) -> dict[tuple[Scope, ...], TreePlan]:
        """By scopes, which are the same at all steps of a fit."""
        return {}

    def load(self, nodes: Nodes) -> JunctionTree:
        """The tree with the tables of some nodes; it has a scope for each statistic too."""
        factors: list[tuple[Scope, Any]] = [f for node in nodes.values() for f in node.expectation_factors()]
        scopes = [scope for scope, _ in factors]
        more = [s.variables for s in self.statistics if s.variables not in scopes]
        asked = (*scopes, *more)
        if asked not in self._planned:
            self._planned[asked] = plan_tree({v.name: v.card for v in self.domain.variables}, asked)
        return self._planned[asked].load([*(table for _, table in factors), *(None for _ in more)])


@dataclass(frozen=True, eq=False)
class TableExpectation:
    """The E-step of a network of tables.

    `rows` (k, d) hold the codes of the variables `names`, -1 for a missing value, with `weights` (k,). Rows of equal
    codes are worked on once.
    """

    plans: TablePlans
    names: tuple[Hashable, ...]
    rows: NDArray[np.int32]
    weights: Floats
    threads: int = 1

    @cached_property
    def _counts(self) -> dict[TreePlan, ExpectedCounts]:
        """The rows as a plan takes them."""
        return {}

    def expect(self, nodes: Nodes) -> tuple[float, Summary]:
        """Observed log-likelihood at these nodes, and the expected statistics."""
        tree, domain, statistics = self.plans.load(nodes), self.plans.domain, self.plans.statistics
        if tree.plan not in self._counts:
            self._counts[tree.plan] = ExpectedCounts(tree.plan, self.names, self.rows, self.weights, self.threads)
        value, expected = self._counts[tree.plan](tree)
        numbers = {scope: number for number, scope in reversed(list(enumerate(tree.plan.scopes)))}
        least = NOTHING * float(self.weights[self.weights > 0].min(initial=1.0))
        tables = [np.where(table < least, 0.0, table) for table in expected]
        answers = {s: counted(s, tables[numbers[s.variables]]) for s in statistics}
        return value, Summary(domain, answers, len(self.rows), float(self.weights.sum()))
