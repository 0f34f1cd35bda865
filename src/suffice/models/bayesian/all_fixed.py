"""Networks whose nodes are all given: they need no rows, once the states of every node are known."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from suffice.domain import Domain, Variable
from suffice.errors import NotFittedError, listing
from suffice.models.bayesian.nodes.kinds import read_kind


def fixed_domain(
    fixed: Mapping[Hashable, Any],
    declared: Mapping[Hashable, Variable],
    kinds: Mapping[Hashable, Any],
    nodes: tuple[Hashable, ...],
) -> Domain:
    """The variables of all nodes: as declared, as a fitted node has them, or numbers where the kind of the node says.

    A network with a node that is not given, or whose states nobody names, is not fitted yet.
    """
    free = [name for name in nodes if name not in fixed]
    if free:
        raise NotFittedError(
            f"This BayesianNetwork has not learned {listing(free)} yet. Call fit first, or give all nodes in fixed=."
        )
    found = {name: declared.get(name) or _own(name, fixed[name], kinds.get(name)) for name in nodes}
    unknown = [name for name, variable in found.items() if variable is None]
    if unknown:
        raise NotFittedError(
            f"All nodes are fixed, and the states of {listing(unknown)} are not known. Declare them, states={{...}} "
            "(or 'real'), or call fit with rows that show them."
        )
    return Domain(variable for variable in found.values() if variable is not None)


def _own(name: Hashable, value: Any, kind: Any) -> Variable | None:
    domain = getattr(value, "domain", None)
    if isinstance(domain, Domain) and name in domain:
        return domain[name]
    if kind is None:
        return None
    chosen = read_kind(name, kind)
    if chosen.column == "real":
        return Variable(name, "real")
    states = getattr(chosen, "states", None)
    return None if states is None else Variable.discrete(name, states)
