"""Responses of which only mean and variance are known: ``variance = phi V(mean)``, phi to be estimated.

The coefficients are those of the family with this V (Wedderburn 1974). There is no likelihood: nothing to draw, no
log-probability of a row, no AIC. The dispersion is Pearson's, and errors grow with its root.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.errors import OptionError
from suffice.models.glm.coefficients import Coefficients
from suffice.models.glm.families import BinomialFamily, PoissonFamily
from suffice.models.glm.family import Family, Totals, of_counts


class QuasiFamily(Family):
    """A family that is known by its variance alone; `value` and `base` add up to minus half the deviance."""

    free_dispersion = True
    has_likelihood = False

    def is_quasi(self, y: Floats) -> bool:
        """No y is a surprise."""
        return False

    def log_likelihood(self, totals: Totals, phi: float) -> float:
        """The quasi-likelihood, minus half the deviance in units of the dispersion."""
        return (totals.value + totals.base) / phi

    def log_prob_of_rows(self, fitted: Coefficients, eta: Floats, y: Floats, trials: Floats | None) -> Floats:
        """There is none."""
        raise OptionError(
            f"The {self.name} family has no likelihood, so that rows have no log-probability and a fit no score. Use "
            "deviance residuals, or a metric of predictions."
        )

    def draw(self, fitted: Coefficients, mean: Floats, rng: np.random.Generator) -> Any:
        """There is no distribution to draw from."""
        raise OptionError(
            f"The {self.name} family says mean and variance alone, and no distribution to draw from. Use "
            f"family={self.rows_like!r} or, for counts, 'negative_binomial'; a bootstrap takes kind='case'."
        )


def _saturated_counts(y: Floats) -> Floats:
    from scipy.special import xlogy

    return np.asarray(xlogy(y, y) - y)


@dataclass(frozen=True)
class QuasiPoissonFamily(QuasiFamily, PoissonFamily):
    """V = mean."""

    name = "quasipoisson"
    support = "numbers of at least 0"

    @property
    def rows_like(self) -> str:
        """Poisson counts."""
        return "poisson"

    def base(self, y: Floats) -> Floats:
        """Minus the value at means that are y itself."""
        return -of_counts(_saturated_counts, y)


@dataclass(frozen=True)
class QuasiBinomialFamily(QuasiFamily, BinomialFamily):
    """V = mean (1 - mean)."""

    name = "quasibinomial"
    support = "numbers from 0 to 1, two labels, or successes and failures"

    @property
    def rows_like(self) -> str:
        """Shares of trials."""
        return "binomial"

    def base(self, y: Floats) -> Floats:
        """Minus the value at means that are y itself."""
        return -self._saturated(y)
