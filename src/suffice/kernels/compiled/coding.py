"""Compiled loop of recoding."""

from __future__ import annotations

import numpy as np

from suffice.array_types import AnyInts
from suffice.kernels.jit import kernel


@kernel
def remap(codes: AnyInts, table: AnyInts, missing: int, out: AnyInts) -> None:
    """Set out[r] = table[codes[r]], or `missing` where the unsigned code is not below len(table)."""
    size = np.uint64(len(table))
    for row in range(len(codes)):
        code = np.uint64(codes[row])
        out[row] = table[code] if code < size else missing
