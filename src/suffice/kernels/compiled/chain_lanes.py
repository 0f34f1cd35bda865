"""Compiled loops over eight chains side by side: the same step of eight sequences makes one vector.

Numbers of a step lie as (labels, 8). The number of labels is padded to a multiple of four, and what belongs to a label
that is none is 0, so that products come in whole tiles.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from suffice.kernels.jit import kernel

# Vectors of lanes -----------------------------------------------------------------------------------------------------
# Products of tiles, written for LLVM as they are to be: from loops over eight numbers it makes slower code, as it
# cannot know that the arrays do not overlap. All arrays are flat and hold float64; x[j, l] stands for the number of
# label j in lane l, at the place 8 j + l.

LANES = 8
"""Sequences side by side."""

TILE = 4
"""Labels are padded to a multiple of this."""

STEPS = 8
"""Steps that wait before their products are added: the sums are read and written once for all of them."""

_FAST = ("contract", "nsz")


class _Lanes:
    """Vectors of eight numbers, or of as many as told, in flat float64 arrays, at generation time."""

    def __init__(self, context: Any, builder: Any, signature: Any, values: Any, wide: int = LANES) -> None:
        self._builder, self._vector = builder, ir.VectorType(ir.DoubleType(), wide)
        self._data = {
            at: context.make_array(kind)(context, builder, value).data
            for at, (kind, value) in enumerate(zip(signature.args, values, strict=True))
            if isinstance(kind, types.Array)
        }

    def number(self, value: int) -> Any:
        return ir.Constant(ir.IntType(64), value)

    def _pointer(self, array: int, at: Any) -> Any:
        place = self._builder.gep(self._data[array], [at])
        return self._builder.bitcast(place, self._vector.as_pointer())

    def load(self, array: int, at: Any) -> Any:
        return self._builder.load(self._pointer(array, at), align=8)

    def store(self, value: Any, array: int, at: Any) -> None:
        self._builder.store(value, self._pointer(array, at), align=8)

    def whole(self, array: int, at: Any) -> Any:
        """A number of an array."""
        return self._builder.load(self._builder.gep(self._data[array], [at]))

    def same(self, array: int, at: Any) -> Any:
        """One number in all lanes."""
        number = self.whole(array, at)
        undefined = ir.Constant(self._vector, ir.Undefined)
        one = self._builder.insert_element(undefined, number, ir.Constant(ir.IntType(32), 0))
        mask = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        return self._builder.shuffle_vector(one, undefined, mask)

    def held(self) -> Any:
        """A vector that a loop changes; LLVM keeps it in a register."""
        return cgutils.alloca_once(self._builder, self._vector)

    def clear(self, held: Any) -> None:
        self._builder.store(ir.Constant(self._vector, [0.0] * LANES), held)

    def add_product(self, held: Any, x: Any, y: Any) -> None:
        b = self._builder
        b.store(b.fadd(b.load(held), b.fmul(x, y, flags=_FAST), flags=_FAST), held)


@intrinsic  # type: ignore[untyped-decorator]
def product(context: Any, matrix: Any, size: Any, x: Any, begin: Any, out: Any) -> Any:
    """``out[i, l] = sum_j matrix[i, j] x[begin + j, l]``, four i at a time; the matrix is padded."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        lanes = _Lanes(context, builder, signature, values)
        size, begin = values[1], values[3]
        sums = [lanes.held() for _ in range(TILE)]
        with cgutils.for_range_slice(builder, lanes.number(0), size, lanes.number(TILE), size.type) as (row, _):
            for held in sums:
                lanes.clear(held)
            starts = [builder.mul(builder.add(row, lanes.number(r)), size) for r in range(TILE)]
            with cgutils.for_range(builder, size) as loop:
                vector = lanes.load(2, builder.add(begin, builder.mul(loop.index, lanes.number(LANES))))
                for held, start in zip(sums, starts, strict=True):
                    lanes.add_product(held, lanes.same(0, builder.add(start, loop.index)), vector)
            for r, held in enumerate(sums):
                at = builder.mul(builder.add(row, lanes.number(r)), lanes.number(LANES))
                lanes.store(builder.load(held), 4, at)
        return context.get_dummy_value()

    return types.void(matrix, size, x, begin, out), generate


