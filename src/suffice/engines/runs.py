"""From counted windows to the levels of a tree: the runs of one to ``order + 1`` words, with histories and suffixes.

A run of n words is one word of 64 bits, its key, wherever histories fit in one. Which runs there are is told from the
longest to the shortest, by sorting keys alone; where their histories and suffixes are, from the shortest to the
longest: the suffix of a run is the child, by the same word, of the suffix of its history.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.kernels.ngrams import find_children

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Keys = NDArray[np.uint64]
Links = tuple[Integers, Integers, Integers]
"""History, word and suffix of each run; histories and suffixes are places one level up."""


def sums_by(groups: Integers, values: Floats, size: int) -> Floats:
    """Sums of values by group (size,)."""
    return np.asarray(np.bincount(groups, values, minlength=size), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class _Runs:
    """Runs of one length in lexicographic order: keys of their histories, and their last words."""

    history: Keys
    word: Integers

    @property
    def heads(self) -> Integers:
        """Where a history begins."""
        return np.flatnonzero(np.concatenate([[True], self.history[1:] != self.history[:-1]])[: len(self.history)])


def link_runs(
    windows: NDArray[Any], weights: Floats, card: int, *, first_events: bool
) -> tuple[list[Links], list[Floats]]:
    """The runs of every length in lexicographic order, and their counts, level by level.

    windows: (m, order + 1) words, 0 to ``card - 1``, with start marks `card` before the first word; weights (m,).
    first_events: whether the first word of a sequence counts at level 1; in a plain chain it is no transition.
    """
    order = windows.shape[1] - 1
    bits = card.bit_length()
    if order * bits > 64:
        return _wide_runs(windows.astype(np.int64), weights, card, first_events=first_events)
    # A run begins with one start mark at most: windows with more are shorter runs.
    short = _short_runs(windows, weights, card, bits)
    whole = windows[:, 1] != card if order > 1 else np.ones(len(windows), dtype=np.bool_)
    if not whole.all():
        windows, weights = windows[whole], weights[whole]
    top, counts = _sorted_runs(windows, weights, card, bits)
    del windows, weights
    runs, keys = _runs_by_length(top, order, bits, [found for found, _ in short])
    levels = _linked(runs, keys, card)
    return levels, _totals(levels, counts, keys, short, card, first_events=first_events)


def _short_runs(windows: NDArray[Any], weights: Floats, card: int, bits: int) -> list[tuple[Keys, Floats]]:
    """For n = 2 to `order`, the keys and weights of the runs of n words that begin with the start mark."""
    order = windows.shape[1] - 1
    if order == 1:
        return []
    rows = np.flatnonzero(windows[:, 1] == card)
    some, mine = windows[rows], weights[rows]
    marks = (some[:, :-1] == card).sum(axis=1)
    found = []
    for n in range(2, order + 1):
        own = marks == order - n + 2
        found.append((_packed([some[own, place] for place in range(order + 1 - n, order + 1)], bits), mine[own]))
    return found


def _packed(columns: Sequence[NDArray[Any]], bits: int) -> Keys:
    """One word a row, in the order of the rows."""
    keys = columns[0].astype(np.uint64)
    for column in columns[1:]:
        keys <<= np.uint64(bits)
        keys |= column.astype(np.uint64)
    return keys


def _sorted_runs(windows: NDArray[Any], weights: Floats, card: int, bits: int) -> tuple[_Runs, Floats]:
    """The longest runs, each once, and their weights.

    Counts come in the order of the words; the start mark, though, is the last of all words here.
    """
    width = windows.shape[1]
    history, word = _packed([windows[:, place] for place in range(width - 1)], bits), windows[:, -1].astype(np.int64)
    if _ascending(history, word):
        return _Runs(history, word), weights
    begins = windows[:, 0] == card
    turned = np.concatenate([np.flatnonzero(~begins), np.flatnonzero(begins)])
    history, word, weights = history[turned], word[turned], weights[turned]
    if _ascending(history, word):
        return _Runs(history, word), weights
    ordered = np.lexsort((word, history))
    history, word = history[ordered], word[ordered]
    new = np.concatenate([[True], (history[1:] != history[:-1]) | (word[1:] != word[:-1])])
    first = np.flatnonzero(new)
    return _Runs(history[first], word[first]), np.add.reduceat(weights[ordered], first)


def _ascending(history: Keys, word: Integers) -> bool:
    """Whether every run comes after the one before."""
    later = (history[1:] > history[:-1]) | ((history[1:] == history[:-1]) & (word[1:] > word[:-1]))
    return bool(later.all())


def _runs_by_length(top: _Runs, order: int, bits: int, short: list[Keys]) -> tuple[list[_Runs], list[Keys]]:
    """The runs of 2 to ``order + 1`` words, and the keys of those of 2 to `order`."""
    runs, keys = [top], []
    for n in range(order, 1, -1):
        above = runs[-1]
        mask = np.uint64((1 << (n - 1) * bits) - 1)
        suffix = ((above.history & mask) << np.uint64(bits)) | above.word.astype(np.uint64)
        # Histories that were taken out by weight may lack a count of their own; they keep their place.
        found = np.concatenate([suffix, above.history[above.heads], short[n - 2]])
        del suffix
        found.sort()
        found = found[np.concatenate([[True], found[1:] != found[:-1]])[: len(found)]]
        keys.append(found)
        last = np.uint64((1 << bits) - 1)
        runs.append(_Runs(found >> np.uint64(bits), (found & last).astype(np.int64)))
    return runs[::-1], keys[::-1]


def _linked(runs: list[_Runs], keys: list[Keys], card: int) -> list[Links]:
    """History, word and suffix of the runs of each length, as places one level up."""
    flat = np.zeros(card + 1, np.int64)
    levels = [(flat, np.arange(card + 1), flat)]
    for n, mine in enumerate(runs, start=2):
        if n == 2:
            history = mine.history.astype(np.int64)
            levels.append((history, mine.word, mine.word))
            continue
        heads = mine.heads
        above = np.searchsorted(keys[n - 3], mine.history[heads])
        history = np.repeat(above, np.diff(heads, append=len(mine.word)))
        up_history, up_word, up_suffix = levels[-1]
        starts = np.searchsorted(up_history, np.arange(len(levels[-2][1]) + 1))
        levels.append((history, mine.word, find_children(up_suffix, starts, up_word, history, mine.word)))
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
    found = [counts]
    for n in range(len(levels) - 1, 0, -1):
        history, _, suffix = levels[n]
        mine = found[-1]
        if n == 1 and not first_events:
            began = history == card
            mine = mine if began.all() else np.where(began, 0.0, mine)
        sums = sums_by(suffix, mine, len(levels[n - 1][1]))
        if n > 1:
            some, weights = short[n - 2]
            sums += sums_by(np.searchsorted(keys[n - 2], some), weights, len(sums))
        found.append(sums)
    return found[::-1]


# --------------------------------------------------------------------------------------------------------------------
# Histories of more than 64 bits
# --------------------------------------------------------------------------------------------------------------------


def _wide_runs(
    windows: Integers, weights: Floats, card: int, *, first_events: bool
) -> tuple[list[Links], list[Floats]]:
    """The runs of windows whose histories do not fit in one word: rows are sorted column by column."""
    order = windows.shape[1] - 1
    marks = (windows[:, :-1] == card).sum(axis=1)
    cells: list[Integers] = [np.empty((0, 0), np.int64)] * (order + 2)
    counts: list[Floats] = [np.empty(0)] * (order + 2)
    suffixes: list[Integers] = [np.empty(0, np.int64)] * (order + 2)
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
    flat = np.zeros(card + 1, np.int64)
    levels = [(flat, np.arange(card + 1), flat)]
    for n in range(2, order + 2):
        history = cells[2][:, 0] if n == 2 else _places(cells[n - 1], cells[n][:, :-1])
        levels.append((history, cells[n][:, -1].copy(), suffixes[n]))
    return levels, [unigrams, *counts[2:]]


def _heads(cells: Integers) -> Integers:
    """Rows of sorted cells (m, d) that differ from the row before."""
    if len(cells) == 0:
        return np.empty(0, np.int64)
    changed = (cells[1:] != cells[:-1]).any(axis=1)
    return np.flatnonzero(np.concatenate([[True], changed]))


def _distinct(runs: Integers) -> tuple[Integers, Integers]:
    """Distinct rows in lexicographic order, and the place of each row among them."""
    order = np.lexsort(runs.T[::-1])
    ordered = runs[order]
    heads = _heads(ordered)
    ranks = np.zeros(len(runs), np.int64)
    ranks[heads[1:]] = 1
    inverse = np.empty(len(runs), np.int64)
    inverse[order] = np.cumsum(ranks)
    return ordered[heads], inverse


def _places(table: Integers, wanted: Integers) -> Integers:
    """Places of sorted rows in a sorted table that holds them all."""
    heads = _heads(wanted)
    distinct = wanted[heads]
    _, inverse = _distinct(np.concatenate([table, distinct]))
    return np.repeat(inverse[len(table) :], np.diff(heads, append=len(wanted)))
