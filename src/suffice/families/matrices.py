"""Symmetric positive definite matrices: checked, factored and inverted whatever the units of their columns."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.array_types import Floats
from suffice.checks import listed_names
from suffice.errors import OptionError, shortened
from suffice.families.base import as_float, as_floats

#: Entries above and below the diagonal may differ by this share of the size of their row and column (rounding).
ASYMMETRY = 1e-9
#: Products of larger degrees of freedom with the logarithms of a gamma function leave float64.
LARGEST_DOF = 1e300
#: Up to this size substitution is quicker than a call of LAPACK, whose threads wait for one another.
SMALL = 6


def as_positive_definite(values: ArrayLike, name: str, size: int | None = None) -> Floats:
    """A symmetric positive definite matrix (d, d), or an error that names the argument."""
    matrix = np.atleast_2d(as_floats(values, name))
    d = len(matrix) if size is None else size
    if matrix.shape != (d, d):
        raise OptionError(f"{name} has shape {matrix.shape}; expected {(d, d)}.")
    diagonal = np.diag(matrix)
    if not (diagonal > 0).all():
        worst = int(np.argmin(diagonal))
        raise OptionError(f"{name} has {diagonal[worst]!r} on its diagonal (place {worst}); expected positive numbers.")
    size_of = np.sqrt(diagonal)
    if (np.abs(matrix - matrix.T) > ASYMMETRY * np.outer(size_of, size_of)).any():
        raise OptionError(f"{name} is not symmetric.")
    matrix = matrix / 2 + matrix.T / 2
    try:
        root(matrix)
    except np.linalg.LinAlgError:
        raise OptionError(
            f"{name} is not positive definite: some combination of its columns has no spread. Check it."
        ) from None
    return matrix


def as_dof(value: Any, size: int) -> float:
    """Degrees of freedom of a Wishart distribution: above size - 1, and small enough for gamma functions."""
    dof = as_float(value, "dof", above=size - 1)
    if dof > LARGEST_DOF:
        raise OptionError(f"dof is {dof!r}; expected a number of at most {LARGEST_DOF:g}.")
    return dof


def check_names(names: Any, size: int) -> None:
    """Raise unless there is a name of its own for each dimension, or none at all."""
    known = None if names is None else listed_names(names, "names", otherwise=", or None")
    if known is not None and (isinstance(names, str) or len(set(known)) != len(known) or len(known) != size):
        raise OptionError(f"names is {shortened(names)}; expected {size} different names, one for each dimension.")


def positive_axes(matrices: Floats) -> tuple[NDArray[np.bool_], Floats, Floats]:
    """Which matrices (..., d, d) are symmetric and positive definite; eigenvalues (..., d), 1 elsewhere, and axes."""
    symmetric = _symmetric(matrices)
    values, axes = np.linalg.eigh(np.where(symmetric[..., None, None], matrices, np.eye(matrices.shape[-1])))
    inside = np.asarray(symmetric & (values > 0).all(axis=-1))
    return inside, np.where(inside[..., None], values, 1.0), axes


def log_determinants(matrices: Floats) -> tuple[NDArray[np.bool_], Floats]:
    """Which matrices (..., d, d) are symmetric and positive definite, and the log of each determinant, else 0."""
    if _symmetric(matrices).all():
        try:
            with np.errstate(invalid="ignore", divide="ignore"):
                diagonal = np.diagonal(root(matrices), axis1=-2, axis2=-1)
        except np.linalg.LinAlgError:
            diagonal = np.full(matrices.shape[:-1], np.nan)
        if (diagonal > 0.0).all():
            return np.ones(matrices.shape[:-2], dtype=np.bool_), 2.0 * np.log(diagonal).sum(axis=-1)
    inside, values, _ = positive_axes(matrices)  # Says of each by itself.
    return inside, np.log(values).sum(axis=-1)


def _symmetric(matrices: Floats) -> NDArray[np.bool_]:
    """Which matrices (..., d, d) are symmetric up to rounding."""
    turned = matrices.swapaxes(-1, -2)
    with np.errstate(invalid="ignore"):
        alike = np.abs(matrices - turned) <= 1e-12 + 1e-9 * np.abs(turned)
    return np.asarray(alike.all(axis=(-1, -2)))


def log_gamma_of_matrices(a: float, d: int) -> float:
    """Log of the multivariate gamma function, ``pi^(d (d - 1) / 4) prod_j Gamma(a - j / 2)`` for j from 0 to d - 1."""
    return 0.25 * d * (d - 1) * math.log(math.pi) + math.fsum(math.lgamma(a - 0.5 * j) for j in range(d))


def bartlett(rng: np.random.Generator, dof: float, size: int, n: int) -> Floats:
    """`n` draws of the lower triangle A (n, d, d) for which A A' is a Wishart matrix of unit scale (Bartlett 1933)."""
    triangle = np.tril(rng.standard_normal((n, size, size)), -1)
    triangle[:, np.arange(size), np.arange(size)] = np.sqrt(rng.chisquare(dof - np.arange(size), size=(n, size)))
    return triangle


