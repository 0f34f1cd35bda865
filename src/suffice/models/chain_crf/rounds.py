"""Labelled sequences in shards, and what a shard answers to weights: one round of a fit or of its judge.

A shard keeps the columns of its own features alone. It takes its own weights out of the whole vector, and answers with
their entries of the gradient; answers of shards add up.
"""

from __future__ import annotations

import hashlib
import zlib
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from suffice.array_types import Floats, Ints
from suffice.engines.label_scores import Matrix
from suffice.models.chain_crf.blocks import SequenceBlock
from suffice.models.chain_crf.layout import ChainLayout
from suffice.models.conditional_field.existence import separation
from suffice.models.conditional_field.shards import (
    LabelledShard,
    LabelSeparation,
    LargestOfShards,
    PartOfVector,
)
from suffice.sources.held import Held
from suffice.sources.reduction import Answers
from suffice.sources.releasing import Disclosed
from suffice.sources.sequences import Sequences

#: Sequences whose steps have sparse features.
FeatureSequences = Sequences[Matrix]


@dataclass(frozen=True, eq=False)
class ChainShard(LabelledShard[FeatureSequences]):
    """Some labelled sequences.

    own (c,): which columns of the layout those of the sequences are, rising; None: all of them.
    """

    own: Ints | None = None

    def __getstate__(self) -> dict[str, Any]:
        """What travels: not what was made for the last weights."""
        return {name: value for name, value in vars(self).items() if name != "_made"}

    def under(self, layout: ChainLayout, threads: int | None) -> BlockOfShard:
        """The sequences under a layout; the last one made is kept, because its buffers are made once."""
        made = vars(self).get("_made")
        if made is None or made.layout is not layout or made.threads != threads:
            made = BlockOfShard(self, layout, threads)
            object.__setattr__(self, "_made", made)
        return made

    def everywhere(self, width: int) -> FeatureSequences:
        """The sequences with all columns of a layout."""
        if self.own is None:
            return self.examples
        matrix = self.examples.values
        indices = self.own[matrix.indices].astype(np.int32)
        return self.examples.reading(replace(matrix, indices=indices, columns=width))

    @property
    def seed(self) -> int:
        """A number for draws that differs between shards and is the same wherever a shard is."""
        return zlib.crc32(self.codes.tobytes(), zlib.crc32(self.examples.values.indices.tobytes()))


class BlockOfShard:
    """The sequences of a shard under a layout: from weights (k,) of the layout to answers for its own of them."""

    def __init__(self, shard: ChainShard, layout: ChainLayout, threads: int | None) -> None:
        """See the class."""
        self.layout, self.threads, self.places = layout, threads, None
        here = layout
        if shard.own is not None:
            here, self.places = layout.of_columns(shard.own)
        self.block = SequenceBlock(here, shard.examples, shard.weights, threads=threads)
        self.even = self.block.evenly()

    def own(self, weights: Floats) -> Floats:
        """The weights that the shard needs."""
        return weights if self.places is None else weights[self.places]

    def answer(self, values: Floats) -> PartOfVector:
        """What the shard says about its own weights."""
        return PartOfVector(self.layout.length, values, self.places)


@dataclass(frozen=True, eq=False)
class PlacedWeights:
    """What goes out in a round: weights (k,), or a direction among them, and how they lie.

    evenly: every sequence counts once. threads: those of a shard.
    """

    layout: ChainLayout
    vector: Floats
    threads: int | None = 1
    evenly: bool = False

    def disclosed(self) -> Disclosed:
        """The features of the labels given."""
        return Disclosed(cells=(("labels by feature", partial(_behind, layout=self.layout)),))

    def block(self, shard: ChainShard) -> tuple[BlockOfShard, SequenceBlock, Floats]:
        """The sequences of a shard under these weights, each as often as asked, and the weights that are its own."""
        under = shard.under(self.layout, self.threads)
        return under, under.even if self.evenly else under.block, under.own(self.vector)


def expected(shard: ChainShard, given: PlacedWeights) -> Answers:
    """The log partition of all sequences, and their expected features, weighted and summed."""
    under, block, weights = given.block(shard)
    log_partition, features = block.expected(weights)
    return Answers((float(block.shares @ log_partition), under.answer(features)))


def observed(shard: ChainShard, given: PlacedWeights) -> PartOfVector:
    """The features of the labels given."""
    under, block, _ = given.block(shard)
    return under.answer(block.observed(shard.codes))


