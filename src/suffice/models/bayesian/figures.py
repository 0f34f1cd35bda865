"""Figures of all fitted nodes of a network, those of one kind together: what each node says alone, in fewer steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from suffice.models.bayesian.nodes.linear_gaussian import LinearGaussianNode
from suffice.models.bayesian.nodes.linear_gaussian_batch import best_log_likelihoods_of, gaps_of, log_likelihoods_of
from suffice.models.bayesian.nodes.table import TableNode
from suffice.models.bayesian.nodes.table_batch import TableFigures
from suffice.report import MatchedStatistics
from suffice.statistics import Summary


class Figures:
    """Figures of nodes, each with the statistics it is judged by."""

    def __init__(self, nodes: Sequence[tuple[Any, Summary]]) -> None:
        """Take pairs of a fitted node and a summary."""
        self._pairs = list(nodes)

    @cached_property
    def _groups(self) -> list[tuple[type, Summary, list[int]]]:
        """Nodes of one class with one summary."""
        found: dict[tuple[type, int], tuple[type, Summary, list[int]]] = {}
        for at, (node, summary) in enumerate(self._pairs):
            found.setdefault((type(node), id(summary)), (type(node), summary, []))[2].append(at)
        return list(found.values())

    @cached_property
    def _tables(self) -> dict[int, TableFigures]:
        """The figures of the tables, by the number of their group: rows are stacked once for all figures."""
        return {
            number: TableFigures([self._pairs[at][0] for at in chosen], summary)
            for number, (kind, summary, chosen) in enumerate(self._groups)
            if kind is TableNode
        }

    def _each(
        self,
        alone: Callable[[Any, Summary], Any],
        tables: Callable[[TableFigures], list[Any]],
        regressions: Callable[[Sequence[Any], Summary], list[Any]] | None = None,
    ) -> list[Any]:
        found: dict[int, Any] = {}
        for number, (kind, summary, chosen) in enumerate(self._groups):
            some = [self._pairs[at][0] for at in chosen]
            if number in self._tables:
                values = tables(self._tables[number])
            elif kind is LinearGaussianNode and regressions is not None:
                values = regressions(some, summary)
            else:
                values = [alone(node, summary) for node in some]
            found |= dict(zip(chosen, values, strict=True))
        return [found[at] for at in range(len(self._pairs))]

    def log_likelihoods(self) -> list[float]:
        """``node.log_likelihood(summary)`` of each pair."""
        return self._each(
            lambda node, summary: node.log_likelihood(summary), TableFigures.log_likelihoods, log_likelihoods_of
        )

    def gaps(self) -> list[float]:
        """``node.gap(summary)`` of each pair."""
        return self._each(lambda node, summary: node.gap(summary), TableFigures.gaps, gaps_of)

    def best_log_likelihoods(self) -> list[float | None]:
        """``node.best_log_likelihood(summary)`` of each pair."""
        return self._each(
            lambda node, summary: node.best_log_likelihood(summary),
            TableFigures.best_log_likelihoods,
            best_log_likelihoods_of,
        )


def matched_cells(nodes: Sequence[Any]) -> MatchedStatistics | None:
    """Shares n(parents, state) / n of tables, and n(parents) P(state | parents) / n; None where no rows were counted.

    Only joint states of the parents that occur have an expectation of their own.
    """
    names: list[str] = []
    observed, expected = [np.zeros(0)], [np.zeros(0)]
    for node in nodes:
        seen = node.counts.sum(axis=1, keepdims=True)
        weight = float(seen.sum())
        kept = np.flatnonzero(seen[:, 0] > 0)
        if not len(kept):
            continue
        observed.append((node.counts[kept] / weight).ravel())
        expected.append((seen[kept] * node.rows[kept] / weight).ravel())
        names += node.cell_names(kept)
    return MatchedStatistics(tuple(names), np.concatenate(observed), np.concatenate(expected)) if names else None
