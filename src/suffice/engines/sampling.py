"""Exact samples from a calibrated junction tree, clique by clique from the roots down."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.kernels.junction_tree_layout import TreeLayout


def draw(layout: TreeLayout, tables: Sequence[Floats], n: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """Draw n states of all variables (variables, n).

    Each clique draws its new variables given those that it shares with its parent: P(C) / P(S). One uniform number is
    used for each clique and sample.
    """
    states = np.zeros((len(layout.cards), n), np.int64)
    for clique in reversed(layout.order):
        variables, known = layout.cliques[clique], layout.separators[clique]
        free = tuple(variable for variable in variables if variable not in known)
        axes = [variables.index(variable) for variable in (*known, *free)]
        table = np.transpose(tables[clique], axes).reshape(layout.size(known), layout.size(free))
        sums = np.cumsum(table, axis=1)
        rows = np.ravel_multi_index([states[variable] for variable in known], layout.shape(known)) if known else None
        cells = _search(sums, np.zeros(n, np.intp) if rows is None else rows, generator.random(n))
        states[list(free)] = np.unravel_index(cells, layout.shape(free))
    return states


def _search(sums: Floats, rows: NDArray[np.intp], uniform: Floats) -> NDArray[np.intp]:
    """The first cell of each row (n,) whose cumulative sum exceeds uniform (n,) times the total of the row.

    Bisection, all samples at once. The product is below the total, also when rounded, so a cell of sum 0 is not found.
    """
    aim = uniform * sums[rows, -1]
    low = np.zeros(len(rows), np.intp)
    high = np.full(len(rows), sums.shape[1] - 1)
    while (low < high).any():
        middle = (low + high) // 2
        above = sums[rows, middle] > aim
        high = np.where(above, middle, high)
        low = np.where(above, low, np.minimum(middle + 1, high))
    return low
