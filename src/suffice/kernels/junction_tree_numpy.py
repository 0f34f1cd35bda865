"""Messages of the junction tree in NumPy: for small work, for tables of extreme range, and for the best assignment.

Tables have one axis for each variable of their clique and a last axis for the batch: cases that are solved side by
side. The passes are the same in three algebras: products and sums of scaled numbers, sums and log-sum-exp of
logarithms, sums and maxima of logarithms.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.kernels.junction_tree_layout import TreeLayout, alignment, other_axes

_TIE = 1e-12  # Relative difference of logarithms below which two assignments are equally good.


def aligned(table: Floats, scope: Sequence[int], clique: Sequence[int]) -> Floats:
    """View a table over scope, with further axes or without, so that it broadcasts against one over clique."""
    order, index = alignment(scope, clique)
    return np.transpose(table, (*order, *range(len(scope), table.ndim)))[index]


def project(table: Floats, clique: Sequence[int], scope: Sequence[int]) -> Floats:
    """Sum a table over clique, with further axes or without, out to scope, axes in that order."""
    kept = [variable for variable in clique if variable in scope]
    small = table.sum(axis=other_axes(clique, scope))
    return np.transpose(small, (*(kept.index(variable) for variable in scope), *range(len(kept), small.ndim)))


class Algebra(Protocol):
    """What passing messages needs."""

    def reduce(self, table: Floats, axes: tuple[int, ...]) -> Floats:
        """Sum or maximise over axes."""

    def absorb(self, table: Floats, message: Floats) -> None:
        """Multiply a table in place."""

    def settle(self, message: Floats, clique: int, parent: int) -> Floats:
        """Scale a message before it is passed up."""

    def ratio(self, new: Floats, old: Floats, clique: int) -> Floats:
        """Divide the message from above by the one that was passed up; 0 / 0 is 0."""

    def finish(self, table: Floats) -> None:
        """Normalise the table of a root in place, and take its total into log Z."""


class Linear:
    """Products and sums; messages are scaled by powers of two in each case where they need it.

    log_z (batch,); floors (cliques, batch): lower bounds of the non-zero products in each clique.
    """

    def __init__(self, layout: TreeLayout, batch: int, floors: Floats) -> None:
        self.floors = np.repeat(floors[:, None], batch, axis=1)
        self.powers: dict[int, NDArray[np.int32]] = {}
        self.log_z = np.zeros(batch)
        self._enough = layout.unscaled

    def reduce(self, table: Floats, axes: tuple[int, ...]) -> Floats:
        """Sum over axes."""
        return np.asarray(np.add.reduce(table, axis=axes))

    def absorb(self, table: Floats, message: Floats) -> None:
        """Multiply a table in place."""
        np.multiply(table, message, out=table)

    def settle(self, message: Floats, clique: int, parent: int) -> Floats:
        """Scale by powers of two, which is exact, so that the largest number of each case lies in [0.5, 1)."""
        rows = message.reshape(-1, message.shape[-1])
        most, least = np.maximum.reduce(rows), np.minimum.reduce(rows)
        if np.maximum.reduce(most) <= 1.0 and np.minimum.reduce(least) >= self._enough[parent]:
            self.floors[parent] *= least
            return message
        _, powers = np.frexp(most)
        self.powers[clique] = powers
        self.log_z += powers * np.log(2.0)
        scaled: Floats = np.ldexp(message, -powers)
        self.lower(parent, scaled)
        return scaled

    def lower(self, clique: int, message: Floats) -> None:
        """Take a message, or any other table that a clique is multiplied by, into its floor."""
        positive = np.where(message > 0.0, message, 1.0)
        self.floors[clique] *= positive.reshape(-1, positive.shape[-1]).min(axis=0)

    def ratio(self, new: Floats, old: Floats, clique: int) -> Floats:
        """Divide by what was passed up, before it was scaled."""
        if clique not in self.powers:  # Then no number of it is 0.
            return np.asarray(new / old)
        ratio = np.divide(new, old, out=np.zeros_like(new), where=old > 0.0)
        return np.asarray(np.ldexp(ratio, -self.powers[clique]))

    def finish(self, table: Floats) -> None:
        """Divide by the sum of each case."""
        total = np.add.reduce(table.reshape(-1, table.shape[-1]))
        with np.errstate(divide="ignore"):
            self.log_z += np.log(total)
        np.divide(table, np.where(total > 0.0, total, 1.0), out=table)


class Logarithmic:
    """Sums and log-sum-exp of logarithms, or maxima; nothing is lost, whatever the range. log_z (batch,)."""

    def __init__(self, batch: int, *, maximum: bool = False) -> None:
        self.maximum = maximum
        self.log_z = np.zeros(batch)

    def reduce(self, table: Floats, axes: tuple[int, ...]) -> Floats:
        """Log-sum-exp or maximum over axes."""
        top = table.max(axis=axes, keepdims=True)
        if not self.maximum:
            top = np.where(np.isfinite(top), top, 0.0)
            with np.errstate(divide="ignore"):
                top = top + np.log(np.exp(table - top).sum(axis=axes, keepdims=True))
        return np.asarray(top.squeeze(axis=axes))

    def absorb(self, table: Floats, message: Floats) -> None:
        """Add to a table in place."""
        np.add(table, message, out=table)

    def settle(self, message: Floats, clique: int, parent: int) -> Floats:
        """Logarithms need no scaling."""
        return message

    def ratio(self, new: Floats, old: Floats, clique: int) -> Floats:
        """Subtract what was passed up."""
        return np.subtract(new, old, out=np.full_like(new, -np.inf), where=old > -np.inf)

    def finish(self, table: Floats) -> None:
        """Subtract the total of each case."""
        total = self.reduce(table, tuple(range(table.ndim - 1)))
        self.log_z += total
        np.subtract(table, np.where(np.isfinite(total), total, 0.0), out=table)


def collect(layout: TreeLayout, tables: Sequence[Floats], algebra: Algebra) -> list[Floats]:
    """Pass messages from the leaves to the roots, changing the tables; returns the message over each edge."""
    messages = []
    for edge in layout.edges:
        message = algebra.reduce(tables[edge.child], edge.child_axes)
        message = algebra.settle(message, edge.child, edge.parent)
        algebra.absorb(tables[edge.parent], message.transpose(edge.parent_order)[edge.parent_index])
        messages.append(message)
    for root in layout.roots:
        algebra.finish(tables[root])
    return messages


def distribute(layout: TreeLayout, tables: Sequence[Floats], messages: Sequence[Floats], algebra: Algebra) -> None:
    """Pass messages from the roots to the leaves; the tables become beliefs."""
    for edge, old in zip(reversed(layout.edges), reversed(messages), strict=True):
        new = algebra.reduce(tables[edge.parent], edge.parent_axes).transpose(edge.back_order)
        algebra.absorb(tables[edge.child], algebra.ratio(new, old, edge.child)[edge.child_index])


def clique_tables(layout: TreeLayout, flat: Floats, batch: int) -> list[Floats]:
    """View a flat buffer (cells times batch) as the tables of all cliques."""
    return [
        flat[start * batch : end * batch].reshape((*shape, batch))
        for start, end, shape in zip(layout.starts[:-1], layout.starts[1:], layout.shapes, strict=True)
    ]


def best_states(layout: TreeLayout, tables: Sequence[Floats]) -> NDArray[np.int64]:
    """Read the best assignment of each case (batch, variables) off the tables that a maximising `collect` has left.

    From the roots down, each clique takes its best cell given what its parent has taken. Of cells that are equal up to
    rounding the first one wins, in the order of the numbers of the variables.
    """
    batch = tables[0].shape[-1] if tables else 1
    states = np.full((batch, len(layout.cards)), -1, np.int64)
    for clique in reversed(layout.order):
        variables, known = layout.cliques[clique], layout.separators[clique]
        free = tuple(sorted(set(variables) - set(known)))
        axes = [variables.index(variable) for variable in (*known, *free)]
        table = np.transpose(tables[clique], (len(variables), *axes))
        rows = table[(np.arange(batch), *(states[:, variable] for variable in known))].reshape(batch, -1)
        best = rows.max(axis=1, keepdims=True)
        slack = _TIE * np.maximum(np.abs(np.where(np.isfinite(best), best, 0.0)), 1.0)
        cells = np.argmax(rows >= best - slack, axis=1)
        for variable, codes in zip(free, np.unravel_index(cells, layout.shape(free)), strict=True):
            states[:, variable] = codes
    return states
