"""Links: how the mean of a response follows from its linear predictor.

Each link is a pair of maps between the mean and the linear predictor eta. Means near the edge of their range are kept
apart from it by logarithms: `log_mean`, `log_rest` (the log of one minus the mean) and `log_slope` (the log of
d mean / d eta) never overflow where the value itself is a float.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from suffice.array_types import Floats
from suffice.errors import OptionError, listing

_LOG_ROOT_2PI = 0.5 * math.log(2.0 * math.pi)


@dataclass(frozen=True)
class Link(ABC):
    """A link; `name` is how it is asked for. `probability` says whether every eta gives a mean between 0 and 1."""

    name: ClassVar[str] = ""
    probability: ClassVar[bool] = False
    positive: ClassVar[bool] = False

    @abstractmethod
    def mean(self, eta: Floats) -> Floats:
        """The mean at eta (n,)."""

    @abstractmethod
    def slope(self, eta: Floats) -> Floats:
        """D mean / d eta (n,)."""

    @abstractmethod
    def eta(self, mean: Floats) -> Floats:
        """The linear predictor of a mean (n,)."""

    def inside(self, eta: Floats) -> bool:
        """Whether every eta lies in the range of the link."""
        return True

    def log_mean(self, eta: Floats) -> Floats:
        """Log of the mean."""
        return np.log(self.mean(eta))

    def log_rest(self, eta: Floats) -> Floats:
        """Log of one minus the mean."""
        return np.log1p(-self.mean(eta))

    def log_slope(self, eta: Floats) -> Floats:
        """Log of |d mean / d eta|; the slope's sign is that of a falling link only for the inverse."""
        return np.log(np.abs(self.slope(eta)))


@dataclass(frozen=True)
class CumulativeLink(Link):
    """A link whose mean is a distribution function with a log-concave density."""

    probability = True

    def slope(self, eta: Floats) -> Floats:
        """The density, from its logarithm, which keeps its digits far out."""
        return np.exp(self.log_slope(eta))

    @abstractmethod
    def bend(self, eta: Floats) -> Floats:
        """D log slope / d eta."""


@dataclass(frozen=True)
class Identity(Link):
    """Mean = eta."""

    name = "identity"

    def mean(self, eta: Floats) -> Floats:
        """Eta itself."""
        return eta

    def slope(self, eta: Floats) -> Floats:
        """One."""
        return np.ones_like(eta)

    def eta(self, mean: Floats) -> Floats:
        """The mean itself."""
        return mean


@dataclass(frozen=True)
class Log(Link):
    """Mean = exp(eta)."""

    name = "log"
    positive = True

    def mean(self, eta: Floats) -> Floats:
        """exp(eta), infinite beyond the largest float."""
        return np.exp(eta)

    def slope(self, eta: Floats) -> Floats:
        """The mean."""
        return np.exp(eta)

    def eta(self, mean: Floats) -> Floats:
        """Log of the mean."""
        return np.log(mean)

    def log_mean(self, eta: Floats) -> Floats:
        """Eta itself."""
        return eta

    def log_rest(self, eta: Floats) -> Floats:
        """log(1 - exp(eta)), for eta below 0."""
        return np.log(-np.expm1(eta))

    def log_slope(self, eta: Floats) -> Floats:
        """Eta itself."""
        return eta


@dataclass(frozen=True)
class Logit(CumulativeLink):
    """Mean = 1 / (1 + exp(-eta))."""

    name = "logit"

    def mean(self, eta: Floats) -> Floats:
        """The logistic function."""
        from scipy.special import expit

        return np.asarray(expit(eta))

    def eta(self, mean: Floats) -> Floats:
        """Log odds."""
        return np.log(mean) - np.log1p(-mean)

    def log_mean(self, eta: Floats) -> Floats:
        """-log(1 + exp(-eta))."""
        from scipy.special import log_expit

        return np.asarray(log_expit(eta))

    def log_rest(self, eta: Floats) -> Floats:
        """-log(1 + exp(eta))."""
        return self.log_mean(-eta)

    def log_slope(self, eta: Floats) -> Floats:
        """Log mean + log(1 - mean)."""
        return self.log_mean(eta) + self.log_mean(-eta)

    def bend(self, eta: Floats) -> Floats:
        """1 - 2 mean."""
        return -np.tanh(0.5 * eta)


@dataclass(frozen=True)
class Probit(CumulativeLink):
    """Mean = the standard normal distribution function of eta."""

    name = "probit"

    def mean(self, eta: Floats) -> Floats:
        """Phi(eta)."""
        from scipy.special import ndtr

        return np.asarray(ndtr(eta))

    def eta(self, mean: Floats) -> Floats:
        """The normal quantile."""
        from scipy.special import ndtri

        return np.asarray(ndtri(mean))

    def log_mean(self, eta: Floats) -> Floats:
        """Log Phi(eta)."""
        from scipy.special import log_ndtr

        return np.asarray(log_ndtr(eta))

    def log_rest(self, eta: Floats) -> Floats:
        """Log Phi(-eta)."""
        return self.log_mean(-eta)

    def log_slope(self, eta: Floats) -> Floats:
        """-eta^2 / 2 - log sqrt(2 pi)."""
        return -0.5 * eta**2 - _LOG_ROOT_2PI

    def bend(self, eta: Floats) -> Floats:
        """-eta."""
        return -eta


