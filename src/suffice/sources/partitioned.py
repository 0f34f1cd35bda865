"""Data frames in partitions, on other machines: the task goes to them, only answers come back."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from suffice.domain import Domain, Variable
from suffice.errors import OptionError
from suffice.sources.base import Answer, Batch, Layout, Pace, Piece, Source
from suffice.sources.columns import Column
from suffice.sources.held import Held, Prepared, Settled, Work
from suffice.sources.kinds import WholeFloats
from suffice.sources.mapped import Columns
from suffice.sources.memory import MemorySource
from suffice.sources.partitions import Failed, Packed, Reading, add_those_with_rows


class PartitionedSource(Source):
    """A frame of another library that maps a task over its partitions; states are found partition by partition.

    `pulled` counts the rows that were brought into this process, for what is not computed where the rows are.
    """

    residence = "elsewhere"
    #: Why rows and an array of weights cannot be brought together.
    _unmatched: ClassVar[str]
    #: The module that packs what travels.
    _pickler: ClassVar[str]

    def __init__(self, frame: Any, columns: Iterable[str]) -> None:
        """Keep the frame."""
        super().__init__(columns)
        self._frame = frame
        self.pulled = 0

    @property
    def rows(self) -> int | None:
        """Unknown before the partitions are computed."""
        return None

    def weigh(self, weights: Column) -> None:
        """An array cannot be matched with partitions."""
        raise OptionError(f"{self._unmatched}; name a column instead.")

    def _reading(self, domain: Domain, layout: Layout | None = None) -> Reading:
        """As rows come, or as a layout of the settled ones asks."""
        return Reading(domain, self._weight_name, self.undeclared, layout or Layout(), layout is not None)

    @abstractmethod
    def _brought(self, reading: Reading) -> Iterator[MemorySource]:
        """The rows in this process: all of them, or as many at a time as there are in a partition."""

    def _rows_here(self, reading: Reading) -> Iterator[MemorySource]:
        """The rows in this process, counted."""
        for rows in self._brought(reading):
            self.pulled += rows.rows
            yield rows

    def columns_in_parts(self, domain: Domain) -> Iterator[Mapping[Hashable, Column]]:
        """Some rows after the others, in this process."""
        self.passes += 1
        for rows in self._rows_here(self._reading(domain)):
            yield {name: rows.column(name) for name in domain.names}

    def _pieces(self, domain: Domain, threads: int | None) -> Generator[Piece]:
        reading = self._reading(domain)
        for rows in self._rows_here(reading):
            yield from reading.apply(rows)._pieces(domain, threads)

    @abstractmethod
    def _answer(self, packed: Packed, reading: Reading) -> Any:
        """The sum of what a packed task and its reading answer on all partitions: None without rows, or `Failed`."""

    @abstractmethod
    def _held(self, work: Work[Prepared], packed: Packed, reading: Reading) -> HeldElsewhere[Prepared]:
        """The partitions, prepared and kept where they are."""

    @abstractmethod
    def _frame_of(self, task: Callable[[Batch], Columns], reading: Reading, path: str | None) -> Any:
        """The frame of the columns that a task makes; written to a folder where it has a path."""

    def _whole_floats(self, names: Sequence[Hashable]) -> Mapping[Hashable, WholeFloats]:
        """By one pass over these columns, where their rows are."""
        return whole_floats_of(self, names)

    def _reduced(self, task: Callable[[Batch], Answer], domain: Domain, pace: Pace) -> Answer:
        """Over all partitions; threads are left to the library of the frame, and progress is told once, at the end."""
        reading = self._reading(domain)
        answer: Any = self._answer(Packed.of((task, reading), self._pickler), reading)
        if isinstance(answer, Failed):
            answer.raise_here(self.unordered)
        if answer is None:
            answer = task(Batch.empty(domain))
        if pace.progress is not None:
            pace.progress(int(getattr(answer, "rows", 0)), None)
        summed: Answer = answer
        return summed

    def _prepared(
        self, work: Work[Prepared], settled: Settled, layout: Layout, limit: int | None, pace: Pace
    ) -> Held[Prepared]:
        """Every partition where it is; the library's own shuffle brings the rows of a sequence together."""
        self.passes += 1
        reading = self._reading(settled.domain, layout)
        held = self._held(work, Packed.of((work, reading), self._pickler), reading)
        if pace.progress is not None:
            pace.progress(held.rows, settled.rows)
        return held

    def _mapped(
        self, task: Callable[[Batch], Columns], domain: Domain, layout: Layout, path: str | None, pace: Pace
    ) -> Any:
        """A frame of the same library."""
        return self._frame_of(task, self._reading(domain, layout), path)


def whole_floats_of(source: Source, names: Sequence[Hashable]) -> Mapping[Hashable, WholeFloats]:
    """Whether columns of floats hold whole numbers, by one question to wherever the rows are."""
    surveyed = source.reduce(surveyed_floats, Domain(Variable(name, "real") for name in names))
    return dict(zip(names, surveyed, strict=True))


def surveyed_floats(batch: Batch) -> Any:
    """Whether each real column of a batch holds whole numbers alone (columns,)."""
    answers = [WholeFloats() for _ in batch.real]
    for answer, values in zip(answers, batch.reals, strict=True):
        answer.read(values)
    return np.array(answers, dtype=object)


class HeldElsewhere(Held[Prepared]):
    """Shards on the workers of an engine. A question goes out as bytes, and bytes come back.

    `rows` is the number of rows that were prepared; partitions without any are no shards.
    """

    def __init__(self, work: Work[Prepared], pickler: str, reading: Reading) -> None:
        """Nothing was asked yet; `_keep` says which partitions there are."""
        super().__init__(work)
        self._pickler = pickler
        self._reading = reading
        self._partitions: list[int] = []
        self.rows = 0

    def _keep(self, rows: Mapping[int, int | Failed], frame: str) -> None:
        """The rows of each partition, or the error of preparing it."""
        self._frame = frame
        for partition, count in sorted(rows.items()):
            if isinstance(count, Failed):
                self.close()
                count.raise_here(frame, self._reading.layout.group)
            elif count:
                self._partitions.append(partition)
                self.rows += count

    @property
    def shards(self) -> int:
        """How many partitions have rows."""
        return len(self._partitions)

    @abstractmethod
    def _answers(self, question: Packed, partitions: Sequence[int]) -> list[Packed]:
        """The packed answers of some partitions in their order; neighbours may have been added."""

    def _total(self, task: Callable[[Prepared, Any], Any], parameters: Any, chosen: Sequence[int] | None) -> Any:
        partitions = self._partitions if chosen is None else [self._partitions[number] for number in chosen]
        if not partitions:
            return task(self.work.prepare(Batch.empty(self._reading.domain)), parameters)
        question = Packed.of((task, parameters), self._pickler)
        answers = self._answers(question, partitions)
        self.bytes_out += len(question.data) * len(partitions)
        self.bytes_back += sum(len(answer.data) for answer in answers)
        total = add_those_with_rows(answer.opened() for answer in answers)
        if isinstance(total, Failed):
            total.raise_here(self._frame, self._reading.layout.group)
        return total
