"""How tables are learned from the counts of their families, and the Dirichlet prior of their rows.

A table by itself costs little arithmetic and many small steps. Laid out side by side, a hundred tables take as many
steps as a few.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Self

import numpy as np

from suffice.answers import CountTable
from suffice.array_types import Codes, Floats
from suffice.domain import Domain
from suffice.errors import EstimateError, listing
from suffice.families.categoricals import Categoricals, Dirichlets
from suffice.models.bayesian.nodes.contract import NodeLearner
from suffice.models.bayesian.nodes.table import TableNode
from suffice.models.bayesian.nodes.table_layout import (
    FEW_CELLS,
    TableLayout,
    counts_by_row,
    counts_laid_out,
    keeps_all,
    lay_out,
)
from suffice.statistics import Counts, Statistic, Summary


@dataclass(frozen=True, eq=False)
class DirichletRows:
    """Dirichlet pseudo-counts of a table: one number for all cells, or an array with axes (parents, node)."""

    alpha: Floats

    def __eq__(self, other: object) -> bool:
        """Same pseudo-counts to the bit."""
        return isinstance(other, DirichletRows) and np.array_equal(self.alpha, other.alpha)

    __hash__ = None  # type: ignore[assignment]

    def rows(self, codes: Codes | None, card: int) -> Floats:
        """Pseudo-counts (k, card) of parent configurations (k, p); all of them, in order, for None."""
        if self.alpha.ndim == 0:
            return np.full((1 if codes is None else len(codes), card), float(self.alpha))
        flat = self.alpha.reshape(-1, card)
        if codes is None:
            return flat
        return np.asarray(self.alpha[tuple(codes.T)])


@dataclass(frozen=True)
class TableLearner(NodeLearner):
    """Learns a table from the counts of its family; many tables in one go."""

    prior: DirichletRows | None = None
    estimate: str = "mean"
    unseen: str = "uniform"

    def statistics(self, domain: Domain) -> tuple[Statistic, ...]:
        """The counts of the family."""
        return (Counts(domain.names),)

    @classmethod
    def learn_many(
        cls, learners: Sequence[TableLearner], domains: Sequence[Domain], summary: Summary
    ) -> list[TableNode]:
        """Tables with as many states together."""
        return learn_tables(learners, domains, summary)

    def for_em(self, *, filled: bool) -> Self:
        """Rows without weight are uniform in the steps."""
        return replace(self, unseen="uniform") if filled else self

    def learn(self, domain: Domain, summary: Summary) -> TableNode:
        """The fitted table."""
        return self.learn_from(domain, summary[Counts(domain.names)])

    def learn_from(self, domain: Domain, table: CountTable) -> TableNode:
        """The fitted table, from counts, expected ones too: by row n / sum n, or with pseudo-counts."""
        card = domain.variables[-1].card
        if keeps_all(table) or (self.prior is not None and self.prior.alpha.ndim > 0):
            codes, counts = None, table.dense().reshape(-1, card)
        else:
            codes, counts = counts_by_row(table, card, domain)
        default = _uniform(card, self.prior is None and self.unseen == "nan")
        if self.prior is not None:
            alpha = self.prior.rows(codes, card) * np.ones((len(counts), 1))
            rows = self._posterior_rows(counts + alpha, domain)
            return TableNode(domain, rows, counts, default, codes, alpha, self.estimate)
        node = TableNode(domain, _most_likely(counts, default), counts, default, codes)
        if self.unseen == "raise" and node.n_unseen:
            raise EstimateError(
                f"{node.n_unseen} parent configurations of {node.name!r} never occur, so their row is undefined; the "
                f"first: {listing(node.unseen(3))}. Give a prior=, or unseen='uniform' or 'nan'."
            )
        return node

    def _posterior_rows(self, alpha: Floats, domain: Domain) -> Floats:
        """Mean or mode of Dirichlet rows (k, card)."""
        rows = Dirichlets(alpha).mean() if self.estimate == "mean" else Dirichlets(alpha).mode()
        if rows is None:
            raise EstimateError(
                f"The posterior of {domain.names[-1]!r} has no single mode: some row has count + pseudo-count below 1, "
                "or nothing but 1. Use estimate='mean', or pseudo-counts above 1."
            )
        return rows


def learn_tables(learners: Sequence[TableLearner], domains: Sequence[Domain], summary: Summary) -> list[TableNode]:
    """The fitted nodes, as each learner alone would fit them."""
    distinct = {id(one): one for one in learners}.values()
    alike = {(one.prior is None, one.unseen, one.estimate) for one in distinct}
    if len(alike) == 1 and _stackable(learners[0]) and (laid := counts_laid_out(domains, summary)) is not None:
        return _learned(learners, domains, *laid)
    tables = [summary[Counts(domain.names)] for domain in domains]
    learned: list[Any] = [None] * len(learners)
    groups: dict[Hashable, list[int]] = {}
    for number, (one, table) in enumerate(zip(learners, tables, strict=True)):
        if _stackable(one) and keeps_all(table) and table.size <= FEW_CELLS:
            groups.setdefault((one.prior is None, one.unseen), []).append(number)
        else:
            learned[number] = one.learn_from(domains[number], table)
    for chosen in groups.values():
        some, families = [learners[number] for number in chosen], [domains[number] for number in chosen]
        nodes = _learned(some, families, *lay_out([tables[number].dense() for number in chosen]))
        for number, node in zip(chosen, nodes, strict=True):
            learned[number] = node
    return learned


def _stackable(learner: TableLearner) -> bool:
    """Whether a table can be learned with others: not if an error of its own is to name the node."""
    return learner.unseen != "raise" and learner.estimate != "map"


def _learned(
    learners: Sequence[TableLearner], domains: Sequence[Domain], layout: TableLayout, counts: Floats
) -> list[TableNode]:
    """The nodes of tables of counts, all with a prior or all without."""
    nodes: list[Any] = [None] * len(domains)
    if learners[0].prior is not None:
        alpha = _pseudo_counts(learners, layout)
        for group in layout.groups:
            seen, prior, default = group.matrix(counts), group.matrix(alpha), _uniform(group.card)
            mine = Dirichlets(seen + prior).mean()
            for number, own in group.members:
                nodes[number] = TableNode(domains[number], mine[own], seen[own], default, None, prior[own], "mean")
        return nodes
    for group in layout.groups:
        seen, default = group.matrix(counts), _uniform(group.card, learners[0].unseen == "nan")
        mine = _most_likely(seen, default)
        for number, own in group.members:
            nodes[number] = TableNode(domains[number], mine[own], seen[own], default)
    return nodes


def _most_likely(counts: Floats, default: Floats) -> Floats:
    """Shares of the counts of each row, the default without any; row by row in memory, as a table is a view of them."""
    return np.ascontiguousarray(Categoricals.most_likely(counts, before=default).probabilities)


@lru_cache(maxsize=64)
def _uniform(card: int, undefined: bool = False) -> Floats:
    """The row of a configuration that is not kept, or NaN where it is undefined."""
    row = np.full(card, np.nan if undefined else 1.0 / card)
    row.flags.writeable = False
    return row


def _pseudo_counts(learners: Sequence[TableLearner], layout: TableLayout) -> Floats:
    """The pseudo-counts of all cells as they lie; those with one number a table are written together."""
    alphas = [learner.prior.alpha for learner in learners if learner.prior is not None]
    if not any(alpha.ndim for alpha in alphas):
        return np.repeat(np.array([alphas[number] for number in layout.order], dtype=np.float64), layout.sizes)
    return layout.flat([np.broadcast_to(alpha, shape) for alpha, shape in zip(alphas, layout.shapes, strict=True)])
