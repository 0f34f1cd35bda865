"""Interventions: nodes that are set from outside, whatever their parents are (Pearl's do-operator).

P(x | do(s)) is the distribution of the mutilated network: nodes that are set lose their parents, the others keep their
own. A node that is set is then a root, and given its value it does not matter how that was distributed; so it gets any
distribution that allows the value, and the value joins the evidence. Hidden nodes are part of the network, so that
effects need no adjustment formula: whoever has the whole model has them by summing out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from suffice.domain import Domain
from suffice.errors import OptionError, listing
from suffice.models.evidence import Evidence, checked_given, read_evidence
from suffice.records import replace

if TYPE_CHECKING:
    from suffice.models.bayesian.fitted import NetworkFitted

#: Mutilated networks that are kept with their engines for further questions.
KEPT = 8


def read_intervention(domain: Domain, do: Any, given: Mapping[Any, Any] | None = None) -> Evidence:
    """What nodes are set to, checked: one state or number each, none of them among the evidence."""
    if not isinstance(do, Mapping):
        raise OptionError(f"do is a {type(do).__name__}; expected a dict of states and values by node.")
    fixed = read_evidence(domain, do)
    if fixed.likelihoods:
        name = next(iter(fixed.likelihoods))
        raise OptionError(f"do sets {name!r} to {do[name]!r}; expected one of its states: an intervention is certain.")
    both = [name for name in do if name in (checked_given(given) or {})]
    if both:
        raise OptionError(
            f"{listing(both)} is in given= and in do=: what is set from outside says nothing about its causes. Leave "
            "it out of one of them."
        )
    return fixed


def mutilated(fitted: NetworkFitted, fixed: Evidence) -> NetworkFitted:
    """The network whose fixed nodes have no parents; the last ones are kept."""
    # A normal distribution stands where its value is; equal probabilities of states serve all of them.
    key = (frozenset(fixed.states), tuple(sorted(fixed.values.items(), key=repr)))
    kept: NetworkFitted | None = fitted.mutilated.pop(key, None)
    if kept is None:
        from suffice.models.bayesian.queries.evidence_reduction import placeholder

        cut = {n: placeholder(fitted.nodes[n].domain[n], fixed.values.get(n, 0.0), 1.0) for n in fixed.known}
        leading = tuple(name for name in fitted.leading if name not in cut)
        kept = replace(fitted, nodes={**fitted.nodes, **cut}, leading=leading)
    fitted.mutilated[key] = kept
    for old in list(fitted.mutilated)[:-KEPT]:
        fitted.mutilated.pop(old, None)
    return kept
