"""The objective of a chain: the SUM over sequences of log p(y | x, weights), less the penalty of the prior.

Its gradient is the observed less the expected sum of every feature, ``sum_i phi(y_i, x_i) - E[phi(y, x_i) | x_i]``:
the expectation is over labels only: the features of a sequence stay as they are.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.engines.label_scores import ChainWeights, ExpectedFeatures, Matrix, ScoredSteps, part_of
from suffice.models.chain_crf.features import Sequences
from suffice.models.chain_crf.structure import Structure
from suffice.models.conditional_field.objective import FieldObjective
from suffice.models.conditional_field.priors import Penalties

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Evaluations to expect of a fit, for the choice between NumPy and compiled loops.
EVALUATIONS = 100


class Block:
    """Some sequences: from weights (k,) to log partitions and features (k,).

    shares (n,): how often each sequence counts.
    """

    def __init__(
        self,
        structure: Structure,
        sequences: Sequences,
        shares: Floats,
        *,
        threads: int | None,
        calls: int | None = EVALUATIONS,
    ) -> None:
        """See the class."""
        self.structure, self.shares = structure, shares
        self.steps = ScoredSteps(
            sequences.design,
            structure.packing,
            sequences.offsets,
            conditions=_columns(sequences.design, structure.conditioned) if len(structure.conditioned) else None,
            threads=threads,
            calls=calls,
        )

    def evenly(self) -> Block:
        """The same sequences, each of which counts once."""
        found = copy.copy(self)
        found.shares = np.ones(len(self.shares))
        return found

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
        found = self.steps.expected(self.parts(weights), self.shares)
        return found.log_partition, self._joined(found)

    def observed(self, codes: Ints) -> Floats:
        """The features (k,) of one path of labels (steps,), weighted and summed over sequences."""
        return self._joined(self.steps.observed(codes, self.shares))

    def _joined(self, found: ExpectedFeatures) -> Floats:
        return self.structure.joined(found.states, found.transitions, found.ends, found.conditioned)


@dataclass(frozen=True, eq=False)
class ChainObjective(FieldObjective[Structure]):
    """The penalised log-likelihood of labelled sequences."""

    structure: Structure
    block: Block
    features: Floats
    penalties: Penalties
    weight: float

    def evaluate(self, weights: Floats) -> tuple[float, Floats]:
        """The log-likelihood and its slope (k,)."""
        log_partition, expected = self.block.expected(weights)
        total = float(self.features @ weights) - float(self.block.shares @ log_partition)
        return total, self.features - expected


def make_objective(
    structure: Structure,
    sequences: Sequences,
    codes: Ints,
    shares: Floats,
    penalties: Penalties,
    *,
    threads: int | None,
) -> ChainObjective:
    """The objective for sequences, codes (steps,) of their labels and shares (n,) of the sequences."""
    block = Block(structure, sequences, shares, threads=threads)
    return ChainObjective(structure, block, block.observed(codes), penalties, float(shares.sum()))


def subset(sequences: Sequences, chosen: Ints) -> tuple[Sequences, Ints]:
    """Some sequences, and the places of their steps among all."""
    design, offsets, places = part_of(sequences.design, sequences.offsets, chosen)
    return Sequences(design, offsets, sequences.space), places


def _columns(design: Matrix, columns: Ints) -> Any:
    """Some columns of the design as a SciPy matrix (steps, g)."""
    from scipy.sparse import csr_matrix

    values = design.values if len(design.values) else np.ones(len(design.indices))
    whole = csr_matrix((values, design.indices, design.indptr), shape=(design.rows, design.columns))
    return whole[:, columns]
