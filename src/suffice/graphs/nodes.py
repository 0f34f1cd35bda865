"""One order for nodes of any type, so that ties are broken alike in every process."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from typing import Any, TypeAlias

from suffice.errors import OptionError

Node: TypeAlias = Hashable


def node_key(node: Node) -> tuple[Any, ...]:
    """A sort key that does not depend on hash seeds: numbers by value, text by letters, tuples part by part.

    Other types are ordered by their name and `repr`.
    """
    if isinstance(node, str):
        return (2, node)
    if isinstance(node, int | float):
        return (1, -math.inf if math.isnan(node) else node, type(node).__name__)
    if isinstance(node, tuple):
        return (3, tuple(node_key(part) for part in node))
    if isinstance(node, frozenset):
        return (4, tuple(sorted(node_key(part) for part in node)))
    return (5, type(node).__qualname__, repr(node))


def refuse_table(structure: Any, expected: str) -> None:
    """Refuse rows where a graph belongs: a frame, or an array that holds no pairs."""
    shape = getattr(structure, "shape", None)
    if shape is not None and (hasattr(structure, "columns") or len(shape) != 2 or shape[1] != 2):
        raise OptionError(
            f"The structure is a {type(structure).__name__} of shape {tuple(shape)}; {expected}. A matrix of a "
            f"graph is "
            "square; rows of data go to fit."
        )


def in_order(nodes: Iterable[Node]) -> list[Node]:
    """The nodes sorted by `node_key`; nodes with equal keys keep the order in which they come."""
    listed = list(nodes)
    if set(map(type, listed)) in ({int}, {str}):  # Their own order is that of their keys.
        return sorted(listed)  # type: ignore[type-var]
    return sorted(listed, key=node_key)


def numbered(nodes: Iterable[Node]) -> dict[Node, int]:
    """Number the distinct nodes from 0 in the order of `node_key`."""
    return {node: number for number, node in enumerate(in_order(dict.fromkeys(nodes)))}
