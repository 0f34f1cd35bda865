"""The E-step of a network as a question to rows, wherever they are; its parameters are the nodes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

from suffice.models.bayesian.em.check import expected_again
from suffice.models.bayesian.em.mixed_expectation import MixedExpectation, Shape
from suffice.models.bayesian.em.table_expectation import TableExpectation, TablePlans
from suffice.models.bayesian.fitted import NetworkFitted
from suffice.models.em.latent import Expected
from suffice.models.em.rows import ObservedRows, code_matrix
from suffice.statistics import Summary

Nodes = dict[Hashable, Any]


@dataclass(frozen=True, eq=False)
class NetworkExpectation:
    """Observed log-likelihood and expected statistics: by one junction tree for tables, by blocks where nodes are real.

    `keep` says that what the steps need of the rows is made once: for one shard in this process, which is there anyway.
    """

    plans: TablePlans
    parents: Mapping[Hashable, tuple[Hashable, ...]]
    threads: int = 1
    keep: bool = False

    def __getstate__(self) -> dict[str, Any]:
        """What is kept stays."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}

    @cached_property
    def _kept(self) -> dict[int, MixedExpectation | TableExpectation]:
        """By the identity of rows, which are held as long as this is."""
        return {}

    def __call__(self, rows: ObservedRows, nodes: Nodes) -> Expected[Summary]:
        """The E-step of some rows."""
        if not self.keep:
            return Expected(*self._made(rows).expect(nodes))
        if id(rows) not in self._kept:
            self._kept[id(rows)] = self._made(rows)
        return Expected(*self._kept[id(rows)].expect(nodes))

    def _made(self, rows: ObservedRows) -> MixedExpectation | TableExpectation:
        domain = self.plans.domain
        if domain.numbers:
            shape = Shape(domain, self.parents, self.plans.statistics)
            return MixedExpectation(shape, rows.columns, rows.weights, keep=self.keep)
        names, codes = code_matrix(rows)
        return TableExpectation(self.plans, names, codes, rows.weights, self.threads)


@dataclass(frozen=True, eq=False)
class ExpectationOfJudge:
    """The same by other code, for the judge."""

    plans: TablePlans

    def __call__(self, rows: ObservedRows, nodes: Nodes) -> Expected[Summary]:
        """Row by row, through the engines that answer queries."""
        return expected_again(replace(rows, domain=self.plans.domain), nodes, self.plans)


def row_scores(rows: ObservedRows, nodes: Nodes) -> float:
    """The sum of the log-probabilities of rows; missing values and hidden nodes are summed out."""
    infer = NetworkFitted(nodes).inference
    return float(rows.weights @ infer.log_likelihood(rows.columns, len(rows.weights), calls=1))
