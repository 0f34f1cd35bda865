"""Compiled loops over chains: forward, backward, best paths and samples.

Steps of all sequences lie one after another; a sequence is the range ``offsets[s]`` to ``offsets[s + 1]``. The
innermost loops run over labels that lie side by side, so that they become vector instructions.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from suffice.kernels.jit import kernel


@kernel
def _spread(x: Any, matrix: Any, out: Any) -> None:
    """``out[j] = sum_i x[i] matrix[i, j]``, four rows at a time."""
    size, four = len(out), len(x) - len(x) % 4
    for j in range(size):
        out[j] = 0.0
    for i in range(0, four, 4):
        x0, x1, x2, x3 = x[i], x[i + 1], x[i + 2], x[i + 3]
        r0, r1, r2, r3 = matrix[i], matrix[i + 1], matrix[i + 2], matrix[i + 3]
        for j in range(size):
            out[j] += x0 * r0[j] + x1 * r1[j] + (x2 * r2[j] + x3 * r3[j])
    for i in range(four, len(x)):
        x0, r0 = x[i], matrix[i]
        for j in range(size):
            out[j] += x0 * r0[j]


@kernel
def _gather(matrix: Any, x: Any, out: Any) -> None:
    """``out[i] = sum_j matrix[i, j] x[j]``, where the transpose is not at hand."""
    for i in range(len(out)):
        row, total = matrix[i], 0.0
        for j in range(len(x)):
            total += row[j] * x[j]
        out[i] = total


@kernel
def _normalise(x: Any) -> float:
    """Divide by the sum and return it; what is too small to divide by is left alone.

    Four sums at a time: a single one would wait for each addition to end.
    """
    four = len(x) - len(x) % 4
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    for j in range(0, four, 4):
        a += x[j]
        b += x[j + 1]
        c += x[j + 2]
        d += x[j + 3]
    total = (a + b) + (c + d)
    for j in range(four, len(x)):
        total += x[j]
    if total > 0.0:
        inverse = 1.0 / total
        for j in range(len(x)):
            x[j] *= inverse
    return total


@kernel
def _forward(potentials: Any, transitions: Any, initial: Any, first: int, last: int, least: float, out: Any) -> float:
    """Scaled forward rows; the log of the mass, or NaN where a row is below `least`."""
    size, shared = potentials.shape[1], len(transitions) == 1
    total, mass = 0.0, 1.0
    for t in range(first, last):
        row, here = out[t], potentials[t]
        if t == first:
            for j in range(size):
                row[j] = initial[j] * here[j]
        else:
            _spread(out[t - 1], transitions[0 if shared else t], row)
            for j in range(size):
                row[j] *= here[j]
        scale = _normalise(row)
        if not scale > least:
            return math.nan
        mass *= scale
        if mass < 1e-100 or mass > 1e100:
            total += math.log(mass)
            mass = 1.0
    return total + math.log(mass)


@kernel
def _ended(row: Any, final: Any) -> float:
    """The sum of products, four sums at a time."""
    four = len(row) - len(row) % 4
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    for j in range(0, four, 4):
        a += row[j] * final[j]
        b += row[j + 1] * final[j + 1]
        c += row[j + 2] * final[j + 2]
        d += row[j + 3] * final[j + 3]
    total = (a + b) + (c + d)
    for j in range(four, len(row)):
        total += row[j] * final[j]
    return total


@kernel
def masses(
    potentials: Any, transitions: Any, ends: Any, offsets: Any, span: Any, least: float, out: Any, rows: Any
) -> None:
    """The log of the mass of each sequence in span; NaN asks for log space. rows (steps, K) takes the forward rows.

    ends (2, K): what the first and the last label weigh.
    """
    for s in range(span[0], span[1]):
        first, last = offsets[s], offsets[s + 1]
        out[s] = 0.0
        if last > first:
            out[s] = _forward(potentials, transitions, ends[0], first, last, least, rows)
            end = _ended(rows[last - 1], ends[1])
            out[s] += math.log(end) if end > least else math.nan


@kernel
def posteriors(
    potentials: Any,
    transitions: Any,
    turned: Any,
    ends: Any,
    offsets: Any,
    span: Any,
    least: float,
    weights: Any,
    out: Any,
    rows: Any,
    sums: Any,
    pairs: Any,
) -> None:
    """Turn forward rows (steps, K) into posteriors, and add ``forward x backward`` to sums (K, K), weighted.

    The sums lack the factor of the transitions where those are shared. turned (1, K, K) is the transpose of shared
    transitions; pairs (steps, K, K) takes the joint posteriors of a step and the one before, where it is not empty.
    Sequences whose mass in out is NaN are passed over; those that turn out too small here become NaN.
    """
    size, shared = potentials.shape[1], len(transitions) == 1
    back = np.empty(size)
    left, right, waiting = np.zeros((4, size)), np.zeros((4, size)), 0
    for s in range(span[0], span[1]):
        first, last = offsets[s], offsets[s + 1]
        if last > first and out[s] == out[s]:
            for j in range(size):
                back[j] = ends[1, j]
                rows[last - 1, j] *= back[j]
            _normalise(rows[last - 1])
            for t in range(last - 1, first, -1):
                inverse = _step_back(potentials[t], transitions, turned, t, least, rows[t - 1], right[waiting], back)
                if not inverse > 0.0:
                    out[s] = math.nan
                    break
                row, keep = rows[t - 1], left[waiting]
                for j in range(size):
                    keep[j] = row[j] * (weights[s] * inverse)
                if len(pairs) or not shared:
                    near = transitions[0 if shared else t]
                    _add_pairs(row, right[waiting], inverse, weights[s], near, sums[:0] if shared else sums, pairs, t)
                for j in range(size):
                    row[j] *= back[j] * inverse
                _normalise(back)
                waiting += 1
                if waiting == 4:
                    if shared:
                        _add_outer(left, right, sums)
                    waiting = 0
    if shared:
        left[waiting:] = 0.0
        _add_outer(left, right, sums)


@kernel
def _step_back(
    here: Any, transitions: Any, turned: Any, t: int, least: float, row: Any, ahead: Any, back: Any
) -> float:
    """From step t to the one before: one over the mass that is left, or 0 where it is too small.

    ahead (K,) becomes what step t says about itself and its future, back (K,) what it says about the step before, whose
    forward row is given. Backward rows have a scale of their own: tied to that of the forward rows they could overflow.
    """
    for j in range(len(ahead)):
        ahead[j] = back[j] * here[j]
    if len(transitions) == 1:
        _spread(ahead, turned[0], back)
    else:
        _gather(transitions[t], ahead, back)
    mass = _ended(row, back)
    return 1.0 / mass if mass > least else 0.0


@kernel
def _add_outer(left: Any, right: Any, sums: Any) -> None:
    """``sums[i, j] += sum_k left[k, i] right[k, j]`` for four k at once: one read and write of the sums."""
    l0, l1, l2, l3 = left[0], left[1], left[2], left[3]
    r0, r1, r2, r3 = right[0], right[1], right[2], right[3]
    for i in range(len(sums)):
        a, b, c, d, out = l0[i], l1[i], l2[i], l3[i], sums[i]
        for j in range(len(out)):
            out[j] += a * r0[j] + b * r1[j] + (c * r2[j] + d * r3[j])


@kernel
def _add_pairs(row: Any, ahead: Any, inverse: float, weight: float, matrix: Any, sums: Any, pairs: Any, t: int) -> None:
    """The joint posteriors of step t and the one before: written to pairs, and added to sums with the weight."""
    size = len(ahead)
    for i in range(size):
        x, near = row[i] * inverse, matrix[i]
        if len(pairs):
            out = pairs[t, i]
            for j in range(size):
                out[j] = x * near[j] * ahead[j]
        if len(sums):
            total = sums[i]
            for j in range(size):
                total[j] += weight * (x * near[j] * ahead[j])


@kernel
def best_paths(
    scores: Any, transitions: Any, ends: Any, offsets: Any, span: Any, back: Any, paths: Any, values: Any
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
def _best_before(best: Any, matrix: Any, ahead: Any, came: Any) -> None:
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
    scores: Any, transitions: Any, ends: Any, offsets: Any, span: Any, back: Any, paths: Any, values: Any
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
            place = whence[r]
            for t in range(last - 1, first - 1, -1):
                paths[r, t] = place // most if total[r] > -math.inf else -1
                place = back[t, place // most, place % most]


@kernel
def _merge(best: Any, extra: Any, out: Any, whence: Any) -> None:
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
            place = most - 1
            while place > 0 and value > out[place - 1]:
                out[place], whence[place] = out[place - 1], whence[place - 1]
                place -= 1
            out[place], whence[place] = value, i * most + r


@kernel
def draw(
    rows: Any, transitions: Any, final: Any, offsets: Any, span: Any, wanted: Any, uniforms: Any, paths: Any
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
