"""Columns of Python values: text, mixed types, anything hashable."""

from __future__ import annotations

import decimal
import sys
from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.domain import Variable, as_python, is_missing, state_key
from suffice.errors import DataError, require
from suffice.sources.columns import Coded, Column, arrow_pays, code_arrow_dictionary, code_dtype, number_label

_MISSING_TYPES = frozenset({"NoneType", "NAType", "NaTType"})
_TRUTHS = (bool, np.bool_)
_WHOLES = (int, np.integer)
_NUMBERS = (int, float, np.integer, np.floating, decimal.Decimal)
#: Rows looked at to see whether a column repeats its objects.
_SAMPLE = 4_096


class ObjectColumn(Column):
    """Python values: a list or a NumPy array of objects or text."""

    def __init__(self, name: Hashable, values: Sequence[Any] | NDArray[Any], start: int = 0) -> None:
        """Keep the values."""
        super().__init__(name, start)
        self._given = values

    def __len__(self) -> int:
        """Number of rows."""
        return len(self._given)

    @property
    def values(self) -> Sequence[Any]:
        """The values in a list; not kept, as a long list slows every run of the garbage collector down."""
        return self._given.tolist() if isinstance(self._given, np.ndarray) else self._given

    @property
    def _is_text_array(self) -> bool:
        """Whether the values are a NumPy array of text of a fixed width, which has no missing values."""
        return isinstance(self._given, np.ndarray) and self._given.dtype.kind == "U"

    @cached_property
    def types(self) -> frozenset[type]:
        """Types of the values, without those that only stand for missing values."""
        if self._is_text_array:
            return frozenset({str} if len(self) else ())
        types = {kind for kind in set(map(type, self.values)) if kind.__name__ not in _MISSING_TYPES}
        if float in types and all(is_missing(value) for value in self.values if type(value) is float):
            types.remove(float)
        return frozenset(types)

    def infer(self) -> Variable:
        """Numbers of which one is not whole by type are real; anything else is discrete."""
        if isinstance(next((value for value in self._given if not is_missing(value)), None), str):
            return self.discrete()
        numbers = all(issubclass(kind, _NUMBERS) and not issubclass(kind, _TRUTHS) for kind in self.types)
        return self.real() if numbers and any(not issubclass(kind, _WHOLES) for kind in self.types) else self.discrete()

    def code(self) -> Coded:
        """By the identity of objects where they repeat, else by value; types are told apart."""
        if arrow_pays(len(self)):
            if self._is_text_array:
                return _code_text_array(np.ascontiguousarray(self._given))
            objects = self._objects()
            if len(np.unique(_identities(objects[:_SAMPLE]))) <= _SAMPLE // 4:
                return self._code_by_identity(objects)
            if self.types == {str}:
                return code_texts(self.values)
        return self._code_by_value()

    def _objects(self) -> NDArray[np.object_]:
        if isinstance(self._given, np.ndarray) and self._given.dtype == object:
            return np.ascontiguousarray(self._given)
        return np.fromiter(self._given, object, len(self))

    def _code_by_identity(self, objects: NDArray[np.object_]) -> Coded:
        """One look at each distinct object: a table read from a file holds a few of them many times."""
        import pyarrow as pa

        codes = pa.array(_identities(objects)).dictionary_encode().indices.to_numpy()
        # Entries of the dictionary come in the order of rows, so that each first row of one raises the maximum.
        firsts = np.flatnonzero(np.diff(np.maximum.accumulate(codes), prepend=-1))
        distinct = ObjectColumn(self.name, objects[firsts], self.start)
        coded = distinct._code_by_value(firsts)
        return Coded(np.take(coded.indices, codes), coded.labels)

    def _code_by_value(self, rows: NDArray[np.intp] | None = None) -> Coded:
        """By Python dictionaries; `rows` are the rows that the values come from, for messages."""
        alike = self.types <= {str} or all(
            issubclass(k, (*_WHOLES, float)) and not issubclass(k, _TRUTHS) for k in self.types
        )
        try:
            return _code_by_value(self.values) if alike else _code_by_key(self.values)
        except TypeError:
            index = next(index for index, value in enumerate(self.values) if not _is_hashable(value))
            row, value = self.start + (index if rows is None else int(rows[index])), self.values[index]
            raise DataError(
                f"Column {self.name!r} holds {value!r} ({type(value).__name__}) (row {row}), which cannot be a state: "
                "states must be hashable. Give text, numbers, dates or tuples."
            ) from None

    def floats(self, rows: slice) -> Floats:
        """As float64; a value that is no number is an error."""
        values = self._given[rows]
        if not all(issubclass(kind, (*_NUMBERS, *_TRUTHS)) for kind in self.types):
            for row, value in enumerate(values):
                if not isinstance(value, (*_NUMBERS, *_TRUTHS)) and not is_missing(value):
                    raise self.not_a_number(value, (rows.start or 0) + row)
        try:
            with np.errstate(over="ignore"):  # Wider floats beyond float64, which are refused as infinite.
                return np.array([np.nan if is_missing(value) else value for value in values], dtype=np.float64)
        except OverflowError:
            raise self._too_large(values, rows.start or 0) from None

    def arrow(self) -> Any:
        """By the types of the values; those that are of no common type are an error."""
        pa = require("pyarrow", extra="files", purpose="Rows of a table as Arrow arrays")
        try:
            return pa.array(self.values, from_pandas=True)
        except pa.ArrowException as error:
            raise DataError(f"Column {self.name!r} holds values that make no array of one type: {error}") from None

    def _too_large(self, values: Sequence[Any] | NDArray[Any], start: int) -> DataError:
        """The error for the first whole number that no float64 can hold."""
        row, value = next(
            (row, v) for row, v in enumerate(values) if isinstance(v, int) and abs(v) > sys.float_info.max
        )
        # Written as a decimal, since Python refuses to write out whole numbers of thousands of digits.
        return DataError(
            f"Column {self.name!r} holds {decimal.Decimal(value):.6e} (row {self.start + start + row}); expected "
            f"numbers of at most {sys.float_info.max:.1e}. Correct the value, or give the column in a larger unit."
        )


