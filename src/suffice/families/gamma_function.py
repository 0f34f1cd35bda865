"""The log-gamma function without its bulk, so that distributions with large shapes keep their digits.

``log Gamma(a) = a log a - a + rest(a)``. The first two terms are huge and cancel against the rest of a density, so they
are taken out by algebra; `rest` is convex and grows like ``-log(a)/2``. It comes from Stirling's series where `a` is
large and from its definition where `a` is small.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from suffice.array_types import Floats

#: From here on the series is exact to rounding.
LARGE = 16.0
#: B_2, B_4, ..., B_14.
BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)
#: Below this size `excess` is a power series.
NEAR_ONE = 0.03
#: ``d - log(1 + d)`` is d^2 times this series in -d.
SERIES = [1 / k for k in range(2, 14)]


def excess(d: ArrayLike) -> Floats:
    """The function d - log(1 + d), which is at least 0; exact to rounding also near d = 0, inf at d = -1."""
    d = np.asarray(d, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.ascontiguousarray(d - np.log1p(d)).reshape(d.shape)
    near = np.flatnonzero(np.abs(d) < NEAR_ONE)
    if len(near):
        small = d.reshape(-1)[near]
        value.reshape(-1)[near] = small**2 * np.polynomial.polynomial.polyval(-small, SERIES)
    return value


def ratio_excess(t: ArrayLike, a: ArrayLike, away: ArrayLike | None = None) -> Floats:
    """The function r - 1 - log r of the ratio r = t / a, for t >= 0 and a > 0: at least 0, and 0 only for t = a.

    `away` is t - a, where it is known to more digits than the subtraction leaves. Far below t = a the logarithm is that
    of two numbers, so that r may be smaller than the rounding of 1.
    """
    t, a = np.asarray(t, dtype=np.float64), np.asarray(a, dtype=np.float64)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        d = np.asarray((t - a if away is None else np.asarray(away)) / a)
        value = excess(d)
        far = np.flatnonzero(~((d > -0.5) & (d < np.inf)))
        if len(far):
            t, a, d = (np.broadcast_to(part, value.shape).reshape(-1)[far] for part in (t, a, d))
            value.reshape(-1)[far] = d - (np.log(t) - np.log(a))
    return value


def _branches(a: ArrayLike) -> tuple[Floats, Floats, Any]:
    """The argument where it is small and where it is large (a harmless number elsewhere), and where it is large."""
    a = np.asarray(a, dtype=np.float64)
    large = a >= LARGE
    return np.where(large, 1.0, a), np.where(large, a, LARGE), large


def rest(a: ArrayLike) -> Floats:
    """The function log Gamma(a) - a log a + a, for a > 0."""
    from scipy.special import gammaln, xlogy

    small, big, large = _branches(a)
    series = 0.5 * np.log(2 * math.pi / big)
    for k, number in enumerate(BERNOULLI, start=1):
        series = series + number / (2 * k * (2 * k - 1)) * big ** (1 - 2 * k)
    return np.asarray(np.where(large, series, gammaln(small) - xlogy(small, small) + small))


def rest_slope(a: ArrayLike) -> Floats:
    """digamma(a) - log a, the first derivative of `rest`; always negative."""
    from scipy.special import digamma

    small, big, large = _branches(a)
    series = -0.5 / big
    for k, number in enumerate(BERNOULLI, start=1):
        series = series - number / (2 * k) * big ** (-2 * k)
    return np.asarray(np.where(large, series, digamma(small) - np.log(small)))


def rest_curvature(a: ArrayLike) -> Floats:
    """trigamma(a) - 1/a, the second derivative of `rest`; always positive."""
    from scipy.special import polygamma

    small, big, large = _branches(a)
    series = 0.5 / big**2
    for k, number in enumerate(BERNOULLI, start=1):
        series = series + number * big ** (-2 * k - 1)
    return np.asarray(np.where(large, series, polygamma(1, small) - 1 / small))


def rest_divergence(a: float, b: float) -> float:
    """rest(b) - rest(a) - (b - a) rest_slope(a), at least 0: the Bregman divergence of `rest`."""
    step = b - a
    if abs(step) > 0.5 * a:
        return float(rest(b) - rest(a) - step * rest_slope(a))
    # Taylor's remainder as an integral: no cancellation when a and b are close.
    nodes, weights = np.polynomial.legendre.leggauss(20)
    t = 0.5 * (1 + nodes)
    return float(0.5 * step**2 * (weights @ ((1 - t) * rest_curvature(a + t * step))))


def log_gamma_ratio(a: ArrayLike, step: ArrayLike) -> Floats:
    """Log of Gamma(a + step) / Gamma(a), for a > 0 and a + step > 0, without cancellation for large a."""
    from scipy.special import gammaln

    a, step = np.broadcast_arrays(np.asarray(a, dtype=np.float64), np.asarray(step, dtype=np.float64))
    large = np.minimum(a, a + step) >= LARGE
    big, move = np.where(large, a, LARGE), np.where(large, step, 0.0)
    with np.errstate(over="ignore"):
        series = move * np.log(big + move) - big * excess(move / big) + rest(big + move) - rest(big)
    small, move = np.where(large, 1.0, a), np.where(large, 0.0, step)
    return np.asarray(np.where(large, series, gammaln(small + move) - gammaln(small)))


def log_gamma_kernel(a: ArrayLike, t: ArrayLike) -> Floats:
    """Log of ``t^a exp(-t) / Gamma(a)``, for a > 0 and t >= 0.

    It is the log density of a gamma, inverse-gamma and Poisson distribution but for one logarithm. As
    ``-a (r - 1 - log r) - rest(a)`` with r = t / a nothing large cancels.
    """
    a, t = np.asarray(a, dtype=np.float64), np.asarray(t, dtype=np.float64)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        away = (t - a) / a
        # Far from a nothing cancels, and r might underflow or overflow.
        far = a * (1 + np.log(t) - np.log(a)) - t
        bulk = np.where(np.abs(away) < 0.5, -a * excess(away), far)
    return np.asarray(np.where(np.isfinite(t), bulk - rest(a), -np.inf))
