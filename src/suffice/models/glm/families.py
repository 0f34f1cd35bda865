"""The families of one linear predictor that the library has: members of exponential families, by their mean.

What a distribution says (variance, density, draws, divergence) is asked of `suffice.families`, with one entry a row;
what is left for a family to say is which member has a mean, where a fit starts, and short cuts of its own links.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from suffice.array_types import Flags, Floats
from suffice.engines.linear_predictor import logistic_rows
from suffice.families.bernoulli import BernoulliMember
from suffice.families.counting import CountMember, in_support
from suffice.families.gamma import GammaMember
from suffice.families.gamma_function import excess, rest
from suffice.families.gamma_shape import match_shape
from suffice.families.member import EXACT
from suffice.families.negative_binomial import NegativeBinomialMember
from suffice.families.normal import NormalMember
from suffice.families.normals import Normals
from suffice.families.poisson import PoissonMember
from suffice.families.scalar import ScalarMember
from suffice.models.glm.coefficients import Coefficients
from suffice.models.glm.family import Family, Totals, of_counts
from suffice.models.glm.links import Link
from suffice.models.glm.response import log_choices


class MemberFamily(Family):
    """The members of an exponential family that have given means: their answers, entry by entry."""

    @abstractmethod
    def member(self, mean: Floats, phi: float = 1.0) -> ScalarMember:
        """The distributions with these means, as one member whose parameters are arrays."""

    def variance(self, mean: Floats) -> Floats:
        """That of the members."""
        return np.asarray(self.member(mean).variance())

    def deviance(self, y: Floats, mean: Floats) -> Floats:
        """Twice the divergence of the member that has the mean y itself, which is the likeliest for y."""
        return np.asarray(2.0 * self.member(y).divergence(self.member(mean)))

    def log_prob(self, y: Floats, mean: Floats, phi: float) -> Floats:
        """Log density of each row."""
        return self.member(mean, phi).log_prob(y)

    def sample(self, mean: Floats, phi: float, rng: np.random.Generator) -> Floats:
        """One draw for each mean."""
        return np.asarray(self.member(mean, phi).sample(len(mean), rng), dtype=np.float64)


@dataclass(frozen=True)
class GaussianFamily(MemberFamily):
    """V = 1."""

    name = "gaussian"
    links = ("identity", "log", "inverse", "sqrt")
    free_dispersion = True

    def member(self, mean: Floats, phi: float = 1.0) -> NormalMember:
        """Normal distributions with variance phi."""
        return NormalMember("Normal", parameters={"mean": mean, "variance": np.full_like(mean, phi)})

    def deviance(self, y: Floats, mean: Floats) -> Floats:
        """Squared residual."""
        return (y - mean) ** 2

    def log_likelihood(self, totals: Totals, phi: float) -> float:
        """That of residuals about 0."""
        return float(Normals(np.zeros(()), np.asarray(phi)).log_likelihood(totals.weight, 0.0, totals.deviance))


class CountFamily(MemberFamily):
    """Counts, whose log-likelihood is ``theta y - A`` and log h.

    Numbers between the counts are taken too: the score equations need means and variances alone, which is
    quasi-likelihood, and gamma functions continue log h, so that a negative binomial size has a likelihood there.
    """

    canonical = "log"
    links = ("log", "identity", "sqrt")
    support = "counts, or other numbers of at least 0"

    @abstractmethod
    def member(self, mean: Floats, phi: float = 1.0) -> CountMember:
        """The distributions of counts with these means."""

    def allowed(self, y: Floats) -> Flags:
        """Numbers of at least 0: rates have such responses."""
        return np.isfinite(y) & (y >= 0.0)

    def drawn(self, y: Floats) -> Flags:
        """Counts."""
        return in_support(y)

    def inside(self, mean: Floats) -> bool:
        """Positive, or 0 where it underflows."""
        return bool((np.isfinite(mean) & (mean >= 0.0)).all())

    def value(self, y: Floats, mean: Floats) -> Floats:
        """``theta y - A``."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.member(mean).log_kernel(y)

    def base(self, y: Floats) -> Floats:
        """Log h, which gamma functions continue."""
        return of_counts(self.member(np.ones(())).log_gamma_base, y)

    def log_prob(self, y: Floats, mean: Floats, phi: float) -> Floats:
        """Log probability of each row, which gamma functions continue."""
        return self.member(mean, phi).log_gamma_prob(y)

    def first_mean(self, y: Floats, average: float) -> Floats:
        """Y, away from 0."""
        return y + 0.1 if average > 0 else np.full_like(y, 0.1)


