"""The Wishart distribution, a prior of the precision of a normal distribution of several columns."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from suffice.array_types import Floats
from suffice.checks import draw_count
from suffice.errors import EstimateError, OptionError
from suffice.families.base import Distribution, Seed, as_numbers, generator
from suffice.families.conjugate import ConjugatePrior, tails
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
from suffice.statistics import Summary


class Wishart(Distribution, ConjugatePrior):
    """The distribution of a precision W (n, n), ``p(W) proportional to |W|^((dof - n - 1)/2) exp(-tr(T W)/2)``.

    T is the `inverse_scale`, the INVERSE of the usual Wishart scale, as in `NormalWishart`: it adds up with the scatter
    of rows about a known mean, and ``T / (dof - n - 1)`` is the mean of the covariance. `dof` is above n - 1. `names`
    are the columns of the dimensions, in their order.

    >>> Wishart(dof=5, inverse_scale=[[2, 0], [0, 4]]).mean()["covariance"]
    array([[1., 0.],
           [0., 2.]])
    """

    parameter_names = ("dof", "inverse_scale")
    dof_: float
    inverse_scale_: Floats

    def __init__(self, dof: float, inverse_scale: ArrayLike, names: Sequence[Hashable] | None = None) -> None:
        """See the class."""
        super().__init__(dof=dof, inverse_scale=inverse_scale, names=names)
        check_names(names, len(self.inverse_scale_))

    def _check(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        scale = as_positive_definite(parameters["inverse_scale"], "inverse_scale")
        return {"dof": as_dof(parameters["dof"], len(scale)), "inverse_scale": scale}

    # -- evaluation --------------------------------------------------------------------------------------------------

    def log_prob(self, x: Any) -> Any:
        """Log density at precisions (..., n, n); -inf where one is not symmetric and positive definite."""
        precision, scale = as_numbers(x), self.inverse_scale_
        n = len(scale)
        if precision.shape[-2:] != (n, n):
            raise OptionError(f"The precision has shape {precision.shape}; expected (..., {n}, {n}).")
        inside, log_det = log_determinants(precision)
        trace = np.einsum("ij,...ji->...", scale, precision)
        bulk = self.dof_ * (log_determinant(scale) - n * math.log(2)) / 2 - log_gamma_of_matrices(0.5 * self.dof_, n)
        logs = np.where(inside, bulk + 0.5 * ((self.dof_ - n - 1) * log_det - trace), -np.inf)
        return float(logs) if logs.ndim == 0 else logs

    def mean(self) -> dict[str, Any]:
        """The means of the precision (``dof T^-1``) and, where dof > n + 1, of the covariance."""
        free = self.dof_ - len(self.inverse_scale_) - 1
        means = {"precision": self.dof_ * inverse(self.inverse_scale_)}
        return means | ({"covariance": self.inverse_scale_ / free} if free > 0 else {})

    def mode(self) -> dict[str, Any]:
        """The mode in the precision, ``(dof - n - 1) T^-1``, and the covariance there; needs dof > n + 1."""
        free = self.dof_ - len(self.inverse_scale_) - 1
        if not free > 0:
            raise EstimateError(
                f"The density has no mode: with dof = {self.dof_:g}, not above n + 1 = {len(self.inverse_scale_) + 1}, "
                "it is highest at a singular precision. Use a larger dof."
            )
        return {"precision": free * inverse(self.inverse_scale_), "covariance": self.inverse_scale_ / free}

    def sample(self, n: int = 1, random_state: Seed = None) -> Floats:
        """`n` precisions (n, d, d), by Bartlett's decomposition."""
        n = draw_count(n)
        d = len(self.inverse_scale_)
        half = whiten(root(self.inverse_scale_), np.eye(d)).T @ bartlett(generator(random_state), self.dof_, d, n)
        return np.asarray(half @ half.swapaxes(-1, -2))

    # -- as a prior --------------------------------------------------------------------------------------------------

    def _from_summary(self, summary: Summary) -> Wishart:
        """Of normal columns about their own mean, whose prior is flat: one row is spent on the mean."""
        moments = read_moments(summary)
        if not moments.weight > 0:
            return self
        if len(moments.mean) != len(self.inverse_scale_):
            raise OptionError(
                f"The prior has {len(self.inverse_scale_)} dimensions and the rows have {len(moments.mean)} columns."
            )
        return Wishart(self.dof_ + moments.weight - 1, self.inverse_scale_ + moments.scatter, self._options["names"])

    def stationarity(self, point: Any) -> Floats:
        """Slope of the log density in the precision (n^2), row by row."""
        precision = as_numbers(point.get("precision") if isinstance(point, Mapping) else point, "precision")
        if precision.shape != self.inverse_scale_.shape:
            raise OptionError(f"The precision has shape {precision.shape}; expected {self.inverse_scale_.shape}.")
        as_positive_definite(precision, "precision")
        slope = 0.5 * ((self.dof_ - len(precision) - 1) * inverse(precision) - self.inverse_scale_)
        return np.asarray(slope.ravel())

    def intervals(self, level: float = 0.95) -> Any:
        """Of each variance, the inverse of a Wishart entry, which is inverse-gamma: (n, 2)."""
        from scipy.special import gammainccinv

        n = len(self.inverse_scale_)
        spread, shape = np.diag(self.inverse_scale_), 0.5 * (self.dof_ - n + 1)
        return {"variance": 0.5 * spread[:, None] / gammainccinv(shape, np.array(tails(level)))}
