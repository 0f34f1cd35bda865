"""The categorical distribution: one of K states."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.array_types import Floats
from suffice.attributes import Read
from suffice.checks import draw_count, is_list
from suffice.choices import Estimate
from suffice.domain import Domain, Variable, state_key
from suffice.errors import MissingValueError, NotFittedError, OptionError, listing, shortened
from suffice.families.base import (
    SUM_TOLERANCE,
    Seed,
    as_probabilities,
    generator,
    only_variable,
    state_codes,
    take_states,
)
from suffice.families.categoricals import Categoricals
from suffice.families.dirichlet import Dirichlet
from suffice.families.dirichlet_multinomial import DirichletMultinomial
from suffice.families.exponential_family import ExponentialFamily, answered_by
from suffice.families.member import FamilyMember
from suffice.fitting.control import Control
from suffice.statistics import Counts, Statistic, Summary

if TYPE_CHECKING:
    from suffice.families.dirichlet_mixture import DirichletMixture

#: States that were never seen are named up to this many, then counted.
MOST_NAMED = 20


class CategoricalMember(FamilyMember):
    """The categorical distribution on `states`, any hashable values in the order given."""

    parameter_names = ("probabilities",)
    probabilities_: Floats
    conjugate_priors = ("Dirichlet", "DirichletMixture")
    constant_names = ("states",)

    # -- parameters --------------------------------------------------------------------------------------------------

    def check(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Parameters in their final type; an impossible value is an error."""
        probabilities = as_probabilities(parameters["probabilities"], "probabilities")
        declared = self.known.get("states")
        if declared is not None and len(declared) != len(probabilities):
            raise OptionError(
                f"probabilities has {len(probabilities)} numbers; expected {len(declared)}, one for each state."
            )
        return {"probabilities": probabilities}

    def _known_states(self) -> tuple[Hashable, ...] | None:
        """The states that were declared or seen, or that given probabilities number; None before a fit."""
        states = self.known.get("states", self.known.get("seen_states"))
        if states is not None:
            return Variable.discrete("x", states).states
        return None if self.parameters is None else tuple(range(len(self.probabilities_)))

    def labels(self) -> tuple[Hashable, ...]:
        """The states, where they are known."""
        return self._known_states() or ()

    @property
    def states_(self) -> tuple[Hashable, ...]:
        """The states, in the order of the probabilities: declared, seen, or 0, 1, ..., K - 1."""
        known = self._known_states()
        if known is None:
            raise NotFittedError("This Categorical has no states yet. Call fit, or give states= in the constructor.")
        return known

    @property
    def _cell(self) -> Categoricals:
        """The probabilities, as the one cell of an array."""
        return Categoricals(self.probabilities_)

    @property
    def _states(self) -> Variable:
        return Variable.discrete("x", self.states_)

    def restored(self, plain: Mapping[str, Any]) -> Self:
        """The member of a file, with the states that were seen."""
        states = Variable.discrete("x", plain["states"]).states
        member = self.at(plain["parameters"], seen_states=states)
        parts = [states, member.probabilities_]
        if plain.get("posterior") is not None:
            parts.append(plain["posterior"].mean())
        sizes = sorted({len(part) for part in parts})
        if len(sizes) > 1:
            raise OptionError(f"States, probabilities and posterior have different numbers of parts: {sizes}.")
        return member

    @property
    def n_params(self) -> int:
        """K - 1."""
        return len(self.probabilities_) - 1

    # -- statistics --------------------------------------------------------------------------------------------------
    # The minimal form: K - 1 indicators, the last state being the base, so that eta_k = log(p_k / p_K).

    def sufficient_statistics(self, x: Any) -> Floats:
        """Indicators of the first K - 1 states, (n, K - 1); a missing value has none and is an error."""
        codes = state_codes(self._states, x)
        if (codes < 0).any():
            raise MissingValueError("A missing value (None or NaN) has no indicators. Leave those values out.")
        return np.eye(len(self.states_))[codes][:, :-1]

    def log_base_measure(self, x: Any) -> Floats:
        """0 for each value."""
        return np.zeros(len(state_codes(self._states, x)))

    def log_normalizer(self, eta: ArrayLike | None = None) -> float:
        """log(1 + sum exp(eta_k))."""
        values = np.append(self._eta(eta), 0.0)
        top = values.max()
        return float(top + math.log(np.exp(values - top).sum())) if np.isfinite(top) else float(top)

    def expected_statistics(self, eta: ArrayLike | None = None) -> Floats:
        """The first K - 1 probabilities."""
        return self._probabilities(eta)[:-1]

    def statistics_covariance(self, eta: ArrayLike | None = None) -> Floats:
        """diag(p) - p p'."""
        p = self._probabilities(eta)[:-1]
        return np.asarray(np.diag(p) - np.outer(p, p))

    def cumulants_along(self, order: int, direction: Floats) -> Floats:
        """From the moments m_j of a variable on K points: kappa_s = m_s - sum_j C(s-1, j-1) kappa_j m_(s-j)."""
        values = np.append(direction, 0.0)
        centre = float(self.probabilities_ @ values)
        moments = [float(self.probabilities_ @ (values - centre) ** s) for s in range(order + 1)]
        cumulants: list[float] = []
        for s in range(1, order + 1):
            lower = sum(math.comb(s - 1, j - 1) * cumulants[j - 1] * moments[s - j] for j in range(1, s))
            cumulants.append(moments[s] - lower)
        return np.array([centre, *cumulants[1:]])

    # -- maps --------------------------------------------------------------------------------------------------------

    def _probabilities(self, eta: ArrayLike | None) -> Floats:
        if eta is None:
            return np.asarray(self.probabilities_)
        values = np.append(self._eta(eta), 0.0)
        shares = np.exp(values - values.max())
        return np.asarray(shares / shares.sum())

    def to_natural(self, parameters: Mapping[str, Any]) -> Floats:
        """Natural parameters (k,) from usual ones; +-inf at the edge of the family."""
        p = parameters["probabilities"]
        with np.errstate(divide="ignore", invalid="ignore"):
            # A state without mass is at -inf also where the base state has none.
            return np.where(p[:-1] > 0, np.log(p[:-1]) - np.log(p[-1]), -np.inf)

    def from_natural(self, eta: Floats) -> dict[str, Any]:
        """Usual parameters from natural ones."""
        return {"probabilities": self._probabilities(eta)}

    def match(self, mean: Floats, control: Control) -> tuple[dict[str, Any], None]:
        """Usual parameters from mean parameters, and how the iteration ended; None for a closed form."""
        # The last share is a difference, so rounding may leave it a little below zero.
        last = 1 - mean.sum()
        return {"probabilities": np.append(mean, 0.0 if -SUM_TOLERANCE < last < 0 else last)}, None

    # -- evaluation --------------------------------------------------------------------------------------------------

    def log_prob(self, x: Any) -> Floats:
        """Log probability of each value; a missing value has probability one, an unknown value is an error."""
        return self._cell.log_prob(state_codes(self._states, x))

    def sample(self, n: int = 1, random_state: Seed = None) -> NDArray[Any]:
        """`n` draws, as an array of states."""
        return take_states(self.states_, self._cell.sample(draw_count(n), generator(random_state)))

    def mean(self) -> Floats:
        """The probabilities: the mean of the indicators of all K states."""
        return np.asarray(self.probabilities_)

    def mode(self) -> Hashable:
        """The most probable state; the first of several."""
        return self.states_[int(np.argmax(self.probabilities_))]

    def entropy(self) -> float:
        """-sum p log p."""
        return float(self._cell.entropy())

    def divergence(self, other: CategoricalMember) -> float:
        """``sum p log(p / q)``; inf where the other gives a possible state no mass."""
        if {state_key(state) for state in self.states_} != {state_key(state) for state in other.states_}:
            raise OptionError(
                f"The distributions have different states: {listing(self.states_)} and {listing(other.states_)}."
            )
        theirs = other.probabilities_[state_codes(other._states, list(self.states_))]
        return float(self._cell.divergence(Categoricals(theirs)))

    # -- fitting -----------------------------------------------------------------------------------------------------

    def variable(self, name: Hashable) -> Variable:
        """The kind of column that the family describes."""
        states = self.known.get("states")
        return Variable(name, "discrete") if states is None else Variable.discrete(name, states)

    def ask(self, domain: Domain) -> tuple[Statistic, ...]:
        """The statistics that a fit needs."""
        return (Counts(domain.names),)

    def _counts(self, summary: Summary) -> Floats:
        """Weight of each state, in the order of the distribution."""
        variable = only_variable(summary, self.title)
        counts = summary[Counts((variable.name,))].dense()
        known = self._known_states()
        if known is None or known == variable.states:
            return np.asarray(counts)
        placed = np.zeros(len(known))
        np.add.at(placed, state_codes(Variable.discrete(variable.name, known), list(variable.states)), counts)
        return placed

    def observed(self, summary: Summary) -> Floats:
        """Mean of T over the rows (k,)."""
        counts = self._counts(summary)
        return np.asarray(counts[:-1] / counts.sum())

    def seen_in(self, summary: Summary) -> Mapping[str, Any]:
        """The states: as declared, or those of the column."""
        declared = self.known.get("states")
        column = only_variable(summary, self.title)
        return {"seen_states": (column if declared is None else Variable.discrete("x", declared)).states}

    def refuse_given(self, summary: Summary) -> None:
        """Raise where every parameter is given: the fit would either do nothing or overrule the caller."""
        super().refuse_given(summary)
        if not self.seen_in(summary)["seen_states"]:
            raise OptionError("There are no rows and no states. Give states= or data.")

    def maximise(self, summary: Summary, control: Control) -> tuple[dict[str, Any], None]:
        """Parameters of maximum likelihood, and how the iteration ended; None for a closed form."""
        return {"probabilities": Categoricals.most_likely(self._counts(summary)).probabilities}, None

    def edge(self, summary: Summary) -> tuple[str, ...]:
        """What runs to infinity at the maximum-likelihood estimate; empty where the maximum is attained."""
        # With a prior a state that was never seen may still have a probability above zero.
        absent = (self._counts(summary) == 0) & (self.probabilities_ == 0)
        unseen = [state for state, none in zip(self.states_, absent, strict=True) if none]
        named = tuple(f"log probability of {state!r} -> -inf (never seen)" for state in unseen[:MOST_NAMED])
        rest = len(unseen) - len(named)
        return (*named, f"log probabilities of {rest} more states -> -inf (never seen)") if rest > 0 else named

    def gap(self, summary: Summary) -> tuple[float, float]:
        """Over all K states, leaving out those of probability zero."""
        gap, decrement = self._cell.gap(self._counts(summary))
        return float(gap), float(decrement)

    def shortfall(self, summary: Summary) -> float:
        """How far the mean log-likelihood of a row is below its maximum, by a formula."""
        return float(self._cell.shortfall(self._counts(summary)))

    def log_likelihood(self, summary: Summary) -> float:
        """Sum over the rows of a summary, natural logarithm, where log h is 0."""
        return float(self._cell.log_likelihood(self._counts(summary)))

    def empirical_entropy(self, summary: Summary) -> float | None:
        """Entropy of the observed frequencies; None where the data are not discrete."""
        counts = self._counts(summary)
        return float(Categoricals.most_likely(counts).entropy()) if counts.sum() > 0 else None

    # -- with a prior ------------------------------------------------------------------------------------------------

    def log_likelihoods(self, summary: Summary, points: Sequence[Mapping[str, Any]]) -> tuple[Floats, Any]:
        """Of all members together, on arrays with an axis of members."""
        probabilities = np.array([point["probabilities"] for point in points], dtype=np.float64)
        return Categoricals(probabilities).log_likelihood(self._counts(summary)), probabilities

    def conjugate_prior(self, prior: Any, summary: Summary) -> Any:
        """A number or a `Dirichlet` of one number is a symmetric prior over all states."""
        size = len(self._counts(summary))
        if isinstance(prior, int | float) and not isinstance(prior, bool):
            if not (prior > 0 and math.isfinite(prior)):
                raise OptionError(f"prior is {prior!r}; a number of pseudo-counts must be above 0.")
            return Dirichlet(np.full(size, float(prior)))
        prior = super().conjugate_prior(prior, summary)
        prior = prior.spread_over(size) if isinstance(prior, Dirichlet) else prior
        states = self.seen_in(summary)["seen_states"]
        if len(prior.mean()) != size:
            raise OptionError(
                f"The prior has {len(prior.mean())} parts and there are {size} states: "
                f"{listing(states)}. Declare the states in the order of the prior with states=."
            )
        return prior

    def update(self, prior: Any, summary: Summary) -> Any:
        """The posterior: the prior with the statistics of the rows added."""
        return prior._from_counts(self._counts(summary))

    def predictive(self, posterior: Any) -> Categorical:
        """The distribution of one more row, with the parameters integrated out."""
        return Categorical(states=self.states_, probabilities=posterior.mean())

    def evidence(self, prior: Any, posterior: Any, summary: Summary) -> float | None:
        """Log marginal likelihood of the rows: ``p(x | point) p(point) / p(point | x)`` is the same at any point."""
        return float(prior.log_evidence(self._counts(summary)))


