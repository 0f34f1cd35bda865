"""Compiled loops between sparse features and labels: scores of steps, and their gradients.

The weights of feature f lie from ``pointers[f]`` to ``pointers[f + 1]``, one for each label in `labels` there. A
feature with a weight for every label has them in the order of the labels, and its loops become vector instructions.
"""

from __future__ import annotations

import numpy as np

from suffice.array_types import Floats, Span, Words, Words32
from suffice.kernels.jit import kernel


@kernel
def add_scores(
    indptr: Words,
    indices: Words32,
    values: Floats,
    pointers: Words,
    labels: Words32,
    weights: Floats,
    size: int,
    span: Span,
    out: Floats,
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
    indptr: Words,
    indices: Words32,
    values: Floats,
    pointers: Words,
    labels: Words32,
    rows: Floats,
    size: int,
    span: Span,
    out: Floats,
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
