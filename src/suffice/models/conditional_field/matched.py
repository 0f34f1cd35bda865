"""Observed and expected sums of features at the weights of a fit: what its slope is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from suffice.array_types import Floats, Ints
from suffice.errors import FileFormatError
from suffice.fitting.report import MatchedStatistics, largest_and_even

#: Features that are kept of a fit: those with the largest gaps, those that are largest, and an even choice of the rest.
MOST = 2_000


@dataclass(frozen=True, eq=False)
class FeatureTotals:
    """Sums (p,) of the features at `places` (p,) of all `total`.

    `prior_gradient` is the slope of the log prior, if there is one.
    At the maximum ``observed + prior_gradient = expected``. `shares` (K,) are those of the labels given.
    """

    places: Ints
    observed: Floats
    expected: Floats
    prior_gradient: Floats | None
    total: int
    shares: Floats | None = None

    @classmethod
    def of(
        cls, observed: Floats, likelihood_slope: Floats, slope: Floats, shares: Floats, *, prior: bool
    ) -> FeatureTotals:
        """Observed sums (k,), and the slopes (k,) of the log-likelihood and of the whole objective."""
        far = largest_and_even(slope, MOST // 2)
        large = largest_and_even(observed, MOST // 2)
        places = np.union1d(far, large).astype(np.int64)
        prior_gradient = (slope - likelihood_slope)[places] if prior else None
        return cls(
            places, observed[places], (observed - likelihood_slope)[places], prior_gradient, len(observed), shares
        )

    def matched(self, names: Callable[[], list[tuple[Any, ...]]], weight: float, about: str) -> MatchedStatistics:
        """Per sequence or example, of which there are `weight`."""
        every = names()
        shown = tuple(_in_words(every[number]) for number in self.places.tolist())
        prior_gradient = None if self.prior_gradient is None else self.prior_gradient / weight
        return MatchedStatistics(
            shown, self.observed / weight, self.expected / weight, prior_gradient, about=about, total=self.total
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a file."""
        return dict(vars(self))

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any] | None, total: int) -> FeatureTotals | None:
        """Rebuild from plain data; None where a file holds none."""
        if plain is None:
            return None
        totals = cls(
            **{name: plain[name] for name in ("places", "observed", "expected", "prior_gradient", "total", "shares")}
        )
        arrays = (
            totals.observed,
            totals.expected,
            *(() if totals.prior_gradient is None else (totals.prior_gradient,)),
        )
        fine = (
            isinstance(totals.places, np.ndarray)
            and totals.places.dtype == np.int64
            and totals.places.ndim == 1
            and totals.total == total
            and ((totals.places >= 0) & (totals.places < total)).all()
            and all(isinstance(a, np.ndarray) and a.shape == totals.places.shape for a in arrays)
        )
        if not fine:
            raise FileFormatError("The sums of features in this file do not fit the weights.")
        return totals


def _in_words(name: tuple[Any, ...]) -> str:
    kind, *rest = name
    between = " → " if kind in ("state", "transition") else ", "
    return f"{kind} {between.join(map(str, rest))}"
