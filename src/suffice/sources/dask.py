"""Dask DataFrames: the task goes to the partitions, only answers come back."""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from suffice.domain import Domain, Variable
from suffice.errors import OptionError, require
from suffice.sources.base import Answer, Batch, Piece, Progress, Source
from suffice.sources.columns import Column, WholeNumbers
from suffice.sources.frames import pandas_column
from suffice.sources.memory import MemorySource
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


class DaskSource(Source):
    """A Dask DataFrame; states that are not declared are found partition by partition.

    A shuffle, as of a merge or of `set_index`, leaves rows in an order that the frame does not tell.
    """

    unordered = "a Dask DataFrame"

    def __init__(self, frame: Any) -> None:
        """Keep the frame."""
        super().__init__(frame.columns.tolist())
        self._frame = frame
        self._weight: Hashable | None = None

    @property
    def rows(self) -> int | None:
        """Unknown before the partitions are computed."""
        return None

    def weigh(self, weights: Column) -> None:
        """An array cannot be matched with partitions."""
        raise OptionError(
            "The rows of a Dask DataFrame cannot be matched with an array of weights; name a column instead."
        )

    def weigh_by(self, name: Hashable) -> None:
        """Take the weights from a column."""
        self.check_columns([name])
        self._weight = name
        self.columns = tuple(column for column in self.columns if column != name)

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
        weight = () if self._weight is None else (self._weight,)
        return self._frame[[*domain.names, *weight]].to_delayed()

    def columns_in_parts(self, domain: Domain) -> Iterator[Mapping[Hashable, Column]]:
        """Partition by partition."""
        self.passes += 1
        for partition in self._partitions(domain):
            held = partition_source(partition.compute(), self._weight)
            yield {name: held.column(name) for name in domain.names}

    def _pieces(self, domain: Domain, threads: int | None) -> Generator[Piece]:
        for partition in self._partitions(domain):
            yield from partition_source(partition.compute(), self._weight, self.integer_columns)._pieces(
                domain, threads
            )

    def reduce(
        self,
        task: Callable[[Batch], Answer],
        domain: Domain,
        *,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> Answer:
        """Map the task over the partitions and add the answers in a tree, all on the workers.

        `threads` is left to Dask's scheduler; `progress` is called once, at the end.
        """
        dask = require("dask", extra="dask", purpose="Reading a Dask DataFrame")
        for name in domain:
            self.check_columns([name])
        self.passes += 1
        here = partial(answer_partition, task=task, domain=domain, weight=self._weight, whole=self.integer_columns)
        answer = dask.delayed(here)
        level = [answer(partition) for partition in self._partitions(domain)]
        add = dask.delayed(_add)
        while len(level) > 1:
            pairs = [
                add(*level[first : first + 2]) if first + 1 < len(level) else level[first]
                for first in range(0, len(level), 2)
            ]
            level = pairs
        result: Answer = level[0].compute()
        if progress is not None:
            progress(int(getattr(result, "rows", 0)), None)
        return result


def _add(left: Answer, right: Answer) -> Any:
    return left + right
