"""Compiled loops of hidden chains whose steps are words of symbols: one product of a row and a matrix for a word.

Matrices lie one after another in a flat array, K * K numbers each, and words are their numbers. The argument `states`
is a tuple with an entry for each state: its length is part of its type, so that Numba compiles each number of states as
a case of its own, and LLVM unrolls all loops over states.
"""

from __future__ import annotations

import math

import numpy as np

from suffice.array_types import Codes, Floats, Ints, Words, Words32
from suffice.kernels.jit import fused

_1 = np.uint64(1)

States = tuple[bool, ...]
"""See above."""


@fused
def spell(codes: Codes, offsets: Ints, card: int, length: int, bounds: Ints, words: Words32) -> None:
    """The words of each sequence after its first step: as many of `length` symbols as there are, then single symbols.

    A code of -1 is the last of the `card` symbols. bounds (n + 1,): where the words of each sequence begin.
    """
    for s in range(len(offsets) - 1):
        t = offsets[s] + 1
        for w in range(bounds[s], bounds[s + 1]):
            many = offsets[s + 1] - t >= length
            word = 0
            for _ in range(length if many else 1):
                word = word * card + (codes[t] if codes[t] >= 0 else card - 1)
                t += 1
            words[w] = word + card if many and length > 1 else word


@fused
def forward(
    matrices: Floats,
    firsts: Floats,
    words: Words32,
    bounds: Words,
    states: States,
    least: float,
    out: Floats,
    rows: Floats,
) -> None:
    """Log Z of each sequence (n,), NaN where a row has less mass than `least`, and the row before each word, scaled.

    firsts (n * K,): the rows of the first steps; rows (words * K,) may be empty, and then takes nothing.
    """
    size = np.uint64(len(states))
    row, fresh = np.empty(len(states)), np.empty(len(states))
    keep = len(rows) > 0
    for s in range(np.uint64(len(out))):
        total = 0.0
        for j in range(size):
            row[j] = firsts[s * size + j]
            total += row[j]
        mass, log_z, fine = total, 0.0, total > least
        for j in range(size):
            row[j] /= total
        for w in range(bounds[s], bounds[s + _1]):
            cell = np.uint64(words[w]) * size * size
            for j in range(size):
                fresh[j] = 0.0
            for i in range(size):
                for j in range(size):
                    fresh[j] += row[i] * matrices[cell + i * size + j]
            total = 0.0
            for j in range(size):
                total += fresh[j]
            if keep:
                for j in range(size):
                    rows[w * size + j] = row[j]
            fine = fine and total > least
            mass *= total
            if mass < 1e-100:
                log_z += math.log(mass)
                mass = 1.0
            total = 1.0 / total
            for j in range(size):
                row[j] = fresh[j] * total
        out[s] = log_z + math.log(mass) if fine else math.nan


@fused
def backward(
    matrices: Floats,
    words: Words32,
    bounds: Words,
    states: States,
    least: float,
    weights: Floats,
    out: Floats,
    rows: Floats,
    sums: Floats,
    lasts: Floats,
) -> None:
    """Add ``weight a_i b_j / a'Nb`` of each word, a the row before it and b what follows, to the sums of its matrix.

    lasts (n * K,) takes b of the first steps, how likely all that follows is, up to a scale. A sequence whose mass
    turns out too small becomes NaN in out.
    """
    size = np.uint64(len(states))
    back, fresh = np.empty(len(states)), np.empty(len(states))
    for s in range(np.uint64(len(out))):
        for j in range(size):
            back[j] = 1.0
        for behind in range(bounds[s + _1] - bounds[s]):
            w = bounds[s + _1] - _1 - behind
            cell = np.uint64(words[w]) * size * size
            for i in range(size):
                fresh[i] = 0.0
                for j in range(size):
                    fresh[i] += matrices[cell + i * size + j] * back[j]
            mass, total = 0.0, 0.0
            for i in range(size):
                mass += rows[w * size + i] * fresh[i]
                total += fresh[i]
            if not mass > least:
                out[s] = math.nan
            share = weights[s] / mass
            for i in range(size):
                left = rows[w * size + i] * share
                for j in range(size):
                    sums[cell + i * size + j] += left * back[j]
            total = 1.0 / total
            for j in range(size):
                back[j] = fresh[j] * total
        for j in range(size):
            lasts[s * size + j] = back[j]
