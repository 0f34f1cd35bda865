"""How many parameters of a log-linear model can be told apart, without listing its joint states.

Under the uniform distribution every function of some variables is a sum of parts, one for each subset of them, that are
orthogonal to each other and to constants (Hoeffding 1948). A table holds all parts of the subsets of its clique. The
features add the rank of their parts on all other subsets.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from itertools import combinations
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.errors import listing
from suffice.models.markov.feature import Feature
from suffice.models.markov.feature_spread import constant_features, features_of
from suffice.models.markov.log_linear import ROUNDING, LogLinear
from suffice.solvers.penalties import Penalty
from suffice.solvers.rank import TOLERANCE as MATRIX_TOLERANCE
from suffice.solvers.rank import matrix_rank, table_rank

Names = tuple[Hashable, ...]

#: A part whose size is below this share of its feature is rounding.
TOLERANCE = 1e-12
#: A feature takes part in a combination where its share of it is above this.
TAKES_PART = 1e-6


def parameter_count(model: LogLinear) -> int:
    """The rank of all features of a model, constants aside."""
    cards = {variable.name: variable.card for variable in model.domain.variables}
    tables = [frozenset(term) for term in model.terms if not isinstance(term, Feature)]
    rank = table_rank([tuple(clique) for clique in tables], cards)
    coordinates = _coordinates_of(model)
    blocks = _blocks(coordinates)
    return rank + sum(1 if len(block) == 1 else matrix_rank(coordinates[block]) for block in blocks)


def untold_weights(model: LogLinear) -> list[int]:
    """The weights of features that no data can tell: constants, what the tables hold, and those that depend on others.

    A weight is told if and only if no combination of features that changes no distribution holds it.
    """
    coordinates = _coordinates_of(model)
    untold = np.diff(coordinates.indptr) == 0
    for block in _blocks(coordinates):
        rows = coordinates[block]
        if len(block) > 1 and matrix_rank(rows) < len(block):
            untold[block[_dependent(rows.toarray())]] = True
    return list(np.flatnonzero(features_of(model))[untold].tolist())


def untold_notes(model: LogLinear, penalty: Penalty | None) -> tuple[str, ...]:
    """What a report says about features whose weights no data can tell; a prior tells them all."""
    if penalty is not None or model.is_tables:
        return ()
    untold, still = untold_weights(model), constant_features(model)
    names = {alike: [model.weight_names[k] for k in untold if still[k] == alike] for alike in (True, False)}
    notes = []
    if names[True]:
        notes.append(f"constant features change no distribution, and their weights stay 0: {listing(names[True])}")
    if names[False]:
        notes.append(
            f"no data tell the weights of the features {listing(names[False])}: other terms, alone or together, say "
            "the same, and only the distribution is unique"
        )
    return tuple(notes)


def _dependent(rows: Floats) -> NDArray[np.bool_]:
    """Which rows some combination of rows that is 0 holds (n,)."""
    rows = rows / np.sqrt(np.sum(rows**2, axis=1, keepdims=True))
    left, sizes, _ = np.linalg.svd(rows)
    null = left[:, int((sizes > MATRIX_TOLERANCE * sizes[0]).sum()) :]
    return np.asarray(np.abs(null).max(axis=1, initial=0.0) > TAKES_PART)


_coordinates: WeakKeyDictionary[LogLinear, Any] = WeakKeyDictionary()


def _coordinates_of(model: LogLinear) -> Any:
    """The parts of each feature that no table holds: a sparse matrix (features, coordinates), kept as the model is."""
    if model not in _coordinates:
        _coordinates[model] = _made_coordinates(model)
    return _coordinates[model]


def _made_coordinates(model: LogLinear) -> Any:
    from scipy import sparse

    features = [term for term in model.terms if isinstance(term, Feature)]
    tables = [frozenset(term) for term in model.terms if not isinstance(term, Feature)]
    starts: dict[Names, int] = {}
    size = 0
    rows, columns, values = [], [], []
    order = {name: number for number, name in enumerate(model.domain.names)}
    known: dict[Any, list[tuple[tuple[int, ...], NDArray[np.intp], Floats]]] = {}  # Many features have the same values.
    for row, feature in enumerate(features):
        for scope, table in zip(feature.placements, feature.tables(model.domain), strict=True):
            axes = tuple(sorted(range(len(scope)), key=lambda axis: order[scope[axis]]))
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
    coordinates = sparse.csr_array((values, (rows, columns)), shape=(len(features), size))
    largest = np.zeros(len(features))
    np.maximum.at(largest, np.array(rows, np.intp), np.abs(values))
    # The placements of one feature may cancel.
    coordinates.data[np.abs(coordinates.data) <= TOLERANCE * np.repeat(largest, np.diff(coordinates.indptr))] = 0.0
    coordinates.eliminate_zeros()
    return coordinates


def _parts(values: Floats) -> Iterator[tuple[tuple[int, ...], NDArray[np.intp], Floats]]:
    """The part on each non-empty subset of the axes, in orthonormal contrasts: axes, cells that are not 0, values."""
    if float(np.ptp(values)) <= ROUNDING * float(np.abs(values).max(initial=0.0)):
        return
    values = values - values.flat[0]  # Constants are no part, and their rounding would hide small ones.
    values = values - values.mean()
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
    contrasts = np.zeros((card - 1, card))
    for row in range(card - 1):
        contrasts[row, : row + 1] = 1.0
        contrasts[row, row + 1] = -(row + 1.0)
        contrasts[row] /= np.sqrt((row + 1.0) * (row + 2.0))
    return contrasts


def _blocks(matrix: Any) -> list[NDArray[np.intp]]:
    """The rows of each block of rows that share coordinates, without those that are 0."""
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components

    count, size = matrix.shape
    if not matrix.nnz:
        return []
    links = sparse.block_array([[None, matrix], [sparse.csr_array((size, count)), None]], format="csr")
    _, label = connected_components(links, directed=False)
    used = np.flatnonzero(np.diff(matrix.indptr) > 0)
    order = used[np.argsort(label[used], kind="stable")]
    return np.split(order, np.flatnonzero(np.diff(label[order])) + 1)
