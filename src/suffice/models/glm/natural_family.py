"""Any exponential family with one natural parameter as the response of a generalised linear model.

``p(y) = h(y) exp(theta T(y) - A(theta))``, where the linear predictor is theta itself: the natural link, which is
canonical. The mean of T(y) is ``A'(theta)`` and its variance ``A''(theta)``, which the distribution gives for one theta
at a time. A family that knows them for arrays is better written as a `families.Family`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from suffice.array_types import Flags, Floats
from suffice.families.exponential_family import ExponentialFamily
from suffice.models.glm.coefficients import Coefficients
from suffice.models.glm.family import Family
from suffice.models.glm.links import Link


def _each(values: Floats, function: Callable[[Floats], Any]) -> Floats:
    """A function of one number, as an array (1,), of each of many (n,); equal ones once."""
    unique, places = np.unique(values, return_inverse=True)
    answers = np.array([float(np.ravel(function(np.array([one])))[0]) for one in unique])
    return np.asarray(answers[places.ravel()].reshape(values.shape), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class NaturalLink(Link):
    """The linear predictor is the natural parameter."""

    distribution: ExponentialFamily

    name = "natural"

    def mean(self, eta: Floats) -> Floats:
        """A'(eta)."""
        return _each(eta, self.distribution.expected_statistics)

    def slope(self, eta: Floats) -> Floats:
        """A''(eta)."""
        return _each(eta, self.distribution.statistics_covariance)

    def eta(self, mean: Floats) -> Floats:
        """The natural parameter whose mean this is."""
        return _each(mean, lambda one: self.distribution.with_mean_parameters(one).natural_parameters_)

    def inside(self, eta: Floats) -> bool:
        """Whether A is finite at every natural parameter."""
        return bool(np.isfinite(_each(eta, self.distribution.log_normalizer)).all())


@dataclass(frozen=True, eq=False)
class NaturalFamily(Family):
    """The family of a distribution; what is read as response is T(y), and its deviance is not known."""

    distribution: ExponentialFamily
    name: str

    canonical = "natural"
    links = ("natural",)
    log_concave = True

    def link(self, name: str) -> Link:
        """The natural link."""
        return NaturalLink(self.distribution) if name == self.canonical else super().link(name)

    def allowed(self, y: Floats) -> Flags:
        """Where the base measure is positive."""
        return np.asarray(np.isfinite(self.distribution.log_base_measure(y)))

    def encoded(self, y: Floats) -> tuple[Floats, Floats | None]:
        """T(y) and log h(y)."""
        statistics = np.asarray(self.distribution.sufficient_statistics(y), dtype=np.float64)
        return statistics.reshape(len(y)), np.asarray(self.distribution.log_base_measure(y), dtype=np.float64)

    def first_mean(self, y: Floats, average: float) -> Floats:
        """The average, which is a possible mean."""
        return np.full_like(y, average)

    def variance(self, mean: Floats) -> Floats:
        """A'' at the natural parameter of the mean."""
        link = NaturalLink(self.distribution)
        return link.slope(link.eta(mean))

    def moments(self, link: Link, eta: Floats) -> tuple[Floats, Floats]:
        """A' and A''."""
        return link.mean(eta), link.slope(eta)

    def deviance(self, y: Floats, mean: Floats) -> Floats:
        """Not known: T(y) may lie on the edge of the means, where no distribution has it."""
        return np.full_like(y, np.nan)

    def value(self, y: Floats, mean: Floats) -> Floats:
        """Theta y - A(theta) at the natural parameter of the mean."""
        link = NaturalLink(self.distribution)
        return self.rows(link, link.eta(mean), y)[0]

    def rows(self, link: Link, eta: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
        """Theta y - A, y - A' and A''."""
        normalizer = _each(eta, self.distribution.log_normalizer)
        if not np.isfinite(normalizer).all():
            return np.full_like(eta, -np.inf), np.zeros_like(eta), np.zeros_like(eta)
        mean, variance = self.moments(link, eta)
        return eta * y - normalizer, y - mean, variance

    def log_prob_of_rows(self, fitted: Coefficients, eta: Floats, y: Floats, trials: Floats | None) -> Floats:
        """Without log h, which comes with the rows."""
        return self.rows(self.link(fitted.link), eta[:, 0], y)[0]

    def sample(self, mean: Floats, phi: float, rng: np.random.Generator) -> Floats:
        """One draw of y itself for each mean of T."""
        distributions = (self.distribution.with_mean_parameters(np.array([one])) for one in mean)
        return np.array([float(distribution.sample(1, random_state=rng)[0]) for distribution in distributions])
