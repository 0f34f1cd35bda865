"""The options of a network through time, checked when it is made."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from suffice.checks import choice, generator, whole_number
from suffice.choices import Estimate, MissingValues, UnseenRow, choices
from suffice.domain import Variable, declare_all
from suffice.errors import OptionError, listing, meant
from suffice.models.bayesian.options import EQUIVALENT_SAMPLE_SIZE
from suffice.models.bayesian.priors import check_sample_size
from suffice.models.dynamic_network.structure import SliceStructure
from suffice.models.options_of_em import check_em, idle_without_em

CHOICES: dict[str, tuple[Any, ...]] = {
    "missing": choices(MissingValues),
    "unseen": choices(UnseenRow),
    "estimate": (None, *choices(Estimate)),
}
IDLE = (EQUIVALENT_SAMPLE_SIZE, *idle_without_em("nodes", "acceleration", "variance_floor", "start"))


def read_options(options: Mapping[str, Any], structure: SliceStructure) -> dict[Hashable, Variable]:
    """Refuse names that are no nodes, and values that no fit could use; the variables that states= declares."""
    slices = (*structure.nodes, *structure.inputs)
    for option in ("states", "hidden"):
        unknown = [name for name in options.get(option) or {} if name not in slices]
        if unknown:
            raise OptionError(
                f"{option}= names {listing(unknown)}, which is no node.{meant(unknown[0], slices)} The nodes are: "
                f"{listing(slices)}. What is said of a node holds in all slices."
            )
    for option, allowed in CHOICES.items():
        choice(options[option], option, allowed)
    kinds: dict[Hashable, Any] = {}
    if options["nodes"]:
        from suffice.models.bayesian.nodes.kinds import read_kind

        kinds = {name: read_kind(name, kind) for name, kind in options["nodes"].items()}
    declared = declare_all(options["states"] or {})
    for name, variable in declared.items():
        counted = name in structure.inputs or (name in kinds and kinds[name].counts)
        if variable.kind == "count" and not counted:
            raise OptionError(
                f"states[{name!r}] is 'count', and its node is not one for counts; expected a list of states, such as "
                f"range(10), or 'real', or nodes={{{name!r}: GLM(family=Poisson())}}."
            )
    check_sample_size(options["equivalent_sample_size"])
    whole_number(options["n_init"], "n_init")
    check_em(options)
    if options["hidden"] and all(node in options["hidden"] for node in structure.nodes):
        raise OptionError(
            f"hidden= names all nodes, {listing(structure.nodes)}, so that rows say nothing. Leave out those that are "
            "seen."
        )
    generator(options["random_state"])
    return declared
