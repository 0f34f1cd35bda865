"""Columns of Arrow arrays: tables, record batches, and frames that keep Arrow memory."""

from __future__ import annotations

from collections.abc import Hashable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.array_types import Floats
from suffice.domain import Variable, is_missing, state_key
from suffice.errors import DataError
from suffice.sources.arrays import NumberColumn
from suffice.sources.columns import Coded, Column, code_arrow_dictionary
from suffice.sources.objects import ObjectColumn

if TYPE_CHECKING:
    import pyarrow as pa


class ArrowColumn(Column):
    """An Arrow array, whole or in chunks."""

    def __init__(self, name: Hashable, array: pa.Array | pa.ChunkedArray, start: int = 0) -> None:
        """Keep the array; one of nested values can only be handed on."""
        import pyarrow as pa

        super().__init__(name, start)
        if isinstance(array.type, pa.BaseExtensionType):
            array = pa.chunked_array(
                [chunk.storage for chunk in getattr(array, "chunks", [array])], array.type.storage_type
            )
        self.array = array

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.array)

    @property
    def ordered(self) -> bool:
        """As a dictionary says."""
        return kind_of(self.name, self.array.type) == "category" and bool(self.array.type.ordered)

    def infer(self) -> Variable:
        """By type; a dictionary brings its values as categories."""
        if kind_of(self.name, self.array.type) == "category":
            return category(self.name, self._whole.dictionary.to_pylist())
        return variable_of(self.name, self.array.type)

    @cached_property
    def _whole(self) -> Any:
        """One array; chunks of a dictionary may differ in their values and are brought together."""
        import pyarrow as pa

        if not isinstance(self.array, pa.ChunkedArray):
            return self.array
        if self.array.num_chunks == 1:
            return self.array.chunk(0)
        return self.array.combine_chunks()

    def arrow(self) -> Any:
        """As it is; chunks are brought together, and a dictionary is written out."""
        import pyarrow.types as types

        return self._whole.dictionary_decode() if types.is_dictionary(self._whole.type) else self._whole

    def _plain(self) -> NumberColumn:
        """Numbers as NumPy."""
        array = self._whole
        missing = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
        filled = array.fill_null(False if str(array.type) == "bool" else 0) if array.null_count else array
        return NumberColumn(self.name, filled.to_numpy(zero_copy_only=False), missing, self.start)

    def code(self) -> Coded:
        """Dictionaries as they are; text and dates by Arrow's hash table; numbers as NumPy does."""
        import pyarrow as pa
        import pyarrow.types as types

        kind_of(self.name, self.array.type)
        array = self._whole
        if types.is_null(array.type):
            return Coded(np.zeros(len(array), np.uint8), ())
        if types.is_boolean(array.type) or types.is_integer(array.type):
            return self._plain().code()
        if types.is_floating(array.type):
            return NumberColumn(self.name, self.floats(slice(0, len(array))), None, self.start).code()
        if types.is_decimal(array.type) or types.is_interval(array.type):
            return ObjectColumn(self.name, array.to_pylist(), self.start).code()
        if not types.is_dictionary(array.type):
            array = array.dictionary_encode()
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks()
        return code_arrow_dictionary(array)

    def floats(self, rows: slice) -> Floats:
        """As float64; text and dates are errors, but a dictionary of numbers is read."""
        import pyarrow.types as types

        array = self._whole[rows.start : rows.stop]
        if types.is_dictionary(array.type):
            array = array.dictionary_decode()
        numeric = types.is_floating(array.type) or types.is_integer(array.type) or types.is_boolean(array.type)
        if not (numeric or types.is_decimal(array.type) or types.is_null(array.type)):
            return self._no_numbers(array, rows.start)
        if not types.is_float64(array.type):
            array = _to_float64(array)
        values: Floats = array.to_numpy(zero_copy_only=False)
        return np.where(array.is_null().to_numpy(zero_copy_only=False), np.nan, values) if array.null_count else values

    def _no_numbers(self, array: pa.Array, start: int) -> Floats:
        """Only missing values may stand in a column of text that is read as numbers."""
        for row, value in enumerate(array.to_pylist()):
            if not is_missing(value):
                raise self.not_a_number(value, start + row)
        return np.full(len(array), np.nan)


def _to_float64(array: pa.Array) -> Any:
    """Numbers of any width as float64, rounding the integers beyond 2**53 as Python does."""
    import pyarrow as pa
    import pyarrow.compute as compute
    import pyarrow.types as types

    if types.is_boolean(array.type):
        array = array.cast(pa.uint8())
    return compute.cast(array, pa.float64(), safe=False)


def kind_of(name: Hashable, type_: pa.DataType) -> str:
    """``"category"``, ``"discrete"`` or ``"real"`` for an Arrow type; nested types are an error."""
    import pyarrow.types as types

    if types.is_dictionary(type_):
        kind_of(name, type_.value_type)
        return "category"
    if types.is_floating(type_) or types.is_decimal(type_) or types.is_null(type_):
        return "real"
    if types.is_nested(type_):
        raise DataError(f"Column {name!r} has the Arrow type {type_}; expected text, numbers, truth values or dates.")
    return "discrete"


def variable_of(name: Hashable, type_: pa.DataType) -> Variable:
    """The variable that a column of an Arrow type holds, as far as the type alone says."""
    return Variable(name, "real" if kind_of(name, type_) == "real" else "discrete")


def is_number(type_: pa.DataType) -> bool:
    """Whether an Arrow type is one of numbers or truth values."""
    from pyarrow import types

    kinds = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    return any(is_kind(type_) for is_kind in kinds)


def nature_of(type_: pa.DataType) -> str:
    """What values of an Arrow type are in words: numbers (and truth values), text or times; empty of all others."""
    from pyarrow import types

    if types.is_dictionary(type_):
        return nature_of(type_.value_type)
    if is_number(type_):
        return "numbers"
    if any(is_text(type_) for is_text in (types.is_string, types.is_large_string, types.is_string_view)):
        return "text"
    return "times" if types.is_temporal(type_) else ""


def category(name: Hashable, labels: list[Any]) -> Variable:
    """A categorical variable; a missing value among the categories is left out, a repeated one kept once."""
    if set(map(type, labels)) == {str} and len(set(labels)) == len(labels):
        return Variable.discrete(name, labels, "category")
    distinct: dict[Hashable, Any] = {}
    for label in labels:
        if not is_missing(label):
            distinct.setdefault(state_key(label), label)
    return Variable.discrete(name, distinct.values(), "category")
