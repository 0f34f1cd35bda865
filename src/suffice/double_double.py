"""Double-double arithmetic on arrays: sums that do not depend on order, batches or threads.

A *pair* is an array whose leading axis has length 2: `pair[0]` is the rounded value and `pair[1]` what rounding took
away, so that `pair[0] + pair[1]` carries about 106 significant bits (2^-106 is 1.2e-32). Raw sums kept as pairs merge,
subtract and centre without visible rounding: with a relative error u = 2^-106 in the raw sum of squares, the variance
keeps the relative error u (mean / sd)^2, which is 1e-14 at mean / sd = 1e9.

The building blocks are error-free: `two_sum` and `two_product` return the rounded result and its exact error
(Knuth 1969; Dekker 1971).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats: TypeAlias = NDArray[np.float64]

_SPLITTER = 2.0**27 + 1.0  # Dekker's constant: cuts 53 bits into two halves of at most 26.
_HUGE = 2.0**990  # Above this the splitter would overflow.
_SHIFT = 2.0**-60

SUM_BLOCK = 1 << 15
"""Columns are summed in blocks of this many values, so that the temporaries stay in cache."""

NOISE = 2.0**-96
"""Relative size below which a centred sum of squares is rounding noise of its raw double-double sums."""

RESIDUE = 1e-12
"""Relative size below which a difference of weights or of variances counts as zero."""

LEAST_SHARE = 1e-9
"""Relative size below which a sum or a direction of the scatter that a subtraction should leave empty counts as zero.
"""


def two_sum(a: Floats | np.float64, b: Floats | np.float64) -> tuple[Any, Any]:
    """Return (s, e) with s = fl(a + b) and s + e = a + b exactly; a and b broadcast."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _fast_two_sum(a: Floats, b: Floats) -> tuple[Any, Any]:
    """`two_sum` for |a| >= |b| or a = 0."""
    total = a + b
    return total, b - (total - a)


def _split(a: Floats) -> tuple[Floats, Floats]:
    """Cut a = high + low into two numbers of at most 26 bits."""
    huge = np.abs(a) > _HUGE
    if huge.any():
        high, low = _halves(np.where(huge, a * _SHIFT, a))
        back = np.where(huge, 1.0 / _SHIFT, 1.0)
        return high * back, low * back
    return _halves(a)


def _halves(a: Floats) -> tuple[Floats, Floats]:
    wide = _SPLITTER * a
    high = wide - (wide - a)
    return high, a - high


def two_product(a: ArrayLike, b: ArrayLike) -> tuple[Floats, Floats]:
    """Return (p, e) with p = fl(a b) and p + e = a b; exact unless the error falls below 2^-1074.

    Where p is not finite there is no error to speak of, and e is 0.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return _two_product(np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64))


def _two_product(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """`two_product` where warnings are silent already: setting that up takes as long as ten products."""
    product = np.asarray(a * b)
    a_high, a_low = _split(a)
    b_high, b_low = _split(b)
    error = np.asarray(((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low)
    finite = np.isfinite(product)
    return product, error if finite.all() else np.where(finite, error, 0.0)


def pair(values: ArrayLike) -> Floats:
    """Return values (...) as a pair (2, ...) with nothing in its low part."""
    high = np.asarray(values, dtype=np.float64)
    return np.stack((high, np.zeros_like(high)))


def rounded(x: Floats) -> Floats:
    """Return the float64 nearest to a pair (2, ...)."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(np.isfinite(x[0]), x[0] + x[1], x[0]))


def _normal(high: Floats, low: Floats) -> Floats:
    """A value and its correction, |low| << |high|, as a pair."""
    total = high + low
    both = np.empty((2, *np.shape(total)))
    both[0] = total
    both[1] = low - (total - high)
    return both


def add(x: Floats, y: Floats) -> Floats:
    """Return the pair x + y, with a relative error of at most 2^-104 also under cancellation."""
    with np.errstate(over="ignore", invalid="ignore"):
        return _add(x, y)


def _add(x: Floats, y: Floats) -> Floats:
    high, error = two_sum(x[0], y[0])
    low, rest = two_sum(x[1], y[1])
    high, error = _fast_two_sum(high, error + low)
    return _normal(high, error + rest)


def subtract(x: Floats, y: Floats) -> Floats:
    """Return the pair x - y."""
    return add(x, -y)


def scale(x: Floats, factor: ArrayLike) -> Floats:
    """Return the pair x times float64 numbers."""
    with np.errstate(over="ignore", invalid="ignore"):
        return _scale(x, np.asarray(factor, dtype=np.float64))


def _scale(x: Floats, factor: Floats) -> Floats:
    high, error = _two_product(np.asarray(x[0]), factor)
    return _normal(high, error + x[1] * factor)


def multiply(x: Floats, y: Floats) -> Floats:
    """Return the pair x y; the arrays behind the leading axis broadcast."""
    with np.errstate(over="ignore", invalid="ignore"):
        high, error = _two_product(np.asarray(x[0]), np.asarray(y[0]))
        return _normal(high, error + (x[0] * y[1] + x[1] * y[0]))


