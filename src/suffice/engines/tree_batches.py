"""Many cases of one structure that differ in all of their factors: matrices in, matrices out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from suffice.array_types import Floats, Ints, RandomState
from suffice.engines.contract import InferencePlan, Model
from suffice.engines.junction_tree import TreePlan
from suffice.errors import OptionError, listing
from suffice.graphs.nodes import Node
from suffice.kernels.junction_tree_cases import Cases, maximize_cases, solve_cases
from suffice.kernels.junction_tree_potentials import Potentials


class PlanBatch:
    """Factors over fixed scopes, by the plan of any engine, one case after another; a scope may come more than once.

    Matrices (cases, numbers) hold the tables of all scopes one after another, axes in the order of the scope.
    """

    def __init__(
        self, plan: InferencePlan, planned: Sequence[Sequence[Node]], cards: Mapping[Any, int], scopes: Sequence[Any]
    ) -> None:
        """planned: the scopes that the plan takes tables of, among which are all `scopes`."""
        self._plan, self._planned, self._cards, self._scopes = plan, [tuple(scope) for scope in planned], cards, scopes
        self._shapes = [tuple(cards[node] for node in scope) for scope in scopes]
        self.sizes = np.array([math.prod(shape) for shape in self._shapes], np.int64)
        self.starts = np.cumsum(self.sizes) - self.sizes
        self.width = int(self.sizes.sum())

    def solve(self, logs: Floats, *, threads: int = 1, calls: int | None = None) -> tuple[Floats, Floats]:
        """Log Z (cases,) and the marginals of all scopes (cases, numbers)."""
        log_z, marginals = np.empty(len(logs)), np.empty_like(logs)
        for case, row in enumerate(logs):
            posterior = self._loaded(row).condition()
            tables = dict(zip(self._planned, posterior.factor_marginals(), strict=True))
            log_z[case] = posterior.log_partition
            marginals[case] = np.concatenate([tables[tuple(scope)].ravel() for scope in self._scopes])
        return log_z, marginals

    def best(self, logs: Floats) -> Ints:
        """The most probable states (cases, variables), columns in the order of the cards."""
        best = [self._loaded(row).most_probable().states for row in logs]
        return np.array([[states[node] for node in self._cards] for states in best], np.int64)

    def draw(self, row: Floats, n: int, *, random_state: RandomState) -> Ints:
        """Independent states (n, variables) of one case."""
        return self._loaded(row).condition().sample(n, random_state=random_state).astype(np.int64)

    def _loaded(self, row: Floats) -> Model:
        """The plan with the tables of one case; those of equal scopes are multiplied."""
        tables = {scope: np.zeros([self._cards[node] for node in scope]) for scope in self._planned}
        for scope, shape, part in zip(self._scopes, self._shapes, np.split(row, self.starts[1:]), strict=True):
            tables[tuple(scope)] += part.reshape(shape)
        return self._plan.load(list(tables.values()), log=True)


class TreeBatch(PlanBatch):
    """The same by a junction tree, many cases side by side; each scope lies inside of a clique of the plan."""

    def __init__(self, plan: TreePlan, scopes: Sequence[Sequence[Node]]) -> None:
        """See the class."""
        self.plan = plan
        checked = [plan.space.scope(scope) for scope in scopes]
        super().__init__(plan, plan.scopes, plan.space.cards, checked)
        self._numbers = [plan.space.numbers(scope) for scope in checked]
        outside = [s for s, n in zip(checked, self._numbers, strict=True) if n and plan.layout.home(n) < 0]
        if outside:
            raise OptionError(f"The variables {listing(outside[0])} are not together in a clique of the junction tree.")

    @cached_property
    def _potentials(self) -> Potentials:
        return self.plan.load([None] * len(self.plan.scopes), log=True).potentials

    def solve(self, logs: Floats, *, threads: int = 1, calls: int | None = None) -> tuple[Floats, Floats]:
        """Log Z (cases,) and the marginals of all scopes (cases, numbers); NaN where a log-potential is not finite."""
        if not self.plan.space.number:  # A single joint state.
            return logs.sum(axis=1), np.ones_like(logs)
        if not np.isfinite(logs).all():
            return np.full(len(logs), np.nan), np.full_like(logs, np.nan)
        room = self.plan.limit_bytes // max(5 * self.plan.bytes, 1)
        workers = max(1, min(threads, room))
        answers = solve_cases(self._potentials, self._cases(logs), self._numbers, threads=workers, calls=calls)
        return answers.log_z, answers.marginals

    def best(self, logs: Floats) -> Ints:
        """The most probable states (cases, variables), columns in the order of the cards of the plan."""
        space = self.plan.space
        columns = np.zeros((len(logs), len(space.nodes)), np.int64)
        if space.number:
            states, _ = maximize_cases(self._potentials, self._cases(logs))
            for column, node in enumerate(space.nodes):
                if node in space.number:
                    columns[:, column] = states[:, space.number[node]]
        return columns

    def _cases(self, logs: Floats) -> Cases:
        """The cases, each table divided by its largest number."""
        if logs.ndim != 2 or logs.shape[1] != self.width:
            raise OptionError(f"Log-potentials have shape {logs.shape}; expected (cases, {self.width}).")
        tops = np.maximum.reduceat(logs, self.starts, axis=1)
        moved = logs - np.repeat(tops, self.sizes, axis=1)
        codes = np.zeros((0, len(logs)), np.int32)
        return Cases((), codes, tuple(self._numbers), np.exp(moved), moved, tops.sum(axis=1))
