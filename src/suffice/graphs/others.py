"""Graphs of other libraries and matrices: networkx, igraph, pyAgrum, arrays, frames and sparse matrices of 0 and 1."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from suffice.errors import OptionError, listing

Names = tuple[Hashable, ...]


class GivenGraph(NamedTuple):
    """Nodes in their order, and pairs (parent, child) where it is directed, else sets of nodes that are joined."""

    nodes: Names
    joined: tuple[Names, ...]
    directed: bool


class Adjacency(NamedTuple):
    """A square matrix of 0 and 1 with the names of its rows and columns."""

    names: Names
    entries: NDArray[Any]


def graph_of(structure: Any) -> GivenGraph | None:
    """The graph that another library made; None where it is something else."""
    if type(structure).__module__.partition(".")[0].lower() == "pyagrum":
        return _of_pyagrum(structure)
    if hasattr(structure, "get_edgelist") and hasattr(structure, "vs"):
        names = list(structure.vs["name"]) if "name" in structure.vs.attributes() else list(range(len(structure.vs)))
        pairs = tuple((names[a], names[b]) for a, b in structure.get_edgelist())
        return GivenGraph(tuple(names), pairs, bool(structure.is_directed()))
    if callable(getattr(structure, "is_directed", None)) and callable(getattr(structure, "edges", None)):
        pairs = tuple((a, b) for a, b in structure.edges())  # Of a multigraph too, which may have an edge twice.
        return GivenGraph(tuple(structure.nodes), pairs, bool(structure.is_directed()))
    return None


def _of_pyagrum(structure: Any) -> GivenGraph | None:
    """A network with its variables by name, or a bare graph, whose nodes are numbers."""
    if not hasattr(structure, "nodes"):
        return None
    named = hasattr(structure, "variable")

    def names(nodes: Iterable[int]) -> Names:
        return tuple(structure.variable(node).name() if named else node for node in nodes)

    if hasattr(structure, "arcs"):
        order = list(structure.topologicalOrder())
        if hasattr(structure, "cpt"):  # Its tables have the parents in another order than its arcs.
            arcs = [(parent, node) for node in order for parent in structure.cpt(node).names[1:]]
            return GivenGraph(names(order), tuple((parent, *names([node])) for parent, node in arcs), True)
        return GivenGraph(names(order), tuple(names(arc) for arc in sorted(structure.arcs())), True)
    order = sorted(structure.nodes())
    cliques = structure.factors() if hasattr(structure, "factors") else structure.edges()
    return GivenGraph(names(order), tuple(names(sorted(clique)) for clique in cliques), False)


def matrix_of(structure: Any, expected: str) -> Adjacency | None:
    """The square matrix of 0 and 1 that says which nodes are joined; None where the structure is something else.

    Its names are those of a frame, whose rows and columns agree, else 0, 1, 2, ... Two rows of other integers are pairs
    of nodes. Raises OptionError for other numbers, saying what was expected.
    """
    named = hasattr(structure, "columns") and hasattr(structure, "index")
    sparse = hasattr(structure, "toarray") and hasattr(structure, "nnz")
    if not (named or sparse or isinstance(structure, np.ndarray)):
        return None
    entries = structure.toarray() if sparse else np.asarray(structure)
    if entries.ndim != 2 or entries.shape[0] != entries.shape[1] or entries.dtype.kind not in "biuf":
        return None
    names = tuple(structure.columns) if named else tuple(range(len(entries)))
    if named and tuple(structure.index) != names:
        raise OptionError(
            f"The rows of the adjacency matrix are {listing(structure.index)}, and its columns {listing(names)}; "
            "expected the same names in the same order."
        )
    if not np.isin(entries, (0, 1)).all():
        if len(entries) == 2 and not named and entries.dtype.kind in "iu":
            return None
        raise OptionError(f"The adjacency matrix holds other numbers than 0 and 1; {expected}.")
    return Adjacency(names, entries != 0)
