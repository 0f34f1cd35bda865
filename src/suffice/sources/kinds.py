"""What a column is that nobody has declared: the one rule, for data of any kind and from anywhere.

Text, categories and truth values are states. Floats are numbers, unless they are few whole numbers; integers are states
while they are few, and beyond that somebody has to say what they are, as always of dates and durations. A missing value
never decides: where it may have made floats of integers that would be states, the user is told that they are read as
numbers.
"""

from __future__ import annotations

import datetime
from collections.abc import Hashable, Mapping
from typing import NamedTuple

import numpy as np

from suffice.array_types import Floats
from suffice.domain import Domain, Variable
from suffice.errors import DataError, listing
from suffice.sources.columns import Column, blocks

#: Floats that are whole numbers, of which there are at most this many different ones, are states.
MOST_WHOLE_FLOATS = 20
#: Integers of which there are at most this many different ones are states.
MOST_INTEGERS = 50
#: From here on a float does not tell whole numbers apart.
_WHOLE = 2.0**53
#: Types that stand on an axis, so that to call each value a state would be a guess.
_NO_STATES: Mapping[str, tuple[type, ...]] = {
    "dates": (datetime.date, np.datetime64),
    "times of day": (datetime.time,),
    "durations": (datetime.timedelta, np.timedelta64),
    "complex numbers": (complex, np.complexfloating),
}
#: The same for types of packages that are not loaded: of pandas and of Arrow.
_BY_NAME = {"Period": "dates", "MonthDayNano": "durations"}


class WholeFloats:
    """Whether the floats of a column are whole numbers, and how many different ones, whatever is missing.

    Told block by block. `possible` is false from the first value on that is not whole, or is one too many for states.
    """

    def __init__(self) -> None:
        """Nothing read yet."""
        self.possible = True
        self.missing = False
        self._distinct: Floats = np.empty(0)

    def read(self, values: Floats) -> None:
        """Some more rows."""
        # Most columns show by their first values that they are no whole numbers; infinity is none either.
        if self.possible and any(value % 1.0 != 0.0 for value in values[:8].tolist() if value == value):
            self._keep(None)
        held = values[~np.isnan(values)] if self.possible else values
        self.missing |= len(held) < len(values)
        if self.possible and len(held):
            with np.errstate(invalid="ignore"):
                whole = bool(((held == np.floor(held)) & (np.abs(held) < _WHOLE)).all())
            self._keep(np.unique(held) if whole else None)

    def _keep(self, distinct: Floats | None) -> None:
        if distinct is not None:
            self._distinct = np.union1d(self._distinct, distinct)
        self.possible = distinct is not None and len(self._distinct) <= MOST_INTEGERS

    def __add__(self, other: WholeFloats) -> WholeFloats:
        """Both sets of rows."""
        both = WholeFloats()
        both.missing = self.missing or other.missing
        both._keep(np.union1d(self._distinct, other._distinct) if self.possible and other.possible else None)
        return both

    @property
    def few(self) -> bool:
        """Whether there was a value, and all of them were few whole numbers: states."""
        return self.possible and 0 < len(self._distinct) <= MOST_WHOLE_FLOATS

    @property
    def two(self) -> bool:
        """Whether there are one or two of them, so that a sum is a count."""
        return self.possible and 0 < len(self._distinct) <= 2

    @property
    def widened(self) -> bool:
        """Whether a missing value may have made these numbers of integers that would be states."""
        return self.possible and self.missing and len(self._distinct) > MOST_WHOLE_FLOATS


class DecidedKinds(NamedTuple):
    """The domain, and of the columns of floats those that are `few` whole numbers and those that may be `widened`."""

    domain: Domain
    few: tuple[Hashable, ...]
    widened: tuple[Hashable, ...]


def whole_floats(column: Column) -> WholeFloats:
    """Whether a column of floats holds whole numbers alone; most other columns are told by a few rows."""
    whole = WholeFloats()
    for block in blocks(len(column)):
        whole.read(column.floats(block))
        if not whole.possible:
            return whole
    whole.missing = whole.missing or column.shares_missing
    return whole


class Declarations(NamedTuple):
    """How a user declares what one column is: in words, as states and as numbers."""

    states: str
    numbers: str

    def __str__(self) -> str:
        """Both ways."""
        return f"Declare it: {self.states}, or {self.numbers}."


def check_states(variable: Variable, undeclared: Mapping[Hashable, Declarations]) -> None:
    """Raise where a column that nobody declared holds many integers, dates, durations or complex numbers."""
    if variable.name not in undeclared or variable.origin != "seen":
        return
    declare = undeclared[variable.name]
    check_times(variable, f"Declare it: {declare.states}, or give numbers in its place")
    if variable.card <= MOST_INTEGERS:
        return
    if all(type(state) is int for state in variable.states):
        first = listing(variable.states[:3])
        raise DataError(
            f"Column {variable.name!r} holds more than {MOST_INTEGERS} different integers ({first}, ...), which "
            f"may be states or numbers, and nobody has declared which. {declare}"
        )


def check_times(variable: Variable, advice: str) -> None:
    """Raise where states are points of time, spans of time or complex numbers; advice: what to do, without the end."""
    for kind in {*map(type, variable.states)} - {str, int, float, bool}:
        word = next((word for word, kinds in _NO_STATES.items() if issubclass(kind, kinds)), None)
        word = _BY_NAME.get(kind.__name__, word)
        if word is None:
            continue
        shown = next(state for state in variable.states if type(state) is kind)
        if word == "complex numbers":
            raise DataError(
                f"Column {variable.name!r} holds complex numbers ({shown}, ...); expected text, real numbers, truth "
                "values or states. Give its real and its imaginary part as columns of their own."
            )
        instead = "such as days since the first" if word == "dates" else "such as seconds"
        raise DataError(
            f"Column {variable.name!r} holds {word} ({shown}, ...), which may be states or numbers, and nobody has "
            f"declared which. {advice}, {instead}."
        )


def check_declared(domain: Domain, undeclared: Mapping[Hashable, Declarations]) -> None:
    """The same for all variables of a domain, once all rows are read."""
    for name in undeclared:
        if name in domain:
            check_states(domain[name], undeclared)
