"""Chains on flat arrays: NumPy or compiled, in fixed pieces whose answers are added in order.

K labels; the steps of all sequences lie one after another, and ``offsets`` (n + 1,) says where each begins. Potentials
(steps, K) have rows whose maximum is 1, transitions (1, K, K) are shared by all steps or (steps, K, K) lead into each
step (the entry of a first step is not read), ends (2, K) weigh the first and the last label. The pieces depend on the
offsets alone, so that sums do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats, Ints, Span
from suffice.kernels import chain_numpy
from suffice.kernels.arrays import frozen
from suffice.kernels.chain_batches import EVEN, LEAST, BatchLayout, Places, Recursion, batches, filled_up, spans
from suffice.kernels.choice import use_compiled
from suffice.kernels.threads import run, scratch

#: Multiplications in one piece, some milliseconds of work, and the most pieces.
PIECE = 4_000_000
MOST_PIECES = 256
#: Numbers of potentials of the batches that are worked on at once: they stay in the cache.
CACHED = 1 << 16
#: Most offsets of sequences whose pieces are kept.
MOST_KNOWN = 4096


def pieces(offsets: Ints, size: int, limit: int | None = None) -> list[Span]:
    """Ranges of whole sequences of about equal work; limit: steps of one piece, where no sequence is longer."""
    steps = int(offsets[-1])
    most = max(PIECE // (size * size + 8 * size), -(-steps // MOST_PIECES), 1)
    most = most if limit is None else min(most, limit)
    marks = np.searchsorted(offsets, np.arange(most, steps, most))
    bounds = np.unique(np.concatenate(([0], marks, [len(offsets) - 1])))
    return list(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True))


def seconds(offsets: Ints, size: int) -> float:
    """Estimated time of one pass forward and backward on the NumPy path."""
    longest = int(np.diff(offsets).max(initial=0))
    return 1.5e-5 * longest + float(offsets[-1]) * (1e-9 * size * size + 3e-8 * size)


def compiled(offsets: Ints, size: int, calls: int | None) -> bool:
    """Whether the compiled loops pay for these sequences."""
    return use_compiled("chain", seconds(offsets, size), calls=calls)


def masses(
    potentials: Floats, transitions: Floats, ends: Floats, offsets: Ints, *, threads: int, calls: int | None
) -> tuple[Floats, Floats]:
    """The log of each sequence's mass (n,), NaN where log space is needed, and scaled forward rows (steps, K)."""
    out, rows = np.empty(len(offsets) - 1), np.empty(potentials.shape)
    if not compiled(offsets, potentials.shape[1], calls):
        chain_numpy.masses(potentials, transitions, ends, offsets, LEAST, out, rows)
        return out, rows
    sequences = _Sequences(potentials, transitions, ends, offsets, out, rows, np.zeros(0))
    _spread(lambda piece, _: sequences.solve(piece, None), sequences.pieces, threads)
    return out, rows


def expectations(
    potentials: Floats,
    transitions: Floats,
    ends: Floats,
    offsets: Ints,
    weights: Floats,
    *,
    pairs: bool,
    out: Floats | None,
    threads: int,
    calls: int | None,
) -> tuple[Floats, Floats, Floats, Floats]:
    """Masses (n,), posteriors (steps, K), weighted sums of joint posteriors (K, K), and these by step where asked.

    Sequences whose mass is NaN are in no sum and have no posteriors: they need log space. Joint posteriors by step are
    (steps, K, K), those of first steps 0, or (0, K, K). out (steps, K): where the posteriors go.
    """
    size, shared = potentials.shape[1], len(transitions) == 1
    joint = np.zeros((len(potentials) if pairs else 0, size, size))
    rows = np.empty(potentials.shape) if out is None else out
    if compiled(offsets, size, calls):
        log_z = np.empty(len(offsets) - 1)
        sequences = _Sequences(potentials, transitions, ends, offsets, log_z, rows, joint.reshape(-1))
        parts = np.zeros((len(sequences.pieces), size, size))

        def task(piece: _SequencePiece, number: int) -> None:
            parts[number] = sequences.solve(piece, weights)

        _spread(task, sequences.pieces, threads)
        sums = np.add.reduce(parts, axis=0)
    else:
        log_z, sums = _plain(potentials, transitions, ends, offsets, weights, rows, joint)
    return log_z, rows, sums * transitions[0] if shared else sums, joint


