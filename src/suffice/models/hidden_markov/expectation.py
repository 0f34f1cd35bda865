"""The E-step: one pass forward and backward over all sequences, in blocks and threads.

A sequence too long for memory is cut: messages go through it once forward and once backward, after which its segments
are chains of their own, with the messages as their ends.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.engines.chain_blocks import blocks, map_blocks
from suffice.engines.symbol_chains import SymbolChains
from suffice.models.hidden_markov.chains import CALLS, Observed, chains
from suffice.models.hidden_markov.durations.segments import segment_chains
from suffice.models.hidden_markov.emissions.contract import Emission, Symbols
from suffice.models.hidden_markov.parameters import ChainParameters, SegmentCounts, Statistics
from suffice.models.hidden_markov.segments import LONG, Segments


@dataclass(frozen=True, eq=False)
class ChainExpectation:
    """Expected statistics of some sequences under parameters.

    `keys`, an array of NumPy or Arrow, order the sequences among those of other shards; None for sequences in memory.
    """

    observed: Observed
    emission: Emission
    threads: int | None = 1
    keys: Any = None

    #: Memory of each thread for a block: fresh memory would cost as much as the work.
    _memory: threading.local = field(default_factory=threading.local, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles come without the memory of threads."""
        return type(self), (self.observed, self.emission, self.threads, self.keys)

    def called(self, number: int) -> str:
        """A sequence in words: by its number in memory, else by its name or its first row."""
        if self.keys is None:
            return f"Sequence {number}"
        key = self.keys[number]
        return f"The sequence of row {int(key)}" if isinstance(key, np.integer) else f"The sequence {key.as_py()!r}"

    @cached_property
    def _blocks(self) -> list[tuple[int, int]]:
        return blocks(self.observed.offsets, self.emission.size)

    @cached_property
    def _symbols(self) -> tuple[Symbols, SymbolChains] | None:
        """The steps as words of symbols, where that pays and no state is known."""
        observed, symbols = self.observed, self.emission.symbols(self.observed.values)
        if symbols is None or observed.labels is not None:
            return None
        words = SymbolChains.of(symbols.codes, observed.offsets, symbols.card, self.emission.size, calls=CALLS)
        return None if words is None else (symbols, words)

    def expect(self, parameters: ChainParameters) -> Statistics:
        """The statistics of all sequences; the log-likelihood is -inf where one has no path."""
        if parameters.durations:
            return self._by_segments(parameters)
        if self._symbols is not None and (statistics := self._by_symbols(*self._symbols, parameters)) is not None:
            return statistics
        size = len(parameters.initial)
        if not self.observed.n_sequences:
            sums = self.emission.statistics(self.observed.values, np.zeros((0, size)), parameters.emission)
            return Statistics(np.zeros(size), np.zeros((size, size)), sums)

        def task(span: tuple[int, int]) -> Statistics:
            part = self.observed.take(*span)
            if part.n_sequences == 1 and part.n_steps * size > LONG:
                return self._long(part, parameters)
            return self._block(part, parameters)

        return sum(map_blocks(task, self._blocks, self.threads), start=0)  # type: ignore[return-value]

    def _by_segments(self, parameters: ChainParameters) -> Statistics:
        """The statistics of chains whose states have explicit durations."""
        size = len(parameters.initial)
        if not self.observed.n_sequences:
            sums = self.emission.statistics(self.observed.values, np.zeros((0, size)), parameters.emission)
            none = SegmentCounts(np.zeros((0, size)), np.zeros((0, size)))
            return Statistics(np.zeros(size), np.zeros((size, size)), sums, segments=none)

        def task(span: tuple[int, int]) -> Statistics:
            part = self.observed.take(*span)
            expected = segment_chains(part, self.emission, parameters, calls=CALLS).expectations(part.weights)
            rows, counts, counted = expected.posteriors * part.step_weights[:, None], expected.sums, part.weights > 0
            return Statistics(
                counts.initial,
                counts.pairs,
                self.emission.statistics(part.values, rows, parameters.emission),
                float(part.weights[counted] @ expected.log_partition[counted]),
                SegmentCounts(counts.ended, counts.cut),
            )

        return sum(map_blocks(task, self._blocks, self.threads), start=0)  # type: ignore[return-value]

    def _by_symbols(self, symbols: Symbols, words: SymbolChains, parameters: ChainParameters) -> Statistics | None:
        """The statistics by words of symbols; None where a sequence needs log space."""
        weights, table = self.observed.weights, symbols.table(parameters.emission)
        sums = words.expectations(parameters.initial, parameters.transitions, table, weights, threads=self.threads)
        if not sums.exact:
            return None
        counted = weights > 0
        log_likelihood = float(weights[counted] @ sums.log_partition[counted])
        return Statistics(sums.initial, sums.transitions, symbols.statistics(sums.symbols), log_likelihood)

    def _block(self, part: Observed, parameters: ChainParameters) -> Statistics:
        potentials, posteriors = self._scratch(part.n_steps)
        chain = chains(part, self.emission, parameters, out=potentials)
        expected = chain.expectations(part.weights, out=posteriors, threads=1, calls=CALLS)
        rows = expected.posteriors if part.is_even else expected.posteriors * part.step_weights[:, None]
        counted = part.weights > 0
        return Statistics(
            rows[part.offsets[:-1]].sum(axis=0),
            expected.transition_sums,
            self.emission.statistics(part.values, rows, parameters.emission),
            float(part.weights[counted] @ expected.log_partition[counted]),
        )

    def _scratch(self, steps: int) -> Floats:
        """Two arrays (steps, size) of this thread, one after another."""
        numbers = 2 * steps * self.emission.size
        kept: Floats | None = getattr(self._memory, "numbers", None)
        if kept is None or len(kept) < numbers:
            kept = self._memory.numbers = np.empty(numbers)
        return kept[:numbers].reshape(2, steps, self.emission.size)

    def log_likelihoods(self, parameters: ChainParameters) -> Floats:
        """Of each sequence (n,), one pass forward."""
        if parameters.durations:
            return self._masses_of_segments(parameters)
        if self._symbols is not None:
            symbols, words = self._symbols
            table = symbols.table(parameters.emission)
            logs = words.log_partition(parameters.initial, parameters.transitions, table, threads=self.threads)
            if not np.isnan(logs).any():
                return logs

        def task(span: tuple[int, int]) -> Floats:
            part = self.observed.take(*span)
            if part.n_sequences == 1 and part.n_steps * len(parameters.initial) > LONG:
                return np.array([Segments(part, self.emission, parameters).log_likelihood])
            return chains(part, self.emission, parameters).log_partition(threads=1, calls=CALLS)

        return np.concatenate([np.zeros(0), *map_blocks(task, self._blocks, self.threads)])

    def _masses_of_segments(self, parameters: ChainParameters) -> Floats:
        def task(span: tuple[int, int]) -> Floats:
            part = self.observed.take(*span)
            return segment_chains(part, self.emission, parameters, calls=CALLS).log_partition()

        return np.concatenate([np.zeros(0), *map_blocks(task, self._blocks, self.threads)])

    def _long(self, part: Observed, parameters: ChainParameters) -> Statistics:
        """One long sequence, segment by segment, each between its messages."""
        segments = Segments(part, self.emission, parameters)
        total: Any = 0
        for piece, rows, joint in segments.expectations(threads=self.threads):
            rows *= part.weights[0]
            first = rows[0].copy() if total == 0 else np.zeros(rows.shape[1])
            sums = self.emission.statistics(piece.values, rows, parameters.emission)
            total = total + Statistics(first, joint * part.weights[0], sums)
        whole: Statistics = replace(total, log_likelihood=segments.log_likelihood * float(part.weights[0]))
        return whole
