"""All tables of a network at once: the rows of nodes with as many states are stacked into one array.

A table by itself costs little arithmetic and many small steps. Stacked by their number of states, a hundred tables take
as many steps as a few.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.domain import Domain
from suffice.models.bayesian.nodes.lookup import numbers_alike
from suffice.models.bayesian.nodes.table import TableNode, keeps_all, maximum_rows, smoothed_rows
from suffice.models.bayesian.nodes.table_learner import TableLearner
from suffice.statistics import Counts, Summary

Floats = NDArray[np.float64]


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
    known = {question.variables: answer for question, answer in summary.answers.items() if type(question) is Counts}
    tables: list[Any] = [known.get(domain.names) or summary[Counts(domain.names)] for domain in domains]

    def key(at: int) -> Hashable:
        learner = learners[at]
        if learner.unseen == "raise" or learner.estimate == "map" or not keeps_all(tables[at]):
            return None  # Large, or with an error that names the node.
        return tables[at].shape[-1], learner.prior is None, learner.unseen

    found: list[Any] = [None] * len(learners)
    for alike, chosen in numbers_alike(len(learners), key).items():
        if alike is None:
            nodes: Iterable[TableNode] = [learners[at].learn_from(domains[at], tables[at]) for at in chosen]
        else:
            counts = _stacked([tables[at].dense() for at in chosen], tables[chosen[0]].shape[-1])
            nodes = _learned([learners[at] for at in chosen], [domains[at] for at in chosen], *counts)
        for at, node in zip(chosen, nodes, strict=True):
            found[at] = node
    return found


def _learned(
    learners: Sequence[TableLearner], domains: Sequence[Domain], counts: Floats, places: Sequence[slice]
) -> Iterator[TableNode]:
    """One node for each slice of the rows `counts` (k, card)."""
    card, first = counts.shape[1], learners[0]
    fallback = np.full(card, np.nan if first.prior is None and first.unseen == "nan" else 1.0 / card)
    if first.prior is None:
        rows, alpha = maximum_rows(counts, fallback), None
    else:
        alpha = _pseudo_counts(learners, counts, places)
        rows = smoothed_rows(counts, alpha, "mean", domains[0])
    estimate = "mle" if alpha is None else "mean"
    for domain, place in zip(domains, places, strict=True):
        pseudo = None if alpha is None else alpha[place]
        yield TableNode(domain, rows[place], counts[place], fallback, None, pseudo, estimate)


def _pseudo_counts(learners: Sequence[TableLearner], counts: Floats, places: Sequence[slice]) -> Floats:
    """The pseudo-counts of every cell of `counts` (k, card); those with one number a table are written together."""
    alphas = [learner.prior.alpha for learner in learners if learner.prior is not None]
    found = np.empty_like(counts)
    if not any(alpha.ndim for alpha in alphas):
        lengths = [place.stop - place.start for place in places]
        found[:] = np.repeat(np.array(alphas, dtype=np.float64), lengths)[:, None]
        return found
    for alpha, place in zip(alphas, places, strict=True):
        found[place] = alpha.reshape(-1, counts.shape[1]) if alpha.ndim else alpha
    return found


def _stacked(arrays: Sequence[NDArray[Any]], card: int) -> tuple[Floats, list[slice]]:
    """The rows of several tables one below the other (k, card), and the slice of each."""
    ends = accumulate((array.size // card for array in arrays), initial=0)
    return np.concatenate([array.reshape(-1, card) for array in arrays]), [slice(*pair) for pair in pairwise(ends)]


# --------------------------------------------------------------------------------------------------------------------
# Fitted nodes
# --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stack:
    """Tables with as many states: the places of the nodes in the sequence they come from, their rows, the rows seen."""

    chosen: tuple[int, ...]
    rows: Floats
    counts: Floats
    pseudo: Floats | None
    starts: NDArray[np.intp]

    def each(self, rows: Floats) -> Floats:
        """The sum over the rows of each node, from one number a row."""
        return np.add.reduceat(rows, self.starts)


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
            return None if node.configurations is not None else (node.card, node.alpha is None, node.estimate == "map")

        found = []
        for alike, chosen in numbers_alike(len(self.nodes), key).items():
            if alike is None:
                continue
            some = [self.nodes[at] for at in chosen]
            tables = [self.summary[Counts(node.domain.names)].dense() for node in some]
            counts, places = _stacked(tables, some[0].card)
            rows = np.concatenate([node.rows for node in some])
            alphas = [node.alpha for node in some if node.alpha is not None]
            pseudo = np.concatenate(alphas) - (some[0].estimate == "map") if alphas else None
            starts = np.array([place.start for place in places])
            found.append(Stack(tuple(chosen), rows, counts, pseudo, starts))
        return tuple(found)

    def _figures(self, alone: Callable[[TableNode], Any], together: Callable[[Stack], Floats]) -> list[Any]:
        found: dict[int, Any] = {}
        for stack in self._stacks:
            found |= dict(zip(stack.chosen, together(stack).tolist(), strict=True))
        return [found[at] if at in found else alone(node) for at, node in enumerate(self.nodes)]

    def log_likelihoods(self) -> list[float]:
        """``node.log_likelihood(summary)`` of each node."""

        def together(stack: Stack) -> Floats:
            return stack.each(times_log(stack.counts, stack.rows).sum(axis=1))

        return self._figures(lambda node: node.log_likelihood(self.summary), together)

    def gaps(self) -> list[float]:
        """``node.gap(summary)`` of each node."""

        def together(stack: Stack) -> Floats:
            both = stack.counts if stack.pseudo is None else stack.counts + stack.pseudo
            slope = both - np.nan_to_num(stack.rows) * both.sum(axis=1, keepdims=True)
            return np.maximum.reduceat(np.abs(slope).max(axis=1), stack.starts) / max(self.summary.weight, 1.0)

        return self._figures(lambda node: node.gap(self.summary), together)

    def best_log_likelihoods(self) -> list[float]:
        """``node.best_log_likelihood(summary)`` of each node."""

        def together(stack: Stack) -> Floats:
            total = stack.counts.sum(axis=1)
            return stack.each(times_log(stack.counts, stack.counts).sum(axis=1) - times_log(total, total))

        return self._figures(lambda node: node.best_log_likelihood(self.summary), together)


def times_log(factor: Floats, value: Floats) -> Floats:
    """``factor log(value)``, 0 where the factor is 0: as SciPy's xlogy, without loading SciPy for a plain fit."""
    found = np.zeros_like(factor)
    with np.errstate(divide="ignore"):
        np.log(value, out=found, where=factor != 0)
    found *= factor
    return found
