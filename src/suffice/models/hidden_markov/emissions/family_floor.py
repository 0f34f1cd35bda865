"""Floors of laws that collapse: how narrow a law of an exponential family may become.

Where all steps of a state are equal, the likelihood of a gamma, beta or exponential law grows without bound as its
spread goes to 0. The law of all steps has a concentration c; that of a state stays at c / floor or below: the shape of
gamma laws, alpha + beta of beta laws, the sum of alpha of Dirichlet laws, the squared rate of exponential laws. Each of
these regions is convex in the natural parameters, in which the likelihood is concave, so that the best law inside is
the best of all, or lies on the border.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.errors import EstimateError, OptionError
from suffice.families.beta import Beta
from suffice.families.dirichlet import Dirichlet
from suffice.families.exponential import Exponential
from suffice.families.gamma import Gamma
from suffice.families.inverse_gamma import InverseGamma
from suffice.families.normal import Normal
from suffice.families.poisson import Poisson

Floats = NDArray[np.float64]

#: A mean of T may miss what values can have by this share.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Floor:
    """How narrow the distributions of a family may become.

    `concentration` of a row of parameters grows without bound as the distribution collapses; 0 for families that
    cannot. `possible` says whether some values have a mean of T: it lies among those of the family, or on their edge.
    `narrowest` gives the best parameters for a mean of T among those of a concentration; None where there is no need.
    """

    concentration: Callable[[Floats], float]
    possible: Callable[[Floats], bool] | None = None
    narrowest: Callable[[Floats, float], Floats] | None = None

    @property
    def by_mean(self) -> bool:
        """Whether maximum likelihood matches the mean of T, where nothing about the distribution is known."""
        return self.possible is not None


_FLOORS: dict[type[Any], Floor] = {}


def register_floor(family: type[Any], floor: Floor) -> None:
    """Say how narrow the distributions of a family may become as emissions."""
    _FLOORS[family] = floor


def floor_of(law: Any) -> Floor:
    """The floor of a law's family, or of one that it is made from; without one laws are learned one by one."""
    return next((_FLOORS[kind] for kind in type(law).__mro__ if kind in _FLOORS), Floor(lambda row: 0.0))


def highest(law: Any, unit: Floats, floor: float) -> float:
    """The largest concentration of a state, from the law of all steps; inf without a floor."""
    whole = floor_of(law).concentration(unit)
    return whole / floor if floor > 0 and whole > 0 else np.inf


def matched(law: Any, mean: Floats, most: float) -> Floats | None:
    """Parameters of the law whose E[T] is nearest to `mean`, of a concentration of at most `most`; None for none."""
    floor, found = floor_of(law), _exact(law, mean)
    if found is not None and floor.concentration(found) <= most:
        return found
    if not np.isfinite(most) or floor.narrowest is None or not possible(law, mean):
        return None
    return floor.narrowest(mean, most)


def possible(law: Any, mean: Floats) -> bool:
    """Whether some values have this mean of T."""
    inside = floor_of(law).possible
    return bool(np.isfinite(mean).all()) and (inside is None or inside(mean))


def _exact(law: Any, mean: Floats) -> Floats | None:
    try:
        with np.errstate(all="ignore"):
            usual = law._check(law._from_mean(mean))
        return np.concatenate([np.atleast_1d(usual[name]).astype(np.float64) for name in law.parameter_names])
    except (np.linalg.LinAlgError, FloatingPointError, ZeroDivisionError, EstimateError, OptionError):
        return None


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


def _shape(row: Floats) -> float:
    return float(row[0])


def _total(row: Floats) -> float:
    return float(row.sum())


def _positive(mean: Floats) -> bool:
    """Of values of at least 0."""
    return bool(mean[0] >= 0)


def _of_gamma(mean: Floats, sign: float = 1.0) -> bool:
    """Of T = (log x, x), or (log x, 1 / x) with the sign -1: by Jensen's inequality the log of a mean is larger."""
    log = sign * float(mean[0])
    return bool(mean[1] > 0) and bool(np.log(mean[1]) - log >= -ROUNDING * (1 + abs(log)))


def _of_shares(mean: Floats) -> bool:
    """Of the logs of shares that add up to one: geometric means add up to no more."""
    return float(np.exp(mean).sum()) <= 1 + ROUNDING


def _with_shape(mean: Floats, most: float) -> Floats:
    return np.array([most, most / float(mean[1])])


register_floor(Poisson, Floor(lambda row: 0.0, _positive))
register_floor(Exponential, Floor(lambda row: float(row[0] ** 2), _positive, lambda mean, most: np.array([most**0.5])))
register_floor(Gamma, Floor(_shape, _of_gamma, _with_shape))
register_floor(InverseGamma, Floor(_shape, lambda mean: _of_gamma(mean, -1.0), _with_shape))
register_floor(Beta, Floor(_total, _of_shares, _on_simplex))
register_floor(Dirichlet, Floor(_total, _of_shares, _on_simplex))
register_floor(Normal, Floor(lambda row: float(1.0 / row[1])))
