"""The expected statistics once more, row by row through the engines that answer queries: the judge of an EM fit.

Nothing here is used by the steps of EM, so that a fault of theirs shows.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import numpy as np

from suffice.answers import Answer
from suffice.array_types import Floats
from suffice.domain import Domain
from suffice.engines.conditional_gaussian import ConditionalGaussian
from suffice.engines.conditional_gaussian_rows import RowGroup, solve_rows
from suffice.engines.mixed_network import Discrete, MixedNetwork, NodeRegression
from suffice.models.bayesian.em.expected_moments import ExpectedMoments
from suffice.models.bayesian.em.table_expectation import TablePlans, counted
from suffice.models.em.latent import Expected
from suffice.models.em.rows import ObservedRows
from suffice.statistics import Moments, MomentsBy, Statistic, Summary

#: Rows that are solved at a time.
BLOCK = 2048


def expected_again(rows: ObservedRows, nodes: Mapping[Hashable, Any], plans: TablePlans) -> Expected[Summary]:
    """Log-likelihood and expected statistics at some nodes; plans: junction trees for networks of tables."""
    real = any(variable.kind != "discrete" for variable in rows.domain.variables)
    value, answers = _mixed(rows, nodes, plans.statistics) if real else _tables(rows, nodes, plans)
    return Expected(value, Summary(rows.domain, answers, len(rows.weights), float(rows.weights.sum())))


#: Log-likelihood, and the answer to each statistic.
Again = tuple[float, dict[Statistic, Answer]]


def _tables(rows: ObservedRows, nodes: Mapping[Hashable, Any], plans: TablePlans) -> Again:
    tree, statistics = plans.load(nodes), plans.statistics
    names = tuple(rows.columns)
    n = len(rows.weights)
    codes = np.stack([rows.columns[name] for name in names], axis=1) if names else np.zeros((n, 0), np.int32)
    totals = {s.variables: np.zeros(rows.domain.shape(s.variables)) for s in statistics}
    value = 0.0
    for start in range(0, n, BLOCK):
        some = slice(start, start + BLOCK)
        answer = tree.solve_rows(tree.plan.rows(codes[some], names, calls=1), scopes=list(totals))
        value += float(rows.weights[some] @ answer.log_partition)
        for scope, total in totals.items():
            total += np.tensordot(rows.weights[some], answer.marginals[scope], 1)
    return value, {s: counted(s, totals[s.variables]) for s in statistics}


def network_of(domain: Domain, nodes: Mapping[Hashable, Any]) -> MixedNetwork:
    """Tables and regressions as the engine takes them."""
    tables, regressions = {}, {}
    for name, node in nodes.items():
        above = node.domain.names[:-1]
        if domain[name].kind == "discrete":
            tables[name] = Discrete(above, node.table_.values)
        else:
            discrete = tuple(n for n in above if domain[n].kind == "discrete")
            reals = tuple(n for n in above if domain[n].kind != "discrete")
            regressions[name] = NodeRegression(discrete, reals, node.weights_, node.variance_)
    return MixedNetwork(tables, regressions)


def _mixed(rows: ObservedRows, nodes: Mapping[Hashable, Any], statistics: tuple[Statistic, ...]) -> Again:
    engine = ConditionalGaussian(network_of(rows.domain, nodes))
    sums = {s: ExpectedMoments(s, rows.domain) for s in statistics if isinstance(s, Moments | MomentsBy)}
    counts = {s.variables: np.zeros(rows.domain.shape(s.variables)) for s in statistics if s not in sums}
    value = 0.0
    for group in solve_rows(engine, rows.columns, scopes=list(counts), calls=1):
        value += float(rows.weights[group.rows] @ group.log_evidence)
        for scope, total in counts.items():
            total += np.tensordot(rows.weights[group.rows], group.marginals[scope], 1)
        for statistic, into in sums.items():
            for cell, weight, mean, scatter in _parts(rows, group, statistic):
                into.add(np.array([cell]), np.array([weight]), mean[None], scatter[None])
    answers: dict[Statistic, Answer] = {s: into.answer() for s, into in sums.items()}
    answers |= {s: counted(s, counts[s.variables]) for s in statistics if s not in sums}
    return value, answers


def _parts(
    rows: ObservedRows, group: RowGroup, statistic: Moments | MomentsBy
) -> Iterator[tuple[int, float, Floats, Floats]]:
    """Cell, weight, mean and centred products that a group of rows adds to a statistic, state by state."""
    by = statistic.by if isinstance(statistic, MomentsBy) else ()
    cards = rows.domain.shape(by)
    node = statistic.variables[-1]
    part = next(part for part in group.parts if node in (*part.observed, *part.hidden))
    weights = rows.weights[group.rows]
    for number, column_number in enumerate(np.ndindex(*part.shape)):
        states = {**group.states, **dict(zip(part.interface, column_number, strict=True))}
        cell = int(np.ravel_multi_index([states[name] for name in by], cards)) if by else 0
        share = weights * part.weights[:, number]
        weight = float(share.sum())
        if not weight > 0:
            continue
        values = np.empty((len(group.rows), len(statistic.variables)))
        covariance = np.zeros((values.shape[1], values.shape[1]))
        unseen = [column_number for column_number, name in enumerate(statistic.variables) if name in part.hidden]
        for column, name in enumerate(statistic.variables):
            if column in unseen:
                values[:, column] = part.means[number][:, part.hidden.index(name)]
            else:
                values[:, column] = rows.columns[name][group.rows]
        to = [part.hidden.index(statistic.variables[column_number]) for column_number in unseen]
        covariance[np.ix_(unseen, unseen)] = part.covariances[number][np.ix_(to, to)]
        mean = share @ values / weight
        away = values - mean
        yield cell, weight, mean, away.T @ (share[:, None] * away) + weight * covariance
