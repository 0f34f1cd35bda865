"""Hidden states matched to true labels."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from suffice.domain import sort_states
from suffice.errors import DataError


def match(path: Sequence[Any], truth: Sequence[Any], names: Sequence[Hashable]) -> dict[Hashable, Hashable]:
    """The true label of each state, one to one, that makes the most steps agree; None for a state left over."""
    from scipy.optimize import linear_sum_assignment

    if len(path) != len(truth):
        raise DataError(f"There are {len(truth)} true labels for {len(path)} steps; give one a step.")
    labels = sort_states(truth)
    rows, columns = {s: i for i, s in enumerate(names)}, {s: i for i, s in enumerate(labels)}
    table = np.zeros((len(names), len(labels)))
    for state, label in zip(path, truth, strict=True):
        table[rows[state], columns[label]] += 1
    left, right = linear_sum_assignment(-table)
    found = dict.fromkeys(names)
    found.update({names[i]: labels[j] for i, j in zip(left.tolist(), right.tolist(), strict=True)})
    return found
