"""One example of a graph CRF: a graph, with numbers at its nodes, at its edges and at further cliques."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.calls import explain_methods
from suffice.checks import choice
from suffice.errors import DataError

#: Steps (down, right) from a pixel to its later neighbours, by how many neighbours a pixel has.
NEIGHBOURS = {4: ((0, 1), (1, 0)), 8: ((0, 1), (1, 0), (1, 1), (1, -1))}


@explain_methods
@dataclass(frozen=True, eq=False, init=False)
class GraphExample:
    """A graph with its features; the labels of its nodes are what a `GraphCRF` learns and predicts.

    Its numbers are checked when a model reads it, so that an error can say which example it is.

    Args:
        nodes: features of the nodes (n, d); sparse matrices are made dense.
        edges: the two nodes of each edge (m, 2), numbered from 0; none unless given.
        edge_features: features of the edges (m, e); one constant 1 for each edge unless given.
        cliques: for each template of the model by name the members of its cliques (c, r), or a pair of members and
            features (c, f); one constant 1 for each clique unless given.

    >>> example = GraphExample(nodes=[[1.0, 0.0], [0.0, 1.0]], edges=[[0, 1]])
    >>> example
    GraphExample(2 nodes, 1 edge)
    """

    nodes: Any
    edges: Any
    edge_features: Any
    cliques: Mapping[str, Any] = field(default_factory=dict)

    def __init__(
        self,
        nodes: ArrayLike,
        edges: ArrayLike | None = None,
        edge_features: ArrayLike | None = None,
        *,
        cliques: Mapping[str, Any] | None = None,
    ) -> None:
        """See the class."""
        pairs = np.zeros((0, 2), np.int64) if edges is None else _array("edges", edges)
        arrays = {
            "nodes": _array("nodes", nodes),
            "edges": pairs.reshape(0, 2).astype(np.int64) if pairs.size == 0 else pairs,
            "edge_features": None if edge_features is None else _array("edge_features", edge_features),
            "cliques": dict(cliques or {}),
        }
        for name, value in arrays.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        """How large it is."""
        parts = [(_rows(self.nodes), "node"), (_rows(self.edges), "edge")]
        parts += [(_rows(members_and_features(given)[0]), f"{name!r} clique") for name, given in self.cliques.items()]
        return f"GraphExample({', '.join(f'{n} {name}' + 's' * (n != 1) for n, name in parts)})"

    @classmethod
    def grid(cls, features: ArrayLike, *, neighbours: int = 4, directions: bool = False) -> GraphExample:
        """A picture: a node for each pixel, row by row, joined to those beside it.

        Args:
            features: (height, width, d), or (height, width) for one feature.
            neighbours: 4, or 8 with the diagonals.
            directions: one edge feature for each direction (right, down, and the two diagonals) instead of one
                constant 1, so that each direction has weights of its own.
        """
        array = _array("features", features)
        if array.dtype.kind not in "biuf":
            raise DataError(f"The features of a grid have type {array.dtype}; expected numbers.")
        array = array[:, :, None] if array.ndim == 2 else array
        if array.ndim != 3 or not array.shape[0] * array.shape[1]:
            raise DataError(
                f"The features of a grid have shape {array.shape}; expected (height, width, features), with at least "
                "one pixel."
            )
        array = array.astype(np.float64)
        choice(neighbours, "neighbours", NEIGHBOURS)
        height, width = array.shape[:2]
        number = np.arange(height * width).reshape(height, width)
        edges = []
        for down, right in NEIGHBOURS[neighbours]:
            ahead = number[: height - down, max(0, -right) : width - max(0, right)]
            after = number[down:, max(0, right) : width + min(0, right)]
            edges.append(np.stack([ahead.ravel(), after.ravel()], axis=1))
        kind = np.repeat(np.arange(len(edges)), [len(part) for part in edges])
        given = np.eye(len(edges))[kind] if directions else None
        return cls(array.reshape(height * width, -1), np.concatenate(edges), given)

    @classmethod
    def chain(cls, features: ArrayLike) -> GraphExample:
        """A sequence: nodes (n, d), each joined to the next."""
        array = _array("features", features)
        if array.ndim != 2:
            raise DataError(f"The features of a chain have shape {array.shape}; expected (nodes, features).")
        steps = np.arange(max(len(array) - 1, 0))
        return cls(array, np.stack([steps, steps + 1], axis=1))


def members_and_features(given: Any) -> tuple[Any, Any]:
    """The members of cliques and their features, None where only members are given."""
    if isinstance(given, tuple) and len(given) == 2 and _axes(given[0]) == 2:
        return np.asarray(given[0]), None if given[1] is None else _array("features of cliques", given[1])
    return _array("cliques", given), None


def _array(name: str, given: Any) -> NDArray[Any]:
    """An array of what was given; rows of different lengths make none."""
    if hasattr(given, "toarray"):
        return np.asarray(given.toarray())
    try:
        return np.asarray(given)
    except ValueError:
        raise DataError(
            f"{name} of a GraphExample make no array: their rows have different lengths; expected one length."
        ) from None


def _axes(given: Any) -> int:
    try:
        return int(np.ndim(given))
    except ValueError:
        return 0


def _rows(array: Any) -> int:
    return int(np.shape(array)[0]) if np.ndim(array) else 0
