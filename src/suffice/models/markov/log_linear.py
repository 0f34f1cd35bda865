"""Log-linear models: weights times features, as log-potentials of the scopes of a junction tree.

log p(x) = sum_k weight_k f_k(x) - log Z. A term is a table on a clique, with one weight for each joint state (its
features are indicators), or a `Feature` with one weight. Terms on the same set of variables share one scope. The map
from weights to log-potentials is linear; its transpose takes marginals to expected features.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.domain import Domain
from suffice.engines.plans import decompose_once
from suffice.graphs.decomposition import Decomposition
from suffice.models.markov.feature import Feature
from suffice.models.markov.structure import Term

Names = tuple[Hashable, ...]
#: For each term what is taken off its values, one number for each of its places; none for tables.
Centres = Sequence[Sequence[float]]

#: Values that differ from the centre of their feature by less than this share of it differ by rounding.
ROUNDING = 4 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class FeatureBlock:
    """What one term adds to one scope: the log-potential of cell `cells[i]` gains `values[i] * weights[columns[i]]`."""

    scope: int
    cells: NDArray[np.intp]
    columns: NDArray[np.intp]
    values: Floats


class LogLinear:
    """An ordered list of terms over discrete variables.

    Attributes:
        domain: the variables.
        cards: number of states of each.
        terms: cliques and features, in order.
        scopes: the distinct sets of variables, each in the axis order of the first term on it.
        weight_slices: the weights of each term.
        n_weights: number of weights.
        units: what each feature is divided by (n_weights,); ones for the model as it was given.
        centres: what is taken off each feature before, for each term one number a place; () for the model as given.
        n_cells: number of cells of all scopes together, the length of a vector of log-potentials.
    """

    def __init__(
        self, domain: Domain, terms: Sequence[Term], *, units: Floats | None = None, centres: Centres = ()
    ) -> None:
        """Lay out the weights of the terms, one after another.

        Features are used less their centres, divided by their units. A constant changes no distribution: log Z takes
        it.
        """
        self.domain = domain
        self.terms = tuple(terms)
        self.centres = tuple(centres)
        by_set: dict[frozenset[Hashable], Names] = {}
        for scope in self._term_scopes():
            by_set.setdefault(frozenset(scope), scope)
        self.scopes: tuple[Names, ...] = tuple(by_set.values())
        self._numbers = {key: number for number, key in enumerate(by_set)}
        self.cards: dict[Hashable, int] = {variable.name: variable.card for variable in domain.variables}
        self._shapes = [tuple([self.cards[name] for name in scope]) for scope in self.scopes]
        self._ends = list(accumulate(map(math.prod, self._shapes), initial=0))
        self.starts = np.array(self._ends)
        self.n_cells = self._ends[-1]
        sizes = {key: stop - start for key, (start, stop) in zip(by_set, pairwise(self._ends), strict=True)}
        counts = [1 if isinstance(term, Feature) else sizes[frozenset(term)] for term in self.terms]
        ends = list(accumulate(counts, initial=0))
        self.weight_slices = [slice(start, end) for start, end in pairwise(ends)]
        self.n_weights = ends[-1]
        tables = [term for term in self.terms if not isinstance(term, Feature)]
        #: Whether weights are the log-potentials themselves: tables only, no set of variables twice.
        self.is_identity = tuple(tables) == self.scopes and len(tables) == len(self.terms)
        self.units = np.ones(self.n_weights) if units is None else units
        #: Whether every term is a table.
        self.is_tables = len(tables) == len(self.terms)

    def _term_scopes(self) -> Iterator[Names]:
        for term in self.terms:
            yield from term.placements if isinstance(term, Feature) else (term,)

    @cached_property
    def decomposition(self) -> Decomposition:
        """The clique tree of the scopes, where they are those of a decomposable model."""
        return decompose_once(self.cards, self.scopes)

    def scope_number(self, scope: Sequence[Hashable]) -> int | None:
        """The scope over this set of variables, or None."""
        return self._numbers.get(frozenset(scope))

    def shape(self, number: int) -> tuple[int, ...]:
        """Cards of a scope."""
        return self._shapes[number]

    def part(self, vector: NDArray[Any], number: int) -> NDArray[Any]:
        """The table of a scope within a vector over all scopes."""
        return vector[self._ends[number] : self._ends[number + 1]].reshape(self._shapes[number])

    # -- the linear map ----------------------------------------------------------------------------------------------

    @cached_property
    def blocks(self) -> list[list[FeatureBlock]]:
        """For each term what it adds to the scopes."""
        centres = self.centres or ((),) * len(self.terms)
        return [
            self._feature_blocks(term, own.start, centre)
            if isinstance(term, Feature)
            else [self._table_block(term, own)]
            for term, own, centre in zip(self.terms, self.weight_slices, centres, strict=True)
        ]

    def _table_block(self, clique: Names, own: slice) -> FeatureBlock:
        weights = np.arange(own.start, own.stop).reshape(self.domain.shape(clique))
        scope = self._numbers[frozenset(clique)]
        columns = np.transpose(weights, [clique.index(name) for name in self.scopes[scope]]).ravel()
        return FeatureBlock(scope, np.arange(len(columns)), columns, np.ones(len(columns)))

    def _feature_blocks(self, feature: Feature, column: int, centres: Sequence[float]) -> list[FeatureBlock]:
        blocks = []
        off = centres or (0.0,) * len(feature.placements)
        for names, table, centre in zip(feature.placements, feature.tables(self.domain), off, strict=True):
            scope = self._numbers[frozenset(names)]
            values = np.transpose(table, [names.index(name) for name in self.scopes[scope]]).ravel()
            if centre:
                values = values - centre
                values[np.abs(values) <= ROUNDING * abs(centre)] = 0.0
            used = np.flatnonzero(values)
            blocks.append(FeatureBlock(scope, used, np.full(len(used), column), values[used] / self.units[column]))
        return blocks

    @cached_property
    def _matrices(self) -> tuple[Any, Any]:
        """The map (cells, weights) and its transpose, as sparse matrices."""
        from scipy import sparse

        blocks = [block for several in self.blocks for block in several]
        rows = np.concatenate([np.zeros(0, np.intp), *(self.starts[block.scope] + block.cells for block in blocks)])
        columns = np.concatenate([np.zeros(0, np.intp), *(block.columns for block in blocks)])
        values = np.concatenate([np.zeros(0), *(block.values for block in blocks)])
        matrix = sparse.csr_array((values, (rows, columns)), shape=(self.n_cells, self.n_weights))
        return matrix, matrix.T.tocsr()

    @property
    def matrix(self) -> Any:
        """The map as a sparse matrix (cells of all scopes, weights)."""
        return self._matrices[0]

    def log_potentials(self, weights: Floats) -> Floats:
        """Log-potentials of all scopes, one after another (n_cells,)."""
        return weights if self.is_identity else np.asarray(self._matrices[0] @ weights)

    def expected(self, marginals: Floats) -> Floats:
        """Expected features (n_weights,) from the marginals of all scopes (n_cells,): the transpose of the map."""
        return marginals if self.is_identity else np.asarray(self._matrices[1] @ marginals)

    def design(self, cells: NDArray[Any]) -> Floats:
        """Features (n, n_weights) of joint states (n, variables), given as codes in the order of the domain."""
        from scipy import sparse

        codes = np.asarray(cells)
        columns = {name: codes[:, number] for number, name in enumerate(self.domain.names)}
        flat = np.empty((len(codes), len(self.scopes)), np.intp)
        for number, scope in enumerate(self.scopes):
            index = np.ravel_multi_index([columns[name] for name in scope], self.shape(number))
            flat[:, number] = self.starts[number] + index
        rows = np.repeat(np.arange(len(codes)), len(self.scopes))
        picks = sparse.csr_array((np.ones(flat.size), (rows, flat.ravel())), shape=(len(codes), self.n_cells))
        return np.asarray((picks @ self._matrices[0]).toarray())

    def all_states(self) -> NDArray[np.intp]:
        """Every joint state (states, variables) as codes, the last variable fastest."""
        shape = self.domain.shape(self.domain.names)
        return np.indices(shape).reshape(len(shape), -1).T

    # -- names -------------------------------------------------------------------------------------------------------

    @cached_property
    def weight_names(self) -> tuple[str, ...]:
        """One name for each weight: the joint state of a table, or the name of a feature."""
        names: list[str] = []
        for term in self.terms:
            names += [term.name] if isinstance(term, Feature) else self._cell_names(term)
        return tuple(names)

    def _cell_names(self, clique: Names) -> list[str]:
        lists = [[f"{name}={state}" for state in self.domain[name].states] for name in clique]
        return [
            ", ".join(labels[code] for labels, code in zip(lists, cell, strict=True))
            for cell in np.ndindex(*self.domain.shape(clique))
        ]
