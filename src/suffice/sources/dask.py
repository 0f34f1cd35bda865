"""Dask DataFrames: the task goes to the partitions, only answers come back."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from suffice.domain import Variable
from suffice.errors import MissingColumnError
from suffice.sources.base import Batch
from suffice.sources.dask_waiting import RETRIES, awaited, computed, current_client, dask
from suffice.sources.frames import pandas_column
from suffice.sources.held import Prepared, Work
from suffice.sources.mapped import Columns
from suffice.sources.memory import MemorySource
from suffice.sources.partitioned import HeldElsewhere, PartitionedSource
from suffice.sources.partitions import (
    Failed,
    Packed,
    PreparedPartition,
    Reading,
    add_those_with_rows,
    answer_pieces,
    answer_rows,
    column_types,
    guarded,
    in_tree,
    mapped_rows,
    one_row,
    packed_sum,
    prepare_shard,
)

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

#: Bytes from which what a task is told goes to each worker once, and not along with each task.
LARGE = 1 << 16


class DaskSource(PartitionedSource):
    """A Dask DataFrame.

    A shuffle, as of a merge or of `set_index`, leaves rows in an order that the frame does not tell.
    """

    unordered = "a Dask DataFrame"
    _unmatched = "The rows of a Dask DataFrame cannot be matched with an array of weights"
    _pickler = "cloudpickle"

    def __init__(self, frame: Any) -> None:
        """Keep the frame."""
        super().__init__(frame, frame.columns.tolist())

    def holds_numbers(self, name: Hashable) -> bool:
        """By the type of pandas."""
        return getattr(self._frame._meta[name].dtype, "kind", "O") in "biuf"

    def _infer(self, name: Hashable) -> Variable:
        meta = self._frame._meta[name]
        if str(meta.dtype) == "category" and not self._frame[name].cat.known:
            return Variable(name, "discrete")
        return pandas_column(name, meta).infer()

    def _rows(self, reading: Reading) -> Any:
        """The frame of what is read, in which the rows of a sequence are in one partition."""
        frame, layout = self._frame[reading.columns], reading.layout
        if layout.group is not None:
            return frame.shuffle(on=[layout.group])
        return frame if layout.order is None else frame.repartition(npartitions=1)

    def _brought(self, reading: Reading) -> Iterator[MemorySource]:
        for partition in self._rows(reading).to_delayed():
            yield pandas_source(awaited(partition))

    def _answer(self, packed: Packed, reading: Reading) -> Any:
        partitions = self._rows(reading).to_delayed()
        with _clear_errors(reading):
            return computed(lambda: tree(mapped("suffice-read", answer_partition, partitions, packed))).opened()

    def _held(self, work: Work[Prepared], packed: Packed, reading: Reading) -> DaskHeld[Prepared]:
        return DaskHeld(work, packed, self._rows(reading).to_delayed(), reading)

    def _frame_of(self, task: Callable[[Batch], Columns], reading: Reading, path: str | None) -> Any:
        rows = self._rows(reading)
        types = column_types(task, reading.domain, one_row(arrow_types(rows._meta, reading.layout.raw)))
        packed = Packed.of((task, reading, types), self._pickler)
        meta = with_keys(rows._meta, types.empty_table(), reading)
        columns = rows.map_partitions(map_partition, packed, meta=meta, token="suffice-map")
        if path is None:
            return columns
        awaited(columns.to_parquet(path, compute=False))
        return path


class DaskHeld(HeldElsewhere[Prepared]):
    """Partitions that Dask keeps, prepared, with the tasks that made them: what a lost worker held is made again.

    Without a client Dask computes in this process, and keeps them here.
    """

    def __init__(self, work: Work[Prepared], packed: Packed, partitions: Sequence[Any], reading: Reading) -> None:
        """Prepare them."""
        super().__init__(work, packed.by, reading)
        self.location = "in memory" if current_client() is None else "on the workers of Dask"
        self._lineage = partitions, packed
        self._prepare()
        with _clear_errors(reading):
            rows = computed(lambda: gathered(mapped("suffice-rows", rows_of, self._shards)), self._prepare)
        self._keep(dict(enumerate(rows)), DaskSource.unordered)

    def _prepare(self) -> None:
        """Let go of the shards, if there are any, and have them made under names of their own."""
        self._shards: Sequence[Any] = ()
        with _clear_errors(self._reading):
            self._shards = dask().persist(
                *mapped("suffice-prepare", prepare_partition, *self._lineage), retries=RETRIES
            )

    def _answers(self, question: Packed, partitions: Sequence[int]) -> list[Packed]:
        def graph() -> Any:
            return tree(mapped("suffice-sum", answer_shard, [self._shards[number] for number in partitions], question))

        return [computed(graph, self._prepare)]

    def close(self) -> None:
        """Dask forgets what nobody holds."""
        self._shards = ()


# --------------------------------------------------------------------------------------------------------------------
# Graphs: tasks have names for the dashboard, and answers are added in the order of the partitions
# --------------------------------------------------------------------------------------------------------------------


def mapped(name: str, task: Callable[..., Any], partitions: Sequence[Any], packed: Packed | None = None) -> list[Any]:
    """A task for each partition: what there is of it, its number, and what all of them are told."""
    delayed, token = dask().delayed, uuid4().hex
    call = delayed(task, pure=False)
    large = packed is not None and len(packed.data) > LARGE
    beside = delayed(packed, name=f"suffice-parameters-0-{token}", traverse=False) if large else packed
    return [
        call(partition, number, beside, dask_key_name=f"{name}-{number}-{token}")
        for number, partition in enumerate(partitions)
    ]


def tree(answers: Sequence[Any]) -> Any:
    """The sum of answers, packed by the last task."""
    delayed, token, numbers = dask().delayed, uuid4().hex, count()
    add = delayed(add_those_with_rows, pure=False)
    few = in_tree(answers, lambda some: add(some, dask_key_name=f"suffice-add-{next(numbers)}-{token}"))
    return delayed(packed_sum, pure=False)(few, DaskSource._pickler, dask_key_name=f"suffice-answer-0-{token}")


def gathered(values: Sequence[Any]) -> Any:
    """All of them as one list."""
    return dask().delayed(list, pure=False)(values, dask_key_name=f"suffice-answer-0-{uuid4().hex}")


@contextmanager
def _clear_errors(reading: Reading) -> Iterator[None]:
    """A partition without a column fails in a task of Dask's own, with the words of pandas."""
    try:
        yield
    except KeyError as error:
        if not any(repr(name) in str(error) for name in reading.columns):
            raise
        raise MissingColumnError(
            f"A partition of the Dask DataFrame lacks columns that the frame says it has: {error.args[0]}. Make all "
            "partitions of the same columns, as `_meta` has them, or name others."
        ) from error


