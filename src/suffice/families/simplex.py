"""Formulas of the Dirichlet distribution on plain arrays; large, small and unequal alpha keep their digits.

With ``n = sum alpha`` and ``m = alpha / n`` the huge parts of ``log B(alpha)`` and of ``sum alpha log x`` cancel by
algebra: ``log p(x) = sum alpha log(x / m) - sum log x + rest(n) - sum rest(alpha)``, where `rest` is the log-gamma
function without its bulk.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from suffice.array_types import Floats
from suffice.errors import EstimateError, OptionError
from suffice.families.gamma_function import excess, log_gamma_ratio, rest, rest_divergence, rest_slope

#: Rows that are nearer to a corner have parameters whose squares are beyond float64.
NEAREST = 1e-150
#: A mean of log x may miss what shares can have by this much.
ROUNDING = 1e-9


def others(alpha: Floats) -> Floats:
    """The sum of all entries but the k-th, for each k (K,), without subtracting."""
    padded = np.concatenate([[0.0], alpha, [0.0]])
    return np.asarray(np.cumsum(padded)[:-2] + np.cumsum(padded[::-1])[::-1][2:])


def beta_quantile(a: Floats | float, b: Floats | float, q: Floats | float) -> Floats:
    """The inverse of the regularised incomplete beta function; where that is out of SciPy's reach, its gamma limit.

    A beta variable with b far above a is a gamma variable of shape a over b, to a relative error of a / b.
    """
    from scipy.special import betaincinv, gammainccinv, gammaincinv

    quantiles = np.asarray(betaincinv(a, b, q), dtype=np.float64)
    if not np.isnan(quantiles).any():
        return quantiles
    near = np.where(np.greater(b, a), gammaincinv(a, q) / b, 1 - gammainccinv(b, q) / a)
    return np.asarray(np.where(np.isnan(quantiles), near, quantiles))


def log_beta(alpha: Floats) -> float:
    """``sum log Gamma(alpha_k) - log Gamma(sum alpha)``; inf where an entry is not above zero."""
    from scipy.special import gammaln

    if not (alpha > 0).all():
        return math.inf
    largest = int(np.argmax(alpha))
    small = np.delete(alpha, largest)
    return float(gammaln(small).sum() - log_gamma_ratio(alpha[largest], small.sum()))


def polygamma_drop(order: int, a: ArrayLike, step: ArrayLike) -> Floats:
    """polygamma(order, a) - polygamma(order, a + step), for a > 0 and step >= 0."""
    from scipy.special import polygamma

    a, step = np.broadcast_arrays(np.asarray(a, dtype=np.float64), np.asarray(step, dtype=np.float64))
    if not (a > 0).all():
        raise OptionError(f"alpha is {a!r}; every entry must be above 0 (natural parameters above -1).")
    # Close arguments: the difference is the integral of the derivative, to rounding with ten nodes.
    close = step < 0.5 * a
    short = np.where(close, step, 0.0)
    nodes, weights = np.polynomial.legendre.leggauss(10)
    inside = a[..., None] + 0.5 * (1 + nodes) * short[..., None]
    integral = -0.5 * short * (polygamma(order + 1, inside) @ weights)
    return np.asarray(np.where(close, integral, polygamma(order, a) - polygamma(order, a + step)))


def mean_logs(alpha: Floats) -> Floats:
    """E[log x_k] = digamma(alpha_k) - digamma(sum alpha) (K,)."""
    return polygamma_drop(0, alpha, others(alpha))


def logs_covariance(alpha: Floats) -> Floats:
    """Cov[log x_j, log x_k] = [j = k] trigamma(alpha_k) - trigamma(sum alpha) (K, K)."""
    from scipy.special import polygamma

    covariance = np.full((len(alpha), len(alpha)), -float(polygamma(1, alpha.sum())))
    np.fill_diagonal(covariance, polygamma_drop(1, alpha, others(alpha)))
    return covariance


def logs_cumulants(alpha: Floats, order: int, direction: Floats) -> Floats:
    """Cumulants 1 to `order` of ``direction . log x``: derivatives of the log-gamma function."""
    from scipy.special import polygamma

    total, rests = float(alpha.sum()), others(alpha)
    cumulants = []
    for s in range(1, order + 1):
        powers = direction**s
        odd = float(powers.sum() - direction.sum() ** s)
        cumulants.append(powers @ polygamma_drop(s - 1, alpha, rests) + odd * float(polygamma(s - 1, total)))
    return np.array(cumulants)


def _log_over_mean(alpha: Floats, x: Floats, rest_of_x: Floats) -> Floats:
    """log(x_k / m_k) (..., K), to rounding also where the two are close; `rest_of_x` is 1 - x."""
    total = alpha.sum()
    mean = alpha / total
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # Of two shares near one the difference is that of what they lack.
        away = np.where(mean > 0.5, others(alpha) / total - rest_of_x, x - mean) / mean
        return np.asarray(np.where(np.abs(away) < 0.5, np.log1p(away), np.log(x) - np.log(mean)))


def log_density(alpha: Floats, points: Floats, lacking: Floats | None = None) -> Floats:
    """Log density at points (..., K) of the simplex; the edge follows the limit of each factor x^(alpha - 1).

    `lacking` is 1 - points, where it is known to more digits than the subtraction leaves.
    """
    from scipy.special import xlogy

    interior = (points > 0).all(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        inside = (
            alpha * _log_over_mean(alpha, points, 1 - points if lacking is None else lacking) - np.log(points)
        ).sum(axis=-1) + float(rest(alpha.sum()) - rest(alpha).sum())
        if interior.all():
            return np.asarray(inside)
        factors = xlogy(alpha - 1, points)
        # A factor of zero on the edge wins over an unbounded one: the limit depends on the path, the mass is none.
        edge = np.where((factors == -np.inf).any(axis=-1), -np.inf, factors.sum(axis=-1) - log_beta(alpha))
    return np.asarray(np.where(interior, inside, edge))


def mean_log_density(alpha: Floats, logs: Floats) -> float:
    """Mean log density of rows whose mean of log x is `logs` (K,), with every alpha above zero."""
    ratios = _log_over_mean(alpha, np.exp(logs), -np.expm1(logs))
    # Means of logarithms may lie below the smallest number.
    ratios = np.where(np.abs(ratios) < 1, ratios, logs - np.log(alpha / alpha.sum()))
    return float(alpha @ ratios - logs.sum() + rest(alpha.sum()) - rest(alpha).sum())


def spread(logs: Floats) -> float:
    """How far the mean of log x (K,) is from that of equal rows, as a share of the smaller parts; 0 for equal rows.

    ``sum exp(logs)`` is one for equal rows and less for others. The largest part may round to one, so the gap is taken
    between one minus that part and the sum of the others.
    """
    gap, small = _gap(logs)
    return gap / small if small > 0 else math.inf if gap > 0 else 0.0


def _gap(logs: Floats) -> tuple[float, float]:
    """1 - sum exp(logs), and the sum without its largest part."""
    largest = int(np.argmax(logs))
    small = float(np.exp(np.delete(logs, largest)).sum())
    return float(-np.expm1(logs[largest]) - small), small


def are_alike(logs: Floats) -> bool:
    """Whether the mean of log x (K,) is that of equal rows, but for its rounding."""
    return not spread(logs) > 1e-13 + 1e-15 * float(np.abs(logs).max())


def are_possible(logs: Floats, tolerance: float) -> bool:
    """Whether some rows have this mean of log x (K,): by Jensen's inequality ``sum exp(logs)`` is at most one.

    Rows may miss a sum of one by `tolerance`.
    """
    return bool((logs < tolerance).all()) and not _gap(logs)[0] < -2 * tolerance


def refuse_corner(logs: Floats, rows: int) -> None:
    """Raise where all rows lie so near a corner of the simplex that the limit is no distribution of float64."""
    nearest = int(np.argmax(logs))
    if logs[nearest] > -NEAREST:
        raise EstimateError(
            f"The {rows} rows lie within {-float(logs[nearest])!r} of the end where part {nearest} is 1: no "
            "distribution of float64 has its parameters. Describe the small parts by a distribution of positive "
            "numbers, such as Gamma."
        )


def check_mean_logs(logs: Floats) -> None:
    """Raise where no distribution has E[log x] = logs."""
    if len(logs) < 2 or not (np.isfinite(logs) & (logs < 0)).all() or are_alike(logs):
        raise OptionError(
            f"The mean of log x cannot be {logs!r}: two or more negative numbers with sum exp(mean) below 1."
        )


def rough_alpha(logs: Floats) -> Floats:
    """Alpha near the one with E[log x] = logs: geometric means as shares, the total from ``gap = (K - 1) / (2 n)``."""
    share = np.exp(logs - logs.max())
    alpha = 0.5 * (len(logs) - 1) / _gap(logs)[0] * share / share.sum()
    return np.asarray(np.maximum(alpha, -0.5 / logs))


def of_total(logs: Floats, total: float) -> Floats:
    """Alpha (K,) of the given sum with ``digamma(alpha) = logs + c``: the best for a mean of log x among these."""
    from scipy.optimize import brentq

    def away(c: float) -> float:
        return float(np.log(inverse_digamma(logs + c).sum() / total))

    low, high = np.log(total) - logs.max() - 2.0, np.log(total) - logs.max() + 2.0
    while away(low) > 0:
        low -= 2.0
    while away(high) < 0:
        high += 2.0
    alpha = inverse_digamma(logs + brentq(away, low, high, xtol=1e-14, rtol=1e-14))
    return np.asarray(alpha * (total / alpha.sum()))


def inverse_digamma(y: Floats) -> Floats:
    """The x > 0 with ``digamma(x) = y``, by Newton from a start within a few per cent."""
    from scipy.special import digamma, polygamma

    x = np.where(y >= -2.22, np.exp(np.minimum(y, 700.0)) + 0.5, -1.0 / (y - digamma(1.0)))
    for _ in range(8):
        x = np.maximum(x - (digamma(x) - y) / polygamma(1, x), x / 4)
    return np.asarray(x)


def entropy(alpha: Floats) -> float:
    """E[-log p], without the bulk of the log-gamma function."""
    total = float(alpha.sum())
    bulk = alpha @ (rest_slope(alpha) - rest_slope(total))
    return float(rest(alpha).sum() - rest(total) + mean_logs(alpha).sum() - bulk)


def divergence(alpha: Floats, other: Floats) -> float:
    """KL(Dir(alpha) || Dir(other)): that of the means, and Bregman divergences of `rest`."""
    total, total_other = float(alpha.sum()), float(other.sum())
    shares = total_other * float(relative_entropy(other / total_other, alpha / total))
    parts = sum(rest_divergence(float(a), float(b)) for a, b in zip(alpha, other, strict=True))
    return max(0.0, shares + parts - rest_divergence(total, total_other))


def below_mode(alpha: Floats, point: Floats) -> float | None:
    """How far the log density at a point (K,) is below that at the mode; None where there is no mode."""
    excess = alpha - 1
    total = float(excess.sum())
    if (excess < 0).any() or not total > 0:
        return None
    return total * float(relative_entropy(excess / total, point))


def log_evidence(alpha: Floats, counts: Floats) -> float:
    """``log B(alpha + counts) - log B(alpha)``, the log probability of a sequence of draws with these counts (K,).

    With the mean shares m before and m' after, it is ``sum counts log m' - n KL(m || m')`` and small differences.
    """
    after = alpha + counts
    total, total_after = float(alpha.sum()), float(after.sum())
    shares = after / total_after
    # A share near one has lost the digits of its logarithm; the other shares still have them.
    with np.errstate(divide="ignore"):
        logs = np.where(shares > 0.5, np.log1p(-others(after) / total_after), np.log(shares))
    bulk = float(counts @ logs) - total * float(relative_entropy(alpha / total, shares))
    return bulk + float((rest(after) - rest(alpha)).sum() - (rest(total_after) - rest(total)))


def relative_entropy(p: ArrayLike, q: ArrayLike) -> Floats:
    """``sum p log(p / q)`` along the last axis, by terms that are not negative; inf where only q is zero."""
    p, q = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
    some = ~(p <= 0)
    mine, theirs = np.where(some, p, 1.0), np.where(some, q, 1.0)
    with np.errstate(divide="ignore", over="ignore"):
        away = (theirs - mine) / mine
        close = np.abs(away) < 0.5
        far = mine * (np.log(mine) - np.log(theirs)) + (theirs - mine)
    terms = np.where(close, mine * excess(np.where(close, away, 0.0)), far)
    return np.asarray(np.where(some, terms, q).sum(axis=-1))


def odds_cumulants(order: int, x: float, sign: int) -> Floats:
    """Cumulants 1 to `order` from kappa_1 = x and kappa_(s+1) = x (1 + sign x) d kappa_s / dx.

    Sign +1, x the odds of a failure: the number of failures before a success. Sign -1, x a probability: one trial.
    """
    polynomial = np.polynomial.Polynomial([0.0, 1.0])
    step = np.polynomial.Polynomial([0.0, 1.0, sign])
    cumulants = []
    with np.errstate(over="ignore"):
        for _ in range(order):
            cumulants.append(float(polynomial(x)) if math.isfinite(x) else math.inf)
            polynomial = step * polynomial.deriv()
    return np.array(cumulants)