@dataclass(frozen=True)
class PoissonFamily(CountFamily):
    """V = mean."""

    name = "poisson"
    law = "poisson"

    def member(self, mean: Floats, phi: float = 1.0) -> PoissonMember:
        """Poisson distributions."""
        return PoissonMember("Poisson", parameters={"rate": mean})

    def rows(self, link: Link, eta: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
        """With the log link ``y eta - exp(eta)``, without a detour by the mean."""
        if link.name != "log":
            return super().rows(link, eta, y)
        mean = np.exp(eta)
        return y * eta - mean, y - mean, mean


class NegativeBinomialByMean(NegativeBinomialMember):
    """A negative binomial distribution that is known by its mean: a probability near 1 would have lost its digits."""

    parameter_names = ("size", "mean")

    def _known_size(self) -> float:
        return float(self.parameters_["size"])

    def _odds(self, eta: Any) -> Any:
        """The mean over the size."""
        return self.parameters_["mean"] / self._known_size() if eta is None else super()._odds(eta)

    def _usual(self, eta: Any) -> Any:
        """The probability of a success."""
        return 1 / (1 + self._odds(None)) if eta is None else super()._usual(eta)

    def natural_parameters(self) -> Floats:
        """Log of the probability of a failure, (1, ...)."""
        with np.errstate(divide="ignore"):
            return -np.log1p(1 / np.asarray(self._odds(None))[None])


@dataclass(frozen=True)
class NegativeBinomialFamily(CountFamily):
    """V = mean + mean^2 / size; a Poisson count whose rate is a gamma variable of shape `size`."""

    size: float = 1.0

    name = "negative_binomial"

    def sized(self, size: float | None) -> Family:
        """The family at another size."""
        return self if size is None else NegativeBinomialFamily(size)

    def member(self, mean: Floats, phi: float = 1.0) -> NegativeBinomialByMean:
        """Negative binomial distributions of the size."""
        return NegativeBinomialByMean("NegativeBinomial", parameters={"size": self.size, "mean": mean})

    def size_slopes(self, y: Floats, mean: Floats) -> tuple[Floats, Floats]:
        """First and second derivative of the log-likelihood in the size (n,)."""
        from scipy.special import polygamma, psi

        size, total = self.size, mean + self.size
        if size > 1e3:
            return self._slopes_of_large(y, mean)
        first = psi(y + size) - psi(size) - np.log1p(mean / size) + (mean - y) / total
        second = polygamma(1, y + size) - polygamma(1, size) + 1.0 / size - 2.0 / total + (y + size) / total**2
        return np.asarray(first), np.asarray(second)

    def _slopes_of_large(self, y: Floats, mean: Floats) -> tuple[Floats, Floats]:
        """The same by Stirling's series, whose large terms cancel on paper instead of in floating point."""
        size, total, upper = self.size, mean + self.size, y + self.size
        away = (y - mean) / total
        first = np.log1p(away) - away + y / (2.0 * size * upper) + y * (size + upper) / (12.0 * (size * upper) ** 2)
        first = first + (upper**-4.0 - size**-4.0) / 120.0
        cubes = y * (3.0 * size * upper + y**2) / (6.0 * (size * upper) ** 3)
        second = away**2 / upper - y * (size + upper) / (2.0 * (size * upper) ** 2) - cubes
        return np.asarray(first), np.asarray(second)


class PositiveFamily(Family):
    """Positive numbers."""

    free_dispersion = True
    support = "positive numbers"

    def allowed(self, y: Floats) -> Flags:
        """Positive."""
        return np.isfinite(y) & (y > 0.0)

    def inside(self, mean: Floats) -> bool:
        """Positive."""
        return bool(self.allowed(mean).all())

    def first_mean(self, y: Floats, average: float) -> Floats:
        """Y itself."""
        return y


@dataclass(frozen=True)
class GammaFamily(PositiveFamily, MemberFamily):
    """V = mean^2; phi is one over the shape."""

    name = "gamma"
    canonical = "inverse"
    links = ("inverse", "log", "identity", "sqrt")

    def member(self, mean: Floats, phi: float = 1.0) -> GammaMember:
        """Gamma distributions of shape 1 / phi."""
        return GammaMember("Gamma", parameters={"shape": 1.0 / phi, "rate": 1.0 / (phi * mean)})

    def deviance(self, y: Floats, mean: Floats) -> Floats:
        """2 (y / mean - 1 - log(y / mean)); of rates in place of means it would lose the digits of what is near."""
        return 2.0 * excess((y - mean) / mean)

    def value(self, y: Floats, mean: Floats) -> Floats:
        """Minus half the deviance, for the many steps of a solver without the digits of the nearest."""
        away = (y - mean) / mean
        return np.log1p(away) - away

    def variance(self, mean: Floats) -> Floats:
        """The square of the mean, without a detour by rates."""
        return mean**2

    def ml_dispersion(self, totals: Totals) -> float:
        """One over the shape s with ``log s - psi(s) = mean deviance / 2``."""
        gap = 0.5 * totals.deviance / totals.weight
        return 1.0 / float(match_shape(gap, EXACT).state.parameters[0]) if gap > 0.0 else 0.0

    def log_likelihood(self, totals: Totals, phi: float) -> float:
        """The gamma log-likelihood with shape 1 / phi."""
        return -totals.weight * float(rest(1.0 / phi)) - 0.5 * totals.deviance / phi - totals.log_y


@dataclass(frozen=True)
class InverseGaussianFamily(PositiveFamily):
    """V = mean^3."""

    name = "inverse_gaussian"
    canonical = "inverse_square"
    links = ("inverse_square", "inverse", "log", "identity", "sqrt")

    def variance(self, mean: Floats) -> Floats:
        """The cube of the mean."""
        return mean**3

    def deviance(self, y: Floats, mean: Floats) -> Floats:
        """(y - mean)^2 / (mean^2 y)."""
        return (y - mean) ** 2 / (mean**2 * y)

    def log_likelihood(self, totals: Totals, phi: float) -> float:
        """-n log(2 pi phi) / 2 - 3/2 sum log y - deviance / (2 phi)."""
        return -0.5 * (totals.weight * math.log(2.0 * math.pi * phi) + totals.deviance / phi) - 1.5 * totals.log_y

    def log_prob(self, y: Floats, mean: Floats, phi: float) -> Floats:
        """Inverse Gaussian log density."""
        return -0.5 * (math.log(2.0 * math.pi * phi) + self.deviance(y, mean) / phi) - 1.5 * np.log(y)

    def sample(self, mean: Floats, phi: float, rng: np.random.Generator) -> Floats:
        """Inverse Gaussian draws."""
        return rng.wald(mean, 1.0 / phi)


@dataclass(frozen=True)
class BinomialFamily(MemberFamily):
    """V = mean (1 - mean) for the share of successes; the number of trials is part of the weight of a row."""

    name = "binomial"
    response = "shares"
    law = "logistic"
    canonical = "logit"
    links = ("logit", "probit", "cloglog", "loglog", "log", "identity")
    support = "0 and 1, two labels, or successes and failures"

    def allowed(self, y: Floats) -> Flags:
        """Shares."""
        return np.isfinite(y) & (y >= 0.0) & (y <= 1.0)

    def inside(self, mean: Floats) -> bool:
        """From 0 to 1."""
        return bool(((mean >= 0.0) & (mean <= 1.0)).all())

    def member(self, mean: Floats, phi: float = 1.0) -> BernoulliMember:
        """Single trials."""
        return BernoulliMember("Bernoulli", parameters={"probability": mean})

    def _saturated(self, y: Floats) -> Floats:
        """The value at means that are y itself: 0 of single trials."""
        from scipy.special import xlogy

        return of_counts(lambda share: np.asarray(xlogy(share, share) + xlogy(1.0 - share, 1.0 - share)), y)

    def first_mean(self, y: Floats, average: float) -> Floats:
        """Between y and one half."""
        return (y + 0.5) / 2.0

    def rows(self, link: Link, eta: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
        """From logarithms of the mean and of one less it, which keep the digits of shares near 0 and 1."""
        if link.name == "logit":
            return logistic_rows(eta, y)
        up, down, slope = link.log_mean(eta), link.log_rest(eta), link.log_slope(eta)
        outside = np.isnan(up) | np.isnan(down) | (up > 0.0) | (down > 0.0)
        value = np.where(y > 0.0, y * up, 0.0) + np.where(y < 1.0, (1.0 - y) * down, 0.0)
        score = np.where(y > 0.0, y * np.exp(slope - up), 0.0)
        score -= np.where(y < 1.0, (1.0 - y) * np.exp(slope - down), 0.0)
        weight = np.exp(2.0 * slope - up - down)
        weight = np.where(np.isfinite(weight), weight, 0.0)
        return np.where(outside, -np.inf, value), score, weight

    def deviances(self, link: Link, eta: Floats, y: Floats) -> Floats:
        """From the same logarithms."""
        return 2.0 * (self._saturated(y) - self.rows(link, eta, y)[0])

    def figures(self, link: Link, eta: Floats, y: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """With the deviance from the same value; under the logit link the slope is y less the mean."""
        value, slope, information = self.rows(link, eta, y)
        deviance = 2.0 * (self._saturated(y) - value)
        if link.name == "logit":
            return value, deviance, slope, information
        mean, variance = self.moments(link, eta)
        return value, deviance, y - mean, variance

    def log_prob_of_rows(self, fitted: Coefficients, eta: Floats, y: Floats, trials: Floats | None) -> Floats:
        """Of successes out of trials; rows that a direction decides are certain or impossible."""
        with np.errstate(all="ignore"):
            limits = np.where(np.isinf(eta[:, 0]), np.sign(eta[:, 0]) * 1e5, eta[:, 0])
            value = self.rows(self.link(fitted.link), limits, y)[0]
            certain = np.where((eta[:, 0] > 0) == (y > 0.5), 0.0, -np.inf)
            value = np.where(np.isinf(eta[:, 0]), certain, value)
        return value if trials is None else trials * value + log_choices(y * trials, trials)
