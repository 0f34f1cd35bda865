"""From counted windows to the levels of a tree: the runs of one to ``order + 1`` words, with histories and suffixes.

A run of n words is one word of 64 bits, its key, wherever histories fit in one. Which runs there are is told from the
longest to the shortest, by sorting keys alone; where their histories and suffixes are, from the shortest to the
longest: the suffix of a run is the child, by the same word, of the suffix of its history.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Codes, Floats, Ints
from suffice.kernels.ngrams import Places, find_children

Keys = NDArray[np.uint64]
Links = tuple[Places, Codes, Places]
"""History, word and suffix of each run; histories and suffixes are places one level up."""

#: Runs that are looked at together where many are gone through: what is made on the way stays small, and near.
BLOCK = 1 << 18


def blocks(size: int) -> Iterator[slice]:
    """The numbers 0 to ``size - 1`` in pieces."""
    for begin in range(0, size, BLOCK):
        yield slice(begin, min(begin + BLOCK, size))


def sums_by(groups: Places, values: NDArray[Any], size: int) -> Floats:
    """Sums of values by group (size,)."""
    if len(groups) <= BLOCK:
        return np.asarray(np.bincount(groups, values, minlength=size), dtype=np.float64)
    sums = np.zeros(size)
    for part in blocks(len(groups)):
        np.add.at(sums, groups[part].astype(np.intp), values[part].astype(np.float64, copy=False))
    return sums


def starts_of(groups: Places, size: int) -> Places:
    """Where each group (size,) begins in sorted groups, and at last where they end."""
    starts = np.zeros(size + 1, _kind(max(len(groups), size)))
    for part in blocks(len(groups)):
        mine = groups[part]
        low = int(mine[0])
        each = np.bincount(mine - mine[0])
        starts[low + 1 : low + 1 + len(each)] += each.astype(starts.dtype)
    np.cumsum(starts, out=starts)
    return starts


def _kind(size: int) -> Any:
    """The type of places among so many runs."""
    return np.int32 if size < 2**31 - 1 else np.int64


@dataclass(frozen=True, eq=False)
class _Runs:
    """Runs of one length in lexicographic order: keys of their histories, and their last words."""

    history: Keys
    word: Codes

    @property
    def heads(self) -> Ints:
        """Where a history begins."""
        return np.flatnonzero(np.concatenate([[True], self.history[1:] != self.history[:-1]])[: len(self.history)])


def link_runs(
    columns: list[Codes], weights: Floats, card: int, *, first_events: bool
) -> tuple[list[Links], list[Floats]]:
    """The runs of every length in lexicographic order, and their counts, level by level.

    columns: ``order + 1`` of them, of words 0 to ``card - 1`` with start marks `card` before the first word; they are
    taken off the list, so that they need not be held beside the runs. weights: (m,), of each window.
    first_events: whether the first word of a sequence counts at level 1; in a plain chain it is no transition.
    """
    order = len(columns) - 1
    bits = card.bit_length()
    if order == 0:
        flat = np.zeros(card + 1, np.int32)
        return [(flat, np.arange(card + 1, dtype=np.int32), flat)], [sums_by(columns.pop(), weights, card + 1)]
    if order * bits > 64:
        windows = np.stack(columns, axis=1).astype(np.int64)
        columns.clear()
        return _wide_runs(windows, weights, card, first_events=first_events)
    # A run begins with one start mark at most: windows with more are shorter runs.
    short = _short_runs(columns, weights, card, bits)
    top, counts = _sorted_runs(columns, weights, card, bits)
    runs, keys = _runs_by_length(top, order, bits, [packed for packed, _ in short])
    del top
    levels = _linked(runs, keys, card)
    return levels, _totals(levels, counts, keys, short, card, first_events=first_events)


def _short_runs(columns: list[Codes], weights: Floats, card: int, bits: int) -> list[tuple[Keys, Floats]]:
    """For n = 2 to `order`, the keys and weights of the runs of n words that begin with the start mark."""
    order = len(columns) - 1
    if order <= 1:
        return []
    rows = np.flatnonzero(columns[1] == card)
    some, mine = np.stack([column[rows] for column in columns], axis=1), weights[rows]
    marks = (some[:, :-1] == card).sum(axis=1)
    shorter = []
    for n in range(2, order + 1):
        own = marks == order - n + 2
        shorter.append((_packed([some[own, lag] for lag in range(order + 1 - n, order + 1)], bits), mine[own]))
    return shorter


def _packed(columns: Sequence[Codes], bits: int) -> Keys:
    """One word a row, in the order of the rows."""
    keys = columns[0].astype(np.uint64)
    for column in columns[1:]:
        np.left_shift(keys, np.uint64(bits), out=keys)
        np.bitwise_or(keys, column.view(np.uint32), out=keys)
    return keys


def _sorted_runs(columns: list[Codes], weights: Floats, card: int, bits: int) -> tuple[_Runs, Floats]:
    """The longest runs, each once, and their weights; the columns are let go.

    Counts come in the order of the words; the start mark, though, is the last of all words here.
    """
    parts = _start_last(columns, card)
    if len(parts) > 1 or (parts and isinstance(parts[0], np.ndarray)):
        weights = np.concatenate([weights[part] for part in parts])
    history = np.concatenate([_packed([c[part] for c in columns[:-1]], bits) for part in parts])
    word = np.concatenate([columns[-1][part] for part in parts])
    columns.clear()
    if _ascending(history, word):
        return _Runs(history, word), weights
    ordered = np.lexsort((word, history))
    history, word = history[ordered], word[ordered]
    new = np.concatenate([[True], (history[1:] != history[:-1]) | (word[1:] != word[:-1])])
    first = np.flatnonzero(new)
    return _Runs(history[first], word[first]), np.add.reduceat(weights[ordered], first)


def _start_last(columns: list[Codes], card: int) -> list[Any]:
    """The windows that are runs of full length, those after the start mark at the end: slices, and places of these."""
    size = len(columns[0])
    begun = np.flatnonzero(columns[0] == card)
    if len(begun) == 0:
        return [slice(0, size)]
    whole = begun if len(columns) == 2 else begun[columns[1][begun] != card]
    first, last = int(begun[0]), int(begun[-1]) + 1
    if last - first == len(begun):
        return [slice(0, first), slice(last, size), whole]
    return [np.flatnonzero(columns[0] != card), whole]


def _ascending(history: Keys, word: Codes) -> bool:
    """Whether every run comes after the one before."""
    for part in blocks(max(len(word) - 1, 0)):
        after = slice(part.start + 1, part.stop + 1)
        equal = history[after] == history[part]
        if not ((history[after] > history[part]) | (equal & (word[after] > word[part]))).all():
            return False
    return True


def _runs_by_length(top: _Runs, order: int, bits: int, short: list[Keys]) -> tuple[list[_Runs], list[Keys]]:
    """The runs of 2 to ``order + 1`` words, and the keys of those of 2 to `order`."""
    runs, keys = [top], []
    for n in range(order, 1, -1):
        above = runs[-1]
        known = np.empty(len(above.word) + len(short[n - 2]), np.uint64)
        suffix = known[: len(above.word)]
        np.bitwise_and(above.history, np.uint64((1 << (n - 1) * bits) - 1), out=suffix)
        np.left_shift(suffix, np.uint64(bits), out=suffix)
        np.bitwise_or(suffix, above.word.view(np.uint32), out=suffix)
        known[len(above.word) :] = short[n - 2]
        del suffix
        known = _distinct_keys(known)
        # Histories of whole sequences are among these; one that was taken out by weight may not be, and keeps a place.
        heads = above.history[above.heads]
        nearest = np.minimum(np.searchsorted(known, heads), max(len(known) - 1, 0))
        lost = heads[known[nearest] != heads] if len(known) else heads
        if len(lost):
            known = _distinct_keys(np.concatenate([known, lost]))
        keys.append(known)
        last = np.uint64((1 << bits) - 1)
        runs.append(_Runs(known >> np.uint64(bits), (known & last).astype(np.int32)))
    return runs[::-1], keys[::-1]


def _distinct_keys(keys: Keys) -> Keys:
    """Each key once, ascending; the array is sorted in place."""
    keys.sort()
    new = np.concatenate([[True], keys[1:] != keys[:-1]])[: len(keys)]
    return np.asarray(keys[new], dtype=np.uint64)


def _linked(runs: list[_Runs], keys: list[Keys], card: int) -> list[Links]:
    """History, word and suffix of the runs of each length, as places one level up; `runs` are let go."""
    flat = np.zeros(card + 1, np.int32)
    levels: list[Links] = [(flat, np.arange(card + 1, dtype=np.int32), flat)]
    first = runs.pop(0)
    levels.append((first.history.astype(np.int32), first.word, first.word))
    starts = starts_of(levels[1][0], card + 1)
    del first
    for known in keys:
        mine = runs.pop(0)
        heads = mine.heads
        above = np.searchsorted(known, mine.history[heads]).astype(_kind(len(mine.word)))
        history = np.repeat(above, np.diff(heads, append=len(mine.word)))
        word = mine.word
        del mine, heads, above
        begins = starts_of(history, len(levels[-1][1]))
        levels.append((history, word, find_children(levels[-1][2], starts, levels[-1][1], begins, word)))
        starts = begins
    return levels


def _totals(
    levels: list[Links],
    counts: Floats,
    keys: list[Keys],
    short: list[tuple[Keys, Floats]],
    card: int,
    *,
    first_events: bool,
) -> list[Floats]:
    """The counts of every level: those of the longest runs, summed by suffix level by level."""
    totals = [counts]
    for n in range(len(levels) - 1, 0, -1):
        history, _, suffix = levels[n]
        mine = totals[-1]
        if n == 1 and not first_events:
            began = history == card
            mine = mine if began.all() else np.where(began, 0.0, mine)
        sums = sums_by(suffix, mine, len(levels[n - 1][1]))
        if n > 1:
            some, weights = short[n - 2]
            sums += sums_by(np.searchsorted(keys[n - 2], some), weights, len(sums))
        totals.append(sums)
    return totals[::-1]


# --------------------------------------------------------------------------------------------------------------------
# Histories of more than 64 bits
# --------------------------------------------------------------------------------------------------------------------


def _wide_runs(windows: Ints, weights: Floats, card: int, *, first_events: bool) -> tuple[list[Links], list[Floats]]:
    """The runs of windows whose histories do not fit in one word: rows are sorted column by column."""
    order = windows.shape[1] - 1
    marks = (windows[:, :-1] == card).sum(axis=1)
    cells: list[Ints] = [np.empty((0, 0), np.int64)] * (order + 2)
    counts: list[Floats] = [np.empty(0)] * (order + 2)
    suffixes: list[Ints] = [np.empty(0, np.int64)] * (order + 2)
    whole = marks <= 1
    runs, sums = windows[whole], weights[whole]
    for n in range(order + 1, 1, -1):
        short = marks == order - n + 2
        if n < order + 1 and short.any():
            runs = np.concatenate([runs, windows[short][:, order + 1 - n :]])
            sums = np.concatenate([sums, weights[short]])
        distinct, inverse = _distinct(runs)
        cells[n], counts[n] = distinct, sums_by(inverse, sums, len(distinct))
        if n < order + 1:
            suffixes[n + 1] = inverse[: len(cells[n + 1])]
        # Histories that were taken out by weight may lack a count of their own; they keep their place.
        heads = _heads(distinct[:, :-1])
        runs = np.concatenate([distinct[:, 1:], distinct[heads, :-1]])
        sums = np.concatenate([counts[n], np.zeros(len(heads))])
        if n == 2 and not first_events:
            began = distinct[:, 0] == card
            sums[: len(distinct)][began] = 0.0 if not began.all() else counts[n][began]
    unigrams = sums_by(runs[:, 0], sums, card + 1)
    suffixes[2] = cells[2][:, 1]
    flat = np.zeros(card + 1, np.int32)
    levels: list[Links] = [(flat, np.arange(card + 1, dtype=np.int32), flat)]
    for n in range(2, order + 2):
        history = cells[2][:, 0] if n == 2 else _places(cells[n - 1], cells[n][:, :-1])
        levels.append((history, cells[n][:, -1].astype(np.int32), suffixes[n]))
    return levels, [unigrams, *counts[2:]]


def _heads(cells: Ints) -> Ints:
    """Rows of sorted cells (m, d) that differ from the row before."""
    if len(cells) == 0:
        return np.empty(0, np.int64)
    changed = (cells[1:] != cells[:-1]).any(axis=1)
    return np.flatnonzero(np.concatenate([[True], changed]))


def _distinct(runs: Ints) -> tuple[Ints, Ints]:
    """Distinct rows in lexicographic order, and the place of each row among them."""
    order = np.lexsort(runs.T[::-1])
    ordered = runs[order]
    heads = _heads(ordered)
    ranks = np.zeros(len(runs), np.int64)
    ranks[heads[1:]] = 1
    inverse = np.empty(len(runs), np.int64)
    inverse[order] = np.cumsum(ranks)
    return ordered[heads], inverse


def _places(table: Ints, wanted: Ints) -> Ints:
    """Places of sorted rows in a sorted table that holds them all."""
    heads = _heads(wanted)
    distinct = wanted[heads]
    _, inverse = _distinct(np.concatenate([table, distinct]))
    return np.repeat(inverse[len(table) :], np.diff(heads, append=len(wanted)))
