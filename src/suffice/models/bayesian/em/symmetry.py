"""States of hidden variables that EM cannot tell apart, because it was begun where they are alike.

Let all children of H have the same parameters for two states i and j, and let P(i) / P(j) not depend on the parents of
H. Then every row has P(i | row) / P(j | row) = P(i) / P(j), and the M-step learns the same parameters for both again.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.errors import SizeError
from suffice.models.bayesian.nodes.contract import DiscreteNode

#: Parameters that differ by less, in units of the largest, are the same.
ALIKE = 1e-6


def symmetric_states(nodes: Mapping[Hashable, Any], hidden: Sequence[Hashable]) -> dict[Hashable, set[tuple[int, int]]]:
    """Pairs of states that no step of EM tells apart, by hidden discrete variable; without those that have none."""
    symmetric = {}
    for name in hidden:
        variable = nodes[name].domain[name]
        children = [node for node in nodes.values() if name in node.domain.names[:-1]]
        if variable.kind != "discrete" or not children:
            continue
        slices = [_by_state(node, name) for node in children]
        own = _by_state(nodes[name], name)
        if own is None or any(part is None for part in slices):
            continue
        pairs = {
            (i, j)
            for i, j in combinations(range(variable.card), 2)
            if _same(own[i] * own[j].sum(), own[j] * own[i].sum()) and all(_same(part[i], part[j]) for part in slices)
        }
        if pairs:
            symmetric[name] = pairs
    return symmetric


def symmetry_notes(
    begun: Mapping[Hashable, Any], ended: Mapping[Hashable, Any], hidden: Sequence[Hashable]
) -> tuple[str, ...]:
    """What a report says about states that were alike where EM began and are still alike where it ended."""
    before, after = symmetric_states(begun, hidden), symmetric_states(ended, hidden)
    stuck = [name for name in before if before[name] & after.get(name, set())]
    return tuple(
        f"start is symmetric in the states of {name!r}: EM cannot tell them apart and may have stopped at a saddle "
        "point. Begin with parameters that differ, or without start=."
        for name in stuck
    )


def _by_state(node: DiscreteNode, name: Hashable) -> Any:
    """The parameters of a node (card, ...) by the states of one of its discrete variables; None where they are many."""
    discrete = [variable.name for variable in node.domain.variables if variable.kind == "discrete"]
    try:
        return np.moveaxis(node.table_.values, discrete.index(name), 0)
    except SizeError:
        return None


def _same(left: Floats, right: Floats) -> bool:
    largest = max(float(np.abs(left).max(initial=0.0)), float(np.abs(right).max(initial=0.0)))
    return bool(np.abs(left - right).max(initial=0.0) <= ALIKE * largest)
