"""The normal law N(mean, variance)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.domain import Domain
from suffice.errors import EstimateError, OptionError
from suffice.families.base import as_float, as_floats, as_numbers, as_shares, generator
from suffice.families.conjugate import ConjugatePrior, tails
from suffice.families.exponential_family import ExponentialFamily
from suffice.families.fitted import FamilyFitted
from suffice.families.gamma_function import ratio_excess
from suffice.families.moments import read_moments, refuse_small
from suffice.families.normals import LOG_2PI, Normals, log_density
from suffice.fitting.control import Control
from suffice.statistics import Moments, Statistic, Summary

Floats = NDArray[np.float64]


class Normal(ExponentialFamily, ConjugatePrior):
    """The normal law, ``exp(-(x - mean)^2 / (2 variance)) / sqrt(2 pi variance)``.

    Unfitted ``Normal()``; given ``Normal(mean=0, variance=10)``, where the mean is 0 unless said. With only one of the
    two given, `fit` takes it as known and learns the other. Maximum likelihood divides by N (ddof 0).

    Args:
        mean: the mean, when given.
        variance: the variance, when given.
        prior: a `NormalInverseGamma` on (mean, variance), or, with a known variance, a `Normal` on the mean.
        estimate: ``"mean"`` (default) or ``"map"``, the mode in (mean, variance).
        progress: show a bar over the rows.

    >>> d = Normal().fit([1.0, 2.0, 3.0, 4.0])
    >>> d.mean_, d.variance_
    (2.5, 1.25)
    """

    parameter_names = ("mean", "variance")
    statistic_names = ("x", "x^2")
    conjugate_priors = ("NormalInverseGamma", "Normal")

    def __init__(
        self,
        mean: ArrayLike | None = None,
        variance: ArrayLike | None = None,
        *,
        prior: Any = None,
        estimate: str | None = None,
        progress: bool = False,
    ) -> None:
        """See the class."""
        super().__init__(mean=mean, variance=variance, prior=prior, estimate=estimate, progress=progress)

    # -- parameters --------------------------------------------------------------------------------------------------

    def _given(self) -> dict[str, Any] | None:
        mean, variance = self._options["mean"], self._options["variance"]
        return None if variance is None else {"mean": 0.0 if mean is None else mean, "variance": variance}

    def _check(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        mean, variance = as_floats(parameters["mean"], "mean"), as_floats(parameters["variance"], "variance")
        if mean.ndim or variance.ndim:
            alike = mean.ndim == 0 or variance.ndim == 0 or mean.shape == variance.shape
            if not (alike and mean.size and variance.size and (variance > 0).all()):
                raise OptionError("mean must be finite and variance positive in every entry, of the same shape.")
            return {"mean": mean, "variance": variance}
        return {
            "mean": as_float(parameters["mean"], "mean"),
            "variance": as_float(parameters["variance"], "variance", above=0),
        }

    def _fitted_from(self, plain: Mapping[str, Any]) -> FamilyFitted:
        fitted = super()._fitted_from(plain)
        if any(np.ndim(value) for value in fitted.parameters.values()):
            raise OptionError("The file holds several distributions, and one was fitted.")
        return fitted

    def _n_free(self) -> int:
        """Free parameters: those that are not known."""
        return (self._options["mean"] is None) + (self._options["variance"] is None)

    # -- statistics --------------------------------------------------------------------------------------------------

    def sufficient_statistics(self, x: ArrayLike) -> Floats:
        """(x, x^2) of each value, (n, 2)."""
        values = as_numbers(x)
        return np.stack([values, values**2], axis=-1)

    def log_base_measure(self, x: ArrayLike) -> Floats:
        """-log(2 pi)/2 for each value."""
        return np.full(as_numbers(x).shape, -0.5 * LOG_2PI)

    def log_normalizer(self, eta: ArrayLike | None = None) -> float:
        """A = -eta1^2 / (4 eta2) - log(-2 eta2)/2."""
        first, second = self._eta(eta)
        if not second < 0:
            return math.inf
        return float(-float(first) / float(4 * second) * float(first) - 0.5 * math.log(-2 * second))

    def expected_statistics(self, eta: ArrayLike | None = None) -> Floats:
        """(mean, mean^2 + variance)."""
        mean, variance = self._usual(eta)
        return np.array([mean, mean * mean + variance])

    def statistics_covariance(self, eta: ArrayLike | None = None) -> Floats:
        """Cov[(x, x^2)]."""
        mean, variance = self._usual(eta)
        mixed = 2 * mean * variance
        return np.array([[variance, mixed], [mixed, 2 * variance * variance + 4 * mean * mean * variance]])

    def _cumulants(self, order: int, direction: Floats) -> Floats:
        """With z = x - mean, direction . T is a quadratic in z, whose cumulants are elementary."""
        mean, variance = self._usual(None)
        slope, curve = direction[0] + 2 * direction[1] * mean, direction[1] * variance
        found = [direction @ self.expected_statistics()]
        for s in range(2, order + 1):
            square = 2.0 ** (s - 1) * math.factorial(s - 1) * curve**s
            steep = slope**2 * variance * curve ** (s - 2) if slope else 0.0
            found.append(square + 2.0 ** (s - 3) * math.factorial(s) * steep)
        return np.array(found)

    # -- maps --------------------------------------------------------------------------------------------------------

    def _usual(self, eta: ArrayLike | None) -> tuple[float, float]:
        if eta is None:
            mean, variance = self.parameters_["mean"], self.parameters_["variance"]
            if np.ndim(mean) or np.ndim(variance):
                raise OptionError("This Normal holds several laws, one for each entry of mean and variance: take one.")
            return mean, variance
        found = self._from_natural(self._eta(eta))
        return found["mean"], found["variance"]

    @property
    def _cell(self) -> Normals:
        """Mean and variance, as the one cell of an array."""
        mean, variance = self._usual(None)
        return Normals(np.asarray(mean), np.asarray(variance))

    def _to_natural(self, parameters: Mapping[str, Any]) -> Floats:
        mean, variance = parameters["mean"], parameters["variance"]
        return np.array([mean / variance, -0.5 / variance])

    def _from_natural(self, eta: Floats) -> dict[str, Any]:
        return {"mean": float(-0.5 * eta[0] / eta[1]), "variance": float(-0.5 / eta[1])}

    def _match(self, mean: Floats, control: Control) -> tuple[dict[str, Any], None]:
        return {"mean": float(mean[0]), "variance": float(mean[1] - mean[0] ** 2)}, None

    # -- evaluation --------------------------------------------------------------------------------------------------

    def log_prob(self, x: ArrayLike) -> Floats:
        """Log density of each value."""
        return log_density(as_numbers(x), self.mean_, self.variance_)

    def cdf(self, x: ArrayLike) -> Floats:
        """P(X <= x)."""
        from scipy.special import ndtr

        return np.asarray(ndtr((as_numbers(x) - self.mean_) / np.sqrt(self.variance_)))

    def quantile(self, q: ArrayLike) -> Floats:
        """The value below which a share q of the mass lies."""
        from scipy.special import ndtri

        return np.asarray(self.mean_ + np.sqrt(self.variance_) * ndtri(as_shares(q, "q")))

    def sample(self, n: int = 1, random_state: Any = None) -> Floats:
        """`n` draws (n,)."""
        return generator(random_state).normal(self.mean_, np.sqrt(self.variance_), size=n)

    def mean(self) -> Any:
        """The mean."""
        return self.mean_

    def variance(self) -> Any:
        """The variance."""
        return self.variance_

    def mode(self) -> Any:
        """The mean."""
        return self.mean_

    def entropy(self) -> float:
        """(1 + log(2 pi variance))/2."""
        return float(self._cell.entropy())

    def kl_divergence(self, other: Normal) -> float:
        """Closed form, without the cancellation of the general one."""
        if type(other) is not type(self):
            return super().kl_divergence(other)
        return float(self._cell.divergence(other._cell))

    # -- fitting -----------------------------------------------------------------------------------------------------

    def _ask(self, domain: Domain) -> tuple[Statistic, ...]:
        return (Moments(domain.names),)

    def _moments(self, summary: Summary) -> tuple[float, float, float]:
        """Weight, mean and centred sum of squares."""
        moments = read_moments(summary)
        if moments.weight <= 0:
            return 0.0, 0.0, 0.0
        return moments.weight, float(moments.mean[0]), max(float(moments.scatter[0, 0]), 0.0)

    def _observed(self, summary: Summary) -> Floats:
        weight, mean, scatter = self._moments(summary)
        return np.array([mean, mean * mean + scatter / weight])

    def _refuse_given(self, summary: Summary) -> None:
        if self._options["mean"] is not None:  # A variance alone is known, and the mean is learned.
            super()._refuse_given(summary)

    def _maximise(self, summary: Summary, control: Control) -> tuple[dict[str, Any], None]:
        weight, average, scatter = self._moments(summary)
        mean, variance = self._options["mean"], self._options["variance"]
        if variance is None:
            about = average if mean is None else float(mean)
            refuse_small(read_moments(summary), summary.domain.names, summary.rows)
            variance = (scatter + weight * (average - about) ** 2) / weight
            if not variance > 0:
                raise EstimateError(
                    f"The column is constant ({average!r}) over {summary.rows} rows, or its spread is below 1e-14 of "
                    "its mean: the likelihood grows without bound as the variance goes to 0. "
                    "Give a prior=NormalInverseGamma(...), or a known variance=."
                )
        return {"mean": average if mean is None else mean, "variance": variance}, None

    def _gap(self, summary: Summary) -> tuple[float, float]:
        """On the centred statistics, which do not cancel: (x - mean, (x - mean)^2)."""
        weight, average, scatter = self._moments(summary)
        mean, variance = self.mean_, self.variance_
        gaps = []
        if self._options["mean"] is None:
            gaps.append((average - mean) / math.sqrt(variance))
        if self._options["variance"] is None:
            spread = scatter / weight + (average - mean) ** 2
            gaps.append((spread - variance) / (math.sqrt(2) * variance))
        return max(map(abs, gaps)), math.hypot(*gaps)

    def _shortfall(self, summary: Summary) -> float:
        weight, average, scatter = self._moments(summary)
        away = (average - self.mean_) / math.sqrt(self.variance_)
        if self._options["variance"] is not None:
            return 0.5 * away * away
        if self._options["mean"] is None:
            return 0.5 * (float(ratio_excess(scatter / weight, self.variance_)) + away * away)
        known = average - self.mean_
        return 0.5 * float(ratio_excess(scatter / weight + known * known, self.variance_))

    def _log_likelihood(self, summary: Summary) -> float:
        return float(self._cell.log_likelihood(*self._moments(summary)))

    # -- with a prior ------------------------------------------------------------------------------------------------

    def _prior(self, summary: Summary) -> Any:
        prior = super()._prior(summary)
        known = self._options["variance"] is not None
        if isinstance(prior, Normal) and not known:
            raise OptionError(
                "A Normal prior on the mean needs a known variance=; for both unknown give NormalInverseGamma."
            )
        if prior is not None and not isinstance(prior, Normal) and (known or self._options["mean"] is not None):
            raise OptionError("A NormalInverseGamma prior is for an unknown mean and variance; give neither.")
        return prior

    def _update(self, prior: Any, summary: Summary) -> Any:
        weight, average, _ = self._moments(summary)
        if not isinstance(prior, Normal):
            return prior._from_summary(summary)
        # 1 / variance' = 1 / variance + N / known, in a form that gives the prior back to the bit at N = 0.
        pull = weight / self._options["variance"]
        variance = prior.variance_ / (1 + prior.variance_ * pull)
        return Normal(mean=prior.mean_ + variance * pull * (average - prior.mean_), variance=variance)

    def _from_point(self, point: Any) -> dict[str, Any]:
        return dict(point) if isinstance(point, dict) else {"mean": point, "variance": self._options["variance"]}

    def _prior_point(self) -> Any:
        known = self._options["variance"] is not None
        return self.mean_ if known else {"mean": self.mean_, "variance": self.variance_}

    def _point_space(self, estimate: str) -> str:
        return "mean (variance known)" if self._options["variance"] is not None else "(mean, variance)"

    def _predictive(self, posterior: Any) -> Any:
        if isinstance(posterior, Normal):
            return Normal(mean=posterior.mean_, variance=posterior.variance_ + self.variance_)
        return posterior._predictive_law()

    def _evidence(self, prior: Any, posterior: Any, summary: Summary) -> float | None:
        """p(x) = p(x | mean) p(mean) / p(mean | x) at any mean."""
        weight, average, scatter = self._moments(summary)
        if not isinstance(prior, Normal):
            return float(prior._log_constant() - posterior._log_constant() - 0.5 * weight * LOG_2PI)
        point = posterior.mean_
        cell = Normals(np.asarray(point), np.asarray(self._options["variance"], dtype=np.float64))
        likelihood = cell.log_likelihood(weight, average, scatter)
        return float(likelihood + prior.log_prob(point) - posterior.log_prob(point))

    # -- as a prior on a mean ----------------------------------------------------------------------------------------

    def stationarity(self, point: Any) -> Floats:
        """Slope of the log density."""
        return np.atleast_1d((self.mean_ - as_numbers(point)) / self.variance_)

    def below_mode(self, point: Any) -> float | None:
        """Half the square of the distance, in standard deviations."""
        mean, variance = self._usual(None)
        away = (float(point) - mean) / math.sqrt(variance)
        return 0.5 * away * away

    def intervals(self, level: float = 0.95) -> Any:
        """The central interval."""
        low, high = self.quantile(tails(level))
        return float(low), float(high)
