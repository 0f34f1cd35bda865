"""Compiled loops between sparse features and labels: scores of steps, and their gradients.

The weights of feature f lie from ``pointers[f]`` to ``pointers[f + 1]``, one for each label in `labels` there. A
feature with a weight for every label has them in the order of the labels, and its loops become vector instructions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from suffice.kernels.jit import kernel

#: 1.5 * 2^52: adding it rounds to a whole number, which then stands in the low bits.
_ROUND = 6755399441055744.0
_LOG2E = 1.4426950408889634
_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10
_BIAS = 1023 << 52
#: Below this exp is a denormal number, which is taken for 0.
_SMALLEST = -708.0


@intrinsic  # type: ignore[untyped-decorator]
def _bits(typing: Any, x: Any) -> Any:
    """The bits of a float as an integer."""
    return types.int64(types.float64), lambda context, builder, signature, given: builder.bitcast(
        given[0], ir.IntType(64)
    )


@intrinsic  # type: ignore[untyped-decorator]
def _float(typing: Any, x: Any) -> Any:
    """The float with these bits."""
    return types.float64(types.int64), lambda context, builder, signature, given: builder.bitcast(
        given[0], ir.DoubleType()
    )


@kernel
def scale_rows(scores: Any, size: int, shift: Any) -> None:
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
            row[j] = 2.0 * _SMALLEST
    _exponentials(scores.reshape(-1))


@kernel
def _exponentials(x: Any) -> None:
    """exp(x) in place, for x of at most 0, in one long loop without a branch, which becomes vector instructions.

    ``2^n`` times the series of ``exp(r)`` with ``|r| <= log(2) / 2``, whose terms up to r^13 / 13! reach the last bit.
    """
    for k in range(len(x)):
        given = x[k]
        clipped = given if given > _SMALLEST else _SMALLEST
        moved = clipped * _LOG2E + _ROUND
        n = moved - _ROUND
        r = (clipped - n * _LN2_HIGH) - n * _LN2_LOW
        s = r * r
        low = (1.0 + r) + s * (1 / 2 + r * (1 / 6) + s * (1 / 24 + r * (1 / 120)))
        middle = 1 / 40320 + r * (1 / 362880) + s * (1 / 3628800 + r * (1 / 39916800))
        high = 1 / 720 + r * (1 / 5040) + s * (middle + s * s * (1 / 479001600 + r * (1 / 6227020800)))
        value = (low + s * s * s * high) * _float((_bits(moved) << 52) + _BIAS)
        x[k] = value if given > _SMALLEST else 0.0


@kernel
def add_scores(
    indptr: Any, indices: Any, values: Any, pointers: Any, labels: Any, weights: Any, size: int, span: Any, out: Any
) -> None:
    """``out[t, label] = sum over features f of step t of value * weight[f, label]`` for the steps of a span.

    values is empty where every value is 1. out (steps of the span, at least size = K).
    """
    plain = len(values) == 0
    for t in range(span[0], span[1]):
        row = out[t - span[0]]
        for j in range(size):
            row[j] = 0.0
        for k in range(indptr[t], indptr[t + 1]):
            f = indices[k]
            first, last = pointers[f], pointers[f + np.uint32(1)]
            if plain and last - first == size:
                whole = weights[first:last]
                for j in range(size):
                    row[j] += whole[j]
            elif plain:
                for p in range(first, last):
                    row[labels[p]] += weights[p]
            else:
                value = values[k]
                for p in range(first, last):
                    row[labels[p]] += value * weights[p]


@kernel
def add_features(
    indptr: Any, indices: Any, values: Any, pointers: Any, labels: Any, rows: Any, size: int, span: Any, out: Any
) -> None:
    """Add ``value * rows[t, label]`` to ``out[f, label]`` for every feature f of the steps of a span.

    rows (steps of the span, at least size = K); out (p,) is packed as the weights are.
    """
    plain = len(values) == 0
    for t in range(span[0], span[1]):
        row = rows[t - span[0]]
        for k in range(indptr[t], indptr[t + 1]):
            f = indices[k]
            first, last = pointers[f], pointers[f + np.uint32(1)]
            if plain and last - first == size:
                whole = out[first:last]
                for j in range(size):
                    whole[j] += row[j]
            elif plain:
                for p in range(first, last):
                    out[p] += row[labels[p]]
            else:
                value = values[k]
                for p in range(first, last):
                    out[p] += value * row[labels[p]]
