"""The conjugate distribution of a linear regression of vectors: of its weights and of its residual covariance."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from suffice.array_types import Floats
from suffice.checks import draw_count
from suffice.engines.square_root import LOG_2PI
from suffice.errors import EstimateError, OptionError
from suffice.families.base import Distribution, Seed, as_float, as_floats, generator
from suffice.families.conjugate import as_point, tails
from suffice.families.matrices import (
    as_positive_definite,
    bartlett,
    log_determinant,
    log_gamma_of_matrices,
    positive_axes,
    root,
    whiten,
)
from suffice.families.regression_distribution import variance_quantiles, weight_quantiles
from suffice.families.student import MultivariateStudentT


class MatrixRegressionDistribution(Distribution):
    """The distribution of (weights, covariance), q weights for each of m responses: matrix-normal and inverse-Wishart.

    With V the `spread` (q, q) and T the `inverse_scale` (m, m)::

        covariance ~ InverseWishart(dof, T)
        weights | covariance ~ N(weights, V (x) covariance)

    so that two weights of one response covary as in V, and two responses as in the covariance.

    >>> scale = [[2, 0], [0, 4]]
    >>> posterior = MatrixRegressionDistribution(weights=[[1, 2]], spread=[[1]], dof=5, inverse_scale=scale)
    >>> posterior.mean()["covariance"]
    array([[1., 0.],
           [0., 2.]])
    """

    parameter_names = ("weights", "spread", "dof", "inverse_scale")
    weights_: Floats
    spread_: Floats
    dof_: float
    inverse_scale_: Floats

    def __init__(self, weights: ArrayLike, spread: ArrayLike, dof: float, inverse_scale: ArrayLike) -> None:
        """See the class."""
        super().__init__(weights=weights, spread=spread, dof=dof, inverse_scale=inverse_scale)

    def _check(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        weights = as_floats(parameters["weights"], "weights")
        if weights.ndim != 2:
            raise OptionError(f"weights has shape {weights.shape}; expected a row for each weight of a response.")
        q, m = weights.shape
        return {
            "weights": weights,
            "spread": as_positive_definite(parameters["spread"], "spread", q),
            "dof": as_float(parameters["dof"], "dof", above=m - 1),
            "inverse_scale": as_positive_definite(parameters["inverse_scale"], "inverse_scale", m),
        }

    @property
    def _df(self) -> float:
        """Degrees of freedom of each weight by itself."""
        return float(self.dof_ - self.weights_.shape[1] + 1)

    def log_prob(self, x: Any) -> Any:
        """Log density at (weights, covariance), given as a dict or a pair of arrays (..., q, m) and (..., m, m).

        It is -inf where the covariance is not symmetric and positive definite.
        """
        weights, covariance = as_point(x, ("weights", "covariance"))
        q, m = self.weights_.shape
        if weights.shape[-2:] != (q, m) or covariance.shape[-2:] != (m, m):
            raise OptionError(
                f"The point has shapes {weights.shape} and {covariance.shape}; expected (..., {q}, {m}) and "
                f"(..., {m}, {m})."
            )
        inside, values, axes = positive_axes(covariance)
        away = whiten(root(self.spread_), np.eye(q)) @ (weights - self.weights_)
        squares = self.inverse_scale_ + away.swapaxes(-1, -2) @ away
        turned = np.einsum("...ji,...jk,...ki->...i", axes, squares, axes)
        value = self._log_constant() - 0.5 * (self.dof_ + m + 1 + q) * np.log(values).sum(axis=-1)
        value = np.where(inside, value - 0.5 * (turned / values).sum(axis=-1), -np.inf)
        return float(value) if value.ndim == 0 else value

    def _log_constant(self) -> float:
        """The part of the log density that does not depend on the point."""
        q, m = self.weights_.shape
        wishart = 0.5 * self.dof_ * (log_determinant(self.inverse_scale_) - m * math.log(2.0))
        normal = 0.5 * m * (q * LOG_2PI + log_determinant(self.spread_))
        return float(wishart - log_gamma_of_matrices(0.5 * self.dof_, m) - normal)

    def mean(self) -> dict[str, Any]:
        """The means of weights and covariance; the latter needs dof > m + 1."""
        free = self.dof_ - self.weights_.shape[1] - 1
        if not free > 0:
            raise EstimateError(
                f"The covariance has no mean under dof = {self.dof_:g}; it needs dof > {self.weights_.shape[1] + 1}."
            )
        return {"weights": self.weights_, "covariance": self.inverse_scale_ / free}

    def mode(self) -> dict[str, Any]:
        """The joint mode in (weights, covariance)."""
        q, m = self.weights_.shape
        return {"weights": self.weights_, "covariance": self.inverse_scale_ / (self.dof_ + m + 1 + q)}

    def sample(self, n: int = 1, random_state: Seed = None) -> dict[str, Floats]:
        """`n` draws of weights (n, q, m) and covariance (n, m, m), by Bartlett's decomposition."""
        n = draw_count(n)
        rng, (q, m) = generator(random_state), self.weights_.shape
        # With T = L L' and B a triangle, L B'^-1 (L B'^-1)' is a draw of the covariance.
        half = root(self.inverse_scale_) @ np.linalg.inv(bartlett(rng, self.dof_, m, n)).swapaxes(-1, -2)
        z = root(self.spread_) @ rng.standard_normal((n, q, m)) @ half.swapaxes(-1, -2)
        return {"weights": self.weights_ + z, "covariance": half @ half.swapaxes(-1, -2)}

    def intervals(self, level: float = 0.95) -> dict[str, Any]:
        """Central intervals: weights (q, m, 2), which are Student-t, and variances (m, 2), which are inverse-gamma."""
        shares, half = np.array(tails(level)), 0.5 * self._df
        scales = 0.5 * np.diag(self.inverse_scale_)
        alphas = np.full(self.weights_.shape, half)
        betas = np.broadcast_to(scales, self.weights_.shape)
        ends = weight_quantiles(self.weights_, np.diag(self.spread_)[:, None], alphas, betas, shares)
        return {"weights": ends, "variances": variance_quantiles(np.full(len(scales), half), scales, shares)}

    def predictive(self, row: ArrayLike) -> MultivariateStudentT:
        """The distribution of the response at a row (q,) of the design, 1 for an intercept; all else integrated out."""
        given = np.atleast_1d(as_floats(row, "row"))
        if given.shape != self.weights_.shape[:1]:
            raise OptionError(f"The row has shape {given.shape}; the regression has {len(self.weights_)} weights.")
        shape = self.inverse_scale_ * ((1.0 + float(given @ self.spread_ @ given)) / self._df)
        return MultivariateStudentT(df=self._df, location=given @ self.weights_, shape=shape)

    def weights_covariance(self) -> Floats:
        """Covariance (m q, m q) of all weights, those of the first response first; needs dof > m + 1."""
        return np.asarray(np.kron(self.mean()["covariance"], self.spread_))
