"""Hidden chains of few states that emit few symbols: words of symbols are worked on as one step each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from suffice.array_types import Codes, Floats, Ints, Span
from suffice.engines.chain_blocks import map_blocks
from suffice.kernels.chain import compiled
from suffice.kernels.chain_batches import spans
from suffice.kernels.symbol_words import SymbolWords, word_length

#: Steps of a block of whole sequences: its rows stay in the cache, and the matrices of words are nothing beside it.
BLOCK = 1 << 20
#: Numbers (words times states) of the rows of one sequence, above which it is to be cut.
LONGEST = 1 << 26


@dataclass(frozen=True)
class SymbolSums:
    """log Z (n,) of sequences, and weighted sums of posteriors: of first states (K,), transitions and symbols.

    transitions (K, K); symbols (card, K). `exact` is False where a sequence needs log space: its log Z is NaN, and the
    sums are wrong.
    """

    log_partition: Floats
    initial: Floats
    transitions: Floats
    symbols: Floats

    @property
    def exact(self) -> bool:
        """Whether no sequence needs log space."""
        return not np.isnan(self.log_partition).any()


@dataclass(frozen=True, eq=False)
class SymbolChains:
    """Sequences of symbols in blocks of whole ones; `of` says whether words pay."""

    blocks: list[Span]
    words: list[SymbolWords]

    @classmethod
    def of(cls, codes: Codes, offsets: Ints, card: int, size: int, *, calls: int) -> SymbolChains | None:
        """Spell sequences of codes (steps,), -1 for the last of `card` symbols; size: hidden states.

        None where other loops are to be taken: that depends on the lengths and on these two numbers alone.
        """
        lengths, length = np.diff(offsets), word_length(card, size)
        if not length or not len(lengths) or lengths.min() < 1 or int(lengths.max()) // length * size > LONGEST:
            return None
        if not compiled(offsets, size, calls):
            return None
        blocks = spans(lengths, BLOCK)
        words = [
            SymbolWords.of(codes[offsets[a] : offsets[b]], offsets[a : b + 1] - offsets[a], card, size)
            for a, b in blocks
        ]
        return cls(blocks, words)

    def log_partition(self, initial: Floats, transitions: Floats, table: Floats, *, threads: int | None) -> Floats:
        """Log Z of each sequence (n,), NaN where log space is needed; table (card, K): P(symbol | state)."""

        def task(words: SymbolWords) -> Floats:
            return words.log_masses(initial, transitions, table)

        return np.concatenate(map_blocks(task, self.words, threads))

    def expectations(
        self, initial: Floats, transitions: Floats, table: Floats, weights: Floats, *, threads: int | None
    ) -> SymbolSums:
        """One pass forward and backward; weights (n,) of the sequences."""

        def task(number: int) -> tuple[Floats, ...]:
            first, last = self.blocks[number]
            return self.words[number].expectations(initial, transitions, table, weights[first:last])

        answers = map_blocks(task, range(len(self.blocks)), threads)
        logs, *sums = zip(*answers, strict=True)
        first, joint, symbols = (np.sum(part, axis=0) for part in sums)
        return SymbolSums(np.concatenate(logs), first, joint, symbols)
