"""The geometric distribution: failures before the first success."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.array_types import Floats
from suffice.attributes import Read
from suffice.checks import draw_count
from suffice.choices import Estimate
from suffice.families.base import Seed, as_numbers, generator
from suffice.families.counting import refuse_long_draws
from suffice.families.negative_binomial import NegativeBinomialMember
from suffice.families.scalar import ScalarFamily

if TYPE_CHECKING:
    from suffice.families.beta import Beta
    from suffice.families.beta_negative_binomial import BetaNegativeBinomial


class GeometricMember(NegativeBinomialMember):
    """Failures before the first success, ``probability (1 - probability)^x`` for x = 0, 1, 2, ..."""

    parameter_names = ("probability",)
    probability_: float

    # -- parameters --------------------------------------------------------------------------------------------------

    def check(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Parameters in their final type; an impossible value is an error."""
        return {"probability": super().check({**parameters, "size": 1.0})["probability"]}

    def _known_size(self) -> float:
        return 1.0

    # -- statistics --------------------------------------------------------------------------------------------------

    def log_gamma_base(self, x: Floats) -> Floats:
        """0 for each value."""
        return np.zeros_like(x)

    # -- evaluation --------------------------------------------------------------------------------------------------

    def cdf(self, x: ArrayLike) -> Floats:
        """1 - (1 - probability)^(x + 1)."""
        from scipy.special import xlog1py

        trials = np.maximum(np.floor(as_numbers(x)) + 1, 0.0)
        return np.asarray(-np.expm1(xlog1py(trials, -self.probability_)))

    def sample(self, n: int = 1, random_state: Seed = None) -> NDArray[np.int64]:
        """`n` draws (n,)."""
        refuse_long_draws(self.mean())
        return generator(random_state).geometric(self.probability_, size=draw_count(n)) - 1

    def entropy(self) -> float:
        """-log(probability) - odds of a failure times log(1 - probability)."""
        odds = self._odds(None)
        return -math.log(self.probability_) - (odds * math.log1p(-self.probability_) if odds > 0 else 0.0)

    # -- with a prior ------------------------------------------------------------------------------------------------

    def from_point(self, point: Any) -> dict[str, Any]:
        """Parameters from the posterior's mean or mode."""
        return {"probability": super().from_point(point)["probability"]}


class Geometric(ScalarFamily):
    """Failures before the first success, ``probability (1 - probability)^x`` for x = 0, 1, 2, ...

    It is the negative binomial distribution of size 1. (The number of trials, success included, is x + 1.) A
    probability of 1 is the limit that puts all mass on 0; it is the estimate where every value is 0.

    A summary keeps the distinct values with their weights, so its memory follows the number of distinct values, not of
    rows.

    Args:
        probability: of a success, when given.
        prior: a `Beta` on the probability.
        estimate: ``"mean"`` (default with a prior) or ``"map"``, the mode in the probability.
        progress: show a bar over the rows.

    >>> Geometric().fit([0, 3, 1, 0]).probability_
    0.5
    """

    member_class = GeometricMember
    probability_: float
    posterior_: Read[Beta]
    predictive_: Read[BetaNegativeBinomial]

    def __init__(
        self,
        probability: float | None = None,
        *,
        prior: Any = None,
        estimate: Estimate | None = None,
        progress: bool = False,
    ) -> None:
        """See the class."""
        super().__init__(probability=probability, prior=prior, estimate=estimate, progress=progress)
