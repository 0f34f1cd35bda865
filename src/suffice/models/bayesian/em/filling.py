"""Hidden variables with real neighbours, filled in so that EM may begin: by rounds over the rows, wherever they are.

What is drawn for a row follows from its values and a seed, so that neither the order of rows nor where they are
matters. A row is drawn with a probability proportional to its odds by a race: it has the least -log(u) / odds.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.models.em.held_rows import HeldRows, uniforms
from suffice.models.em.rows import ObservedRows
from suffice.sources.reduction import Answers

#: Rounds in which clusters move to the mean of their rows.
ROUNDS = 10
#: Keys of rows without odds, which win where all are such.
LAST = 1e300


class Filling(Protocol):
    """How a hidden variable is filled in."""

    @property
    def name(self) -> Hashable:
        """The variable."""

    def __call__(self, rows: ObservedRows) -> NDArray[Any]:
        """A value for each row (n,), or a missing one."""


@dataclass(frozen=True)
class Scores:
    """Standard scores (n, p) of the real columns `near` a hidden variable; a missing value is a score of 0.

    `names` are all columns, by which rows draw their random numbers.
    """

    near: tuple[Hashable, ...]
    units: tuple[tuple[float, float], ...]
    names: tuple[Hashable, ...]

    def __call__(self, rows: ObservedRows) -> Floats:
        """The scores of some rows."""
        units = zip(self.near, self.units, strict=True)
        parts = [(rows.columns[name] - mean) / spread for name, (mean, spread) in units]
        return np.nan_to_num(np.stack(parts, axis=1)) if parts else np.zeros((len(rows.weights), 0))


def seed_of(rng: np.random.Generator) -> int:
    """A seed for the random numbers of rows."""
    return int(rng.integers(0, 2**62))


# --------------------------------------------------------------------------------------------------------------------
# A hidden number: a random sum of its neighbours
# --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Projection:
    """A random sum of the scores of the neighbours and of noise, in units of its spread."""

    name: Hashable
    scores: Scores
    weights: tuple[float, ...]
    seed: int
    centre: float = 0.0
    spread: float = 1.0

    @classmethod
    def of(cls, rows: HeldRows, name: Hashable, scores: Scores, rng: np.random.Generator) -> Projection:
        """By one round for its mean and its spread."""
        weights = tuple(rng.standard_normal(len(scores.near)).tolist())
        plain = cls(name, scores, weights, seed_of(rng))
        total, square = rows.ask(plain.moments).parts
        centre = total / rows.weight
        return cls(name, scores, weights, plain.seed, centre, max(square / rows.weight - centre**2, 0.0) ** 0.5 or 1.0)

    def __call__(self, rows: ObservedRows) -> Floats:
        """By Box and Muller's method for the noise."""
        first, second = (uniforms(rows, self.scores.names, self.seed + k) for k in (0, 1))
        noise = np.sqrt(-2.0 * np.log(first)) * np.cos(2.0 * np.pi * second)
        return np.asarray((self.scores(rows) @ np.array(self.weights) + 0.1 * noise - self.centre) / self.spread)

    def moments(self, rows: ObservedRows, _: None) -> Answers:
        """Sums over the rows of the numbers, and of their squares."""
        numbers = self(rows)
        return Answers((float(rows.weights @ numbers), float(rows.weights @ numbers**2)))


# --------------------------------------------------------------------------------------------------------------------
# Hidden states: a few rows of each, or clusters
# --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Winners:
    """The rows with the least keys (m,), at most `most`, in their order, and their scores (m, p)."""

    keys: Floats
    scores: Floats
    most: int

    def __add__(self, other: Winners) -> Winners:
        """Of both sets of rows."""
        return Winners.of(np.append(self.keys, other.keys), np.concatenate([self.scores, other.scores]), self.most)

    @classmethod
    def of(cls, keys: Floats, scores: Floats, most: int) -> Winners:
        """Equal keys are equal rows."""
        keys, first = np.unique(keys, return_index=True)
        return cls(keys[:most], scores[first[:most]], most)


@dataclass(frozen=True)
class Race:
    """Rows drawn without replacement; with centres, with odds of their squared distances from the nearest of these."""

    scores: Scores
    seed: int
    most: int

    def __call__(self, rows: ObservedRows, centres: Floats | None) -> Winners:
        """The winners of some rows."""
        return Winners.of(self.keys(rows, centres), self.scores(rows), self.most)

    def keys(self, rows: ObservedRows, centres: Floats | None = None) -> Floats:
        """The keys of some rows (n,)."""
        keys = -np.log(uniforms(rows, self.scores.names, self.seed))
        if centres is None or not len(centres):
            return np.asarray(keys)
        scores = self.scores(rows)
        away = np.min([((scores - centre) ** 2).sum(axis=1) for centre in centres], axis=0)
        return np.where(away > 0, keys / np.where(away > 0, away, 1.0), LAST * (1.0 + keys))


@dataclass(frozen=True, eq=False)
class FewRowsOfEach:
    """A state for a few rows of each state, a missing value for all others."""

    name: Hashable
    race: Race
    keys: Floats
    card: int

    @classmethod
    def of(cls, rows: HeldRows, name: Hashable, scores: Scores, card: int, rng: np.random.Generator) -> FewRowsOfEach:
        """By one round."""
        race = Race(scores, seed_of(rng), 3 * card * (len(scores.near) + 1))
        return cls(name, race, rows.ask(race).keys, card)

    def __call__(self, rows: ObservedRows) -> NDArray[np.int32]:
        """Winners have the states in turn."""
        keys = self.race.keys(rows)
        rank = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[rank] == keys, rank % self.card, -1).astype(np.int32)


@dataclass(frozen=True, eq=False)
class Clusters:
    """The cluster of each row: seeds far apart (k-means++), then a few rounds of means."""

    name: Hashable
    scores: Scores
    centres: Floats

    @classmethod
    def of(cls, rows: HeldRows, name: Hashable, scores: Scores, card: int, rng: np.random.Generator) -> Clusters:
        """By a round for each seed, and one for each move."""
        centres = np.empty((0, len(scores.near)))
        for _ in range(card):
            winner = rows.ask(Race(scores, seed_of(rng), 1), centres).scores
            centres = np.concatenate([centres, winner if len(winner) else np.zeros((1, len(scores.near)))])
        for _ in range(ROUNDS):
            mass, sums = rows.ask(cls(name, scores, centres).totals).parts
            centres = np.where(mass[:, None] > 0, sums / np.where(mass > 0, mass, 1.0)[:, None], centres)
        return cls(name, scores, centres)

    def __call__(self, rows: ObservedRows) -> NDArray[np.int32]:
        """The nearest centre."""
        centres = self.centres
        nearness = self.scores(rows) @ centres.T - 0.5 * (centres**2).sum(axis=1)
        return np.asarray(nearness.argmax(axis=1), dtype=np.int32)

    def totals(self, rows: ObservedRows, _: None) -> Answers:
        """Weight (card,) and sums of scores (card, p) of the rows of each cluster."""
        label, card, scores = self(rows), len(self.centres), self.scores(rows)
        sums = [np.bincount(label, rows.weights * column, card) for column in scores.T]
        return Answers((np.bincount(label, rows.weights, card), np.stack(sums, axis=1)))
