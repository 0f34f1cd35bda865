"""Weighted cross products X'WX, block by block of rows that stay in the cache."""

from __future__ import annotations

from typing import Any

import numpy as np

from suffice.array_types import Floats

#: Numbers of a block of rows: a second-level cache, as larger blocks take fewer turns at the interpreter's lock.
_BLOCK = 262_144


def block_rows(columns: int) -> int:
    """Rows of a block with so many columns."""
    return int(min(4_096, max(256, _BLOCK // max(columns, 1))))


class WeightedGram:
    """Adds up ``[1 X]' W [1 X]``, with the column of ones only if `constant`; weights are not negative.

    Rows are scaled by the square root of their weight into one buffer, and BLAS adds their symmetric product: half the
    arithmetic of a general product, and no temporary of the size of X.
    """

    def __init__(self, columns: int, *, constant: bool) -> None:
        """Make room for (k, k), k = columns + constant."""
        from scipy.linalg.blas import dsyrk

        self._dsyrk: Any = dsyrk
        self._constant = int(constant)
        self._size = columns + self._constant
        self.sums = np.zeros((self._size, self._size), order="F")
        self._buffer = np.empty((0, self._size))

    def add(self, X: Floats, weights: Floats) -> Floats:
        """Add the rows X (n, columns), and return the scaled rows (n, k), valid until the next call."""
        if len(self._buffer) < len(X):
            self._buffer = np.empty((len(X), self._size))
        rows = self._buffer[: len(X)]
        roots = np.sqrt(weights)
        np.multiply(X, roots[:, None], out=rows[:, self._constant :])
        if self._constant:
            rows[:, 0] = roots
        if self._size:
            self.sums = self._dsyrk(1.0, rows.T, beta=1.0, c=self.sums, overwrite_c=1)
        return rows

    def matrix(self) -> Floats:
        """The sums (k, k), both triangles."""
        upper = np.triu(self.sums)
        return np.asarray(upper + np.triu(self.sums, 1).T)
