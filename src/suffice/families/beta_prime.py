"""The beta-prime: the predictive distribution of a gamma row of known shape with a gamma rate integrated out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from suffice.array_types import Floats
from suffice.checks import draw_count
from suffice.errors import EstimateError
from suffice.families import simplex
from suffice.families.base import Distribution, Seed, as_float, as_numbers, as_shape, as_shares, generator


class BetaPrime(Distribution):
    """The beta-prime, ``z^(alpha - 1) (1 + z)^-(alpha + beta) / (scale B(alpha, beta))`` with z = x / scale > 0.

    It is the distribution of ``scale * p / (1 - p)`` for p ~ Beta(alpha, beta), and of ``scale * g / h`` for two
    independent gamma variables of shapes alpha and beta. With alpha = 1 it is `Lomax(beta, scale)`.

    >>> BetaPrime(alpha=2, beta=3, scale=4).mean()
    4.0
    """

    parameter_names = ("alpha", "beta", "scale")
    alpha_: float
    beta_: float
    scale_: float

    def __init__(self, alpha: float, beta: float, scale: float = 1.0) -> None:
        """See the class."""
        super().__init__(alpha=alpha, beta=beta, scale=scale)

    # -- parameters --------------------------------------------------------------------------------------------------

    def _check(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        shapes = {name: as_shape(parameters[name], name) for name in ("alpha", "beta")}
        return {**shapes, "scale": as_float(parameters["scale"], "scale", above=0)}

    # -- evaluation --------------------------------------------------------------------------------------------------

    def log_prob(self, x: ArrayLike) -> Floats:
        """Log density of each value, by that of the beta variable ``z / (1 + z)``; -inf below 0."""
        values = as_numbers(x)
        inside = (values >= 0) & (values < np.inf)
        z = np.where(inside, values, 1.0) / self.scale_
        shares = np.stack([z / (1 + z), 1 / (1 + z)], axis=-1)
        log_beta = simplex.log_density(np.array([self.alpha_, self.beta_]), shares, shares[..., ::-1])
        return np.asarray(np.where(inside, log_beta - 2 * np.log1p(z) - math.log(self.scale_), -np.inf))

    def cdf(self, x: ArrayLike) -> Floats:
        """P(X <= x), by the incomplete beta function."""
        from scipy.special import betainc, betaincc

        z = np.maximum(as_numbers(x), 0.0) / self.scale_
        # Either argument is at most one half, so none is rounded to 1.
        low = betainc(self.alpha_, self.beta_, np.minimum(z, 1.0) / (1 + np.minimum(z, 1.0)))
        high = betaincc(self.beta_, self.alpha_, 1 / (1 + np.maximum(z, 1.0)))
        return np.asarray(np.where(z <= 1, low, high))

    def quantile(self, q: ArrayLike) -> Floats:
        """The value below which a share q of the mass lies."""
        from scipy.special import betaincinv

        share = as_shares(q, "q")
        p, rest = betaincinv(self.alpha_, self.beta_, share), betaincinv(self.beta_, self.alpha_, 1 - share)
        with np.errstate(divide="ignore", invalid="ignore"):
            odds = np.where(p < 0.5, p / (1 - p), (1 - rest) / rest)
            return np.asarray(self.scale_ * odds)

    def sample(self, n: int = 1, random_state: Seed = None) -> Floats:
        """`n` draws (n,)."""
        n = draw_count(n)
        rng = generator(random_state)
        with np.errstate(divide="ignore"):
            return np.asarray(self.scale_ * (rng.gamma(self.alpha_, size=n) / rng.gamma(self.beta_, size=n)))

    def mean(self) -> float:
        """The mean, scale alpha / (beta - 1); needs beta > 1."""
        if not self.beta_ > 1:
            raise EstimateError(
                f"The beta-prime distribution with beta = {self.beta_:g} has no mean; it needs beta above 1."
            )
        return float(self.scale_ * self.alpha_ / (self.beta_ - 1))

    def variance(self) -> float:
        """scale^2 alpha (alpha + beta - 1) / ((beta - 2) (beta - 1)^2); needs beta > 2."""
        if not self.beta_ > 2:
            raise EstimateError(
                f"The beta-prime distribution with beta = {self.beta_:g} has no variance; it needs beta above 2."
            )
        mean = self.mean()
        return float(mean * mean * ((self.alpha_ + self.beta_ - 1) / self.alpha_ / (self.beta_ - 2)))

    def mode(self) -> float:
        """The mode, scale (alpha - 1) / (beta + 1); exists where alpha is at least 1."""
        if self.alpha_ < 1:
            raise EstimateError(
                f"The beta-prime density is unbounded at 0 with alpha = {self.alpha_:g}, below 1: it has no mode."
            )
        return float(self.scale_ * (self.alpha_ - 1) / (self.beta_ + 1))
