"""The gamma distribution of positive numbers, and the conjugate prior of rates."""

from __future__ import annotations

import math
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from suffice.array_types import Floats
from suffice.attributes import Read
from suffice.checks import draw_count
from suffice.choices import Estimate
from suffice.domain import Domain
from suffice.errors import EstimateError, OptionError
from suffice.families.base import Seed, as_float, as_numbers, as_shares, generator, only_variable
from suffice.families.beta_prime import BetaPrime
from suffice.families.conjugate import ConjugatePrior
from suffice.families.exponential_family import answered_by
from suffice.families.gamma_function import log_gamma_kernel, ratio_excess, rest, rest_slope
from suffice.families.moments import read_sums
from suffice.families.scalar import ScalarFamily
from suffice.families.shape_family import ShapeMember
from suffice.options import Idle, NewtonOptions
from suffice.statistics import Statistic, Summary, Sums


class GammaMember(ShapeMember):
    """The gamma distribution, ``rate^shape / Gamma(shape) * x^(shape - 1) exp(-rate x)`` for x > 0."""

    parameter_names = ("shape", "rate")
    shape_: float
    rate_: float
    statistic_names = ("log x", "x")
    conjugate_priors = ("Gamma",)
    _sign, _title, _remedy = 1.0, "gamma", "Give values that differ, or a known shape=."

    # -- parameters --------------------------------------------------------------------------------------------------

    def _known_shape(self) -> float | None:
        shape: float | None = self.known.get("shape")
        return shape

    # -- statistics --------------------------------------------------------------------------------------------------

    def sufficient_statistics(self, x: ArrayLike) -> Floats:
        """(log x, x) of each value, (n, 2)."""
        values = as_numbers(x)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.stack([np.log(values), values], axis=-1)

    def log_base_measure(self, x: ArrayLike) -> Floats:
        """0 for each value; -inf below 0."""
        return np.where(as_numbers(x) >= 0, 0.0, -np.inf)

    # -- evaluation --------------------------------------------------------------------------------------------------

    def log_prob(self, x: ArrayLike) -> Floats:
        """Log density of each value; -inf below 0, and at 0 its limit."""
        values = as_numbers(x)
        inside = np.where((values > 0) & (values < np.inf), values, 1.0)
        value = log_gamma_kernel(self.shape_, self.rate_ * inside) - np.log(inside)
        at_zero = np.log(self.rate_) if self.shape_ == 1 else math.copysign(math.inf, 1 - self.shape_)
        edge = np.where(values == 0, at_zero, -np.inf)
        return np.asarray(np.where((values > 0) & (values < np.inf), value, edge))

    def cdf(self, x: ArrayLike) -> Floats:
        """P(X <= x), the incomplete gamma function."""
        from scipy.special import gammainc

        return np.asarray(gammainc(self.shape_, self.rate_ * np.maximum(as_numbers(x), 0.0)))

    def quantile(self, q: ArrayLike) -> Floats:
        """The value below which a share q of the mass lies."""
        from scipy.special import gammaincinv

        return np.asarray(gammaincinv(self.shape_, as_shares(q, "q")) / self.rate_)

    def sample(self, n: int = 1, random_state: Seed = None) -> Floats:
        """`n` draws (n,)."""
        return np.asarray(generator(random_state).gamma(self.shape_, size=draw_count(n)) / self.rate_)

    def mean(self) -> Any:
        """The mean, shape / rate."""
        return self.shape_ / self.rate_

    def variance(self) -> Any:
        """The variance, shape / rate^2."""
        return self.shape_ / self.rate_ / self.rate_

    def mode(self) -> float:
        """(shape - 1) / rate; exists where the shape is at least 1."""
        if self.shape_ < 1:
            raise EstimateError(
                f"The gamma density has no mode: with shape = {self.shape_:g}, below 1, it is unbounded at 0. "
                "Use estimate='mean', or a prior of larger shape."
            )
        return float((self.shape_ - 1) / self.rate_)

    def entropy(self) -> float:
        """Entropy: shape - log(rate) + log Gamma(shape) + (1 - shape) digamma(shape), without what cancels."""
        remainder = rest(self.shape_) + (1 - self.shape_) * rest_slope(self.shape_)
        return math.log(self.shape_) - math.log(self.rate_) + float(remainder)

    # -- fitting -----------------------------------------------------------------------------------------------------

    def ask(self, domain: Domain) -> tuple[Statistic, ...]:
        """The statistics that a fit needs."""
        (name,) = domain.names
        return (Sums.of((name, "log"), (name, "x")),)

    def refuse_given(self, summary: Summary) -> None:
        """Raise where every parameter is given: the fit would either do nothing or overrule the caller."""
        super().refuse_given(summary)
        if self.known.get("rate") is not None:
            raise OptionError("rate= is given without shape=. Give the shape as known, or neither.")

    # -- with a prior on the rate ------------------------------------------------------------------------------------

    def conjugate_prior(self, prior: Any, summary: Summary) -> Any:
        """On the rate, of a known shape."""
        prior = super().conjugate_prior(prior, summary)
        if "shape" not in self.known:
            raise OptionError("A Gamma prior is on the rate and needs a known shape=.")
        return prior

    def update(self, prior: Any, summary: Summary) -> Any:
        """The posterior: the prior with the statistics of the rows added."""
        if summary.weight > 0:
            self.observed(summary)  # Says so where no rows have these sums.
        total = float(read_sums(summary, self.ask(summary.domain)[0]).sums_pair[0, 1])
        return prior._updated(float(self.known["shape"]) * summary.weight, total)

    def from_point(self, point: Any) -> dict[str, Any]:
        """Parameters from the posterior's mean or mode."""
        if not point > 0:
            raise EstimateError(
                "The MAP is at rate 0, which is no gamma distribution. Use estimate='mean', or a prior of larger shape."
            )
        return {"shape": self.known.get("shape"), "rate": point}

    def prior_point(self) -> Any:
        """The current parameters in the form that the prior's density takes."""
        return self.rate_

    def point_space(self, estimate: str) -> str:
        """The parameters in which a mean or mode was taken."""
        return "rate (shape known)"

    def predictive(self, posterior: Any) -> BetaPrime:
        """With the rate integrated out."""
        return BetaPrime(alpha=self.shape_, beta=posterior.shape_, scale=posterior.rate_)

    # -- as a prior on a rate ----------------------------------------------------------------------------------------

    def stationarity(self, point: Any) -> Floats:
        """Slope (shape - 1) / x - rate of the log density; at x = 0 only a rise inwards counts."""
        x = np.atleast_1d(as_numbers(point))
        inner = (self.shape_ - 1) / np.where(x > 0, x, 1.0) - self.rate_
        return np.asarray(np.where(x > 0, inner, 0.0 if self.shape_ == 1 else np.inf))

    def below_mode(self, point: Any) -> float | None:
        """With a = shape - 1 and r = rate x / a it is a (r - 1 - log r)."""
        excess, point = self.shape_ - 1, as_float(point, "point")
        if excess <= 0:
            return float(self.rate_ * point) if excess == 0 else None
        return float(excess * ratio_excess(self.rate_ * point, excess))


