"""Compiled loops of sums and cross-products in double-double.

Everything is a dot product sum_t a_t b_t, over blocks of `BLOCK` rows and in `LANES` independent lanes, so that it
fills vector registers. A lane keeps its running sum on top of a large bias, which makes the rounding error of each step
exact with two more operations (|before| >= |a b|, so `before - after` is exact):

    after = fma(a, b, before);  lost += fma(a, b, before - after)

With T = BLOCK / LANES terms and a bias of at most a few times sqrt(sum a^2 sum b^2), which bounds every partial sum by
the inequality of Cauchy and Schwarz, a block is exact to about 2^-100 of that bound, and to 2^-92 if all errors have
one sign. Blocks are added as pairs.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from suffice.array_types import Floats, Indices
from suffice.kernels.jit import kernel

BLOCK = 1024
LANES = 16

_0, _LANES, _BLOCK = (np.uint64(number) for number in (0, LANES, BLOCK))
# Where the next terms of a lane are, and the first after four of them.
_SECOND, _THIRD, _FOURTH, _FOUR = (np.uint64(number * LANES) for number in (1, 2, 3, 4))

_MAGNITUDE = np.int64(0x7FFFFFFFFFFFFFFF)
_INFINITE = np.int64(0x7FF0000000000000)
_TOO_LARGE = 2000  # An exponent whose power of two overflows, so that the sums become NaN.
_LEAST = -900  # A smaller bias would leave no room for errors above the subnormal numbers; sums below keep 53 bits.
_LOOSE = 2.0**-6  # A bias larger than the sum by more than this wastes bits.
_ONES_EXPONENT = 3  # sum of T = 64 ones is 2^6.
_PEAK_EXPONENT = 3  # sqrt(T max^2) = 2^3 max.


@intrinsic  # type: ignore[untyped-decorator]
def _multiply_add(typing_context: object, a: object, b: object, c: object) -> Any:
    """Return a b + c with one rounding."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return types.float64(types.float64, types.float64, types.float64), generate


@kernel
def _take_in(a: float, b: float, total: float, lost: float) -> Any:
    """Add a b to a running sum, and what is lost by rounding to the sum of errors."""
    after = _multiply_add(a, b, total)
    return after, lost + _multiply_add(a, b, total - after)


@kernel
def _biased_dot(a: Floats, b: Floats, bias: float, total: Floats, lost: Floats) -> None:
    """Set total (LANES,) to bias + sum_t a_t b_t rounded at each step, and lost (LANES,) to the sum of the errors.

    Four terms of a lane at a time, so that its sums are read and written once for all of them.
    """
    for lane in range(_LANES):
        total[lane], lost[lane] = bias, 0.0
    for row in range(_0, _BLOCK, _FOUR):
        for lane in range(_LANES):
            running, errors, term = total[lane], lost[lane], row + lane
            running, errors = _take_in(a[term], b[term], running, errors)
            running, errors = _take_in(a[term + _SECOND], b[term + _SECOND], running, errors)
            running, errors = _take_in(a[term + _THIRD], b[term + _THIRD], running, errors)
            running, errors = _take_in(a[term + _FOURTH], b[term + _FOURTH], running, errors)
            total[lane], lost[lane] = running, errors


@kernel
def _biased_pair_dot(a: Floats, b: Floats, bias: float, total: Floats, lost: Floats, low: Floats) -> None:
    """Set total and lost as `_biased_dot` does for a + low in place of a, |low| <= 2^-53 |a|."""
    for lane in range(_LANES):
        total[lane], lost[lane] = bias, 0.0
    for row in range(_0, _BLOCK, _FOUR):
        for lane in range(_LANES):
            running, errors, term = total[lane], lost[lane], row + lane
            running, errors = _take_in(a[term], b[term], running, errors)
            errors = _multiply_add(low[term], b[term], errors)
            running, errors = _take_in(a[term + _SECOND], b[term + _SECOND], running, errors)
            errors = _multiply_add(low[term + _SECOND], b[term + _SECOND], errors)
            running, errors = _take_in(a[term + _THIRD], b[term + _THIRD], running, errors)
            errors = _multiply_add(low[term + _THIRD], b[term + _THIRD], errors)
            running, errors = _take_in(a[term + _FOURTH], b[term + _FOURTH], running, errors)
            errors = _multiply_add(low[term + _FOURTH], b[term + _FOURTH], errors)
            total[lane], lost[lane] = running, errors


