"""The rows that EM learns from: what a summary holds of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.answers import PatternTable
from suffice.array_types import Floats
from suffice.domain import Domain
from suffice.sources.base import Batch, by_kind
from suffice.statistics import Patterns, Summary

Columns = Mapping[Any, NDArray[Any]]


@dataclass(frozen=True)
class ObservedRows:
    """The rows of a fit: `columns` (n,) by variable, with -1 (codes) or NaN where missing; `weights` (n,).

    Variables of the domain without a column are hidden.
    """

    domain: Domain
    columns: Columns
    weights: Floats

    def show(self, names: Iterable[Hashable]) -> bool:
        """Whether every row shows all of these variables."""
        columns = (self.columns.get(name) for name in names)
        return all(v is not None and not (v < 0 if v.dtype.kind == "i" else np.isnan(v)).any() for v in columns)


def has_missing(summary: Summary) -> bool:
    """Whether a summary holds the distinct rows that EM needs, and nothing else; a node may ask for some of its own."""
    return len(summary.answers) == 1 and all(type(question) is Patterns for question in summary.answers)


def read_rows(summary: Summary, domain: Domain) -> ObservedRows:
    """The distinct rows of a summary by column; `domain` may have hidden variables besides.

    A column of missing values alone is hidden like one that is not there.
    """
    question = next(question for question in summary.answers if isinstance(question, Patterns))
    patterns: PatternTable = summary[question]
    columns = _columns(question.variables, patterns, domain)
    seen = {name: (v >= 0).any() if v.dtype.kind == "i" else not np.isnan(v).all() for name, v in columns.items()}
    return ObservedRows(domain, {name: v for name, v in columns.items() if seen[name]}, patterns.weights)


def _columns(
    names: Sequence[Hashable], patterns: PatternTable, domain: Domain, *, narrow: bool = False
) -> dict[Hashable, Any]:
    """Codes and numbers of distinct rows by column; narrow: in the narrowest codes that hold their states."""
    columns: dict[Hashable, Any] = {}
    for name, values in zip(names, patterns.rows.T, strict=True):
        if domain[name].kind == "discrete":
            code = np.min_scalar_type(-domain[name].card - 1) if narrow else np.int32
            columns[name] = np.nan_to_num(values, nan=-1).astype(code)
        else:
            columns[name] = np.ascontiguousarray(values, dtype=np.float64)
    return columns


def compact_rows(names: Sequence[Hashable], patterns: PatternTable, domain: Domain) -> ObservedRows:
    """Distinct rows of some columns, in the narrowest codes that hold their states."""
    columns = _columns(names, patterns, domain, narrow=True)
    return ObservedRows(domain, columns, patterns.weights)


def code_matrix(rows: ObservedRows) -> tuple[tuple[Hashable, ...], NDArray[np.int32]]:
    """The names of the columns, all of them discrete, and their codes (n, d)."""
    codes = np.empty((len(rows.weights), len(rows.columns)), np.int32)
    for number, column in enumerate(rows.columns.values()):
        codes[:, number] = column
    return tuple(rows.columns), codes


def batch_of(rows: ObservedRows, columns: Columns) -> Batch:
    """The rows as a source would give them; a variable without a column has missing values alone."""
    discrete, real = by_kind(rows.domain)
    n = len(rows.weights)
    codes = np.empty((len(discrete), n), np.uint32)
    for number, name in enumerate(discrete):
        column = columns.get(name, np.full(n, -1))
        codes[number] = np.where(column < 0, rows.domain[name].card, column)
    reals = np.stack([columns.get(name, np.full(n, np.nan)) for name in real]) if real else np.empty((0, n))
    return Batch(rows.domain, discrete, codes, real, np.ascontiguousarray(reals), rows.weights, n)
