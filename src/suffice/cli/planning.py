"""How large a model would be, and how it would be learned, before any fit."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import suffice as sf
from suffice.cli.building import CommandOptions, build_graph, hidden_states
from suffice.cli.structures import GivenStructure
from suffice.domain import Domain, Variable, declare
from suffice.engines.junction_tree import plan_tree
from suffice.engines.memory import default_limit, in_words
from suffice.errors import listing
from suffice.fitting.portrait import Portrait
from suffice.graphs.decomposition import decompose

#: A plan is described whatever its size.
_NO_LIMIT = 1 << 4096
_FLOAT = 8


@dataclass(frozen=True)
class KnownVariables:
    """What is known of the variables: how many states, which are real, which have missing values."""

    cards: dict[Hashable, int]
    real: tuple[Hashable, ...] = ()
    missing: tuple[Hashable, ...] = ()
    assumed: tuple[Hashable, ...] = field(default=())


def describe_plan(structure: GivenStructure, data: object, chosen: CommandOptions, each: int) -> dict[str, Any]:
    """Width, memory and method; states are declared, come from the file or the rows, or are `each` for a variable."""
    model = build_graph(structure, chosen, data)
    portrait: Portrait = model.portrait()
    facts: dict[str, Any] = {"model": portrait.title, "variables": len(model.nodes), "edges": len(model.edges)}
    if portrait.kind == "gaussian":
        return facts | _gaussian(model)
    known = _known(model, data, chosen, each)
    directed = portrait.kind == "bayes"
    scopes = _scopes(model, directed)
    if known.real:
        facts["real variables"] = len(known.real)
    parts = [tuple(name for name in scope if name in known.cards) for scope in scopes]
    if known.cards:
        tree = plan_tree(known.cards, [part for part in parts if part], limit_bytes=_NO_LIMIT)
        facts |= {"width": max(tree.width, 0), "largest table": tree.largest}
    size = (tree.bytes if known.cards else 0) + _moments(scopes, known)
    fits = size <= default_limit()
    facts |= {"bytes": size, "memory": in_words(size)}
    hidden = tuple(chosen.hidden)
    if directed:
        facts["method"] = _directed(known, hidden, fits)
    else:
        facts["method"] = _undirected(parts, known, hidden, fits)
    if known.assumed:
        facts["assumed"] = (
            f"{each} states of {listing(known.assumed, 5)}; give rows, --states, or a file with states, to know"
        )
    return facts


def _gaussian(model: Any) -> dict[str, Any]:
    """Of a Gaussian graph: the width of its triangulation, and two matrices."""
    scopes = [*((node,) for node in model.nodes), *model.edges]
    tree = plan_tree(dict.fromkeys(model.nodes, 2), scopes, limit_bytes=_NO_LIMIT)
    size = 2 * _FLOAT * len(model.nodes) ** 2
    way = "closed form: the graph is chordal" if model.is_chordal else "regression of each node on its neighbours"
    return {"width": max(tree.width, 0), "bytes": size, "memory": in_words(size), "method": way}


def _scopes(model: Any, directed: bool) -> list[tuple[Hashable, ...]]:
    if directed:
        return [(*model.parents(node), node) for node in model.nodes]
    return [term if isinstance(term, tuple) else term.variables for term in model.terms]


def _known(model: Any, data: object, chosen: CommandOptions, each: int) -> KnownVariables:
    """What declarations and rows tell about the variables."""
    stated: Mapping[Any, Any] | None = model.get_params(deep=False)["states"]
    # A Bayesian network may have the states of the network that gave it its structure.
    declared: Mapping[Any, Any] = model._declared if isinstance(model, sf.BayesianNetwork) else stated or {}
    variables: dict[Hashable, Variable] = {name: declare(name, states) for name, states in declared.items()}
    variables |= {name: _hidden(name, text) for name, text in chosen.hidden.items()}
    missing: tuple[Hashable, ...] = ()
    if data is not None:
        named = [name for name in model.nodes if name not in chosen.hidden]
        domain, missing = _seen(data, named, variables)
        variables |= {name: domain[name] for name in named}
    real = tuple(name for name in model.nodes if name in variables and _is_real(variables[name]))
    cards = {name: variable.card for name, variable in variables.items() if variable.card and name not in real}
    assumed = tuple(name for name in model.nodes if name not in cards and name not in real)
    whole = {name: cards.get(name, each) for name in model.nodes if name not in real}
    return KnownVariables(whole, real, missing, assumed)


def _hidden(name: Hashable, text: str) -> Variable:
    states = hidden_states(text)
    return declare(name, list(range(states)) if isinstance(states, int) else states)


def _is_real(variable: Variable) -> bool:
    return variable.kind != "discrete"


def _seen(
    data: object, names: Sequence[Hashable], declared: Mapping[Hashable, Variable]
) -> tuple[Domain, tuple[Hashable, ...]]:
    """What some columns of the rows hold, and those of them with missing values."""
    from suffice.fitting.summaries import resolved_domain
    from suffice.sources import open_source

    if isinstance(data, sf.Summary):
        return data.domain, ()
    source, missing = open_source(data), set()
    source.check_columns(names)
    domain = resolved_domain(source, {name: declared.get(name) for name in names})
    for batch in source.batches(domain):
        domain = domain.merge(batch.domain)
        for name, codes in zip(batch.discrete, batch.codes, strict=True):
            missing |= {name} if (codes >= batch.domain[name].card).any() else set()
        missing |= {name for name, reals in zip(batch.real, batch.reals, strict=True) if np.isnan(reals).any()}
    return domain, tuple(name for name in names if name in missing)


def _moments(scopes: Sequence[tuple[Hashable, ...]], known: KnownVariables) -> int:
    """Bytes of the cross products of real families, one matrix for each state of their discrete parents."""
    total, real = 0, set(known.real)
    for scope in scopes:
        numbers = sum(name in real for name in scope)
        if numbers:
            states = [known.cards[name] for name in scope if name not in real]
            total += _FLOAT * (numbers + 1) ** 2 * int(np.prod(states, dtype=object))
    return total


def _directed(known: KnownVariables, hidden: Sequence[Hashable], fits: bool) -> str:
    if hidden or known.missing:
        why = [f"{listing(hidden, 3)} hidden"] * bool(hidden)
        why += [f"missing values in {listing(known.missing, 3)}"] * bool(known.missing)
        return f"EM with exact expectations ({'; '.join(why)})" + ("" if fits else "; which do not fit in memory")
    way = "closed form for complete rows"
    if known.real:
        way += ": cross products of all real families in one pass, then least squares for each node"
    return way + ("" if fits else "; exact queries and EM do not fit in memory")


def _undirected(scopes: list[Any], known: KnownVariables, hidden: Sequence[Hashable], fits: bool) -> str:
    from suffice.models.markov.learning import OWN_SOLVERS

    if not fits:
        return "stochastic maximum likelihood (solver='sml') or pseudo-likelihood: exact inference does not fit"
    decomposition = decompose(scopes, known.cards)
    key, why = "closed-form", "the model is decomposable"
    if decomposition.tree is None:
        key, why = "ipf", str(decomposition.reason)
    if hidden or known.missing:
        return f"EM with exact expectations; each step by {OWN_SOLVERS[key].title} (chosen: {why})"
    return f"{OWN_SOLVERS[key].title} (chosen: {why})"
