"""What one pass over a table says about the columns that states emit, so that their emission can be built without rows.

A survey of some rows adds up with those of others. Its `known` is what `Emission.describe` gives: states, the centre
and scale of a column, the distribution of all steps. From these the emission of a fit is built as from a file.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np

from suffice.array_types import Floats
from suffice.domain import Domain, Origin, Variable
from suffice.errors import EstimateError
from suffice.families.poisson import Poisson
from suffice.families.vectors import VectorFamily
from suffice.models.hidden_markov.emissions import contract
from suffice.models.hidden_markov.emissions.family import FamilyEmission, as_unit
from suffice.models.hidden_markov.emissions.reals import as_reals, checked_units


class Survey(Protocol):
    """What some rows say about the columns of an emission."""

    def __add__(self, other: Self, /) -> Self:
        """Of both sets of rows."""

    def known(self) -> dict[str, Any]:
        """What must be known to build the emission."""


@dataclass(frozen=True)
class SymbolsSurvey:
    """The states of a column; `settled` makes those of the distribution of them, and says where they come from."""

    variable: Variable
    settled: Callable[[tuple[Hashable, ...], Origin], tuple[tuple[Hashable, ...], Origin]]

    def __add__(self, other: SymbolsSurvey) -> SymbolsSurvey:
        """States are merged by label."""
        merged = Domain([self.variable]).merge(Domain([other.variable]))
        return replace(self, variable=merged[self.variable.name])

    def known(self) -> dict[str, Any]:
        """States and their origin."""
        states, origin = self.settled(self.variable.states, self.variable.origin)
        return {"states": states, "origin": origin}


@dataclass(frozen=True, eq=False)
class SpreadSurvey:
    """Weight, mean and scatter (d,) of the values of columns that are there, and the sum of their sizes."""

    titles: tuple[Any, ...]
    weight: Floats
    mean: Floats
    scatter: Floats
    sizes: Floats

    @classmethod
    def of(cls, columns: Sequence[Any], names: Sequence[Any] | None) -> SpreadSurvey:
        """Of some rows, each of which counts once."""
        titles = (None,) * len(columns) if names is None else tuple(names)
        values = np.stack([as_reals(column, title) for column, title in zip(columns, titles, strict=True)], axis=1)
        seen = ~np.isnan(values)
        rows, weight = np.where(seen, values, 0.0), seen.sum(axis=0).astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            mean = rows.sum(axis=0) / np.maximum(weight, 1.0)
            scatter = np.where(seen, (values - mean) ** 2, 0.0).sum(axis=0)
        return cls(titles, weight, mean, scatter, np.abs(rows).sum(axis=0))

    def __add__(self, other: SpreadSurvey) -> SpreadSurvey:
        """Scatters about the mean of both sets of rows (Chan, Golub and LeVeque 1979)."""
        weight = self.weight + other.weight
        share = np.divide(other.weight, weight, out=np.zeros_like(weight), where=weight > 0)
        apart = other.mean - self.mean
        scatter = self.scatter + other.scatter + self.weight * share * apart**2
        return SpreadSurvey(self.titles, weight, self.mean + share * apart, scatter, self.sizes + other.sizes)

    def known(self) -> dict[str, Any]:
        """Centre and scale."""
        scale = np.sqrt(np.divide(self.scatter, self.weight, out=np.zeros_like(self.weight), where=self.weight > 0))
        centre, units = checked_units(self.mean, scale, self.weight > 0, self.titles)
        return {"centre": centre, "scale": units}


@dataclass(frozen=True, eq=False)
class FamilySurvey:
    """The spread of the columns of a family, and the statistics of `one` distribution of all steps."""

    one: FamilyEmission
    spread: SpreadSurvey
    sums: contract.Statistics

    def __add__(self, other: FamilySurvey) -> FamilySurvey:
        """Of both sets of rows."""
        return replace(self, spread=self.spread + other.spread, sums=contract.add(self.sums, other.sums))

    def known(self) -> dict[str, Any]:
        """The distribution of all steps; rough parameters where all values are alike."""
        self.spread.known()
        rough = rough_parameters(self.one.distribution, self.spread.mean, self.spread.sizes / self.spread.weight)
        try:
            return {"unit": as_unit(replace(self.one, unit=rough).rescaled(self.sums).unit)}
        except EstimateError:
            return {"unit": rough}


def rough_parameters(distribution: Any, means: Floats, sizes: Floats) -> Floats:
    """Parameters that any distribution of a family may have, from the means of its columns and of their sizes."""
    if isinstance(distribution, VectorFamily):
        return len(means) * means
    level = float(sizes[0]) or 1.0
    rough = {
        "rate": level if isinstance(distribution, Poisson) else 1.0 / level,
        "scale": level,
        "mean": float(means[0]),
        "variance": level**2,
        "probability": 0.5,
    }
    return np.array([rough.get(name, 1.0) for name in distribution.parameter_names])


@dataclass(frozen=True)
class PartsSurvey:
    """Those of independent columns."""

    parts: tuple[Survey, ...]

    def __add__(self, other: PartsSurvey) -> PartsSurvey:
        """Column by column."""
        return PartsSurvey(tuple(a + b for a, b in zip(self.parts, other.parts, strict=True)))

    def known(self) -> dict[str, Any]:
        """Of every column."""
        return {"parts": [part.known() for part in self.parts]}
