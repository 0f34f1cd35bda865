"""The structure of a directed model, from whatever a person has: edges, parents, a graph, another model, a file."""

from __future__ import annotations

import os
from collections.abc import Collection, Hashable, Iterable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from suffice.checks import is_name
from suffice.domain import Domain
from suffice.errors import OptionError, listing, shortened, unknown_variable
from suffice.fitting import outlets
from suffice.graphs.directed import check_acyclic, parents_of
from suffice.graphs.nodes import refuse_table
from suffice.graphs.notation import WrittenGraph, is_written, parse_graph
from suffice.graphs.others import GivenGraph, graph_of, matrix_of

Parents = dict[Hashable, tuple[Hashable, ...]]

EXPECTED = (
    "expected edges [(parent, child), ...], text such as 'a -> b <- c' or '[a][b|a]', a dict {child: parents}, a graph "
    "of networkx, igraph or pyAgrum, a matrix of 0 and 1 (parents in rows), a Bayesian network, or the path of a file "
    "that holds one"
)
#: What the entries of a matrix are.
ENTRIES = "1 in row a, column b is the arc a -> b, 0 is none"


#: Structures that are made of the columns of `fit`: the target is the parent of all of them, and they of none.
FORMS = ("naive-bayes", "gaussian-naive-bayes")


def is_form(structure: object) -> bool:
    """Whether a structure is made of the columns of `fit`."""
    return isinstance(structure, str) and structure in FORMS


def open_structure(structure: Any, target: Hashable = None) -> Any:
    """The structure, the graph that a text writes, or the model in the file that it names.

    Of a structure that is made of the columns of `fit`, the target.
    """
    if not isinstance(structure, str | os.PathLike):
        return structure
    if is_form(structure):
        if target is None:
            raise OptionError(f"structure={structure!r} needs target=, the node that is the parent of all others.")
        return {target: ()}
    path = os.fspath(structure)
    if not os.path.exists(path):
        if is_written(path):
            return parse_graph(path, EXPECTED)
        raise OptionError(f"The structure is {path!r}, and there is no such file; {EXPECTED}.")
    return outlets.read(path)


def check_node(node: Hashable, nodes: Collection[Hashable]) -> Hashable:
    """The node, if the structure has it."""
    if not is_name(node):
        raise OptionError(f"Found {shortened(node)} in place of a node; the nodes are: {listing(tuple(nodes))}.")
    if node not in nodes:
        raise unknown_variable(node, tuple(nodes))
    return node


def checked_parents(domain: Any, parents: Any, tables: Any) -> dict[Any, Any]:
    """The parents by node of a network whose tables are given; what is no domain, or no dict by node, is refused."""
    if not (isinstance(domain, Domain) and isinstance(parents, Mapping) and isinstance(tables, Mapping)):
        kinds = ", ".join(type(part).__name__ for part in (domain, parents, tables))
        raise OptionError(
            f"from_tables takes a Domain, a dict of parents by node and a dict of tables by node; found {kinds}."
        )
    return dict(parents)


def read_structure(structure: Any, extra: Iterable[Hashable] = ()) -> Parents:
    """Parents of every node, in declared order.

    Args:
        structure: edges ``(parent, child)``; a dict ``{child: parents}``; a graph written as text; a graph of networkx,
            igraph or pyAgrum; an adjacency matrix, parents in rows; or another network.
        extra: further nodes, which have no edge.
    """
    if isinstance(structure, WrittenGraph):
        parents = _from_text(structure)
    elif isinstance(structure, Mapping):
        parents = _from_mapping(structure)
    elif (square := matrix_of(structure, ENTRIES)) is not None:
        names, entries = square
        parents = {node: tuple(names[row] for row in np.flatnonzero(entries[:, k])) for k, node in enumerate(names)}
    elif (given := graph_of(structure)) is not None:
        parents = _from_graph(given)
    elif _is_network(structure):
        parents = {node: tuple(structure.parents(node)) for node in structure.nodes}
    elif hasattr(structure, "get_params"):
        raise OptionError(f"The structure is a {type(structure).__name__}, which has no directed edges; {EXPECTED}.")
    elif isinstance(structure, bytes) or not isinstance(structure, Iterable):
        raise OptionError(f"The structure is {structure!r}; {EXPECTED}.")
    else:
        refuse_table(structure, EXPECTED)
        edges = structure.tolist() if isinstance(structure, np.ndarray) else structure
        parents = parents_of([_hashable(tuple(edge) if isinstance(edge, list) else edge) for edge in edges])
    for node in extra:
        parents.setdefault(node, ())
    if not parents:
        raise OptionError("The structure has no nodes. Give edges, or a dict {node: parents} for nodes without edges.")
    _check(tuple(parents.items()))
    return parents


@lru_cache(maxsize=64)
def _check(parents: tuple[tuple[Hashable, tuple[Hashable, ...]], ...]) -> None:
    """Raise unless the graph is acyclic; graphs found sound are remembered, as one structure is often fitted again."""
    check_acyclic(dict(parents))


def _hashable(names: object) -> Any:
    """The names of nodes, which must be hashable."""
    for name in names if isinstance(names, tuple) else ():
        try:
            hash(name)
        except TypeError:
            raise OptionError(
                f"A node is named {name!r}; a name must be hashable, such as a text or a number."
            ) from None
    return names


def _is_network(structure: object) -> bool:
    """Whether it is a directed model: nodes, and parents of each."""
    return isinstance(getattr(structure, "nodes", None), tuple) and callable(getattr(structure, "parents", None))


def _from_mapping(structure: Mapping[Hashable, Any]) -> Parents:
    read: Parents = {}
    for child, parents in structure.items():
        if type(parents) is not list and (isinstance(parents, str) or not isinstance(parents, Iterable)):
            raise OptionError(
                f"The parents of {child!r} are {parents!r}; expected a list of names, such as [{parents!r}]."
            )
        read[child] = tuple(parents)
    try:
        complete = read.keys() >= set().union(*read.values())
    except TypeError:
        for names in read.values():
            _hashable(names)
        raise
    if not complete:
        for parent in [name for parents in read.values() for name in parents]:
            read.setdefault(parent, ())
    return read


def _from_text(graph: WrittenGraph) -> Parents:
    if graph.cliques:
        raise OptionError(
            f"The structure has the line {' -- '.join(graph.cliques[0])}; a Bayesian network has arrows, 'a -> b'. "
            "Write arrows, or use a MarkovNetwork."
        )
    parents: Parents = dict.fromkeys(graph.alone, ())
    return parents | parents_of(graph.arrows)


def _from_graph(graph: GivenGraph) -> Parents:
    if not graph.directed:
        raise OptionError(
            "The graph has no directions; a Bayesian network needs a directed one, such as networkx.DiGraph. Give it "
            "directions, or use a MarkovNetwork."
        )
    read: dict[Hashable, list[Hashable]] = {node: [] for node in graph.nodes}
    for parent, child in graph.joined:
        read[child].append(parent)
    return {node: tuple(parents) for node, parents in read.items()}
