"""Dask DataFrames: the task goes to the partitions, only answers come back."""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from suffice.domain import Domain, Variable
from suffice.errors import require
from suffice.sources.base import Answer, Batch, Piece
from suffice.sources.columns import Column, WholeNumbers
from suffice.sources.frames import pandas_column
from suffice.sources.memory import MemorySource
from suffice.sources.partitioned import PartitionedSource
from suffice.sources.reduction import add_in_order

if TYPE_CHECKING:
    import pandas as pd


def partition_source(
    frame: pd.DataFrame, weight: Hashable | None, whole: frozenset[Hashable] = frozenset()
) -> MemorySource:
    """One partition, a pandas DataFrame, as a table in memory; `whole` names the floats read as whole numbers."""
    source = MemorySource(frame.columns.tolist(), lambda name: pandas_column(name, frame[name]), len(frame))
    source.integer_columns = whole
    if weight is not None:
        source.weigh_by(weight)
    return source


def answer_partition(
    frame: pd.DataFrame,
    task: Callable[[Batch], Any],
    domain: Domain,
    weight: Hashable | None,
    whole: frozenset[Hashable],
) -> Any:
    """The sum of a task over the batches of one partition; runs where the partition is."""
    with_weights = partition_source(frame, weight, whole)
    return add_in_order(with_weights._pieces(domain, 1), task, threads=1)


class DaskSource(PartitionedSource):
    """A Dask DataFrame.

    A shuffle, as of a merge or of `set_index`, leaves rows in an order that the frame does not tell.
    """

    unordered = "a Dask DataFrame"
    _unmatched = "The rows of a Dask DataFrame cannot be matched with an array of weights"

    def __init__(self, frame: Any) -> None:
        """Keep the frame."""
        super().__init__(frame, frame.columns.tolist())

    def _infer(self, name: Hashable) -> Variable:
        meta = self._frame._meta[name]
        if str(meta.dtype) == "category" and not self._frame[name].cat.known:
            return Variable(name, "discrete")
        return pandas_column(name, meta).infer()

    def _integer_columns(self, names: Sequence[Hashable]) -> frozenset[Hashable]:
        """By computing one partition after the other, until each column has shown a value that is not whole."""
        whole = {name: WholeNumbers() for name in names}
        for partition in self._frame[list(names)].to_delayed() if names else ():
            left = [name for name in names if whole[name].undecided]
            if not left:
                break
            frame = partition.compute()
            for name in left:
                whole[name].read(pandas_column(name, frame[name]).floats(slice(0, len(frame))))
        return frozenset(name for name in names if whole[name].found)

    def _partitions(self, domain: Domain) -> list[Any]:
        return self._frame[list(self._with_weights(domain))].to_delayed()

    def columns_in_parts(self, domain: Domain) -> Iterator[Mapping[Hashable, Column]]:
        """Partition by partition."""
        self.passes += 1
        for partition in self._partitions(domain):
            held = partition_source(partition.compute(), self._weight_name)
            yield {name: held.column(name) for name in domain.names}

    def _pieces(self, domain: Domain, threads: int | None) -> Generator[Piece]:
        for partition in self._partitions(domain):
            yield from partition_source(partition.compute(), self._weight_name, self.integer_columns)._pieces(
                domain, threads
            )

    def _total(self, task: Callable[[Batch], Answer], domain: Domain) -> Answer:
        """The answers are added in a tree, on the workers."""
        dask = require("dask", extra="dask", purpose="Reading a Dask DataFrame")
        weight, whole = self._weight_name, self.integer_columns
        here = partial(answer_partition, task=task, domain=domain, weight=weight, whole=whole)
        answer, add = dask.delayed(here), dask.delayed(_add)
        level = [answer(partition) for partition in self._partitions(domain)]
        while len(level) > 1:
            level = [add(*level[k : k + 2]) if k + 1 < len(level) else level[k] for k in range(0, len(level), 2)]
        return level[0].compute()


def _add(left: Answer, right: Answer) -> Any:
    return left + right
