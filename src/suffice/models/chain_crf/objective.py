"""The objective of a chain: the SUM over sequences of log p(y | x, weights), less the penalty of the prior.

Its gradient is the observed less the expected sum of every feature, ``sum_i phi(y_i, x_i) - E[phi(y, x_i) | x_i]``:
the expectation is over labels only: the features of a sequence stay as they are. Sequences may be in many shards: each
evaluation is one round.
"""

from __future__ import annotations

from dataclasses import dataclass

from suffice.array_types import Floats
from suffice.models.chain_crf.rounds import ChainRounds, variance
from suffice.models.chain_crf.structure import ChainStructure
from suffice.models.conditional_field.objective import FieldObjective
from suffice.models.conditional_field.priors import WeightPenalties
from suffice.models.conditional_field.shards import PartOfVector


@dataclass(frozen=True, eq=False)
class ChainObjective(FieldObjective[ChainStructure]):
    """The penalised log-likelihood of labelled sequences."""

    structure: ChainStructure
    rounds: ChainRounds
    features: Floats
    penalties: WeightPenalties
    weight: float

    def evaluate(self, weights: Floats) -> tuple[float, Floats]:
        """The log-likelihood and its slope (k,)."""
        log_partition, expected = self.rounds.ask(weights).parts
        return float(self.features @ weights) - log_partition, self.features - expected.whole()

    def variance(self, weights: Floats) -> Floats:
        """A bound of the variance of the sum of every feature (k,) from below."""
        answer: PartOfVector = self.rounds.ask(weights, variance)
        return answer.whole()
