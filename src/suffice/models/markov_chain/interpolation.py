"""Interpolation of histories of falling length, its weights fixed, left-one-out or held out.

At each level the weight of a bucket of histories maximises ``sum_e n_e log(weight b_e + (1 - weight) a_e)``: b is the
probability of an event by the shorter history, a by its own, from counts in which the event is not. The objective is
concave in the weight. A step is one step of EM, then one of Newton where that raises the objective further.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.engines.runs import sums_by
from suffice.errors import DataError
from suffice.iteration import Control, Outcome, State, iterate
from suffice.models.markov_chain.laws import BackoffLaw, safe_log
from suffice.models.markov_chain.levels import Level, Levels
from suffice.models.markov_chain.smoothing import Interpolation

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Evidence:
    """Events that decide about weights: probability by own history and by the shorter one, number, bucket."""

    own: Floats
    shorter: Floats
    number: Floats
    bucket: Integers
    buckets: int

    def used(self) -> Evidence:
        """Without the events that say nothing: possible under neither."""
        keep = (self.own + self.shorter > 0) & (self.number > 0)
        return Evidence(self.own[keep], self.shorter[keep], self.number[keep], self.bucket[keep], self.buckets)

    def objectives(self, weights: Floats) -> Floats:
        """Sum of log probabilities in each bucket (buckets,)."""
        return self._sums(self.number * safe_log(self._mixed(weights)))

    def objective(self, weights: Floats) -> float:
        """Sum of log probabilities."""
        return float(self.objectives(weights).sum())

    def _mixed(self, weights: Floats) -> Floats:
        share = weights[self.bucket]
        return share * self.shorter + (1.0 - share) * self.own

    def slopes(self, weights: Floats) -> tuple[Floats, Floats]:
        """First and second derivative in each weight, for one event of the bucket."""
        mixed = self._mixed(weights)
        ratio = np.divide(self.shorter - self.own, mixed, out=np.zeros_like(mixed), where=mixed > 0)
        total = np.maximum(self._sums(self.number), 1e-300)
        return self._sums(self.number * ratio) / total, -self._sums(self.number * ratio**2) / total

    def _sums(self, values: Floats) -> Floats:
        return sums_by(self.bucket, values, self.buckets)

    def expected(self, weights: Floats) -> Floats:
        """Shares of the shorter history (a step of EM); a bucket without events keeps its weight."""
        mixed = self._mixed(weights)
        share = weights[self.bucket] * self.shorter
        part = np.divide(share, mixed, out=np.zeros_like(mixed), where=mixed > 0)
        total = self._sums(self.number)
        return np.where(total > 0, self._sums(self.number * part) / np.where(total > 0, total, 1.0), weights)

    def gap(self, weights: Floats) -> float:
        """Largest slope that could still be climbed, in nats an event."""
        slope, _ = self.slopes(weights)
        climb = np.where(slope > 0, slope * (1.0 - weights), -slope * weights)
        return float(climb.max(initial=0.0))


def learn_weights(evidence: Evidence, control: Control) -> Outcome:
    """The weights that maximise the objective (buckets,)."""
    used = evidence.used()
    start = np.full(evidence.buckets, 0.5)

    def step(state: State) -> State:
        # The objective of each bucket stands alone, so that one step may be Newton's and another EM's.
        weights = used.expected(state.parameters)
        slope, curvature = used.slopes(weights)
        newton = weights - np.divide(slope, curvature, out=np.zeros_like(slope), where=curvature < 0)
        newton = np.clip(newton, 0.0, 1.0)
        weights = np.where(used.objectives(newton) > used.objectives(weights), newton, weights)
        return State(weights, used.objective(weights), used.gap(weights))

    return iterate(step, State(start, used.objective(start), used.gap(start)), control)


@dataclass(frozen=True)
class Interpolated:
    """A law with its weights: one array of buckets a level, shortest history first."""

    law: BackoffLaw
    weights: tuple[Floats, ...]
    outcomes: tuple[Outcome, ...]
    evidence: tuple[Evidence, ...]
    background: Floats


def interpolated_law(
    levels: Levels, options: Interpolation, control: Control, *, bounded: bool, held_out: Any = None
) -> Interpolated:
    """The law of an interpolation; `held_out` are windows and numbers of events that are not in the counts.

    bounded: whether first words are events like any other; in a plain chain they have no say in the weights.
    """
    lower = _background(levels, options)
    log_p: list[Floats] = [safe_log(lower)]
    log_weight: list[Floats] = []
    weights, outcomes, evidence = [], [], []
    for n in range(2, levels.order + 2):
        level, total = levels.levels[n - 1], levels.totals(n)
        bucket = _buckets(total, options)
        found = None
        if options.weight == "deleted":
            found = _deleted(levels, n, lower, bucket, options, bounded=bounded)
        elif options.weight == "held-out":
            shorter = BackoffLaw(Levels(levels.card, levels.levels[: n - 1]), tuple(log_p), tuple(log_weight))
            found = _held_out(levels, n, shorter, bucket, options, held_out, bounded=bounded)
        if found is None:
            given = options.weight if isinstance(options.weight, tuple) else (float(options.weight),) * levels.order
            mine = np.full(_n_buckets(options), float(given[min(n - 2, len(given) - 1)]))
        else:
            outcomes.append(learn_weights(found, control))
            evidence.append(found.used())
            mine = outcomes[-1].state.parameters
        weights.append(mine)
        share = np.where(total > 0, mine[bucket], 1.0)
        own = np.where(total > 0, (1.0 - share) / np.where(total > 0, total, 1.0), 0.0)
        lower = own[level.history] * level.count + share[level.history] * lower[level.suffix]
        log_p.append(safe_log(lower))
        log_weight.append(safe_log(share))
    law = BackoffLaw(levels, tuple(log_p), tuple(log_weight))
    return Interpolated(law, tuple(weights), tuple(outcomes), tuple(evidence), np.exp(log_p[0][:-1]))


def _background(levels: Levels, options: Interpolation) -> Floats:
    """The law of a word alone (card + 1,), zero for the start mark."""
    counts = levels.levels[0].count[:-1]
    if isinstance(options.background, str):
        flat = options.background == "uniform" or counts.sum() <= 0
        found = np.full(levels.card, 1.0 / levels.card) if flat else counts / counts.sum()
    else:
        found = np.asarray(options.background, dtype=np.float64)
    return np.append(found, 0.0)


def _n_buckets(options: Interpolation) -> int:
    return 1 if options.buckets is None else len(options.buckets) + 1


def _buckets(total: Floats, options: Interpolation) -> Integers:
    """The bucket of each history: how many limits its number has passed."""
    if options.buckets is None:
        return np.zeros(len(total), np.int64)
    return np.searchsorted(np.array(options.buckets), total, side="right").astype(np.int64)


def _deleted(
    levels: Levels, n: int, lower: Floats, bucket: Integers, options: Interpolation, *, bounded: bool
) -> Evidence:
    """Every event left out of the counts of its own history."""
    level: Level = levels.levels[n - 1]
    rest = levels.totals(n)[level.history] - 1.0
    own = np.where(rest > 0, np.maximum(level.count - 1.0, 0.0) / np.where(rest > 0, rest, 1.0), 0.0)
    number = level.count if bounded else np.where(levels.begins[n - 1], 0.0, level.count)
    return Evidence(own, lower[level.suffix], number, bucket[level.history], _n_buckets(options))


def _held_out(
    levels: Levels,
    n: int,
    shorter: BackoffLaw,
    bucket: Integers,
    options: Interpolation,
    held_out: tuple[Integers, Floats] | None,
    *,
    bounded: bool,
) -> Evidence:
    """Events of other sequences whose history occurs in the counts."""
    if held_out is None:
        raise DataError(
            "The weights are to be learned from sequences that are held out; give them as fit(data, held_out=others), "
            "or use Interpolation('deleted')."
        )
    windows, number = held_out
    depth = windows.shape[1]
    if not bounded:
        keep = windows[:, depth - 2] != levels.card
        windows, number = windows[keep], number[keep]
    context = levels.contexts(windows[:, :-1])[n - 1]
    total = levels.totals(n)
    usable = (context >= 0) & (windows[:, -1] >= 0)
    usable &= np.where(context >= 0, total[context], 0.0) > 0
    windows, number, context = windows[usable], number[usable], context[usable]
    run = levels.find(n, context, windows[:, -1])
    counts = np.where(run >= 0, levels.levels[n - 1].count[run], 0.0)
    lower = np.exp(_shorter_log_prob(shorter, windows, n))
    return Evidence(counts / total[context], lower, number, bucket[context], _n_buckets(options))


def _shorter_log_prob(law: BackoffLaw, windows: Integers, n: int) -> Floats:
    """Log probabilities by histories of n - 2 words."""
    if n == 2:
        return law.log_p[0][windows[:, -1]]
    return law.log_prob(windows[:, windows.shape[1] - (n - 1) :])
