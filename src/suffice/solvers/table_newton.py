"""Newton's method for the margins of one table, with steps that are exact where variables are independent.

The weights are the log-potentials of all scopes, the slope is observed less expected margins, and the information is
the covariance of the cells' indicators. Where all variables are independent with the observed shares p, the inverse of
the information is known: of a slope g with the margins g_U on the variables U the step is, as a function of the joint
state,

    sum over U of c_U g_U(x_U) / p_U(x_U),    c_U = sum over V between U and a scope of (-1)^|V - U|,

by the parts of a function that are orthogonal under p. That is the preconditioner of conjugate gradients here, and the
independent distribution is where they begin.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.fitting.control import State
from suffice.kernels.junction_tree_layout import Scope
from suffice.kernels.split_table import SplitTable, codes_of
from suffice.solvers.newton import HALVINGS, ROUNDING

#: Sets of variables that lie in a scope, up to which they are listed.
MOST_SETS = 1_000
#: A mean log-likelihood above this is that of no distribution.
ABOVE_ZERO = 1e-9


class TableNewton:
    """Steps to the maximum for targets (n,), all positive; steps that were done once are known."""

    def __init__(self, table: SplitTable, targets: Floats) -> None:
        self.table, self.targets = table, targets
        self._parts = parts_of(table)
        shares = np.bincount(self._parts.shares, targets[self._parts.homes])
        weights = np.append(shares, 1.0)[self._parts.factors].prod(axis=1)
        self._inverse = self._parts.signs / weights
        self._known: list[State] = []
        self._last: tuple[Floats, Floats, Floats] | None = None
        begin = np.bincount(self._parts.homes, np.log(shares)[self._parts.shares], len(targets))
        self._begin: Floats = begin.astype(np.float64, copy=False)

    @cached_property
    def start(self) -> State:
        """The independent distribution with the observed shares."""
        start = self._state(self._begin)
        self._known = [start]
        return start

    def step(self, before: State) -> State:
        """The next state, one iteration on but for its number; ``memory["least"]`` is the smallest cell."""
        done = before.iteration
        if done + 1 < len(self._known) and self._known[done].parameters is before.parameters:
            return self._known[done + 1]
        after = self._climbed(before)
        if len(self._known) == done + 1 and self._known[done].parameters is before.parameters:
            self._known.append(after)
        return after

    def _climbed(self, before: State) -> State:
        weights, slope = before.parameters, before.memory["slope"]
        direction = self._direction(weights, slope)
        rise = float(slope @ direction)
        # Where rounding hides the rise, the slopes tell whether the step was one.
        blind = rise <= ROUNDING * max(1.0, abs(before.objective))
        for halvings in range(1 if blind else HALVINGS):
            size = 2.0**-halvings
            after = self._state(weights + size * direction)
            better = after.gap < before.gap if blind else after.objective - before.objective >= 1e-4 * size * rise
            if better and rise > 0.0:
                return after
        return replace(before, memory={**before.memory, "stalled": True})

    def _state(self, weights: Floats) -> State:
        log_z, margins, cells = self.table.moments(weights)
        self._last = weights, margins, cells
        slope = self.targets - margins
        value = float(weights @ self.targets) - log_z
        memory = {"slope": slope, "least": float(cells.min()), "stalled": not value <= ABOVE_ZERO}
        return State(weights, value, float(np.abs(slope).max()), memory=memory)

    def _direction(self, weights: Floats, slope: Floats) -> Floats:
        """Newton's equations, solved by conjugate gradients as exactly as the maximum is near."""
        if self._last is None or self._last[0] is not weights:
            self._last = weights, *self.table.moments(weights)[1:]
        _, margins, cells = self._last
        solution, residual = np.zeros_like(slope), slope.copy()
        ahead = self._preconditioned(residual)
        direction, length = ahead, float(residual @ ahead)
        goal = length * min(0.01, length)
        for _ in range(2 * len(slope) + 10):
            if not length > goal:
                break
            moved = self.table.spread(direction)
            moved *= cells
            image = self.table.margins(moved) - margins * float(moved.sum())
            curvature = float(direction @ image)
            if not curvature > 0.0:
                break
            share = length / curvature
            solution += share * direction
            residual -= share * image
            ahead, before = self._preconditioned(residual), length
            length = float(residual @ ahead)
            direction = ahead + length / before * direction
        return solution

    def _preconditioned(self, slope: Floats) -> Floats:
        parts = self._parts
        sums = np.bincount(parts.rows, slope[parts.cells])
        return np.bincount(parts.cells, (self._inverse * sums)[parts.rows], len(slope)).astype(np.float64, copy=False)


@dataclass(frozen=True, eq=False)
class TableParts:
    """The sets U with c_U other than 0, each in one scope that holds it, and every variable in one of its scopes.

    Entry e of `rows` and `cells` says that cell ``cells[e]`` of the vector of all scopes belongs to the joint state
    ``rows[e]`` of a set; `signs` are the c_U and `factors` (rows, variables) the places of its shares of single
    variables, the last place for those that it lacks. Cell ``homes[e]`` belongs to the state ``shares[e]`` of one.
    """

    rows: NDArray[np.intp]
    cells: NDArray[np.intp]
    signs: Floats
    factors: NDArray[np.intp]
    homes: NDArray[np.intp]
    shares: NDArray[np.intp]


_parts: WeakKeyDictionary[SplitTable, TableParts] = WeakKeyDictionary()


def parts_of(table: SplitTable) -> TableParts:
    """The sets of variables that the scopes of a table hold; kept as long as the table."""
    if table not in _parts:
        _parts[table] = _listed(table)
    return _parts[table]


def is_listed(scopes: Sequence[Scope]) -> bool:
    """Whether scopes hold so few sets of variables that they can be listed."""
    return sum(1 << len(scope) for scope in scopes) <= MOST_SETS


def _listed(table: SplitTable) -> TableParts:
    sizes, scopes = table.sizes, table.scopes
    ends = np.cumsum([0, *(math.prod(sizes[v] for v in scope) for scope in scopes)]).tolist()
    homes: dict[frozenset[int], int] = {}
    for number, scope in enumerate(scopes):
        for count in range(1, len(scope) + 1):
            for inside in combinations(scope, count):
                homes.setdefault(frozenset(inside), number)
    signs = {part: sum((-1) ** len(other - part) for other in homes if other >= part) for part in homes}
    begins = dict(zip(table.variables, np.cumsum([0, *(sizes[v] for v in table.variables)]).tolist(), strict=False))
    none = sum(sizes[v] for v in table.variables)
    rows, cells, coefficients, factors, count = [], [], [], [], 0
    for part, number in homes.items():
        if not signs[part]:
            continue
        members = tuple(sorted(part))
        states = math.prod(sizes[v] for v in members)
        rows.append(count + codes_of(members, scopes[number], sizes))
        cells.append(np.arange(ends[number], ends[number + 1]))
        coefficients.append(np.full(states, float(signs[part])))
        own = [begins[v] + codes_of((v,), members, sizes) if v in part else np.full(states, none) for v in begins]
        factors.append(np.stack(own, axis=1))
        count += states
    alone = [(v, homes[frozenset([v])]) for v in table.variables]
    return TableParts(
        np.concatenate(rows),
        np.concatenate(cells),
        np.concatenate(coefficients),
        np.concatenate(factors),
        np.concatenate([np.arange(ends[number], ends[number + 1]) for _, number in alone]),
        np.concatenate([begins[v] + codes_of((v,), scopes[number], sizes) for v, number in alone]),
    )
