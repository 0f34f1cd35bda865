"""Least squares from sums of products, for many sets of rows at once.

Every quantity has a leading axis of k configurations, each a set of rows of (x_1, ..., x_p, y) with a regression of
its own: q = p + 1 weights, intercept first. Work is done in float64 on centred products. Where columns are nearly
dependent, a fit is nearly perfect or means dwarf the spread, so that float64 would lose digits, the same figures are
taken from the raw double-double sums instead (see `orthogonal`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice import double_double
from suffice.array_types import Flags, Floats
from suffice.families.exact_rank import surely_dependent
from suffice.families.orthogonal import ROUNDING, orthogonalised, residuals

EPSILON = float(np.finfo(np.float64).eps)
#: Products of up to this many columns are summed exactly; those of more are good to float64.
EXACT_COLUMNS = 16
#: A direction has no spread when its variance, among p columns of unit variance, is below p times this and the products
#: are good to float64 only.
NO_SPREAD = 32 * EPSILON
#: Variances, in those units, and shares of unexplained squares below which float64 does not do.
DOUBTFUL = 1e-3
#: What `ROUNDING` is to residuals, relative to centred squares, where these were only summed in float64.
ROUGH_ROUNDING = 64 * EPSILON
#: Relative rounding of the double-double sums themselves: less than this of a combination is not known.
SUM_ROUNDING = 2.0**-100
#: A share of the squares of the response that may be called rounding; more of it is not nothing.
NEGLIGIBLE = 1e-8
#: Corrections of a doubtful solution; each divides its error by about 1e16 / condition.
REFINEMENTS = 2
#: Terms of a combination that vanishes, relative to its largest: smaller ones are rounding.
NO_TERM = 1e-12


@dataclass(frozen=True)
class Products:
    """Sums of products of (x_1, ..., x_p, y): `weight` (k,), `mean` (k, q) and centred `scatter` (k, q, q).

    `raw` (2, k, q + 1, q + 1), made by `make_raw` when first needed, holds the products of (1, x, y) about the origin
    as double-double pairs. `exact` says whether they are, to about 2^-100.
    """

    weight: Floats
    mean: Floats
    scatter: Floats
    make_raw: Callable[[], Floats]
    exact: bool = True

    @cached_property
    def raw(self) -> Floats:
        """Products about the origin."""
        return self.make_raw()

    @classmethod
    def of(cls, sums: Any, axes: list[int]) -> Products:
        """From moments of one or of k sets of rows: some columns, the last of which is y."""
        index = np.array(axes, dtype=np.intp)
        one = sums.weight_pair.ndim == 1
        mean, scatter = sums.mean[..., index], sums.scatter[..., index[:, None], index]
        weight = sums.weight_pair[0]
        if one:
            weight, mean, scatter = weight[None], mean[None], scatter[None]
        if not weight.all():  # No rows have no mean.
            some = weight > 0
            mean, scatter = np.where(some[:, None], mean, 0.0), np.where(some[:, None, None], scatter, 0.0)

        def make_raw() -> Floats:
            total, cross = sums.total_pair[..., index], sums.cross_pair[..., index[:, None], index]
            raw = bordered(sums.weight_pair, total, cross)
            return raw[:, None] if one else raw

        return cls(weight, mean, scatter, make_raw, _are_exact(sums))

    @classmethod
    def through_origin(cls, sums: Any, axes: list[int]) -> Products:
        """As `of` one set of rows, for a regression without an intercept.

        Rows and their negatives, each at half the weight, have the same products and means of 0: their intercept is 0.
        """
        index = np.array(axes, dtype=np.intp)
        weight, total = sums.weight_pair[:, None], np.zeros((2, 1, len(axes)))
        cross = sums.cross_pair[:, None, index[:, None], index]
        return cls(
            weight[0], total[0], double_double.rounded(cross), lambda: bordered(weight, total, cross), _are_exact(sums)
        )

    @classmethod
    def of_each(cls, sums: Any, axes: NDArray[np.intp]) -> Products:
        """From moments of one set of rows: one configuration for each choice of columns (k, q)."""
        rows, columns = axes[:, :, None], axes[:, None, :]

        def make_raw() -> Floats:
            weight = np.broadcast_to(sums.weight_pair[:, None], (2, len(axes)))
            return bordered(weight, sums.total_pair[:, axes], sums.cross_pair[:, rows, columns])

        weight = np.full(len(axes), sums.weight)
        return cls(weight, sums.mean[axes], sums.scatter[rows, columns], make_raw, _are_exact(sums))

    def __getitem__(self, chosen: Any) -> Products:
        """Some of the configurations."""
        parts = (self.weight[chosen], self.mean[chosen], self.scatter[chosen])
        return Products(*parts, lambda: self.raw[:, chosen], self.exact)

    @property
    def root(self) -> Floats:
        """Upper triangular R (k, q, q) with R'R the products of (1, x), from the raw sums; no column may depend."""
        return orthogonalised(self.raw).root

    @classmethod
    def none(cls, q: int) -> Products:
        """One configuration without rows."""
        return cls(np.zeros(1), np.zeros((1, q)), np.zeros((1, q, q)), lambda: np.zeros((2, 1, q + 1, q + 1)))

    def pooled(self) -> Products:
        """All rows together, as one configuration."""
        if not len(self.weight):
            return Products.none(self.mean.shape[1])
        parts = np.moveaxis(self.raw, 1, -1)
        raw = double_double.sum_pairs(parts[0], parts[1])
        weight, total, cross = raw[:, 0, 0], raw[:, 0, 1:], raw[:, 1:, 1:]
        mean, scatter = double_double.divide(total, weight[:, None])[0], double_double.centred(weight, total, cross)
        return Products(weight[:1], mean[None], scatter[None], lambda: raw[:, None], self.exact)

    def with_rows(self, weight: float, mean: Floats, scatter: Floats) -> Products:
        """With more rows in every configuration, given by weight, mean (q,) and centred products (q, q)."""
        total = self.weight + weight
        # No rows and no pseudo-rows: the mean is of no consequence.
        share = weight / np.where(total > 0, total, 1.0)
        away = self.mean - mean
        between = (self.weight * share)[:, None, None] * away[:, :, None] * away[:, None, :]

        def make_raw() -> Floats:
            sums = double_double.scale(double_double.pair(mean), weight)
            more = double_double.add(double_double.outer(sums, double_double.pair(mean)), double_double.pair(scatter))
            return double_double.add(self.raw, bordered(double_double.pair(weight), sums, more)[:, None])

        moved = self.mean - share[:, None] * away
        return Products(total, moved, self.scatter + scatter + between, make_raw, self.exact)

    # -- at given weights --------------------------------------------------------------------------------------------

    def squares(self, weights: Floats) -> Floats:
        """Sum of (y - w . (1, x))^2 (k,)."""
        c, offset, size = self._residual(weights)
        terms = c[:, :, None] * c[:, None, :] * self.scatter
        total = terms.sum(axis=(1, 2)) + self.weight * offset**2
        bound = np.abs(terms).sum(axis=(1, 2)) + self.weight * np.abs(offset) * size
        careful = np.flatnonzero(~(total > DOUBTFUL * bound))
        if len(careful):
            total[careful] = residuals(self.raw[:, careful], weights[careful])[1]
        return np.asarray(total)

    def slopes(self, weights: Floats) -> Floats:
        """Sum of (y - w . (1, x)) (1, x - mean) (k, q): minus half the slope of the sum of squares, x centred."""
        c, offset, size = self._residual(weights)
        inner = np.einsum("kij,kj->ki", self.scatter[:, :-1], c)
        slopes = np.concatenate([(self.weight * offset)[:, None], inner], axis=1)
        spread = np.sqrt(self.scatter[:, -1, -1] / self.weight)
        careful = np.flatnonzero(~(EPSILON * size < 1e-12 * spread))
        if len(careful):
            slopes[careful] = self._exact_slopes(weights[careful], careful)
        return slopes

    def _exact_slopes(self, weights: Floats, chosen: Any) -> Floats:
        slopes, _ = residuals(self.raw[:, chosen], weights)
        centre = double_double.pair(self.mean[chosen, :-1])
        inner = double_double.subtract(slopes[:, :, 1:], double_double.multiply(centre, slopes[:, :, :1]))
        return double_double.rounded(np.concatenate([slopes[:, :, :1], inner], axis=2))

    def _residual(self, weights: Floats) -> tuple[Floats, Floats, Floats]:
        """Factors (k, q) of (x, y) in the residual, its mean (k,), and the size of the terms of that mean (k,)."""
        c = np.concatenate([-weights[:, 1:], np.ones((len(weights), 1))], axis=1)
        terms = c * self.mean
        size = np.abs(terms).sum(axis=1) + np.abs(weights[:, 0])
        return c, terms.sum(axis=1) - weights[:, 0], size

    def perfect(self, weights: Floats, squares: Floats) -> Flags:
        """Where sums of squares (k,) at some weights are no more than rounding: every row is explained.

        What is no more than rounding of large terms may be most of the response where these cancel. It is nothing only
        where that rounding is little beside the response, where the response does not vary either, or where rational
        arithmetic leaves nothing.
        """
        terms = self._terms(weights)
        small = squares <= self._rounding * terms
        own = np.diagonal(self.scatter, axis1=1, axis2=2)[:, -1]
        if not self.exact or not small.any():
            return small
        constant = own <= SUM_ROUNDING * self.weight * self.mean[:, -1] ** 2
        sure = small & ((ROUNDING * terms <= NEGLIGIBLE * own) | constant)
        for k in np.flatnonzero(small & ~sure):
            sure[k] = surely_dependent(self.raw[:, k : k + 1])[0, -1]
        return sure

    def lost(self, weights: Floats, squares: Floats) -> Flags:
        """Where (k,) sums of squares are less than the rounding of what they come from, and yet not nothing."""
        if not self.exact:
            return np.zeros(len(squares), dtype=bool)
        return (squares <= SUM_ROUNDING * self._terms(weights)) & ~self.perfect(weights, squares)

    @property
    def _rounding(self) -> float:
        return ROUNDING if self.exact else ROUGH_ROUNDING * self.mean.shape[1]

    def _terms(self, weights: Floats) -> Floats:
        """Sums of the squares (k,) of the terms of the residual; of centred ones where sums are good to float64."""
        c = np.concatenate([weights[:, 1:], np.ones((len(weights), 1))], axis=1)
        terms = (c**2 * np.diagonal(self.scatter, axis1=1, axis2=2)).sum(axis=1)
        if not self.exact:
            return np.asarray(terms)
        return np.asarray(terms + self.weight * (weights[:, 0] ** 2 + ((c * self.mean) ** 2).sum(axis=1)))


