"""Joint marginals of variables that do not share a clique, by elimination inside the calibrated tree.

A calibrated tree is P(x) = prod_C P(C) / prod_S P(S): the distribution of a root times the conditional
distribution P(C | S) of every other clique given its separator. Only the cliques on the paths between the targets
matter. From the leaves up, each sums out what is neither asked for nor shared with its parent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.engines.memory import default_limit, in_words
from suffice.engines.space import Scope
from suffice.errors import SizeError
from suffice.kernels.junction_tree_layout import TreeLayout
from suffice.kernels.junction_tree_numpy import aligned, project

_Part = tuple[Scope, Floats]


def joint_marginal(layout: TreeLayout, tables: Sequence[Floats], targets: Scope) -> Floats:
    """The joint distribution of the targets, axes in their order; tables are the distributions of all cliques."""
    _check_size(layout, targets)
    paths = {target: _path(layout, top) for target, top in _top_cliques(layout, targets).items()}
    parts = []
    for root in layout.roots:
        below = {target: path for target, path in paths.items() if path[-1] == root}
        if below:
            parts.append(_tree_marginal(layout, tables, below))
    return _contract(parts, targets)


def _top_cliques(layout: TreeLayout, targets: Scope) -> dict[int, int]:
    """For each target the clique nearest to the root that holds it."""
    tops: dict[int, int] = {}
    for clique in reversed(layout.order):
        for variable in layout.cliques[clique]:
            tops.setdefault(variable, clique)
    return {target: tops[target] for target in targets}


def _path(layout: TreeLayout, clique: int) -> list[int]:
    """The clique, its parent, and so on to the root."""
    path = [clique]
    while layout.parents[path[-1]] >= 0:
        path.append(layout.parents[path[-1]])
    return path


def _tree_marginal(layout: TreeLayout, tables: Sequence[Floats], paths: dict[int, list[int]]) -> _Part:
    """The joint distribution of targets of one tree, given their paths to its root."""
    common = set.intersection(*map(set, paths.values()))
    meeting = next(clique for clique in next(iter(paths.values())) if clique in common)
    active = {clique for path in paths.values() for clique in path[: path.index(meeting) + 1]}
    own: dict[int, list[int]] = {clique: [] for clique in active}  # Targets whose path begins here.
    for target, path in paths.items():
        own[path[0]].append(target)
    received: dict[int, list[_Part]] = {clique: [] for clique in active}
    for clique in layout.order:
        if clique not in active:
            continue
        asked = (*own[clique], *(target for scope, _ in received[clique] for target in scope if target in paths))
        asked = tuple(target for target in dict.fromkeys(asked) if target not in layout.separators[clique])
        if clique == meeting:
            asked = tuple(paths)
            parts = [(layout.cliques[clique], tables[clique]), *received[clique]]
            return asked, _contract(parts, asked)
        scope = (*layout.separators[clique], *asked)
        _check_size(layout, scope)
        parts = [(layout.cliques[clique], _conditional(layout, tables[clique], clique)), *received[clique]]
        received[layout.parents[clique]].append((scope, _contract(parts, scope)))
    raise AssertionError("The paths of the targets meet in an active clique.")


def _conditional(layout: TreeLayout, table: Floats, clique: int) -> Floats:
    """P(C | S), with 0 / 0 = 0."""
    variables, separator = layout.cliques[clique], layout.separators[clique]
    below = aligned(project(table, variables, separator), separator, variables)
    return np.divide(table, below, out=np.zeros_like(table), where=below > 0.0)


def _contract(parts: Sequence[_Part], scope: Scope) -> Floats:
    """Multiply tables and sum out all variables that are not in scope; axes in its order."""
    label = {variable: index for index, variable in enumerate(dict.fromkeys(v for part, _ in parts for v in part))}
    operands: list[Any] = []
    for variables, table in parts:
        operands += [table, [label[variable] for variable in variables]]
    return np.asarray(np.einsum(*operands, [label[variable] for variable in scope], optimize=True))


def _check_size(layout: TreeLayout, scope: Scope) -> None:
    size = 8 * layout.size(scope)
    if size > default_limit():
        raise SizeError(
            f"The joint distribution of {len(scope)} variables would have {layout.size(scope):,} cells "
            f"({in_words(size)}). Ask for fewer variables at once, or draw samples."
        )
