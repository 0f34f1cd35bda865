"""What the counts of a summary say about the scopes of a model: their margins, all cells in use, their entropy."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.answers import Answer, CountTable
from suffice.array_types import Floats
from suffice.double_double import exact_total
from suffice.engines.junction_tree import TreePlan
from suffice.engines.tree_margins import margins_of_table
from suffice.errors import MergeError, listing
from suffice.models.markov.log_linear import LogLinear
from suffice.statistics import Counts, Statistic, Summary

Names = tuple[Hashable, ...]

#: Cells for each one in use up to which a sparse table is summed as a dense one.
MOST_PASSED = 16


def observed_margin(summary: Summary, scope: Sequence[Hashable]) -> Floats | None:
    """The counts of these variables, axes in the order asked, from any answer that holds them; None if none does."""
    exact = summary.answers.get(Counts(tuple(scope)))
    if isinstance(exact, CountTable):
        return exact.dense()
    holders = [
        question
        for question, answer in summary.answers.items()
        if isinstance(question, Counts) and isinstance(answer, CountTable) and set(scope) <= set(question.variables)
    ]
    if not holders:
        return None
    question = min(holders, key=lambda holder: summary[holder].size)
    return _projected(summary[question], question.variables, scope, summary.domain.shape(scope))


def observed_margins(summary: Summary, scopes: Sequence[Names], plan: Callable[[], TreePlan]) -> list[Floats | None]:
    """The counts of all scopes, as `observed_margin` gives each of them; plan: makes the plan of the scopes.

    Where all variables were counted together in one table of few cells that are not in use, the plan saves most passes
    over it.
    """
    tables = [(question, answer) for question, answer in summary.answers.items() if isinstance(question, Counts)]
    if len(tables) == 1:
        question, answer = tables[0]
        held = {name for scope in scopes for name in scope} <= set(question.variables)
        if held and isinstance(answer, CountTable) and answer.size <= MOST_PASSED * answer.values.size:
            return [*margins_of_table(plan(), answer.dense(), question.variables)]
    return [observed_margin(summary, scope) for scope in scopes]


def counts_by_scope(summary: Summary, model: LogLinear, plan: Callable[[], TreePlan] | None = None) -> Floats:
    """Counts of all scopes of a model (n_cells,), one after another; plan: as in `observed_margins`."""
    known = (
        [observed_margin(summary, scope) for scope in model.scopes]
        if plan is None
        else observed_margins(summary, model.scopes, plan)
    )
    parts = [np.zeros(0)]
    for scope, counts in zip(model.scopes, known, strict=True):
        if counts is None:
            raise MergeError(
                f"The summary does not count {listing(scope)} together; it answers {listing(summary.answers, 3)}. "
                "Summarise the data for this model with suffice.summarize(model, data)."
            )
        parts.append(counts.ravel())
    return np.concatenate(parts)


def joint_counts(summary: Summary, names: tuple[Hashable, ...]) -> tuple[NDArray[Any], Floats] | None:
    """The cells in use (k, variables) and their counts (k,), where the summary counts all variables together."""
    for question, answer in summary.answers.items():
        if isinstance(question, Counts) and isinstance(answer, CountTable) and set(question.variables) == set(names):
            codes, counts = answer.items()
            return codes[:, [question.variables.index(name) for name in names]], counts
    return None


def joint_entropy(summary: Summary, names: tuple[Hashable, ...]) -> float | None:
    """Entropy of the observed joint states in nats, where the summary counts all variables together."""
    joint = joint_counts(summary, names)
    if joint is None or not summary.weight > 0:
        return None
    shares = joint[1] / exact_total(joint[1])
    return -math.fsum((shares * np.log(shares)).tolist())


def answering(summary: Summary, questions: Sequence[Statistic], plan: Callable[[], TreePlan] | None = None) -> Summary:
    """The summary with the answers to these questions, summed from its own; unchanged where it cannot answer them.

    plan: makes the plan whose scopes the questions count, where they are those of one.
    """
    if set(questions) == set(summary.answers):
        return summary
    scopes = [question.variables for question in questions if isinstance(question, Counts)]
    if len(scopes) < len(questions):
        return summary
    known = observed_margins(summary, scopes, plan) if plan else [observed_margin(summary, scope) for scope in scopes]
    answers: dict[Statistic, Answer] = {}
    for question, counts in zip(questions, known, strict=True):
        if counts is None:
            return summary
        answers[question] = CountTable.of(counts)
    return Summary(summary.domain, answers, summary.rows, summary.weight)


def _projected(table: CountTable, names: Names, scope: Sequence[Hashable], shape: tuple[int, ...]) -> Floats:
    axes = [names.index(name) for name in scope]
    if table.cells is None:
        kept = sorted(axes)
        summed = table.values.sum(axis=tuple(axis for axis in range(len(names)) if axis not in kept))
        return np.ascontiguousarray(np.transpose(summed, [kept.index(axis) for axis in axes]))
    if not axes:
        return np.asarray(table.total)
    flat = np.ravel_multi_index([table.cells[:, axis] for axis in axes], shape)
    return np.bincount(flat, table.values, math.prod(shape)).astype(np.float64, copy=False).reshape(shape)
