"""Compiled loops over 32 chains side by side, from sparse features to their expected sums, all inside the cache.

The numbers of one step lie as (labels, 32): the same step of 32 sequences. Every inner loop runs over the lanes, whose
number LLVM knows, so that it makes vectors and sees that blocks of rows do not overlap. Sequences of a group come from
the longest to the shortest, so that those that still run at a step are the first lanes. A feature with many labels has
a row of `width` weights; those with few have single weights, each with its label.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from suffice.kernels.jit import fused

LANES = 32
"""Sequences side by side."""

BLOCK = 8
"""Labels of one feature that has many are padded to a multiple of this."""

PART = 4
"""Products of lanes are added to this many sums, which are joined at the end."""

_0, _1, _2, _3, _4, _W, _B = (np.uint64(n) for n in (0, 1, 2, 3, 4, LANES, BLOCK))
_LOG2_E, _ROUND, _SMALLEST = 1.0 / float(np.log(2.0)), 1.5 * 2.0**52, -708.0
_LOG_2_HIGH = float.fromhex("0x1.62e42fee00000p-1")  # log 2 in two parts; products of the first with n are exact.
_LOG_2_LOW = float.fromhex("0x1.a39ef35793c76p-33")


@intrinsic  # type: ignore[untyped-decorator]
def _power(context: Any, rounded: Any) -> Any:
    """2^n from the double 1.5 * 2^52 + n."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        wide = ir.IntType(64)
        shifted = builder.shl(builder.bitcast(values[0], wide), ir.Constant(wide, 52))
        return builder.bitcast(builder.add(shifted, ir.Constant(wide, 1023 << 52)), ir.DoubleType())

    return types.float64(types.float64), generate


class _Vectors:
    """Vectors in flat arrays of float64, at generation time: LLVM need not find out that arrays do not overlap."""

    def __init__(self, context: Any, builder: Any, signature: Any, values: Any, lanes: int) -> None:
        self._builder, self._kind = builder, ir.VectorType(ir.DoubleType(), lanes)
        self._data = [
            context.make_array(kind)(context, builder, value).data if isinstance(kind, types.Array) else None
            for kind, value in zip(signature.args, values, strict=True)
        ]

    def _pointer(self, array: int, at: Any, more: int) -> Any:
        place = self._builder.gep(self._data[array], [self.moved(at, more)])
        return self._builder.bitcast(place, self._kind.as_pointer())

    def moved(self, at: Any, more: int) -> Any:
        return self._builder.add(at, ir.Constant(at.type, more))

    def load(self, array: int, at: Any, more: int = 0) -> Any:
        return self._builder.load(self._pointer(array, at, more), align=8)

    def store(self, value: Any, array: int, at: Any, more: int = 0) -> None:
        self._builder.store(value, self._pointer(array, at, more), align=8)

    def same(self, number: Any) -> Any:
        """One number in all lanes."""
        undefined = ir.Constant(self._kind, ir.Undefined)
        one = self._builder.insert_element(undefined, number, ir.Constant(ir.IntType(32), 0))
        mask = ir.Constant(ir.VectorType(ir.IntType(32), self._kind.count), [0] * self._kind.count)
        return self._builder.shuffle_vector(one, undefined, mask)

    def same_of(self, array: int, at: Any) -> Any:
        """One number of an array in all lanes."""
        return self.same(self.number(array, at))

    def number(self, array: int, at: Any) -> Any:
        """One number of an array."""
        return self._builder.load(self._builder.gep(self._data[array], [at]))

    def zero(self) -> Any:
        return ir.Constant(self._kind, [0.0] * self._kind.count)

    def with_product(self, total: Any, x: Any, y: Any) -> Any:
        product = self._builder.fmul(x, y, flags=("contract",))
        return self._builder.fadd(total, product, flags=("contract",))


