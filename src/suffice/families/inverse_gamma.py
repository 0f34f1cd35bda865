"""The inverse-gamma distribution: one over a gamma variable."""

from __future__ import annotations

import math
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from suffice.array_types import Floats
from suffice.checks import draw_count
from suffice.domain import Domain
from suffice.errors import EstimateError, OptionError
from suffice.families.base import Seed, as_numbers, as_shares, generator
from suffice.families.gamma_function import log_gamma_kernel, rest, rest_slope
from suffice.families.scalar import ScalarFamily
from suffice.families.shape_family import ShapeMember
from suffice.options import NewtonOptions
from suffice.statistics import Statistic, Summary, Sums


class InverseGammaMember(ShapeMember):
    """The inverse-gamma distribution, ``scale^shape / Gamma(shape) * x^(-shape - 1) exp(-scale / x)`` for x > 0."""

    parameter_names = ("shape", "scale")
    shape_: float
    scale_: float
    statistic_names = ("log x", "1/x")
    _sign, _title, _remedy = -1.0, "inverse-gamma", "An inverse-gamma distribution needs values that differ."

    # -- statistics --------------------------------------------------------------------------------------------------

    def sufficient_statistics(self, x: ArrayLike) -> Floats:
        """(log x, 1/x) of each value, (n, 2)."""
        values = as_numbers(x)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.stack([np.log(values), 1 / values], axis=-1)

    def log_base_measure(self, x: ArrayLike) -> Floats:
        """0 for each value; -inf at 0 and below."""
        return np.where(as_numbers(x) > 0, 0.0, -np.inf)

    # -- evaluation --------------------------------------------------------------------------------------------------

    def log_prob(self, x: ArrayLike) -> Floats:
        """Log density of each value; -inf at 0 and below."""
        values = as_numbers(x)
        inside = (values > 0) & (values < np.inf)
        some = np.where(inside, values, 1.0)
        value = log_gamma_kernel(self.shape_, self.scale_ / some) - np.log(some)
        return np.asarray(np.where(inside, value, -np.inf))

    def _reciprocal(self, x: ArrayLike) -> Floats:
        """The gamma variable scale / x, inf at 0 and below."""
        with np.errstate(divide="ignore", over="ignore"):
            return np.asarray(self.scale_ / np.maximum(as_numbers(x), 0.0))

    def cdf(self, x: ArrayLike) -> Floats:
        """P(X <= x), the upper incomplete gamma function at scale / x."""
        from scipy.special import gammaincc

        return np.asarray(gammaincc(self.shape_, self._reciprocal(x)))

    def quantile(self, q: ArrayLike) -> Floats:
        """The value below which a share q of the mass lies."""
        from scipy.special import gammainccinv

        return self._reciprocal(gammainccinv(self.shape_, as_shares(q, "q")))

    def sample(self, n: int = 1, random_state: Seed = None) -> Floats:
        """`n` draws (n,)."""
        return self._reciprocal(generator(random_state).gamma(self.shape_, size=draw_count(n)))

    def mean(self) -> float:
        """The mean, scale / (shape - 1); needs shape > 1."""
        if not self.shape_ > 1:
            raise EstimateError(
                f"The inverse-gamma distribution of shape {self.shape_:g} has no mean; it needs a shape above 1."
            )
        return float(self.scale_ / (self.shape_ - 1))

    def variance(self) -> float:
        """scale^2 / ((shape - 1)^2 (shape - 2)); needs shape > 2."""
        if not self.shape_ > 2:
            raise EstimateError(
                f"The inverse-gamma distribution of shape {self.shape_:g} has no variance; it needs a shape above 2."
            )
        mean = self.mean()
        return float(mean / (self.shape_ - 2) * mean)

    def mode(self) -> float:
        """The mode, scale / (shape + 1)."""
        return float(self.scale_ / (self.shape_ + 1))

    def entropy(self) -> float:
        """Entropy: shape + log(scale Gamma(shape)) - (1 + shape) digamma(shape), without what cancels."""
        remainder = rest(self.shape_) - (1 + self.shape_) * rest_slope(self.shape_)
        return math.log(self.scale_) - math.log(self.shape_) + float(remainder)

    # -- fitting -----------------------------------------------------------------------------------------------------

    def ask(self, domain: Domain) -> tuple[Statistic, ...]:
        """The statistics that a fit needs."""
        (name,) = domain.names
        return (Sums.of((name, "log"), (name, "reciprocal")),)

    def refuse_given(self, summary: Summary) -> None:
        """Raise where every parameter is given: the fit would either do nothing or overrule the caller."""
        given = [name for name in self.parameter_names if name in self.known]
        if given:
            raise OptionError(
                f"{' and '.join(given)} given: InverseGamma fits shape and scale together. Leave them out."
            )


class InverseGamma(ScalarFamily):
    """The inverse-gamma distribution, ``scale^shape / Gamma(shape) * x^(-shape - 1) exp(-scale / x)`` for x > 0.

    It is the distribution of 1 / y where y is gamma with this shape and with rate `scale`. Its mode is ``scale / (shape
    + 1)``. Both parameters are fitted by Newton.

    Args:
        shape: the shape, when given.
        scale: the scale, when given.
        run: see `NewtonOptions`.

    >>> InverseGamma(shape=3, scale=8).mode()
    2.0
    """

    member_class = InverseGammaMember
    shape_: float
    scale_: float

    def __init__(
        self,
        shape: float | None = None,
        scale: float | None = None,
        **run: Unpack[NewtonOptions],
    ) -> None:
        """See the class."""
        super().__init__(shape=shape, scale=scale, **run)
