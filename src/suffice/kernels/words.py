"""Words of a text as numbers, in the order of their first occurrence.

The compiled path scans bytes and hashes words in place; the other one splits by Python and looks words up in a dict.
Both see the same words: runs of bytes between ASCII blanks.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Codes, Ints
from suffice.kernels.arrays import frozen
from suffice.kernels.choice import use_compiled
from suffice.kernels.ngrams import with_ends

_SECONDS = 1e-7  # Python path: a byte.
_LEAST_WORDS = 1 << 15


class _Known(dict[bytes, int]):
    """Numbers of words; one that is asked for the first time gets the next."""

    def __missing__(self, word: bytes) -> int:
        self[word] = number = len(self)
        return number


class WordNumbers:
    """A growing vocabulary of byte strings; the first word is number `first`.

    end: the number that follows the last word of each line, or None.
    """

    def __init__(self, first: int = 0, end: int | None = None) -> None:
        """No words yet."""
        self._first, self._end = first, end
        self._known: _Known | None = _Known()
        self._slots = np.zeros((0, 2), np.uint64)
        self._begins = np.zeros(1, np.int64)
        self._arena = np.empty(0, np.uint8)
        self._size = 0

    def __len__(self) -> int:
        """Number of words."""
        return self._size if self._known is None else len(self._known)

    @property
    def _joined(self) -> bytes:
        """Every word, by number, a newline after each."""
        if self._known is not None:
            return b"".join(word + b"\n" for word in self._known)
        return self._arena[: self._begins[self._size]].tobytes()

    @property
    def words(self) -> list[bytes]:
        """Every word, by number."""
        return self._joined.split(b"\n")[:-1]

    @property
    def texts(self) -> list[str]:
        """Every word, by number, as text; words that are no UTF-8 raise UnicodeDecodeError."""
        return self._joined.decode("utf-8").split("\n")[:-1]

    def read(self, text: bytes) -> tuple[Codes, Ints]:
        """Numbers of the words of whole lines (n,), and the offsets of the lines that hold any (lines + 1,)."""
        if self._known is not None and not use_compiled("words", len(text) * _SECONDS):
            return self._read_python(text)
        if self._known is not None:
            self._to_arrays()
        return self._read_compiled(text)

    def _read_python(self, text: bytes) -> tuple[Codes, Ints]:
        known = self._known
        assert known is not None
        lines = [words for line in text.split(b"\n") if (words := line.split())]
        offsets = np.concatenate([[0], np.cumsum([len(line) for line in lines], dtype=np.int64)]).astype(np.int64)
        numbers = np.fromiter(map(known.__getitem__, chain.from_iterable(lines)), np.int32, int(offsets[-1]))
        numbers += np.int32(self._first)
        return (numbers, offsets) if self._end is None else with_ends(numbers, offsets, self._end)

    def _read_compiled(self, text: bytes) -> tuple[Codes, Ints]:
        from suffice.kernels.compiled.words import number_words

        data = frozen(np.frombuffer(text, np.uint8))
        most = text.count(b"\n") + 1
        codes = np.empty(len(data) // 2 + 1 + most, np.int32)
        ends = np.empty(most, np.int64)
        sizes = np.array([self._size, 0, 0], np.int64)
        marks = np.array([self._first, -1 if self._end is None else self._end], np.int64)
        start = np.int64(0)
        if len(self._slots) == 0:
            self._grow(len(data))
        while True:
            start = number_words(data, start, self._slots, self._begins, self._arena, sizes, marks, codes, ends)
            self._size = int(sizes[0])
            if start == len(data):
                break
            self._grow(len(data) - int(start))
        codes.resize(int(sizes[1]), refcheck=False)
        return codes, np.concatenate([[0], ends[: sizes[2]]]).astype(np.int64)

    def _grow(self, least: int) -> None:
        """Double every table; the arena takes at least the rest of the text's longest word."""
        from suffice.kernels.compiled.words import refill

        words = max(_LEAST_WORDS, len(self._slots))
        self._begins = _extended(self._begins, words + 1)
        self._arena = _extended(self._arena, 2 * len(self._arena) + min(least, 1 << 20) + (1 << 16))
        if self._begins[self._size] + least >= len(self._arena) and least > 1 << 20:
            self._arena = _extended(self._arena, len(self._arena) + least)
        wider = np.zeros((2 * words, 2), np.uint64)
        refill(self._slots, wider)
        self._slots = wider

    def _to_arrays(self) -> None:
        """Carry the words of the Python path over."""
        earlier = self._joined
        self._known = None
        if earlier:
            self._read_compiled(earlier)


def _extended(values: NDArray[Any], size: int) -> NDArray[Any]:
    longer = np.zeros(size, values.dtype)
    longer[: len(values)] = values
    return longer
