"""The Dirichlet distribution of proportions on the simplex, which is the conjugate prior of probabilities."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from suffice.array_types import Floats
from suffice.checks import draw_count
from suffice.domain import Domain, Variable
from suffice.errors import DataError, EstimateError, OptionError
from suffice.families import simplex
from suffice.families.base import (
    Seed,
    are_shapes,
    as_floats,
    generator,
    never_in,
    only_variable,
)
from suffice.families.conjugate import ConjugatePrior, tails
from suffice.families.exponential_family import answered_by
from suffice.families.moments import read_moments, read_sums
from suffice.families.shares import ShareMember
from suffice.families.vectors import VectorFamily, VectorMember, columns_option
from suffice.fitting.control import Control, Outcome
from suffice.options import NewtonOptions
from suffice.statistics import Counts, Moments, Statistic, Summary, Sums

#: Rows of proportions may miss a sum of one by this much (rounding of the data).
SUM_TOLERANCE = 1e-6


class DirichletMember(ShareMember, VectorMember):
    """The Dirichlet distribution, density ``Gamma(sum alpha) / prod Gamma(alpha_k) * prod x_k^(alpha_k - 1)``."""

    parameter_names = ("alpha",)
    alpha_: Floats

    # -- parameters --------------------------------------------------------------------------------------------------

    def check(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Parameters in their final type; an impossible value is an error."""
        alpha = np.atleast_1d(as_floats(parameters["alpha"], "alpha"))
        if alpha.ndim != 1 or len(alpha) == 0 or not are_shapes(alpha):
            raise OptionError(f"alpha is {parameters['alpha']!r}; expected one positive number for each state.")
        self._check_columns(len(alpha))
        return {"alpha": alpha}

    @property
    def n_params(self) -> int:
        """One for each component."""
        return len(self.alpha_)

    # -- statistics --------------------------------------------------------------------------------------------------

    def sufficient_statistics(self, x: ArrayLike) -> Floats:
        """Log x of each row, (n, K)."""
        with np.errstate(divide="ignore"):
            return np.log(np.atleast_2d(self._rows(x)))

    def log_base_measure(self, x: ArrayLike) -> Floats:
        """0 for each row: h = 1 with natural parameters alpha - 1."""
        return np.zeros(len(np.atleast_2d(self._rows(x))))

    # -- maps --------------------------------------------------------------------------------------------------------

    def _usual(self, eta: ArrayLike | None) -> Floats:
        """Alpha (K,)."""
        return np.asarray(self.alpha_) if eta is None else self._eta(eta) + 1

    def to_natural(self, parameters: Mapping[str, Any]) -> Floats:
        """Natural parameters (k,) from usual ones; +-inf at the edge of the family."""
        return np.asarray(parameters["alpha"] - 1.0)

    def from_natural(self, eta: Floats) -> dict[str, Any]:
        """Usual parameters from natural ones."""
        return {"alpha": eta + 1}

    # -- evaluation --------------------------------------------------------------------------------------------------

    def log_prob(self, x: ArrayLike) -> Floats:
        """Log density of each row (n, K) or one point (K,), -inf off the simplex; tables are matched by name."""
        points = self._rows(x)
        with np.errstate(invalid="ignore"):
            inside = (points >= 0).all(axis=-1) & (np.abs(points.sum(axis=-1) - 1) <= SUM_TOLERANCE)
        density = simplex.log_density(self.alpha_, np.where(inside[..., None], points, self.mean()))
        return np.asarray(np.where(inside, density, -np.inf))

    def sample(self, n: int = 1, random_state: Seed = None) -> Floats:
        """`n` draws (n, K)."""
        return generator(random_state).dirichlet(self.alpha_, size=draw_count(n))

    def mean(self) -> Floats:
        """Alpha over its sum."""
        return np.asarray(self.alpha_ / self.alpha_.sum())

    def variance(self) -> Floats:
        """Variance of each part."""
        mean = self.mean()
        return np.asarray(mean * (1 - mean) / (self.alpha_.sum() + 1))

    def mode(self) -> Floats:
        """(alpha - 1) / sum(alpha - 1); exists where no alpha is below one."""
        excess = self.alpha_ - 1
        if (excess < 0).any():
            worst = int(np.argmin(excess))
            raise EstimateError(
                f"The density has no mode: alpha[{worst}] is {self.alpha_[worst]:g}, below one, so it is unbounded "
                "where that part is 0. Use estimate='mean', or alpha of at least 1."
            )
        if not excess.sum() > 0:
            raise EstimateError(
                "The density is flat (every alpha is 1), so it has no single mode. Use estimate='mean'."
            )
        return np.asarray(excess / excess.sum())

    def divergence(self, other: ShareMember) -> float:
        """Between two distributions of as many parts; see `simplex.divergence`."""
        if len(other._usual(None)) != len(self.alpha_):
            raise OptionError(
                f"The distributions have {len(self.alpha_)} and {len(other._usual(None))} parts; expected as many."
            )
        return super().divergence(other)

    # -- fitting -----------------------------------------------------------------------------------------------------

    def required(self, columns: Sequence[Hashable]) -> Mapping[Hashable, Variable | None]:
        """The variables to read, by column."""
        required = super().required(columns)
        if len(required) < 2:
            raise OptionError(f"Dirichlet describes two or more columns of proportions; the data have {len(required)}.")
        return required

    def ask(self, domain: Domain) -> tuple[Statistic, ...]:
        """Log x for the fit, moments of x to see whether every row adds up to one."""
        return (Sums.of(*((name, "log") for name in domain.names)), Moments(domain.names))

    def observed(self, summary: Summary) -> Floats:
        """Mean of T over the rows (k,)."""
        logs, moments = read_sums(summary, self.ask(summary.domain)[0]).means, read_moments(summary)
        # The mean square of (sum of a row - 1) is the variance of the sums and the square of their mean less one.
        away = float(moments.mean.sum()) - 1
        if max(float(moments.covariance.sum()), 0.0) + away**2 > SUM_TOLERANCE**2:
            raise DataError(
                f"The rows add up to {1 + away:.6g} on average, and not all to one. A Dirichlet distribution describes "
                "proportions that add up to one in every row. Divide each row by its sum first."
            )
        if not simplex.are_possible(logs, SUM_TOLERANCE):
            raise never_in(f"a mean of log x of {logs!r}")
        return np.asarray(logs)

    def maximise(self, summary: Summary, control: Control) -> tuple[dict[str, Any], Outcome | None]:
        """Parameters of maximum likelihood, and how the iteration ended; None for a closed form."""
        constant = not (np.diag(read_moments(summary).scatter) > 0).any()
        if constant or simplex.are_alike(self.observed(summary)):
            raise EstimateError(
                f"All {summary.rows} rows are alike: the likelihood grows without bound as alpha grows. "
                "A Dirichlet distribution needs rows that differ."
            )
        simplex.refuse_corner(self.observed(summary), summary.rows)
        return super().maximise(summary, control)

    def narrowest(self, mean: Floats, most: float) -> dict[str, Any]:
        """The largest sum of alpha."""
        return {"alpha": simplex.of_total(mean, most)}

    # -- as a prior --------------------------------------------------------------------------------------------------

    def stationarity(self, point: Any) -> Floats:
        """Slope along the simplex: (alpha_k - 1) - x_k sum(alpha - 1), zero at the mode."""
        excess = self.alpha_ - 1
        return np.asarray(excess - self._point(point) * excess.sum())

    def _point(self, point: Any) -> Floats:
        """Shares (K,), one for each part."""
        shares = as_floats(point, "point")
        if shares.shape != np.shape(self.alpha_):
            raise OptionError(f"point has shape {shares.shape}; expected {np.shape(self.alpha_)}, one for each part.")
        return shares

    def below_mode(self, point: Any) -> float | None:
        """``sum(alpha - 1)`` times the divergence of the mode from the point."""
        return simplex.below_mode(self.alpha_, self._point(point))

    def intervals(self, level: float = 0.95) -> Any:
        """Central interval of each part (K, 2): each part is a Beta distribution."""
        if len(self.alpha_) == 1:
            tails(level)
            return np.ones((1, 2))
        rest = simplex.others(self.alpha_)
        return np.stack([simplex.beta_quantile(self.alpha_, rest, q) for q in tails(level)], axis=-1)


