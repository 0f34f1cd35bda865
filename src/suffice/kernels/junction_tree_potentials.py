"""The factors of a model, scaled and ready to be multiplied into the cliques of a junction tree."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.kernels.junction_tree_layout import Scope, TreeLayout
from suffice.kernels.junction_tree_numpy import aligned, clique_tables
from suffice.records import record

_KEPT = 1 << 22  # Products of up to this many cells are kept between calls.


@record(frozen=True)
class Scaled:
    """Numbers divided by exp(shift), so that the largest lies in [0.5, 1]; `least` is the least one above 0.

    `least` is 0 where that is too small for a double, and 1 if all numbers are 0. `given` are the numbers before, or
    their logarithms if `log`.
    """

    values: Floats
    shift: float
    least: float
    given: Floats
    log: bool

    @classmethod
    def of(cls, values: Floats, *, log: bool = False) -> Scaled:
        """Scale numbers (n,) that are finite and not negative, or given by logarithms below infinity."""
        scaled, shifts, leasts = scale_parts(values, np.array([0, len(values)]), log=log)
        return cls(scaled, float(shifts[0]), float(leasts[0]), values, log)

    @classmethod
    @lru_cache(maxsize=1024)
    def observed(cls, card: int, state: int) -> Scaled:
        """One at an observed state, and zeros; the same for all questions."""
        values = np.zeros(card)
        values[state] = 1.0
        values.flags.writeable = False
        return cls(values, 0.0, 1.0, values, False)

    @property
    def logarithms(self) -> Floats:
        """Logarithms of the values, also of those that are too small for a double."""
        return logarithms(self.given, log=self.log) - self.shift

    @property
    def log_of_constant(self) -> float:
        """Log of a single number."""
        return float(self.logarithms[0]) + self.shift


def logarithms(numbers: Floats, *, log: bool) -> Floats:
    """Logarithms of numbers, which are logarithms already if `log`."""
    if log:
        return numbers
    with np.errstate(divide="ignore"):
        return np.log(numbers)


def scale_parts(flat: Floats, ends: NDArray[np.intp], *, log: bool) -> tuple[Floats, Floats, Floats]:
    """Scale each part ends[i] to ends[i + 1] of flat: the scaled numbers, shifts and least numbers as in `Scaled`.

    No part may be empty. Numbers are scaled by powers of two, which is exact, logarithms by their largest.
    """
    starts, sizes = ends[:-1], np.diff(ends)
    if not len(starts):
        return flat, np.zeros(0), np.ones(0)
    tops = np.maximum.reduceat(flat, starts)
    if log:
        tops = np.where(tops > -np.inf, tops, 0.0)
        moved = flat - np.repeat(tops, sizes)
        lows = np.minimum.reduceat(np.where(moved > -np.inf, moved, 0.0), starts)
        return np.exp(moved), tops, np.exp(lows)
    _, powers = np.frexp(tops)
    powers[tops == 1.0] = 0  # The usual case, which then needs no scaling.
    scaled = np.ldexp(flat, -np.repeat(powers, sizes)) if powers.any() else flat
    leasts = np.minimum.reduceat(np.where(flat > 0.0, flat, np.inf), starts)
    return scaled, powers * np.log(2.0), np.where(tops > 0.0, np.ldexp(leasts, -powers), 1.0)


class Potentials:
    """The factors of a model over the cliques of a layout.

    scopes: variables of each factor, at least one and all in one clique; flat: the numbers of all factors one after
    another, in C order, not negative and finite, or their logarithms, below infinity.
    """

    def __init__(self, layout: TreeLayout, scopes: Sequence[Scope], flat: Floats, *, log: bool = False) -> None:
        self.layout = layout
        self.scopes = tuple(scopes)
        self.ends = np.cumsum([0, *(layout.size(scope) for scope in self.scopes)])
        self.values, self._shifts, self._leasts = scale_parts(flat, self.ends, log=log)
        self.shift = float(self._shifts.sum())
        self._given = flat, log

    @cached_property
    def homes(self) -> NDArray[np.intp]:
        """The clique that takes each factor (factors,)."""
        return np.array([self.layout.home(scope) for scope in self.scopes], np.intp)

    @cached_property
    def floors(self) -> Floats:
        """Lower bounds (cliques,) of the non-zero numbers of the potentials."""
        floors = np.ones(len(self.layout.cliques))
        np.multiply.at(floors, self.homes, self._leasts)
        return floors

    @cached_property
    def kept(self) -> Floats:
        """1 for each clique (cliques,), or 0 if it has a number that is too small for a double."""
        kept = np.ones(len(self.layout.cliques))
        kept[self.homes[self._leasts == 0.0]] = 0.0
        return kept

    @cached_property
    def psi(self) -> Floats:
        """Potentials of all cliques (cells,)."""
        return self._product(logarithms=False)

    @cached_property
    def log_psi(self) -> Floats:
        """Logarithms of the potentials of all cliques (cells,)."""
        return self._product(logarithms=True)

    def fresh(self, *, logarithms: bool = False) -> Floats:
        """The potentials in an array that may be written to; large ones are made anew, not kept."""
        if self.layout.cells > _KEPT:
            return self._product(logarithms=logarithms)
        return (self.log_psi if logarithms else self.psi).copy()

    def _product(self, *, logarithms: bool) -> Floats:
        layout = self.layout
        flat, absorb = (self._logs(), np.add) if logarithms else (self.values, np.multiply)
        product = np.full(layout.cells, 0.0 if logarithms else 1.0)
        tables = clique_tables(layout, product, 1)
        for scope, home, start, end in zip(self.scopes, self.homes, self.ends[:-1], self.ends[1:], strict=True):
            factor = flat[start:end].reshape(layout.shape(scope))
            absorb(tables[home], aligned(factor, scope, layout.cliques[home])[..., None], out=tables[home])
        return product

    def _logs(self) -> Floats:
        """Logarithms of the values, also of those that are too small for a double."""
        flat, log = self._given
        return logarithms(flat, log=log) - np.repeat(self._shifts, np.diff(self.ends))
