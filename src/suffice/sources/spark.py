"""Spark DataFrames: the task goes to the executors as a map over Arrow batches, only answers come back."""

from __future__ import annotations

import operator
import pickle
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from typing import Any

from suffice.domain import Domain, Variable
from suffice.errors import DataError, require
from suffice.sources.arrow import variable_of
from suffice.sources.base import Answer, Batch, Piece
from suffice.sources.columns import Column
from suffice.sources.partitioned import PartitionedSource
from suffice.sources.reduction import add_in_order
from suffice.sources.stream import ArrowStream


def answer_partition(
    batches: Iterable[Any], task: Callable[[Batch], Any], domain: Domain, weight: Hashable | None
) -> Iterator[Any]:
    """The sum of a task over the Arrow batches of one partition, as one row of bytes; runs on an executor."""
    import pyarrow as pa

    iterator = iter(batches)
    first = next(iterator, None)
    if first is None:
        return
    rest = [first]

    def read(names: Sequence[Hashable]) -> Iterator[Any]:
        while rest:
            yield rest.pop()
        yield from iterator

    source = ArrowStream(first.schema, read)
    if weight is not None:
        source.weigh_by(weight)
    answer = add_in_order(source._pieces(domain, 1), task, threads=1)
    yield pa.RecordBatch.from_arrays([pa.array([pickle.dumps(answer)], pa.binary())], names=["answer"])


class SparkSource(PartitionedSource):
    """A Spark DataFrame."""

    unordered = "a Spark DataFrame"
    _unmatched = "The rows of a Spark DataFrame have no order to match an array of weights with"

    def __init__(self, frame: Any) -> None:
        """Keep the frame; a stream without an end has no sum."""
        if getattr(frame, "isStreaming", False):
            raise DataError("This Spark DataFrame is a stream without an end; give a table.")
        super().__init__(frame, frame.columns)

    def _infer(self, name: Hashable) -> Variable:
        if self._frame.schema[name].dataType.typeName() == "timestamp":  # Its Arrow type would need a time zone.
            return Variable(name, "discrete")
        convert = require("pyspark.sql.pandas.types", extra="spark", purpose="Reading a Spark DataFrame").to_arrow_type
        return variable_of(name, convert(self._frame.schema[name].dataType))

    def _chosen(self, domain: Domain) -> Any:
        return self._frame.select(*("`" + str(name).replace("`", "``") + "`" for name in self._with_weights(domain)))

    def _collected(self, domain: Domain) -> ArrowStream:
        table = self._chosen(domain).toArrow()
        source = ArrowStream(table.schema, lambda names: table.select(list(names)).to_batches())
        if self._weight_name is not None:
            source.weigh_by(self._weight_name)
        return source

    def columns_in_parts(self, domain: Domain) -> Iterator[Mapping[Hashable, Column]]:
        """Batches of the rows, which are collected."""
        self.passes += 1
        return self._collected(domain).columns_in_parts(domain)

    def _pieces(self, domain: Domain, threads: int | None) -> Generator[Piece]:
        yield from self._collected(domain)._pieces(domain, threads)

    def _total(self, task: Callable[[Batch], Answer], domain: Domain) -> Answer:
        """The answers are added here."""
        mapped = partial(answer_partition, task=task, domain=domain, weight=self._weight_name)
        rows = self._chosen(domain).mapInArrow(lambda batches: mapped(batches), "answer binary").collect()
        answers = [pickle.loads(row["answer"]) for row in rows] or [task(Batch.empty(domain))]
        return reduce(operator.add, answers)
