"""The normal-inverse-gamma distribution, the conjugate prior of (mean, variance) of a normal distribution."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.checks import draw_count
from suffice.engines.square_root import LOG_2PI
from suffice.errors import EstimateError
from suffice.families.base import (
    Distribution,
    Seed,
    as_float,
    as_location,
    as_scale,
    as_shape,
    generator,
    only_variable,
)
from suffice.families.conjugate import ConjugatePrior, as_point, tails
from suffice.families.gamma_function import ratio_excess
from suffice.families.moments import read_moments
from suffice.families.student import StudentT
from suffice.statistics import Summary


class NormalInverseGamma(Distribution, ConjugatePrior):
    """The distribution of (mean, variance) of a normal distribution.

    Its density at (m, v) is::

        sqrt(gamma / (2 pi v)) beta^alpha / Gamma(alpha) v^-(alpha + 1) exp(-(2 beta + gamma (delta - m)^2) / (2 v))

    `alpha` and `beta` are the shape and scale of the inverse-gamma variance, `delta` the centre of the mean and `gamma`
    the number of rows that the belief in it is worth. The mode is taken in (mean, variance):
    ``(delta, beta / (alpha + 3/2))``.

    >>> NormalInverseGamma(alpha=2, beta=1, gamma=1, delta=0).mode()
    {'mean': 0.0, 'variance': 0.2857142857142857}
    """

    parameter_names = ("alpha", "beta", "gamma", "delta")
    alpha_: float
    beta_: float
    gamma_: float
    delta_: float

    def __init__(self, alpha: float, beta: float, gamma: float, delta: float) -> None:
        """See the class."""
        super().__init__(alpha=alpha, beta=beta, gamma=gamma, delta=delta)

    def _check(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        positive = {name: as_scale(parameters[name], name) for name in ("beta", "gamma")}
        positive = {"alpha": as_shape(parameters["alpha"], "alpha"), **positive}
        return {**positive, "delta": float(as_location(as_float(parameters["delta"], "delta"), "delta"))}

    # -- evaluation --------------------------------------------------------------------------------------------------

    def log_prob(self, x: Any) -> Any:
        """Log density at (mean, variance), given as a dict or a pair of numbers or arrays."""
        mean, variance = as_point(x, ("mean", "variance"))
        with np.errstate(divide="ignore", invalid="ignore"):
            log_variance = np.log(variance)
            square = 2 * self.beta_ + self.gamma_ * (self.delta_ - mean) ** 2
            value = self._log_constant() - 0.5 * LOG_2PI - (self.alpha_ + 1.5) * log_variance
            value = np.where(variance > 0, value - square / (2 * variance), -np.inf)
        return float(value) if value.ndim == 0 else value

    def _log_constant(self) -> float:
        """The part of the log density that does not depend on the point, without the 2 pi."""
        return float(0.5 * math.log(self.gamma_) + self.alpha_ * math.log(self.beta_) - math.lgamma(self.alpha_))

    def mode(self) -> dict[str, float]:
        """The joint mode in (mean, variance)."""
        return {"mean": self.delta_, "variance": self.beta_ / (self.alpha_ + 1.5)}

    def mean(self) -> dict[str, float]:
        """The means of mean and variance; the latter needs alpha > 1."""
        if not self.alpha_ > 1:
            raise EstimateError(
                f"The variance has no mean under alpha = {self.alpha_:g}; it needs alpha > 1. "
                "Use estimate='map', or a larger alpha."
            )
        return {"mean": self.delta_, "variance": self.beta_ / (self.alpha_ - 1)}

    def sample(self, n: int = 1, random_state: Seed = None) -> dict[str, Floats]:
        """`n` draws of mean and variance."""
        n = draw_count(n)
        rng = generator(random_state)
        variance = self.beta_ / rng.gamma(self.alpha_, size=n)
        return {"mean": rng.normal(self.delta_, np.sqrt(variance / self.gamma_)), "variance": variance}

    # -- as a prior --------------------------------------------------------------------------------------------------

    def _from_summary(self, summary: Summary) -> NormalInverseGamma:
        """Of a normal column."""
        only_variable(summary, type(self).__name__)
        moments = read_moments(summary)
        if not moments.weight > 0:
            return self
        return self._updated(moments.weight, float(moments.mean[0]), max(float(moments.scatter[0, 0]), 0.0))

    def _updated(self, weight: float, average: float, scatter: float) -> NormalInverseGamma:
        """After more rows: gamma + N, alpha + N/2, the weighted centre as delta, and beta plus half the squares."""
        gamma = self.gamma_ + weight
        away = average - self.delta_
        return NormalInverseGamma(
            alpha=self.alpha_ + 0.5 * weight,
            beta=self.beta_ + 0.5 * scatter + 0.5 * self.gamma_ * weight * away**2 / gamma,
            gamma=gamma,
            delta=self.delta_ + weight / gamma * away,
        )

    def _predictive_distribution(self) -> StudentT:
        """One more row, with mean and variance integrated out."""
        scale = math.sqrt(self.beta_ * (self.gamma_ + 1) / (self.alpha_ * self.gamma_))
        return StudentT(df=2 * self.alpha_, location=self.delta_, scale=scale)

    def stationarity(self, point: Any) -> Floats:
        """Slope of the log density in (mean, variance)."""
        mean, variance = as_point(point, ("mean", "variance"))
        square = 2 * self.beta_ + self.gamma_ * (self.delta_ - mean) ** 2
        slope = -(self.alpha_ + 1.5) / variance + square / (2 * variance**2)
        return np.array([self.gamma_ * (self.delta_ - mean) / variance, slope])

    def below_mode(self, point: Any) -> float | None:
        """In the variance a (r - 1 - log r) with a = alpha + 3/2 and r the mode over it; a square in the mean."""
        mean, variance = map(float, as_point(point, ("mean", "variance")))
        free, away = self.alpha_ + 1.5, (mean - self.delta_) / math.sqrt(variance)
        return float(free * ratio_excess(self.beta_ / variance, free) + 0.5 * self.gamma_ * away * away)

    def intervals(self, level: float = 0.95) -> Any:
        """The mean is Student-t, the variance inverse-gamma."""
        from scipy.special import gammainccinv

        low, high = tails(level)
        mean = StudentT(2 * self.alpha_, self.delta_, math.sqrt(self.beta_ / (self.alpha_ * self.gamma_)))
        variance = [float(self.beta_ / gammainccinv(self.alpha_, q)) for q in (low, high)]
        return {"mean": tuple(float(q) for q in mean.quantile([low, high])), "variance": tuple(variance)}
