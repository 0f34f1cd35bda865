"""The loops of `suffice.kernels.compiled.chain` in NumPy: all sequences at once, step by step.

Sequences are ordered by length, so that those that still run at a step are the first ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats, Ints

#: Most offsets of sequences whose order is kept.
MOST_KNOWN = 4096


def _order(offsets: Ints) -> tuple[Ints, Ints, Ints]:
    """Sequences from the longest to the shortest, their first steps, and their lengths."""
    lengths = np.diff(offsets)
    order = np.argsort(-lengths, kind="stable")
    return order, offsets[:-1][order], lengths[order]


def _running(lengths: Ints) -> list[tuple[int, int]]:
    """Each step with the number of sequences that have it."""
    steps = np.arange(int(lengths[0]) if len(lengths) else 0)
    return list(enumerate(np.searchsorted(-lengths, -steps, side="left").tolist()))


@dataclass(frozen=True, eq=False)
class _ByTime:
    """All steps of sequences by their time, those of longer sequences first, so that a time is one stretch of rows.

    order: sequences by length. steps (n,) and sequences (n,): which each row is, the latter counted by length. bounds:
    where each time begins. before: the row of the step before each of the rows from time 1 on. tails: last steps.
    """

    order: Ints
    steps: Ints
    sequences: Ints
    bounds: list[int]
    before: Ints
    tails: Ints

    @classmethod
    def of(cls, offsets: Ints) -> _ByTime:
        """Order the steps."""
        order, starts, lengths = _order(offsets)
        running = [n for _, n in _running(lengths)]
        ends = np.cumsum([0, *running])
        sequences = np.concatenate([np.zeros(0, np.int64), *(np.arange(n) for n in running)])
        times = np.repeat(np.arange(len(running)), running)
        inner = times > 0
        before = ends[times[inner] - 1] + sequences[inner]
        some = lengths > 0
        tails = ends[lengths[some] - 1] + np.flatnonzero(some)
        return cls(order, starts[sequences] + times, sequences, ends.tolist(), before, tails)


@lru_cache(maxsize=16)
def _kept_order(offsets: bytes) -> _ByTime:
    return _ByTime.of(np.frombuffer(offsets, np.int64))


def _by_time(offsets: Ints) -> _ByTime:
    """The steps by time; those of few sequences are kept: a fit asks for the same ones again and again."""
    if len(offsets) > MOST_KNOWN:
        return _ByTime.of(offsets)
    return _kept_order(np.ascontiguousarray(offsets, np.int64).tobytes())


def masses(
    potentials: Floats, transitions: Floats, ends: Floats, offsets: Ints, least: float, out: Floats, rows: Floats
) -> None:
    """The log of the mass of each sequence, NaN where it is too small to tell; rows take the forward rows."""
    by = _by_time(offsets)
    ahead, scale = potentials[by.steps], np.empty(len(by.steps))
    fresh, before = np.empty((len(by.order), ahead.shape[1])), ahead
    with np.errstate(divide="ignore", invalid="ignore"):
        for t, (first, last) in enumerate(pairwise(by.bounds)):
            here = ahead[first:last]
            if t == 0:
                here *= ends[0]
            elif len(transitions) == 1:
                here *= np.matmul(before[: last - first], transitions[0], out=fresh[: last - first])
            else:
                here *= np.einsum("ni,nij->nj", before[: last - first], transitions[by.steps[first:last]])
            here /= np.add.reduce(here, 1, out=scale[first:last])[:, None]
            before = here
        logs = np.where(scale > least, np.log(scale), np.nan)
        total = np.bincount(by.sequences, logs, len(by.order)).astype(np.float64, copy=False)  # Whole numbers if empty.
        end = ahead[by.tails] @ ends[1]
        total[by.sequences[by.tails]] += np.where(end > least, np.log(end), np.nan)
    rows[by.steps] = ahead
    out[by.order] = total


def posteriors(
    potentials: Floats,
    transitions: Floats,
    ends: Floats,
    offsets: Ints,
    least: float,
    weights: Floats,
    out: Floats,
    rows: Floats,
    sums: Floats,
    pairs: Floats,
) -> None:
    """Turn forward rows into posteriors; sums (K, K) and pairs (steps, K, K) as in the compiled loops."""
    by = _by_time(offsets)
    shared, count = len(transitions) == 1, by.bounds[1] if len(by.steps) else 0
    forward, ahead = rows[by.steps], potentials[by.steps]
    behind = np.tile(ends[1], (len(ahead), 1))
    back = np.tile(ends[1], (len(by.order), 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        for t in range(len(by.bounds) - 2, 0, -1):
            first, last = by.bounds[t], by.bounds[t + 1]
            here, n = ahead[first:last], last - first
            here *= back[:n]
            near = behind[by.bounds[t - 1] : by.bounds[t - 1] + n]
            if shared:
                np.matmul(here, transitions[0].T, out=near)
            else:
                near[:] = np.einsum("nj,nij->ni", here, transitions[by.steps[first:last]])
            np.divide(near, np.add.reduce(near, 1)[:, None], out=back[:n])
        posterior = forward * behind
        mass = posterior.sum(axis=1)
        fine = ~np.isnan(out[by.order])
        enough = mass > least
        enough[by.tails] = True
        fine[by.sequences[~enough]] = False
        alive = fine[by.sequences]
        inverse = np.where(alive, 1.0 / mass, 0.0)
        rows[by.steps] = np.where(alive[:, None], posterior * inverse[:, None], 0.0)
        inside = alive[count:]
        left = np.where(inside[:, None], forward[by.before], 0.0)
        right = np.where(inside[:, None], ahead[count:] * inverse[by.before, None], 0.0)
        share = right * weights[by.order[by.sequences[count:]], None]
        if shared:
            sums += left.T @ share
        else:
            sums += np.einsum("ni,nij,nj->ij", left, transitions[by.steps[count:]], share)
        if len(pairs):
            near = transitions[0] if shared else transitions[by.steps[count:]]
            pairs[by.steps[count:]] = left[:, :, None] * near * right[:, None, :]
    out[by.order] = np.where(fine, out[by.order], np.nan)


def best_lists(scores: Floats, transitions: Floats, ends: Floats, offsets: Ints, paths: Ints, values: Floats) -> None:
    """The k best paths of each sequence; with k = 1 this is Viterbi's algorithm."""
    order, starts, lengths = _order(offsets)
    size, most = scores.shape[1], values.shape[1]
    back = np.zeros((len(scores), size, most), np.int64)
    best = np.full((len(order), size, most), -np.inf)
    for t, n in _running(lengths):
        steps = starts[:n] + t
        if t == 0:
            best[:n, :, 0] = ends[0] + scores[steps]
            continue
        near = transitions[0][None] if len(transitions) == 1 else transitions[steps]
        # (n, to, from, rank): candidates of one label lie side by side.
        candidates = best[:n, None, :, :] + near.transpose(0, 2, 1)[..., None]
        flat = candidates.reshape(n, size, size * most)
        whence = np.argsort(-flat, axis=2, kind="stable")[:, :, :most]
        back[steps] = whence
        best[:n] = np.take_along_axis(flat, whence, axis=2) + scores[steps][:, :, None]
    flat = (best + ends[1][None, :, None]).reshape(len(order), size * most)
    places = np.argsort(-flat, axis=1, kind="stable")[:, :most]
    nothing = np.where(np.arange(most) == 0, 0.0, -np.inf)
    values[order] = np.where((lengths > 0)[:, None], np.take_along_axis(flat, places, axis=1), nothing)
    possible = values[order] > -np.inf
    for t, n in reversed(_running(lengths)):
        steps = starts[:n] + t
        label, rank = np.divmod(places[:n], most)
        paths[:, steps] = np.where(possible[:n], label, -1).T
        places[:n] = back[steps[:, None], label, rank]


def draw(
    rows: Floats,
    transitions: Floats,
    final: Floats,
    offsets: Ints,
    wanted: NDArray[np.bool_],
    uniforms: Floats,
    paths: Ints,
) -> None:
    """Sample paths (n, steps) from forward rows, the last label first."""
    order, starts, lengths = _order(offsets)
    keep = wanted[order]
    starts, lengths = starts[keep], lengths[keep]
    for t, n in reversed(_running(lengths)):
        steps = starts[:n] + t
        near = np.broadcast_to(final, (len(paths), n, len(final))).copy()
        on = int(np.searchsorted(-lengths, -(t + 1), side="left"))
        if on:
            after = steps[:on] + 1
            label = paths[:, after]
            matrix = np.zeros(on, np.int64) if len(transitions) == 1 else after
            near[:, :on] = transitions[matrix[None, :], :, label]
        sums = np.cumsum(rows[steps] * near, axis=2)
        marks = uniforms[:, steps] * sums[:, :, -1]
        paths[:, steps] = np.minimum((sums <= marks[..., None]).sum(axis=2), len(final) - 1)
