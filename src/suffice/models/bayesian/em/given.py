"""What a user gives EM to begin with."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from suffice.errors import OptionError, listing


def check_start(start: Any, nodes: tuple[Hashable, ...]) -> Mapping[Hashable, Any]:
    """What a user gives as start=, by node: a dict, or a fitted network."""
    if start is None:
        return {}
    if hasattr(start, "nodes") and hasattr(start, "node"):
        return {name: start.node(name) for name in start.nodes if name in nodes}
    if not isinstance(start, Mapping):
        raise OptionError(f"start is {start!r}; expected a dict of parameters by node, or a fitted network.")
    unknown = [name for name in start if name not in nodes]
    if unknown:
        raise OptionError(f"start= names {listing(unknown)}, which is no node; the nodes are {listing(nodes)}.")
    return start
