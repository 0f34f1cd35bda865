"""Does the maximum exist? Labels of sequences that some direction of the weights separates from all others."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.models.chain_crf.features import Sequences
from suffice.models.chain_crf.objective import Block, ChainObjective
from suffice.models.chain_crf.structure import Structure
from suffice.models.conditional_field.curvature import ends_nearby
from suffice.models.conditional_field.existence import Extremes, Standing, at_their_ends, standing_of
from suffice.models.conditional_field.rank import FeatureRank

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def path_standing(
    objective: ChainObjective, sequences: Sequences, codes: Ints, weights: Floats, rank: FeatureRank
) -> Standing:
    """Whether the likelihood of labelled sequences has a maximum; weights (k,): where a fit ended."""
    block = objective.block.evenly()
    low, high = path_ends(block, sequences)
    observed = block.observed(codes)

    def best_features(x: Floats) -> Floats:
        paths = [chains.best_paths()[0][0] for chains, _ in block.steps.chains(block.parts(x))]
        return block.observed(np.concatenate(paths))

    def few() -> Any:
        return best_features, observed, observed - block.expected(np.zeros_like(weights))[1]

    def near() -> float | None:
        ranges = path_ranges(block.structure, sequences)
        return ends_nearby(objective, weights, ranges, rank.value) if rank.exact else None

    directions = at_their_ends(observed, low, high), weights
    return standing_of(path_extremes(block, codes), directions, few, near)


def path_extremes(block: Block, codes: Ints) -> Extremes:
    """Scores of paths, for codes (steps,) of the labels given."""

    def found(x: Floats) -> tuple[Floats, Floats]:
        own, top = [], []
        for chains, steps in block.steps.chains(block.parts(x)):
            own.append(chains.log_weights(codes[slice(*steps)]))
            top.append(chains.best_paths()[1][:, 0])
        return np.concatenate(own), np.concatenate(top)

    return found


def path_ends(block: Block, sequences: Sequences) -> tuple[Floats, Floats]:
    """Bounds (k,) of the sum of every feature over all paths."""
    structure, design, offsets = block.structure, sequences.design, sequences.offsets
    steps = np.repeat(block.shares, np.diff(offsets))
    values = design.values if len(design.values) else np.ones(len(design.indices))
    each = values * steps[design.row_of_entry]
    rises = np.bincount(design.indices, np.maximum(each, 0.0), design.columns).astype(np.float64)
    falls = np.bincount(design.indices, np.minimum(each, 0.0), design.columns).astype(np.float64)
    moves = float(block.shares @ (np.diff(offsets) - 1))
    size, features = structure.size, structure.packing.features
    cells = np.ones((size, size))
    high = structure.joined(
        rises[features],
        moves * cells,
        float(block.shares.sum()) * np.ones((2, size)),
        rises[structure.conditioned][:, None, None] * cells,
    )
    low = structure.joined(
        falls[features], 0.0 * cells, np.zeros((2, size)), falls[structure.conditioned][:, None, None] * cells
    )
    return low, high


def path_ranges(structure: Structure, sequences: Sequences) -> Floats:
    """Bounds (k,) of the range of every feature over the paths of any one sequence."""
    from scipy import sparse

    design, offsets, size = sequences.design, sequences.offsets, structure.size
    values = np.abs(design.values) if len(design.values) else np.ones(len(design.indices))
    owner = np.repeat(np.arange(len(sequences)), np.diff(offsets))[design.row_of_entry]
    sums = sparse.coo_array((values, (owner, design.indices)), shape=(len(sequences), design.columns))
    reach = np.asarray(sums.tocsr().max(axis=0).todense(), np.float64).ravel()
    return structure.joined(
        reach[structure.packing.features],
        np.full((size, size), float(np.diff(offsets).max() - 1)),
        np.ones((2, size)),
        np.broadcast_to(reach[structure.conditioned][:, None, None], (len(structure.conditioned), size, size)),
    )
