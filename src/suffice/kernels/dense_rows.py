"""Products of dense rows with a vector, and of values with the rows, where both meet the same rows in the cache.

BLAS reads a matrix at little more than half the speed of the memory in such products; a plain loop is not held up, nor
by what the rows of some responses say between the two.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from suffice.array_types import Floats
from suffice.kernels.choice import use_compiled

#: Seconds that loops save for each number of the matrix, and how many passes a fit makes.
_SAVED_SECONDS, _PASSES = 5e-10, 20
#: Responses whose rows the loops know, with their canonical links: their numbers there, and seconds saved for each row.
_LAWS = {"logistic": (0, 6e-8), "poisson": (1, 2e-8)}


@dataclass(frozen=True)
class RowProducts:
    """Both products, by BLAS or by compiled loops; the latter take rows that lie one after the other in memory."""

    compiled: bool = False

    def forward(self, X: Floats, vector: Floats) -> Floats:
        """X vector: (n,) for a vector (k,), (n, m) for (k, m)."""
        if not self._loops(X, vector):
            return X @ vector
        from suffice.kernels.compiled.exponentials import rows_times

        products = np.empty(len(X))
        rows_times(X, np.ascontiguousarray(vector), products)
        return products

    def back(self, values: Floats, X: Floats) -> Floats:
        """X' values (k,) for values (n,)."""
        if not self._loops(X, values):
            return values @ X
        from suffice.kernels.compiled.exponentials import times_rows

        sums = np.zeros(X.shape[1])
        times_rows(np.ascontiguousarray(values), X, sums)
        return sums

    def slopes(
        self,
        law: str,
        X: Floats,
        y: Floats,
        offset: Floats | None,
        weights: Floats | None,
        beta: Floats,
        *,
        constant: bool,
    ) -> tuple[float, Floats] | None:
        """Log-likelihood without what y says alone, and its gradient; a constant has the first coefficient.

        None where the loops do not know the law of the response or do not take the rows.
        """
        if law not in _LAWS or not self._loops(X, beta):
            return None
        from suffice.kernels.compiled.exponentials import slopes

        gradient, none = np.zeros(len(beta)), np.empty(0)
        shifts, weighing = (none if side is None else np.ascontiguousarray(side) for side in (offset, weights))
        first, own = float(beta[0]) if constant else 0.0, np.ascontiguousarray(beta[int(constant) :])
        rows = np.ascontiguousarray(y), shifts, weighing
        value, scores = slopes(_LAWS[law][0], X, *rows, first, own, gradient[int(constant) :])
        gradient[: int(constant)] = scores
        return value, gradient

    def column_sizes(self, X: Floats) -> Floats:
        """The largest size of a number in each column (k,)."""
        if not self._loops(X, X[:0, 0]):
            return np.asarray(np.abs(X).max(axis=0, initial=0.0))
        from suffice.kernels.compiled.exponentials import column_sizes

        sizes = np.zeros(X.shape[1])
        column_sizes(X, sizes)
        return sizes

    def _loops(self, X: Floats, vector: Floats) -> bool:
        return self.compiled and vector.ndim == 1 and X.flags.c_contiguous and X.dtype == np.float64


#: The products by BLAS.
BLAS = RowProducts()


def row_products(rows: int, columns: int, law: str = "") -> RowProducts:
    """The way to take for the passes of a fit, over rows of a law; it depends on the size of the fit alone."""
    saved = rows * (_SAVED_SECONDS * columns + _LAWS.get(law, (0, 0.0))[1])
    return RowProducts(use_compiled("dense rows", saved, calls=_PASSES, once=True))
