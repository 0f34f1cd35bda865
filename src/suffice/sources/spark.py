"""Spark DataFrames: the task goes to the executors as a map over Arrow batches, only answers come back."""

from __future__ import annotations

import math
import os
import pickle
import tempfile
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy
from itertools import chain, count, groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from suffice.domain import Variable
from suffice.errors import DataError, require
from suffice.sources.arrow import variable_of
from suffice.sources.base import Batch, Source
from suffice.sources.held import Prepared, Work
from suffice.sources.mapped import Columns
from suffice.sources.memory import MemorySource
from suffice.sources.partitioned import HeldElsewhere, PartitionedSource
from suffice.sources.partitions import (
    Failed,
    Packed,
    Reading,
    add_those_with_rows,
    answer_pieces,
    answer_rows,
    column_types,
    guarded,
    one_row,
    prepare,
    table_source,
    table_with,
)
from suffice.sources.shard_files import mapped_objects, write_objects
from suffice.sources.stream import BATCH_ROWS, ArrowStream

if TYPE_CHECKING:
    import pyarrow as pa

#: The columns of answers, of prepared partitions, and of those in files.
ANSWERS = "number int, answer binary"
SHARDS = "partition int, piece int, rows long, prepared binary, failed binary"
FILES = "partition int, rows long, failed binary"
#: Answers up to which the driver adds them; more are added by executors first.
FEW_ANSWERS = 64
#: Answers that one executor adds: a power of two, so that the tree is that of `add_answers`.
BRANCHES = 8


#: Types of numbers and truth values, by name.
_NUMBERS = frozenset({"boolean", "byte", "short", "integer", "long", "float", "double", "decimal"})


class SparkSource(PartitionedSource):
    """A Spark DataFrame."""

    unordered = "a Spark DataFrame"
    _unmatched = "The rows of a Spark DataFrame have no order to match an array of weights with"
    _pickler = "pyspark.cloudpickle"

    def __init__(self, frame: Any) -> None:
        """Keep the frame; a stream without an end has no sum."""
        if getattr(frame, "isStreaming", False):
            raise DataError("This Spark DataFrame is a stream without an end; give a table.")
        super().__init__(frame, frame.columns)

    def holds_numbers(self, name: Hashable) -> bool:
        """By the type of Spark."""
        return self._frame.schema[name].dataType.typeName() in _NUMBERS

    def _infer(self, name: Hashable) -> Variable:
        if self._frame.schema[name].dataType.typeName() == "timestamp":  # Its Arrow type would need a time zone.
            return Variable(name, "discrete")
        convert = require("pyspark.sql.pandas.types", extra="spark", purpose="Reading a Spark DataFrame").to_arrow_type
        return variable_of(name, convert(self._frame.schema[name].dataType))

    def _rows(self, reading: Reading) -> Any:
        """The frame of what is read, in which the rows of a sequence are in one partition."""
        # Rows can be counted without a variable, but not without a column.
        names = reading.columns or list(self.columns[:1])
        return together(self._frame.select(*map(quoted, names)), reading)

    def _brought(self, reading: Reading) -> Iterator[MemorySource]:
        yield table_source(self._rows(reading).toArrow())

    def _answer(self, packed: Packed, reading: Reading) -> Any:
        answers = self._rows(reading).mapInArrow(lambda batches: answer_partition(batches, packed), ANSWERS)
        return add_those_with_rows(answer.opened() for answer in collected(answers, self._pickler))

    def _held(self, work: Work[Prepared], packed: Packed, reading: Reading) -> SparkHeld[Prepared]:
        return SparkHeld(work, packed, self._rows(reading), reading)

    def _frame_of(self, task: Callable[[Batch], Columns], reading: Reading, path: str | None) -> Any:
        conversion = require("pyspark.sql.pandas.types", extra="spark", purpose="Reading a Spark DataFrame")
        kinds = {name: conversion.to_arrow_type(self._frame.schema[name].dataType) for name in reading.layout.raw}
        types = column_types(task, reading.domain, one_row(kinds))
        packed = Packed.of((task, reading, types), self._pickler)
        # In one schema: columns of the frame, then those that are made.
        schema = deepcopy(self._frame.schema)
        for field in types:
            schema = schema.add(field.name, conversion.from_arrow_type(field.type))
        frame = together(self._frame, reading)
        columns = frame.mapInArrow(lambda batches: map_partition(batches, packed), schema)
        if path is None:
            return columns
        columns.write.parquet(path)
        return path


def quoted(name: Hashable) -> str:
    """The name of a column, whatever it is made of."""
    return "`" + str(name).replace("`", "``") + "`"


