"""Compiled loops over paths through chains: the best ones, and samples.

Steps of all sequences lie one after another; a sequence is the range ``offsets[s]`` to ``offsets[s + 1]``. The
innermost loops run over labels that lie side by side, so that they become vector instructions.
"""

from __future__ import annotations

import math

import numpy as np

from suffice.array_types import Flags, Floats, Ints, Span
from suffice.kernels.jit import kernel


@kernel
def best_paths(
    scores: Floats,
    transitions: Floats,
    ends: Floats,
    offsets: Ints,
    span: Span,
    back: Ints,
    paths: Ints,
    values: Floats,
) -> None:
    """Viterbi in log space: of equal paths the one whose labels come first, from the end backwards.

    back (steps, K) takes the label before; values is -inf where no path is possible.
    """
    size, shared = scores.shape[1], len(transitions) == 1
    best, ahead = np.empty(size), np.empty(size)
    for s in range(span[0], span[1]):
        first, last = offsets[s], offsets[s + 1]
        values[s] = 0.0
        if last == first:
            continue
        for j in range(size):
            best[j] = ends[0, j] + scores[first, j]
        for t in range(first + 1, last):
            matrix, came, here = transitions[0 if shared else t], back[t], scores[t]
            _best_before(best, matrix, ahead, came)
            for j in range(size):
                best[j] = ahead[j] + here[j]
        label = 0
        for j in range(size):
            best[j] += ends[1, j]
            if best[j] > best[label]:
                label = j
        values[s] = best[label]
        for t in range(last - 1, first - 1, -1):
            paths[t] = label
            label = back[t, label]


@kernel
def _best_before(best: Floats, matrix: Floats, ahead: Floats, came: Ints) -> None:
    """``ahead[j] = max_i best[i] + matrix[i, j]`` and the first i that gives it."""
    size = len(best)
    x, row = best[0], matrix[0]
    for j in range(size):
        ahead[j] = x + row[j]
        came[j] = 0
    for i in range(1, size):
        x, row = best[i], matrix[i]
        for j in range(size):
            value = x + row[j]
            better = value > ahead[j]
            ahead[j] = value if better else ahead[j]
            came[j] = i if better else came[j]


@kernel
def best_lists(
    scores: Floats,
    transitions: Floats,
    ends: Floats,
    offsets: Ints,
    span: Span,
    back: Ints,
    paths: Ints,
    values: Floats,
) -> None:
    """The k best paths of each sequence: values (n, k) fall and end in -inf, paths (k, steps) end in -1.

    back (steps, K, k) takes, for the r-th best path into a label, label and rank of the one before as ``i k + r``.
    """
    size, most, shared = scores.shape[1], values.shape[1], len(transitions) == 1
    best, ahead, whence = np.empty((size, most)), np.empty((size, most)), np.empty(most, np.int64)
    total = np.empty(most)
    for s in range(span[0], span[1]):
        first, last = offsets[s], offsets[s + 1]
        for r in range(most):
            values[s, r] = -math.inf if r else 0.0
        if last == first:
            continue
        for j in range(size):
            for r in range(most):
                best[j, r] = -math.inf
            best[j, 0] = ends[0, j] + scores[first, j]
        for t in range(first + 1, last):
            matrix = transitions[0 if shared else t]
            for j in range(size):
                _merge(best, matrix[:, j], ahead[j], back[t, j])
            for j in range(size):
                for r in range(most):
                    best[j, r] = ahead[j, r] + scores[t, j]
        _merge(best, ends[1], total, whence)
        for r in range(most):
            values[s, r] = total[r]
            origin = whence[r]
            for t in range(last - 1, first - 1, -1):
                paths[r, t] = origin // most if total[r] > -math.inf else -1
                origin = back[t, origin // most, origin % most]


@kernel
def _merge(best: Floats, extra: Floats, out: Floats, whence: Ints) -> None:
    """The largest of ``best[i, r] + extra[i]``, in falling order, equal ones in the order of i and r."""
    most = len(out)
    for r in range(most):
        out[r] = -math.inf
        whence[r] = 0
    for i in range(best.shape[0]):
        for r in range(most):
            value = best[i, r] + extra[i]
            if not value > out[most - 1]:
                break
            rank = most - 1
            while rank > 0 and value > out[rank - 1]:
                out[rank], whence[rank] = out[rank - 1], whence[rank - 1]
                rank -= 1
            out[rank], whence[rank] = value, i * most + r


@kernel
def draw(
    rows: Floats,
    transitions: Floats,
    final: Floats,
    offsets: Ints,
    span: Span,
    wanted: Flags,
    uniforms: Floats,
    paths: Ints,
) -> None:
    """Sample paths (n, steps) from forward rows, the last label first; sequences not wanted are passed over."""
    size, shared = rows.shape[1], len(transitions) == 1
    weights = np.empty(size)
    for s in range(span[0], span[1]):
        first, last = offsets[s], offsets[s + 1]
        for n in range(paths.shape[0] if wanted[s] else 0):
            label = -1
            for t in range(last - 1, first - 1, -1):
                total = 0.0
                for i in range(size):
                    near = final[i] if label < 0 else transitions[0 if shared else t + 1, i, label]
                    total += rows[t, i] * near
                    weights[i] = total
                mark, label = uniforms[n, t] * total, 0
                while label < size - 1 and weights[label] <= mark:
                    label += 1
                paths[n, t] = label