def _are_exact(sums: Any) -> bool:
    """Whether moments were summed in double-double: not of many columns, and not those that EM expects."""
    return sums.mean.shape[-1] <= EXACT_COLUMNS and not getattr(sums, "rough", False)


@dataclass(frozen=True)
class LeastSquares:
    """Solutions for k configurations.

    `weights` (k, q); `squares` (k,), the least sum of squares; `spread` (k, q, q), the (pseudo-)inverse of the products
    of (1, x), with inf on the diagonal for weights that the rows do not determine; `log_determinant` (k,) of those
    products; `determined` (k, q); `sure` (k,), whether columns that were left out depend on others beyond doubt.
    """

    weights: Floats
    squares: Floats
    spread: Floats
    log_determinant: Floats
    determined: Flags
    sure: Flags

    def __getitem__(self, chosen: Any) -> LeastSquares:
        """Some of the configurations."""
        return LeastSquares(*(part[chosen] for part in vars(self).values()))


def least_squares(products: Products, *, careful: bool = False) -> LeastSquares:
    """The weights that minimise the sum of squares; of least norm, intercept included, where many do.

    Every configuration has some weight. With the intercept eliminated, the rest solves S_xx w = S_xy; the eigenvalues
    of S_xx, in units of the columns, say how well. Where float64 does not do, and the raw sums have more digits, these
    give the solution; `careful` asks for it everywhere.
    """
    mean, scatter = products.mean, products.scatter
    p = mean.shape[1] - 1
    units = np.sqrt(np.diagonal(scatter, axis1=1, axis2=2)[:, :p])
    moving = units > 0
    if not moving.all():
        units = np.where(moving, units, 1.0)
        scatter = scatter * _outer(np.append(moving, np.ones((len(moving), 1), dtype=bool), axis=1))
    both = _outer(units)
    values, vectors = np.linalg.eigh(scatter[:, :p, :p] / both)
    spread_out = values > NO_SPREAD * p
    scale = values if spread_out.all() else np.where(spread_out, values, np.inf)
    inverse = (vectors / scale[:, None, :]) @ vectors.mT / both
    slopes = (inverse @ scatter[:, :p, p:])[..., 0]
    weights = np.concatenate([mean[:, p:] - (mean[:, :p] * slopes).sum(axis=1, keepdims=True), slopes], axis=1)
    unexplained = scatter[:, p, p] - (slopes * scatter[:, :p, p]).sum(axis=1)
    doubtful = (values.min(axis=1, initial=1.0) <= DOUBTFUL) | ~(unexplained > DOUBTFUL * scatter[:, p, p])
    doubtful |= careful
    determined, sure = np.ones(weights.shape, dtype=bool), np.ones(len(weights), dtype=bool)
    logs = np.log(products.weight) + np.log(np.where(spread_out, values, 1.0) * units**2).sum(axis=1)
    spread = _spread(products.weight, mean[:, :p], inverse)
    if doubtful.any() and products.exact:
        parts = (weights, spread, logs, determined, sure)
        for part, better in zip(parts, _orthogonal(products[doubtful].raw), strict=True):
            part[doubtful] = better
    elif doubtful.any():
        free = _flat_directions(vectors[doubtful], ~spread_out[doubtful], mean[doubtful, :p], units[doubtful])
        weights[doubtful], determined[doubtful] = _least_norm(weights[doubtful], *free)
        weights[doubtful] = _refined(products[doubtful], weights[doubtful], inverse[doubtful])
        sure = spread_out.all(axis=1)
    if not determined.all():
        configuration, weight = np.nonzero(~determined)
        spread[configuration, weight, weight] = np.inf
    return LeastSquares(weights, products.squares(weights), spread, logs, determined, sure)


