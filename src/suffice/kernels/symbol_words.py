"""Hidden chains that emit few symbols: several steps in a row are one word, and each word has one matrix.

With N_o[i, j] = A[i, j] P(o | j), the steps o_1 ... o_m take a forward row a to a N_{o_1} ... N_{o_m}. There are few
different words, so their products are made once, and a sequence is as many products of a row and a matrix as it has
words. Expected counts follow the same way back: W_w sums ``a_i b_k / a'N_w b`` over the places of a word w, a and b
being the rows before and after it; a word uv has N_uv = N_u N_v, so that it adds W_uv N_v' to W_u and N_u' W_uv to W_v;
and of single symbols N_o[i, j] W_o[i, j] are the expected transitions from i to j that emit o.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from suffice.array_types import Codes, Floats, Ints, Words, Words32
from suffice.kernels.arrays import frozen
from suffice.kernels.chain_batches import LEAST

#: Most states: with more of them, sequences side by side are faster.
MOST_STATES = 6
#: Numbers in the matrices of all words: these, and as many sums, stay in the cache.
MOST_NUMBERS = 1 << 15


def word_length(card: int, size: int) -> int:
    """Symbols in a word, a power of two; 0 where even the matrices of single symbols are too many."""
    if size > MOST_STATES or card * size * size > MOST_NUMBERS:
        return 0
    length = 1
    while card ** (2 * length) * size * size <= MOST_NUMBERS and card > 1:
        length *= 2
    return length


@dataclass(frozen=True, eq=False)
class SymbolWords:
    """Sequences of `card` symbols, none of them empty, as words.

    firsts (n,): the symbol of each first step; words: numbers of matrices, those of single symbols first; bounds
    (n + 1,): where the words of each sequence begin.
    """

    card: int
    length: int
    firsts: Codes
    words: Words32
    bounds: Ints

    @classmethod
    def of(cls, codes: Codes, offsets: Ints, card: int, size: int) -> SymbolWords:
        """Spell the sequences; codes (steps,), a code of -1 is the last symbol."""
        from suffice.kernels.compiled.symbol_words import spell

        length = word_length(card, size)
        later = np.diff(offsets) - 1
        bounds = np.concatenate(([0], np.cumsum(later // length + later % length)))
        words = np.empty(int(bounds[-1]), np.uint32)
        spell(frozen(codes), frozen(offsets), card, length, bounds, words)
        firsts = codes[offsets[:-1]]
        return cls(card, length, np.where(firsts < 0, card - 1, firsts).astype(np.int32), words, bounds)

    @cached_property
    def _places(self) -> Words:
        return frozen(self.bounds.astype(np.uint64))

    def log_masses(self, initial: Floats, transitions: Floats, table: Floats) -> Floats:
        """Log Z of each sequence (n,), NaN where log space is needed; table (card, K): P(symbol | state)."""
        levels = self._levels(transitions, table)
        return self._forward(initial, table, levels, np.zeros(0))

    def expectations(
        self, initial: Floats, transitions: Floats, table: Floats, weights: Floats
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """Log Z (n,), and weighted sums of posteriors: of first states (K,), transitions (K, K), symbols (card, K).

        Where log Z of a sequence is NaN the sums are wrong.
        """
        from suffice.kernels.compiled.symbol_words import backward

        size, levels = len(initial), self._levels(transitions, table)
        rows = np.empty(len(self.words) * size)
        out = self._forward(initial, table, levels, rows)
        sums, lasts = np.zeros((self.card + self._most, size, size)), np.empty((len(out), size))
        given = (_flat(levels), frozen(self.words), self._places, (True,) * size, LEAST, frozen(weights), out)
        backward(*given, frozen(rows), sums.reshape(-1), lasts.reshape(-1))
        firsts = initial * table[self.firsts] * lasts
        mass = firsts.sum(axis=1)
        out[~(mass > LEAST)] = np.nan
        with np.errstate(divide="ignore", invalid="ignore"):
            firsts *= (weights / mass)[:, None]
        joint = levels[0] * self._of_symbols(sums, levels)
        counts = joint.sum(axis=1)
        np.add.at(counts, self.firsts, firsts)
        return out, firsts.sum(axis=0), joint.sum(axis=0), counts

    @property
    def _most(self) -> int:
        """Words of more than one symbol."""
        return int(self.card**self.length) if self.length > 1 else 0

    def _levels(self, transitions: Floats, table: Floats) -> list[Floats]:
        """The matrices of single symbols, of words of two, four and so on; each (words, K, K)."""
        levels = [transitions * table[:, None, :]]
        while self.card ** (2 ** len(levels)) <= self._most:
            shorter = levels[-1]
            levels.append((shorter[:, None] @ shorter[None]).reshape(-1, *transitions.shape))
        return levels

    def _forward(self, initial: Floats, table: Floats, levels: list[Floats], rows: Floats) -> Floats:
        from suffice.kernels.compiled.symbol_words import forward

        out, firsts = np.empty(len(self.firsts)), initial * table[self.firsts]
        states = (True,) * len(initial)
        forward(_flat(levels), frozen(firsts.reshape(-1)), frozen(self.words), self._places, states, LEAST, out, rows)
        return out

    def _of_symbols(self, sums: Floats, levels: list[Floats]) -> Floats:
        """Sums over the places of each symbol (card, K, K), from those of words."""
        singles, longer = sums[: self.card], sums[self.card :]
        for shorter in levels[-2::-1]:
            words, size = shorter.shape[:2]
            pairs = longer.reshape(words, words, size, size)
            left = pairs.transpose(0, 2, 1, 3).reshape(words * size, words * size)
            before = left @ shorter.transpose(0, 2, 1).reshape(words * size, size)
            after = left.T @ shorter.reshape(words * size, size)
            longer = before.reshape(words, size, size) + after.reshape(words, size, size).transpose(0, 2, 1)
        return singles + longer if self.length > 1 else singles


def _flat(levels: list[Floats]) -> Floats:
    """The matrices of single symbols, then those of the longest words."""
    kept = levels if len(levels) == 1 else [levels[0], levels[-1]]
    return frozen(np.concatenate(kept).reshape(-1))
