"""The tables that keep constraints: rows that rise along the states of parents, and bounds of single probabilities.

The states of the node have an order. Along an arc with a direction, from each state of the parent to the next, all else
equal, P(node >= y) does not fall (or does not rise) for any y. Rows that are tied to each other by such steps make a
block: tables are learned block by block, each a polytope.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.errors import EstimateError
from suffice.records import record
from suffice.solvers.bounded_shares import Polytopes, most_likely_shares
from suffice.solvers.isotonic import isotonic_shares

#: Cells of a block that are still learned together.
MOST_CELLS = 2048
#: What rounding may leave of a constraint that is kept.
KEPT = 1e-9
#: A probability that no row asks for, and that lies this near to 0, is 0.
GONE = 1e-13


@record(frozen=True)
class TableLimits:
    """Constraints of a table with axes (parents, node), by code.

    `arcs` holds for each parent the codes of its states along which the node rises, or None; `order` the codes of the
    states of the node from the lowest; `lower` and `upper` (rows, card) the bounds of all probabilities.
    """

    arcs: tuple[tuple[int, ...] | None, ...]
    order: tuple[int, ...]
    lower: Floats
    upper: Floats


@record(frozen=True, eq=False)
class Block:
    """Blocks of one shape: rows (b, k) of the table, and their polytopes over (b, k card) cells, states in order."""

    rows: NDArray[np.intp]
    polytopes: Polytopes


def region_of(cards: tuple[int, ...], limits: TableLimits) -> TableRegion:
    """The region of a table with these cards (parents, node); kept, as each step of EM asks for it."""
    return _region(cards, limits.arcs, limits.order, limits.lower.tobytes(), limits.upper.tobytes())


@lru_cache(maxsize=64)
def _region(
    cards: tuple[int, ...],
    arcs: tuple[tuple[int, ...] | None, ...],
    order: tuple[int, ...],
    lower: bytes,
    upper: bytes,
) -> TableRegion:
    shape = (math.prod(cards[:-1]), cards[-1])
    bounds = (np.frombuffer(one).reshape(shape) for one in (lower, upper))
    return TableRegion(cards, TableLimits(arcs, order, *bounds))


class TableRegion:
    """All tables that keep some constraints; EstimateError where there is none."""

    def __init__(self, cards: tuple[int, ...], limits: TableLimits) -> None:
        """Take the cards (parents, node), and the constraints."""
        self.limits, self.card = limits, cards[-1]
        self.order = np.array(limits.order)
        tied = [axis for axis, arc in enumerate(limits.arcs) if arc is not None]
        free = [axis for axis, arc in enumerate(limits.arcs) if arc is None]
        numbers = np.arange(math.prod(cards[:-1])).reshape(cards[:-1])
        for axis, arc in enumerate(limits.arcs):
            if arc is not None:
                numbers = np.take(numbers, arc, axis=axis)
        self.grid = tuple(cards[axis] for axis in tied)
        self.rows = numbers.transpose([*free, *tied]).reshape(-1, math.prod(self.grid))
        self.steps = _steps(self.grid, self.card)
        self.bounded = bool((limits.lower > 0).any() or (limits.upper < 1).any())
        self.chain = self.card == 2 and len(self.grid) == 1
        self.blocks = tuple(self._blocks())
        self.n_params = sum(len(block.rows) * block.polytopes.span.shape[1] for block in self.blocks)

    def packed(self, table: Floats, rows: NDArray[np.intp]) -> Floats:
        """The cells (b, k card) of blocks, from those of the table (rows, card)."""
        return np.asarray(table[rows][:, :, self.order].reshape(len(rows), -1))

    def unpacked(self, cells: Floats, rows: NDArray[np.intp], table: Floats) -> None:
        """Write the cells of blocks into a table."""
        table[rows[:, :, None], self.order] = cells.reshape(*rows.shape, self.card)

    def bounds(self, rows: NDArray[np.intp]) -> tuple[Floats, Floats]:
        """Lower and upper bounds (b, k card) of blocks."""
        return self.packed(self.limits.lower, rows), self.packed(self.limits.upper, rows)

    def violation(self, table: Floats) -> float:
        """By how much a table (rows, card) breaks a constraint at most; rows that are NaN keep all."""
        cells = self.packed(table, self.rows)
        low, high = self.bounds(self.rows)
        worst = [np.nanmax(low - cells, initial=0.0), np.nanmax(cells - high, initial=0.0)]
        if len(self.steps):
            worst.append(np.nanmax(-(cells @ self.steps.T), initial=0.0))
        return float(max(worst))

    # -- the polytopes -----------------------------------------------------------------------------------------------

    def _blocks(self) -> Iterator[Block]:
        """Blocks with the same bounds of their polytopes, side by side."""
        size = self.rows.shape[1] * self.card
        low, high = self.bounds(self.rows)
        if not self.bounded:
            span = _differences(self.rows.shape[1], self.card)
            inside = np.tile(_rising(self.grid, self.card), (len(self.rows), 1))
            inequalities = np.concatenate([self.steps, np.eye(size)])
            least = np.zeros((len(self.rows), len(inequalities)))
            yield Block(self.rows, Polytopes(inside, span, inequalities, least))
            return
        both, places = np.unique(np.concatenate([low, high], axis=1), axis=0, return_inverse=True)
        for number, bounds in enumerate(both):
            chosen = self.rows[places.ravel() == number]
            inside, span, inequalities, least = _polytope(self.steps, bounds[:size], bounds[size:], self.card)
            shape = (len(chosen), 1)
            yield Block(chosen, Polytopes(np.tile(inside, shape), span, inequalities, np.tile(least, shape)))

    # -- learning ----------------------------------------------------------------------------------------------------

    def most_likely(self, counts: Floats, before: Floats) -> tuple[Floats, bool]:
        """The table (rows, card) of largest ``sum counts log p``, and whether the solver came to rest.

        Rows without weight are as near to `before` (card,), their uniform distribution, as the constraints allow.
        """
        total = counts.sum(axis=1, keepdims=True)
        table = np.where(total > 0, counts / np.where(total > 0, total, 1.0), before)
        rested = True
        for block in self.blocks:
            low, high = self.bounds(block.rows)
            cells, weights = self.packed(table, block.rows), self.packed(counts, block.rows)
            kept = (cells >= low).all(axis=1) & (cells <= high).all(axis=1)
            kept &= (cells @ self.steps.T >= 0).all(axis=1)
            rest = np.flatnonzero(~kept)
            if not len(rest):
                continue
            fixed = np.abs(block.polytopes.span).max(axis=1, initial=0.0) < KEPT
            if ((weights[rest] > 0) & fixed & (block.polytopes.inside[rest] < KEPT)).any():
                raise EstimateError("the constraints let a state have the probability 0 that occurs in the rows")
            if self.chain:
                best = np.stack([self._isotonic(weights[b], low[b], high[b]) for b in rest.tolist()])
            else:
                best, all_rested = most_likely_shares(weights[rest], block.polytopes.take(rest))
                rested = rested and bool(all_rested.all())
                best = np.where((weights[rest] <= 0) & (best < GONE) & (low[rest] <= 0), 0.0, best)
                if not self.bounded:
                    best = self._filled(best, weights[rest])
            self.unpacked(best, block.rows[rest], table)
        return table, rested

    def _isotonic(self, weights: Floats, low: Floats, high: Floats) -> Floats:
        """One block (k 2,) of a node of two states, along one parent."""
        counts, low, high = (cells.reshape(-1, 2) for cells in (weights, low, high))
        least, most = np.maximum(low[:, 1], 1 - high[:, 0]), np.minimum(high[:, 1], 1 - low[:, 0])
        # Whatever rises along the chain keeps the largest lower bound so far, and the smallest upper bound to come.
        least, most = np.maximum.accumulate(least), np.minimum.accumulate(most[::-1])[::-1]
        shares = isotonic_shares(counts[:, 1], counts.sum(axis=1), least, most)
        return np.stack([1 - shares, shares], axis=1).ravel()

    def _filled(self, cells: Floats, weights: Floats) -> Floats:
        """Blocks (b, k card) whose rows without weight are as near to uniform as their neighbours allow.

        Of each P(node >= y) the median of the uniform one, the largest of the rows below and the smallest of those
        above: medians keep every order that the three have.
        """
        rows = cells.reshape(len(cells), -1, self.card)
        empty = weights.reshape(rows.shape).sum(axis=2) <= 0
        if not empty.any():
            return cells
        tails = np.cumsum(rows[:, :, ::-1], axis=2)[:, :, ::-1]
        uniform = np.arange(self.card, 0, -1) / self.card
        codes = np.stack(np.unravel_index(np.arange(rows.shape[1]), self.grid), axis=1)
        filled = tails.copy()
        for row, code in enumerate(codes):
            blocks = np.flatnonzero(empty[:, row])
            if not len(blocks):
                continue
            seen = ~empty[blocks][:, :, None]
            under, over = ((codes <= code).all(axis=1), (codes >= code).all(axis=1))
            below = np.where(seen & under[:, None], tails[blocks], 0.0).max(axis=1)
            above = np.where(seen & over[:, None], tails[blocks], 1.0).min(axis=1)
            filled[blocks, row] = np.clip(uniform, below, above)
        filled[:, :, 0] = 1.0
        spread = -np.diff(filled, axis=2, append=0.0)
        return np.asarray(np.where(empty[:, :, None], spread, rows).reshape(cells.shape), dtype=np.float64)


def _steps(grid: tuple[int, ...], card: int) -> Floats:
    """Rows (m, k card): P(node >= y) of a state of a parent less that of the state before, by the cells of a block."""
    places = np.arange(math.prod(grid)).reshape(grid)
    pairs = [
        pair
        for axis in range(len(grid))
        for before, after in pairwise(np.moveaxis(places, axis, 0))
        for pair in zip(np.ravel(before).tolist(), np.ravel(after).tolist(), strict=True)
    ]
    steps = np.zeros((len(pairs), card - 1, places.size, card))
    for number, (before, after) in enumerate(pairs):
        for level in range(1, card):
            steps[number, level - 1, after, level:] = 1.0
            steps[number, level - 1, before, level:] = -1.0
    return steps.reshape(len(pairs) * (card - 1), places.size * card)


def _differences(rows: int, card: int) -> Floats:
    """A basis (k card, k (card - 1)) of what may be added to rows without changing their sums."""
    one = np.zeros((card, card - 1))
    one[np.arange(1, card), np.arange(card - 1)] = 1.0
    one[np.arange(card - 1), np.arange(card - 1)] = -1.0
    return np.asarray(np.kron(np.eye(rows), one), dtype=np.float64)


def _rising(grid: tuple[int, ...], card: int) -> Floats:
    """A block (k card,) that rises strictly along every step, without a probability of 0."""
    height = np.add.reduce(np.indices(grid).reshape(len(grid), -1), axis=0) if grid else np.zeros(1)
    power = 1.5 - (height + 0.5) / (height.max() + 1.0)
    tails = (1 - np.arange(card + 1) / card) ** power[:, None]
    return np.asarray(-np.diff(tails, axis=1).ravel())


def _polytope(steps: Floats, low: Floats, high: Floats, card: int) -> tuple[Floats, Floats, Floats, Floats]:
    """A point of the relative interior of a block, its directions, and the constraints that it keeps strictly.

    In the linear program ``max sum t`` over ``A z - h s >= t, E z = s, 0 <= t <= 1, s >= 1`` every constraint that some
    point keeps strictly gets t = 1, and the others, which are equations, 0.
    """
    from scipy.linalg import null_space
    from scipy.optimize import linprog

    size = len(low)
    capped = high < 1
    inequalities = np.concatenate([steps, np.eye(size), -np.eye(size)[capped]])
    least = np.concatenate([np.zeros(len(steps)), low, -high[capped]])
    sums = np.kron(np.eye(size // card), np.ones(card))
    m = len(least)
    program: Any = linprog(
        np.concatenate([np.zeros(size + 1), -np.ones(m)]),
        A_ub=np.concatenate([-inequalities, least[:, None], np.eye(m)], axis=1),
        b_ub=np.zeros(m),
        A_eq=np.concatenate([sums, -np.ones((len(sums), 1)), np.zeros((len(sums), m))], axis=1),
        b_eq=np.zeros(len(sums)),
        bounds=[(None, None)] * size + [(1, None)] + [(0, 1)] * m,
        method="highs",
    )
    if program.status != 0:
        raise EstimateError("no table keeps all constraints")
    inside = program.x[:size] / program.x[size]
    strict = program.x[size + 1 :] > 0.5
    span = null_space(np.concatenate([sums, inequalities[~strict]]))
    # Cells between equal bounds are exactly there.
    inside = np.where(low == high, low, inside)
    return inside, span, inequalities[strict], least[strict]
