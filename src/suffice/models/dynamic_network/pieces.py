"""What each slice says about the states that are carried along: families, in pieces that share nothing else.

Once the carried states of a slice and of the slices before are given, its families fall apart: two belong together only
where they share a variable of this slice that may be missing and is not carried. Such a piece is a function of the
carried states, the same in all slices that show the same values. It is worked out for each such **pattern** once, by a
junction tree where something is summed out.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from suffice.answers import Answer
from suffice.array_types import Floats, Ints
from suffice.domain import Domain
from suffice.engines.junction_tree import JunctionTree, TreePlan, plan_tree
from suffice.engines.rows import EvidenceRows, distinct_rows
from suffice.models.bayesian.em.expected_moments import ExpectedMoments
from suffice.models.bayesian.em.table_expectation import counted
from suffice.models.dynamic_network.structure import Position
from suffice.models.em.rows import ObservedRows, batch_of
from suffice.sources.tally import tally
from suffice.statistics import Moments, MomentsBy, Statistic

Nodes = Mapping[Hashable, Any]


@dataclass(frozen=True, eq=False)
class Choice:
    """The best states of what a piece sums out: `logs` (count, states) with them, `codes` (count, states, nodes)."""

    logs: Floats
    nodes: tuple[Hashable, ...] = ()
    codes: NDArray[np.int32] | None = None

    def fill(self, states: dict[Hashable, Ints], rows: Ints, labels: Ints, carried: Ints) -> None:
        """Write the best states of some slices, whose patterns and carried states are known."""
        if self.codes is not None:
            for number, node in enumerate(self.nodes):
                states[node][rows] = self.codes[labels, carried, number]


class Piece(Protocol):
    """What some slices say about carried states."""

    @property
    def rows(self) -> Ints:
        """The slices (n,)."""

    @property
    def labels(self) -> Ints:
        """The pattern of each slice (n,)."""

    @property
    def count(self) -> int:
        """How many patterns there are."""

    @property
    def carried(self) -> tuple[Position, ...]:
        """The positions on whose states it depends."""

    @property
    def cards(self) -> tuple[int, ...]:
        """States of each of these."""

    def logs(self, nodes: Nodes) -> Floats:
        """The log of what each pattern says of each carried state (count, states)."""

    def expected(self, nodes: Nodes, weights: Floats) -> dict[Statistic, Answer]:
        """The expected statistics, given the weight of each pattern with each carried state (count, states)."""

    def best(self, nodes: Nodes) -> Choice:
        """As `logs`, with the best states in place of a sum."""


@dataclass(frozen=True, eq=False)
class Seen:
    """A carried variable where it was seen: no other state is possible."""

    rows: Ints
    labels: Ints
    carried: tuple[Position, ...]
    cards: tuple[int, ...]

    @property
    def count(self) -> int:
        """As many patterns as states."""
        return self.cards[0]

    def logs(self, nodes: Nodes) -> Floats:
        """0 at the state, -inf elsewhere."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.eye(self.cards[0])))

    def expected(self, nodes: Nodes, weights: Floats) -> dict[Statistic, Answer]:
        """None."""
        return {}

    def best(self, nodes: Nodes) -> Choice:
        """Nothing is summed out."""
        return Choice(self.logs(nodes))


@dataclass(frozen=True, eq=False)
class Absent:
    """Lags of a carried variable in a slice that has none of these before it: they have their first state."""

    rows: Ints
    carried: tuple[Position, ...]
    cards: tuple[int, ...]
    count: int = 1

    @property
    def labels(self) -> Ints:
        """All alike."""
        return np.zeros(len(self.rows), np.int64)

    def logs(self, nodes: Nodes) -> Floats:
        """0 where all have their first state, -inf elsewhere."""
        table = np.full((1, int(np.prod(self.cards))), -np.inf)
        table[0, 0] = 0.0
        return table

    def expected(self, nodes: Nodes, weights: Floats) -> dict[Statistic, Answer]:
        """None."""
        return {}

    def best(self, nodes: Nodes) -> Choice:
        """Nothing is summed out."""
        return Choice(self.logs(nodes))


