"""All tables of a network at once, in one flat array.

A table by itself costs little arithmetic and many small steps. Laid out side by side, a hundred tables take as many
steps as a few.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.domain import Domain
from suffice.models.bayesian.nodes.lookup import numbers_alike
from suffice.models.bayesian.nodes.table import TableNode, keeps_all
from suffice.models.bayesian.nodes.table_layout import Layout, layout_of
from suffice.models.bayesian.nodes.table_learner import TableLearner
from suffice.statistics import Counts, FamilyCounts, Summary

Floats = NDArray[np.float64]

#: Larger tables gain nothing from others beside them.
FEW_CELLS = 4096
#: Where tables of more cells lie is not kept for the next fit.
KEPT_CELLS = 1 << 18


@dataclass(frozen=True)
class TableBatchLearner(TableLearner):
    """A learner of tables that learns several nodes in one go."""

    @classmethod
    def learn_many(
        cls, learners: Sequence[TableLearner], domains: Sequence[Domain], summary: Summary
    ) -> list[TableNode]:
        """Tables with as many states together."""
        return learn_tables(learners, domains, summary)


def learn_tables(learners: Sequence[TableLearner], domains: Sequence[Domain], summary: Summary) -> list[TableNode]:
    """The fitted nodes, as each learner alone would fit them."""
    distinct = {id(one): one for one in learners}.values()
    wishes = {(one.prior is None, one.unseen, one.estimate) for one in distinct}
    if len(wishes) == 1 and _stackable(learners[0]) and (laid := _laid_out(domains, summary)) is not None:
        return _learned(learners, domains, *laid)
    tables = [summary[Counts(domain.names)] for domain in domains]
    found: list[Any] = [None] * len(learners)
    groups: dict[Hashable, list[int]] = {}
    for at, (one, table) in enumerate(zip(learners, tables, strict=True)):
        if _stackable(one) and keeps_all(table) and table.size <= FEW_CELLS:
            groups.setdefault((one.prior is None, one.unseen), []).append(at)
        else:
            found[at] = one.learn_from(domains[at], table)
    for chosen in groups.values():
        some, families = [learners[at] for at in chosen], [domains[at] for at in chosen]
        nodes = _learned(some, families, *_lay_out([tables[at].dense() for at in chosen]))
        for at, node in zip(chosen, nodes, strict=True):
            found[at] = node
    return found


def _stackable(learner: TableLearner) -> bool:
    """Whether a table can be learned with others: not if an error of its own is to name the node."""
    return learner.unseen != "raise" and learner.estimate != "map"


def _laid_out(domains: Sequence[Domain], summary: Summary) -> tuple[Layout, Floats] | None:
    """All counts of a summary that holds those of these families, in this order, and nothing else."""
    answers = summary.answers
    if not isinstance(answers, FamilyCounts) or answers.families != tuple([domain.names for domain in domains]):
        return None
    layout = layout_of(answers.shapes)
    return layout, answers.cells[layout.taken]


def _lay_out(tables: Sequence[NDArray[Any]]) -> tuple[Layout, Floats]:
    shapes = tuple([table.shape for table in tables])
    few = sum([table.size for table in tables]) <= KEPT_CELLS
    layout = layout_of(shapes) if few else layout_of.__wrapped__(shapes)
    return layout, layout.flat(tables)


def _learned(
    learners: Sequence[TableLearner], domains: Sequence[Domain], layout: Layout, counts: Floats
) -> list[TableNode]:
    """The nodes of tables of counts, all with a prior or all without."""
    found: list[Any] = [None] * len(domains)
    if learners[0].prior is not None:
        alpha = _pseudo_counts(learners, layout)
        both = counts + alpha
        rows = both / layout.sums_at(both)
        for group in layout.groups:
            mine, seen, prior, default = *map(group.matrix, (rows, counts, alpha)), _uniform(group.card)
            for at, place in group.members:
                found[at] = TableNode(domains[at], mine[place], seen[place], default, None, prior[place], "mean")
        return found
    undefined = learners[0].unseen == "nan"
    total = layout.sums_at(counts)
    rows = np.full(len(counts), np.nan) if undefined else layout.uniform.copy()
    np.divide(counts, total, out=rows, where=total > 0)
    for group in layout.groups:
        mine, seen, default = group.matrix(rows), group.matrix(counts), _uniform(group.card, undefined)
        for at, place in group.members:
            found[at] = TableNode(domains[at], mine[place], seen[place], default)
    return found


@lru_cache(maxsize=64)
def _uniform(card: int, undefined: bool = False) -> Floats:
    """The row of a configuration that is not kept, or NaN where it is undefined."""
    row = np.full(card, np.nan if undefined else 1.0 / card)
    row.flags.writeable = False
    return row


def _pseudo_counts(learners: Sequence[TableLearner], layout: Layout) -> Floats:
    """The pseudo-counts of all cells as they lie; those with one number a table are written together."""
    alphas = [learner.prior.alpha for learner in learners if learner.prior is not None]
    if not any(alpha.ndim for alpha in alphas):
        return np.repeat(np.array([alphas[at] for at in layout.order], dtype=np.float64), layout.sizes)
    return layout.flat([np.broadcast_to(alpha, shape) for alpha, shape in zip(alphas, layout.shapes, strict=True)])


# --------------------------------------------------------------------------------------------------------------------
# Fitted nodes
# --------------------------------------------------------------------------------------------------------------------


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
    layout, counts = _lay_out(small)
    return alone + int(np.count_nonzero(layout.sums(counts) == 0))


def _is_small(node: TableNode) -> bool:
    """Whether a node is judged with others: it has all its rows, and they are few."""
    return node.configurations is None and node.rows.size <= FEW_CELLS


class TableFigures:
    """Figures of several fitted tables: those of `TableNode`, from stacks where the node has all its rows."""

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
            laid = _laid_out([node.domain for node in some], self.summary)
            layout, counts = laid or _lay_out([self.summary[Counts(node.domain.names)].dense() for node in some])
            alphas = [node.alpha for node in some if node.alpha is not None]
            pseudo = layout.flat(alphas) - (some[0].estimate == "map") if alphas else None
            rows = layout.flat([node.rows for node in some])
            found.append(Stack(tuple([chosen[at] for at in layout.order]), layout, rows, counts, pseudo))
        return tuple(found)

    def _figures(self, alone: Callable[[TableNode], Any], together: Callable[[Stack], Floats]) -> list[Any]:
        found: dict[int, Any] = {}
        for stack in self._stacks:
            found |= dict(zip(stack.chosen, together(stack).tolist(), strict=True))
        return [found[at] if at in found else alone(node) for at, node in enumerate(self.nodes)]

    def log_likelihoods(self) -> list[float]:
        """``node.log_likelihood(summary)`` of each node."""

        def together(stack: Stack) -> Floats:
            return stack.each(stack.layout.sums(times_log(stack.counts, stack.rows)))

        return self._figures(lambda node: node.log_likelihood(self.summary), together)

    def gaps(self) -> list[float]:
        """``node.gap(summary)`` of each node."""

        def together(stack: Stack) -> Floats:
            slope = stack.weighed - np.nan_to_num(stack.rows) * stack.total
            return np.maximum.reduceat(np.abs(slope), stack.layout.first_cells) / max(self.summary.weight, 1.0)

        return self._figures(lambda node: node.gap(self.summary), together)

    def loss_bounds(self) -> list[float | None]:
        """``node.loss_bound(summary)`` of each node."""
        from suffice.models.bayesian.nodes.table_losses import cell_losses

        def together(stack: Stack) -> Floats:
            return np.add.reduceat(cell_losses(stack.weighed, stack.total, stack.rows), stack.layout.first_cells)

        found = self._figures(lambda node: node.loss_bound(self.summary), together)
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
