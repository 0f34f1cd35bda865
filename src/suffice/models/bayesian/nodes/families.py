"""Families (parents, node) that a kind of node can have, and those that a given node was made for."""

from __future__ import annotations

from suffice.domain import Domain
from suffice.errors import OptionError, listing
from suffice.models.bayesian.nodes.contract import Node


def check_discrete(kind: str, family: Domain) -> None:
    """Raise unless node and parents have states."""
    name = family.names[-1]
    if family.variables[-1].kind != "discrete":
        raise unfit(kind, family, "a column of states", f"Declare states={{{name!r}: [...]}}.")
    real = [variable.name for variable in family.variables[:-1] if variable.kind != "discrete"]
    if real:
        raise OptionError(
            f"{name!r} is discrete and has the real parents {listing(real)}; a {kind} node needs discrete parents. "
            "Declare the states of the parents, turn the edge, or make the node a regression: "
            f"nodes={{{name!r}: 'glm'}}."
        )


def unfit(kind: str, family: Domain, expected: str, hint: str) -> OptionError:
    """The error for a node whose column a kind does not take."""
    variable = family.variables[-1]
    held = f"the states {listing(variable.states)}" if variable.kind == "discrete" else f"{variable.kind} numbers"
    return OptionError(f"nodes[{variable.name!r}] is {kind!r}, which needs {expected}; found {held}. {hint}")


def same_layout(mine: Domain, theirs: Domain) -> bool:
    """Whether two families have the same variables in the same order, with the same states."""
    return mine.names == theirs.names and mine.variables == theirs.variables


def refuse_other_layout(node: Node, family: Domain) -> None:
    """Raise where a given node was made for another family."""
    if not same_layout(node.domain, family):
        raise OptionError(
            f"The fixed node {family.names[-1]!r} is over {node.domain!r}; expected {family!r}, with the same states "
            "in the same order."
        )
