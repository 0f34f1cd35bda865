"""Raw sums and cross-products of real columns, as double-double pairs about the origin (see `suffice.double_double`).

Three ways, one contract:

* small work, NumPy: every column is cut into slices of so few bits that a matrix product of slices is exact in float64;
* many rows and up to `FEW` columns, compiled: dot products that keep their rounding errors, checked by the first way
  where a column is constant or nearly so;
* many rows and more columns, BLAS: cross-products of columns shifted to about zero mean, in float64. They are good to
  float64 of the centred cross-products, and moved to the origin as pairs, without further loss.

The first two are exact to 2^-95 or better, so neither the order of rows nor batches nor threads can be seen in the
results once they are rounded. In the third they can, in the last digits of float64.

A value that is not finite makes its sums not finite, so finite sums prove finite columns.
"""

from __future__ import annotations

import math
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.double_double import add, centred, multiply, outer, pair, sum_columns, sum_pairs, two_product, two_sum
from suffice.errors import DataError
from suffice.kernels.arrays import frozen
from suffice.kernels.choice import use_compiled
from suffice.kernels.threads import blas_threads, one_blas_thread, run

Sums = tuple[Floats, Floats, Floats]

FEW = 16
"""Columns up to which the compiled dot products are used."""

_MANY = 4_000_000  # rows * columns^2 from which more than FEW columns go to BLAS.
_SLICES = 4
_CELLS = 1 << 18  # Values of a block of the NumPy path.
_CHUNK = 2048  # Compiled path: blocks of dot products that a thread takes at a time.
_BLAS_ROWS = 4096
_BLAS_BLOCKS = 8
_SECONDS = 2e-8  # NumPy path: a value cut into slices.
_PRODUCT_SECONDS = 5e-10  # NumPy path: a value of one column times one of another, all slices.
_SUM_SECONDS = 7e-9  # NumPy path: a value summed.
_DEPENDENT = 1e-12  # Share of a column that the others leave, below which float64 does not tell it from nothing.


def moment_sums(columns: Floats, weights: Floats | None = None, *, threads: int = 1) -> Sums:
    """Return sum w (2,), sum w x (2, d) and sum w x x' (2, d, d) over the rows of columns (d, n), as pairs.

    weights (n,); None means one for each row.
    """
    columns, weights = _checked(columns, weights)
    d, rows = columns.shape
    if rows == 1 and weights is None:  # Products are pairs already.
        row = columns[:, 0]
        return pair(1.0), pair(row), np.stack(two_product(row[:, None], row))
    if d > FEW and rows * d * d >= _MANY:
        return _by_blas(columns, weights, threads)
    seconds = rows * (d + 1) * (_SECONDS + (d + 1) * _PRODUCT_SECONDS) * (1 if weights is None else 3)
    if use_compiled("moments" if weights is None else "weighted moments", seconds, exact=weights is None):
        return _compiled(columns, weights, threads)
    return _by_slices(columns, weights)


