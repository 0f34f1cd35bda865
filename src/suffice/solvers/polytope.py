"""The marginal polytope of a log-linear model, written with the cells of a junction tree.

A distribution p on all joint states has the margins mu_K(x_K) of the clusters K of the tree. Non-negative tables mu_K
are the margins of some p if and only if neighbours agree on their separators and all add up to one. The expected
statistics are linear in mu, so what can be said about all distributions needs as many numbers as the tree has cells,
not the joint table.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Flags
from suffice.errors import OptionError
from suffice.graphs.clique_tree import CliqueTree, clique_tree
from suffice.graphs.nodes import Node
from suffice.graphs.triangulation import best_triangulation
from suffice.graphs.undirected import graph_of_scopes

Scopes = Sequence[Sequence[Node]]


def project(scope: Sequence[Node], within: Sequence[Node], cards: Mapping[Any, int]) -> NDArray[np.intp]:
    """For each cell of a table over `within`, last axis fastest, the number of the cell of `scope` that it falls in."""
    axes = sorted(range(len(scope)), key=lambda axis: within.index(scope[axis]))
    cells = np.arange(math.prod([cards[node] for node in scope]), dtype=np.intp)
    table = cells.reshape([cards[node] for node in scope]).transpose(axes)
    table = table.reshape([cards[node] if node in scope else 1 for node in within])
    return np.broadcast_to(table, [cards[node] for node in within]).ravel()


@dataclass(frozen=True, eq=False)
class MarginalPolytope:
    """Clusters of a junction tree that holds every scope, and the statistics as linear functions of their cells.

    design: sparse (cells of all scopes one after another, weights), so that the log of the unnormalised distribution at
    x is the sum over scopes c of ``design[start_c + x_c] @ weights``; None if every cell has a weight of its own.
    """

    cards: Mapping[Any, int]
    scopes: tuple[tuple[Node, ...], ...]
    design: Any
    tree: CliqueTree

    @classmethod
    def of(cls, cards: Mapping[Any, int], scopes: Scopes, design: Any = None) -> MarginalPolytope:
        """Join the scopes by a tree."""
        names = tuple(map(tuple, scopes))
        cells = sum(math.prod([cards[node] for node in scope]) for scope in names)
        if design is not None and design.shape[0] != cells:
            raise OptionError(f"The design has {design.shape[0]} rows; the scopes have {cells} cells together.")
        tree = clique_tree(best_triangulation(graph_of_scopes(names, cards), cards))
        return cls(cards, names, design, tree)

    @cached_property
    def matrix(self) -> Any:
        """The design as a sparse matrix."""
        from scipy import sparse

        return sparse.eye_array(self.n_weights, format="csr") if self.design is None else sparse.csr_array(self.design)

    @property
    def clusters(self) -> tuple[tuple[Node, ...], ...]:
        """Variables of each cluster."""
        return self.tree.cliques

    @property
    def n_weights(self) -> int:
        """Columns of the design."""
        return int(self.ends[-1] if self.design is None else self.design.shape[1])

    @cached_property
    def ends(self) -> NDArray[np.intp]:
        """Where the cells of each scope start in the vector of the cells of all scopes, and its length at the end."""
        sizes = [math.prod([self.cards[node] for node in scope]) for scope in self.scopes]
        return np.cumsum([0, *sizes], dtype=np.intp)

    @cached_property
    def designs(self) -> tuple[Any, ...]:
        """The rows of the design that belong to each scope: sparse (cells, weights)."""
        return tuple(self.matrix[start:end] for start, end in pairwise(self.ends))

    @cached_property
    def starts(self) -> NDArray[np.intp]:
        """Where the cells of each cluster start in the vector of all cells, and its length at the end."""
        return np.cumsum([0, *self.tree.sizes], dtype=np.intp)

    @cached_property
    def homes(self) -> tuple[int, ...]:
        """The smallest cluster that holds each scope; -1 for a scope without variables where there are no clusters."""
        sets = list(map(frozenset, self.clusters))
        order = sorted(range(len(sets)), key=lambda index: (self.tree.sizes[index], index))
        return tuple(next((i for i in order if sets[i].issuperset(scope)), -1) for scope in self.scopes)

    @cached_property
    def moments(self) -> Any:
        """Expected statistics as a function of mu: sparse (weights, cells)."""
        from scipy import sparse

        blocks: list[Any] = [sparse.csr_array((self.n_weights, size)) for size in self.tree.sizes]
        for scope, design, home in zip(self.scopes, self.designs, self.homes, strict=True):
            if home >= 0:
                blocks[home] = blocks[home] + design[project(scope, self.clusters[home], self.cards)].T
        return sparse.hstack(blocks, format="csr") if blocks else sparse.csr_array((self.n_weights, 0))

    @cached_property
    def agreement(self) -> Any:
        """Margins of clusters less those of their parents, 0 for mu that agree: sparse (separator cells, cells)."""
        from scipy import sparse

        rows, columns, values = [], [], []
        height = 0
        for child, (parent, separator) in enumerate(zip(self.tree.parents, self.tree.separators, strict=True)):
            if parent < 0:
                continue
            for cluster, sign in ((child, 1.0), (parent, -1.0)):
                cells = project(separator, self.clusters[cluster], self.cards)
                rows.append(height + cells)
                columns.append(np.arange(self.starts[cluster], self.starts[cluster + 1]))
                values.append(np.full(len(cells), sign))
            height += math.prod([self.cards[node] for node in separator])
        entries = (_joined(values), (_joined(rows), _joined(columns)))
        return sparse.csr_array(entries, shape=(height, int(self.starts[-1])))

    @cached_property
    def totals(self) -> Any:
        """Sums of the cells of each root of the tree: sparse (roots, cells)."""
        from scipy import sparse

        roots = [index for index, parent in enumerate(self.tree.parents) if parent < 0]
        columns = [np.arange(self.starts[root], self.starts[root + 1]) for root in roots]
        rows = [np.full(len(cells), number) for number, cells in enumerate(columns)]
        cells = _joined(columns)
        return sparse.csr_array((np.ones(len(cells)), (_joined(rows), cells)), shape=(len(roots), int(self.starts[-1])))

    # -- supports ----------------------------------------------------------------------------------------------------

    def spread(self, alive: Sequence[Flags]) -> Flags:
        """Cells of the clusters (cells,) that agree with the cells of every scope that are alive, and with each other.

        What is left has a joint state through each cell: a cell without a partner across a separator is dropped.
        """
        possible = [np.ones(size, dtype=bool) for size in self.tree.sizes]
        for scope, cells, home in zip(self.scopes, alive, self.homes, strict=True):
            if home >= 0:
                possible[home] &= cells.ravel()[project(scope, self.clusters[home], self.cards)]
        order = [(child, self.tree.parents[child]) for child in self.tree.order if self.tree.parents[child] >= 0]
        for child, parent in order:
            self._restrict(possible, child, parent, self.tree.separators[child])
        for child, parent in reversed(order):
            self._restrict(possible, parent, child, self.tree.separators[child])
        return _joined(possible).astype(bool)

    def _restrict(self, cells: list[Flags], source: int, target: int, separator: Sequence[Node]) -> None:
        """Drop the cells of the target that have no partner in the source."""
        possible = np.zeros(math.prod([self.cards[node] for node in separator]), dtype=bool)
        possible[project(separator, self.clusters[source], self.cards)[cells[source]]] = True
        cells[target] &= possible[project(separator, self.clusters[target], self.cards)]

    def tables(self, cells: NDArray[Any]) -> list[NDArray[Any]]:
        """Cut a vector over all cells into one table for each cluster."""
        return [
            cells[self.starts[number] : self.starts[number + 1]].reshape([self.cards[node] for node in cluster])
            for number, cluster in enumerate(self.clusters)
        ]

    def scope_support(self, cells: Flags) -> list[Flags]:
        """For each scope the cells that some living cell of its cluster falls in."""
        supports = []
        for scope, home in zip(self.scopes, self.homes, strict=True):
            alive = np.zeros(math.prod([self.cards[node] for node in scope]), dtype=bool)
            block = cells[self.starts[home] : self.starts[home + 1]] if home >= 0 else np.ones(1, dtype=bool)
            alive[project(scope, self.clusters[home] if home >= 0 else (), self.cards)[block]] = True
            supports.append(alive.reshape([self.cards[node] for node in scope]))
        return supports

    def count_states(self, cells: Flags) -> int:
        """Joint states of all variables whose every cluster cell is alive, a whole number of any size."""
        living = [table.astype(object) for table in self.tables(cells.astype(np.int64))]
        total = 1
        for child in self.tree.order:
            parent = self.tree.parents[child]
            if parent < 0:
                total *= int(living[child].sum())
                continue
            separator = self.tree.separators[child]
            message = np.zeros(math.prod([self.cards[node] for node in separator]), dtype=object)
            np.add.at(message, project(separator, self.clusters[child], self.cards), living[child].ravel())
            places = project(separator, self.clusters[parent], self.cards)
            living[parent] = living[parent] * message[places].reshape(living[parent].shape)
        return total


def _joined(parts: Iterable[NDArray[Any]]) -> NDArray[Any]:
    joined = list(parts)
    return np.concatenate(joined) if joined else np.zeros(0, dtype=np.intp)
