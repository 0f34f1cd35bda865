"""The objective of k regressions at any weights and variances: its slopes, and what is left of it.

With d the weight of the rows, S(w) their sum of squares and v the variance it is ``-d/2 log v - S(w) / (2 v)``. A
conjugate prior adds rows that were never seen, and another power of the variance: both only change d and S.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from suffice.array_types import Floats
from suffice.families.gamma_function import excess
from suffice.families.normals import Normals
from suffice.families.regression import Products
from suffice.families.regression_check import shares_to_fall
from suffice.families.regression_distribution import PseudoRows
from suffice.fitting.report import in_standard_errors

#: What rounding may leave of a sum of products, as a share of its terms.
ROUNDING = 16 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class RegressionObjective:
    """Of rows `seen`, in k configurations, under a prior where there is one, whose `estimate` is asked for."""

    seen: Products
    prior: PseudoRows | None = None
    estimate: str = "mle"

    @cached_property
    def products(self) -> Products:
        """Of all rows, those of the prior too."""
        return self.seen if self.prior is None else self.prior.added_to(self.seen)

    @cached_property
    def divisor(self) -> Floats:
        """What the sum of squares is divided by to give the variance (k,)."""
        return self.seen.weight if self.prior is None else self.prior.divisor(self.seen.weight, self.estimate)

    @cached_property
    def _sizes(self) -> Floats:
        """Sums of squares (k, q + 1) of the intercept, of the parents and of the node about their means."""
        diagonal = np.diagonal(self.products.scatter, axis1=1, axis2=2)
        return np.concatenate([self.products.weight[:, None], diagonal], axis=1)

    @property
    def _units(self) -> Floats:
        """The size of the terms (k, q) of the slopes; root by root, as a product of squares may leave the floats."""
        return np.asarray(np.sqrt(self._sizes[:, :-1]) * np.sqrt(self._sizes[:, -1:]))

    def log_likelihoods(self, weights: Floats, variance: Floats) -> Floats:
        """Of the rows seen (k,), at weights (k, q) and variances (k,); a point mass is 0 if every row is on it."""
        squares = self.seen.squares(weights)
        point = variance == 0
        spread = np.where(point, 1.0, variance)
        density = Normals(np.zeros_like(spread), spread).log_likelihood(self.seen.weight, 0.0, squares)
        if not point.any():
            return density
        return np.where(point, np.where(self.seen.perfect(weights, squares), 0.0, -np.inf), density)

    def gaps(self, weights: Floats, variance: Floats) -> Floats:
        """Slopes (k,) in units of the columns, as `LinearGaussianNode.gap` explains."""
        squares, units = self.products.squares(weights), self._units
        slopes = np.abs(self.products.slopes(weights)) / np.where(units > 0, units, 1.0)
        off = np.abs(squares / self.divisor / np.where(variance > 0, variance, 1.0) - 1)
        if not variance.all():
            off = np.where(variance > 0, off, np.where(self.products.perfect(weights, squares), 0.0, np.inf))
        return np.asarray(np.maximum(slopes.max(axis=1), off))

    def steepest(self, weights: Floats, variance: Floats, least: float = 0.0) -> tuple[float, float]:
        """The largest slope by a weight, with the parents about their means, or by a log variance.

        In standard errors, and as it is. The information of the weights is X'X / v, that of log v is d / 2. A variance
        held at `least` may want to be smaller; one of 0 is a point mass, which every row must be on.
        """
        squares, point = self.products.squares(weights), variance == 0
        v = np.where(point, 1.0, variance)
        by_variance = 0.5 * (squares / v - self.divisor)
        held = variance <= least * (1 + ROUNDING)
        by_variance = np.where(held & (by_variance < 0), 0.0, by_variance)
        slopes = np.concatenate([self.products.slopes(weights) / v[:, None], by_variance[:, None]], axis=1)
        if point.any():
            missed = np.where(self.products.perfect(weights, squares), 0.0, np.inf)
            slopes = np.where(point[:, None], missed[:, None], slopes)
        information = np.concatenate([self._sizes[:, :-1] / v[:, None], 0.5 * self.divisor[:, None]], axis=1)
        terms = np.concatenate([self._units, self.divisor[:, None] * v[:, None]], axis=1) / v[:, None]
        slopes = np.where(np.abs(slopes) <= ROUNDING * terms, 0.0, slopes)
        return in_standard_errors(slopes, information), float(np.abs(slopes).max(initial=0.0))

    def losses(self, weights: Floats, variance: Floats) -> Floats:
        """What the objectives (k,) can still rise by, at most; inf where that has no bound, or none is known.

        With r = S / (d v), the best weights and their variance have ``d/2 (r - 1 - log r)`` more for the variance and
        ``-d/2 log(1 - share)`` for the share by which S can fall.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            away = self.products.squares(weights) / self.divisor / variance - 1
            losses = 0.5 * self.divisor * (excess(away) - np.log1p(-shares_to_fall(self.products, weights)))
        # NaN parameters have no bound either.
        return np.where(self.seen.weight > 0, np.where(variance > 0, losses, np.inf), 0.0)


def finite(loss: float) -> float | None:
    """A loss that is a bound: None where it is infinite or no number."""
    return loss if math.isfinite(loss) else None
