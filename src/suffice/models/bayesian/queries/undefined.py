"""Rows of tables without a distribution (unseen="nan"): which questions they touch.

With any distribution in such a row, its joint state of the parents is reached with positive probability, or with none.
If with none, the answer is the same whatever the distribution; if not, there is no answer. Nodes below what is asked
and known sum to one, whatever their rows are.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.errors import EstimateError, listing
from suffice.graphs.directed import ancestors
from suffice.models.bayesian.nodes.contract import DiscreteNode
from suffice.records import record

UNDEFINED = "The tables of {} have undefined rows (unseen='nan'). Use a prior= or unseen='uniform'."


@record(frozen=True)
class Undefined:
    """`masks` (parent cards) of the undefined rows by node, and the parents of all nodes."""

    masks: Mapping[Hashable, NDArray[np.bool_]]
    nodes: Mapping[Hashable, DiscreteNode]

    @classmethod
    def of(cls, nodes: Mapping[Hashable, DiscreteNode]) -> Undefined:
        """The undefined rows of some nodes; an undefined weight of a node that is no single table is an error."""
        masks: dict[Hashable, NDArray[np.bool_]] = {}
        for name, node in nodes.items():
            parts = node.factors()
            odd = [table for _, table in parts if np.isnan(table).any()]
            if odd and len(parts) > 1:
                raise EstimateError(UNDEFINED.format(listing([name])))
            if odd:
                masks[name] = np.asarray(np.isnan(odd[0]).any(axis=-1))
        return cls(masks, nodes)

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self.masks)

    @property
    def parents(self) -> dict[Hashable, tuple[Hashable, ...]]:
        """Of every node."""
        return {name: node.domain.names[:-1] for name, node in self.nodes.items()}

    def above(self, names: Iterable[Hashable] | None) -> list[Hashable]:
        """The nodes with undefined rows among some nodes and all above them; None for all nodes."""
        if not self.masks or names is None:
            return list(self.masks)
        kept = ancestors(self.parents, names)
        return [name for name in self.masks if name in kept]

    def scopes(self, names: Iterable[Hashable]) -> list[tuple[Hashable, ...]]:
        """The parents whose joint distributions decide whether an undefined row is reached."""
        scopes = [self.parents[name] for name in self.above(names)]
        return list(dict.fromkeys(scope for scope in scopes if scope))

    def check(self, names: Iterable[Hashable] | None, marginal: Callable[[Any], Any]) -> None:
        """Raise where some nodes depend on an undefined row whose parents have a positive probability.

        `marginal` gives the distribution (..., cards) of a scope, that of one question or of many rows.
        """
        for name in self.above(names):
            scope, mask = self.parents[name], self.masks[name]
            distribution = np.asarray(marginal(scope)) if scope else np.ones(())
            reached = (distribution.reshape(-1, *mask.shape) > 0).any(axis=0) & mask
            if reached.any():
                domain, codes = self.nodes[name].domain, np.argwhere(reached)[0].tolist()
                states = {v.name: v.states[code] for v, code in zip(domain.variables[:-1], codes, strict=True)}
                where = f" and the one at {states!r} can be reached" if states else ""
                raise EstimateError(
                    f"The table of {name!r} has undefined rows (unseen='nan'){where}. Use a prior= or unseen='uniform'."
                )
