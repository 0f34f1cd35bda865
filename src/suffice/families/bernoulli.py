"""The Bernoulli distribution: success or failure."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.array_types import Floats
from suffice.attributes import Read
from suffice.checks import draw_count
from suffice.choices import Estimate
from suffice.domain import Domain, Variable, state_key
from suffice.errors import MissingValueError, NotFittedError, OptionError
from suffice.families.base import (
    Seed,
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
from suffice.families.scalar import ScalarFamily, ScalarMember
from suffice.families.simplex import odds_cumulants, relative_entropy
from suffice.fitting.control import Control
from suffice.statistics import Counts, Statistic, Summary


class BernoulliMember(ScalarMember):
    """The Bernoulli distribution: a success has `probability`, a failure the rest."""

    parameter_names = ("probability",)
    probability_: float
    statistic_names = ("x",)
    conjugate_priors = ("Beta",)
    constant_names = ("states",)

    # -- parameters --------------------------------------------------------------------------------------------------

    def check(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Parameters in their final type; an impossible value is an error."""
        probability = as_float(parameters["probability"], "probability", least=0)
        if probability > 1:
            raise OptionError(f"probability is {parameters['probability']!r}; expected a number from 0 to 1.")
        return {"probability": probability}

    def _known_states(self) -> tuple[Hashable, Hashable] | None:
        """(failure, success) as declared or seen; None where neither has happened."""
        states = self.known.get("states", self.known.get("seen_states"))
        if states is None:
            return None
        failure, success = Variable.discrete("x", states).states
        return failure, success

    def labels(self) -> tuple[Hashable, Hashable]:
        """(failure, success): declared, seen, or (0, 1)."""
        return self._known_states() or (0, 1)

    def restored(self, plain: Mapping[str, Any]) -> Self:
        """The member of a file, with the states that were seen."""
        failure, success = Variable.discrete("x", plain["states"]).states
        return self.at(plain["parameters"], seen_states=(failure, success))

    # -- statistics --------------------------------------------------------------------------------------------------

    def _codes(self, x: Any) -> NDArray[np.intp]:
        """1 for a success, 0 for a failure, -1 for a missing value; truth values also do where no states are known."""
        if self._known_states() is None:
            x = np.atleast_1d(as_array(list(x) if isinstance(x, Iterator) else x))
            truths = x.dtype.kind == "b" or any(isinstance(value, bool) for value in x.tolist() if x.dtype.kind == "O")
            return state_codes(Variable.discrete("x", (False, True) if truths else (0, 1)), x)
        return state_codes(Variable.discrete("x", self.labels()), x)

    def sufficient_statistics(self, x: Any) -> Floats:
        """1 for a success, 0 for a failure, (n, 1); a missing value has no statistic and is an error."""
        codes = self._codes(x)
        if (codes < 0).any():
            raise MissingValueError(
                "A missing value (None or NaN) is neither success nor failure. Leave those values out."
            )
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

    def cumulants_along(self, order: int, direction: Floats) -> Floats:
        """Polynomials in the probability, p (1 - p) times the derivative of the one before; odd ones flip with p."""
        p = self.probability_
        cumulants = odds_cumulants(order, min(p, 1 - p), -1)
        if p > 0.5:
            cumulants *= np.array([-1.0, 1.0])[np.arange(order) % 2]
            cumulants[0] = p
        return np.asarray(cumulants * direction[0] ** np.arange(1, order + 1))

    # -- maps --------------------------------------------------------------------------------------------------------

    def _usual(self, eta: ArrayLike | None) -> float:
        """The probability."""
        from scipy.special import expit

        return float(self.probability_) if eta is None else float(expit(self._eta(eta)[0]))

    def to_natural(self, parameters: Mapping[str, Any]) -> Floats:
        """The log odds."""
        probability = np.array([parameters["probability"]])
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(probability) - np.log1p(-probability))

    def from_natural(self, eta: Floats) -> dict[str, Any]:
        """Usual parameters from natural ones."""
        return {"probability": self._usual(eta)}

    def match(self, mean: Floats, control: Control) -> tuple[dict[str, Any], None]:
        """Usual parameters from mean parameters, and how the iteration ended; None for a closed form."""
        return {"probability": float(mean[0])}, None

    # -- evaluation --------------------------------------------------------------------------------------------------

    def log_prob(self, x: Any) -> Floats:
        """Log probability of each value; a missing value has probability one, an unknown value is an error."""
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

    def sample(self, n: int = 1, random_state: Seed = None) -> NDArray[Any]:
        """`n` draws, as an array of states."""
        successes = generator(random_state).random(draw_count(n)) < self.probability_
        return take_states(self.labels(), successes.astype(np.intp))

    def mean(self) -> Any:
        """The probability: the mean of 1 for a success and 0 for a failure."""
        return self.probability_

    def variance(self) -> Any:
        """``probability (1 - probability)``."""
        return self.probability_ * (1 - self.probability_)

    def mode(self) -> Hashable:
        """The more probable state; the failure where both are alike."""
        return self.labels()[int(self.probability_ > 0.5)]

    def entropy(self) -> float:
        """-p log p - (1 - p) log(1 - p)."""
        from scipy.special import entr, xlog1py

        p = self.probability_
        return float(entr(p) - xlog1py(1 - p, -p))

    def divergence(self, other: BernoulliMember) -> Any:
        """``p log(p / q) + (1 - p) log((1 - p) / (1 - q))``; inf where the other gives a possible state no mass."""
        mine, theirs = self.probability_, other.probability_
        named = "states" in self.known and "states" in other.known
        if named and list(map(state_key, self.labels())) != list(map(state_key, other.labels())):
            if set(map(state_key, self.labels())) != set(map(state_key, other.labels())):
                raise OptionError(f"The distributions have different states: {self.labels()!r} and {other.labels()!r}.")
            theirs = 1 - theirs
        return relative_entropy(np.stack([1 - mine, mine], axis=-1), np.stack([1 - theirs, theirs], axis=-1))

    # -- fitting -----------------------------------------------------------------------------------------------------

    def variable(self, name: Hashable) -> Variable:
        """The kind of column that the family describes."""
        states = self.known.get("states")
        return Variable(name, "discrete") if states is None else Variable.discrete(name, states)

    def ask(self, domain: Domain) -> tuple[Statistic, ...]:
        """The statistics that a fit needs."""
        return (Counts(domain.names),)

    def _counts(self, summary: Summary) -> tuple[float, float]:
        """Weights of failures and successes."""
        return trial_counts(summary, self._known_states())

    def observed(self, summary: Summary) -> Floats:
        """Mean of T over the rows (k,)."""
        failures, successes = self._counts(summary)
        return np.array([successes / (failures + successes)])

    def seen_in(self, summary: Summary) -> Mapping[str, Any]:
        """The two states."""
        return {"seen_states": self._known_states() or trial_states(only_variable(summary, self.title))}

    def edge(self, summary: Summary) -> tuple[str, ...]:
        """What runs to infinity at the maximum-likelihood estimate; empty where the maximum is attained."""
        failures, successes = self._counts(summary)
        if successes == 0:
            return ("log odds -> -inf (no success was seen)",)
        return () if failures > 0 else ("log odds -> +inf (no failure was seen)",)

    def shortfall(self, summary: Summary) -> float:
        """How far the mean log-likelihood of a row is below its maximum, by a formula."""
        counts = np.array(self._counts(summary))
        return float(relative_entropy(counts / counts.sum(), [1 - self.probability_, self.probability_]))

    def log_likelihood(self, summary: Summary) -> float:
        """Sum over the rows of a summary, natural logarithm, where log h is 0."""
        from scipy.special import xlog1py, xlogy

        failures, successes = self._counts(summary)
        return float(xlogy(successes, self.probability_) + xlog1py(failures, -self.probability_))

    def empirical_entropy(self, summary: Summary) -> float | None:
        """Entropy of the observed frequencies; None where the data are not discrete."""
        failures, successes = self._counts(summary)
        total = failures + successes
        return self.at({"probability": successes / total}).entropy() if total > 0 else None

    # -- with a prior ------------------------------------------------------------------------------------------------

    def conjugate_prior(self, prior: Any, summary: Summary) -> Any:
        """A number stands for as many pseudo-counts of both states."""
        if isinstance(prior, int | float) and not isinstance(prior, bool):
            if not (prior > 0 and math.isfinite(prior)):
                raise OptionError(f"prior is {prior!r}; a number of pseudo-counts must be above 0.")
            return Beta(float(prior), float(prior))
        return super().conjugate_prior(prior, summary)

    def update(self, prior: Any, summary: Summary) -> Any:
        """The posterior: the prior with the statistics of the rows added."""
        failures, successes = self._counts(summary)
        return prior._from_counts([successes, failures])

    def predictive(self, posterior: Any) -> Bernoulli:
        """The distribution of one more row, with the parameters integrated out."""
        return Bernoulli(posterior.mean(), states=self.labels())

    def evidence(self, prior: Any, posterior: Any, summary: Summary) -> float | None:
        """Log marginal likelihood of the rows: ``p(x | point) p(point) / p(point | x)`` is the same at any point."""
        failures, successes = self._counts(summary)
        return float(prior.log_evidence([successes, failures]))


class Bernoulli(ScalarFamily):
    """The Bernoulli distribution: a success has `probability`, a failure the rest.

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

    member_class = BernoulliMember
    probability_: float
    posterior_: Read[Beta]
    predictive_: Read[Bernoulli]

    def __init__(
        self,
        probability: float | None = None,
        *,
        states: Iterable[Hashable] | None = None,
        prior: Any = None,
        estimate: Estimate | None = None,
        progress: bool = False,
    ) -> None:
        """See the class."""
        kept = states if states is None or isinstance(states, str | tuple) else tuple(states)
        if kept is not None and Variable.discrete("x", kept).card != 2:
            raise OptionError(f"states is {states!r}; expected two: (failure, success).")
        super().__init__(probability=probability, states=kept, prior=prior, estimate=estimate, progress=progress)

    @property
    def states_(self) -> tuple[Hashable, Hashable]:
        """(failure, success): declared, seen, or (0, 1)."""
        if self._fit is None and self._options["states"] is None:
            raise NotFittedError("This Bernoulli has no states yet. Call fit, or give states= in the constructor.")
        states: tuple[Hashable, Hashable] = self._member.labels()
        return states
