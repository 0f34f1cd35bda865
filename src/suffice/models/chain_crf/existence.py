"""Does the maximum exist? Labels of sequences that some direction of the weights separates from all others."""

from __future__ import annotations

import numpy as np

from suffice.array_types import Floats, Ints
from suffice.models.chain_crf.features import DesignedSequences
from suffice.models.chain_crf.objective import SequenceBlock
from suffice.models.conditional_field.existence import SeparableLabels


class SeparablePaths(SeparableLabels):
    """Paths of labels given, codes (steps,), and all others: see `SeparableLabels`."""

    def __init__(self, block: SequenceBlock, sequences: DesignedSequences, codes: Ints) -> None:
        """See the class."""
        self.block, self.sequences, self.codes = block.evenly(), sequences, codes
        self.structure, self.observed = block.structure, self.block.observed(codes)

    def extremes(self, x: Floats) -> tuple[Floats, Floats]:
        """Scores of the paths given, and the highest scores of any paths, of each sequence (n,)."""
        own, top = [], []
        for chains, steps in self.block.steps.chains(self.block.parts(x)):
            own.append(chains.log_weights(self.codes[slice(*steps)]))
            top.append(chains.best_paths()[1][:, 0])
        return np.concatenate(own), np.concatenate(top)

    def best_features(self, x: Floats) -> Floats:
        """The features (k,) of the best paths under x."""
        return self.block.observed(self.block.best_codes(x))

    def first_slope(self) -> Floats:
        """The slope (k,) at weights of 0."""
        return self.observed - self.block.expected(np.zeros(self.structure.length))[1]

    def ends(self) -> tuple[Floats, Floats]:
        """Bounds (k,) of the sum of every feature over all paths."""
        matrix = self.sequences.values.matrix
        rises, falls = (
            np.bincount(matrix.indices, part, matrix.columns).astype(np.float64)
            for part in (np.maximum(matrix.filled, 0.0), np.minimum(matrix.filled, 0.0))
        )
        moves, count = self.sequences.n_steps - len(self.sequences), len(self.sequences)
        return self._bounds(falls, 0.0, 0.0), self._bounds(rises, moves, count)

    def ranges(self) -> Floats:
        """Bounds (k,) of the range of every feature over the paths of any one sequence."""
        from scipy import sparse

        matrix, lengths = self.sequences.values.matrix, self.sequences.lengths
        owner = np.repeat(np.arange(len(lengths)), lengths)[matrix.row_of_entry]
        sums = sparse.coo_array((np.abs(matrix.filled), (owner, matrix.indices)), shape=(len(lengths), matrix.columns))
        reach = np.asarray(sums.tocsr().max(axis=0).todense(), np.float64).ravel()
        return self._bounds(reach, float(lengths.max() - 1), 1.0)

    def _bounds(self, features: Floats, moves: float, ends: float) -> Floats:
        """The vector (k,) of bounds of each feature (columns,), of any transition, and of any first or last label."""
        structure, size = self.structure, self.structure.size
        conditioned = np.broadcast_to(
            features[structure.conditioned][:, None, None], (len(structure.conditioned), size, size)
        )
        by_pair = features[structure.packing.features]
        return structure.joined(by_pair, np.full((size, size), moves), np.full((2, size), ends), conditioned)
