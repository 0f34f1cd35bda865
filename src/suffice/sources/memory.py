"""Tables in memory: columns are coded once, whole, and cut into batches."""

from __future__ import annotations

import operator
from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.domain import Domain, Variable
from suffice.errors import DataError
from suffice.sources import base
from suffice.sources.arrays import NumberColumn, array_column
from suffice.sources.assembly import assemble
from suffice.sources.base import Batch, Layout, Piece, Source, by_kind
from suffice.sources.columns import BLOCK_ROWS, Coded, Codes, Column, blocks
from suffice.sources.held import Settled
from suffice.sources.kinds import WholeFloats, check_declared, whole_floats
from suffice.sources.reduction import map_in_order
from suffice.sources.scratch import Scratch
from suffice.sources.shards import Steps, cut_sequences, shard_rows
from suffice.sources.states import Translation, resolve_states
from suffice.sources.weights import check_length, check_weights


class MemorySource(Source):
    """A table whose columns are at hand; `column` makes the column of a name when it is first needed."""

    residence = "memory"

    def __init__(self, names: Sequence[Hashable], column: Callable[[Hashable], Column], rows: int) -> None:
        """Keep the names and how to get a column."""
        super().__init__(names)
        self._make = column
        self._rows = rows
        self._made: dict[Hashable, Column] = {}
        self._coded: dict[Hashable, Coded] = {}
        self._weights: Floats | None = None

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self._rows

    def weigh(self, weights: Column) -> None:
        """Take the weights from a column that is no part of the table."""
        check_length(len(weights), self._rows)
        self._weights = check_weights(np.ascontiguousarray(weights.floats(slice(0, self._rows))), 0)

    def weigh_by(self, name: Hashable) -> None:
        """Take the weights from a column of the table."""
        super().weigh_by(name)
        values = self.column(name).floats(slice(0, self._rows))
        self._weights = check_weights(np.ascontiguousarray(values), 0, name)

    def column(self, name: Hashable) -> Column:
        """The column of a name."""
        column = self._made.get(name)
        if column is None:
            column = self._made[name] = self._make(name)
        return column

    def _infer(self, name: Hashable) -> Variable:
        return self.column(name).infer()

    def _code(self, name: Hashable) -> Coded:
        if name not in self._coded:
            self._coded[name] = self.column(name).code()
        return self._coded[name]

    def _whole_floats(self, names: Sequence[Hashable]) -> Mapping[Hashable, WholeFloats]:
        return {name: whole_floats(self.column(name)) for name in names}

    def _pieces(self, domain: Domain, threads: int | None) -> Generator[Piece]:
        discrete, real = by_kind(domain)
        if not real and 0 < self._rows < base.BATCH_ROWS and (codes := self._codes_of(domain)) is not None:
            numbers = np.empty((0, self._rows))
            yield lambda: Batch(domain, discrete, codes, real, numbers, self._weights, self._rows, complete=True)
            return
        # Coding one column after the other is as fast as threads while there is little to code.
        small = self._rows < base.BATCH_ROWS
        forms = map(self._code, discrete) if small else map_in_order(self._code, discrete, threads)
        coded = dict(zip(discrete, forms, strict=True))
        resolved = Domain(resolve_states(v, coded[v.name]) if v.name in coded else v for v in domain.variables)
        check_declared(resolved, self.undeclared)
        translations = {name: Translation(resolved[name], coded[name]) for name in discrete}
        columns = {name: self.column(name) for name in real}
        if self._rows == 0:
            yield lambda: Batch.empty(resolved)
        for rows in blocks(self._rows, base.BATCH_ROWS):
            weights = None if self._weights is None else self._weights[rows]
            spans = {"rows": rows, "start": rows.start, "weights": weights}
            yield partial(assemble, columns, resolved, translations, **spans, passing=True)

    def _default_limit(self) -> int | None:
        """Rows that are in memory may stay there."""
        return None

    def _shards(
        self, settled: Settled, layout: Layout, threads: int | None, limit: int | None, scratch: Scratch
    ) -> Generator[Piece]:
        """One shard, whose digits are those of all rows together; some where memory is limited."""
        most = self._rows if limit is None else shard_rows(settled.domain, layout, limit)
        discrete, real = by_kind(settled.domain)
        coded = {name: self._code(name) for name in discrete}
        resolved = Domain(resolve_states(v, coded[v.name]) if v.name in coded else v for v in settled.domain.variables)
        check_declared(resolved, self.undeclared)
        translations = {name: Translation(resolved[name], coded[name]) for name in discrete}
        columns = {name: self.column(name) for name in (*real, *layout.beside)}

        def batch(rows: slice) -> Batch:
            weights = None if self._weights is None else self._weights[rows]
            raw = {name: columns[name].arrow()[rows] for name in layout.raw}
            coded_rows = assemble(columns, resolved, translations, rows=rows, start=rows.start, weights=weights)
            return replace(coded_rows, raw=raw)

        whole = slice(0, self._rows)
        if layout.keys:
            sequences = Steps.read(batch(whole), columns, layout).sequences(layout)
            yield from cut_sequences(sequences, most) if most < self._rows else [lambda: sequences]
        else:
            yield from (partial(batch, rows) for rows in ([whole] if most >= self._rows else blocks(self._rows, most)))

    def _codes_of(self, domain: Domain) -> Codes | None:
        """The codes (variables, rows) of columns that hold nothing but codes; None where some column has to be coded.

        Columns by themselves cost more than their rows while there are few, so all are looked at together.
        """
        columns: list[Any] = []
        for variable in domain.variables:
            columns.append(self.column(variable.name).as_codes(variable))
            if columns[-1] is None:
                return None
        codes: Codes = np.concatenate(columns).reshape(len(columns), self._rows)
        fits = all(map(operator.lt, codes.max(axis=1).tolist(), domain.shape(domain.names)))
        return codes if fits else None


