"""The normal distribution N(mean, variance)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from suffice.array_types import Floats
from suffice.attributes import Read
from suffice.checks import draw_count
from suffice.choices import Estimate
from suffice.domain import Domain
from suffice.engines.square_root import LOG_2PI
from suffice.errors import EstimateError, OptionError
from suffice.families.base import Seed, as_float, as_floats, as_numbers, as_shares, generator
from suffice.families.conjugate import ConjugatePrior
from suffice.families.exponential_family import answered_by
from suffice.families.gamma_function import ratio_excess
from suffice.families.moments import hidden_far_out, mean_away, read_moments, refuse_small
from suffice.families.normals import Normals, log_density
from suffice.families.scalar import ScalarFamily, ScalarMember
from suffice.fitting.control import Control
from suffice.statistics import Moments, Statistic, Summary

if TYPE_CHECKING:
    from suffice.families.normal_inverse_gamma import NormalInverseGamma
    from suffice.families.student import StudentT


class NormalMember(ScalarMember):
    """The normal distribution, ``exp(-(x - mean)^2 / (2 variance)) / sqrt(2 pi variance)``."""

    parameter_names = ("mean", "variance")
    mean_: float
    variance_: float
    statistic_names = ("x", "x^2")
    conjugate_priors = ("NormalInverseGamma", "Normal")

    # -- parameters --------------------------------------------------------------------------------------------------

    def given(self) -> dict[str, Any] | None:
        """The parameters that are known when they are all there, else None."""
        return None if "variance" not in self.known else {"mean": 0.0, **self.known}

    def check(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Parameters in their final type; an impossible value is an error."""
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

    def restored(self, plain: Mapping[str, Any]) -> Self:
        """The member of a file, which is one."""
        member = super().restored(plain)
        if any(np.ndim(value) for value in member.parameters_.values()):
            raise OptionError("The file holds several distributions, and one was fitted.")
        return member

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

    def cumulants_along(self, order: int, direction: Floats) -> Floats:
        """With z = x - mean, direction . T is a quadratic in z, whose cumulants are elementary."""
        mean, variance = self._usual(None)
        slope, curve = direction[0] + 2 * direction[1] * mean, direction[1] * variance
        cumulants = [direction @ self.expected_statistics()]
        for s in range(2, order + 1):
            square = 2.0 ** (s - 1) * math.factorial(s - 1) * curve**s
            steep = slope**2 * variance * curve ** (s - 2) if slope else 0.0
            cumulants.append(square + 2.0 ** (s - 3) * math.factorial(s) * steep)
        return np.array(cumulants)

    # -- maps --------------------------------------------------------------------------------------------------------

    def _usual(self, eta: ArrayLike | None) -> tuple[float, float]:
        if eta is None:
            mean, variance = self.parameters_["mean"], self.parameters_["variance"]
            if np.ndim(mean) or np.ndim(variance):
                raise OptionError(
                    "This Normal holds several distributions, one for each entry of mean and variance: take one."
                )
            return mean, variance
        usual = self.from_natural(self._eta(eta))
        return usual["mean"], usual["variance"]

    @property
    def _cell(self) -> Normals:
        """Mean and variance, as the one cell of an array."""
        mean, variance = self._usual(None)
        return Normals(np.asarray(mean), np.asarray(variance))

    def to_natural(self, parameters: Mapping[str, Any]) -> Floats:
        """Natural parameters (k,) from usual ones; +-inf at the edge of the family."""
        mean, variance = parameters["mean"], parameters["variance"]
        return np.array([mean / variance, -0.5 / variance])

    def from_natural(self, eta: Floats) -> dict[str, Any]:
        """Usual parameters from natural ones."""
        return {"mean": float(-0.5 * eta[0] / eta[1]), "variance": float(-0.5 / eta[1])}

    def match(self, mean: Floats, control: Control) -> tuple[dict[str, Any], None]:
        """Usual parameters from mean parameters, and how the iteration ended; None for a closed form."""
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

    def sample(self, n: int = 1, random_state: Seed = None) -> Floats:
        """`n` draws (n,)."""
        return generator(random_state).normal(self.mean_, np.sqrt(self.variance_), size=draw_count(n))

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

    def divergence(self, other: NormalMember) -> float:
        """Closed form, without the cancellation of the general one."""
        return float(self._cell.divergence(other._cell))

    # -- fitting -----------------------------------------------------------------------------------------------------

    def ask(self, domain: Domain) -> tuple[Statistic, ...]:
        """The statistics that a fit needs."""
        return (Moments(domain.names),)

    def _moments(self, summary: Summary) -> tuple[float, float, float]:
        """Weight, mean and centred sum of squares."""
        moments = read_moments(summary)
        if moments.weight <= 0:
            return 0.0, 0.0, 0.0
        return moments.weight, float(moments.mean[0]), max(float(moments.scatter[0, 0]), 0.0)

    def observed(self, summary: Summary) -> Floats:
        """Mean of T over the rows (k,)."""
        weight, mean, scatter = self._moments(summary)
        return np.array([mean, mean * mean + scatter / weight])

    def refuse_given(self, summary: Summary) -> None:
        """Raise where every parameter is given: the fit would either do nothing or overrule the caller."""
        if self.known.get("mean") is not None:  # A variance alone is known, and the mean is learned.
            super().refuse_given(summary)

    def maximise(self, summary: Summary, control: Control) -> tuple[dict[str, Any], None]:
        """Parameters of maximum likelihood, and how the iteration ended; None for a closed form."""
        weight, average, scatter = self._moments(summary)
        mean, variance = self.known.get("mean"), self.known.get("variance")
        if variance is None:
            about = average if mean is None else as_float(mean, "mean")
            refuse_small(read_moments(summary), summary.domain.names, summary.rows)
            variance = (scatter + weight * (average - about) ** 2) / weight
            if not variance > 0:
                raise EstimateError(
                    f"The column is constant ({average!r}) over {summary.rows} rows, or its spread is below 1e-14 of "
                    "its mean: the likelihood grows without bound as the variance goes to 0. "
                    "Give a prior=NormalInverseGamma(...), or a known variance=."
                )
        return {"mean": average if mean is None else mean, "variance": variance}, None

    def gap(self, summary: Summary) -> tuple[float, float]:
        """On the centred statistics, which do not cancel: (x - mean, (x - mean)^2)."""
        weight, _, scatter = self._moments(summary)
        away, variance = self._away(summary), self.variance_
        gaps = []
        if self.known.get("mean") is None:
            gaps.append(away / math.sqrt(variance))
        if self.known.get("variance") is None:
            spread = scatter / weight + away**2
            gaps.append((spread - variance) / (math.sqrt(2) * variance))
        return max(map(abs, gaps)), math.hypot(*gaps)

    def _away(self, summary: Summary) -> float:
        """The mean of the rows less that of the distribution, which is a float: of far columns rounding is left."""
        return float(mean_away(read_moments(summary), np.array([self.mean_]))[0])

    def rounding(self) -> float:
        """Of columns far from 0 sums of squares lose digits, where they are used."""
        if self.known.get("variance") is not None:
            return super().rounding()
        return super().rounding() + hidden_far_out(np.array([self.mean_]), np.array([self.variance_]))

    def unavoidable(self) -> float:
        """The mean is a float."""
        return math.ulp(self.mean_) / math.sqrt(self.variance_)

    def shortfall(self, summary: Summary) -> float:
        """How far the mean log-likelihood of a row is below its maximum, by a formula."""
        weight, _, scatter = self._moments(summary)
        known = self._away(summary)
        away = known / math.sqrt(self.variance_)
        if self.known.get("variance") is not None:
            return 0.5 * away * away
        if self.known.get("mean") is None:
            return 0.5 * (float(ratio_excess(scatter / weight, self.variance_)) + away * away)
        return 0.5 * float(ratio_excess(scatter / weight + known * known, self.variance_))

    def log_likelihood(self, summary: Summary) -> float:
        """Sum over the rows of a summary, natural logarithm, where log h is 0."""
        return float(self._cell.log_likelihood(*self._moments(summary)))

    def concentration(self) -> float:
        """One over the variance."""
        return float(1.0 / self.variance_)

    # -- with a prior ------------------------------------------------------------------------------------------------

    def conjugate_prior(self, prior: Any, summary: Summary) -> Any:
        """A normal prior of the mean needs a known variance; the other one is for both unknown."""
        prior, known = super().conjugate_prior(prior, summary), "variance" in self.known
        if isinstance(prior, Normal) and not known:
            raise OptionError(
                "A Normal prior on the mean needs a known variance=; for both unknown give NormalInverseGamma."
            )
        if not isinstance(prior, Normal) and (known or self.known.get("mean") is not None):
            raise OptionError("A NormalInverseGamma prior is for an unknown mean and variance; give neither.")
        return prior

    def update(self, prior: Any, summary: Summary) -> Any:
        """The posterior: the prior with the statistics of the rows added."""
        weight, average, _ = self._moments(summary)
        if not isinstance(prior, Normal):
            return prior._from_summary(summary)
        # 1 / variance' = 1 / variance + N / known, in a form that gives the prior back to the bit at N = 0.
        pull = weight / self.known["variance"]
        variance = prior.variance_ / (1 + prior.variance_ * pull)
        return Normal(mean=prior.mean_ + variance * pull * (average - prior.mean_), variance=variance)

    def from_point(self, point: Any) -> dict[str, Any]:
        """Parameters from the posterior's mean or mode."""
        return dict(point) if isinstance(point, dict) else {"mean": point, "variance": self.known.get("variance")}

    def prior_point(self) -> Any:
        """The current parameters in the form that the prior's density takes."""
        known = self.known.get("variance") is not None
        return self.mean_ if known else {"mean": self.mean_, "variance": self.variance_}

    def log_likelihoods(self, summary: Summary, points: Sequence[Mapping[str, Any]]) -> tuple[Floats, Any]:
        """Of all members together, on arrays with an axis of members."""
        means = np.array([point["mean"] for point in points], dtype=np.float64)
        variances = np.array([point["variance"] for point in points], dtype=np.float64)
        known = self.known.get("variance") is not None
        prior_points = means if known else {"mean": means, "variance": variances}
        return Normals(means, variances).log_likelihood(*self._moments(summary)), prior_points

    def point_space(self, estimate: str) -> str:
        """The parameters in which a mean or mode was taken."""
        return "mean (variance known)" if self.known.get("variance") is not None else "(mean, variance)"

    def predictive(self, posterior: Any) -> Any:
        """The distribution of one more row, with the parameters integrated out."""
        if isinstance(posterior, Normal):
            return Normal(mean=posterior.mean_, variance=posterior.variance_ + self.variance_)
        return posterior._predictive_distribution()

    def evidence(self, prior: Any, posterior: Any, summary: Summary) -> float | None:
        """Of both unknown by the constants of the densities."""
        if isinstance(prior, Normal):
            return super().evidence(prior, posterior, summary)
        return float(prior._log_constant() - posterior._log_constant() - 0.5 * summary.weight * LOG_2PI)

    # -- as a prior on a mean ----------------------------------------------------------------------------------------

    def stationarity(self, point: Any) -> Floats:
        """Slope of the log density."""
        return np.atleast_1d((self.mean_ - as_numbers(point)) / self.variance_)

    def below_mode(self, point: Any) -> float | None:
        """Half the square of the distance, in standard deviations."""
        mean, variance = self._usual(None)
        away = (as_float(point, "point") - mean) / math.sqrt(variance)
        return 0.5 * away * away


class Normal(ScalarFamily, ConjugatePrior):
    """The normal distribution, ``exp(-(x - mean)^2 / (2 variance)) / sqrt(2 pi variance)``.

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

    member_class = NormalMember
    mean_: float
    variance_: float

    posterior_: Read[NormalInverseGamma | Normal]
    predictive_: Read[StudentT | Normal]

    def __init__(
        self,
        mean: ArrayLike | None = None,
        variance: ArrayLike | None = None,
        *,
        prior: Any = None,
        estimate: Estimate | None = None,
        progress: bool = False,
    ) -> None:
        """See the class."""
        super().__init__(mean=mean, variance=variance, prior=prior, estimate=estimate, progress=progress)

    stationarity = answered_by(NormalMember.stationarity)
    below_mode = answered_by(NormalMember.below_mode)
    intervals = answered_by(NormalMember.intervals)