@kernel
def _add_lanes(scratch: Floats, bias: float, sums: Floats) -> None:
    """Add the lanes of one block, scratch (2, LANES), less the bias, to the pairs sums (2, LANES)."""
    for lane in range(LANES):
        value = scratch[0, lane] - bias
        before = sums[0, lane]
        after = before + value
        part = after - before
        error = ((before - (after - part)) + (value - part)) + (sums[1, lane] + scratch[1, lane])
        whole = after + error
        sums[0, lane] = whole
        sums[1, lane] = error - (whole - after)


@kernel
def _add_dot(a: Floats, b: Floats, exponent: int, scratch: Floats, sums: Floats) -> None:
    """Add the dot product of a and b (BLOCK,), whose lanes are bounded by 2^exponent, to the pairs sums (2, LANES)."""
    bias = 1.5 * math.ldexp(1.0, max(exponent + 1, _LEAST))
    _biased_dot(a, b, bias, scratch[0], scratch[1])
    _add_lanes(scratch, bias, sums)


@kernel
def _peak_exponent(values: Floats) -> int:
    """Return e with sqrt(sum of squares of a lane) <= 2^e, from the largest magnitude in values (BLOCK,)."""
    bits = values.view(np.int64)
    top = np.int64(0)
    for row in range(len(bits)):
        magnitude = bits[row] & _MAGNITUDE
        top = magnitude if magnitude > top else top
    if top >= _INFINITE:
        return _TOO_LARGE
    exponent = (top >> 52) - 1022  # |x| < 2^exponent by the definition of the format.
    return int(exponent + _PEAK_EXPONENT)


@kernel
def _add_square(x: Floats, guess: int, scratch: Floats, sums: Floats) -> int:
    """Add x'x to the pairs sums (2, LANES) and return e as `_peak_exponent` does, but tighter.

    Squares only grow a sum: if the end shows at most twice the bias, every step was exact. So the exponent of the block
    before serves as a guess, and only a guess that is too small, or far too large, costs a look at all values.
    """
    bias = 1.5 * math.ldexp(1.0, 2 * guess + 2)
    fits = 2 * guess > _LEAST and bias < np.inf
    if fits:
        _biased_dot(x, x, bias, scratch[0], scratch[1])
    top = 0.0
    for lane in range(LANES):
        fits &= scratch[0, lane] <= 2.0 * bias
        top = max(top, scratch[0, lane])
    if not (fits and top - bias > _LOOSE * bias):
        exponent = _peak_exponent(x)
        _add_dot(x, x, 2 * exponent, scratch, sums)
        return exponent
    _add_lanes(scratch, bias, sums)
    bound = (top - bias) + bias * 2.0**-44  # The second term covers the rounding errors of the lane.
    return (math.frexp(bound)[1] + 1) >> 1


@kernel
def _pad(columns: Floats, start: int, padded: Floats) -> None:
    """Copy the rows of columns (d, n) from start on to padded (d, BLOCK), with zeros behind them."""
    length = columns.shape[1] - start
    for column in range(len(columns)):
        for row in range(BLOCK):  # Assigning slices would take seconds to compile.
            padded[column, row] = columns[column, start + row] if row < length else 0.0


@kernel
def add_moments(columns: Floats, start: int, stop: int, sums: Floats) -> None:
    """Add sums and cross-products of rows start to stop of columns (d, n) to pairs, sums (d (d + 3) / 2, 2, LANES).

    Entries follow i = 0..d-1: the sum of column i, then its products with columns 0..i. stop - start is a multiple of
    BLOCK unless stop = n.
    """
    scratch = np.empty((2, LANES))
    ones = np.ones(BLOCK)
    padded = np.empty((len(columns), BLOCK))
    exponents = np.zeros(len(columns), np.int64)
    for begin in range(start, stop, BLOCK):
        source, first = columns, begin
        if begin + BLOCK > stop:
            _pad(columns, begin, padded)
            source, first = padded, 0
        entry = 0
        for i in range(len(columns)):
            x = source[i, first : first + BLOCK]
            exponents[i] = _add_square(x, exponents[i], scratch, sums[entry + 1 + i])
            _add_dot(x, ones, exponents[i] + _ONES_EXPONENT, scratch, sums[entry])
            for j in range(i):
                y = source[j, first : first + BLOCK]
                _add_dot(x, y, exponents[i] + exponents[j], scratch, sums[entry + 1 + j])
            entry += i + 2


