"""The number of parameters of a chain: see `suffice.models.conditional_field.rank`.

Where every path of labels is possible, the vectors of the span are those of signed distributions of the labels. That of
a step t may move by any p (K,) that adds up to 0, and a pair of steps by any matrix Z whose rows and columns do:

- p at step t moves ``(f, j)`` by ``x_tf p_j``, and ``(i, j)`` by ``p_j / K`` where a step comes before and by
  ``p_i / K`` where one comes after;
- Z moves transitions alone.

So the features of a step, with columns of ones for "a step comes before" and "a step comes after", say it all. With a
weight for every label and every transition, the rank is (K - 1) times that of those columns, and (K - 1)^2 more for
the transitions.
"""

from __future__ import annotations

import numpy as np

from suffice.array_types import Floats, Ints
from suffice.models.chain_crf.features import DesignedSequences
from suffice.models.chain_crf.objective import SequenceBlock
from suffice.models.chain_crf.structure import ChainStructure
from suffice.models.conditional_field.rank import MOST, SPARE, FeatureRank, numerical_rank, rank_of_draws, sketched


def chain_rank(block: SequenceBlock, sequences: DesignedSequences) -> FeatureRank:
    """The number of parameters that the sequences of a block tell apart."""
    structure = block.structure
    if structure.size == 1:
        return FeatureRank(0)
    rank = _rank(block, sequences)
    return FeatureRank(_bound(structure, sequences), exact=False) if rank is None else FeatureRank(rank)


def bounded_rank(structure: ChainStructure) -> FeatureRank:
    """What can be said without the sequences."""
    return FeatureRank(_bound(structure, None), exact=False) if structure.size > 1 else FeatureRank(0)


def _rank(block: SequenceBlock, sequences: DesignedSequences) -> int | None:
    structure = block.structure
    if not (structure.allowed.all() and structure.ends.all()):
        return _rank_by_paths(block, sequences)
    features = np.flatnonzero(np.diff(structure.packing.pointers))
    if len(features) + 2 * len(structure.conditioned) + 4 > MOST:
        return None
    columns, pairs = _columns(structure, sequences, features)
    size = structure.size
    if len(structure.packing.labels) == len(features) * size and structure.free.all():
        return (size - 1) * numerical_rank(columns) + (size - 1) ** 2 * numerical_rank(pairs)
    return _rank_by_distributions(structure, features, columns, pairs) if structure.length <= MOST else None


def _columns(structure: ChainStructure, sequences: DesignedSequences, features: Ints) -> tuple[Floats, Floats]:
    """Two matrices with the row spaces of what there is at a step, and at a pair of steps.

    The first has the features; those that transitions depend on, here where a step comes before and at the step after;
    "first", "last", "after a step" and "before a step". The second has the features that transitions depend on, and 1.
    """
    from scipy import sparse

    design, offsets = sequences.values.matrix, sequences.offsets
    whole = design.to_scipy()
    first, last = np.zeros((2, design.rows))
    first[offsets[:-1]] = last[offsets[1:] - 1] = 1.0
    own = whole[:, structure.conditioned]
    into = sparse.csr_array(sparse.diags_array(1.0 - first) @ own)
    onward = sparse.vstack([into[1:], sparse.csr_array((1, own.shape[1]))])
    ends = [first, last] if structure.boundaries else [0.0 * first, 0.0 * last]
    sides = sparse.csr_array(np.stack([*ends, 1.0 - first, 1.0 - last], axis=1))
    columns = sketched(sparse.hstack([whole[:, features], into, onward, sides], format="csr"))
    ones = sparse.csr_array((1.0 - first)[:, None])
    return columns, sketched(sparse.hstack([into, ones], format="csr"))


def _rank_by_distributions(structure: ChainStructure, features: Ints, columns: Floats, pairs: Floats) -> int:
    """The rank of the features under random signed distributions: see the module."""
    size, g = structure.size, len(structure.conditioned)
    rng = np.random.default_rng(0)
    rows = np.empty((structure.length + SPARE, structure.length))
    every = np.zeros((len(structure.packing.pointers) - 1, size))
    for row in range(len(rows)):
        signed = rng.standard_normal((len(columns), size))
        moved = columns.T @ (signed - signed.mean(axis=1, keepdims=True))
        both = rng.standard_normal((len(pairs), size, size))
        both = both - both.mean(axis=1, keepdims=True)
        both = np.tensordot(pairs, both - both.mean(axis=2, keepdims=True), axes=(0, 0))
        every[features] = moved[: len(features)]
        into, onward, sides = np.split(moved[len(features) :], [g, 2 * g])
        rows[row] = structure.joined(
            every[structure.packing.features, structure.packing.labels],
            both[g] + (sides[2][None, :] + sides[3][:, None]) / size,
            sides[:2],
            both[:g] + (into[:, None, :] + onward[:, :, None]) / size,
        )
    return numerical_rank(rows)


def _rank_by_paths(block: SequenceBlock, sequences: DesignedSequences) -> int | None:
    """The rank of the features of random paths, where constraints leave some out."""
    structure = block.structure
    chains = [part for part, _ in block.steps.chains(block.parts(np.zeros(structure.length)))]

    def draw(rng: np.random.Generator) -> Floats:
        shares = rng.standard_normal(len(sequences))
        one, other = (
            block.steps.observed(np.concatenate([c.sample(random_state=rng)[0] for c in chains]), shares)
            for _ in range(2)
        )
        return structure.joined(
            one.states - other.states,
            one.transitions - other.transitions,
            one.ends - other.ends,
            one.conditioned - other.conditioned,
        )

    entries = len(sequences.values.matrix.indices) + structure.size * sequences.values.matrix.rows
    return rank_of_draws(draw, structure.length, entries)


def _bound(structure: ChainStructure, sequences: DesignedSequences | None) -> int:
    """A bound of the rank from above, which needs no matrix.

    A number added to the weights of a feature for all labels changes nothing, and of features that always have the same
    values one does the work of all.
    """
    size, packing = structure.size, structure.packing
    kinds = np.arange(len(packing.pointers) - 1)
    if sequences is not None:
        design = sequences.values.matrix
        # Columns that are the same have the same random sums, to the last bit.
        mixed = np.random.default_rng(0).standard_normal((2, design.rows))[:, design.row_of_entry] * design.filled
        sums = np.stack([np.bincount(design.indices, row, design.columns) for row in mixed], axis=1)
        _, kinds = np.unique(sums, axis=0, return_inverse=True)
        kinds = np.where(np.bincount(design.indices, minlength=design.columns) > 0, kinds.ravel(), -1)
    keys = np.unique((kinds[packing.features] * size + packing.labels)[kinds[packing.features] >= 0])
    whole = int((np.bincount(keys // size) == size).sum()) if len(keys) else 0
    transitions = int(structure.free.sum()) - bool((structure.free == structure.allowed).all())
    ends = int(structure.ends.sum()) - 2 if structure.boundaries else 0
    conditioned = len(structure.conditioned) * (int(structure.allowed.sum()) - 1)
    return len(keys) - whole + transitions + ends + conditioned
