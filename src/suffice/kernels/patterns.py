"""Distinct rows with their weights.

A row becomes one or a few 64-bit words whose order is that of the rows: small integers are packed by mixed radix, a
float64 takes a word of its own. Equal words are found by sorting (NumPy path) or by hashing (compiled path), and the
distinct rows are decoded from their words. Hashing is faster while the distinct rows fit in cache; when there are more,
the compiled path sorts too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Words
from suffice.errors import DataError
from suffice.kernels.arrays import frozen
from suffice.kernels.choice import use_compiled

_BLOCK = 32768
_PIECE = 1 << 16
_MOST_AXES = 64  # Of a NumPy array.
_WORD = 1 << 64
_SIGN = np.uint64(1 << 63)
_SECONDS = 5e-8  # NumPy path: sorting a word.


@dataclass(frozen=True)
class _Piece:
    """Neighbouring columns packed together, the first most significant; column c has shape[c] values from lows[c]."""

    columns: tuple[int, ...]
    lows: tuple[int, ...]
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of values of the piece."""
        return math.prod(self.shape)


Packing = list[list[_Piece]]
"""Pieces of each word. A piece of several columns fits in 16 bits, where NumPy's arithmetic is fastest."""


def distinct_rows(
    columns: NDArray[Any], weights: NDArray[np.float64] | None = None
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the distinct rows (k, d) of columns (d, n), in lexicographic order, and their weights (k,).

    columns are integers, booleans or float64; NaN equals NaN and comes last, -0.0 equals 0.0. The weights are int64
    numbers of rows, or float64 sums of weights (n,). Rows of weight 0 stay.
    """
    columns = np.asarray(columns)
    if columns.ndim != 2 or not (columns.dtype.kind in "biu" or columns.dtype == np.float64):
        raise DataError(
            f"Columns have shape {columns.shape} and type {columns.dtype}; expected (d, n) integers or floats."
        )
    if weights is not None and weights.shape != columns.shape[1:]:
        raise DataError(f"Weights have shape {weights.shape} for {columns.shape[1]} rows; give one weight a row.")
    if columns.dtype.kind == "f":
        words, sums = _grouped(_float_words(columns), weights)
        return _floats(words).T.copy(), sums
    if columns.dtype.kind == "b":
        rows, sums = distinct_rows(columns.view(np.uint8), weights)
        return rows.view(np.bool_), sums
    if columns.shape[1] == 0:
        return np.empty((0, len(columns)), columns.dtype), _sums(np.empty(0, np.intp), weights, 0)
    lows = [int(column.min()) for column in columns]
    return _distinct(columns, range(len(columns)), _packing(lows, [int(column.max()) for column in columns]), weights)


def distinct_codes(
    codes: NDArray[Any], cards: Sequence[int], variables: Sequence[int], weights: NDArray[np.float64] | None
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return what `distinct_rows` gives for the rows `variables` of codes, known to be below their cards."""
    return _distinct(codes, variables, _packing([0] * len(cards), [card - 1 for card in cards]), weights)


def label_codes(
    codes: NDArray[Any], cards: Sequence[int], variables: Sequence[int]
) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the distinct rows (k, d) among the rows `variables` of codes, and which of them each row is (n,).

    They come in lexicographic order; cards are those of `variables`, and every code is below its card.
    """
    rows, cells = codes.shape[1], math.prod(cards)
    if not variables:
        return np.empty((min(rows, 1), 0), codes.dtype), np.zeros(rows, np.intp)
    packing = _packing([0] * len(cards), [card - 1 for card in cards])
    words = _packed(codes, variables, packing)
    if cells > max(_PIECE, rows):
        labels, firsts = _ranked(words)
        return _unpacked(words[:, firsts], packing, codes.dtype), labels
    used = np.zeros(cells, dtype=bool)
    used[words[0].astype(np.intp)] = True
    distinct = np.flatnonzero(used).astype(np.uint64)[None]
    return _unpacked(distinct, packing, codes.dtype), (np.cumsum(used) - 1)[words[0].astype(np.intp)]


def _distinct(
    columns: NDArray[Any], chosen: Sequence[int], packing: Packing, weights: NDArray[np.float64] | None
) -> tuple[NDArray[Any], NDArray[Any]]:
    words, sums = _grouped(_packed(columns, chosen, packing), weights)
    return _unpacked(words, packing, columns.dtype), sums


def _packing(lows: Sequence[int], highs: Sequence[int]) -> Packing:
    """Fill each piece with as many columns as fit, and each word with as many pieces as fit.

    Columns of one value take no room, so their number in a piece is bounded by the axes that an array can have.
    """
    words: Packing = [[]]
    room = _WORD
    piece = _Piece((), (), ())
    for column, (low, high) in enumerate(zip(lows, highs, strict=True)):
        radix = high - low + 1
        if len(piece.columns) in (0, _MOST_AXES) or radix * piece.size > _PIECE or radix > room:
            if radix > room:
                words.append([])
                room = _WORD
            piece = _Piece((), (), ())
            words[-1].append(piece)
        piece = _Piece((*piece.columns, column), (*piece.lows, low), (*piece.shape, radix))
        words[-1][-1] = piece
        room //= radix
    return words


def _packed(columns: NDArray[Any], chosen: Sequence[int], packing: Packing) -> Words:
    """Return words (w, n) from the chosen rows of columns (d, n)."""
    words = np.zeros((len(packing), columns.shape[1]), np.uint64)
    for start in range(0, columns.shape[1], _BLOCK):
        block = slice(start, start + _BLOCK)
        for word, pieces in zip(words[:, block], packing, strict=True):
            for piece in pieces:
                word *= np.uint64(piece.size % _WORD)
                word += _piece_numbers([columns[chosen[column], block] for column in piece.columns], piece)
    return words


def _piece_numbers(columns: list[NDArray[Any]], piece: _Piece) -> NDArray[Any]:
    """Return the mixed-radix number of each row; arithmetic wraps, so that negative values need no care."""
    kind = np.uint16 if piece.size <= _PIECE else np.uint64
    numbers: NDArray[Any] = np.zeros(len(columns[0]), kind)
    for column, low, radix in zip(columns, piece.lows, piece.shape, strict=True):
        numbers *= _wrapped(radix, kind)
        numbers += column.astype(kind) - _wrapped(low, kind)
    return numbers


def _wrapped(value: int, kind: type[Any]) -> Any:
    return kind(value % (1 << 8 * np.dtype(kind).itemsize))


def _unpacked(words: Words, packing: Packing, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return the rows (k, d) that words (w, k) stand for."""
    rows = np.empty((words.shape[1], sum(len(piece.columns) for pieces in packing for piece in pieces)), dtype)
    for word, pieces in zip(words, packing, strict=True):
        left = word
        for piece in reversed(pieces):
            left, number = np.divmod(left, np.uint64(piece.size)) if piece.size < _WORD else (left, left)
            if piece.size <= _PIECE:
                digits = np.stack(np.unravel_index(np.arange(piece.size), piece.shape), axis=1)
                values = (digits.astype(np.uint64) + np.array([low % _WORD for low in piece.lows], np.uint64)).astype(
                    dtype
                )
                rows[:, piece.columns[0] : piece.columns[-1] + 1] = values.take(number.astype(np.intp), axis=0)
            else:
                rows[:, piece.columns[0]] = (number + _wrapped(piece.lows[0], np.uint64)).astype(dtype)
    return rows


def _float_words(columns: NDArray[np.float64]) -> Words:
    """Return words (d, n) in the order of the numbers, with one NaN, the last, and one zero."""
    values = np.where(np.isnan(columns), np.nan, columns + 0.0)
    bits = np.ascontiguousarray(values).view(np.uint64)
    return np.where(bits & _SIGN, ~bits, bits | _SIGN)


def _floats(words: Words) -> NDArray[np.float64]:
    """Undo `_float_words`."""
    return np.where(words & _SIGN, words ^ _SIGN, ~words).view(np.float64)


def _grouped(words: Words, weights: NDArray[np.float64] | None) -> tuple[Words, NDArray[Any]]:
    """Return the distinct columns (w, k) of words (w, n) in lexicographic order, and their sums (k,)."""
    count, rows = words.shape
    if rows == 0 or count == 0:
        distinct = min(rows, 1)
        return np.empty((count, distinct), np.uint64), _sums(np.zeros(rows, np.intp), weights, distinct)
    if count == 1 and weights is None:  # Nothing beats a plain sort here.
        distinct_words, numbers = np.unique(words[0], return_counts=True)
        return distinct_words[None], numbers.astype(np.int64)
    if use_compiled("group words", _SECONDS * rows * count, exact=True):
        from suffice.kernels.compiled.patterns import group

        labels, firsts = group(frozen(words))
        if len(labels):
            examples = words[:, firsts]
            order = np.lexsort(examples[::-1])
            return examples[:, order], _sums(labels, weights, len(firsts))[order]
    labels, firsts = _ranked(words)
    return words[:, firsts], _sums(labels, weights, len(firsts))


def _ranked(words: Words) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the rank of each column among the distinct ones (n,), and a column that has each rank (k,).

    Two ranks are below the number of rows, so a pair of them fits in one word: words are joined one by one.
    """
    distinct_words, ranks = np.unique(words[0], return_inverse=True)
    for word in words[1:]:
        distinct, others = np.unique(word, return_inverse=True)
        distinct_words, ranks = np.unique(ranks * len(distinct) + others, return_inverse=True)
    examples = np.empty(len(distinct_words), np.intp)
    examples[ranks] = np.arange(len(ranks))
    return ranks, examples


def _sums(labels: NDArray[Any], weights: NDArray[np.float64] | None, size: int) -> NDArray[Any]:
    if weights is None:
        return np.bincount(labels, minlength=size).astype(np.int64)
    return np.bincount(labels, np.asarray(weights, dtype=np.float64), size).astype(np.float64, copy=False)
