"""Spark DataFrames: the task goes to the executors as a map over Arrow batches, only answers come back."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from typing import Any

from suffice.domain import Domain, Variable
from suffice.errors import DataError, OptionError, require
from suffice.sources.arrow import variable_of
from suffice.sources.base import Answer, Batch, Piece, Progress, Source
from suffice.sources.columns import Column
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


class SparkSource(Source):
    """A Spark DataFrame; states that are not declared are found partition by partition."""

    unordered = "a Spark DataFrame"

    def __init__(self, frame: Any) -> None:
        """Keep the frame; a stream without an end has no sum."""
        if getattr(frame, "isStreaming", False):
            raise DataError("This Spark DataFrame is a stream without an end; give a table.")
        super().__init__(frame.columns)
        self._frame = frame
        self._weight: Hashable | None = None

    @property
    def rows(self) -> int | None:
        """Unknown before the job has run."""
        return None

    def weigh(self, weights: Column) -> None:
        """Rows of a Spark DataFrame have no order."""
        raise OptionError(
            "The rows of a Spark DataFrame have no order to match an array of weights with; name a column instead."
        )

    def weigh_by(self, name: Hashable) -> None:
        """Take the weights from a column."""
        self.check_columns([name])
        self._weight = name
        self.columns = tuple(column for column in self.columns if column != name)

    def _infer(self, name: Hashable) -> Variable:
        if self._frame.schema[name].dataType.typeName() == "timestamp":  # Its Arrow type would need a time zone.
            return Variable(name, "discrete")
        convert = require("pyspark.sql.pandas.types", extra="spark", purpose="Reading a Spark DataFrame").to_arrow_type
        return variable_of(name, convert(self._frame.schema[name].dataType))

    def _chosen(self, domain: Domain) -> Any:
        weight = () if self._weight is None else (self._weight,)
        return self._frame.select(*("`" + str(name).replace("`", "``") + "`" for name in (*domain.names, *weight)))

    def _collected(self, domain: Domain) -> ArrowStream:
        table = self._chosen(domain).toArrow()
        source = ArrowStream(table.schema, lambda names: table.select(list(names)).to_batches())
        if self._weight is not None:
            source.weigh_by(self._weight)
        return source

    def columns_in_parts(self, domain: Domain) -> Iterator[Mapping[Hashable, Column]]:
        """Batches of the rows, which are collected."""
        self.passes += 1
        return self._collected(domain).columns_in_parts(domain)

    def _pieces(self, domain: Domain, threads: int | None) -> Generator[Piece]:
        yield from self._collected(domain)._pieces(domain, threads)

    def reduce(
        self,
        task: Callable[[Batch], Answer],
        domain: Domain,
        *,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> Answer:
        """Map the task over the partitions on the executors; their answers are added here.

        `threads` is left to Spark; `progress` is called once, at the end.
        """
        for name in domain:
            self.check_columns([name])
        self.passes += 1
        mapped = partial(answer_partition, task=task, domain=domain, weight=self._weight)
        rows = self._chosen(domain).mapInArrow(lambda batches: mapped(batches), "answer binary").collect()
        answers = [pickle.loads(row["answer"]) for row in rows] or [task(Batch.empty(domain))]
        result: Answer = reduce(lambda left, right: left + right, answers)
        if progress is not None:
            progress(int(getattr(result, "rows", 0)), None)
        return result
