"""Finding what is equal: rows of codes among distinct rows, and things with equal keys."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray


def row_positions(table: NDArray[Any], rows: NDArray[Any]) -> NDArray[np.intp]:
    """Position in `table` (k, d), distinct rows, of each of `rows` (n, d); -1 where it is not there."""
    if not table.shape[1]:
        return np.zeros(len(rows), dtype=np.intp) if len(table) else np.full(len(rows), -1, dtype=np.intp)
    joined = np.concatenate([table, rows]).astype(np.int64)
    _, label = np.unique(joined, axis=0, return_inverse=True)
    label = label.ravel()
    position = np.full(int(label.max(initial=-1)) + 1, -1, dtype=np.intp)
    position[label[: len(table)]] = np.arange(len(table))
    return position[label[len(table) :]]


def numbers_alike(count: int, key: Callable[[int], Hashable]) -> dict[Hashable, list[int]]:
    """Numbers with equal keys together."""
    groups: dict[Hashable, list[int]] = {}
    for number in range(count):
        groups.setdefault(key(number), []).append(number)
    return groups
