"""Tables with constraints as a kind of node: its options, and how it is learned."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np

from suffice.array_types import Floats
from suffice.domain import Domain, Variable, state_key
from suffice.errors import EstimateError, OptionError, SizeError, listing
from suffice.models.bayesian.label_indexed import by_label
from suffice.models.bayesian.nodes.constrained_table import ConstrainedTableNode, with_limits
from suffice.models.bayesian.nodes.contract import Node, NodeKind, NodeLearner, NodeOptions
from suffice.models.bayesian.nodes.families import check_discrete, refuse_other_layout
from suffice.models.bayesian.nodes.graded import order_of
from suffice.models.bayesian.nodes.table import TableNode
from suffice.models.bayesian.nodes.table_learner import DirichletRows
from suffice.models.bayesian.nodes.table_region import MOST_CELLS, TableLimits, TableRegion, region_of
from suffice.models.bayesian.priors import table_prior
from suffice.statistics import Counts, Statistic, Summary
from suffice.table import Table


@dataclass(frozen=True)
class Monotone:
    """A constraint on the arc from a parent: the node rises ("+") or falls ("-") in the states of the parent.

    From each state of the parent to the next, all other parents equal, P(node >= y) does not fall (or does not rise)
    for any state y of the node: the distribution is stochastically increasing (or decreasing).

    Args:
        direction: "+" or "-".
        order: the states of the parent from the lowest to the highest; by default as they are declared, or by number.
    """

    direction: Literal["+", "-"] = "+"
    order: Sequence[Any] | None = None

    def __post_init__(self) -> None:
        """Check the options."""
        listed = self.order is None or (isinstance(self.order, Sequence) and not isinstance(self.order, str))
        if self.direction not in ("+", "-") or not listed:
            raise OptionError(
                f"Monotone takes '+' or '-', and order=[lowest, ..., highest]; found {self.direction!r}, "
                f"{self.order!r}."
            )

    def codes(self, parent: Variable, node: Hashable) -> tuple[int, ...]:
        """The codes of the states of a parent, along which the node rises."""
        order = None if self.order is None else tuple(self.order)
        where = f"Monotone({self.direction!r}, order=[...]) on the arc from {parent.name!r} to {node!r}"
        codes = order_of(parent, order, where)
        return codes if self.direction == "+" else codes[::-1]


#: Bounds of a table, or of a state: a number, an array or a Table of its probabilities; None for none.
Bound = Any


@dataclass(frozen=True)
class ConstrainedTable(NodeKind):
    """A table whose rows keep constraints: the estimate is the best of all tables that keep them.

    Args:
        arcs: by parent a `Monotone`, or its sign.
        bounds: a pair (lower, upper) for the whole table, each a number, an array with axes (parents, node), a `Table`,
            or None; or a dict by state of the node with such pairs, each a number or an array with the axes of the
            parents.
        order: the states of the node from the lowest to the highest, which `Monotone` speaks of; by default as they are
            declared. Three or more texts that were only seen in rows have no order.

    Learned exactly by isotonic regression where the node has two states and one arc has a direction, else by an
    interior-point method; the certificate comes from multipliers that no solver has seen. Without `estimate=`, the
    pseudo-counts of a prior join the counts, as in other tables; the estimate is then a MAP.

    >>> import suffice as sf
    >>> rows = {"dose": [0, 0, 1, 1, 2, 2], "well": [0, 1, 0, 0, 1, 1]}
    >>> kind = sf.ConstrainedTable({"dose": sf.Monotone("+")})
    >>> net = sf.BayesianNetwork([("dose", "well")], nodes={"well": kind}).fit(rows)
    >>> net.table("well").values[:, 1].tolist()
    [0.25, 0.25, 1.0]
    """

    arcs: Mapping[Any, Any] = field(default_factory=dict)
    bounds: Any = None
    order: Sequence[Any] | None = None

    kind: ClassVar[str] = ConstrainedTableNode.kind
    node_class: ClassVar[type[Node]] = ConstrainedTableNode
    column: ClassVar[Literal["discrete", "real"]] = "discrete"

    def __post_init__(self) -> None:
        """Check the options."""
        listed = self.order is None or (isinstance(self.order, Sequence) and not isinstance(self.order, str))
        if not isinstance(self.arcs, Mapping) or not listed:
            raise OptionError(
                "ConstrainedTable takes {parent: Monotone('+')}, bounds= and order=[lowest, ..., highest]; found "
                f"{self.arcs!r} and order={self.order!r}."
            )
        arcs = {name: Monotone(arc) if isinstance(arc, str) else arc for name, arc in self.arcs.items()}  # type: ignore[arg-type]
        for name, arc in arcs.items():
            if not isinstance(arc, Monotone):
                raise OptionError(f"The arc from {name!r} is {arc!r}; expected Monotone('+'), Monotone('-') or a sign.")
        object.__setattr__(self, "arcs", arcs)
        pairs = list(self.bounds.values()) if isinstance(self.bounds, Mapping) else [self.bounds]
        if self.bounds is not None and not all(isinstance(p, tuple | list) and len(p) == 2 for p in pairs):
            raise OptionError(
                f"bounds is {self.bounds!r}; expected (lower, upper), or a dict by state of the node with such pairs."
            )

    @property
    def states(self) -> tuple[Hashable, ...] | None:
        """The states of the node, which an order lists."""
        return None if self.order is None else tuple(self.order)

    def agrees(self, declared: Variable) -> bool:
        """Whether the same states are declared, in whatever order."""
        return self.order is None or set(map(state_key, declared.states)) == set(map(state_key, self.order))

    def renamed(self, names: Mapping[Hashable, Hashable]) -> NodeKind | str:
        """The same with other names; a plain table where no constraint is left."""
        arcs = {names[name]: arc for name, arc in self.arcs.items() if name in names}
        return replace(self, arcs=arcs) if arcs or self.bounds is not None else TableNode.kind

    def check(self, family: Domain) -> None:
        """Node and parents have states, and arcs come from parents."""
        check_discrete(self.kind, family)
        unknown = [name for name in self.arcs if name not in family.names[:-1]]
        if unknown:
            raise OptionError(
                f"ConstrainedTable of {family.names[-1]!r} names arcs from {listing(unknown)}; expected some of its "
                f"parents {listing(family.names[:-1])}."
            )

    def learner(self, family: Domain, options: NodeOptions) -> NodeLearner:
        """By isotonic regression, or an interior-point method."""
        name = family.names[-1]
        if not self.arcs and self.bounds is None:
            raise OptionError(
                f"ConstrainedTable of {name!r} has no constraint. Give {{parent: Monotone('+')}} or bounds=, or choose "
                "'table'."
            )
        prior = table_prior(options.prior, family, options.sample_size)
        if options.estimate == "mean" and prior is not None:
            raise OptionError(
                f"estimate='mean': the posterior mean of {name!r}, a table with constraints, has no closed form. Use "
                "estimate='map', or leave it out: the pseudo-counts then join the counts."
            )
        if options.unseen == "nan" and prior is None:
            raise OptionError(
                f"unseen='nan': the constraints of {name!r} hold rows without data between others. Use 'uniform' (as "
                "near to it as they allow) or 'raise', or give a prior=."
            )
        arcs = tuple(self.arcs.get(parent) for parent in family.names[:-1])
        return ConstrainedTableLearner(
            Limits(arcs, self.bounds, None if self.order is None else tuple(self.order)),
            prior,
            options.estimate == "map",
            options.unseen,
        )

    def given(self, family: Domain, values: Any, options: NodeOptions) -> ConstrainedTableNode:
        """An array with axes (parents, node), values by label, or a fitted node; they must keep the constraints."""
        if isinstance(values, ConstrainedTableNode):
            refuse_other_layout(values, family)
            return values
        values = values.table_ if isinstance(values, TableNode) else values
        node = TableNode.given(family, by_label(values, family, "given table"))
        learner: Any = self.learner(family, NodeOptions())
        try:
            return with_limits(node, learner.limits.resolved(family))
        except EstimateError as error:
            raise OptionError(f"fixed[{family.names[-1]!r}] does not keep its constraints. {error}") from None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a file."""
        arcs = [
            [name, arc.direction, None if arc.order is None else list(arc.order)] for name, arc in self.arcs.items()
        ]
        bounds = self.bounds
        if isinstance(bounds, Mapping):
            bounds = [[state, list(pair)] for state, pair in bounds.items()]
        elif bounds is not None:
            bounds = list(bounds)
        return {
            "arcs": arcs,
            "bounds": bounds,
            "by_state": isinstance(self.bounds, Mapping),
            "order": None if self.order is None else list(self.order),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Rebuild from plain data."""
        arcs = {name: Monotone(direction, order) for name, direction, order in plain["arcs"]}
        bounds = plain["bounds"]
        if plain["by_state"]:
            bounds = {state: tuple(pair) for state, pair in bounds}
        elif bounds is not None:
            bounds = tuple(bounds)
        return cls(arcs, bounds, plain["order"])


@dataclass(frozen=True, eq=False)
class Limits:
    """The constraints of a table as options give them: an arc at the place of each parent, or None."""

    arcs: tuple[Monotone | None, ...]
    bounds: Any
    order: tuple[Hashable, ...] | None

    def __eq__(self, other: object) -> bool:
        """The same constraints, place by place."""
        if not isinstance(other, Limits) or (self.arcs, self.order) != (other.arcs, other.order):
            return False
        return bool(_plain(self.bounds) == _plain(other.bounds))

    __hash__ = None  # type: ignore[assignment]

    def resolved(self, family: Domain) -> TableLimits:
        """By code, for a family (parents, node); what contradicts itself is an error."""
        *parents, node = family.variables
        arcs = tuple(
            None if arc is None else arc.codes(parent, node.name)
            for arc, parent in zip(self.arcs, parents, strict=True)
        )
        order: tuple[int, ...] = tuple(range(node.card))
        if any(arc is not None for arc in arcs):
            order = order_of(node, self.order, f"nodes={{{node.name!r}: ConstrainedTable(..., order=[...])}}")
        size = math.prod(len(arc) for arc in arcs if arc is not None) * node.card
        if size > MOST_CELLS:
            raise SizeError(
                f"The arcs with a direction tie {size:,} probabilities of {node.name!r} to each other; the limit is "
                f"{MOST_CELLS:,}. Leave the direction of some arcs open, or give their parents fewer states."
            )
        lower, upper = self._bounds(family)
        wrong = (lower.sum(axis=1) > 1 + 1e-12) | (upper.sum(axis=1) < 1 - 1e-12) | (lower > upper).any(axis=1)
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            codes = np.unravel_index(row, family.cards[:-1]) if parents else ()
            where = {v.name: v.states[int(code)] for v, code in zip(parents, codes, strict=True)}
            raise OptionError(
                f"The bounds of {node.name!r}{f' at {where!r}' if where else ''} leave no distribution: lower "
                f"{listing(lower[row].tolist())}, upper {listing(upper[row].tolist())}; expected lower <= upper, with "
                "sums around 1."
            )
        return TableLimits(arcs, order, lower, upper)

    def region(self, family: Domain, limits: TableLimits) -> TableRegion:
        """All tables that keep the constraints; none is an error."""
        try:
            return region_of(family.cards, limits)
        except EstimateError:
            raise OptionError(
                f"No table of {family.names[-1]!r} keeps its constraints: the bounds contradict the directions of its "
                "arcs. Widen the bounds, or leave the direction of an arc open."
            ) from None

    def _bounds(self, family: Domain) -> tuple[Floats, Floats]:
        """Lower and upper bounds (rows, card)."""
        node, shape = family.variables[-1], family.cards
        lower, upper = np.zeros(shape), np.ones(shape)
        if isinstance(self.bounds, Mapping):
            for state, pair in self.bounds.items():
                code = node.index(state)
                for bounds, given in zip((lower, upper), pair, strict=True):
                    if given is not None:
                        bounds[..., code] = _numbers(given, shape[:-1], f"bounds of {node.name!r} at {state!r}")
        elif self.bounds is not None:
            for bounds, given in zip((lower, upper), self.bounds, strict=True):
                if given is not None:
                    values = by_label(given, family, "bounds") if isinstance(given, Table) else given
                    bounds[...] = _numbers(values, shape, f"bounds of {node.name!r}")
        rows = (math.prod(shape[:-1]), shape[-1])
        return lower.reshape(rows), upper.reshape(rows)


def _plain(bounds: Any) -> Any:
    """Bounds as lists, which can be compared."""
    if isinstance(bounds, Mapping):
        return {state: _plain(pair) for state, pair in bounds.items()}
    if isinstance(bounds, tuple | list):
        return [_plain(one) for one in bounds]
    return bounds.values.tolist() if isinstance(bounds, Table) else np.asarray(bounds).tolist()


def _numbers(given: Any, shape: tuple[int, ...], what: str) -> Floats:
    """Probabilities of a shape, from a number or an array."""
    try:
        values = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.array([np.nan])
    if values.shape not in ((), shape) or not ((values >= 0) & (values <= 1)).all():
        raise OptionError(
            f"The {what} are {given!r}; expected a number from 0 to 1, or an array or Table of them of shape {shape}."
        )
    return values


@dataclass(frozen=True)
class ConstrainedTableLearner(NodeLearner):
    """Learns a table with constraints from the counts of its family, expected ones too.

    `mode` says that the estimate is the mode under the prior itself; else its pseudo-counts join the counts, which is
    the mode under one more of each.
    """

    limits: Limits
    prior: DirichletRows | None = None
    mode: bool = False
    unseen: str = "uniform"

    def for_em(self, *, filled: bool) -> Self:
        """Rows without weight are defined in the steps."""
        return replace(self, unseen="uniform") if filled else self

    def statistics(self, domain: Domain) -> tuple[Statistic, ...]:
        """The counts of the family."""
        return (Counts(domain.names),)

    def learn(self, domain: Domain, summary: Summary) -> ConstrainedTableNode:
        """The fitted table."""
        name, card = domain.names[-1], domain.variables[-1].card
        limits = self.limits.resolved(domain)
        region = self.limits.region(domain, limits)
        counts = summary[Counts(domain.names)].dense().reshape(-1, card).astype(np.float64)
        alpha = None if self.prior is None else self.prior.rows(None, card) * np.ones((len(counts), 1))
        if alpha is not None and not self.mode:
            alpha = alpha + 1.0
        both = counts if alpha is None else counts + (alpha - 1.0)
        if (both < 0).any():
            raise EstimateError(
                f"The posterior of {name!r} has no single mode: some row has count + pseudo-count below 1. Leave "
                "estimate='map' out, or give pseudo-counts above 1."
            )
        default = np.full(card, 1.0 / card)
        try:
            rows, rested = region.most_likely(both, default)
        except EstimateError as error:
            raise EstimateError(f"{name!r} cannot be learned: {error}. Widen bounds=.") from None
        empty = int(np.count_nonzero(both.sum(axis=1) <= 0))
        remarks = []
        if empty and self.unseen == "raise":
            raise EstimateError(
                f"{empty} parent configurations of {name!r} never occur, so their row is undefined. Give a prior=, or "
                "unseen='uniform'."
            )
        if empty:
            remarks.append(
                f"{empty} parent configurations of {name!r} never occur; their rows are as near to uniform as its "
                "constraints allow"
            )
        if not rested:
            remarks.append(f"The table of {name!r} did not come to rest; the certificate says how far it is.")
        return ConstrainedTableNode(
            domain,
            rows,
            counts,
            default,
            alpha=alpha,
            estimate="mle" if alpha is None else "map",
            arcs=limits.arcs,
            order=limits.order,
            lower=limits.lower,
            upper=limits.upper,
            learned="isotonic regression" if region.chain else "interior points",
            remarks=tuple(remarks),
        )
