"""The structure of an undirected model, from whatever a person has: cliques, features, edges, a graph."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from suffice.errors import OptionError, listing
from suffice.graphs.nodes import refuse_table
from suffice.graphs.notation import WrittenGraph, is_written, parse_graph
from suffice.models.markov.feature import Feature

Names = tuple[Hashable, ...]
EXPECTED = (
    "expected a list of cliques such as [('A', 'B'), ('B', 'C')] and of features, text such as 'A -- B -- C; {C, D}', "
    "a symmetric matrix of 0 and 1, or a graph of networkx or igraph"
)
#: A term of a log-linear model: a clique with one weight for each joint state, or a feature with one weight.
Term = Names | Feature


def read_terms(structure: Any) -> tuple[Term, ...]:
    """The terms of a network.

    Args:
        structure: cliques (tuples of variables, of any size) and features in one list; a single variable may stand for
            itself; text such as ``"a -- b; {b, c, d}"``; a graph of networkx or igraph or a symmetric adjacency matrix,
            whose edges are cliques and whose nodes without edges are cliques of one; another network with terms; or a
            directed model, whose families are the cliques.
    """
    if isinstance(getattr(structure, "terms", None), tuple):
        return tuple(structure.terms)
    if hasattr(structure, "arcs") and hasattr(structure, "cpt"):
        raise directed()
    if hasattr(structure, "get_edgelist") and hasattr(structure, "vs"):
        return tuple(_igraph_cliques(structure))
    if (joined := _adjacency(structure)) is not None:
        return joined
    if hasattr(structure, "nodes") and callable(getattr(structure, "parents", None)):
        return tuple((*structure.parents(node), node) for node in structure.nodes)
    if hasattr(structure, "is_directed") and hasattr(structure, "edges"):
        return tuple(_graph_cliques(structure))
    if isinstance(structure, str) and is_written(structure):
        return _from_text(parse_graph(structure, EXPECTED))
    if isinstance(structure, str | bytes | Feature) or not isinstance(structure, Iterable):
        raise OptionError(f"The structure is {structure!r}; {EXPECTED}.")
    refuse_table(structure, EXPECTED)
    return tuple(_read_term(term) for term in structure)


def _from_text(graph: WrittenGraph) -> tuple[Names, ...]:
    if graph.arrows:
        raise OptionError(
            f"The structure has the arrow {' -> '.join(graph.arrows[0])}; a Markov network has lines, 'a -- b'. Write "
            "lines, or use a BayesianNetwork."
        )
    return (*graph.cliques, *((name,) for name in graph.alone))


def _read_term(term: object) -> Term:
    if isinstance(term, Feature):
        return term
    clique = tuple(term) if isinstance(term, tuple | list | set | frozenset) else (term,)
    if isinstance(term, set | frozenset):
        clique = tuple(sorted(clique, key=repr))
    if not clique:
        raise OptionError("A clique has no variables. Leave it out.")
    if not all(isinstance(name, Hashable) for name in clique):
        raise OptionError(f"The clique {term!r} holds a name that cannot be a variable; use texts, numbers or tuples.")
    if len(set(clique)) != len(clique):
        raise OptionError(f"The clique {listing(clique)} names a variable twice. Name it once.")
    return clique


def directed() -> OptionError:
    """The error for a graph of another kind."""
    return OptionError(
        "The graph has directions; a Markov network needs an undirected one. Use "
        "MarkovNetwork.from_bayesian_network, or graph.to_undirected()."
    )


def _with_alone(edges: Sequence[tuple[Hashable, Hashable]], nodes: Iterable[Hashable]) -> list[Names]:
    """Edges, then the nodes without one."""
    joined = {node for edge in edges for node in edge}
    return [*edges, *((node,) for node in nodes if node not in joined)]


def _graph_cliques(graph: Any) -> list[Names]:
    if graph.is_directed():
        raise directed()
    return _with_alone(graph_edges(graph), graph.nodes)


def _igraph_cliques(graph: Any) -> list[Names]:
    if graph.is_directed():
        raise directed()
    names = list(graph.vs["name"]) if "name" in graph.vs.attributes() else list(range(len(graph.vs)))
    return _with_alone(graph_edges([(names[a], names[b]) for a, b in graph.get_edgelist()]), names)


def _adjacency(structure: Any) -> tuple[Names, ...] | None:
    """Edges by a symmetric matrix of 0 and 1, named by a frame, else 0, 1, 2, ...; None where it is something else."""
    named = hasattr(structure, "columns") and hasattr(structure, "index")
    values = np.asarray(structure) if named or isinstance(structure, np.ndarray) else None
    square = values is not None and values.ndim == 2 and values.shape[0] == values.shape[1]
    if values is None or not square or values.dtype.kind not in "biuf" or not np.isin(values, (0, 1)).all():
        return None
    if not named and len(values) < 3:  # Two rows of an array are cliques.
        return None
    names = list(structure.columns) if named else list(range(len(values)))
    if named and list(structure.index) != names:
        raise OptionError(
            f"The rows of the adjacency matrix are {listing(structure.index)}, and its columns {listing(names)}; "
            "expected the same names in the same order."
        )
    if not np.array_equal(values, values.T):
        first, second = np.argwhere(values != values.T)[0]
        raise OptionError(
            f"The adjacency matrix joins {names[first]!r} to {names[second]!r} and not the other way round; a Markov "
            "network needs a symmetric one. Arcs are for a BayesianNetwork."
        )
    pairs = np.argwhere(np.triu(values != 0))
    return tuple(_with_alone(graph_edges([(names[a], names[b]) for a, b in pairs]), names))


def graph_edges(graph: Any) -> list[tuple[Hashable, Hashable]]:
    """The edges of a networkx graph or of a list of pairs; loops and repeated edges are errors."""
    given = graph.edges() if hasattr(graph, "is_directed") else graph
    edges: dict[frozenset[Hashable], tuple[Hashable, Hashable]] = {}
    for edge in given:
        pair = tuple(edge) if isinstance(edge, tuple | list) else (edge,)
        if len(pair) != 2 or pair[0] == pair[1]:
            raise OptionError(
                f"Found the edge {edge!r}; expected two different variables. Leave loops out, and the diagonal of a "
                "matrix."
            )
        if frozenset(pair) in edges:
            raise OptionError(f"The edge between {pair[0]!r} and {pair[1]!r} is given more than once. Give it once.")
        edges[frozenset(pair)] = pair
    return list(edges.values())


def graph_nodes(graph: Any, edges: Sequence[tuple[Hashable, Hashable]]) -> list[Hashable]:
    """Nodes of a networkx graph, or those that the edges name."""
    given = graph.nodes if hasattr(graph, "is_directed") else ()
    return list(dict.fromkeys([*given, *(node for edge in edges for node in edge)]))


def grid_edges(rows: int, columns: int) -> list[tuple[Hashable, Hashable]]:
    """The edges of a grid, whose nodes are the pairs (row, column)."""
    if rows < 1 or columns < 1:
        raise OptionError(f"A grid of {rows} by {columns} has no nodes; expected at least 1 row and 1 column.")
    edges: list[tuple[Hashable, Hashable]] = []
    for row in range(rows):
        for column in range(columns):
            if column + 1 < columns:
                edges.append(((row, column), (row, column + 1)))
            if row + 1 < rows:
                edges.append(((row, column), (row + 1, column)))
    return edges


# -- features of physics: module-level functions, so that networks can be copied and pickled ------------------------


def value_of(state: Any) -> Any:
    """The state itself, as a number."""
    return state


def product_of(first: Any, second: Any) -> Any:
    """The product of two states."""
    return first * second


def agreement(first: Any, second: Any) -> bool:
    """Whether two states are the same."""
    return bool(first == second)


def ising_terms(graph: Any) -> tuple[list[Feature], list[Hashable]]:
    """A field for each node and a coupling for each edge, and the nodes."""
    edges = graph_edges(graph)
    nodes = graph_nodes(graph, edges)
    fields = [Feature((node,), value_of, name=f"field {node}") for node in nodes]
    couplings = [Feature(edge, product_of, name=f"coupling {edge[0]}, {edge[1]}") for edge in edges]
    return [*fields, *couplings], nodes


def potts_terms(graph: Any, *, fields: bool, tied: bool) -> tuple[list[Term], list[Hashable]]:
    """A weight for agreement along each edge (one for all edges if tied) and, with fields, a table for each node."""
    edges = graph_edges(graph)
    nodes = graph_nodes(graph, edges)
    terms: list[Term] = [(node,) for node in nodes] if fields else []
    if tied and edges:
        terms.append(Feature(list(edges), agreement, name="agreement"))
    elif edges:
        terms += [Feature(edge, agreement, name=f"agreement {edge[0]}, {edge[1]}") for edge in edges]
    return terms, nodes


def term_variables(terms: Iterable[Term]) -> Names:
    """All variables, in the order in which the terms name them."""
    scopes = (term.variables if isinstance(term, Feature) else term for term in terms)
    return tuple(dict.fromkeys(name for scope in scopes for name in scope))


def term_edges(terms: Iterable[Term]) -> tuple[tuple[Hashable, Hashable], ...]:
    """Pairs of variables that some term joins."""
    scopes = [scope for term in terms for scope in (term.placements if isinstance(term, Feature) else (term,))]
    pairs = {frozenset((a, b)): (a, b) for scope in scopes for k, a in enumerate(scope) for b in scope[k + 1 :]}
    return tuple(pairs.values())
