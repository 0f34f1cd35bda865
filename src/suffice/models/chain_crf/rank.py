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

from dataclasses import dataclass

import numpy as np

from suffice.array_types import Floats, Ints
from suffice.models.chain_crf.layout import ChainLayout
from suffice.models.chain_crf.rounds import ChainRounds, ChainShard
from suffice.models.conditional_field.rank import MOST, SPARE, FeatureRank, numerical_rank, rank_of_draws, sketched
from suffice.models.conditional_field.shards import PartOfVector
from suffice.sources.reduction import Answers


def chain_rank(rounds: ChainRounds) -> FeatureRank:
    """The number of parameters that held sequences tell apart."""
    layout = rounds.layout
    if layout.size == 1:
        return FeatureRank(0)
    rank = _rank(rounds)
    return FeatureRank(_bound(layout, rounds), exact=False) if rank is None else FeatureRank(rank)


def bounded_rank(layout: ChainLayout) -> FeatureRank:
    """What can be said without the sequences."""
    return FeatureRank(_bound(layout, None), exact=False) if layout.size > 1 else FeatureRank(0)


def _rank(rounds: ChainRounds) -> int | None:
    layout = rounds.layout
    if not (layout.allowed.all() and layout.ends.all()):
        return _rank_by_paths(rounds)
    features = np.flatnonzero(np.diff(layout.packing.pointers))
    if len(features) + 2 * len(layout.conditioned) + 4 > MOST:
        return None
    answer: Answers = rounds.held.sum(None, StepColumns(layout, features, alone=rounds.held.shards == 1))
    columns, pairs = answer.parts
    size = layout.size
    if len(layout.packing.labels) == len(features) * size and layout.free.all():
        return (size - 1) * numerical_rank(columns) + (size - 1) ** 2 * numerical_rank(pairs)
    return _rank_by_distributions(layout, features, columns, pairs) if layout.length <= MOST else None


@dataclass(frozen=True, eq=False)
class StepColumns:
    """Two matrices with the row spaces of what there is at a step, and at a pair of steps; those of shards add up.

    The first has the features (c,); those that transitions depend on, here where a step comes before and at the step
    after; "first", "last", "after a step" and "before a step". The second has the features that transitions depend on,
    and 1. alone: there is one shard.
    """

    layout: ChainLayout
    features: Ints
    alone: bool

    def __call__(self, shard: ChainShard, _: object) -> Answers:
        """Those of one shard."""
        from scipy import sparse

        layout, sequences = self.layout, shard.everywhere(len(self.layout.packing.pointers) - 1)
        whole, offsets = sequences.values.to_scipy(), sequences.offsets
        first, last = np.zeros((2, whole.shape[0]))
        first[offsets[:-1]] = last[offsets[1:] - 1] = 1.0
        own = whole[:, layout.conditioned]
        into = sparse.csr_array(sparse.diags_array(1.0 - first) @ own)
        onward = sparse.vstack([into, sparse.csr_array((1, own.shape[1]))], format="csr")[1:]
        ends = [first, last] if layout.boundaries else [0.0 * first, 0.0 * last]
        sides = sparse.csr_array(np.stack([*ends, 1.0 - first, 1.0 - last], axis=1))
        ones = sparse.csr_array((1.0 - first)[:, None])
        seed = None if self.alone else shard.seed
        columns = sketched(sparse.hstack([whole[:, self.features], into, onward, sides], format="csr"), seed)
        return Answers((columns, sketched(sparse.hstack([into, ones], format="csr"), seed)))


