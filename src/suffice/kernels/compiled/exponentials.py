"""Exponentials of tables of logarithms, without a call for each number: LLVM makes vectors of the whole loop.

With n the whole number nearest to x / log 2 and r = x - n log 2, ``exp x = 2^n exp r`` and ``|r| <= log(2) / 2``, where
14 terms of the series leave less than 1e-17. Adding 1.5 * 2^52 rounds to whole numbers and leaves n in the last bits of
the sum; shifted to the place of the exponent these make 2^n.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from suffice.array_types import Floats, Words
from suffice.kernels.jit import fused, kernel

LEAST = -708.0
"""Below this the exponential is no normal double, and counts as lost."""

_0 = np.uint64(0)  # Signed indices would keep LLVM from making vectors.
_SIDE = np.uint64(64)  # Steps side by side.
_EXPONENT, _ONE = 52, 1023 << 52  # The place of the exponent in a double, and the bits of 1.0.
_LOG2_E = 1.0 / float(np.log(2.0))
_ROUND = 1.5 * 2.0**52
_LOG_2_HIGH = float.fromhex("0x1.62e42fee00000p-1")  # log 2 in two parts; products of the first with n are exact.
_LOG_2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
_C2, _C3, _C4, _C5, _C6, _C7 = 1 / 2, 1 / 6, 1 / 24, 1 / 120, 1 / 720, 1 / 5040
_C8, _C9, _C10, _C11, _C12, _C13 = 1 / 40320, 1 / 362880, 1 / 3628800, 1 / 39916800, 1 / 479001600, 1 / 6227020800


@fused
def _exponential(x: float) -> Any:
    """``exp x``, and 0 below `LEAST`."""
    inside = x if x > LEAST else LEAST
    rounded = inside * _LOG2_E + _ROUND
    n = rounded - _ROUND
    r = (inside - n * _LOG_2_HIGH) - n * _LOG_2_LOW
    z = r * r
    low = ((1.0 + r) + (_C2 + _C3 * r) * z) + ((_C4 + _C5 * r) + (_C6 + _C7 * r) * z) * (z * z)
    high = ((_C8 + _C9 * r) + (_C10 + _C11 * r) * z) + (_C12 + _C13 * r) * (z * z)
    power = np.int64((np.float64(rounded).view(np.int64) << _EXPONENT) + _ONE).view(np.float64)
    value = (low + high * ((z * z) * (z * z))) * power
    return value if x >= LEAST else 0.0


@kernel
def exponentials(w: Floats, ends: Words) -> Any:
    """Write ``exp(x - t)`` over each number x of tables of logarithms one after another, t the largest of its table.

    ends (uint64): where each table begins, and the end of the last one. Returns the sum of all t, and the least finite
    x - t; below `LEAST` 0 is written. Minus infinity becomes 0; a table of nothing else has t = 0. No number is NaN or
    plus infinity.
    """
    shift, least, first = 0.0, 0.0, _0
    for table in range(len(ends) - 1):
        last = ends[table + 1]
        top, low = -np.inf, np.inf
        for k in range(first, last):
            x = w[k]
            top = x if x > top else top
            low = x if -np.inf < x < low else low
        top = top if top > -np.inf else 0.0
        shift += top
        least = min(least, low - top)
        for k in range(first, last):
            w[k] -= top
        first = last
    for k in range(first):  # Over all tables at once: most are shorter than it takes to begin a loop.
        w[k] = _exponential(w[k])
    return shift, least


@fused
def normal_potentials(x: Floats, means: Floats, factors: Floats, constants: Floats, out: Floats, shift: Floats) -> None:
    """``exp(constant + sum_d factor (x - mean)^2)`` of each distribution, divided by the largest of the step.

    x (n, d), means and factors (K * d,), constants (K,), out (n * K,); the logs taken out go to shift (n,). Steps lie
    side by side on the way, as distributions are few.
    """
    size, columns, n = np.uint64(len(constants)), np.uint64(x.shape[1]), np.uint64(len(x))
    logs, column, top = np.empty(size * _SIDE), np.zeros(columns * _SIDE), np.empty(_SIDE)
    for begin in range(_0, n, _SIDE):
        many = min(_SIDE, n - begin)
        for d in range(columns):
            for k in range(many):
                column[d * _SIDE + k] = x[begin + k, d]
        for j in range(size):
            row = logs[j * _SIDE : j * _SIDE + _SIDE]
            row[:] = constants[j]
            for d in range(columns):
                mean, factor, values = means[j * columns + d], factors[j * columns + d], column[d * _SIDE :]
                for k in range(_SIDE):
                    away = values[k] - mean
                    row[k] += factor * away * away
            for k in range(_SIDE):
                top[k] = row[k] if j == _0 or row[k] > top[k] else top[k]
        for j in range(size):
            for k in range(_SIDE):
                logs[j * _SIDE + k] -= top[k]
        for k in range(size * _SIDE):
            logs[k] = _exponential(logs[k])
        for k in range(many):
            shift[begin + k] = top[k]
            target, source = (begin + k) * size, np.uint64(k)
            for j in range(size):
                out[target + j] = logs[source]
                source += _SIDE


@fused
def scale_rows(scores: Floats, size: int, shift: Floats) -> None:
    """Turn the first K = size log scores of rows into ``exp(score - row maximum)``; the maxima go to shift (steps,).

    What is beyond them becomes 0: labels that are there for the sake of the width alone. Rows hold no -inf.
    """
    for t in range(len(scores)):
        row = scores[t]
        # Two maxima at a time: a single one would wait for each comparison to end.
        top, other = row[0], row[0]
        for j in range(0, size - 1, 2):
            top = row[j] if row[j] > top else top
            other = row[j + 1] if row[j + 1] > other else other
        top = row[size - 1] if row[size - 1] > top else top
        top = other if other > top else top
        shift[t] = top
        for j in range(size):
            row[j] -= top
        for j in range(size, len(row)):
            row[j] = 2.0 * LEAST
    flat = scores.reshape(-1)
    for k in range(np.uint64(len(flat))):
        flat[k] = _exponential(flat[k])
