"""Where EM begins: nodes learned from the rows that show a whole family, with hidden columns filled in at random.

A start that treats all states of a hidden variable alike would never move: EM keeps the symmetry. Hidden variables with
real neighbours are therefore filled in by clusters of the rows, or for a few rows only; those with discrete neighbours
alone have random tables.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.answers import Answer
from suffice.array_types import Floats
from suffice.domain import Domain
from suffice.models.bayesian.em.expected_moments import ExpectedMoments
from suffice.models.bayesian.em.table_expectation import counted
from suffice.models.em.rows import ObservedRows, batch_of
from suffice.sources.tally import tally
from suffice.statistics import Counts, Moments, MomentsBy, Statistic, Summary

Columns = Mapping[Any, NDArray[Any]]

#: Concentration of the random rows of tables: far from equal, and no probability near 0.
CONCENTRATION = 2.0
#: Rounds in which clusters move to the mean of their rows.
ROUNDS = 10


def starting_summary(
    rows: ObservedRows,
    families: Mapping[Hashable, Domain],
    statistics: Sequence[Statistic],
    rng: np.random.Generator,
    run: int,
) -> Summary:
    """Statistics to learn the first nodes from.

    They are those of the rows that show all variables of a statistic, plus one row in all for each row of a table and
    each regression, so that no probability is 0 and no variance either. Runs with an even number fill hidden variables
    in by clusters, the others from a few rows of each state.
    """
    filled = _filled(rows, families, rng, run)
    seen = tally(batch_of(rows, filled), statistics, "available")
    answers: dict[Statistic, Answer] = {}
    for statistic in statistics:
        if isinstance(statistic, Moments | MomentsBy):
            answers[statistic] = seen[statistic] + _one_row(statistic, rows)
            continue
        shape = rows.domain.shape(statistic.variables)
        if any(name not in families for name in statistic.variables):
            table = np.full(shape, float(rows.weights.sum()) / math.prod(shape))  # A chain of causes: all alike.
        elif all(name in filled for name in statistic.variables):
            table = _counts(seen, statistic) + 1.0 / shape[-1]
        else:
            each = float(rows.weights.sum()) / math.prod(shape[:-1])
            table = each * rng.dirichlet(np.full(shape[-1], CONCENTRATION), size=shape[:-1])
        answers[statistic] = counted(statistic, table)
    return Summary(rows.domain, answers, seen.rows, seen.weight)


def _counts(seen: Summary, statistic: Statistic) -> Floats:
    if isinstance(statistic, Counts):
        counts: Floats = seen[statistic].dense()
        return counts
    table, patterns = np.zeros(seen.domain.shape(statistic.variables)), seen[statistic]
    full = (patterns.rows >= 0).all(axis=1)
    np.add.at(table, tuple(patterns.rows[full].T.astype(np.intp)), patterns.weights[full])
    return table


def _one_row(statistic: Moments | MomentsBy, rows: ObservedRows) -> Any:
    """One row in each cell: at the means of the columns, with their variances and no correlation."""
    sums = ExpectedMoments(statistic, rows.domain)
    centre, scale = np.array([rows.units[name] for name in statistic.variables]).reshape(-1, 2).T
    cells = len(sums.weight)
    scatter = np.broadcast_to(np.diag(scale**2), (cells, len(scale), len(scale)))
    sums.add(np.arange(cells), np.ones(cells), np.broadcast_to(centre, (cells, len(centre))), scatter)
    return sums.answer()


# --------------------------------------------------------------------------------------------------------------------
# Hidden columns
# --------------------------------------------------------------------------------------------------------------------


def _filled(
    rows: ObservedRows, families: Mapping[Hashable, Domain], rng: np.random.Generator, run: int
) -> dict[Hashable, NDArray[Any]]:
    """The columns, with those of hidden variables that have real neighbours filled in."""
    columns: dict[Hashable, NDArray[Any]] = dict(rows.columns)
    for variable in rows.domain.variables:
        if variable.name in rows.columns:
            continue
        near = dict.fromkeys(
            other.name
            for family in families.values()
            for other in family.variables
            if variable.name in family and other.kind != "discrete" and other.name in rows.columns
        )
        scores = rows.scores(list(near))
        if variable.kind != "discrete":
            columns[variable.name] = _projection(scores, rng)
        elif near and run % 2 == 0:
            columns[variable.name] = clusters(scores, rows.weights, variable.card, rng)
        elif near:
            columns[variable.name] = _few(rows.weights, variable.card, 3 * (len(near) + 1), rng)
    return columns


def _projection(scores: Floats, rng: np.random.Generator) -> Floats:
    """A hidden number for each row: a random sum of the standard scores of its neighbours."""
    total = scores @ rng.standard_normal(scores.shape[1]) + 0.1 * rng.standard_normal(len(scores))
    return np.asarray((total - total.mean()) / (total.std() or 1.0))


def _few(weights: Floats, card: int, most: int, rng: np.random.Generator) -> NDArray[np.int32]:
    """A state for a few rows of each state, a missing value for all others."""
    states = np.full(len(weights), -1, dtype=np.int32)
    size = min(card * most, int((weights > 0).sum()))
    if size:
        states[rng.choice(len(weights), size=size, replace=False, p=weights / weights.sum())] = np.arange(size) % card
    return states


def clusters(scores: Floats, weights: Floats, card: int, rng: np.random.Generator) -> NDArray[np.int32]:
    """The cluster of each row of scores (n, p): seeds far apart (k-means++), then a few rounds of means."""
    centres = np.empty((card, scores.shape[1]))
    away = np.ones(len(scores))
    for state in range(card):
        odds = weights * away if (weights * away).sum() > 0 else weights
        centres[state] = scores[rng.choice(len(scores), p=odds / odds.sum())]
        squares = ((scores - centres[state]) ** 2).sum(axis=1)
        away = squares if state == 0 else np.minimum(away, squares)
    label = np.zeros(len(scores), dtype=np.intp)
    for _ in range(ROUNDS):
        label = (scores @ centres.T - 0.5 * (centres**2).sum(axis=1)).argmax(axis=1)
        mass = np.bincount(label, weights, card)
        for column in range(scores.shape[1]):
            sums = np.bincount(label, weights * scores[:, column], card)
            centres[:, column] = np.where(mass > 0, sums / np.where(mass > 0, mass, 1.0), centres[:, column])
    return label.astype(np.int32)