def root(matrix: Floats) -> Floats:
    """The lower triangular factor L with ``L L' = matrix`` (..., d, d), by way of unit diagonals: in any units."""
    units = np.sqrt(np.diagonal(matrix, axis1=-2, axis2=-1))
    rows = units[..., :, None]
    return np.asarray(rows * np.linalg.cholesky(matrix / rows / units[..., None, :]))


def log_determinant(matrix: Floats) -> float:
    """Log of the determinant of a positive definite matrix."""
    return 2 * float(np.log(np.diag(root(matrix))).sum())


def whiten(factor: Floats, vectors: Floats) -> Floats:
    """``L^-1 v`` for a lower triangular L (d, d) and v (d,) or (d, n), or for several of both (..., d, d)."""
    if factor.ndim > 2:
        white = np.zeros(vectors.shape)
        for row in range(factor.shape[-1]):
            done = (factor[..., row : row + 1, :row] @ white[..., :row, :])[..., 0, :]
            white[..., row, :] = (vectors[..., row, :] - done) / factor[..., row, row, None]
        return white
    if len(factor) <= SMALL:
        white = np.zeros(np.shape(vectors))
        for row, line in enumerate(factor):
            white[row] = (vectors[row] - line[:row] @ white[:row]) / line[row]
        return white
    from scipy.linalg import solve_triangular

    return np.asarray(solve_triangular(factor, vectors, lower=True))


def inverse(matrix: Floats) -> Floats:
    """The inverse of a positive definite matrix, exactly symmetric."""
    half = whiten(root(matrix), np.eye(len(matrix)))
    return np.asarray(half.T @ half)


def solve(matrix: Floats, right: Floats) -> Floats:
    """``matrix^-1 right`` for a positive definite matrix."""
    from scipy.linalg import cho_solve

    return np.asarray(cho_solve((root(matrix), True), right))


def relative(factor: Floats, matrix: Floats) -> Floats:
    """``L^-1 M L^-T``: the symmetric matrix M in the units of ``L L'``."""
    return whiten(factor, whiten(factor, matrix).T)


def flat(vector: Any, matrix: Any) -> Floats:
    """A vector (d,) and a matrix (d, d) as one array (d + d^2,), the matrix row by row."""
    return np.concatenate([np.ravel(vector), np.ravel(matrix)])


def unflat(values: Floats) -> tuple[Floats, Floats]:
    """The vector and the symmetric part of the matrix that `flat` put together."""
    d = int((np.sqrt(1 + 4 * len(values)) - 1) / 2)
    if d * (d + 1) != len(values):
        raise OptionError(f"Found {len(values)} numbers; expected d + d^2: a vector, then a matrix row by row.")
    matrix = values[d:].reshape(d, d)
    return values[:d], (matrix + matrix.T) / 2
