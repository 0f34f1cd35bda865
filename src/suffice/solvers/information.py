"""The information matrix of a regression, and what is asked of its inverse.

It is stored as ``[[A, C], [C', diag(D)]]``: a dense body and, where a factor has many levels, their diagonal block. The
Schur complement ``A - C D^-1 C'`` solves it in time linear in the number of levels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.errors import EstimateError, SufficeError
from suffice.records import set_fields

#: Pivots of the scaled Schur complement below this are not trusted: the square of a collinearity of 1e-6.
LEAST_PIVOT = 1e-11
#: The same for a triangular root of the matrix, which has not squared the collinearity.
LEAST_ROOT = 1e-10


@dataclass(frozen=True, eq=False)
class Information:
    """A symmetric matrix (k, k) that is not negative: body (b, b), cross (b, K), levels (K,).

    `root` (m, k), where given, is a matrix with ``root' root = body``: it is more exact where columns are nearly
    collinear.
    """

    body: Floats
    cross: Floats | None = None
    levels: Floats | None = None
    root: Floats | None = None

    @property
    def size(self) -> int:
        """K + b."""
        return len(self.body) + (0 if self.levels is None else len(self.levels))

    def diagonal(self) -> Floats:
        """The diagonal (k,)."""
        own = np.diagonal(self.body).copy()
        return own if self.levels is None else np.concatenate((own, self.levels))

    def dense(self) -> Floats:
        """The whole matrix (k, k)."""
        if self.levels is None or self.cross is None:
            return self.body
        return np.block([[self.body, self.cross], [self.cross.T, np.diag(self.levels)]])

    def product(self, vector: Floats) -> Floats:
        """Matrix times vector."""
        if self.levels is None or self.cross is None:
            return self.body @ vector
        b = len(self.body)
        return np.concatenate(
            (self.body @ vector[:b] + self.cross @ vector[b:], self.cross.T @ vector[:b] + self.levels * vector[b:])
        )

    def magnitude(self, vector: Floats) -> float:
        """|v|' |I| |v|: the size of the terms that v' I v adds up."""
        signs = (None if part is None else np.abs(part) for part in (self.body, self.cross, self.levels))
        size = np.abs(vector)
        return float(size @ Information(*signs).product(size))  # type: ignore[arg-type]

    def plus(self, precision: Floats) -> Information:
        """With a precision (k,) on the diagonal, or (k, k); the latter makes the matrix dense."""
        if self.root is not None:
            rows = np.diag(np.sqrt(precision)) if precision.ndim == 1 else np.linalg.cholesky(precision).T
            return Information(self.body + rows.T @ rows, root=np.vstack((self.root, rows)))
        if precision.ndim == 2:
            return Information(self.dense() + precision)
        b = len(self.body)
        body = self.body + np.diag(precision[:b])
        return Information(body, self.cross, None if self.levels is None else self.levels + precision[b:])

    def times(self, factor: float) -> Information:
        """Every entry times a factor."""
        with np.errstate(over="ignore"):  # What is known to more digits than float64 has is known beyond all bounds.
            cross, levels = (None if part is None else part * factor for part in (self.cross, self.levels))
            return Information(
                self.body * factor, cross, levels, None if self.root is None else self.root * np.sqrt(factor)
            )

    def lasting(self) -> Information:
        """The information without anything that it is made from; of size 0 where it cannot be made any more."""
        return self

    def part(self, kept: NDArray[np.intp]) -> Information:
        """The rows and columns of some coefficients."""
        if self.root is not None:
            root = self.root[:, kept]
            return Information(root.T @ root, root=root)
        return Information(self.dense()[np.ix_(kept, kept)])

    # -- solving -----------------------------------------------------------------------------------------------------

    @cached_property
    def _scale(self) -> Floats:
        """One over the root of the diagonal: columns of very different size cost no digits."""
        own = self.diagonal()
        return np.divide(1.0, np.sqrt(own), out=np.zeros_like(own), where=own > 0.0)

    @cached_property
    def _schur(self) -> Floats:
        """The scaled Schur complement of the body (b, b)."""
        b = len(self.body)
        body = self.body * self._scale[:b, None] * self._scale[:b]
        return body if self.cross is None else body - self._scaled_cross @ self._scaled_cross.T

    @cached_property
    def _scaled_cross(self) -> Floats:
        b = len(self.body)
        assert self.cross is not None
        return self.cross * self._scale[:b, None] * self._scale[b:]

    @cached_property
    def _factor(self) -> Floats | None:
        """The Cholesky factor of the Schur complement; None where a pivot cannot be trusted."""
        from scipy.linalg import LinAlgError, cholesky

        if (self._scale == 0.0).any():
            return None
        if self.root is not None:
            triangle = np.asarray(np.linalg.qr(self.root * self._scale, mode="r"))
            least = np.abs(np.diagonal(triangle)).min(initial=np.inf)
            return None if len(triangle) < self.size or least < LEAST_ROOT else np.asarray(triangle.T)
        try:
            factor = cholesky(self._schur, lower=True, check_finite=False)
        except LinAlgError:
            return None
        pivots = np.diagonal(factor) ** 2
        return None if len(pivots) and float(pivots.min()) < LEAST_PIVOT else np.asarray(factor)

    @property
    def definite(self) -> bool:
        """Whether the Cholesky factor can be trusted."""
        return self._factor is not None

    def solve(self, right: Floats) -> Floats:
        """The solution (k,) by Cholesky where it can be trusted, else the shortest one by eigenvalues."""
        if self._factor is None:
            return self._shortest(right)
        from scipy.linalg import cho_solve

        b = len(self.body)
        scaled = right * self._scale
        if self.cross is None:
            return np.asarray(cho_solve((self._factor, True), scaled, check_finite=False)) * self._scale
        top = cho_solve((self._factor, True), scaled[:b] - self._scaled_cross @ scaled[b:], check_finite=False)
        return np.concatenate((top, scaled[b:] - self._scaled_cross.T @ top)) * self._scale

    @cached_property
    def _eigen(self) -> tuple[Floats, Floats]:
        """Eigenvalues and vectors of the whole scaled matrix."""
        scaled = self.dense() * self._scale[:, None] * self._scale
        if not np.isfinite(scaled).all():
            raise EstimateError(
                "The information about the coefficients is too large for double precision: the dispersion is nearly 0, "
                "or numbers of the data are too large. Give the data in other units, or leave columns out."
            )
        values, vectors = np.linalg.eigh(scaled)
        return values, vectors

    def _shortest(self, right: Floats) -> Floats:
        values, vectors = self._eigen
        least = self._least(values)
        along = vectors.T @ (right * self._scale)
        return vectors @ np.divide(along, values, out=np.zeros_like(along), where=values > least) * self._scale

    def flat(self) -> Floats:
        """Directions (k, f) along which the matrix is 0; of a definite one there are none.

        Those of the scaled matrix are orthonormal; here each is in units of the coefficients.
        """
        if self._factor is not None:
            return np.zeros((self.size, 0))
        values, vectors = self._eigen
        return vectors[:, values <= self._least(values)] * np.where(self._scale > 0.0, self._scale, 1.0)[:, None]

    @staticmethod
    def _least(values: Floats) -> float:
        """The eigenvalue up to which they are rounding."""
        return len(values) * float(np.finfo(np.float64).eps) * float(np.abs(values).max(initial=0.0))

    # -- the inverse -------------------------------------------------------------------------------------------------

    def inverse(self) -> Floats:
        """The inverse (k, k), or the pseudo-inverse of the scaled matrix, scaled back."""
        if self._factor is None:
            values, vectors = self._eigen
            least = self._least(values)
            shares = np.divide(1.0, values, out=np.zeros_like(values), where=values > least)
            return self._unscaled((vectors * shares) @ vectors.T)
        inner = self._inverse_schur
        if self.cross is not None:
            side = -self._scaled_cross.T @ inner
            low = np.eye(len(side)) - side @ self._scaled_cross
            inner = np.block([[inner, side.T], [side, low]])
        return self._unscaled(inner)

    def _unscaled(self, inverse: Floats) -> Floats:
        """The inverse of the matrix itself from that of the scaled one; infinite where the matrix is nearly 0."""
        with np.errstate(over="ignore"):
            return np.asarray(inverse * self._scale[:, None] * self._scale)

    @cached_property
    def _inverse_schur(self) -> Floats:
        from scipy.linalg import cho_solve

        assert self._factor is not None
        return np.asarray(cho_solve((self._factor, True), np.eye(len(self._factor)), check_finite=False))

    def inverse_diagonal(self) -> Floats:
        """The diagonal of the inverse (k,), without the whole inverse."""
        if self._factor is None:
            return np.diagonal(self.inverse()).copy()
        own = np.diagonal(self._inverse_schur)
        if self.cross is not None:
            low = 1.0 + np.einsum("bk,bk->k", self._scaled_cross, self._inverse_schur @ self._scaled_cross)
            own = np.concatenate((own, low))
        with np.errstate(over="ignore"):
            return np.asarray(own * self._scale * self._scale)

    def log_determinant(self) -> float:
        """Log of the determinant; -inf where it is 0."""
        if self._factor is None:
            return -np.inf
        return float(2.0 * np.log(np.diagonal(self._factor)).sum() - 2.0 * np.log(self._scale).sum())


class LaterInformation(Information):
    """An information of known size that is made when it is first asked for. Copies and files hold it made."""

    _make: Callable[[], Information] | None
    _made: Information | None
    _size: int

    def __init__(self, make: Callable[[], Information], size: int) -> None:
        """Keep what makes it, and with it all that this needs, until then."""
        set_fields(self, _make=make, _size=size, _made=None)

    @property
    def made(self) -> Information:
        """The information itself."""
        made = self._made
        if made is None:
            make = self._make
            # Another thread may have made it meanwhile.
            made = self._made if make is None else make()
            assert made is not None
            set_fields(self, _made=made)
            set_fields(self, _make=None)
        return made

    @property
    def body(self) -> Floats:
        """See `Information`."""
        return self.made.body

    @property
    def cross(self) -> Floats | None:
        """See `Information`."""
        return self.made.cross

    @property
    def levels(self) -> Floats | None:
        """See `Information`."""
        return self.made.levels

    @property
    def root(self) -> Floats | None:
        """See `Information`."""
        return self.made.root

    @property
    def size(self) -> int:
        """Number of coefficients."""
        return self._size

    def times(self, factor: float) -> Information:
        """Every entry times a factor, when it is made."""
        return LaterInformation(lambda: self.made.times(factor), self.size)

    def lasting(self) -> Information:
        """See `Information`: a copy or a file of a model is worth having without it."""
        try:
            return self.made
        except SufficeError:
            return Information(np.zeros((0, 0)))

    def __reduce__(self) -> tuple[Any, ...]:
        """As the information that it is."""
        lasting = self.lasting()
        return Information, (lasting.body, lasting.cross, lasting.levels, lasting.root)
