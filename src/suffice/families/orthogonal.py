"""Columns made orthogonal from their sums of products alone, in double-double arithmetic.

Gram-Schmidt needs no rows: with G the products of the columns, column j is left with ``G_jj - sum d_i u_ij^2`` of its
squares once the columns before have explained what they can (``G = U' D U``, U unit upper triangular). Products square
the condition of the columns, and pairs carry twice the digits of float64: what comes out is as good as an orthogonal
factorisation of the rows in float64, from a summary, from merged shards and from a file alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from suffice import double_double
from suffice.array_types import Flags, Floats

#: What is left of a column below 1e-14 of the terms of its combination is the rounding of the columns themselves.
ROUNDING = 1e-28


@dataclass(frozen=True)
class Orthogonal:
    """Combinations of m columns that are orthogonal to each other, for k sets of rows.

    `combinations` (2, k, m, m) is a pair, unit upper triangular: its j-th column is column j less its regression on the
    columns before. `squares` (2, k, m) is a pair: the sums of squares of the combinations. `size` (k, m) is the sum of
    the squares of their terms. `dependent` (k, m) says that nothing but rounding is left: the columns before explain
    this one, which explains nothing of those that follow, and its combination is one that vanishes. `shares` (k, m, m)
    is U, the inverse of the combinations.
    """

    combinations: Floats
    squares: Floats
    size: Floats
    dependent: Flags
    shares: Floats

    @property
    def weights(self) -> Floats:
        """Weights (k, m - 1) of the regression of the last column on the others; 0 for the dependent ones."""
        return -double_double.rounded(self.combinations[:, :, :-1, -1])

    @property
    def _scaled(self) -> Floats:
        """The combinations of all columns but the last over their sums of squares, 0 for the dependent ones."""
        inside = ~self.dependent[:, :-1]
        left = np.where(inside, self.squares[:, :, :-1], np.array([1.0, 0.0])[:, None, None])
        return double_double.divide(self.combinations[:, :, :-1, :-1], left[:, :, None, :]) * inside[:, None, :]

    @property
    def inverse(self) -> Floats:
        """Inverse (k, m - 1, m - 1) of the products of all columns but the last, the dependent ones left out."""
        return double_double.rounded(times(self._scaled, self.combinations[:, :, :-1, :-1].swapaxes(-1, -2)))

    def solve(self, right: Floats) -> Floats:
        """That inverse times a pair (2, k, m - 1), rounded last."""
        along = times(self.combinations[:, :, :-1, :-1].swapaxes(-1, -2), right[..., None])
        return double_double.rounded(times(self._scaled, along))[..., 0]

    @property
    def root(self) -> Floats:
        """Triangles (k, m - 1, m - 1) with root' root = the products of all columns but the last, if none depends."""
        return np.sqrt(double_double.rounded(self.squares)[:, :-1, None]) * self.shares[:, :-1, :-1]


def orthogonalised(products: Floats) -> Orthogonal:
    """Make columns orthogonal, in the order given, from the pair (2, k, m, m) of their products."""
    _, k, m, _ = products.shape
    own = np.diagonal(products[0], axis1=1, axis2=2)
    unit = np.exp2(-np.round(np.log2(np.where(own > 0, own, 1.0)) / 2))  # Powers of two: no digit is lost.
    left = products * unit[:, :, None] * unit[:, None, :]
    lengths = np.diagonal(left[0], axis1=1, axis2=2)
    combinations = np.zeros((2, k, m, m))
    squares, size = np.zeros((2, k, m)), np.zeros((k, m))
    dependent = np.zeros((k, m), dtype=bool)
    for j in range(m):
        # Rows of `left` hold, as they are used, the shares U of the combinations before: column j of U^-1 follows.
        shares = left[:, :, :j, j]
        terms = double_double.multiply(combinations[:, :, :j, :j], shares[:, :, None, :])
        if j:
            combinations[:, :, :j, j] = -double_double.sum_pairs(terms[0], terms[1])
        combinations[0, :, j, j] = 1.0
        size[:, j] = (combinations[0, :, :, j] ** 2 * lengths).sum(axis=1)
        squares[:, :, j] = left[:, :, j, j]
        dependent[:, j] = ~(squares[0, :, j] > ROUNDING * size[:, j])
        pivot = np.where(dependent[:, j], np.array([1.0, 0.0])[:, None], squares[:, :, j])
        row = double_double.divide(left[:, :, j, j + 1 :], pivot[:, :, None]) * ~dependent[:, j, None]
        taken = double_double.multiply(left[:, :, j, j + 1 :, None], row[:, :, None, :])
        left[:, :, j + 1 :, j + 1 :] = double_double.subtract(left[:, :, j + 1 :, j + 1 :], taken)
        left[:, :, j, j + 1 :] = row
    shares = np.triu(double_double.rounded(left), 1) + np.eye(m)
    back = unit[:, :, None] / unit[:, None, :]
    return Orthogonal(combinations * back, squares / unit**2, size / unit**2, dependent, shares / back.mT)


def residuals(products: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Slopes ``X'(y - X w)`` as a pair (2, k, m - 1) and sums of squares ``|y - X w|^2`` (k,) at weights (k, m - 1).

    The products (2, k, m, m) are those of all columns, y last.
    """
    c = np.concatenate([-weights, np.ones((len(weights), 1))], axis=1)
    terms = double_double.scale(products, c[:, None, :])
    slopes = double_double.sum_pairs(terms[0], terms[1])
    terms = double_double.scale(slopes, c)
    squares = double_double.rounded(double_double.sum_pairs(terms[0], terms[1]))
    return slopes[:, :, :-1], np.maximum(squares, 0.0)


def times(x: Floats, y: Floats) -> Floats:
    """Products (2, k, a, c) of matrices (2, k, a, b) and (2, k, b, c) in pairs."""
    parts = double_double.multiply(x[:, :, :, None, :], y.swapaxes(-1, -2)[:, :, None, :, :])
    return double_double.sum_pairs(parts[0], parts[1])
