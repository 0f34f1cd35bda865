"""The kinds of nodes that their parents cause each by itself, with their options: noisy-MAX and noisy-OR."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np

from suffice.array_types import Floats
from suffice.domain import Domain, Variable, state_key
from suffice.errors import OptionError, listing
from suffice.models.bayesian.label_indexed import by_label
from suffice.models.bayesian.nodes.contract import Node, NodeKind, NodeLearner, NodeOptions
from suffice.models.bayesian.nodes.families import check_discrete, refuse_other_layout
from suffice.models.bayesian.nodes.graded import ActiveStates, Grades, OrderedStates
from suffice.models.bayesian.nodes.noisy_max import NoisyMaxNode, labels_of
from suffice.models.bayesian.nodes.noisy_max_chain import factor_scopes
from suffice.models.bayesian.nodes.noisy_max_learner import NoisyMaxLearner
from suffice.models.bayesian.nodes.noisy_or import NoisyOrNode, given_noisy_or
from suffice.models.bayesian.priors import noisy_prior

#: Sums of given probabilities this close to one are rounding.
ROUNDED = 1e-6


class NoisyKind(NodeKind):
    """What both kinds share: `leak`, and the states that cause nothing."""

    column: ClassVar[Literal["discrete", "real"]] = "discrete"
    node_class: ClassVar[type[Node]] = NoisyMaxNode

    leak: bool

    @abstractmethod
    def _grades(self, family: Domain) -> Grades:
        """What the options say about the states at each place of a family."""

    @abstractmethod
    def _named(self) -> Mapping[str, Mapping[Any, Any]]:
        """The options that are dicts by name, by what they are called."""

    @abstractmethod
    def _from_numbers(self, family: Domain, values: Any) -> NoisyMaxNode:
        """The node of given numbers."""

    def check(self, family: Domain) -> None:
        """Node and parents have states; how many the node has is checked when they are known."""
        check_discrete(self.kind, family)
        for option, given in self._named().items():
            unknown = [name for name in given if name not in family]
            if unknown:
                title: str = self.node_class.option  # type: ignore[attr-defined]
                raise OptionError(
                    f"{title}({option}=...) of {family.names[-1]!r} names {listing(unknown)}; expected the node or one "
                    f"of its parents {listing(family.names[:-1])}."
                )

    def learner(self, family: Domain, options: NodeOptions) -> NodeLearner:
        """By Newton's method from the counts of the family."""
        title: str = self.node_class.title  # type: ignore[attr-defined]
        pseudo = noisy_prior(options.prior, family, title)
        if options.estimate == "mean" and pseudo is not None:
            raise OptionError(
                f"estimate='mean': the posterior mean of the {title} node {family.names[-1]!r} has no closed form. "
                "Use estimate='map', or leave it out: such nodes then have the MAP estimate."
            )
        return NoisyMaxLearner(self._grades(family), self.leak, pseudo, options.unseen)

    def given(self, family: Domain, values: Any, options: NodeOptions) -> NoisyMaxNode:
        """A dict of numbers, or a fitted node."""
        if isinstance(values, NoisyMaxNode):
            refuse_other_layout(values, family)
            return values
        return self._from_numbers(family, values)

    def renamed(self, names: Mapping[Hashable, Hashable]) -> Self:
        """The same with other names."""
        named = {
            option: {names[name]: state for name, state in given.items() if name in names} or None
            for option, given in self._named().items()
        }
        return replace(self, **named)  # type: ignore[type-var]

    def n_params(self, family: Domain) -> int:
        """Weights of a node over a family: for each state above the lowest those of the active states and the leak."""
        causes = int(self.leak) + sum(card - 1 for card in family.shape(family.names[:-1]))
        return causes * (family.variables[-1].card - 1)

    def factor_scopes(self, family: Domain) -> list[tuple[Hashable, ...]]:
        """Variables of the tables that a node over a family brings into the junction tree."""
        return factor_scopes(family, self.leak)


