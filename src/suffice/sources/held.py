"""Data that stay prepared where they are: the half of a source that everything which iterates asks, round after round.

`source.settle(domain)` finds out, in one pass at most, what has to be equal everywhere: states, missing values, weight.
`source.hold(work, settled)` prepares every shard once, where its rows are. `held.sum(parameters)` is one round: the
parameters go out, additive answers come back and are added in the order of the shards.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Hashable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar

import numpy as np

from suffice.domain import Domain
from suffice.errors import DataError
from suffice.sources.reduction import add_answers, map_in_order, naming
from suffice.sources.scratch import Scratch, append, read_all, size_of

if TYPE_CHECKING:
    from suffice.sources.base import Batch

Prepared = TypeVar("Prepared")


class Work(Protocol[Prepared]):
    """What is sent to the rows: small, frozen, able to travel (pickle), and without any rows of its own.

    Whatever `prepare` returns may travel too, or be written to a file and read again: arrays and records of arrays, no
    locks, no threads, no caches that have to be there.
    """

    def prepare(self, batch: Batch) -> Prepared:
        """What the rounds need of the rows of a shard: coded rows, a design, sequences, distinct patterns."""

    def evaluate(self, prepared: Prepared, parameters: Any) -> Any:
        """What a shard answers to these parameters; answers of shards add up."""


@dataclass(frozen=True)
class Settled:
    """What is known of a table before its rows are prepared, so that codes are equal everywhere.

    `domain` has all states of all shards. `missing` gives the number of rows without a value, by column, for the
    columns that have any; `weight` is the sum of the weights of all rows.
    """

    domain: Domain
    rows: int
    weight: float
    missing: Mapping[Hashable, int] = field(default_factory=dict)

    def __add__(self, other: Settled) -> Settled:
        """Both tables; states are merged by label."""
        missing = {
            name: self.missing.get(name, 0) + other.missing.get(name, 0) for name in {*self.missing, *other.missing}
        }
        return Settled(self.domain.merge(other.domain), self.rows + other.rows, self.weight + other.weight, missing)


def survey(batch: Batch) -> Settled:
    """What one batch says about its table."""
    missing = {
        name: int(np.count_nonzero(codes == batch.domain[name].card))
        for name, codes in zip(batch.discrete, batch.codes, strict=True)
        if not batch.complete
    }
    missing |= {
        name: int(np.count_nonzero(np.isnan(values))) for name, values in zip(batch.real, batch.reals, strict=True)
    }
    weight = float(batch.rows) if batch.weights is None else float(batch.weights.sum())
    return Settled(batch.domain, batch.rows, weight, {name: count for name, count in missing.items() if count})


class Held(ABC, Generic[Prepared]):
    """Prepared shards, wherever they stay.

    `rounds` counts the questions asked so far, `bytes_out` and `bytes_back` what travelled for them: nothing within a
    process. `location` says in words where the data stayed, for the report.
    """

    location = "in memory"
    #: Whether sums over so few rows that one may be read from them are answered.
    tells_of_few = True

    def __init__(self, work: Work[Prepared]) -> None:
        """Nothing was asked yet."""
        self.work = work
        self.rounds = self.bytes_out = self.bytes_back = 0

    @property
    @abstractmethod
    def shards(self) -> int:
        """How many there are."""

    @abstractmethod
    def _total(self, task: Callable[[Prepared, Any], Any], parameters: Any, chosen: Sequence[int] | None) -> Any:
        """The sum of what the task answers on all shards, or on those chosen, in their order."""

    def sum(
        self,
        parameters: Any,
        by: Callable[[Prepared, Any], Any] | None = None,
        *,
        shards: Sequence[int] | None = None,
    ) -> Any:
        """One round: the sum over the shards of what the work answers to these parameters.

        by: another question to the same prepared shards, such as the one of a judge: a function at the top of a module,
            or a frozen data class with a call, as it travels. shards: the numbers of those to ask, for methods that
            draw some of them; all by default.
        """
        self.rounds += 1
        return self._total(self.work.evaluate if by is None else by, parameters, shards)

    def close(self) -> None:
        """Let the shards go, with what was written for them."""

    def __enter__(self) -> Self:
        """Use it as a context."""
        return self

    def __exit__(self, *error: object) -> None:
        """Let the shards go."""
        self.close()


class HeldHere(Held[Prepared]):
    """Shards in this process: data that were in memory, or that fit there once they are prepared."""

    def __init__(self, work: Work[Prepared], prepared: Iterable[Prepared], threads: int | None = 1) -> None:
        """Keep them.

        threads: how many shards are asked at a time; None for all cores. One shard alone is asked in the calling
        thread, and the work may use threads of its own.
        """
        super().__init__(work)
        self._prepared = list(prepared)
        self._threads = threads

    @property
    def shards(self) -> int:
        """How many there are."""
        return len(self._prepared)

    @property
    def prepared(self) -> list[Prepared]:
        """The shards themselves, which only data in this process can show."""
        return self._prepared

    def _total(self, task: Callable[[Prepared, Any], Any], parameters: Any, chosen: Sequence[int] | None) -> Any:
        shards = self._prepared if chosen is None else [self._prepared[number] for number in chosen]
        return add_answers(map_in_order(lambda shard: task(shard, parameters), shards, self._threads))


class HeldLocal(Held[Prepared]):
    """Shards of a table that is read in pieces, in this process: memory does not follow the rows.

    Prepared shards stay in memory up to a limit. Beyond it they are written to a scratch folder, each once, and read
    back one for each thread in a round; where that has no room they are prepared again. Sums are the same to the bit.
    """

    def __init__(
        self,
        work: Work[Prepared],
        settled: Settled,
        pieces: Callable[[], Generator[Callable[[], Batch]]],
        scratch: Scratch,
        limit: int | None = None,
        *,
        again: bool,
        threads: int | None = None,
        progress: Callable[[int, int | None], None] | None = None,
    ) -> None:
        """Prepare all shards.

        pieces: begins a pass over the rows. again: whether a second pass gives the same shards. limit: most bytes in
        memory; None where all stay there.
        """
        super().__init__(work)
        self._settled, self._pieces, self._scratch, self._threads = settled, pieces, scratch, threads
        self._room = limit
        self._again = again
        #: By shard: what was prepared, the file that holds it, or None where it is prepared again.
        self._loaders: list[Callable[[], Prepared] | None] = []
        done = 0
        try:
            with closing(pieces()) as batches:
                for prepared, rows in map_in_order(self._prepare, batches, threads):
                    self._loaders.append(self._kept(prepared))
                    done += rows
                    if progress is not None:
                        progress(done, settled.rows)
        except BaseException:
            self.close()
            raise

    def _prepare(self, piece: Callable[[], Batch]) -> tuple[Prepared, int]:
        batch = piece()
        if batch.domain is not self._settled.domain and batch.domain != self._settled.domain:
            raise DataError(
                "The data have changed since their states were found: there are states that were not there before. "
                "Read the data once they are no longer written to."
            )
        with naming(batch.origins):
            return self.work.prepare(batch), batch.rows

    def _kept(self, prepared: Prepared) -> Callable[[], Prepared] | None:
        """A shard in memory, in a file, or nowhere."""
        if self._room is None:
            return lambda: prepared
        size = size_of(prepared)
        if size <= self._room:
            self._room -= size
            return lambda: prepared
        self._room = 0  # What comes later goes to files too, so that one round reads them in a row.
        self.location = "in a scratch folder"
        if self._again and not self._scratch.has_room(size):
            self.location = "prepared again in each round"
            return None
        path = self._scratch.file()
        append(path, prepared)
        return lambda: next(read_all(path))

    @property
    def shards(self) -> int:
        """How many there are."""
        return len(self._loaders)

    def _total(self, task: Callable[[Prepared, Any], Any], parameters: Any, chosen: Sequence[int] | None) -> Any:
        with closing(self._loading(range(self.shards) if chosen is None else chosen)) as loaders:
            return add_answers(map_in_order(lambda load: task(load(), parameters), loaders, self._threads))

    def _loading(self, chosen: Sequence[int]) -> Generator[Callable[[], Prepared]]:
        """Calls that bring the chosen shards, in their order; a pass over the rows begins where one is needed."""
        batches: Generator[Callable[[], Batch]] | None = None
        following = 0
        try:
            for number in chosen:
                loader = self._loaders[number]
                if loader is None:
                    if batches is not None and number < following:
                        batches.close()
                    if batches is None or number < following:
                        batches, following = self._pieces(), 0
                    piece = next(islice(batches, number - following, None))
                    following = number + 1
                    loader = partial(self._prepared_again, piece)
                yield loader
        finally:
            if batches is not None:
                batches.close()

    def _prepared_again(self, piece: Callable[[], Batch]) -> Prepared:
        return self._prepare(piece)[0]

    def close(self) -> None:
        """Let the shards go, with what was written for them."""
        self._loaders = []
        self._scratch.close()
