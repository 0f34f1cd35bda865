"""Parquet files, read in batches; text is taken as the dictionaries it is stored with."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from suffice.domain import Domain, Variable
from suffice.errors import DataError
from suffice.sources import base
from suffice.sources.arrow import category, is_number, kind_of, nature_of
from suffice.sources.files import is_remote, opened, reading
from suffice.sources.kinds import WholeFloats
from suffice.sources.stream import Chunk, StreamSource, arrow_chunks, chunk_rows

#: Bytes of each column of a file on this machine that are read at a time.
BUFFER_BYTES = 1 << 16


class ParquetSource(StreamSource):
    """One or more Parquet files with the same columns, in any order.

    Integers in some files are floats where others hold floats. Numbers in some and text in others are an error.
    """

    def __init__(self, files: Sequence[str]) -> None:
        """Read the schema of the first file."""
        self._files = list(files)
        super().__init__(_open(self._files[0]).schema_arrow.names)

    @cached_property
    def rows(self) -> int:
        """Number of rows, from the footers of the files."""
        return sum(rows for _, rows in self._footers)

    @cached_property
    def _footers(self) -> list[tuple[Any, int]]:
        """Schema and number of rows of each file."""
        opened = (_open(path) for path in self._files)
        return [(file.schema_arrow, file.metadata.num_rows) for file in opened]

    def _types(self, name: Hashable) -> dict[str, Any]:
        """The type of a column by file; without the files that lack it or hold only missing values, unless all do."""
        import pyarrow.types as types

        footers = zip(self._files, self._footers, strict=True)
        types_of = {path: schema.field(name).type for path, (schema, rows) in footers if rows and name in schema.names}
        if not types_of:
            schemas = {path: schema for path, (schema, _) in zip(self._files, self._footers, strict=True)}
            types_of = {path: schema.field(name).type for path, schema in schemas.items() if name in schema.names}
        known = {path: type_ for path, type_ in types_of.items() if not types.is_null(type_)}
        natures = {nature: path for path, type_ in reversed(known.items()) if (nature := nature_of(type_))}
        if len(natures) > 1:
            one, other = [f"{what} ({known[path]}) in {path!r}" for what, path in natures.items()][:2]
            raise DataError(
                f"Column {name!r} holds {one} and {other}, whose values would be different states. Give it one type in "
                "all files, or leave it out."
            )
        return known or types_of

    def promoted(self, name: Hashable) -> str:
        """Integers in some files, and floats in others."""
        import pyarrow.types as types

        whole = {path: types.is_integer(type_) for path, type_ in self._types(name).items()}
        if len(set(whole.values())) < 2 or not self.holds_numbers(name):
            return ""
        return (
            f"integers in {min(p for p in whole if whole[p])!r} and floats in {min(p for p in whole if not whole[p])!r}"
        )

    def holds_numbers(self, name: Hashable) -> bool:
        """By the types in all files."""
        return all(map(is_number, self._types(name).values()))

    def _infer(self, name: Hashable) -> Variable:
        """By the types in all files, so that their order does not matter.

        A column that is integer in some files and float in others is one of floats.
        """
        import pyarrow.types as types

        by_file = self._types(name)
        kinds = {path: kind_of(name, type_) for path, type_ in by_file.items()}
        for path in (path for path, kind in kinds.items() if kind == "category"):
            with reading(path):
                for batch in _open(path).iter_batches(1, columns=[name]):
                    return category(name, batch.column(name).dictionary.to_pylist())
        real = "real" in kinds.values() and all(k == "real" or types.is_integer(by_file[p]) for p, k in kinds.items())
        return Variable(name, "real" if real else "discrete")

    def _whole_floats(self, names: Sequence[Hashable]) -> Mapping[Hashable, WholeFloats]:
        """Of those whose smallest and largest values, by the footers of the files, are whole."""
        left = [name for name in names if all(map(_is_whole, self._bounds(name)))]
        return super()._whole_floats(left) if left else {}

    def _bounds(self, name: Hashable) -> Iterator[Any]:
        """The smallest and the largest value of a column in each row group of which the footers tell them."""
        for path in self._files:
            with _open(path) as file:
                metadata = file.metadata
            for group in map(metadata.row_group, range(metadata.num_row_groups)):
                for column in map(group.column, range(metadata.num_columns)):
                    held = column.path_in_schema == name and column.statistics is not None
                    if held and column.statistics.has_min_max:
                        yield from (column.statistics.min, column.statistics.max)

    def _known_missing(self, domain: Domain) -> dict[Hashable, int]:
        """By the statistics of row groups: of closed states, and of numbers that have no NaN."""
        closed = [v.name for v in domain.variables if v.kind != "discrete" or (v.states and v.origin == "declared")]
        exact = [name for name in closed if all(map(_has_no_nan, self._types(name).values()))]
        counts = dict.fromkeys(exact, 0)
        for path in self._files if exact else ():
            counts = {name: counts[name] + count for name, count in _null_counts(path, counts).items()}
        return counts

    def _chunks(self, domain: Domain, names: Sequence[Hashable]) -> Iterator[Chunk]:
        rows, start = chunk_rows(domain, names), 0
        for path in self._files:
            for chunk in arrow_chunks(_batches(path, names, rows), names, rows, path, start):
                yield chunk
                start += chunk.rows


def _has_no_nan(type_: Any) -> bool:
    """Whether null is the only missing value of an Arrow type that is not nested."""
    import pyarrow.types as types

    return not (types.is_floating(type_) or types.is_nested(type_) or types.is_dictionary(type_))


def _null_counts(path: str, names: Iterable[Hashable]) -> dict[Hashable, int]:
    """Rows without a value by column, from the footer of a file; without the columns of which it does not tell."""
    with _open(path) as file:
        metadata = file.metadata
    counts: dict[Hashable, int] = dict.fromkeys(names, 0)
    for group in range(metadata.num_row_groups):
        columns = map(metadata.row_group(group).column, range(metadata.num_columns))
        for column in (column for column in columns if column.path_in_schema in counts):
            if column.statistics is not None and column.statistics.has_null_count:
                counts[column.path_in_schema] += column.statistics.null_count
            else:
                del counts[column.path_in_schema]
    return counts


def _is_whole(value: Any) -> bool:
    """Whether a number is whole; what is infinite is not."""
    return math.isfinite(value) and value == math.floor(value)


def _open(path: str, texts: Sequence[Hashable] = ()) -> Any:
    import pyarrow.parquet as pq

    with reading(path):
        # Buffering ahead, the default of pyarrow, keeps the bytes of a whole file, and no buffer those of a row group.
        # Elsewhere each refill of a buffer would be a request.
        buffer = 0 if is_remote(path) else BUFFER_BYTES
        return pq.ParquetFile(opened(path), read_dictionary=list(texts), pre_buffer=False, buffer_size=buffer)


def _batches(path: str, names: Sequence[Hashable], rows: int) -> Iterator[Any]:
    """Record batches of so many rows of the named columns, or tables where row groups are small.

    Every row group is stored with dictionaries of its own, so those of the batches differ.
    """
    import pyarrow.types as types

    with _open(path) as file:
        schema = file.schema_arrow
    missing = [name for name in names if name not in schema.names]
    if missing:
        raise base.missing_columns(missing, schema.names, repr(path))
    texts = [n for n in names if types.is_string(schema.field(n).type) or types.is_large_string(schema.field(n).type)]
    with _open(path, texts) as file, reading(path):
        for groups in _spans([file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)], rows):
            if len(groups) > 1:
                yield file.read_row_groups(groups, columns=list(names))
            else:
                # One row group at a time: a reader of several keeps the memory of those that it has read.
                yield from file.iter_batches(rows, row_groups=groups, columns=list(names))


def _spans(sizes: Sequence[int], most: int) -> list[list[int]]:
    """Row groups, by number, that make up a batch of at most so many rows together; a large one stays alone."""
    spans: list[list[int]] = []
    room = 0
    for group, rows in enumerate(sizes):
        if not spans or rows > room:
            spans.append([])
            room = most
        spans[-1].append(group)
        room -= rows
    return spans