def _identities(objects: NDArray[np.object_]) -> NDArray[np.intp]:
    """The addresses of the objects, which NumPy holds in place of their values; a view."""
    return np.ndarray(len(objects), np.intp, buffer=objects)


def code_texts(values: Sequence[Any]) -> Coded:
    """Text and missing values by pyarrow's hash table."""
    import pyarrow as pa

    return code_arrow_dictionary(pa.array(values, type=pa.large_string(), from_pandas=True).dictionary_encode())


def _code_text_array(values: NDArray[np.str_]) -> Coded:
    """Text of a fixed width by pyarrow's hash table, as the bytes that NumPy keeps: no text is made but the labels."""
    import pyarrow as pa

    if values.dtype.itemsize == 0:
        return Coded(np.zeros(len(values), np.uint8), ("",))
    width = pa.binary(values.dtype.itemsize)
    coded = pa.Array.from_buffers(width, len(values), [None, pa.py_buffer(values)]).dictionary_encode()
    labels = np.frombuffer(coded.dictionary.buffers()[1], values.dtype, len(coded.dictionary)).tolist()
    return Coded(coded.indices.to_numpy().astype(code_dtype(len(labels))), labels)


def _code_by_value(values: Sequence[Any]) -> Coded:
    """By Python's own hash: only for types in which equal values are the same state."""
    distinct = dict.fromkeys(values)
    labels = [value for value in distinct if not is_missing(value)]
    codes = dict.fromkeys(distinct, len(labels)) | {label: code for code, label in enumerate(labels)}
    indices = np.fromiter(map(codes.__getitem__, values), code_dtype(len(labels)), len(values))
    return Coded(indices, [number_label(as_python(label)) for label in labels])


def _code_by_key(values: Sequence[Any]) -> Coded:
    """One value after the other, told apart by type: ``"1"``, ``1`` and ``True`` differ."""
    codes: dict[Hashable, int] = {}
    labels: list[Hashable] = []
    signed = np.empty(len(values), np.int64)
    for row, value in enumerate(values):
        if is_missing(value):
            signed[row] = -1
            continue
        key = state_key(value)
        if key not in codes:
            codes[key] = len(labels)
            labels.append(number_label(as_python(value)))
        signed[row] = codes[key]
    indices = np.where(signed < 0, len(labels), signed).astype(code_dtype(len(labels)))
    return Coded(indices, labels)


def _is_hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
