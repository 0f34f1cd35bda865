"""Distributions of shares that add up to one, of two parts or of many: what beta and Dirichlet have in common."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from suffice.array_types import Floats
from suffice.families import simplex
from suffice.families.member import FamilyMember
from suffice.statistics import Summary


class ShareMember(FamilyMember):
    """A member with density ``prod x_k^(alpha_k - 1) / B(alpha)``: T is log x, the natural parameters alpha - 1."""

    by_mean = True

    @abstractmethod
    def _usual(self, eta: ArrayLike | None) -> Floats:
        """Alpha (K,) of natural parameters, or its own."""

    def log_normalizer(self, eta: ArrayLike | None = None) -> float:
        """A = log B(alpha) = sum log Gamma(alpha_k) - log Gamma(sum alpha), with alpha = eta + 1."""
        return simplex.log_beta(self._usual(eta))

    def expected_statistics(self, eta: ArrayLike | None = None) -> Floats:
        """digamma(alpha_k) - digamma(sum alpha)."""
        return simplex.mean_logs(self._usual(eta))

    def statistics_covariance(self, eta: ArrayLike | None = None) -> Floats:
        """diag(trigamma(alpha_k)) - trigamma(sum alpha)."""
        return simplex.logs_covariance(self._usual(eta))

    def cumulants_along(self, order: int, direction: Floats) -> Floats:
        """Cumulants 1 to `order` of ``direction . log x`` (order,)."""
        return simplex.logs_cumulants(self._usual(None), order, direction)

    def from_mean(self, mean: Floats) -> dict[str, Any]:
        """Usual parameters from mean parameters."""
        simplex.check_mean_logs(mean)
        return super().from_mean(mean)

    def start(self, mean: Floats) -> Floats:
        """Natural parameters near those that match the mean, for Newton."""
        return simplex.rough_alpha(mean) - 1

    def entropy(self) -> float:
        """A - sum (alpha_k - 1) E[log x_k]."""
        return simplex.entropy(self._usual(None))

    def divergence(self, other: ShareMember) -> float:
        """Between two distributions of as many parts; see `simplex.divergence`."""
        return simplex.divergence(self._usual(None), other._usual(None))

    def log_likelihood(self, summary: Summary) -> float:
        """Sum over the rows of a summary, natural logarithm, where log h is 0."""
        return summary.weight * simplex.mean_log_density(self._usual(None), self.observed(summary))

    def concentration(self) -> float:
        """The sum of alpha."""
        return float(self._usual(None).sum())

    def is_possible(self, mean: Floats) -> bool:
        """Geometric means of shares that add up to one add up to no more."""
        return float(np.exp(mean).sum()) <= 1 + simplex.ROUNDING
