"""The density of Student's t, and the precision that each value has in it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from suffice.array_types import Floats
from suffice.families.base import as_numbers
from suffice.families.gamma_function import log_gamma_ratio


@dataclass(frozen=True)
class StudentTFormulas:
    """The density of given parameters."""

    df: float
    location: float
    scale: float

    def log_prob(self, x: ArrayLike) -> Floats:
        """Log density of each value; -inf for what is no number."""
        values = as_numbers(x)
        z = (np.where(np.isfinite(values), values, 0.0) - self.location) / self.scale
        value = log_density(np.abs(z), self.df) - math.log(self.scale)
        return np.asarray(np.where(np.isfinite(values), value, -np.inf))


def precisions(z: Floats, df: Floats | float) -> tuple[Floats, Floats]:
    """E[u] and E[log u] given standardised values z: u is Gamma(df / 2, df / 2), and z | u is Normal(0, 1 / u)."""
    from scipy.special import psi

    rate = 0.5 * (df + z * z)
    return 0.5 * (df + 1) / rate, psi(0.5 * (df + 1)) - np.log(rate)


def log_density(size: Floats, df: Floats | float, d: int = 1) -> Floats:
    """Log density of the standard distribution at a distance of `size` from its centre, entry by entry."""
    return np.asarray(log_constant(df, d) - 0.5 * (df + d) * _log_tail(size, df))


def log_constant(df: Floats | float, d: int) -> Floats:
    """Log density at the centre, standard distribution: log Gamma((df + d)/2) - log Gamma(df/2) - d log(pi df)/2."""
    return np.asarray(log_gamma_ratio(df / 2, d / 2) - 0.5 * d * np.log(math.pi * df))


def _log_tail(size: Floats, df: Floats | float) -> Floats:
    """log(1 + size^2 / df) for sizes of at least 0, also where the square overflows."""
    from scipy.special import xlogy

    large = size > 1e100
    with np.errstate(over="ignore"):
        return np.asarray(np.where(large, 2 * xlogy(1, size) - np.log(df), np.log1p(size**2 / df)))
