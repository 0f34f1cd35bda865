"""Figures of many fitted tables at once, in one flat array."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from suffice.array_types import Floats
from suffice.models.bayesian.nodes.contract import Figures, largest
from suffice.models.bayesian.nodes.lookup import numbers_alike
from suffice.models.bayesian.nodes.table import TableNode
from suffice.models.bayesian.nodes.table_layout import FEW_CELLS, TableLayout, counts_laid_out, lay_out
from suffice.models.bayesian.nodes.table_objective import cell_losses, cell_slopes, steepest_cells, times_log
from suffice.statistics import Counts

T = TypeVar("T")


@dataclass(frozen=True)
class Stack:
    """Tables that are judged together: the numbers of the nodes as they lie, all probabilities, all counts."""

    chosen: tuple[int, ...]
    layout: TableLayout
    rows: Floats
    counts: Floats
    pseudo: Floats | None

    @cached_property
    def weighed(self) -> Floats:
        """Counts and pseudo-counts of all cells."""
        return self.counts if self.pseudo is None else self.counts + self.pseudo

    @cached_property
    def total(self) -> Floats:
        """The sum of the row of each cell."""
        return self.layout.sums_at(self.weighed)

    def each(self, cells: Floats) -> Floats:
        """The sum over the cells of each node."""
        return np.add.reduceat(cells, self.layout.first_cells)


def n_unseen_of(nodes: Sequence[TableNode]) -> int:
    """Parent configurations without any weight in all tables together."""
    small = [node.counts for node in nodes if _is_small(node)]
    alone = sum(node.n_unseen for node in nodes if not _is_small(node))
    if not small:
        return alone
    layout, counts = lay_out(small)
    return alone + int(np.count_nonzero(layout.sums(counts) == 0))


def _is_small(node: TableNode) -> bool:
    """Whether a node is judged with others: it has all its rows, and they are few."""
    return node.configurations is None and node.rows.size <= FEW_CELLS


class TableFigures(Figures):
    """Figures of several fitted tables, from stacks where the node has all its rows."""

    @cached_property
    def _stacks(self) -> tuple[Stack, ...]:
        def key(number: int) -> Hashable:
            node = self.nodes[number]
            return (node.alpha is None, node.estimate == "map") if _is_small(node) else None

        stacks = []
        for alike, chosen in numbers_alike(len(self.nodes), key).items():
            if alike is None:
                continue
            some = [self.nodes[number] for number in chosen]
            laid = counts_laid_out([node.domain for node in some], self.summary)
            layout, counts = laid or lay_out([self.summary[Counts(node.domain.names)].dense() for node in some])
            alphas = [node.alpha for node in some if node.alpha is not None]
            pseudo = layout.flat(alphas) - (some[0].estimate == "map") if alphas else None
            rows = layout.flat([node.rows for node in some])
            stacks.append(Stack(tuple([chosen[number] for number in layout.order]), layout, rows, counts, pseudo))
        return tuple(stacks)

    @cached_property
    def _alone(self) -> list[TableNode]:
        """The tables in no stack."""
        return [node for node in self.nodes if not _is_small(node)]

    def _each(self, alone: Callable[[TableNode], T], together: Callable[[Stack], Sequence[T]]) -> list[T]:
        figures: dict[int, T] = {}
        for stack in self._stacks:
            figures |= dict(zip(stack.chosen, together(stack), strict=True))
        return [figures[number] if number in figures else alone(node) for number, node in enumerate(self.nodes)]

    def log_likelihoods(self) -> list[float]:
        """``node.log_likelihood(summary)`` of each node."""

        def together(stack: Stack) -> list[float]:
            rows = stack.layout.sums(times_log(stack.counts, stack.rows))
            logs: list[float] = np.add.reduceat(rows, stack.layout.first_rows).tolist()
            return logs

        return self._each(lambda node: node.log_likelihood(self.summary), together)

    def gaps(self) -> list[float]:
        """``node.gap(summary)`` of each node."""

        def together(stack: Stack) -> list[float]:
            slope = np.abs(cell_slopes(stack.weighed, stack.total, stack.rows))
            gaps: list[float] = np.maximum.reduceat(slope, stack.layout.first_cells).tolist()
            return [gap / max(self.summary.weight, 1.0) for gap in gaps]

        return self._each(lambda node: node.gap(self.summary), together)

    def steepest(self) -> tuple[float, float]:
        """The largest of ``node.steepest(summary)``."""
        alone = [node.steepest(self.summary) for node in self._alone]
        return largest([*alone, *(steepest_cells(stack.weighed, stack.total, stack.rows) for stack in self._stacks)])

    def loss_bounds(self) -> list[float | None]:
        """``node.loss_bound(summary)`` of each node."""

        def together(stack: Stack) -> list[float | None]:
            losses: list[float] = stack.each(cell_losses(stack.weighed, stack.total, stack.rows)).tolist()
            return [loss if math.isfinite(loss) else None for loss in losses]

        return self._each(lambda node: node.loss_bound(self.summary), together)

    def edges(self) -> list[tuple[str, ...]]:
        """``node.edges(summary)`` of each node."""

        def together(stack: Stack) -> list[tuple[str, ...]]:
            never = (stack.weighed <= 0) & (stack.total > 0)
            first = stack.layout.first_cells
            numbers = np.add.reduceat(never, first, dtype=np.intp)
            cells = zip(stack.chosen, numbers.tolist(), first.tolist(), strict=True)
            return [
                self.nodes[node].never_seen(number, int(np.argmax(never[begin:])) if number else 0)
                for node, number, begin in cells
            ]

        return self._each(lambda node: node.edges(self.summary), together)