def _orthogonal(raw: Floats) -> tuple[Floats, Floats, Floats, Flags, Flags]:
    """All but the squares of `LeastSquares`, from raw products (2, k, q + 1, q + 1) in pairs."""
    basis = orthogonalised(raw)
    free, squares = basis.dependent[:, :-1], double_double.rounded(basis.squares)[:, :-1]
    combinations = double_double.rounded(basis.combinations)[:, :-1, :-1]
    # The combination of a column that depends on others vanishes: it may be added to any solution.
    terms = np.abs(combinations) * np.sqrt(np.diagonal(raw[0], axis1=1, axis2=2))[:, :-1, None]
    large = terms > NO_TERM * terms.max(axis=1, keepdims=True)
    directions = np.where(large | np.eye(len(free[0]), dtype=bool), combinations, 0.0)
    weights, determined = _least_norm(basis.weights, directions, free)
    if free.any():  # A short solution may lie far from the first one, and is found only to the rounding of that.
        for _ in range(REFINEMENTS):
            weights = weights + basis.solve(residuals(raw, weights)[0])
    sure, some = np.ones(len(free), dtype=bool), np.flatnonzero(free.any(axis=1))
    sure[some] = (~free[some] | surely_dependent(raw[:, some, :-1, :-1])).all(axis=1)
    return weights, basis.inverse, np.log(np.where(free, 1.0, squares)).sum(axis=1), determined, sure


