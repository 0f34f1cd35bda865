"""The von Mises distribution of angles, the normal distribution of the circle."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from suffice.array_types import Floats
from suffice.checks import draw_count
from suffice.domain import Domain
from suffice.errors import EstimateError, OptionError
from suffice.families.base import Seed, as_float, as_numbers, generator
from suffice.families.exponential_family import ExponentialFamily, answered_by
from suffice.families.member import FamilyMember
from suffice.families.moments import read_sums
from suffice.fitting.control import Control, Outcome
from suffice.options import NewtonOptions
from suffice.statistics import Statistic, Summary, Sums

#: A concentration from which on derivatives are taken from their expansion: the formulas cancel.
_LARGE = 1e3


class VonMisesMember(FamilyMember):
    """``exp(concentration cos(x - direction)) / (2 pi I0(concentration))`` for angles x in radians, within one turn."""

    parameter_names = ("direction", "concentration")
    direction_: float
    concentration_: float
    statistic_names = ("cos x", "sin x")
    by_mean = True

    # -- parameters --------------------------------------------------------------------------------------------------

    def check(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """A direction from -pi to pi, and a concentration of at least 0."""
        concentration = as_float(parameters["concentration"], "concentration")
        if concentration < 0:
            raise OptionError(
                f"concentration is {parameters['concentration']!r}; expected at least 0. Add pi to the direction "
                "instead."
            )
        direction = as_float(parameters["direction"], "direction")
        return {"direction": math.remainder(direction, 2 * math.pi), "concentration": concentration}

    def refuse_given(self, summary: Summary) -> None:
        """Both parameters are learned, or none."""
        super().refuse_given(summary)
        for name in self.parameter_names:
            if name in self.known:
                raise OptionError(
                    f"{name}= is given and the other parameter is not. Give both, or neither to learn both."
                )

    # -- statistics --------------------------------------------------------------------------------------------------

    def sufficient_statistics(self, x: ArrayLike) -> Floats:
        """(cos x, sin x) of each value, (n, 2)."""
        values = as_numbers(x)
        with np.errstate(invalid="ignore"):
            return np.stack([np.cos(values), np.sin(values)], axis=-1)

    def log_base_measure(self, x: ArrayLike) -> Floats:
        """0 for each angle; -inf for what is none."""
        return np.where(np.isfinite(as_numbers(x)), 0.0, -np.inf)

    def log_normalizer(self, eta: ArrayLike | None = None) -> float:
        """A = log(2 pi I0(|eta|)), with I0 scaled by exp(-|eta|)."""
        from scipy.special import i0e

        size = float(np.linalg.norm(self._eta(eta)))
        return math.log(2 * math.pi * float(i0e(size))) + size

    def expected_statistics(self, eta: ArrayLike | None = None) -> Floats:
        """The mean resultant length along the direction."""
        eta = self._eta(eta)
        size = float(np.linalg.norm(eta))
        return resultant(size) * eta / size if size > 0 else np.zeros(2)

    def statistics_covariance(self, eta: ArrayLike | None = None) -> Floats:
        """The slope of the resultant length along the direction, and that length over the concentration across it."""
        eta = self._eta(eta)
        size = float(np.linalg.norm(eta))
        if size == 0:
            return np.eye(2) / 2
        axis = np.asarray(eta) / size
        along = np.outer(axis, axis)
        return resultant_slope(size) * along + resultant(size) / size * (np.eye(2) - along)

    # -- maps --------------------------------------------------------------------------------------------------------

    def to_natural(self, parameters: Mapping[str, Any]) -> Floats:
        """The concentration as a vector in the direction."""
        direction = parameters["direction"]
        return np.asarray(parameters["concentration"] * np.array([math.cos(direction), math.sin(direction)]))

    def from_natural(self, eta: Floats) -> dict[str, Any]:
        """Angle and length."""
        return {"direction": math.atan2(eta[1], eta[0]), "concentration": math.hypot(eta[0], eta[1])}

    def match(self, mean: Floats, control: Control) -> tuple[dict[str, Any], Outcome]:
        """The direction of the mean has a closed form; the concentration is found by Newton's method."""
        from suffice.solvers.newton import newton

        length = math.hypot(mean[0], mean[1])
        if not length < 1:
            raise EstimateError(
                "All angles are the same: the likelihood grows without bound as the concentration grows. A von Mises "
                "distribution needs angles that differ."
            )

        def function(size: Floats) -> tuple[float, Floats, Floats]:
            kappa = abs(float(size[0]))
            value = kappa * length - self.log_normalizer(np.array([kappa, 0.0]))
            return value, np.array([length - resultant(kappa)]), np.array([[resultant_slope(kappa)]])

        start = np.array([length * (2 - length * length) / (1 - length * length)])
        outcome = newton(function, start, control, magnitude=np.array([length]))
        direction = math.atan2(mean[1], mean[0]) if length > 0 else 0.0
        return {"direction": direction, "concentration": abs(float(outcome.state.parameters[0]))}, outcome

    # -- evaluation --------------------------------------------------------------------------------------------------

    def log_prob(self, x: ArrayLike) -> Floats:
        """Log density of each angle, whichever turn it is given in."""
        from scipy.special import i0e

        values, kappa = as_numbers(x), self.concentration_
        inside = np.isfinite(values)
        # cos(a) - 1 = -2 sin(a / 2)^2 does not cancel.
        bulk = -2 * kappa * np.sin((np.where(inside, values, 0.0) - self.direction_) / 2) ** 2
        return np.asarray(np.where(inside, bulk - math.log(2 * math.pi * float(i0e(kappa))), -np.inf))

    def sample(self, n: int = 1, random_state: Seed = None) -> Floats:
        """`n` angles (n,) from -pi to pi."""
        drawn = generator(random_state).vonmises(self.direction_, self.concentration_, size=draw_count(n))
        return np.asarray(np.where(drawn > math.pi, drawn - 2 * math.pi, drawn))

    def mean(self) -> float:
        """The mean direction."""
        return float(self.direction_)

    def variance(self) -> float:
        """The circular variance, 1 - E[cos(x - direction)], from 0 to 1."""
        from scipy.special import i0e, i1e

        size = self.concentration_
        return float((i0e(size) - i1e(size)) / i0e(size)) if size < _LARGE else 1.0 / (2 * size) + 1.0 / (8 * size**2)

    def mode(self) -> float:
        """The direction."""
        return float(self.direction_)

    # -- fitting -----------------------------------------------------------------------------------------------------

    def ask(self, domain: Domain) -> tuple[Statistic, ...]:
        """Sums of cosines and sines."""
        (name,) = domain.names
        return (Sums.of((name, "cos"), (name, "sin")),)

    def observed(self, summary: Summary) -> Floats:
        """Means of cosines and sines (2,)."""
        return np.asarray(read_sums(summary, self.ask(summary.domain)[0]).means)

    def points(self, values: Floats) -> Floats:
        """On the circle, where angles of two turns are near one another."""
        return self.sufficient_statistics(values)

    def concentration(self) -> float:
        """How narrow it is."""
        return float(self.concentration_)

    def is_possible(self, mean: Floats) -> bool:
        """A mean of points of the circle lies within it."""
        return math.hypot(mean[0], mean[1]) <= 1 + 1e-12

    def narrowest(self, mean: Floats, most: float) -> dict[str, Any]:
        """As narrow as may be, in the mean direction."""
        return {"direction": math.atan2(mean[1], mean[0]), "concentration": most}


