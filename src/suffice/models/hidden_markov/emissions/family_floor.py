"""Floors of laws that collapse: how narrow a law of an exponential family may become.

Where all steps of a state are equal, the likelihood of a gamma, beta or exponential law grows without bound as its
spread goes to 0. The law of all steps has a concentration c; that of a state stays at c / floor or below: the shape of
gamma laws, alpha + beta of beta laws, the sum of alpha of Dirichlet laws, the squared rate of exponential laws. Each of
these regions is convex in the natural parameters, in which the likelihood is concave, so that the best law inside is
the best of all, or lies on the border.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.errors import EstimateError, OptionError

Floats = NDArray[np.float64]

#: Laws whose maximum likelihood matches the mean of T(x), where nothing about them is known.
BY_MEAN = frozenset({"Poisson", "Exponential", "Gamma", "Beta", "InverseGamma", "Dirichlet"})
#: A mean of T may miss what values can have by this share.
ROUNDING = 1e-9


def concentration(law: Any, row: Floats) -> float:
    """What grows without bound as a law with the parameters of a row collapses; 0 for laws that cannot."""
    name = type(law).__name__
    if name in ("Gamma", "InverseGamma"):
        return float(row[0])
    if name in ("Beta", "Dirichlet"):
        return float(row.sum())
    if name == "Exponential":
        return float(row[0] ** 2)
    if name == "Normal":
        return float(1.0 / row[1])
    return 0.0


def highest(law: Any, unit: Floats, floor: float) -> float:
    """The largest concentration of a state, from the law of all steps; inf without a floor."""
    whole = concentration(law, unit)
    return whole / floor if floor > 0 and whole > 0 else np.inf


def matched(law: Any, mean: Floats, most: float) -> Floats | None:
    """Parameters of the law whose E[T] is nearest to `mean`, of a concentration of at most `most`; None for none."""
    found = _exact(law, mean)
    if found is not None and concentration(law, found) <= most:
        return found
    if not np.isfinite(most) or not possible(law, mean):
        return None
    name = type(law).__name__
    if name in ("Gamma", "InverseGamma"):
        return np.array([most, most / float(mean[1])])
    if name == "Exponential":
        return np.array([np.sqrt(most)])
    return _on_simplex(mean, most) if name in ("Beta", "Dirichlet") else None


def _exact(law: Any, mean: Floats) -> Floats | None:
    try:
        with np.errstate(all="ignore"):
            usual = law._check(law._from_mean(mean))
        return np.concatenate([np.atleast_1d(usual[name]).astype(np.float64) for name in law.parameter_names])
    except (np.linalg.LinAlgError, FloatingPointError, ZeroDivisionError, EstimateError, OptionError):
        return None


def possible(law: Any, mean: Floats) -> bool:
    """Whether some values have this mean of T: it lies among them, or on their edge."""
    name = type(law).__name__
    if not np.isfinite(mean).all():
        return False
    if name in ("Poisson", "Exponential"):
        return bool(mean[0] >= 0)
    if name in ("Gamma", "InverseGamma"):
        log = float(mean[0] if name == "Gamma" else -mean[0])
        return bool(mean[1] > 0) and np.log(mean[1]) - log >= -ROUNDING * (1 + abs(log))
    return float(np.exp(mean).sum()) <= 1 + ROUNDING


def _on_simplex(logs: Floats, total: float) -> Floats:
    """Alpha (k,) of the given sum with ``digamma(alpha) = logs + c``: the best Dirichlet law of that concentration."""
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