def _rank_by_distributions(layout: ChainLayout, features: Ints, columns: Floats, pairs: Floats) -> int:
    """The rank of the features under random signed distributions: see the module."""
    size, g = layout.size, len(layout.conditioned)
    rng = np.random.default_rng(0)
    rows = np.empty((layout.length + SPARE, layout.length))
    every = np.zeros((len(layout.packing.pointers) - 1, size))
    for row in range(len(rows)):
        signed = rng.standard_normal((len(columns), size))
        moved = columns.T @ (signed - signed.mean(axis=1, keepdims=True))
        both = rng.standard_normal((len(pairs), size, size))
        both = both - both.mean(axis=1, keepdims=True)
        both = np.tensordot(pairs, both - both.mean(axis=2, keepdims=True), axes=(0, 0))
        every[features] = moved[: len(features)]
        into, onward, sides = np.split(moved[len(features) :], [g, 2 * g])
        rows[row] = layout.joined(
            every[layout.packing.features, layout.packing.labels],
            both[g] + (sides[2][None, :] + sides[3][:, None]) / size,
            sides[:2],
            both[:g] + (into[:, None, :] + onward[:, :, None]) / size,
        )
    return numerical_rank(rows)


def _rank_by_paths(rounds: ChainRounds) -> int | None:
    """The rank of the features of random paths, where constraints leave some out."""
    layout = rounds.layout

    def draws(count: int, seed: int) -> Floats:
        answer: PartOfVector = rounds.held.sum(None, PathDraws(layout, count, seed))
        return answer.whole().T

    entries = float(rounds.held.sum(layout.size, _entries))
    return rank_of_draws(draws, layout.length, entries)


def _entries(shard: ChainShard, size: int) -> int:
    """What the features of one path of all sequences cost."""
    matrix = shard.examples.values
    return len(matrix.indices) + size * matrix.rows


@dataclass(frozen=True, eq=False)
class PathDraws:
    """The features of one random path less those of another, (k, count), with random shares of the sequences."""

    layout: ChainLayout
    count: int
    seed: int

    def __call__(self, shard: ChainShard, _: object) -> PartOfVector:
        """Those of one shard."""
        under = shard.under(self.layout, 1)
        block, rng = under.block, np.random.default_rng([self.seed, shard.seed])
        chains = [part for part, _ in block.steps.chains(block.parts(np.zeros(block.layout.length)))]
        rows, none = [], np.zeros(0, np.int64)  # A shard may hold no sequence at all.
        for _ in range(self.count):
            block = block.weighing(rng.standard_normal(len(shard.examples)))
            one, other = ([none, *(c.sample(random_state=rng)[0] for c in chains)] for _ in range(2))
            rows.append(block.observed(np.concatenate(one)) - block.observed(np.concatenate(other)))
        return under.answer(np.stack(rows, axis=1))


def _bound(layout: ChainLayout, rounds: ChainRounds | None) -> int:
    """A bound of the rank from above, which needs no matrix.

    A number added to the weights of a feature for all labels changes nothing, and of features that always have the same
    values one does the work of all.
    """
    size, packing = layout.size, layout.packing
    kinds = np.arange(len(packing.pointers) - 1)
    if rounds is not None:
        sums: PartOfVector = rounds.held.sum(rounds.width, _mixed_columns)
        mixed = sums.whole()
        _, kinds = np.unique(mixed[:, :2], axis=0, return_inverse=True)
        kinds = np.where(mixed[:, 2] > 0, kinds.ravel(), -1)
    keys = np.unique((kinds[packing.features] * size + packing.labels)[kinds[packing.features] >= 0])
    whole = int((np.bincount(keys // size) == size).sum()) if len(keys) else 0
    transitions = int(layout.free.sum()) - bool((layout.free == layout.allowed).all())
    ends = int(layout.ends.sum()) - 2 if layout.boundaries else 0
    conditioned = len(layout.conditioned) * (int(layout.allowed.sum()) - 1)
    return len(keys) - whole + transitions + ends + conditioned


def _mixed_columns(shard: ChainShard, width: int) -> PartOfVector:
    """Two random sums of every column (width, 3), and its entries: those of equal columns are equal to the last bit."""
    design = shard.examples.values
    mixed = np.random.default_rng([0, shard.seed]).standard_normal((2, design.rows))[:, design.row_of_entry]
    sums = [np.bincount(design.indices, row, design.columns) for row in (*(mixed * design.filled), None)]
    return PartOfVector(width, np.stack(sums, axis=1).astype(np.float64), shard.own)