@intrinsic  # type: ignore[untyped-decorator]
def add_outer(context: Any, left: Any, right: Any, size: Any, sums: Any) -> Any:
    """``sums[i, j, l] += sum_s left[s, i, l] right[s, j, l]`` over the steps that wait, in tiles of two by two."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        lanes = _Lanes(context, builder, signature, values)
        size, two, wide = values[2], lanes.number(2), lanes.number(LANES)
        held = [lanes.held() for _ in range(4)]
        stride = builder.mul(size, wide)
        with (
            cgutils.for_range_slice(builder, lanes.number(0), size, two, size.type) as (i, _),
            cgutils.for_range_slice(builder, lanes.number(0), size, two, size.type) as (j, _),
        ):
            places = [
                builder.mul(
                    builder.add(builder.mul(builder.add(i, lanes.number(a)), size), builder.add(j, lanes.number(b))),
                    wide,
                )
                for a in (0, 1)
                for b in (0, 1)
            ]
            for total, place in zip(held, places, strict=True):
                builder.store(lanes.load(3, place), total)
            with cgutils.for_range(builder, lanes.number(STEPS)) as loop:
                base = builder.mul(loop.index, stride)
                at, to = (builder.add(base, builder.mul(k, wide)) for k in (i, j))
                rows = [lanes.load(0, at), lanes.load(0, builder.add(at, wide))]
                columns = [lanes.load(1, to), lanes.load(1, builder.add(to, wide))]
                for place, total in enumerate(held):
                    lanes.add_product(total, rows[place // 2], columns[place % 2])
            for total, place in zip(held, places, strict=True):
                lanes.store(builder.load(total), 3, place)
        return context.get_dummy_value()

    return types.void(left, right, size, sums), generate


@intrinsic  # type: ignore[untyped-decorator]
def dots(context: Any, x: Any, y: Any, size: Any, out: Any) -> Any:
    """``out[l] = sum_j x[j, l] y[j, l]``."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        lanes = _Lanes(context, builder, signature, values)
        total = lanes.held()
        lanes.clear(total)
        with cgutils.for_range(builder, values[2]) as loop:
            at = builder.mul(loop.index, lanes.number(LANES))
            lanes.add_product(total, lanes.load(0, at), lanes.load(1, at))
        lanes.store(builder.load(total), 3, lanes.number(0))
        return context.get_dummy_value()

    return types.void(x, y, size, out), generate


@intrinsic  # type: ignore[untyped-decorator]
def scaled(context: Any, x: Any, factors: Any, size: Any, out: Any, begin: Any) -> Any:
    """``out[begin + j, l] = x[j, l] factors[l]``."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        lanes = _Lanes(context, builder, signature, values)
        factor = lanes.load(1, lanes.number(0))
        with cgutils.for_range(builder, values[2]) as loop:
            at = builder.mul(loop.index, lanes.number(LANES))
            product = builder.fmul(lanes.load(0, at), factor)
            lanes.store(product, 3, builder.add(values[4], at))
        return context.get_dummy_value()

    return types.void(x, factors, size, out, begin), generate


@intrinsic  # type: ignore[untyped-decorator]
def multiplied(context: Any, x: Any, y: Any, size: Any, out: Any, begin: Any) -> Any:
    """``out[begin + j, l] = x[j, l] y[j, l]``."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        lanes = _Lanes(context, builder, signature, values)
        with cgutils.for_range(builder, values[2]) as loop:
            at = builder.mul(loop.index, lanes.number(LANES))
            product = builder.fmul(lanes.load(0, at), lanes.load(1, at))
            lanes.store(product, 3, builder.add(values[4], at))
        return context.get_dummy_value()

    return types.void(x, y, size, out, begin), generate


def _turned(builder: Any, rows: Any) -> Any:
    """Four vectors of four numbers, rows and columns exchanged."""

    def mixed(x: Any, y: Any, *order: int) -> Any:
        return builder.shuffle_vector(x, y, ir.Constant(ir.VectorType(ir.IntType(32), TILE), list(order)))

    even = [mixed(rows[at], rows[at + 1], 0, 4, 2, 6) for at in (0, 2)]
    odd = [mixed(rows[at], rows[at + 1], 1, 5, 3, 7) for at in (0, 2)]
    return [mixed(*pair, *order) for order in ((0, 1, 4, 5), (2, 3, 6, 7)) for pair in (even, odd)]


