"""The flat program that the compiled loops of the junction tree follow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.kernels.junction_tree_layout import Scope, TreeLayout
from suffice.records import record

Numbers = NDArray[np.uint64]

ROW = 13
"""Numbers that describe an entry or an exit."""

_HEADER = 13
_MESSAGE = 21


@record(frozen=True)
class Wiring:
    """What a program reads and writes besides messages; each scope lies in some clique.

    inputs: scopes of small tables that cliques are multiplied by; outputs: scopes that beliefs are summed out to;
    coded: the last so many inputs are single variables whose columns hold codes; separate: whether potentials are kept
    apart from beliefs, so that a buffer serves again.
    """

    batch: int
    inputs: tuple[Scope, ...] = ()
    outputs: tuple[Scope, ...] = ()
    coded: int = 0
    separate: bool = False


class Program:
    """Positions of all tables in a buffer, and what happens to them; see `suffice.kernels.compiled.junction_tree`.

    `numbers`, `offsets`, `entries` (inputs, ROW) and `exits` (outputs, ROW) are what the loops read; `messages` (edges,
    numbers of a message) are those that `numbers` ends with, in the order of the edges of the layout. `length` is how
    many float64 the buffer has, the first `cells` of them for beliefs; `starts` and `origins` of the cliques, `inputs`,
    `outputs`, `exits_at` of each output, `scratch`, `fresh`, room for one message, and `logs` are positions in it.
    `derived` is what others make of it, by their names.
    """

    def __init__(self, layout: TreeLayout, wiring: Wiring) -> None:
        self.layout = layout
        self.derived: dict[str, Any] = {}
        self.batch = batch = wiring.batch
        self.length = 0
        self._pieces: list[NDArray[np.uint32]] = []
        self._places: dict[bytes, int] = {}
        self._filled = 0
        self._wide = 1
        self.starts = [self._take(size * batch) for size in layout.sizes]
        self.cells = self.length
        self.origins = [self._take(size) for size in layout.sizes] if wiring.separate else self.starts
        messages = [
            number for clique in layout.order if layout.parents[clique] >= 0 for number in self._message(clique)
        ]
        self.inputs = self._take(sum(map(layout.size, wiring.inputs)) * batch)
        self.outputs = self._take(sum(map(layout.size, wiring.outputs)) * batch)
        self.entries = self._rows(wiring.inputs, self.inputs)
        self.exits = self._rows(wiring.outputs, self.outputs)
        self.exits_at: list[int] = self.exits[:, 1].tolist()
        for column, row in enumerate(self.entries[len(wiring.inputs) - wiring.coded :]):
            row[3:5] = column, 1
        count = len(layout.cliques)
        scratch, fresh = self._take(self._wide), self._take(max(layout.separator_sizes, default=1) * batch)
        floors, powers, origins = self._take(count), self._take(count * batch), self._take(count)
        self.logs = self._take(batch)
        self.scratch, self.fresh = scratch, fresh
        self.messages = np.array(messages, np.uint64).reshape(-1, _MESSAGE)
        self.numbers = self._numbers((scratch, fresh, floors, powers, origins, self.logs), messages)
        self.offsets = np.concatenate([np.zeros(1, np.uint32), *self._pieces])

    def _numbers(self, places: tuple[int, ...], messages: list[int]) -> Numbers:
        layout = self.layout
        tables = [number for row in zip(self.starts, self.origins, layout.sizes, strict=True) for number in row]
        roots = [clique for clique, parent in enumerate(layout.parents) if parent < 0]
        roots_at = _HEADER + len(tables)
        messages_at = roots_at + len(roots)
        counts = (len(layout.cliques), _HEADER, len(roots), roots_at, len(messages) // _MESSAGE, messages_at)
        return np.array([self.batch, *counts, *places, *tables, *roots, *messages], np.uint64)

    def _take(self, count: int) -> int:
        """Reserve numbers in the buffer, from the beginning of a cache line on."""
        start = self.length
        self.length += -(-count // 8) * 8
        return start

    def _message(self, clique: int) -> list[int]:
        layout = self.layout
        parent, separator = layout.parents[clique], layout.separators[clique]
        size = layout.separator_sizes[clique] * self.batch
        sides = (*self._side(clique, separator), *self._side(parent, separator))
        unscaled = int(np.float64(layout.unscaled[parent]).view(np.uint64))
        return [self._take(size), size, clique, parent, unscaled, *sides]

    def _rows(self, scopes: Sequence[Scope], start: int) -> Numbers:
        """Entries or exits (scopes, ROW), whose small tables follow one another in the buffer."""
        rows = np.zeros((len(scopes), ROW), np.uint64)
        column = 0
        for row, scope in zip(rows, scopes, strict=True):
            clique, size = self.layout.home(scope), self.layout.size(scope)
            row[:] = [clique, start + column * self.batch, size, column, 0, *self._side(clique, scope)]
            column += size
        return rows

    def _side(self, clique: int, scope: Scope) -> list[int]:
        way = self.layout.meeting(clique, scope, self.batch)
        self._wide = max(self._wide, way.wide)
        runs = [len(way.offsets), way.length, self._place(way.offsets), int(way.inside)]
        folds = [len(way.fold_offsets), way.fold_length, self._place(way.fold_offsets)]
        return [self.starts[clique], *runs, *folds]

    def _place(self, offsets: NDArray[np.uint32]) -> int:
        """Where these offsets are; tables of the same form share them."""
        key = offsets.tobytes()
        start = self._places.get(key)
        if start is None:
            start = self._places[key] = self._filled + 1
            self._pieces.append(offsets)
            self._filled += len(offsets)
        return start


_KEPT = 16


def program_for(layout: TreeLayout, wiring: Wiring) -> Program:
    """The program of a layout; the last few are kept with the layout, which several threads may share."""
    kept: dict[Wiring, Program] = layout.programs
    program = kept.pop(wiring, None) or Program(layout, wiring)
    kept[wiring] = program
    for oldest in list(kept)[:-_KEPT]:
        kept.pop(oldest, None)
    return program
