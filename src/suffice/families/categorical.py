"""The categorical law: one of K states."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.domain import Domain, Variable, state_key
from suffice.errors import MissingValueError, NotFittedError, OptionError, listing
from suffice.families.base import (
    SUM_TOLERANCE,
    as_probabilities,
    generator,
    only_variable,
    state_codes,
    take_states,
)
from suffice.families.categoricals import Categoricals
from suffice.families.dirichlet import Dirichlet
from suffice.families.dirichlet_multinomial import DirichletMultinomial
from suffice.families.exponential_family import ExponentialFamily
from suffice.families.fitted import FamilyFitted
from suffice.fitting.control import Control
from suffice.statistics import Counts, Statistic, Summary

if TYPE_CHECKING:
    from suffice.fitting.portrait import Portrait

Floats = NDArray[np.float64]

#: States that were never seen are named up to this many, then counted.
MOST_NAMED = 20


class Categorical(ExponentialFamily):
    """The categorical law on `states`, any hashable values in the order given.

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

    parameter_names = ("probabilities",)
    conjugate_priors = ("Dirichlet", "DirichletMixture")

    def __init__(
        self,
        states: Iterable[Hashable] | None = None,
        probabilities: ArrayLike | None = None,
        *,
        prior: Any = None,
        estimate: str | None = None,
        progress: bool = False,
    ) -> None:
        """See the class."""
        # An iterator must not be used up by its first reader; a string is no list of states, and the variable says so.
        kept = states if states is None or isinstance(states, str | tuple) else tuple(states)
        if kept is not None:
            Variable.discrete("x", kept)
        super().__init__(states=kept, probabilities=probabilities, prior=prior, estimate=estimate, progress=progress)

    # -- parameters --------------------------------------------------------------------------------------------------

    def _check(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        found = as_probabilities(parameters["probabilities"], "probabilities")
        declared = self._options["states"]
        if declared is not None and len(declared) != len(found):
            raise OptionError(f"probabilities has {len(found)} numbers; expected {len(declared)}, one for each state.")
        return {"probabilities": found}

    def _with(self, **parameters: Any) -> Self:
        return type(self)(states=self.states_, **parameters)

    def _known_states(self) -> tuple[Hashable, ...] | None:
        """The states that were declared or seen, or that given probabilities number; None before a fit."""
        if self._options["states"] is not None:
            return Variable.discrete("x", self._options["states"]).states
        if self._fit is None:
            return None
        seen: tuple[Hashable, ...] | None = self._fit.fitted.states
        return tuple(range(len(self.probabilities_))) if seen is None else seen

    def portrait(self) -> Portrait:
        """What there is to see of it: what pages, plots and notebooks show."""
        from suffice.families.portrait import exponential_portrait

        return exponential_portrait(self, self._known_states() or ())

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

    def _fitted_from(self, plain: Mapping[str, Any]) -> FamilyFitted:
        fitted = replace(super()._fitted_from(plain), states=Variable.discrete("x", plain["states"]).states)
        parts = [fitted.states or (), fitted.parameters["probabilities"]]
        if fitted.posterior is not None:
            parts.append(fitted.posterior.mean())
        sizes = sorted({len(part) for part in parts})
        if len(sizes) > 1:
            raise OptionError(f"States, probabilities and posterior have different numbers of parts: {sizes}.")
        return fitted

    def _n_free(self) -> int:
        """K - 1."""
        return len(self.probabilities_) - 1

    @property
    def statistic_names_(self) -> tuple[str, ...]:
        """One indicator for each state but the last."""
        return tuple(f"x = {state!r}" for state in self.states_[:-1])

    # -- statistics --------------------------------------------------------------------------------------------------
    # The minimal form: K - 1 indicators, the last state being the base, so that eta_k = log(p_k / p_K).

    def sufficient_statistics(self, x: Any) -> Floats:
        """Indicators of the first K - 1 states, (n, K - 1); a gap has none and is an error."""
        codes = state_codes(self._states, x)
        if (codes < 0).any():
            raise MissingValueError("A gap (None or NaN) has no indicators. Leave those values out.")
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

    def _cumulants(self, order: int, direction: Floats) -> Floats:
        """From the moments m_j of a variable on K points: kappa_s = m_s - sum_j C(s-1, j-1) kappa_j m_(s-j)."""
        values = np.append(direction, 0.0)
        centre = float(self.probabilities_ @ values)
        moments = [float(self.probabilities_ @ (values - centre) ** s) for s in range(order + 1)]
        found: list[float] = []
        for s in range(1, order + 1):
            lower = sum(math.comb(s - 1, j - 1) * found[j - 1] * moments[s - j] for j in range(1, s))
            found.append(moments[s] - lower)
        return np.array([centre, *found[1:]])

    # -- maps --------------------------------------------------------------------------------------------------------

    def _probabilities(self, eta: ArrayLike | None) -> Floats:
        if eta is None:
            return np.asarray(self.probabilities_)
        values = np.append(self._eta(eta), 0.0)
        shares = np.exp(values - values.max())
        return np.asarray(shares / shares.sum())

    def _to_natural(self, parameters: Mapping[str, Any]) -> Floats:
        p = parameters["probabilities"]
        with np.errstate(divide="ignore", invalid="ignore"):
            # A state without mass is at -inf also where the base state has none.
            return np.where(p[:-1] > 0, np.log(p[:-1]) - np.log(p[-1]), -np.inf)

    def _from_natural(self, eta: Floats) -> dict[str, Any]:
        return {"probabilities": self._probabilities(eta)}

    def _match(self, mean: Floats, control: Control) -> tuple[dict[str, Any], None]:
        # The last share is a difference, so rounding may leave it a little below zero.
        last = 1 - mean.sum()
        return {"probabilities": np.append(mean, 0.0 if -SUM_TOLERANCE < last < 0 else last)}, None

    # -- evaluation --------------------------------------------------------------------------------------------------

    def log_prob(self, x: Any) -> Floats:
        """Log probability of each value; a gap has probability one, an unknown value is an error."""
        return self._cell.log_prob(state_codes(self._states, x))

    def sample(self, n: int = 1, random_state: Any = None) -> NDArray[Any]:
        """`n` draws, as an array of states."""
        return take_states(self.states_, self._cell.sample(n, generator(random_state)))

    def mean(self) -> Floats:
        """The probabilities: the mean of the indicators of all K states."""
        return np.asarray(self.probabilities_)

    def mode(self) -> Hashable:
        """The most probable state; the first of several."""
        return self.states_[int(np.argmax(self.probabilities_))]

    def entropy(self) -> float:
        """-sum p log p."""
        return float(self._cell.entropy())

    def kl_divergence(self, other: Categorical) -> float:
        """``sum p log(p / q)``; inf where the other gives a possible state no mass."""
        if type(other) is not type(self):
            return super().kl_divergence(other)
        if {state_key(state) for state in self.states_} != {state_key(state) for state in other.states_}:
            raise OptionError(f"The laws have different states: {listing(self.states_)} and {listing(other.states_)}.")
        theirs = other.probabilities_[state_codes(other._states, list(self.states_))]
        return float(self._cell.divergence(Categoricals(theirs)))

    # -- fitting -----------------------------------------------------------------------------------------------------

    def _variable(self, name: Hashable) -> Variable:
        states = self._options["states"]
        return Variable(name, "discrete") if states is None else Variable.discrete(name, states)

    def _ask(self, domain: Domain) -> tuple[Statistic, ...]:
        return (Counts(domain.names),)

    def _counts(self, summary: Summary) -> Floats:
        """Weight of each state, in the order of the law."""
        variable = only_variable(summary, self)
        counts = summary[Counts((variable.name,))].dense()
        known = self._known_states()
        if known is None or known == variable.states:
            return np.asarray(counts)
        placed = np.zeros(len(known))
        np.add.at(placed, state_codes(Variable.discrete(variable.name, known), list(variable.states)), counts)
        return placed

    def _observed(self, summary: Summary) -> Floats:
        counts = self._counts(summary)
        return np.asarray(counts[:-1] / counts.sum())

    def _states_in(self, summary: Summary) -> tuple[Hashable, ...]:
        declared = self._options["states"]
        return only_variable(summary, self).states if declared is None else Variable.discrete("x", declared).states

    def _refuse_given(self, summary: Summary) -> None:
        super()._refuse_given(summary)
        if not self._states_in(summary):
            raise OptionError("There are no rows and no states. Give states= or data.")

    def _maximise(self, summary: Summary, control: Control) -> tuple[dict[str, Any], None]:
        return {"probabilities": Categoricals.most_likely(self._counts(summary)).probabilities}, None

    def _edge(self, summary: Summary) -> tuple[str, ...]:
        # With a prior a state that was never seen may still have a probability above zero.
        absent = (self._counts(summary) == 0) & (self.probabilities_ == 0)
        unseen = [state for state, none in zip(self.states_, absent, strict=True) if none]
        named = tuple(f"log probability of {state!r} -> -inf (never seen)" for state in unseen[:MOST_NAMED])
        rest = len(unseen) - len(named)
        return (*named, f"log probabilities of {rest} more states -> -inf (never seen)") if rest > 0 else named

    def _gap(self, summary: Summary) -> tuple[float, float]:
        """Over all K states, leaving out those of probability zero."""
        gap, decrement = self._cell.gap(self._counts(summary))
        return float(gap), float(decrement)

    def _shortfall(self, summary: Summary) -> float:
        return float(self._cell.shortfall(self._counts(summary)))

    def _log_likelihood(self, summary: Summary) -> float:
        return float(self._cell.log_likelihood(self._counts(summary)))

    def _empirical_entropy(self, summary: Summary) -> float | None:
        counts = self._counts(summary)
        return float(Categoricals.most_likely(counts).entropy()) if counts.sum() > 0 else None

    # -- with a prior ------------------------------------------------------------------------------------------------

    def _prior(self, summary: Summary) -> Any:
        """A number or a `Dirichlet` of one number is a symmetric prior over all states."""
        prior, size = self._options["prior"], len(self._counts(summary))
        if isinstance(prior, int | float) and not isinstance(prior, bool):
            if not (prior > 0 and math.isfinite(prior)):
                raise OptionError(f"prior is {prior!r}; a number of pseudo-counts must be above 0.")
            return Dirichlet(np.full(size, float(prior)))
        prior = super()._prior(summary)
        prior = prior.spread_over(size) if isinstance(prior, Dirichlet) else prior
        if prior is not None and len(prior.mean()) != size:
            raise OptionError(
                f"The prior has {len(prior.mean())} parts and there are {size} states: "
                f"{listing(self._states_in(summary))}. Declare the states in the order of the prior with states=."
            )
        return prior

    def _update(self, prior: Any, summary: Summary) -> Any:
        return prior._from_counts(self._counts(summary))

    def _predictive(self, posterior: Any) -> Categorical:
        return Categorical(states=self.states_, probabilities=posterior.mean())

    def predictive_counts(self, total: int) -> DirichletMultinomial:
        """The posterior predictive law of the counts of `total` more rows, in the order of the states."""
        if not isinstance(self.posterior_, Dirichlet):
            raise OptionError(
                f"Counts of future rows need a Dirichlet posterior, not {type(self.posterior_).__name__}."
            )
        return DirichletMultinomial(total=total, alpha=self.posterior_.alpha_)

    def _evidence(self, prior: Any, posterior: Any, summary: Summary) -> float | None:
        return float(prior.log_evidence(self._counts(summary)))
