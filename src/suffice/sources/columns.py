"""A column of rows in memory: its kind, its dictionary form, its numbers."""

from __future__ import annotations

import decimal
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.domain import Variable, as_python
from suffice.errors import DataError, require

if TYPE_CHECKING:
    import pyarrow as pa

Codes = NDArray[np.unsignedinteger[Any]]

#: Rows handled at a time where temporaries are needed: they stay in the cache and below the allocator's mmap threshold.
BLOCK_ROWS = 8_192
#: Rows from which loading pyarrow to build a dictionary pays.
_MANY_ROWS = 100_000
#: Labels up to which a comparison for each of them is faster than a look-up for each row.
_FEW_LABELS = 8


def code_dtype(card: int) -> type[np.unsignedinteger[Any]]:
    """The narrowest type that holds the codes 0 to card - 1 and the missing value, card."""
    return np.uint8 if card <= 0xFF else np.uint16 if card <= 0xFFFF else np.uint32


def arrow_pays(rows: int) -> bool:
    """Whether so many values are better told apart by Arrow's hash table, where pyarrow is installed."""
    return rows >= _MANY_ROWS and find_spec("pyarrow") is not None


def blocks(rows: int, size: int = BLOCK_ROWS) -> Iterator[slice]:
    """Consecutive ranges of rows."""
    return (slice(start, min(start + size, rows)) for start in range(0, rows, size))


@dataclass(frozen=True)
class Coded:
    """Dictionary form: row i holds ``labels[indices[i]]``; the index ``len(labels)`` is a missing value.

    Labels may lack a row, and two of them may be the same state.
    """

    indices: Codes
    labels: Sequence[Hashable]

    @cached_property
    def occurs(self) -> NDArray[np.bool_]:
        """Whether each label has a row (labels,)."""
        if self.indices.dtype == np.uint8:
            return self._occurs_among_bytes()
        occurs = np.zeros(len(self.labels) + 1, dtype=np.bool_)
        for block in blocks(len(self.indices)):
            # Most labels turn up in the first block; a few that do not are looked for one by one.
            missing = np.flatnonzero(~occurs[:-1])
            if len(missing) == 0:
                break
            if len(missing) > _FEW_LABELS:
                occurs[self.indices[block]] = True
            for label in missing[:_FEW_LABELS]:
                occurs[label] |= (self.indices[block] == label).any()
        return occurs[:-1]

    def _occurs_among_bytes(self) -> NDArray[np.bool_]:
        """By looks for single bytes, which is the fastest there is."""
        left = list(range(len(self.labels)))
        for block in blocks(len(self.indices)):
            if not left:
                break
            met = self.indices[block].tobytes()
            left = [label for label in left if label not in met]
        occurs = np.ones(len(self.labels), dtype=np.bool_)
        occurs[left] = False
        return occurs


class Column(ABC):
    """One column; `start` is the number of its first row, for messages."""

    def __init__(self, name: Hashable, start: int = 0) -> None:
        """Keep name and place."""
        self.name = name
        self.start = start

    @abstractmethod
    def __len__(self) -> int:
        """Number of rows."""

    @abstractmethod
    def infer(self) -> Variable:
        """The variable this column holds, by its type."""

    @property
    def ordered(self) -> bool:
        """Whether the type of the column says that its labels are in order."""
        return False

    @property
    def shares_missing(self) -> bool:
        """Whether its type is that of other columns too, of which a value is missing: it may be theirs for that."""
        return False

    @abstractmethod
    def code(self) -> Coded:
        """The dictionary form of all rows."""

    @abstractmethod
    def floats(self, rows: slice) -> Floats:
        """Some rows as float64, NaN for a missing value; text is an error."""

    def arrow(self) -> Any:
        """All rows as one Arrow array, not coded."""
        pa = require("pyarrow", extra="files", purpose="Rows of a table as Arrow arrays")
        coded = self.code()
        missing = coded.indices == len(coded.labels)
        return pa.array(coded.labels).take(pa.array(coded.indices, mask=missing))

    def as_codes(self, variable: Variable) -> NDArray[np.uint8] | None:
        """All rows as they stand, if each of them below the card is the code of that state; None if they are not.

        What is at or above the card may be a missing value or no state at all.
        """
        return None

    def discrete(self) -> Variable:
        """A discrete variable whose states are yet to be found."""
        return Variable(self.name, "discrete")

    def real(self) -> Variable:
        """A real variable."""
        return Variable(self.name, "real")

    def not_a_number(self, value: object, row: int) -> DataError:
        """The error for a value that is no number where one is expected; `row` counts from `start`."""
        value = as_python(value)
        return DataError(
            f"Column {self.name!r} holds {value!r} ({type(value).__name__}) (row {self.start + row}); expected a real "
            "number. Correct the value, or leave its row out."
        )


def number_label(value: Any) -> Any:
    """The label of a number: an integer where it is whole, so that it does not depend on how it was stored."""
    if not isinstance(value, float | decimal.Decimal):
        return value
    number: Any = value
    return int(number) if number == number and abs(number) < 2**53 and number == int(number) else value


def code_arrow_dictionary(array: pa.DictionaryArray) -> Coded:
    """From an Arrow dictionary array."""
    labels = array.dictionary.to_pylist()
    indices = array.indices.fill_null(len(labels)) if array.indices.null_count else array.indices
    return Coded(indices.to_numpy(zero_copy_only=False).astype(code_dtype(len(labels)), copy=False), labels)