@dataclass(frozen=True, eq=False)
class TablePiece:
    """Families of states: `positions` says by name where each variable is, `patterns` (count, seen) are codes.

    `seen` are the positions with values, -1 where one is missing and summed out; all others that are not carried have
    none in any slice.
    """

    rows: Ints
    labels: Ints
    patterns: NDArray[np.int32]
    seen: tuple[Position, ...]
    carried: tuple[Position, ...]
    domain: Domain
    families: tuple[Hashable, ...]
    positions: Mapping[Hashable, Position]
    statistics: tuple[Statistic, ...]
    private: Domain

    @property
    def count(self) -> int:
        """How many patterns there are."""
        return len(self.patterns)

    @cached_property
    def cards(self) -> tuple[int, ...]:
        """States of each carried position."""
        return tuple(self.domain[name].card for name, _ in self.carried)

    def _at(self, names: Sequence[Hashable]) -> tuple[Hashable, ...]:
        return tuple(self.positions.get(name, name) for name in names)

    @cached_property
    def _plans(self) -> dict[tuple[tuple[Hashable, ...], ...], TreePlan]:
        return {}

    def _loaded(self, nodes: Nodes) -> JunctionTree:
        """The tree of the tables, with a scope for each statistic."""
        factors = [(self._at(scope), table) for f in self.families for scope, table in nodes[f].expectation_factors()]
        scopes = tuple(scope for scope, _ in factors)
        more = tuple(scope for scope in self._scopes.values() if scope not in scopes)
        asked = (*scopes, *more)
        if asked not in self._plans:
            cards: dict[Hashable, int] = {p: self.domain[p[0]].card for p in {*self.seen, *self.positions.values()}}
            cards |= {variable.name: variable.card for variable in self.private.variables}
            self._plans[asked] = plan_tree(cards, asked)
        return self._plans[asked].load([*(table for _, table in factors), *(None for _ in more)])

    @cached_property
    def _scopes(self) -> dict[Statistic, tuple[Hashable, ...]]:
        return {statistic: self._at(statistic.columns) for statistic in self.statistics}

    @cached_property
    def _rows(self) -> dict[TreePlan, EvidenceRows]:
        return {}

    def _evidence(self, plan: TreePlan) -> EvidenceRows:
        """Every pattern with every carried state, as rows."""
        if plan not in self._rows:
            states = joint_states(self.cards)
            codes = np.concatenate(
                [np.repeat(self.patterns, len(states), axis=0), np.tile(states, (self.count, 1))], axis=1
            )
            self._rows[plan] = plan.rows(codes, (*self.seen, *self.carried))
        return self._rows[plan]

    @cached_property
    def _cells(self) -> Ints | None:
        """Of one family that is all evidence, the cell of its table at every pattern and carried state; None of others.

        Wide families, whose tables have private variables, are left to the tree.
        """
        if len(self.families) > 1 or self._local or len(self.private):
            return None
        states = joint_states(self.cards)
        codes = dict(zip(self.seen, self.patterns.T[:, :, None], strict=True))
        codes |= dict(zip(self.carried, states.T[:, None, :], strict=True))
        total = np.zeros((self.count, len(states)), np.int64)
        for position in self.positions.values():
            total = total * self.domain[position[0]].card + codes[position]
        return total

    def logs(self, nodes: Nodes) -> Floats:
        """By the junction tree, with everything that was seen and carried as evidence."""
        if self._cells is not None:
            with np.errstate(divide="ignore"):
                return np.asarray(np.log(nodes[self.families[0]].table_.values.ravel()[self._cells]))
        tree = self._loaded(nodes)
        mass = tree.solve_rows(self._evidence(tree.plan)).log_partition
        return np.asarray(mass.reshape(self.count, -1))

    def expected(self, nodes: Nodes, weights: Floats) -> dict[Statistic, Answer]:
        """Expected counts of the families, by the same tree."""
        if self._cells is not None:
            shape = tuple(self.domain[node].card for node, _ in self.positions.values())
            table = np.bincount(self._cells.ravel(), weights.ravel(), minlength=math.prod(shape)).astype(np.float64)
            return {statistic: counted(statistic, table.reshape(shape)) for statistic in self.statistics}
        tree = self._loaded(nodes)
        answer = tree.expect(self._evidence(tree.plan), weights=weights.ravel())
        numbers = {scope: number for number, scope in reversed(list(enumerate(tree.plan.scopes)))}
        return {s: counted(s, answer.tables[numbers[scope]]) for s, scope in self._scopes.items()}

    @cached_property
    def _local(self) -> tuple[Position, ...]:
        """What some slice has to sum out."""
        unseen = [p for p in dict.fromkeys(self.positions.values()) if p not in self.seen and p not in self.carried]
        return (*unseen, *(p for number, p in enumerate(self.seen) if (self.patterns[:, number] < 0).any()))

    def best(self, nodes: Nodes) -> Choice:
        """Every state of what is not seen, as evidence; the best of each pattern and carried state."""
        local = self._local
        if not local:
            return Choice(self.logs(nodes))
        states = joint_states(self.cards)
        given = {position: number for number, position in enumerate(self.seen)}
        others = [number for number, position in enumerate(self.seen) if position not in local]
        blocks, choices = [], []
        for pattern in self.patterns:
            known = [pattern[given[p]] if p in given else -1 for p in local]
            ranges = [
                [code] if code >= 0 else range(self.domain[p[0]].card) for code, p in zip(known, local, strict=True)
            ]
            grid = np.array(np.meshgrid(*ranges, indexing="ij"), np.int32).reshape(len(local), -1).T
            choices.append(grid)
            row = np.concatenate([np.repeat(pattern[None, others], len(grid), 0), grid], axis=1)
            blocks.append(np.concatenate([np.repeat(states, len(grid), 0), np.tile(row, (len(states), 1))], axis=1))
        tree = self._loaded(nodes)
        names = (*self.carried, *(self.seen[number] for number in others), *local)
        logs = tree.solve_rows(np.concatenate(blocks), names).log_partition
        best = np.empty((self.count, len(states)))
        codes = np.empty((self.count, len(states), len(local)), np.int32)
        begin = 0
        for number, grid in enumerate(choices):
            table = logs[begin : begin + len(states) * len(grid)].reshape(len(states), len(grid))
            begin += table.size
            first = table.argmax(axis=1)
            best[number], codes[number] = table.max(axis=1), grid[first]
        return Choice(best, tuple(name for name, _ in local), codes)


