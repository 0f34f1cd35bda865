"""The gamma law of positive numbers, and the conjugate prior of rates."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.domain import Domain
from suffice.errors import EstimateError, OptionError
from suffice.families.base import RunOptions, as_float, as_numbers, as_shape, as_shares, generator, only_variable
from suffice.families.beta_prime import BetaPrime
from suffice.families.conjugate import ConjugatePrior, tails
from suffice.families.exponential_family import ExponentialFamily
from suffice.families.gamma_function import log_gamma_kernel, ratio_excess, rest, rest_slope
from suffice.families.gamma_shape import (
    check_possible,
    gamma_cumulants,
    gamma_divergence,
    log_gap,
    match_shape,
    rate_of,
    shortfall,
    standardised_gap,
)
from suffice.families.moments import read_sums
from suffice.fitting.control import Control, Outcome
from suffice.statistics import Statistic, Summary, Sums

Floats = NDArray[np.float64]


class Gamma(ExponentialFamily, ConjugatePrior):
    """The gamma law, ``rate^shape / Gamma(shape) * x^(shape - 1) exp(-rate x)`` for x > 0.

    As a law of data both parameters are fitted, by Newton; with `shape` given, `fit` takes it as known and the rate has
    a closed form and a conjugate prior. As a prior it describes the rate of a `Poisson` (the usual partner), of an
    `Exponential` or of a `Gamma` of known shape: `shape` grows by the events seen and `rate` by the exposure.

    Args:
        shape: the shape, when given or known.
        rate: one over the scale, when given.
        prior: with a known shape, a `Gamma` on the rate.
        estimate: ``"mean"`` (default with a prior) or ``"map"``, the mode in the rate.
        run: `max_iter`, `tolerance`, `max_seconds`, `progress`, `callback` and `checkpoint` of a fit; see
            `suffice.fitting.control.Control`.

    >>> Gamma(shape=3, rate=2).mean()
    1.5
    """

    parameter_names = ("shape", "rate")
    statistic_names = ("log x", "x")
    conjugate_priors = ("Gamma",)

    def __init__(
        self,
        shape: float | None = None,
        rate: float | None = None,
        *,
        prior: Any = None,
        estimate: str | None = None,
        **run: Unpack[RunOptions],
    ) -> None:
        """See the class."""
        super().__init__(
            shape=shape,
            rate=rate,
            prior=prior,
            estimate=estimate,
            **run,
        )

    # -- parameters --------------------------------------------------------------------------------------------------

    def _check(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        rate = as_float(parameters["rate"], "rate", above=0)
        return {"shape": as_shape(parameters["shape"], "shape"), "rate": rate}

    def _n_free(self) -> int:
        """Two, or one where the shape is known."""
        return 2 if self._options["shape"] is None else 1

    # -- statistics --------------------------------------------------------------------------------------------------

    def sufficient_statistics(self, x: ArrayLike) -> Floats:
        """(log x, x) of each value, (n, 2)."""
        values = as_numbers(x)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.stack([np.log(values), values], axis=-1)

    def log_base_measure(self, x: ArrayLike) -> Floats:
        """0 for each value; -inf below 0."""
        return np.where(as_numbers(x) >= 0, 0.0, -np.inf)

    def log_normalizer(self, eta: ArrayLike | None = None) -> float:
        """A = log Gamma(shape) - shape log(rate), with shape = eta1 + 1 and rate = -eta2."""
        shape, rate = self._usual(eta)
        return math.lgamma(shape) - shape * math.log(rate) if shape > 0 and rate > 0 else math.inf

    def expected_statistics(self, eta: ArrayLike | None = None) -> Floats:
        """(digamma(shape) - log(rate), shape / rate)."""
        from scipy.special import digamma

        shape, rate = self._usual(eta)
        return np.array([float(digamma(shape)) - math.log(rate), shape / rate])

    def statistics_covariance(self, eta: ArrayLike | None = None) -> Floats:
        """Cov[(log x, x)] = [[trigamma(shape), 1/rate], [1/rate, shape/rate^2]]."""
        from scipy.special import polygamma

        shape, rate = self._usual(eta)
        return np.array([[float(polygamma(1, shape)), 1 / rate], [1 / rate, shape / rate / rate]])

    def _cumulants(self, order: int, direction: Floats) -> Floats:
        return gamma_cumulants(order, self.shape_, self.rate_, direction)

    # -- maps --------------------------------------------------------------------------------------------------------

    def _usual(self, eta: ArrayLike | None) -> tuple[float, float]:
        if eta is None:
            return self.shape_, self.rate_
        first, second = self._eta(eta)
        return float(first + 1), float(-second)

    def _to_natural(self, parameters: Mapping[str, Any]) -> Floats:
        return np.array([parameters["shape"] - 1, -parameters["rate"]])

    def _from_natural(self, eta: Floats) -> dict[str, Any]:
        return {"shape": float(eta[0] + 1), "rate": float(-eta[1])}

    def _match(self, mean: Floats, control: Control) -> tuple[dict[str, Any], Outcome]:
        gap = log_gap(mean[0], mean[1])
        if not gap > 0:
            raise OptionError(
                f"No gamma law has E[log x] = {mean[0]:g} and E[x] = {mean[1]:g}: log E[x] must be above E[log x]."
            )
        outcome = match_shape(gap, control)
        shape = float(outcome.state.parameters[0])
        return {"shape": shape, "rate": shape / float(mean[1])}, outcome

    # -- evaluation --------------------------------------------------------------------------------------------------

    def log_prob(self, x: ArrayLike) -> Floats:
        """Log density of each value; -inf below 0, and at 0 its limit."""
        values = as_numbers(x)
        inside = np.where((values > 0) & (values < np.inf), values, 1.0)
        value = log_gamma_kernel(self.shape_, self.rate_ * inside) - np.log(inside)
        at_zero = math.log(self.rate_) if self.shape_ == 1 else math.copysign(math.inf, 1 - self.shape_)
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

    def sample(self, n: int = 1, random_state: Any = None) -> Floats:
        """`n` draws (n,)."""
        return np.asarray(generator(random_state).gamma(self.shape_, size=n) / self.rate_)

    def mean(self) -> float:
        """The mean, shape / rate."""
        return float(self.shape_ / self.rate_)

    def variance(self) -> float:
        """The variance, shape / rate^2."""
        return float(self.shape_ / self.rate_ / self.rate_)

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

    def kl_divergence(self, other: Gamma) -> float:
        """Closed form as a sum of two terms that are never negative: one for the mean, one for the shape."""
        if type(other) is not type(self):
            return super().kl_divergence(other)
        return gamma_divergence((self.shape_, self.rate_), (other.shape_, other.rate_))

    # -- fitting -----------------------------------------------------------------------------------------------------

    def _ask(self, domain: Domain) -> tuple[Statistic, ...]:
        (name,) = domain.names
        return (Sums.of((name, "log"), (name, "x")),)

    def _observed(self, summary: Summary) -> Floats:
        means = np.asarray(read_sums(summary, self._ask(summary.domain)[0]).means)
        check_possible(means[0], means[1])
        return means

    def _refuse_given(self, summary: Summary) -> None:
        super()._refuse_given(summary)
        if self._options["rate"] is not None:
            raise OptionError("rate= is given without shape=. Give the shape as known, or neither.")

    def _maximise(self, summary: Summary, control: Control) -> tuple[dict[str, Any], Outcome | None]:
        mean_log, mean = map(float, self._observed(summary))
        known = self._options["shape"]
        if known is not None:
            return {"shape": known, "rate": rate_of(float(known), mean)}, None
        gap = log_gap(mean_log, mean)
        if not gap > 0:
            raise EstimateError(
                f"The column is constant ({mean!r}) over {summary.rows} rows, or differs by rounding alone: the "
                "likelihood grows without bound as the shape grows. Give values that differ, or a known shape=."
            )
        outcome = match_shape(gap, control)
        shape = float(outcome.state.parameters[0])
        return {"shape": shape, "rate": rate_of(shape, mean)}, outcome

    def _gap(self, summary: Summary) -> tuple[float, float]:
        mean_log, mean = self._observed(summary)
        ratio = float(mean / self.mean())
        if self._options["shape"] is not None:
            return (abs(ratio - 1) * math.sqrt(self.shape_),) * 2
        return standardised_gap(self.shape_, ratio, log_gap(mean_log, mean))

    def _shortfall(self, summary: Summary) -> float:
        mean_log, mean = map(float, self._observed(summary))
        known = self._options["shape"] is not None
        return shortfall(self.shape_, mean, self.mean(), None if known else log_gap(mean_log, mean))

    def _log_likelihood(self, summary: Summary) -> float:
        """N times the mean of ``-shape (r - 1 - log r) - rest(shape) - log x`` with r = x rate / shape."""
        if not summary.weight > 0:
            return 0.0
        mean_log, mean = map(float, self._observed(summary))
        bulk = self.shape_ * (float(ratio_excess(mean, self.shape_ / self.rate_)) + log_gap(mean_log, mean))
        return float(summary.weight * (-bulk - float(rest(self.shape_)) - mean_log))

    # -- with a prior on the rate ------------------------------------------------------------------------------------

    def _prior(self, summary: Summary) -> Any:
        prior = super()._prior(summary)
        if prior is not None and self._options["shape"] is None:
            raise OptionError("A Gamma prior is on the rate and needs a known shape=.")
        return prior

    def _update(self, prior: Any, summary: Summary) -> Any:
        if summary.weight > 0:
            self._observed(summary)  # Says so where no rows have these sums.
        total = float(read_sums(summary, self._ask(summary.domain)[0]).sums_pair[0, 1])
        return prior._updated(float(self._options["shape"]) * summary.weight, total)

    def _from_point(self, point: Any) -> dict[str, Any]:
        if not point > 0:
            raise EstimateError(
                "The posterior mode is at rate 0, which is no gamma law. "
                "Use estimate='mean', or a prior of larger shape."
            )
        return {"shape": self._options["shape"], "rate": point}

    def _prior_point(self) -> Any:
        return self.rate_

    def _point_space(self, estimate: str) -> str:
        return "rate (shape known)"

    def _predictive(self, posterior: Any) -> BetaPrime:
        """With the rate integrated out."""
        return BetaPrime(alpha=self.shape_, beta=posterior.shape_, scale=posterior.rate_)

    def _evidence(self, prior: Any, posterior: Any, summary: Summary) -> float | None:
        """p(x) = p(x | rate) p(rate) / p(rate | x) at any rate."""
        rate = posterior.mean()
        ratio = prior.log_prob(rate) - posterior.log_prob(rate)
        return Gamma(self._options["shape"], rate)._log_likelihood(summary) + float(ratio)

    def credible_intervals(self, level: float = 0.95) -> dict[str, Any]:
        """Central posterior interval of the rate."""
        return {"rate": self.posterior_.intervals(level)}

    # -- as a prior on a rate ----------------------------------------------------------------------------------------

    def _from_summary(self, summary: Summary) -> Gamma:
        """Of a column of counts."""
        from suffice.families.poisson import Poisson

        only_variable(summary, self)
        return Poisson()._update(self, summary)

    def _updated(self, events: float, exposure: float) -> Gamma:
        """After more rows: shape' = shape + events, rate' = rate + exposure."""
        return Gamma(shape=self.shape_ + events, rate=self.rate_ + exposure)

    def stationarity(self, point: Any) -> Floats:
        """Slope (shape - 1) / x - rate of the log density; at x = 0 only a rise inwards counts."""
        x = np.atleast_1d(as_numbers(point))
        inner = (self.shape_ - 1) / np.where(x > 0, x, 1.0) - self.rate_
        return np.asarray(np.where(x > 0, inner, 0.0 if self.shape_ == 1 else np.inf))

    def below_mode(self, point: Any) -> float | None:
        """With a = shape - 1 and r = rate x / a it is a (r - 1 - log r)."""
        excess = self.shape_ - 1
        if excess <= 0:
            return float(self.rate_ * point) if excess == 0 else None
        return float(excess * ratio_excess(self.rate_ * point, excess))

    def intervals(self, level: float = 0.95) -> Any:
        """The central interval."""
        low, high = self.quantile(tails(level))
        return float(low), float(high)