def column_sums(columns: Floats, weights: Floats | None = None, *, threads: int = 1) -> Floats:
    """Return sum w x over the rows of columns (d, n) as a pair (2, d)."""
    columns, weights = _checked(columns, weights)
    d, rows = columns.shape
    if not use_compiled("sums" if weights is None else "weighted sums", _SUM_SECONDS * rows * d):
        return sum_columns(columns, weights)
    from suffice.kernels.compiled.moments import BLOCK, LANES, add_sums

    step = BLOCK * max(1, _CHUNK // max(1, d))
    threads = min(threads, max(1, math.ceil(rows / step)))
    sums = np.zeros((threads, d, 2, LANES))
    row_of_weights = None if weights is None else weights[None]

    def task(start: int, worker: int) -> None:
        add_sums(columns, row_of_weights, start, min(start + step, rows), sums[worker])

    run(task, range(0, rows, step), threads)
    return _from_lanes(sums)


def _checked(columns: Floats, weights: Floats | None) -> tuple[Floats, Floats | None]:
    columns = frozen(columns, np.float64)
    if columns.ndim != 2:
        raise DataError(f"Columns have shape {columns.shape}; expected (d, n).")
    if weights is not None:
        weights = frozen(weights, np.float64)
        if weights.shape != columns.shape[1:]:
            raise DataError(f"Weights have shape {weights.shape} for {columns.shape[1]} rows; give one weight a row.")
    return columns, weights


def _parted(gram: Floats) -> Sums:
    """Part the pair (2, d + 1, d + 1) of cross-products with a leading column of ones; its lower half is read."""
    gram = _mirrored(gram)
    return gram[:, 0, 0].copy(), gram[:, 0, 1:].copy(), gram[:, 1:, 1:].copy()


def _mirrored(cross: Floats) -> Floats:
    """Make a pair of matrices symmetric by its lower half."""
    lower = np.tril(np.ones(cross.shape[1:], dtype=bool))
    return np.where(lower, cross, cross.transpose(0, 2, 1))


# NumPy path: exact slices --------------------------------------------------------------------------------------------


def _by_slices(columns: Floats, weights: Floats | None) -> Sums:
    """Cross-products of the columns and a column of ones in front, by exact products of slices.

    With blocks of 2^r rows and slices of b bits, 2 b + r <= 53, every partial sum of a product of two slices is a whole
    number of at most 53 bits of its unit, hence exact in any order. The last slice is what the others leave over, below
    2^(-3 b) of the largest value, and is not cut.
    """
    d, rows = columns.shape
    block = 1 << max(9, min(15, int(math.log2(_CELLS / (d + 1)))))
    bits = (53 - int(math.log2(block))) // 2
    high = np.zeros((_SLICES, d + 1, _SLICES, d + 1))
    low = np.zeros_like(high)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"), one_blas_thread():
        right_exponents = _exponents(columns)
        left_exponents = right_exponents if weights is None else _exponents(columns, weights)
        for start in range(0, rows, block):
            x = np.vstack((np.ones((1, min(block, rows - start))), columns[:, start : start + block]))
            right = _slices(x, np.zeros_like(x), right_exponents, bits)
            left = right
            if weights is not None:
                left = _slices(*two_product(x, weights[start : start + block]), left_exponents, bits)
            product = left.reshape(-1, x.shape[1]) @ right.reshape(-1, x.shape[1]).T
            view = slice(len(left)), slice(None), slice(len(right)), slice(None)
            total, error = two_sum(high[view], product.reshape(len(left), d + 1, len(right), d + 1))
            high[view] = total
            low[view] += error
        gram = sum_pairs(*(part.transpose(1, 3, 0, 2).reshape(d + 1, d + 1, -1) for part in (high, low)))
        return _parted(np.ldexp(gram, left_exponents[:, None] + right_exponents))


def _exponents(columns: Floats, weights: Floats | None = None) -> NDArray[np.intc]:
    """Return e (d + 1,) with |x| < 2^e for a column of ones and the columns, each times the weights."""
    weight = [1.0] if weights is None else [np.abs(weights).max(initial=0.0)]
    products = columns if weights is None else (column * weights for column in columns)
    largest = [max(column.max(initial=0.0), -column.min(initial=0.0)) for column in products]
    return np.frexp([*weight, *largest])[1]


def _slices(high: Floats, low: Floats, exponents: NDArray[np.intc], bits: int) -> Floats:
    """Cut high + low (d, n), scaled to (-1, 1), into slices (s, d, n); trailing slices of zeros are left out."""
    rest = np.ldexp(high, -exponents[:, None])
    cut = []
    for index in range(1, _SLICES):
        grid = 1.5 * 2.0 ** (52 - index * bits)  # Adding it rounds to multiples of 2^(-index bits).
        cut.append((rest + grid) - grid)
        rest = rest - cut[-1]
    rest = rest + np.ldexp(low, -exponents[:, None])
    cut.append(rest)
    while len(cut) > 1 and not cut[-1].any():
        cut.pop()
    return np.stack(cut)


# Compiled path: dot products with their errors ------------------------------------------------------------------------


def _compiled(columns: Floats, weights: Floats | None, threads: int) -> Sums:
    from suffice.kernels.compiled.moments import BLOCK, LANES, add_moments, add_weighted_moments

    d, rows = columns.shape
    step = BLOCK * max(1, _CHUNK // max(1, d * d))
    threads = min(threads, max(1, math.ceil(rows / step)))
    entries = d * (d + 3) // 2
    lanes = np.zeros((threads, entries + (weights is not None), 2, LANES))

    def task(start: int, worker: int) -> None:
        stop = min(start + step, rows)
        if weights is None:
            add_moments(columns, start, stop, lanes[worker])
        else:
            add_weighted_moments(columns, weights[None], start, stop, lanes[worker])

    run(task, range(0, rows, step), threads)
    totals = _from_lanes(lanes)
    gram = np.zeros((2, d + 1, d + 1))
    lower = np.tril_indices(d + 1)
    gram[:, lower[0][1:], lower[1][1:]] = totals[:, :entries]
    gram[:, 0, 0] = pair(rows) if weights is None else totals[:, entries]
    sums = _parted(gram)
    return _by_slices(columns, weights) if _doubtful(columns, sums) else sums


def _doubtful(columns: Floats, sums: Sums) -> bool:
    """Say whether a column is so nearly constant, or a sum of others, that errors all of one sign could show."""
    with np.errstate(all="ignore"):
        size = np.diagonal(sums[2][0])
        if not (size.size and np.isfinite(size).all()):
            return False
        scatter = centred(*sums)
        spread = np.diagonal(scatter)
        constant = spread == 0.0
        if (columns[constant].min(axis=1, initial=np.inf) < columns[constant].max(axis=1, initial=-np.inf)).any():
            return True
        varied = ~constant
        shares = _left_by_others(scatter[np.ix_(varied, varied)])
        if not ((shares > _DEPENDENT) & (shares * spread[varied] > 2.0**-80 * size[varied])).all():
            return True
        there = size > 0.0  # A regression through the origin sees them from there.
        return not (_left_by_others(sums[2][0][np.ix_(there, there)]) > _DEPENDENT).all()


def _left_by_others(products: Floats) -> Floats:
    """The share of each column's square (d,) that the others do not explain; 0 where that cannot be told."""
    size = np.sqrt(np.diagonal(products))
    try:
        return np.asarray(1.0 / np.diagonal(np.linalg.inv(products / np.outer(size, size))))
    except np.linalg.LinAlgError:
        return np.zeros(len(size))


def _from_lanes(sums: Floats) -> Floats:
    """Add up the pairs of all workers and lanes (workers, entries, 2, lanes); returns (2, entries)."""
    with np.errstate(invalid="ignore"):
        high, low = np.moveaxis(sums, 0, -2).transpose(1, 0, 2, 3).reshape(2, sums.shape[1], len(sums) * sums.shape[-1])
        return sum_pairs(high, low)


# BLAS path: shifted columns -------------------------------------------------------------------------------------------


def _by_blas(columns: Floats, weights: Floats | None, threads: int) -> Sums:
    """Cross-products of y = x - c, c near the mean, moved to the origin: x x' = y y' + c y' + y c' + c c'.

    A column of ones behind y gives the sums in the same matrix product.
    """
    d, rows = columns.shape
    threads = blas_threads(threads)
    shift = _near_mean(columns)[:, None]
    grams = np.zeros((threads, 2, d + 1, d + 1))
    buffers = np.ones((threads, d + 1, _BLAS_ROWS))

    def task(start: int, worker: int) -> None:
        gram = np.zeros((d + 1, d + 1))
        for begin in range(start, min(start + _BLAS_BLOCKS * _BLAS_ROWS, rows), _BLAS_ROWS):
            block = slice(begin, min(begin + _BLAS_ROWS, rows))
            y = buffers[worker, :, : block.stop - begin]
            with np.errstate(over="ignore", invalid="ignore"):
                np.subtract(columns[:, block], shift, out=y[:d])
                gram += (y if weights is None else y * weights[block]) @ y.T
        grams[worker] = add(grams[worker], pair(gram))

    with one_blas_thread():
        run(task, range(0, rows, _BLAS_BLOCKS * _BLAS_ROWS), threads)
    gram, centre = reduce(add, grams), pair(shift[:, 0])
    weight = pair(rows) if weights is None else sum_columns(weights[None])[:, 0]
    total = gram[:, d, :d]
    moved = add(outer(centre, total), outer(total, centre))
    moved = add(moved, outer(multiply(weight[:, None], centre), centre))
    return weight, add(total, multiply(weight[:, None], centre)), _mirrored(add(gram[:, :d, :d], moved))


def _near_mean(columns: Floats) -> Floats:
    """Return the mean of about a thousand rows of columns (d, n), or 0 where it is not finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        mean = columns[:, :: max(1, columns.shape[1] // 1024)].mean(axis=1)
    return np.where(np.isfinite(mean), mean, 0.0)
