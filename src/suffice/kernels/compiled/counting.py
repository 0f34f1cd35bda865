"""Compiled loops of counting: the cell of each row, then one increment.

Rows are worked through in blocks of `BLOCK`, so that a block of all columns stays in the second-level cache for all
tables, and in pieces of `PIECE`, so that the cell numbers of a piece stay in the first. Replicas of a small table break
the wait of an increment for the one before it in the same cell.

Shapes: codes (variables, rows), C order. A layout is a tuple of int64 arrays:
variables and strides (terms,): table g reads the terms bounds[g] to bounds[g + 1], the last with stride 1;
bounds (tables + 1,); places (tables + 1,): where the replicas of each table begin; sizes (tables,): cells of each;
used and cards: every variable read, and the number of its codes; homes (tables,): where the cells of
each table begin in the flat array of the answer. Strides have the type of the cell numbers (uint16): a wider type would
keep LLVM from working on sixteen rows at once.
"""

from __future__ import annotations

import numpy as np

from suffice.array_types import AnyInts, Floats, Ints, Numbers, Words
from suffice.kernels.jit import kernel

Layout = tuple[Numbers, ...]
"""See above."""

BLOCK = 32768
PIECE = 2048

_ONE = np.uint32(1)
_LOW = np.uint64(0xFFFF)
_16, _32, _48 = np.uint64(16), np.uint64(32), np.uint64(48)


@kernel
def first_excess(codes: AnyInts, used: Ints, cards: Ints, start: int, stop: int) -> int:
    """Return the first of the variables `used` with a code of at least its card in these rows, or -1."""
    for index in range(len(used)):
        column = codes[used[index], start:stop]
        top = column[0]
        for row in range(1, len(column)):
            if column[row] > top:
                top = column[row]
        if np.int64(top) >= cards[index]:
            return int(used[index])
    return -1


@kernel
def fill_cells(codes: AnyInts, variables: Ints, strides: AnyInts, start: int, out: Numbers) -> None:
    """Set out[r] = sum_j codes[variables[j], start + r] strides[j]; the last stride is 1."""
    stop = start + len(out)
    last = len(variables) - 1
    if last < 0:
        for row in range(len(out)):
            out[row] = 0
        return
    base = codes[variables[last], start:stop]
    if last == 0:
        for row in range(len(out)):
            out[row] = base[row]
    elif last == 1:
        first, step = codes[variables[0], start:stop], strides[0]
        for row in range(len(out)):
            out[row] = base[row] + first[row] * step
    else:
        first, step = codes[variables[0], start:stop], strides[0]
        second, leap = codes[variables[1], start:stop], strides[1]
        for row in range(len(out)):
            out[row] = base[row] + first[row] * step + second[row] * leap
    done = 2
    while done + 1 < last:  # Two more columns in one pass: half the traffic on `out`.
        first, step = codes[variables[done], start:stop], strides[done]
        second, leap = codes[variables[done + 1], start:stop], strides[done + 1]
        for row in range(len(out)):
            out[row] += first[row] * step + second[row] * leap
        done += 2
    if done < last:
        first, step = codes[variables[done], start:stop], strides[done]
        for row in range(len(out)):
            out[row] += first[row] * step


@kernel
def increment(cells: AnyInts, words: Words, table: Numbers, size: int) -> None:
    """Count cells (n,) uint16, also seen as words of four, into a table of one or four replicas."""
    if len(table) == size:
        for row in range(len(cells)):
            table[cells[row]] += _ONE
        return
    zero, one = table[:size], table[size : 2 * size]
    two, three = table[2 * size : 3 * size], table[3 * size : 4 * size]
    for index in range(len(cells) >> 2):
        word = words[index]
        zero[word & _LOW] += _ONE
        one[(word >> _16) & _LOW] += _ONE
        two[(word >> _32) & _LOW] += _ONE
        three[word >> _48] += _ONE
    for row in range(len(cells) & ~3, len(cells)):
        zero[cells[row]] += _ONE


