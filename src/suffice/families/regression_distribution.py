"""The conjugate distribution of a linear regression: of its weights and of its variance."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from suffice.array_types import Floats
from suffice.checks import draw_count
from suffice.engines.square_root import LOG_2PI
from suffice.errors import EstimateError, OptionError
from suffice.families.base import Distribution, Seed, as_float, as_floats, generator
from suffice.families.conjugate import as_point, tails
from suffice.families.gamma_function import rest
from suffice.families.matrices import as_positive_definite, inverse, log_determinant, root
from suffice.families.regression import LeastSquares, Products, least_squares
from suffice.families.student import StudentT


@dataclass(frozen=True)
class PseudoRows:
    """A conjugate prior of (weights, variance), as rows of (x_1, ..., x_p, y) that were never seen.

    The rows have weight `strength`, mean `centre` (q,) and centred products `scatter` (q, q). They stand for
    ``w | v ~ N(m, v D^-1)`` with D the products of (1, x) and m their regression, and for ``v ~ InverseGamma(alpha,
    beta)``, where 2 beta is the sum of squares that m leaves. `flat` is the number of weights without a prior: 1 where
    strength is 0 and the intercept is free, else 0. `log_determinant` is that of D, without the free intercept.
    """

    strength: float
    centre: Floats
    scatter: Floats
    alpha: float
    beta: float
    flat: int
    log_determinant: float

    def added_to(self, products: Products) -> Products:
        """Seen and unseen rows together."""
        return products.with_rows(self.strength, self.centre, self.scatter)

    def shape(self, weight: Floats) -> Floats:
        """Shape of the inverse-gamma posterior of the variance: alpha + (N - flat) / 2."""
        return self.alpha + 0.5 * (weight - self.flat)

    def divisor(self, weight: Floats, estimate: str) -> Floats:
        """What the sum of squares is divided by to give the variance.

        The mode in (weights, variance) has N + p + 2 alpha + 2, p being the number of weights with a prior; the
        posterior mean has 2 (alpha' - 1), which must be positive.
        """
        if estimate == "map":
            return weight + (len(self.centre) - self.flat) + 2 * self.alpha + 2
        return 2 * (self.shape(weight) - 1)

    def solve(self, products: Products) -> tuple[LeastSquares, Floats]:
        """Posterior weights with their spread, and the sum of squares (k,) of all rows, which is twice beta'."""
        solved = least_squares(self.added_to(products))
        return solved, np.maximum(solved.squares, 2 * self.beta)

    def log_evidence(self, weight: Floats, solved: LeastSquares, squares: Floats) -> Floats:
        """Log marginal likelihood (k,) of N rows of y given x; a free intercept counts with density one."""
        alpha, after = self.alpha, self.shape(weight)
        logs = 0.5 * (self.log_determinant - solved.log_determinant) - 0.5 * (weight - self.flat) * LOG_2PI
        # log Gamma(a) - a log b, with its two large terms taken together.
        bulk = rest(after) - after * (1 + np.log(squares / 2 / after))
        return np.asarray(logs + alpha * math.log(self.beta) - math.lgamma(alpha) + bulk)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return dict(vars(self))


class RegressionDistribution(Distribution):
    """The distribution of (weights, variance) of a regression; the intercept is the first weight.

    ``variance ~ InverseGamma(alpha, beta)`` and ``weights | variance ~ N(weights, variance * spread)``.

    >>> RegressionDistribution(weights=[1, 2], spread=[[1, 0], [0, 1]], alpha=3, beta=8).mean()
    {'weights': array([1., 2.]), 'variance': 4.0}
    """

    parameter_names = ("weights", "spread", "alpha", "beta")
    weights_: Floats
    spread_: Floats
    alpha_: float
    beta_: float

    def __init__(self, weights: ArrayLike, spread: ArrayLike, alpha: float, beta: float) -> None:
        """See the class."""
        super().__init__(weights=weights, spread=spread, alpha=alpha, beta=beta)

    def _check(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        weights = np.atleast_1d(as_floats(parameters["weights"], "weights"))
        return {
            "weights": weights,
            "spread": as_positive_definite(parameters["spread"], "spread", len(weights)),
            "alpha": as_float(parameters["alpha"], "alpha", above=0),
            "beta": as_float(parameters["beta"], "beta", above=0),
        }

    def log_prob(self, x: Any) -> Any:
        """Log density at (weights, variance), given as a dict or a pair of arrays (..., q) and (...)."""
        weights, variance = as_point(x, ("weights", "variance"))
        q = len(self.weights_)
        if weights.shape[-1:] != (q,):
            raise OptionError(f"The weights have shape {weights.shape}; expected (..., {q}), intercept first.")
        away = weights - self.weights_
        square = np.einsum("...i,ij,...j->...", away, inverse(self.spread_), away) + 2 * self.beta_
        constant = self.alpha_ * math.log(self.beta_) - math.lgamma(self.alpha_)
        constant -= 0.5 * (q * LOG_2PI + log_determinant(self.spread_))
        with np.errstate(divide="ignore", invalid="ignore"):
            value = constant - (self.alpha_ + 1 + 0.5 * q) * np.log(variance) - square / (2 * variance)
        value = np.where(variance > 0, value, -np.inf)
        return float(value) if value.ndim == 0 else value

    def mean(self) -> dict[str, Any]:
        """The means of weights and variance; the latter needs alpha > 1."""
        if not self.alpha_ > 1:
            raise EstimateError(
                f"The variance has no mean under alpha = {self.alpha_:g}; it needs alpha > 1. "
                "Use estimate='map', or a larger alpha."
            )
        return {"weights": self.weights_, "variance": self.beta_ / (self.alpha_ - 1)}

    def mode(self) -> dict[str, Any]:
        """The joint mode in (weights, variance)."""
        return {"weights": self.weights_, "variance": self.beta_ / (self.alpha_ + 1 + 0.5 * len(self.weights_))}

    def sample(self, n: int = 1, random_state: Seed = None) -> dict[str, Floats]:
        """`n` draws of weights (n, q) and variance (n,)."""
        n = draw_count(n)
        rng = generator(random_state)
        variance = self.beta_ / rng.gamma(self.alpha_, size=n)
        z = rng.standard_normal((n, len(self.weights_))) @ root(self.spread_).T
        return {"weights": self.weights_ + np.sqrt(variance)[:, None] * z, "variance": variance}

    def intervals(self, level: float = 0.95) -> dict[str, Any]:
        """Central intervals: weights (q, 2), which are Student-t, and variance (2,), which is inverse-gamma."""
        low, high = tails(level)
        ends = weight_quantiles(self.weights_, np.diag(self.spread_), self.alpha_, self.beta_, np.array([low, high]))
        variance = variance_quantiles(self.alpha_, self.beta_, np.array([low, high]))
        return {"weights": ends, "variance": variance}

    def predictive(self, x: ArrayLike) -> StudentT:
        """The distribution of y at parents x (p,), with weights and variance integrated out."""
        row = np.concatenate([[1.0], np.atleast_1d(as_floats(x, "x"))])
        if row.shape != self.weights_.shape:
            raise OptionError(f"x has {len(row) - 1} numbers; the regression has {len(self.weights_) - 1} parents.")
        scale = math.sqrt(self.beta_ / self.alpha_ * (1 + float(row @ self.spread_ @ row)))
        return StudentT(df=2 * self.alpha_, location=float(row @ self.weights_), scale=scale)


def weight_quantiles(weights: Floats, diagonal: Floats, alpha: Any, beta: Any, shares: Floats) -> Floats:
    """Quantiles (..., s) of weights (...), which are Student-t with 2 alpha degrees of freedom."""
    from scipy.special import stdtrit

    scale = np.sqrt(np.asarray(beta) / np.asarray(alpha) * diagonal)
    return np.asarray(weights[..., None] + scale[..., None] * stdtrit(2 * np.asarray(alpha)[..., None], shares))


def variance_quantiles(alpha: Any, beta: Any, shares: Floats) -> Floats:
    """Quantiles (..., s) of inverse-gamma distributions."""
    from scipy.special import gammainccinv

    return np.asarray(np.asarray(beta)[..., None] / gammainccinv(np.asarray(alpha)[..., None], shares))
