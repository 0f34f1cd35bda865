"""Scores of many fitted tables at once, in one flat array."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.models.bayesian.nodes.lookup import numbers_alike
from suffice.models.bayesian.nodes.table import TableNode
from suffice.models.bayesian.nodes.table_layout import FEW_CELLS, Layout, counts_laid_out, lay_out
from suffice.statistics import Counts, Summary

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Stack:
    """Tables that are judged together: the numbers of the nodes as they lie, all probabilities, all counts."""

    chosen: tuple[int, ...]
    layout: Layout
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

    def each(self, rows: Floats) -> Floats:
        """The sum over the rows of each node, from one number a row."""
        return np.add.reduceat(rows, self.layout.first_rows)


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


class TableScores:
    """Scores of several fitted tables: those of `TableNode`, from stacks where the node has all its rows."""

    def __init__(self, nodes: Sequence[TableNode], summary: Summary) -> None:
        """Take the nodes, and the statistics of rows laid out as the nodes are."""
        self.nodes = tuple(nodes)
        self.summary = summary

    @cached_property
    def _stacks(self) -> tuple[Stack, ...]:
        def key(at: int) -> Hashable:
            node = self.nodes[at]
            return (node.alpha is None, node.estimate == "map") if _is_small(node) else None

        found = []
        for alike, chosen in numbers_alike(len(self.nodes), key).items():
            if alike is None:
                continue
            some = [self.nodes[at] for at in chosen]
            laid = counts_laid_out([node.domain for node in some], self.summary)
            layout, counts = laid or lay_out([self.summary[Counts(node.domain.names)].dense() for node in some])
            alphas = [node.alpha for node in some if node.alpha is not None]
            pseudo = layout.flat(alphas) - (some[0].estimate == "map") if alphas else None
            rows = layout.flat([node.rows for node in some])
            found.append(Stack(tuple([chosen[at] for at in layout.order]), layout, rows, counts, pseudo))
        return tuple(found)

    def _scores(self, alone: Callable[[TableNode], Any], together: Callable[[Stack], Floats]) -> list[Any]:
        found: dict[int, Any] = {}
        for stack in self._stacks:
            found |= dict(zip(stack.chosen, together(stack).tolist(), strict=True))
        return [found[at] if at in found else alone(node) for at, node in enumerate(self.nodes)]

    def log_likelihoods(self) -> list[float]:
        """``node.log_likelihood(summary)`` of each node."""

        def together(stack: Stack) -> Floats:
            return stack.each(stack.layout.sums(times_log(stack.counts, stack.rows)))

        return self._scores(lambda node: node.log_likelihood(self.summary), together)

    def gaps(self) -> list[float]:
        """``node.gap(summary)`` of each node."""

        def together(stack: Stack) -> Floats:
            slope = stack.weighed - np.nan_to_num(stack.rows) * stack.total
            return np.maximum.reduceat(np.abs(slope), stack.layout.first_cells) / max(self.summary.weight, 1.0)

        return self._scores(lambda node: node.gap(self.summary), together)

    def loss_bounds(self) -> list[float | None]:
        """``node.loss_bound(summary)`` of each node."""
        from suffice.models.bayesian.nodes.table_losses import cell_losses

        def together(stack: Stack) -> Floats:
            return np.add.reduceat(cell_losses(stack.weighed, stack.total, stack.rows), stack.layout.first_cells)

        found = self._scores(lambda node: node.loss_bound(self.summary), together)
        return [loss if loss is not None and math.isfinite(loss) else None for loss in found]

    def edges(self) -> list[tuple[str, ...]]:
        """``node.edges(summary)`` of each node."""
        found: dict[int, tuple[str, ...]] = {}
        for stack in self._stacks:
            never = (stack.weighed <= 0) & (stack.total > 0)
            first = stack.layout.first_cells
            numbers = np.add.reduceat(never, first, dtype=np.intp)
            for at, number, begin in zip(stack.chosen, numbers.tolist(), first.tolist(), strict=True):
                place = int(np.argmax(never[begin:])) if number else 0
                found[at] = self.nodes[at].never_seen(number, place)
        return [found[at] if at in found else node.edges(self.summary) for at, node in enumerate(self.nodes)]


def times_log(factor: Floats, value: Floats) -> Floats:
    """``factor log(value)``, 0 where the factor is 0: as SciPy's xlogy, without loading SciPy for a plain fit."""
    found = np.zeros_like(factor)
    with np.errstate(divide="ignore"):
        np.log(value, out=found, where=factor != 0)
    found *= factor
    return found