@intrinsic  # type: ignore[untyped-decorator]
def _add_block(context: Any, out: Any, to: Any, x: Any, at: Any, value: Any) -> Any:
    """``out[to + k] += value * x[at + k]`` for the eight numbers of a block."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        vectors = _Vectors(context, builder, signature, values, BLOCK)
        total = vectors.with_product(vectors.load(0, values[1]), vectors.same(values[4]), vectors.load(2, values[3]))
        vectors.store(total, 0, values[1])
        return context.get_dummy_value()

    return types.void(out, to, x, at, value), generate


def _sum_of(blocks: int) -> Any:
    """The loop over entries that holds so many blocks of sums in registers."""

    @intrinsic  # type: ignore[untyped-decorator]
    def loop(context: Any, row: Any, to: Any, weights: Any, places: Any, first: Any, last: Any) -> Any:
        """``row[to + k] = sum over entries e of weights[places[e] + to + k]``."""

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            vectors = _Vectors(context, builder, signature, values, BLOCK)
            totals = [cgutils.alloca_once(builder, vectors.zero().type) for _ in range(blocks)]
            for total in totals:
                builder.store(vectors.zero(), total)
            with cgutils.for_range(builder, values[5], start=values[4]) as entry:
                place = builder.add(builder.zext(vectors.number(3, entry.index), values[1].type), values[1])
                for b, total in enumerate(totals):
                    more = vectors.load(2, place, b * BLOCK)
                    builder.store(builder.fadd(builder.load(total), more), total)
            for b, total in enumerate(totals):
                vectors.store(builder.load(total), 0, values[1], b * BLOCK)
            return context.get_dummy_value()

        return types.void(row, to, weights, places, first, last), generate

    return loop


_sum_one, _sum_two, _sum_three = _sum_of(1), _sum_of(2), _sum_of(3)


@intrinsic  # type: ignore[untyped-decorator]
def _add_tile(context: Any, x: Any, p: Any, y: Any, q: Any, sums: Any, s: Any, stride: Any) -> Any:
    """Add ``x[i, l] y[j, l]`` to sums (i, j, 4), lane l to the place l % 4, for two i from p and four j from q on."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        vectors = _Vectors(context, builder, signature, values, PART)
        p, q, rows = values[1], values[3], (values[5], builder.add(values[5], values[6]))
        tile = [(a, b) for a in range(2) for b in range(4)]
        totals = {(a, b): vectors.load(4, rows[a], PART * b) for a, b in tile}
        for lane in range(0, LANES, PART):
            left = [vectors.load(0, p, a * LANES + lane) for a in range(2)]
            right = [vectors.load(2, q, b * LANES + lane) for b in range(4)]
            totals = {(a, b): vectors.with_product(totals[a, b], left[a], right[b]) for a, b in tile}
        for a, b in tile:
            vectors.store(totals[a, b], 4, rows[a], PART * b)
        return context.get_dummy_value()

    return types.void(x, p, y, q, sums, s, stride), generate