def divide(x: Floats, y: Floats) -> Floats:
    """Return the pair x / y by long division with three float64 digits."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        first = np.asarray(x[0] / y[0])
        rest = _add(x, -_scale(y, first))
        second = np.asarray(rest[0] / y[0])
        rest = _add(rest, -_scale(y, second))
        high, low = _fast_two_sum(first, second)
        return _normal(high, low + rest[0] / y[0])


def outer(x: Floats, y: Floats) -> Floats:
    """Return the pair (2, ..., d, e) of products of the pairs x (2, ..., d) and y (2, ..., e)."""
    return multiply(x[..., :, None], y[..., None, :])


def sum_pairs(high: Floats, low: Floats) -> Floats:
    """Return the pair (2, ...) of sums of high + low (..., n) over the last axis, by a tree of `two_sum`."""
    while high.shape[-1] > 1:
        half = high.shape[-1] // 2
        odd = high.shape[-1] % 2
        total, error = two_sum(high[..., :half], high[..., half : 2 * half])
        error += low[..., :half] + low[..., half : 2 * half]
        if odd:
            total = np.concatenate((total, high[..., -1:]), axis=-1)
            error = np.concatenate((error, low[..., -1:]), axis=-1)
        high, low = total, error
    return np.stack(two_sum(high[..., 0], low[..., 0]))


def sum_columns(values: ArrayLike, weights: ArrayLike | None = None) -> Floats:
    """Return the pair (2, d) of sums over the rows of values (d, n), each times weights (n,) if given."""
    values = np.asarray(values, dtype=np.float64)
    total = np.zeros((2, values.shape[0]))
    for start in range(0, values.shape[1], SUM_BLOCK):
        block = values[:, start : start + SUM_BLOCK]
        with np.errstate(over="ignore", invalid="ignore"):
            if weights is None:
                part = sum_pairs(block, np.zeros_like(block))
            else:
                part = sum_pairs(*two_product(block, np.asarray(weights)[start : start + SUM_BLOCK]))
        total = add(total, part)
    return total


def exact_total(values: ArrayLike) -> float:
    """The sum of all values, correctly rounded.

    Whole numbers whose sizes add up to at most 2^53 have the sum of float64, in any order.
    """
    numbers = np.asarray(values, dtype=np.float64).ravel()
    if (numbers == np.rint(numbers)).all() and float(np.abs(numbers).sum()) <= 2.0**53:
        return float(numbers.sum())
    return math.fsum(numbers.tolist())


def centred(weight: Floats, total: Floats, cross: Floats) -> Floats:
    """Turn raw sums about 0 into centred cross-products (..., d, d), rounded to float64 last.

    weight (2, ...), total (2, ..., d) and cross (2, ..., d, d) are pairs: sum w, sum w x and sum w x x'. The result is
    cross - total total' / weight = sum w (x - m)(x - m)' with m = total / weight. Entries within the rounding noise of
    the raw sums become exactly 0, so that a constant column has variance 0.
    """
    # Sums that are 0, as those of a covariance about a known mean, take nothing away.
    about_mean = subtract(cross, outer(total, divide(total, weight[..., None]))) if total.any() else cross
    scatter = rounded(about_mean)
    size = np.sqrt(np.abs(np.diagonal(cross[0], axis1=-2, axis2=-1)))
    noise = np.abs(scatter) <= NOISE * size[..., :, None] * size[..., None, :]
    scatter = np.where(noise, 0.0, scatter)
    return np.asarray(scatter / 2 + scatter.swapaxes(-1, -2) / 2)


def scatter_is_left(before: Sequence[Floats], left: Sequence[Floats]) -> bool:
    """Whether moments after a subtraction have a scatter without negative directions, as those of rows have.

    Both are (weight, total, cross) as in `centred`, and have some weight everywhere. Directions are those of the
    correlations, so that the answer does not depend on units.
    """
    scatter = centred(left[0], left[1], left[2])
    was, now = (np.diagonal(s, axis1=-2, axis2=-1) for s in (centred(before[0], before[1], before[2]), scatter))
    squares = np.abs(np.diagonal(before[2][0], axis1=-2, axis2=-1))
    slack = RESIDUE * np.maximum(was, 0.0) + RESIDUE**2 * squares
    unit = np.sqrt(np.maximum(now, 0.0) + slack)
    unit = np.where(unit > 0, unit, 1.0)
    directions = np.linalg.eigvalsh(scatter / unit[..., :, None] / unit[..., None, :])
    return bool((now >= -slack).all() and (directions >= -LEAST_SHARE).all())


def vanished(before: Sequence[Floats], left: Sequence[Floats]) -> bool:
    """Whether all sums are gone with the weight; both are (weight, total, cross) as in `centred`."""
    size = np.sqrt(np.abs(np.diagonal(before[2][0], axis1=-2, axis2=-1)))
    totals = np.sqrt(before[0][0])[..., None] * size
    crosses = size[..., :, None] * size[..., None, :]
    gone = ((np.abs(left[1][0]) <= LEAST_SHARE * totals).all(), (np.abs(left[2][0]) <= LEAST_SHARE * crosses).all())
    return all(map(bool, gone))
