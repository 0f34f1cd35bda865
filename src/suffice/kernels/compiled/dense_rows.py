"""The compiled loops of `suffice.kernels.dense_rows`."""

from __future__ import annotations

from suffice.array_types import Floats
from suffice.kernels.jit import reordered


@reordered
def rows_times(X: Floats, vector: Floats, out: Floats) -> None:
    """Put X vector into `out`."""
    n, k = X.shape
    for i in range(n):
        total = 0.0
        for j in range(k):
            total += X[i, j] * vector[j]
        out[i] = total


@reordered
def times_rows(values: Floats, X: Floats, out: Floats) -> None:
    """Add X' values to `out`; four rows at a time, so that `out` is met once for all of them."""
    n, k = X.shape
    whole = n - n % 4
    for i in range(0, whole, 4):
        a, b, c, d = values[i], values[i + 1], values[i + 2], values[i + 3]
        for j in range(k):
            out[j] += a * X[i, j] + b * X[i + 1, j] + c * X[i + 2, j] + d * X[i + 3, j]
    for i in range(whole, n):
        a = values[i]
        for j in range(k):
            out[j] += a * X[i, j]