def columns_source(columns: Mapping[Hashable, Column]) -> MemorySource:
    """A source from columns of equal length."""
    lengths = list(map(len, columns.values()))
    rows = lengths[0] if lengths else 0
    for name, length in zip(columns, lengths, strict=True) if lengths.count(rows) < len(lengths) else ():
        if length != rows:
            raise DataError(
                f"Column {next(iter(columns))!r} has {rows} rows and column {name!r} has {length}; "
                "all columns must be equally long."
            )
    return MemorySource(tuple(columns), columns.__getitem__, rows)


def matrix_source(matrix: NDArray[Any], names: Sequence[Hashable] | None) -> MemorySource:
    """A source from an array: one column, or (rows, columns)."""
    if matrix.dtype.names is not None and matrix.ndim == 1:
        chosen = tuple(matrix.dtype.names) if names is None else tuple(names)
        missing = [name for name in chosen if name not in matrix.dtype.names]
        if missing:
            raise base.missing_columns(missing, matrix.dtype.names)
        return columns_source({name: array_column(name, matrix[str(name)]) for name in chosen})
    if matrix.ndim == 1:
        given = ("x",) if names is None else tuple(names)
        matrix = matrix[:, None]
    else:
        given = tuple(range(matrix.shape[-1] if matrix.ndim else 0)) if names is None else tuple(names)
    if matrix.ndim != 2:
        raise DataError(
            f"The array has {matrix.ndim} dimensions; expected one column (rows,) or a table (rows, columns)."
        )
    if len(given) != matrix.shape[1]:
        raise DataError(
            f"columns= has {len(given)} names for an array of {matrix.shape[1]} columns; name every column."
        )
    base.check_names(given)
    store = _Matrix(matrix)
    numbers = {name: number for number, name in enumerate(given)}
    return MemorySource(given, lambda name: store.column(name, numbers[name]), len(matrix))


class _Matrix:
    """A matrix that is turned, once, when its columns are to be coded."""

    def __init__(self, values: NDArray[Any]) -> None:
        self._values = values

    def values(self, number: int) -> NDArray[Any]:
        """The values of the column at a place."""
        return self._values[:, number]

    def column(self, name: Hashable, number: int) -> Column:
        """The column at a place."""
        by_rows = self._values.shape[1] > 1 and not self._values.flags.f_contiguous and len(self._values) > BLOCK_ROWS
        if by_rows and self._values.dtype.kind in "biu":
            return NumberColumn(name, self._turned[number])
        if self._values.dtype.kind == "f":
            return _MatrixColumn(name, self, number)
        return array_column(name, self.values(number))

    @cached_property
    def lacks(self) -> bool:
        """Whether a value of a matrix of floats is missing."""
        return bool(np.isnan(self._values).any())

    @cached_property
    def _turned(self) -> NDArray[Any]:
        """The whole numbers (columns, rows), in the narrowest type that holds them all."""
        values = self._values
        dtype = values.dtype
        if dtype.kind != "b":
            dtype = np.result_type(np.min_scalar_type(values.min()), np.min_scalar_type(values.max()))
        turned = np.empty(values.shape[::-1], dtype)
        for block in blocks(len(values)):
            turned[:, block] = values[block].T
        return turned


class _MatrixColumn(NumberColumn):
    """A column of a matrix of floats."""

    def __init__(self, name: Hashable, matrix: _Matrix, number: int) -> None:
        super().__init__(name, matrix.values(number))
        self._matrix = matrix

    @property
    def shares_missing(self) -> bool:
        """As any column of the matrix lacks a value."""
        return self._matrix.lacks
