"""Compiled loops over windows of codes: packed into words, put into the order of their first code, read back."""

from __future__ import annotations

import numpy as np

from suffice.array_types import AnyInts, Ints, Numbers, Words
from suffice.kernels.jit import kernel

#: Words of a group up to which it is sorted here, by insertion.
FEW = 32


@kernel
def pack(codes: AnyInts, offsets: Ints, past: AnyInts, future: AnyInts, widths: Ints, words: Words) -> None:
    """One word for the window that ends at each step (n,), its oldest code in the highest bits.

    codes (n,) of sequences between `offsets`; past, future: what a code is in a history and at the end of a window, the
    first entry of `past` is the start mark. widths: number of codes of a history, bits of each, bits of the last one.
    """
    lags, bits, last = widths[0], np.uint64(widths[1]), np.uint64(widths[2])
    mask = (np.uint64(1) << np.uint64(lags * widths[1])) - np.uint64(1)
    start = np.uint64(past[0])
    begins = np.uint64(0)
    for _ in range(lags):
        begins = (begins << bits) | start
    for sequence in range(len(offsets) - 1):
        history = begins
        for step in range(offsets[sequence], offsets[sequence + 1]):
            code = codes[step]
            words[step] = (history << last) | np.uint64(future[code])
            history = ((history << bits) | np.uint64(past[code])) & mask


@kernel
def tally(codes: AnyInts, offsets: Ints, past: AnyInts, lag: int, totals: Ints) -> None:
    """Add to `totals` how often each code comes first in a window of ``lag + 1`` codes."""
    start = past[0]
    for sequence in range(len(offsets) - 1):
        begin, end = offsets[sequence], offsets[sequence + 1]
        totals[start] += min(end - begin, lag)
        for step in range(begin, end - lag):
            totals[past[codes[step]]] += 1


@kernel
def scatter(
    codes: AnyInts, offsets: Ints, past: AnyInts, future: AnyInts, widths: Ints, places: Ints, words: Words
) -> None:
    """As `pack`, without the first code of each window, which says to which group its word goes.

    places: where the next word of each group goes, updated.
    """
    lags, bits, last = widths[0], np.uint64(widths[1]), np.uint64(widths[2])
    mask = (np.uint64(1) << np.uint64((lags - 1) * widths[1])) - np.uint64(1)
    start = past[0]
    begins = np.uint64(0)
    for _ in range(lags - 1):
        begins = (begins << bits) | np.uint64(start)
    for sequence in range(len(offsets) - 1):
        history = begins
        begin = offsets[sequence]
        for step in range(begin, offsets[sequence + 1]):
            code = codes[step]
            first = past[codes[step - lags]] if step - lags >= begin else start
            words[places[first]] = (history << last) | np.uint64(future[code])
            places[first] += 1
            history = ((history << bits) | np.uint64(past[code])) & mask


@kernel
def sort_few(words: Words, starts: Ints) -> None:
    """Sort the groups of at most `FEW` words; group g holds ``words[starts[g]:starts[g + 1]]``."""
    for group in range(len(starts) - 1):
        begin, end = starts[group], starts[group + 1]
        if end - begin > FEW:
            continue
        for position in range(begin + 1, end):
            word = words[position]
            slot = position
            while slot > begin and words[slot - 1] > word:
                words[slot] = words[slot - 1]
                slot -= 1
            words[slot] = word


@kernel
def count_distinct(words: Words, starts: Ints) -> int:
    """How many words of sorted groups differ from the one before in their group."""
    distinct = 0
    for group in range(len(starts) - 1):
        begin, end = starts[group], starts[group + 1]
        if end > begin:
            distinct += 1
        for position in range(begin + 1, end):
            if words[position] != words[position - 1]:
                distinct += 1
    return distinct


@kernel
def unpack(words: Words, starts: Ints, widths: Ints, cells: AnyInts, numbers: Numbers) -> None:
    """Codes (columns, k) of the distinct words of sorted groups, and how often each occurs (k,).

    The group of a word is the first column where there is one left for it. `numbers` may share the memory of `words`:
    it is written only where words have been read.
    """
    bits, last, one = np.uint64(widths[1]), np.uint64(widths[2]), np.uint64(1)
    mask, tail = (one << bits) - one, (one << last) - one
    final = np.uint64(len(cells) - 1)  # Unsigned places need no look at their sign.
    first = final - np.uint64(widths[0])
    row = np.uint64(0)
    for group in range(len(starts) - 1):
        position, end = np.uint64(starts[group]), np.uint64(starts[group + 1])
        while position < end:
            word, begin = words[position], position
            position += one
            while position < end and words[position] == word:
                position += one
            numbers[row] = np.int64(position - begin)
            cells[0, row] = group
            cells[final, row] = word & tail
            word >>= last
            column = final
            while column > first:
                column -= one
                cells[column, row] = word & mask
                word >>= bits
            row += one


@kernel
def find_children(
    above: Ints, starts: Ints, words: AnyInts, begins: Ints, word: AnyInts, turns: Ints, room: Ints, children: Ints
) -> None:
    """Where ``word[i]`` is among the children of ``above[h]``, for the runs i = begins[h] to begins[h + 1] of each h.

    words: the word of each child; node v has the children starts[v] to starts[v + 1]. turns: the histories in the order
    of their nodes, so that the places of the children of one node can be written down by word, in `room`.
    """
    written = -1
    for turn in range(len(turns)):
        history = turns[turn]
        node = above[history]
        begin, end = begins[history], begins[history + 1]
        if node != written and end > begin:
            written = node
            for child in range(starts[node], starts[node + 1]):
                room[words[child]] = child
        for run in range(begin, end):
            children[run] = room[word[run]]


@kernel
def put_in_order(keys: AnyInts, places: Ints, order: Ints) -> None:
    """Positions of keys by key, equal ones as they come. places: (keys + 1,) zeros, at last where each key ends."""
    for position in range(len(keys)):
        places[keys[position] + 1] += 1
    for key in range(len(places) - 1):
        places[key + 1] += places[key]
    for position in range(len(keys)):
        key = keys[position]
        order[places[key]] = position
        places[key] += 1
