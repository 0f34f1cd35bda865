"""How large a model would be, and how it would be learned, from its structure alone."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import suffice as sf
from suffice.cli.building import Wish, build_graph, domain_of
from suffice.cli.structures import Structure
from suffice.domain import declare
from suffice.engines.junction_tree import plan_tree
from suffice.engines.memory import default_limit, in_words
from suffice.graphs.decomposition import decompose

#: A plan is described whatever its size.
_NO_LIMIT = 1 << 4096


def describe_plan(structure: Structure, data: Any, declared: Mapping[str, Any], each: int) -> dict[str, Any]:
    """Width, memory and method; states are declared, come from the file or the rows, or are `each` for a variable."""
    model = build_graph(structure, Wish(states=declared), data)
    found: dict[str, Any] = {"model": type(model).__name__, "variables": len(model.nodes), "edges": len(model.edges)}
    if isinstance(model, sf.GaussianGraph):
        return found | {
            "method": "closed form: the graph is chordal" if model.is_chordal else "regressions of each node"
        }
    cards, assumed = _cards(model, data, each)
    scopes = _scopes(model)
    tree = plan_tree(cards, scopes, limit_bytes=_NO_LIMIT)
    fits = tree.bytes <= default_limit()
    found |= {
        "width": max(tree.width, 0),
        "largest table": tree.largest,
        "bytes": tree.bytes,
        "memory": in_words(tree.bytes),
    }
    found["method"] = _method(model, scopes, cards, fits)
    if assumed:
        found["assumed"] = f"{each} states of {len(assumed)} variables; give rows, or a file with states, to know"
    return found


def _scopes(model: Any) -> list[tuple[Hashable, ...]]:
    if isinstance(model, sf.BayesianNetwork):
        return [(*model.parents(node), node) for node in model.nodes]
    return [term if isinstance(term, tuple) else term.variables for term in model.terms]


def _cards(model: Any, data: Any, each: int) -> tuple[dict[Hashable, int], list[Hashable]]:
    """Number of states of each variable, and those for which it is assumed."""
    known: Mapping[Any, Any] = model._declared() if callable(model._declared) else model._declared
    variables = {name: declare(name, found) for name, found in known.items()}
    cards = {name: variable.card for name, variable in variables.items() if variable.card}
    if data is not None:
        cards |= _seen(data, [name for name in model.nodes if name not in cards])
    assumed = [name for name in model.nodes if name not in cards]
    return {name: cards.get(name, each) for name in model.nodes}, assumed


def _seen(data: Any, names: list[Hashable]) -> dict[Hashable, int]:
    """Number of states of some columns of the rows, where they hold states."""
    domain = domain_of(data, names)
    discrete = [name for name in names if name in domain and domain[name].kind == "discrete"]
    if not isinstance(data, sf.Summary) and discrete:
        domain = sf.summarize([sf.Counts((name,)) for name in discrete], data).domain
    return {name: max(len(domain[name].states), 1) for name in discrete}


def _method(model: Any, scopes: list[Any], cards: Mapping[Any, int], fits: bool) -> str:
    if isinstance(model, sf.BayesianNetwork):
        return "closed form for complete rows" + ("" if fits else "; exact queries and EM do not fit in memory")
    found = decompose(scopes, cards)
    if found.tree is not None:
        return "closed form: the model is decomposable"
    if not fits:
        return "stochastic maximum likelihood (solver='sml') or pseudo-likelihood: exact inference does not fit"
    return f"iterative: {found.reason}"
