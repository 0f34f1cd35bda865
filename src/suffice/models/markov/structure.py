"""The structure of an undirected model, from whatever a person has: cliques, features, edges, a graph."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from suffice.checks import whole_number
from suffice.errors import OptionError, listing, shortened
from suffice.graphs.nodes import refuse_table
from suffice.graphs.notation import WrittenGraph, is_written, parse_graph
from suffice.graphs.others import Adjacency, GivenGraph, graph_of, matrix_of
from suffice.models.markov.feature import Feature

Names = tuple[Hashable, ...]
EXPECTED = (
    "expected a list of cliques such as [('A', 'B'), ('B', 'C')] and of features, text such as 'A -- B -- C; {C, D}' "
    "or '~A:B + B:C', a dict {node: neighbours}, a symmetric matrix of 0 and 1, or a graph of networkx, igraph or "
    "pyAgrum"
)
#: What the entries of a matrix are.
ENTRIES = "1 joins a row and a column, 0 does not"
#: A term of a log-linear model: a clique with one weight for each joint state, or a feature with one weight.
Term = Names | Feature


def read_terms(structure: Any) -> tuple[Term, ...]:
    """The terms of a network.

    Args:
        structure: cliques (tuples of variables, of any size) and features in one list; a single variable may stand for
            itself; text such as ``"a -- b; {b, c, d}"`` or ``"~a:b + b:c:d"``; a graph of networkx, igraph or pyAgrum,
            a dict of neighbours or a symmetric adjacency matrix, whose edges are cliques and whose nodes without edges
            are cliques of one; another network with terms; or a directed model, whose families are the cliques.
    """
    if isinstance(getattr(structure, "terms", None), tuple):
        return tuple(structure.terms)
    if (matrix := matrix_of(structure, ENTRIES)) is not None:
        return _from_matrix(matrix)
    if (graph := graph_of(structure)) is not None:
        return _with_alone(graph_edges(_undirected(graph)), graph.nodes)
    if hasattr(structure, "nodes") and callable(getattr(structure, "parents", None)):
        return tuple((*structure.parents(node), node) for node in structure.nodes)
    if isinstance(getattr(structure, "edges", None), tuple) and hasattr(structure, "nodes"):
        return _with_alone(structure.edges, structure.nodes)
    if isinstance(structure, Mapping):
        return _from_matrix(_neighbours(structure))
    if isinstance(structure, str) and is_written(structure):
        return _from_text(parse_graph(structure, EXPECTED))
    if isinstance(structure, str | bytes | Feature) or not isinstance(structure, Iterable):
        raise OptionError(f"The structure is {structure!r}; {EXPECTED}.")
    refuse_table(structure, EXPECTED)
    terms = structure.tolist() if isinstance(structure, np.ndarray) else structure
    return tuple(_read_term(term) for term in terms)


def _from_text(graph: WrittenGraph) -> tuple[Names, ...]:
    if graph.arrows:
        raise OptionError(
            f"The structure has the arrow {' -> '.join(graph.arrows[0])}; an undirected model has lines, 'a -- b'. "
            "Write lines, or use a BayesianNetwork."
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
    try:
        distinct = set(clique)
    except TypeError:
        raise OptionError(
            f"The clique {term!r} holds a name that cannot be a variable; use texts, numbers or tuples."
        ) from None
    if len(distinct) != len(clique):
        raise OptionError(f"The clique {listing(clique)} names a variable twice. Name it once.")
    return clique


def _undirected(graph: GivenGraph) -> tuple[Names, ...]:
    """What a graph joins; one with directions is another kind."""
    if graph.directed:
        raise OptionError(
            "The graph has directions; an undirected model needs a graph without. Use its to_undirected(), or "
            "MarkovNetwork.from_bayesian_network, which joins parents too."
        )
    return graph.joined


def _with_alone(joined: Sequence[Names], nodes: Iterable[Hashable]) -> tuple[Names, ...]:
    """Edges and cliques, then the nodes without one."""
    placed = {node for names in joined for node in names}
    return (*joined, *((node,) for node in nodes if node not in placed))


def _neighbours(structure: Mapping[Any, Any]) -> Adjacency:
    """A dict of neighbours as a matrix."""
    for node, near in structure.items():
        if not isinstance(near, list | tuple | set | frozenset | Mapping):
            raise OptionError(
                f"The neighbours of {node!r} are {shortened(near)}; expected a list of names. Potentials go to "
                "MarkovNetwork.from_potentials."
            )
    names = tuple(dict.fromkeys([*structure, *(_read_name(name) for near in structure.values() for name in near)]))
    numbers = {name: number for number, name in enumerate(names)}
    entries = np.zeros((len(names), len(names)), dtype=bool)
    for node, near in structure.items():
        entries[numbers[node], [numbers[name] for name in near]] = True
    return Adjacency(names, entries)


def _read_name(name: object) -> Hashable:
    if not isinstance(name, Hashable):
        raise OptionError(f"A node is named {name!r}, which cannot be a variable; use texts, numbers or tuples.")
    return name


def _from_matrix(matrix: Adjacency) -> tuple[Names, ...]:
    """Edges by a symmetric matrix, and the nodes without any."""
    names, entries = matrix
    if not np.array_equal(entries, entries.T):
        first, second = np.argwhere(entries & ~entries.T)[0]
        raise OptionError(
            f"The structure joins {names[first]!r} to {names[second]!r} and not the other way round; an undirected "
            "model needs both. Arcs are for a BayesianNetwork."
        )
    pairs = np.argwhere(np.triu(entries))
    return _with_alone(graph_edges([(names[a], names[b]) for a, b in pairs]), names)


def graph_edges(given: Iterable[Any]) -> list[Names]:
    """Pairs of nodes, or cliques of more; loops and repeated edges are errors."""
    edges: dict[frozenset[Hashable], Names] = {}
    for edge in given:
        pair = tuple(edge) if isinstance(edge, tuple | list) else (edge,)
        if len(pair) < 2 or len(set(map(_read_name, pair))) < len(pair):
            raise OptionError(
                f"Found the edge {edge!r}; expected two different variables. Leave loops out, and the diagonal of a "
                "matrix."
            )
        if frozenset(pair) in edges:
            raise OptionError(f"The edge between {pair[0]!r} and {pair[1]!r} is given more than once. Give it once.")
        edges[frozenset(pair)] = pair
    return list(edges.values())


def graph_parts(structure: Any) -> tuple[list[Names], list[Hashable]]:
    """The edges and the nodes of a graph in any form, for models of pairs."""
    if isinstance(structure, list | tuple | set):
        graph_edges(structure)
    edges: list[Names] = []
    terms = read_terms(structure)
    for term in terms:
        if isinstance(term, Feature) or len(term) > 2:
            raise OptionError(f"Found {term!r}; expected a graph, whose edges join two variables each.")
        if len(term) == 2:
            edges.append(term)
    graph = graph_of(structure)
    first = () if graph is None else graph.nodes
    return edges, list(dict.fromkeys([*first, *term_variables(terms)]))


def grid_edges(rows: int, columns: int) -> list[tuple[Hashable, Hashable]]:
    """The edges of a grid, whose nodes are the pairs (row, column)."""
    rows, columns = whole_number(rows, "rows"), whole_number(columns, "columns")
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
    edges, nodes = graph_parts(graph)
    fields = [Feature((node,), value_of, name=f"field {node}") for node in nodes]
    couplings = [Feature(edge, product_of, name=f"coupling {edge[0]}, {edge[1]}") for edge in edges]
    return [*fields, *couplings], nodes


def potts_terms(graph: Any, *, fields: bool, tied: bool) -> tuple[list[Term], list[Hashable]]:
    """A weight for agreement along each edge (one for all edges if tied) and, with fields, a table for each node."""
    edges, nodes = graph_parts(graph)
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
