"""The beta negative binomial: a negative binomial row's predictive distribution, the probability integrated out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.array_types import Floats
from suffice.checks import draw_count
from suffice.errors import EstimateError, SizeError
from suffice.families.base import Distribution, Seed, as_numbers, as_shape, generator
from suffice.families.counting import in_support, log_choices
from suffice.families.gamma_function import log_gamma_ratio

#: Draws come from Poisson distributions of at most this rate.
LARGEST_RATE = 1e18
#: The distribution function is a sum over at most this many counts.
MOST_TERMS = 10_000_000


class BetaNegativeBinomial(Distribution):
    """Failures before the `size`-th success when the probability of a success is Beta(alpha, beta).

    ``P(x) = Gamma(size + x) / (Gamma(size) x!) * B(alpha + size, beta + x) / B(alpha, beta)`` for x = 0, 1, 2, ...
    The tail is heavy: a mean needs alpha above 1, a variance alpha above 2.

    >>> BetaNegativeBinomial(size=1, alpha=3, beta=4).mean()
    2.0
    """

    parameter_names = ("size", "alpha", "beta")
    size_: float
    alpha_: float
    beta_: float

    def __init__(self, size: float, alpha: float, beta: float) -> None:
        """See the class."""
        super().__init__(size=size, alpha=alpha, beta=beta)

    # -- parameters --------------------------------------------------------------------------------------------------

    def _check(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        return {name: as_shape(parameters[name], name) for name in self.parameter_names}

    # -- evaluation --------------------------------------------------------------------------------------------------

    def log_prob(self, x: ArrayLike) -> Floats:
        """Log probability of each value; -inf off 0, 1, 2, ..."""
        x = as_numbers(x)
        inside = in_support(x)
        values = np.where(inside, x, 0.0)
        size, alpha, beta = self.size_, self.alpha_, self.beta_
        # Gamma(beta + x) Gamma(alpha + beta) / (Gamma(beta) Gamma(alpha + beta + size + x)): short steps keep digits.
        with np.errstate(invalid="ignore"):  # Beyond 1e305 the first way is inf - inf, and the second one is taken.
            along = log_gamma_ratio(beta, values) - log_gamma_ratio(alpha + beta, size + values)
        across = log_gamma_ratio(beta, alpha) - log_gamma_ratio(beta + values, alpha + size)
        moved = np.where(values < alpha, along, across)
        value = log_choices(values, size) + log_gamma_ratio(alpha, size) + moved
        return np.asarray(np.where(inside, value, -np.inf))

    def cdf(self, x: ArrayLike) -> Floats:
        """P(X <= x); a sum over the counts up to x unless the size is 1."""
        values = np.floor(as_numbers(x))
        if self.size_ == 1:
            trials = np.clip(values, -1.0, 1e300) + 1
            log_tail = log_gamma_ratio(self.beta_, self.alpha_) - log_gamma_ratio(self.beta_ + trials, self.alpha_)
            return np.asarray(np.where(values == np.inf, 1.0, -np.expm1(log_tail)))
        top = np.max(values, where=np.isfinite(values), initial=-1.0)
        if top >= MOST_TERMS:
            raise SizeError(f"P(X <= {top:g}) is a sum over as many counts; at most {MOST_TERMS:,} are added.")
        sums = np.concatenate([[0.0], np.cumsum(np.exp(self.log_prob(np.arange(top + 1))))])
        places = np.clip(np.where(np.isfinite(values), values, -1.0) + 1, 0, None).astype(np.intp)
        return np.asarray(np.where(values == np.inf, 1.0, np.minimum(sums[places], 1.0)))

    def sample(self, n: int = 1, random_state: Seed = None) -> NDArray[np.int64]:
        """`n` draws (n,)."""
        n = draw_count(n)
        rng = generator(random_state)
        p = rng.beta(self.alpha_, self.beta_, size=n)
        with np.errstate(divide="ignore", invalid="ignore"):
            rates = rng.gamma(self.size_, size=n) * ((1 - p) / p)
        # The tail has no end, but whole numbers of 64 bits have one.
        return rng.poisson(np.fmin(rates, LARGEST_RATE))

    def mean(self) -> float:
        """``size beta / (alpha - 1)``; needs alpha > 1."""
        if not self.alpha_ > 1:
            raise EstimateError(f"The distribution has no mean with alpha = {self.alpha_:g}; it needs alpha above 1.")
        return float(self.size_ * self.beta_ / (self.alpha_ - 1))

    def variance(self) -> float:
        """``size beta (alpha + size - 1) (alpha + beta - 1) / ((alpha - 2) (alpha - 1)^2)``; needs alpha > 2."""
        if not self.alpha_ > 2:
            raise EstimateError(
                f"The distribution has no variance with alpha = {self.alpha_:g}; it needs alpha above 2."
            )
        spread = (self.alpha_ + self.size_ - 1) * (self.alpha_ + self.beta_ - 1)
        return float(self.mean() * spread / ((self.alpha_ - 2) * (self.alpha_ - 1)))

    def mode(self) -> int:
        """The last count that is at least as likely as the one before: P(x) / P(x - 1) >= 1."""
        # (size + x - 1)(beta + x - 1) >= x (alpha + beta + size + x - 1), linear in x.
        turn = (self.size_ - 1) * (self.beta_ - 1) / (self.alpha_ + 1)
        return max(0, math.floor(float(turn)))