# --------------------------------------------------------------------------------------------------------------------
# On the workers
# --------------------------------------------------------------------------------------------------------------------


def pandas_source(frame: pd.DataFrame) -> MemorySource:
    """One partition, a pandas DataFrame, as a table in memory."""
    return MemorySource(frame.columns.tolist(), lambda name: pandas_column(name, frame[name]), len(frame))


def answer_partition(frame: pd.DataFrame, number: int, packed: Packed) -> Any:
    """What a task answers on one partition."""
    return answer_rows(lambda: pandas_source(frame), packed, number)


def prepare_partition(frame: pd.DataFrame, number: int, packed: Packed) -> PreparedPartition[Any] | Failed:
    """One partition, prepared."""
    return prepare_shard(lambda: pandas_source(frame), packed, number)


def rows_of(shard: PreparedPartition[Any] | Failed, number: int, packed: None) -> int | Failed:
    """The rows of a shard, or why there is none."""
    return shard if isinstance(shard, Failed) else shard.rows


def answer_shard(shard: PreparedPartition[Any], number: int, question: Packed) -> Any:
    """What a shard answers."""
    return answer_pieces(shard.pieces, question, number)


def arrow_types(frame: pd.DataFrame, names: Sequence[Hashable]) -> dict[Hashable, pa.DataType]:
    """The types of some columns."""
    import pyarrow as pa

    return {name: pa.array(frame[name], from_pandas=True).type for name in names}


def with_keys(frame: pd.DataFrame, columns: pa.Table, reading: Reading) -> pd.DataFrame:
    """The columns that were made of the rows of a frame, with its index; and with the columns that shuffled them."""
    made = columns.to_pandas().set_index(frame.index)
    keys = [name for name in reading.layout.keys if reading.layout.group is not None]
    return frame[keys].assign(**{str(name): made[name] for name in made})


def map_partition(frame: pd.DataFrame, packed: Packed, partition_info: Mapping[str, Any] | None = None) -> pd.DataFrame:
    """The columns that a task makes of one partition; Dask says which, but in its own look at the types."""
    task, reading, types = packed.opened()

    def call() -> pd.DataFrame:
        made = mapped_rows(pandas_source(frame), task, reading).cast(types) if len(frame) else types.empty_table()
        return with_keys(frame, made, reading)

    if partition_info is None:
        return call()
    made = guarded(call, partition_info["number"])
    if isinstance(made, Failed):
        made.raise_here(DaskSource.unordered, reading.layout.group)
    return made
