"""Expected statistics of a network of tables: exact expected counts over the distinct rows, by the junction tree."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.answers import Answer, CountTable, PatternTable
from suffice.domain import Domain
from suffice.engines.junction_tree import plan_tree
from suffice.errors import OptionError
from suffice.models.em.counts import ExpectedCounts
from suffice.statistics import Counts, Patterns, Statistic, Summary

Floats = NDArray[np.float64]
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


@dataclass(frozen=True)
class TableExpectation:
    """The E-step of a network of tables.

    `rows` (k, d) hold the codes of the variables `names`, -1 for a gap, with `weights` (k,); `statistics` is what the
    M-step asks for. `domain` holds all nodes, and the private variables of their factors. Rows of equal codes are
    worked on once.
    """

    domain: Domain
    names: tuple[Hashable, ...]
    rows: NDArray[np.int32]
    weights: Floats
    statistics: tuple[Statistic, ...]
    threads: int = 1

    @cached_property
    def _planned(self) -> dict[tuple[Scope, ...], ExpectedCounts]:
        """The junction tree of some scopes and the rows as it takes them; all steps have the same scopes."""
        return {}

    def _plan(self, scopes: tuple[Scope, ...]) -> ExpectedCounts:
        if scopes not in self._planned:
            plan = plan_tree({v.name: v.card for v in self.domain.variables}, scopes)
            self._planned[scopes] = ExpectedCounts(plan, self.names, self.rows, self.weights, self.threads)
        return self._planned[scopes]

    def expect(self, nodes: Nodes) -> tuple[float, Summary]:
        """Observed log-likelihood at these nodes, and the expected statistics."""
        factors: list[tuple[Scope, Any]] = [f for node in nodes.values() for f in node.expectation_factors()]
        scopes = [scope for scope, _ in factors]
        asked = scopes + [s.variables for s in self.statistics if s.variables not in scopes]
        counts = self._plan(tuple(asked))
        given = [*(table for _, table in factors), *(None for _ in asked[len(scopes) :])]
        value, expected = counts(counts.plan.load(given))
        numbers = {scope: number for number, scope in reversed(list(enumerate(asked)))}
        least = NOTHING * float(self.weights[self.weights > 0].min(initial=1.0))
        tables = [np.where(table < least, 0.0, table) for table in expected]
        answers = {s: counted(s, tables[numbers[s.variables]]) for s in self.statistics}
        return value, Summary(self.domain, answers, len(self.rows), float(self.weights.sum()))
