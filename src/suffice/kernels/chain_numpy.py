"""The loops of `suffice.kernels.compiled.chain` in NumPy: all sequences at once, step by step.

Sequences are ordered by length, so that those that still run at a step are the first ones.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats, Ints


def _order(offsets: Ints) -> tuple[Ints, Ints, Ints]:
    """Sequences from the longest to the shortest, their first steps, and their lengths."""
    lengths = np.diff(offsets)
    order = np.argsort(-lengths, kind="stable")
    return order, offsets[:-1][order], lengths[order]


def _running(lengths: Ints) -> list[tuple[int, int]]:
    """Each step with the number of sequences that have it."""
    steps = np.arange(int(lengths[0]) if len(lengths) else 0)
    return list(enumerate(np.searchsorted(-lengths, -steps, side="left").tolist()))


def _ahead(x: Floats, transitions: Floats, steps: Ints) -> Floats:
    """Rows x (n, K) moved one step on, into the steps `steps`."""
    if len(transitions) == 1:
        return np.asarray(x @ transitions[0])
    return np.asarray(np.einsum("ni,nij->nj", x, transitions[steps]))


def _back(x: Floats, transitions: Floats, steps: Ints) -> Floats:
    if len(transitions) == 1:
        return np.asarray(x @ transitions[0].T)
    return np.asarray(np.einsum("nj,nij->ni", x, transitions[steps]))


def masses(
    potentials: Floats, transitions: Floats, ends: Floats, offsets: Ints, least: float, out: Floats, rows: Floats
) -> None:
    """The log of the mass of each sequence, NaN where it is too small to tell; rows take the forward rows."""
    order, starts, lengths = _order(offsets)
    total = np.zeros(len(order))
    with np.errstate(divide="ignore", invalid="ignore"):
        for t, n in _running(lengths):
            steps = starts[:n] + t
            ahead = (
                ends[0] * potentials[steps]
                if t == 0
                else _ahead(rows[steps - 1], transitions, steps) * potentials[steps]
            )
            scale = ahead.sum(axis=1)
            rows[steps] = ahead / scale[:, None]
            total[:n] += np.where(scale > least, np.log(scale), np.nan)
        some = lengths > 0
        end = (rows[(starts + lengths - 1)[some]] * ends[1]).sum(axis=1)
        total[some] += np.where(end > least, np.log(end), np.nan)
    out[order] = total


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
    order, starts, lengths = _order(offsets)
    shared = len(transitions) == 1
    fine = ~np.isnan(out[order])
    back = np.tile(ends[1], (len(order), 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        tail = (starts + lengths - 1)[lengths > 0]
        rows[tail] *= ends[1]
        rows[tail] /= rows[tail].sum(axis=1, keepdims=True)
        for t, n in reversed(_running(lengths)):
            if t == 0:
                break
            steps = starts[:n] + t
            ahead = back[:n] * potentials[steps]
            behind = _back(ahead, transitions, steps)
            before = rows[steps - 1]
            mass = (before * behind).sum(axis=1)
            fine[:n] &= mass > least
            inverse = np.where(fine[:n], 1.0 / np.where(fine[:n], mass, 1.0), 0.0)
            before = np.where(fine[:n, None], before, 0.0)
            share = np.where(fine[:n, None], ahead, 0.0) * (inverse * weights[order[:n]])[:, None]
            if len(sums):
                sums += before.T @ share if shared else np.einsum("ni,nij,nj->ij", before, transitions[steps], share)
            if len(pairs):
                near = transitions[0] if shared else transitions[steps]
                pairs[steps] = before[:, :, None] * near * (ahead * inverse[:, None])[:, None, :]
            rows[steps - 1] = before * behind * inverse[:, None]
            back[:n] = behind / np.where(fine[:n], behind.sum(axis=1), 1.0)[:, None]
    out[order] = np.where(fine, out[order], np.nan)


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
