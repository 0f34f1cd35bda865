"""Expected statistics of a network with real nodes: exact expected counts and moments.

Rows are cut into blocks that share their missing values and the known states that real nodes depend on. In a block, the
density of what was seen is a factor over the unseen discrete parents of real nodes; with it the discrete part is a
network of tables. What is missing of the real part enters the moments by its conditional mean and covariance.
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
from suffice.engines.gaussian_components import Component, ComponentAnswers, cut
from suffice.engines.mixed_network import NodeRegression
from suffice.engines.square_root import LOG_2PI
from suffice.errors import OptionError, listing
from suffice.graphs.directed import topological_order
from suffice.models.bayesian.em.discrete_rows import RowPosterior, Scope, discrete_rows
from suffice.models.bayesian.em.expected_moments import ExpectedMoments, block_moments
from suffice.models.bayesian.em.table_expectation import counted
from suffice.statistics import Moments, MomentsBy, Statistic, Summary

Columns = Mapping[Any, NDArray[Any]]

#: Rows of a block: few enough that its arrays stay near the cache.
BLOCK = 8192
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
    missing = [np.isnan(columns[name]).astype(np.int64) for name in shape.reals if name in columns]
    others = [(columns[n] < 0).astype(np.int64) for n in shape.cards if n in columns and n not in parents]
    kept = [key for key in (*coded, *missing) if len(key) and (key != key[0]).any()]
    coarse = _labelled(kept, n)
    fine = _labelled([coarse, *others], n)
    blocks = int(fine.max(initial=-1)) + 1
    label = fine if blocks <= max(2 * (int(coarse.max(initial=-1)) + 1), n // LEAST) else coarse
    order = np.argsort(label, kind="stable")
    for some in np.split(order, np.cumsum(np.bincount(label))[:-1]) if n else ():
        states = {name: int(key[some[0]]) for name, key in zip(parents, coded, strict=True)}
        for start in range(0, len(some), BLOCK):
            yield some[start : start + BLOCK], {name: code for name, code in states.items() if code >= 0}


def _labelled(keys: Sequence[NDArray[np.int64]], n: int) -> NDArray[np.int64]:
    """Rows with equal keys have equal numbers (n,), from 0."""
    label = np.zeros(n, np.int64)
    for key in keys:
        _, label = np.unique(label * (int(key.max(initial=0)) + 2) + (key + 1), return_inverse=True)
    return label.astype(np.int64)


class _RowBlock:
    """Rows that share their missing values in real variables, and the known states that real nodes depend on."""

    def __init__(
        self, shape: Shape, columns: Columns, weights: Floats, rows: NDArray[np.intp], states: dict[Hashable, int]
    ) -> None:
        self.shape, self.states, self.n = shape, states, len(rows)
        self.weights = weights[rows]
        codes = {name: np.asarray(columns[name])[rows].astype(np.int32) for name in shape.cards if name in columns}
        seen = {name: np.asarray(columns[name])[rows] for name in shape.reals if name in columns}
        self.values = {name: column for name, column in seen.items() if not np.isnan(column[0])}
        # A column of which no row of the block has a value is hidden here.
        codes = {name: column for name, column in codes.items() if (column >= 0).any()}
        self.discrete = discrete_rows(shape.cards, shape.scopes, codes, self.n)
        self.plain = [
            node for node in shape.reals if node in self.values and all(p in self.values for p in shape.inner[node])
        ]
        self.tied = [node for node in shape.reals if node not in self.plain]
        self.above = {node: self._stack(shape.inner[node]) for node in self.plain}
        self.pools = list(self._pooled())
        self.partial = [s for s in shape.moments if not all(name in self.values for name in s.variables)]
        self._fixed: dict[Scope, tuple[Floats, Floats, Floats]] = {}

    def _stack(self, names: Sequence[Hashable]) -> Floats:
        return np.stack([self.values[name] for name in names]) if names else np.zeros((0, self.n))

    def _free(self, scope: Scope) -> Scope:
        return tuple(name for name in scope if name not in self.states)

    def _pooled(self) -> Iterator[tuple[Scope, Floats, list[tuple[Moments | MomentsBy, NDArray[np.intp]]]]]:
        """Statistics of seen variables with the same discrete variables: these, all values (p, n), and who needs which.

        One product of all columns serves them all.
        """
        groups: dict[Scope, list[Moments | MomentsBy]] = {}
        for statistic in self.shape.moments:
            if all(name in self.values for name in statistic.variables):
                groups.setdefault(_by(statistic), []).append(statistic)
        for by, some in groups.items():
            names = list(dict.fromkeys(name for statistic in some for name in statistic.variables))
            axes = [np.array([names.index(name) for name in s.variables], dtype=np.intp) for s in some]
            yield by, self._stack(names), list(zip(some, axes, strict=True))

    # -- one step ----------------------------------------------------------------------------------------------------

    def add(
        self,
        logs: Mapping[Hashable, Floats],
        regressions: Mapping[Hashable, NodeRegression],
        moments: Mapping[Statistic, ExpectedMoments],
        counts: Mapping[Scope, Floats],
    ) -> float:
        """Add the block to the expected statistics; returns its log-likelihood."""
        factors = self._densities(regressions)
        components: Sequence[Component] = ()
        if self.tied:
            observed = frozenset(self.values)
            components = cut(self.tied, regressions, self.shape.cards, observed, self.states, LIMIT)
        solved = [part.solve(self.values, self.n, part.hidden) for part in components]
        wanted = [*(self._free(by) for by, _, _ in self.pools), *(part.interface for part in components)]
        every = [*factors.items(), *((c.interface, s.log_density.T) for c, s in zip(components, solved, strict=True))]
        distribution = self.discrete.solve(logs, every, list(dict.fromkeys(wanted)), list(counts), self.weights)
        for scope, table in counts.items():
            table += distribution.counts[scope]
        self._add_seen(distribution, moments)
        for statistic in self.partial:
            self._add_unseen(statistic, components, solved, distribution, moments[statistic])
        return float(self.weights @ distribution.log_evidence)

    def _densities(self, regressions: Mapping[Hashable, NodeRegression]) -> dict[Scope, Floats]:
        """Log densities (joint states, n) of nodes seen with all their real parents, by their free discrete parents."""
        densities: dict[Scope, Floats] = {}
        for node in self.plain:
            weights, variance = self._at(regressions[node])
            log = weights[:, 1:] @ self.above[node]
            log += weights[:, :1]
            np.subtract(self.values[node], log, out=log)
            np.square(log, out=log)
            log *= (-0.5 / variance)[:, None]
            log -= 0.5 * (LOG_2PI + np.log(variance))[:, None]
            scope = self._free(self.shape.outer[node])
            if scope in densities:
                densities[scope] += log
            else:
                densities[scope] = log
        return densities

    def _at(self, regression: NodeRegression) -> tuple[Floats, Floats]:
        """Weights (c, q) and variances (c,) at the joint states of the free discrete parents."""
        index = tuple(self.states.get(name, slice(None)) for name in regression.discrete)
        weights = np.asarray(regression.weights)[index]
        return weights.reshape(-1, weights.shape[-1]), np.asarray(regression.variance)[index].reshape(-1)

    def _cells(self, by: Scope, interface: Scope, shape: tuple[int, ...]) -> NDArray[np.intp]:
        """The number among the joint states of `by` of each joint state of the interface (c,)."""
        size = math.prod(shape)
        places = np.unravel_index(np.arange(size), shape) if shape else ()
        codes = [
            np.full(size, self.states[name]) if name in self.states else places[interface.index(name)] for name in by
        ]
        cards = tuple(self.shape.cards[name] for name in by)
        return np.asarray(np.ravel_multi_index(tuple(codes), cards) if by else np.zeros(size), dtype=np.intp)

    def _add_seen(self, distribution: RowPosterior, moments: Mapping[Statistic, ExpectedMoments]) -> None:
        """Moments of values that were seen; with known states they are the same at every step."""
        for by, values, statistics in self.pools:
            free = self._free(by)
            sums = self._fixed.get(by)
            if sums is None:
                sums = block_moments(values, distribution.marginals[free].reshape(-1, self.n) * self.weights)
                if not free:
                    self._fixed[by] = sums
            weight, mean, scatter = sums
            cells = self._cells(by, free, tuple(self.shape.cards[name] for name in free))
            for statistic, axes in statistics:
                moments[statistic].add(cells, weight, mean[:, axes], scatter[:, axes[:, None], axes])

    def _add_unseen(
        self,
        statistic: Moments | MomentsBy,
        components: Sequence[Component],
        solved: Sequence[ComponentAnswers],
        distribution: RowPosterior,
        sums: ExpectedMoments,
    ) -> None:
        """Moments of variables of which some are missing: means in their place, and their covariance besides."""
        missing = [name for name in statistic.variables if name not in self.values]
        component, answers = next(pair for pair in zip(components, solved, strict=True) if missing[0] in pair[0].hidden)
        by = _by(statistic)
        if not set(missing) <= set(component.hidden) or not set(self._free(by)) <= set(component.interface):
            raise OptionError(f"EM gives the moments of families; {listing(statistic.columns)} are of no single node.")
        unseen = [statistic.variables.index(name) for name in missing]
        to = [component.hidden.index(name) for name in missing]
        values = np.empty((len(statistic.variables), self.n))
        for row, name in enumerate(statistic.variables):
            if name in self.values:
                values[row] = self.values[name]
        weights = distribution.marginals[component.interface].reshape(-1, self.n) * self.weights
        covariance = answers.root[:, to] @ answers.root[:, to].swapaxes(1, 2)
        cells = self._cells(by, component.interface, component.shape)
        for state, cell in enumerate(cells):
            values[unseen] = answers.means[state][:, to].T
            weight, mean, scatter = block_moments(values, weights[state : state + 1])
            scatter[0][np.ix_(unseen, unseen)] += weight[0] * covariance[state]
            sums.add(np.array([cell]), weight, mean, scatter)


def _by(statistic: Moments | MomentsBy) -> Scope:
    return statistic.by if isinstance(statistic, MomentsBy) else ()
