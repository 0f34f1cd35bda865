"""What runs beside the rows of a partition, on whatever machine they are: read, prepare, answer, add.

Nothing here knows an engine. What travels is packed into bytes before an engine sees it, and errors are values: an
engine would try a task that raises again, write its traceback into a log, and wrap the error in one of its own.
"""

from __future__ import annotations

import importlib
import pickle
import traceback
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic

import numpy as np

from suffice.domain import Domain
from suffice.errors import DataError, SufficeError
from suffice.kernels.threads import one_blas_thread
from suffice.sources.arrow import ArrowColumn
from suffice.sources.base import Batch, Layout, Piece, Source, by_kind
from suffice.sources.columns import code_dtype
from suffice.sources.held import Prepared, Settled, Work
from suffice.sources.kinds import Declarations
from suffice.sources.mapped import Columns, RowTask, columns_of, mapped_columns
from suffice.sources.memory import MemorySource
from suffice.sources.reduction import add_answers
from suffice.sources.scratch import Scratch

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Packed:
    """Anything that travels, as bytes; `by` names the pickler of the engine, which answers are packed with as well."""

    data: bytes
    by: str

    @classmethod
    def of(cls, value: object, by: str) -> Packed:
        """Pack a value: functions and classes of a notebook by value, those of a module by name."""
        return cls(importlib.import_module(by).dumps(value), by)

    def opened(self) -> Any:
        """The value."""
        return pickle.loads(self.data)


@dataclass(frozen=True)
class Reading:
    """How the rows of every partition are read.

    `weight` names the column of weights, `undeclared` the columns whose kind nobody declared. Where the domain is
    `settled`, a state that it does not have is an error: codes would not be equal everywhere.
    """

    domain: Domain
    weight: Hashable | None = None
    undeclared: Mapping[Hashable, Declarations] = field(default_factory=dict)
    layout: Layout = field(default_factory=Layout)
    settled: bool = False

    @property
    def columns(self) -> list[Hashable]:
        """All that is read."""
        weights = () if self.weight is None else (self.weight,)
        return list(dict.fromkeys((*self.domain.names, *weights, *self.layout.beside)))

    def apply(self, source: Source) -> Source:
        """The rows of a partition, to be read in this way."""
        source.check_columns(self.columns)
        source.undeclared = self.undeclared
        if self.weight is not None:
            source.weigh_by(self.weight)
        return source

    def shards(self, source: Source, scratch: Scratch) -> Generator[Piece]:
        """Calls that each make a batch of a partition that has rows."""
        settled = Settled(self.domain, source.rows or 0, 0.0)
        return self.apply(source)._shards(settled, self.layout, 1, None, scratch)

    def batches(self, source: Source) -> Iterator[Batch]:
        """The coded batches of a partition; none of a partition without rows."""
        if source.rows == 0:
            return
        pieces = self.shards(source, Scratch()) if self.settled else self.apply(source)._pieces(self.domain, 1)
        for piece in pieces:
            batch = piece()
            if self.settled and batch.domain != self.domain:
                raise _changed(batch.domain, self.domain)
            if batch.rows:
                yield batch


def _changed(seen: Domain, settled: Domain) -> DataError:
    name = next(name for name in settled if seen[name] != settled[name])
    states = [state for state in seen[name].states if settled[name].find(state) is None]
    return DataError(
        f"Column {name!r} holds {states[0]!r}, which it did not when its states were counted: the rows changed between "
        "two passes. Give rows that are the same each time, by persisting a sample or a shuffle before the fit."
    )


@dataclass(frozen=True)
class Failed:
    """An error beside the rows of a partition."""

    error: Exception
    partition: int

    def raise_here(self, frame: str, group: Hashable | None = None) -> None:
        """Raise it where the fit is, with the partition of the frame that it comes from."""
        error = self.error
        moved = "" if group is None else f" once its rows are brought together by {group!r}"
        where = f"This is partition {self.partition} of {frame}{moved}, whose rows are counted from 0."
        if isinstance(error, SufficeError):
            error.args = (f"{error} {where}",)
        else:
            error.add_note(where)
        raise error


def guarded(call: Callable[[], Any], partition: int) -> Any:
    """What a call gives, on one BLAS thread, or the error that it raises."""
    try:
        with one_blas_thread():
            return call()
    except SufficeError as error:
        return Failed(error.with_traceback(None), partition)
    except Exception as error:
        error.add_note(traceback.format_exc())
        return Failed(_able_to_travel(error.with_traceback(None)), partition)


