"""Many tables in one flat array: what is done to every row is done to all rows of all tables in a few steps.

Tables with as many states lie side by side, so that the rows of such a group are one matrix and are added up as those
of a single table are, to the bit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.answers import CountTable
from suffice.array_types import Floats
from suffice.domain import MOST_AXES, Domain
from suffice.engines.memory import default_limit, in_words
from suffice.errors import SizeError, listing
from suffice.models.bayesian.nodes.lookup import numbers_alike
from suffice.statistics import FamilyCounts, Summary

Places = NDArray[np.intp]

#: Tables of at most this many cells keep a row for every parent configuration.
DENSE_CELLS = 2**22
#: Arrays of the size of a table that learning makes: counts, rows, pseudo-counts and those in between.
ARRAYS = 5
#: Larger tables gain nothing from others beside them.
FEW_CELLS = 4096
#: Where tables of more cells lie is not kept for the next fit.
KEPT_CELLS = 1 << 18


@dataclass(frozen=True)
class TableGroup:
    """Tables with as many states: their cells and rows among all, and their numbers with the rows of each."""

    card: int
    cells: slice
    rows: slice
    members: tuple[tuple[int, slice], ...]

    def matrix(self, flat: Floats) -> Floats:
        """The rows (k, card) of these tables, from all cells."""
        return flat[self.cells].reshape(-1, self.card)


@dataclass(frozen=True)
class TableLayout:
    """Where tables of some shapes lie.

    `order` lists their numbers as they lie and `sizes` their numbers of cells; `taken` (cells,) are their cells in an
    array that has them by number; `row_of` (cells,) is the row of each cell, `first_rows` and `first_cells` (tables,)
    where each table begins.
    """

    shapes: tuple[tuple[int, ...], ...]
    groups: tuple[TableGroup, ...]
    order: tuple[int, ...]
    sizes: Places
    taken: Places
    row_of: Places
    first_rows: Places
    first_cells: Places

    def flat(self, arrays: Sequence[NDArray[Any]]) -> Floats:
        """The cells of tables (..., card), given by number, as they lie."""
        return np.concatenate([arrays[number] for number in self.order], axis=None)

    def sums(self, flat: Floats) -> Floats:
        """The sum of each row (rows,), from all cells."""
        sums = np.empty(self.groups[-1].rows.stop)
        for group in self.groups:
            np.add.reduce(group.matrix(flat), axis=1, out=sums[group.rows])
        return sums

    def sums_at(self, flat: Floats) -> Floats:
        """The sum of the row of each cell (cells,)."""
        return self.sums(flat)[self.row_of]


@lru_cache(maxsize=16)
def layout_of(shapes: tuple[tuple[int, ...], ...]) -> TableLayout:
    """Where tables of these shapes, the axis of the states last, lie; kept for the next fit of the same structure."""
    lengths = [math.prod(shape[:-1]) for shape in shapes]
    groups: list[TableGroup] = []
    order: list[int] = []
    cell = row = 0
    for chosen in numbers_alike(len(shapes), lambda number: shapes[number][-1]).values():
        card = shapes[chosen[0]][-1]
        places = [slice(*pair) for pair in pairwise(accumulate((lengths[number] for number in chosen), initial=0))]
        size = places[-1].stop
        members = tuple(zip(chosen, places, strict=True))
        groups.append(TableGroup(card, slice(cell, cell + card * size), slice(row, row + size), members))
        order += chosen
        cell, row = cell + card * size, row + size
    cards = np.repeat([group.card for group in groups], [group.rows.stop - group.rows.start for group in groups])
    rows = np.array([lengths[number] for number in order])
    cells = np.array([lengths[number] * shapes[number][-1] for number in order])
    begins = list(accumulate(map(math.prod, shapes), initial=0))
    return TableLayout(
        shapes=shapes,
        groups=tuple(groups),
        order=tuple(order),
        sizes=cells,
        taken=np.concatenate([np.arange(begins[number], begins[number + 1]) for number in order]),
        row_of=np.repeat(np.arange(row), cards),
        first_rows=np.cumsum(rows) - rows,
        first_cells=np.cumsum(cells) - cells,
    )


def counts_laid_out(domains: Sequence[Domain], summary: Summary) -> tuple[TableLayout, Floats] | None:
    """All counts of a summary that holds those of these families, in this order, and nothing else."""
    answers = summary.answers
    if not isinstance(answers, FamilyCounts) or answers.families != tuple([domain.names for domain in domains]):
        return None
    layout = layout_of(answers.shapes)
    return layout, answers.cells[layout.taken]


def lay_out(tables: Sequence[NDArray[Any]]) -> tuple[TableLayout, Floats]:
    """Where tables of counts lie, and their cells as they lie; kept for the next fit where they are few."""
    shapes = tuple([table.shape for table in tables])
    few = sum([table.size for table in tables]) <= KEPT_CELLS
    layout = layout_of(shapes) if few else layout_of.__wrapped__(shapes)
    return layout, layout.flat(tables)


def keeps_all(table: CountTable) -> bool:
    """Whether a node with these counts keeps a row for every parent configuration."""
    if table.cells is None:
        return table.values.size <= DENSE_CELLS
    return table.size <= DENSE_CELLS and len(table.shape) <= MOST_AXES


def counts_by_row(table: CountTable, card: int, domain: Domain) -> tuple[NDArray[np.int32], Floats]:
    """Seen parent configurations (k, p) and their counts (k, card), from cells in lexicographic order.

    Rows that would not fit, as those of columns that number the rows, are an error before any allocation.
    """
    cells, weights = table.items()
    above = cells[:, :-1]
    new = np.ones(len(cells), dtype=bool)
    new[1:] = (above[1:] != above[:-1]).any(axis=1)
    kept = int(new.sum())
    needed = 8 * ARRAYS * kept * card
    if needed > default_limit():
        raise SizeError(
            f"The table of {domain.names[-1]!r} given {listing(domain.names[:-1])} would keep {kept:,} rows of "
            f"{card:,} states and take {in_words(needed)}; the limit is {in_words(default_limit())}. Columns that "
            "number the rows are no states: leave them out, group their values, or declare them real "
            f"(states={{{domain.names[-1]!r}: 'real'}})."
        )
    counts = np.zeros((kept, card))
    counts[np.cumsum(new) - 1, cells[:, -1]] = weights
    return above[new], counts