def _behind(shard: ChainShard, _: object, *, layout: ChainLayout) -> Floats:
    """How many steps are behind each sum of a feature by label, or by two labels."""
    matrix = shard.examples.values
    shown = shard.examples.reading(replace(matrix, values=(matrix.filled != 0.0).astype(np.float64)))
    once = ChainShard(shown, shard.codes, np.ones(len(shard.weights)), shard.own)
    return observed(once, PlacedWeights(layout, np.zeros(layout.length))).whole()


def variance(shard: ChainShard, given: PlacedWeights) -> PartOfVector:
    """A bound of the variance of the sum of every feature from below."""
    under, block, weights = given.block(shard)
    return under.answer(block.variance(weights, shard.codes))


def best_features(shard: ChainShard, given: PlacedWeights) -> PartOfVector:
    """The features of the best paths."""
    under, block, weights = given.block(shard)
    return under.answer(block.observed(block.best_codes(weights)))


def separated(shard: ChainShard, given: PlacedWeights) -> LabelSeparation:
    """Whether the direction given lifts the labels given above all others."""
    _, block, direction = given.block(shard)
    return separation(lambda x: _extremes(block, shard.codes, x), direction)


def _extremes(block: SequenceBlock, codes: Ints, x: Floats) -> tuple[Floats, Floats]:
    """Scores of the paths given, and the highest scores of any paths, of each sequence (n,)."""
    own, top = [np.zeros(0)], [np.zeros(0)]  # A shard may hold no sequence at all.
    for chains, steps in block.steps.chains(block.parts(x)):
        own.append(chains.log_weights(codes[slice(*steps)]))
        top.append(chains.best_paths()[1][:, 0])
    return np.concatenate(own), np.concatenate(top)


def feature_ends(shard: ChainShard, width: int) -> PartOfVector:
    """Sums (width, 2) of the negative and of the positive values of every column."""
    matrix = shard.examples.values
    sums = [
        np.bincount(matrix.indices, part, matrix.columns).astype(np.float64)
        for part in (np.minimum(matrix.filled, 0.0), np.maximum(matrix.filled, 0.0))
    ]
    return PartOfVector(width, np.stack(sums, axis=1), shard.own)


def feature_reach(shard: ChainShard, width: int) -> LargestOfShards:
    """The largest sum (width,) of the sizes of a column over one sequence, and the most steps of a sequence."""
    from scipy import sparse

    matrix, lengths = shard.examples.values, shard.examples.lengths
    owner = np.repeat(np.arange(len(lengths)), lengths)[matrix.row_of_entry]
    shape = (len(lengths) + 1, matrix.columns)  # The largest sum of no sequence is 0.
    sums = sparse.coo_array((np.abs(matrix.filled), (owner, matrix.indices)), shape=shape)
    reach = np.asarray(sums.tocsr().max(axis=0).todense(), np.float64).ravel()
    return LargestOfShards(np.append(PartOfVector(width, reach, shard.own).whole(), float(lengths.max(initial=0))))


def digest(shard: ChainShard, _: object) -> tuple[str, ...]:
    """What tells the shards from others."""
    matrix, mark = shard.examples.values, hashlib.sha256()
    columns = np.zeros(0, np.int64) if shard.own is None else shard.own
    for array in (matrix.indptr, matrix.indices, matrix.values, shard.examples.offsets, shard.codes, columns):
        mark.update(np.ascontiguousarray(array).tobytes())
    mark.update(shard.weights.tobytes())
    return (mark.hexdigest(),)


class LabelledChainWork:
    """What shards of labelled sequences do in each round; `prepare` is that of the data."""

    def evaluate(self, shard: ChainShard, given: PlacedWeights) -> Answers:
        """The log partition of all sequences, and their expected features."""
        return expected(shard, given)


@dataclass(frozen=True)
class ReadSequences(LabelledChainWork):
    """The work on sequences that are read already, as one shard in this process."""

    def prepare(self, batch: Any) -> Any:
        """The shard is its own preparation."""
        return batch


@dataclass(frozen=True, eq=False)
class ChainRounds:
    """Held sequences, asked under one layout."""

    held: Held[ChainShard]
    layout: ChainLayout
    threads: int | None

    @property
    def width(self) -> int:
        """The columns of the layout."""
        return len(self.layout.packing.pointers) - 1

    def ask(self, vector: Floats, by: Any = None, *, evenly: bool = False) -> Any:
        """One round with a vector (k,). A single shard has all threads, several are asked at a time."""
        threads = self.threads if self.held.shards == 1 else 1
        return self.held.sum(PlacedWeights(self.layout, vector, threads, evenly), by)

    def features(self, *, evenly: bool = False) -> Floats:
        """The features (k,) of the labels given, summed over sequences."""
        answer: PartOfVector = self.ask(np.zeros(self.layout.length), observed, evenly=evenly)
        return answer.whole()
