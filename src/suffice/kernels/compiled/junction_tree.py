"""Compiled loops of the junction tree: messages between tables that lie in one flat buffer.

`w` is the buffer; positions in it, and all other numbers, are uint64, as signed ones would keep LLVM from vectorising.
A table of c cells takes c times `batch` numbers, the case last. `program` begins with the numbers named in capitals
below, and `suffice.kernels.junction_tree_program` writes it.

A *side* tells how a table and a smaller one meet (see `suffice.kernels.junction_tree_layout.Meeting`): start of the
table, number of runs, their length, place of their offsets, 1 if runs lie inside the smaller table, number of runs to
fold, their length, place of their offsets. Four kinds of row use it:

- a message: start and size of the separator, clique, parent, least number that needs no scaling (as bits of a double),
  side of the clique, side of the parent;
- an entry, a small table that a clique is multiplied by: clique, start, cells, column, 1 if the column holds codes,
  side;
- an exit, a small table that a clique is summed out to: clique, start, cells, column, 0, side;
- a step of proportional fitting: see `walk`.

A clique is read from its *origin*: from its potential until it is first written to, then from its belief. Scaling is by
powers of two, which is exact. The floor of a clique is a lower bound of the non-zero products of its potential, its
entries and the messages to it. While it is far above the smallest double, no product has been lost to underflow, and a
zero is a true zero.

Only loops at the ends of the call tree are functions of their own: to pass arrays further, Numba counts references,
which takes longer than a message of a small tree.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from suffice.array_types import AnyInts, Codes, Floats, Index, Span, Words
from suffice.kernels.jit import kernel

_0, _1, _2, _3, _4, _5, _6, _7 = (np.uint64(number) for number in range(8))
_CHILD, _PARENT = np.uint64(5), np.uint64(13)  # Where the sides begin in a message.
_SIDE = np.uint64(5)  # Where the side begins in an entry or exit.
_MESSAGE, _ROW = np.uint64(21), np.uint64(13)  # Numbers of a message, and of an entry or exit.
_GIVER, _TAKER, _STEP = np.uint64(4), np.uint64(12), np.uint64(20)  # Where the sides begin in a step, and its numbers.

# Places in the program: numbers of cases, cliques, roots and messages, and where their descriptions begin; then
# positions in the buffer: scratch, a fresh message, floors, powers, origins of the cliques, log Z of each case.
_BATCH, _CLIQUES, _CLIQUES_AT, _ROOTS, _ROOTS_AT = (np.uint64(number) for number in range(5))
_MESSAGES, _MESSAGES_AT, _SCRATCH, _FRESH, _FLOORS = (np.uint64(number) for number in range(5, 10))
_POWERS, _ORIGINS, _LOGS = (np.uint64(number) for number in range(10, 13))

_EXPONENT = np.uint64(52)  # The place of the exponent in a double, its value for [0.5, 1), and twice that plus one.
_HALF = np.uint64(1022)
_OPPOSITE = np.uint64(2045)
_ONE = np.uint64(1023) << _EXPONENT  # The bits of 1.0.
_LOG_TWO = float(np.log(2.0))
_LOW = 2.0**-900  # A floor below this is worth a second look.


@kernel
def _reduce(
    w: Floats, offsets: AnyInts, program: Words, side: Index, source: Index, target: Index, size: Index, scratch: Index
) -> None:
    """Sum the table at source out to the smaller table at target."""
    runs, length, first = program[side + _1], program[side + _2], program[side + _3]
    folds, tail = program[side + _5], program[side + _6]
    inner = target
    for k in range(size):
        w[target + k] = 0.0
    if folds != _0:
        inner = scratch
        for k in range(folds * tail):
            w[inner + k] = 0.0
    if length == _1:
        for r in range(runs):
            w[inner + np.uint64(offsets[first + r])] += w[source + r]
    elif program[side + _4] != _0:
        for r in range(runs):
            cell = inner + np.uint64(offsets[first + r])
            for k in range(length):
                w[cell + k] += w[source + k]
            source += length
    else:
        for r in range(runs):
            a, b, c, d = 0.0, 0.0, 0.0, 0.0  # Four sums: a single one would wait for itself.
            for k in range(source, source + (length & ~_3), _4):
                a, b, c, d = a + w[k], b + w[k + _1], c + w[k + _2], d + w[k + _3]
            for k in range(source + (length & ~_3), source + length):
                a += w[k]
            w[inner + np.uint64(offsets[first + r])] += (a + b) + (c + d)
            source += length
    first = program[side + _7]
    if tail == _1:
        for r in range(folds):
            w[target + np.uint64(offsets[first + r])] += w[inner + r]
    else:
        for r in range(folds):
            cell = target + np.uint64(offsets[first + r])
            for k in range(tail):
                w[cell + k] += w[inner + k]
            inner += tail


@kernel
def _widen(w: Floats, offsets: AnyInts, program: Words, side: Index, source: Index, target: Index) -> None:
    """Undo the fold of the small table at source."""
    folds, tail, first = program[side + _5], program[side + _6], program[side + _7]
    if tail == _1:
        for r in range(folds):
            w[target + r] = w[source + np.uint64(offsets[first + r])]
    else:
        for r in range(folds):
            cell = source + np.uint64(offsets[first + r])
            for k in range(tail):
                w[target + k] = w[cell + k]
            target += tail


@kernel
def _multiply(w: Floats, offsets: AnyInts, program: Words, side: Index, source: Index) -> None:
    """Multiply a table in place by the smaller table at source."""
    table, runs, length, first = program[side], program[side + _1], program[side + _2], program[side + _3]
    if length == _1:
        for r in range(runs):
            w[table + r] *= w[source + np.uint64(offsets[first + r])]
    elif program[side + _4] != _0:
        for r in range(runs):
            cell = source + np.uint64(offsets[first + r])
            for k in range(length):
                w[table + k] *= w[cell + k]
            table += length
    else:
        for r in range(runs):
            factor = w[source + np.uint64(offsets[first + r])]
            for k in range(length):
                w[table + k] *= factor
            table += length


@kernel
def _multiply_from(w: Floats, offsets: AnyInts, program: Words, side: Index, source: Index, origin: Index) -> None:
    """Set a table to the one at origin times the smaller one at source.

    Loops of their own: in place, LLVM's check for overlap would choose the slow way.
    """
    table, runs, length, first = program[side], program[side + _1], program[side + _2], program[side + _3]
    if length == _1:
        for r in range(runs):
            w[table + r] = w[origin + r] * w[source + np.uint64(offsets[first + r])]
    elif program[side + _4] != _0:
        for r in range(runs):
            cell = source + np.uint64(offsets[first + r])
            for k in range(length):
                w[table + k] = w[origin + k] * w[cell + k]
            table += length
            origin += length
    else:
        for r in range(runs):
            factor = w[source + np.uint64(offsets[first + r])]
            for k in range(length):
                w[table + k] = w[origin + k] * factor
            table += length
            origin += length


@kernel
def _spread(w: Floats, bits: Words, program: Words, clique: Index) -> None:
    """Copy the potential of a clique, the same in the whole batch, to where its belief will be."""
    row = program[_CLIQUES_AT] + _3 * clique
    start, origin, cells, batch = program[row], program[row + _1], program[row + _2], program[_BATCH]
    bits[program[_ORIGINS] + clique] = start
    for cell in range(origin, origin + cells):
        value = w[cell]
        for k in range(batch):
            w[start + k] = value
        start += batch


@kernel
def _extremes(bits: Words, start: Index, size: Index) -> Any:
    """Return the bits of the largest number of a table, and of the least one that is not 0 or above 1.

    Doubles that are not negative are ordered as their bits, and 0 - 1 wraps to the largest number. `bits` is `w`.
    """
    most, least = _0, _ONE - _1
    for k in range(size):
        most = max(most, bits[start + k])
        least = min(least, bits[start + k] - _1)
    return most, least + _1


@kernel
def _scale(w: Floats, bits: Words, program: Words, clique: Index, start: Index, size: Index) -> None:
    """Scale a message in each case by a power of two so that its largest number lies in (0.5, 1]."""
    batch, powers, logs = program[_BATCH], program[_POWERS] + clique * program[_BATCH], program[_LOGS]
    for item in range(batch):
        most = _0
        for k in range(start + item, start + size, batch):
            most = max(most, bits[k])
        exponent = (most - _1) >> _EXPONENT if most != _0 else _HALF
        bits[powers + item] = (_OPPOSITE - exponent) << _EXPONENT
        w[logs + item] += np.float64(np.int64(exponent) - np.int64(_HALF))
    if batch == _1:
        power = w[powers]
        for k in range(size):
            w[start + k] *= power
    else:
        for k in range(start, start + size, batch):
            for item in range(batch):
                w[k + item] *= w[powers + item]


@kernel
def _divide(w: Floats, program: Words, clique: Index, start: Index, size: Index) -> None:
    """Turn the fresh message from the parent into the factor that the clique lacks; 0 / 0 is 0."""
    batch, powers, fresh = program[_BATCH], program[_POWERS] + clique * program[_BATCH], program[_FRESH]
    if batch == _1:
        power = w[powers]
        for k in range(size):
            old, new = w[start + k], w[fresh + k] * power
            ratio = new / old
            w[fresh + k] = ratio if old > 0.0 else 0.0
    else:
        for k in range(_0, size, batch):
            for item in range(batch):
                old, new = w[start + k + item], w[fresh + k + item] * w[powers + item]
                ratio = new / old
                w[fresh + k + item] = ratio if old > 0.0 else 0.0


@kernel
def _normalize(w: Floats, program: Words, start: Index, cells: Index) -> None:
    """Divide the table of a root by its sum, and add the logarithm of the sum to log Z; a sum of 0 leaves zeros."""
    batch, sums, logs = program[_BATCH], program[_FRESH], program[_LOGS]
    if batch == _1:
        a, b, c, d = 0.0, 0.0, 0.0, 0.0
        for k in range(start, start + (cells & ~_3), _4):
            a, b, c, d = a + w[k], b + w[k + _1], c + w[k + _2], d + w[k + _3]
        for k in range(start + (cells & ~_3), start + cells):
            a += w[k]
        w[sums] = (a + b) + (c + d)
    else:
        for item in range(batch):
            w[sums + item] = 0.0
        for k in range(start, start + cells * batch, batch):
            for item in range(batch):
                w[sums + item] += w[k + item]
    for item in range(batch):
        total = w[sums + item]
        w[logs + item] += np.log(total) / _LOG_TWO
        w[sums + item] = 1.0 / total if total > 0.0 else 0.0
    if batch == _1:
        factor = w[sums]
        for k in range(cells):
            w[start + k] *= factor
    else:
        for k in range(start, start + cells * batch, batch):
            for item in range(batch):
                w[k + item] *= w[sums + item]


@kernel
def _lift(w: Floats, bits: Words, program: Words, clique: Index) -> None:
    """Scale the table of a clique up and measure its floor: seldom are all factors at their least in the same cell.

    A floor that is low already stays: numbers may have been lost. So does that of a table not yet written to.
    """
    floor, row = program[_FLOORS] + clique, program[_CLIQUES_AT] + _3 * clique
    if w[floor] >= _LOW and bits[program[_ORIGINS] + clique] == program[row]:
        _scale(w, bits, program, clique, program[row], program[row + _2])
        _, bits[floor] = _extremes(bits, program[row], program[row + _2])


@kernel
def _enter(w: Floats, bits: Words, offsets: AnyInts, program: Words, floors: Floats, entries: Words) -> None:
    """Set everything to the beginning, and multiply the potentials by the entries."""
    batch, origins, spare = program[_BATCH], program[_ORIGINS], program[_FRESH]
    for item in range(batch):
        w[program[_LOGS] + item] = 0.0
    for clique in range(program[_CLIQUES]):
        bits[origins + clique] = program[program[_CLIQUES_AT] + _3 * clique + _1]
        w[program[_FLOORS] + clique] = floors[clique]
    for row in range(_0, np.uint64(len(entries)), _ROW):
        clique, source, side = entries[row], entries[row + _1], row + _SIDE
        if entries[row + _4] == _0:
            _, bits[spare] = _extremes(bits, source, entries[row + _2] * batch)
            if w[program[_FLOORS] + clique] * w[spare] < _LOW and batch == _1:
                _lift(w, bits, program, clique)
            w[program[_FLOORS] + clique] *= w[spare]
        if entries[side + _5] != _0:
            _widen(w, offsets, entries, side, source, program[_SCRATCH])
            source = program[_SCRATCH]
        origin = bits[origins + clique]
        if origin != entries[side] and batch == _1:
            _multiply_from(w, offsets, entries, side, source, origin)
            bits[origins + clique] = entries[side]
        else:
            if origin != entries[side]:
                _spread(w, bits, program, clique)
            _multiply(w, offsets, entries, side, source)


@kernel
def _pass_messages(w: Floats, bits: Words, offsets: AnyInts, program: Words, upward: bool) -> None:
    """Pass messages from the leaves to the roots, or back; one loop for both, as it is long to compile."""
    batch, origins, scratch = program[_BATCH], program[_ORIGINS], program[_SCRATCH]
    for step in range(program[_MESSAGES]):
        row = program[_MESSAGES_AT] + _MESSAGE * (step if upward else program[_MESSAGES] - _1 - step)
        start, size, clique, parent = program[row], program[row + _1], program[row + _2], program[row + _3]
        giver, taker = (clique, parent) if upward else (parent, clique)
        side, other = (row + _CHILD, row + _PARENT) if upward else (row + _PARENT, row + _CHILD)
        message = start if upward else program[_FRESH]
        if batch != _1 and bits[origins + giver] != program[side]:
            _spread(w, bits, program, giver)
        _reduce(w, offsets, program, side, bits[origins + giver], message, size, scratch)
        if upward:
            most, least = _extremes(bits, start, size)
            if most > _ONE or least < program[row + _4]:
                _scale(w, bits, program, clique, start, size)
                _, least = _extremes(bits, start, size)
            else:
                for k in range(program[_POWERS] + clique * batch, program[_POWERS] + (clique + _1) * batch):
                    w[k] = 1.0
            bits[program[_FRESH]] = least
            if w[program[_FLOORS] + parent] * w[program[_FRESH]] < _LOW and batch == _1:
                _lift(w, bits, program, parent)
            w[program[_FLOORS] + parent] *= w[program[_FRESH]]
        else:
            _divide(w, program, clique, start, size)
        if program[other + _5] != _0:
            _widen(w, offsets, program, other, message, scratch)
            message = scratch
        origin = bits[origins + taker]
        if origin != program[other] and batch == _1:
            _multiply_from(w, offsets, program, other, message, origin)
            bits[origins + taker] = program[other]
        else:
            if origin != program[other]:
                _spread(w, bits, program, taker)
            _multiply(w, offsets, program, other, message)


@kernel
def calibrate(program: Words, offsets: AnyInts, w: Floats, floors: Floats, entries: Words, both: bool) -> float:
    """Turn potentials and entries into beliefs; if not `both`, only messages to the roots are passed, for log Z.

    The potentials lie in the buffer, none of them above 1; floors: lower bounds of their non-zero numbers, one for each
    clique. The beliefs of each tree sum to 1 in each case, or are all 0 where Z is 0. log Z is left in the buffer, in
    units of log 2. Returns the least floor.
    """
    bits = w.view(np.uint64)
    _enter(w, bits, offsets, program, floors, entries)
    _pass_messages(w, bits, offsets, program, True)
    for k in range(program[_ROOTS]):
        clique = program[program[_ROOTS_AT] + k]
        row = program[_CLIQUES_AT] + _3 * clique
        if bits[program[_ORIGINS] + clique] != program[row]:
            _spread(w, bits, program, clique)
        _normalize(w, program, program[row], program[row + _2])
    if both:
        _pass_messages(w, bits, offsets, program, False)
    least = 1.0
    for clique in range(program[_CLIQUES]):
        least = min(least, w[program[_FLOORS] + clique])
    return least


@kernel
def leave(program: Words, offsets: AnyInts, w: Floats, exits: Words) -> None:
    """Sum the beliefs out to the small tables of the exits."""
    for row in range(_0, np.uint64(len(exits)), _ROW):
        side, size = row + _SIDE, exits[row + _2] * program[_BATCH]
        _reduce(w, offsets, exits, side, exits[side], exits[row + _1], size, program[_SCRATCH])


@kernel
def moments(program: Words, offsets: AnyInts, w: Floats, floors: Floats, entries: Words, exits: Words) -> Any:
    """Calibrate one case, and sum out to the exits; returns log Z, and the least floor."""
    both = len(exits) > 0  # A plain True would compile `calibrate` once more.
    floor = calibrate(program, offsets, w, floors, entries, both)
    leave(program, offsets, w, exits)
    return w[program[_LOGS]] * _LOG_TWO, floor


@kernel
def walk(program: Words, offsets: AnyInts, w: Floats, steps: Words) -> Any:
    """Fit margins one after another, moving through a calibrated tree; the beliefs stay calibrated where the walk is.

    A step is: 1 for a fit and 0 for a move, start and size of a target or a separator, start of a small table to work
    in, side of the giver, side of the taker. Both sum the giver out to the small table. A fit makes it the factor
    target / margin, which stays there, a move the factor new / old of the separator, which is replaced; then the taker
    is multiplied by it. 0 / 0 is 0. Returns the largest difference between a target and its margin before the fit, and
    the place of the first step whose target is above 0 where its margin is 0, or the number of steps.
    """
    most, scratch = 0.0, program[_SCRATCH]
    for row in range(_0, np.uint64(len(steps)), _STEP):
        big, size, small = steps[row + _1], steps[row + _2], steps[row + _3]
        _reduce(w, offsets, steps, row + _GIVER, steps[row + _GIVER], small, size, scratch)
        if steps[row] != _0:
            for k in range(size):
                old, new = w[small + k], w[big + k]
                if old <= 0.0 and new > 0.0:
                    return most, row // _STEP
                most = max(most, abs(new - old))
                ratio = new / old
                w[small + k] = ratio if old > 0.0 else 0.0
        else:
            for k in range(size):
                old, new = w[big + k], w[small + k]
                ratio = new / old
                w[big + k] = new
                w[small + k] = ratio if old > 0.0 else 0.0
        if steps[row + _TAKER + _5] != _0:
            _widen(w, offsets, steps, row + _TAKER, small, scratch)
            small = scratch
        _multiply(w, offsets, steps, row + _TAKER, small)
    return most, np.uint64(len(steps)) // _STEP


@kernel
def _fill(w: Floats, batch: Index, entries: Words, codes: Codes, values: Floats, first: int) -> None:
    """Write the entries of all cases: ones at the observed state, or everywhere if the code is negative; or values."""
    for row in range(_0, np.uint64(len(entries)), _ROW):
        start, cells, column = entries[row + _1], entries[row + _2], entries[row + _3]
        if entries[row + _4] == _0:
            for item in range(batch):
                for cell in range(cells):
                    w[start + cell * batch + item] = values[first + np.int64(item), column + cell]
        else:
            seen = codes[column, first : first + np.int64(batch)]
            for cell in range(cells):
                for item in range(batch):
                    w[start + item] = 1.0 if seen[item] == np.int32(cell) or seen[item] < 0 else 0.0
                start += batch


@kernel
def _accumulate(w: Floats, program: Words, weights: Floats, first: int, last: np.int64, sums: Floats) -> None:
    """Add the beliefs of the cases, times their weights, to sums: cliques one after another, each with its batch."""
    batch, factors = program[_BATCH], program[_FRESH]
    for item in range(batch):
        case = first + np.int64(item)
        possible = case <= last and w[program[_LOGS] + item] > -np.inf
        w[factors + item] = weights[case] if possible else 0.0
    cell = _0
    for clique in range(program[_CLIQUES]):
        row = program[_CLIQUES_AT] + _3 * clique
        start, size = program[row], program[row + _2] * batch
        if batch == _1:
            factor = w[factors]
            for k in range(size):
                sums[cell + k] += factor * w[start + k]
        else:
            for k in range(_0, size, batch):
                for item in range(batch):
                    sums[cell + k + item] += w[factors + item] * w[start + k + item]
        cell += size


@kernel
def cases(
    program: Words,
    offsets: AnyInts,
    w: Floats,
    floors: Floats,
    rows: tuple[Words, Words],
    table: tuple[Codes, Floats],
    span: Span,
    answers: tuple[Floats, Floats, Floats, Floats],
    enough: float,
) -> None:
    """Solve the cases span[0] to span[1], as many at a time as a batch has.

    rows: entries and exits; table: codes (columns, cases) with negative ones for what was not observed, and values
    (cases, numbers) of other entries, both filled up to the whole last batch; answers: log Z (cases,), the
    exits (cases, numbers), weights (cases,) and sums (cells times batch,). Without weights the sums are left alone. A
    log Z of NaN marks cases where a floor falls below `enough`.
    """
    entries, exits = rows
    codes, values = table
    logs, out, weights, sums = answers
    batch = program[_BATCH]
    both = len(exits) > 0 or len(weights) > 0
    for first in range(span[0], span[1], np.int64(batch)):
        last = min(first + np.int64(batch), np.int64(span[1])) - 1
        _fill(w, batch, entries, codes, values, first)
        trusted = calibrate(program, offsets, w, floors, entries, both) >= enough
        for case in range(first, last + 1):
            log_z = w[program[_LOGS] + np.uint64(case - first)] * _LOG_TWO
            logs[case] = log_z if trusted else np.nan
        if trusted:
            leave(program, offsets, w, exits)
            for case in range(first, last + 1):  # The small tables of the exits follow one another.
                for column in range(out.shape[1]):
                    out[case, column] = w[exits[_1] + np.uint64(column) * batch + np.uint64(case - first)]
            if len(weights) > 0:
                _accumulate(w, program, weights, first, last, sums)