def _refined(products: Products, weights: Floats, inverse: Floats) -> Floats:
    """Iterative refinement: the residuals in double-double, their solution in float64."""
    mean = products.mean[:, :-1]
    for _ in range(REFINEMENTS):
        slopes = products._exact_slopes(weights, slice(None))
        change = np.einsum("kij,kj->ki", inverse, slopes[:, 1:])
        intercept = slopes[:, 0] / products.weight - (mean * change).sum(axis=1)
        weights = weights + np.concatenate([intercept[:, None], change], axis=1)
    return weights


def _spread(weight: Floats, mean: Floats, inverse: Floats) -> Floats:
    """Inverse of the products of (1, x), by blocks."""
    k, p = mean.shape
    spread = np.empty((k, p + 1, p + 1))
    side = (inverse @ mean[:, :, None])[..., 0]
    spread[:, 0, 0] = 1 / weight + (side * mean).sum(axis=1)
    spread[:, 0, 1:] = spread[:, 1:, 0] = -side
    spread[:, 1:, 1:] = inverse
    return spread


def _flat_directions(vectors: Floats, flat: Flags, mean: Floats, units: Floats) -> tuple[Floats, Flags]:
    """Directions (k, q, p) of the weights, and which of them (k, p) change nothing.

    They are slopes along `vectors` (k, p, p) of columns of unit variance, with the intercept that keeps the line
    through the means. What is small in them is rounding: dependent columns have dependent means.
    """
    slopes = np.where(np.abs(vectors) > 1e-6, vectors, 0.0) / units[:, :, None]
    terms = mean[:, :, None] * slopes
    intercept = -terms.sum(axis=1)
    intercept = np.where(np.abs(intercept) > 1e-9 * np.abs(terms).sum(axis=1), intercept, 0.0)
    return np.concatenate([intercept[:, None, :], slopes], axis=1), flat


