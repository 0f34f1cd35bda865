"""Chains on flat arrays: NumPy or compiled, in fixed pieces whose answers are added in order.

K labels; the steps of all sequences lie one after another, and ``offsets`` (n + 1,) says where each begins. Potentials
(steps, K) have rows whose maximum is 1, transitions (1, K, K) are shared by all steps or (steps, K, K) lead into each
step (the entry of a first step is not read), ends (2, K) weigh the first and the last label. The pieces depend on the
offsets alone, so that sums do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.kernels import chain_numpy
from suffice.kernels.arrays import frozen
from suffice.kernels.chain_lanes import Groups, Lanes, groups
from suffice.kernels.choice import use_compiled
from suffice.kernels.threads import run

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Pieces = list[tuple[int, int]]

#: A scaled row with less mass than this sends its sequence to log space: what underflows is smaller still.
LEAST = 1e-200
#: Multiplications in one piece, some milliseconds of work, and the most pieces.
PIECE = 4_000_000
MOST_PIECES = 256


def pieces(offsets: Ints, size: int, limit: int | None = None) -> Pieces:
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
    return 3e-5 * longest + float(offsets[-1]) * (3e-9 * size * size + 6e-8 * size)


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
    from suffice.kernels.compiled import chain as loops

    given = (frozen(potentials), frozen(transitions), frozen(ends), frozen(offsets))
    side_by_side = _groups(transitions, offsets, rows)
    if side_by_side is not None:
        lanes = Lanes(potentials, transitions[0], ends, side_by_side)
        _spread(lambda span, _: lanes.masses(span, LEAST, out, rows), lanes.pieces(PIECE), threads)
    spans = _alone(side_by_side, offsets, potentials.shape[1])
    _spread(lambda span, _: loops.masses(*given, span, LEAST, out, rows), spans, threads)
    return out, rows


def _groups(transitions: Floats, offsets: Ints, rows: Floats) -> Groups | None:
    """Groups of sequences to be worked on side by side, where transitions are shared; None where there are none."""
    if len(transitions) != 1 or not rows.flags.c_contiguous:
        return None
    found = groups(offsets)
    return found if len(found.members) else None


def _alone(found: Groups | None, offsets: Ints, size: int) -> Pieces:
    """Pieces of the sequences that are in no group."""
    if found is None:
        return pieces(offsets, size)
    return [(s, s + 1) for s in found.others.tolist()]


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
    given = (potentials, transitions, ends, offsets, weights)
    if compiled(offsets, size, calls):
        found, sums = _compiled(*given, rows, joint, threads)
    else:
        found, sums = _plain(*given, rows, joint)
    return found, rows, sums * transitions[0] if shared else sums, joint


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


def _compiled(
    potentials: Floats,
    transitions: Floats,
    ends: Floats,
    offsets: Ints,
    weights: Floats,
    rows: Floats,
    joint: Floats,
    threads: int,
) -> tuple[Floats, Floats]:
    """Masses and sums by the compiled loops; each piece has sums of its own. rows (steps, K) take the posteriors."""
    from suffice.kernels.compiled import chain as loops

    size = potentials.shape[1]
    side_by_side = None if len(joint) else _groups(transitions, offsets, rows)
    spans = _alone(side_by_side, offsets, size)
    out, sums = np.empty(len(offsets) - 1), np.zeros((len(spans), size, size))
    given = (frozen(potentials), frozen(transitions), frozen(ends), frozen(offsets))
    back = (given[0], given[1], frozen(transitions[:1].transpose(0, 2, 1)), given[2], given[3])
    weighing = frozen(weights)

    def task(span: tuple[int, int], place: int) -> None:
        loops.masses(*given, span, LEAST, out, rows)
        fine = ~np.isnan(out[slice(*span)])
        loops.posteriors(*back, span, LEAST, weighing, out, rows, sums[place], joint)
        lost = np.isnan(out[slice(*span)])
        if lost[fine].any():  # Found too small on the way back, when part of its sums had been added.
            sums[place] = 0.0
            loops.masses(*given, span, LEAST, out, rows)
            out[slice(*span)][lost] = np.nan
            loops.posteriors(*back, span, LEAST, weighing, out, rows, sums[place], joint)

    _spread(task, spans, threads)
    total = np.add.reduce(sums, axis=0)
    if side_by_side is not None:
        lanes = Lanes(potentials, transitions[0], ends, side_by_side)
        total += _side_by_side(lanes, weighing, out, rows, threads)
    return out, total


def _side_by_side(lanes: Lanes, weights: Floats, out: Floats, rows: Floats, threads: int) -> Floats:
    """Write masses and posteriors of the sequences in groups; return their sums, added in the order of the groups."""
    spans = lanes.pieces(PIECE)
    sums: list[Any] = [None] * len(spans)

    def task(span: tuple[int, int], place: int) -> None:
        sums[place] = lanes.posteriors(span, LEAST, weights, out, rows)

    _spread(task, spans, threads)
    return np.asarray(np.add.reduce(sums, axis=0))


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
    from suffice.kernels.compiled import chain as loops

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
    from suffice.kernels.compiled import chain as loops

    given = (frozen(rows), frozen(transitions), frozen(final), frozen(offsets))
    asked = (frozen(wanted), frozen(uniforms))
    _spread(lambda span, _: loops.draw(*given, span, *asked, paths), pieces(offsets, rows.shape[1]), threads)
    return paths


def _spread(task: Callable[[tuple[int, int], int], Any], spans: Pieces, threads: int) -> None:
    """Call the task with each piece and its place."""
    run(lambda item, _: task(item[1], item[0]), enumerate(spans), min(threads, max(len(spans), 1)))
