"""Parquet files, read in batches; text is taken as the dictionaries it is stored with."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from functools import cached_property
from typing import Any

from suffice.domain import Domain, Variable
from suffice.sources import base, stream
from suffice.sources.arrow import category, kind_of, variable_of
from suffice.sources.files import reading
from suffice.sources.stream import Chunk, StreamSource, arrow_chunks


class ParquetSource(StreamSource):
    """One or more Parquet files with the same columns, in any order."""

    def __init__(self, files: Sequence[str]) -> None:
        """Read the schema of the first file."""
        self._files = list(files)
        self._schema = _open(self._files[0]).schema_arrow
        super().__init__(self._schema.names)

    @cached_property
    def rows(self) -> int:
        """Number of rows, from the footers of the files."""
        return sum(_open(path).metadata.num_rows for path in self._files)

    def _infer(self, name: Hashable) -> Variable:
        type_ = self._schema.field(name).type
        if kind_of(name, type_) != "category":
            return variable_of(name, type_)
        path = self._files[0]
        with reading(path):
            for batch in _open(path).iter_batches(1, columns=[name]):
                return category(name, batch.column(name).dictionary.to_pylist())
        return variable_of(name, type_)

    def _chunks(self, domain: Domain, names: Sequence[Hashable]) -> Iterator[Chunk]:
        start = 0
        for path in self._files:
            for chunk in arrow_chunks(_batches(path, names), names, path, start):
                yield chunk
                start += chunk.rows


def _open(path: str, texts: Sequence[Hashable] = ()) -> Any:
    import pyarrow.parquet as pq

    with reading(path):
        # Buffering ahead, the default of pyarrow, keeps the bytes of the whole file.
        return pq.ParquetFile(path, read_dictionary=list(texts), pre_buffer=False)


def _batches(path: str, names: Sequence[Hashable]) -> Iterator[Any]:
    """Record batches of the named columns, or tables where row groups are small.

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
        for groups in _spans([file.metadata.row_group(at).num_rows for at in range(file.num_row_groups)]):
            if len(groups) > 1:
                yield file.read_row_groups(groups, columns=list(names))
            else:
                # One row group at a time: a reader of several keeps the memory of those that it has read.
                yield from file.iter_batches(stream.BATCH_ROWS, row_groups=groups, columns=list(names))


def _spans(sizes: Sequence[int]) -> list[list[int]]:
    """Row groups, by number, that make up a batch together; a large one stays alone."""
    spans: list[list[int]] = []
    room = 0
    for group, rows in enumerate(sizes):
        if not spans or rows > room:
            spans.append([])
            room = stream.BATCH_ROWS
        spans[-1].append(group)
        room -= rows
    return spans