def _able_to_travel(error: Exception) -> Exception:
    """The error, or one that says the same where it does not pickle."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


@dataclass(frozen=True)
class PreparedPartition(Generic[Prepared]):
    """What is kept of a partition: its batches, prepared one by one, and its number of rows."""

    pieces: Sequence[Prepared]
    rows: int


def prepare(source: Source, work: Work[Prepared], reading: Reading) -> Iterator[tuple[Prepared, int]]:
    """The prepared batches of a partition, each with its rows."""
    for batch in reading.batches(source):
        yield work.prepare(batch), batch.rows


def prepare_shard(make: Callable[[], Source], packed: Packed, partition: int) -> PreparedPartition[Any] | Failed:
    """All of a partition; `make` opens its rows."""

    def call() -> PreparedPartition[Any]:
        work, reading = packed.opened()
        prepared = list(prepare(make(), work, reading))
        return PreparedPartition([piece for piece, _ in prepared], sum(rows for _, rows in prepared))

    shard: PreparedPartition[Any] | Failed = guarded(call, partition)
    return shard


def answer_rows(make: Callable[[], Source], packed: Packed, partition: int) -> Any:
    """The sum of a task over the batches of a partition, None without rows, or the error."""

    def call() -> Any:
        task, reading = packed.opened()
        return add_those_with_rows(task(batch) for batch in reading.batches(make()))

    return guarded(call, partition)


def answer_pieces(pieces: Iterable[Any], question: Packed, partition: int) -> Any:
    """What the prepared batches of a partition answer to a question: a task and its parameters."""

    def call() -> Any:
        task, parameters = question.opened()
        return add_those_with_rows(task(piece, parameters) for piece in pieces)

    return guarded(call, partition)


#: Answers that one task adds: a power of two, so that the tree is that of `add_answers`.
BRANCHES = 8


def in_tree(answers: Sequence[Any], add: Callable[[Sequence[Any]], Any]) -> Sequence[Any]:
    """A few answers to come: neighbours are added by tasks, level by level."""
    while len(answers) > BRANCHES:
        answers = [add(answers[first : first + BRANCHES]) for first in range(0, len(answers), BRANCHES)]
    return answers


def packed_sum(answers: Iterable[Any], by: str) -> Packed:
    """The sum of answers, as it travels back."""
    return Packed.of(add_those_with_rows(answers), by)


def add_those_with_rows(answers: Iterable[Any]) -> Any:
    """The sum of the answers in their order; None of none; the first error, where there is one."""
    given = [answer for answer in answers if answer is not None]
    failed = next((answer for answer in given if isinstance(answer, Failed)), None)
    return failed if failed is not None else add_answers(given) if given else None


# Columns of every row -----------------------------------------------------------------------------------------------


def table_source(table: pa.Table, start: int = 0) -> MemorySource:
    """Rows in memory, the first of which has this number."""
    return MemorySource(table.schema.names, lambda name: ArrowColumn(name, table.column(name), start), table.num_rows)


def mapped_rows(source: Source, task: Callable[[Batch], Columns], reading: Reading) -> pa.Table:
    """The columns that a task makes of the rows of a partition, in their order."""
    import pyarrow as pa

    scratch = Scratch()
    with one_blas_thread():
        pieces = reading.shards(source, scratch)
        return pa.Table.from_batches(mapped_columns(task, pieces, scratch, 1, lambda rows: None))


def table_with(
    table: pa.Table, task: Callable[[Batch], Columns], reading: Reading, types: pa.Schema, start: int = 0
) -> pa.Table:
    """Rows of a partition, the first of which has this number, with the columns that a task makes of them."""
    made = mapped_rows(table_source(table.select(reading.columns), start), task, reading).cast(types)
    for name in made.column_names:
        table = table.append_column(name, made.column(name))
    return table


def one_row(kinds: Mapping[Any, pa.DataType]) -> pa.Table:
    """One row of some types that says nothing: an empty text or list, else a missing value.

    A frame of Python objects that are no texts does not say their type; lists are what they most often are.
    """
    import pyarrow as pa

    def value(kind: pa.DataType) -> Any:
        text, many = (pa.types.is_string, pa.types.is_large_string), (pa.types.is_list, pa.types.is_large_list)
        return "" if any(is_a(kind) for is_a in text) else [] if any(is_a(kind) for is_a in many) else None

    known = {name: pa.list_(pa.string()) if pa.types.is_null(kind) else kind for name, kind in kinds.items()}
    return pa.table({name: pa.array([value(kind)], kind) for name, kind in known.items()})


def column_types(task: Callable[[Batch], Columns], domain: Domain, raw: pa.Table) -> pa.Schema:
    """The types of the columns that a task makes: by its own word, else by one row of first states and zeros.

    What an engine computes later has to say its types now. `raw` has the row of the columns that are not coded.
    """
    if isinstance(task, RowTask):
        return columns_of(task.example(), 1).schema
    discrete, real = by_kind(domain)
    batch = Batch(
        domain,
        discrete,
        np.zeros((len(discrete), 1), code_dtype(max((domain[name].card for name in discrete), default=0))),
        real,
        np.zeros((len(real), 1)),
        None,
        1,
        offsets=np.array([0, 1]),
        raw={name: raw.column(name).combine_chunks() for name in raw.column_names},
    )
    return columns_of(task(batch), 1).schema