@intrinsic  # type: ignore[untyped-decorator]
def turn_in(context: Any, rows: Any, at: Any, lane: Any, label: Any, out: Any) -> Any:
    """``out[label + j, lane + l] = rows[at[lane + l] + label + j]`` for four labels and four lanes."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        lanes = _Lanes(context, builder, signature, values, TILE)
        lane, label = values[2], values[3]
        places = [builder.add(lanes.whole(1, builder.add(lane, lanes.number(k))), label) for k in range(TILE)]
        for j, vector in enumerate(_turned(builder, [lanes.load(0, place) for place in places])):
            row = builder.mul(builder.add(label, lanes.number(j)), lanes.number(LANES))
            lanes.store(vector, 4, builder.add(row, lane))
        return context.get_dummy_value()

    return types.void(rows, at, lane, label, out), generate


@intrinsic  # type: ignore[untyped-decorator]
def turn_out(context: Any, x: Any, at: Any, lane: Any, label: Any, rows: Any) -> Any:
    """``rows[at[lane + l] + label + j] = x[label + j, lane + l]`` for four labels and four lanes."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        lanes = _Lanes(context, builder, signature, values, TILE)
        lane, label = values[2], values[3]
        steps = [builder.mul(builder.add(label, lanes.number(j)), lanes.number(LANES)) for j in range(TILE)]
        vectors = _turned(builder, [lanes.load(0, builder.add(step, lane)) for step in steps])
        for k, vector in enumerate(vectors):
            lanes.store(vector, 4, builder.add(lanes.whole(1, builder.add(lane, lanes.number(k))), label))
        return context.get_dummy_value()

    return types.void(x, at, lane, label, rows), generate


# Loops ----------------------------------------------------------------------------------------------------------------

_0, _1, _3, _4, _W, _WAITING = (np.uint64(n) for n in (0, 1, 3, TILE, LANES, STEPS))


@kernel
def _gather(rows: Any, size: Any, at: Any, live: Any, out: Any) -> None:
    """``out[j, l] = rows[at[l] + j]`` for the lanes that live."""
    lane = _0
    while lane + _4 <= live and size >= _4:
        for j in range(_0, size - _3, _4):
            turn_in(rows, at, lane, j, out)
        turn_in(rows, at, lane, size - _4, out)  # The last four again, where the number is no multiple of four.
        lane += _4
    while lane < live:
        place, to = at[lane], lane
        for j in range(size):
            out[to] = rows[place + j]
            to += _W
        lane += _1


@kernel
def _scatter(x: Any, size: Any, at: Any, live: Any, rows: Any) -> None:
    """``rows[at[l] + j] = x[j, l]`` for the lanes that live."""
    lane = _0
    while lane + _4 <= live and size >= _4:
        for j in range(_0, size - _3, _4):
            turn_out(x, at, lane, j, rows)
        turn_out(x, at, lane, size - _4, rows)
        lane += _4
    while lane < live:
        place, source = at[lane], lane
        for j in range(size):
            rows[place + j] = x[source]
            source += _W
        lane += _1


@kernel
def _invert(x: Any, live: Any, least: float, out: Any) -> None:
    """One over each number; 0 where it is too small, and then NaN in the answer of a lane that lives."""
    for lane in range(live):
        if not x[lane] > least:
            out[lane] = math.nan
    for lane in range(_W):
        x[lane] = 1.0 / x[lane] if x[lane] > least else 0.0


