"""Interpolation of histories of falling length, its weights fixed, left-one-out or held out.

At each level, shortest histories first, the weight of a bucket of histories maximises
``sum_e n_e log(weight b_e + (1 - weight) a_e)``: b is the probability of an event by the shorter history, a by its own,
both from counts in which the event is not. Left out, an event is gone from every level: a pair (i, j) has
``a = (n_ij - 1) / (n_i - 1)`` and ``b = (u_j - 1) / (U - 1)``, and the bucket of a history is that of the counts it has
left. An event whose history has none left is b whatever the weight, and has no say in it. The objective is concave in
the weight, so that its slope falls: a step is one of Newton's where that stays between the last weights at which the
slope was above and below 0, else one of EM, or half the way between them. The slope decides, not the objective, whose
sum over millions of events is rounded by more than the last steps gain.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from suffice.array_types import Floats, Ints
from suffice.engines.ngram_tree import sums_by
from suffice.errors import DataError
from suffice.fitting.control import Control, Outcome, State, iterate
from suffice.models.markov_chain.distributions import BackoffDistribution, safe_log
from suffice.models.markov_chain.levels import Level, Levels, at_places
from suffice.models.markov_chain.smoothing import Interpolation

#: Share of a total below which what is left of it is rounding.
NOTHING = 1e-12


@dataclass(frozen=True)
class WeightEvidence:
    """Events that decide about weights: probability by own history and by the shorter one, number, bucket."""

    own: Floats
    shorter: Floats
    number: Floats
    bucket: Ints
    buckets: int

    def used(self) -> WeightEvidence:
        """Without the events that say nothing: possible under neither."""
        keep = (self.own + self.shorter > 0) & (self.number > 0)
        return WeightEvidence(self.own[keep], self.shorter[keep], self.number[keep], self.bucket[keep], self.buckets)

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
        # An event that a weight makes impossible has an infinite slope away from it.
        with np.errstate(divide="ignore"):
            ratio = (self.shorter - self.own) / self._mixed(weights)
        total = np.maximum(self._sums(self.number), 1e-300)
        slope = self._sums(self.number * ratio)
        ratio *= ratio
        return slope / total, -self._sums(self.number * ratio) / total

    def _sums(self, values: Floats) -> Floats:
        return sums_by(self.bucket, values, self.buckets)

    def expected(self, weights: Floats) -> Floats:
        """Shares of the shorter history (a step of EM); a bucket without events keeps its weight."""
        mixed = self._mixed(weights)
        share = weights[self.bucket] * self.shorter
        part = np.divide(share, mixed, out=np.zeros_like(mixed), where=mixed > 0)
        total = self._sums(self.number)
        return np.where(total > 0, self._sums(self.number * part) / np.where(total > 0, total, 1.0), weights)

    @property
    def silent(self) -> Ints:
        """Buckets about whose weight no event says anything: by both histories it is as probable."""
        return np.flatnonzero(self._sums(self.number * (self.own != self.shorter)) == 0)

    def gap(self, weights: Floats) -> float:
        """Largest slope that could still be climbed, in nats per event."""
        return _climb(weights, self.slopes(weights)[0])


def learn_weights(evidence: WeightEvidence, control: Control) -> Outcome:
    """The weights that maximise the objective (buckets,)."""
    used = evidence.used()

    def look(weights: Floats, low: Floats, high: Floats) -> State:
        slope, curvature = used.slopes(weights)
        low, high = np.where(slope > 0, weights, low), np.where(slope < 0, weights, high)
        seen = {"slope": slope, "curvature": curvature, "low": low, "high": high}
        return State(weights, used.objective(weights), _climb(weights, slope), memory=seen)

    def step(state: State) -> State:
        weights, (slope, curvature, low, high) = state.parameters, state.memory.values()
        with np.errstate(invalid="ignore", divide="ignore"):
            newton = np.clip(weights - slope / curvature, 0.0, 1.0)
        expected = used.expected(weights)
        halfway = 0.5 * (np.maximum(low, 0.0) + np.minimum(high, 1.0))
        moved = np.where((low < expected) & (expected < high), expected, halfway)
        moved = np.where((low < newton) & (newton < high), newton, moved)
        return look(np.where(slope == 0, weights, moved), low, high)

    ends = np.full(evidence.buckets, np.inf)
    return iterate(step, look(np.full(evidence.buckets, 0.5), -ends, ends), control)


def _climb(weights: Floats, slope: Floats) -> float:
    """Largest slope that could still be climbed, in nats per event."""
    with np.errstate(invalid="ignore"):
        return float(np.where(slope > 0, slope * (1.0 - weights), -slope * weights).max(initial=0.0))


@dataclass(frozen=True)
class Interpolated:
    """A distribution with its weights: one array of buckets a level, shortest history first."""

    distribution: BackoffDistribution
    weights: tuple[Floats, ...]
    outcomes: tuple[Outcome, ...]
    evidence: tuple[WeightEvidence, ...]
    background: Floats
    notes: tuple[str, ...] = ()


def interpolated_distribution(
    levels: Levels, options: Interpolation, control: Control, *, bounded: bool, held_out: Any = None
) -> Interpolated:
    """The distribution of an interpolation; `held_out` are windows and numbers of events that are not in the counts.

    bounded: whether first words are events like any other; in a plain chain they have no say in the weights.
    """
    lower = _background(levels, options)
    log_p: list[Floats] = [safe_log(lower)]
    log_weight: list[Floats] = []
    weights: list[Floats] = []
    outcomes, evidence, notes = [], [], []
    for n in range(2, levels.order + 2):
        level, total = levels.levels[n - 1], levels.totals(n)
        bucket = _buckets(total, options)
        if not options.learned:
            given = options.weight if isinstance(options.weight, tuple) else (float(options.weight),) * levels.order
            mine = np.full(_n_buckets(options), float(given[min(n - 2, len(given) - 1)]))
        else:
            shorter = BackoffDistribution(Levels(levels.card, levels.levels[: n - 1]), tuple(log_p), tuple(log_weight))
            events = _events(levels, n, options, weights, shorter, bounded=bounded, held_out=held_out)
            outcomes.append(learn_weights(events, control))
            evidence.append(events.used())
            mine = outcomes[-1].state.parameters
            notes += _undetermined(evidence[-1], mine, bucket[total > 0], n - 1, options)
        weights.append(mine)
        share = np.where(total > 0, mine[bucket], 1.0)
        own = np.where(total > 0, (1.0 - share) / np.where(total > 0, total, 1.0), 0.0)
        lower = own[level.history] * level.count + share[level.history] * lower[level.suffix]
        log_p.append(safe_log(lower))
        log_weight.append(safe_log(share))
    distribution = BackoffDistribution(levels, tuple(log_p), tuple(log_weight))
    return Interpolated(
        distribution, tuple(weights), tuple(outcomes), tuple(evidence), np.exp(log_p[0][:-1]), tuple(notes)
    )


def evidence_at(
    levels: Levels,
    options: Interpolation,
    distribution: BackoffDistribution,
    weights: tuple[Floats, ...],
    *,
    bounded: bool,
    held_out: tuple[Ints, Floats] | None,
) -> tuple[WeightEvidence, ...]:
    """The events that decide about each level of weights, where the weights of the shorter histories are these."""
    evidence = []
    for n in range(2, levels.order + 2):
        held = Levels(levels.card, levels.levels[: n - 1])
        shorter = BackoffDistribution(held, distribution.log_p[: n - 1], distribution.log_weight[: n - 2])
        events = _events(levels, n, options, list(weights[: n - 2]), shorter, bounded=bounded, held_out=held_out)
        evidence.append(events.used())
    return tuple(evidence)


def _events(
    levels: Levels,
    n: int,
    options: Interpolation,
    weights: list[Floats],
    shorter: BackoffDistribution,
    *,
    bounded: bool,
    held_out: tuple[Ints, Floats] | None,
) -> WeightEvidence:
    """The events that decide about the weights of histories of n - 1 words, left out or held out."""
    if options.weight == "deleted":
        return _deleted(levels, n, weights, _background(levels, options), options, bounded=bounded)
    bucket = _buckets(levels.totals(n), options)
    return _held_out(levels, n, shorter, bucket, options, held_out, bounded=bounded)


def _undetermined(
    evidence: WeightEvidence, weights: Floats, used: Ints, length: int, options: Interpolation
) -> list[str]:
    """What to say of weights in use that no event determines."""
    dark = np.intersect1d(evidence.silent, used).tolist()
    limits = (0.0, *(options.buckets or ()), np.inf)
    names = ["" if options.buckets is None else f" seen {limits[b]:g} to {limits[b + 1]:g} times" for b in dark]
    return [
        f"no event determines the weight of histories of {length} words{name}, since none of its probabilities depends "
        f"on it: {weights[b]:g} was taken"
        for name, b in zip(names, dark, strict=True)
    ]


def _background(levels: Levels, options: Interpolation) -> Floats:
    """The distribution of a word alone (card + 1,), zero for the start mark."""
    counts = levels.levels[0].count[:-1]
    if isinstance(options.background, str):
        flat = options.background == "uniform" or counts.sum() <= 0
        shares = np.full(levels.card, 1.0 / levels.card) if flat else counts / counts.sum()
    else:
        shares = np.asarray(options.background, dtype=np.float64)
    return np.append(shares, 0.0)


def _n_buckets(options: Interpolation) -> int:
    return 1 if options.buckets is None else len(options.buckets) + 1


def _buckets(total: Floats, options: Interpolation) -> Ints:
    """The bucket of each history: how many limits its number has passed."""
    if options.buckets is None:
        return np.zeros(len(total), np.int64)
    return np.searchsorted(np.array(options.buckets), total, side="right").astype(np.int64)


def _deleted(
    levels: Levels, n: int, weights: list[Floats], lower: Floats, options: Interpolation, *, bounded: bool
) -> WeightEvidence:
    """Every event left out of the counts of all its histories, with the weights of the shorter ones held."""
    level: Level = levels.levels[n - 1]
    taken = np.minimum(level.count, 1.0)
    places = [np.arange(len(level))]
    for m in range(n, 1, -1):
        places.insert(0, levels.levels[m - 1].suffix[places[0]])
    shorter = _background_without(levels, options, lower, places[0], taken)
    for m in range(2, n):
        own, left = _own_without(levels, m, places[m - 1], taken)
        share = np.where(left > 0, weights[m - 2][_buckets(left, options)], 1.0)
        shorter = share * shorter + (1.0 - share) * own
    own, left = _own_without(levels, n, places[n - 1], taken)
    # First words of a plain chain follow no word, so that they are no transitions.
    number = level.count if bounded or n > 2 else np.where(levels.begins[1], 0.0, level.count)
    return WeightEvidence(
        np.where(left > 0, own, shorter), shorter, number, _buckets(left, options), _n_buckets(options)
    )


def _own_without(levels: Levels, m: int, run: Ints, taken: Floats) -> tuple[Floats, Floats]:
    """Probabilities of runs of level m by their own history, and its counts, after so much of each was taken out."""
    level = levels.levels[m - 1]
    total = levels.totals(m)[level.history[run]]
    left = np.where(total - taken > NOTHING * total, total - taken, 0.0)
    rest = np.maximum(level.count[run] - taken, 0.0)
    return np.divide(rest, left, out=np.zeros(len(run)), where=left > 0), left


def _background_without(levels: Levels, options: Interpolation, lower: Floats, word: Ints, taken: Floats) -> Floats:
    """The distribution of a word alone after so much of it was taken out; one that is given does not change."""
    if options.background != "unigram":
        return lower[word]
    counts = levels.levels[0].count[:-1]
    total = float(counts.sum())
    left = np.where(total - taken > NOTHING * total, total - taken, 0.0)
    rest = np.maximum(np.append(counts, 0.0)[word] - taken, 0.0)
    return np.asarray(np.divide(rest, left, out=np.full(len(word), 1.0 / levels.card), where=left > 0))


def _held_out(
    levels: Levels,
    n: int,
    shorter: BackoffDistribution,
    bucket: Ints,
    options: Interpolation,
    held_out: tuple[Ints, Floats] | None,
    *,
    bounded: bool,
) -> WeightEvidence:
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
    usable &= at_places(total, context, 0.0) > 0
    windows, number, context = windows[usable], number[usable], context[usable]
    run = levels.find(n, context, windows[:, -1])
    counts = at_places(levels.levels[n - 1].count, run, 0.0)
    lower = np.exp(_shorter_log_prob(shorter, windows, n))
    return WeightEvidence(counts / total[context], lower, number, bucket[context], _n_buckets(options))


def _shorter_log_prob(distribution: BackoffDistribution, windows: Ints, n: int) -> Floats:
    """Log probabilities by histories of n - 2 words."""
    if n == 2:
        return distribution.log_p[0][windows[:, -1]]
    return distribution.log_prob(windows[:, windows.shape[1] - (n - 1) :])