def together(frame: Any, reading: Reading) -> Any:
    """The rows of a sequence in one partition."""
    if reading.layout.group is not None:
        return frame.repartition(quoted(reading.layout.group))
    return frame if reading.layout.order is None else frame.repartition(1)


class SparkHeld(HeldElsewhere[Prepared]):
    """Prepared partitions that Spark persists: what a lost executor held is made again from its lineage."""

    location = "on the executors of Spark"

    def __init__(self, work: Work[Prepared], packed: Packed, frame: Any, reading: Reading) -> None:
        """Prepare them."""
        super().__init__(work, packed.by, reading)
        connect = type(frame).__module__.startswith("pyspark.sql.connect")
        self._shards: ShardFrame | ShardFiles = (ShardFrame if connect else ShardFiles)(frame, packed)
        counts = self._shards.counts()
        rows: dict[int, Any] = dict.fromkeys(sorted({partition for partition, _, _ in counts}), 0)
        for partition, size, _ in counts:
            rows[partition] += size
        rows |= {partition: Packed(bytes(failed), packed.by).opened() for partition, _, failed in counts if failed}
        self._keep(rows, SparkSource.unordered)

    def _answers(self, question: Packed, partitions: Sequence[int]) -> list[Packed]:
        asked: dict[int, list[int]] = {}
        for number, partition in enumerate(partitions):
            asked.setdefault(partition, []).append(number)
        return self._shards.answers(question, asked, len(partitions))

    def close(self) -> None:
        """Let Spark forget them."""
        self._shards.close()


