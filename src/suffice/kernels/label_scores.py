"""Scores of labels from sparse features, and sums of features by label: NumPy or compiled.

A design (steps, features) is sparse, by rows. Weights are packed: see `suffice.kernels.compiled.label_scores`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats, Ints
from suffice.kernels.arrays import frozen
from suffice.kernels.choice import use_compiled

Indices = NDArray[np.int32]
Span = tuple[int, int]

#: Entries of a design that the NumPy path handles at once.
ENTRIES = 65536
#: A table of all pairs of a feature and a label is made where it has at most this many cells for each entry.
TABLE = 4


@dataclass(frozen=True, eq=False)
class Matrix:
    """A sparse matrix by rows: entries of row r from ``indptr[r]`` to ``indptr[r + 1]``; no values means ones."""

    indptr: Ints
    indices: Indices
    values: Floats
    columns: int

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.indptr) - 1

    @property
    def row_of_entry(self) -> Ints:
        """The row of each entry."""
        return np.repeat(np.arange(self.rows), np.diff(self.indptr))

    @property
    def filled(self) -> Floats:
        """The value of each entry, ones where none are kept."""
        return self.values if len(self.values) else np.ones(len(self.indices))

    def to_scipy(self) -> Any:
        """The same as a sparse array of SciPy."""
        from scipy.sparse import csr_array

        return csr_array((self.filled, self.indices, self.indptr), shape=(self.rows, self.columns))

    def __getitem__(self, rows: slice | Ints) -> Matrix:
        """Some rows, in the order asked."""
        places = np.arange(self.rows)[rows]
        counts = self.indptr[places + 1] - self.indptr[places]
        return self._of_entries(ranges(self.indptr[places], counts), counts)

    def entries_where(self, kept: NDArray[np.bool_]) -> Matrix:
        """The same rows, with some of the entries."""
        return self._of_entries(kept, np.bincount(self.row_of_entry[kept], minlength=self.rows))

    def _of_entries(self, entries: NDArray[Any], counts: Ints) -> Matrix:
        values = self.values[entries] if len(self.values) else self.values
        return Matrix(np.concatenate(([0], np.cumsum(counts))), self.indices[entries], values, self.columns)

    @cached_property
    def arrays(self) -> tuple[Any, Any, Any]:
        """The three arrays as compiled loops take them; indices without a sign are not checked for being negative."""
        indptr, indices = frozen(self.indptr, np.int64), frozen(self.indices, np.int32)
        return indptr.view(np.uint64), indices.view(np.uint32), frozen(self.values)

    def entries(self, span: Span) -> Iterator[tuple[Ints, Indices, Floats | None]]:
        """Rows (counted from the first of the span), columns and values of the entries of some rows, in blocks."""
        first, last = int(self.indptr[span[0]]), int(self.indptr[span[1]])
        for start in range(first, last, ENTRIES):
            stop = min(start + ENTRIES, last)
            begin, end = np.searchsorted(self.indptr, (start, stop - 1), side="right") - 1
            bounds = np.clip(self.indptr[begin : end + 2], start, stop)
            rows = np.repeat(np.arange(begin, end + 1) - span[0], np.diff(bounds))
            yield rows, self.indices[start:stop], self.values[start:stop] if len(self.values) else None


@dataclass(frozen=True, eq=False)
class Packing:
    """Which (feature, label) pairs have a weight: labels of feature f from ``pointers[f]`` to ``pointers[f + 1]``.

    The labels of one feature rise.
    """

    pointers: Ints
    labels: Indices
    size: int

    @property
    def features(self) -> Ints:
        """The feature of each weight."""
        return np.repeat(np.arange(len(self.pointers) - 1), np.diff(self.pointers))

    @cached_property
    def arrays(self) -> tuple[Any, Any]:
        """The arrays as compiled loops take them."""
        pointers, labels = frozen(self.pointers, np.int64), frozen(self.labels, np.int32)
        return pointers.view(np.uint64), labels.view(np.uint32)

    def dense(self, weights: Floats) -> Floats:
        """Packed weights (p,) as a matrix (features, K), zero where there is none."""
        matrix = np.zeros((len(self.pointers) - 1, self.size))
        matrix[self.features, self.labels] = weights
        return matrix

    def places(self, features: Ints, labels: Ints) -> Ints:
        """Where the weights of pairs are, by halving the labels of each feature; -1 for pairs that have none."""
        low, high = self.pointers[features], self.pointers[features + 1]
        end = high
        while (low < high).any():
            middle = (low + high) // 2
            below = (low < high) & (self.labels[np.minimum(middle, len(self.labels) - 1)] < labels)
            low, high = np.where(below, middle + 1, low), np.where(below | (low >= high), high, middle)
        there = low < end
        there[there] = self.labels[low[there]] == labels[there]
        return np.where(there, low, -1)


def ranges(starts: Ints, lengths: Ints) -> Ints:
    """The ranges from each start on, one after another."""
    total = int(lengths.sum())
    before = np.cumsum(lengths) - lengths
    return np.asarray(np.arange(total) + np.repeat(starts - before, lengths))


def compiled(design: Matrix, size: int, calls: int | None, *, besides: float = 0.0) -> bool:
    """Whether compiled loops pay for this design; besides: seconds of what else would be done without them."""
    seconds = besides + 3e-9 * (len(design.indices) + design.rows) * size
    return use_compiled("label scores", seconds, calls=calls, once=True)


def scores(design: Matrix, packing: Packing, weights: Floats, span: Span, out: Floats, *, use: bool) -> None:
    """Scores of all labels at the steps of a span, written to out (steps of the span, at least K)."""
    if use:
        from suffice.kernels.compiled.label_scores import add_scores

        add_scores(*design.arrays, *packing.arrays, frozen(weights), packing.size, span, out)
        return
    sums = np.zeros((span[1] - span[0], packing.size))
    for pairs in _pairs(design, packing, span):
        sums += np.bincount(pairs.cells, pairs.times(weights[pairs.places]), sums.size).reshape(sums.shape)
    out[:, : packing.size] = sums
    out[:, packing.size :] = 0.0


def scale_rows(scores: Floats, size: int, shift: Floats, *, use: bool) -> None:
    """Turn the first K = size scores of rows, finite ones, into exp(score - row maximum), in place.

    The maxima go to shift (steps,); columns beyond K become 0.
    """
    if use:
        from suffice.kernels.compiled.exponentials import scale_rows as loop

        loop(scores, size, shift)
        return
    np.max(scores[:, :size], axis=1, out=shift)
    scores[:, :size] = np.exp(scores[:, :size] - shift[:, None])
    scores[:, size:] = 0.0


def add_features(design: Matrix, packing: Packing, rows: Floats, span: Span, out: Floats, *, use: bool) -> None:
    """Add feature times rows (steps of the span, at least K), summed over the steps of a span, to packed sums (p,)."""
    if use:
        from suffice.kernels.compiled.label_scores import add_features as loop

        loop(*design.arrays, *packing.arrays, frozen(rows), packing.size, span, out)
        return
    inner = np.ascontiguousarray(rows[:, : packing.size]).reshape(-1)
    for pairs in _pairs(design, packing, span):
        out += np.bincount(pairs.places, pairs.times(inner[pairs.cells]), len(out))


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Every weight at every step that has its feature: cells of (steps, K), places of weights, values or None."""

    cells: Ints
    places: Ints
    values: Floats | None

    def times(self, numbers: Floats) -> Floats:
        """Numbers (pairs,), which may be written to, times the values."""
        return numbers if self.values is None else np.multiply(numbers, self.values, out=numbers)


