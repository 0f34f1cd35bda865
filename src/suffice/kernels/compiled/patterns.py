"""Compiled loops of distinct rows: equal words are found by hashing, as long as the hash table stays in cache."""

from __future__ import annotations

from typing import Any

import numpy as np

from suffice.array_types import Ints, Words
from suffice.kernels.jit import kernel

MOST_LABELS = 1 << 16
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio: spreads neighbours apart.
_HALF = np.uint64(32)


@kernel
def _hash(words: Words, row: int) -> Any:
    value = np.uint64(0)
    for word in range(len(words)):
        value = (value ^ words[word, row]) * _MULTIPLIER
        value = value ^ (value >> _HALF)
    return value


@kernel
def _same(words: Words, first: int, second: int) -> bool:
    for word in range(len(words)):
        if words[word, first] != words[word, second]:
            return False
    return True


@kernel
def _grown(slots: Ints, hashes: Words, labels: int) -> Any:
    """Return a hash table of twice the slots that holds the labels 0..labels - 1; -1 marks a free slot."""
    wider = np.full(2 * len(slots), -1, np.int64)
    mask = np.uint64(len(wider) - 1)
    for label in range(labels):
        slot = hashes[label] & mask
        while wider[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        wider[slot] = label
    return wider


@kernel
def group(words: Words) -> Any:
    """Return labels (n,), equal for equal columns of words (w, n), and the first column of each label (k,).

    Both are empty when more than `MOST_LABELS` columns differ: sorting is faster then.
    """
    rows = words.shape[1]
    labels = np.empty(rows, np.int64)
    firsts = np.empty(min(rows, MOST_LABELS), np.int64)
    hashes = np.empty(len(firsts), np.uint64)
    slots = np.full(1024, -1, np.int64)
    count = 0
    for row in range(rows):
        value = _hash(words, row)
        mask = np.uint64(len(slots) - 1)
        slot = value & mask
        label = slots[slot]
        while label >= 0 and not (hashes[label] == value and _same(words, firsts[label], row)):
            slot = (slot + np.uint64(1)) & mask
            label = slots[slot]
        if label < 0:
            if count == MOST_LABELS:
                return labels[:0], firsts[:0]
            label = count
            slots[slot], firsts[label], hashes[label] = label, row, value
            count += 1
            if 2 * count > len(slots):
                slots = _grown(slots, hashes, count)
        labels[row] = label
    return labels, firsts[:count]
