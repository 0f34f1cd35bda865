"""Chains: a label at each step, linked to the next; exact answers by one pass forward and one backward.

The distribution of a path ``y`` of one sequence is proportional to
``initial[y_0] prod_t potentials[t, y_t] prod_t transitions[y_{t-1}, y_t] final[y_last]``. Hidden Markov models and
chain-structured conditional random fields are both of this form. Rows are scaled, not logarithms; a sequence whose
scaled rows run out of numbers is done again in log space.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from suffice.array_types import Floats, Ints, RandomState
from suffice.checks import draw_count, generator, whole_number
from suffice.engines.workers import worker_count
from suffice.errors import OptionError
from suffice.kernels import chain as kernels
from suffice.kernels import chain_logs


@dataclass(frozen=True)
class Expectations:
    """What a pass forward and backward tells.

    `log_partition` (n,) is -inf where a sequence has no path; its posteriors are then 0. `posteriors` (steps, K);
    `transition_sums` (K, K): sum over sequences, weighted, and steps of the joint posteriors of two labels in a row;
    `pairs` (steps, K, K): these by step (0 at first steps), or None where not asked for.
    """

    log_partition: Floats
    posteriors: Floats
    transition_sums: Floats
    pairs: Floats | None


@dataclass(frozen=True)
class Chains:
    """Sequences of steps with K labels, all scaled: see `chains_of` and `chains_from_logs`.

    Every row of `potentials` (steps, K), every matrix of `transitions` (1 or steps, K, K) and both rows of `ends`
    (2, K), initial and final, have a maximum of 1 (or are 0); the logarithms taken out are in `shift` (steps,).
    `scores(span)` gives the log-potentials of a range of steps for log space, before `shift`.
    """

    potentials: Floats
    transitions: Floats
    ends: Floats
    offsets: Ints
    shift: Floats
    scores: Callable[[slice], Floats]
    log_transitions: Floats
    log_ends: Floats

    @classmethod
    def scaled(
        cls,
        potentials: Floats,
        shift: Floats,
        scores: Callable[[slice], Floats],
        log_transitions: Floats,
        log_ends: Floats,
        offsets: Ints,
    ) -> Chains:
        """Chains whose potentials are scaled already, `shift` taken out; transitions and ends are logarithms."""
        matrix_tops, end_tops = _tops(log_transitions, (1, 2)), _tops(log_ends, (1,))
        matrices, ends, taken = log_transitions - matrix_tops, log_ends - end_tops, shift.copy()
        _take_out(taken, offsets, matrix_tops[:, 0, 0], end_tops[:, 0])
        return cls(potentials, np.exp(matrices), np.exp(ends), offsets, taken, scores, matrices, ends)

    @property
    def sequences(self) -> int:
        """How many sequences there are."""
        return len(self.offsets) - 1

    @cached_property
    def shifts(self) -> Floats:
        """The logarithms taken out, by sequence (n,)."""
        return self._by_sequence(self.shift)

    def log_partition(self, *, threads: int | None = None, calls: int | None = None) -> Floats:
        """The log of the total of all paths (n,)."""
        given = (self.potentials, self.transitions, self.ends, self.offsets)
        log_z, _ = kernels.masses(*given, threads=worker_count(threads), calls=calls)
        for s in np.flatnonzero(np.isnan(log_z)).tolist():
            span = self._span(s)
            rows = chain_logs.forward(self.scores(span), self._log_matrices(span), self.log_ends[0])
            log_z[s] = float(chain_logs.log_sum(rows[-1] + self.log_ends[1], 0))
        return log_z + self.shifts

    def expectations(
        self,
        weights: ArrayLike | None = None,
        *,
        pairs: bool = False,
        out: Floats | None = None,
        threads: int | None = None,
        calls: int | None = None,
    ) -> Expectations:
        """Log partition, posteriors and sums of joint posteriors.

        weights (n,): of each sequence in the sums. out (steps, K): where the posteriors go. calls: how many such calls
        are to be expected, where the path must not depend on what the process did before.
        """
        share = np.ones(self.sequences) if weights is None else np.asarray(weights, np.float64)
        if share.shape != (self.sequences,):
            raise OptionError(f"weights have shape {share.shape}; expected one for each of {self.sequences} sequences.")
        given = (self.potentials, self.transitions, self.ends, self.offsets, share)
        log_z, rows, sums, joint = kernels.expectations(
            *given, pairs=pairs, out=out, threads=worker_count(threads), calls=calls
        )
        for s in np.flatnonzero(np.isnan(log_z)).tolist():
            span = self._span(s)
            inside = joint[span] if pairs else joint
            answer = chain_logs.expectations(self.scores(span), self._log_matrices(span), self.log_ends, inside)
            log_z[s], rows[span] = answer[:2]
            sums += share[s] * answer[2]
        return Expectations(log_z + self.shifts, rows, sums, joint if pairs else None)

    def best_paths(self, most: int = 1, *, threads: int | None = None, calls: int | None = None) -> tuple[Ints, Floats]:
        """The best paths (most, steps) and their logs (n, most), falling; -1 and -inf where there are no more.

        Of equally good paths the one whose labels come first wins, compared from the end.
        """
        most = whole_number(most, "The number of best paths")
        logs = self._all_scores()
        paths, values = kernels.best_paths(
            logs,
            self.log_transitions,
            self.log_ends,
            self.offsets,
            most=most,
            threads=worker_count(threads),
            calls=calls,
        )
        return paths, values + self.shifts[:, None]

    def sample(
        self, n: int = 1, *, random_state: RandomState = None, threads: int | None = None, calls: int | None = None
    ) -> Ints:
        """Paths (n, steps) drawn from their distribution; -1 along sequences that have no path."""
        draw_count(n)
        uniforms = generator(random_state).random((n, len(self.potentials)))
        given = (self.potentials, self.transitions, self.ends, self.offsets)
        workers = worker_count(threads)
        log_z, rows = kernels.masses(*given, threads=workers, calls=calls)
        fine = ~np.isnan(log_z)
        paths = kernels.draw(
            rows, self.transitions, self.ends[1], self.offsets, fine, uniforms, threads=workers, calls=calls
        )
        for s in np.flatnonzero(~fine).tolist():
            span = self._span(s)
            logs = self.scores(span), self._log_matrices(span), self.log_ends
            if np.isfinite(chain_logs.log_sum(chain_logs.forward(*logs[:2], logs[2][0])[-1] + logs[2][1], 0)):
                paths[:, span] = chain_logs.draw(*logs, uniforms[:, span])
        return paths

    def log_weights(self, paths: ArrayLike) -> Floats:
        """The log of the unnormalised weight of one path through each sequence: paths (steps,) to (n,)."""
        labels = np.asarray(paths, np.int64)
        steps = np.arange(len(labels))
        logs = self._all_scores()[steps, labels]
        inner = np.ones(len(labels), bool)
        some = np.diff(self.offsets) > 0
        firsts, lasts = self.offsets[:-1][some], self.offsets[1:][some] - 1
        inner[firsts] = False
        inner_steps = np.flatnonzero(inner)
        matrix = np.zeros_like(inner_steps) if len(self.log_transitions) == 1 else inner_steps
        logs[inner_steps] += self.log_transitions[matrix, labels[inner_steps - 1], labels[inner_steps]]
        logs[firsts] += self.log_ends[0][labels[firsts]]
        logs[lasts] += self.log_ends[1][labels[lasts]]
        return self._by_sequence(logs) + self.shifts

    def _by_sequence(self, values: Floats) -> Floats:
        """Values by step (steps,) summed for each sequence (n,)."""
        sums = np.add.reduceat(np.append(values, 0.0), self.offsets[:-1])
        return np.where(np.diff(self.offsets) > 0, sums, 0.0)

    def _span(self, s: int) -> slice:
        return slice(int(self.offsets[s]), int(self.offsets[s + 1]))

    def _log_matrices(self, span: slice) -> Floats:
        """Log transitions of one sequence."""
        return self.log_transitions if len(self.log_transitions) == 1 else self.log_transitions[span]

    def _all_scores(self) -> Floats:
        return self.scores(slice(0, len(self.potentials)))


def chains_of(
    potentials: ArrayLike,
    transitions: ArrayLike,
    *,
    offsets: ArrayLike,
    initial: ArrayLike | None = None,
    final: ArrayLike | None = None,
    shift: ArrayLike | None = None,
) -> Chains:
    """Chains from numbers that are not negative.

    Args:
        potentials: (steps, K).
        transitions: (K, K), from rows to columns, or (steps, K, K) into each step; those of first steps are not read.
        offsets: (n + 1,), where each sequence begins, and the number of steps.
        initial: (K,); ones unless given.
        final: (K,); ones unless given.
        shift: (steps,), logarithms taken out of the potentials beforehand.
    """
    rows = np.ascontiguousarray(potentials, np.float64)
    matrices = np.asarray(transitions, np.float64)
    matrices = matrices[None] if matrices.ndim == 2 else matrices
    ends = _ends(rows.shape[1] if rows.ndim == 2 else 0, initial, final, 1.0)
    places = _checked(rows, matrices, ends, offsets)
    taken = np.zeros(len(rows)) if shift is None else np.array(shift, np.float64)
    rows, tops = _scaled(rows, (1,))
    matrices, matrix_tops = _scaled(matrices, (1, 2))
    ends, end_tops = _scaled(ends, (1,))
    with np.errstate(divide="ignore"):
        log_matrices, log_ends = np.log(matrices), np.log(ends)
        taken += np.log(tops[:, 0])
        _take_out(taken, places, np.log(matrix_tops[:, 0, 0]), np.log(end_tops[:, 0]))

    def scores(span: slice) -> Floats:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(rows[span]))

    return Chains(rows, matrices, ends, places, taken, scores, log_matrices, log_ends)


def chains_from_logs(
    scores: ArrayLike,
    transitions: ArrayLike,
    *,
    offsets: ArrayLike,
    initial: ArrayLike | None = None,
    final: ArrayLike | None = None,
) -> Chains:
    """Chains from logarithms; -inf forbids. Shapes as in `chains_of`."""
    logs = np.ascontiguousarray(scores, np.float64)
    matrices = np.asarray(transitions, np.float64)
    matrices = matrices[None] if matrices.ndim == 2 else matrices
    ends = _ends(logs.shape[1] if logs.ndim == 2 else 0, initial, final, 0.0)
    places = _checked(logs, matrices, ends, offsets)
    tops = _tops(logs, (1,))

    def inside(span: slice) -> Floats:
        return np.asarray(logs[span] - tops[span])

    return Chains.scaled(np.exp(logs - tops), tops[:, 0], inside, matrices, ends, places)


def _ends(size: int, initial: ArrayLike | None, final: ArrayLike | None, neutral: float) -> Floats:
    plain = np.full(size, neutral)
    given = [plain if end is None else np.asarray(end, np.float64) for end in (initial, final)]
    for name, end in zip(("initial", "final"), given, strict=True):
        if end.shape != (size,):
            raise OptionError(f"{name} has shape {end.shape}; expected one number for each of {size} labels.")
    return np.stack(given)


def _checked(rows: Floats, matrices: Floats, ends: Floats, offsets: ArrayLike) -> Ints:
    """The offsets, where all shapes fit and nothing is NaN."""
    places = np.ascontiguousarray(offsets, np.int64)
    if rows.ndim != 2:
        raise OptionError(f"potentials have shape {rows.shape}; expected (steps, labels).")
    steps, size = rows.shape
    if matrices.ndim != 3 or matrices.shape[1:] != (size, size) or len(matrices) not in (1, steps):
        raise OptionError(
            f"transitions have shape {matrices.shape}; expected ({size}, {size}), or one matrix for each of the "
            f"{steps} steps."
        )
    if places.ndim != 1 or not len(places) or places[0] != 0 or places[-1] != steps or (np.diff(places) < 0).any():
        raise OptionError(f"offsets must rise from 0 to {steps}, the number of steps; got {places!r}.")
    for name, array in (("potentials", rows), ("transitions", matrices), ("initial and final", ends)):
        if np.isnan(array).any():
            raise OptionError(f"{name} hold a value that is not a number.")
    return places


def _tops(array: Floats, axes: tuple[int, ...]) -> Floats:
    """The largest logarithm along the axes; 0 where all are -inf."""
    tops = array.max(axis=axes, keepdims=True)
    return np.where(np.isfinite(tops), tops, 0.0)


def _scaled(array: Floats, axes: tuple[int, ...]) -> tuple[Floats, Floats]:
    """The array divided by its maximum along the axes, and the maxima; 1 where all are 0."""
    if (array < 0.0).any() or not np.isfinite(array).all():
        raise OptionError("Potentials and transitions must be finite and not negative.")
    tops = array.max(axis=axes, keepdims=True)
    tops = np.where(tops > 0.0, tops, 1.0)
    return np.ascontiguousarray(array / tops), tops


def _take_out(shift: Floats, offsets: Ints, matrix_logs: Floats, end_logs: Floats) -> None:
    """Add what was taken out of transitions and ends to the steps where they count."""
    some = np.diff(offsets) > 0
    firsts, lasts = offsets[:-1][some], offsets[1:][some] - 1
    inner = np.ones(len(shift), bool)
    inner[firsts] = False
    shift[inner] += matrix_logs[0] if len(matrix_logs) == 1 else matrix_logs[inner]
    shift[firsts] += end_logs[0]
    shift[lasts] += end_logs[1]