class Categorical(ExponentialFamily):
    """The categorical distribution on `states`, any hashable values in the order given.

    Without `states` they are those of the column: its categories, or the values seen, sorted. A declared state that
    never occurs keeps its place with probability 0 (or the prior's share).

    Args:
        states: the states, in order.
        probabilities: their probabilities, when given.
        prior: a number (that many pseudo-counts for every state), a `Dirichlet` or a `DirichletMixture`.
        estimate: ``"mean"`` (default with a prior) or ``"map"``, the mode in the probabilities.
        progress: show a bar over the rows.

    >>> Categorical(states=["a", "b", "c"], prior=1.0).fit(["a", "b", "a"]).probabilities_.round(3)
    array([0.5  , 0.333, 0.167])
    """

    member_class = CategoricalMember
    probabilities_: Floats
    posterior_: Read[Dirichlet | DirichletMixture]
    predictive_: Read[Categorical]

    def __init__(
        self,
        states: Iterable[Hashable] | None = None,
        probabilities: ArrayLike | None = None,
        *,
        prior: Any = None,
        estimate: Estimate | None = None,
        progress: bool = False,
    ) -> None:
        """See the class."""
        # An iterator must not be used up by its first reader; a string is no list of states, and the variable says so.
        kept = states if states is None or not is_list(states) else tuple(states)
        if kept is not None:
            Variable.discrete("x", kept)
        shares = [one for one in kept or () if isinstance(one, float) and 0.0 <= one < 1.0]
        if probabilities is None and shares and shares == list(kept or ()) and abs(sum(shares) - 1.0) < 1e-9:
            raise OptionError(
                f"states is {shortened(kept)}, numbers that add up to 1 as probabilities do. Give "
                "Categorical(probabilities=...) for these; where they are the states, leave states= out: fit finds "
                "them."
            )
        super().__init__(states=kept, probabilities=probabilities, prior=prior, estimate=estimate, progress=progress)

    mean = answered_by(CategoricalMember.mean)
    mode = answered_by(CategoricalMember.mode)

    @property
    def states_(self) -> tuple[Hashable, ...]:
        """The states, in the order of the probabilities: declared, seen, or 0, 1, ..., K - 1."""
        states: tuple[Hashable, ...] = self._member.states_
        return states

    @property
    def statistic_names_(self) -> tuple[str, ...]:
        """One indicator for each state but the last."""
        return tuple(f"x = {state!r}" for state in self.states_[:-1])

    def predictive_counts(self, total: int) -> DirichletMultinomial:
        """The posterior predictive distribution of the counts of `total` more rows, in the order of the states."""
        if not isinstance(self.posterior_, Dirichlet):
            raise OptionError(
                f"Counts of future rows need a Dirichlet posterior, not {type(self.posterior_).__name__}."
            )
        return DirichletMultinomial(total=total, alpha=self.posterior_.alpha_)
