"""Numbers with names, and the text of tables of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from suffice.errors import OptionError, listing, require


class NamedVector(np.ndarray[Any, np.dtype[np.float64]]):
    """Numbers with a name each: ``vector["age"]`` or ``vector[0]``; arithmetic as with any array.

    >>> NamedVector.of([1.5, 2.0], ["age", "dose"])["dose"]
    2.0
    """

    names: tuple[str, ...]

    @classmethod
    def of(cls, values: Any, names: Sequence[str]) -> NamedVector:
        """From values (k, ...) and k names."""
        vector = np.asarray(values, dtype=np.float64).view(cls)
        vector.names = tuple(names)
        return vector

    def __array_finalize__(self, other: Any) -> None:
        """Slices and results of arithmetic keep the names where they still fit."""
        names = getattr(other, "names", ())
        self.names = names if self.ndim and len(names) == len(self) else ()

    def __getitem__(self, key: Any) -> Any:
        """By name, or as in any array."""
        if isinstance(key, str):
            if key not in self.names:
                raise KeyError(f"There is no parameter {key!r}; there are {listing(self.names)}.")
            key = self.names.index(key)
        value = np.asarray(self)[key]
        return float(value) if np.ndim(value) == 0 else value

    def to_dict(self) -> dict[str, Any]:
        """Value by name."""
        return {name: np.asarray(self)[number].tolist() for number, name in enumerate(self.names)}

    def to_series(self) -> Any:
        """A pandas Series by name."""
        pd = require("pandas", extra="all", purpose="to_series")

        return pd.Series(np.asarray(self), index=list(self.names))

    def to_frame(self, columns: Sequence[str] | None = None) -> Any:
        """A pandas DataFrame, one row for each name."""
        pd = require("pandas", extra="all", purpose="to_frame")

        return pd.DataFrame(np.asarray(self), index=list(self.names), columns=columns)

    def __str__(self) -> str:
        """One line a name; without names as any array."""
        if not self.names or self.ndim > 2:
            return str(np.asarray(self))
        rows = [
            [name, *map(number_text, np.atleast_1d(np.asarray(self)[number]))] for number, name in enumerate(self.names)
        ]
        return "\n".join(aligned(rows))

    __repr__ = __str__

    def __reduce__(self) -> Any:
        """Pickle with the names."""
        return (NamedVector.of, (np.asarray(self), self.names))


def aligned(cells: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table: the first column to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))])
        for row in cells
    ]


def in_order(values: Any, names: Sequence[str], what: str) -> Any:
    """Numbers that carry names, in the order asked for; others as they are.

    A pandas Series with labels, a mapping and a `NamedVector` carry names; a table of two axes or more has none that
    could be those of single parameters. Other names are an error, as places would then say something else.
    """
    labels: list[Any] | None = None
    if isinstance(values, Mapping):
        labels, values = list(values), list(values.values())
    elif isinstance(values, NamedVector):
        labels = list(values.names) or None
    elif type(values).__name__ == "Series" and hasattr(values, "index"):
        labels = None if type(values.index).__name__ == "RangeIndex" else values.index.tolist()
    elif hasattr(values, "variables") or hasattr(type(values), "dims"):
        labels = list(getattr(values, "variables", ())) or list(values.dims)
    if labels is None or labels == list(names):
        return values if labels is None else np.asarray(values)
    if len(labels) != len(set(labels)) or set(labels) != set(names):
        raise OptionError(
            f"{what} has the labels {listing(labels)}; expected a number for each of {listing(names)}, by name or as "
            "an array in that order. A table of counts holds no parameters."
        )
    array = np.asarray(values)
    return array[[labels.index(name) for name in names]]


def number_text(value: float) -> str:
    """Six digits; nothing for a number that is not there, inf in words."""
    return f"{value:.6g}" if math.isfinite(value) else str(value)