#: Those of small designs, which come back many times, by the span, under the last packing asked for.
_kept: WeakKeyDictionary[Matrix, tuple[Packing, dict[Span, list[_Pairs]]]] = WeakKeyDictionary()


def _pairs(design: Matrix, packing: Packing, span: Span) -> Iterable[_Pairs]:
    """The pairs of a span, in blocks of entries."""
    if len(design.indices) > ENTRIES:
        return _made_pairs(design, packing, span)
    under, known = _kept.get(design, (None, {}))
    if under is not packing:
        known = {}
        _kept[design] = packing, known
    pairs = known.get(span)
    if pairs is None:
        pairs = known[span] = list(_made_pairs(design, packing, span))
    return pairs


def _made_pairs(design: Matrix, packing: Packing, span: Span) -> Iterator[_Pairs]:
    for rows, columns, values in design.entries(span):
        starts = packing.pointers[columns]
        counts = packing.pointers[columns + 1] - starts
        places = ranges(starts, counts)
        cells = np.repeat(rows * np.int64(packing.size), counts) + packing.labels[places].astype(np.int64)
        yield _Pairs(cells, places, None if values is None else np.repeat(values, counts))


def count_labels(design: Matrix, packing: Packing, codes: Ints, weights: Floats) -> Floats:
    """Packed sums (p,) of feature times weight (steps,) at the label that each step has; pairs without one drop out."""
    cells, size = design.columns * packing.size, np.int64(packing.size)
    table = None
    if cells <= TABLE * max(len(design.indices), 1):
        table = np.full(cells, -1, np.int32)
        table[packing.features * size + packing.labels] = np.arange(len(packing.labels), dtype=np.int32)
    sums = np.zeros(len(packing.labels))
    for rows, columns, values in design.entries((0, design.rows)):
        labels = codes[rows]
        if table is None:
            places = packing.places(columns.astype(np.int64), labels)
        else:
            places = table[columns * size + labels]
        there = places >= 0
        share = weights[rows[there]] if values is None else weights[rows[there]] * values[there]
        sums += np.bincount(places[there], share, minlength=len(sums))
    return sums


def label_pairs(design: Matrix, codes: Ints, size: int) -> Ints:
    """The pairs of a feature and the label of a step that has it, as ``feature * size + label``, rising."""
    cells = design.columns * size
    blocks = (columns * np.int64(size) + codes[rows] for rows, columns, _ in design.entries((0, design.rows)))
    if cells > TABLE * max(len(design.indices), 1):
        return np.unique(np.concatenate([np.zeros(0, np.int64), *blocks]))
    seen = np.zeros(cells, np.bool_)
    for keys in blocks:
        seen[keys] = True
    return np.flatnonzero(seen)
