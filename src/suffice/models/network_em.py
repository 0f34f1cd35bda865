"""EM for networks of tables: hidden variables and gaps, by exact expected counts over the distinct rows.

The E-step adds up P(family | what was seen) over the distinct rows of the data; the M-step is the closed form of the
complete case. The observed log-likelihood (plus the log prior for MAP) never falls, which is checked at every step.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from suffice.answers import CountTable
from suffice.domain import Domain
from suffice.engines.junction_tree import TreePlan, plan_tree
from suffice.engines.rows import Rows
from suffice.errors import EstimateError
from suffice.iteration import Control, Outcome, State, iterate
from suffice.models.table_node import TableLearner, TableNode

Floats = NDArray[np.float64]

#: Relative fall of the objective that is still rounding.
SLACK = 1e-9


@dataclass(frozen=True)
class TableEM:
    """One EM problem: rows (k, d) of codes with -1 for gaps, their weights (k,), and how each family is learned.

    `families` holds the domain (parents, node) of every node; nodes in `given` keep their table.
    """

    names: tuple[Hashable, ...]
    rows: NDArray[np.int32]
    weights: Floats
    families: Mapping[Hashable, Domain]
    learners: Mapping[Hashable, TableLearner]
    given: Mapping[Hashable, TableNode]

    @cached_property
    def plan(self) -> TreePlan:
        """The junction tree of the families."""
        cards = {name: domain[name].card for name, domain in self.families.items()}
        return plan_tree(cards, [domain.names for domain in self.families.values()])

    @cached_property
    def checked(self) -> Rows:
        """The rows as the tree takes them, checked once for all steps."""
        return self.plan.rows(self.rows, self.names)

    # -- start -------------------------------------------------------------------------------------------------------

    def start(self, rng: np.random.Generator | None, hidden: frozenset[Hashable]) -> dict[Hashable, TableNode]:
        """Tables to begin with.

        Families without a hidden variable start at the counts of the rows that show all of the family, plus one in all
        for each row; those with one start at random rows, because a symmetric start would never move.
        """
        found: dict[Hashable, TableNode] = {}
        for name, domain in self.families.items():
            if name in self.given:
                found[name] = self.given[name]
                continue
            shape = domain.shape(domain.names)
            if hidden & set(domain.names) and rng is not None:
                counts = rng.dirichlet(np.full(shape[-1], 2.0), size=shape[:-1])
            else:
                counts = self._available(domain) + 1.0 / shape[-1]
            learner = self.learners[name]
            alpha = (
                None
                if learner.prior is None
                else learner.prior.rows(None, shape[-1]) * np.ones((counts.size // shape[-1], 1))
            )
            node = replace(learner, prior=None).learn_from(domain, CountTable.of(counts))
            found[name] = replace(node, alpha=alpha, estimate=learner.estimate)
        return found

    def _available(self, domain: Domain) -> Floats:
        if not set(domain.names) <= set(self.names):
            return np.zeros(domain.shape(domain.names))
        cells = self.rows[:, [self.names.index(name) for name in domain.names]]
        full = (cells >= 0).all(axis=1)
        counts = np.zeros(domain.shape(domain.names))
        np.add.at(counts, tuple(cells[full].T), self.weights[full])
        return counts

    # -- steps -------------------------------------------------------------------------------------------------------

    def expect(self, nodes: Mapping[Hashable, TableNode]) -> tuple[float, list[Floats]]:
        """Observed log-likelihood at these tables, and the expected counts of every family."""
        tree = self.plan.load([node.table_.values for node in nodes.values()])
        answer = tree.expect(self.checked, weights=self.weights)
        seen = self.weights > 0
        return float(self.weights[seen] @ answer.log_partition[seen]), list(answer.tables)

    def maximise(self, counts: list[Floats]) -> dict[Hashable, TableNode]:
        """The tables of the expected counts."""
        return {
            name: self.given[name]
            if name in self.given
            else self.learners[name].learn_from(domain, CountTable.of(table))
            for (name, domain), table in zip(self.families.items(), counts, strict=True)
        }

    def log_prior(self, nodes: Mapping[Hashable, TableNode]) -> float:
        """Log prior density of the tables up to a constant, as the M-step maximises it.

        The posterior mean under alpha is the mode under alpha + 1, so both are MAP-EM for some Dirichlet.
        """
        from scipy.special import xlogy

        total = 0.0
        for node in nodes.values():
            if node.alpha is not None:
                total += float(xlogy(node.alpha - (1.0 if node.estimate == "map" else 0.0), node.rows).sum())
        return total

    def run(self, start: Mapping[Hashable, TableNode], control: Control) -> tuple[dict[Hashable, TableNode], Outcome]:
        """Iterate from a start; the gap is the largest change of a probability."""
        size = max(float(self.weights.sum()), 1.0)

        def state_of(nodes: Mapping[Hashable, TableNode], gap: float) -> State:
            log_likelihood, counts = self.expect(nodes)
            flat = np.concatenate([node.rows.ravel() for node in nodes.values()])
            memory = {f"counts{k}": table for k, table in enumerate(counts)} | {"log_likelihood": log_likelihood}
            return State(flat, log_likelihood + self.log_prior(nodes), gap, memory=memory)

        def step(state: State) -> State:
            counts = [state.memory[f"counts{k}"] for k in range(len(self.families))]
            nodes = self.maximise(counts)
            flat = np.concatenate([node.rows.ravel() for node in nodes.values()])
            moved = state_of(nodes, float(np.abs(flat - state.parameters).max(initial=0.0)))
            fall = state.objective - moved.objective
            if fall > SLACK * max(abs(state.objective), size):
                raise EstimateError(
                    f"Iteration {state.iteration + 1} lowered the objective by {fall:.3g}; EM never does."
                )
            return moved

        outcome = iterate(step, state_of(dict(start), np.inf), control)
        counts = [outcome.state.memory[f"counts{k}"] for k in range(len(self.families))]
        return self._nodes_at(outcome.state, counts, start), outcome

    def _nodes_at(
        self, state: State, counts: list[Floats], like: Mapping[Hashable, TableNode]
    ) -> dict[Hashable, TableNode]:
        """The nodes whose tables are the parameters of a state, with its expected counts."""
        found: dict[Hashable, TableNode] = {}
        at = 0
        fitted = self.maximise(counts)
        for (name, node), table in zip(like.items(), counts, strict=True):
            rows = state.parameters[at : at + node.rows.size].reshape(node.rows.shape)
            at += node.rows.size
            found[name] = (
                node if name in self.given else replace(fitted[name], rows=rows, counts=table.reshape(rows.shape))
            )
        return found
