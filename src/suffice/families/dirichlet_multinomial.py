"""The Dirichlet-multinomial distribution: counts of several draws when the probabilities are themselves uncertain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.array_types import Floats
from suffice.checks import draw_count
from suffice.errors import OptionError
from suffice.families.base import Distribution, Seed, are_shapes, as_floats, as_numbers, generator
from suffice.families.counting import LARGEST_MEAN, in_support
from suffice.families.gamma_function import log_gamma_ratio


class DirichletMultinomial(Distribution):
    """Counts (K,) of `total` draws of K states whose probabilities are Dirichlet(alpha).

    ``P(n) = total! / prod n_k! * B(alpha + n) / B(alpha)`` for whole numbers n_k >= 0 that add up to `total`.

    >>> distribution = DirichletMultinomial(total=2, alpha=[1, 1])
    >>> distribution.log_prob([[2, 0], [1, 1], [0, 2]]).round(4)
    array([-1.0986, -1.0986, -1.0986])
    """

    parameter_names = ("total", "alpha")
    total_: int
    alpha_: Floats

    def __init__(self, total: int, alpha: ArrayLike) -> None:
        """See the class."""
        super().__init__(total=total, alpha=alpha)

    # -- parameters --------------------------------------------------------------------------------------------------

    def _check(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        total, alpha = as_floats(parameters["total"], "total"), as_floats(parameters["alpha"], "alpha")
        if total.ndim != 0 or not in_support(total) or total > LARGEST_MEAN:
            raise OptionError(
                f"total is {parameters['total']!r}; expected a whole number of draws from 0 to {LARGEST_MEAN:g}."
            )
        if alpha.ndim != 1 or len(alpha) == 0 or not are_shapes(alpha):
            raise OptionError(f"alpha is {parameters['alpha']!r}; expected one positive number for each state.")
        return {"total": int(total), "alpha": alpha}

    # -- evaluation --------------------------------------------------------------------------------------------------

    def log_prob(self, x: ArrayLike) -> Floats:
        """Log probability of each row of counts (n, K), or of one (K,); -inf where the sum is not the total."""
        counts = as_numbers(x)
        if counts.ndim == 0 or counts.shape[-1] != len(self.alpha_):
            raise OptionError(
                f"The counts have shape {counts.shape}; expected {len(self.alpha_)} states in the last axis."
            )
        with np.errstate(invalid="ignore"):
            inside = in_support(counts).all(axis=-1) & (counts.sum(axis=-1) == self.total_)
        counts = np.where(inside[..., None], counts, 0.0)
        # n! is the product of the first n numbers, so each state gives (alpha_k)_n / (1)_n, and the total its inverse.
        each = (log_gamma_ratio(self.alpha_, counts) - log_gamma_ratio(1.0, counts)).sum(axis=-1)
        whole = log_gamma_ratio(self.alpha_.sum(), float(self.total_)) - log_gamma_ratio(1.0, float(self.total_))
        return np.asarray(np.where(inside, each - whole, -np.inf))

    def sample(self, n: int = 1, random_state: Seed = None) -> NDArray[np.int64]:
        """`n` draws of counts (n, K)."""
        n = draw_count(n)
        rng = generator(random_state)
        return np.asarray(rng.multinomial(self.total_, rng.dirichlet(self.alpha_, size=n)))

    def mean(self) -> Floats:
        """Total times alpha over its sum."""
        return np.asarray(self.total_ * (self.alpha_ / self.alpha_.sum()))

    def covariance(self) -> Floats:
        """``total (total + A) / (1 + A) (diag(p) - p p')``, with A = sum alpha and p = alpha / A."""
        weight = self.alpha_.sum()
        p = self.alpha_ / weight
        return np.asarray(self.total_ * ((self.total_ + weight) / (1 + weight)) * (np.diag(p) - np.outer(p, p)))

    def variance(self) -> Floats:
        """Variance of each count."""
        return np.diag(self.covariance()).copy()

    def mode(self) -> NDArray[np.int64]:
        """The most probable counts; one of them where several are.

        One more draw of state k multiplies the probability by ``1 + (alpha_k - 1) / (n_k + 1)`` (and a common factor).
        Where some alpha is above one, draws go to the largest of these quotients: that is d'Hondt's division of seats
        with votes alpha_k - 1. Otherwise all draws go to the largest alpha.
        """
        votes = np.maximum(self.alpha_ - 1, 0.0)
        counts = np.zeros(len(votes), dtype=np.int64)
        if not votes.sum() > 0:
            counts[int(np.argmax(self.alpha_))] = self.total_
            return counts
        # D'Hondt never gives less than the whole part of the exact share, which leaves fewer than K draws.
        counts[:] = np.floor(self.total_ * (votes / votes.sum()) * (1 - 1e-12))
        for _ in range(self.total_ - int(counts.sum())):
            counts[int(np.argmax(votes / (counts + 1)))] += 1
        return counts
