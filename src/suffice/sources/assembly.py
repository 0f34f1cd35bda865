"""Columns to a batch: codes of the discrete variables, numbers of the others, weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.domain import Domain, Variable
from suffice.errors import DataError
from suffice.sources.base import Batch, by_kind
from suffice.sources.columns import Column, blocks, code_dtype
from suffice.sources.states import Translation

#: Numbers from which it pays to look whether columns lie one behind the other and need not be copied.
_LARGE = 1 << 20


def assemble(
    columns: Mapping[Any, Column],
    domain: Domain,
    translations: Mapping[Any, Translation],
    *,
    rows: slice,
    start: int,
    weights: Floats | None,
    passing: bool = False,
) -> Batch:
    """The batch of some rows of resolved columns; `start` is the number of its first row.

    passing: nobody keeps the batch, whose numbers may then be those of the columns themselves.
    """
    discrete, real = by_kind(domain)
    size = rows.stop - rows.start
    codes = np.empty((len(discrete), size), code_dtype(max((domain[name].card for name in discrete), default=0)))
    for row, name in enumerate(discrete):
        translations[name].write(rows, codes[row])
    passing = passing and len(real) * size >= _LARGE
    laid = _as_matrix([columns[name].floats(rows) for name in real]) if passing else None
    reals = np.empty((len(real), size)) if laid is None else laid
    finite = np.ones(len(real), np.bool_)
    # Block by block, so that a matrix stored by rows is read once and not once for each column.
    for block in blocks(size if real else 0):
        span = slice(rows.start + block.start, rows.start + block.stop)
        for row, name in enumerate(real if laid is None else ()):
            reals[row, block] = columns[name].floats(span)
        # A finite sum has only finite terms, and costs less than looking at each.
        with np.errstate(over="ignore", invalid="ignore"):
            finite &= np.isfinite(reals[:, block].sum(axis=1))
    for row, name in enumerate(real):
        if not finite[row] or domain[name].kind == "count":
            check_numbers(domain[name], reals[row], start)
    return Batch(domain, discrete, codes, real, reals, weights, size, start, finite=bool(finite.all()))


def _as_matrix(rows: Sequence[Floats]) -> Floats | None:
    """Rows of one array at equal distances, as the matrix (d, n) that they are in memory; None where they are not."""
    first = rows[0]
    places = [row.__array_interface__["data"][0] for row in rows]
    step = places[1] - places[0] if len(rows) > 1 else first.nbytes
    if (
        first.base is None
        or step < first.nbytes
        or places != [places[0] + number * step for number in range(len(rows))]
    ):
        return None
    if not all(row.base is first.base and row.flags.c_contiguous and row.dtype == first.dtype for row in rows):
        return None
    return np.lib.stride_tricks.as_strided(first, (len(rows), len(first)), (step, first.itemsize), writeable=False)


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