class Gamma(ScalarFamily, ConjugatePrior):
    """The gamma distribution, ``rate^shape / Gamma(shape) * x^(shape - 1) exp(-rate x)`` for x > 0.

    As a distribution of data both parameters are fitted, by Newton; with `shape` given, `fit` takes it as known and the
    rate has a closed form and a conjugate prior. As a prior it describes the rate of a `Poisson` (the usual partner),
    of an `Exponential` or of a `Gamma` of known shape: `shape` grows by the events seen and `rate` by the exposure.

    Args:
        shape: the shape, when given or known.
        rate: one over the scale, when given.
        prior: with a known shape, a `Gamma` on the rate.
        estimate: ``"mean"`` (default with a prior) or ``"map"``, the mode in the rate.
        run: see `NewtonOptions`.

    >>> Gamma(shape=3, rate=2).mean()
    1.5
    """

    member_class = GammaMember
    _idle = tuple(
        Idle(option, lambda given: given["shape"] is not None, "with a known shape= the rate is found in closed form")
        for option in ("max_iter", "tolerance", "max_seconds", "callback", "checkpoint")
    )
    shape_: float
    rate_: float
    posterior_: Read[Gamma]
    predictive_: Read[BetaPrime]

    def __init__(
        self,
        shape: float | None = None,
        rate: float | None = None,
        *,
        prior: Any = None,
        estimate: Estimate | None = None,
        **run: Unpack[NewtonOptions],
    ) -> None:
        """See the class."""
        super().__init__(shape=shape, rate=rate, prior=prior, estimate=estimate, **run)

    stationarity = answered_by(GammaMember.stationarity)
    below_mode = answered_by(GammaMember.below_mode)
    intervals = answered_by(GammaMember.intervals)

    def _from_summary(self, summary: Summary) -> Gamma:
        """Of a column of counts."""
        from suffice.families.poisson import Poisson

        only_variable(summary, type(self).__name__)
        posterior: Gamma = Poisson()._family.update(self, summary)
        return posterior

    def _updated(self, events: float, exposure: float) -> Gamma:
        """After more rows: shape' = shape + events, rate' = rate + exposure."""
        return Gamma(shape=self.shape_ + events, rate=self.rate_ + exposure)