@dataclass(frozen=True)
class NoisyOr(NoisyKind):
    """A noisy-OR node: each active parent may cause the node by itself; parameters grow linearly with the parents.

    P(absent | parents) = exp(-(w_0 + sum of w[state])), w >= 0. The node has two states; its parents two or more.

    Args:
        leak: whether the node may be present when no parent is active.
        active: by name, the state of the node that means present, and the active state of a parent (a list of them
            where it has more than two states; exactly one is inactive). Where a name is left out, the first state is
            absent or inactive.

    A prior is a number of pseudo-counts: each cause fails and works that many times by itself. The estimate is then the
    MAP in the inhibition probabilities, whose prior is Beta(1 + number, 1 + number).

    >>> import suffice as sf
    >>> rows = {"flu": [0, 0, 1, 1, 1, 1], "fever": [0, 0, 0, 1, 1, 1]}
    >>> net = sf.BayesianNetwork([("flu", "fever")], nodes={"fever": sf.NoisyOr(leak=False)}).fit(rows)
    >>> net.node("fever").inhibitors_["flu"][1].__round__(6)
    0.25
    """

    leak: bool = True
    active: Mapping[Any, Any] | None = None

    kind: ClassVar[str] = NoisyOrNode.kind
    node_class: ClassVar[type[Node]] = NoisyOrNode

    def __post_init__(self) -> None:
        """Check the options."""
        if not isinstance(self.leak, bool) or not isinstance(self.active, Mapping | None):
            raise OptionError(
                f"NoisyOr takes leak=True or False and active={{name: state}}; found {self.leak!r}, {self.active!r}."
            )

    def _named(self) -> Mapping[str, Mapping[Any, Any]]:
        """The active states."""
        return {"active": self.active or {}}

    def _from_numbers(self, family: Domain, values: Any) -> NoisyOrNode:
        """A dict {"leak": probability, "inhibitors": {parent: probability or {state: probability}}}."""
        if not isinstance(values, Mapping) or set(values) != {"leak", "inhibitors"}:
            raise OptionError(
                f"fixed[{family.names[-1]!r}] is {values!r}; a noisy-OR node is given as {{'leak': probability, "
                "'inhibitors': {parent: probability}}, or as a fitted node."
            )
        order, inactive = self._grades(family).read(family)
        return given_noisy_or(family, order, inactive, values["leak"], values["inhibitors"])

    def _grades(self, family: Domain) -> ActiveStates:
        """The active states at each place of the family, None where nothing is said."""
        active = self.active or {}
        listed = (active.get(name) for name in family.names)
        return ActiveStates(
            tuple(
                None if states is None else tuple(states) if isinstance(states, list | set) else (states,)
                for states in listed
            )
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a file."""
        return {"leak": self.leak, "active": None if self.active is None else dict(self.active)}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> NoisyOr:
        """Rebuild from plain data."""
        return cls(leak=plain["leak"], active=plain["active"])


@dataclass(frozen=True)
class NoisyMax(NoisyKind):
    """A noisy-MAX node: each parent brings about a state by itself, and the node is in the largest of them.

    P(node <= y | parents) is the product of what the leak and each parent in its state do not exceed y with. A
    `NoisyOr` is the case of two states; parameters grow linearly with the parents.

    Args:
        leak: whether the node may be above its lowest state when no parent is active.
        order: the states of the node from the lowest, which nothing causes, to the highest; this declares them, where
            states= does not. By default they are as declared; three or more texts that were only seen in rows have no
            order, and need one.
        inactive: by name, the state of a parent that causes nothing; by default its first one. The states of parents
            need no order: each has parameters of its own.

    A prior is a number of pseudo-counts: each cause by itself brings about every state that many times. The estimate is
    then the MAP in what each cause brings about, whose prior is Dirichlet(1 + number, ...).

    >>> import suffice as sf
    >>> rows = {"flu": [0, 0, 1, 1, 1, 1], "fever": ["no", "no", "no", "mild", "high", "high"]}
    >>> kind = sf.NoisyMax(leak=False, order=["no", "mild", "high"])
    >>> net = sf.BayesianNetwork([("flu", "fever")], nodes={"fever": kind}).fit(rows)
    >>> net.node("fever").causes_["flu"][1]["high"].__round__(6)
    0.5
    """

    leak: bool = True
    order: Sequence[Any] | None = None
    inactive: Mapping[Any, Any] | None = None

    kind: ClassVar[str] = NoisyMaxNode.kind
    node_class: ClassVar[type[Node]] = NoisyMaxNode

    def __post_init__(self) -> None:
        """Check the options."""
        listed = self.order is None or (isinstance(self.order, Sequence) and not isinstance(self.order, str))
        if not isinstance(self.leak, bool) or not listed or not isinstance(self.inactive, Mapping | None):
            raise OptionError(
                "NoisyMax takes leak=True or False, order=[lowest, ..., highest] and inactive={parent: state}; found "
                f"{self.leak!r}, {self.order!r}, {self.inactive!r}."
            )

    @property
    def states(self) -> tuple[Hashable, ...] | None:
        """The states of the node, which an order lists."""
        return None if self.order is None else tuple(self.order)

    def agrees(self, declared: Variable) -> bool:
        """Whether the same states are declared; there in the order of tables, here in that of the causes."""
        return self.order is None or set(map(state_key, declared.states)) == set(map(state_key, self.order))

    def _named(self) -> Mapping[str, Mapping[Any, Any]]:
        """The inactive states."""
        return {"inactive": self.inactive or {}}

    def check(self, family: Domain) -> None:
        """The inactive states are those of parents."""
        super().check(family)
        if family.names[-1] in (self.inactive or {}):
            raise OptionError(
                f"NoisyMax(inactive=...) names the node {family.names[-1]!r} itself, whose lowest state nothing "
                "causes. Name that state first in order=[...]."
            )

    def _from_numbers(self, family: Domain, values: Any) -> NoisyMaxNode:
        """A dict {"leak": P(node), "causes": {parent: {state: P(node)}}}, probabilities by state or in their order."""
        name = family.names[-1]
        if not isinstance(values, Mapping) or set(values) != {"leak", "causes"}:
            raise OptionError(
                f"fixed[{name!r}] is {values!r}; a noisy-MAX node is given as {{'leak': {{state: probability}}, "
                "'causes': {parent: {state: {state: probability}}}}, or as a fitted node."
            )
        order, inactive = self._grades(family).read(family)
        parents = family.names[:-1]
        if not isinstance(values["causes"], Mapping) or set(values["causes"]) != set(parents):
            raise OptionError(
                f"The causes of {name!r} are {values['causes']!r}; expected {listing(parents)}, one each."
            )
        rows = [("the leak", values["leak"])]
        causes: Any = labels_of(family, inactive, leak=False)
        for parent, state in causes:
            given = values["causes"][parent]
            if not isinstance(given, Mapping) or state not in given:
                raise OptionError(f"The causes of {name!r} lack the state {state!r} of {parent!r}.")
            rows.append((f"{parent!r} = {state!r}", given[state]))
        own = family.select([name])
        shares = [_distribution(by_label(row, own, "given cause"), own, what)[list(order)] for what, row in rows]
        return given_noisy_max(family, order, inactive, np.stack(shares))

    def _grades(self, family: Domain) -> OrderedStates:
        """The order of the node, and the inactive state at each place of a parent, None where nothing is said."""
        inactive = self.inactive or {}
        places = tuple((inactive[name],) if name in inactive else None for name in family.names[:-1])
        return OrderedStates(None if self.order is None else tuple(self.order), places)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a file."""
        return {
            "leak": self.leak,
            "order": None if self.order is None else list(self.order),
            "inactive": None if self.inactive is None else dict(self.inactive),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Rebuild from plain data."""
        return cls(leak=plain["leak"], order=plain["order"], inactive=plain["inactive"])


def _distribution(given: Any, own: Domain, what: str) -> Floats:
    """What one cause brings about (card,), checked."""
    values = np.asarray(given, dtype=np.float64)
    name, card = own.names[0], own.variables[0].card
    if values.shape != (card,) or not (values >= 0).all() or abs(float(values.sum()) - 1) > ROUNDED:
        raise OptionError(
            f"What {what} causes in {name!r} is {values.tolist()!r}; expected {card} probabilities that add up to 1."
        )
    return np.asarray(values / values.sum())


def given_noisy_max(domain: Domain, order: tuple[int, ...], inactive: tuple[int, ...], shares: Floats) -> NoisyMaxNode:
    """A node from what the leak and each cause bring about (m, states), in the order of the states."""
    below = np.cumsum(shares, axis=1)
    below[:, -1] = 1.0
    # P(below a state | not above it); where that state cannot be, whatever is said of it has no effect.
    with np.errstate(divide="ignore", invalid="ignore"):
        weights = -np.log(np.where(below[:, 1:] > 0, below[:, :-1] / below[:, 1:], 1.0)) + 0.0
    return NoisyMaxNode(domain, np.maximum(weights, 0.0).ravel(), order, inactive)