def _plain(
    potentials: Floats, transitions: Floats, ends: Floats, offsets: Ints, weights: Floats, rows: Floats, joint: Floats
) -> tuple[Floats, Floats]:
    """Masses and sums by NumPy; rows (steps, K) take the posteriors."""
    size = potentials.shape[1]
    given = (potentials, transitions, ends, offsets, LEAST)
    out, sums = np.empty(len(offsets) - 1), np.zeros((size, size))
    chain_numpy.masses(*given, out, rows)
    fine = ~np.isnan(out)
    chain_numpy.posteriors(*given, weights, out, rows, sums, joint)
    lost = np.isnan(out)
    if lost[fine].any():  # Found too small on the way back, when part of its sums had been added.
        sums[:] = 0.0
        chain_numpy.masses(*given, out, rows)
        out[lost] = np.nan
        chain_numpy.posteriors(*given, weights, out, rows, sums, joint)
    return out, sums


@dataclass(frozen=True, eq=False)
class _SequencePiece:
    """Sequences that are worked on in one call: members (batches, width), -1 for none; width 1: one after the other.

    starts (batches, width) are their first steps, and layout says where they lie.
    """

    members: Ints
    there: NDArray[np.bool_]
    starts: Places
    layout: BatchLayout

    @classmethod
    def of(cls, members: Ints, offsets: Ints, size: int) -> _SequencePiece:
        """Sequences one after the other lie where their steps are, those side by side in memory of their own."""
        there = members >= 0
        starts = np.where(there, offsets[members], 0).astype(np.uint64)
        lengths = np.where(there, np.diff(offsets)[members], 0).astype(np.uint64)
        if members.shape[1] == 1:
            layout = BatchLayout(frozen(starts[:, 0] * np.uint64(size)), frozen(lengths), 0)
        else:
            layout = BatchLayout.of(lengths, filled_up(size, EVEN))
        return cls(members, there, frozen(starts), layout)

    @property
    def width(self) -> int:
        """Sequences side by side."""
        return int(self.members.shape[1])


def _known_pieces(offsets: Ints, size: int, *, batched: bool) -> tuple[_SequencePiece, ...]:
    """Those of few sequences are kept: a fit asks for the same ones again and again."""
    if len(offsets) > MOST_KNOWN:
        return _chosen_pieces(offsets, size, batched)
    return _kept_pieces(np.ascontiguousarray(offsets, np.int64).tobytes(), size, batched)


@lru_cache(maxsize=64)
def _kept_pieces(offsets: bytes, size: int, batched: bool) -> tuple[_SequencePiece, ...]:
    return _chosen_pieces(np.frombuffer(offsets, np.int64), size, batched)


def _chosen_pieces(offsets: Ints, size: int, batched: bool) -> tuple[_SequencePiece, ...]:
    return tuple(_SequencePiece.of(members, offsets, size) for members in _chosen_members(offsets, size, batched))


def _chosen_members(offsets: Ints, size: int, batched: bool) -> list[Ints]:
    """Members (batches, width) of batches of about equal work, those of width 1 alone; by the offsets alone."""
    lengths = np.diff(offsets)
    some = [members for members in batches(lengths, size) if len(members)] if batched else []
    if not some:
        return [np.arange(first, last)[:, None] for first, last in pieces(offsets, size)]
    chosen: list[Ints] = []
    for members in some:
        costs = lengths[members[:, 0]] * members.shape[1] * filled_up(size, EVEN)
        chosen += [members[first:last] for first, last in spans(costs, CACHED)]
    others = np.setdiff1d(np.arange(len(lengths)), np.concatenate([members.ravel() for members in some]))
    # One call for many of them: each call costs as much as some hundred steps.
    costs = lengths[others] * (size * size + 8 * size)
    return [*chosen, *(others[first:last, None] for first, last in spans(costs, PIECE))]


