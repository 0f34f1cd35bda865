"""A noisy-OR node: each active parent may cause the node by itself, and independently of the others.

P(node absent | parents) = exp(-(w_0 + sum over parents of w[state])), with weights that are not negative. The weight of
the inactive state of a parent is 0. ``q = exp(-w)`` is the probability that a cause is inhibited, and 1 - exp(-w_0) the
leak: the probability of the node when no parent is active. Parameters grow linearly with the parents.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.domain import MOST_AXES, Domain, Variable
from suffice.errors import EstimateError, FileFormatError, OptionError, SizeError, listing
from suffice.fitting.report import in_standard_errors
from suffice.models.bayesian.nodes.contract import Columns, Factor, UnitFree
from suffice.models.bayesian.nodes.noisy_or_chain import (
    MOST_IN_TABLE,
    ChainCounts,
    chain_scopes,
    chain_tables,
    learned_by_chain,
)
from suffice.models.bayesian.nodes.noisy_or_trials import Trials
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
class NoisyOrNode(UnitFree):
    """A fitted or given noisy-OR node.

    `weights` (m,) holds w_0 first where there is a `leak`, then the weights of the active states of each parent, in
    declared order; they may be inf (the cause never fails). `present` is the code of the node's state that causes bring
    about, `inactive` (p,) the codes of the states of the parents that cause nothing. `errors` (m,) are standard errors,
    `pseudo` the pseudo-counts of the prior, `size` the weight of the rows learned.
    """

    domain: Domain
    weights: Floats
    present: int
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

    kind: ClassVar[str] = "noisy-or"
    method: ClassVar[str] = "Newton's method"

    # -- shape -------------------------------------------------------------------------------------------------------

    @property
    def n_params(self) -> int:
        """Free parameters: one for each active state of each parent, and one for the leak."""
        return len(self.weights)

    @cached_property
    def places(self) -> tuple[NDArray[np.intp], ...]:
        """For each parent the position of the weight of each state; -1 for the inactive one."""
        return places_of(self.domain, self.inactive, self.leak)

    @cached_property
    def effects(self) -> tuple[Floats, ...]:
        """For each parent the weight of each state, 0 for the inactive one."""
        padded = np.append(self.weights, 0.0)
        return tuple(padded[places] for places in self.places)

    @property
    def coefficients(self) -> tuple[Hashable, ...]:
        """Labels of the weights: the leak, then (parent, state)."""
        return labels_of(self.domain, self.inactive, self.leak)

    # -- reading -----------------------------------------------------------------------------------------------------

    def coefficient_table(self, values: Floats) -> Table:
        """Values (m,) of the weights, by label."""
        axis = Variable.discrete(fresh_name("coefficient", set(self.parents)), self.coefficients)
        return Table(Domain([axis]), values)

    @property
    def weights_(self) -> Table:
        """The weights by label: ``"(leak)"``, then ``(parent, state)``."""
        return self.coefficient_table(self.weights)

    @property
    def leak_(self) -> float:
        """Probability of the node when no parent is active."""
        return -math.expm1(-float(self.weights[0])) if self.leak else 0.0

    @property
    def inhibitors_(self) -> dict[Hashable, dict[Hashable, float]]:
        """Probability that a cause fails, by parent and state; 1 for the inactive state."""
        return {
            parent.name: dict(zip(parent.states, np.exp(-effect).tolist(), strict=True))
            for parent, effect in zip(self.domain.variables[:-1], self.effects, strict=True)
        }

    @property
    def table_(self) -> Table:
        """P(node | parents) with axes (parents, node); a table too large for memory is an error."""
        shape = self.domain.shape(self.domain.names)
        if math.prod(shape) > MOST_CELLS or len(shape) > MOST_AXES:
            raise SizeError(
                f"The table of {self.name!r} given its {len(self.parents)} parents has {math.prod(shape):,} cells. "
                "Read node(name).weights_, .inhibitors_ and .leak_ instead."
            )
        strength = np.full((1,) * len(self.parents), self._leak_weight)
        for axis, effect in enumerate(self.effects):
            strength = strength + effect.reshape([-1 if k == axis else 1 for k in range(len(self.parents))])
        return Table(self.domain, self._pair(strength))

    @property
    def _leak_weight(self) -> float:
        return float(self.weights[0]) if self.leak else 0.0

    def _pair(self, strength: Floats) -> Floats:
        """P(state | strength) (..., 2)."""
        both = np.stack([np.exp(-strength), -np.expm1(-strength)], axis=-1)
        return both if self.present else both[..., ::-1]

    def factors(self) -> list[Factor]:
        """The table; with many parents a chain of tables: has one of the first 1, 2, ... parents caused the node?"""
        if len(self.parents) <= MOST_IN_TABLE:
            return [(self.domain.names, self.table_.values)]
        return self._chain()

    def expectation_factors(self) -> list[Factor]:
        """The table, or the chain where the family has so many joint states that EM learns from the chain."""
        return self._chain() if learned_by_chain(self.domain) else [(self.domain.names, self.table_.values)]

    def _chain(self) -> list[Factor]:
        tables = chain_tables(self._leak_weight if self.leak else None, self.effects, self.present)
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
        """Refused: the posterior of noisy-OR weights has no closed form."""
        raise EstimateError(
            f"{self.name!r} is a noisy-OR node: its posterior has no closed form. Its weights are the MAP estimate, "
            "and standard_errors_ give their spread."
        )

    def predictive_log_prob(self, columns: Columns) -> Floats:
        """Refused, as `posterior_` is."""
        return np.asarray(self.posterior_)

    def log_evidence(self) -> float | None:
        """None: it has no closed form."""
        return None

    # -- the objective -----------------------------------------------------------------------------------------------

    def trials(self, summary: Summary) -> Trials:
        """The counts of the family by distinct causes."""
        return Trials.of(self.places, self.leak, self.present, *summary[Counts(self.domain.names)].items())

    def log_likelihood(self, summary: Summary) -> float:
        """Sum over rows of log P(node | parents), -inf where an impossible event occurs."""
        return self.trials(summary).log_likelihood(self.weights)

    def loss_bound(self, summary: Summary) -> float | None:
        """The duality gap of the convex problem at these weights, pseudo-rows included."""
        trials = self.trials(summary).with_pseudo(self.pseudo or 0.0)
        loss = trials.upper_bound(self.weights) - trials.log_likelihood(self.weights)
        return max(loss, 0.0) if math.isfinite(loss) else None

    def edges(self, summary: Summary) -> tuple[str, ...]:
        """The weights that run to infinity, and those of 0 without which the node never occurs.

        The probability of the node is then 0 where no cause of another weight is active. Without a leak that is so by
        choice where no parent is active, and no edge.
        """
        if self.leak:
            idle = self.weights[:1] == 0
        else:
            trials = self.trials(summary)
            idle = (self.weights == 0) & (trials.seen + trials.absent > 0)
        never = [
            f"weight of {self.coefficients[cause]!r} in {self.name!r} -> 0" for cause in np.flatnonzero(idle).tolist()
        ]
        return (*self.directions, *(f"{text} (never seen to work alone)" for text in never))

    def gap(self, summary: Summary) -> float:
        """Largest violation of the conditions for a maximum over weights >= 0, a row.

        That is the slope of a weight above 0, and what the slope of a weight of 0 exceeds 0 by.
        """
        if self.estimate == "given":
            return 0.0
        slope = self.trials(summary).gradient(self.weights, self.pseudo or 0.0)
        known = ~np.isnan(self.weights)
        violation = np.where(self.weights[known] > 0, np.abs(slope[known]), np.maximum(slope[known], 0.0))
        return float(violation.max(initial=0.0) / max(summary.weight, 1.0))

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
        """Slopes (m,) of the objective in the inhibition probabilities, from counts of the family or of the chain."""
        return self._slopes_and_trials(summary)[0]

    def _slopes_and_trials(self, summary: Summary) -> tuple[Floats, Floats]:
        """The slopes, and how often each cause was tried (m,), with the pseudo-rows of the prior."""
        inhibitors, more = self.parameters(), self.pseudo or 0.0
        if Counts(self.domain.names) in summary.answers:
            trials = self.trials(summary)
            with np.errstate(divide="ignore", invalid="ignore"):
                slopes = -trials.gradient(self.weights, more) / inhibitors
            return slopes, trials.seen + trials.absent + 2 * more
        counts = ChainCounts.of(self.domain, self.places, self.leak, self.present, summary)
        counts = replace(counts, failed=counts.failed + more, worked=counts.worked + more)
        return counts.slopes(inhibitors), counts.failed + counts.worked

    def coordinates(self, units: Units) -> Coordinates:
        """Logits of the inhibition probabilities."""
        from suffice.models.bayesian.em.coordinates import InhibitionCoordinates

        return InhibitionCoordinates(self)

    def without_prior(self) -> NoisyOrNode:
        """The same weights without pseudo-counts."""
        return replace(self, pseudo=None)

    def log_prior(self) -> float:
        """Log prior density of the inhibition probabilities up to a constant: sum s (log q + log(1 - q))."""
        if self.pseudo is None:
            return 0.0
        with np.errstate(divide="ignore"):
            return float(self.pseudo * (np.log(-np.expm1(-self.weights)) - self.weights).sum())

    def parameters(self) -> Floats:
        """The inhibition probabilities exp(-w) (m,), which are finite also where a weight is not."""
        return np.exp(-self.weights)

    def with_parameters(self, vector: Floats) -> NoisyOrNode:
        """The node at other inhibition probabilities (m,)."""
        if (vector < 0).any() or (vector > 1).any():
            raise EstimateError(f"A cause of {self.name!r} would have an inhibition probability outside 0 to 1.")
        with np.errstate(divide="ignore"):
            return replace(self, weights=-np.log(vector) + 0.0)

    # -- use ---------------------------------------------------------------------------------------------------------

    def _strength(self, columns: Columns, n: int) -> Floats:
        total = np.full(n, self._leak_weight)
        for name, effect in zip(self.parents, self.effects, strict=True):
            total += effect[columns[name]]
        return total

    def log_prob(self, columns: Columns) -> Floats:
        """Log P(node | parents) of each row."""
        codes = np.asarray(columns[self.name])
        strength = self._strength(columns, len(codes))
        with np.errstate(divide="ignore"):
            return np.where(codes == self.present, np.log(-np.expm1(-strength)), -strength)

    def sample(self, columns: Columns, rng: np.random.Generator, n: int) -> NDArray[Any]:
        """One code for each row."""
        caused = rng.random(n) < -np.expm1(-self._strength(columns, n))
        return np.where(caused, self.present, 1 - self.present).astype(np.int32)

    # -- given numbers and files -------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        values = {entry.name: getattr(self, entry.name) for entry in fields(self) if entry.name != "observed"}
        return {"kind": self.kind, **values}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> NoisyOrNode:
        """Rebuild from plain data, checking shapes, codes and signs."""
        options = {key: value for key, value in plain.items() if key != "kind"}
        for key in ("inactive", "notes", "directions"):
            options[key] = tuple(options[key])
        node = checked(cls(**options))
        cards = node.domain.shape(node.domain.names) if isinstance(node.domain, Domain) and node.domain else ()
        codes = (*node.inactive, node.present)
        sound = len(codes) == len(cards) and cards[-1] == 2
        sound = sound and all(type(c) is int and 0 <= c < card for c, card in zip(codes, cards, strict=True))
        shape = (sum(cards[:-1]) - len(cards) + 1 + bool(node.leak),)
        arrays = (node.weights,) if node.errors is None else (node.weights, node.errors)
        sound = sound and all(isinstance(a, np.ndarray) and a.dtype == np.float64 and a.shape == shape for a in arrays)
        if not sound or (node.weights < 0).any():
            raise FileFormatError(
                "A noisy-OR node has codes or arrays that do not fit its states, or negative weights."
            )
        return node


def places_of(domain: Domain, inactive: tuple[int, ...], leak: bool) -> tuple[NDArray[np.intp], ...]:
    """For each parent the position of the weight of each state, -1 for the inactive one."""
    positions, first = [], int(leak)
    for parent, rest in zip(domain.variables[:-1], inactive, strict=True):
        places = np.insert(np.arange(first, first + parent.card - 1), rest, -1)
        positions.append(places.astype(np.intp))
        first += parent.card - 1
    return tuple(positions)


def labels_of(domain: Domain, inactive: tuple[int, ...], leak: bool) -> tuple[Hashable, ...]:
    """Labels of the weights: the leak, then (parent, state) for every active state."""
    causes = [
        (parent.name, state)
        for parent, rest in zip(domain.variables[:-1], inactive, strict=True)
        for code, state in enumerate(parent.states)
        if code != rest
    ]
    return (*(("(leak)",) if leak else ()), *causes)


def given_noisy_or(
    domain: Domain, present: int, inactive: tuple[int, ...], leak: float, inhibitors: Mapping[Any, Any]
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
        return NoisyOrNode(domain, -np.log(q) + 0.0, present, inactive)
