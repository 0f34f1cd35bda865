"""Decomposable models: sets of variables that are exactly the cliques of a chordal graph.

A model given by scopes is graphical if every clique of its graph lies in some scope. It is decomposable if it is
graphical and its graph is chordal. The pairs of a triangle have a chordal graph whose one clique is no scope: that
model is not decomposable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from suffice.errors import listing
from suffice.graphs.chordality import chordless_cycle, maximum_cardinality_search
from suffice.graphs.clique_tree import CliqueTree, clique_tree
from suffice.graphs.nodes import Node
from suffice.graphs.triangulation import eliminate
from suffice.graphs.undirected import graph_of_scopes


@dataclass(frozen=True)
class Decomposition:
    """The clique tree of a decomposable model, and for each clique the number of a scope that equals it.

    Where the model is not decomposable `tree` is None and `reason` says why. Variables with a single state are left
    out of the tree: they join nothing.
    """

    tree: CliqueTree | None
    homes: tuple[int, ...] = ()
    reason: str = ""


def decompose(scopes: Sequence[Sequence[Node]], cards: Mapping[Any, int]) -> Decomposition:
    """Find the clique tree of the scopes if they make a decomposable model.

    Scopes may be given twice, lie in one another, be empty, and fall into separate parts.
    """
    homes: dict[frozenset[Node], int] = {}
    for number, scope in enumerate(scopes):
        homes.setdefault(frozenset(node for node in scope if cards[node] > 1), number)
    graph = graph_of_scopes(homes)
    cycle = chordless_cycle(graph)
    if cycle:
        return Decomposition(None, reason=f"the cycle {listing(cycle)} has no chord")
    order = maximum_cardinality_search(graph)[::-1]
    tree = clique_tree(eliminate(graph, order, cards))
    for clique in tree.cliques:
        if frozenset(clique) not in homes:
            reason = f"{listing(clique)} are joined pairwise and no scope holds them all"
            return Decomposition(None, reason=reason)
    return Decomposition(tree, tuple(homes[frozenset(clique)] for clique in tree.cliques))
