"""The options of a network, checked when it is made: kinds of values, names of nodes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from suffice.domain import declare
from suffice.errors import OptionError, listing
from suffice.families.base import generator
from suffice.models.bayesian.nodes.kinds import read_kind
from suffice.models.bayesian.priors import check_sample_size

#: Options that are dicts by node, with an example of one.
BY_NODE = {
    "states": "states={'sky': ['clear', 'rain']}",
    "nodes": "nodes={'fever': 'noisy-or'}",
    "fixed": "fixed={'sky': [0.7, 0.3]}",
    "hidden": "hidden={'class': 3}",
}
CHOICES = {"unseen": ("uniform", "nan", "raise"), "missing": ("em", "raise"), "estimate": (None, "mean", "map")}


def check_mappings(options: Mapping[str, Any]) -> None:
    """Refuse anything but a dict for the options that go by node."""
    for option, example in BY_NODE.items():
        value = options[option]
        if value is not None and not isinstance(value, Mapping):
            raise OptionError(f"{option} is {value!r}; expected a dict by node, such as {example}.")


def check_options(options: Mapping[str, Any], nodes: Sequence[Hashable]) -> None:
    """Refuse names that are no nodes, and values that no fit could use."""
    known = set(nodes)
    for option in (*BY_NODE, "prior"):
        by_node = options[option] if isinstance(options[option], Mapping) else {}
        unknown = [name for name in by_node if name not in known]
        if unknown:
            hint = " A prior that has a name is given without a dict: prior='bdeu'." if option == "prior" else ""
            raise OptionError(
                f"{option}= names {listing(unknown)}, which is no node; the nodes are {listing(nodes)}.{hint}"
            )
    for option, choices in CHOICES.items():
        if options[option] not in choices:
            raise OptionError(f"{option} is {options[option]!r}; expected one of {listing(choices)}.")
    for name, kind in (options["nodes"] or {}).items():
        read_kind(name, kind)
    for name, states in (options["states"] or {}).items():
        if declare(name, states).kind == "count":
            raise OptionError(
                f"states[{name!r}] is 'count', and networks have no node for counts; expected a list of states, such "
                "as range(10), or 'real'."
            )
    if not isinstance(options["n_init"], int) or options["n_init"] < 1:
        raise OptionError(f"n_init is {options['n_init']!r}; expected a whole number of at least 1.")
    check_sample_size(options["equivalent_sample_size"])
    generator(options["random_state"])
