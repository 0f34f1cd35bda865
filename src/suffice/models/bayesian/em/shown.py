"""Nodes whose whole families all rows show: EM need not know them, and they are learned from the rows as they are.

Given its family, such a factor is a number of each row: it says nothing about what is hidden. In the E-step any node
without parents can stand in its place.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from suffice.answers import PatternTable
from suffice.domain import Domain
from suffice.errors import OptionError, listing
from suffice.models.bayesian.queries.plain import is_plain
from suffice.models.bayesian.queries.rewritten import stand_in
from suffice.models.em.rows import Rows
from suffice.statistics import CompleteRows, Summary


def stand_ins(
    rows: Rows, families: Mapping[Hashable, Domain], learners: Mapping[Hashable, Any], given: Mapping[Hashable, Any]
) -> dict[Hashable, Any]:
    """By name what stands for the nodes that EM cannot learn; a family with gaps is an error that says what to do."""
    found = {}
    for name, family in families.items():
        fixed = name in given
        if is_plain(given[name]) if fixed else not getattr(learners[name], "needs_rows", lambda family: False)(family):
            continue
        hidden = [column for column in family.names if not _is_shown(rows, column)]
        if hidden:
            raise OptionError(
                f"{name!r} is a GLM node with real columns in its family, and {listing(hidden)} has gaps or is hidden: "
                "its expected statistics have no closed form. EM takes such nodes where every row shows the node and "
                "its parents. Leave the rows with gaps there out, or make it a linear-Gaussian node, or a table of "
                "declared states."
            )
        found[name] = stand_in(family.variables[-1], rows.columns[name])
    return found


def _is_shown(rows: Rows, name: Hashable) -> bool:
    values = rows.columns.get(name)
    return values is not None and not bool((values < 0 if values.dtype.kind == "i" else np.isnan(values)).any())


def family_summary(rows: Rows, family: Domain) -> Summary:
    """The distinct rows of a family that all rows show."""
    table = np.stack([np.asarray(rows.columns[name], dtype=np.float64) for name in family.names], axis=1)
    answer = PatternTable.of(table, rows.weights)
    return Summary(rows.domain, {CompleteRows(family.names): answer}, len(rows.weights), float(rows.weights.sum()))


def difference(rows: Rows, nodes: Mapping[Hashable, Any], others: Mapping[Hashable, Any]) -> float:
    """What the log-likelihood and the log priors of nodes have more than the log-likelihood of their stand-ins."""
    logs = sum(
        float(rows.weights @ (nodes[n].log_prob(rows.columns) - others[n].log_prob(rows.columns))) for n in others
    )
    return logs + float(sum(nodes[name].log_prior() for name in others))