@kernel
def _forward(potentials: Any, turned: Any, ends: Any, group: Any, size: Any, least: float, out: Any, rows: Any) -> None:
    """Scaled forward rows of one group; group (2, 8): where the sequences of its lanes begin, and their lengths."""
    padded = np.uint64(ends.shape[1])
    many = padded * _W
    a, b, here = np.zeros(many), np.zeros(many), np.zeros(many)
    scale, mass, at = np.empty(_W), np.ones(_W), group[0] * size
    lengths, live = group[1], _W
    out[:] = 0.0
    for t in range(lengths[_0]):
        while lengths[live - _1] <= t:
            live -= _1
            for j in range(padded):
                here[j * _W + live] = 0.0
        _gather(potentials, size, at, live, here)
        if t == _0:
            for k in range(many):
                b[k] = ends[0, k // _W]
        else:
            product(turned, padded, a, _0, b)
        multiplied(b, here, padded, a, _0)
        dots(b, here, padded, scale)
        far = 0
        for lane in range(_W):
            mass[lane] *= scale[lane] if scale[lane] > least else 1.0
            far += 1 if mass[lane] < 1e-100 or mass[lane] > 1e100 else 0
        if far:
            for lane in range(_W):
                out[lane] += math.log(mass[lane])
                mass[lane] = 1.0
        _invert(scale, live, least, out)
        scaled(a, scale, padded, a, _0)
        _scatter(a, size, at, live, rows)
        for lane in range(_W):
            at[lane] += size
    for lane in range(_W):
        out[lane] += math.log(mass[lane])
        if lengths[lane] > _0:
            end, last = 0.0, (group[0, lane] + lengths[lane] - _1) * size
            for j in range(size):
                end += rows[last + j] * ends[1, j]
            out[lane] += math.log(end) if end > least else math.nan


@kernel
def _begin(ends: Any, last: Any, size: Any, least: float, lane: Any, back: Any, rows: Any) -> None:
    """A lane begins at the end of its sequence: its last posteriors, and its final weights as messages."""
    total = 0.0
    for j in range(size):
        back[j * _W + lane] = ends[1, j]
        rows[last + j] *= ends[1, j]
        total += rows[last + j]
    inverse = 1.0 / total if total > least else 0.0
    for j in range(size):
        rows[last + j] *= inverse


@kernel
def _backward(
    potentials: Any,
    matrix: Any,
    ends: Any,
    group: Any,
    size: Any,
    least: float,
    weights: Any,
    out: Any,
    rows: Any,
    sums: Any,
) -> None:
    """Turn the forward rows of one group into posteriors, and add ``forward x backward`` to sums, weighted."""
    padded = np.uint64(ends.shape[1])
    many = padded * _W
    a, here, back, far, ones = np.zeros(many), np.zeros(many), np.zeros(many), np.zeros(many), np.ones(many)
    left, right, slot = np.zeros(many * _WAITING), np.zeros(many * _WAITING), _0
    scale, own, spare = np.empty(_W), np.empty(_W), np.zeros(_W)
    lengths, live = group[1], _0
    t = lengths[_0]
    at = (group[0] + t) * size
    while t > _0:
        for lane in range(_W):
            at[lane] -= size
        while live < _W and lengths[live] == t:
            _begin(ends, at[live], size, least, live, back, rows)
            live += _1
        t -= _1
        if t == _0:
            break
        _gather(potentials, size, at, live, here)
        multiplied(back, here, padded, right, slot)
        product(matrix, padded, right, slot, far)
        for lane in range(_W):
            at[lane] -= size
        _gather(rows, size, at, live, a)
        dots(a, far, padded, scale)
        dots(ones, far, padded, own)
        _invert(scale, live, least, out)
        _invert(own, _0, least, spare)
        scaled(far, own, padded, back, _0)
        scaled(a, scale, padded, a, _0)
        scaled(a, weights, padded, left, slot)
        multiplied(a, far, padded, a, _0)
        _scatter(a, size, at, live, rows)
        for lane in range(_W):
            at[lane] += size
        slot += many
        if slot == many * _WAITING:
            add_outer(left, right, padded, sums)
            slot = _0
    for k in range(slot, many * _WAITING):
        left[k] = 0.0
    add_outer(left, right, padded, sums)


@kernel
def forwards(
    potentials: Any, turned: Any, ends: Any, groups: Any, size: Any, least: float, out: Any, rows: Any
) -> None:
    """Scaled forward rows, and the log of the mass of each lane (groups, 8), NaN where a row is below `least`.

    potentials and rows (steps * size,); turned (padded * padded,), the transpose of the transitions; ends (2, padded);
    groups (groups, 2, 8), uint64: where the sequences of the lanes begin, and their lengths, falling.
    """
    for g in range(len(groups)):
        _forward(potentials, turned, ends, groups[g], size, least, out[g], rows)


@kernel
def backwards(
    potentials: Any,
    matrix: Any,
    ends: Any,
    groups: Any,
    size: Any,
    least: float,
    weights: Any,
    out: Any,
    rows: Any,
    sums: Any,
) -> None:
    """Turn forward rows into posteriors, and add ``forward x backward`` to sums (padded * padded * 8,), weighted.

    The sums lack the factor of the transitions. Lanes that turn out too small become NaN in out (groups, 8). weights
    (groups, 8) are those of the sequences.
    """
    for g in range(len(groups)):
        _backward(potentials, matrix, ends, groups[g], size, least, weights[g], out[g], rows, sums)
