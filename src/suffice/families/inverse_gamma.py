"""The inverse-gamma law: one over a gamma variable."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.domain import Domain
from suffice.errors import EstimateError, OptionError
from suffice.families.base import RunOptions, as_float, as_numbers, as_shape, as_shares, generator
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


class InverseGamma(ExponentialFamily):
    """The inverse-gamma law, ``scale^shape / Gamma(shape) * x^(-shape - 1) exp(-scale / x)`` for x > 0.

    It is the law of 1 / y where y is gamma with this shape and with rate `scale`. Its mode is ``scale / (shape + 1)``.
    Both parameters are fitted by Newton.

    Args:
        shape: the shape, when given.
        scale: the scale, when given.
        run: `max_iter`, `tolerance`, `max_seconds`, `progress`, `callback` and `checkpoint` of a fit; see
            `suffice.fitting.control.Control`.

    >>> InverseGamma(shape=3, scale=8).mode()
    2.0
    """

    parameter_names = ("shape", "scale")
    statistic_names = ("log x", "1/x")

    def __init__(
        self,
        shape: float | None = None,
        scale: float | None = None,
        **run: Unpack[RunOptions],
    ) -> None:
        """See the class."""
        super().__init__(
            shape=shape,
            scale=scale,
            **run,
        )

    # -- parameters --------------------------------------------------------------------------------------------------

    def _check(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        scale = as_float(parameters["scale"], "scale", above=0)
        return {"shape": as_shape(parameters["shape"], "shape"), "scale": scale}

    def _n_free(self) -> int:
        """Two."""
        return 2

    # -- statistics --------------------------------------------------------------------------------------------------

    def sufficient_statistics(self, x: ArrayLike) -> Floats:
        """(log x, 1/x) of each value, (n, 2)."""
        values = as_numbers(x)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.stack([np.log(values), 1 / values], axis=-1)

    def log_base_measure(self, x: ArrayLike) -> Floats:
        """0 for each value; -inf at 0 and below."""
        return np.where(as_numbers(x) > 0, 0.0, -np.inf)

    def log_normalizer(self, eta: ArrayLike | None = None) -> float:
        """A = log Gamma(shape) - shape log(scale), with shape = -eta1 - 1 and scale = -eta2."""
        shape, scale = self._usual(eta)
        return math.lgamma(shape) - shape * math.log(scale) if shape > 0 and scale > 0 else math.inf

    def expected_statistics(self, eta: ArrayLike | None = None) -> Floats:
        """(log(scale) - digamma(shape), shape / scale)."""
        from scipy.special import digamma

        shape, scale = self._usual(eta)
        return np.array([math.log(scale) - float(digamma(shape)), shape / scale])

    def statistics_covariance(self, eta: ArrayLike | None = None) -> Floats:
        """Cov[(log x, 1/x)] = [[trigamma(shape), -1/scale], [-1/scale, shape/scale^2]]."""
        from scipy.special import polygamma

        shape, scale = self._usual(eta)
        return np.array([[float(polygamma(1, shape)), -1 / scale], [-1 / scale, shape / scale / scale]])

    def _cumulants(self, order: int, direction: Floats) -> Floats:
        """Those of the gamma variable 1/x, whose log has the other sign."""
        return gamma_cumulants(order, self.shape_, self.scale_, direction * np.array([-1.0, 1.0]))

    # -- maps --------------------------------------------------------------------------------------------------------

    def _usual(self, eta: ArrayLike | None) -> tuple[float, float]:
        if eta is None:
            return self.shape_, self.scale_
        first, second = self._eta(eta)
        return float(-first - 1), float(-second)

    def _to_natural(self, parameters: Mapping[str, Any]) -> Floats:
        return np.array([-parameters["shape"] - 1, -parameters["scale"]])

    def _from_natural(self, eta: Floats) -> dict[str, Any]:
        return {"shape": float(-eta[0] - 1), "scale": float(-eta[1])}

    def _match(self, mean: Floats, control: Control) -> tuple[dict[str, Any], Outcome]:
        gap = log_gap(-mean[0], mean[1])
        if not gap > 0:
            raise OptionError(
                f"No inverse-gamma law has E[log x] = {mean[0]:g} and E[1/x] = {mean[1]:g}: "
                "log E[1/x] must be above -E[log x]."
            )
        outcome = match_shape(gap, control)
        shape = float(outcome.state.parameters[0])
        return {"shape": shape, "scale": shape / float(mean[1])}, outcome

    # -- evaluation --------------------------------------------------------------------------------------------------

    def log_prob(self, x: ArrayLike) -> Floats:
        """Log density of each value; -inf at 0 and below."""
        values = as_numbers(x)
        inside = (values > 0) & (values < np.inf)
        some = np.where(inside, values, 1.0)
        value = log_gamma_kernel(self.shape_, self.scale_ / some) - np.log(some)
        return np.asarray(np.where(inside, value, -np.inf))

    def _reciprocal(self, x: ArrayLike) -> Floats:
        """The gamma variable scale / x, inf at 0 and below."""
        with np.errstate(divide="ignore", over="ignore"):
            return np.asarray(self.scale_ / np.maximum(as_numbers(x), 0.0))

    def cdf(self, x: ArrayLike) -> Floats:
        """P(X <= x), the upper incomplete gamma function at scale / x."""
        from scipy.special import gammaincc

        return np.asarray(gammaincc(self.shape_, self._reciprocal(x)))

    def quantile(self, q: ArrayLike) -> Floats:
        """The value below which a share q of the mass lies."""
        from scipy.special import gammainccinv

        return self._reciprocal(gammainccinv(self.shape_, as_shares(q, "q")))

    def sample(self, n: int = 1, random_state: Any = None) -> Floats:
        """`n` draws (n,)."""
        return self._reciprocal(generator(random_state).gamma(self.shape_, size=n))

    def mean(self) -> float:
        """The mean, scale / (shape - 1); needs shape > 1."""
        if not self.shape_ > 1:
            raise EstimateError(
                f"The inverse-gamma law of shape {self.shape_:g} has no mean; it needs a shape above 1."
            )
        return float(self.scale_ / (self.shape_ - 1))

    def variance(self) -> float:
        """scale^2 / ((shape - 1)^2 (shape - 2)); needs shape > 2."""
        if not self.shape_ > 2:
            raise EstimateError(
                f"The inverse-gamma law of shape {self.shape_:g} has no variance; it needs a shape above 2."
            )
        mean = self.mean()
        return float(mean / (self.shape_ - 2) * mean)

    def mode(self) -> float:
        """The mode, scale / (shape + 1)."""
        return float(self.scale_ / (self.shape_ + 1))

    def entropy(self) -> float:
        """Entropy: shape + log(scale Gamma(shape)) - (1 + shape) digamma(shape), without what cancels."""
        remainder = rest(self.shape_) - (1 + self.shape_) * rest_slope(self.shape_)
        return math.log(self.scale_) - math.log(self.shape_) + float(remainder)

    def kl_divergence(self, other: InverseGamma) -> float:
        """That of the gamma laws of 1/x: a one-to-one map changes no divergence."""
        if type(other) is not type(self):
            return super().kl_divergence(other)
        return gamma_divergence((self.shape_, self.scale_), (other.shape_, other.scale_))

    # -- fitting -----------------------------------------------------------------------------------------------------

    def _ask(self, domain: Domain) -> tuple[Statistic, ...]:
        (name,) = domain.names
        return (Sums.of((name, "log"), (name, "reciprocal")),)

    def _observed(self, summary: Summary) -> Floats:
        means = np.asarray(read_sums(summary, self._ask(summary.domain)[0]).means)
        check_possible(-means[0], means[1])
        return means

    def _refuse_given(self, summary: Summary) -> None:
        given = [name for name in self.parameter_names if self._options[name] is not None]
        if given:
            raise OptionError(
                f"{' and '.join(given)} given: InverseGamma fits shape and scale together. Leave them out."
            )

    def _maximise(self, summary: Summary, control: Control) -> tuple[dict[str, Any], Outcome | None]:
        mean_log, mean = map(float, self._observed(summary))
        gap = log_gap(-mean_log, mean)
        if not gap > 0:
            raise EstimateError(
                f"The column is constant ({1 / mean!r}) over {summary.rows} rows, or differs by rounding alone: the "
                "likelihood grows without bound as the shape grows. An inverse-gamma law needs values that differ."
            )
        outcome = match_shape(gap, control)
        shape = float(outcome.state.parameters[0])
        return {"shape": shape, "scale": rate_of(shape, mean)}, outcome

    def _gap(self, summary: Summary) -> tuple[float, float]:
        mean_log, mean = self._observed(summary)
        return standardised_gap(self.shape_, float(mean) / (self.shape_ / self.scale_), log_gap(-mean_log, mean))

    def _shortfall(self, summary: Summary) -> float:
        mean_log, mean = map(float, self._observed(summary))
        return shortfall(self.shape_, mean, self.shape_ / self.scale_, log_gap(-mean_log, mean))

    def _log_likelihood(self, summary: Summary) -> float:
        """N times the mean of ``-shape (r - 1 - log r) - rest(shape) - log x`` with r = scale / (shape x)."""
        if not summary.weight > 0:
            return 0.0
        mean_log, mean = map(float, self._observed(summary))
        bulk = self.shape_ * (float(ratio_excess(mean, self.shape_ / self.scale_)) + log_gap(-mean_log, mean))
        return float(summary.weight * (-bulk - float(rest(self.shape_)) - mean_log))
