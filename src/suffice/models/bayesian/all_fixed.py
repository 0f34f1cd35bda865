"""Networks whose nodes are all given: they need no rows, once the states of every node are known."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from suffice.domain import Domain, Variable
from suffice.errors import NotFittedError, listing
from suffice.models.bayesian.fitted import NetworkFitted
from suffice.models.bayesian.learning import NodeLearning
from suffice.models.bayesian.nodes.contract import FittedNode
from suffice.models.bayesian.nodes.kinds import read_kind


def all_fixed(learning: NodeLearning, declared: Mapping[Hashable, Variable]) -> NetworkFitted:
    """The nodes of a network that needs no fit, because all of them are fixed; else NotFittedError.

    Their variables are as declared, as a fitted node has them, or numbers where the kind of the node says. A network
    with a node that is not given, or whose states nobody names, is not fitted yet.
    """
    nodes, fixed = tuple(learning.parents), learning.fixed
    free = [name for name in nodes if name not in fixed]
    if free:
        raise NotFittedError(
            f"This BayesianNetwork has not learned {listing(free)} yet. Call fit first, or give all nodes in fixed=."
        )
    known = {**without_unseen(declared), **learning.hidden}
    variables = {name: known.get(name) or _own(name, fixed[name], learning.chosen_kind(name)) for name in nodes}
    unknown = [name for name, variable in variables.items() if variable is None]
    if unknown:
        raise NotFittedError(
            f"All nodes are fixed, and the states of {listing(unknown)} are not known. Declare them, states={{...}} "
            "(or 'real'), or call fit with rows that show them."
        )
    given = learning.given_nodes(Domain(variable for variable in variables.values() if variable is not None))
    return NetworkFitted({name: given[name] for name in nodes}, tuple(learning.hidden), learning.leading)


def without_unseen(declared: Mapping[Hashable, Variable]) -> dict[Hashable, Variable]:
    """What is declared and known without rows: not the discrete variables whose states rows will tell."""
    return {name: variable for name, variable in declared.items() if variable.states or variable.kind != "discrete"}


def _own(name: Hashable, value: object, kind: object) -> Variable | None:
    if isinstance(value, FittedNode) and name in value.domain:
        return value.domain[name]
    if kind is None:
        return None
    chosen = read_kind(name, kind)
    if chosen.column == "real":
        return Variable(name, "real")
    return None if chosen.states is None else Variable.discrete(name, chosen.states)
