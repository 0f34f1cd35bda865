"""Arrays and lists of whole numbers that may be a table of counts, where rows of states are expected."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.domain import Variable
from suffice.errors import DataError, listing

#: An axis of a table of counts has at most this many levels; a longer array holds rows.
MOST_LEVELS = 50


def refuse_counts(data: object, columns: object, states: Mapping[Any, Variable], known: Sequence[Hashable]) -> None:
    """Refuse what is a table of counts of the variables of a Markov network, or as likely one as rows of states."""
    counts = _whole_numbers(data)
    if counts is None or counts.ndim != len(known):
        return
    names, shape = list(known), " x ".join(map(str, counts.shape))
    asked = f"fit(table=array, columns={names!r})"
    if counts.ndim > 2 and columns is None:
        raise DataError(
            f"An array of {shape} whole numbers can only be the table of counts of {listing(names)}, and nothing says "
            f"which axis is which. Give one name for each axis: {asked}."
        )
    fits = all(
        name not in states or states[name].card == length for name, length in zip(known, counts.shape, strict=True)
    )
    if counts.ndim != 2 or not fits or not 2 <= len(counts) <= MOST_LEVELS:
        return
    first, second = known
    rows = f"fit({{{first!r}: array[:, 0], {second!r}: array[:, 1]}})"
    if counts.shape[1] == 2:
        raise DataError(
            f"An array of {shape} whole numbers could be the table of counts of {first!r} and {second!r}, or "
            f"{len(counts)} rows. Give counts as {asked}, and rows as {rows}."
        )
    width = None if columns is None or isinstance(columns, str) else len(list(columns))  # type: ignore[call-overload]
    if 2 <= counts.shape[1] <= MOST_LEVELS and width in (None, 2):
        raise DataError(
            f"An array of {shape} whole numbers could be the table of counts of {first!r} and {second!r}, or rows with "
            f"more columns than these. Give counts as {asked}, and rows with a name for each column, by columns= or "
            f"as {rows}."
        )


def refuse_counts_as_rows(data: object, states: Mapping[Any, Variable], nodes: Sequence[Hashable]) -> None:
    """Refuse the table of counts of two nodes, of which a Bayesian network would make rows.

    As rows each of its numbers would be a state that is seen once, and is larger than their number.
    """
    counts = _whole_numbers(data)
    if counts is None or counts.ndim != len(nodes) or len(nodes) < 2 or any(name in states for name in nodes):
        return
    if counts.ndim == 2:
        once = all(len(np.unique(column)) == len(column) for column in counts.T)
        if not (2 <= len(counts) <= MOST_LEVELS and counts.shape[1] == 2 and once and counts.max() > len(counts)):
            return
    shape = " x ".join(map(str, counts.shape))
    raise DataError(
        f"An array of {shape} whole numbers looks like the table of counts of {listing(nodes)}; a Bayesian network "
        "learns from rows. Give a row for each cell, with a column for each node and one that names its count, as in "
        "fit(rows, sample_weight='count'); or rows by name, as in fit({'a': ..., 'b': ...})."
    )


def _whole_numbers(data: object) -> NDArray[Any] | None:
    """An array, or a short list of rows, of whole numbers that are not negative; None where the data are none."""
    if isinstance(data, list | tuple) and data and all(isinstance(row, list | tuple) for row in data):
        data = np.asarray(data) if len({len(row) for row in data}) == 1 and len(data) <= MOST_LEVELS else None
    if not isinstance(data, np.ndarray) or data.dtype.kind not in "iuf" or data.ndim < 2 or not data.size:
        return None
    if data.dtype.kind == "f" and not (np.isfinite(data) & (data == np.floor(data))).all():
        return None
    return data if (data >= 0).all() else None
