"""Factors over sites as flat arrays, and the two special forms that have faster loops: pairs of two states, and Potts.

A factor is a table over some sites, laid out in one vector of log-potentials. Sites are numbered from 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats, Ints

#: Start of each table, and for each member: pointer by factor, site, stride.
Factors = tuple[Ints, Ints, Ints, Ints]
#: For each site its factors: pointer by site, factor, stride of the site in it.
Places = tuple[Ints, Ints, Ints]
#: Pointer by site, and the neighbours of each.
Graph = tuple[Ints, Ints]

#: How far a table may be from the Potts form, relative to its largest number: rounding.
SAME = 1e-12


@dataclass(frozen=True, eq=False)
class GibbsLayout:
    """Cards (sites,) and the scopes of factors; their tables follow one another, the last site of a scope fastest."""

    cards: Ints
    scopes: tuple[tuple[int, ...], ...]
    factors: Factors
    places: Places
    n_cells: int

    @classmethod
    def of(cls, cards: Sequence[int], scopes: Sequence[Sequence[int]]) -> GibbsLayout:
        """Lay out tables over these scopes."""
        starts, site, stride, sizes = [0], [], [], []
        by_site: list[list[tuple[int, int]]] = [[] for _ in cards]
        for number, scope in enumerate(scopes):
            step = 1
            steps = []
            for one in reversed(scope):
                steps.append(step)
                step *= int(cards[one])
            for one, own in zip(scope, reversed(steps), strict=True):
                by_site[one].append((number, own))
                site.append(one)
                stride.append(own)
            starts.append(starts[-1] + step)
            sizes.append(len(scope))
        ptr = np.cumsum([0, *sizes], dtype=np.int64)
        factors = (np.array(starts[:-1], np.int64), ptr, np.array(site, np.int64), np.array(stride, np.int64))
        flat = [entry for entries in by_site for entry in entries]
        pairs = np.array(flat, np.int64).reshape(-1, 2)
        count = np.cumsum([0, *map(len, by_site)], dtype=np.int64)
        places = (count, np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1]))
        return cls(np.array(cards, np.int64), tuple(map(tuple, scopes)), factors, places, starts[-1])

    @property
    def n_sites(self) -> int:
        """Number of sites."""
        return len(self.cards)

    @cached_property
    def colours(self) -> list[Ints]:
        """Sites in classes that share no factor, so that those of a class may be drawn together; greedy."""
        colour = np.full(self.n_sites, -1)
        others: list[set[int]] = [set() for _ in range(self.n_sites)]
        for scope in self.scopes:
            for one in scope:
                others[one].update(scope)
        for one in range(self.n_sites):
            taken = {int(colour[other]) for other in others[one] if other != one}
            colour[one] = next(c for c in range(len(taken) + 1) if c not in taken)
        return [np.flatnonzero(colour == c) for c in range(int(colour.max(initial=-1)) + 1)]

    @cached_property
    def pairs(self) -> PairwiseSites | None:
        """The form of pairs, where no factor has more than two sites and all sites have the same number of states."""
        alike = self.n_sites > 0 and bool((self.cards == self.cards[0]).all()) and 2 <= self.cards[0] <= 255
        return PairwiseSites.of(self) if alike and all(len(scope) <= 2 for scope in self.scopes) else None

    def strides(self, number: int) -> Ints:
        """Strides of the sites of a factor."""
        ptr = self.factors[1]
        return self.factors[3][ptr[number] : ptr[number + 1]]

    def cells(self, number: int, states: NDArray[np.uint8]) -> Ints:
        """Cell of a factor in each chain of states (sites, chains)."""
        rows = states[list(self.scopes[number])].astype(np.int64)
        cells: Ints = self.factors[0][number] + self.strides(number) @ rows
        return cells


@dataclass(frozen=True, eq=False)
class PairwiseSites:
    """Sites with `card` states each, and factors of one or two of them.

    single: sites of factors of one; first, second: sites of factors of two; `own` and `both` are the starts of their
    tables; ends: for each neighbour of the graph the number of its pair.
    """

    card: int
    n_sites: int
    n_cells: int
    single: Ints
    own: Ints
    first: Ints
    second: Ints
    both: Ints
    graph: Graph
    ends: Ints

    @classmethod
    def of(cls, layout: GibbsLayout) -> PairwiseSites:
        """From a layout of factors of at most two sites."""
        start = layout.factors[0]
        one = np.array([n for n, scope in enumerate(layout.scopes) if len(scope) == 1], np.int64)
        two = np.array([n for n, scope in enumerate(layout.scopes) if len(scope) == 2], np.int64)
        single = np.array([layout.scopes[n][0] for n in one], np.int64)
        ends = np.array([layout.scopes[n] for n in two], np.int64).reshape(-1, 2)
        site = np.concatenate([ends[:, 0], ends[:, 1]])
        order = np.argsort(site, kind="stable")
        neighbour = np.concatenate([ends[:, 1], ends[:, 0]])[order]
        ptr = np.concatenate([[0], np.cumsum(np.bincount(site, minlength=layout.n_sites))]).astype(np.int64)
        number = np.tile(np.arange(len(two)), 2)[order]
        columns = (np.ascontiguousarray(ends[:, 0]), np.ascontiguousarray(ends[:, 1]))
        card = int(layout.cards[0])
        return cls(
            card, layout.n_sites, layout.n_cells, single, start[one], *columns, start[two], (ptr, neighbour), number
        )

    def _tables(self, logs: Floats) -> tuple[Floats, Floats]:
        """Tables of factors of one (k, card) and of two (k, card, card)."""
        cells = np.arange(self.card)
        return logs[self.own[:, None] + cells], logs[self.both[:, None, None] + self.card * cells[:, None] + cells]

    # -- two states --------------------------------------------------------------------------------------------------

    def odds(self, logs: Floats) -> tuple[Floats, Floats] | None:
        """Field (sites,) and coupling (pairs,): log-odds of 1 are field + sum of coupling times neighbour.

        None where a log-potential is infinite, or there are more states than two.
        """
        if self.card != 2 or not np.isfinite(logs).all():
            return None
        own, both = self._tables(logs)
        field = np.zeros(self.n_sites)
        field += np.bincount(self.single, own[:, 1] - own[:, 0], self.n_sites)
        field += np.bincount(self.first, both[:, 1, 0] - both[:, 0, 0], self.n_sites)
        field += np.bincount(self.second, both[:, 0, 1] - both[:, 0, 0], self.n_sites)
        return field, both[:, 1, 1] - both[:, 1, 0] - both[:, 0, 1] + both[:, 0, 0]

    def turned(self, field: Floats, coupling: Floats) -> Floats:
        """The transpose of `odds`: slopes by field (sites,) and coupling (pairs,) as slopes by cell."""
        slopes = np.zeros(self.n_cells)
        slopes[self.own], slopes[self.own + 1] = -field[self.single], field[self.single]
        first, second = field[self.first], field[self.second]
        slopes[self.both] = coupling - first - second
        slopes[self.both + 1] = second - coupling
        slopes[self.both + 2] = first - coupling
        slopes[self.both + 3] = coupling
        return slopes

    def counts(self, ones: Floats, both: Floats, total: float) -> Floats:
        """Counts of all cells, from those of state 1 of each site and of both ends of each pair."""
        counts = np.zeros(self.n_cells)
        counts[self.own], counts[self.own + 1] = total - ones[self.single], ones[self.single]
        first, second = ones[self.first], ones[self.second]
        counts[self.both] = total - first - second + both
        counts[self.both + 1], counts[self.both + 2], counts[self.both + 3] = second - both, first - both, both
        return counts

    # -- Potts -------------------------------------------------------------------------------------------------------

    def potts(self, logs: Floats) -> tuple[Floats, Floats] | None:
        """Field (sites, card) and coupling (pairs,), where every pair is u(x) + v(y) + w 1{x = y}; None elsewhere."""
        if self.card < 3 or not np.isfinite(logs).all():
            return None
        own, both = self._tables(logs)
        mixed = both - both[:, :, :1] - both[:, :1, :] + both[:, :1, :1]
        coupling = mixed[:, 1, 2]
        same = np.eye(self.card)
        form = same - same[:, :1] - same[:1, :] + 1.0
        slack = SAME * (1.0 + float(np.abs(both).max(initial=0.0)))
        if float(np.abs(mixed - coupling[:, None, None] * form).max(initial=0.0)) > slack:
            return None
        field = np.zeros((self.n_sites, self.card))
        np.add.at(field, self.single, own)
        corner = coupling[:, None] * same[0]
        np.add.at(field, self.first, both[:, :, 0] - corner)
        np.add.at(field, self.second, both[:, 0, :] - corner)
        return field, coupling
