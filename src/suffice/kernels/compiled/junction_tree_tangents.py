"""Compiled loops for derivatives of the beliefs of a calibrated junction tree.

`w` is a flat buffer; positions in it, and all other numbers, are uint64. A *side* tells how a table and a smaller one
meet, as in `suffice.kernels.compiled.junction_tree`: start of the table, number of runs, their length, place of their
offsets, 1 if runs lie inside the smaller table, number of runs to fold, their length, place of their offsets. The table
of a side holds the conditional expectation of the direction; the belief that weighs it has the same form and lies
elsewhere.
"""

from __future__ import annotations

import numpy as np

from suffice.array_types import AnyInts, Floats, Index, Words
from suffice.kernels.jit import kernel

_0, _1, _2, _3, _4, _5, _6, _7 = (np.uint64(number) for number in range(8))
_CHILD, _PARENT, _MESSAGE = np.uint64(5), np.uint64(13), np.uint64(21)  # Sides of a message, and its numbers.
_SIDE, _ROW = np.uint64(5), np.uint64(13)  # The side of an entry or exit, and its numbers.


@kernel
def _average(
    w: Floats, offsets: AnyInts, rows: Words, side: Index, belief: Index, target: Index, size: Index, scratch: Index
) -> None:
    """Sum the product of a table and its belief out to the smaller table at target."""
    table, runs, length, first = rows[side], rows[side + _1], rows[side + _2], rows[side + _3]
    folds, tail = rows[side + _5], rows[side + _6]
    inner = target
    for k in range(size):
        w[target + k] = 0.0
    if folds != _0:
        inner = scratch
        for k in range(folds * tail):
            w[inner + k] = 0.0
    if length == _1:
        for r in range(runs):
            w[inner + np.uint64(offsets[first + r])] += w[belief + r] * w[table + r]
    elif rows[side + _4] != _0:
        for r in range(runs):
            cell = inner + np.uint64(offsets[first + r])
            for k in range(length):
                w[cell + k] += w[belief + k] * w[table + k]
            table += length
            belief += length
    else:
        for r in range(runs):
            a, b = 0.0, 0.0  # Two sums: a single one would wait for itself.
            for k in range(_0, length & ~_1, _2):
                a += w[belief + k] * w[table + k]
                b += w[belief + k + _1] * w[table + k + _1]
            for k in range(length & ~_1, length):
                a += w[belief + k] * w[table + k]
            w[inner + np.uint64(offsets[first + r])] += a + b
            table += length
            belief += length
    first = rows[side + _7]
    for r in range(folds):
        cell = target + np.uint64(offsets[first + r])
        for k in range(tail):
            w[cell + k] += w[inner + k]
        inner += tail


@kernel
def _add(w: Floats, offsets: AnyInts, rows: Words, side: Index, source: Index, scratch: Index) -> None:
    """Add the smaller table at source to a table."""
    table, runs, length, first = rows[side], rows[side + _1], rows[side + _2], rows[side + _3]
    folds, tail, fold = rows[side + _5], rows[side + _6], rows[side + _7]
    if folds != _0:
        target = scratch
        for r in range(folds):
            cell = source + np.uint64(offsets[fold + r])
            for k in range(tail):
                w[target + k] = w[cell + k]
            target += tail
        source = scratch
    if length == _1:
        for r in range(runs):
            w[table + r] += w[source + np.uint64(offsets[first + r])]
    elif rows[side + _4] != _0:
        for r in range(runs):
            cell = source + np.uint64(offsets[first + r])
            for k in range(length):
                w[table + k] += w[cell + k]
            table += length
    else:
        for r in range(runs):
            term = w[source + np.uint64(offsets[first + r])]
            for k in range(length):
                w[table + k] += term
            table += length


@kernel
def weigh(places: Words, offsets: AnyInts, w: Floats, messages: Words) -> None:
    """Write the reciprocals of all separators, 0 for 0; arguments as in `differentiate`."""
    for k in range(places[_2]):
        w[k] = 1.0
    for row in range(_0, np.uint64(len(messages)), _MESSAGE):
        size, shares = messages[row + _1], messages[row + _2]
        _average(w, offsets, messages, row + _CHILD, messages[row + _3], shares, size, places[_0])
        for k in range(shares, shares + size):
            share = 1.0 / w[k]
            w[k] = share if w[k] > 0.0 else 0.0


@kernel
def differentiate(
    places: Words, offsets: AnyInts, w: Floats, entries: Words, exits: Words, messages: Words, roots: Words
) -> None:
    """From a direction, in the small tables of the entries, to the derivative of the margins, in those of the exits.

    places: scratch, room for a message, and how many numbers the tables of all cliques take, from the beginning of the
    buffer on. Rows: entries are clique, start, cells, two numbers not used here, side; exits the same with the start of
    the belief in place of the first of the two; messages are start and size of what is passed up, start of the
    reciprocals of the separator, starts of the beliefs of clique and parent, side of the clique, side of the parent;
    roots are starts of table and belief, and cells.
    """
    scratch, fresh = places[_0], places[_1]
    for k in range(places[_2]):
        w[k] = 0.0
    for row in range(_0, np.uint64(len(entries)), _ROW):
        _add(w, offsets, entries, row + _SIDE, entries[row + _1], scratch)
    for row in range(_0, np.uint64(len(messages)), _MESSAGE):
        start, size, shares = messages[row], messages[row + _1], messages[row + _2]
        _average(w, offsets, messages, row + _CHILD, messages[row + _3], start, size, scratch)
        for k in range(size):
            w[start + k] *= w[shares + k]
        _add(w, offsets, messages, row + _PARENT, start, scratch)
    for row in range(_0, np.uint64(len(roots)), _3):
        table, belief, cells = roots[row], roots[row + _1], roots[row + _2]
        mean = 0.0
        for k in range(cells):
            mean += w[belief + k] * w[table + k]
        for k in range(cells):
            w[table + k] -= mean
    for back in range(_MESSAGE, np.uint64(len(messages)) + _1, _MESSAGE):
        message = np.uint64(len(messages)) - back
        start, size, shares = messages[message], messages[message + _1], messages[message + _2]
        _average(w, offsets, messages, message + _PARENT, messages[message + _4], fresh, size, scratch)
        for k in range(size):
            w[fresh + k] = w[fresh + k] * w[shares + k] - w[start + k]
        _add(w, offsets, messages, message + _CHILD, fresh, scratch)
    for row in range(_0, np.uint64(len(exits)), _ROW):
        _average(w, offsets, exits, row + _SIDE, exits[row + _3], exits[row + _1], exits[row + _2], scratch)
