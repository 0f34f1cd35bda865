"""What may leave the place where rows are: counts and sums of enough rows, and no rows."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from itertools import combinations
from typing import Any, Protocol, runtime_checkable

import numpy as np

from suffice.answers import CountTable, PairSums, PatternTable
from suffice.array_types import Floats
from suffice.checks import whole_number
from suffice.domain import Domain
from suffice.errors import DataError, OptionError, listing
from suffice.grouped_answers import MomentsByTable
from suffice.statistics import Moments, MomentsBy, Statistic, Summary, Sums

#: What distinct rows are asked for, and what gives none.
_INSTEAD = (
    "Networks with missing values or hidden variables have no other summaries: fit them with sf.Rounds, which asks for "
    "sums."
)
_WHAT_TO_DO = "Join rare states to others, leave the column out, or give a smaller minimum_count="


@dataclass(frozen=True)
class Disclosed:
    """What the sums in an answer tell of joint states: a matrix of products of indicators is a table of counts.

    `tables` are sets of columns whose joint counts can be worked out of an answer; names that are no columns are hidden
    and tell nothing. `cells` are questions to the same prepared rows, each with what it counts in words: asked with the
    domain they answer with the number of rows (k,) behind each entry. `expected` says that counts in an answer are
    expected ones: the rows that show their columns are counted in their place. `columns` are read as they stand, and
    hold one value a row.
    """

    tables: tuple[tuple[Hashable, ...], ...] = ()
    cells: tuple[tuple[str, Callable[[Any, Domain], Floats]], ...] = ()
    expected: bool = False
    columns: tuple[Hashable, ...] = ()

    @classmethod
    def by_pairs(cls, parts: Iterable[Iterable[Hashable]]) -> Disclosed:
        """Of products of any two of some parts, each of which is a function of its columns."""
        unique = list(dict.fromkeys(tuple(part) for part in parts))
        return cls(tuple(tuple(dict.fromkeys((*one, *other))) for one, other in combinations(unique, 2)))


@runtime_checkable
class Discloses(Protocol):
    """A work, or a question to what it has prepared, that says what its answers tell."""

    def disclosed(self) -> Disclosed:
        """What they tell, beside the tables of counts that they hold."""


def disclosed_by(*asked: object) -> list[Disclosed]:
    """What a work, a task or its parameters disclose, and whatever they are made of."""
    return [part.disclosed() for one in asked for part in parts_of(one) if isinstance(part, Discloses)]


def columns_told(statistic: Statistic) -> list[tuple[Hashable, ...]]:
    """The sets of columns of which an answer to a statistic tells joint counts, where numbers are indicators."""
    if isinstance(statistic, Moments | MomentsBy):
        names, by = statistic.variables, statistic.by if isinstance(statistic, MomentsBy) else ()
        return [(*pair, *by) for pair in combinations(names, 2)] if len(names) > 1 else [(*names, *by)]
    if isinstance(statistic, Sums):
        return [(name,) for name in statistic.variables]
    return [statistic.columns]


def checked_minimum(minimum_count: int | None) -> int | None:
    """The option, or an error."""
    return None if minimum_count is None else whole_number(minimum_count, "minimum_count")


def check_summary(summary: Summary, minimum: int) -> None:
    """Raise unless every cell in use, and every sum, is of at least so many rows; the message gives no cell away."""
    check_no_rows(summary)
    check_rows(summary.rows, minimum)
    check_tables(summary, minimum)


def check_tables(summary: Summary, minimum: int) -> None:
    """Raise unless every cell in use of its tables is of at least so many rows."""
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
    """Raise where rows can be read from an answer; a record that `holds_rows` may say what gives none by `instead`."""
    for part in parts_of(answer):
        if isinstance(part, PatternTable) or getattr(part, "holds_rows", False):
            columns = f" of {listing(list(part.row_columns))}" if isinstance(part, Summary) else ""
            instead = getattr(part, "instead", _INSTEAD)
            raise DataError(
                f"The answer holds rows{columns}, and none are released. {instead} Or let the rows go, by "
                "allow_rows=True of a site or a summary without minimum_count=."
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
    elif isinstance(value, partial):
        inner = (value.func, *value.args, *value.keywords.values())
    else:
        return
    for part in inner:
        yield from parts_of(part)
