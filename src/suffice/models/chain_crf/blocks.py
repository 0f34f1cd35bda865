"""Some sequences of a chain: from weights to log partitions, expected and observed features, and best paths."""

from __future__ import annotations

import copy

import numpy as np

from suffice.array_types import Floats, Ints
from suffice.engines.label_scores import ChainWeights, ExpectedFeatures, Matrix, ScoredSteps
from suffice.models.chain_crf.layout import ChainLayout
from suffice.sources.sequences import Sequences

#: Evaluations to expect of a fit, for the choice between NumPy and compiled loops.
EVALUATIONS = 100


class SequenceBlock:
    """Some sequences: from weights (k,) to log partitions and features (k,).

    shares (n,): how often each sequence counts.
    """

    def __init__(
        self,
        layout: ChainLayout,
        sequences: Sequences[Matrix],
        shares: Floats,
        *,
        threads: int | None,
        calls: int | None = EVALUATIONS,
    ) -> None:
        """See the class."""
        self.layout, self.shares = layout, shares
        matrix, conditioned = sequences.values, layout.conditioned
        self.steps = ScoredSteps(
            matrix,
            layout.packing,
            sequences.offsets,
            conditions=matrix.to_scipy()[:, conditioned] if len(conditioned) else None,
            threads=threads,
            calls=calls,
        )

    def evenly(self) -> SequenceBlock:
        """The same sequences, each of which counts once."""
        return self.weighing(np.ones(len(self.shares)))

    def weighing(self, shares: Floats) -> SequenceBlock:
        """The same sequences, each of which counts so often (n,)."""
        block = copy.copy(self)
        block.shares = shares
        return block

    def parts(self, weights: Floats) -> ChainWeights:
        """The weights as the engine takes them."""
        layout = self.layout
        return ChainWeights(
            layout.states(weights),
            layout.transitions(weights),
            layout.end_weights(weights),
            layout.conditioned_weights(weights),
        )

    def expected(self, weights: Floats) -> tuple[Floats, Floats]:
        """Log partition (n,) and the expected features, weighted and summed (k,)."""
        sums = self.steps.expected(self.parts(weights), self.shares)
        return sums.log_partition, self._joined(sums)

    def observed(self, codes: Ints) -> Floats:
        """The features (k,) of one path of labels (steps,), weighted and summed over sequences."""
        return self._joined(self.steps.observed(codes, self.shares))

    def variance(self, weights: Floats, codes: Ints) -> Floats:
        """A bound of the variance of the sum of every feature (k,) from below: see `conditional_variance`."""
        return self._joined(self.steps.conditional_variance(self.parts(weights), codes, self.shares))

    def best_codes(self, weights: Floats) -> Ints:
        """The best path of labels (steps,) of all sequences."""
        threads, calls = self.steps.threads, self.steps.calls
        chains = self.steps.chains(self.parts(weights))
        return np.concatenate([one.best_paths(threads=threads, calls=calls)[0][0] for one, _ in chains])

    def _joined(self, sums: ExpectedFeatures) -> Floats:
        return self.layout.joined(sums.states, sums.transitions, sums.ends, sums.conditioned)
