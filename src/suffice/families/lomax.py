"""The Lomax distribution: the predictive distribution of an exponential row with a gamma rate integrated out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from suffice.array_types import Floats
from suffice.checks import draw_count
from suffice.errors import EstimateError
from suffice.families.base import Distribution, Seed, as_float, as_numbers, as_shape, as_shares, generator


class Lomax(Distribution):
    """The Lomax (Pareto II) distribution, ``shape / scale * (1 + x / scale)^-(shape + 1)`` for x >= 0.

    >>> Lomax(shape=3, scale=4).mean()
    2.0
    """

    parameter_names = ("shape", "scale")
    shape_: float
    scale_: float

    def __init__(self, shape: float, scale: float = 1.0) -> None:
        """See the class."""
        super().__init__(shape=shape, scale=scale)

    # -- parameters --------------------------------------------------------------------------------------------------

    def _check(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        scale = as_float(parameters["scale"], "scale", above=0)
        return {"shape": as_shape(parameters["shape"], "shape"), "scale": scale}

    # -- evaluation --------------------------------------------------------------------------------------------------

    def log_prob(self, x: ArrayLike) -> Floats:
        """Log density of each value; -inf below 0."""
        values = as_numbers(x)
        tail = np.log1p(np.where(values >= 0, values, 0.0) / self.scale_)
        front = math.log(self.shape_) - math.log(self.scale_)
        return np.asarray(np.where(values >= 0, front - (self.shape_ + 1) * tail, -np.inf))

    def cdf(self, x: ArrayLike) -> Floats:
        """1 - (1 + x / scale)^-shape."""
        values = np.maximum(as_numbers(x), 0.0)
        return np.asarray(-np.expm1(-self.shape_ * np.log1p(values / self.scale_)))

    def quantile(self, q: ArrayLike) -> Floats:
        """The value scale ((1 - q)^(-1 / shape) - 1)."""
        with np.errstate(divide="ignore"):
            return np.asarray(self.scale_ * np.expm1(-np.log1p(-as_shares(q, "q")) / self.shape_))

    def sample(self, n: int = 1, random_state: Seed = None) -> Floats:
        """`n` draws (n,)."""
        return np.asarray(self.scale_ * generator(random_state).pareto(self.shape_, size=draw_count(n)))

    def mean(self) -> float:
        """The mean, scale / (shape - 1); needs shape > 1."""
        if not self.shape_ > 1:
            raise EstimateError(
                f"The Lomax distribution of shape {self.shape_:g} has no mean; it needs a shape above 1."
            )
        return float(self.scale_ / (self.shape_ - 1))

    def variance(self) -> float:
        """scale^2 shape / ((shape - 1)^2 (shape - 2)); needs shape > 2."""
        if not self.shape_ > 2:
            raise EstimateError(
                f"The Lomax distribution of shape {self.shape_:g} has no variance; it needs a shape above 2."
            )
        return self.mean() * (self.shape_ / (self.shape_ - 2)) * self.mean()

    def mode(self) -> float:
        """0."""
        return 0.0

    def entropy(self) -> float:
        """log(scale / shape) + 1 + 1 / shape."""
        return float(math.log(self.scale_) - math.log(self.shape_) + 1 + 1 / self.shape_)
