"""Which effects of interventions follow from what is observed, where some common causes are not (Shpitser, Pearl 2006).

A graph with hidden nodes is projected on the observed ones: an arc stays an arc, also through hidden nodes, and two
nodes with a hidden common cause are `confounded`. P(y | do(x)) follows from the distribution of the observed nodes
unless there is a hedge: two sets of nodes, each held together by confounding, the larger one meeting x and the smaller
one not, of which both lead to y. Two models that agree in everything observed then differ in the effect.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from suffice.graphs.directed import Parents, ancestors, reachable, topological_order
from suffice.graphs.nodes import Node


@dataclass(frozen=True)
class Hedge:
    """Why an effect is not identified: confounding holds `whole` together, and `part` of it without what is set."""

    whole: frozenset[Any]
    part: frozenset[Any]


@dataclass(frozen=True)
class ConfoundedGraph:
    """Arcs among observed nodes, and pairs with a hidden common cause."""

    parents: Mapping[Any, frozenset[Any]]
    confounded: frozenset[frozenset[Any]]

    @classmethod
    def projected(cls, parents: Parents, hidden: Collection[Node]) -> ConfoundedGraph:
        """The observed part of a graph with hidden nodes."""
        through: dict[Any, frozenset[Any]] = {}
        causes: dict[Any, frozenset[Any]] = {}
        for node in topological_order(parents):
            above = frozenset[Any]().union(*(through[p] if p in hidden else {p} for p in parents[node]))
            behind = frozenset[Any]().union(*(causes[p] | {p} for p in parents[node] if p in hidden))
            through[node], causes[node] = above, behind
        seen = [node for node in parents if node not in hidden]
        pairs = {
            frozenset((a, b)) for k, a in enumerate(seen) for b in seen[k + 1 :] if not causes[a].isdisjoint(causes[b])
        }
        return cls({node: through[node] for node in seen}, frozenset(pairs))

    @property
    def nodes(self) -> frozenset[Any]:
        """All of them."""
        return frozenset(self.parents)

    def among(self, nodes: Collection[Any]) -> ConfoundedGraph:
        """The part with some nodes only."""
        some = frozenset(nodes)
        return ConfoundedGraph(
            {node: above & some for node, above in self.parents.items() if node in some},
            frozenset(pair for pair in self.confounded if pair <= some),
        )

    def above(self, nodes: Iterable[Any], cut: Collection[Any] = ()) -> frozenset[Any]:
        """Some nodes and all their ancestors, without the arcs into `cut`."""
        mutilated: dict[Any, Any] = {n: () if n in cut else tuple(up) for n, up in self.parents.items()}
        return frozenset(ancestors(mutilated, nodes))

    def districts(self) -> list[frozenset[Any]]:
        """The nodes in sets that confounding holds together."""
        left, sets = dict.fromkeys(self.parents), []
        while left:
            inside, waiting = set[Any](), [next(iter(left))]
            while waiting:
                node = waiting.pop()
                if node in left:
                    del left[node]
                    inside.add(node)
                    waiting.extend(other for pair in self.confounded if node in pair for other in pair)
            sets.append(frozenset(inside))
        return sets


def hedge_of(graph: ConfoundedGraph, outcomes: Collection[Any], fixed: Collection[Any]) -> Hedge | None:
    """What keeps P(outcomes | do(fixed)) from following from what is observed; None where it follows."""
    y, x = frozenset(outcomes), frozenset(fixed)
    if not x:
        return None
    whole = graph.nodes
    if whole != (above := graph.above(y)):
        return hedge_of(graph.among(above), y, x & above)
    if more := (whole - x) - graph.above(y, cut=x):
        return hedge_of(graph, y, x | more)
    parts = graph.among(whole - x).districts()
    if len(parts) > 1:
        hedges = (hedge_of(graph, part, whole - part) for part in parts)
        return next((hedge for hedge in hedges if hedge is not None), None)
    part, districts = parts[0], graph.districts()
    if len(districts) == 1:
        return Hedge(whole, part)
    outer = next(district for district in districts if part <= district)
    return None if outer == part else hedge_of(graph.among(outer), y, x & outer)


def hedge_of_conditional(
    graph: ConfoundedGraph, outcomes: Collection[Any], fixed: Collection[Any], given: Collection[Any]
) -> Hedge | None:
    """The same of P(outcomes | do(fixed), given): a condition that could as well be set is set."""
    y, x, z = frozenset(outcomes), frozenset(fixed), frozenset(given)
    for node in sorted(z, key=repr):
        if _separated(graph, y, node, (x | z) - {node}, cut=x):
            return hedge_of_conditional(graph, y, x | {node}, z - {node})
    return hedge_of(graph, y | z, x)


def _separated(
    graph: ConfoundedGraph, y: frozenset[Any], node: Any, given: frozenset[Any], cut: frozenset[Any]
) -> bool:
    """Whether y and a node are separated once arcs into `cut` and out of the node are taken away."""
    parents: dict[Any, tuple[Any, ...]] = {
        n: () if n in cut else tuple(p for p in above if p != node) for n, above in graph.parents.items()
    }
    for pair in graph.confounded:
        for one in pair - cut:
            parents[one] = (*parents[one], pair)
        parents[pair] = ()
    children = {n: tuple(child for child, above in parents.items() if n in above) for n in parents}
    return y.isdisjoint(reachable(parents, children, [node], given))