def _least_norm(weights: Floats, directions: Floats, free: Flags) -> tuple[Floats, Flags]:
    """The points of least norm (k, q) among the solutions, and which weights (k, q) all solutions agree on.

    Solutions differ by those of the `directions` (k, q, r) that are `free` (k, r).
    """
    weights, determined = weights.copy(), np.ones(weights.shape, dtype=bool)
    number = free.sum(axis=1)
    for r in set(number.tolist()) - {0}:
        rows = np.flatnonzero(number == r)
        chosen = np.argsort(~free[rows], axis=1, kind="stable")[:, None, :r]
        some = np.take_along_axis(directions[rows], chosen, axis=2)
        basis, _ = np.linalg.qr(some / np.linalg.norm(some, axis=1, keepdims=True))
        weights[rows] -= np.einsum("kir,kjr,kj->ki", basis, basis, weights[rows])
        determined[rows] = (some == 0).all(axis=2)
    return weights, determined


def _outer(vectors: NDArray[Any]) -> NDArray[Any]:
    """Products (k, d, d) of the entries of vectors (k, d)."""
    return np.asarray(vectors[:, :, None] * vectors[:, None, :])


def bordered(weight: Floats, total: Floats, cross: Floats) -> Floats:
    """Products (2, ..., d + 1, d + 1) of a column of ones and d columns."""
    d = total.shape[-1]
    raw = np.empty((*total.shape[:-1], d + 1, d + 1))
    raw[..., 0, 0] = weight
    raw[..., 0, 1:] = raw[..., 1:, 0] = total
    raw[..., 1:, 1:] = cross
    return raw
