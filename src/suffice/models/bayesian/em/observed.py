"""Nodes whose whole families all rows show: EM need not know them, and they are learned from the rows as they are.

Given its family, such a factor is a number of each row: it says nothing about what is hidden. In the E-step any node
without parents can stand in its place.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from suffice.domain import MOST_AXES, Domain
from suffice.engines.memory import in_words
from suffice.errors import EstimateError, OptionError, SizeError, listing
from suffice.models.bayesian.nodes.contract import NodeLearner
from suffice.models.bayesian.nodes.glm_rows import HeldFamilyRows
from suffice.models.bayesian.nodes.linear_gaussian_learner import LinearGaussianLearner
from suffice.models.bayesian.nodes.table import MOST_CELLS, TableNode
from suffice.models.bayesian.nodes.table_learner import TableLearner
from suffice.models.bayesian.queries.evidence_reduction import placeholder
from suffice.models.em.held_rows import HeldRows, missing
from suffice.models.em.rows import ObservedRows, batch_of
from suffice.sources.reduction import Answers
from suffice.sources.tally import tally
from suffice.statistics import CompleteRows, Statistic, Summary

#: Numbers that the expected statistics of a regression may have; beyond, it is learned from rows that show its family.
WIDE = 2**16


def placeholders(
    rows: HeldRows,
    families: Mapping[Hashable, Domain],
    learners: Mapping[Hashable, Any],
    given: Mapping[Hashable, Any],
) -> dict[Hashable, Any]:
    """By name what stands for tables whose families all rows show, and for nodes that EM cannot learn.

    A family of the latter with missing values is an error that says what to do.
    """
    others, full = {}, {name for name in rows.names if rows.show([name])}
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
        mean, spread = rows.units.get(name, (0.0, 1.0))
        others[name] = placeholder(family.variables[-1], mean, spread**2)
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


def family_summary(rows: HeldRows, family: Domain, learner: NodeLearner) -> Summary:
    """What a learner asks about a family that all rows show: counts, moments, or its rows."""
    asked = learner.statistics(family)
    return complete_summary(rows, family, asked, asked if learner.asks_rows else ())


def complete_summary(
    rows: HeldRows, domain: Domain, asked: Sequence[Statistic], questioned: Collection[Statistic]
) -> Summary:
    """The statistics of columns that all rows show; `questioned` are those whose rows may stay where they are."""
    whole = [q for q in asked if isinstance(q, CompleteRows) and q in questioned and rows.local is None]
    summed = tuple(q for q in asked if q not in whole)
    answers: dict[Statistic, Any] = {q: HeldFamilyRows(rows, (q.variables,)) for q in whole}
    if summed:
        answers |= rows.ask(FamilyStatistics(domain, summed)).answers
    return Summary(domain, {q: answers[q] for q in asked}, rows.count, rows.weight)


@dataclass(frozen=True)
class FamilyStatistics:
    """The answers to what is asked of some columns, from the rows that show them."""

    domain: Domain
    asked: tuple[Statistic, ...]

    def __call__(self, rows: ObservedRows, _: None) -> Summary:
        """Of some rows."""
        return tally(batch_of(replace(rows, domain=self.domain), rows.columns), self.asked, "available")


def difference(rows: HeldRows, nodes: Mapping[Hashable, Any], others: Mapping[Hashable, Any]) -> float:
    """What the log-likelihood and the log priors of nodes have more than the log-likelihood of their placeholders."""
    logs = rows.ask(_log_ratios, {name: (nodes[name], others[name]) for name in others}).parts
    return float(sum(logs)) + float(sum(nodes[name].log_prior() for name in others))


def _log_ratios(rows: ObservedRows, pairs: Mapping[Hashable, tuple[Any, Any]]) -> Answers:
    """Sums over the rows of the logarithms of what one node makes more probable than another."""
    logs = (node.log_prob(rows.columns) - other.log_prob(rows.columns) for node, other in pairs.values())
    return Answers(tuple(float(rows.weights @ log) for log in logs))


def _is_free(node: Any) -> bool:
    """Whether a node is a table whose rows may be any distributions."""
    return isinstance(node, TableNode) and node.independent


def never_shown(rows: HeldRows, nodes: Mapping[Hashable, Any]) -> tuple[str, ...]:
    """States that no row shows, of tables without a prior whose nodes all rows show, as directions in words.

    Whatever the parents are, hidden or not, such a state has no part in any row: to move its probability to a state
    that occurs raises the likelihood, so that at a maximum it has none.
    """
    tables = {n: node for n, node in nodes.items() if _is_free(node) and node.alpha is None}
    shown = {name: node for name, node in tables.items() if rows.show([name])}
    weights = rows.ask(_state_weights, {name: node.card for name, node in shown.items()}).parts if shown else ()
    directions = []
    for (name, node), weight in zip(shown.items(), weights, strict=True):
        given = " | ..." if len(node.domain) > 1 else ""
        states = node.domain.variables[-1].states
        directions += [
            f"log P({name}={states[code]}{given}) -> -inf (never seen)" for code in np.flatnonzero(weight <= 0)
        ]
    return tuple(directions)


def _state_weights(rows: ObservedRows, cards: Mapping[Hashable, int]) -> Answers:
    """The weight of each state of variables that all rows show."""
    return Answers(tuple(np.bincount(rows.columns[n], rows.weights, minlength=card) for n, card in cards.items()))


def never_in_leaves(rows: HeldRows, leaves: Mapping[Hashable, Any], learners: Mapping[Hashable, Any]) -> list[str]:
    """Events of tables without a prior that no row shows though it shows their parents, as directions in words.

    `leaves` are nodes without children. A row with a missing value there says nothing about the node, as its
    probabilities add up to 1. Where all other rows show the parents too, the likelihood of the node is that of those
    rows, which are complete.
    """
    seen = {n: leaf for n, leaf in leaves.items() if _is_free(leaf) and leaf.alpha is None}
    seen = {name: leaf for name, leaf in seen.items() if all(n in rows.seen for n in leaf.domain.names)}
    asked = tuple((leaf.domain, learners[name].statistics(leaf.domain)) for name, leaf in seen.items())
    answers = rows.ask(_LeafStatistics(asked)).parts if seen else ()
    directions: list[str] = []
    for leaf, hidden, summary in zip(seen.values(), answers[::2], answers[1::2], strict=True):
        if hidden == 0:
            directions += leaf.edges(summary)
    return directions


@dataclass(frozen=True)
class _LeafStatistics:
    """Of each family: how many rows show the node and not all parents, and the statistics of those that show it."""

    families: tuple[tuple[Domain, tuple[Statistic, ...]], ...]

    def __call__(self, rows: ObservedRows, _: None) -> Answers:
        parts: list[Any] = []
        for family, asked in self.families:
            shows = ~missing(rows.columns[family.names[-1]])
            some = replace(rows, columns={n: rows.columns[n][shows] for n in family.names}, weights=rows.weights[shows])
            gone = [missing(some.columns[name]) for name in family.names]
            parts += [int(np.logical_or.reduce(gone).sum()), FamilyStatistics(family, asked)(some, None)]
        return Answers(tuple(parts))


def keeps_inside(nodes: Iterable[Any]) -> bool:
    """Whether the priors alone send the objective to -inf at every edge.

    It is continuous and the likelihood of rows of states at most 1, so that its maximum then lies inside.
    """
    return all(
        _is_free(node)
        and node.alpha is not None
        and node.configurations is None
        and bool((node.alpha > (1.0 if node.estimate == "map" else 0.0)).all())
        for node in nodes
    )


def refuse_impossible(rows: HeldRows, fixed: Mapping[Hashable, Any]) -> None:
    """Raise where a row is impossible under a fixed node, as EM does with those that it holds itself."""
    counts = rows.ask(_impossible, fixed).parts if fixed else ()
    names = [name for name, count in zip(fixed, counts, strict=True) if count]
    if names:
        raise EstimateError(
            f"Under the fixed {listing(names)} some row has probability 0, so no parameters make the data possible. "
            "Correct fixed=, or leave those rows out."
        )


def _impossible(rows: ObservedRows, fixed: Mapping[Hashable, Any]) -> Answers:
    """How many rows are impossible under each node."""
    return Answers(tuple(int(np.isneginf(node.log_prob(rows.columns)).sum()) for node in fixed.values()))
