"""Hidden states matched to true labels."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from suffice.domain import is_gap, sort_states
from suffice.errors import DataError


def labelled(path: Sequence[Any], truth: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The steps whose true label is known."""
    pairs = [(state, label) for state, label in zip(path, truth, strict=True) if not is_gap(label)]
    if not pairs:
        raise DataError("No step has a true label: there is nothing to compare the states with.")
    return [state for state, _ in pairs], [label for _, label in pairs]


def match(path: Sequence[Any], truth: Sequence[Any], names: Sequence[Hashable]) -> dict[Hashable, Hashable]:
    """The true label of each state, one to one, that makes the most steps agree; None for a state left over."""
    from scipy.optimize import linear_sum_assignment

    labels = sort_states(truth)
    rows, columns = {s: i for i, s in enumerate(names)}, {s: i for i, s in enumerate(labels)}
    table = np.zeros((len(names), len(labels)))
    for state, label in zip(path, truth, strict=True):
        table[rows[state], columns[label]] += 1
    left, right = linear_sum_assignment(-table)
    found = dict.fromkeys(names)
    found.update({names[i]: labels[j] for i, j in zip(left.tolist(), right.tolist(), strict=True)})
    return found
