"""Codes to codes: dictionary indices of a batch to the codes of the declared states."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.errors import DataError
from suffice.kernels.arrays import frozen
from suffice.kernels.choice import use_compiled

_BLOCK = 32768
_SECONDS = 2e-9  # NumPy path: a value.


def remap(codes: NDArray[Any], table: NDArray[Any], missing: int, *, out: NDArray[Any] | None = None) -> NDArray[Any]:
    """Return table[codes] (n,), with `missing` where a code is negative or not below len(table).

    codes (n,) of any integer type; table (k,) of type uint8, uint16 or uint32, which is also the type of the result.
    out (n,), if given, is filled and returned; its type may be wider than that of the table.
    """
    if codes.dtype.kind not in "iu" or table.dtype not in (np.uint8, np.uint16, np.uint32):
        raise DataError(f"Codes have type {codes.dtype} and the table {table.dtype}; expected integers, unsigned.")
    if not 0 <= missing <= np.iinfo(table.dtype).max:
        raise DataError(f"The code {missing} of a missing value does not fit in the type {table.dtype} of the table.")
    if out is not None and (out.shape != codes.shape or out.dtype.kind != "u" or out.itemsize < table.itemsize):
        raise DataError(
            f"out has shape {out.shape} and type {out.dtype}; expected {codes.shape}, at least {table.dtype}."
        )
    # Entries beyond the type of the codes are out of reach. Without them a negative code, seen as unsigned, is out of
    # range like any other.
    unsigned = frozen(codes).view(f"u{codes.itemsize}")
    out = np.empty(len(codes), table.dtype) if out is None else out
    table = frozen(table[: np.iinfo(codes.dtype).max + 1], out.dtype)
    if use_compiled(f"remap {unsigned.dtype} {out.dtype}", _SECONDS * len(codes), exact=True):
        from suffice.kernels.compiled.coding import remap as compiled_remap

        compiled_remap(unsigned, table, table.dtype.type(missing), out)
        return out
    padded = np.append(table, table.dtype.type(missing))
    last = min(len(table), np.iinfo(unsigned.dtype).max)
    for start in range(0, len(codes), _BLOCK):
        block = slice(start, start + _BLOCK)
        out[block] = padded.take(np.minimum(unsigned[block], unsigned.dtype.type(last)))
    return out
