"""Log-linear models of one table, cut in two: sums over the table are products of small matrices.

The variables are divided into two groups of about as many joint states, so that the table is a matrix with a row for
each state of one group and a column for each of the other. With the indicators A and B of what scopes hold of either
group, the logarithms of all cells are ``A T B' + u 1' + 1 v'``: T has the tables of scopes with variables of both, u
and v the sums of those with variables of one. The margins are the transpose of that map: ``A' P B``, and indicators
times the sums of rows and columns of P.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.kernels.junction_tree_layout import Scope

#: Cells of tables for which this pays: smaller ones are summed at once, larger ones are work for compiled loops.
LEAST, MOST = 256, 2**16
#: A margin below this is too near to the smallest number to be told.
TINY = 1e-280


class SplitTable:
    """The map from log-potentials of scopes, one table after another as a vector (n,), to a table, and its transpose.

    sizes: the number of states of each variable, by number; scopes: variables of each table, in the order of its axes.
    `variables` are those of the table in the order in which its rows and columns (r, c) count their states.
    """

    def __init__(self, sizes: Sequence[int], scopes: Sequence[Scope]) -> None:
        self.sizes, self.scopes = tuple(sizes), tuple(scopes)
        self.groups = _halves(self.sizes, sorted({variable for scope in scopes for variable in scope}))
        self.variables = (*self.groups[0], *self.groups[1])
        both, alone = (_Indicators(self, 0), _Indicators(self, 1)), (_Indicators(self, 0), _Indicators(self, 1))
        parts = [tuple(tuple(v for v in scope if v in group) for group in self.groups) for scope in self.scopes]
        for first, second in parts:
            if first and second:
                both[0].add(first)
                both[1].add(second)
            else:
                alone[0 if first else 1].add(first or second)
        self._both, self._alone = (
            [(part.matrix, part.matrix.T.copy()) for part in both],
            [part.matrix for part in alone],
        )
        self._shape = both[0].count, both[1].count
        ends = np.cumsum([0, both[0].count * both[1].count, alone[0].count, alone[1].count]).tolist()
        self._pieces, self._count = [slice(*span) for span in pairwise(ends)], ends[-1]
        self._ones = [np.ones(len(matrix)) for matrix in self._alone]
        self._places = np.concatenate(
            [
                both[0].places(scope, first) * both[1].count + both[1].places(scope, second)
                if first and second
                else ends[1 if first else 2] + alone[0 if first else 1].places(scope, first or second)
                for scope, (first, second) in zip(self.scopes, parts, strict=True)
            ]
        )

    def spread(self, vector: Floats) -> Floats:
        """The sum of all tables in each cell (r, c)."""
        known = np.zeros(self._count)
        known[self._places] = vector
        inside, first, second = [known[piece] for piece in self._pieces]
        table = (self._both[0][0] @ inside.reshape(self._shape)) @ self._both[1][1]
        table += (self._alone[0] @ first)[:, None]
        table += self._alone[1] @ second
        return np.asarray(table)

    def margins(self, table: Floats) -> Floats:
        """The margins of all scopes (n,) of a table (r, c)."""
        inside = (self._both[0][1] @ table) @ self._both[1][0]
        rows, columns = (table @ self._ones[1]) @ self._alone[0], (self._ones[0] @ table) @ self._alone[1]
        return np.asarray(np.concatenate([inside.ravel(), rows, columns])[self._places])

    def moments(self, logs: Floats) -> tuple[float, Floats, Floats]:
        """Log Z, the margins of all scopes (n,) and the distribution (r, c) of log-potentials (n,), all finite."""
        table = self.spread(logs)
        top = float(table.max())
        table -= top
        np.exp(table, out=table)
        total = float(table.sum())
        table /= total
        return top + math.log(total), self.margins(table), table

    def matrix_of(self, table: Floats, variables: Sequence[int]) -> Floats:
        """A table with one axis for each of its variables, in this order, as a matrix (r, c)."""
        order = [list(variables).index(variable) for variable in self.variables]
        rows = math.prod(self.sizes[variable] for variable in self.groups[0])
        return np.ascontiguousarray(table.transpose(order)).reshape(rows, -1)

    def table_of(self, matrix: Floats, variables: Sequence[int]) -> Floats:
        """A matrix (r, c) as a table with one axis for each of its variables, in this order."""
        table = matrix.reshape([self.sizes[variable] for variable in self.variables])
        return np.ascontiguousarray(table.transpose([self.variables.index(variable) for variable in variables]))


class _Indicators:
    """The indicators of the joint states of some sets of variables of a group, side by side (states, count)."""

    def __init__(self, table: SplitTable, side: int) -> None:
        self.sizes, self.group = table.sizes, table.groups[side]
        self.begins: dict[Scope, int] = {}
        self.count = 0

    def add(self, part: Scope) -> None:
        if part not in self.begins:
            self.begins[part] = self.count
            self.count += math.prod(self.sizes[variable] for variable in part)

    @property
    def matrix(self) -> Floats:
        states = math.prod(self.sizes[variable] for variable in self.group)
        matrix = np.zeros((states, self.count))
        for part, begin in self.begins.items():
            matrix[np.arange(states), begin + codes_of(part, self.group, self.sizes)] = 1.0
        return matrix

    def places(self, scope: Scope, part: Scope) -> NDArray[np.intp]:
        """Where the states of a part of a scope stand, for each cell of the scope."""
        return self.begins[part] + codes_of(part, scope, self.sizes)


def codes_of(part: Scope, scope: Scope, sizes: Sequence[int]) -> NDArray[np.intp]:
    """The number of the joint state of some variables in each joint state of a scope, the last one counting fastest."""
    states = dict(zip(scope, np.indices([sizes[v] for v in scope]).reshape(len(scope), -1), strict=True))
    codes = np.zeros(math.prod(sizes[variable] for variable in scope), np.intp)
    for variable in part:
        codes = codes * sizes[variable] + states[variable]
    return codes


def _halves(sizes: Sequence[int], variables: Sequence[int]) -> tuple[Scope, Scope]:
    """The variables in two groups of about as many joint states."""
    groups: tuple[list[int], list[int]] = [], []
    states = [1, 1]
    for variable in sorted(variables, key=lambda variable: (-sizes[variable], variable)):
        side = 0 if states[0] <= states[1] else 1
        groups[side].append(variable)
        states[side] *= sizes[variable]
    return tuple(sorted(groups[0])), tuple(sorted(groups[1]))
