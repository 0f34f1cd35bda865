"""Does the maximum exist? Labels of sequences that some direction of the weights separates from all others."""

from __future__ import annotations

import numpy as np

from suffice.array_types import Floats
from suffice.models.chain_crf.rounds import ChainRounds, best_features, feature_ends, feature_reach, separated
from suffice.models.conditional_field.existence import SeparableLabels
from suffice.models.conditional_field.shards import LabelSeparation, LargestOfShards, PartOfVector


class SeparablePaths(SeparableLabels):
    """Paths of labels given, and all others: see `SeparableLabels`."""

    def __init__(self, rounds: ChainRounds, sequences: int, steps: int) -> None:
        """How many sequences are held, and how many steps they have."""
        self.rounds, self.sequences, self.steps = rounds, sequences, steps
        self.layout, self.observed = rounds.layout, rounds.features(evenly=True)

    def separation(self, direction: Floats) -> LabelSeparation:
        """What a direction (k,) does to the labels given."""
        answer: LabelSeparation = self.rounds.ask(direction, separated)
        return answer

    def best_features(self, x: Floats) -> Floats:
        """The features (k,) of the best paths under x."""
        answer: PartOfVector = self.rounds.ask(x, best_features, evenly=True)
        return answer.whole()

    def first_slope(self) -> Floats:
        """The slope (k,) at weights of 0."""
        nothing = np.zeros(self.layout.length)
        return np.asarray(self.observed - self.rounds.ask(nothing, evenly=True).parts[1].whole())

    def ends(self) -> tuple[Floats, Floats]:
        """Bounds (k,) of the sum of every feature over all paths."""
        sums: PartOfVector = self.rounds.held.sum(self.rounds.width, feature_ends)
        falls, rises = sums.whole().T
        moves, count = self.steps - self.sequences, self.sequences
        return self._bounds(falls, 0.0, 0.0), self._bounds(rises, moves, count)

    def ranges(self) -> Floats:
        """Bounds (k,) of the range of every feature over the paths of any one sequence."""
        largest: LargestOfShards = self.rounds.held.sum(self.rounds.width, feature_reach)
        return self._bounds(largest.values[:-1], float(largest.values[-1]) - 1.0, 1.0)

    def _bounds(self, features: Floats, moves: float, ends: float) -> Floats:
        """The vector (k,) of bounds of each feature (columns,), of any transition, and of any first or last label."""
        layout, size = self.layout, self.layout.size
        conditioned = np.broadcast_to(
            features[layout.conditioned][:, None, None], (len(layout.conditioned), size, size)
        )
        by_pair = features[layout.packing.features]
        return layout.joined(by_pair, np.full((size, size), moves), np.full((2, size), ends), conditioned)
