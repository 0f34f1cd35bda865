"""A network whose tables are all given needs no fit."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from suffice.domain import Domain, Variable
from suffice.errors import NotFittedError, listing
from suffice.models.bayesian.fitted import NetworkFitted
from suffice.models.dynamic_network.fitted import DynamicFitted
from suffice.models.dynamic_network.learning import FamilyLearning
from suffice.models.dynamic_network.structure import SliceStructure


def all_fixed(
    learning: FamilyLearning, structure: SliceStructure, variables: Mapping[Hashable, Variable]
) -> DynamicFitted:
    """The tables that are given, once the states of all nodes are declared."""
    known = {**variables, **learning.hidden}
    names = (*structure.nodes, *structure.inputs)
    free = [family for family in structure.families if family not in learning.fixed]
    if free:
        raise NotFittedError(
            f"This DynamicBayesianNetwork has not learned {listing(free)} yet. Call fit first, or give all tables in "
            "fixed=."
        )
    without = [n for n in names if n not in known or (known[n].kind == "discrete" and not known[n].states)]
    if without:
        raise NotFittedError(
            f"All tables are fixed, and the states of {listing(without)} are not known. Declare them, states={{...}} "
            "(or 'real'), or call fit with series that show them."
        )
    base = Domain(known[name] for name in names)
    domain = structure.variables(base)
    given = learning.given_nodes(domain)
    network = NetworkFitted({f: given[f] for f in structure.families}, tuple(learning.hidden), learning.leading)
    return DynamicFitted.of(network, structure)
