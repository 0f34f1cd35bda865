"""Which states of a family cause what: the order of a node's states, and the states of parents that cause nothing."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar, Protocol

from suffice.domain import Domain, Variable, state_key
from suffice.errors import OptionError, listing
from suffice.models.bayesian.nodes.noisy_max import NoisyMaxNode
from suffice.models.bayesian.nodes.noisy_or import NoisyOrNode


class Grades(Protocol):
    """What the options of a kind say about the states at each place of a family (parents, node)."""

    node_class: ClassVar[type[NoisyMaxNode]]

    def read(self, domain: Domain) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The codes of the node's states from the lowest, and the code of the inactive state of each parent."""
        ...


@dataclass(frozen=True)
class ActiveStates:
    """Of a noisy-OR: the active states at each place, or None for all but the first."""

    active: tuple[tuple[Hashable, ...] | None, ...]

    node_class: ClassVar[type[NoisyMaxNode]] = NoisyOrNode

    def read(self, domain: Domain) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Absent and present, and the inactive state of each parent; the node must have two states."""
        node = domain.variables[-1]
        if node.card != 2:
            raise OptionError(
                f"nodes[{node.name!r}] is 'noisy-or', which has two states; found {node.card}: {listing(node.states)}. "
                "Declare two states=, or choose 'noisy-max' or 'table'."
            )
        *parents, absent = (_inactive(v, states) for v, states in zip(domain.variables, self.active, strict=True))
        return (absent, 1 - absent), tuple(parents)


@dataclass(frozen=True)
class OrderedStates:
    """Of a noisy-MAX: the states of the node from the lowest, and the inactive state at each place of a parent.

    None stands for the order in which the states are declared, and for the first state.
    """

    order: tuple[Hashable, ...] | None
    inactive: tuple[tuple[Hashable] | None, ...]

    node_class: ClassVar[type[NoisyMaxNode]] = NoisyMaxNode

    def read(self, domain: Domain) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The codes of all states in their order, and the inactive state of each parent."""
        *parents, node = domain.variables
        if node.card < 2:
            raise OptionError(
                f"nodes[{node.name!r}] is 'noisy-max', which needs two states or more; found {listing(node.states)}. "
                "Declare states=, or choose 'table'."
            )
        order = order_of(node, self.order, f"nodes={{{node.name!r}: NoisyMax(order=[...])}}")
        resting = [
            0 if state is None else parent.index(state[0]) for parent, state in zip(parents, self.inactive, strict=True)
        ]
        return order, tuple(resting)


def order_of(variable: Variable, order: tuple[Hashable, ...] | None, option: str) -> tuple[int, ...]:
    """The codes of the states of a variable from the lowest to the highest.

    order: the states as an option lists them; by default as they are declared. Three or more texts that were only seen
        in rows stand in the order of the alphabet, which means nothing: they are refused, and `option` says where to
        name their order.
    """
    if order is not None:
        if len(order) != variable.card or {state_key(s) for s in order} != {state_key(s) for s in variable.states}:
            raise OptionError(
                f"The order of {variable.name!r} is {listing(order)}; expected its states {listing(variable.states)}, "
                "each once, from the lowest to the highest."
            )
        return tuple(variable.index(state) for state in order)
    kinds = {state_key(state)[0] for state in variable.states}
    if variable.origin == "seen" and variable.card > 2 and (len(kinds) > 1 or kinds & {"str", "tuple"}):
        raise OptionError(
            f"Nothing says in which order the states of {variable.name!r} are: {listing(variable.states)} were found "
            f"in the rows and sorted as texts. Declare states={{{variable.name!r}: [lowest, ..., highest]}}, or give "
            f"{option}."
        )
    return tuple(range(variable.card))


def _inactive(variable: Variable, active: tuple[Hashable, ...] | None) -> int:
    """The code of the one state that is not active: the first unless said."""
    if active is None:
        return 0
    codes = {variable.index(state) for state in active}
    rest = [code for code in range(variable.card) if code not in codes]
    if len(rest) != 1:
        raise OptionError(
            f"active={{{variable.name!r}: {listing(active)}}} leaves {len(rest)} of the states "
            f"{listing(variable.states)} inactive; exactly one must be."
        )
    return rest[0]
