"""How far the rows of tables are from those of maximum likelihood, without the rounding of large sums."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from suffice.families.gamma_function import excess

Floats = NDArray[np.float64]


def cell_losses(counts: Floats, total: Floats, rows: Floats) -> Floats:
    """What each cell adds to how far ``sum n log p`` is from its largest value, at p = n / sum n.

    ``n log(n / (N p)) = n (d - log(1 + d)) + n - N p`` with d = N p / n - 1; the rest adds up to 0 in a row whose
    probabilities add up to one, so that no digits are lost to it.
    """
    share = np.where(total > 0, rows, 0.0) * total
    some = counts > 0
    with np.errstate(invalid="ignore"):
        away = np.divide(share, counts, out=np.ones(np.broadcast_shapes(share.shape, counts.shape)), where=some) - 1
        return np.where(some, counts * excess(away), share)
