"""Families of single numbers: what their members answer, and the faces that ask them."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from numpy.typing import ArrayLike

from suffice.array_types import Floats
from suffice.choices import Estimate
from suffice.families.conjugate import tails
from suffice.families.exponential_family import ExponentialFamily, answered_by
from suffice.families.member import FamilyMember


class ScalarMember(FamilyMember):
    """A member whose values are single numbers."""

    @abstractmethod
    def mean(self) -> float:
        """The mean."""

    @abstractmethod
    def variance(self) -> float:
        """The variance."""

    @abstractmethod
    def mode(self) -> Any:
        """The value of largest density or probability."""

    @abstractmethod
    def cdf(self, x: ArrayLike) -> Floats:
        """P(X <= x)."""

    @abstractmethod
    def quantile(self, q: ArrayLike) -> Any:
        """The value below which a share q of the mass lies."""

    def intervals(self, level: float = 0.95) -> Any:
        """The central interval."""
        low, high = self.quantile(tails(level))
        return float(low), float(high)


class ScalarFamily(ExponentialFamily):
    """Base of the families of single numbers. Each question has the words of the member that answers it."""

    mean = answered_by(ScalarMember.mean)
    variance = answered_by(ScalarMember.variance)
    mode = answered_by(ScalarMember.mode)
    cdf = answered_by(ScalarMember.cdf)
    quantile = answered_by(ScalarMember.quantile)

    def __init_subclass__(cls, **options: Any) -> None:
        """Take over the words of the members."""
        super().__init_subclass__(**options)
        if "member_class" in vars(cls):
            for name in ("mean", "variance", "mode", "cdf", "quantile"):
                setattr(cls, name, answered_by(getattr(cls.member_class, name)))


class RateFamily(ScalarFamily):
    """Base of the families whose only parameter is a rate."""

    def __init__(
        self, rate: float | None = None, *, prior: Any = None, estimate: Estimate | None = None, progress: bool = False
    ) -> None:
        """See the class."""
        super().__init__(rate=rate, prior=prior, estimate=estimate, progress=progress)