class ShardFiles:
    """Prepared partitions in files of the executors, beside what Spark itself spills, and gone with it.

    Spark keeps which partitions there are, and where; a lost executor's are prepared again from their lineage. Rounds
    map the files into memory. As rows of an RDD the arrays would pass from the virtual machine through a socket to
    Python in every round, which took twice the time of a step of a regression on them.
    """

    def __init__(self, frame: Any, packed: Packed) -> None:
        """Prepare the partitions of a frame."""
        self._session, self._token = frame.sparkSession, uuid4().hex
        token = self._token
        self._prepared = frame.mapInArrow(lambda batches: file_partition(batches, packed, token), FILES).rdd
        self._kept = self._prepared.map(tuple).persist()

    def counts(self) -> list[tuple[int, int, Any]]:
        """Partition, rows, and error of each."""
        return self._collected(self._kept)

    def answers(self, question: Packed, asked: Mapping[int, Sequence[int]], many: int) -> list[Packed]:
        """The answers in their order; neighbours are added by executors where there are many."""
        answers = self._round(self._kept, question, asked, many)
        if any(answer is None for _, answer in answers):
            # An idle executor took a task from that which has the file; in a round from the lineage it gets its own.
            answers = self._round(self._prepared, question, asked, many)
        return [Packed(bytes(answer), question.by) for _, answer in sorted(answers)]

    def _round(
        self, partitions: Any, question: Packed, asked: Mapping[int, Sequence[int]], many: int
    ) -> list[tuple[int, Any]]:
        token = self._token
        answers = partitions.mapPartitions(lambda rows: file_answers((row[0] for row in rows), question, asked, token))
        while many > FEW_ANSWERS:
            many = -(-many // BRANCHES)
            blocks = answers.map(lambda pair: (pair[0] // BRANCHES, pair)).groupByKey(many)
            answers = blocks.map(lambda block: (block[0], block_sum(block[1], question.by)))
        return self._collected(answers)

    def _collected(self, rows: Any) -> list[Any]:
        """The rows here; an error or Ctrl-C ends what Spark was asked."""
        context, tag = self._session.sparkContext, f"suffice-{uuid4().hex}"
        context.addJobTag(tag)
        try:
            collected: list[Any] = rows.collect()
        except BaseException:
            context.cancelJobsWithTag(tag)
            raise
        finally:
            context.removeJobTag(tag)
        return collected

    def close(self) -> None:
        """Remove the files, but for those of executors that Spark does not ask now; these go with the executor."""
        token = self._token
        with suppress(Exception):  # Spark may have ended.
            self._collected(self._kept.mapPartitions(lambda rows: remove_files((row[0] for row in rows), token)))
        self._kept.unpersist()


class ShardFrame:
    """Prepared partitions as a frame, which is what a session of Spark Connect has."""

    def __init__(self, frame: Any, packed: Packed) -> None:
        """Prepare the partitions of a frame."""
        spark = require("pyspark", extra="spark", purpose="Reading a Spark DataFrame")
        prepared = frame.mapInArrow(lambda batches: prepare_partition(batches, packed), SHARDS)
        self._frame = prepared.persist(spark.StorageLevel.MEMORY_AND_DISK)

    def counts(self) -> list[tuple[int, int, Any]]:
        """Partition, rows, and error of each piece."""
        with interruptible(self._frame):
            counts: list[tuple[int, int, Any]] = self._frame.select("partition", "rows", "failed").collect()
        return counts

    def answers(self, question: Packed, asked: Mapping[int, Sequence[int]], many: int) -> list[Packed]:
        """The answers in their order; neighbours are added by executors where there are many."""
        answers = self._frame.mapInArrow(lambda batches: answer_shards(batches, question, asked), ANSWERS)
        return collected(with_few_answers(answers, many, question.by), question.by)

    def close(self) -> None:
        """Let Spark forget them."""
        self._frame.unpersist()


# --------------------------------------------------------------------------------------------------------------------
# Frames of answers
# --------------------------------------------------------------------------------------------------------------------


def with_few_answers(answers: Any, many: int, by: str) -> Any:
    """The frame in which neighbours are added, level by level, until the driver has few to add."""
    while many > FEW_ANSWERS:
        many = -(-many // BRANCHES)
        blocks = answers.selectExpr(f"number div {BRANCHES} as block", "number", "answer").repartition(many, "block")
        answers = blocks.mapInArrow(lambda batches: add_neighbours(batches, by), ANSWERS)
    return answers


def collected(answers: Any, by: str) -> list[Packed]:
    """The answers in their order, in the driver."""
    with interruptible(answers):
        rows = answers.collect()
    return [Packed(bytes(answer), by) for _, answer in sorted(rows, key=lambda row: row[0])]


@contextmanager
def interruptible(frame: Any) -> Iterator[None]:
    """An error or Ctrl-C here ends what Spark was asked."""
    session, tag = frame.sparkSession, f"suffice-{uuid4().hex}"
    session.addTag(tag)
    try:
        yield
    except BaseException:
        session.interruptTag(tag)
        raise
    finally:
        session.removeTag(tag)


# --------------------------------------------------------------------------------------------------------------------
# On the executors
# --------------------------------------------------------------------------------------------------------------------


def partition_number() -> int:
    """The number of the partition that this task works on."""
    from pyspark import TaskContext

    context: Any = TaskContext.get()
    return int(context.partitionId())


def in_large_batches(batches: Iterable[pa.RecordBatch], most: float = BATCH_ROWS) -> Iterator[pa.Table]:
    """Neighbouring batches together, as those of Spark are small."""
    import pyarrow as pa

    some: list[pa.RecordBatch] = []
    for batch in batches:
        some.append(batch)
        if sum(part.num_rows for part in some) >= most:
            yield pa.Table.from_batches(some)
            some = []
    if some:
        yield pa.Table.from_batches(some)


def arrow_source(batches: Iterable[pa.RecordBatch], *, whole: bool = False) -> Source | None:
    """The rows of a partition, which come once, or are a `whole` table in memory; None where there are none."""
    tables = in_large_batches(batches, math.inf if whole else BATCH_ROWS)
    first = next(tables, None)
    if first is None:
        return None
    return table_source(first) if whole else ArrowStream(first.schema, lambda names: chain([first], tables))


def map_partition(batches: Iterable[pa.RecordBatch], packed: Packed) -> Iterator[pa.RecordBatch]:
    """The rows of one partition with the columns that a task makes of them."""
    task, reading, types = packed.opened()
    start = 0
    for table in in_large_batches(batches, math.inf if reading.layout.keys else BATCH_ROWS):
        if not table.num_rows:
            continue
        yield from table_with(table, task, reading, types, start).to_batches()
        start += table.num_rows


def answer_partition(batches: Iterable[pa.RecordBatch], packed: Packed) -> Iterator[pa.RecordBatch]:
    """What a task answers on one partition."""
    number = partition_number()
    source = arrow_source(batches)
    answer = None if source is None else answer_rows(lambda: source, packed, number)
    if answer is not None:
        yield _batch(ANSWERS, [(number, Packed.of(answer, packed.by).data)])


def prepare_partition(batches: Iterable[pa.RecordBatch], packed: Packed) -> Iterator[pa.RecordBatch]:
    """One partition, prepared: a row for each of its batches."""
    number = partition_number()

    def pieces() -> Iterator[tuple[bytes, int]]:
        work, reading = packed.opened()
        source = arrow_source(batches, whole=bool(reading.layout.keys))
        for prepared, rows in () if source is None else prepare(source, work, reading):
            yield Packed.of(prepared, packed.by).data, rows

    prepared = pieces()
    for piece in count():
        answer = guarded(lambda: next(prepared, None), number)
        if answer is None:
            return
        if isinstance(answer, Failed):
            yield _batch(SHARDS, [(number, piece, 0, None, Packed.of(answer, packed.by).data)])
            return
        yield _batch(SHARDS, [(number, piece, answer[1], answer[0], None)])


def shard_answers(
    pieces: Iterable[tuple[int, Any]], question: Packed, asked: Mapping[int, Sequence[int]]
) -> Iterator[tuple[int, bytes]]:
    """What the shards of this task answer, by their pieces in a row; `asked` has the numbers of the answers."""
    for partition, some in groupby(pieces, key=lambda piece: piece[0]):
        if partition in asked:
            prepared = (pickle.loads(data) for _, data in some)
            answer = Packed.of(answer_pieces(prepared, question, partition), question.by).data
            yield from ((number, answer) for number in asked[partition])


def shard_path(token: str, partition: int) -> Path:
    """The file of a partition on this machine, in a folder that Spark removes at its end."""
    folders = os.environ.get("SPARK_LOCAL_DIRS", tempfile.gettempdir()).split(",")
    return Path(folders[partition % len(folders)]) / f"suffice-{token}" / f"{partition}.shard"


def file_partition(batches: Iterable[pa.RecordBatch], packed: Packed, token: str) -> Iterator[pa.RecordBatch]:
    """One partition, prepared in a file, unless it is there: its rows, or its error."""
    number = partition_number()
    path = shard_path(token, number)

    def call() -> int:
        if path.exists():
            for _ in batches:  # Spark ends a worker that leaves rows unread.
                pass
        else:
            work, reading = packed.opened()
            source = arrow_source(batches, whole=bool(reading.layout.keys))
            write_objects(path, () if source is None else prepare(source, work, reading), packed.by)
        return sum(rows for _, rows in mapped_objects(path))

    rows = guarded(call, number)
    failed = isinstance(rows, Failed)
    yield _batch(FILES, [(number, 0, Packed.of(rows, packed.by).data) if failed else (number, rows, None)])


def file_answers(
    partitions: Iterable[int], question: Packed, asked: Mapping[int, Sequence[int]], token: str
) -> Iterator[tuple[int, bytes | None]]:
    """What partitions answer whose files are here, None for the others; `asked` has the numbers of the answers."""
    for partition in partitions:
        if partition in asked:
            try:
                pieces = (prepared for prepared, _ in mapped_objects(shard_path(token, partition)))
                answer = Packed.of(answer_pieces(pieces, question, partition), question.by).data
            except FileNotFoundError:
                answer = None
            yield from ((number, answer) for number in asked[partition])


def remove_files(partitions: Iterable[int], token: str) -> Iterator[int]:
    """Remove the files of partitions that are here."""
    for partition in partitions:
        shard_path(token, partition).unlink(missing_ok=True)
        yield partition


def block_sum(answers: Iterable[tuple[int, Any]], by: str) -> bytes | None:
    """The sum of the answers of a block, in the order of their numbers; None where one is not known."""
    ordered = [answer for _, answer in sorted(answers, key=lambda answer: answer[0])]
    if any(answer is None for answer in ordered):
        return None
    return Packed.of(add_those_with_rows(map(pickle.loads, ordered)), by).data


def answer_shards(
    batches: Iterable[pa.RecordBatch], question: Packed, asked: Mapping[int, Sequence[int]]
) -> Iterator[pa.RecordBatch]:
    """What the shards of this task answer, as Arrow brings them."""
    pieces = ((part.as_py(), data.as_buffer()) for part, data in _rows(batches, "partition", "prepared"))
    for answer in shard_answers(pieces, question, asked):
        yield _batch(ANSWERS, [answer])


def add_neighbours(batches: Iterable[pa.RecordBatch], by: str) -> Iterator[pa.RecordBatch]:
    """The sums of the blocks of answers that this task has."""
    rows = [
        (block.as_py(), (number.as_py(), answer.as_buffer()))
        for block, number, answer in _rows(batches, "block", "number", "answer")
    ]
    rows.sort(key=lambda row: (row[0], row[1][0]))
    for block, some in groupby(rows, key=lambda row: row[0]):
        yield _batch(ANSWERS, [(block, block_sum((answer for _, answer in some), by))])


def _rows(batches: Iterable[pa.RecordBatch], *names: str) -> Iterator[tuple[Any, ...]]:
    for batch in batches:
        yield from zip(*(batch.column(name) for name in names), strict=True)


def _batch(schema: str, rows: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
    """Rows of a schema that names its columns and their types as Spark does."""
    import pyarrow as pa

    types = {"int": pa.int32(), "long": pa.int64(), "binary": pa.binary()}
    fields = [tuple(column.split()) for column in schema.split(", ")]
    arrays = [pa.array(values, types[kind]) for (_, kind), values in zip(fields, zip(*rows, strict=True), strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=[name for name, _ in fields])
