"""The normal-Wishart distribution, the conjugate prior of (mean, precision) of several normal columns."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from suffice.array_types import Floats
from suffice.checks import draw_count
from suffice.engines.square_root import LOG_2PI
from suffice.errors import EstimateError, OptionError
from suffice.families.base import Distribution, Seed, as_location, as_scale, generator
from suffice.families.conjugate import ConjugatePrior, as_point, tails
from suffice.families.gamma_function import ratio_excess
from suffice.families.matrices import (
    as_dof,
    as_positive_definite,
    bartlett,
    check_names,
    inverse,
    log_determinant,
    log_determinants,
    log_gamma_of_matrices,
    root,
    whiten,
)
from suffice.families.moments import read_moments
from suffice.families.student import MultivariateStudentT, StudentT
from suffice.statistics import Summary


class NormalWishart(Distribution, ConjugatePrior):
    """The distribution of (mean, precision) in n dimensions.

    With T the `inverse_scale`::

        mean | W ~ N(mean, (strength W)^-1)
        p(W) proportional to |T|^(dof/2) |W|^((dof - n - 1)/2) exp(-tr(T W)/2)

    T is the INVERSE of the usual Wishart scale: it adds up with the scatter of the rows, and ``T / (dof - n - 1)`` is
    the mean of the covariance. `strength` is the number of rows that the belief in the mean is worth; `dof` is above
    n - 1. `names` are the columns of the dimensions, in their order: a network reads its joint prior by them.

    >>> distribution = NormalWishart(mean=[0, 0], strength=1, dof=5, inverse_scale=[[2, 0], [0, 4]])
    >>> distribution.mean()["covariance"]
    array([[1., 0.],
           [0., 2.]])
    """

    parameter_names = ("mean", "strength", "dof", "inverse_scale")
    mean_: Floats
    strength_: float
    dof_: float
    inverse_scale_: Floats

    def __init__(
        self,
        mean: ArrayLike,
        strength: float,
        dof: float,
        inverse_scale: ArrayLike,
        names: Sequence[Hashable] | None = None,
    ) -> None:
        """See the class."""
        super().__init__(mean=mean, strength=strength, dof=dof, inverse_scale=inverse_scale, names=names)
        check_names(names, len(self.mean_))

    # -- parameters --------------------------------------------------------------------------------------------------

    def _check(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        mean = np.atleast_1d(as_location(parameters["mean"], "mean"))
        if mean.ndim != 1:
            raise OptionError(f"mean has shape {mean.shape}; expected one number for each dimension.")
        return {
            "mean": mean,
            "strength": as_scale(parameters["strength"], "strength"),
            "dof": as_dof(parameters["dof"], len(mean)),
            "inverse_scale": as_positive_definite(parameters["inverse_scale"], "inverse_scale", len(mean)),
        }

    @property
    def exchangeable(self) -> bool:
        """Whether any order of the dimensions gives the same distribution: equal means, variances and covariances."""
        scale, n = self.inverse_scale_, len(self.mean_)
        apart = scale[~np.eye(n, dtype=bool)]
        return all(len(np.unique(part)) <= 1 for part in (self.mean_, np.diag(scale), apart))

    # -- evaluation --------------------------------------------------------------------------------------------------

    def log_prob(self, x: Any) -> Any:
        """Log density at (mean, precision), given as a dict or a pair of arrays (..., n) and (..., n, n).

        It is -inf where the precision is not symmetric and positive definite.
        """
        mean, precision = as_point(x, ("mean", "precision"))
        n = len(self.mean_)
        if mean.shape[-1:] != (n,) or precision.shape[-2:] != (n, n):
            raise OptionError(
                f"The point has shapes {mean.shape} and {precision.shape}; expected (..., {n}) and (..., {n}, {n})."
            )
        inside, log_det = log_determinants(precision)
        away = mean - self.mean_
        square = self.strength_ * np.einsum("...i,...ij,...j->...", away, precision, away)
        trace = np.einsum("ij,...ji->...", self.inverse_scale_, precision)
        value = self._log_constant() - 0.5 * n * LOG_2PI + 0.5 * ((self.dof_ - n) * log_det - square - trace)
        value = np.where(inside, value, -np.inf)
        return float(value) if value.ndim == 0 else value

    def _log_constant(self) -> float:
        """The part of the log density that does not depend on the point, without the 2 pi."""
        n, dof = len(self.mean_), self.dof_
        bulk = n * math.log(self.strength_) + dof * log_determinant(self.inverse_scale_) - dof * n * math.log(2)
        return float(0.5 * bulk) - log_gamma_of_matrices(0.5 * dof, n)

    def mode(self) -> dict[str, Any]:
        """The joint mode in (mean, precision), W = ``(dof - n) T^-1``, and the covariance there; needs dof > n."""
        n = len(self.mean_)
        if not self.dof_ > n:
            raise EstimateError(
                f"The density has no mode: with dof = {self.dof_:g}, not above n = {n}, it is highest at a singular "
                "precision. Use a larger dof."
            )
        free = self.dof_ - n
        return {
            "mean": self.mean_,
            "precision": free * inverse(self.inverse_scale_),
            "covariance": self.inverse_scale_ / free,
        }

    def mean(self) -> dict[str, Any]:
        """The means of mean, precision (``dof T^-1``) and, where dof > n + 1, covariance (``T / (dof - n - 1)``)."""
        free = self.dof_ - len(self.mean_) - 1
        means = {"mean": self.mean_, "precision": self.dof_ * inverse(self.inverse_scale_)}
        return means | ({"covariance": self.inverse_scale_ / free} if free > 0 else {})

    def sample(self, n: int = 1, random_state: Seed = None) -> dict[str, Floats]:
        """`n` draws of mean (n, d) and precision (n, d, d), by Bartlett's decomposition."""
        n = draw_count(n)
        rng, d = generator(random_state), len(self.mean_)
        # With T = L L' the precision is B B' for B = L'^-1 (triangle), and B'^-1 z has its inverse as covariance.
        half = whiten(root(self.inverse_scale_), np.eye(d)).T @ bartlett(rng, self.dof_, d, n)
        z = rng.standard_normal((n, d, 1)) / math.sqrt(self.strength_)
        away = np.linalg.solve(half.swapaxes(-1, -2), z)[..., 0]
        return {"mean": self.mean_ + away, "precision": half @ half.swapaxes(-1, -2)}

    def marginal(self, subset: Sequence[int]) -> NormalWishart:
        """The distribution of the mean and of the precision of some columns by themselves, given by their places.

        It has the same strength, ``dof - n + l`` for l columns, and their block of T: the prior of a sub-model that
        agrees with this one.
        """
        places = list(subset)
        n = len(self.mean_)
        if not places or len(set(places)) != len(places) or not set(places) <= set(range(n)):
            raise OptionError(f"subset is {subset!r}; expected different places from 0 to {n - 1}.")
        return NormalWishart(
            mean=self.mean_[places],
            strength=self.strength_,
            dof=self.dof_ - n + len(places),
            inverse_scale=self.inverse_scale_[np.ix_(places, places)],
            names=None if self._options["names"] is None else [self._options["names"][column] for column in places],
        )

    # -- as a prior --------------------------------------------------------------------------------------------------

    def _from_summary(self, summary: Summary) -> NormalWishart:
        """Of normal columns."""
        moments = read_moments(summary)
        if not moments.weight > 0:
            return self
        return self._updated(moments.weight, moments.mean, moments.scatter)

    def _updated(self, weight: float, average: Floats, scatter: Floats) -> NormalWishart:
        """After more rows: strength + N, dof + N, the weighted centre as mean, and T plus the squares."""
        if average.shape != self.mean_.shape:
            raise OptionError(f"The prior has {len(self.mean_)} dimensions and the rows have {len(average)} columns.")
        strength = self.strength_ + weight
        away = average - self.mean_
        return NormalWishart(
            mean=self.mean_ + weight / strength * away,
            strength=strength,
            dof=self.dof_ + weight,
            inverse_scale=self.inverse_scale_ + scatter + self.strength_ * weight / strength * np.outer(away, away),
            names=self._options["names"],
        )

    def _predictive_distribution(self) -> MultivariateStudentT:
        """One more row, with mean and precision integrated out."""
        df = self.dof_ - len(self.mean_) + 1
        shape = self.inverse_scale_ * ((self.strength_ + 1) / (self.strength_ * df))
        return MultivariateStudentT(df=df, location=self.mean_, shape=shape)

    def stationarity(self, point: Any) -> Floats:
        """Slope of the log density in the mean (n), then in the precision (n^2), row by row."""
        mean, precision = as_point(point, ("mean", "precision"))
        away = self.mean_ - mean
        spread = self.inverse_scale_ + self.strength_ * np.outer(away, away)
        slope = 0.5 * ((self.dof_ - len(mean)) * inverse(precision) - spread)
        return np.concatenate([self.strength_ * precision @ away, slope.ravel()])

    def below_mode(self, point: Any) -> float | None:
        """Terms r - 1 - log r of the eigenvalues r of the precision in units of its mode, and a square in the mean."""
        mean, precision = as_point(point, ("mean", "precision"))
        free = self.dof_ - len(mean)
        if not free > 0:
            return None
        factor = root(precision)
        values = np.linalg.eigvalsh(factor.T @ self.inverse_scale_ @ factor)
        away = factor.T @ (mean - self.mean_)
        spread = 0.5 * free * float(ratio_excess(np.maximum(values, 0.0), free).sum())
        return spread + 0.5 * self.strength_ * float(away @ away)

    def intervals(self, level: float = 0.95) -> Any:
        """Of each mean, which is Student-t, and of each variance, which is inverse-gamma: (n, 2) by name."""
        from scipy.special import gammainccinv

        shares = np.array(tails(level))
        df = self.dof_ - len(self.mean_) + 1
        spread = np.diag(self.inverse_scale_)
        means = [
            StudentT(df, centre, math.sqrt(scale / (self.strength_ * df))).quantile(shares)
            for centre, scale in zip(self.mean_, spread, strict=True)
        ]
        return {"mean": np.stack(means), "variance": 0.5 * spread[:, None] / gammainccinv(0.5 * df, shares)}