class VonMises(ExponentialFamily):
    """``exp(concentration cos(x - direction)) / (2 pi I0(concentration))`` for angles x in radians.

    The normal distribution of the circle. Angles of all turns are taken as they are; `mean` is the mean direction, from
    -pi to pi, and `variance` the circular one, from 0 to 1. At the concentration 0 all angles are alike.

    Args:
        direction: the mean direction, when given.
        concentration: how narrow it is, at least 0, when given; both are given, or both are learned.
        run: see `NewtonOptions`.

    >>> VonMises().fit([0.1, -0.2, 6.3, 0.4]).parameters_["direction"] < 0.1
    True
    """

    member_class = VonMisesMember
    direction_: float
    concentration_: float

    mean = answered_by(VonMisesMember.mean)
    variance = answered_by(VonMisesMember.variance)
    mode = answered_by(VonMisesMember.mode)

    def __init__(
        self, direction: float | None = None, concentration: float | None = None, **run: Unpack[NewtonOptions]
    ) -> None:
        """See the class."""
        super().__init__(direction=direction, concentration=concentration, **run)


def resultant(size: float) -> float:
    """E[cos(x - direction)] of a concentration, I1 / I0."""
    from scipy.special import i0e, i1e

    return float(i1e(size) / i0e(size))


def resultant_slope(size: float) -> float:
    """Its slope, ``1 - r / k - r^2``; the expansion ``1 / (2 k^2) + 1 / (4 k^3) + 3 / (8 k^4)`` where that cancels."""
    if size > _LARGE:
        return (0.5 + (0.25 + 0.375 / size) / size) / size**2
    r = resultant(size)
    return 1 - (r / size if size > 0 else 0.5) - r * r
