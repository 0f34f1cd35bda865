"""Rows of a design, and the same rows where a column has another value."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.fitting.contract import Inputs
from suffice.models.glm.design import DesignRows
from suffice.models.glm.fitted import GLMFitted
from suffice.models.glm.formula import as_frame
from suffice.models.glm.row_answers import STEP
from suffice.models.glm.rowwise import new_rows
from suffice.models.glm.terms import terms_of

#: Rows of a design (n, k), or its derivatives, and the offset (n,).
Changed = tuple[Floats, Floats | None]
#: Rows whose design is made at a time.
_ROWS = 4_096


class ChangedRows(ABC):
    """Rows of the design, and the same where a column has another value; each comes with the offset."""

    count: int

    def parts(self) -> Iterator[tuple[slice, ChangedRows]]:
        """The rows some at a time."""
        yield slice(0, self.count), self

    @abstractmethod
    def table(self) -> Changed:
        """The design (n, k) and the offset."""

    @abstractmethod
    def at(self, column: Hashable, value: Any) -> Changed:
        """The same where a column has a value."""

    @abstractmethod
    def moved(self, column: Hashable) -> Changed:
        """The derivatives of the design and of the offset in a column of numbers."""


def changed_rows(
    fitted: GLMFitted, unknown: str, X: Any, more: Mapping[str, Any], held: Mapping[Hashable, Any]
) -> TableRows | FormulaRows:
    """Rows as they are given, with columns that are held."""
    beside = {name: more[name] for name in ("offset", "exposure")}
    if fitted.specification is not None:
        frame = as_frame(X)
        frame = frame.to_pandas() if hasattr(type(frame), "to_pandas") else frame
        return FormulaRows(fitted, frame.assign(**{str(name): value for name, value in held.items()}), beside, unknown)
    table, offset = new_rows(fitted, Inputs(X, beside), unknown)
    for name, value in held.items():
        table = changed(fitted, table, name, value)
    return TableRows(fitted, table, offset)


@dataclass(frozen=True, eq=False)
class TableRows(ChangedRows):
    """Rows whose columns are those of the design."""

    fitted: GLMFitted
    rows: DesignRows
    offset: Floats | None

    @property
    def count(self) -> int:  # type: ignore[override]
        """How many there are."""
        return self.rows.rows

    def parts(self) -> Iterator[tuple[slice, ChangedRows]]:
        """The rows some at a time."""
        for first in range(0, self.count, _ROWS):
            own = slice(first, first + _ROWS)
            offset = None if self.offset is None else self.offset[own]
            yield own, replace(self, rows=self.rows.part(own), offset=offset)

    def table(self) -> Changed:
        """The design (n, k) and the offset."""
        return self.fitted.design.matrix(self.rows), self.offset

    def at(self, column: Hashable, value: Any) -> Changed:
        """The same where a column has a value."""
        return self.fitted.design.matrix(changed(self.fitted, self.rows, column, value)), self.offset

    def moved(self, column: Hashable) -> Changed:
        """One in the place of the column."""
        return column_of_ones(self.fitted, column, self.count), None


def changed(fitted: GLMFitted, table: DesignRows, column: Hashable, value: Any) -> DesignRows:
    """Rows in which a column has one value."""
    names = [factor.variable.name for factor in fitted.design.factors]
    if column in names:
        codes, number = list(table.codes), names.index(column)
        level = fitted.design.factors[number].variable.index(value)
        codes[number] = np.full(table.rows, level, dtype=np.int64)
        return replace(table, codes=tuple(codes))
    reals = table.reals.copy()
    reals[:, fitted.design.reals.index(column)] = value
    return replace(table, reals=reals)


def column_of_ones(fitted: GLMFitted, column: Hashable, count: int) -> Floats:
    """The derivative of the design (n, k) in a column of numbers."""
    moved = np.zeros((count, fitted.design.size))
    moved[:, terms_of(fitted)[str(column)][0] - len(fitted.thresholds)] = 1.0
    return moved


@dataclass(frozen=True, eq=False)
class FormulaRows(ChangedRows):
    """Rows of which a formula makes the design."""

    fitted: GLMFitted
    frame: Any
    more: Mapping[str, Any]
    unknown: str

    @property
    def count(self) -> int:  # type: ignore[override]
        """How many there are."""
        return len(self.frame)

    def table(self) -> Changed:
        """The design (n, k) and the offset."""
        return self._made(self.frame)

    def at(self, column: Hashable, value: Any) -> Changed:
        """The same where a column has a value."""
        return self._made(self.frame.assign(**{str(column): value}))

    def moved(self, column: Hashable) -> Changed:
        """Central differences, which are exact up to squares."""
        x = self.frame[column].to_numpy(dtype=np.float64)
        step = STEP * np.maximum(1.0, np.abs(x))
        ends = [self._made(self.frame.assign(**{str(column): x + sign * step})) for sign in (1.0, -1.0)]
        width = (x + step) - (x - step)
        (high, above), (low, below) = ends
        offset = None if above is None or below is None else (above - below) / width
        return (high - low) / width[:, None], offset

    def _made(self, frame: Any) -> Changed:
        rows, offset = new_rows(self.fitted, Inputs(frame, self.more), self.unknown)
        return self.fitted.design.matrix(rows), offset


@dataclass(frozen=True, eq=False)
class MeanRow(ChangedRows):
    """One row of the design, with the mean of every column."""

    fitted: GLMFitted
    design: Floats
    offset: Floats | None
    count = 1

    def table(self) -> Changed:
        """The design (1, k) and the offset."""
        return self.design, self.offset

    def at(self, column: Hashable, value: Any) -> Changed:
        """The same with a level of a factor, or a value, in place of the mean."""
        fitted = self.fitted
        none = DesignRows(
            np.zeros((1, len(fitted.design.reals))), tuple(np.zeros(1, np.int64) for _ in fitted.design.factors)
        )
        own = terms_of(fitted)[str(column)]
        places = np.array(own) - len(fitted.thresholds)
        design = self.design.copy()
        design[:, places] = fitted.design.matrix(changed(fitted, none, column, value))[:, places]
        return design, self.offset

    def moved(self, column: Hashable) -> Changed:
        """One in the place of the column."""
        return column_of_ones(self.fitted, column, 1), None
