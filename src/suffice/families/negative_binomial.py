"""The negative binomial distribution: failures before a given number of successes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.array_types import Floats
from suffice.attributes import Read
from suffice.checks import draw_count
from suffice.choices import Estimate
from suffice.errors import EstimateError, OptionError
from suffice.families.base import Seed, as_float, as_numbers, as_shape, generator
from suffice.families.beta_negative_binomial import BetaNegativeBinomial
from suffice.families.counting import CountMember, log_choices, refuse_long_draws
from suffice.families.gamma_function import ratio_excess, rest
from suffice.families.scalar import ScalarFamily
from suffice.families.simplex import odds_cumulants
from suffice.fitting.control import Control
from suffice.statistics import Summary

if TYPE_CHECKING:
    from suffice.families.beta import Beta


class NegativeBinomialMember(CountMember):
    """Failures before the `size`-th success, ``C(x + size - 1, x) probability^size (1 - probability)^x``."""

    parameter_names: ClassVar[tuple[str, ...]] = ("size", "probability")
    size_: float
    probability_: float
    conjugate_priors = ("Beta",)

    # -- parameters --------------------------------------------------------------------------------------------------

    def check(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Parameters in their final type; an impossible value is an error."""
        probability = as_float(parameters["probability"], "probability", above=0)
        if probability > 1:
            raise OptionError(f"probability is {parameters['probability']!r}; expected a number above 0 and at most 1.")
        return {"size": as_shape(parameters["size"], "size"), "probability": probability}

    def _known_size(self) -> float:
        """The size, which must be given."""
        size = self.known.get("size")
        if size is None:
            raise OptionError(f"{self.title} needs a known size=: the number of successes to wait for.")
        return as_shape(size, "size")

    @property
    def n_params(self) -> int:
        """One: the size is known."""
        return 1

    # -- statistics --------------------------------------------------------------------------------------------------

    def log_gamma_base(self, x: Floats) -> Floats:
        """``log C(x + size - 1, x)``."""
        return log_choices(x, self._known_size())

    def log_normalizer(self, eta: ArrayLike | None = None) -> Any:
        """A = -size log(1 - exp(eta)), which is -size log(probability)."""
        value = self._known_size() * np.log1p(self._odds(eta))
        return value if np.ndim(value) else float(value)

    def expected_statistics(self, eta: ArrayLike | None = None) -> Floats:
        """``size (1 - probability) / probability``."""
        return self._known_size() * odds_cumulants(1, self._odds(eta), +1)

    def statistics_covariance(self, eta: ArrayLike | None = None) -> Floats:
        """``size (1 - probability) / probability^2``."""
        return self._known_size() * odds_cumulants(2, self._odds(eta), +1)[1:, None]

    def cumulants_along(self, order: int, direction: Floats) -> Floats:
        """Polynomials in the odds of a failure, each w (1 + w) times the derivative of the one before."""
        powers = direction[0] ** np.arange(1, order + 1)
        return np.asarray(powers * self._known_size() * odds_cumulants(order, self._odds(None), +1))

    # -- maps --------------------------------------------------------------------------------------------------------

    def _usual(self, eta: ArrayLike | None) -> float:
        """The probability of a success."""
        return float(self.probability_) if eta is None else float(-np.expm1(self._eta(eta)[0]))

    def _odds(self, eta: ArrayLike | None) -> Any:
        """Odds of a failure."""
        probability = self._usual(eta)
        failure = 1 - probability if eta is None else float(np.exp(self._eta(eta)[0]))
        return failure / probability if probability > 0 else math.inf

    def to_natural(self, parameters: Mapping[str, Any]) -> Floats:
        """Natural parameters (k,) from usual ones; +-inf at the edge of the family."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log1p(-np.array([parameters["probability"]])))

    def from_natural(self, eta: Floats) -> dict[str, Any]:
        """Usual parameters from natural ones."""
        return self.from_point(float(-np.expm1(eta[0])))

    def match(self, mean: Floats, control: Control) -> tuple[dict[str, Any], None]:
        """Usual parameters from mean parameters, and how the iteration ended; None for a closed form."""
        size = self._known_size()
        probability = size / (size + float(mean[0]))
        if not (probability > 0 and math.isfinite(1 / probability)):
            raise EstimateError(
                f"The mean of the counts is {float(mean[0])!r}: with size = {size!r} the probability of a success, "
                f"{probability!r}, has no odds within float64. Give the counts in a larger unit."
            )
        if probability == 1.0 and mean[0] > 0:
            raise EstimateError(
                f"The mean of the counts is {float(mean[0])!r}: with size = {size!r} the probability of a success is 1 "
                "in float64, under which every count would be 0. So large a size is the distribution of Poisson()."
            )
        return self.from_point(probability), None

    # -- evaluation --------------------------------------------------------------------------------------------------

    def log_gamma_prob(self, x: Floats) -> Floats:
        """``log C(x + size - 1, x) + size log(probability) + x log(1 - probability)``.

        With n = x + size it is ``-n KL(x / n || failure) - log x + rest(n) - rest(x) - rest(size)``: nothing large
        cancels, however large the count.
        """
        size = self._known_size()
        some = np.where(x > 0, x, 1.0)
        choices = np.where(x > 0, rest(some + size) - rest(some) - rest(size) - np.log(some), 0.0)
        return np.asarray(choices - self._below(x))

    def cdf(self, x: ArrayLike) -> Floats:
        """P(X <= x), the regularised incomplete beta function."""
        from scipy.special import betainc, gammainc

        values = np.floor(as_numbers(x))
        # Adding one to a count must not be rounded away, and infinity is no argument of the function.
        value = betainc(self._known_size(), np.clip(values, 0.0, 1e300) + 1, self.probability_)
        # Out of SciPy's reach the probability is so small that its product with x is a gamma variable.
        limit = gammainc(self._known_size(), self.probability_ * np.maximum(values, 0.0))
        value = np.where(np.isnan(value), limit, value)
        return np.asarray(np.where(values < 0, 0.0, np.where(values == np.inf, 1.0, value)))

    def sample(self, n: int = 1, random_state: Seed = None) -> NDArray[np.int64]:
        """`n` draws (n,)."""
        refuse_long_draws(self.mean() + 10 * np.sqrt(self.variance()))
        return generator(random_state).negative_binomial(self._known_size(), self._usual(None), size=draw_count(n))

    def mean(self) -> Any:
        """``size (1 - probability) / probability``."""
        return self._known_size() * self._odds(None)

    def variance(self) -> Any:
        """``size (1 - probability) / probability^2``."""
        return self.mean() * (1 + self._odds(None))

    def mode(self) -> int:
        """floor((size - 1) (1 - probability) / probability), or 0; a whole number ties with the one below."""
        odds: float = self._odds(None)
        return math.floor(max(0.0, (self._known_size() - 1) * odds))

    def entropy(self) -> float:
        """-size log(probability) - E[x] log(1 - probability) - E[log C(x + size - 1, x)]."""
        if self.probability_ == 1:
            return 0.0
        known = self._known_size() * (math.log(self.probability_) + self._odds(None) * math.log1p(-self.probability_))
        return float(-known - expected_log_choices(self._known_size(), self.probability_))

    def divergence(self, other: NegativeBinomialMember) -> Any:
        """The divergence of one trial, ``size / probability`` times; both distributions must have the same size."""
        if self._known_size() != other._known_size():
            raise OptionError(
                f"The distributions have sizes {self._known_size():g} and {other._known_size():g}; a family has one "
                "size."
            )
        return other._below(self.mean())

    def _below(self, mean: ArrayLike) -> Floats:
        """KL from the distribution that has this mean: ``n KL(mean / n || failure)`` of n = mean + size trials.

        It is made of terms that are never negative.
        """
        mean, size, odds = np.asarray(mean, dtype=np.float64), self._known_size(), self._odds(None)
        none = mean == 0
        some = np.where(none, 1.0, mean)
        success = 1 / (1 + odds)
        away, trials = success * (some - size * odds), some + size
        with np.errstate(over="ignore"):
            failures = some * ratio_excess(trials * (odds * success), some, -away)
            value = failures + size * ratio_excess(trials * success, size, away)
        return np.asarray(np.where(none, self.log_normalizer(), value))

    # -- fitting -----------------------------------------------------------------------------------------------------

    def shortfall(self, summary: Summary) -> float:
        """How far the mean log-likelihood of a row is below its maximum, by a formula."""
        return float(self._below(self.observed(summary)[0]))

    def spread(self) -> Floats:
        """Standard deviation of each statistic (k,), where its square may be beyond float64 too."""
        odds = self._odds(None)
        return np.array([math.sqrt(self._known_size()) * math.sqrt(odds) * math.sqrt(1 + odds)])

    # -- with a prior ------------------------------------------------------------------------------------------------

    def update(self, prior: Any, summary: Summary) -> Any:
        """Each row saw `size` successes and x failures."""
        return prior._from_counts([summary.weight * self._known_size(), self._total(summary)])

    def from_point(self, point: Any) -> dict[str, Any]:
        """Parameters from the posterior's mean or mode."""
        if not point > 0:
            raise EstimateError(
                "The probability is estimated as 0, under which no success ever comes: that is no distribution of "
                "counts. Use estimate='mean', or a prior with a larger alpha."
            )
        return {"size": self._known_size(), "probability": point}

    def prior_point(self) -> Any:
        """The current parameters in the form that the prior's density takes."""
        return self.probability_

    def point_space(self, estimate: str) -> str:
        """The parameters in which a mean or mode was taken."""
        return "probability"

    def predictive(self, posterior: Any) -> BetaNegativeBinomial:
        """With the probability integrated out."""
        return BetaNegativeBinomial(size=self._known_size(), alpha=posterior.alpha_, beta=posterior.beta_)

    def evidence(self, prior: Any, posterior: Any, summary: Summary) -> float | None:
        """Log marginal likelihood of the rows: ``p(x | point) p(point) / p(point | x)`` is the same at any point."""
        counts = [summary.weight * self._known_size(), self._total(summary)]
        return float(prior.log_evidence(counts)) + self._log_base(summary)


