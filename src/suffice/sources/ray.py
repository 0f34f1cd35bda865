"""Datasets of Ray: the task goes to the blocks, only answers come back."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from suffice.domain import Variable
from suffice.errors import require
from suffice.sources.arrow import is_number, variable_of
from suffice.sources.base import Batch
from suffice.sources.frames import pandas_column
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
    in_tree,
    one_row,
    packed_sum,
    prepare_shard,
    table_source,
    table_with,
)

if TYPE_CHECKING:
    import pyarrow as pa


def ray() -> Any:
    """The library."""
    return require("ray", extra="ray", purpose="Reading a Ray Dataset")


class RaySource(PartitionedSource):
    """A Dataset of Ray Data, whose blocks come in any order unless its context preserves theirs."""

    unordered = "a Ray Dataset"
    _unmatched = "The rows of a Ray Dataset have no order to match an array of weights with"
    _pickler = "ray.cloudpickle"

    def __init__(self, frame: Any) -> None:
        """Keep the dataset and its types; where an operation makes the columns, Ray runs it on a first block."""
        schema = frame.schema()
        super().__init__(frame, [] if schema is None else schema.names)
        self._types = {} if schema is None else dict(zip(schema.names, schema.base_schema.types, strict=False))

    def holds_numbers(self, name: Hashable) -> bool:
        """By the type of Arrow or pandas."""
        kind = getattr(self._types[name], "kind", None)
        return is_number(self._types[name]) if kind is None else kind in "biuf"

    def _infer(self, name: Hashable) -> Variable:
        import pandas as pd
        import pyarrow as pa

        kind = self._types[name]
        if isinstance(kind, pd.CategoricalDtype) or isinstance(kind, pa.DictionaryType):
            return Variable(name, "discrete")  # Blocks may have categories of their own.
        if isinstance(kind, pa.DataType):
            return variable_of(name, kind)
        return pandas_column(name, pd.Series([], dtype=kind)).infer()

    def _rows(self, reading: Reading) -> Any:
        """The dataset of what is read, in which the rows of a sequence are in one block."""
        # Rows can be counted without a variable, but not without a column.
        return together(self._frame.select_columns(reading.columns or list(self.columns[:1])), reading)

    def _brought(self, reading: Reading) -> Iterator[MemorySource]:
        for reference in self._rows(reading).to_arrow_refs():
            block = ray().get(reference)
            if block.num_rows:
                yield table_source(block)

    def _answer(self, packed: Packed, reading: Reading) -> Any:
        packed_once = ray().put(packed)
        blocks = self._rows(reading).to_arrow_refs()
        return added([asked("suffice-read", answer_block, block, k, packed_once) for k, block in enumerate(blocks)])

    def _held(self, work: Work[Prepared], packed: Packed, reading: Reading) -> RayHeld[Prepared]:
        return RayHeld(work, packed, self._rows(reading).to_arrow_refs(), reading)

    def _frame_of(self, task: Callable[[Batch], Columns], reading: Reading, path: str | None) -> Any:
        raw = self._frame.schema()
        kinds = {name: kind for name, kind in zip(raw.names, raw.types, strict=True) if name in reading.layout.raw}
        packed = Packed.of((task, reading, column_types(task, reading.domain, one_row(kinds))), self._pickler)
        rows = together(self._frame, reading)
        columns = rows.map_batches(map_block, batch_format="pyarrow", batch_size=None, fn_args=(packed,))
        if path is None:
            return columns
        columns.write_parquet(path)
        return path


def together(dataset: Any, reading: Reading) -> Any:
    """The rows of a sequence in one block, two blocks for each core."""
    if reading.layout.group is not None:
        return dataset.repartition(2 * max(1, int(ray().cluster_resources()["CPU"])), keys=[reading.layout.group])
    return dataset if reading.layout.order is None else dataset.repartition(1)


class RayHeld(HeldElsewhere[Prepared]):
    """Prepared blocks in the object store of Ray, which makes those of a lost machine again from their lineage."""

    location = "in the object store of Ray"

    def __init__(self, work: Work[Prepared], packed: Packed, blocks: Sequence[Any], reading: Reading) -> None:
        """Prepare them."""
        super().__init__(work, packed.by, reading)
        packed_once = ray().put(packed)
        both = [
            asked("suffice-prepare", prepare_block, block, k, packed_once, parts=2) for k, block in enumerate(blocks)
        ]
        self._shards = [shard for shard, _ in both]
        self._keep(dict(enumerate(fetched([rows for _, rows in both]))), RaySource.unordered)

    def _answers(self, question: Packed, partitions: Sequence[int]) -> list[Packed]:
        packed_once = ray().put(question)
        answers = [asked("suffice-sum", answer_shard, self._shards[k], k, packed_once) for k in partitions]
        return fetched([summed(answers, question.by)], answers)

    def close(self) -> None:
        """Ray forgets what nobody holds."""
        self._shards = []


# --------------------------------------------------------------------------------------------------------------------
# Tasks, with names for the dashboard
# --------------------------------------------------------------------------------------------------------------------


@cache
def remote(task: Callable[..., Any]) -> Any:
    """A function of this module, as a task of Ray."""
    return ray().remote(task)


def asked(name: str, task: Callable[..., Any], *arguments: Any, parts: int = 1) -> Any:
    """A reference to what a task will answer, or several."""
    return remote(task).options(name=name, num_returns=parts).remote(*arguments)


def summed(answers: Sequence[Any], by: str) -> Any:
    """A reference to the packed sum of answers, in their order."""
    few = in_tree(answers, lambda some: asked("suffice-add", add_blocks, *some))
    return asked("suffice-answer", packed_blocks, by, *few)


def added(answers: Sequence[Any]) -> Any:
    """The sum of answers."""
    return fetched([summed(answers, RaySource._pickler)], answers)[0].opened()


def fetched(references: Sequence[Any], needed: Sequence[Any] = ()) -> list[Any]:
    """The values; an error or Ctrl-C ends what was asked."""
    try:
        values: list[Any] = ray().get(list(references))
    except BaseException:
        for reference in (*references, *needed):
            ray().cancel(reference)
        raise
    return values


# --------------------------------------------------------------------------------------------------------------------
# On the workers
# --------------------------------------------------------------------------------------------------------------------


def answer_block(block: pa.Table, number: int, packed: Packed) -> Any:
    """What a task answers on one block; one without rows may lack columns."""
    return answer_rows(lambda: table_source(block), packed, number) if block.num_rows else None


def prepare_block(block: pa.Table, number: int, packed: Packed) -> tuple[Packed | None, int | Failed]:
    """One block, prepared and packed, with its rows or the error.

    Packed, because the arrays that Ray hands to tasks cannot be written to, and a work may write to its own.
    """
    if not block.num_rows:
        return None, 0
    shard = prepare_shard(lambda: table_source(block), packed, number)
    return (None, shard) if isinstance(shard, Failed) else (Packed.of(shard.pieces, packed.by), shard.rows)


def answer_shard(shard: Packed, number: int, question: Packed) -> Any:
    """What a shard answers."""
    return answer_pieces(shard.opened(), question, number)


def add_blocks(*answers: Any) -> Any:
    """The sum of neighbours."""
    return add_those_with_rows(answers)


def packed_blocks(by: str, *answers: Any) -> Packed:
    """The sum of all, as it travels back."""
    return packed_sum(answers, by)


def map_block(block: pa.Table, packed: Packed) -> pa.Table:
    """The rows of one block with the columns that a task makes of them."""
    return table_with(block, *packed.opened()) if block.num_rows else block
