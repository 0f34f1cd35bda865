"""What may leave the place where rows are: counts and sums of enough rows, and no rows."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from suffice.answers import CountTable, PairSums, PatternTable
from suffice.array_types import Floats
from suffice.checks import whole_number
from suffice.errors import DataError, OptionError, listing
from suffice.grouped_answers import MomentsByTable
from suffice.statistics import Summary

_WHAT_TO_DO = "Join rare states to others, leave the column out, or give a smaller minimum_count="


def checked_minimum(minimum_count: int | None) -> int | None:
    """The option, or an error."""
    return None if minimum_count is None else whole_number(minimum_count, "minimum_count")


def check_summary(summary: Summary, minimum: int) -> None:
    """Raise unless every cell in use, and every sum, is of at least so many rows; the message gives no cell away."""
    check_no_rows(summary)
    check_rows(summary.rows, minimum)
    for question, answer in summary.answers.items():
        if not isinstance(answer, PairSums):  # Sums over all rows.
            check_cells(question.columns, _cells(answer), minimum)


def check_rows(rows: int, minimum: int) -> None:
    """Raise where some rows are too few for their sums to be released."""
    if 0 < rows < minimum:
        raise DataError(
            f"There are fewer rows than minimum_count={minimum}: nothing is released. Join these rows to others, or "
            "give a smaller minimum_count=."
        )


def check_cells(names: Sequence[Hashable], cells: Floats, minimum: int) -> None:
    """Raise where a cell that is in use has fewer rows."""
    rare, used = int(np.count_nonzero((cells > 0) & (cells < minimum))), int(np.count_nonzero(cells))
    if rare:
        raise DataError(
            f"{rare} of the {used} cells in use of {listing(list(names))} have fewer rows than "
            f"minimum_count={minimum}: nothing is released. {_WHAT_TO_DO}."
        )


def _cells(answer: Any) -> Floats:
    """The weights behind the cells of an answer."""
    if isinstance(answer, CountTable):
        return answer.values
    if isinstance(answer, MomentsByTable):
        return answer.weight
    if isinstance(answer, PatternTable):
        return answer.weights
    raise OptionError(f"minimum_count= knows no cells of {type(answer).__name__}; leave it out to release them all.")


def check_no_rows(answer: object) -> None:
    """Raise where rows can be read from an answer."""
    for part in parts_of(answer):
        if isinstance(part, PatternTable) or getattr(part, "holds_rows", False):
            columns = f" of {listing(list(part.row_columns))}" if isinstance(part, Summary) else ""
            raise DataError(
                f"The answer holds rows{columns}, and none are released. Networks with missing values or hidden "
                "variables have no other summaries: fit them with sf.Rounds, which asks for sums. A hidden Markov "
                "model looks at sequences to begin with: give it initial=, transitions= and emissions=. GLM nodes and "
                "some solvers look at single rows: choose others, or let the rows go, by allow_rows=True of a site or "
                "a summary without minimum_count=."
            )


def parts_of(value: Any) -> Iterator[Any]:
    """A value and, one after the other, the records that it is made of; a summary is one record."""
    yield value
    if isinstance(value, Summary):
        return
    if is_dataclass(value) and not isinstance(value, type):
        inner: Any = [getattr(value, field.name) for field in fields(value)]
    elif isinstance(value, Mapping):
        inner = value.values()
    elif isinstance(value, list | tuple):
        inner = value
    else:
        return
    for part in inner:
        yield from parts_of(part)
