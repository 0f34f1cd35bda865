"""The exponential distribution of waiting times."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from suffice.array_types import Floats
from suffice.attributes import Read
from suffice.checks import draw_count
from suffice.domain import Domain
from suffice.errors import EstimateError
from suffice.families.base import Seed, as_float, as_numbers, as_shares, generator, never_in
from suffice.families.gamma_function import ratio_excess
from suffice.families.gamma_shape import rate_of
from suffice.families.lomax import Lomax
from suffice.families.moments import read_sums
from suffice.families.scalar import RateFamily, ScalarMember
from suffice.fitting.control import Control
from suffice.statistics import Statistic, Summary, Sums

if TYPE_CHECKING:
    from suffice.families.gamma import Gamma


class WaitingMember(ScalarMember):
    """The exponential distribution, ``rate exp(-rate x)`` for x >= 0."""

    parameter_names = ("rate",)
    rate_: float
    statistic_names = ("x",)
    conjugate_priors = ("Gamma",)

    # -- parameters --------------------------------------------------------------------------------------------------

    def check(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Parameters in their final type; an impossible value is an error."""
        return {"rate": as_float(parameters["rate"], "rate", above=0)}

    @property
    def n_params(self) -> int:
        """One."""
        return 1

    # -- statistics --------------------------------------------------------------------------------------------------

    def sufficient_statistics(self, x: ArrayLike) -> Floats:
        """X of each value, (n, 1)."""
        return as_numbers(x)[..., None]

    def log_base_measure(self, x: ArrayLike) -> Floats:
        """0 for each value; -inf below 0."""
        return np.where(as_numbers(x) >= 0, 0.0, -np.inf)

    def log_normalizer(self, eta: ArrayLike | None = None) -> float:
        """A = -log(-eta)."""
        rate = self._usual(eta)
        return -math.log(rate) if rate > 0 else math.inf

    def expected_statistics(self, eta: ArrayLike | None = None) -> Floats:
        """1 / rate."""
        return np.array([1 / self._usual(eta)])

    def statistics_covariance(self, eta: ArrayLike | None = None) -> Floats:
        """1 / rate^2."""
        return np.array([[1 / self._usual(eta) / self._usual(eta)]])

    def cumulants_along(self, order: int, direction: Floats) -> Floats:
        """(s - 1)! (direction / rate)^s."""
        scale = direction[0] / self.rate_
        return np.array([math.factorial(s - 1) * scale**s for s in range(1, order + 1)])

    # -- maps --------------------------------------------------------------------------------------------------------

    def _usual(self, eta: ArrayLike | None) -> float:
        return float(self.rate_) if eta is None else float(-self._eta(eta)[0])

    def to_natural(self, parameters: Mapping[str, Any]) -> Floats:
        """Natural parameters (k,) from usual ones; +-inf at the edge of the family."""
        return np.array([-parameters["rate"]])

    def from_natural(self, eta: Floats) -> dict[str, Any]:
        """Usual parameters from natural ones."""
        return {"rate": float(-eta[0])}

    def match(self, mean: Floats, control: Control) -> tuple[dict[str, Any], None]:
        """Usual parameters from mean parameters, and how the iteration ended; None for a closed form."""
        return {"rate": float(1 / mean[0])}, None

    # -- evaluation --------------------------------------------------------------------------------------------------

    def log_prob(self, x: ArrayLike) -> Floats:
        """Log density of each value; -inf below 0."""
        values = as_numbers(x)
        return np.asarray(np.where(values >= 0, math.log(self.rate_) - self.rate_ * values, -np.inf))

    def cdf(self, x: ArrayLike) -> Floats:
        """1 - exp(-rate x)."""
        return np.asarray(-np.expm1(-self.rate_ * np.maximum(as_numbers(x), 0.0)))

    def quantile(self, q: ArrayLike) -> Floats:
        """-log(1 - q) / rate."""
        with np.errstate(divide="ignore"):
            return np.asarray(-np.log1p(-as_shares(q, "q")) / self.rate_)

    def sample(self, n: int = 1, random_state: Seed = None) -> Floats:
        """`n` draws (n,)."""
        return np.asarray(generator(random_state).standard_exponential(size=draw_count(n)) / self.rate_)

    def mean(self) -> float:
        """1 / rate."""
        return float(1 / self.rate_)

    def variance(self) -> float:
        """1 / rate^2."""
        return 1 / self.rate_ / self.rate_

    def mode(self) -> float:
        """0."""
        return 0.0

    def entropy(self) -> float:
        """1 - log(rate)."""
        return 1 - math.log(self.rate_)

    def divergence(self, other: WaitingMember) -> float:
        """KL is r - 1 - log r, with r = rate' / rate."""
        return float(ratio_excess(other.rate_, self.rate_))

    # -- fitting -----------------------------------------------------------------------------------------------------

    def ask(self, domain: Domain) -> tuple[Statistic, ...]:
        """The statistics that a fit needs."""
        return (Sums.of(*((name, "nonnegative") for name in domain.names)),)

    def _total(self, summary: Summary) -> float:
        """Sum of x over the rows."""
        total = float(read_sums(summary, self.ask(summary.domain)[0]).sums_pair[0, 0])
        if total < 0:
            raise never_in(f"a sum of {total!r} of numbers of at least 0")
        return total

    def observed(self, summary: Summary) -> Floats:
        """Mean of T over the rows (k,)."""
        return np.array([self._total(summary) / summary.weight])

    def maximise(self, summary: Summary, control: Control) -> tuple[dict[str, Any], None]:
        """Parameters of maximum likelihood, and how the iteration ended; None for a closed form."""
        if not self._total(summary) > 0:
            raise EstimateError(
                f"All {summary.rows} values are 0: the likelihood grows without bound as the rate grows. "
                "Give a prior=Gamma(...)."
            )
        return {"rate": rate_of(1.0, float(self.observed(summary)[0]))}, None

    def shortfall(self, summary: Summary) -> float:
        """How far the mean log-likelihood of a row is below its maximum, by a formula."""
        return float(ratio_excess(self.observed(summary)[0], self.mean()))

    def spread(self) -> Floats:
        """Standard deviation of each statistic (k,), where its square may be beyond float64 too."""
        return self.expected_statistics()

    def log_likelihood(self, summary: Summary) -> float:
        """Sum over the rows of a summary, natural logarithm, where log h is 0."""
        return float(summary.weight * math.log(self.rate_) - self.rate_ * self._total(summary))

    by_mean = True

    def concentration(self) -> float:
        """The square of the rate."""
        return float(self.rate_**2)

    def is_possible(self, mean: Floats) -> bool:
        """Waiting times are at least 0."""
        return bool(mean[0] >= 0)

    def narrowest(self, mean: Floats, most: float) -> dict[str, Any]:
        """The largest rate."""
        return {"rate": math.sqrt(most)}

    def is_coercive(self, prior: Any) -> bool:
        """A gamma density of shape above 1 goes to 0 at 0, and faster than any power at inf."""
        return bool(prior.shape_ > 1)

    # -- with a prior ------------------------------------------------------------------------------------------------

    def update(self, prior: Any, summary: Summary) -> Any:
        """The posterior: the prior with the statistics of the rows added."""
        return prior._updated(summary.weight, self._total(summary))

    def from_point(self, point: Any) -> dict[str, Any]:
        """Parameters from the posterior's mean or mode."""
        if not point > 0:
            raise EstimateError(
                "The MAP is at rate 0, which is no exponential distribution. "
                "Use estimate='mean', or a prior of larger shape."
            )
        return {"rate": point}

    def predictive(self, posterior: Any) -> Lomax:
        """With the rate integrated out."""
        return Lomax(shape=posterior.shape_, scale=posterior.rate_)


class Exponential(RateFamily):
    """The exponential distribution, ``rate exp(-rate x)`` for x >= 0.

    Args:
        rate: one over the mean, when given.
        prior: a `Gamma` on the rate.
        estimate: ``"mean"`` (default with a prior) or ``"map"``, the mode in the rate.
        progress: show a bar over the rows.

    >>> Exponential().fit([0.5, 1.0, 2.5, 4.0]).rate_
    0.5
    """

    member_class = WaitingMember
    rate_: float
    posterior_: Read[Gamma]
    predictive_: Read[Lomax]
