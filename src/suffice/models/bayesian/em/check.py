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
    scopes = [*counts, *dict.fromkeys(into.by for into in sums.values() if into.by)]
    value = 0.0
    for group in solve_rows(engine, rows.columns, scopes=scopes, calls=1):
        value += float(rows.weights[group.rows] @ group.log_evidence)
        for scope, total in counts.items():
            total += np.tensordot(rows.weights[group.rows], group.marginals[scope], 1)
        for statistic, into in sums.items():
            for cell, moments in (*_seen(rows, group, statistic), *_unseen(rows, group, statistic)):
                into.add(np.array([cell]), *(part[None] for part in moments))
    answers: dict[Statistic, Answer] = {s: into.answer() for s, into in sums.items()}
    answers |= {s: counted(s, counts[s.variables]) for s in statistics if s not in sums}
    return value, answers


#: Weight (), mean (v,) and centred products (v, v).
SumsOfCell = tuple[Floats, Floats, Floats]


def _weighed(values: Floats, weights: Floats, covariance: Floats) -> SumsOfCell:
    """Moments of values (n, v), and the covariance (v, v) that they lack."""
    total = weights.sum()
    mean = weights @ values / total
    away = values - mean
    return total, mean, away.T @ (weights[:, None] * away) + covariance


def _columns_of(rows: ObservedRows, group: RowGroup, statistic: Moments | MomentsBy) -> Floats:
    """The values of a statistic in a group of rows (n, v), NaN where one is missing."""
    nothing = np.full(len(group.rows), np.nan)
    columns = (rows.columns[n][group.rows] if n in rows.columns else nothing for n in statistic.variables)
    return np.stack(list(columns), axis=1)


def _seen(rows: ObservedRows, group: RowGroup, statistic: Moments | MomentsBy) -> Iterator[tuple[int, SumsOfCell]]:
    """What the rows that show all of a statistic add to each cell."""
    values = _columns_of(rows, group, statistic)
    whole = ~np.isnan(values).any(axis=1)
    weights = rows.weights[group.rows][whole, None]
    if isinstance(statistic, MomentsBy) and statistic.by:
        weights = weights * group.marginals[statistic.by].reshape(len(values), -1)[whole]
    nothing = np.zeros((values.shape[1], values.shape[1]))
    for cell in np.flatnonzero(weights.sum(axis=0) > 0).tolist():
        yield cell, _weighed(values[whole], weights[:, cell], nothing)


def _unseen(rows: ObservedRows, group: RowGroup, statistic: Moments | MomentsBy) -> Iterator[tuple[int, SumsOfCell]]:
    """What rows that miss some of it add, component by component and state by state."""
    by = statistic.by if isinstance(statistic, MomentsBy) else ()
    values, places = _columns_of(rows, group, statistic), [group.order.index(name) for name in statistic.variables]
    for part in group.parts:
        layout = part.layout
        is_hidden = (layout.hidden[:, None, :] == np.array(places)[:, None]).astype(np.float64)  # (k, v, h)
        some = np.flatnonzero(is_hidden.any(axis=(1, 2)))
        if not len(some):
            continue
        shown, take = values[layout.rows[some]], is_hidden[some]
        weights = rows.weights[group.rows][layout.rows[some]][..., None] * part.weights[some]
        for number, states in enumerate(np.ndindex(*part.shape)):
            mass = weights[:, :, number].sum(axis=1)
            if not mass.sum() > 0:
                continue
            known = {**group.states, **dict(zip(part.interface, states, strict=True))}
            cell = int(np.ravel_multi_index([known[name] for name in by], rows.domain.shape(by))) if by else 0
            means = part.means[some, number] @ take.swapaxes(1, 2)
            filled = np.where(take.any(axis=2)[:, None], means, shown)
            lacks = np.einsum("k,kva,kab,kwb->vw", mass, take, part.covariances[some, number], take, optimize=True)
            yield cell, _weighed(filled.reshape(-1, len(places)), weights[:, :, number].ravel(), lacks)
