"""The margins of one table for all scopes of a plan, with few passes over the table itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.engines.junction_tree import TreePlan
from suffice.graphs.nodes import Node
from suffice.kernels.junction_tree_numpy import project

_AT_ONCE = 2**16  # Cells of the table times scopes, up to which all margins are counted at once.
_kept: WeakKeyDictionary[TreePlan, tuple[Any, NDArray[np.intp]]] = WeakKeyDictionary()


def margins_of_table(plan: TreePlan, table: Floats, names: Sequence[Node]) -> list[Floats]:
    """Sum a table, one axis for each name, out to every scope of the plan, whose variables are among the names.

    Margins of a large table come from those of the cliques, and these from that of the clique on which they hang, if it
    holds them. Of a small one all are counted at once.
    """
    places = _places(plan, tuple(names), table.shape)
    if places is None and plan.split is not None and len(plan.split.variables) == table.ndim:
        split = plan.split
        flat = split.margins(split.matrix_of(table, [plan.space.number[name] for name in names]))
        parts = np.split(flat, np.cumsum([plan.space.size(scope) for scope in plan.scopes])[:-1])
        return [part.reshape(plan.space.shape(scope)) for part, scope in zip(parts, plan.scopes, strict=True)]
    if places is not None:
        cells = np.broadcast_to(table.ravel(), places.shape).ravel()
        ends = np.cumsum([plan.space.size(scope) for scope in plan.scopes])
        flat = np.bincount(places.ravel(), cells, ends[-1]).astype(np.float64, copy=False)
        parts = np.split(flat, ends[:-1])
        return [part.reshape(plan.space.shape(scope)) for part, scope in zip(parts, plan.scopes, strict=True)]
    return _by_cliques(plan, table, names)


def _places(plan: TreePlan, names: tuple[Node, ...], shape: tuple[int, ...]) -> NDArray[np.intp] | None:
    """Where each cell of the table lies in the margins of all scopes, one after another (scopes, cells).

    The last of each plan is kept; None where the table is too large.
    """
    cells = math.prod(shape)
    if not plan.scopes or cells * len(plan.scopes) > _AT_ONCE:
        return None
    kept = _kept.get(plan)
    if kept is None or kept[0] != (names, shape):
        codes = dict(zip(names, np.indices(shape).reshape(len(shape), cells), strict=True))
        rows, start = [], 0
        for scope in plan.scopes:
            cell = np.zeros(cells, np.intp)
            for name in scope:
                cell = cell * plan.space.cards[name] + codes[name]
            rows.append(start + cell)
            start += plan.space.size(scope)
        kept = _kept[plan] = (names, shape), np.array(rows)
    return kept[1]


def _by_cliques(plan: TreePlan, table: Floats, names: Sequence[Node]) -> list[Floats]:
    layout, number = plan.nested_layout, plan.space.number
    whole = tuple(number.get(name, -1 - axis) for axis, name in enumerate(names))
    known: dict[int, Floats] = {}
    for scope in plan.numbers:
        path = [] if not scope else [layout.home(scope)]
        while path and path[-1] >= len(plan.layout.cliques):
            path.append(layout.parents[path[-1]])
        above, held = table, whole
        for clique in reversed(path):
            if clique not in known:
                known[clique] = project(above, held, layout.cliques[clique])
            above, held = known[clique], layout.cliques[clique]
    total = np.asarray(table.sum())
    parts = []
    for nodes, scope in zip(plan.scopes, plan.numbers, strict=True):
        home = layout.home(scope) if scope else -1
        margin = project(known[home], layout.cliques[home], scope) if scope else total
        parts.append(margin.reshape(plan.space.shape(nodes)))
    return parts
