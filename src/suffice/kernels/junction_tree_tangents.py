"""How the marginals of a log-linear model change with its log-potentials: the covariance of its cells, times a vector.

For a direction v, a sum of tables over scopes, the derivative of a marginal is ``p(x_C) (E[v | x_C] - E[v])``. The
conditional expectations spread over a calibrated tree as messages do: what a clique passes on is the mean of its table
given the separator, and tables add up what they are told. Nothing is multiplied that could underflow, and one
calibration serves all directions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.kernels.choice import use_compiled
from suffice.kernels.junction_tree import numpy_seconds
from suffice.kernels.junction_tree_layout import TreeLayout
from suffice.kernels.junction_tree_moments import CliqueMoments
from suffice.kernels.junction_tree_numpy import aligned, clique_tables, project
from suffice.kernels.junction_tree_program import Program

KERNEL = "junction tree tangents"
_SPREAD = 1 << 20  # Numbers of all tables together, up to which the NumPy path takes directions side by side.


class Tangents:
    """Derivatives of the marginals of all scopes of `moments` at one vector of log-potentials.

    Vectors hold the tables of all scopes one after another, axes in the order of the scope. One object serves one
    thread; its log-potentials, none of them NaN or plus infinity, may be changed.
    """

    def __init__(self, moments: CliqueMoments, logs: Floats) -> None:
        self.moments = moments
        self.layout = moments.layout
        self._program = moments.program
        kept = self._program.derived
        if KERNEL not in kept:
            kept[KERNEL] = tangent_rows(self.layout, self._program)
        self._rows, length = kept[KERNEL]
        self._buffer = np.zeros(length)
        starts = zip(self._program.origins, self.layout.sizes, self.layout.shapes, strict=True)
        self.tables = [self._buffer[start : start + size].reshape((*shape, 1)) for start, size, shape in starts]
        self.shares: list[Floats] = []
        start = self._program.length
        for edge in self.layout.edges:
            separator, size = self.layout.separators[edge.child], self.layout.separator_sizes[edge.child]
            self.shares.append(self._buffer[start : start + size].reshape((*self.layout.shape(separator), 1)))
            start += size
        self.move(logs)

    def move(self, logs: Floats) -> None:
        """Calibrate at other log-potentials (numbers,)."""
        cells = self._program.cells
        self.moments.beliefs(logs, self._buffer[cells : 2 * cells])
        if use_compiled(KERNEL, 0.5 * numpy_seconds(self.layout)):
            from suffice.kernels.compiled import junction_tree_tangents as loops

            loops.weigh(self._rows[0], self._program.offsets, self._buffer, self._rows[3])
            return
        for edge, share in zip(self.layout.edges, self.shares, strict=True):
            np.add.reduce(self.tables[edge.child], axis=edge.child_axes, out=share)
        shares = self._buffer[self._program.length :]
        np.divide(1.0, shares, out=shares, where=shares > 0.0)

    def product(self, direction: Floats) -> Floats:
        """The covariance of all cells times one direction (numbers,)."""
        if use_compiled(KERNEL, numpy_seconds(self.layout)):
            return self._compiled(direction)
        return self._spread(direction[:, None])[:, 0]

    def products(self, directions: Floats) -> Floats:
        """The covariance of all cells times directions (numbers, batch); returns (numbers, batch)."""
        batch = directions.shape[1]
        if use_compiled(KERNEL, batch * numpy_seconds(self.layout)):
            products = np.empty_like(directions)
            for item in range(batch):
                products[:, item] = self._compiled(directions[:, item])
            return products
        width = max(1, _SPREAD // max(self.layout.cells, 1))
        parts = [self._spread(directions[:, start : start + width]) for start in range(0, batch, width)]
        return np.concatenate([np.zeros((len(directions), 0)), *parts], axis=1)

    def _spread(self, directions: Floats) -> Floats:
        """The NumPy path, directions side by side."""
        layout, beliefs, moments = self.layout, self.tables, self.moments
        batch = directions.shape[1]
        tables = clique_tables(layout, np.zeros(layout.cells * batch), batch)
        for scope, home, start, end in zip(
            moments.scopes, moments.homes, moments.ends[:-1], moments.ends[1:], strict=True
        ):
            part = directions[start:end].reshape((*layout.shape(scope), batch))
            tables[home] += aligned(part, scope, layout.cliques[home])
        messages = []
        for edge, share in zip(layout.edges, self.shares, strict=True):
            message = np.add.reduce(beliefs[edge.child] * tables[edge.child], axis=edge.child_axes) * share
            tables[edge.parent] += message.transpose(edge.parent_order)[edge.parent_index]
            messages.append(message)
        for root in layout.roots:
            axes = tuple(range(len(layout.cliques[root])))
            tables[root] -= np.add.reduce(beliefs[root] * tables[root], axis=axes)
        for edge, share, message in zip(reversed(layout.edges), reversed(self.shares), reversed(messages), strict=True):
            new = np.add.reduce(beliefs[edge.parent] * tables[edge.parent], axis=edge.parent_axes)
            tables[edge.child] += (new.transpose(edge.back_order) * share - message)[edge.child_index]
        margins = [
            project(beliefs[home] * tables[home], layout.cliques[home], scope).reshape(-1, batch)
            for scope, home in zip(moments.scopes, moments.homes, strict=True)
        ]
        return np.concatenate([np.zeros((0, batch)), *margins])

    def _compiled(self, direction: Floats) -> Floats:
        from suffice.kernels.compiled import junction_tree_tangents as loops

        program, buffer = self._program, self._buffer
        buffer[program.inputs : program.inputs + len(direction)] = direction
        loops.differentiate(self._rows[0], program.offsets, buffer, *self._rows[1:])
        return buffer[program.outputs : program.outputs + len(direction)].copy()


def tangent_rows(layout: TreeLayout, program: Program) -> tuple[tuple[NDArray[np.uint64], ...], int]:
    """What `differentiate` reads: places, entries, exits, messages and roots; and how long the buffer must be.

    Beliefs lie where the program has potentials, tables where it has beliefs, reciprocals of separators at the end.
    """
    origins = np.array(program.origins, np.uint64)
    exits, messages = program.exits.copy(), program.messages.copy()
    exits[:, 3] = origins[exits[:, 0].astype(np.intp)]
    sizes = messages[:, 1].astype(np.intp)
    ends = program.length + np.cumsum([0, *sizes])
    cliques, parents = messages[:, 2].astype(np.intp), messages[:, 3].astype(np.intp)
    messages[:, 2], messages[:, 3], messages[:, 4] = ends[:-1], origins[cliques], origins[parents]
    roots = [(program.starts[root], program.origins[root], layout.sizes[root]) for root in layout.roots]
    places = np.array([program.scratch, program.fresh, program.cells], np.uint64)
    rows = (program.entries, exits, messages, np.array(roots, np.uint64))
    return (places, *(part.ravel() for part in rows)), int(ends[-1])
