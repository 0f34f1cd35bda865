"""Which columns of a regression say the same as others, and which only nearly."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from suffice.array_types import Floats
from suffice.errors import EstimateError
from suffice.models.glm.design import Design
from suffice.models.glm.family import Family, RowDistribution, StartDistribution
from suffice.models.glm.held_rows import RegressionRows
from suffice.models.glm.problem import RegressionProblem, ResponseSums, response_sums
from suffice.models.glm.sample import has_many
from suffice.models.glm.solve import dependent_columns, refuse_dependent, refuse_extremes, refuse_large
from suffice.models.glm.squares import is_doubtful

#: Columns beyond which their products are not made to compare them.
MOST_COLUMNS = 6_000


@dataclass(frozen=True)
class ColumnRank:
    """Places of columns that are combinations of those before, in the engine's layout.

    `doubtful`: rows in float64 lose digits; `rooted`: only the exact root of X'X tells the columns apart. `step` is the
    Newton step from zero of the start, by the rows that were asked.
    """

    dropped: tuple[int, ...] = ()
    doubtful: bool = False
    rooted: bool = False
    notes: tuple[str, ...] = ()
    step: Floats | None = None


def checked_sums(rows: RegressionRows, family: Family | None = None) -> ResponseSums:
    """What the response says by itself; an error for rows of which nothing can be learned.

    family: of a response of one column of numbers.
    """
    sums = response_sums(rows, family)
    if not sums.weight > 0.0:
        raise EstimateError(
            "There are no rows, or none with weight; nothing can be learned. Give rows with a weight above 0."
        )
    if family is not None:
        refuse_large(sums, family)
    return sums


def column_rank(
    problem: RegressionProblem, design: Design, distribution: RowDistribution, mean: float, collinear: str
) -> ColumnRank:
    """Columns that say the same, by X'WX with the weights of a start: an error unless they are to be dropped."""
    start, rows = np.zeros(problem.layout.size), problem.rows
    if problem.layout.body > MOST_COLUMNS or problem.size == 0:
        return ColumnRank()
    flat = replace(problem, distribution=StartDistribution(distribution, mean))
    if has_many(problem):
        # Columns that differ on some rows differ on all.
        every = rows.rows // max(2_000, 3 * problem.size) or 1
        some = rows.spread(every)
        _, gradient, information = flat.on(some).curvature(start)
        if information.definite:
            return ColumnRank(step=information.solve(gradient))
    with np.errstate(over="ignore", invalid="ignore"):
        _, gradient, information = flat.curvature(start)
        doubtful = is_doubtful(information)
        if information.definite:
            return ColumnRank(doubtful=doubtful, step=information.solve(gradient))
        refuse_extremes(flat, design, information)
    dropped = dependent_columns(flat, design, start, information)
    if not dropped:
        return ColumnRank(doubtful=doubtful, rooted=not (problem.layout.sparse or problem.layout.levels))
    names = tuple(design.names[design.places[column]] for column in dropped)
    if collinear != "drop":
        raise refuse_dependent(names, rows.rows, design.size)
    words = f"left out as combinations of other columns: {', '.join(names)}"
    return ColumnRank(dropped, doubtful, notes=(words,))
