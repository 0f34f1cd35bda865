"""The options of a network, checked when it is made: kinds of values, names of nodes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from suffice.checks import choice, whole_number
from suffice.choices import Estimate, MissingValues, UnseenRow, choices
from suffice.domain import Variable, declare_all
from suffice.errors import OptionError, listing, meant
from suffice.fitting.estimator import Estimator
from suffice.models.bayesian.fitted import NetworkFitted
from suffice.models.bayesian.structure import is_form
from suffice.models.options_of_em import check_em, idle_without_em
from suffice.options import Idle

#: Options that are dicts by node, with an example of one.
BY_NODE = {
    "states": "states={'sky': ['clear', 'rain']}",
    "nodes": "nodes={'fever': 'noisy-or'}",
    "fixed": "fixed={'sky': [0.7, 0.3]}",
    "hidden": "hidden={'class': 3}",
}
CHOICES: dict[str, tuple[Any, ...]] = {
    "unseen": choices(UnseenRow),
    "missing": choices(MissingValues),
    "estimate": (None, *choices(Estimate)),
}


def _weighs_rows(prior: Any) -> bool:
    """Whether a prior, or that of some node, has a weight in rows that is given beside it: BDeu, and a network."""
    some = prior.values() if isinstance(prior, Mapping) else (prior,)
    return any(one.lower() == "bdeu" if isinstance(one, str) else hasattr(one, "joint_marginal") for one in some)


EQUIVALENT_SAMPLE_SIZE = Idle(
    "equivalent_sample_size",
    lambda given: not _weighs_rows(given["prior"]),
    "it is the weight of prior='bdeu' and of a prior network",
)
IDLE = (
    EQUIVALENT_SAMPLE_SIZE,
    *idle_without_em("nodes", "acceleration", "variance_floor", "start"),
)


def check_mappings(options: Mapping[str, Any]) -> None:
    """Refuse anything but a dict for the options that go by node."""
    for option, example in BY_NODE.items():
        value = options.get(option)
        if value is not None and not isinstance(value, Mapping):
            raise OptionError(f"{option} is {value!r}; expected a dict by node, such as {example}.")


def check_options(options: Mapping[str, Any], nodes: Sequence[Hashable]) -> dict[Hashable, Variable]:
    """Refuse names that are no nodes, and values that no fit could use; the variables that states= declares."""
    known = set(nodes)
    for option in (*BY_NODE, "prior"):
        by_node = options[option] if isinstance(options[option], Mapping) else {}
        unknown = [name for name in by_node if name not in known]
        if unknown and not is_form(options["structure"]):
            hint = " A prior that has a name is given without a dict: prior='bdeu'." if option == "prior" else ""
            raise OptionError(
                f"{option}= names {listing(unknown)}, which is no node.{meant(unknown[0], nodes)} The nodes are: "
                f"{listing(nodes)}.{hint}"
            )
    for option, allowed in CHOICES.items():
        choice(options[option], option, allowed)
    kinds: dict[Hashable, Any] = {}
    if options["nodes"]:
        from suffice.models.bayesian.nodes.kinds import read_kind

        kinds = {name: read_kind(name, kind) for name, kind in options["nodes"].items()}
    declared = declare_all(options["states"] or {})
    for name, variable in declared.items():
        if variable.kind == "count" and not (name in kinds and kinds[name].counts):
            raise OptionError(
                f"states[{name!r}] is 'count', and its node is not one for counts; expected a list of states, such as "
                f"range(10), or 'real', or nodes={{{name!r}: GLM(family=Poisson())}}."
            )
    whole_number(options["n_init"], "n_init")
    check_em(options)
    # What is plainly right is not sent to those who know all that may be given: they load with what they serve.
    size = options["equivalent_sample_size"]
    if type(size) is not float or not 1e-300 <= size <= 1e300:
        from suffice.models.bayesian.priors import check_sample_size

        check_sample_size(size)
    if type(options["random_state"]) is not int or options["random_state"] < 0:
        from suffice.families.base import generator

        generator(options["random_state"])
    return declared


def check_start(start: Any, nodes: Sequence[Hashable]) -> Mapping[Hashable, Any]:
    """What a user gives as start=, by node: a dict, or a fitted network."""
    if start is None:
        return {}
    fitted = start.fitted_ if isinstance(start, Estimator) else start
    if isinstance(fitted, NetworkFitted):
        return {name: node for name, node in fitted.nodes.items() if name in nodes}
    if not isinstance(start, Mapping):
        raise OptionError(f"start is {start!r}; expected a dict of parameters by node, or a fitted network.")
    unknown = [name for name in start if name not in nodes]
    if unknown:
        near = meant(unknown[0], nodes)
        raise OptionError(f"start= names {listing(unknown)}, which is no node.{near} The nodes are: {listing(nodes)}.")
    return start
