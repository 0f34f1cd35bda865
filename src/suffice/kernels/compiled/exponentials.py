"""Exponentials of tables of logarithms, without a call for each number: LLVM makes vectors of the whole loop.

With n the whole number nearest to x / log 2 and r = x - n log 2, ``exp x = 2^n exp r`` and ``|r| <= log(2) / 2``, where
14 terms of the series leave less than 1e-17. Adding 1.5 * 2^52 rounds to whole numbers and leaves n in the last bits of
the sum; shifted to the place of the exponent these make 2^n.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from suffice.array_types import Floats, Words
from suffice.kernels.jit import fused, kernel, reordered

LEAST = -708.0
"""Below this the exponential is no normal double, and counts as lost."""
MOST = 709.0
"""Above this it is infinite, a little before it has to be."""

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
    """``exp x`` for x up to `MOST`, and 0 below `LEAST`."""
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


# Regressions: what rows say about their linear predictors ------------------------------------------------------------

_LOG_2, _ROOT = float(np.log(2.0)), float(np.sqrt(2.0)) - 1.0
_BLOCK = 128  # Rows whose linear predictors are worked side by side, while they are in the nearest cache.


@fused
def _log_of_one_more(t: float) -> Any:
    """``log(1 + t)`` for t from 0 to 1, as ``2 atanh(t / (2 + t))`` about 1 or 2, whichever is nearer."""
    near_two = t > _ROOT
    u = 0.5 * (t - 1.0) if near_two else t
    z = u / (2.0 + u)
    s = z * z
    q = s * s
    low = (2 / 3 + 2 / 5 * s) + (2 / 7 + 2 / 9 * s) * q
    high = (2 / 11 + 2 / 13 * s) + (2 / 15 + 2 / 17 * s) * q + (2 / 19 + 2 / 21 * s) * (q * q)
    log = 2.0 * z + z * s * (low + high * (q * q))
    return log + _LOG_2 if near_two else log


@fused
def logistic(eta: Floats, y: Floats, value: Floats, score: Floats, information: Floats) -> None:
    """Bernoulli response with the logit link, row by row; with t = exp(-|eta|) nothing can overflow."""
    for i in range(np.uint64(len(eta))):
        e, share = eta[i], y[i]
        t = _exponential(-e if e > 0.0 else e)
        near = 1.0 / (1.0 + t)
        far = t * near
        mean, rest = near if e > 0.0 else far, far if e > 0.0 else near
        value[i] = share * e - (e if e > 0.0 else 0.0) - _log_of_one_more(t)
        score[i] = share * rest - (1.0 - share) * mean
        information[i] = near * far


@fused
def poisson(eta: Floats, y: Floats, value: Floats, score: Floats) -> None:
    """Counts with the log link: ``y eta - exp(eta)``, without what y says alone."""
    for i in range(np.uint64(len(eta))):
        e, count = eta[i], y[i]
        mean = _exponential(e) if e < MOST else np.inf
        value[i] = count * e - mean
        score[i] = count - mean


@reordered
def rows_times(X: Floats, vector: Floats, out: Floats) -> None:
    """Put X vector into `out`."""
    n, k = X.shape
    for i in range(n):
        total = 0.0
        for j in range(k):
            total += X[i, j] * vector[j]
        out[i] = total


@reordered
def times_rows(values: Floats, X: Floats, out: Floats) -> None:
    """Add X' values to `out`; four rows at a time, so that `out` is met once for all of them."""
    n, k = X.shape
    whole = n - n % 4
    for i in range(0, whole, 4):
        a, b, c, d = values[i], values[i + 1], values[i + 2], values[i + 3]
        for j in range(k):
            out[j] += a * X[i, j] + b * X[i + 1, j] + c * X[i + 2, j] + d * X[i + 3, j]
    for i in range(whole, n):
        a = values[i]
        for j in range(k):
            out[j] += a * X[i, j]


@kernel
def column_sizes(X: Floats, sizes: Floats) -> None:
    """Raise sizes (k,) to the largest size of the finite numbers in each column."""
    n, k = X.shape
    for i in range(n):
        for j in range(k):
            size = abs(X[i, j])
            sizes[j] = size if size > sizes[j] else sizes[j]


@reordered
def _sum(values: Floats) -> float:
    total = 0.0
    for i in range(len(values)):
        total += values[i]
    return total


@kernel
def slopes(
    law: int, X: Floats, y: Floats, offset: Floats, weights: Floats, first: float, beta: Floats, gradient: Floats
) -> Any:
    """Log-likelihood of rows with ``eta = first + X beta + offset``, and the sum of their scores; X' scores is added.

    law: 0 for `logistic`, 1 for `poisson`. Offset and weights (n,) or (0,). Rows are read from memory once.
    """
    n, likelihood, scores = len(X), 0.0, 0.0
    etas, values, slopes_, unused = np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK)
    for begin in range(0, n, _BLOCK):
        end = min(begin + _BLOCK, n)
        rows, eta, value, score = X[begin:end], etas[: end - begin], values[: end - begin], slopes_[: end - begin]
        rows_times(rows, beta, eta)
        eta += first
        if len(offset):
            eta += offset[begin:end]
        if law == 0:
            logistic(eta, y[begin:end], value, score, unused)
        else:
            poisson(eta, y[begin:end], value, score)
        if len(weights):
            for i in range(end - begin):
                weight = weights[begin + i]
                value[i] = value[i] * weight if weight > 0.0 else 0.0
                score[i] *= weight
        likelihood += _sum(value)
        scores += _sum(score)
        times_rows(score, rows, gradient)
    return likelihood, scores
