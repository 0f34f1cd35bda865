"""Sequences in groups of eight of about equal length, whose steps are worked on side by side.

A group is only worth its while where most of its lanes have something to do: one long sequence is not, and is left to
the loops that take sequences one by one. Groups depend on the offsets alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.kernels.arrays import frozen

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LANES = 8
TILE = 4
#: Lanes that must be busy, on average over the steps of a group.
_BUSY = 3.0


@dataclass(frozen=True)
class Groups:
    """Sequences (groups, 8) by number, -1 in idle lanes; where they begin, and lengths, falling: (groups, 2, 8)."""

    members: Ints
    places: NDArray[np.uint64]
    #: Sequences that are in no group.
    others: Ints

    @property
    def steps(self) -> Ints:
        """Steps of the longest lane of each group."""
        return self.places[:, 1, 0].astype(np.int64)


def groups(offsets: Ints) -> Groups:
    """Sequences from the longest to the shortest, eight by eight; those of idle groups are left out."""
    lengths = np.diff(offsets)
    order = np.argsort(-lengths, kind="stable")
    members = np.full((-(-len(order) // LANES), LANES), -1)
    members.reshape(-1)[: len(order)] = order
    idle = members < 0
    sizes = np.where(idle, 0, lengths[members])
    busy = sizes.sum(axis=1) >= _BUSY * sizes[:, 0]
    places = np.stack([np.where(idle, 0, offsets[members]), sizes], axis=1)[busy].astype(np.uint64)
    left = members[~busy]
    return Groups(members[busy], np.ascontiguousarray(places), np.sort(left[left >= 0]))


class Lanes:
    """One pass over the groups: transitions (K, K) shared by all steps, ends (2, K), potentials (steps, K)."""

    def __init__(self, potentials: Floats, transitions: Floats, ends: Floats, found: Groups) -> None:
        """Pad matrix and ends."""
        size = potentials.shape[1]
        padded = -(-size // TILE) * TILE
        matrix, edges = np.zeros((padded, padded)), np.zeros((2, padded))
        matrix[:size, :size], edges[:, :size] = transitions, ends
        self._flat, self._ends, self._size = frozen(potentials.reshape(-1)), frozen(edges), np.uint64(size)
        self._matrix, self._turned = frozen(matrix.ravel()), frozen(np.ascontiguousarray(matrix.T).ravel())
        self._groups, self._shape = found, (size, padded)

    def pieces(self, work: int) -> list[tuple[int, int]]:
        """Ranges of groups of about `work` multiplications."""
        each = np.cumsum(self._groups.steps * (LANES * self._shape[1] ** 2))
        marks = np.searchsorted(each, np.arange(work, int(each[-1]) if len(each) else 0, work)) + 1
        bounds = np.unique(np.concatenate(([0], marks, [len(each)])))
        return list(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True))

    def masses(self, span: tuple[int, int], least: float, out: Floats, rows: Floats) -> None:
        """As `suffice.kernels.chain.masses`, of the sequences in some groups."""
        from suffice.kernels.compiled.chain_lanes import forwards

        found = self._forward(forwards, span, least, rows)
        self._tell(span, found, out)

    def posteriors(self, span: tuple[int, int], least: float, weights: Floats, out: Floats, rows: Floats) -> Floats:
        """Forward and backward: masses and posteriors are written, the sums (K, K) without transitions returned."""
        from suffice.kernels.compiled.chain_lanes import backwards, forwards

        size, padded = self._shape
        members = self._groups.members[slice(*span)]
        share = np.where(members < 0, 0.0, weights[members])
        found = self._forward(forwards, span, least, rows)
        fine = ~np.isnan(found)
        share[~fine] = 0.0
        given = (self._flat, self._matrix, self._ends, self._groups.places[slice(*span)], self._size, least)
        sums = np.zeros(padded * padded * LANES)
        backwards(*given, share, found, rows.reshape(-1), sums)
        lost = np.isnan(found)
        if lost[fine].any():  # Found too small on the way back, when part of its sums had been added.
            sums[:] = 0.0
            share[lost] = 0.0
            self._forward(forwards, span, least, rows)
            backwards(*given, share, np.zeros_like(found), rows.reshape(-1), sums)
        self._tell(span, found, out)
        return np.asarray(sums.reshape(padded, padded, LANES).sum(axis=2)[:size, :size])

    def _forward(self, loop: Callable[..., Any], span: tuple[int, int], least: float, rows: Floats) -> Floats:
        places = self._groups.places[slice(*span)]
        found = np.empty((len(places), LANES))
        loop(self._flat, self._turned, self._ends, places, self._size, least, found, rows.reshape(-1))
        return found

    def _tell(self, span: tuple[int, int], found: Floats, out: Floats) -> None:
        members = self._groups.members[slice(*span)]
        out[members[members >= 0]] = found[members >= 0]
