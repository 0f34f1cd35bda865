"""Isotonic regression of shares: probabilities that rise along a chain, each within bounds of its own."""

from __future__ import annotations

import numpy as np

from suffice.array_types import Floats


def isotonic_shares(present: Floats, total: Floats, low: Floats, high: Floats) -> Floats:
    """The probabilities (k,) that do not fall along the chain and maximise ``sum present log p + absent log(1 - p)``.

    present, total: weights (k,) of the rows with the event and of all rows; places without rows take what is nearest to
        1/2 between their neighbours.
    low, high: bounds (k,) that rise along the chain themselves.

    Neighbours that would fall are pooled, and a pool has the share of its rows, moved inside the bounds of all its
    places: that is where its likelihood is largest, as it has a single peak.
    """
    pools: list[tuple[float, float, float, int, int]] = []  # Value, present, total, first and last position.
    for position in np.flatnonzero(total > 0).tolist():
        pool = (0.0, float(present[position]), float(total[position]), position, position)
        while True:
            _, ones, weight, first, last = pool
            value = min(max(ones / weight, float(low[last])), float(high[first]))
            if not pools or pools[-1][0] <= value:
                break
            _, more, heavier, begin, _ = pools.pop()
            pool = (0.0, ones + more, weight + heavier, begin, last)
        pools.append((value, ones, weight, first, last))
    shares = np.full(len(total), np.nan)
    for value, _, _, first, last in pools:
        shares[first : last + 1] = value
    seen = total > 0
    below = np.maximum.accumulate(np.where(seen, shares, 0.0))
    above = np.minimum.accumulate(np.where(seen, shares, 1.0)[::-1])[::-1]
    middle = np.clip(0.5, np.maximum(below, low), np.minimum(above, high))
    return np.where(seen, shares, middle)
