"""Rows that show whole families: the factor of such a family is a number of each row, and its table need not fit."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.domain import Domain
from suffice.models.bayesian.nodes.contract import Columns
from suffice.models.bayesian.nodes.table import TableNode


def without_observed(
    nodes: Mapping[Hashable, Any], columns: Columns, n: int
) -> tuple[dict[Hashable, Any], Floats] | None:
    """The nodes, equal probabilities in place of tables whose families all rows show, and what each row has more (n,).

    Log P(row) under all nodes is that under those returned plus the second answer. None where no row's distribution
    becomes simpler: no node of states with parents has a family that all rows show.
    """
    full = {name for name, codes in columns.items() if codes.dtype.kind == "i" and (codes >= 0).all()}
    shown = [name for name, node in nodes.items() if len(node.domain) > 1 and full >= {*node.domain.names}]
    if not shown:
        return None
    others, logs = dict(nodes), np.zeros(n)
    for name in shown:
        variable = nodes[name].domain[name]
        others[name] = TableNode.given(Domain([variable]), np.full(variable.card, 1.0 / variable.card))
        logs += nodes[name].log_prob(columns) + math.log(variable.card)
    return others, logs
