"""Products of dense rows with a vector, and of values with the rows, where both meet the same rows in the cache.

BLAS reads a matrix at little more than half the speed of the memory in such products; a plain loop is not held up.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from suffice.array_types import Floats
from suffice.kernels.choice import use_compiled

#: Seconds that loops save for each number of the matrix, and how many passes a fit makes.
_SAVED_SECONDS, _PASSES = 5e-10, 12


@dataclass(frozen=True)
class RowProducts:
    """Both products, by BLAS or by compiled loops; the latter take rows that lie one after the other in memory."""

    compiled: bool = False

    def forward(self, X: Floats, vector: Floats) -> Floats:
        """X vector: (n,) for a vector (k,), (n, m) for (k, m)."""
        if not self._loops(X, vector):
            return X @ vector
        from suffice.kernels.compiled.dense_rows import rows_times

        products = np.empty(len(X))
        rows_times(X, np.ascontiguousarray(vector), products)
        return products

    def back(self, values: Floats, X: Floats) -> Floats:
        """X' values (k,) for values (n,)."""
        if not self._loops(X, values):
            return values @ X
        from suffice.kernels.compiled.dense_rows import times_rows

        sums = np.zeros(X.shape[1])
        times_rows(np.ascontiguousarray(values), X, sums)
        return sums

    def _loops(self, X: Floats, vector: Floats) -> bool:
        return self.compiled and vector.ndim == 1 and X.flags.c_contiguous and X.dtype == np.float64


#: The products by BLAS.
BLAS = RowProducts()


def row_products(numbers: int) -> RowProducts:
    """The way to take for the passes of a fit over so many numbers; it depends on the size of the fit alone."""
    return RowProducts(use_compiled("dense rows", _SAVED_SECONDS * numbers, calls=_PASSES, once=True))
