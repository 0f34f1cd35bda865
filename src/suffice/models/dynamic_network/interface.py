"""The interface of slices: which variables have to be carried along, and what each slice says about them.

Given the interface, the past and the future know nothing of one another (Murphy 2002). It holds the nodes that may be
missing and on which later slices depend, in as many slices as their longest arc reaches back. Their joint states are
the states of one chain, whatever the length of a series.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from suffice.array_types import Ints
from suffice.domain import Domain, Variable
from suffice.engines.memory import in_words
from suffice.errors import OptionError, SizeError, listing
from suffice.models.dynamic_network.pieces import (
    Absent,
    Piece,
    RowPiece,
    Seen,
    TablePiece,
    joint_states,
    patterns_of,
)
from suffice.models.dynamic_network.series import Series
from suffice.models.dynamic_network.structure import Position, SliceStructure, lag_of, name_of
from suffice.statistics import Statistic

#: Joint states that are carried along; a step costs their square.
MOST_STATES = 4096


@dataclass(frozen=True, eq=False)
class Interface:
    """What is carried from slice to slice: positions (node, slices back) with the number of their states."""

    positions: tuple[Position, ...]
    cards: tuple[int, ...]

    @property
    def size(self) -> int:
        """How many joint states there are."""
        return int(np.prod(self.cards, dtype=np.int64)) if self.cards else 1

    @cached_property
    def digits(self) -> dict[Position, Ints]:
        """By position, its state in each joint state (size,)."""
        return dict(zip(self.positions, joint_states(self.cards).T.astype(np.int64), strict=True))

    def places_of(self, piece: Piece) -> Ints:
        """The carried state of a piece in each joint state (size,)."""
        total = np.zeros(self.size, np.int64)
        for position, card in zip(piece.carried, piece.cards, strict=True):
            total = total * card + self.digits[position]
        return total

    def pairs_of(self, piece: Piece) -> Ints:
        """The carried state of a piece in each joint state of the slice before and of this one (size, size)."""
        total = np.zeros((self.size, self.size), np.int64)
        for position, card in zip(piece.carried, piece.cards, strict=True):
            node, lag = position
            digits = self.digits[position][None, :] if lag == 0 else self.digits[node, lag - 1][:, None]
            total = total * card + digits
        return total

    @cached_property
    def agreeing(self) -> Any:
        """Where two joint states in a row agree about the slices that both hold (size, size)."""
        same = np.ones((self.size, self.size), bool)
        for node, lag in self.positions:
            if lag:
                same &= self.digits[node, lag - 1][:, None] == self.digits[node, lag][None, :]
        return same


@dataclass(frozen=True, eq=False)
class SlicePlan:
    """The interface of some series, and the pieces of their slices: those of one slice, and those of two in a row."""

    interface: Interface
    single: tuple[Piece, ...]
    double: tuple[Piece, ...]
    local: tuple[Hashable, ...]


def plan_slices(
    series: Series,
    structure: SliceStructure,
    domain: Domain,
    statistics: Mapping[Hashable, Sequence[Statistic]],
    private: Domain,
    tables: Mapping[Hashable, bool],
    carried: Mapping[Hashable, int] = MappingProxyType({}),
) -> SlicePlan:
    """What has to be worked out for some series.

    Args:
        series: Their values.
        structure: The families, and where each holds.
        domain: The nodes and inputs, hidden ones among them.
        statistics: By family that takes part, what is to be expected of it; none for a question.
        private: Further variables of the tables of wide families.
        tables: By family, whether it is made of tables.
        carried: Nodes that are to be carried along whatever depends on them, and for how many slices.
    """
    return _Planner(series, structure, domain, statistics, private, tables, carried).plan()


@dataclass(frozen=True, eq=False)
class _Planner:
    series: Series
    structure: SliceStructure
    domain: Domain
    statistics: Mapping[Hashable, Sequence[Statistic]]
    private: Domain
    tables: Mapping[Hashable, bool]
    asked: Mapping[Hashable, int]

    @cached_property
    def families(self) -> tuple[Hashable, ...]:
        return tuple(self.statistics)

    @cached_property
    def unseen(self) -> set[Hashable]:
        """The nodes of states that some slice does not show."""
        names = {name_of(name) for family in self.families for name in self.structure.family_names(family)}
        names |= set(self.asked)
        return {name for name in names if self.domain[name].kind == "discrete" and not self._shown(name)}

    def _shown(self, name: Hashable) -> bool:
        return name in self.series.columns and not self.series.missing(name).any()

    @cached_property
    def depths(self) -> dict[Hashable, int]:
        """The nodes to carry, and for how many slices."""
        kept: dict[Hashable, int] = {}
        for family in self.families:
            for parent in self.structure.families[family]:
                name, lag = name_of(parent), lag_of(parent)
                if name in self.unseen and (lag or not self.tables[family]):
                    kept[name] = max(kept.get(name, 0), lag, 1)
            if not self.tables[family] and name_of(family) in self.unseen:
                kept[name_of(family)] = max(kept.get(name_of(family), 0), 1)
        kept |= {name: max(kept.get(name, 0), depth) for name, depth in self.asked.items() if name in self.unseen}
        return kept

    @cached_property
    def interface(self) -> Interface:
        positions = [(name, lag) for name, depth in self.depths.items() for lag in range(depth)]
        interface = Interface(tuple(positions), tuple(self.domain[name].card for name, _ in positions))
        if interface.size > MOST_STATES:
            names = [f"{name} ({self.domain[name].card} states in {d} slices)" for name, d in self.depths.items()]
            raise SizeError(
                f"The interface of slices has {interface.size:,} joint states, of {listing(names)}; a step would take "
                f"{in_words(8 * interface.size**2)}. The limit is {MOST_STATES:,}. Give hidden nodes fewer states or "
                "fewer arcs into later slices, or fill in the missing values of nodes that later slices depend on. A "
                "fitted network can be asked by a particle filter: filter(..., engine='sampling')."
            )
        return interface

    # -- pieces ------------------------------------------------------------------------------------------------------

    def plan(self) -> SlicePlan:
        single: list[Piece] = []
        double: list[Piece] = []
        for (families, _), kinds in self._components().items():
            piece = self._piece(families, kinds)
            deep = any(lag == self.depths[name] for name, lag in piece.carried)
            (double if deep else single).append(piece)
        return SlicePlan(self.interface, (*single, *self._seen(), *self._absent()), tuple(double), self._local)

    @property
    def _local(self) -> tuple[Hashable, ...]:
        return tuple(name for name in self.domain.names if name in self.unseen and name not in self.depths)

    @cached_property
    def _last(self) -> int:
        """The slice from which on all slices are alike."""
        return max((self.structure.span(family)[0] for family in self.families), default=0)

    def _components(self) -> dict[tuple[tuple[Hashable, ...], tuple[Any, ...]], list[tuple[int, int]]]:
        """Families that share something that is summed out, with the kinds of slices of each.

        The key has where their variables are, as seen from a slice: equal components of several slices are one. A kind
        of slice is an early slice (the last: all later ones), and which nodes are set from outside.
        """
        components: dict[tuple[tuple[Hashable, ...], tuple[Any, ...]], list[tuple[int, int]]] = {}
        for time, number in itertools.product(range(self._last + 1), range(len(self._cuts[0]))):
            cut = self._cuts[0][number]
            active = [family for family in self.families if self._holds(family, time) and name_of(family) not in cut]
            for group in self._connected(active, time):
                places = tuple(tuple(self.structure.positions(family, time).values()) for family in group)
                components.setdefault((tuple(group), places), []).append((time, number))
        return components

    @cached_property
    def _cuts(self) -> tuple[list[frozenset[Hashable]], Ints]:
        """The sets of nodes that are set from outside together, and which of them each slice has (slices,)."""
        masks = {name: mask for name, mask in self.series.cut.items() if mask.any()}
        if not masks:
            return [frozenset()], np.zeros(self.series.n_slices, np.int64)
        rows, numbers = np.unique(np.stack(list(masks.values()), axis=1), axis=0, return_inverse=True)
        sets = [frozenset(name for name, held in zip(masks, row, strict=True) if held) for row in rows.tolist()]
        return sets, numbers.reshape(-1).astype(np.int64)

    def _holds(self, family: Hashable, time: int) -> bool:
        begin, end = self.structure.span(family)
        return begin <= time and (end is None or time < end)

    def _connected(self, families: Sequence[Hashable], time: int) -> list[list[Hashable]]:
        """Families in groups that share a variable that is summed out."""
        groups: list[tuple[set[Hashable], list[Hashable]]] = []
        for family in families:
            shared = {name for name, _ in self.structure.positions(family, time).values() if name in self._local}
            touching = [group for group in groups if group[0] & shared]
            merged = (shared.union(*(group[0] for group in touching)), [f for g in touching for f in g[1]] + [family])
            groups = [group for group in groups if group not in touching] + [merged]
        return [members for _, members in groups]

    def _rows(self, kinds: Sequence[tuple[int, int]]) -> Ints:
        """The slices of some kinds."""
        sets, numbers = self._cuts
        kind = np.minimum(self.series.place, self._last) * len(sets) + numbers
        return np.flatnonzero(np.isin(kind, [time * len(sets) + number for time, number in kinds]))

    def _values(self, position: Position, rows: Ints) -> Any:
        name, lag = position
        return self.series.columns[name][rows - lag]

    def _piece(self, families: tuple[Hashable, ...], kinds: Sequence[tuple[int, int]]) -> Piece:
        """The piece of some families, in the kinds of slices in which they hold."""
        rows = self._rows(kinds)
        positions: dict[Hashable, Position] = {}
        for family in families:
            positions |= self.structure.positions(family, kinds[0][0])
        everything = tuple(dict.fromkeys(positions.values()))
        carried = tuple(position for position in everything if position[0] in self.depths)
        if not self.tables[families[0]]:
            return self._row_piece(families[0], rows, positions, carried, tuple(self.statistics[families[0]]))
        seen = tuple(p for p in everything if p[0] not in self.depths and p[0] in self.series.columns)
        patterns, labels = patterns_of(
            [self._values(p, rows) for p in seen], [self.domain[name].card for name, _ in seen], len(rows)
        )
        asked = tuple(statistic for family in families for statistic in self.statistics[family])
        return TablePiece(
            rows, labels, patterns, seen, carried, self.domain, families, positions, asked, self._private(families)
        )

    def _private(self, families: Sequence[Hashable]) -> Domain:
        known = set(families)
        return Domain(v for v in self.private.variables if getattr(v.name, "node", None) in known)

    def _row_piece(
        self,
        family: Hashable,
        rows: Ints,
        positions: Mapping[Hashable, Position],
        carried: tuple[Position, ...],
        statistics: tuple[Statistic, ...],
    ) -> Piece:
        """A family with numbers: of slices that show them; one that ends in a missing number says nothing."""
        own = positions[family]
        self._refuse_hidden(family, positions)
        shown = np.ones(len(rows), bool)
        if not self._shown(own[0]) and own not in carried:
            shown = ~self.series.missing(own[0])[rows]
        rows = rows[shown]
        columns = {n: self._values(p, rows) for n, p in positions.items() if p not in carried}
        names = tuple(next(n for n, p in positions.items() if p == position) for position in carried)
        domain = Domain(
            Variable(n, v.kind, v.states, v.origin) for n, p in positions.items() for v in [self.domain[p[0]]]
        )
        return RowPiece(rows, columns, carried, names, domain, (family,), statistics)

    def _refuse_hidden(self, family: Hashable, positions: Mapping[Hashable, Position]) -> None:
        """Numbers on which something depends have to be seen."""
        for name, (node, _) in positions.items():
            real = self.domain[node].kind != "discrete"
            above = name != family or any(
                name_of(parent) == node for others in self.structure.families.values() for parent in others
            )
            if real and above and not self._shown(node):
                raise OptionError(
                    f"{node!r} holds numbers, has missing values or is hidden, and other nodes depend on it: beside "
                    "nodes of states that are not seen, that has no closed form. Fill its missing values in, leave "
                    "those series out, or declare states for it. Where all that is not seen is linear-Gaussian, it is "
                    "learned by Kalman's recursions. A fitted network can be asked by a particle filter: filter(..., "
                    "engine='sampling')."
                )

    def _seen(self) -> list[Piece]:
        """Of carried variables that some slices show, the states that these have."""
        pieces: list[Piece] = []
        for name in self.depths:
            if name in self.series.columns:
                values = self.series.columns[name]
                rows = np.flatnonzero(values >= 0)
                pieces.append(Seen(rows, values[rows].astype(np.int64), ((name, 0),), (self.domain[name].card,)))
        return pieces

    def _absent(self) -> list[Piece]:
        """First slices, before which nothing is carried."""
        deep = tuple(position for position in self.interface.positions if position[1])
        if not deep:
            return []
        firsts = self.series.offsets[:-1]
        return [Absent(firsts, deep, tuple(self.domain[name].card for name, _ in deep))]
