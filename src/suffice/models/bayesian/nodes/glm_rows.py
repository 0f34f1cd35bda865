"""Rows of a family as a regression takes them: parents as explanatory columns, the node as response.

A real parent is a column, a discrete one a factor in treatment coding: one coefficient for each state but the first
that occurs, so that parameters grow linearly with the parents.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.domain import Domain
from suffice.models.bayesian.nodes.contract import Columns
from suffice.statistics import CompleteRows, Counts, Statistic, Summary

if TYPE_CHECKING:
    from suffice.models.glm.design import Design, DesignRows


def question_of(domain: Domain) -> Statistic:
    """What a family is learned from: counts where all variables have states, else its distinct rows."""
    discrete = all(variable.kind == "discrete" for variable in domain.variables)
    return Counts(domain.names) if discrete else CompleteRows(domain.names)


def rows_of(domain: Domain, summary: Summary) -> tuple[dict[Hashable, NDArray[Any]], Floats]:
    """The distinct rows of a family by column, codes and numbers, and their weights (k,)."""
    question = question_of(domain)
    answer = summary[question]
    rows, weights = answer.items() if isinstance(question, Counts) else (answer.rows, answer.weights)
    columns: dict[Hashable, NDArray[Any]] = {}
    for variable, values in zip(domain.variables, rows.T, strict=True):
        kind: Any = np.int32 if variable.kind == "discrete" else np.float64
        columns[variable.name] = np.ascontiguousarray(values).astype(kind)
    return columns, np.asarray(weights, dtype=np.float64)


def design_of(domain: Domain, constant: bool, columns: Columns | None = None, weights: Any = None) -> Design:
    """The design of a family, with the states that occur in some rows; without rows, with all states."""
    from suffice.models.glm.design import Design, Factor

    columns_of_design: list[Any] = []
    full = not constant
    for parent in domain.variables[:-1]:
        if parent.kind != "discrete":
            columns_of_design.append(parent.name)
            continue
        counts = np.ones(parent.card)
        if columns is not None:
            counts = np.bincount(columns[parent.name], weights, parent.card).astype(np.float64)
        seen = np.flatnonzero(counts > 0)
        variable = replace(parent, states=tuple(parent.states[code] for code in seen.tolist()))
        columns_of_design.append(Factor(variable, counts[seen] / counts.sum(), full))
        full = False
    return Design(constant, tuple(columns_of_design))


def places_of(domain: Domain, design: Design) -> tuple[NDArray[np.intp] | None, ...]:
    """For each parent the level of its factor that each state is, -1 where the rows never had it; None if real.

    Parents and columns of the design meet by position, so that tied nodes may share a design.
    """
    levels_of_parents: list[NDArray[np.intp] | None] = []
    for parent, column in zip(domain.variables[:-1], design.columns, strict=True):
        levels = getattr(column, "variable", None)
        if levels is None:
            levels_of_parents.append(None)
            continue
        places = [levels.find(state) for state in parent.states]
        levels_of_parents.append(np.array([-1 if level is None else level for level in places], dtype=np.intp))
    return tuple(levels_of_parents)


def table_of(
    names: Sequence[Hashable], places: Sequence[NDArray[np.intp] | None], columns: Columns, n: int
) -> tuple[DesignRows, NDArray[np.bool_]]:
    """Rows of the parents for the design, and which of them have a state that the rows of the fit never had.

    Such a state counts as the first level of its factor.
    """
    from suffice.models.glm.design import DesignRows

    reals, codes, strange = [], [], np.zeros(n, dtype=np.bool_)
    for name, levels in zip(names, places, strict=True):
        if levels is None:
            reals.append(np.asarray(columns[name], dtype=np.float64))
            continue
        level = levels[columns[name]]
        strange |= level < 0
        codes.append(np.maximum(level, 0))
    matrix = np.stack(reals, axis=1) if reals else np.empty((n, 0))
    return DesignRows(np.ascontiguousarray(matrix), tuple(codes)), strange
