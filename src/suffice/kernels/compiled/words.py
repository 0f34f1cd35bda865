"""Compiled loops that split a text into words and number them.

Words are read eight bytes at a time. The first blank of a block is found without a branch: a byte below 33 leaves its
highest bit in ``(block - 0x21...) & ~block``, and the lowest such bit is always a true one. A word of at most eight
bytes is its own key in the hash table, so that most words need no look at their letters elsewhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from suffice.array_types import Codes, Index, Ints, States, Words
from suffice.kernels.jit import kernel

_ONES = np.uint64(0x0101010101010101)
_HIGHS = np.uint64(0x8080808080808080)
_FIRST_LETTER = np.uint64(0x2121212121212121)
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio: spreads neighbours apart.
_NONE, _ONE, _SEVEN, _EIGHT = np.uint64(0), np.uint64(1), np.uint64(7), np.uint64(8)
_HALF, _TOP, _SIZE = np.uint64(32), np.uint64(56), np.uint64(0xFFFFFFFF)


@kernel
def _block(text: States, begin: Index) -> Any:
    """Eight bytes from `begin` on, the first in the lowest bits; blanks beyond the end. One load where it can be."""
    value = _NONE
    if begin + _EIGHT <= np.uint64(len(text)):
        for step in range(8):
            value |= np.uint64(text[begin + np.uint64(step)]) << np.uint64(8 * step)
        return value
    for step in range(8):
        position = begin + np.uint64(step)
        byte = np.uint64(text[position]) if position < np.uint64(len(text)) else _HALF
        value |= byte << np.uint64(8 * step)
    return value


@kernel
def _bytes_below(mark: Index) -> Any:
    """How many bytes lie below a one in the lowest bit of a byte."""
    return (((mark - _ONE) & _ONES) * _ONES) >> _TOP


@kernel
def _is_blank(block: Index, number: Index) -> Any:
    byte = (block >> (_EIGHT * number)) & np.uint64(0xFF)
    return byte == _HALF or (byte >= np.uint64(9) and byte <= np.uint64(13))


@kernel
def _first_blank(block: Index) -> Any:
    """A one in the lowest bit of the first blank byte (9 to 13, or 32), or 0."""
    marks = (block - _FIRST_LETTER) & ~block & _HIGHS
    mark = (marks & (~marks + _ONE)) >> _SEVEN
    if marks == _NONE or _is_blank(block, _bytes_below(mark)):
        return mark
    # A control character is a letter. Bits above the lowest may be false, so that each byte is looked at.
    while mark != _NONE and not _is_blank(block, _bytes_below(mark)):
        mark <<= _EIGHT
    return mark


@kernel
def _mixed(key: Index, size: Index) -> Any:
    value = (key ^ (size << _TOP)) * _MULTIPLIER
    value ^= value >> _HALF
    value *= _MULTIPLIER
    return value ^ (value >> _HALF)


@kernel
def _same(text: States, begin: np.int64, arena: States, first: int, size: np.int64) -> bool:
    for step in range(size):
        if arena[first + step] != text[begin + step]:
            return False
    return True


@kernel
def refill(slots: Words, wider: Words) -> None:
    """Copy a hash table (slots, 2) into one with more slots, all of them free."""
    mask = np.uint64(len(wider) - 1)
    for slot in range(len(slots)):
        if slots[slot, 1] != _NONE:
            free = _mixed(slots[slot, 0], slots[slot, 1] & _SIZE) & mask
            while wider[free, 1] != _NONE:
                free = (free + _ONE) & mask
            wider[free, 0], wider[free, 1] = slots[slot, 0], slots[slot, 1]


@kernel
def number_words(
    text: States,
    start: np.int64,
    slots: Words,
    begins: Ints,
    arena: States,
    sizes: Ints,
    marks: Ints,
    codes: Codes,
    ends: Ints,
) -> Any:
    """Number the words of a text; lines end at a newline, words at any ASCII blank.

    text: uint8. slots: uint64 (a power of two, 2), a hash table over the words known: the key of a word (its bytes, or
    a hash of more than eight) beside its number + 1 in the upper half and its size in the lower; 0 is free. begins:
    int64, where each word begins in `arena` (uint8), which ends every word with a newline. sizes: numbers of words, of
    codes and of lines so far, updated. marks: what is added to numbers, and the code of the end of a line or -1. codes,
    ends: written. Returns where it stopped: the end, or the place of the first word that found `slots`, `begins` or
    `arena` too full. The last line ends with the text.
    """
    words, written, lines = sizes[0], sizes[1], sizes[2]
    base, closing = marks[0], marks[1]
    mask = np.uint64(len(slots) - 1)
    length = len(text)
    position = start
    line = ends[lines - 1] if lines > 0 else 0
    while position < length:
        begin = position
        block = _block(text, np.uint64(position))
        mark = _first_blank(block)
        if mark == _NONE:
            key = block
            while mark == _NONE:
                position += 8
                block = _block(text, np.uint64(position))
                mark = _first_blank(block)
                key = (key * _MULTIPLIER) ^ (key >> _HALF) ^ (block & (mark - _ONE))
        else:
            key = block & (mark - _ONE)
        position += np.int64(_bytes_below(mark))
        size = position - begin
        if size > 0:
            tail = np.uint64(size) & _SIZE
            slot = _mixed(key, tail) & mask
            while True:
                entry = slots[slot, 1]
                if entry == _NONE:
                    first = begins[words]
                    if 2 * (words + 1) > len(slots) or words + 1 >= len(begins) or first + size >= len(arena):
                        sizes[0], sizes[1], sizes[2] = words, written, lines
                        return begin
                    words += 1
                    entry = (np.uint64(words) << _HALF) | tail
                    slots[slot, 0], slots[slot, 1] = key, entry
                    for step in range(size):
                        arena[first + step] = text[begin + step]
                    arena[first + size] = 10
                    begins[words] = first + size + 1
                    break
                if slots[slot, 0] == key and entry & _SIZE == tail:
                    if size <= 8 or _same(text, begin, arena, begins[np.int64(entry >> _HALF) - 1], size):
                        break
                slot = (slot + _ONE) & mask
            codes[written] = np.int64(entry >> _HALF) - 1 + base
            written += 1
        # The last line ends with the text, whether at a word or at a blank.
        if (position + 1 >= length or text[position] == 10) and written > line:
            if closing >= 0:
                codes[written] = closing
                written += 1
            ends[lines] = written
            lines += 1
            line = written
        position += 1
    sizes[0], sizes[1], sizes[2] = words, written, lines
    return length
