"""Labelled examples in shards, wherever these are held, and what shards answer: sums over their examples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from suffice.array_types import Floats, Ints
from suffice.models.conditional_field.decoding import Examples

E = TypeVar("E", bound=Examples)

#: A sum whose shards speak of more than this share of its entries is written out.
DENSE = 0.5


@dataclass(frozen=True, eq=False)
class LabelledShard(Generic[E]):
    """Some examples, the codes (steps,) of their labels, and how often each example counts (n,)."""

    examples: E
    codes: Ints
    weights: Floats


@dataclass(frozen=True, eq=False)
class PartOfVector:
    """Entries (p, ...) of a vector (length, ...) that a shard has something to say about; those of shards add up.

    `places` (p,) rise; None where all entries are there.
    """

    length: int
    values: Floats
    places: Ints | None = None

    def __add__(self, other: PartOfVector) -> PartOfVector:
        """The sum; entries of which one shard alone speaks are those of that shard."""
        few = self.places is not None and other.places is not None
        if not few or len(self.values) + len(other.values) > DENSE * self.length:
            return PartOfVector(self.length, self.whole() + other.whole())
        places = np.union1d(self.places, other.places)  # type: ignore[arg-type]
        values = np.zeros((len(places), *self.values.shape[1:]))
        for part in (self, other):
            values[np.searchsorted(places, part.places)] += part.values  # type: ignore[arg-type]
        return PartOfVector(self.length, values, places)

    def whole(self) -> Floats:
        """All entries, 0 where no shard has said anything."""
        if self.places is None:
            return self.values
        values = np.zeros((self.length, *self.values.shape[1:]))
        values[self.places] = self.values
        return values


@dataclass(frozen=True, eq=False)
class LargestOfShards:
    """Numbers of which the largest of all shards count."""

    values: Floats

    def __add__(self, other: LargestOfShards) -> LargestOfShards:
        """Entry by entry."""
        return LargestOfShards(np.maximum(self.values, other.values))


@dataclass(frozen=True)
class LabelSeparation:
    """Whether no example has labels that score more than those given, and whether some example has lower ones."""

    nowhere_above: bool
    somewhere_below: bool

    @property
    def complete(self) -> bool:
        """Whether the likelihood of all labels rises for ever."""
        return self.nowhere_above and self.somewhere_below

    def __add__(self, other: LabelSeparation) -> LabelSeparation:
        """Of both shards."""
        return LabelSeparation(
            self.nowhere_above and other.nowhere_above, self.somewhere_below or other.somewhere_below
        )


def label_counts(shard: LabelledShard[Any], size: int) -> Floats:
    """How often each label (size,) is given, weighted."""
    by_step = np.repeat(shard.weights, np.diff(shard.examples.offsets))
    return np.bincount(shard.codes, by_step, size).astype(np.float64)


def extent(shard: LabelledShard[Any], _: object) -> Floats:
    """The numbers of examples and of their steps, and the weight of the examples."""
    return np.array([len(shard.examples), len(shard.codes), shard.weights.sum()])