class _Sequences:
    """All sequences of one call of the compiled loops: some of them side by side, the others one by one.

    out (n,) takes log Z, rows (steps, K) forward rows or posteriors, pairs (steps * K * K or 0,) joint posteriors.
    """

    def __init__(
        self,
        potentials: Floats,
        transitions: Floats,
        ends: Floats,
        offsets: Ints,
        out: Floats,
        rows: Floats,
        pairs: Floats,
    ) -> None:
        """Choose the batches; they need transitions that all steps share."""
        self._size = potentials.shape[1]
        self._potentials, self._rows = potentials.reshape(-1), rows.reshape(-1)
        self._out, self._pairs = out, pairs
        self.pieces = _known_pieces(offsets, self._size, batched=len(transitions) == 1 and not len(pairs))
        self._alone = Recursion(transitions, ends, batched=False)
        beside = any(piece.width > 1 for piece in self.pieces)
        self._beside = Recursion(transitions, ends, batched=True) if beside else self._alone

    def solve(self, piece: _SequencePiece, weights: Floats | None) -> Floats | None:
        """Log Z and forward rows; where there are weights (n,), posteriors, and the sums of joint ones (K, K)."""
        work = self._one_by_one if piece.width == 1 else self._side_by_side
        return work(piece, weights)

    def _one_by_one(self, piece: _SequencePiece, weights: Floats | None) -> Floats | None:
        members, out, sums = piece.members, np.empty(piece.members.shape), None
        if weights is None:
            self._alone.forward(self._potentials, piece.layout, out, self._rows)
        else:
            given = self._potentials, piece.layout, weights[members]
            sums = self._alone.posteriors(*given, out, self._rows, self._pairs)
        self._out[members] = out
        return sums

    def _side_by_side(self, piece: _SequencePiece, weights: Floats | None) -> Floats | None:
        from suffice.kernels.compiled.chain import pack, unpack

        members, there, layout = piece.members, piece.there, piece.layout
        where = (np.uint64(self._size), piece.starts, layout.lengths, np.uint64(self._beside.size), layout.begins)
        potentials, rows = scratch(2 * layout.numbers).reshape(2, -1)
        out, sums = np.empty(members.shape), None
        pack(frozen(self._potentials), *where, potentials)
        if weights is None:
            self._beside.forward(potentials, layout, out, rows)
        else:
            sums = self._beside.posteriors(potentials, layout, np.where(there, weights[members], 0.0), out, rows)
        unpack(frozen(rows), *where, self._rows)
        self._out[members[there]] = out[there]
        return sums


def best_paths(
    scores: Floats, transitions: Floats, ends: Floats, offsets: Ints, *, most: int, threads: int, calls: int | None
) -> tuple[Ints, Floats]:
    """The `most` best paths (most, steps) of each sequence in log space and their values (n, most), falling.

    Where there are fewer paths, values end in -inf and paths in -1.
    """
    size = scores.shape[1]
    paths, values = np.full((most, len(scores)), -1, np.int64), np.empty((len(offsets) - 1, most))
    if not compiled(offsets, size, calls):
        chain_numpy.best_lists(scores, transitions, ends, offsets, paths, values)
        return paths, values
    from suffice.kernels.compiled import chain_paths as loops

    given = (frozen(scores), frozen(transitions), frozen(ends), frozen(offsets))
    if most == 1:
        before, first, value = np.zeros(scores.shape, np.int64), paths[0], values[:, 0].copy()
        _spread(lambda span, _: loops.best_paths(*given, span, before, first, value), pieces(offsets, size), threads)
        paths[:, np.repeat(value == -np.inf, np.diff(offsets))] = -1
        return paths, value[:, None]
    back = np.zeros((*scores.shape, most), np.int64)
    _spread(lambda span, _: loops.best_lists(*given, span, back, paths, values), pieces(offsets, size), threads)
    return paths, values


def draw(
    rows: Floats,
    transitions: Floats,
    final: Floats,
    offsets: Ints,
    wanted: NDArray[np.bool_],
    uniforms: Floats,
    *,
    threads: int,
    calls: int | None,
) -> Ints:
    """Paths (n, steps) drawn from forward rows (steps, K) by uniform numbers (n, steps), for the sequences wanted."""
    paths = np.full(uniforms.shape, -1, np.int64)
    if not compiled(offsets, rows.shape[1], calls):
        chain_numpy.draw(rows, transitions, final, offsets, wanted, uniforms, paths)
        return paths
    from suffice.kernels.compiled import chain_paths as loops

    given = (frozen(rows), frozen(transitions), frozen(final), frozen(offsets))
    asked = (frozen(wanted), frozen(uniforms))
    _spread(lambda span, _: loops.draw(*given, span, *asked, paths), pieces(offsets, rows.shape[1]), threads)
    return paths


def _spread(task: Callable[[Any, int], Any], items: Sequence[Any], threads: int) -> None:
    """Call the task with each piece and its place."""
    run(lambda item, _: task(item[1], item[0]), enumerate(items), min(threads, max(len(items), 1)))
