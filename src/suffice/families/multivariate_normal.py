"""The normal distribution of several columns, N(mean, covariance)."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from suffice.answers import MomentSums
from suffice.array_types import Floats
from suffice.attributes import Read, reads
from suffice.checks import draw_count, listed_names
from suffice.choices import Estimate
from suffice.domain import Domain
from suffice.engines.square_root import LOG_2PI
from suffice.errors import EstimateError, OptionError, listing, unknown_variable
from suffice.families import gaussian
from suffice.families.base import Seed, as_floats, generator
from suffice.families.conjugate import ConjugatePrior, tails
from suffice.families.exponential_family import answered_by
from suffice.families.matrices import as_positive_definite, flat, inverse, log_determinant, root, solve, unflat, whiten
from suffice.families.moments import SMALLEST, hidden_far_out, mean_away, read_moments, refuse_small
from suffice.families.student import MultivariateStudentT
from suffice.families.vectors import VectorFamily, VectorMember, columns_option
from suffice.fitting.control import Control
from suffice.options import own_options
from suffice.statistics import Moments, Statistic, Summary

if TYPE_CHECKING:
    from suffice.families.normal_wishart import NormalWishart


class MultivariateNormalMember(VectorMember):
    """The normal distribution of d columns, ``exp(-(x - mean)' cov^-1 (x - mean) / 2) / sqrt(det(2 pi cov))``."""

    parameter_names = ("mean", "covariance")
    mean_: Floats
    covariance_: Floats
    conjugate_priors = ("NormalWishart", "MultivariateNormal")

    # -- parameters --------------------------------------------------------------------------------------------------

    def given(self) -> dict[str, Any] | None:
        """The parameters that are known when they are all there, else None."""
        if "covariance" not in self.known:
            return None
        mean, covariance = self.known.get("mean"), as_floats(self.known["covariance"], "covariance")
        return {"mean": np.zeros(len(np.atleast_2d(covariance))) if mean is None else mean, "covariance": covariance}

    def check(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Parameters in their final type; an impossible value is an error."""
        mean = np.atleast_1d(as_floats(parameters["mean"], "mean"))
        if mean.ndim != 1:
            raise OptionError(f"mean has shape {mean.shape}; expected one number for each column.")
        self._check_columns(len(mean))
        return {"mean": mean, "covariance": as_positive_definite(parameters["covariance"], "covariance", len(mean))}

    @property
    def precision_(self) -> Floats:
        """The inverse of the covariance (d, d)."""
        return inverse(self.covariance_)

    @property
    def n_params(self) -> int:
        """One for each unknown mean, and d(d + 1)/2 for an unknown covariance."""
        d = len(self.mean_)
        return d * (self.known.get("mean") is None) + d * (d + 1) // 2 * (self.known.get("covariance") is None)

    # -- statistics --------------------------------------------------------------------------------------------------

    def sufficient_statistics(self, x: Any) -> Floats:
        """X, then x x' row by row, of each row: (n, d + d^2)."""
        rows = np.atleast_2d(self._rows(x))
        return np.concatenate([rows, (rows[:, :, None] * rows[:, None, :]).reshape(len(rows), -1)], axis=1)

    def log_base_measure(self, x: Any) -> Floats:
        """-d log(2 pi)/2 for each row."""
        rows = np.atleast_1d(self._rows(x))
        return np.full(rows.shape[:-1], -0.5 * rows.shape[-1] * LOG_2PI)

    def log_normalizer(self, eta: ArrayLike | None = None) -> float:
        """A = -eta1' eta2^-1 eta1 / 4 - log det(-2 eta2) / 2."""
        first, second = unflat(self._eta(eta))
        try:
            factor = root(-2 * second) if (np.diag(second) < 0).all() else None
        except np.linalg.LinAlgError:
            factor = None
        if factor is None:
            return math.inf
        z = whiten(factor, first)
        return float(0.5 * z @ z - np.log(np.diag(factor)).sum())

    def expected_statistics(self, eta: ArrayLike | None = None) -> Floats:
        """The mean, then covariance + mean mean' row by row."""
        mean, covariance = self._usual(eta)
        return flat(mean, covariance + np.outer(mean, mean))

    def statistics_covariance(self, eta: ArrayLike | None = None) -> Floats:
        """Cov of (x, x x'): (d + d^2, d + d^2); singular, since x_i x_j and x_j x_i are the same statistic."""
        return gaussian.statistics_covariance(*self._usual(eta))

    def cumulants_along(self, order: int, direction: Floats) -> Floats:
        """Cumulants 1 to `order` of ``direction . T`` (order,); numerical derivatives unless a family has formulas."""
        vector, matrix = unflat(direction)
        higher = gaussian.quadratic_cumulants(self.mean_, self.covariance_, vector, matrix, order)
        return np.concatenate([[direction @ self.expected_statistics()], higher])

    # -- maps --------------------------------------------------------------------------------------------------------

    def _usual(self, eta: ArrayLike | None) -> tuple[Floats, Floats]:
        if eta is None:
            return self.mean_, self.covariance_
        usual = self.from_natural(self._eta(eta))
        return usual["mean"], usual["covariance"]

    def to_natural(self, parameters: Mapping[str, Any]) -> Floats:
        """Natural parameters (k,) from usual ones; +-inf at the edge of the family."""
        precision = inverse(parameters["covariance"])
        return flat(solve(parameters["covariance"], parameters["mean"]), -0.5 * precision)

    def from_natural(self, eta: Floats) -> dict[str, Any]:
        """Usual parameters from natural ones."""
        first, second = unflat(eta)
        precision = as_positive_definite(-2 * second, "-2 times the matrix part of eta")
        return {"mean": solve(precision, first), "covariance": inverse(precision)}

    def match(self, mean: Floats, control: Control) -> tuple[dict[str, Any], None]:
        """Usual parameters from mean parameters, and how the iteration ended; None for a closed form."""
        first, second = unflat(mean)
        return {"mean": first, "covariance": second - np.outer(first, first)}, None

    # -- evaluation --------------------------------------------------------------------------------------------------

    def log_prob(self, x: Any) -> Floats:
        """Log density of each row (n, d), or of one row (d,); tables are matched by the names of their columns."""
        return gaussian.log_density(self.mean_, self.covariance_, self._rows(x))

    def sample(self, n: int = 1, random_state: Seed = None) -> Floats:
        """`n` draws (n, d), columns in the order of the distribution."""
        z = generator(random_state).standard_normal((draw_count(n), len(self.mean_)))
        return np.asarray(self.mean_ + z @ root(self.covariance_).T)

    def mean(self) -> Floats:
        """The mean (d,)."""
        return np.asarray(self.mean_)

    def variance(self) -> Floats:
        """The variance of each column (d,)."""
        return np.diag(self.covariance_).copy()

    def mode(self) -> Floats:
        """The mean."""
        return np.asarray(self.mean_)

    def entropy(self) -> float:
        """(d (1 + log(2 pi)) + log det covariance) / 2."""
        return 0.5 * (len(self.mean_) * (1 + LOG_2PI) + log_determinant(self.covariance_))

    def divergence(self, other: MultivariateNormalMember) -> float:
        """Closed form, as a sum of terms that are never negative."""
        if len(other.mean_) != len(self.mean_):
            raise OptionError(
                f"The distributions have {len(self.mean_)} and {len(other.mean_)} columns; KL needs the same ones."
            )
        return gaussian.divergence((self.mean_, self.covariance_), (other.mean_, other.covariance_))

    def information_form(self) -> tuple[Floats, Floats]:
        """(h, J) with J the precision (d, d) and h = J mean (d,)."""
        first, second = unflat(self.natural_parameters())
        return first, -2 * second

    # -- parts of the distribution -----------------------------------------------------------------------------------

    def _places(self, columns: Iterable[Hashable]) -> list[int]:
        own = self.named()
        chosen = list(listed_names(columns, "columns"))
        unknown = [name for name in chosen if name not in own]
        if unknown:
            raise unknown_variable(unknown[0], own)
        if len(set(chosen)) != len(chosen) or not chosen:
            raise OptionError(f"columns is {chosen!r}; expected at least one column, each once.")
        return [own.index(name) for name in chosen]

    def marginal(self, columns: Iterable[Hashable]) -> MultivariateNormal:
        """The distribution of some columns, in the order asked."""
        places = self._places(columns)
        names = [self.named()[column] for column in places]
        return MultivariateNormal(self.mean_[places], self.covariance_[np.ix_(places, places)], columns=names)

    def condition(self, on: Mapping[Hashable, float]) -> MultivariateNormal:
        """The distribution of the other columns, given values of some."""
        known = self._places(on)
        free = [column for column in range(len(self.mean_)) if column not in known]
        if not free:
            raise OptionError("Every column has a value; leave out those whose distribution is asked for.")
        values = as_floats([on[self.named()[column]] for column in known], "on")
        factor = root(self.covariance_[np.ix_(known, known)])
        cross = whiten(factor, self.covariance_[np.ix_(known, free)])
        mean = self.mean_[free] + cross.T @ whiten(factor, values - self.mean_[known])
        covariance = self.covariance_[np.ix_(free, free)] - cross.T @ cross
        return MultivariateNormal(mean, covariance, columns=[self.named()[column] for column in free])

    # -- fitting -----------------------------------------------------------------------------------------------------

    def ask(self, domain: Domain) -> tuple[Statistic, ...]:
        """The statistics that a fit needs."""
        return (Moments(domain.names),)

    def _moments(self, summary: Summary) -> MomentSums:
        return read_moments(summary)

    def observed(self, summary: Summary) -> Floats:
        """Mean of T over the rows (k,)."""
        moments = self._moments(summary)
        return flat(moments.mean, moments.covariance + np.outer(moments.mean, moments.mean))

    def refuse_given(self, summary: Summary) -> None:
        """Raise where every parameter is given: the fit would either do nothing or overrule the caller."""
        d = len(summary.domain.names)
        if self.known.get("mean") is not None:  # A covariance alone is known, and the mean is learned.
            super().refuse_given(summary)
        for name in self.parameter_names:
            given = None if self.known.get(name) is None else as_floats(self.known[name], name)
            if given is not None and np.shape(given) != (d,) * (1 if name == "mean" else 2):
                names = listing(summary.domain.names)
                raise OptionError(
                    f"{name} is given with shape {np.shape(given)} and the data have {d} columns: {names}."
                )

    def maximise(self, summary: Summary, control: Control) -> tuple[dict[str, Any], None]:
        """Parameters of maximum likelihood, and how the iteration ended; None for a closed form."""
        moments = self._moments(summary)
        mean, covariance = self.known.get("mean"), self.known.get("covariance")
        if covariance is None:
            scatter = moments.scatter if mean is None else moments.scatter_about(as_floats(mean, "mean"))
            refuse_small(moments, summary.domain.names, summary.rows)
            gaussian.refuse_singular(scatter, summary.domain.names, summary.rows)
            covariance = scatter / moments.weight
        return {"mean": moments.mean if mean is None else mean, "covariance": covariance}, None

    def gap(self, summary: Summary) -> tuple[float, float]:
        """On the centred statistics, which do not cancel."""
        moments = self._moments(summary)
        gaps = []
        if self.known.get("mean") is None:
            gaps.append(gaussian.mean_gap(mean_away(moments, self.mean_), self.covariance_))
        if self.known.get("covariance") is None:
            gaps.append(gaussian.spread_gap(moments.scatter_about(self.mean_) / moments.weight, self.covariance_))
        return max(gap for gap, _ in gaps), math.hypot(*(decrement for _, decrement in gaps))

    def unavoidable(self) -> float:
        """The means are floats."""
        return float(np.max(np.spacing(np.abs(self.mean_)) / np.sqrt(np.diag(self.covariance_)), initial=0.0))

    def shortfall(self, summary: Summary) -> float:
        """How far the mean log-likelihood of a row is below its maximum, by a formula."""
        moments = self._moments(summary)
        away, covariance = np.zeros_like(self.mean_), self.covariance_
        if "covariance" not in self.known:
            about = moments.scatter if "mean" not in self.known else moments.scatter_about(self.mean_)
            covariance = about / moments.weight
        if "mean" not in self.known:
            away = mean_away(moments, self.mean_)
        return gaussian.divergence((away, covariance), (np.zeros_like(away), self.covariance_))

    def rounding(self) -> float:
        """Magnified by the condition of the correlations, in whose directions the rows are measured."""
        units = np.sqrt(np.diag(self.covariance_))
        values = np.linalg.eigvalsh(self.covariance_ / units[:, None] / units)
        hidden = super().rounding() + hidden_far_out(self.mean_, units**2)
        return hidden * len(units) * float(values[-1] / max(values[0], SMALLEST))

    def log_likelihood(self, summary: Summary) -> float:
        """Sum over the rows of a summary, natural logarithm, where log h is 0."""
        moments = self._moments(summary)
        if not moments.weight > 0:
            return 0.0
        return gaussian.log_likelihood(moments.weight, moments.scatter_about(self.mean_), self.covariance_)

    def log_likelihoods(self, summary: Summary, points: Sequence[Mapping[str, Any]]) -> tuple[Floats, Any]:
        """Of all members together, on arrays with an axis of members."""
        moments = self._moments(summary)
        means = np.array([point["mean"] for point in points], dtype=np.float64)
        covariances = np.array([point["covariance"] for point in points], dtype=np.float64)
        halves = whiten(root(covariances), np.broadcast_to(np.eye(means.shape[-1]), covariances.shape))
        known = self.known.get("covariance") is not None
        prior_points = means if known else {"mean": means, "precision": halves.swapaxes(-1, -2) @ halves}
        if not moments.weight > 0:
            return np.zeros(len(points)), prior_points
        away = moments.mean - means
        scatters = moments.scatter + moments.weight * away[:, :, None] * away[:, None, :]
        return gaussian.log_likelihoods(moments.weight, scatters, halves), prior_points

    # -- with a prior ------------------------------------------------------------------------------------------------

    def conjugate_prior(self, prior: Any, summary: Summary) -> Any:
        """A normal prior of the mean needs a known covariance; the other one is for both unknown."""
        prior, known = super().conjugate_prior(prior, summary), "covariance" in self.known
        if isinstance(prior, MultivariateNormal) and not known:
            raise OptionError(
                "A MultivariateNormal prior on the mean needs a known covariance=; for both unknown give NormalWishart."
            )
        if not isinstance(prior, MultivariateNormal) and (known or self.known.get("mean") is not None):
            raise OptionError("A NormalWishart prior is for an unknown mean and covariance; give neither.")
        return self._matched(prior, summary.domain.names)

    def _matched(self, prior: Any, names: Sequence[Hashable]) -> Any:
        """The prior in the order of the columns, where it names them; else it must have as many dimensions."""
        if isinstance(prior, MultivariateNormal) and prior._options["columns"] is not None:
            return prior.marginal(names)
        if len(prior.mean_) != len(names):
            n = len(prior.mean_)
            raise OptionError(f"The prior has {n} dimensions and the data {len(names)} columns: {listing(names)}.")
        own = None if isinstance(prior, MultivariateNormal) else prior._options["names"]
        if own is None or tuple(own) == tuple(names):
            return prior
        if set(own) != set(names):
            raise OptionError(
                f"The prior is of the columns {listing(own)} (its names=), and the data have {listing(names)}. Give a "
                "prior with their names, or columns=."
            )
        return prior.marginal([list(own).index(name) for name in names])

    def update(self, prior: Any, summary: Summary) -> Any:
        """The posterior: the prior with the statistics of the rows added."""
        prior = self._matched(prior, summary.domain.names)
        if not isinstance(prior, MultivariateNormal):
            return prior._from_summary(summary)
        moments = self._moments(summary)
        if not moments.weight > 0:
            return prior
        known = as_positive_definite(self.known["covariance"], "covariance", len(prior.mean_))
        mean, covariance = gaussian.update_mean((prior.mean_, prior.covariance_), moments.weight, moments.mean, known)
        return MultivariateNormal(mean, covariance, columns=summary.domain.names)

    def from_point(self, point: Any) -> dict[str, Any]:
        """Parameters from the posterior's mean or mode."""
        if not isinstance(point, Mapping):
            return {"mean": point, "covariance": self.known.get("covariance")}
        if "covariance" not in point:
            raise EstimateError(
                "The covariance has no posterior mean: the posterior needs dof > d + 1. "
                "Use estimate='map', or a larger dof."
            )
        return {name: point[name] for name in self.parameter_names}

    def prior_point(self) -> Any:
        """The current parameters in the form that the prior's density takes."""
        known = self.known.get("covariance") is not None
        return self.mean_ if known else {"mean": self.mean_, "precision": self.precision_}

    def point_space(self, estimate: str) -> str:
        """The parameters in which a mean or mode was taken."""
        if self.known.get("covariance") is not None:
            return "mean (covariance known)"
        return "(mean, precision)" if estimate == "map" else "(mean, covariance)"

    def predictive(self, posterior: Any) -> MultivariateNormal | MultivariateStudentT:
        """The distribution of one more row, with the parameters integrated out."""
        if not isinstance(posterior, MultivariateNormal):
            student: MultivariateStudentT = posterior._predictive_distribution()
            return student
        covariance = posterior.covariance_ + self.covariance_
        return MultivariateNormal(posterior.mean_, covariance, columns=self.named())

    def evidence(self, prior: Any, posterior: Any, summary: Summary) -> float | None:
        """Of both unknown by the constants of the densities."""
        if isinstance(prior, MultivariateNormal):
            return super().evidence(prior, posterior, summary)
        constants = prior._log_constant() - posterior._log_constant()
        return float(constants - 0.5 * summary.weight * len(prior.mean_) * LOG_2PI)

    # -- as a prior on a mean ----------------------------------------------------------------------------------------

    def below_mode(self, point: Any) -> float | None:
        """Half the square of the distance, in standard deviations."""
        away = whiten(root(self.covariance_), self._point(point) - self.mean_)
        return 0.5 * float(away @ away)

    def stationarity(self, point: Any) -> Floats:
        """Slope of the log density, ``precision (mean - point)``."""
        return solve(self.covariance_, self.mean_ - self._point(point))

    def _point(self, point: Any) -> Floats:
        """Coordinates (d,), one for each column."""
        given = as_floats(point, "point")
        if given.shape != np.shape(self.mean_):
            raise OptionError(f"point has shape {given.shape}; expected {np.shape(self.mean_)}, one for each column.")
        return given

    def intervals(self, level: float = 0.95) -> Any:
        """Central interval of each column (d, 2)."""
        from scipy.special import ndtri

        spread = np.sqrt(self.variance())
        return np.stack([self.mean_ + ndtri(q) * spread for q in tails(level)], axis=-1)


class MultivariateNormal(VectorFamily, ConjugatePrior):
    """The normal distribution of d columns, ``exp(-(x - mean)' cov^-1 (x - mean) / 2) / sqrt(det(2 pi cov))``.

    Unfitted ``MultivariateNormal()``; given ``MultivariateNormal(mean, covariance)``, where the mean is 0 unless said.
    With only one of the two given, `fit` learns the other. Maximum likelihood divides by N (ddof 0).

    Natural parameters are one array of d + d^2 numbers: ``covariance^-1 mean``, then ``-covariance^-1 / 2`` row by row.
    Mean parameters are laid out alike: ``E[x]``, then ``E[x x']`` row by row. The two halves of a symmetric matrix
    make this form overcomplete: the free parameters are d + d(d + 1)/2.

    Args:
        mean: the mean (d,), when given.
        covariance: the covariance (d, d), when given.
        columns: names of the columns, in the order of the parameters; those of the data unless said.
        prior: a `NormalWishart` on (mean, precision), or, with a known covariance, a `MultivariateNormal` on the mean.
        estimate: ``"mean"`` (default with a prior): the posterior means of mean and covariance; or ``"map"``, the mode
            in (mean, precision).
        progress: show a bar over the rows.

    >>> distribution = MultivariateNormal(mean=[1, 2], covariance=[[2, 1], [1, 2]], columns=["a", "b"])
    >>> distribution.condition(on={"a": 3}).mean_
    array([3.])
    """

    member_class = MultivariateNormalMember
    mean_: Floats
    covariance_: Floats
    posterior_: Read[NormalWishart | MultivariateNormal]

    def __init__(
        self,
        mean: ArrayLike | None = None,
        covariance: ArrayLike | None = None,
        *,
        columns: Iterable[Hashable] | None = None,
        prior: Any = None,
        estimate: Estimate | None = None,
        progress: bool = False,
    ) -> None:
        """See the class."""
        super().__init__(**own_options(locals()) | {"columns": columns_option(columns)})

    variance = answered_by(MultivariateNormalMember.variance)
    mean = answered_by(MultivariateNormalMember.mean)
    mode = answered_by(MultivariateNormalMember.mode)
    stationarity = answered_by(MultivariateNormalMember.stationarity)
    below_mode = answered_by(MultivariateNormalMember.below_mode)
    intervals = answered_by(MultivariateNormalMember.intervals)
    information_form = answered_by(MultivariateNormalMember.information_form)
    marginal = answered_by(MultivariateNormalMember.marginal)
    condition = answered_by(MultivariateNormalMember.condition)

    precision_: Read[Floats] = reads("_member.precision_", "The inverse of the covariance (d, d).")

    @property
    def statistic_names_(self) -> tuple[str, ...]:
        """Names of the d + d^2 statistics."""
        names = [str(name) for name in self.columns_]
        return (*names, *(f"{first} * {second}" for first in names for second in names))

    @classmethod
    def from_information(cls, h: ArrayLike, J: ArrayLike, *, columns: Iterable[Hashable] | None = None) -> Self:
        """The distribution with the potential vector h (d,) and the precision J (d, d): ``exp(h . x - x' J x / 2)``."""
        precision = as_positive_definite(J, "J")
        vector = np.atleast_1d(as_floats(h, "h"))
        if vector.shape != (len(precision),):
            raise OptionError(f"h has shape {vector.shape}; expected {(len(precision),)}, a number for each row of J.")
        return cls(mean=solve(precision, vector), covariance=inverse(precision), columns=columns)