@intrinsic  # type: ignore[untyped-decorator]
def _product_tile(context: Any, matrix: Any, m: Any, size: Any, x: Any, p: Any, out: Any, q: Any) -> Any:
    """``out[q + j, l] = sum_i matrix[m + j, i] x[p + i, l]`` for four j and eight l."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        vectors = _Vectors(context, builder, signature, values, BLOCK)
        _, m, size, _, p, _, q = values
        totals = [cgutils.alloca_once_value(builder, vectors.zero()) for _ in range(4)]
        rows = [m]
        for total in totals:
            builder.store(vectors.zero(), total)
            rows.append(builder.add(rows[-1], size))
        with cgutils.for_range(builder, size) as loop:
            here = vectors.load(3, builder.add(p, builder.mul(loop.index, ir.Constant(p.type, LANES))))
            for total, row in zip(totals, rows, strict=False):
                factor = vectors.same_of(0, builder.add(row, loop.index))
                builder.store(vectors.with_product(builder.load(total), factor, here), total)
        for j, total in enumerate(totals):
            vectors.store(builder.load(total), 5, q, j * LANES)
        return context.get_dummy_value()

    return types.void(matrix, m, size, x, p, out, q), generate


@fused
def _exponentials(x: Any, count: Any) -> None:
    """Write exp over the first numbers of x, which are at most 0, in place; below the smallest normal number 0.

    ``2^n`` times the series of ``exp(r)`` with ``|r| <= log(2) / 2``, whose terms up to r^13 / 13! reach the last bit.
    """
    for k in range(count):
        given = x[k]
        inside = given if given > _SMALLEST else _SMALLEST
        moved = inside * _LOG2_E + _ROUND
        n = moved - _ROUND
        r = (inside - n * _LOG_2_HIGH) - n * _LOG_2_LOW
        z = r * r
        low = (1.0 + r) + z * ((1 / 2 + r * (1 / 6)) + z * ((1 / 24 + r * (1 / 120)) + z * (1 / 720 + r * (1 / 5040))))
        high = (1 / 40320 + r * (1 / 362880)) + z * (1 / 3628800 + r * (1 / 39916800))
        high += (z * z) * (1 / 479001600 + r * (1 / 6227020800))
        value = (low + (z * z) * (z * z) * high) * _power(moved)
        x[k] = value if given > _SMALLEST else 0.0


@fused
def _sum_rows(weights: Any, places: Any, first: Any, last: Any, width: Any, row: Any) -> None:
    """The sum of rows of weights (width,), three blocks at a time."""
    b = _0
    while b + _3 * _B <= width:
        _sum_three(row, b, weights, places, first, last)
        b += _3 * _B
    if b + _2 * _B == width:
        _sum_two(row, b, weights, places, first, last)
    elif b < width:
        _sum_one(row, b, weights, places, first, last)


@fused
def _score(entries: Any, weights: Any, width: Any, step: Any, row: Any) -> None:
    """The scores of all labels at a step: row (width,)."""
    ends, places, values, single_ends, single_places, single_labels, single_values = entries
    first, last = np.uint64(ends[step]), np.uint64(ends[step + _1])
    if len(values) == 0:
        _sum_rows(weights, places, first, last, width, row)
    else:
        row[:] = 0.0
        for e in range(first, last):
            for b in range(_0, width, _B):
                _add_block(row, b, weights, np.uint64(places[e]) + b, values[e])
    for e in range(np.uint64(single_ends[step]), np.uint64(single_ends[step + _1])):
        value = single_values[e] if len(single_values) else 1.0
        row[np.uint64(single_labels[e])] += value * weights[np.uint64(single_places[e])]


@fused
def _add(entries: Any, row: Any, width: Any, step: Any, out: Any) -> None:
    """Add the features of a step times row (width,) to sums."""
    ends, places, values, single_ends, single_places, single_labels, single_values = entries
    for e in range(np.uint64(ends[step]), np.uint64(ends[step + _1])):
        place, value = np.uint64(places[e]), values[e] if len(values) else 1.0
        for b in range(_0, width, _B):
            _add_block(out, place + b, row, b, value)
    for e in range(np.uint64(single_ends[step]), np.uint64(single_ends[step + _1])):
        value = single_values[e] if len(single_values) else 1.0
        out[np.uint64(single_places[e])] += value * row[np.uint64(single_labels[e])]


@fused
def _product(matrix: Any, size: Any, x: Any, begin: Any, out: Any, to: Any) -> None:
    """``out[to + j, l] = sum_i matrix[j, i] x[begin + i, l]``; size, a multiple of four, counts rows of the matrix."""
    for lane in range(_0, _W, _B):
        for j in range(_0, size, _4):
            _product_tile(matrix, j * size, size, x, begin + lane, out, to + j * _W + lane)


@fused
def _add_outer(x: Any, y: Any, size: Any, sums: Any) -> None:
    """Add ``x[i, l] y[j, l]`` to sums (i, j, 4), lane l to the place l % 4."""
    for i in range(_0, size, _2):
        for j in range(_0, size, _4):
            _add_tile(x, i * _W, y, j * _W, sums, (i * size + j) * _4, size * _4)


@fused
def _load(entries: Any, weights: Any, step: Any, lengths: Any, sizes: Any, potentials: Any, out: Any) -> None:
    """Scaled potentials ``exp(score - maximum)`` of all steps of a group, (steps, padded, 32); the maxima go to out."""
    labels, padded, width = sizes
    row, top = np.zeros(width), np.empty(_W)
    for t in range(lengths[_0]):
        base = t * padded * _W
        for k in range(padded * _W):
            potentials[base + k] = 0.0
        for k in range(labels * _W, padded * _W):
            potentials[base + k] = -math.inf
        live = _0
        while live < _W and lengths[live] > t:
            _score(entries, weights, width, step, row)
            place = base + live
            for j in range(labels):
                potentials[place + j * _W] = row[j]
            live += _1
            step += _1
        for k in range(_W):
            top[k] = potentials[base + k]
        for j in range(_1, labels):
            at = base + j * _W
            for k in range(_W):
                x = potentials[at + k]
                top[k] = x if x > top[k] else top[k]
        for j in range(padded):
            at = base + j * _W
            for k in range(_W):
                potentials[at + k] -= top[k]
        for k in range(live):
            out[k] += top[k]
    _exponentials(potentials, lengths[_0] * padded * _W)


@fused
def _forward(
    potentials: Any, turned: Any, ends: Any, lengths: Any, sizes: Any, least: float, rows: Any, out: Any
) -> None:
    """Scaled forward rows (steps, padded, 32); the log of the mass is added to out, NaN where one is below `least`."""
    padded = sizes[1]
    many, live = padded * _W, _W
    scale, mass = np.empty(_W), np.ones(_W)
    for t in range(lengths[_0]):
        at = t * many
        while lengths[live - _1] <= t:
            live -= _1
        if t == _0:
            for j in range(padded):
                for k in range(_W):
                    rows[j * _W + k] = ends[j]
        else:
            _product(turned, padded, rows, at - many, rows, at)
        for k in range(_W):
            scale[k] = 0.0
        for j in range(padded):
            place = at + j * _W
            for k in range(_W):
                rows[place + k] *= potentials[place + k]
                scale[k] += rows[place + k]
        low = 1.0
        for k in range(live):
            mass[k] *= scale[k]
            low = min(low, mass[k])
            if not scale[k] > least:
                out[k], mass[k] = math.nan, 1.0
        if low < 1e-100:
            for k in range(_W):
                out[k] += math.log(mass[k])
                mass[k] = 1.0
        for k in range(_W):
            scale[k] = 1.0 / scale[k] if scale[k] > least else 0.0
        for j in range(padded):
            place = at + j * _W
            for k in range(_W):
                rows[place + k] *= scale[k]
    for k in range(_W):
        out[k] += math.log(mass[k])


@fused
def _masses(rows: Any, at: Any, padded: Any, back: Any, mass: Any, own: Any) -> None:
    """``mass[l] = sum_i rows[at + i, l] back[i, l]``, and the sums of back."""
    for k in range(_W):
        mass[k] = 0.0
        own[k] = 0.0
    for j in range(padded):
        place, p = at + j * _W, j * _W
        for k in range(_W):
            mass[k] += rows[place + k] * back[p + k]
            own[k] += back[p + k]


@fused
def _backward(
    potentials: Any,
    matrix: Any,
    final: Any,
    lengths: Any,
    shares: Any,
    sizes: Any,
    least: float,
    rows: Any,
    out: Any,
    sums: Any,
) -> bool:
    """Turn forward rows into posteriors, weighted, and add ``forward x backward`` to sums; whether all went well.

    The sums lack the factor of the transitions. A lane whose mass is too small becomes NaN in out: its part of the sums
    is then wrong. Lanes that are NaN beforehand have no posteriors and no part.
    """
    padded = sizes[1]
    many, fine, live = padded * _W, True, _0
    back, ahead, left = np.empty(many), np.zeros(many), np.empty(many)
    mass, own, weight = np.empty(_W), np.empty(_W), np.empty(_W)
    for j in range(padded):
        for k in range(_W):
            back[j * _W + k] = final[j]
    t = lengths[_0]
    while t > _0:
        t -= _1
        at, before = t * many, live
        while live < _W and lengths[live] > t:
            for j in range(padded):
                back[j * _W + live] = final[j]
            live += _1
        _masses(rows, at, padded, back, mass, own)
        for k in range(_W):
            alive = k < live and out[k] == out[k]
            if alive and not mass[k] > least:
                out[k], fine, alive = math.nan, False, False
            if k < live and k >= before and alive:
                out[k] += math.log(mass[k])
            mass[k] = shares[k] / mass[k] if alive else 0.0
            weight[k] = mass[k] if k < before else 0.0
            own[k] = 1.0 / own[k] if own[k] > least else 0.0
        for j in range(padded):
            place, p = at + j * _W, j * _W
            for k in range(_W):
                x, b = rows[place + k], back[p + k]
                left[p + k] = x * weight[k]
                rows[place + k] = x * b * mass[k]
                back[p + k] = b * own[k] * potentials[place + k]
        if before > _0:
            _add_outer(left, ahead, padded, sums)
        for k in range(many):
            ahead[k] = back[k]
        if t > _0:
            _product(matrix, padded, ahead, _0, back, _0)
    return fine


@fused
def _collect(entries: Any, step: Any, lengths: Any, sizes: Any, rows: Any, states: Any, ends: Any) -> None:
    """Add the features of all steps times their posteriors to packed sums, and those of first and last labels."""
    labels, padded, width = sizes
    row = np.zeros(width)
    for t in range(lengths[_0]):
        live = _0
        while live < _W and lengths[live] > t:
            place = t * padded * _W + live
            for j in range(labels):
                row[j] = rows[place + j * _W]
            if t == _0:
                for j in range(labels):
                    ends[j] += row[j]
            if t + _1 == lengths[live]:
                for j in range(labels):
                    ends[padded + j] += row[j]
            _add(entries, row, width, step, states)
            live += _1
            step += _1


@fused
def expected(
    entries: Any, weights: Any, chain: Any, groups: Any, sizes: Any, least: float, shares: Any, work: Any, found: Any
) -> None:
    """Expected features of groups of sequences, weighted by shares; those that need log space are left out.

    entries, all by step, in the order of groups, steps and lanes: ends of each step, places and values of features
    with a row of weights; ends, places, labels and values of single weights; no values means ones. chain: transitions
    (padded * padded,), their transpose, and ends (2 * padded,). groups: first steps (g,) and lengths (g, 32), uint64.
    sizes: labels, padded labels, width. shares (g, 32). work: two arrays (longest * padded * 32,). found: log masses
    (g, 32), NaN where log space is needed; sums of features; sums (padded * padded * 4,); ends (2 * padded,).
    """
    matrix, turned, ends = chain
    potentials, rows = work
    out, states, sums, borders = found
    padded = sizes[1]
    kept, shift = np.empty(len(sums)), np.empty(LANES)
    for g in range(len(groups[0])):
        begin, lengths, here, share = groups[0][g], groups[1][g], out[g], shares[g]
        shift[:] = 0.0
        here[:] = 0.0
        _load(entries, weights, begin, lengths, sizes, potentials, shift)
        _forward(potentials, turned, ends, lengths, sizes, least, rows, here)
        kept[:] = sums
        if not _backward(potentials, matrix, ends[padded:], lengths, share, sizes, least, rows, here, sums):
            # Found too small on the way back, when part of its sums had been added: once more without it.
            lost = np.isnan(here)
            sums[:] = kept
            here[:] = 0.0
            _forward(potentials, turned, ends, lengths, sizes, least, rows, here)
            here[lost] = math.nan
            _backward(potentials, matrix, ends[padded:], lengths, share, sizes, least, rows, here, sums)
        here += shift
        _collect(entries, begin, lengths, sizes, rows, states, borders)
