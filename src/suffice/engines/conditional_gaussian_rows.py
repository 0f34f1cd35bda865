"""Rows with missing values under a conditional linear-Gaussian network: evidence, and what is missing given it.

Rows are grouped by the known states that real variables depend on. In a group, what belongs together of the real part
is worked out component by component (`gaussian_rows`), whatever else its rows miss.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.engines.conditional_gaussian import ConditionalGaussian, lifted, points_of
from suffice.engines.gaussian_rows import ComponentLayout, LayoutAnswers, RealRows, RealStructure, add_to_rows
from suffice.engines.junction_tree import JunctionTree
from suffice.errors import DataError
from suffice.graphs.nodes import Node

Columns = Mapping[Any, NDArray[Any]]


@dataclass(frozen=True)
class RealPart:
    """Real variables that belong together, in some rows of a group: k components of one layout.

    Rows of the layout are places in the group. For each of c joint states of the interface (axes in its order,
    `shape`): `weights` (k, n, c), the posterior probability of the state in each row; `means` (k, c, n, h) and
    `covariances` (k, c, h, h) of the hidden ones given the state and the row.
    """

    layout: ComponentLayout
    shape: tuple[int, ...]
    weights: Floats
    means: Floats
    covariances: Floats

    @property
    def interface(self) -> tuple[Node, ...]:
        """The unknown discrete variables that the components depend on."""
        return self.layout.interface


@dataclass(frozen=True)
class RowGroup:
    """Rows (n,): log evidence (n,), distributions of the scopes (n, cards), real parts.

    `states` are the known states that the rows share, `order` the real nodes that the places of the parts number. A row
    of density 0 has a log evidence of -inf and weights of 0.
    """

    rows: NDArray[np.intp]
    states: Mapping[Node, int]
    order: tuple[Node, ...]
    log_evidence: Floats
    marginals: Mapping[tuple[Node, ...], Floats]
    parts: tuple[RealPart, ...]

    def means_of(self, node: Node) -> Floats:
        """The mean of a real node given each row (n,); NaN where a row shows it."""
        means, number = np.full(len(self.rows), np.nan), self.order.index(node)
        for part in self.parts:
            component, position = np.nonzero(part.layout.hidden == number)
            some = part.means[component, :, :, position]
            means[part.layout.rows[component]] = np.einsum("knc,kcn->kn", part.weights[component], some)
        return means


def solve_rows(
    engine: ConditionalGaussian,
    columns: Columns,
    *,
    scopes: Sequence[Sequence[Node]] = (),
    targets: Sequence[Node] | None = None,
    threads: int = 1,
    calls: int | None = None,
) -> Iterator[RowGroup]:
    """Condition on each row; the hidden nodes of the real parts are the targets among them.

    columns (n,) by node: codes with -1 for a missing value, numbers with NaN for a missing value; nodes without a
    column are hidden. scopes: sets of discrete variables whose joint distribution is asked. targets: nodes whose
    distribution is wanted (default: all). calls: as in `TreePlan.rows`.
    """
    network, asked = engine.network, [tuple(scope) for scope in scopes]
    trees: dict[Any, JunctionTree] = {}
    wanted = [*(network.order if targets is None else targets), *(node for scope in asked for node in scope)]
    kept = network.above([*wanted, *columns])
    structure = _structure(engine, kept)
    matters = np.array([targets is None or node in targets for node in structure.order], dtype=bool)
    tables = tuple(node for node in network.tables if node in kept)
    discrete = [node for node in columns if node in network.tables]
    for rows, states in _groups(engine, columns):
        values = np.full((len(structure.order), len(rows)), np.nan)
        for number, node in enumerate(structure.order):
            if node in columns:
                values[number] = np.asarray(columns[node])[rows]
        reals = RealRows(structure, values, states, matters)
        solved = list(reals.solve(network.regressions))
        densities = _densities(reals, network.regressions, solved)
        interfaces = tuple(dict.fromkeys([*densities, *(part.layout.interface for part in solved)]))
        if interfaces not in trees:
            trees[interfaces] = _tree(engine, tables, [*interfaces, *asked])
        codes = {node: np.asarray(columns[node])[rows] for node in discrete}
        asking = _Asking(asked, list(interfaces), threads, calls)
        log, marginals = _solved(engine, trees[interfaces], densities, codes, len(rows), asking)
        parts = [_part(reals, answers, marginals[answers.layout.interface]) for answers in solved]
        answered = {scope: marginals[scope] for scope in asked}
        yield RowGroup(rows, states, structure.order, log, answered, tuple(parts))


def _structure(engine: ConditionalGaussian, kept: Collection[Node]) -> RealStructure:
    """The real nodes among those that matter."""
    network = engine.network
    order = tuple(node for node in network.order if node in kept and node in network.regressions)
    inner = {node: tuple(network.regressions[node].reals) for node in order}
    outer = {node: tuple(network.regressions[node].discrete) for node in order}
    return RealStructure(order, inner, outer, network.cards, engine.limit)


@dataclass(frozen=True)
class _Density:
    """Log density (n, c) of what rows show at joint states of a scope, and how many points are among it (n, c)."""

    log_density: Floats
    points: NDArray[np.intp]


def _densities(
    reals: RealRows, regressions: Mapping[Node, Any], solved: Sequence[LayoutAnswers]
) -> dict[tuple[Node, ...], _Density]:
    """By scope; scopes where nothing is seen have none: without factors, equal rows are worked on once."""
    logs: dict[tuple[Node, ...], Floats] = {}
    points: dict[tuple[Node, ...], Floats] = {}

    def tables(scope: tuple[Node, ...]) -> tuple[Floats, Floats]:
        shape = (math.prod(reals.shape(scope)), reals.n)
        return logs.setdefault(scope, np.zeros(shape)), points.setdefault(scope, np.zeros(shape))

    for plain in reals.plain_densities(regressions):
        log, count = tables(plain.interface)
        log += plain.log_density
        count += plain.points
    for answers in solved:
        if answers.layout.seen.shape[1]:
            log, count = tables(answers.layout.interface)
            add_to_rows(log, answers.layout, answers.log_density)
            if answers.points.any():
                add_to_rows(
                    count, answers.layout, np.broadcast_to(answers.points[..., None], answers.log_density.shape)
                )
    return {scope: _Density(log.T, points[scope].T.astype(np.intp)) for scope, log in logs.items()}


def _part(reals: RealRows, answers: LayoutAnswers, marginal: Floats) -> RealPart:
    shape = reals.shape(answers.layout.interface)
    weights = marginal.reshape(reals.n, -1)[answers.layout.rows]
    return RealPart(answers.layout, shape, weights, answers.means, answers.covariances)


def log_evidence(
    engine: ConditionalGaussian, columns: Columns, *, threads: int = 1, calls: int | None = None
) -> Floats:
    """Log evidence of each row (n,), missing values summed and integrated out; columns as in `solve_rows`."""
    totals = np.zeros(_length(columns))
    for group in solve_rows(engine, columns, targets=(), threads=threads, calls=calls):
        totals[group.rows] = group.log_evidence
    return totals


def _length(columns: Columns) -> int:
    lengths = {len(column) for column in columns.values()}
    if len(lengths) != 1:
        raise DataError(f"The columns have {sorted(lengths)} rows; expected columns of one length.")
    return lengths.pop()


def _groups(engine: ConditionalGaussian, columns: Columns) -> Iterator[tuple[NDArray[np.intp], dict[Node, int]]]:
    """Rows that share the states real variables depend on, and those states."""
    network, n = engine.network, _length(columns)
    parents = {name for regression in network.regressions.values() for name in regression.discrete}
    coded = [node for node in columns if node in parents]
    keys = [np.asarray(columns[node], dtype=np.int64) for node in coded]
    table = np.stack(keys, axis=1) if keys else np.zeros((n, 0), dtype=np.int64)
    distinct, label = np.unique(table, axis=0, return_inverse=True)
    order = np.argsort(label.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(label.ravel(), minlength=len(distinct)))
    for key, rows in zip(distinct.tolist(), np.split(order, ends[:-1]), strict=True):
        yield rows, {node: code for node, code in zip(coded, key, strict=True) if code >= 0}


def _tree(engine: ConditionalGaussian, nodes: Sequence[Node], more: Sequence[tuple[Node, ...]]) -> JunctionTree:
    """The tables of some nodes, with further scopes that belong together."""
    tables = engine.network.tables
    return engine.plan(nodes, more).load([*(tables[node].table for node in nodes), *(None for _ in more)])


@dataclass(frozen=True)
class _Asking:
    """What is asked of a group: distributions of discrete scopes and interfaces; threads and calls."""

    scopes: Sequence[tuple[Node, ...]]
    interfaces: Sequence[tuple[Node, ...]]
    threads: int
    calls: int | None


def _solved(
    engine: ConditionalGaussian,
    tree: JunctionTree,
    densities: Mapping[tuple[Node, ...], _Density],
    columns: Columns,
    n: int,
    asking: _Asking,
) -> tuple[Floats, Mapping[tuple[Node, ...], Floats]]:
    """Log evidence of a group of n rows, and the distributions asked for."""
    lift, logs = lifted(list(densities.values()), [engine.network.tables[node].table for node in tree.plan.space.nodes])
    cards = engine.network.cards
    factors = {
        scope: log.reshape(n, *(cards[name] for name in scope)) for scope, log in zip(densities, logs, strict=True)
    }
    codes = np.stack(list(columns.values()), axis=1) if columns else np.zeros((n, 0))
    rows = tree.plan.rows(codes.astype(np.int64), list(columns), factors, calls=asking.calls)
    scopes = list(dict.fromkeys([*asking.scopes, *asking.interfaces]))
    answers = tree.solve_rows(rows, scopes=scopes, threads=asking.threads)
    points = points_of(list(densities.values()), lift, answers.log_partition)
    return answers.log_partition - lift * points, answers.marginals
