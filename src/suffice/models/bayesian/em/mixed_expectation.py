"""Expected statistics of a network with real nodes: exact expected counts and moments.

Rows are cut into blocks that share the known states that real nodes depend on. In a block, the density of what was seen
is a factor over the unseen discrete parents of real nodes; with it the discrete part is a network of tables. What is
missing of the real part enters the moments by its conditional mean and covariance.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.answers import Answer
from suffice.array_types import Floats
from suffice.domain import Domain
from suffice.engines.conditional_gaussian import LIMIT
from suffice.engines.gaussian_rows import LayoutAnswers, RealRows, RealStructure, add_to_rows
from suffice.engines.mixed_network import NodeRegression
from suffice.errors import OptionError, listing
from suffice.graphs.directed import topological_order
from suffice.models.bayesian.em.discrete_rows import RowPosterior, Scope, discrete_rows
from suffice.models.bayesian.em.expected_moments import ExpectedMoments, block_moments
from suffice.models.bayesian.em.table_expectation import counted
from suffice.statistics import Moments, MomentsBy, Statistic, Summary

Columns = Mapping[Any, NDArray[Any]]

#: Most rows of a block, and most of its values at all joint states of what they depend on.
BLOCK = 2**16
NUMBERS = 2**21
#: Blocks may be as small as this on average before rows with other missing values share a block.
LEAST = 32


@dataclass(frozen=True)
class Shape:
    """What blocks have in common: variables, parents of each node in declared order, and the statistics asked."""

    domain: Domain
    parents: Mapping[Hashable, tuple[Hashable, ...]]
    statistics: tuple[Statistic, ...]

    @cached_property
    def cards(self) -> dict[Hashable, int]:
        """Numbers of states of the discrete variables."""
        return {v.name: v.card for v in self.domain.variables if v.kind == "discrete"}

    @cached_property
    def scopes(self) -> dict[Hashable, Scope]:
        """Variables (parents, node) of the tables."""
        return {name: (*self.parents[name], name) for name in self.cards}

    @cached_property
    def reals(self) -> tuple[Hashable, ...]:
        """The real nodes, parents first."""
        return tuple(name for name in topological_order(self.parents) if name not in self.cards)

    @cached_property
    def outer(self) -> dict[Hashable, Scope]:
        """Discrete parents of each real node."""
        return {node: tuple(name for name in self.parents[node] if name in self.cards) for node in self.reals}

    @cached_property
    def inner(self) -> dict[Hashable, Scope]:
        """Real parents of each real node."""
        return {node: tuple(name for name in self.parents[node] if name not in self.cards) for node in self.reals}

    @cached_property
    def real_structure(self) -> RealStructure:
        """The real nodes alone."""
        return RealStructure(self.reals, self.inner, self.outer, self.cards, LIMIT)

    def block_rows(self, states: Mapping[Hashable, int]) -> int:
        """Rows of a block: fewer where many joint states of unknown discrete variables count."""
        free = {name for above in self.outer.values() for name in above if name not in states}
        joint = min(math.prod(self.cards[name] for name in free), LIMIT)
        return max(LEAST, min(BLOCK, NUMBERS // (max(len(self.reals), 1) * joint)))

    @cached_property
    def moments(self) -> tuple[Moments | MomentsBy, ...]:
        """The statistics of real variables."""
        return tuple(s for s in self.statistics if isinstance(s, Moments | MomentsBy))

    @cached_property
    def counts(self) -> tuple[Statistic, ...]:
        """The statistics of discrete variables alone."""
        return tuple(s for s in self.statistics if not isinstance(s, Moments | MomentsBy))


class MixedExpectation:
    """The E-step of a network with real nodes.

    `columns` (n,) by node: codes with -1 for a missing value, numbers with NaN for a missing value; nodes without a
    column are hidden.
    """

    def __init__(self, shape: Shape, columns: Columns, weights: Floats, *, keep: bool = True) -> None:
        """Cut the rows into blocks, once for all steps; or, for one step, block by block while it goes over them.

        Where rows differ in what is missing, blocks are small and take far more memory than their rows.
        """
        self.shape = shape
        self.rows, self.weight = len(weights), float(weights.sum())
        cuts = _cut_rows(shape, columns, len(weights))
        blocks = (_RowBlock(shape, columns, weights, rows, states) for rows, states in cuts)
        self.blocks: Iterable[_RowBlock] = list(blocks) if keep else blocks

    def expect(self, nodes: Mapping[Hashable, Any]) -> tuple[float, Summary]:
        """Observed log-likelihood at these nodes, and the expected statistics."""
        shape = self.shape
        with np.errstate(divide="ignore"):
            logs = {name: np.log(nodes[name].table_.values) for name in shape.cards}
        regressions = {
            name: NodeRegression(shape.outer[name], shape.inner[name], nodes[name].weights_, nodes[name].variance_)
            for name in shape.reals
        }
        moments: dict[Statistic, ExpectedMoments] = {s: ExpectedMoments(s, shape.domain) for s in shape.moments}
        counts = {s.variables: np.zeros(shape.domain.shape(s.variables)) for s in shape.counts}
        value = math.fsum(block.add(logs, regressions, moments, counts) for block in self.blocks)
        answers: dict[Statistic, Answer] = {s: sums.answer() for s, sums in moments.items()}
        answers |= {s: counted(s, counts[s.variables]) for s in shape.counts}
        return value, Summary(shape.domain, answers, self.rows, self.weight)


def _cut_rows(shape: Shape, columns: Columns, n: int) -> Iterator[tuple[NDArray[np.intp], dict[Hashable, int]]]:
    """Numbers of the rows of each block, with the known states that real nodes depend on."""
    parents = dict.fromkeys(name for above in shape.outer.values() for name in above if name in columns)
    coded = [np.asarray(columns[name], dtype=np.int64) for name in parents]
    others = [(columns[n] < 0).astype(np.int64) for n in shape.cards if n in columns and n not in parents]
    coarse = _labelled([key for key in coded if len(key) and (key != key[0]).any()], n)
    fine = _labelled([coarse, *others], n)
    blocks = int(fine.max(initial=-1)) + 1
    label = fine if blocks <= max(2 * (int(coarse.max(initial=-1)) + 1), n // LEAST) else coarse
    order = np.argsort(label, kind="stable")
    for some in np.split(order, np.cumsum(np.bincount(label))[:-1]) if n else ():
        states = {name: int(key[some[0]]) for name, key in zip(parents, coded, strict=True)}
        known = {name: code for name, code in states.items() if code >= 0}
        size = shape.block_rows(known)
        for start in range(0, len(some), size):
            yield some[start : start + size], known


def _labelled(keys: Sequence[NDArray[np.int64]], n: int) -> NDArray[np.int64]:
    """Rows with equal keys have equal numbers (n,), from 0."""
    label = np.zeros(n, np.int64)
    for key in keys:
        _, label = np.unique(label * (int(key.max(initial=0)) + 2) + (key + 1), return_inverse=True)
    return label.astype(np.int64)


class _RowBlock:
    """Rows that share the known states that real nodes depend on."""

    def __init__(
        self, shape: Shape, columns: Columns, weights: Floats, rows: NDArray[np.intp], states: dict[Hashable, int]
    ) -> None:
        self.shape, self.states, self.n = shape, states, len(rows)
        self.weights = weights[rows]
        codes = {name: np.asarray(columns[name])[rows].astype(np.int32) for name in shape.cards if name in columns}
        # A column of which no row of the block has a value is hidden here.
        codes = {name: column for name, column in codes.items() if (column >= 0).any()}
        self.discrete = discrete_rows(shape.cards, shape.scopes, codes, self.n)
        values = np.full((len(shape.reals), self.n), np.nan)
        for number, name in enumerate(shape.reals):
            if name in columns:
                values[number] = np.asarray(columns[name])[rows]
        self.reals = RealRows(shape.real_structure, values, states)
        self.whole, self.split = self._sorted()
        self._fixed: dict[Scope, tuple[Floats, Floats, Floats]] = {}

    def _free(self, scope: Scope) -> Scope:
        return tuple(name for name in scope if name not in self.states)

    def _places(self, names: Sequence[Hashable]) -> NDArray[np.intp]:
        return np.array([self.shape.real_structure.place[name] for name in names], dtype=np.intp)

    def _sorted(self) -> tuple[list[_Pool], list[_SplitRows]]:
        """Statistics for which all rows count alike, and those whose rows depend on what is missing.

        With the first, one product of all columns serves those that have the same discrete variables.
        """
        pools: dict[Scope, list[Moments | MomentsBy]] = {}
        split = []
        numbers = {layout.interface: number for number, layout in enumerate(self.reals.layouts)}
        # By hidden node the number of a layout with the interface of its component (p, n), -1 where it is seen.
        interface = np.full(self.reals.hidden.shape, -1, np.int32)
        for layout in self.reals.layouts:
            interface[layout.hidden[:, :, None], layout.rows[:, None, :]] = numbers[layout.interface]
        for statistic in self.shape.moments:
            by, of_columns = _by(statistic), interface[self._places(statistic.variables)]
            of_rows = of_columns.max(axis=0)
            parts: dict[Scope, NDArray[np.bool_]] = {}
            for number in np.unique(of_rows).tolist():
                scope = self._free(by) if number < 0 else self.reals.layouts[number].interface
                parts[scope] = parts.get(scope, np.zeros(self.n, dtype=bool)) | (of_rows == number)
                if not set(self._free(by)) <= set(scope) or ((of_columns >= 0) & (of_columns != of_rows)).any():
                    raise OptionError(
                        f"EM gives the moments of families; {listing(statistic.columns)} are of no single node."
                    )
            if list(parts) == [self._free(by)]:
                pools.setdefault(by, []).append(statistic)
            else:
                split.append(_SplitRows(statistic, {scope: np.flatnonzero(some) for scope, some in parts.items()}))
        return [self._pool(by, statistics) for by, statistics in pools.items()], split

    def _pool(self, by: Scope, statistics: list[Moments | MomentsBy]) -> _Pool:
        names = list(dict.fromkeys(name for statistic in statistics for name in statistic.variables))
        axes = [np.array([names.index(name) for name in s.variables], dtype=np.intp) for s in statistics]
        places = self._places(names)
        seen = not self.reals.hidden[places].any()
        return _Pool(by, places, list(zip(statistics, axes, strict=True)), fixed=seen and not self._free(by))

    # -- one step ----------------------------------------------------------------------------------------------------

    def add(
        self,
        logs: Mapping[Hashable, Floats],
        regressions: Mapping[Hashable, NodeRegression],
        moments: Mapping[Statistic, ExpectedMoments],
        counts: Mapping[Scope, Floats],
    ) -> float:
        """Add the block to the expected statistics; returns its log-likelihood."""
        solved = list(self.reals.solve(regressions))
        scopes = [*(self._free(pool.by) for pool in self.whole), *(s for part in self.split for s in part.rows)]
        wanted = list(dict.fromkeys([*scopes, *(answers.layout.interface for answers in solved)]))
        densities = list(self._densities(regressions, solved).items())
        distribution = self.discrete.solve(logs, densities, wanted, list(counts), self.weights)
        for scope, table in counts.items():
            table += distribution.counts[scope]
        filled = {scope: self._filled(scope, solved, distribution) for scope in wanted}
        for pool in self.whole:
            self._add_pool(pool, filled[self._free(pool.by)], moments)
        for part in self.split:
            for scope, rows in part.rows.items():
                self._add_split(part.statistic, filled[scope], rows, moments[part.statistic])
        return float(self.weights @ distribution.log_evidence)

    def _densities(
        self, regressions: Mapping[Hashable, NodeRegression], solved: Sequence[LayoutAnswers]
    ) -> dict[Scope, Floats]:
        """Log densities (joint states, n) of what was seen, by the free discrete variables that they depend on."""
        densities: dict[Scope, Floats] = {}
        for plain in self.reals.plain_densities(regressions):
            if plain.interface in densities:
                densities[plain.interface] += plain.log_density
            else:
                densities[plain.interface] = plain.log_density
        for answers in solved:
            scope = answers.layout.interface
            if scope not in densities:
                densities[scope] = np.zeros((math.prod(self.reals.shape(scope)), self.n))
            add_to_rows(densities[scope], answers.layout, answers.log_density)
        return densities

    def _filled(self, scope: Scope, solved: Sequence[LayoutAnswers], distribution: RowPosterior) -> _Filled:
        """Values with conditional means in place of what a component with this interface hides."""
        shape = self.reals.shape(scope)
        weights = distribution.marginals[scope].reshape(-1, self.n) * self.weights
        some = [answers for answers in solved if answers.layout.interface == scope]
        values, p = self.reals.values[None, :-1], len(self.reals.hidden)
        covariance = np.zeros((len(weights), p, p))
        if some:
            values = np.repeat(values, len(weights), axis=0)
        for answers in some:
            layout = answers.layout
            values[:, layout.hidden[:, :, None], layout.rows[:, None, :]] = answers.means.transpose(1, 0, 3, 2)
            mass = weights[:, layout.rows].sum(axis=2).T
            cells = layout.hidden[:, :, None] * p + layout.hidden[:, None, :]
            for state, into in enumerate(covariance):
                weighed = mass[:, state, None, None] * answers.covariances[:, state]
                into += np.bincount(cells.ravel(), weighed.ravel(), p * p).reshape(p, p)
        return _Filled(scope, shape, weights, values, covariance)

    def _add_pool(self, pool: _Pool, filled: _Filled, moments: Mapping[Statistic, ExpectedMoments]) -> None:
        """Moments for which all rows count alike; of seen values with known states they are the same at every step."""
        sums = self._fixed.get(pool.by)
        if sums is None:
            sums = filled.moments(pool.places)
            if pool.fixed:
                self._fixed[pool.by] = sums
        weight, mean, scatter = sums
        cells = self._cells(pool.by, filled)
        for statistic, axes in pool.statistics:
            moments[statistic].add(cells, weight, mean[:, axes], scatter[:, axes[:, None], axes])

    def _add_split(
        self, statistic: Moments | MomentsBy, filled: _Filled, rows: NDArray[np.intp], sums: ExpectedMoments
    ) -> None:
        """Moments of the rows whose missing values belong to one interface; several of its states may be one cell."""
        places = self._places(statistic.variables)
        seen = not self.reals.hidden[np.ix_(places, rows)].any()
        parts = filled.moments(places, rows, seen=seen)
        for number, cell in enumerate(self._cells(_by(statistic), filled)):
            sums.add(np.array([cell]), *(part[number : number + 1] for part in parts))

    def _cells(self, by: Scope, filled: _Filled) -> NDArray[np.intp]:
        """The number among the joint states of `by` of each joint state of an interface (c,)."""
        size = math.prod(filled.shape)
        places = np.unravel_index(np.arange(size), filled.shape) if filled.shape else ()
        codes = [
            np.full(size, self.states[name]) if name in self.states else places[filled.scope.index(name)] for name in by
        ]
        cards = tuple(self.shape.cards[name] for name in by)
        return np.asarray(np.ravel_multi_index(tuple(codes), cards) if by else np.zeros(size), dtype=np.intp)


@dataclass(frozen=True)
class _Pool:
    """Statistics with the same discrete variables for which all rows count alike: real nodes, and who needs which.

    `fixed` says that their moments are the same at every step.
    """

    by: Scope
    places: NDArray[np.intp]
    statistics: list[tuple[Moments | MomentsBy, NDArray[np.intp]]]
    fixed: bool


@dataclass(frozen=True)
class _SplitRows:
    """A statistic, and its rows by the interface on which what they miss of it depends."""

    statistic: Moments | MomentsBy
    rows: Mapping[Scope, NDArray[np.intp]]


@dataclass(frozen=True)
class _Filled:
    """Rows at c joint states of a scope: weights (c, n), values (c or 1, p, n), the covariance (c, p, p) they miss.

    Means stand in place of what the rows miss; the covariance is summed over rows.
    """

    scope: Scope
    shape: tuple[int, ...]
    weights: Floats
    values: Floats
    covariance: Floats

    def moments(
        self, places: NDArray[np.intp], rows: NDArray[np.intp] | None = None, *, seen: bool = False
    ) -> tuple[Floats, Floats, Floats]:
        """Weight (c,), mean (c, v) and centred products (c, v, v) of some columns over all rows, or over some."""
        chosen: Any = slice(None) if rows is None else rows
        if len(self.values) == 1:
            parts = block_moments(self.values[0][places][:, chosen], self.weights[:, chosen])
        else:
            some = self.values[:, places][:, :, chosen]
            cells = [block_moments(v, w[None, chosen]) for v, w in zip(some, self.weights, strict=True)]
            totals, means, products = zip(*cells, strict=True)
            parts = np.concatenate(totals), np.concatenate(means), np.concatenate(products)
        if seen:
            return parts
        weight, mean, scatter = parts
        return weight, mean, scatter + self.covariance[:, places[:, None], places]


def _by(statistic: Moments | MomentsBy) -> Scope:
    return statistic.by if isinstance(statistic, MomentsBy) else ()
