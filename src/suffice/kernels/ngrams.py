"""Runs of neighbouring codes: windows over sequences laid end to end, and how often each window occurs.

A window is one word of 64 bits where its codes fit, and NumPy sorts words faster than any table hashes them. The
compiled path makes the words and reads them back in one pass each; where windows are wider, it first puts them into
groups by their oldest code. The widest windows go through `patterns.distinct_rows`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Codes, Floats, Ints, Words
from suffice.kernels.arrays import frozen
from suffice.kernels.choice import use_compiled
from suffice.kernels.patterns import distinct_rows

Places = NDArray[Any]
"""Places among runs: 32 bits wherever there are not too many runs for that, else 64."""

_SECONDS = 4e-8  # NumPy path: a step and a code of its window.
_SECONDS_FOUND = 2e-7  # NumPy path: a run.


@dataclass(frozen=True)
class CodedPart:
    """Some sequences: codes (n,), offsets (sequences + 1,) and, where they count unequally, weights (n,)."""

    codes: Codes
    offsets: Ints
    weights: Floats | None = None


def count_parts(parts: list[CodedPart], order: int, past: Codes, future: Codes) -> tuple[Codes, Floats]:
    """Distinct windows (k, order + 1) of all sequences in lexicographic order, and their weights (k,).

    past, future: what a code is in a history and at the end of a window; entry 0 of `past` is the start mark. The parts
    are taken off the list one by one, so that they need not be held beside their windows.
    """
    steps = sum(len(part.codes) for part in parts)
    bits, last = (max(int(table.max()), 1).bit_length() for table in (past, future))
    plain = steps > 0 and all(part.weights is None for part in parts)
    narrow = order * bits + last <= 64
    fits = plain and (narrow or (order - 1) * bits + last <= 64)
    if fits and use_compiled("windows", _SECONDS * (order + 1) * steps, exact=True):
        return _count_compiled(parts, np.array([order - (not narrow), bits, last], np.int64), order, past, future)
    codes, offsets, weights = _end_to_end(parts)
    parts.clear()
    columns = windows(past[codes], offsets, order, int(past[0]))
    columns[-1] = future[codes]
    del codes
    return count_windows(columns, weights)


def _count_compiled(
    parts: list[CodedPart], widths: Ints, order: int, past: Codes, future: Codes
) -> tuple[Codes, Floats]:
    from suffice.kernels.compiled import ngrams as loops

    words = np.empty(sum(len(part.codes) for part in parts), np.uint64)
    past, future = frozen(past), frozen(future)
    if widths[0] == order:
        starts = np.array([0, len(words)], np.int64)
        first = 0
        while parts:
            part = parts.pop(0)
            size = len(part.codes)
            loops.pack(frozen(part.codes), frozen(part.offsets), past, future, widths, words[first : first + size])
            first += size
        words.sort()
    else:
        starts = _grouped(parts, order, widths, past, future, words)
    rows = loops.count_distinct(words, starts)
    cells = np.empty((order + 1, rows), np.int32)  # Column by column in memory, as they are read later.
    # Counts take the place of the words that they are counts of; few counts are better moved.
    numbers = words.view(np.float64)
    loops.unpack(words, starts, widths, cells, numbers)
    return cells.T, numbers[:rows] if 2 * rows > len(words) else numbers[:rows].copy()


def _grouped(parts: list[CodedPart], order: int, widths: Ints, past: Codes, future: Codes, words: Words) -> Ints:
    """Fill `words` with the windows without their oldest codes, sorted by these and then by word; starts of groups."""
    from suffice.kernels.compiled import ngrams as loops

    totals = np.zeros(int(past.max()) + 1, np.int64)
    for part in parts:
        loops.tally(frozen(part.codes), frozen(part.offsets), past, order, totals)
    starts = np.concatenate([[0], np.cumsum(totals)]).astype(np.int64)
    places = starts[:-1].copy()
    width = np.array([order, *widths[1:]], np.int64)
    while parts:
        part = parts.pop(0)
        loops.scatter(frozen(part.codes), frozen(part.offsets), past, future, width, places, words)
    loops.sort_few(words, starts)
    for group in np.flatnonzero(totals > loops.FEW).tolist():
        words[starts[group] : starts[group + 1]].sort()
    return starts


def _end_to_end(parts: list[CodedPart]) -> tuple[Codes, Ints, Floats | None]:
    """Sequences that came in several parts, as one."""
    if len(parts) == 1:
        return parts[0].codes, parts[0].offsets, parts[0].weights
    begins = np.cumsum([0, *(len(part.codes) for part in parts[:-1])])
    offsets = [part.offsets[:-1] + begin for part, begin in zip(parts, begins, strict=True)]
    codes = np.concatenate([part.codes for part in parts])
    whole = np.append(np.concatenate(offsets), len(codes)).astype(np.int64)
    if all(part.weights is None for part in parts):
        return codes, whole, None
    weights = [np.ones(len(part.codes)) if part.weights is None else part.weights for part in parts]
    return codes, whole, np.concatenate(weights)


def find_children(above: Places, starts: Places, words: Codes, begins: Places, word: Codes) -> Places:
    """Where each word (m,) is among the children of the node ``above[h]``, which has it, h being its history.

    Node v has the children ``starts[v]`` to ``starts[v + 1]``, whose `words` ascend; history h has the runs
    ``begins[h]`` to ``begins[h + 1]``.
    """
    kind = begins.dtype
    base = int(max(words.max(initial=0), word.max(initial=0))) + 1
    if use_compiled("children", _SECONDS_FOUND * len(word), exact=True):
        from suffice.kernels.compiled import ngrams as loops

        above = frozen(above, kind)
        turns = np.empty(len(above), kind)
        loops.put_in_order(above, np.zeros(len(starts) + 1, kind), turns)
        nodes = (above, frozen(starts, kind), frozen(words, np.int32))
        children, room = np.empty(len(word), kind), np.empty(base, kind)
        loops.find_children(*nodes, frozen(begins), frozen(word, np.int32), frozen(turns), room, children)
        return children
    keys = np.repeat(np.arange(len(starts) - 1), np.diff(starts)) * base + words
    return np.searchsorted(keys, np.repeat(above.astype(np.int64), np.diff(begins)) * base + word).astype(kind)


def with_ends(codes: Codes, offsets: Ints, end: int) -> tuple[Codes, Ints]:
    """Each sequence followed by the code of the end."""
    lengthened = offsets + np.arange(len(offsets))
    extended = np.full(int(lengthened[-1]), end, np.int32)
    keep = np.ones(len(extended), dtype=np.bool_)
    keep[lengthened[1:] - 1] = False
    extended[keep] = codes
    return extended, lengthened


def lagged(codes: Codes, offsets: Ints, lag: int, start: int) -> Codes:
    """The code `lag` steps back in the same sequence (n,), `start` where the sequence has not begun."""
    if lag == 0:
        return codes
    earlier = np.empty_like(codes)
    earlier[lag:] = codes[:-lag] if lag < len(codes) else codes[:0]
    earlier[:lag] = start
    begins, ends = offsets[:-1], offsets[1:]
    for step in range(lag):
        places = begins + step
        earlier[places[places < ends]] = start
    return earlier


def windows(codes: Codes, offsets: Ints, order: int, start: int) -> list[Codes]:
    """Columns of the windows of ``order + 1`` codes that end at each step, oldest code first."""
    return [lagged(codes, offsets, lag, start) for lag in range(order, -1, -1)]


def count_windows(columns: Sequence[NDArray[Any]], weights: Floats | None = None) -> tuple[Codes, Floats]:
    """Distinct windows (k, d) in lexicographic order, and their weights (k,) or numbers of occurrences.

    columns: d arrays (n,) of codes of at least 0.
    """
    if len(columns[0]) == 0:
        return np.empty((0, len(columns)), np.int32), np.empty(0)
    bits = [max(int(column.max()), 1).bit_length() for column in columns]
    if sum(bits) > 64:
        cells, counts = distinct_rows(np.stack([np.asarray(c, dtype=np.int32) for c in columns]), weights)
        return cells.astype(np.int32, copy=False), counts.astype(np.float64, copy=False)
    words = _packed(columns, bits)
    order = None
    if weights is None:
        words.sort()
    else:
        order = np.argsort(words, kind="stable")
        words = words[order]
    heads = np.flatnonzero(np.concatenate([[True], words[1:] != words[:-1]]))
    if weights is None:
        sums = np.empty(len(heads))
        np.subtract(heads[1:], heads[:-1], out=sums[:-1])
        sums[-1] = len(words) - heads[-1]
    else:
        sums = np.add.reduceat(weights[order], heads)
    return _unpacked(words[heads], bits), sums


def _packed(columns: Sequence[NDArray[Any]], bits: Sequence[int]) -> NDArray[np.uint64]:
    """One word for each window, the first column in the highest bits."""
    words = columns[0].astype(np.uint64)
    for column, width in zip(columns[1:], bits[1:], strict=True):
        words <<= np.uint64(width)
        words |= column.astype(np.uint64)
    return words


def _unpacked(words: NDArray[np.uint64], bits: Sequence[int]) -> Codes:
    # Column by column in memory, as they are written here and read later.
    cells = np.empty((len(bits), len(words)), np.int32).T
    rest = words
    for column in range(len(bits) - 1, -1, -1):
        cells[:, column] = rest & np.uint64((1 << bits[column]) - 1)
        rest = rest >> np.uint64(bits[column])
    return cells
