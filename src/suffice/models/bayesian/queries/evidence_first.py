"""Networks whose tables or junction tree do not fit: evidence first, then a tree of what is still unknown.

P(x, e) = product over nodes of P(node | parents) at the known states. A factor keeps only the axes of its unknown
variables, so that a table of many parents is read at one row of it where the parents are known.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from functools import cached_property

import numpy as np

from suffice.array_types import Floats
from suffice.engines.calibration import Calibration
from suffice.engines.junction_tree import TreePlan, plan_tree
from suffice.errors import EstimateError, SizeError, listing
from suffice.models.bayesian.nodes.contract import DiscreteNode

#: Cells of the largest factor that is read row by row from a node.
MOST_CELLS = 2**22


class EvidenceFirst:
    """The unknown nodes of a network, once some others are known; one plan for all their states."""

    def __init__(self, nodes: Mapping[Hashable, DiscreteNode], known: frozenset[Hashable]) -> None:
        """Find the axes that are left; a factor that is still too large is an error."""
        self.nodes = dict(nodes)
        self.cards = {name: node.domain[name].card for name, node in nodes.items() if name not in known}
        self.scopes = [tuple(name for name in node.domain.names if name in self.cards) for node in nodes.values()]
        large = max((math.prod(self.cards[name] for name in scope) for scope in self.scopes), default=1)
        if large > MOST_CELLS:
            raise SizeError(
                f"With the evidence put in, a table still has {large:,} cells; the limit is {MOST_CELLS:,}."
            )

    @cached_property
    def plan(self) -> TreePlan:
        """The junction tree of the unknown nodes."""
        return plan_tree(self.cards, [scope for scope in self.scopes if scope])

    def condition(
        self, hard: Mapping[Hashable, int], soft: Mapping[Hashable, Floats]
    ) -> tuple[float, Calibration | None]:
        """Log-probability of all evidence, and the calibrated tree; None where nothing is unknown or possible."""
        tables = [self._table(node, scope, hard) for node, scope in zip(self.nodes.values(), self.scopes, strict=True)]
        with np.errstate(divide="ignore"):
            constant = float(sum(np.log(table.item()) for table in tables if table.ndim == 0))
        if not self.cards or constant == -np.inf:
            return constant, None
        calibrated = self.plan.load([table for table in tables if table.ndim]).condition({}, soft)
        return constant + calibrated.log_partition, calibrated if calibrated.log_partition > -np.inf else None

    def _table(self, node: DiscreteNode, scope: tuple[Hashable, ...], hard: Mapping[Hashable, int]) -> Floats:
        """P(node | parents) at the known states, with axes `scope`."""
        shape = tuple(self.cards[name] for name in scope)
        size = math.prod(shape)
        places = np.indices(shape, dtype=np.int32).reshape(len(shape), size)
        codes = dict(zip(scope, places, strict=True))
        columns = {n: codes[n] if n in codes else np.full(size, hard[n], dtype=np.int32) for n in node.domain.names}
        table = np.exp(node.log_prob(columns)).reshape(shape)
        if np.isnan(table).any():
            raise EstimateError(
                f"The table of {listing(node.domain.names[-1:])} has undefined rows (unseen='nan'). Use a prior= or "
                "unseen='uniform'."
            )
        return table


def spread(distribution: Floats, cards: tuple[int, ...], known: Mapping[int, int]) -> Floats:
    """The distribution of the unknown axes as one of all axes: a known one has all its probability at one state."""
    joint = np.zeros(cards)
    joint[tuple(known.get(axis, slice(None)) for axis in range(len(cards)))] = distribution
    return joint
