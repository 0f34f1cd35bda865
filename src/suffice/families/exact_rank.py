"""Which columns are combinations of others beyond doubt: elimination of their products in rational arithmetic.

A threshold calls a column dependent that is nearly so, and what it drops may still explain a response. Products of
whole numbers, of indicators and of columns twice over are sums without rounding, and an exact elimination leaves
exactly 0 of a column that depends on those before. Where the sums themselves were rounded it leaves something, and
nothing is proved.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from suffice.array_types import Flags, Floats


def surely_dependent(products: Floats) -> Flags:
    """Which columns (k, m) are exactly combinations of those before, by the pair (2, k, m, m) of their products."""
    return np.array([_vanishing(one) for one in products.swapaxes(0, 1)], dtype=bool).reshape(products.shape[1:3])


def _vanishing(pair: Floats) -> list[bool]:
    """Which columns (m,) leave exactly 0 of their squares, by one pair (2, m, m)."""
    m = pair.shape[-1]
    if not np.isfinite(pair).all():
        return [False] * m
    high, low = pair.tolist()
    left = [[Fraction(high[i][j]) + Fraction(low[i][j]) for j in range(m)] for i in range(m)]
    vanishing = []
    for j in range(m):
        pivot = left[j][j]
        # Of a column that vanishes no product is left either; otherwise the sums were rounded.
        vanishing.append(pivot == 0 and not any(left[j][j + 1 :]))
        if pivot == 0:
            continue
        for i in range(j + 1, m):
            share = left[i][j] / pivot
            if share:
                left[i][j + 1 :] = [a - share * b for a, b in zip(left[i][j + 1 :], left[j][j + 1 :], strict=True)]
    return vanishing
