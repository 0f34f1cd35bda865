"""The structure of a directed model, from whatever a person has: edges, parents, a networkx graph, another model."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

from suffice.errors import OptionError
from suffice.graphs.directed import check_acyclic, parents_of

Parents = dict[Hashable, tuple[Hashable, ...]]


def read_structure(structure: Any, extra: Iterable[Hashable] = ()) -> Parents:
    """Parents of every node, in declared order.

    Args:
        structure: edges ``(parent, child)``; a dict ``{child: parents}``; a networkx DiGraph; or another network.
        extra: further nodes, which have no edge.
    """
    if isinstance(structure, Mapping):
        found = _from_mapping(structure)
    elif hasattr(structure, "is_directed") and hasattr(structure, "edges"):
        found = _from_networkx(structure)
    elif hasattr(structure, "nodes") and callable(getattr(structure, "parents", None)):
        found = {node: tuple(structure.parents(node)) for node in structure.nodes}
    elif isinstance(structure, str | bytes) or not isinstance(structure, Iterable):
        raise OptionError(
            f"The structure is {structure!r}; expected edges [(parent, child), ...], a dict {{child: parents}}, a "
            "networkx "
            "DiGraph or a model."
        )
    else:
        found = parents_of([tuple(edge) if isinstance(edge, list) else edge for edge in structure])
    for node in extra:
        found.setdefault(node, ())
    if not found:
        raise OptionError("The structure has no nodes. Give edges, or a dict {node: parents} for nodes without edges.")
    check_acyclic(found)
    return found


def _from_mapping(structure: Mapping[Hashable, Any]) -> Parents:
    found: Parents = {}
    for child, parents in structure.items():
        if isinstance(parents, str) or not isinstance(parents, Iterable):
            raise OptionError(f"The parents of {child!r} are {parents!r}; expected a list of names.")
        found[child] = tuple(parents)
    for parent in [name for parents in found.values() for name in parents]:
        found.setdefault(parent, ())
    return found


def _from_networkx(graph: Any) -> Parents:
    if not graph.is_directed():
        raise OptionError("The graph has no directions; a Bayesian network needs a directed graph (networkx.DiGraph).")
    found: dict[Hashable, list[Hashable]] = {node: [] for node in graph.nodes}
    for parent, child in graph.edges():
        found[child].append(parent)
    return {node: tuple(parents) for node, parents in found.items()}
