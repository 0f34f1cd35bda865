"""Sequences that stay where they are, asked round after round: what EM, its judge and its errors need of them.

In memory they are one shard. Wherever else they are, a shard holds whole sequences, coded once, and what it answers
adds up; only parameters and these sums travel.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.domain import Variable
from suffice.models.hidden_markov.chains import Observed
from suffice.models.hidden_markov.durations.distributions import Duration
from suffice.models.hidden_markov.durations.segments import check_segments
from suffice.models.hidden_markov.emissions.contract import Emission
from suffice.models.hidden_markov.emissions.reals import naming_rows
from suffice.models.hidden_markov.expectation import ChainExpectation
from suffice.models.hidden_markov.learning import counted
from suffice.models.hidden_markov.parameters import ChainParameters, Statistics
from suffice.models.hidden_markov.structure import TransitionStructure
from suffice.sources.base import Batch
from suffice.sources.columns import Coded
from suffice.sources.held import Held, HeldHere
from suffice.sources.releasing import Disclosed
from suffice.sources.sequences import Sequences, label_windows, translated


@dataclass(frozen=True)
class ChainWork:
    """The work of Baum-Welch: whole sequences as the emission reads them, and the E-step.

    `columns` are what is seen, `label` is the column of known states, whose names are `states`. `names` is the column
    of the group where sequences come in the order of their names, and not of their rows.
    """

    emission: Emission
    columns: tuple[Hashable, ...] = ()
    label: Hashable | None = None
    states: tuple[Hashable, ...] = ()
    names: Hashable | None = None

    def prepare(self, batch: Batch) -> ChainExpectation:
        """The sequences of a shard."""
        assert batch.offsets is not None
        with naming_rows(batch.number):
            values = self.emission.read([column_of(batch, name) for name in self.columns])
        labels = None
        if self.label is not None:
            labels = translated(Variable.discrete("state", self.states), column_of(batch, self.label))
        first = batch.offsets[:-1]
        if self.names is not None:
            keys: Any = batch.raw[self.names].take(first)
        else:
            keys = batch.start + first if batch.numbers is None else batch.numbers[first]
        return ChainExpectation(Sequences(values, batch.offsets, labels=labels), self.emission, 1, keys)

    def disclosed(self) -> Disclosed:
        """Of known states: how often they follow each other, and what they emit."""
        if self.label is None:
            return Disclosed()
        emitted = tuple((self.label, name) for name in self.columns)
        return Disclosed(emitted, (("neighbouring states", partial(known_windows, size=len(self.states))),))

    def evaluate(self, prepared: ChainExpectation, parameters: ChainParameters) -> Statistics:
        """Expected statistics, with the log-likelihood."""
        return prepared.expect(parameters)


def column_of(batch: Batch, name: Hashable) -> Any:
    """A column of a batch as emissions read it: numbers (rows,), or states in dictionary form."""
    if name in batch.real:
        return batch.reals[batch.real.index(name)]
    return Coded(batch.codes[batch.discrete.index(name)], batch.domain[name].states)


@dataclass(frozen=True)
class SumsTogether:
    """Several answers of a shard, each of which adds up."""

    parts: tuple[Any, ...]

    def __add__(self, other: SumsTogether) -> SumsTogether:
        """Of both shards."""
        return SumsTogether(tuple(a + b for a, b in zip(self.parts, other.parts, strict=True)))


@dataclass(frozen=True, eq=False)
class HeldChains:
    """Sequences with the emission that has read them, wherever they are held; `rows` are their steps.

    `labelled` says that the state of some step is known.
    """

    held: Held[ChainExpectation]
    rows: int
    weight: float
    labelled: bool = False

    #: The parameters of the last E-step and what it found: reports ask again for what EM ended with.
    _last: list[tuple[ChainParameters, Statistics]] = field(default_factory=list, repr=False)

    @classmethod
    def here(cls, observed: Observed, emission: Emission, threads: int | None) -> HeldChains:
        """Sequences in memory: one shard, with threads of its own."""
        held = HeldHere(ChainWork(emission), [ChainExpectation(observed, emission, threads)])
        labelled = observed.labels is not None and bool((observed.labels >= 0).any())
        return cls(held, observed.n_steps, observed.weight, labelled)

    @property
    def notes(self) -> tuple[str, ...]:
        """Where the sequences stayed and how often they were asked, for the report; nothing of those in memory."""
        held = self.held
        if isinstance(held, HeldHere):
            return ()
        return (f"the sequences stayed {held.location}, in {held.shards} shards, and were asked {held.rounds} times",)

    def sum(self, parameters: Any, by: Callable[[ChainExpectation, Any], Any] | None = None) -> Any:
        """One round."""
        return self.held.sum(parameters, by)

    def expect(self, parameters: ChainParameters) -> Statistics:
        """The E-step; the log-likelihood is -inf where a sequence has no path."""
        if not (self._last and self._last[0][0].equals(parameters)):
            self._last[:] = [(parameters, self.sum(parameters))]
        return self._last[0][1]

    def counted(self, like: ChainParameters) -> Statistics:
        """The statistics of sequences whose states are all known."""
        statistics: Statistics = self.sum(like, by=counted_states)
        return statistics

    def fingerprint(self) -> str:
        """A mark that tells these sequences from others, whatever their order and their shards."""
        return f"{int(self.sum(None, by=marked)) % (1 << 64):016x}"


# -- questions ---------------------------------------------------------------------------------------------------------


def counted_states(prepared: ChainExpectation, like: ChainParameters) -> Statistics:
    """Counts of the known states of a shard."""
    return counted(prepared.observed, prepared.emission, len(like.initial), like)


def known_windows(prepared: ChainExpectation, _: object, *, size: int) -> Floats:
    """How many sequences begin with each known state, and how many steps go from one to another."""
    observed = prepared.observed
    assert observed.labels is not None
    weighted = np.repeat(observed.weights > 0.0, observed.lengths)
    return label_windows(np.where(weighted, observed.labels, -1), observed.offsets, size)


def log_likelihood(prepared: ChainExpectation, parameters: ChainParameters) -> float:
    """Of the sequences of a shard, each times its weight."""
    values, weights = prepared.log_likelihoods(parameters), prepared.observed.weights
    return float(weights[weights > 0] @ values[weights > 0])


def marked(prepared: ChainExpectation, parameters: object) -> int:
    """The sum of a hash of each sequence, its weight and its known states."""
    observed, total = prepared.observed, 0
    bounds, weights = observed.offsets.tolist(), observed.weights
    arrays = [*observed.values, *([] if observed.labels is None else [observed.labels])]
    for number in range(observed.n_sequences):
        span = slice(bounds[number], bounds[number + 1])
        mark = hashlib.blake2b(weights[number].tobytes(), digest_size=8)
        for array in arrays:
            mark.update(array[span].tobytes())
        total += int.from_bytes(mark.digest(), "little")
    return total


def open_steps(prepared: ChainExpectation, parameters: object) -> int:
    """1 where known states do not settle the statistics of a shard, else 0."""
    return int(not prepared.emission.in_closed_form(prepared.observed.values))


@dataclass(frozen=True)
class CheckLabels:
    """An error where known states go a way, or emit a symbol, that the structure forbids."""

    structure: TransitionStructure
    states: tuple[Hashable, ...]
    durations: tuple[Duration, ...] = ()

    def __call__(self, prepared: ChainExpectation, parameters: object) -> int:
        """Of one shard."""
        self.structure.check_labels(prepared.observed, prepared.emission, self.states, prepared.called)
        check_segments(prepared.observed, self.durations, self.states, prepared.called)
        return 0
