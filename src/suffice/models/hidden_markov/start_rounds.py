"""What a start asks of sequences, wherever they are: sums over steps, none of which is a step.

Which sequences are looked at depends on what they hold, not on their order nor on their shards: each has a mark, and
those with the lowest marks are taken. A sequence that is there twice is taken twice or not at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.models.em.held_rows import mixed_bits
from suffice.models.hidden_markov.chains import Observed
from suffice.models.hidden_markov.emissions import contract
from suffice.models.hidden_markov.emissions.contract import Emission
from suffice.models.hidden_markov.emissions.surveys import SpreadSurvey
from suffice.models.hidden_markov.expectation import ChainExpectation
from suffice.models.hidden_markov.parameters import ChainParameters
from suffice.sources.reduction import Answers

#: Steps of the sequences that a start looks at.
SAMPLE = 20_000
#: Ranges of marks, and pieces of a line through the points of all steps.
RANGES = 512
PIECES = 64
#: Share by which two distances must differ to be told apart: their last digits depend on the order of adding up.
TIE = 1e-9
#: Share of a step's weight that begins in the state of its guess.
OWN = 0.9


def sequence_marks(observed: Observed, emission: Emission) -> NDArray[np.uint64]:
    """A number (n,) for each sequence that depends on its steps alone; of numbers on seven digits."""
    keys = [*emission.keys(observed.values), *([] if observed.labels is None else [observed.labels])]
    position = np.arange(observed.n_steps) - np.repeat(observed.offsets[:-1], observed.lengths)
    marks = position.astype(np.uint64)
    for key in keys:
        for column in key[None] if key.ndim == 1 else key.T:
            # Digits that depend on how a centre was added up do not tell steps apart; all missing values are alike.
            with np.errstate(over="ignore"):
                short = np.where(np.isnan(column), np.nan, column).astype(np.float32) + np.float32(0.0)
            marks = mixed_bits((marks ^ short.view(np.uint32)) + np.uint64(0x9E3779B97F4A7C15))
    if not observed.n_sequences:
        return marks
    return mixed_bits(np.add.reduceat(marks, observed.offsets[:-1]))


@dataclass(frozen=True)
class Chosen:
    """The sequences that a start looks at: those whose marks are in the first ranges, and of each its first steps.

    `ranges` is None where all are looked at.
    """

    ranges: int | None = None

    def of(self, prepared: ChainExpectation) -> ChainExpectation:
        """Those of a shard."""
        if self.ranges is None:
            return prepared
        observed = prepared.observed
        numbers = np.flatnonzero(_ranges(sequence_marks(observed, prepared.emission)) < self.ranges)
        return ChainExpectation(observed.chosen(numbers, most=SAMPLE), prepared.emission, prepared.threads)


def _ranges(marks: NDArray[np.uint64]) -> NDArray[np.intp]:
    return (marks >> np.uint64(64 - (RANGES.bit_length() - 1))).astype(np.intp)


@dataclass(frozen=True, eq=False)
class FewSteps(Answers):
    """Sums over so few steps that a step may be read from one: a site that lets no rows go does not give them."""

    holds_rows: ClassVar[bool] = True
    instead: ClassVar[str] = (
        "A hidden Markov model looks at a few steps to begin with: give it initial=, transitions= and emissions=, from "
        "knowledge or from a fit of one site."
    )

    def __add__(self, other: Answers) -> FewSteps:
        """Of both sets of steps."""
        return FewSteps(super().__add__(other).parts)


@dataclass(frozen=True)
class StartSurvey:
    """Before anything is chosen: steps of each range of marks, no more of a sequence than a start looks at; all steps.

    Also the weight of steps of known and of unknown state, and how often known states follow each other.
    """

    size: int

    def __call__(self, prepared: ChainExpectation, _: None) -> FewSteps:
        """Of a shard."""
        observed = prepared.observed
        steps = np.minimum(observed.lengths, SAMPLE) * observed.weights
        ranges = _ranges(sequence_marks(observed, prepared.emission))
        by_range = np.bincount(ranges, steps, RANGES).astype(np.float64)
        known, pairs, labels = 0.0, np.zeros((self.size, self.size)), observed.labels
        if labels is not None and observed.n_steps:
            weights = observed.step_weights
            known = float(weights[labels >= 0].sum())
            inner = np.ones(len(labels), bool)
            inner[observed.offsets[:-1]] = False
            later = np.flatnonzero(inner & (labels >= 0) & (np.roll(labels, 1) >= 0))
            np.add.at(pairs, (labels[later - 1], labels[later]), weights[later])
        return FewSteps((by_range, observed.weight, known, observed.weight - known, pairs))


@dataclass(frozen=True, eq=False)
class EmissionSums:
    """Statistics of what states emit."""

    sums: contract.Statistics

    def __add__(self, other: EmissionSums) -> EmissionSums:
        """Of both sets of steps."""
        return EmissionSums(contract.add(self.sums, other.sums))


@dataclass(frozen=True)
class AllSteps:
    """The sums that an emission begins with, and the spread of the steps as points."""

    chosen: Chosen

    def __call__(self, prepared: ChainExpectation, _: None) -> Answers:
        """Of a shard."""
        some = self.chosen.of(prepared)
        data, weights = some.observed.values, some.observed.step_weights
        values = some.emission.points(data)
        shown = np.where(np.isnan(values), 0.0, weights[:, None])
        weight, filled = shown.sum(axis=0), np.nan_to_num(values, posinf=np.inf, neginf=-np.inf)
        with np.errstate(over="ignore", invalid="ignore"):
            mean = (shown * filled).sum(axis=0) / np.where(weight > 0, weight, 1.0)
            scatter = (shown * (filled - mean) ** 2).sum(axis=0)
            spread = SpreadSurvey((None,) * len(mean), weight, mean, scatter, np.abs(shown * filled).sum(axis=0))
        return Answers((EmissionSums(some.emission.totals(data, weights)), spread))


@dataclass(frozen=True, eq=False)
class Points:
    """Steps as points (steps, d) of comparable columns; a missing value is at 0."""

    chosen: Chosen
    mean: Floats
    scale: Floats

    def of(self, prepared: ChainExpectation) -> tuple[Floats, Floats]:
        """Points and weights of the steps."""
        points = (prepared.emission.points(prepared.observed.values) - self.mean) / self.scale
        return np.where(np.isnan(points), 0.0, points), prepared.observed.step_weights


def _sums_by(group: NDArray[np.intp], groups: int, points: Floats, weights: Floats) -> Floats:
    """Weights and weighted sums (groups, 1 + d) of points by group."""
    columns = [weights, *(weights * column for column in points.T)]
    return np.stack([np.bincount(group, column, groups) for column in columns], axis=1)


@dataclass(frozen=True, eq=False)
class Pieces:
    """Weights and sums (lines, pieces, 1 + d) of the points in each piece of some lines through them."""

    points: Points

    def __call__(self, prepared: ChainExpectation, lines: Floats) -> Floats:
        """Of a shard; lines (lines, d) are directions."""
        from scipy.special import ndtr

        points, weights = self.points.of(self.points.chosen.of(prepared))
        # A point at the end of a piece, as a whole number may be, is beyond it in every order of adding up.
        pieces = [np.minimum((ndtr(points @ line) * PIECES + TIE).astype(np.intp), PIECES - 1) for line in lines]
        return np.stack([_sums_by(piece, PIECES, points, weights) for piece in pieces])


@dataclass(frozen=True, eq=False)
class ClusterSums:
    """Weights and sums (tries, K, 1 + d) of the points nearest to each centre."""

    points: Points

    def __call__(self, prepared: ChainExpectation, centres: Floats) -> Floats:
        """Of a shard; centres (tries, K, d)."""
        points, weights = self.points.of(self.points.chosen.of(prepared))
        return np.stack([_sums_by(nearest(points, some), len(some), points, weights) for some in centres])


def nearest(points: Floats, centres: Floats) -> NDArray[np.intp]:
    """The centre (n,) next to each point; of two that are as near, as for a count between them, the first."""
    away = np.stack([((points - centre) ** 2).sum(axis=1) for centre in centres], axis=1)
    return np.asarray(np.argmax(away <= away.min(axis=1, keepdims=True) * (1.0 + TIE) + TIE**2, axis=1))


class Guess(Protocol):
    """A guess of the states, from what a step shows and from what is known of its state."""

    def shares(self, observed: Observed, points: Floats) -> Floats:
        """How much of each step (steps, K) is guessed to be of each state, weighted as the steps are."""


@dataclass(frozen=True, eq=False)
class ByCentre:
    """The state of the nearest centre (K, d)."""

    centres: Floats

    def shares(self, observed: Observed, points: Floats) -> Floats:
        """Mostly of that state, and a little of all."""
        size = len(self.centres)
        shares = np.full((len(points), size), (1 - OWN) / size)
        shares[np.arange(len(points)), nearest(points, self.centres)] += OWN
        return np.asarray(shares * observed.step_weights[:, None])


@dataclass(frozen=True, eq=False)
class Softly:
    """All states, by the densities of normal distributions about centres (K, d): as in an E-step, no step by itself."""

    centres: Floats

    def shares(self, observed: Observed, points: Floats) -> Floats:
        """More of the nearer ones."""
        away = np.stack([((points - centre) ** 2).sum(axis=1) for centre in self.centres], axis=1)
        shares = np.exp(-0.5 * (away - away.min(axis=1, keepdims=True)))
        return np.asarray(shares / shares.sum(axis=1, keepdims=True) * observed.step_weights[:, None])


@dataclass(frozen=True)
class ByLabel:
    """Known states; other steps together weigh a share of 1 - `OWN` and say nothing.

    Without the others a state could begin with a distribution that forbids what is seen elsewhere. `scale` is what a
    step of unknown state counts.
    """

    size: int
    scale: float

    def shares(self, observed: Observed, points: Floats) -> Floats:
        """Mostly of the state that is known."""
        shares = np.full((observed.n_steps, self.size), (1 - OWN) / self.size)
        if observed.labels is None:
            return np.asarray(shares * (self.scale * observed.step_weights)[:, None])
        known = np.flatnonzero(observed.labels >= 0)
        shares[known, observed.labels[known]] += OWN
        return np.asarray(shares * (observed.step_weights * np.where(observed.labels >= 0, 1.0, self.scale))[:, None])


@dataclass(frozen=True)
class Evenly:
    """All states alike."""

    size: int

    def shares(self, observed: Observed, points: Floats) -> Floats:
        """An equal part of each."""
        return np.repeat(observed.step_weights[:, None] / self.size, self.size, axis=1)


@dataclass(frozen=True, eq=False)
class GuessedMoments:
    """Weight, sums and products (K, 1 + d + d d) of the points of each state, by each of some guesses."""

    points: Points

    def __call__(self, prepared: ChainExpectation, guesses: Sequence[Guess]) -> Floats:
        """Of a shard."""
        some = self.points.chosen.of(prepared)
        points, _ = self.points.of(some)
        products = (points[:, :, None] * points[:, None, :]).reshape(len(points), points.shape[1] ** 2)
        whole = np.hstack([np.ones((len(points), 1)), points, products])
        return np.stack([guess.shares(some.observed, points).T @ whole for guess in guesses])


@dataclass(frozen=True, eq=False)
class Axes:
    """For each state the direction (K, d) in which its points spread most, and mean and deviation (K,) along it."""

    directions: Floats
    mean: Floats
    deviation: Floats

    @classmethod
    def of(cls, moments: Floats) -> Axes:
        """From weights, sums and products (K, 1 + d + d d)."""
        d = round((np.sqrt(4 * moments.shape[1] - 3) - 1) / 2)
        weight = np.maximum(moments[:, :1], 1e-12)
        mean = moments[:, 1 : 1 + d] / weight
        products = (moments[:, 1 + d :] / weight).reshape(-1, d, d) - mean[:, :, None] * mean[:, None, :]
        values, vectors = np.linalg.eigh(products)
        directions = vectors[:, :, -1]
        # A direction and its opposite are one line: the first of its largest entries points upwards.
        top = np.argmax(np.abs(directions) > np.abs(directions).max(axis=1, keepdims=True) * (1 - 1e-9), axis=1)
        directions *= np.sign(directions[np.arange(len(top)), top])[:, None]
        along = (directions * mean).sum(axis=1)
        return cls(directions, along, np.sqrt(np.maximum(values[:, -1], 1e-12)))

    def ranks(self, points: Floats) -> Floats:
        """The share (steps, K) of a state's points that would lie before a step, were they normal."""
        from scipy.special import ndtr

        return np.asarray(ndtr((points @ self.directions.T - self.mean) / self.deviation))


@dataclass(frozen=True, eq=False)
class GuessedSteps:
    """Statistics of what states emit by guesses of the states; each goes with axes and with parameters before."""

    points: Points

    def __call__(
        self, prepared: ChainExpectation, guesses: Sequence[tuple[Guess, Axes | None, contract.Parameters]]
    ) -> Answers:
        """Of a shard."""
        some = self.points.chosen.of(prepared)
        points, _ = self.points.of(some)
        parts = []
        for guess, axes, before in guesses:
            shares = guess.shares(some.observed, points)
            ranks = np.zeros_like(shares) if axes is None else axes.ranks(points)
            parts.append(EmissionSums(some.emission.guessed(some.observed.values, shares, ranks, before)))
        return Answers(tuple(parts))


@dataclass(frozen=True)
class ShortSteps:
    """The E-steps of several parameters."""

    chosen: Chosen

    def __call__(self, prepared: ChainExpectation, several: Sequence[ChainParameters]) -> Answers:
        """Of a shard."""
        some = self.chosen.of(prepared)
        return Answers(tuple(some.expect(parameters) for parameters in several))
