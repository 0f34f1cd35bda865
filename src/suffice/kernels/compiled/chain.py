"""The scaled forward-backward recursion, for one sequence or for a batch of sequences side by side.

With potentials p (T, K), transitions A (K, K), and ends e (2, K), one sequence is

    a_0 = e_0 p_0 / c_0,  a_t = (A' a_{t-1}) p_t / c_t      forward rows, each divided by its sum c_t
    b_T = e_1,            b_{t-1} = A (p_t b_t)              backward rows, up to a scale of their own
    P(y_t) = a_t b_t / a_t'b_t,                              posteriors
    P(y_{t-1} = i, y_t = j) = a_{t-1,i} A_ij p_tj b_tj / a_{t-1}'b_{t-1}

and log Z = sum_t log c_t + log a_T'e_1. Backward rows tied to the scale of the forward rows could overflow.

Sequences lie side by side in a batch: the numbers of a step are (K, width), flat, and the steps of a batch come one
after another. Innermost loops run over the sequences, whatever K is. The argument `batch` is a tuple with an entry for
each of them: its length is part of its type, so that Numba compiles each width as a case of its own and LLVM knows the
number (loops over a number that it does not know took half as long again). Where `batch` is None there is one sequence,
the width is 1 and innermost loops run over labels.
Sequences of a batch come from the longest to the shortest, so that those that still run at a step are the first ones.
In a batch K is even, filled up with a label of potential 0, and so is what follows a sequence that has ended.

Positions are uint64: signed ones would keep LLVM from making vectors.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from suffice.array_types import Floats, Index, Words
from suffice.kernels.jit import fused, reordered

Batch = tuple[bool, ...] | None
"""See above."""

_0, _1, _2, _3, _4 = (np.uint64(number) for number in range(5))


@fused
def _product(
    matrix: Floats, first: Index, size: Index, batch: Batch, x: Floats, begin: Index, out: Floats, to: Index
) -> None:
    """``out[to + j] = sum_i matrix[first + i, j] x[begin + i]`` of each sequence, four i at a time."""
    if batch is None:
        four = size & ~_3
        for j in range(size):
            out[to + j] = 0.0
        for i in range(_0, four, _4):
            x0, x1, x2, x3 = x[begin + i], x[begin + i + _1], x[begin + i + _2], x[begin + i + _3]
            r0 = first + i * size
            r1, r2, r3 = r0 + size, r0 + _2 * size, r0 + _3 * size
            for j in range(size):
                near = x0 * matrix[r0 + j] + x1 * matrix[r1 + j]
                out[to + j] += near + (x2 * matrix[r2 + j] + x3 * matrix[r3 + j])
        for i in range(four, size):
            x0, r0 = x[begin + i], first + i * size
            for j in range(size):
                out[to + j] += x0 * matrix[r0 + j]
    else:
        wide, four = np.uint64(len(batch)), size & ~_3
        for j in range(_0, size, _2):  # Two rows at a time: what is read of x serves both.
            left = to + j * wide
            right = left + wide
            for s in range(wide):
                out[left + s], out[right + s] = 0.0, 0.0
            for i in range(_0, four, _4):
                r0 = first + i * size + j
                r1, r2, r3 = r0 + size, r0 + _2 * size, r0 + _3 * size
                m0, m1, m2, m3 = matrix[r0], matrix[r1], matrix[r2], matrix[r3]
                n0, n1, n2, n3 = matrix[r0 + _1], matrix[r1 + _1], matrix[r2 + _1], matrix[r3 + _1]
                p0 = begin + i * wide
                p1, p2, p3 = p0 + wide, p0 + _2 * wide, p0 + _3 * wide
                for s in range(wide):
                    x0, x1, x2, x3 = x[p0 + s], x[p1 + s], x[p2 + s], x[p3 + s]
                    out[left + s] += (m0 * x0 + m1 * x1) + (m2 * x2 + m3 * x3)
                    out[right + s] += (n0 * x0 + n1 * x1) + (n2 * x2 + n3 * x3)
            if four < size:
                r0, p0 = first + four * size + j, begin + four * wide
                r1, p1 = r0 + size, p0 + wide
                m0, m1, n0, n1 = matrix[r0], matrix[r1], matrix[r0 + _1], matrix[r1 + _1]
                for s in range(wide):
                    x0, x1 = x[p0 + s], x[p1 + s]
                    out[left + s] += m0 * x0 + m1 * x1
                    out[right + s] += n0 * x0 + n1 * x1


@reordered
def _sums(
    x: Floats, begin: Index, y: Floats, to: Index, size: Index, batch: Batch, products: Floats, plain: Floats
) -> None:
    """``sum_j x[begin + j] y[to + j]`` and ``sum_j y[to + j]`` of each sequence."""
    if batch is None:
        both, own = 0.0, 0.0
        for j in range(size):
            both += x[begin + j] * y[to + j]
            own += y[to + j]
        products[0], plain[0] = both, own
    else:
        wide = np.uint64(len(batch))
        for s in range(wide):
            products[s], plain[s] = 0.0, 0.0
        for j in range(size):
            p, q = begin + j * wide, to + j * wide
            for s in range(wide):
                products[s] += x[p + s] * y[q + s]
                plain[s] += y[q + s]


@reordered
def _add_outer(left: Floats, right: Floats, size: Index, batch: Batch, sums: Floats) -> None:
    """``sums[i, j] += sum left[i] right[j]`` over four steps of all sequences.

    left and right are (4, K) of a single sequence, (K, 4, width) of a batch.
    """
    if batch is None:
        for i in range(size):
            a, b, c, d = left[i], left[size + i], left[_2 * size + i], left[_3 * size + i]
            row = i * size
            for j in range(size):
                near = a * right[j] + b * right[size + j]
                sums[row + j] += near + (c * right[_2 * size + j] + d * right[_3 * size + j])
    else:
        count = _4 * np.uint64(len(batch))
        for i in range(_0, size, _2):
            p0, row = i * count, i * size
            p1 = p0 + count
            for j in range(_0, size, _2):
                q0, cell = j * count, row + j
                q1 = q0 + count
                a, b, c, d = 0.0, 0.0, 0.0, 0.0
                for s in range(count):
                    x, y, u, v = left[p0 + s], left[p1 + s], right[q0 + s], right[q1 + s]
                    a, b, c, d = a + x * u, b + x * v, c + y * u, d + y * v
                sums[cell] += a
                sums[cell + _1] += b
                sums[cell + size] += c
                sums[cell + size + _1] += d


@reordered
def _scaled_product(rows: Floats, potentials: Floats, begin: Index, size: Index, batch: Batch, scale: Floats) -> None:
    """Multiply the rows of a step by its potentials; scale[s] is their sum."""
    if batch is None:
        total = 0.0
        for j in range(size):
            rows[begin + j] *= potentials[begin + j]
            total += rows[begin + j]
        scale[0] = total
    else:
        wide = np.uint64(len(batch))
        for s in range(wide):
            scale[s] = 0.0
        for j in range(size):
            p = begin + j * wide
            for s in range(wide):
                rows[p + s] *= potentials[p + s]
                scale[s] += rows[p + s]


@fused
def _forward(
    potentials: Floats,
    matrices: Floats,
    ends: Floats,
    size: Index,
    batch: Batch,
    begin: Index,
    lengths: Words,
    least: float,
    scratch: Floats,
    out: Floats,
    rows: Floats,
) -> None:
    """Forward rows of a batch, and log Z of its sequences: NaN where a row has less mass than `least`.

    scratch (2, width). Logarithms are taken of products of many scales at once.
    """
    wide = _1 if batch is None else np.uint64(len(batch))
    step, cells = size * wide, size * size
    shared, running = np.uint64(len(matrices)) == cells, wide
    scale, mass = scratch[0], scratch[1]
    for s in range(wide):
        out[s], mass[s] = 0.0, 1.0
    for t in range(lengths[_0]):
        here = begin + t * step
        while lengths[running - _1] <= t:
            running -= _1
        if t == _0:
            for j in range(size):
                for s in range(wide):
                    rows[here + j * wide + s] = ends[j]
        else:
            _product(matrices, _0 if shared else (here // step) * cells, size, batch, rows, here - step, rows, here)
        _scaled_product(rows, potentials, here, size, batch, scale)
        low, high = 1.0, 1.0
        for s in range(running):
            if scale[s] > least:
                mass[s] *= scale[s]
                low, high = min(low, mass[s]), max(high, mass[s])
            else:
                out[s] = math.nan
        if low < 1e-100 or high > 1e100:
            for s in range(running):
                out[s] += math.log(mass[s])
                mass[s] = 1.0
        for s in range(wide):
            scale[s] = 1.0 / scale[s] if scale[s] > least else 0.0
        for j in range(size):
            for s in range(wide):
                rows[here + j * wide + s] *= scale[s]
        for s in range(running):
            if lengths[s] == t + _1:
                end = 0.0
                for j in range(size):
                    end += rows[here + j * wide + s] * ends[size + j]
                out[s] += math.log(mass[s]) + math.log(end) if end > least else math.nan


@fused
def _weigh(
    share: Floats, running: Index, before: Index, least: float, mass: Floats, own: Floats, weight: Floats, out: Floats
) -> None:
    """Turn the masses of a step into factors: one over each, times the share for sums, and 0 where there is none."""
    for s in range(np.uint64(len(mass))):
        alive = s < running and out[s] == out[s]
        if alive and not mass[s] > least:
            out[s], alive = math.nan, False
        mass[s] = 1.0 / mass[s] if alive else 0.0
        weight[s] = share[s] * mass[s] if s < before else 0.0
        own[s] = 1.0 / own[s] if own[s] > least else 0.0


@fused
def _backward(
    potentials: Floats,
    matrices: Floats,
    turned: Floats,
    ends: Floats,
    size: Index,
    batch: Batch,
    begin: Index,
    lengths: Words,
    least: float,
    share: Floats,
    scratch: tuple[Floats, Floats, Floats, Floats, Floats],
    waiting: Index,
    out: Floats,
    rows: Floats,
    sums: Floats,
    pairs: Floats,
) -> Any:
    """Turn the forward rows of a batch into posteriors, and add joint ones, times share, to sums; returns what waits.

    A sequence whose mass turns out too small becomes NaN in out: its part of the sums is then wrong. One that is NaN
    beforehand has posteriors of 0 and no part. Products wait for those of four steps, so that the sums are read and
    written once for all of them; `waiting` says how many do.
    """
    wide = _1 if batch is None else np.uint64(len(batch))
    step, cells = size * wide, size * size
    slot_step, label_step = (size, _1) if batch is None else (wide, _4 * wide)  # In left and right: see `_add_outer`.
    shared, running, slot = np.uint64(len(matrices)) == cells, _0, waiting * slot_step
    (mass, own, weight), back, ahead, left, right = scratch
    t = lengths[_0]
    while t > _0:
        t -= _1
        here, before = begin + t * step, running
        while running < wide and lengths[running] > t:
            for j in range(size):
                back[j * wide + running] = ends[size + j]
            running += _1
        _sums(rows, here, back, _0, size, batch, mass, own)
        _weigh(share, running, before, least, mass, own, weight, out)
        if batch is None and before > _0 and (len(pairs) or not shared):
            near = here + step
            _add_pairs(rows, here, right, slot, mass[0], share[0], matrices, near, size, shared, sums, pairs)
        for j in range(size):
            p, q = j * wide, slot + j * label_step
            for s in range(wide):
                x, b = rows[here + p + s], back[p + s]
                left[q + s] = x * weight[s]
                rows[here + p + s] = x * b * mass[s]
                ahead[p + s] = b * own[s] * potentials[here + p + s]
        if before > _0:
            slot += slot_step
            if slot == _4 * slot_step:
                if shared:
                    _add_outer(left, right, size, batch, sums)
                slot = _0
        for j in range(size):
            p, q = j * wide, slot + j * label_step
            for s in range(wide):
                right[q + s] = ahead[p + s]
        if t > _0:
            _product(turned, _0 if shared else (here // step) * cells, size, batch, ahead, _0, back, _0)
    return slot // slot_step


@fused
def _add_pairs(
    rows: Floats,
    begin: Index,
    right: Floats,
    slot: Index,
    inverse: float,
    share: float,
    matrices: Floats,
    near: Index,
    size: Index,
    shared: bool,
    sums: Floats,
    pairs: Floats,
) -> None:
    """The joint posteriors of a step and the one after it, at `near`: written to pairs (steps, K, K), where asked for.

    Where each step has transitions of its own they are also added to the sums.
    """
    cell = (near // size) * size * size
    for i in range(size):
        x, row = rows[begin + i] * inverse, i * size
        source = row if shared else cell + row
        if len(pairs):
            for j in range(size):
                pairs[cell + row + j] = x * matrices[source + j] * right[slot + j]
        if not shared:
            for j in range(size):
                sums[row + j] += share * (x * matrices[source + j] * right[slot + j])


@fused
def forward(
    potentials: Floats,
    matrices: Floats,
    ends: Floats,
    size: Index,
    batch: Batch,
    begins: Words,
    lengths: Words,
    least: float,
    out: Floats,
    rows: Floats,
) -> None:
    """Scaled forward rows of batches, and log Z of their sequences (batches, width), NaN where log space is needed.

    potentials and rows are flat; matrices (K * K,) are shared by all steps or (steps * K * K,) lead into each step of
    single sequences; ends (2 * K,). begins (batches,) and lengths (batches, width), uint64: where in the flat arrays a
    batch begins, and the steps of its sequences, falling.
    """
    scratch = np.empty((2, lengths.shape[1]))
    for g in range(len(begins)):
        given = (potentials, matrices, ends, size, batch, begins[g], lengths[g], least)
        _forward(*given, scratch, out[g], rows)


@fused
def backward(
    potentials: Floats,
    matrices: Floats,
    turned: Floats,
    ends: Floats,
    size: Index,
    batch: Batch,
    begins: Words,
    lengths: Words,
    least: float,
    shares: Floats,
    out: Floats,
    rows: Floats,
    sums: Floats,
    pairs: Floats,
) -> None:
    """Turn forward rows of batches into posteriors, and add ``forward x backward`` to sums (K * K,), times shares.

    turned: the transpose of each of the matrices. The sums lack the factor of the transitions where those are shared.
    pairs (steps * K * K,) takes the joint posteriors of a step and the one before where it is not empty, of single
    sequences alone. Sequences that are NaN in out have no part; those that turn out too small here become NaN.
    """
    wide = np.uint64(lengths.shape[1])
    left, right = np.zeros(_4 * size * wide), np.zeros(_4 * size * wide)
    scratch, waiting = (np.empty((3, wide)), np.zeros(size * wide), np.empty(size * wide), left, right), _0
    for g in range(len(begins)):
        given = (potentials, matrices, turned, ends, size, batch, begins[g], lengths[g], least, shares[g])
        waiting = _backward(*given, scratch, waiting, out[g], rows, sums, pairs)
    if waiting > _0 and np.uint64(len(matrices)) == size * size:
        slot_step, label_step = (size, _1) if batch is None else (wide, _4 * wide)
        for slot in range(waiting, _4):
            for j in range(size):
                for s in range(wide):
                    left[slot * slot_step + j * label_step + s] = 0.0
        _add_outer(left, right, size, batch, sums)


@fused
def pack(rows: Floats, labels: Index, starts: Words, lengths: Words, size: Index, begins: Words, out: Floats) -> None:
    """Write rows (steps * labels,) of the sequences of batches side by side; size: labels and those that fill up.

    starts (batches, width): the first step of each sequence.
    """
    wide = np.uint64(lengths.shape[1])
    for g in range(len(begins)):
        for t in range(lengths[g, 0]):
            begin = begins[g] + t * size * wide
            for k in range(size * wide):
                out[begin + k] = 0.0
            for s in range(wide):
                if lengths[g, s] > t:
                    source, target = (starts[g, s] + t) * labels, begin + s
                    for j in range(labels):
                        out[target] = rows[source + j]
                        target += wide


@fused
def unpack(x: Floats, labels: Index, starts: Words, lengths: Words, size: Index, begins: Words, rows: Floats) -> None:
    """The way back from `pack`."""
    wide = np.uint64(lengths.shape[1])
    for g in range(len(begins)):
        for t in range(lengths[g, 0]):
            begin = begins[g] + t * size * wide
            for s in range(wide):
                if lengths[g, s] > t:
                    source, target = begin + s, (starts[g, s] + t) * labels
                    for j in range(labels):
                        rows[target + j] = x[source]
                        source += wide
