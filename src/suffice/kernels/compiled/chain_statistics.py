"""Compiled loops of sums over the steps of chains."""

from __future__ import annotations

from suffice.array_types import Codes, Floats
from suffice.kernels.jit import kernel


@kernel
def add_by_code(codes: Codes, weights: Floats, out: Floats) -> None:
    """Add each row of weights to the row of its code; the code -1 is the last row."""
    last = len(out) - 1
    for t in range(len(codes)):
        code = codes[t]
        total, row = out[code if code >= 0 else last], weights[t]
        for j in range(len(row)):
            total[j] += row[j]
