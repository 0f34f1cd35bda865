"""Exact engines of discrete factors by name: what they see is the number of states of variables and scopes, no model.

An engine is a function from these to a plan (`suffice.engines.contract`). One of somebody else is offered by every
model that takes an engine by name after one call::

    register("my engine", plan_of_mine)

or, without a call, as an entry point of the group ``suffice.engines``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from suffice.graphs.nodes import Node
from suffice.registry import Registry

# A question to the junction tree that models have at hand needs none of these.
if TYPE_CHECKING:
    from suffice.engines.contract import InferencePlan


class Planner(Protocol):
    """What makes a plan for factors; it raises SizeError where the plan would take more memory than there is."""

    def __call__(self, cards: Mapping[Any, int], scopes: Sequence[Sequence[Node]], /) -> InferencePlan:
        """cards: number of states of each variable; scopes: variables of each factor, in the order of its axes."""


_engines: Registry[Planner] = Registry("suffice.engines", "an engine", ("exact", "sampling"))


def register(name: str, planner: Planner) -> None:
    """Offer an engine under a name, which no other may have."""
    _engines.add(name, planner)


def names() -> tuple[str, ...]:
    """The names of all engines."""
    return _engines.names()


def named(name: str, others: Sequence[str] = (), option: str = "engine") -> Planner:
    """The engine of this name; others: names that the option of the model at hand takes besides, for the message."""
    return _engines.named(name, option, others)


def _junction_tree() -> Planner:
    from suffice.engines.junction_tree import plan_tree

    return plan_tree


def _enumeration() -> Planner:
    from suffice.engines.enumeration import plan_enumeration

    return plan_enumeration


_engines.register("junction tree", _junction_tree)
_engines.register("enumeration", _enumeration)
