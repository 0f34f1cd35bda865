"""The compiled loop of `suffice.kernels.node_regression`."""

from __future__ import annotations

import math

import numpy as np

from suffice.array_types import Floats, Ints
from suffice.kernels.jit import kernel


@kernel
def sweep(S: Floats, W: Floats, starts: Ints, neighbours: Ints, weights: Floats) -> float:
    """One regression of each node on its neighbours; see `suffice.kernels.node_regression.sweep`."""
    p = len(S)
    widest = 0
    for j in range(p):
        widest = max(widest, starts[j + 1] - starts[j])
    L = np.empty((widest, widest))
    row = np.empty(p)
    largest = 0.0
    for j in range(p):
        first, k = starts[j], starts[j + 1] - starts[j]
        beta = weights[first : first + k]
        for a in range(k):
            neighbour = neighbours[first + a]
            for b in range(a + 1):
                total = W[neighbour, neighbours[first + b]]
                for c in range(b):
                    total -= L[a, c] * L[b, c]
                if a > b:
                    L[a, b] = total / L[b, b]
                elif total > 0.0:
                    L[a, a] = math.sqrt(total)
                else:
                    return -1.0
        for a in range(k):
            total = S[neighbours[first + a], j]
            for c in range(a):
                total -= L[a, c] * beta[c]
            beta[a] = total / L[a, a]
        for a in range(k - 1, -1, -1):
            total = beta[a]
            for c in range(a + 1, k):
                total -= L[c, a] * beta[c]
            beta[a] = total / L[a, a]
        row[:] = 0.0
        left = S[j, j]
        for a in range(k):
            neighbour, share = neighbours[first + a], beta[a]
            left -= share * S[neighbour, j]
            for i in range(p):
                row[i] += share * W[neighbour, i]
        if not left > 0.0:
            return -1.0
        row[j] = S[j, j]
        for i in range(p):
            largest = max(largest, abs(row[i] - W[j, i]))
            W[j, i] = row[i]
            W[i, j] = row[i]
    return largest
