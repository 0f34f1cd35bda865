"""Counted windows beyond memory: sorted runs in files of a scratch folder, merged range by range.

Sequences wait in files until all states are known, since the codes of windows follow from the order of the states. Then
some of them at a time are counted, which gives a run of windows in lexicographic order, and runs are merged in pieces:
all windows whose first codes lie in a range, a range of the second codes where one first code has too many.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Codes, Floats
from suffice.kernels.ngrams import CodedPart, count_parts, count_windows
from suffice.sources.scratch import Scratch, append, read_all

#: Bytes that a step needs while it is counted, and what each code of its window adds.
_STEP, _CODE = 24, 4
#: Bytes that a window needs while it is merged, and what each of its codes adds.
_WINDOW, _WINDOW_CODE = 40, 8
#: Codes of a run that are looked at together.
_BLOCK = 1 << 16


@dataclass(frozen=True, eq=False)
class Run:
    """Distinct windows (order + 1, k) in lexicographic order, a row for each of its codes, and their weights (k,)."""

    codes: Codes
    weights: Floats

    def between(self, column: int, low: int, high: int) -> Run:
        """Those whose code is from `low` to below `high`, where the columns before it are all the same."""
        first, last = np.searchsorted(self.codes[column], [low, high])
        return Run(self.codes[:, first:last], self.weights[first:last])

    def __len__(self) -> int:
        """Number of windows."""
        return len(self.weights)


class RunsOnDisk:
    """Counts of the windows of ``order + 1`` codes of more sequences than `limit` bytes hold."""

    def __init__(self, order: int, limit: int) -> None:
        """Nothing is kept yet."""
        self._order, self._scratch = order, Scratch()
        self._file: Path | None = None
        #: Steps that are counted at a time.
        self.steps = max(limit // (_STEP + _CODE * (order + 1)), 1)
        self._windows = max(limit // (_WINDOW + _WINDOW_CODE * (order + 1)), 1)

    def __bool__(self) -> bool:
        """Whether sequences are kept."""
        return self._file is not None

    def keep(self, parts: list[CodedPart]) -> None:
        """Write whole sequences down."""
        if self._file is None:
            self._file = self._scratch.file()
        append(self._file, parts)

    def count(self, past: Codes, future: Codes) -> tuple[Codes, Floats]:
        """Distinct windows (k, order + 1) of all that was kept, in lexicographic order, and their weights (k,).

        past, future: what a code is in a history and at the end of a window, as for `count_parts`.
        """
        assert self._file is not None
        try:
            runs = [self._written(*count_parts(parts, self._order, past, future)) for parts in read_all(self._file)]
            return self._merged(runs)
        finally:
            self._scratch.close()
            self._file = None

    def _written(self, cells: Codes, weights: Floats) -> Run:
        """A run in files that are read where they are."""
        if len(weights) == 0:
            return Run(cells.T, weights)
        first, second = self._scratch.file(), self._scratch.file()
        np.ascontiguousarray(cells.T).tofile(first)
        weights.tofile(second)
        codes = np.memmap(first, np.int32, "r", shape=cells.T.shape)
        return Run(codes, np.memmap(second, np.float64, "r"))

    def _merged(self, runs: list[Run]) -> tuple[Codes, Floats]:
        # As many as there may be; memory that is never written to is never taken.
        most = sum(map(len, runs))
        cells, weights = np.empty((self._order + 1, most), np.int32), np.empty(most)
        size = 0
        for piece in merged_pieces(runs, self._windows):
            whole = slice(size, size + len(piece))
            cells[:, whole], weights[whole] = piece.codes, piece.weights
            size = whole.stop
        return cells[:, :size].T, weights[:size]


def merged_pieces(runs: list[Run], most: int, column: int = 0) -> Iterator[Run]:
    """Runs as one, piece by piece, in order; about `most` windows are merged at a time.

    The codes before `column` are the same in all of them.
    """
    runs = [run for run in runs if len(run)]
    if not runs:
        return
    if len(runs) == 1:
        yield runs[0]
    elif column == len(runs[0].codes) or sum(map(len, runs)) <= most:
        columns = [np.concatenate([run.codes[n] for run in runs]) for n in range(len(runs[0].codes))]
        cells, weights = count_windows(columns, np.concatenate([run.weights for run in runs]))
        yield Run(cells.T, weights)
    else:
        for low, high in _ranges(runs, most, column):
            some = [run.between(column, low, high) for run in runs]
            yield from merged_pieces(some, most, column + 1 if high == low + 1 else column)


def _ranges(runs: list[Run], most: int, column: int) -> Iterator[tuple[int, int]]:
    """Ranges of the codes of a column that hold about `most` windows, or a single code."""
    held = np.zeros(int(max(run.codes[column][-1] for run in runs)) + 1, np.int64)
    for run in runs:
        for begin in range(0, len(run), _BLOCK):
            some: NDArray[np.int64] = np.bincount(run.codes[column][begin : begin + _BLOCK])
            held[: len(some)] += some
    until = np.cumsum(held)
    low = 0
    while low < len(held):
        before = int(until[low - 1]) if low else 0
        high = max(int(np.searchsorted(until, before + most, side="right")), low + 1)
        yield low, high
        low = high
