"""What a column is that nobody has declared: the one rule, for data of any kind and from anywhere.

Text, categories, truth values and dates are states. Floats are numbers, unless they are few whole numbers; integers are
states while they are few, and beyond that somebody has to say what they are. A missing value never decides: where it
may have made floats of integers that would be states, the user is told that they are read as numbers.
"""

from __future__ import annotations

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


def check_few_integers(variable: Variable, undeclared: Mapping[Hashable, str]) -> None:
    """Raise where a column that nobody declared holds many integers; `undeclared` says of each what is to be done."""
    if variable.card <= MOST_INTEGERS or variable.name not in undeclared or variable.origin != "seen":
        return
    if all(type(state) is int for state in variable.states):
        first = listing(variable.states[:3])
        raise DataError(
            f"Column {variable.name!r} holds more than {MOST_INTEGERS} different integers ({first}, ...), which "
            f"may be states or numbers, and nobody has declared which. {undeclared[variable.name]}"
        )


def check_declared(domain: Domain, undeclared: Mapping[Hashable, str]) -> None:
    """The same for all variables of a domain, once all rows are read."""
    for name in undeclared:
        if name in domain:
            check_few_integers(domain[name], undeclared)
