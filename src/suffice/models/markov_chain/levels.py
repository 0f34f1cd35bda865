"""Runs of one to ``order + 1`` words with their counts, as the levels of a tree.

Words are numbered 0 to ``card - 1``; the number `card` is the start mark, which only ever comes first in a run. Level n
holds the runs of n words in lexicographic order. A run is known by its history (the run without its last word, one
level up) and that word, and has a suffix (the run without its first word, one level up as well) to back off to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats, Ints
from suffice.engines.ngram_tree import link_runs, starts_of, sums_by
from suffice.errors import FileFormatError

Places = NDArray[Any]


def at_places(values: Floats, places: Places, missing: Any) -> Floats:
    """The values (n, ...) at some places (m,), and what is missing where a place is -1; there may be no values."""
    if len(values) == 0:
        return np.broadcast_to(np.asarray(missing, dtype=np.float64), (len(places), *values.shape[1:])).copy()
    there = (places >= 0).reshape(-1, *(1,) * (values.ndim - 1))
    return np.where(there, values[places], missing)


@dataclass(frozen=True, eq=False)
class Level:
    """The runs of n words: history, word, suffix and count (m,); histories and suffixes are places one level up.

    Numbers have 32 bits where these are enough.
    """

    history: Places
    word: Places
    suffix: Places
    count: Floats

    def __len__(self) -> int:
        """Number of runs."""
        return len(self.word)


@dataclass(frozen=True, eq=False)
class Levels:
    """All levels; `levels[0]` holds every word and the start mark, in order."""

    card: int
    levels: tuple[Level, ...]

    @property
    def order(self) -> int:
        """Words that a history has."""
        return len(self.levels) - 1

    @cached_property
    def _starts(self) -> list[Places]:
        """For each level, where the runs of each history begin."""
        above = [1, *(len(level) for level in self.levels[:-1])]
        return [starts_of(level.history, size) for level, size in zip(self.levels, above, strict=True)]

    def find(self, n: int, history: Ints, word: NDArray[Any]) -> Ints:
        """Places in level n of runs by history and word; -1 for one that is not there or has no history."""
        words, starts = self.levels[n - 1].word, self._starts[n - 1]
        if len(words) == 0:
            return np.full(len(word), -1, np.int64)
        known = np.where(history >= 0, history, 0)
        low, end = starts[known].astype(np.int64), starts[known + 1].astype(np.int64)
        high = end
        while (open_ := low < high).any():
            middle = (low + high) >> 1
            before = open_ & (words[np.minimum(middle, len(words) - 1)] < word)
            low, high = np.where(before, middle + 1, low), np.where(open_ & ~before, middle, high)
        run = np.minimum(low, len(words) - 1)
        return np.where((low < end) & (words[run] == word) & (history >= 0), run, -1)

    def contexts(self, past: NDArray[Any]) -> list[Ints]:
        """Places of the last n words of each past (m, order), for n = 0 to `order`; -1 for one that is not there.

        A past whose last n words hold two start marks is not there: a run begins with one at most.
        """
        if len(past) > 1 and (past == past[0]).all():  # The row of one history: every word asks for the same.
            return [np.repeat(context, len(past)) for context in self.contexts(past[:1])]
        contexts = [np.zeros(len(past), np.int64)]
        width = past.shape[1]
        for n in range(1, self.order + 1):
            node = past[:, width - n].astype(np.int64)
            node[(node < 0) | (node > self.card)] = -1
            for level in range(2, n + 1):
                node = self.find(level, node, past[:, width - n + level - 1])
            contexts.append(node)
        return contexts

    def totals(self, n: int, values: Floats | None = None) -> Floats:
        """Sums over the runs of level n by history (runs of level n - 1,); of counts unless values are given."""
        level = self.levels[n - 1]
        size = len(self.levels[n - 2]) if n > 1 else 1
        return sums_by(level.history, level.count if values is None else values, size)

    @cached_property
    def begins(self) -> list[NDArray[np.bool_]]:
        """For each level, whether a run begins with the start mark."""
        begins = [self.levels[0].word == self.card]
        for level in self.levels[1:]:
            begins.append(begins[-1][level.history])
        return begins

    def words(self, n: int) -> Ints:
        """The runs of level n, spelled out (m, n)."""
        spelled = np.empty((len(self.levels[n - 1]), n), np.int64)
        run = np.arange(len(spelled))
        for level in range(n, 0, -1):
            spelled[:, level - 1] = self.levels[level - 1].word[run]
            run = self.levels[level - 1].history[run]
        return spelled

    def counted(self, n: int) -> NDArray[np.bool_]:
        """The runs of level n that are counted events with their whole history."""
        seen = self.levels[n - 1].count > 0
        return seen & self.begins[n - 1] if n <= self.order else seen

    @property
    def event_levels(self) -> range:
        """The levels that hold events: histories at the start of a sequence are shorter than the order."""
        return range(min(2, self.order + 1), self.order + 2)

    def events(self) -> tuple[Ints, Floats]:
        """The counted windows (m, order + 1) with start marks before the first word, and their counts."""
        windows, counts = [], []
        for n in self.event_levels:
            whole = self.counted(n)
            spelled = self.words(n)[whole]
            padded = np.full((len(spelled), self.order + 1), self.card, np.int64)
            padded[:, self.order + 1 - n :] = spelled
            windows.append(padded)
            counts.append(self.levels[n - 1].count[whole])
        return np.concatenate(windows), np.concatenate(counts)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a file."""
        fields = ("history", "word", "suffix")
        levels = [{name: getattr(level, name).astype(np.int64) for name in fields} for level in self.levels]
        counts = [{"count": np.asarray(level.count)} for level in self.levels]
        return {"card": self.card, "levels": [a | b for a, b in zip(levels, counts, strict=True)]}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Levels:
        """Rebuild from plain data, checking every place."""
        card = plain["card"]
        if type(card) is not int or card < 1:
            raise FileFormatError(f"A chain of {card!r} states cannot be.")
        levels: list[Level] = []
        for n, entry in enumerate(plain["levels"]):
            level = Level(*(np.asarray(entry[name]) for name in ("history", "word", "suffix", "count")))
            above = len(levels[-1]) if levels else 1
            whole = all(a.dtype == np.int64 and a.shape == level.word.shape for a in (level.history, level.suffix))
            good = whole and level.word.dtype == np.int64 and level.count.dtype == np.float64 and level.word.ndim == 1
            if not good or level.count.shape != level.word.shape or not np.isfinite(level.count).all():
                raise FileFormatError(f"Level {n + 1} of the chain holds arrays of another type or shape.")
            inside = ((level.history >= 0) & (level.history < above) & (level.suffix >= 0)).all()
            inside &= ((level.suffix < above) & (level.word >= 0) & (level.word <= card)).all()
            keys = level.history * (card + 1) + level.word
            if not inside or (np.diff(keys) <= 0).any() or (n == 0 and len(level) != card + 1):
                raise FileFormatError(f"Level {n + 1} of the chain lists a run outside its states, or out of order.")
            levels.append(level)
        if not levels:
            raise FileFormatError("A chain needs at least one level.")
        return cls(card, tuple(levels))


def build_levels(columns: list[NDArray[np.int32]], weights: Floats, card: int, *, first_events: bool) -> Levels:
    """All levels from the columns of windows, words with start marks before the first word, and their weights (m,).

    The columns are taken off the list.
    first_events: whether the first word of a sequence counts at level 1; in a plain chain it is no transition.
    """
    links, counts = link_runs(columns, weights, card, first_events=first_events)
    return Levels(card, tuple(Level(*link, count) for link, count in zip(links, counts, strict=True)))
