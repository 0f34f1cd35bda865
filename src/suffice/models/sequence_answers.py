"""What a fitted value answers about each sequence of a table that stays where it is: answers travel, steps do not."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.domain import sort_states, state_key
from suffice.sources.base import Batch, Source
from suffice.sources.held import Held, Settled


@dataclass(frozen=True)
class Named:
    """The sequences of a shard by name, or by the number of their first rows in the table."""

    keys: tuple[Any, ...]
    by_row: bool

    def __call__(self, number: int) -> str:
        """A sequence in words."""
        key = self.keys[number]
        return f"The sequence of row {key}" if self.by_row else f"The sequence {key!r}"

    def __add__(self, other: Named) -> Named:
        """Those of both shards."""
        return Named(self.keys + other.keys, self.by_row)

    def order(self) -> NDArray[np.intp]:
        """Where they stand in a table in memory: by first rows, or by name."""
        if self.by_row:
            return np.argsort(np.array(self.keys, dtype=np.int64), kind="stable")
        rank = {state_key(name): number for number, name in enumerate(sort_states(self.keys))}
        return np.argsort([rank[state_key(key)] for key in self.keys], kind="stable")


def named_sequences(batch: Batch, group: Hashable | None) -> Named:
    """Those of a batch; group: the column of their names, where these order them."""
    assert batch.offsets is not None
    first = batch.offsets[:-1]
    if group is not None:
        return Named(tuple(batch.raw[group].take(first).to_pylist()), by_row=False)
    rows = batch.start + first if batch.numbers is None else batch.numbers[first]
    return Named(tuple(rows.tolist()), by_row=True)


@dataclass(frozen=True)
class SequenceAnswers:
    """One answer for each sequence of some shards."""

    named: Named
    answers: tuple[Any, ...]

    def __add__(self, other: SequenceAnswers) -> SequenceAnswers:
        """Those of both shards."""
        return SequenceAnswers(self.named + other.named, self.answers + other.answers)


@dataclass(frozen=True)
class AnswerSequences:
    """The work of answering: what is prepared of a shard are its answers.

    `ask` gives an answer for each sequence of a batch, in their order, and is told what they are called.
    """

    ask: Callable[[Batch, Named], Sequence[Any]]
    group: Hashable | None

    def prepare(self, batch: Batch) -> SequenceAnswers:
        """The answers to a shard."""
        named = named_sequences(batch, self.group)
        return SequenceAnswers(named, tuple(self.ask(batch, named)))

    def evaluate(self, prepared: SequenceAnswers, parameters: object) -> SequenceAnswers:
        """These answers."""
        return prepared


def answers_of_sequences(
    ask: Callable[[Batch, Named], Sequence[Any]],
    source: Source,
    settled: Settled,
    group: Hashable,
    order: Hashable | None,
    threads: int | None,
    raw: Sequence[Hashable] = (),
) -> list[Any]:
    """The answers to all sequences of a table, in the order in which they come in memory.

    group, order: what tells sequences apart and orders their steps; raw: columns that `ask` reads as they are.
    """
    work = AnswerSequences(ask, None if order is None else group)
    beside = tuple(raw) if order is None else tuple(dict.fromkeys((*raw, group)))
    held: Held[SequenceAnswers]
    with source.hold(work, settled, group=group, order=order, raw=beside, threads=threads) as held:
        whole: SequenceAnswers = held.sum(None)
    return [whole.answers[number] for number in whole.named.order()]