class NegativeBinomial(ScalarFamily):
    """Failures before the `size`-th success, ``C(x + size - 1, x) probability^size (1 - probability)^x``.

    The size is known, not fitted, and need not be a whole number: with ``size = a`` and ``probability = b / (b + 1)``
    it is the distribution of a Poisson count whose rate is Gamma(a, b). A probability of 1 is the limit that puts all
    mass on 0; it is the estimate where every value is 0.

    A summary keeps the distinct values with their weights, so its memory follows the number of distinct values, not of
    rows.

    Args:
        size: the number of successes, any number above 0.
        probability: of a success, when given.
        prior: a `Beta` on the probability.
        estimate: ``"mean"`` (default with a prior) or ``"map"``, the mode in the probability.
        progress: show a bar over the rows.

    >>> NegativeBinomial(size=3).fit([2, 0, 1, 5]).probability_
    0.6
    """

    member_class = NegativeBinomialMember
    size_: float
    probability_: float
    posterior_: Read[Beta]
    predictive_: Read[BetaNegativeBinomial]

    def __init__(
        self,
        size: float | None = None,
        probability: float | None = None,
        *,
        prior: Any = None,
        estimate: Estimate | None = None,
        progress: bool = False,
    ) -> None:
        """See the class."""
        super().__init__(size=size, probability=probability, prior=prior, estimate=estimate, progress=progress)


def expected_log_choices(size: float, probability: float) -> float:
    """E[log C(x + size - 1, x)] of the negative binomial distribution, by an integral of equal cost for every mean.

    With Malmsten's integral of the log-gamma function and the generating function ``g(t) = E[exp(-t x)]`` it is the
    integral of ``(exp(-t) - exp(-size t)) (1 - g(t)) / (t (1 - exp(-t)))`` over t > 0. In s = log t the integrand is
    smooth and dies out at both ends, where the trapezoidal rule is exact to rounding.
    """
    odds = (1 - probability) / probability
    low = -40.0 - max(0.0, math.log(max(odds * size, 1.0))) - max(0.0, math.log(size))
    high = math.log(800.0 / min(size, 1.0))
    step = 1 / 16
    t = np.exp(np.arange(low, high, step))
    loss = -np.expm1(-t)
    difference = -np.exp(-t) * np.expm1(-(size - 1) * t) if size >= 1 else np.exp(-size * t) * np.expm1(-(1 - size) * t)
    never = -np.expm1(-size * np.log1p(odds * loss))
    return float(step * (difference * never / loss).sum())
