"""A noisy-OR node, the noisy-MAX of two states: each active parent may cause the node by itself.

P(node absent | parents) = exp(-(w_0 + sum over parents of w[state])), with weights that are not negative. ``q =
exp(-w)`` is the probability that a cause is inhibited, and 1 - exp(-w_0) the leak: the probability of the node when no
parent is active.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from suffice.array_types import Floats
from suffice.domain import Domain, Variable
from suffice.errors import OptionError, listing
from suffice.models.bayesian.nodes.noisy_max import NoisyMaxNode, labels_of
from suffice.models.bayesian.nodes.regressions import fresh_name
from suffice.table import Table


@dataclass(frozen=True)
class NoisyOrNode(NoisyMaxNode):
    """A fitted or given noisy-OR node; `order` holds the codes of absent and present."""

    kind: ClassVar[str] = "noisy-or"
    title: ClassVar[str] = "noisy-OR"
    option: ClassVar[str] = "NoisyOr"
    readable: ClassVar[str] = "node(name).weights_, .inhibitors_ and .leak_"

    def coefficient_table(self, values: Floats) -> Table:
        """Values (m,) of the weights, by label: ``"(leak)"``, then ``(parent, state)``."""
        axis = Variable.discrete(fresh_name("coefficient", set(self.parents)), self.coefficients)
        return Table(Domain([axis]), values)

    @property
    def leak_(self) -> float:
        """Probability of the node when no parent is active."""
        return -math.expm1(-float(self.weights[0])) if self.leak else 0.0

    @property
    def inhibitors_(self) -> dict[Hashable, dict[Hashable, float]]:
        """Probability that a cause fails, by parent and state; 1 for the inactive state."""
        return {
            parent.name: dict(zip(parent.states, np.exp(-effect[:, 0]).tolist(), strict=True))
            for parent, effect in zip(self.domain.variables[:-1], self.effects, strict=True)
        }

    @classmethod
    def _has_states(cls, order: tuple[int, ...], card: int) -> bool:
        """Two of them."""
        return card == 2 and super()._has_states(order, card)


def given_noisy_or(
    domain: Domain, order: tuple[int, ...], inactive: tuple[int, ...], leak: float, inhibitors: Mapping[Any, Any]
) -> NoisyOrNode:
    """A node from known numbers: the leak probability, and by parent the probability that an active state fails.

    A parent with several active states has a dict by state.
    """
    name, parents = domain.names[-1], domain.names[:-1]
    if set(inhibitors) != set(parents):
        raise OptionError(
            f"The inhibitors of {name!r} are given for {listing(inhibitors)}; expected {listing(parents)}, one each."
        )
    values = [1.0 - float(leak)]
    causes: Any = labels_of(domain, inactive, leak=False)
    for parent, state in causes:
        probability = inhibitors[parent]
        if isinstance(probability, Mapping) and state not in probability:
            raise OptionError(f"The inhibitors of {name!r} lack the state {state!r} of {parent!r}.")
        if not isinstance(probability, Mapping) and domain[parent].card > 2:
            raise OptionError(f"{parent!r} has several active states; give its inhibitors in {name!r} as a dict.")
        values.append(float(probability[state] if isinstance(probability, Mapping) else probability))
    q = np.array(values)
    if not ((q >= 0) & (q <= 1)).all():
        raise OptionError(f"The leak and the inhibitors of {name!r} must be probabilities; found {q.tolist()}.")
    with np.errstate(divide="ignore"):
        return NoisyOrNode(domain, -np.log(q) + 0.0, order, inactive)
