"""Rows of a family as a regression takes them: parents as explanatory columns, the node as response.

A real parent is a column, a discrete one a factor in treatment coding: one coefficient for each state but the first
that occurs, so that parameters grow linearly with the parents.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.domain import Domain
from suffice.models.bayesian.nodes.contract import Columns
from suffice.models.em.held_rows import HeldRows
from suffice.models.em.rows import ObservedRows
from suffice.sources.reduction import add_answers
from suffice.statistics import CompleteRows, Counts, Statistic, Summary

if TYPE_CHECKING:
    from suffice.models.glm.design import Design, DesignRows


#: A question to the rows of a family: their columns, their weights and parameters give an answer that adds up.
FamilyQuestion = Callable[[Columns, Floats, Any], Any]


@dataclass(frozen=True, eq=False)
class HeldFamilyRows:
    """The rows of a family that stay where they are, in the place of the answer to `CompleteRows`.

    `families` has their columns; of tied nodes those of each member, whose rows are rows of one family by position.
    """

    rows: HeldRows
    families: tuple[tuple[Hashable, ...], ...]

    def __add__(self, other: HeldFamilyRows) -> HeldFamilyRows:
        """The rows of both families, as those of the first."""
        return replace(self, families=self.families + other.families)

    def ask(
        self, names: Sequence[Hashable], question: FamilyQuestion, parameters: Any, shards: Sequence[int] | None = None
    ) -> Any:
        """The sum of what the rows answer under the names of a family: one round."""
        return self.rows.ask(_OfFamilies(tuple(names), self.families, question), parameters, shards)


@dataclass(frozen=True)
class _OfFamilies:
    """A question to the rows of some families, put to all rows of a shard."""

    names: tuple[Hashable, ...]
    families: tuple[tuple[Hashable, ...], ...]
    question: FamilyQuestion

    def __call__(self, rows: ObservedRows, parameters: Any) -> Any:
        return add_answers(self.question(self._columns(rows, f), rows.weights, parameters) for f in self.families)

    def _columns(self, rows: ObservedRows, family: tuple[Hashable, ...]) -> dict[Hashable, NDArray[Any]]:
        columns = {name: rows.columns[own] for name, own in zip(self.names, family, strict=True)}
        return {name: v.astype(np.int32) if v.dtype.kind == "i" else v for name, v in columns.items()}


def ask_rows(domain: Domain, summary: Summary, question: FamilyQuestion, parameters: Any = None) -> Any:
    """What the rows of a family answer, wherever they are."""
    answer = summary[question_of(domain)]
    if isinstance(answer, HeldFamilyRows):
        return answer.ask(domain.names, question, parameters)
    return question(*rows_of(domain, summary), parameters)


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


def state_weights(domain: Domain, columns: Columns, weights: Floats) -> dict[Hashable, Floats]:
    """The weight (card,) of each state of the discrete parents."""
    discrete = [parent for parent in domain.variables[:-1] if parent.kind == "discrete"]
    return {v.name: np.bincount(columns[v.name], weights, v.card).astype(np.float64) for v in discrete}


def design_of(domain: Domain, constant: bool, seen_weights: Mapping[Hashable, Floats] | None = None) -> Design:
    """The design of a family, with the states that have weight; with all states where no weights are given."""
    from suffice.models.glm.design import Design, Factor

    columns_of_design: list[Any] = []
    full = not constant
    for parent in domain.variables[:-1]:
        if parent.kind != "discrete":
            columns_of_design.append(parent.name)
            continue
        counts = np.ones(parent.card) if seen_weights is None else seen_weights[parent.name]
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
