"""Where the tables of a junction tree lie in memory, and how a table and a part of its variables meet.

Variables are numbered from 0; all tables are in C order, one after another in a flat float64 buffer. With `batch` cases
side by side, the case is the last and fastest axis of every table.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.records import record

Scope = tuple[int, ...]

_ALL = slice(None)

_SMALL = 2**12  # Numbers of a table up to which its meetings are kept for other trees.
_RUN = 3.0  # Nanoseconds to begin a run of cells, to work on a cell of a run, and to work on a cell by a map.
_CELL = 0.12
_MAP = 0.7


def alignment(scope: Sequence[int], clique: Sequence[int]) -> tuple[tuple[int, ...], tuple[slice | None, ...]]:
    """How to view a table over scope so that it broadcasts against one over clique: order of axes, then an index."""
    order: list[int] = []
    index: list[slice | None] = []
    for variable in clique:
        if variable in scope:
            order.append(scope.index(variable))
            index.append(_ALL)
        else:
            index.append(None)
    return tuple(order), tuple(index)


def other_axes(clique: Sequence[int], scope: Sequence[int]) -> tuple[int, ...]:
    """Axes of a clique that are not in scope."""
    return tuple([axis for axis, variable in enumerate(clique) if variable not in scope])


@record(frozen=True)
class Edge:
    """How the tables at the ends of an edge, each with the batch as its last axis, meet their separator.

    child_axes and parent_axes are summed out. The separator, in the order of the child, is seen by the child with
    child_index, and by the parent with axes in parent_order and then parent_index; back_order undoes parent_order.
    """

    child: int
    parent: int
    child_axes: tuple[int, ...]
    parent_axes: tuple[int, ...]
    child_index: tuple[slice | None, ...]
    parent_order: tuple[int, ...]
    parent_index: tuple[slice | None, ...]
    back_order: tuple[int, ...]

    @classmethod
    def between(cls, child: int, parent: int, cliques: Sequence[Scope], separator: Scope) -> Edge:
        """Work out the axes."""
        below, above = cliques[child], cliques[parent]
        order, index = alignment(separator, above)
        back = sorted(range(len(order)), key=order.__getitem__)
        item = len(separator)
        axes = other_axes(below, separator), other_axes(above, separator)
        return cls(child, parent, *axes, alignment(separator, below)[1], (*order, item), index, (*back, item))


@record(frozen=True, eq=False)
class TreeLayout:
    """A rooted forest of cliques.

    cliques: variables of each, in the order of the axes; parents: -1 for a root; order: children before their parent.
    """

    cards: tuple[int, ...]
    cliques: tuple[Scope, ...]
    parents: tuple[int, ...]
    order: tuple[int, ...]

    @cached_property
    def separators(self) -> tuple[Scope, ...]:
        """What each clique shares with its parent, in the clique's own order; () for a root."""
        held = [frozenset(clique) for clique in self.cliques]
        return tuple(
            tuple(variable for variable in clique if parent >= 0 and variable in held[parent])
            for clique, parent in zip(self.cliques, self.parents, strict=True)
        )

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Cells of each clique."""
        return tuple(self.size(clique) for clique in self.cliques)

    @cached_property
    def separator_sizes(self) -> tuple[int, ...]:
        """Cells of each separator; 1 for a root."""
        return tuple(self.size(separator) for separator in self.separators)

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Where each clique begins in the buffer of all cliques; the last entry is the number of cells."""
        return tuple(int(end) for end in np.cumsum((0, *self.sizes), dtype=np.int64))

    @property
    def cells(self) -> int:
        """Cells of all cliques together."""
        return self.starts[-1]

    @cached_property
    def unscaled(self) -> tuple[float, ...]:
        """For each clique the least number that messages to it may hold unscaled: their product must not underflow."""
        children = Counter(self.parents)
        return tuple(2.0 ** (-400 / (children[clique] + 1)) for clique in range(len(self.cliques)))

    @cached_property
    def touches(self) -> int:
        """Cells visited by one calibration: every message visits the two tables that it joins, there and back."""
        return 2 * sum(
            self.sizes[index] + self.sizes[parent] for index, parent in enumerate(self.parents) if parent >= 0
        )

    @cached_property
    def homes(self) -> tuple[int, ...]:
        """For each variable the smallest clique that holds it."""
        homes = [-1] * len(self.cards)
        for index in sorted(range(len(self.cliques)), key=lambda index: (-self.sizes[index], -index)):
            for variable in self.cliques[index]:
                homes[variable] = index
        return tuple(homes)

    def home(self, scope: Sequence[int]) -> int:
        """The smallest clique that holds a scope, -1 if none does; for the empty scope the first clique."""
        if len(scope) == 1:
            return self.homes[scope[0]]
        known = self._known_homes.get(tuple(scope))
        if known is None:
            known = self._known_homes[tuple(scope)] = self._find_home(scope)
        return known

    @cached_property
    def _known_homes(self) -> dict[Scope, int]:
        return {}

    def _find_home(self, scope: Sequence[int]) -> int:
        wanted = frozenset(scope)
        rarest = min((self._holders[variable] for variable in scope), key=len, default=range(len(self.cliques)))
        return min(
            (index for index in rarest if wanted.issubset(self.cliques[index])),
            key=lambda index: (self.sizes[index], index),
            default=-1,
        )

    @cached_property
    def _holders(self) -> tuple[tuple[int, ...], ...]:
        holders: list[list[int]] = [[] for _ in self.cards]
        for index, clique in enumerate(self.cliques):
            for variable in clique:
                holders[variable].append(index)
        return tuple(map(tuple, holders))

    @cached_property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shape of each clique."""
        return tuple(self.shape(clique) for clique in self.cliques)

    @cached_property
    def singles(self) -> tuple[Scope, ...]:
        """The scope of each single variable."""
        return tuple((variable,) for variable in range(len(self.cards)))

    @cached_property
    def edges(self) -> tuple[Edge, ...]:
        """The edges of the forest, those of children before that of their parent."""
        return tuple(
            Edge.between(clique, self.parents[clique], self.cliques, self.separators[clique])
            for clique in self.order
            if self.parents[clique] >= 0
        )

    @cached_property
    def roots(self) -> tuple[int, ...]:
        """Cliques without a parent."""
        return tuple(clique for clique, parent in enumerate(self.parents) if parent < 0)

    def meeting(self, clique: int, scope: Scope, batch: int) -> Meeting:
        """How a clique and a part of its variables meet; made once."""
        key = (clique, scope, batch)
        meeting = self._meetings.get(key)
        if meeting is None:
            axis_of = {variable: axis for axis, variable in enumerate(self.cliques[clique])}
            axes = tuple([axis_of[variable] for variable in scope])
            # Tables of the same form meet alike, within a tree and from tree to tree.
            way = meet if self.sizes[clique] * batch <= _SMALL else meet.__wrapped__
            meeting = self._meetings[key] = way(self.shapes[clique], axes, batch)
        return meeting

    @cached_property
    def programs(self) -> dict[Any, Any]:
        """Programs made for this layout; see `suffice.kernels.junction_tree_program`."""
        return {}

    @cached_property
    def _meetings(self) -> dict[tuple[int, Scope, int], Meeting]:
        return {}

    def size(self, scope: Sequence[int]) -> int:
        """Cells of a table over these variables."""
        return math.prod([self.cards[variable] for variable in scope])

    def shape(self, scope: Sequence[int]) -> tuple[int, ...]:
        """Cards of these variables."""
        return tuple(self.cards[variable] for variable in scope)


def arrange(
    cards: Sequence[int], cliques: Sequence[Sequence[int]], parents: Sequence[int], order: Sequence[int]
) -> TreeLayout:
    """Choose the order of the axes of each clique.

    Variables that lie in many and large separators go last, so that messages read and write long runs of cells.
    """
    weights = [dict.fromkeys(clique, 0) for clique in cliques]
    for index, parent in enumerate(parents):
        if parent >= 0:
            shared = [variable for variable in cliques[index] if variable in weights[parent]]
            for variable in shared:
                weights[index][variable] += len(shared)
                weights[parent][variable] += len(shared)
    depth = {variable: rank for rank, variable in enumerate(_by_depth(cliques, order))}
    arranged = tuple(
        tuple(sorted(clique, key=lambda variable: (weight[variable], depth[variable])))
        for clique, weight in zip(cliques, weights, strict=True)
    )
    return TreeLayout(tuple(cards), arranged, tuple(parents), tuple(order))


def _by_depth(cliques: Sequence[Sequence[int]], order: Sequence[int]) -> list[int]:
    """Variables from the leaves to the root, so that neighbours in the tree order what they share alike."""
    return list(reversed(dict.fromkeys(variable for index in reversed(order) for variable in cliques[index])))


@record(frozen=True)
class Meeting:
    """How the cells of a table T over C meet those of a table S over some of its variables.

    T is cut into runs of `length` cells. Run r meets the cells offsets[r], offsets[r] + 1, ... of a table W if
    `inside`, and the single cell offsets[r] if not. W is S itself, or S widened by variables of C; then run q of
    `fold_length` cells of W meets the cells of S from fold_offsets[q]. A cell counts as `batch` numbers.
    """

    length: int
    offsets: NDArray[np.uint32]
    inside: bool
    fold_length: int
    fold_offsets: NDArray[np.uint32]

    @property
    def wide(self) -> int:
        """Numbers in W if it is not S, else 0."""
        return self.fold_length * len(self.fold_offsets)


@lru_cache(maxsize=1024)
def meet(shape: tuple[int, ...], scope: Scope, batch: int = 1) -> Meeting:
    """Choose the cheapest way for a table of this shape and one of some of its axes, in any order, to meet."""
    clique = tuple(range(len(shape)))
    cells = math.prod(shape) * batch
    held = frozenset(scope)
    best, wide, length, inside = math.inf, scope, 1, True
    for widened in range(len(clique) + 1):
        trial = tuple([axis for axis in clique if axis in held or axis >= len(clique) - widened])
        run, within = _last_run(shape, trial, batch)
        fold = 0.0 if trial == scope else _MAP * _size(shape, trial) * max(1.0, batch / 8)
        cost = cells * _CELL + cells / run * _RUN + fold
        if cost < best:
            best, wide, length, inside = cost, trial, run, within
    if cells * (_MAP if batch == 1 else _CELL + _RUN / batch) < best:  # Cell by cell, straight to S.
        wide, length, inside = scope, batch, True
    offsets = _run_offsets(shape, clique, wide, length, batch)
    if wide == scope:
        return Meeting(length, offsets, inside, 0, np.zeros(0, np.uint32))
    fold_length = batch * _size(shape, _common_tail(wide, scope))
    return Meeting(length, offsets, inside, fold_length, _run_offsets(shape, wide, scope, fold_length, batch))


def _size(shape: tuple[int, ...], axes: Scope) -> int:
    """Cells of a table over these axes."""
    return math.prod([shape[axis] for axis in axes])


def _last_run(shape: tuple[int, ...], scope: Scope, batch: int) -> tuple[int, bool]:
    """Length of the last run of cells that lie all side by side in scope, or all outside of it, and which of the two.

    scope: axes, in their order.
    """
    held = frozenset(scope)
    inside = batch > 1 or len(shape) - 1 in held
    length = batch
    for axis in range(len(shape) - 1, -1, -1):
        if (axis in held) != inside:
            break
        length *= shape[axis]
    return length, inside


def _common_tail(first: Scope, second: Scope) -> Scope:
    """The longest scope that both end with."""
    count = 0
    while count < min(len(first), len(second)) and first[-1 - count] == second[-1 - count]:
        count += 1
    return first[len(first) - count :]


def _run_offsets(shape: tuple[int, ...], clique: Scope, scope: Scope, length: int, batch: int) -> NDArray[np.uint32]:
    """Where in a table over scope each run of a table over clique begins; both are axes, and scope lies in clique."""
    strides = {}
    step = batch
    for variable in reversed(scope):
        strides[variable] = step
        step *= shape[variable]
    offsets = np.zeros(1, np.int64)
    left = _size(shape, clique) * batch
    for variable in clique:
        if left == length:
            break
        left //= shape[variable]
        steps = np.arange(shape[variable], dtype=np.int64) * strides.get(variable, 0)
        offsets = (offsets[:, None] + steps).ravel()
    return offsets.astype(np.uint32)