class Dirichlet(VectorFamily, ConjugatePrior):
    """The Dirichlet distribution, density ``Gamma(sum alpha) / prod Gamma(alpha_k) * prod x_k^(alpha_k - 1)``.

    As a prior, `alpha` are pseudo-counts plus one for the mode and pseudo-counts for the mean: ``Dirichlet(1)`` leaves
    the mode at the maximum-likelihood estimate. One number stands for a symmetric prior over as many states as the data
    have. As a distribution of data it is fitted to columns of proportions by Newton.

    Args:
        alpha: one positive number for each part, or one number for all.
        columns: names of the columns of proportions, in the order of alpha; those of the data unless said.
        run: see `NewtonOptions`.

    >>> Dirichlet([1, 2, 3]).posterior([5, 0, 2]).alpha_
    array([6., 2., 5.])
    """

    member_class = DirichletMember
    alpha_: Floats

    def __init__(
        self,
        alpha: ArrayLike | None = None,
        *,
        columns: Iterable[Hashable] | None = None,
        **run: Unpack[NewtonOptions],
    ) -> None:
        """See the class."""
        super().__init__(
            alpha=alpha,
            columns=columns_option(columns),
            **run,
        )

    variance = answered_by(DirichletMember.variance)
    mean = answered_by(DirichletMember.mean)
    mode = answered_by(DirichletMember.mode)
    stationarity = answered_by(DirichletMember.stationarity)
    below_mode = answered_by(DirichletMember.below_mode)
    intervals = answered_by(DirichletMember.intervals)

    @property
    def statistic_names_(self) -> tuple[str, ...]:
        """The logarithm of each part."""
        return tuple(f"log x[{k}]" for k in range(len(self.alpha_)))

    def _from_summary(self, summary: Summary) -> Dirichlet:
        """Of a categorical column, its states in the order of alpha."""
        return self._from_counts(summary[Counts((only_variable(summary, type(self).__name__).name,))].dense())

    def spread_over(self, size: int) -> Dirichlet:
        """The same distribution, or, where `alpha` was given as one number, the symmetric one over `size` states."""
        if np.ndim(self._options["alpha"]) == 0 and len(self.alpha_) == 1:
            return Dirichlet(np.full(size, self.alpha_[0]))
        return self

    def _from_counts(self, counts: Any) -> Dirichlet:
        numbers = np.atleast_1d(as_floats(counts, "counts"))
        prior = self.spread_over(numbers.size)
        if numbers.shape != prior.alpha_.shape or (numbers < 0).any():
            raise OptionError(
                f"counts is {counts!r}; expected {len(prior.alpha_)} numbers of at least 0, one for each state."
            )
        return Dirichlet(prior.alpha_ + numbers)

    def log_evidence(self, counts: ArrayLike) -> float:
        """Log probability of a sequence of rows with these counts: log B(alpha + n) - log B(alpha)."""
        size = len(self._from_counts(counts).alpha_)
        return simplex.log_evidence(self.spread_over(size).alpha_, np.atleast_1d(as_floats(counts, "counts")))
