"""Conditional linear-Gaussian networks as plain arrays: discrete nodes with tables, real nodes with regressions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from suffice.errors import DataError, OptionError, listing, unknown_variable
from suffice.graphs.directed import topological_order
from suffice.graphs.nodes import Node


class Discrete(NamedTuple):
    """A discrete node: its parents, all discrete, and its table (cards of the parents..., card)."""

    parents: Sequence[Node]
    table: ArrayLike


class NodeRegression(NamedTuple):
    """A real node with its parents; `weights` (cards..., 1 + p), intercept first, and `variance` (cards...).

    The leading axes are those of the discrete parents, in order; the weights those of the real parents, in order.
    """

    discrete: Sequence[Node]
    reals: Sequence[Node]
    weights: ArrayLike
    variance: ArrayLike


@dataclass(frozen=True)
class MixedNetwork:
    """Tables and regressions of a conditional linear-Gaussian network, checked."""

    tables: Mapping[Node, Discrete]
    regressions: Mapping[Node, NodeRegression]

    def __post_init__(self) -> None:
        """Check parents and shapes."""
        for node, (above, table) in self.tables.items():
            if set(above) & set(self.regressions):
                raise OptionError(
                    f"The discrete node {node!r} has real parents {listing(set(above) & set(self.regressions))}: exact "
                    "inference needs discrete nodes to have discrete parents only."
                )
            if np.ndim(table) != len(above) + 1 or np.shape(table)[:-1] != tuple(self.cards[name] for name in above):
                raise OptionError(f"The table of {node!r} has shape {np.shape(table)}, which its parents do not have.")
        for node, regression in self.regressions.items():
            shape = tuple(self.cards[name] for name in regression.discrete)
            weights, variance = np.asarray(regression.weights), np.asarray(regression.variance)
            if weights.shape != (*shape, len(regression.reals) + 1) or variance.shape != shape:
                raise OptionError(
                    f"{node!r} has weights of shape {weights.shape} and variances of shape {variance.shape}; expected "
                    f"{(*shape, len(regression.reals) + 1)} and {shape}."
                )
            if not np.isfinite(weights).all() or not ((variance >= 0) & np.isfinite(variance)).all():
                raise OptionError(f"{node!r} has weights or variances that are not finite, or a negative variance.")

    @cached_property
    def cards(self) -> dict[Node, int]:
        """Numbers of states."""
        return {node: np.shape(table)[-1] for node, (_, table) in self.tables.items()}

    @cached_property
    def parents(self) -> dict[Node, tuple[Node, ...]]:
        """Parents of every node."""
        parents = {node: tuple(above) for node, (above, _) in self.tables.items()}
        return parents | {node: (*r.discrete, *r.reals) for node, r in self.regressions.items()}

    @cached_property
    def order(self) -> list[Node]:
        """All nodes, parents first."""
        return topological_order(self.parents)

    def above(self, nodes: Sequence[Node]) -> set[Node]:
        """The nodes and their ancestors: the others are barren and sum to one."""
        unknown = [node for node in nodes if node not in self.parents]
        if unknown:
            raise unknown_variable(unknown[0], self.order)
        ancestors, waiting = set(nodes), list(nodes)
        while waiting:
            new = [parent for parent in self.parents[waiting.pop()] if parent not in ancestors]
            ancestors.update(new)
            waiting += new
        return ancestors

    def split(self, evidence: Mapping[Any, Any]) -> tuple[dict[Node, int], dict[Node, float]]:
        """Evidence as states and as values, checked."""
        self.above(list(evidence))
        states: dict[Node, int] = {}
        values: dict[Node, float] = {}
        for node, value in evidence.items():
            if node in self.regressions:
                values[node] = float(value)
                if not math.isfinite(values[node]):
                    raise DataError(f"The evidence gives {node!r} the value {value!r}; expected a finite number.")
            else:
                states[node] = int(value)
                if not 0 <= states[node] < self.cards[node]:
                    raise DataError(f"The evidence puts {node!r} in state {value!r} of 0 to {self.cards[node] - 1}.")
        return states, values
