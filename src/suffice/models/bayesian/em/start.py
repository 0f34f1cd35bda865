"""Where EM begins: nodes learned from the rows that show a whole family, with hidden columns filled in at random.

A start that treats all states of a hidden variable alike would never move: EM keeps the symmetry. Hidden variables with
real neighbours are therefore filled in by clusters of the rows, or for a few rows only; those with discrete neighbours
alone have random tables.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from suffice.answers import Answer
from suffice.array_types import Floats
from suffice.domain import Domain
from suffice.models.bayesian.em.coordinates import Units
from suffice.models.bayesian.em.expected_moments import ExpectedMoments
from suffice.models.bayesian.em.filling import Clusters, FewRowsOfEach, Filling, Projection, Scores
from suffice.models.bayesian.em.table_expectation import counted
from suffice.models.em.held_rows import HeldRows
from suffice.models.em.rows import ObservedRows, batch_of
from suffice.sources.tally import tally
from suffice.statistics import Counts, Moments, MomentsBy, Statistic, Summary

#: Concentration of the random rows of tables: far from equal, and no probability near 0.
CONCENTRATION = 2.0


def starting_summary(
    rows: HeldRows,
    domain: Domain,
    families: Mapping[Hashable, Domain],
    statistics: Sequence[Statistic],
    rng: np.random.Generator,
    run: int,
) -> Summary:
    """Statistics to learn the first nodes from.

    They are those of the rows that show all variables of a statistic, plus one row in all for each row of a table and
    each regression, so that no probability is 0 and no variance either. Runs with an even number fill hidden variables
    in by clusters, the others from a few rows of each state. `domain` may have private variables of nodes.
    """
    fillings = fillings_of(rows, families, rng, run)
    filled = {*rows.seen, *(filling.name for filling in fillings)}
    seen: Summary = rows.ask(_FilledStatistics(domain, tuple(statistics), fillings))
    answers: dict[Statistic, Answer] = {}
    for statistic in statistics:
        if isinstance(statistic, Moments | MomentsBy):
            answers[statistic] = seen[statistic] + _one_row(statistic, domain, rows.units)
            continue
        shape = domain.shape(statistic.variables)
        if any(name not in families for name in statistic.variables):
            table = np.full(shape, rows.weight / math.prod(shape))  # A chain of causes: all alike.
        elif filled.issuperset(statistic.variables):
            table = _counts(seen, statistic) + 1.0 / shape[-1]
        else:
            each = rows.weight / math.prod(shape[:-1])
            table = each * rng.dirichlet(np.full(shape[-1], CONCENTRATION), size=shape[:-1])
        answers[statistic] = counted(statistic, table)
    return Summary(domain, answers, seen.rows, seen.weight)


@dataclass(frozen=True)
class _FilledStatistics:
    """The statistics of the rows that show their variables, hidden ones filled in."""

    domain: Domain
    statistics: tuple[Statistic, ...]
    fillings: tuple[Filling, ...]

    def __call__(self, rows: ObservedRows, _: None) -> Summary:
        columns = {**rows.columns, **{filling.name: filling(rows) for filling in self.fillings}}
        return tally(batch_of(replace(rows, domain=self.domain), columns), self.statistics, "available")


def _counts(seen: Summary, statistic: Statistic) -> Floats:
    if isinstance(statistic, Counts):
        counts: Floats = seen[statistic].dense()
        return counts
    table, patterns = np.zeros(seen.domain.shape(statistic.variables)), seen[statistic]
    full = (patterns.rows >= 0).all(axis=1)
    np.add.at(table, tuple(patterns.rows[full].T.astype(np.intp)), patterns.weights[full])
    return table


def _one_row(statistic: Moments | MomentsBy, domain: Domain, units: Units) -> Any:
    """One row in each cell: at the means of the columns, with their variances and no correlation."""
    sums = ExpectedMoments(statistic, domain)
    centre, scale = np.array([units[name] for name in statistic.variables]).reshape(-1, 2).T
    cells = len(sums.weight)
    scatter = np.broadcast_to(np.diag(scale**2), (cells, len(scale), len(scale)))
    sums.add(np.arange(cells), np.ones(cells), np.broadcast_to(centre, (cells, len(centre))), scatter)
    return sums.answer()


# --------------------------------------------------------------------------------------------------------------------
# Hidden columns
# --------------------------------------------------------------------------------------------------------------------


def fillings_of(
    rows: HeldRows, families: Mapping[Hashable, Domain], rng: np.random.Generator, run: int
) -> tuple[Filling, ...]:
    """How hidden variables that have real neighbours are filled in."""
    fillings: list[Filling] = []
    seen = set(rows.seen)
    for variable in rows.domain.variables:
        if variable.name in seen:
            continue
        near = dict.fromkeys(
            other.name
            for family in families.values()
            for other in family.variables
            if variable.name in family and other.kind != "discrete" and other.name in seen
        )
        scores = Scores(tuple(near), tuple(rows.units[name] for name in near), rows.names)
        if variable.kind != "discrete":
            fillings.append(Projection.of(rows, variable.name, scores, rng))
        elif near:
            way: Any = Clusters if run % 2 == 0 else FewRowsOfEach
            fillings.append(way.of(rows, variable.name, scores, variable.card, rng))
    return tuple(fillings)
