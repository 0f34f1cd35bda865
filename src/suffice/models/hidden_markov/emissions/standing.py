"""Where learned parameters stand: what their statistics let run to the edge, and what they lose to their maximum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.families.gaussian import log_likelihood


@dataclass(frozen=True)
class Standing:
    """Of parameters that complete steps determine.

    `directions` name what runs to the edge; `decided` says whether there can be no others. `lost` are the nats, over
    all steps, that the parameters lose to their maximum (None: not known), `bound` whether that is exact, and `size`
    that of the terms it is the difference of, for rounding.
    """

    directions: tuple[str, ...] = ()
    decided: bool = True
    lost: float | None = 0.0
    bound: bool = True
    size: float = 0.0

    def __add__(self, other: Standing) -> Standing:
        """Of both sets of parameters."""
        unknown = self.lost is None or other.lost is None
        return Standing(
            self.directions + other.directions,
            self.decided and other.decided,
            None if unknown else (self.lost or 0.0) + (other.lost or 0.0),
            self.bound and other.bound,
            self.size + other.size,
        )


def of_rows(
    counts: Floats, probabilities: Floats, allowed: NDArray[np.bool_], called: Callable[[tuple[int, ...]], str]
) -> Standing:
    """Of rows of probabilities (..., m) learned from counts and pseudo-counts: ``sum n log p`` is largest at n / N.

    A row without counts is not determined, and says nothing. `called` names a cell by its place.
    """
    total = counts.sum(axis=-1, keepdims=True)
    used = counts > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        best = np.where(used, np.log(np.where(used, counts / total, 1.0)), 0.0)
        lost = np.where(used, counts * (best - np.log(probabilities)), 0.0).sum()
    beyond = np.log(np.maximum(probabilities.sum(axis=-1), 1.0))  # Rows above one have what no distribution has.
    lost += float((counts.sum(axis=-1) * beyond).sum())
    never = np.argwhere(~used & allowed & (total > 0))
    names = tuple(f"{called(tuple(cell))} -> 0: never seen" for cell in never.tolist())
    return Standing(names, True, max(float(lost), 0.0), True, float((counts * (1.0 + np.abs(best))).sum()))


def of_scatters(weight: Floats, scatters: Floats, shape: str, value: float) -> Standing:
    """Of normal distributions of weights (k,), scatters (k, d, d) about their means, by expected log-likelihood.

    The best covariance of each shape has the trace d: ``-N (d log 2 pi + log det + d) / 2``.
    """
    d = scatters.shape[1]
    used = weight > 0
    if shape == "tied":
        weight, scatters = weight[used].sum(keepdims=True), scatters[used].sum(axis=0, keepdims=True)
    else:
        weight, scatters = weight[used], scatters[used]
    best = 0.0
    for n, scatter in zip(weight, scatters, strict=True):
        covariance = scatter / n
        if shape == "diagonal":
            covariance = np.diag(np.diag(covariance))
        elif shape == "spherical":
            covariance = np.eye(d) * np.trace(covariance) / d
        try:
            best += log_likelihood(float(n), n * covariance, covariance)
        except np.linalg.LinAlgError:
            return Standing(lost=None)
    return Standing(lost=max(best - value, 0.0), size=abs(best) + abs(value))
