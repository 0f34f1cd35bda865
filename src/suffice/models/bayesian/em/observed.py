"""Nodes whose whole families all rows show: EM need not know them, and they are learned from the rows as they are.

Given its family, such a factor is a number of each row: it says nothing about what is hidden. In the E-step any node
without parents can stand in its place.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from suffice.answers import PatternTable
from suffice.domain import MOST_AXES, Domain
from suffice.engines.memory import in_words
from suffice.errors import EstimateError, OptionError, SizeError, listing
from suffice.models.bayesian.nodes.contract import NodeLearner
from suffice.models.bayesian.nodes.linear_gaussian_learner import LinearGaussianLearner
from suffice.models.bayesian.nodes.table import MOST_CELLS, TableNode
from suffice.models.bayesian.nodes.table_learner import TableLearner
from suffice.models.bayesian.queries.evidence_reduction import placeholder
from suffice.models.em.rows import ObservedRows, batch_of
from suffice.sources.tally import tally
from suffice.statistics import CompleteRows, Statistic, Summary

#: Numbers that the expected statistics of a regression may have; beyond, it is learned from rows that show its family.
WIDE = 2**16


def placeholders(
    rows: ObservedRows,
    families: Mapping[Hashable, Domain],
    learners: Mapping[Hashable, Any],
    given: Mapping[Hashable, Any],
) -> dict[Hashable, Any]:
    """By name what stands for tables whose families all rows show, and for nodes that EM cannot learn.

    A family of the latter with missing values is an error that says what to do.
    """
    others, full = {}, {name for name in rows.columns if rows.show([name])}
    for name, family in families.items():
        hidden = [column for column in family.names if column not in full]
        if _is_expected(name, family, learners, given):
            if hidden or not _counted_as_seen(family, given.get(name, learners[name])):
                if name not in given:
                    _check_size(family, learners[name], hidden)
                continue
        elif hidden:
            raise OptionError(
                f"{name!r} is a GLM node with real columns in its family, and {listing(hidden)} has missing values or "
                "is hidden: its expected statistics have no closed form. EM takes such nodes where every row shows the "
                "node and its parents. Leave the rows with missing values there out, or make it a linear-Gaussian "
                "node, or a table of declared states."
            )
        others[name] = placeholder(family.variables[-1], rows.columns[name])
    return others


def _is_expected(
    name: Hashable, family: Domain, learners: Mapping[Hashable, Any], given: Mapping[Hashable, Any]
) -> bool:
    """Whether EM could learn a node, or hold a fixed one, where its family has missing values."""
    if name in given:
        return bool(given[name].is_exact)
    return not learners[name].needs_rows(family)


def _numbers(family: Domain) -> int:
    """How many numbers the expected statistics of a family are: counts, or products of its real columns."""
    reals = sum(variable.kind != "discrete" for variable in family.variables)
    return math.prod(v.card for v in family.variables if v.kind == "discrete") * max(reals, 1) ** 2


def _counted_as_seen(family: Domain, node: Any) -> bool:
    """Whether a node whose family all rows show is left to the rows: a table, or a regression with many states."""
    if isinstance(node, TableLearner | TableNode):
        return True
    return isinstance(node, LinearGaussianLearner) and _numbers(family) > WIDE


def _check_size(family: Domain, learner: NodeLearner, hidden: Sequence[Hashable]) -> None:
    """Refuse a family with missing values whose expected statistics do not fit; a wide noisy-OR has its own way."""
    size, counted = _numbers(family), isinstance(learner.of_one, TableLearner | LinearGaussianLearner)
    if not counted or (size <= MOST_CELLS and len(family) <= MOST_AXES):
        return
    name = family.names[-1]
    why = f"{listing(hidden)} has missing values or is hidden" if hidden else f"{name!r} is tied"
    raise SizeError(
        f"EM needs a number for every joint state of {name!r} and its parents {listing(family.names[:-1])}: {size:,} "
        f"({in_words(8 * size)}); the limit is {MOST_CELLS:,}, and {MOST_AXES} variables. A node is learned without "
        f"them where every row shows it and its parents and it is not tied; {why}. Leave the rows with missing "
        f"values there out, give {name!r} fewer parents or states, or a kind that grows with its parents: "
        f"nodes={{{name!r}: 'noisy-or'}} or 'glm'."
    )


def family_summary(rows: ObservedRows, family: Domain, learner: NodeLearner) -> Summary:
    """What a learner asks about a family that all rows show: counts, moments, or its distinct rows."""
    asked: tuple[Statistic, ...] = learner.statistics(family)
    if not any(isinstance(question, CompleteRows) for question in asked):
        return tally(batch_of(replace(rows, domain=family), rows.columns), asked, "available")
    table = np.stack([np.asarray(rows.columns[name], dtype=np.float64) for name in family.names], axis=1)
    answer = PatternTable.of(table, rows.weights)
    return Summary(rows.domain, {CompleteRows(family.names): answer}, len(rows.weights), float(rows.weights.sum()))


def difference(rows: ObservedRows, nodes: Mapping[Hashable, Any], others: Mapping[Hashable, Any]) -> float:
    """What the log-likelihood and the log priors of nodes have more than the log-likelihood of their placeholders."""
    logs = sum(
        float(rows.weights @ (nodes[n].log_prob(rows.columns) - others[n].log_prob(rows.columns))) for n in others
    )
    return logs + float(sum(nodes[name].log_prior() for name in others))


def never_shown(rows: ObservedRows, nodes: Mapping[Hashable, Any]) -> tuple[str, ...]:
    """States that no row shows, of tables without a prior whose nodes all rows show, as directions in words.

    Whatever the parents are, hidden or not, such a state has no part in any row: to move its probability to a state
    that occurs raises the likelihood, so that at a maximum it has none.
    """
    directions = []
    for name, node in nodes.items():
        if isinstance(node, TableNode) and node.alpha is None and rows.show([name]):
            weight = np.bincount(rows.columns[name], rows.weights, minlength=node.card)
            given = " | ..." if len(node.domain) > 1 else ""
            states = node.domain.variables[-1].states
            directions += [
                f"log P({name}={states[code]}{given}) -> -inf (never seen)" for code in np.flatnonzero(weight <= 0)
            ]
    return tuple(directions)


def never_in_leaves(rows: ObservedRows, leaves: Mapping[Hashable, Any], learners: Mapping[Hashable, Any]) -> list[str]:
    """Events of tables without a prior that no row shows though it shows their parents, as directions in words.

    `leaves` are nodes without children. A row with a missing value there says nothing about the node, as its
    probabilities add up to 1. Where all other rows show the parents too, the likelihood of the node is that of those
    rows, which are complete.
    """
    directions: list[str] = []
    for name, node in leaves.items():
        column = rows.columns.get(name)
        if not isinstance(node, TableNode) or node.alpha is not None or column is None:
            continue
        seen = column >= 0
        columns = {one: values[seen] for one, values in rows.columns.items()}
        some = replace(rows, columns=columns, weights=rows.weights[seen])
        if some.show(node.domain.names):
            directions += node.edges(family_summary(some, node.domain, learners[name]))
    return directions


def keeps_inside(nodes: Iterable[Any]) -> bool:
    """Whether the priors alone send the objective to -inf at every edge.

    It is continuous and the likelihood of rows of states at most 1, so that its maximum then lies inside.
    """
    return all(
        isinstance(node, TableNode)
        and node.alpha is not None
        and node.configurations is None
        and bool((node.alpha > (1.0 if node.estimate == "map" else 0.0)).all())
        for node in nodes
    )


def refuse_impossible(rows: ObservedRows, fixed: Mapping[Hashable, Any]) -> None:
    """Raise where a row is impossible under a fixed node, as EM does with those that it holds itself."""
    names = [name for name, node in fixed.items() if np.isneginf(node.log_prob(rows.columns)).any()]
    if names:
        raise EstimateError(
            f"Under the fixed {listing(names)} some row has probability 0, so no parameters make the data possible. "
            "Correct fixed=, or leave those rows out."
        )
