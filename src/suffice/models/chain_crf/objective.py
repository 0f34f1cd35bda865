"""The objective of a chain: the SUM over sequences of log p(y | x, weights), less the penalty of the prior.

Its gradient is the observed less the expected sum of every feature, ``sum_i phi(y_i, x_i) - E[phi(y, x_i) | x_i]``:
the expectation is over labels only: the features of a sequence stay as they are.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np

from suffice.array_types import Floats, Ints
from suffice.engines.label_scores import ChainWeights, ExpectedFeatures, ScoredSteps
from suffice.models.chain_crf.features import DesignedSequences
from suffice.models.chain_crf.structure import ChainStructure
from suffice.models.conditional_field.objective import FieldObjective
from suffice.models.conditional_field.priors import WeightPenalties

#: Evaluations to expect of a fit, for the choice between NumPy and compiled loops.
EVALUATIONS = 100


class SequenceBlock:
    """Some sequences: from weights (k,) to log partitions and features (k,).

    shares (n,): how often each sequence counts.
    """

    def __init__(
        self,
        structure: ChainStructure,
        sequences: DesignedSequences,
        shares: Floats,
        *,
        threads: int | None,
        calls: int | None = EVALUATIONS,
    ) -> None:
        """See the class."""
        self.structure, self.shares = structure, shares
        matrix, conditioned = sequences.values.matrix, structure.conditioned
        self.steps = ScoredSteps(
            matrix,
            structure.packing,
            sequences.offsets,
            conditions=matrix.to_scipy()[:, conditioned] if len(conditioned) else None,
            threads=threads,
            calls=calls,
        )

    def evenly(self) -> SequenceBlock:
        """The same sequences, each of which counts once."""
        block = copy.copy(self)
        block.shares = np.ones(len(self.shares))
        return block

    def parts(self, weights: Floats) -> ChainWeights:
        """The weights as the engine takes them."""
        structure = self.structure
        return ChainWeights(
            structure.states(weights),
            structure.transitions(weights),
            structure.end_weights(weights),
            structure.conditioned_weights(weights),
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
        return self.structure.joined(sums.states, sums.transitions, sums.ends, sums.conditioned)


@dataclass(frozen=True, eq=False)
class ChainObjective(FieldObjective[ChainStructure]):
    """The penalised log-likelihood of labelled sequences."""

    structure: ChainStructure
    block: SequenceBlock
    codes: Ints
    features: Floats
    penalties: WeightPenalties
    weight: float

    def evaluate(self, weights: Floats) -> tuple[float, Floats]:
        """The log-likelihood and its slope (k,)."""
        log_partition, expected = self.block.expected(weights)
        total = float(self.features @ weights) - float(self.block.shares @ log_partition)
        return total, self.features - expected

    def variance(self, weights: Floats) -> Floats:
        """A bound of the variance of the sum of every feature (k,) from below."""
        return self.block.variance(weights, self.codes)


def make_objective(
    structure: ChainStructure,
    sequences: DesignedSequences,
    codes: Ints,
    shares: Floats,
    penalties: WeightPenalties,
    *,
    threads: int | None,
) -> ChainObjective:
    """The objective for sequences, codes (steps,) of their labels and shares (n,) of the sequences."""
    block = SequenceBlock(structure, sequences, shares, threads=threads)
    return ChainObjective(structure, block, codes, block.observed(codes), penalties, float(shares.sum()))
