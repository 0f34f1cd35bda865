"""The families of one linear predictor that the library has."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from suffice.array_types import Flags, Floats
from suffice.engines.linear_predictor import logistic_rows
from suffice.models.glm.coefficients import Coefficients
from suffice.models.glm.family import Family, Totals
from suffice.models.glm.links import Link
from suffice.models.glm.response import log_choices

#: Counts from which on it pays to look functions of them up.
FEW_COUNTS = 200


def _positive(y: Floats) -> Flags:
    return np.isfinite(y) & (y > 0.0)


def _xlogy(x: Floats, y: Floats) -> Floats:
    from scipy.special import xlogy

    return np.asarray(xlogy(x, y))


def _of_counts(function: Callable[[Floats], Floats], y: Floats) -> Floats:
    """A function of each y: of many small counts looked up among those of 0, 1, 2, ..., which are the same digits."""
    largest = y.max(initial=0.0)
    if not 4.0 * largest + FEW_COUNTS < len(y):  # Nor where a number is missing.
        return function(y)
    counts = y.astype(np.intp)
    if not (counts == y).all() or counts.min() < 0:
        return function(y)
    return function(np.arange(largest + 1.0))[counts]


def _own_logs(y: Floats) -> Floats:
    """Y log y."""
    return _of_counts(lambda counts: _xlogy(counts, counts), y)


def _log_factorials(y: Floats) -> Floats:
    """Log y!."""
    from scipy.special import gammaln

    return _of_counts(lambda counts: np.asarray(gammaln(counts + 1.0)), y)


@dataclass(frozen=True)
class GaussianFamily(Family):
    """V = 1."""

    name = "gaussian"
    links = ("identity", "log", "inverse", "sqrt")
    free_dispersion = True

    def variance(self, mean: Floats) -> Floats:
        """One."""
        return np.ones_like(mean)

    def deviance(self, y: Floats, mean: Floats) -> Floats:
        """Squared residual."""
        return (y - mean) ** 2

    def base(self, y: Floats) -> Floats:
        """-log(2 pi) / 2."""
        return np.full_like(y, -0.5 * math.log(2.0 * math.pi))

    def log_likelihood(self, totals: Totals, phi: float) -> float:
        """-n log(2 pi phi) / 2 - squares / (2 phi)."""
        return -0.5 * (totals.weight * math.log(2.0 * math.pi * phi) + totals.deviance / phi)

    def log_prob(self, y: Floats, mean: Floats, phi: float) -> Floats:
        """Normal log density with variance phi."""
        return -0.5 * (math.log(2.0 * math.pi * phi) + (y - mean) ** 2 / phi)

    def sample(self, mean: Floats, phi: float, rng: np.random.Generator) -> Floats:
        """Normal draws."""
        return rng.normal(mean, math.sqrt(phi))


@dataclass(frozen=True)
class PoissonFamily(Family):
    """V = mean."""

    name = "poisson"
    canonical = "log"
    links = ("log", "identity", "sqrt")
    support = "counts: 0, 1, 2, ..."

    def allowed(self, y: Floats) -> Flags:
        """Counts."""
        return np.asarray(np.isfinite(y) & (y >= 0.0) & (y == np.floor(y)))

    def inside(self, mean: Floats) -> bool:
        """Positive, or 0 where it underflows."""
        return bool((np.isfinite(mean) & (mean >= 0.0)).all())

    def variance(self, mean: Floats) -> Floats:
        """The mean."""
        return mean

    def deviance(self, y: Floats, mean: Floats) -> Floats:
        """2 (y log(y / mean) - (y - mean))."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return 2.0 * (_own_logs(y) - _xlogy(y, mean) - (y - mean))

    def value(self, y: Floats, mean: Floats) -> Floats:
        """Y log(mean) - mean."""
        return _xlogy(y, mean) - mean

    def base(self, y: Floats) -> Floats:
        """-log y!."""
        return -_log_factorials(y)

    def first_mean(self, y: Floats, average: float) -> Floats:
        """Y, away from 0."""
        return y + 0.1 if average > 0 else np.full_like(y, 0.1)

    def sample(self, mean: Floats, phi: float, rng: np.random.Generator) -> Floats:
        """Poisson draws."""
        return rng.poisson(mean).astype(np.float64)

    def rows(self, link: Link, eta: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
        """With the log link ``y eta - exp(eta)``, without a detour by the mean."""
        if link.name != "log":
            return super().rows(link, eta, y)
        mean = np.exp(eta)
        return y * eta - mean, y - mean, mean


@dataclass(frozen=True)
class NegativeBinomialFamily(Family):
    """V = mean + mean^2 / size; a Poisson count whose rate is a gamma variable of shape `size`."""

    size: float = 1.0

    name = "negative_binomial"
    canonical = "log"
    links = ("log", "identity", "sqrt")
    support = "counts: 0, 1, 2, ..."
    allowed = PoissonFamily.allowed
    inside = PoissonFamily.inside
    first_mean = PoissonFamily.first_mean

    def sized(self, size: float | None) -> Family:
        """The family at another size."""
        return self if size is None else NegativeBinomialFamily(size)

    def variance(self, mean: Floats) -> Floats:
        """Mean + mean^2 / size."""
        return mean + mean**2 / self.size

    def deviance(self, y: Floats, mean: Floats) -> Floats:
        """2 (y log(y / mean) - (y + size) log((y + size) / (mean + size)))."""
        away = np.log1p((y - mean) / (mean + self.size))
        with np.errstate(divide="ignore", invalid="ignore"):
            return 2.0 * (_own_logs(y) - _xlogy(y, mean) - (y + self.size) * away)

    def value(self, y: Floats, mean: Floats) -> Floats:
        """Y log(mean / (mean + size)) - size log(1 + mean / size)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return _xlogy(y, mean) - _xlogy(y, mean + self.size) - self.size * np.log1p(mean / self.size)

    def base(self, y: Floats) -> Floats:
        """Log C(y + size - 1, y)."""
        from scipy.special import gammaln

        return np.asarray(gammaln(y + self.size) - gammaln(self.size) - _log_factorials(y))

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

    def sample(self, mean: Floats, phi: float, rng: np.random.Generator) -> Floats:
        """Negative binomial draws."""
        return rng.negative_binomial(self.size, self.size / (self.size + mean)).astype(np.float64)


@dataclass(frozen=True)
class GammaFamily(Family):
    """V = mean^2; phi is one over the shape."""

    name = "gamma"
    canonical = "inverse"
    links = ("inverse", "log", "identity", "sqrt")
    free_dispersion = True
    support = "positive numbers"

    def allowed(self, y: Floats) -> Flags:
        """Positive."""
        return _positive(y)

    def inside(self, mean: Floats) -> bool:
        """Positive."""
        return bool(_positive(mean).all())

    def variance(self, mean: Floats) -> Floats:
        """The square of the mean."""
        return mean**2

    def deviance(self, y: Floats, mean: Floats) -> Floats:
        """2 (y / mean - 1 - log(y / mean))."""
        away = (y - mean) / mean
        return 2.0 * (away - np.log1p(away))

    def base(self, y: Floats) -> Floats:
        """-1 - log y, at shape 1."""
        return -1.0 - np.log(y)

    def first_mean(self, y: Floats, average: float) -> Floats:
        """Y itself."""
        return y

    def ml_dispersion(self, totals: Totals) -> float:
        """The shape s solves ``log s - psi(s) = mean deviance / 2``: Newton's method in log s, from below."""
        from scipy.special import polygamma, psi

        excess = 0.5 * totals.deviance / totals.weight
        if not excess > 0.0:
            return 0.0
        # (3 - e + r) / (12 e) with r^2 = (e - 3)^2 + 24 e, which is 2 / (e - 3 + r): the one in which nothing cancels.
        root = math.hypot(excess - 3.0, math.sqrt(24.0 * excess))
        log_shape = math.log((3.0 - excess + root) / (12.0 * excess) if excess < 3.0 else 2.0 / (excess - 3.0 + root))
        for _ in range(50):
            shape = math.exp(log_shape)
            gap = log_shape - float(psi(shape)) - excess
            move = gap / (1.0 - shape * float(polygamma(1, shape)))
            log_shape -= move
            if abs(move) < 1e-14 * max(1.0, abs(log_shape)):
                break
        return math.exp(-log_shape)

    def log_likelihood(self, totals: Totals, phi: float) -> float:
        """The gamma log-likelihood with shape 1 / phi."""
        s = 1.0 / phi
        own = s * math.log(s) - math.lgamma(s) - s
        return totals.weight * own - 0.5 * s * totals.deviance - totals.log_y

    def log_prob(self, y: Floats, mean: Floats, phi: float) -> Floats:
        """Gamma log density."""
        s = 1.0 / phi
        return s * math.log(s) - math.lgamma(s) - s - 0.5 * s * self.deviance(y, mean) - np.log(y)

    def sample(self, mean: Floats, phi: float, rng: np.random.Generator) -> Floats:
        """Gamma draws."""
        return rng.gamma(1.0 / phi, phi * mean)


@dataclass(frozen=True)
class InverseGaussianFamily(Family):
    """V = mean^3."""

    name = "inverse_gaussian"
    canonical = "inverse_square"
    links = ("inverse_square", "inverse", "log", "identity", "sqrt")
    free_dispersion = True
    support = "positive numbers"
    allowed = GammaFamily.allowed
    inside = GammaFamily.inside
    first_mean = GammaFamily.first_mean

    def variance(self, mean: Floats) -> Floats:
        """The cube of the mean."""
        return mean**3

    def deviance(self, y: Floats, mean: Floats) -> Floats:
        """(y - mean)^2 / (mean^2 y)."""
        return (y - mean) ** 2 / (mean**2 * y)

    def base(self, y: Floats) -> Floats:
        """-log(2 pi y^3) / 2."""
        return -0.5 * math.log(2.0 * math.pi) - 1.5 * np.log(y)

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
class BinomialFamily(Family):
    """V = mean (1 - mean) for the share of successes; the number of trials is part of the weight of a row."""

    name = "binomial"
    response = "shares"
    canonical = "logit"
    links = ("logit", "probit", "cloglog", "loglog", "log", "identity")
    support = "0 and 1, two labels, or successes and failures"

    def allowed(self, y: Floats) -> Flags:
        """Shares."""
        return np.isfinite(y) & (y >= 0.0) & (y <= 1.0)

    def inside(self, mean: Floats) -> bool:
        """From 0 to 1."""
        return bool(((mean >= 0.0) & (mean <= 1.0)).all())

    def variance(self, mean: Floats) -> Floats:
        """Mean (1 - mean)."""
        return mean * (1.0 - mean)

    def deviance(self, y: Floats, mean: Floats) -> Floats:
        """2 (y log(y / mean) + (1 - y) log((1 - y) / (1 - mean)))."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return 2.0 * (self._saturated(y) - _xlogy(y, mean) - _xlogy(1.0 - y, 1.0 - mean))

    def value(self, y: Floats, mean: Floats) -> Floats:
        """Y log mean + (1 - y) log(1 - mean)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return _xlogy(y, mean) + _xlogy(1.0 - y, 1.0 - mean)

    def _saturated(self, y: Floats) -> Floats:
        """The value at means that are y itself: 0 of single trials."""
        return _own_logs(y) + _own_logs(1.0 - y)

    def first_mean(self, y: Floats, average: float) -> Floats:
        """Between y and one half."""
        return (y + 0.5) / 2.0

    def sample(self, mean: Floats, phi: float, rng: np.random.Generator) -> Floats:
        """Bernoulli draws."""
        return (rng.random(len(mean)) < mean).astype(np.float64)

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
        """With the deviance from the same value."""
        value = self.rows(link, eta, y)[0]
        return value, 2.0 * (self._saturated(y) - value), *self.moments(link, eta)

    def log_prob_of_rows(self, fitted: Coefficients, eta: Floats, y: Floats, trials: Floats | None) -> Floats:
        """Of successes out of trials; rows that a direction decides are certain or impossible."""
        n = np.ones_like(y) if trials is None else trials
        with np.errstate(all="ignore"):
            limits = np.where(np.isinf(eta[:, 0]), np.sign(eta[:, 0]) * 1e5, eta[:, 0])
            value = self.rows(self.link(fitted.link), limits, y)[0]
            certain = np.where((eta[:, 0] > 0) == (y > 0.5), 0.0, -np.inf)
            value = np.where(np.isinf(eta[:, 0]), certain, value)
        return n * value + log_choices(y * n, n)
