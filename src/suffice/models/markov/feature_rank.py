"""How many parameters of a log-linear model can be told apart, without listing its joint states.

Under the uniform law every function of some variables is a sum of parts, one for each subset of them, that are
orthogonal to each other and to constants (Hoeffding 1948). A table holds all parts of the subsets of its clique. The
features add the rank of their parts on all other subsets.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.models.markov.feature import Feature
from suffice.models.markov.log_linear import LogLinear
from suffice.solvers.rank import matrix_rank, table_rank

Floats = NDArray[np.float64]
Names = tuple[Hashable, ...]

#: A part whose size is below this share of its feature is rounding.
TOLERANCE = 1e-12


def parameter_count(model: LogLinear) -> int:
    """The rank of all features of a model, constants aside."""
    cards = {variable.name: variable.card for variable in model.domain.variables}
    tables = [frozenset(term) for term in model.terms if not isinstance(term, Feature)]
    found = table_rank([tuple(clique) for clique in tables], cards)
    features = [term for term in model.terms if isinstance(term, Feature)]
    return found + _rank_by_parts(_coordinates(model, features, tables)) if features else found


def _coordinates(model: LogLinear, features: list[Feature], tables: list[frozenset[Hashable]]) -> Any:
    """The parts of each feature that no table holds: a sparse matrix (features, coordinates)."""
    from scipy import sparse

    starts: dict[Names, int] = {}
    size = 0
    rows, columns, values = [], [], []
    place = {name: number for number, name in enumerate(model.domain.names)}
    known: dict[Any, list[tuple[tuple[int, ...], NDArray[np.intp], Floats]]] = {}  # Many features have the same values.
    for row, feature in enumerate(features):
        for scope, table in zip(feature.placements, feature.tables(model.domain), strict=True):
            axes = tuple(sorted(range(len(scope)), key=lambda axis: place[scope[axis]]))
            key = (table.tobytes(), table.shape, axes)
            if key not in known:
                known[key] = list(_parts(np.transpose(table, axes)))
            for chosen, cells, part in known[key]:
                names = tuple(scope[axes[axis]] for axis in chosen)
                if any(clique.issuperset(names) for clique in tables):
                    continue
                if names not in starts:
                    starts[names] = size
                    size += math.prod(model.domain[name].card - 1 for name in names)
                rows += [row] * len(cells)
                columns += (starts[names] + cells).tolist()
                values += part.tolist()
    found = sparse.csr_array((values, (rows, columns)), shape=(len(features), size))
    largest = np.zeros(len(features))
    np.maximum.at(largest, np.array(rows, np.intp), np.abs(values))
    # The placements of one feature may cancel.
    found.data[np.abs(found.data) <= TOLERANCE * np.repeat(largest, np.diff(found.indptr))] = 0.0
    found.eliminate_zeros()
    return found


def _parts(values: Floats) -> Iterator[tuple[tuple[int, ...], NDArray[np.intp], Floats]]:
    """The part on each non-empty subset of the axes, in orthonormal contrasts: axes, cells that are not 0, values."""
    values = values - values.mean()  # Constants are no part, and their rounding would hide small ones.
    least = TOLERANCE * float(np.abs(values).max(initial=0.0))
    live = [axis for axis, card in enumerate(values.shape) if card > 1]
    for size in range(1, len(live) + 1):
        for chosen in combinations(live, size):
            part = values
            for axis, card in enumerate(values.shape):
                basis = _contrasts(card) if axis in chosen else np.full((1, card), 1.0 / card)
                part = np.moveaxis(np.tensordot(basis, part, axes=(1, axis)), 0, axis)
            cells = np.flatnonzero(np.abs(part) > least)
            yield chosen, cells, part.ravel()[cells]


def _contrasts(card: int) -> Floats:
    """Orthonormal rows (card - 1, card) that add up to zero."""
    found = np.zeros((card - 1, card))
    for row in range(card - 1):
        found[row, : row + 1] = 1.0
        found[row, row + 1] = -(row + 1.0)
        found[row] /= np.sqrt((row + 1.0) * (row + 2.0))
    return found


def _rank_by_parts(matrix: Any) -> int:
    """The rank, block by block of features that share coordinates."""
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components

    count, size = matrix.shape
    if not matrix.nnz:
        return 0
    links = sparse.block_array([[None, matrix], [sparse.csr_array((size, count)), None]], format="csr")
    _, label = connected_components(links, directed=False)
    total = 0
    alone = np.bincount(label[:count], minlength=int(label.max()) + 1)
    used = np.bincount(label[:count], np.diff(matrix.indptr) > 0, int(label.max()) + 1)
    for block in np.flatnonzero(used):
        if alone[block] == 1:
            total += 1
        else:
            total += matrix_rank(matrix[np.flatnonzero(label[:count] == block)])
    return total
