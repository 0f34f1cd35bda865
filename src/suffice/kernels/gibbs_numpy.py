"""Gibbs sampling and pseudo-likelihood in NumPy: the reference of the compiled loops, and the path of small work.

Random numbers are those of the compiled loops, so both give the same chains.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats, Ints, States
from suffice.kernels.gibbs_layout import GibbsLayout

Stream = NDArray[np.uint32]


def uniform(stream: Stream, *, fine: bool) -> Floats:
    """One number in (0, 1) for each chain by xoshiro128+, moving stream (4, chains): of 32 bits, or of 23."""
    s0, s1, s2, s3 = stream
    bits = s0 + s3
    shifted = s1 << np.uint32(9)
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    s2 ^= shifted
    s3[:] = (s3 << np.uint32(11)) | (s3 >> np.uint32(21))
    return np.asarray((bits + 0.5) * 2.0**-32 if fine else ((bits >> np.uint32(9)) + 0.5) * 2.0**-23)


def conditional(layout: GibbsLayout, logs: Floats, site: int, states: States) -> Floats:
    """Log-potentials (card, chains) of the states of a site given all others."""
    ptr, factor, step = layout.places
    conditionals = np.zeros((int(layout.cards[site]), states.shape[1]))
    for entry in range(ptr[site], ptr[site + 1]):
        base = layout.cells(int(factor[entry]), states) - step[entry] * states[site].astype(np.int64)
        conditionals += logs[base + np.arange(len(conditionals))[:, None] * step[entry]]
    return conditionals


def sweep(
    layout: GibbsLayout, logs: Floats, order: Ints, states: States, stream: Stream, held: NDArray[Any], *, fine: bool
) -> None:
    """Draw the sites in this order given all others, in place; held (sites or 0, chains) are not drawn."""
    for site in order:
        conditionals = conditional(layout, logs, int(site), states)
        top = conditionals.max(axis=0)
        keep = top == -np.inf
        sums = np.cumsum(np.exp(conditionals - np.where(keep, 0.0, top)), axis=0)
        aim = uniform(stream, fine=fine) * sums[-1]
        # State 1 of two is taken for small numbers, as the loop of pairs does; others run from state 0 up.
        if fine or len(conditionals) != 2:
            drawn = (sums[:-1] <= aim).sum(axis=0)
        else:
            drawn = (aim < sums[1] - sums[0]).astype(np.int64)
        keep |= held[site].astype(bool) if len(held) else False
        states[site] = np.where(keep, states[site], drawn)


def count_cells(layout: GibbsLayout, states: States, weights: Floats) -> Floats:
    """The weights (chains,) of the chains in each cell of each factor (cells,)."""
    counts = np.zeros(layout.n_cells)
    for number in range(len(layout.scopes)):
        counts += np.bincount(layout.cells(number, states), weights, layout.n_cells)
    return counts


def add_logs(layout: GibbsLayout, logs: Floats, states: States) -> Floats:
    """Sum of the log-potentials of each chain (chains,)."""
    values = np.zeros(states.shape[1])
    for number in range(len(layout.scopes)):
        values += logs[layout.cells(number, states)]
    return values


def add_features(layout: GibbsLayout, matrix: tuple[Ints, Ints, Floats], states: States, out: Floats) -> None:
    """Add the features of each chain to out (features, chains); matrix: rows of cells, as (ptr, column, value)."""
    ptr, column, value = matrix
    for number in range(len(layout.scopes)):
        cell = layout.cells(number, states)
        begin, count = ptr[cell], ptr[cell + 1] - ptr[cell]
        chain = np.repeat(np.arange(len(cell)), count)
        entry = np.arange(int(count.sum())) + np.repeat(begin - (np.cumsum(count) - count), count)
        np.add.at(out, (column[entry], chain), value[entry])


def pseudo_likelihood(layout: GibbsLayout, logs: Floats, states: States, weights: Floats) -> tuple[float, Floats]:
    """Sum over rows and sites of weight times log p(site | others), and its slope by log-potential (cells,)."""
    ptr, factor, step = layout.places
    value, slope = 0.0, np.zeros(layout.n_cells)
    rows = np.arange(states.shape[1])
    for site in range(layout.n_sites):
        conditionals = conditional(layout, logs, site, states)
        conditionals -= conditionals.max(axis=0)
        conditionals -= np.log(np.exp(conditionals).sum(axis=0))
        value += float(conditionals[states[site], rows] @ weights)
        rest = -np.exp(conditionals)
        rest[states[site], rows] += 1.0
        rest *= weights
        for entry in range(ptr[site], ptr[site + 1]):
            base = layout.cells(int(factor[entry]), states) - step[entry] * states[site].astype(np.int64)
            for state, part in enumerate(rest):
                slope += np.bincount(base + state * step[entry], part, layout.n_cells)
    return value, slope
