"""Rows with missing values under a conditional linear-Gaussian network: evidence, and what is missing given it.

Rows are grouped by their missing values and by the known states that real variables depend on, so that a group shares
its normal distributions; within a group, rows differ by numbers only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.engines.conditional_gaussian import ConditionalGaussian, lifted, points_of
from suffice.engines.gaussian_components import Component, cut
from suffice.engines.junction_tree import JunctionTree
from suffice.errors import DataError
from suffice.graphs.nodes import Node

Columns = Mapping[Any, NDArray[Any]]


@dataclass(frozen=True)
class RealPart:
    """Real variables that belong together, in a group of n rows.

    `observed` and `hidden` name them. For each of c joint states of the `interface` (axes in its order, `shape`):
    `weights` (n, c), the posterior probability of the state in each row; `means` (c, n, u) and `covariances` (c, u, u)
    of the hidden ones given the state and the row.
    """

    observed: tuple[Node, ...]
    hidden: tuple[Node, ...]
    interface: tuple[Node, ...]
    shape: tuple[int, ...]
    weights: Floats
    means: Floats
    covariances: Floats


@dataclass(frozen=True)
class RowGroup:
    """Rows (n,) that miss the same values: log evidence (n,), distributions of the scopes (n, cards), real parts.

    `states` are the known states that the rows share. A row of density 0 has a log evidence of -inf and weights of 0.
    """

    rows: NDArray[np.intp]
    states: Mapping[Node, int]
    log_evidence: Floats
    marginals: Mapping[tuple[Node, ...], Floats]
    parts: tuple[RealPart, ...]


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
    discrete = [node for node in columns if node in network.tables]
    for rows, states, observed in _groups(engine, columns):
        kept = network.above([*wanted, *discrete, *observed])
        reals = [node for node in network.order if node in kept and node in network.regressions]
        components = cut(reals, network.regressions, network.cards, frozenset(observed), states, engine.limit)
        tables = tuple(node for node in network.tables if node in kept)
        interfaces = tuple(part.interface for part in components)
        if (tables, interfaces) not in trees:
            trees[tables, interfaces] = _tree(engine, tables, [*interfaces, *asked])
        some = {node: np.asarray(columns[node])[rows] for node in (*discrete, *observed)}
        hidden = [[node for node in part.hidden if targets is None or node in targets] for part in components]
        asking = _Asking(asked, hidden, threads, calls)
        yield RowGroup(rows, states, *_solved(engine, trees[tables, interfaces], components, some, len(rows), asking))


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


def _groups(
    engine: ConditionalGaussian, columns: Columns
) -> Iterator[tuple[NDArray[np.intp], dict[Node, int], list[Node]]]:
    """Rows that miss the same values and share the states real variables depend on; those states; observed reals."""
    network, n = engine.network, _length(columns)
    network.above(list(columns))
    parents = {name for regression in network.regressions.values() for name in regression.discrete}
    coded = [node for node in columns if node in parents]
    reals = [node for node in columns if node in network.regressions]
    keys = [np.asarray(columns[node], dtype=np.int64) for node in coded]
    keys += [np.isnan(np.asarray(columns[node], dtype=np.float64)).astype(np.int64) for node in reals]
    table = np.stack(keys, axis=1) if keys else np.zeros((n, 0), dtype=np.int64)
    distinct, label = np.unique(table, axis=0, return_inverse=True)
    order = np.argsort(label.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(label.ravel(), minlength=len(distinct)))
    for key, rows in zip(distinct.tolist(), np.split(order, ends[:-1]), strict=True):
        states = {node: code for node, code in zip(coded, key[: len(coded)], strict=True) if code >= 0}
        yield rows, states, [node for node, missing in zip(reals, key[len(coded) :], strict=True) if not missing]


def _tree(engine: ConditionalGaussian, nodes: Sequence[Node], more: Sequence[tuple[Node, ...]]) -> JunctionTree:
    """The tables of some nodes, with further scopes that belong together."""
    tables = engine.network.tables
    return engine.plan(nodes, more).load([*(tables[node].table for node in nodes), *(None for _ in more)])


@dataclass(frozen=True)
class _Asking:
    """What is asked of a group: distributions of discrete scopes, hidden nodes of each component; threads and calls."""

    scopes: Sequence[tuple[Node, ...]]
    hidden: Sequence[Sequence[Node]]
    threads: int
    calls: int | None


def _solved(
    engine: ConditionalGaussian,
    tree: JunctionTree,
    components: Sequence[Component],
    columns: Columns,
    n: int,
    asking: _Asking,
) -> tuple[Floats, dict[tuple[Node, ...], Floats], tuple[RealPart, ...]]:
    """Log evidence, distributions of the scopes asked, and real parts of a group of n rows."""
    solutions = [part.solve(columns, n, hidden) for part, hidden in zip(components, asking.hidden, strict=True)]
    lift, logs = lifted(solutions, [engine.network.tables[node].table for node in tree.plan.space.nodes])
    factors: dict[tuple[Node, ...], Floats] = {}
    for component, log in zip(components, logs, strict=True):
        if not component.observed:
            continue  # Its density is 1; without factors, equal rows are worked on once.
        scope, shaped = component.interface, log.reshape(n, *component.shape)
        factors[scope] = factors[scope] + shaped if scope in factors else shaped
    discrete = [node for node in columns if node in engine.network.tables]
    codes = np.stack([columns[node] for node in discrete], axis=1) if discrete else np.zeros((n, 0))
    scopes = list(dict.fromkeys([*asking.scopes, *(component.interface for component in components)]))
    rows = tree.plan.rows(codes.astype(np.int64), discrete, factors, calls=asking.calls)
    answers = tree.solve_rows(rows, scopes=scopes, threads=asking.threads)
    points = points_of(solutions, lift, answers.log_partition)
    parts = [
        RealPart(
            tuple(node for node in component.nodes if node in component.observed),
            tuple(hidden),
            component.interface,
            component.shape,
            answers.marginals[component.interface].reshape(n, -1),
            solved.means,
            solved.root @ solved.root.swapaxes(-1, -2),
        )
        for component, hidden, solved in zip(components, asking.hidden, solutions, strict=True)
    ]
    marginals = {scope: answers.marginals[scope] for scope in asking.scopes}
    return answers.log_partition - lift * points, marginals, tuple(parts)
