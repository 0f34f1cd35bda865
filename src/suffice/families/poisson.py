"""The Poisson distribution of counts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.array_types import Floats
from suffice.attributes import Read
from suffice.checks import draw_count
from suffice.families.base import Seed, as_float, as_numbers, generator
from suffice.families.counting import CountMember, refuse_long_draws
from suffice.families.gamma_function import log_gamma_kernel, ratio_excess
from suffice.families.negative_binomial import NegativeBinomial
from suffice.families.scalar import RateFamily
from suffice.fitting.control import Control
from suffice.statistics import Summary

#: From this rate on series in 1/rate are exact to rounding.
LARGE_RATE = 1000.0
#: The largest probability below 1.
ALMOST_ONE = math.nextafter(1, 0)

if TYPE_CHECKING:
    from suffice.families.gamma import Gamma


class PoissonMember(CountMember):
    """The Poisson distribution, ``rate^x exp(-rate) / x!`` for x = 0, 1, 2, ..."""

    parameter_names = ("rate",)
    rate_: float
    conjugate_priors = ("Gamma",)

    # -- parameters --------------------------------------------------------------------------------------------------

    def check(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Parameters in their final type; an impossible value is an error."""
        return {"rate": as_float(parameters["rate"], "rate", least=0)}

    @property
    def n_params(self) -> int:
        """One."""
        return 1

    # -- statistics --------------------------------------------------------------------------------------------------

    def log_gamma_base(self, x: Floats) -> Floats:
        """``-log Gamma(x + 1)``."""
        from scipy.special import gammaln

        return np.asarray(-gammaln(x + 1))

    def log_normalizer(self, eta: ArrayLike | None = None) -> Any:
        """A = exp(eta)."""
        return self._usual(eta)

    def expected_statistics(self, eta: ArrayLike | None = None) -> Floats:
        """The rate, exp(eta)."""
        return np.array([self._usual(eta)])

    def statistics_covariance(self, eta: ArrayLike | None = None) -> Floats:
        """The rate."""
        return np.array([[self._usual(eta)]])

    def cumulants_along(self, order: int, direction: Floats) -> Floats:
        """Every cumulant of x is the rate."""
        return np.asarray(direction[0] ** np.arange(1.0, order + 1) * self.rate_)

    # -- maps --------------------------------------------------------------------------------------------------------

    def _usual(self, eta: ArrayLike | None) -> Any:
        if eta is None:
            return self.rate_
        with np.errstate(over="ignore"):
            return float(np.exp(self._eta(eta)[0]))

    def to_natural(self, parameters: Mapping[str, Any]) -> Floats:
        """Natural parameters (k,) from usual ones; +-inf at the edge of the family."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log([parameters["rate"]]))

    def from_natural(self, eta: Floats) -> dict[str, Any]:
        """Usual parameters from natural ones."""
        return {"rate": float(np.exp(eta[0]))}

    def match(self, mean: Floats, control: Control) -> tuple[dict[str, Any], None]:
        """Usual parameters from mean parameters, and how the iteration ended; None for a closed form."""
        return {"rate": float(mean[0])}, None

    # -- evaluation --------------------------------------------------------------------------------------------------

    def log_gamma_prob(self, x: Floats) -> Floats:
        """``x log(rate) - rate - log Gamma(x + 1)``."""
        some = np.where(x == 0, 1.0, x)
        return np.asarray(np.where(x == 0, -self.rate_, log_gamma_kernel(some, self.rate_) - np.log(some)))

    def cdf(self, x: ArrayLike) -> Floats:
        """P(X <= x)."""
        from scipy.special import gammaincc, ndtr

        values = np.floor(as_numbers(x))
        shares = gammaincc(np.maximum(values, 0) + 1, self.rate_)
        # Out of SciPy's reach the rate is so large that the distribution is normal.
        shares = np.where(np.isnan(shares), ndtr((values - self.rate_) / math.sqrt(self.rate_ or 1.0)), shares)
        return np.asarray(np.where(values >= 0, shares, 0.0))

    def sample(self, n: int = 1, random_state: Seed = None) -> NDArray[np.int64]:
        """`n` draws (n,)."""
        refuse_long_draws(self.rate_)
        return generator(random_state).poisson(self.rate_, size=draw_count(n))

    def mean(self) -> Any:
        """The rate."""
        return self.rate_

    def variance(self) -> Any:
        """The rate."""
        return self.rate_

    def mode(self) -> int:
        """The largest count not above the rate; where the rate is a whole number, the one below is as likely."""
        return int(self.rate_)

    def entropy(self) -> float:
        """-sum p log p over the counts that matter, or its asymptotic series for a large rate."""
        rate = self.rate_
        if rate >= LARGE_RATE:
            series = 1 / 12 + (1 / 24 + (19 / 360 + 9 / (80 * rate)) / rate) / rate
            return float(0.5 * math.log(2 * math.pi * math.e * rate) - series / rate)
        counts = np.arange(math.ceil(rate + 40 * math.sqrt(rate) + 60))
        logs = self.log_prob(counts)
        return float(0.0 - (np.exp(logs) * np.where(np.isfinite(logs), logs, 0.0)).sum())

    def divergence(self, other: PoissonMember) -> Any:
        """Rate' - rate + rate log(rate / rate'); inf where only the other is stuck at 0."""
        some = np.where(self.rate_ == 0, 1.0, self.rate_)
        return np.where(self.rate_ == 0, other.rate_, some * ratio_excess(other.rate_, some))

    # -- fitting -----------------------------------------------------------------------------------------------------

    def shortfall(self, summary: Summary) -> float:
        """How far the mean log-likelihood of a row is below its maximum, by a formula."""
        (mean,) = self.observed(summary)
        return float(self.at({"rate": mean}).divergence(self))

    by_mean = True

    def is_possible(self, mean: Floats) -> bool:
        """Counts are at least 0."""
        return bool(mean[0] >= 0)

    def is_coercive(self, prior: Any) -> bool:
        """A gamma density of shape above 1 goes to 0 at 0, and faster than any power at inf."""
        return bool(prior.shape_ > 1)

    # -- with a prior ------------------------------------------------------------------------------------------------

    def update(self, prior: Any, summary: Summary) -> Any:
        """The posterior: the prior with the statistics of the rows added."""
        return prior._updated(self._total(summary), summary.weight)

    def predictive(self, posterior: Any) -> NegativeBinomial:
        """With the rate integrated out: failures before the `shape`-th success."""
        shape, rate = posterior.shape_, posterior.rate_
        probability = min(rate / (rate + 1), ALMOST_ONE)
        if rate > LARGE_RATE:
            # Little of 1 - probability is left after rounding; the size takes up the difference and keeps the mean.
            shape = shape / rate * probability / (1 - probability)
        return NegativeBinomial(size=shape, probability=probability)


class Poisson(RateFamily):
    """The Poisson distribution, ``rate^x exp(-rate) / x!`` for x = 0, 1, 2, ...

    A rate of 0 is the limit that puts all mass on 0; it is the estimate where every value is 0.

    A summary keeps the distinct values with their weights, so its memory follows the number of distinct values, not of
    rows.

    Args:
        rate: the mean number of events, when given.
        prior: a `Gamma` on the rate.
        estimate: ``"mean"`` (default with a prior) or ``"map"``, the mode in the rate.
        progress: show a bar over the rows.

    >>> Poisson().fit([0, 3, 1, 2]).rate_
    1.5
    """

    member_class = PoissonMember
    rate_: float
    posterior_: Read[Gamma]
    predictive_: Read[NegativeBinomial]