@dataclass(frozen=True, eq=False)
class RowPiece:
    """One family with numbers, or of a kind that is no table: each slice is a pattern of its own.

    `columns` (n,) are the values of its variables by name, but for the carried ones.
    """

    rows: Ints
    columns: Mapping[Hashable, NDArray[Any]]
    carried: tuple[Position, ...]
    names: tuple[Hashable, ...]
    domain: Domain
    families: tuple[Hashable, ...]
    statistics: tuple[Statistic, ...]

    @property
    def labels(self) -> Ints:
        """Each slice by itself."""
        return np.arange(len(self.rows))

    @property
    def count(self) -> int:
        """As many patterns as slices."""
        return len(self.rows)

    @cached_property
    def cards(self) -> tuple[int, ...]:
        """States of each carried position."""
        return tuple(self.domain[name].card for name in self.names)

    @cached_property
    def _repeated(self) -> dict[Hashable, NDArray[Any]]:
        """Every slice with every carried state: columns (states times n,)."""
        states = joint_states(self.cards).T
        columns = {name: np.tile(values, states.shape[1]) for name, values in self.columns.items()}
        return columns | {n: np.repeat(s, self.count) for n, s in zip(self.names, states, strict=True)}

    @cached_property
    def _design(self) -> tuple[Floats, Floats, tuple[int, ...]] | None:
        """Of a regression whose states are all carried: design (n, q), numbers (n, q) about their means, and order.

        The order is that of the carried states as the node has its discrete parents. None for other families.
        """
        above = [v.name for v in self.domain.variables[:-1] if v.kind == "discrete"]
        if self.domain.variables[-1].kind == "discrete" or set(above) != set(self.names):
            return None
        real = [v.name for v in self.domain.variables if v.kind != "discrete"]
        numbers = np.stack([self.columns[name] for name in real], axis=1)
        design = np.column_stack([np.ones(self.count), numbers[:, :-1]])
        return design, numbers - numbers.mean(axis=0) if self.count else numbers, tuple(map(self.names.index, above))

    def logs(self, nodes: Nodes) -> Floats:
        """Of the node, in every slice with every state."""
        node = nodes[self.families[0]]
        if node.linear and self._design is not None:
            return self._regression(node, *self._design)
        return np.asarray(nodes[self.families[0]].log_prob(self._repeated).reshape(-1, self.count).T)

    def _regression(self, node: Any, design: Floats, _: Floats, order: tuple[int, ...]) -> Floats:
        """Logs of normal densities, all states of a slice together."""
        own = np.argsort(order)
        weights = np.transpose(np.asarray(node.weights_), (*own, len(own))).reshape(-1, design.shape[1])
        variance = np.transpose(np.asarray(node.variance_), own).reshape(-1)
        if not (variance > 0).all():
            return np.asarray(node.log_prob(self._repeated).reshape(-1, self.count).T)
        # In units of the spread, and in place: this is most of an E-step.
        unit = 1.0 / np.sqrt(variance)
        logs: Floats = design @ (weights * -unit[:, None]).T
        logs += self.columns[self.families[0]][:, None] * unit
        np.square(logs, out=logs)
        logs += np.log(2.0 * np.pi * variance)
        logs *= -0.5
        return logs

    def best(self, nodes: Nodes) -> Choice:
        """Nothing is summed out."""
        return Choice(self.logs(nodes))

    def _moments(self, statistic: Moments | MomentsBy, weights: Floats) -> Answer:
        """Moments of the numbers of a regression by carried state, from sums about the means of the columns."""
        assert self._design is not None
        _, numbers, order = self._design
        names = [v.name for v in self.domain.variables if v.kind != "discrete"]
        centre = np.array([self.columns[name].mean() for name in names]) if self.count else np.zeros(len(names))
        total, sums = weights.sum(axis=0), weights.T @ numbers
        products = (weights.T @ (numbers[:, :, None] * numbers[:, None, :]).reshape(self.count, -1)).reshape(
            len(total), len(names), len(names)
        )
        share = np.where(total > 0, total, 1.0)
        means = sums / share[:, None]
        scatter = products - total[:, None, None] * (means[:, :, None] * means[:, None, :])
        gathered = ExpectedMoments(statistic, self.domain)
        laid_out = np.transpose(np.arange(len(total)).reshape(self.cards), order).ravel() if order else np.zeros(1, int)
        kept = np.flatnonzero(total[laid_out] > 0)
        gathered.add(kept, total[laid_out][kept], (centre + means)[laid_out][kept], scatter[laid_out][kept])
        return gathered.answer()  # type: ignore[no-any-return]

    def expected(self, nodes: Nodes, weights: Floats) -> dict[Statistic, Answer]:
        """The statistics of slices that have every carried state, weighted by how probable it is."""
        moments = [s for s in self.statistics if isinstance(s, Moments | MomentsBy)]
        if self._design is not None and len(moments) == len(self.statistics):
            return {statistic: self._moments(statistic, weights) for statistic in moments}
        held = ObservedRows(self.domain, self._repeated, np.ascontiguousarray(weights.T).ravel())
        return dict(tally(batch_of(held, held.columns), self.statistics).answers)


def joint_states(cards: Sequence[int]) -> NDArray[np.int32]:
    """All joint states of some variables (states, variables), the last one changing fastest."""
    return np.array(list(np.ndindex(*cards)), np.int32).reshape(-1, len(cards)) if cards else np.zeros((1, 0), np.int32)


def patterns_of(codes: Sequence[NDArray[Any]], cards: Sequence[int], count: int) -> tuple[NDArray[np.int32], Ints]:
    """The distinct rows of some columns of codes (count,), -1 where missing, and which of them each row is."""
    if not codes:
        return np.zeros((1, 0), np.int32), np.zeros(count, np.int64)
    matrix = np.stack(codes, axis=1).astype(np.int32)
    firsts, labels = distinct_rows(matrix, list(cards))
    return matrix[firsts], labels.astype(np.int64)
