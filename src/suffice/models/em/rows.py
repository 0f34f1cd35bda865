"""The rows that EM learns from: what a summary holds of them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
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

    @cached_property
    def units(self) -> dict[Hashable, tuple[float, float]]:
        """Mean and standard deviation of the values seen of each real variable; 0 and 1 where there is no spread."""
        units: dict[Hashable, tuple[float, float]] = {}
        for variable in self.domain.variables:
            if variable.kind != "discrete":
                values = self.columns.get(variable.name, np.empty(0))
                seen = ~np.isnan(values)
                weights, values = self.weights[seen] if len(values) else self.weights[:0], values[seen]
                mean = float(weights @ values / weights.sum()) if weights.sum() > 0 else 0.0
                spread = math.sqrt(float(weights @ (values - mean) ** 2 / weights.sum())) if weights.sum() > 0 else 0.0
                units[variable.name] = mean, spread if spread > 1e-12 * abs(mean) else 1.0
        return units

    def show(self, names: Iterable[Hashable]) -> bool:
        """Whether every row shows all of these variables."""
        columns = (self.columns.get(name) for name in names)
        return all(v is not None and not (v < 0 if v.dtype.kind == "i" else np.isnan(v)).any() for v in columns)

    def scores(self, names: Sequence[Hashable]) -> Floats:
        """Standard scores (n, p) of real variables; a missing value is a score of 0."""
        parts = [(self.columns[name] - self.units[name][0]) / self.units[name][1] for name in names]
        return np.nan_to_num(np.stack(parts, axis=1)) if parts else np.zeros((len(self.weights), 0))


def has_missing(summary: Summary) -> bool:
    """Whether a summary holds the distinct rows that EM needs, and nothing else; a node may ask for some of its own."""
    return len(summary.answers) == 1 and all(type(question) is Patterns for question in summary.answers)


def read_rows(summary: Summary, domain: Domain) -> ObservedRows:
    """The distinct rows of a summary by column; `domain` may have hidden variables besides.

    A column of missing values alone is hidden like one that is not there.
    """
    question = next(question for question in summary.answers if isinstance(question, Patterns))
    patterns: PatternTable = summary[question]
    columns: dict[Hashable, Any] = {}
    for name, values in zip(question.variables, patterns.rows.T, strict=True):
        if domain[name].kind == "discrete":
            columns[name] = np.nan_to_num(values, nan=-1).astype(np.int32)
        else:
            columns[name] = np.ascontiguousarray(values, dtype=np.float64)
    seen = {name: (v >= 0).any() if v.dtype.kind == "i" else not np.isnan(v).all() for name, v in columns.items()}
    return ObservedRows(domain, {name: v for name, v in columns.items() if seen[name]}, patterns.weights)


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
