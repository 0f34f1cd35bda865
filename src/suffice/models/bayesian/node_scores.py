"""Scores of all fitted nodes of a network, those of one kind together: what each node says alone, in fewer steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from suffice.fitting.report import MatchedStatistics
from suffice.models.bayesian.nodes.contract import Figures, largest
from suffice.models.bayesian.nodes.glm import GLMNode
from suffice.models.bayesian.nodes.glm_slopes import sides_of
from suffice.models.bayesian.nodes.linear_gaussian import LinearGaussianNode
from suffice.models.bayesian.nodes.linear_gaussian_batch import RegressionFigures
from suffice.models.bayesian.nodes.table import TableNode
from suffice.models.bayesian.nodes.table_figures import TableFigures
from suffice.statistics import Summary

T = TypeVar("T")


#: The classes of nodes that gain from being judged together.
TOGETHER: dict[type, type[Figures]] = {TableNode: TableFigures, LinearGaussianNode: RegressionFigures}


class NodeScores:
    """Figures of nodes, each with the statistics it is judged by."""

    def __init__(self, nodes: Sequence[tuple[Any, Summary]]) -> None:
        """Take pairs of a fitted node and a summary: nodes of one class with one summary are judged together."""
        groups: dict[tuple[type, int], list[int]] = {}
        for number, (node, summary) in enumerate(nodes):
            groups.setdefault((type(node), id(summary)), []).append(number)
        self._groups = [
            (chosen, TOGETHER.get(kind, Figures)([nodes[number][0] for number in chosen], nodes[chosen[0]][1]))
            for (kind, _), chosen in groups.items()
        ]

    def _each(self, figures_of: Callable[[Figures], list[T]]) -> list[T]:
        """Figures in the order of the nodes."""
        figures = {n: one for chosen, some in self._groups for n, one in zip(chosen, figures_of(some), strict=True)}
        return [figures[number] for number in range(len(figures))]

    def log_likelihoods(self) -> list[float]:
        """``node.log_likelihood(summary)`` of each pair."""
        return self._each(lambda some: some.log_likelihoods())

    def gaps(self) -> list[float]:
        """``node.gap(summary)`` of each pair."""
        return self._each(lambda some: some.gaps())

    def steepest(self) -> tuple[float, float]:
        """The largest of ``node.steepest(summary)``."""
        return largest([some.steepest() for _, some in self._groups])

    def loss_bounds(self) -> list[float | None]:
        """``node.loss_bound(summary)`` of each pair."""
        return self._each(lambda some: some.loss_bounds())

    def edges(self) -> list[tuple[str, ...]]:
        """``node.edges(summary)`` of each pair."""
        return self._each(lambda some: some.edges())


def matched_statistics_of(nodes: Sequence[tuple[Any, Summary | None]]) -> MatchedStatistics | None:
    """Shares n(parents, state) / n of tables, and n(parents) P(state | parents) / n; moments of regressions.

    Only joint states of the parents that occur have an expectation of their own. Of a real node y with real parents x
    the means of y, x y and y^2 are compared with those that weights and variance imply, in units of the columns; for
    each joint state of the discrete parents by itself, times its share of the rows. Of GLM nodes both sides of the
    score equations; both need the statistics of complete rows. A table with pseudo-counts a has
    ``n p = n(state) + a - sum(a) p``.
    """
    tables = [node for node, _ in nodes if node.kind == TableNode.kind]
    parts, kinds = list(_cells(tables)), set[type]()
    for node, own in nodes:
        if own is not None and isinstance(node, LinearGaussianNode | GLMNode):
            kinds.add(type(node))
            parts += _moments(node, own) if isinstance(node, LinearGaussianNode) else _scores(node, own)
    if not parts:
        return None
    names, observed, expected, pulls = zip(*parts, strict=True)
    pull = np.concatenate(pulls)
    cells = "Shares of the rows in each cell of the tables, and as the parents' counts and the tables make them."
    moments = "Of real nodes: means of y, x y and y², standardised, and as weights and variance imply them."
    scores = "Of GLM nodes: both sides of their score equations."
    texts = ((cells, bool(tables)), (moments, LinearGaussianNode in kinds), (scores, GLMNode in kinds))
    return MatchedStatistics(
        tuple(name for some in names for name in some),
        np.concatenate(observed),
        np.concatenate(expected),
        pull if pull.any() else None,
        about=" ".join(text for text, known in texts if known),
    )


#: Names, and for each what is observed, what expected, and what a prior adds.
Part = tuple[list[str], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]


def _scores(node: GLMNode, summary: Summary) -> Iterator[Part]:
    """Both sides of the score equations of a GLM node."""
    if node.estimate == "given":
        return
    observed, expected, pull = sides_of(node, summary)
    coefficients = node.learned.design.names
    labels = [f" ({output})" for output in range(observed.shape[1])] if observed.shape[1] > 1 else [""]
    names = [f"{node.name}: {name}{label}" for label in labels for name in coefficients]
    added = np.zeros_like(observed) if pull is None else pull
    yield names, observed.T.ravel(), expected.T.ravel(), added.T.ravel()


def _moments(node: LinearGaussianNode, summary: Summary) -> Iterator[Part]:
    """Names, observed and implied moments of a real node, by joint state of its discrete parents."""
    seen, cells = node.products(summary)
    total = float(seen.weight.sum())
    if not total > 0:
        return
    share, weights, variance = seen.weight / total, *node._rows(node.positions(cells))
    kept = np.flatnonzero((share > 0) & np.isfinite(weights).all(axis=1) & np.isfinite(variance))
    centre = share @ seen.mean
    about = seen.scatter / np.where(seen.weight > 0, seen.weight, 1.0)[:, None, None]
    spread = np.einsum("k,kii->i", share, about) + share @ (seen.mean - centre) ** 2
    unit = np.sqrt(np.where(spread > 0, spread, 1.0))
    y, slopes = node.name, weights[:, 1:]
    fitted = weights[:, 0] + (slopes * seen.mean[:, :-1]).sum(axis=1)
    cross = np.einsum("kij,kj->ki", about[:, :-1, :-1], slopes)
    pairs = [([f"mean of {y}"], (seen.mean[:, -1:] - centre[-1]) / unit[-1], (fitted[:, None] - centre[-1]) / unit[-1])]
    named = [f"{x}·{y}" for x in node.real_parents]
    pairs.append((named, about[:, :-1, -1] / unit[:-1] / unit[-1], cross / unit[:-1] / unit[-1]))
    square = (slopes * cross).sum(axis=1) + variance
    pairs.append(([f"{y}²"], about[:, -1:, -1] / unit[-1] ** 2, square[:, None] / unit[-1] ** 2))
    where = [_state(node, cells[cell]) for cell in range(len(share))]
    for titles, observed, expected in pairs:
        names = [title + where[cell] for cell in kept for title in titles]
        both = [(share[kept, None] * side[kept]).ravel() for side in (observed, expected)]
        yield names, both[0], both[1], np.zeros(len(names))


def _state(node: LinearGaussianNode, codes: NDArray[Any]) -> str:
    """A joint state of the discrete parents, in words."""
    pairs = zip(node.discrete_parents, codes.tolist(), strict=True)
    states = ", ".join(f"{name}={node.domain[name].states[code]}" for name, code in pairs)
    return f" | {states}" if states else ""


def _cells(nodes: Sequence[TableNode]) -> Iterator[Part]:
    for node in nodes:
        seen = node.counts.sum(axis=1, keepdims=True)
        weight = float(seen.sum())
        kept = np.flatnonzero(seen[:, 0] > 0)
        if not len(kept):
            continue
        expected = seen[kept] * node.rows[kept] / weight
        pull = np.zeros_like(expected)
        if node.alpha is not None:
            added = node.alpha[kept] - (1.0 if node.estimate == "map" else 0.0)
            pull = (added - added.sum(axis=1, keepdims=True) * node.rows[kept]) / weight
        yield node.cell_names(kept), (node.counts[kept] / weight).ravel(), expected.ravel(), pull.ravel()
