"""What the gamma and the inverse-gamma distribution share: y is gamma, with y = x or y = 1 / x."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from suffice.array_types import Floats
from suffice.errors import EstimateError, OptionError
from suffice.families.base import as_float, as_shape
from suffice.families.gamma_function import ratio_excess, rest
from suffice.families.gamma_shape import (
    NO_ROUNDING,
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
from suffice.families.scalar import ScalarMember
from suffice.fitting.control import Control, Outcome
from suffice.statistics import Summary


class ShapeMember(ScalarMember):
    """Distributions of x > 0 for which ``y = x^sign`` is gamma; the second parameter is the rate of y.

    T is (log x, y): its first part is `sign` times the logarithm of y.
    """

    #: 1 where x itself is gamma, -1 where 1 / x is.
    _sign: ClassVar[float]
    #: What the distribution is called in messages, and what helps where all values are alike.
    _title: ClassVar[str]
    _remedy: ClassVar[str]

    # -- parameters --------------------------------------------------------------------------------------------------

    def check(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Parameters in their final type; an impossible value is an error."""
        second = self.parameter_names[1]
        rate = as_float(parameters[second], second, above=0)
        return {"shape": as_shape(parameters["shape"], "shape"), second: rate}

    @property
    def n_params(self) -> int:
        """Two, or one where the shape is known."""
        return 2 if self._known_shape() is None else 1

    def _known_shape(self) -> float | None:
        """The shape where a fit takes it as known."""
        return None

    # -- statistics --------------------------------------------------------------------------------------------------

    def log_normalizer(self, eta: ArrayLike | None = None) -> float:
        """A = log Gamma(shape) - shape log(rate), with ``shape = sign (eta1 + 1)`` and rate = -eta2."""
        shape, rate = self._usual(eta)
        return math.lgamma(shape) - shape * math.log(rate) if shape > 0 and rate > 0 else math.inf

    def expected_statistics(self, eta: ArrayLike | None = None) -> Floats:
        """(sign (digamma(shape) - log(rate)), shape / rate)."""
        from scipy.special import digamma

        shape, rate = self._usual(eta)
        return np.array([self._sign * (float(digamma(shape)) - math.log(rate)), shape / rate])

    def statistics_covariance(self, eta: ArrayLike | None = None) -> Floats:
        """Cov[T] = [[trigamma(shape), sign/rate], [sign/rate, shape/rate^2]]."""
        from scipy.special import polygamma

        shape, rate = self._usual(eta)
        mixed = self._sign / rate
        return np.array([[float(polygamma(1, shape)), mixed], [mixed, shape / rate / rate]])

    def cumulants_along(self, order: int, direction: Floats) -> Floats:
        """Cumulants 1 to `order` of ``direction . T`` (order,); numerical derivatives unless a family has formulas."""
        return gamma_cumulants(order, *self._usual(None), direction * np.array([self._sign, 1.0]))

    # -- maps --------------------------------------------------------------------------------------------------------

    def _usual(self, eta: ArrayLike | None) -> tuple[float, float]:
        """Shape and rate of y."""
        usual = self.parameters_ if eta is None else self.from_natural(self._eta(eta))
        return usual["shape"], usual[self.parameter_names[1]]

    def to_natural(self, parameters: Mapping[str, Any]) -> Floats:
        """Natural parameters (k,) from usual ones; +-inf at the edge of the family."""
        return np.array([self._sign * parameters["shape"] - 1, -parameters[self.parameter_names[1]]])

    def from_natural(self, eta: Floats) -> dict[str, Any]:
        """Usual parameters from natural ones."""
        return {"shape": float(self._sign * (eta[0] + 1)), self.parameter_names[1]: float(-eta[1])}

    def match(self, mean: Floats, control: Control) -> tuple[dict[str, Any], Outcome]:
        """Usual parameters from mean parameters, and how the iteration ended; None for a closed form."""
        gap = log_gap(self._sign * mean[0], mean[1])
        if not gap > 0:
            y, minus = self.statistic_names[1], "-" if self._sign < 0 else ""
            raise OptionError(
                f"No {self._title} distribution has E[log x] = {mean[0]:g} and E[{y}] = {mean[1]:g}: "
                f"log E[{y}] must be above {minus}E[log x]."
            )
        outcome = match_shape(gap, control)
        shape = float(outcome.state.parameters[0])
        return {"shape": shape, self.parameter_names[1]: shape / float(mean[1])}, outcome

    # -- fitting -----------------------------------------------------------------------------------------------------

    def observed(self, summary: Summary) -> Floats:
        """Mean of T over the rows (k,)."""
        means = np.asarray(read_sums(summary, self.ask(summary.domain)[0]).means)
        check_possible(self._sign * means[0], means[1])
        return means

    def _seen(self, summary: Summary) -> tuple[float, float]:
        """The mean of y over the rows, and by how much its logarithm is above the mean of log y."""
        mean_log, mean = map(float, self.observed(summary))
        return mean, log_gap(self._sign * mean_log, mean)

    def maximise(self, summary: Summary, control: Control) -> tuple[dict[str, Any], Outcome | None]:
        """Parameters of maximum likelihood, and how the iteration ended; None for a closed form."""
        mean, gap = self._seen(summary)
        known, second = self._known_shape(), self.parameter_names[1]
        if known is not None:
            return {"shape": known, second: rate_of(float(known), mean)}, None
        if not gap > 0:
            raise EstimateError(
                f"The column is constant ({mean**self._sign!r}) over {summary.rows} rows, or differs by rounding "
                f"alone: the likelihood grows without bound as the shape grows. {self._remedy}"
            )
        outcome = match_shape(gap, control)
        shape = float(outcome.state.parameters[0])
        return {"shape": shape, second: rate_of(shape, mean)}, outcome

    def gap(self, summary: Summary) -> tuple[float, float]:
        """Largest gap between observed and expected means in standard deviations of a row, and the Newton decrement."""
        mean, gap = self._seen(summary)
        shape, rate = self._usual(None)
        ratio = mean / (shape / rate)
        if self._known_shape() is not None:
            return (abs(ratio - 1) * math.sqrt(shape),) * 2
        return standardised_gap(shape, ratio, gap)

    def shortfall(self, summary: Summary) -> float:
        """How far the mean log-likelihood of a row is below its maximum, by a formula."""
        mean, gap = self._seen(summary)
        shape, rate = self._usual(None)
        return shortfall(shape, mean, shape / rate, None if self._known_shape() is not None else gap)

    def log_likelihood(self, summary: Summary) -> float:
        """N times the mean of ``-shape (r - 1 - log r) - rest(shape) - log x`` with r = y rate / shape."""
        if not summary.weight > 0:
            return 0.0
        mean, gap = self._seen(summary)
        shape, rate = self._usual(None)
        bulk = shape * (float(ratio_excess(mean, shape / rate)) + gap)
        return float(summary.weight * (-bulk - float(rest(shape)) - float(self.observed(summary)[0])))

    by_mean = True

    def concentration(self) -> float:
        """The shape."""
        return float(self.parameters_["shape"])

    def is_possible(self, mean: Floats) -> bool:
        """By Jensen's inequality the log of the mean of y is above the mean of its log."""
        log = self._sign * float(mean[0])
        return bool(mean[1] > 0) and math.log(mean[1]) - log >= -NO_ROUNDING * (1 + abs(log))

    def narrowest(self, mean: Floats, most: float) -> dict[str, Any]:
        """The largest shape, at the mean of y."""
        return {"shape": most, self.parameter_names[1]: most / float(mean[1])}

    # -- evaluation --------------------------------------------------------------------------------------------------

    def divergence(self, other: ShapeMember) -> float:
        """A sum of two terms that are never negative, one for the mean of y and one for the shape.

        The one-to-one map from x to y changes no divergence.
        """
        return gamma_divergence(self._usual(None), other._usual(None))
