"""Columns that a task makes of every row, in the order of the rows: some at a time, or in a file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.array_types import Ints
from suffice.errors import DataError, require
from suffice.sources.reduction import map_in_order, naming
from suffice.sources.scratch import Scratch, append, read_all

if TYPE_CHECKING:
    import pyarrow as pa

    from suffice.sources.base import Batch

#: What a task makes of a batch: columns by name, one value a row, as arrays that Arrow can read. Keys of a mapping are
#: invariant to a type checker: with any other type than Any, a task could not return a plain dict from texts.
Columns = Mapping[Any, Any]
#: Rows of a file that are put in order together.
RANGE_ROWS = 1 << 20


class RowTask(ABC):
    """What makes columns of every row, and says before there is one what they look like."""

    @abstractmethod
    def __call__(self, batch: Batch) -> Columns:
        """The columns of a batch."""

    @abstractmethod
    def example(self) -> Columns:
        """Those of one row: an engine that computes them later has to say their types now."""


def free_names(wanted: Iterable[Any], taken: Iterable[Any]) -> tuple[str, ...]:
    """Names of new columns beside those of a table, with underscores where a name is taken."""
    used, names = {str(name) for name in taken}, []
    for name in map(str, wanted):
        while name in used:
            name += "_"
        names.append(name)
        used.add(name)
    return tuple(names)


def mapped_columns(
    task: Callable[[Batch], Columns],
    pieces: Generator[Callable[[], Batch]],
    scratch: Scratch,
    threads: int | None,
    report: Callable[[int], None],
) -> Iterator[pa.RecordBatch]:
    """The columns of all batches, in the order of the rows of the table."""

    def work(piece: Callable[[], Batch]) -> tuple[pa.RecordBatch, Ints | None]:
        batch = piece()
        with naming(batch.origins):
            return columns_of(task(batch), batch.rows), batch.numbers

    def answers() -> Iterator[tuple[pa.RecordBatch, Ints | None]]:
        done = 0
        for columns, numbers in map_in_order(work, pieces, threads):
            yield columns, numbers
            done += columns.num_rows
            report(done)

    try:
        with closing(pieces):
            yield from _in_order(answers(), scratch)
    finally:
        scratch.close()


def columns_of(answer: Columns, rows: int) -> pa.RecordBatch:
    """As Arrow arrays, once each is known to have one value a row."""
    pa = require("pyarrow", extra="files", purpose="An answer for the rows of a table")
    arrays = {str(name): pa.array(values, from_pandas=True) for name, values in answer.items()}
    for name, array in arrays.items():
        if len(array) != rows:
            raise DataError(f"The column {name!r} has {len(array)} values for {rows} rows; the task gives one a row.")
    return pa.RecordBatch.from_pydict(arrays)


def _in_order(answers: Iterable[tuple[pa.RecordBatch, Ints | None]], scratch: Scratch) -> Iterator[pa.RecordBatch]:
    """As they come where rows count up; else by files that each take a range of rows, sorted one by one."""
    paths: dict[int, Path] = {}
    for columns, numbers in answers:
        if numbers is None:
            yield columns
            continue
        ranges = numbers // RANGE_ROWS
        for number in np.unique(ranges).tolist():
            rows = np.flatnonzero(ranges == number)
            if number not in paths:
                paths[number] = scratch.file()
            append(paths[number], (columns.take(rows), numbers[rows]))
    for number in sorted(paths):
        yield _sorted(list(read_all(paths[number])))


def _sorted(parts: list[tuple[pa.RecordBatch, Ints]]) -> pa.RecordBatch:
    import pyarrow as pa

    together = pa.Table.from_batches([columns for columns, _ in parts]).combine_chunks()
    ordered = together.take(np.argsort(np.concatenate([numbers for _, numbers in parts])))
    return ordered.combine_chunks().to_batches()[0]


def write_columns(batches: Iterator[pa.RecordBatch], path: str) -> str:
    """The columns in a Parquet file, which is there when it is whole."""
    import pyarrow.parquet as pq

    target, beside = Path(path), Path(f"{path}.part")
    writer: Any = None
    try:
        for batch in batches:
            if writer is None:
                writer = pq.ParquetWriter(beside, batch.schema)
            writer.write_batch(batch)
        writer.close()
        beside.replace(target)
    finally:
        if writer is not None:
            writer.close()
        beside.unlink(missing_ok=True)
    return str(target)