@kernel
def add_weighted_moments(columns: Floats, weights: Floats, start: int, stop: int, sums: Floats) -> None:
    """Add as `add_moments`, every term times its weight in weights (1, n).

    One more entry, the last, is the sum of the weights. w x is formed exactly as a number and its error.
    """
    scratch = np.empty((2, LANES))
    ones = np.ones(BLOCK)
    padded, padded_weights = np.empty((len(columns), BLOCK)), np.empty((1, BLOCK))
    high, low = np.empty(BLOCK), np.empty(BLOCK)
    exponents = np.zeros(len(columns), np.int64)
    for begin in range(start, stop, BLOCK):
        source, weight_source, first = columns, weights, begin
        if begin + BLOCK > stop:
            _pad(columns, begin, padded)
            _pad(weights, begin, padded_weights)
            source, weight_source, first = padded, padded_weights, 0
        weight = weight_source[0, first : first + BLOCK]
        _add_dot(weight, ones, _peak_exponent(weight) + _ONES_EXPONENT, scratch, sums[len(sums) - 1])
        entry = 0
        for i in range(len(columns)):
            x = source[i, first : first + BLOCK]
            exponents[i] = _peak_exponent(x)
            _multiply(weight, x, high, low)
            exponent = _peak_exponent(high)
            _add_pair_dot(high, low, ones, exponent + _ONES_EXPONENT, scratch, sums[entry])
            for j in range(i + 1):
                y = source[j, first : first + BLOCK]
                _add_pair_dot(high, low, y, exponent + exponents[j], scratch, sums[entry + 1 + j])
            entry += i + 2


@kernel
def add_sums(columns: Floats, weights: Floats | None, start: int, stop: int, sums: Floats) -> None:
    """Add the sums of rows start to stop of columns (d, n), times weights (1, n) or None, to pairs (d, 2, LANES)."""
    scratch = np.empty((2, LANES))
    ones = np.ones(BLOCK)
    padded, padded_weights = np.empty((len(columns), BLOCK)), np.empty((1, BLOCK))
    high, low = np.empty(BLOCK), np.empty(BLOCK)
    for begin in range(start, stop, BLOCK):
        source, first = columns, begin
        if begin + BLOCK > stop:
            _pad(columns, begin, padded)
            source, first = padded, 0
        for i in range(len(columns)):
            x = source[i, first : first + BLOCK]
            if weights is None:
                _add_dot(x, ones, _peak_exponent(x) + _ONES_EXPONENT, scratch, sums[i])
            else:
                if begin + BLOCK > stop:
                    _pad(weights, begin, padded_weights)
                    _multiply(padded_weights[0], x, high, low)
                else:
                    _multiply(weights[0, begin : begin + BLOCK], x, high, low)
                _add_pair_dot(high, low, ones, _peak_exponent(high) + _ONES_EXPONENT, scratch, sums[i])


@kernel
def _multiply(a: Floats, b: Floats, high: Floats, low: Floats) -> None:
    """Set high + low = a b, exactly."""
    for row in range(BLOCK):
        product = a[row] * b[row]
        high[row] = product
        low[row] = _multiply_add(a[row], b[row], -product)


@kernel
def _add_pair_dot(high: Floats, low: Floats, b: Floats, exponent: int, scratch: Floats, sums: Floats) -> None:
    """Add the dot product of high + low and b; |low| <= 2^-53 |high|."""
    bias = 1.5 * math.ldexp(1.0, max(exponent + 1, _LEAST))
    _biased_pair_dot(high, b, bias, scratch[0], scratch[1], low)
    _add_lanes(scratch, bias, sums)


@kernel
def _add_term(a: float, b: float, sums: Floats, group: int, entry: int) -> None:
    """Add a b to the pair sums[group, entry]."""
    value = a * b
    error = _multiply_add(a, b, -value)
    before = sums[group, entry, 0]
    after = before + value
    part = after - before
    error += ((before - (after - part)) + (value - part)) + sums[group, entry, 1]
    whole = after + error
    sums[group, entry, 0] = whole
    sums[group, entry, 1] = error - (whole - after)


@kernel
def add_grouped_moments(columns: Floats, weights: Floats, labels: Indices, sums: Floats) -> None:
    """Add the moments of each row of columns (d, n) to the pairs of its group, sums (groups, (d + 1) (d + 2) / 2, 2).

    labels (n,) name the groups and weights (n,) count the rows. Entries follow i = 0..d, column 0 being ones: the
    products of column i with columns 0..i.
    """
    d = len(columns)
    for row in range(len(labels)):
        group, weight = labels[row], weights[row]
        _add_term(weight, 1.0, sums, group, 0)
        entry = 1
        for i in range(d):
            high = weight * columns[i, row]
            low = _multiply_add(weight, columns[i, row], -high)
            for j in range(i + 2):
                other = 1.0 if j == 0 else columns[j - 1, row]
                _add_term(high, other, sums, group, entry)
                sums[group, entry, 1] += low * other
                entry += 1
