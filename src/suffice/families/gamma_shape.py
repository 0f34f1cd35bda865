"""The shape of a gamma distribution: matching it to data, and the formulas shared by gamma and inverse-gamma.

An inverse-gamma variable is one over a gamma variable, so both distributions are fitted from the same figure, the gap
between the log of the mean and the mean of the logs of the gamma variable.
"""

from __future__ import annotations

import math

import numpy as np

from suffice.array_types import Floats
from suffice.errors import EstimateError
from suffice.families.base import SMALLEST_NORMAL, never_in
from suffice.families.gamma_function import ratio_excess, rest, rest_curvature, rest_divergence, rest_slope
from suffice.fitting.control import Control, Outcome
from suffice.solvers.newton import newton

#: A gap below this share of the size of the logs is rounding.
ROUNDING = 4 * float(np.finfo(np.float64).eps)
#: One below minus this share is not.
NO_ROUNDING = 1e-9


def log_gap(mean_log: float, mean: float) -> float:
    """log(mean) - mean of logs, at least 0 by Jensen's inequality; 0 where it is within rounding."""
    if not mean > 0:
        return 0.0
    log_mean = math.log(mean)
    gap = log_mean - float(mean_log)
    return gap if gap > ROUNDING * (1 + abs(log_mean)) else 0.0


def check_possible(mean_log: float, mean: float) -> None:
    """Raise where no positive numbers have this mean of logs and this mean."""
    if not mean > 0:
        raise never_in(f"a mean of {float(mean)!r} of positive numbers")
    log_mean = math.log(mean)
    if log_mean - float(mean_log) < -NO_ROUNDING * (1 + abs(log_mean)):
        raise never_in(f"a mean of logarithms of {float(mean_log)!r}, above the logarithm {log_mean!r} of the mean")


def rate_of(shape: float, mean: float) -> float:
    """The rate shape / mean of a gamma variable; a mean so small or large that it is no number is an error."""
    rate = shape / mean
    if not SMALLEST_NORMAL <= rate < math.inf:
        raise EstimateError(
            f"The mean of the values is {mean!r}, and {shape:g} over it is {rate!r}: beyond the numbers of float64. "
            "Rescale the column: use another unit."
        )
    return rate


def match_shape(gap: float, control: Control) -> Outcome:
    """Solve ``log(shape) - digamma(shape) = gap`` for the shape.

    With the rate at its best value, shape / mean, the log-likelihood of a row is ``-rest(shape) - shape gap`` and a
    constant, which is concave: Newton from a start that is within two per cent for every gap.
    """

    def function(shape: Floats) -> tuple[float, Floats, Floats]:
        if not shape[0] > 0:
            return -math.inf, shape, np.eye(1)
        value = -float(rest(shape[0])) - gap * float(shape[0])
        return value, -rest_slope(shape) - gap, rest_curvature(shape)[:, None]

    # (3 - g + r) / (12 g) with r^2 = (g - 3)^2 + 24 g, which is 2 / (g - 3 + r): the one in which nothing cancels.
    root = math.hypot(gap - 3, math.sqrt(24 * gap))
    start = (3 - gap + root) / (12 * gap) if gap < 3 else 2 / (gap - 3 + root)
    return newton(function, np.array([start]), control)


def standardised_gap(shape: float, ratio: float, gap: float) -> tuple[float, float]:
    """How far the statistics (log y, y) of a gamma distribution are from those observed.

    `ratio` is the observed mean over the expected one; `gap` is the observed `log_gap`. Returns the largest gap
    in standard deviations and the Newton decrement. The parts ``y`` and ``log y - y / mean`` are uncorrelated, with
    variances ``1 / shape`` (of y / mean) and ``trigamma(shape) - 1 / shape``.
    """
    away = ratio - 1
    logs = -gap - float(rest_slope(shape)) + (math.log(ratio) if ratio > 0 else -math.inf)
    curvature = float(rest_curvature(shape))
    largest = max(abs(logs) / math.sqrt(curvature + 1 / shape), abs(away) * math.sqrt(shape))
    return largest, math.hypot(away * math.sqrt(shape), (logs - away) / math.sqrt(curvature))


def shortfall(shape: float, mean: float, expected: float, gap: float | None) -> float:
    """How far the mean log-likelihood of gamma rows is below its maximum, at most; `gap` is None for a known shape.

    With the rate at its best value it is concave in the shape, so it rises by at most its slope times the way to a
    shape where the slope has turned.
    """
    lost = shape * float(ratio_excess(mean, expected))
    if gap is None:
        return lost

    def slope(point: float) -> float:
        return -float(rest_slope(point)) - gap

    here = slope(shape)
    # What rounding may hide of the slope: a difference of two numbers of its size.
    here += math.copysign(8 * ROUNDING * abs(gap), here)
    factor = ROUNDING
    while slope(moved := shape * (1 + factor) ** math.copysign(1, here)) * here > 0:
        factor *= 4
        if not 0 < moved < math.inf:
            return math.inf
    return float(lost + abs(here * (moved - shape)))


def gamma_cumulants(order: int, shape: float, rate: float, direction: Floats) -> Floats:
    """Cumulants 1 to `order` of ``u log y + v y`` with direction (u, v).

    They are the derivatives at t = 0 of ``log Gamma(shape + t u) - (shape + t u) log(rate - t v)``.
    """
    from scipy.special import polygamma

    u, v = direction
    logs = [-math.log(rate), *(math.factorial(s - 1) * (v / rate) ** s for s in range(1, order + 1))]
    return np.array(
        [
            shape * logs[s] + (u**s * float(polygamma(s - 1, shape)) + s * u * logs[s - 1] if u else 0.0)
            for s in range(1, order + 1)
        ]
    )


def gamma_divergence(mine: tuple[float, float], theirs: tuple[float, float]) -> float:
    """KL between gamma distributions given as (shape, rate).

    With means m and m' it is ``shape' (r - 1 - log r) + D(shape, shape')``, r = m / m', where D is the Bregman
    divergence of `rest`: both parts are at least 0, so nothing cancels.
    """
    (shape, rate), (other_shape, other_rate) = mine, theirs
    mean, other_mean = shape / rate, other_shape / other_rate
    return other_shape * float(ratio_excess(mean, other_mean)) + rest_divergence(shape, other_shape)