@kernel
def add_weights(cells: AnyInts, weights: Floats, table: Numbers, size: int) -> None:
    """Add weights (n,) to their cells (n,) in a table of one replica, or of two: even rows, odd rows."""
    if len(table) == size:
        for row in range(len(cells)):
            table[cells[row]] += weights[row]
        return
    even, odd = table[:size], table[size : 2 * size]
    for row in range(0, len(cells) - 1, 2):
        even[cells[row]] += weights[row]
        odd[cells[row + 1]] += weights[row + 1]
    if len(cells) % 2:
        even[cells[len(cells) - 1]] += weights[len(cells) - 1]


@kernel
def count_rows(codes: AnyInts, weights: Floats | None, layout: Layout, start: int, stop: int, tables: Numbers) -> int:
    """Count rows start to stop into replicated tables; returns a variable whose codes are out of range, or -1.

    weights None: tables are uint32. weights (rows,): tables are float64. Numba drops the branch that is not taken.
    """
    variables, strides, bounds, places, sizes, used, cards, _ = layout
    scratch = np.empty(PIECE, np.uint16)
    words = scratch.view(np.uint64)
    for block in range(start, stop, BLOCK):
        end = min(block + BLOCK, stop)
        wrong = first_excess(codes, used, cards, block, end)
        if wrong >= 0:
            return wrong
        for index in range(len(sizes)):
            terms = slice(bounds[index], bounds[index + 1])
            table = tables[places[index] : places[index + 1]]
            for piece in range(block, end, PIECE):
                cells = scratch[: min(PIECE, end - piece)]
                fill_cells(codes, variables[terms], strides[terms], piece, cells)
                if weights is None:
                    increment(cells, words, table, sizes[index])
                else:
                    add_weights(cells, weights[piece : piece + len(cells)], table, sizes[index])
    return -1


@kernel
def fold_counts(tables: Numbers, layout: Layout, out: Numbers) -> None:
    """Add the replicas of every table (threads, cells of all replicas) to out (cells,)."""
    places, sizes, homes = layout[3], layout[4], layout[7]
    for index in range(len(sizes)):
        size = sizes[index]
        target = out[homes[index] : homes[index] + size]
        for worker in range(len(tables)):
            for begin in range(places[index], places[index + 1], size):
                for cell in range(size):
                    target[cell] += tables[worker, begin + cell]


@kernel
def weigh_blocks(
    codes: AnyInts, weights: Floats, layout: Layout, span: tuple[int, int, int], tables: Floats, sums: Floats
) -> int:
    """Add the weights of rows span[0] to span[1] to double-double sums (2, cells), in blocks of span[2] rows.

    tables (float64, replicated, zero at entry and exit) holds the sums of one block; returns as `count_rows`.
    """
    places, sizes = layout[3], layout[4]
    for start in range(span[0], span[1], span[2]):
        wrong = count_rows(codes, weights, layout, start, min(start + span[2], span[1]), tables)
        if wrong >= 0:
            return wrong
        base = 0
        for index in range(len(sizes)):
            size = sizes[index]
            table = tables[places[index] : places[index + 1]]
            double = len(table) > size
            for cell in range(size):
                value = table[cell] + table[size + cell] if double else table[cell]
                before = sums[0, base + cell]
                after = before + value
                part = after - before
                sums[0, base + cell] = after
                sums[1, base + cell] += (before - (after - part)) + (value - part)
            for cell in range(len(table)):
                table[cell] = 0.0
            base += size
    return -1


@kernel
def count_wide(codes: AnyInts, weights: Floats | None, layout: Layout, table: Numbers) -> int:
    """Count all rows into one table of more than 65,536 cells, int64 or (weighted) float64; returns as `count_rows`.

    layout: variables, strides and cards of this one table.
    """
    variables, strides, cards = layout
    scratch = np.empty(PIECE, np.uint32)
    rows = codes.shape[1]
    for piece in range(0, rows, PIECE):
        end = min(piece + PIECE, rows)
        wrong = first_excess(codes, variables, cards, piece, end)
        if wrong >= 0:
            return wrong
        cells = scratch[: end - piece]
        fill_cells(codes, variables, strides, piece, cells)
        if weights is None:
            for row in range(len(cells)):
                table[cells[row]] += 1
        else:
            add_weights(cells, weights[piece:end], table, len(table))
    return -1
