"""Columns to a batch: codes of the discrete variables, numbers of the others, weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.domain import Domain, Variable
from suffice.errors import DataError
from suffice.sources.base import Batch, by_kind
from suffice.sources.columns import Column, blocks, code_dtype
from suffice.sources.states import Translation


def assemble(
    columns: Mapping[Any, Column],
    domain: Domain,
    translations: Mapping[Any, Translation],
    *,
    rows: slice,
    start: int,
    weights: Floats | None,
) -> Batch:
    """The batch of some rows of resolved columns; `start` is the number of its first row."""
    discrete, real = by_kind(domain)
    size = rows.stop - rows.start
    codes = np.empty((len(discrete), size), code_dtype(max((domain[name].card for name in discrete), default=0)))
    for row, name in enumerate(discrete):
        translations[name].write(rows, codes[row])
    reals, finite = np.empty((len(real), size)), np.ones(len(real), np.bool_)
    # Block by block, so that a matrix stored by rows is read once and not once for each column.
    for block in blocks(size if real else 0):
        span = slice(rows.start + block.start, rows.start + block.stop)
        for row, name in enumerate(real):
            reals[row, block] = columns[name].floats(span)
        # A finite sum has only finite terms, and costs less than looking at each.
        with np.errstate(over="ignore", invalid="ignore"):
            finite &= np.isfinite(reals[:, block].sum(axis=1))
    for row, name in enumerate(real):
        if not finite[row] or domain[name].kind == "count":
            check_numbers(domain[name], reals[row], start)
    return Batch(domain, discrete, codes, real, reals, weights, size, start, finite=bool(finite.all()))


def check_numbers(variable: Variable, values: Floats, start: int) -> None:
    """Raise if a number is infinite or, in a count variable, not one of 0, 1, 2, ...; NaN is a missing value."""
    if (infinite := np.isinf(values)).any():
        row = int(infinite.argmax())
        raise DataError(
            f"Column {variable.name!r} holds {float(values[row])!r} (row {start + row}); expected finite numbers. "
            "Correct the value, or leave it out as a missing value (NaN)."
        )
    if variable.kind == "count":
        wrong = (values < 0) | (values != np.floor(values)) & ~np.isnan(values)
        if wrong.any():
            row = int(wrong.argmax())
            raise DataError(
                f"Column {variable.name!r} holds {float(values[row])!r} (row {start + row}); expected a count: 0, 1, "
                "2, ... Correct the value, or leave its row out."
            )