@dataclass(frozen=True)
class ComplementaryLogLog(CumulativeLink):
    """Mean = 1 - exp(-exp(eta))."""

    name = "cloglog"

    def mean(self, eta: Floats) -> Floats:
        """The mean."""
        return -np.expm1(-np.exp(eta))

    def eta(self, mean: Floats) -> Floats:
        """log(-log(1 - mean))."""
        return np.log(-np.log1p(-mean))

    def log_mean(self, eta: Floats) -> Floats:
        """Log(1 - exp(-exp(eta))); eta itself where exp(eta) is rounded away."""
        return np.where(eta < -37.0, eta, np.log(-np.expm1(-np.exp(np.maximum(eta, -37.0)))))

    def log_rest(self, eta: Floats) -> Floats:
        """-exp(eta)."""
        return -np.exp(eta)

    def log_slope(self, eta: Floats) -> Floats:
        """Eta - exp(eta)."""
        return eta - np.exp(eta)

    def bend(self, eta: Floats) -> Floats:
        """1 - exp(eta)."""
        return -np.expm1(eta)


@dataclass(frozen=True)
class LogLog(CumulativeLink):
    """Mean = exp(-exp(-eta)): the complementary log-log of the other outcome."""

    name = "loglog"

    def mean(self, eta: Floats) -> Floats:
        """The mean."""
        return np.exp(-np.exp(-eta))

    def eta(self, mean: Floats) -> Floats:
        """-log(-log mean)."""
        return -np.log(-np.log(mean))

    def log_mean(self, eta: Floats) -> Floats:
        """-exp(-eta)."""
        return -np.exp(-eta)

    def log_rest(self, eta: Floats) -> Floats:
        """Log(1 - exp(-exp(-eta)))."""
        return LINKS["cloglog"].log_mean(-eta)

    def log_slope(self, eta: Floats) -> Floats:
        """-eta - exp(-eta)."""
        return -eta - np.exp(-eta)

    def bend(self, eta: Floats) -> Floats:
        """exp(-eta) - 1."""
        return np.expm1(-eta)


@dataclass(frozen=True)
class Inverse(Link):
    """Mean = 1 / eta; the linear predictor is positive."""

    name = "inverse"
    positive = True

    def mean(self, eta: Floats) -> Floats:
        """1 / eta."""
        return 1.0 / eta

    def slope(self, eta: Floats) -> Floats:
        """-1 / eta^2."""
        return -1.0 / eta**2

    def eta(self, mean: Floats) -> Floats:
        """1 / mean."""
        return 1.0 / mean

    def inside(self, eta: Floats) -> bool:
        """Positive."""
        return bool((eta > 0.0).all())


@dataclass(frozen=True)
class InverseSquare(Link):
    """Mean = eta^(-1/2), the canonical link of the inverse Gaussian distribution."""

    name = "inverse_square"
    positive = True

    def mean(self, eta: Floats) -> Floats:
        """eta^(-1/2)."""
        return 1.0 / np.sqrt(eta)

    def slope(self, eta: Floats) -> Floats:
        """-eta^(-3/2) / 2."""
        return -0.5 / (eta * np.sqrt(eta))

    def eta(self, mean: Floats) -> Floats:
        """1 / mean^2."""
        return 1.0 / mean**2

    def inside(self, eta: Floats) -> bool:
        """Positive."""
        return bool((eta > 0.0).all())


@dataclass(frozen=True)
class SquareRoot(Link):
    """Mean = eta^2, for positive eta."""

    name = "sqrt"
    positive = True

    def mean(self, eta: Floats) -> Floats:
        """eta^2."""
        return eta**2

    def slope(self, eta: Floats) -> Floats:
        """2 eta."""
        return 2.0 * eta

    def eta(self, mean: Floats) -> Floats:
        """The square root."""
        return np.sqrt(mean)

    def inside(self, eta: Floats) -> bool:
        """Positive: the square is one-to-one there."""
        return bool((eta > 0.0).all())


LINKS: dict[str, Link] = {
    link.name: link
    for link in (
        Identity(),
        Log(),
        Logit(),
        Probit(),
        ComplementaryLogLog(),
        LogLog(),
        Inverse(),
        InverseSquare(),
        SquareRoot(),
    )
}


def find_link(name: str) -> Link:
    """The link of a name."""
    link = LINKS.get(name.replace("-", "_").lower()) if isinstance(name, str) else None
    if link is None:
        raise OptionError(f"link is {name!r}; expected one of {listing(LINKS)}.")
    return link
