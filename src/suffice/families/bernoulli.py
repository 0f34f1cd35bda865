"""The Bernoulli law: success or failure."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.domain import Domain, Variable, state_key
from suffice.errors import MissingValueError, OptionError
from suffice.families.base import (
    as_array,
    as_float,
    as_numbers,
    as_shares,
    generator,
    only_variable,
    state_codes,
    take_states,
)
from suffice.families.beta import Beta, trial_counts, trial_states
from suffice.families.exponential_family import ExponentialFamily
from suffice.families.fitted import FamilyFitted
from suffice.families.simplex import odds_cumulants, relative_entropy
from suffice.fitting.control import Control
from suffice.statistics import Counts, Statistic, Summary

if TYPE_CHECKING:
    from suffice.fitting.portrait import Portrait

Floats = NDArray[np.float64]


class Bernoulli(ExponentialFamily):
    """The Bernoulli law: a success has `probability`, a failure the rest.

    Without `states` a column holds 0 and 1, False and True, or 0.0 and 1.0. A probability of 0 or 1 is a limit of the
    family; it is the estimate where every row is a failure or every row a success.

    Args:
        probability: of a success, when given.
        states: (failure, success), any two different values.
        prior: a number (that many pseudo-counts for success and for failure) or a `Beta`.
        estimate: ``"mean"`` (default with a prior) or ``"map"``, the mode in the probability.
        progress: show a bar over the rows.

    >>> Bernoulli(prior=1.0).fit([1, 1, 0]).probability_
    0.6
    >>> Bernoulli(states=("no", "yes")).fit(["yes", "no", "yes", "yes"]).probability_
    0.75
    """

    parameter_names = ("probability",)
    statistic_names = ("x",)
    conjugate_priors = ("Beta",)

    def __init__(
        self,
        probability: float | None = None,
        *,
        states: Iterable[Hashable] | None = None,
        prior: Any = None,
        estimate: str | None = None,
        progress: bool = False,
    ) -> None:
        """See the class."""
        kept = states if states is None or isinstance(states, str | tuple) else tuple(states)
        if kept is not None and Variable.discrete("x", kept).card != 2:
            raise OptionError(f"states is {states!r}; expected two: (failure, success).")
        super().__init__(probability=probability, states=kept, prior=prior, estimate=estimate, progress=progress)

    # -- parameters --------------------------------------------------------------------------------------------------

    def _check(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        probability = as_float(parameters["probability"], "probability", least=0)
        if probability > 1:
            raise OptionError(f"probability is {parameters['probability']!r}; expected a number from 0 to 1.")
        return {"probability": probability}

    def _with(self, **parameters: Any) -> Self:
        return type(self)(states=self._known_states(), **parameters)

    def _known_states(self) -> tuple[Hashable, Hashable] | None:
        """(failure, success) as declared or seen; None where neither has happened."""
        if self._options["states"] is not None:
            failure, success = Variable.discrete("x", self._options["states"]).states
            return failure, success
        seen: tuple[Hashable, Hashable] | None = None if self._fit is None else self._fit.fitted.states
        return seen

    @property
    def states_(self) -> tuple[Hashable, Hashable]:
        """(failure, success): declared, seen, or (0, 1)."""
        return self._known_states() or (0, 1)

    def portrait(self) -> Portrait:
        """What there is to see of it: what pages, plots and notebooks show."""
        from suffice.families.portrait import exponential_portrait

        return exponential_portrait(self, self.states_)

    def _fitted_from(self, plain: Mapping[str, Any]) -> FamilyFitted:
        failure, success = Variable.discrete("x", plain["states"]).states
        return replace(super()._fitted_from(plain), states=(failure, success))

    def _n_free(self) -> int:
        """One."""
        return 1

    # -- statistics --------------------------------------------------------------------------------------------------

    def _codes(self, x: Any) -> NDArray[np.intp]:
        """1 for a success, 0 for a failure, -1 for a gap; truth values also do where no states are known."""
        if self._known_states() is None:
            x = np.atleast_1d(as_array(list(x) if isinstance(x, Iterator) else x))
            truths = x.dtype.kind == "b" or any(isinstance(value, bool) for value in x.tolist() if x.dtype.kind == "O")
            return state_codes(Variable.discrete("x", (False, True) if truths else (0, 1)), x)
        return state_codes(Variable.discrete("x", self.states_), x)

    def sufficient_statistics(self, x: Any) -> Floats:
        """1 for a success, 0 for a failure, (n, 1); a gap has no statistic and is an error."""
        codes = self._codes(x)
        if (codes < 0).any():
            raise MissingValueError("A gap (None or NaN) is neither success nor failure. Leave those values out.")
        return codes.astype(np.float64)[:, None]

    def log_base_measure(self, x: Any) -> Floats:
        """0 for each value."""
        return np.zeros(len(self._codes(x)))

    def log_normalizer(self, eta: ArrayLike | None = None) -> float:
        """A = log(1 + exp(eta))."""
        return float(np.logaddexp(0.0, self._eta(eta)[0]))

    def expected_statistics(self, eta: ArrayLike | None = None) -> Floats:
        """The probability."""
        return np.array([self._usual(eta)])

    def statistics_covariance(self, eta: ArrayLike | None = None) -> Floats:
        """``probability (1 - probability)``."""
        if eta is None:
            return np.array([[self.variance()]])
        value = self._eta(eta)[0]
        return np.array([[self._usual([value]) * self._usual([-value])]])

    def _cumulants(self, order: int, direction: Floats) -> Floats:
        """Polynomials in the probability, p (1 - p) times the derivative of the one before; odd ones flip with p."""
        p = self.probability_
        found = odds_cumulants(order, min(p, 1 - p), -1)
        if p > 0.5:
            found *= np.array([-1.0, 1.0])[np.arange(order) % 2]
            found[0] = p
        return np.asarray(found * direction[0] ** np.arange(1, order + 1))

    # -- maps --------------------------------------------------------------------------------------------------------

    def _usual(self, eta: ArrayLike | None) -> float:
        """The probability."""
        from scipy.special import expit

        return float(self.probability_) if eta is None else float(expit(self._eta(eta)[0]))

    def _to_natural(self, parameters: Mapping[str, Any]) -> Floats:
        """The log odds."""
        probability = np.array([parameters["probability"]])
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(probability) - np.log1p(-probability))

    def _from_natural(self, eta: Floats) -> dict[str, Any]:
        return {"probability": self._usual(eta)}

    def _match(self, mean: Floats, control: Control) -> tuple[dict[str, Any], None]:
        return {"probability": float(mean[0])}, None

    # -- evaluation --------------------------------------------------------------------------------------------------

    def log_prob(self, x: Any) -> Floats:
        """Log probability of each value; a gap has probability one, an unknown value is an error."""
        with np.errstate(divide="ignore"):
            logs = np.array([np.log1p(-self.probability_), np.log(self.probability_), 0.0])
        return np.asarray(logs[self._codes(x)])

    def cdf(self, x: ArrayLike) -> Floats:
        """P(X <= x), a failure being 0 and a success 1."""
        values = as_numbers(x)
        return np.where(values < 0, 0.0, np.where(values < 1, 1 - self.probability_, 1.0))

    def quantile(self, q: ArrayLike) -> Floats:
        """0 up to a share of 1 - probability, then 1."""
        return np.where(as_shares(q, "q") <= 1 - self.probability_, 0.0, 1.0)

    def sample(self, n: int = 1, random_state: Any = None) -> NDArray[Any]:
        """`n` draws, as an array of states."""
        successes = generator(random_state).random(n) < self.probability_
        return take_states(self.states_, successes.astype(np.intp))

    def mean(self) -> float:
        """The probability: the mean of 1 for a success and 0 for a failure."""
        return float(self.probability_)

    def variance(self) -> float:
        """``probability (1 - probability)``."""
        return float(self.probability_ * (1 - self.probability_))

    def mode(self) -> Hashable:
        """The more probable state; the failure where both are alike."""
        return self.states_[int(self.probability_ > 0.5)]

    def entropy(self) -> float:
        """-p log p - (1 - p) log(1 - p)."""
        from scipy.special import entr, xlog1py

        p = self.probability_
        return float(entr(p) - xlog1py(1 - p, -p))

    def kl_divergence(self, other: Bernoulli) -> float:
        """``p log(p / q) + (1 - p) log((1 - p) / (1 - q))``; inf where the other gives a possible state no mass."""
        if type(other) is not type(self):
            return super().kl_divergence(other)
        mine, theirs = self.probability_, other.probability_
        named = self._options["states"] is not None and other._options["states"] is not None
        if named and list(map(state_key, self.states_)) != list(map(state_key, other.states_)):
            if set(map(state_key, self.states_)) != set(map(state_key, other.states_)):
                raise OptionError(f"The laws have different states: {self.states_!r} and {other.states_!r}.")
            theirs = 1 - theirs
        return float(relative_entropy([1 - mine, mine], [1 - theirs, theirs]))

    # -- fitting -----------------------------------------------------------------------------------------------------

    def _variable(self, name: Hashable) -> Variable:
        states = self._options["states"]
        return Variable(name, "discrete") if states is None else Variable.discrete(name, states)

    def _ask(self, domain: Domain) -> tuple[Statistic, ...]:
        return (Counts(domain.names),)

    def _counts(self, summary: Summary) -> tuple[float, float]:
        """Weights of failures and successes."""
        return trial_counts(summary, self._known_states())

    def _observed(self, summary: Summary) -> Floats:
        failures, successes = self._counts(summary)
        return np.array([successes / (failures + successes)])

    def _states_in(self, summary: Summary) -> tuple[Hashable, Hashable]:
        return self._known_states() or trial_states(only_variable(summary, self))

    def _edge(self, summary: Summary) -> tuple[str, ...]:
        failures, successes = self._counts(summary)
        if successes == 0:
            return ("log odds -> -inf (no success was seen)",)
        return () if failures > 0 else ("log odds -> +inf (no failure was seen)",)

    def _shortfall(self, summary: Summary) -> float:
        counts = np.array(self._counts(summary))
        return float(relative_entropy(counts / counts.sum(), [1 - self.probability_, self.probability_]))

    def _log_likelihood(self, summary: Summary) -> float:
        from scipy.special import xlog1py, xlogy

        failures, successes = self._counts(summary)
        return float(xlogy(successes, self.probability_) + xlog1py(failures, -self.probability_))

    def _empirical_entropy(self, summary: Summary) -> float | None:
        failures, successes = self._counts(summary)
        total = failures + successes
        return Bernoulli(successes / total).entropy() if total > 0 else None

    # -- with a prior ------------------------------------------------------------------------------------------------

    def _prior(self, summary: Summary) -> Any:
        prior = self._options["prior"]
        if isinstance(prior, int | float) and not isinstance(prior, bool):
            if not (prior > 0 and math.isfinite(prior)):
                raise OptionError(f"prior is {prior!r}; a number of pseudo-counts must be above 0.")
            return Beta(float(prior), float(prior))
        return super()._prior(summary)

    def _update(self, prior: Any, summary: Summary) -> Any:
        failures, successes = self._counts(summary)
        return prior._from_counts([successes, failures])

    def _predictive(self, posterior: Any) -> Bernoulli:
        return Bernoulli(posterior.mean(), states=self.states_)

    def _evidence(self, prior: Any, posterior: Any, summary: Summary) -> float | None:
        failures, successes = self._counts(summary)
        return float(prior.log_evidence([successes, failures]))
