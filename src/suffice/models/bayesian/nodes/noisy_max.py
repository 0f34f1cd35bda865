"""A noisy-MAX node: each parent brings about a state of its own accord, and the node is in the largest of them.

The states of the node have an order, whose lowest is that which nothing causes. P(node <= y | parents) is the product
of the probabilities that the leak and each parent by itself do not exceed y. With weights that are not negative, in
their sum t the probability of y among the rows that do not exceed it is 1 - exp(-t(y)), and that of the rows not to
exceed y is exp(-(sum over the states z above y of t(z))). The weights of the inactive state of a parent are 0.
``q = exp(-w)`` is the probability that a cause stays below a state that it does not exceed. Parameters grow linearly
with the parents. With two states this is a noisy-OR: each active parent may cause the node by itself.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.domain import MOST_AXES, Domain, Variable
from suffice.errors import EstimateError, FileFormatError, SizeError
from suffice.fitting.report import in_standard_errors
from suffice.models.bayesian.nodes.contract import Columns, Factor, UnitFree
from suffice.models.bayesian.nodes.noisy_max_chain import (
    ChainCounts,
    chain_scopes,
    chain_tables,
    learned_by_chain,
    log_shares_of,
    queried_by_chain,
    shares_of,
)
from suffice.models.bayesian.nodes.noisy_max_trials import Trials, levels_of, pseudo_of
from suffice.models.bayesian.nodes.regressions import fresh_name
from suffice.records import checked
from suffice.statistics import Counts, Summary
from suffice.table import Table

if TYPE_CHECKING:
    from suffice.fitting.inference import Inference
    from suffice.models.bayesian.em.coordinates import Coordinates, Units


#: Cells of a table that is still written out.
MOST_CELLS = 2**24


@dataclass(frozen=True)
class NoisyMaxNode(UnitFree):
    """A fitted or given noisy-MAX node.

    `weights` holds those of each cause for the states above the lowest (m times L): of the leak first, where there is
    one, then of the active states of each parent, in declared order; they may be inf (the cause never stays below).
    `order` lists the codes of the states of the node from the lowest, `inactive` (p,) the codes of the states of the
    parents that cause nothing. `errors` (m L,) are standard errors, `pseudo` the pseudo-counts of the prior, `size` the
    weight of the rows learned.
    """

    domain: Domain
    weights: Floats
    order: tuple[int, ...]
    inactive: tuple[int, ...]
    leak: bool = True
    errors: Floats | None = None
    pseudo: float | None = None
    size: float = 0.0
    estimate: str = "given"
    notes: tuple[str, ...] = ()
    directions: tuple[str, ...] = ()
    #: Standard errors from the observed information, where rows had missing values.
    observed: Any = field(default=None, compare=False, repr=False)

    kind: ClassVar[str] = "noisy-max"
    method: ClassVar[str] = "Newton's method"
    #: What messages call it and its kind, and what to read of one whose table is too large.
    title: ClassVar[str] = "noisy-MAX"
    option: ClassVar[str] = "NoisyMax"
    readable: ClassVar[str] = "node(name).weights_, .causes_ and .leak_"

    # -- shape -------------------------------------------------------------------------------------------------------

    @property
    def n_params(self) -> int:
        """Free parameters: for each state above the lowest one of each active state of each parent, and of the leak."""
        return len(self.weights)

    @property
    def n_levels(self) -> int:
        """States above the lowest."""
        return len(self.order) - 1

    @cached_property
    def by_cause(self) -> Floats:
        """The weights (m, L) of each cause."""
        return self.weights.reshape(-1, self.n_levels)

    @cached_property
    def places(self) -> tuple[NDArray[np.intp], ...]:
        """For each parent the number of the cause that each state is; -1 for the inactive one."""
        return places_of(self.domain, self.inactive, self.leak)

    @cached_property
    def effects(self) -> tuple[Floats, ...]:
        """For each parent the weights (states, L), 0 for the inactive state."""
        padded = np.concatenate([self.by_cause, np.zeros((1, self.n_levels))])
        return tuple(padded[places] for places in self.places)

    @property
    def coefficients(self) -> tuple[Hashable, ...]:
        """Labels of the causes: the leak, then (parent, state)."""
        return labels_of(self.domain, self.inactive, self.leak)

    @property
    def levels(self) -> tuple[Hashable, ...]:
        """The states above the lowest, in their order."""
        states = self.domain.variables[-1].states
        return tuple(states[code] for code in self.order[1:])

    @property
    def labels(self) -> tuple[Hashable, ...]:
        """Labels of all weights: of the cause, with the state of a node that has more than two."""
        return weight_labels(self.coefficients, self.levels)

    # -- reading -----------------------------------------------------------------------------------------------------

    def coefficient_table(self, values: Floats) -> Table:
        """Values (m L,) of the weights, by label: cause and state of the node."""
        axis = Variable.discrete(fresh_name("coefficient", set(self.domain.names)), self.coefficients)
        return Table(Domain([axis, Variable.discrete(self.name, self.levels)]), values.reshape(-1, self.n_levels))

    @property
    def weights_(self) -> Table:
        """The weights by label: ``"(leak)"``, then ``(parent, state)``; and the states above the lowest."""
        return self.coefficient_table(self.weights)

    @property
    def alone(self) -> tuple[Floats, tuple[Floats, ...]]:
        """What the leak (states,), and each parent in its states (states of the parent, states), brings about alone."""
        places = np.argsort(self.order)
        leak, *others = (shares_of(weights)[..., places] for weights in (self._leak_weights, *self.effects))
        return leak, tuple(others)

    @property
    def leak_(self) -> Any:
        """P(node) when no parent is active, by state."""
        return self._by_state(self.alone[0])

    @property
    def causes_(self) -> dict[Hashable, dict[Hashable, dict[Hashable, float]]]:
        """What each parent brings about by itself, without the leak: by parent and its state P(node), by state."""
        return {
            parent.name: {s: self._by_state(row) for s, row in zip(parent.states, effect, strict=True)}
            for parent, effect in zip(self.domain.variables[:-1], self.alone[1], strict=True)
        }

    def _by_state(self, shares: Floats) -> dict[Hashable, float]:
        """Probabilities by state."""
        return dict(zip(self.domain.variables[-1].states, shares.tolist(), strict=True))

    @property
    def table_(self) -> Table:
        """P(node | parents) with axes (parents, node); a table too large for memory is an error."""
        shape = self.domain.shape(self.domain.names)
        if math.prod(shape) > MOST_CELLS or len(shape) > MOST_AXES:
            raise SizeError(
                f"The table of {self.name!r} given its {len(self.parents)} parents has {math.prod(shape):,} cells. "
                f"Read {self.readable} instead."
            )
        outer = len(self.parents)
        strength = self._leak_weights.reshape([1] * outer + [-1])
        for axis, effect in enumerate(self.effects):
            strength = strength + effect.reshape([len(effect) if k == axis else 1 for k in range(outer)] + [-1])
        return Table(self.domain, np.ascontiguousarray(shares_of(strength)[..., np.argsort(self.order)]))

    @property
    def _leak_weights(self) -> Floats:
        return self.by_cause[0] if self.leak else np.zeros(self.n_levels)

    def factors(self) -> list[Factor]:
        """The table; of a large family a chain of tables: what is the largest that the first 1, 2, ... parents cause?

        So does a family of many joint states, whose table would be larger than those of the chain.
        """
        return self._chain() if queried_by_chain(self.domain) else [(self.domain.names, self.table_.values)]

    def expectation_factors(self) -> list[Factor]:
        """The table, or the chain where the family has so many joint states that EM learns from the chain."""
        return self._chain() if learned_by_chain(self.domain) else [(self.domain.names, self.table_.values)]

    def _chain(self) -> list[Factor]:
        tables = chain_tables(self._leak_weights if self.leak else None, self.effects, self.order)
        return list(zip(chain_scopes(self.domain, self.leak), tables, strict=True))

    # -- errors and the posterior ------------------------------------------------------------------------------------

    @property
    def standard_errors_(self) -> Table:
        """Of the weights, in the shape of `weights_`, from the observed information (with the prior's pseudo-rows).

        NaN for weights of 0 or inf, where the likelihood has no normal limit, and inf for weights that the rows do not
        determine.
        """
        if self.observed is not None:
            # Those of q = exp(-w), so that dw = dq / q.
            return self.coefficient_table(self.observed.of(self.name) / self.parameters())
        if self.errors is None:
            raise EstimateError(f"{self.name!r} was not learned from rows, so its weights have no standard errors.")
        return self.coefficient_table(self.errors)

    def inference(self) -> Inference:
        """What the rows say about each parameter."""
        from suffice.models.bayesian.nodes.estimates import of_tables

        return of_tables(self.name, self.weights_, self.error_table())

    def error_table(self) -> Table:
        """The standard errors by label."""
        return self.standard_errors_

    @property
    def posterior_(self) -> Any:
        """Refused: the posterior of the weights has no closed form."""
        raise EstimateError(
            f"{self.name!r} is a {self.title} node: its posterior has no closed form. Its weights are the MAP "
            "estimate, and standard_errors_ give their spread."
        )

    def predictive_log_prob(self, columns: Columns) -> Floats:
        """Refused, as `posterior_` is."""
        return np.asarray(self.posterior_)

    def log_evidence(self) -> float | None:
        """None: it has no closed form."""
        return None

    # -- the objective -----------------------------------------------------------------------------------------------

    def trials(self, summary: Summary) -> tuple[Trials, ...]:
        """The counts of the family by distinct causes, for each state above the lowest."""
        return levels_of(self.places, self.leak, self.order, *summary[Counts(self.domain.names)].items())

    def _by_level(self, summary: Summary) -> list[tuple[Trials, Floats, tuple[float, float]]]:
        """The trials of each level with their weights and pseudo-rows."""
        return [
            (trials, self.by_cause[:, level], pseudo_of(self.pseudo, level + 1))
            for level, trials in enumerate(self.trials(summary))
        ]

    def log_likelihood(self, summary: Summary) -> float:
        """Sum over rows of log P(node | parents), -inf where an impossible event occurs."""
        return sum([trials.log_likelihood(weights) for trials, weights, _ in self._by_level(summary)])

    def loss_bound(self, summary: Summary) -> float | None:
        """The duality gaps of the convex problems of all levels at these weights, pseudo-rows included."""
        total = 0.0
        for plain, weights, pseudo in self._by_level(summary):
            trials = plain.with_pseudo(pseudo)
            loss = trials.upper_bound(weights) - trials.log_likelihood(weights)
            if not math.isfinite(loss):
                return None
            total += max(loss, 0.0)
        return total

    def edges(self, summary: Summary) -> tuple[str, ...]:
        """The weights that run to infinity, and those of 0 without which a state never occurs.

        The probability of the state is then 0 where no cause of another weight is active. Without a leak that is so by
        choice where no parent is active, and no edge.
        """
        idle = self.by_cause == 0
        if self.leak:
            idle[1:] = False
        else:
            idle &= np.stack([trials.seen + trials.absent > 0 for trials in self.trials(summary)], axis=1)
        never = [f"weight of {self.labels[weight]!r} in {self.name!r} -> 0" for weight in np.flatnonzero(idle).tolist()]
        return (*self.directions, *(f"{text} (never seen to work alone)" for text in never))

    def gap(self, summary: Summary) -> float:
        """Largest violation of the conditions for a maximum over weights >= 0, a row.

        That is the slope of a weight above 0, and what the slope of a weight of 0 exceeds 0 by.
        """
        if self.estimate == "given":
            return 0.0
        slope = self._gradient(summary)
        known = ~np.isnan(self.weights)
        violation = np.where(self.weights[known] > 0, np.abs(slope[known]), np.maximum(slope[known], 0.0))
        return float(violation.max(initial=0.0) / max(summary.weight, 1.0))

    def _gradient(self, summary: Summary) -> Floats:
        """Slopes (m L,) of the objective in the weights, from the counts of the family."""
        slopes = [trials.gradient(weights, pseudo) for trials, weights, pseudo in self._by_level(summary)]
        return np.stack(slopes, axis=1).ravel()

    def steepest(self, summary: Summary, least: float = 0.0) -> tuple[float, float]:
        """Of the slopes in the logits of the inhibition probabilities q: failures less those expected, n q (1 - q).

        By Fisher's identity they are those of the trials of each cause, n of them, as if each were seen by itself. A
        weight of 0, whose cause always fails, is on the edge: a slope counts that leads inside.
        """
        if self.estimate == "given":
            return 0.0, 0.0
        slope, tried = self._slopes_and_trials(summary)
        inhibitors = self.parameters()
        inside, edge = (inhibitors > 0) & (inhibitors < 1), inhibitors == 1
        spread = inhibitors * (1 - inhibitors)
        # By the weight w = -log q, the slope is -q times that by q.
        slopes = np.concatenate([(slope * spread)[inside], np.maximum(-np.nan_to_num(slope[edge]), 0.0)])
        variance = np.concatenate([(tried * spread)[inside], tried[edge]])
        return in_standard_errors(slopes, variance), float(np.abs(slopes).max(initial=0.0))

    def slopes(self, summary: Summary) -> Floats:
        """Slopes (m L,) of the objective in the inhibition probabilities, from counts of the family or of the chain."""
        return self._slopes_and_trials(summary)[0]

    def _slopes_and_trials(self, summary: Summary) -> tuple[Floats, Floats]:
        """The slopes, and how often each cause was tried (m L,), with the pseudo-rows of the prior."""
        inhibitors = self.parameters()
        failed, worked = np.array([pseudo_of(self.pseudo, level + 1) for level in range(self.n_levels)]).T
        if Counts(self.domain.names) in summary.answers:
            with np.errstate(divide="ignore", invalid="ignore"):
                slopes = -self._gradient(summary) / inhibitors
            tried = np.stack([trials.seen + trials.absent for trials in self.trials(summary)], axis=1)
            return slopes, (tried + failed + worked).ravel()
        counts = ChainCounts.of(self.domain, self.places, self.leak, self.order, summary)
        counts = replace(counts, failed=counts.failed + failed, worked=counts.worked + worked)
        slopes = counts.slopes(inhibitors.reshape(counts.failed.shape))
        return slopes.ravel(), (counts.failed + counts.worked).ravel()

    def coordinates(self, units: Units) -> Coordinates:
        """Logits of the inhibition probabilities."""
        from suffice.models.bayesian.em.coordinates import InhibitionCoordinates

        return InhibitionCoordinates(self)

    def without_prior(self) -> Self:
        """The same weights without pseudo-counts."""
        return replace(self, pseudo=None)

    def log_prior(self) -> float:
        """Log prior density up to a constant: the sum over causes and states of s log P(the cause brings it about).

        Of a state y above the lowest, s log(1 - q), and s log q for each state below: that density of q is Beta.
        """
        if self.pseudo is None:
            return 0.0
        below = np.arange(1, self.n_levels + 1)
        with np.errstate(divide="ignore"):
            return float(self.pseudo * (np.log(-np.expm1(-self.by_cause)) - below * self.by_cause).sum())

    def parameters(self) -> Floats:
        """The inhibition probabilities exp(-w) (m L,), which are finite also where a weight is not."""
        return np.exp(-self.weights)

    def with_parameters(self, vector: Floats) -> Self:
        """The node at other inhibition probabilities (m L,)."""
        if (vector < 0).any() or (vector > 1).any():
            raise EstimateError(f"A cause of {self.name!r} would have an inhibition probability outside 0 to 1.")
        with np.errstate(divide="ignore"):
            return replace(self, weights=-np.log(vector) + 0.0)

    # -- use ---------------------------------------------------------------------------------------------------------

    def _strength(self, columns: Columns, n: int) -> Floats:
        total = np.tile(self._leak_weights, (n, 1))
        for name, effect in zip(self.parents, self.effects, strict=True):
            total += effect[columns[name]]
        return total

    def log_prob(self, columns: Columns) -> Floats:
        """Log P(node | parents) of each row."""
        codes = np.asarray(columns[self.name])
        logs = log_shares_of(self._strength(columns, len(codes)))
        return np.asarray(logs[np.arange(len(codes)), np.argsort(self.order)[codes]])

    def sample(self, columns: Columns, rng: np.random.Generator, n: int) -> NDArray[Any]:
        """One code for each row."""
        strength = self._strength(columns, n)
        # P(node reaches a state) is one less exp(-(sum of the strengths from there on)).
        reached = rng.random(n)[:, None] < -np.expm1(-np.cumsum(strength[:, ::-1], axis=1))
        return np.asarray(np.array(self.order, dtype=np.int32)[reached.sum(axis=1)])

    # -- files -------------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        values = {entry.name: getattr(self, entry.name) for entry in fields(self) if entry.name != "observed"}
        return {"kind": self.kind, **values}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Rebuild from plain data, checking shapes, codes and signs."""
        options = {key: value for key, value in plain.items() if key != "kind"}
        for key in ("order", "inactive", "notes", "directions"):
            options[key] = tuple(options[key])
        node = checked(cls(**options))
        cards = node.domain.shape(node.domain.names) if isinstance(node.domain, Domain) and node.domain else ()
        sound = len(node.inactive) == len(cards) - 1 and cls._has_states(node.order, cards[-1])
        sound = sound and all(type(c) is int and 0 <= c < card for c, card in zip(node.inactive, cards, strict=False))
        shape = ((sum(cards[:-1]) - len(cards) + 1 + bool(node.leak)) * (len(node.order) - 1),)
        arrays = (node.weights,) if node.errors is None else (node.weights, node.errors)
        sound = sound and all(isinstance(a, np.ndarray) and a.dtype == np.float64 and a.shape == shape for a in arrays)
        if not sound or (node.weights < 0).any():
            raise FileFormatError(
                f"A {cls.title} node has codes or arrays that do not fit its states, or negative weights."
            )
        return node

    @classmethod
    def _has_states(cls, order: tuple[int, ...], card: int) -> bool:
        """Whether codes list all states of a node."""
        return card >= 2 and all(type(code) is int for code in order) and sorted(order) == list(range(card))


def places_of(domain: Domain, inactive: tuple[int, ...], leak: bool) -> tuple[NDArray[np.intp], ...]:
    """For each parent the number of the cause that each state is, -1 for the inactive one."""
    positions, first = [], int(leak)
    for parent, rest in zip(domain.variables[:-1], inactive, strict=True):
        places = np.insert(np.arange(first, first + parent.card - 1), rest, -1)
        positions.append(places.astype(np.intp))
        first += parent.card - 1
    return tuple(positions)


def labels_of(domain: Domain, inactive: tuple[int, ...], leak: bool) -> tuple[Hashable, ...]:
    """Labels of the causes: the leak, then (parent, state) for every active state."""
    causes = [
        (parent.name, state)
        for parent, rest in zip(domain.variables[:-1], inactive, strict=True)
        for code, state in enumerate(parent.states)
        if code != rest
    ]
    return (*(("(leak)",) if leak else ()), *causes)


def weight_labels(causes: Sequence[Any], levels: Sequence[Hashable]) -> tuple[Hashable, ...]:
    """Labels of all weights: of the cause, with the state of a node that has more than two."""
    if len(levels) == 1:
        return tuple(causes)
    return tuple((*(cause if isinstance(cause, tuple) else (cause,)), level) for cause in causes for level in levels)
