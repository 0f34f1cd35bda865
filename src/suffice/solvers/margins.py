"""Margins that are to be fitted together must agree: same totals, same shared sub-margins.

Iterative scaling of margins that disagree never settles. What two margins share can be compared directly; margins that
agree pairwise may still belong to no joint table, which the linear programme of `suffice.solvers.faces` decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.errors import DataError
from suffice.graphs.nodes import Node

#: Two sums agree if they differ by no more than this share of the total. Sums of doubles differ by about 1e-15 of it;
#: figures printed with k digits differ by 10^-k, and are to be reported.
TOLERANCE = 1e-9


@dataclass(frozen=True)
class Conflict:
    """Two margins that disagree: numbers of the scopes, the shared variables, the worst cell and both of its values."""

    first: int
    second: int
    shared: tuple[Node, ...]
    cell: tuple[int, ...]
    values: tuple[float, float]
    total: float

    @property
    def size(self) -> float:
        """The difference as a share of the total."""
        return abs(self.values[0] - self.values[1]) / self.total


def find_conflict(
    scopes: Sequence[Sequence[Node]], margins: Sequence[Floats], *, tolerance: float = TOLERANCE
) -> Conflict | None:
    """The largest disagreement between two margins beyond the tolerance, a share of the total; None if all agree.

    margins: one table for each scope, axes in its order. Totals come first: where they differ, so does everything else.
    """
    total = max((float(np.sum(margin)) for margin in margins), default=0.0)
    conflicts: list[Conflict] = []
    for first, second in ((i, j) for i in range(len(scopes)) for j in range(i + 1, len(scopes))):
        for shared in ((), tuple(node for node in scopes[first] if node in scopes[second])):
            one, other = (_sum_to(shared, scopes[k], margins[k]) for k in (first, second))
            cell = np.unravel_index(int(np.argmax(np.abs(one - other))), one.shape) if one.ndim else ()
            values = (float(one[cell]), float(other[cell]))
            if abs(values[0] - values[1]) > tolerance * total:
                conflicts.append(Conflict(first, second, shared, tuple(map(int, cell)), values, total))
                break
    by_total = [conflict for conflict in conflicts if not conflict.shared]
    return max(by_total or conflicts, key=lambda conflict: conflict.size, default=None)


def _sum_to(shared: Sequence[Node], scope: Sequence[Node], margin: Floats) -> Floats:
    """Sum a table over everything but the shared variables; axes in their order."""
    table = np.asarray(margin, dtype=np.float64)
    kept = [node for node in scope if node in shared]
    summed = table.sum(axis=tuple(axis for axis, node in enumerate(scope) if node not in shared))
    return np.asarray(summed, dtype=np.float64).transpose([kept.index(node) for node in shared])


def check_margins(
    scopes: Sequence[Sequence[Node]],
    margins: Sequence[Floats],
    *,
    states: Mapping[Any, Sequence[Any]] | None = None,
    tolerance: float = TOLERANCE,
) -> None:
    """Raise DataError if two margins disagree, or if one holds a number that is no count.

    `states` of the variables name the cells; without them cells are given by codes.
    """
    for scope, margin in zip(scopes, margins, strict=True):
        table = np.asarray(margin, dtype=np.float64)
        wrong = ~(np.isfinite(table) & (table >= 0.0))
        if wrong.any():
            cell = tuple(int(index) for index in np.unravel_index(int(np.argmax(wrong)), table.shape))
            raise DataError(
                f"The margin of {tuple(scope)!r} holds {float(table[cell])} at {_label(scope, cell, states)}; counts "
                "are finite and not negative."
            )
    conflict = find_conflict(scopes, margins, tolerance=tolerance)
    if conflict is not None:
        raise DataError(describe(conflict, scopes, states))


def describe(
    conflict: Conflict, scopes: Sequence[Sequence[Node]], states: Mapping[Any, Sequence[Any]] | None = None
) -> str:
    """A sentence on two margins that disagree."""
    pair = f"The margins of {tuple(scopes[conflict.first])!r} and {tuple(scopes[conflict.second])!r}"
    one, other = (f"{value:.12g}" for value in conflict.values)
    if not conflict.shared:
        return f"{pair} have different totals: {one} and {other}. Give all margins of the same table."
    where = _label(conflict.shared, conflict.cell, states)
    return (
        f"{pair} disagree on what they share: at {where} they give {one} and {other}. No table has both. Give margins "
        "of one table with all their digits."
    )


def _label(scope: Sequence[Node], cell: Sequence[int], states: Mapping[Any, Sequence[Any]] | None) -> str:
    if not scope:
        return "its one cell"
    return ", ".join(
        f"{node}={code if states is None else states[node][code]!r}" for node, code in zip(scope, cell, strict=True)
    )
