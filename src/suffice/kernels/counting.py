"""Contingency tables of many families of variables in one pass over coded columns.

`plan_counts` decides once how to count, `count` does it: an exact int64 table for each family, or float64 with weights.
Weighted sums are formed in blocks of rows that do not depend on the path or on the number of threads, and the blocks
are added in double-double, so the result does not depend on either; whole-number weights are exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.double_double import add, rounded, two_sum
from suffice.errors import DataError, OptionError, SizeError
from suffice.kernels.arrays import frozen
from suffice.kernels.choice import use_compiled
from suffice.kernels.grouping import CELL_LIMIT, group_families
from suffice.kernels.patterns import distinct_codes
from suffice.kernels.threads import run

Codes = NDArray[Any]
Weights = NDArray[np.float64] | None

NARROW = 1 << 16
"""Tables of up to this many cells are counted by 16-bit cell numbers; wider ones one table at a time."""

DENSE_LIMIT = 1 << 31
"""No dense table may have more cells; `count_sparse` has no such limit."""

_GROUPED_ROWS = 4096  # Below, summing super-tables out costs more than it saves.
_ROWS_A_CELL = 32  # Rows for each cell of a super-table: with fewer, clearing and summing the cells out shows.
_BLOCK = 32768
_CHUNK = 8  # Blocks that a thread takes at a time.
_FOLD_ROWS = 1 << 31  # Counts in uint32 are folded into int64 before they could overflow.
_SPREAD = 1 << 16  # Cells up to which all families are summed out of their super-tables at once.
_SECONDS = 4e-9  # NumPy path: a row of one table.


@dataclass(frozen=True)
class CountPlan:
    """How to count: which super-tables to fill, and in which of them each family is found."""

    cards: tuple[int, ...]
    families: tuple[tuple[int, ...], ...]
    groups: tuple[tuple[int, ...], ...]
    homes: tuple[int, ...]

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Cells of each super-table."""
        return tuple(math.prod(self.cards[variable] for variable in group) for group in self.groups)

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """Where each super-table begins in the flat array of all cells; the last entry is their number."""
        return tuple(int(end) for end in np.cumsum((0, *self.sizes)))

    @property
    def cells(self) -> int:
        """Cells of all super-tables together."""
        return self.offsets[-1]

    @cached_property
    def narrow(self) -> tuple[int, ...]:
        """Super-tables that are counted together."""
        return tuple(index for index, size in enumerate(self.sizes) if size <= NARROW)

    @cached_property
    def wide(self) -> tuple[int, ...]:
        """Super-tables that are counted one by one."""
        return tuple(index for index, size in enumerate(self.sizes) if size > NARROW)

    @cached_property
    def used(self) -> tuple[int, ...]:
        """Variables of the narrow super-tables."""
        return tuple(sorted({variable for index in self.narrow for variable in self.groups[index]}))

    @cached_property
    def views(self) -> tuple[tuple[slice, tuple[int, ...], tuple[int, ...], tuple[int, ...] | None], ...]:
        """Of each family: its super-table in the flat array, the shape, the axes to sum out, and the order of the rest.

        The order is None where the super-table is the table of the family as it is.
        """
        views = []
        for family, home in zip(self.families, self.homes, strict=True):
            group = self.groups[home]
            kept = [variable for variable in group if variable in family]
            gone = tuple(axis for axis, variable in enumerate(group) if variable not in family)
            order = None if group == family else tuple(kept.index(variable) for variable in family)
            shape = tuple(self.cards[variable] for variable in group)
            views.append((slice(self.offsets[home], self.offsets[home + 1]), shape, gone, order))
        return tuple(views)

    @cached_property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Of the table of each family."""
        return tuple(tuple(self.cards[variable] for variable in family) for family in self.families)

    @cached_property
    def spread(self) -> tuple[NDArray[np.intp], NDArray[np.intp]] | None:
        """All families in one sum: the cells to take one after the other, and where each sum begins.

        None where the cells to take are so many that a sum for each family is as fast.
        """
        if sum(self.sizes[home] for home in self.homes) > _SPREAD:
            return None
        taken, begins = [], [0]
        for (span, shape, gone, order), own in zip(self.views, self.shapes, strict=True):
            numbers = np.arange(span.start, span.stop).reshape(shape)
            axes = [axis for axis in range(len(shape)) if axis not in gone]
            kept = axes if order is None else [axes[index] for index in order]
            taken.append(numbers.transpose(*kept, *gone).ravel())
            step = len(taken[-1]) // math.prod(own)
            begins += [begins[-1] + step * (cell + 1) for cell in range(math.prod(own))]
        return np.concatenate(taken) if taken else np.empty(0, np.intp), np.array(begins[:-1], np.intp)

    @cached_property
    def block(self) -> int:
        """Rows whose weights are added before the double-double sums are touched."""
        narrow_cells = sum(self.sizes[index] for index in self.narrow)
        return _BLOCK * max(1, math.ceil(narrow_cells / 4096))

    def __str__(self) -> str:
        """The plan in one line."""
        return (
            f"{len(self.families)} families in {len(self.groups)} tables of {self.cells:,} cells "
            f"(largest {max(self.sizes, default=0):,}): {len(self.groups)} increments a row"
        )


def plan_counts(cards: Sequence[int], families: Sequence[Sequence[int]], rows: int) -> CountPlan:
    """Plan the counting of families, tuples of variable indices, over about `rows` rows in all.

    cards: number of codes of each variable, codes run from 0 to card - 1. A table of more than `DENSE_LIMIT` cells
    raises SizeError: `count_sparse` serves such families.
    """
    cards = tuple(int(card) for card in cards)
    asked = tuple(tuple(int(variable) for variable in family) for family in families)
    for family in asked:
        _check_variables(cards, family)
        cells = math.prod(cards[variable] for variable in family)
        if cells > DENSE_LIMIT:
            raise SizeError(f"The table of family {family} would have {cells:,} cells; use count_sparse for it.")
    wanted = [frozenset(family) for family in asked]
    limit = min(CELL_LIMIT, rows // _ROWS_A_CELL)
    groups = group_families(cards, wanted, limit) if rows >= _GROUPED_ROWS else list(dict.fromkeys(wanted))
    first = {frozenset(family): family for family in reversed(asked)}
    ordered = tuple(first.get(group, tuple(sorted(group))) for group in groups)
    by_size = sorted(range(len(groups)), key=lambda index: math.prod(cards[variable] for variable in groups[index]))
    homes = tuple(next(index for index in by_size if family <= groups[index]) for family in wanted)
    return CountPlan(cards, asked, ordered, homes)


def _check_variables(cards: Sequence[int], family: Sequence[int]) -> None:
    if len(set(family)) != len(family) or not all(0 <= variable < len(cards) for variable in family):
        raise OptionError(f"Family {tuple(family)} must hold different variables out of 0..{len(cards) - 1}.")
    if any(cards[variable] < 1 for variable in family):
        raise OptionError(f"Family {tuple(family)} has a variable of card 0; every card must be at least 1.")


def count(codes: Codes, plan: CountPlan, weights: Weights = None, *, threads: int = 1) -> list[NDArray[Any]]:
    """Return one table for each family of the plan, shaped by its cards, the last variable fastest.

    codes (variables, rows) of an unsigned integer type; weights (rows,). Tables are int64, or float64 with weights. A
    code outside 0..card - 1 raises DataError with the index of the variable.
    """
    return tables(plan, count_cells(codes, plan, weights, threads=threads), whole=weights is None)


def tables(plan: CountPlan, cells: NDArray[Any], *, whole: bool = False) -> list[NDArray[Any]]:
    """Sum the super-tables in cells (plan.cells,) out to one table for each family; some share memory.

    With `whole` the cells are whole numbers, whose sums do not depend on the order of the terms.
    """
    if whole and (flat := spread_cells(plan, cells)) is not None:
        ends = accumulate(map(math.prod, plan.shapes), initial=0)
        return [flat[begin:end].reshape(shape) for (begin, end), shape in zip(pairwise(ends), plan.shapes, strict=True)]
    answers = []
    for part, shape, gone, order in plan.views:
        table = cells[part].reshape(shape)
        answers.append(table if order is None else np.array(table.sum(axis=gone).transpose(order), order="C"))
    return answers


def spread_cells(plan: CountPlan, cells: NDArray[Any]) -> NDArray[Any] | None:
    """The cells of the tables of all families, one after the other, from those of the super-tables, whole numbers.

    None where there are so many that each table is made by itself as fast.
    """
    if plan.spread is None or not plan.families:
        return None
    taken, begins = plan.spread
    sums: NDArray[Any] = np.add.reduceat(cells[taken], begins)
    return sums


def count_cells(codes: Codes, plan: CountPlan, weights: Weights = None, *, threads: int = 1) -> NDArray[Any]:
    """Return all super-tables of the plan as one flat array (plan.cells,); the arrays of batches add up."""
    codes = _checked_codes(codes, len(plan.cards))
    weights = _checked_weights(weights, codes.shape[1])
    cells = np.zeros(plan.cells, np.int64 if weights is None else np.float64)
    if codes.shape[1]:
        kernel = f"count uint{8 * codes.itemsize} {'rows' if weights is None else 'weights'}"
        if use_compiled(kernel, _SECONDS * codes.shape[1] * len(plan.groups), exact=True):
            _compiled_narrow(codes, plan, weights, cells, threads)
            _compiled_wide(codes, plan, weights, cells, threads)
        else:
            _numpy_narrow(codes, plan, weights, cells)
            _numpy_wide(codes, plan, weights, cells)
    return cells


def count_sparse(
    codes: Codes, cards: Sequence[int], variables: Sequence[int], weights: Weights = None
) -> tuple[Codes, NDArray[Any]]:
    """Return the cells in use of one family (k, d), in lexicographic order, and their counts or weights (k,).

    Time and memory follow the rows; the product of the cards may be of any size.
    """
    codes = _checked_codes(codes, len(cards))
    weights = _checked_weights(weights, codes.shape[1])
    _check_variables(cards, variables)
    if codes.shape[1]:
        _check_range(codes, cards, variables)
    return distinct_codes(codes, [int(cards[variable]) for variable in variables], variables, weights)


def _checked_codes(codes: Codes, variables: int) -> Codes:
    codes = np.asarray(codes)
    if codes.dtype not in (np.uint8, np.uint16, np.uint32):
        raise DataError(f"Codes have type {codes.dtype}; expected uint8, uint16 or uint32.")
    if codes.ndim != 2 or codes.shape[0] != variables:
        raise DataError(f"Codes have shape {codes.shape}; expected ({variables} variables, rows).")
    return frozen(codes)


def _checked_weights(weights: Weights, rows: int) -> Weights:
    if weights is None:
        return None
    weights = frozen(weights, np.float64)
    if weights.shape != (rows,):
        raise DataError(f"Weights have shape {weights.shape} for {rows} rows; give one weight a row.")
    return weights


def _check_range(codes: Codes, cards: Sequence[int], variables: Sequence[int]) -> None:
    # All at once where most are asked for: a maximum of few rows costs less than the call for it.
    highest = codes.max(axis=1).tolist() if 2 * len(variables) > len(codes) else None
    for variable in variables:
        if (codes[variable].max() if highest is None else highest[variable]) >= cards[variable]:
            _raise_excess(codes, variable, cards[variable])


def _raise_excess(codes: Codes, variable: int, card: int) -> None:
    raise DataError(
        f"Variable {variable} has the code {codes[variable].max()}, but its card is {card}: codes run from 0 to "
        f"{card - 1}. Recode the column or widen its card."
    )


def _replicas(size: int, weighted: bool) -> int:
    """Copies of a table: they pay only while all of them fit in cache."""
    return 1 if size > CELL_LIMIT else 2 if weighted else 4


# NumPy path ----------------------------------------------------------------------------------------------------------


def _cell_numbers(codes: Codes, plan: CountPlan, index: int) -> NDArray[Any]:
    """Return the cell of super-table `index` that each row falls in (rows,), in a narrow type."""
    size, group = plan.sizes[index], plan.groups[index]
    kind = np.dtype(np.uint8 if size <= 1 << 8 else np.uint16 if size <= NARROW else np.int64)
    if not group:
        return np.zeros(codes.shape[1], kind)
    numbers: NDArray[Any] = codes[group[0]].astype(kind)
    for variable in group[1:]:
        # A card of 2^8 or 2^16 may wrap to 0, rightly: it can only multiply the number 0.
        numbers *= np.array(plan.cards[variable]).astype(kind)
        np.add(numbers, codes[variable], out=numbers, casting="unsafe")
    return numbers


def _numpy_narrow(codes: Codes, plan: CountPlan, weights: Weights, cells: NDArray[Any]) -> None:
    low = np.zeros(0 if weights is None else len(cells))
    for start in range(0, codes.shape[1], plan.block):
        rows = slice(start, start + plan.block)
        _check_range(codes[:, rows], plan.cards, plan.used)
        for index in plan.narrow:
            numbers, size = _cell_numbers(codes[:, rows], plan, index), plan.sizes[index]
            part = slice(plan.offsets[index], plan.offsets[index + 1])
            if weights is None:
                cells[part] += np.bincount(numbers, minlength=size)
            else:
                block = _weighted_block(numbers, weights[rows], size)
                cells[part], error = two_sum(cells[part], block)
                low[part] += error
    if weights is not None:
        cells += low


def _weighted_block(numbers: NDArray[Any], weights: NDArray[np.float64], size: int) -> NDArray[Any]:
    """Sum weights by cell in the order of the compiled loops, so that both paths agree to the bit."""
    if _replicas(size, True) == 1:
        return np.bincount(numbers, weights, size)
    return np.bincount(numbers[::2], weights[::2], size) + np.bincount(numbers[1::2], weights[1::2], size)


def _numpy_wide(codes: Codes, plan: CountPlan, weights: Weights, cells: NDArray[Any]) -> None:
    for index in plan.wide:
        _check_range(codes, plan.cards, plan.groups[index])
        numbers = _cell_numbers(codes, plan, index)
        cells[plan.offsets[index] : plan.offsets[index + 1]] = np.bincount(numbers, weights, plan.sizes[index])


# Compiled path -------------------------------------------------------------------------------------------------------


def _strides(plan: CountPlan, index: int) -> list[int]:
    group = plan.groups[index]
    return [math.prod(plan.cards[variable] for variable in group[axis + 1 :]) for axis in range(len(group))]


@lru_cache(maxsize=16)
def _layout(plan: CountPlan, weighted: bool) -> tuple[NDArray[Any], ...]:
    """Flat arrays that tell the compiled loops what to do; see `suffice.kernels.compiled.counting`."""
    groups = [plan.groups[index] for index in plan.narrow]
    sizes = [plan.sizes[index] for index in plan.narrow]
    replicated = [size * _replicas(size, weighted) for size in sizes]
    return (
        np.array([variable for group in groups for variable in group], np.int64),
        np.array([stride for index in plan.narrow for stride in _strides(plan, index)], np.int64).astype(np.uint16),
        np.cumsum([0, *map(len, groups)], dtype=np.int64),
        np.cumsum([0, *replicated], dtype=np.int64),
        np.array(sizes, np.int64),
        np.array(plan.used, np.int64),
        np.array([plan.cards[variable] for variable in plan.used], np.int64),
        np.array([plan.offsets[index] for index in plan.narrow], np.int64),
    )


def _compiled_narrow(codes: Codes, plan: CountPlan, weights: Weights, cells: NDArray[Any], threads: int) -> None:
    if not plan.narrow:
        return
    from suffice.kernels.compiled.counting import count_rows, fold_counts, weigh_blocks

    layout = _layout(plan, weights is not None)
    step = _CHUNK * plan.block
    threads = min(threads, math.ceil(codes.shape[1] / step))
    tables = np.zeros((threads, layout[3][-1]), np.uint32 if weights is None else np.float64)
    sums = np.zeros((0, 2, 0) if weights is None else (threads, 2, int(layout[4].sum())))

    def task(start: int, worker: int) -> None:
        stop = min(start + step, codes.shape[1])
        if weights is None:
            wrong = count_rows(codes, None, layout, start, stop, tables[worker])
        else:
            wrong = weigh_blocks(codes, weights, layout, (start, stop, plan.block), tables[worker], sums[worker])
        if wrong >= 0:
            _raise_excess(codes, wrong, plan.cards[wrong])

    for start in range(0, codes.shape[1], _FOLD_ROWS):
        run(task, range(start, min(start + _FOLD_ROWS, codes.shape[1]), step), threads)
        if weights is None:
            fold_counts(tables, layout, cells)
            if start + _FOLD_ROWS < codes.shape[1]:
                tables[:] = 0
    if weights is not None:
        _place(plan, rounded(reduce(add, sums)), cells)


def _place(plan: CountPlan, narrow: NDArray[Any], cells: NDArray[Any]) -> None:
    """Put the cells of the narrow tables, which follow one another, where the plan has them."""
    begin = 0
    for index in plan.narrow:
        end = begin + plan.sizes[index]
        cells[plan.offsets[index] : plan.offsets[index + 1]] = narrow[begin:end]
        begin = end


def _compiled_wide(codes: Codes, plan: CountPlan, weights: Weights, cells: NDArray[Any], threads: int) -> None:
    """Count each wide table in one thread: private copies of such tables would not fit in cache."""
    if not plan.wide:
        return
    from suffice.kernels.compiled.counting import count_wide

    def task(index: int, _: int) -> None:
        group = plan.groups[index]
        layout = (
            np.array(group, np.int64),
            np.array(_strides(plan, index), np.uint32),
            np.array([plan.cards[variable] for variable in group], np.int64),
        )
        wrong = count_wide(codes, weights, layout, cells[plan.offsets[index] : plan.offsets[index + 1]])
        if wrong >= 0:
            _raise_excess(codes, wrong, plan.cards[wrong])

    run(task, plan.wide, min(threads, len(plan.wide)))
