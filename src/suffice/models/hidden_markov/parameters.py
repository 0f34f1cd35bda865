"""The parameters of a hidden Markov model, and the statistics that they are learned from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.checks import read_only
from suffice.errors import FileFormatError
from suffice.models.hidden_markov.durations.distributions import Duration
from suffice.models.hidden_markov.emissions import contract


@dataclass(frozen=True)
class ChainParameters:
    """P(first state) (K,), P(next | state) (K, K), the parameters of the emissions, and how long each state lasts.

    There are no `durations` in a plain chain.
    """

    initial: Floats
    transitions: Floats
    emission: contract.Parameters
    durations: tuple[Duration, ...] = ()

    def read_only(self) -> ChainParameters:
        """The same numbers in arrays that cannot be written to."""
        emission = {name: read_only(array) for name, array in self.emission.items()}
        durations = tuple(one.holding(read_only(one.numbers)) for one in self.durations)
        return ChainParameters(read_only(self.initial), read_only(self.transitions), emission, durations)

    def equals(self, other: ChainParameters) -> bool:
        """Whether all numbers are the same."""
        chain = np.array_equal(self.initial, other.initial) and np.array_equal(self.transitions, other.transitions)
        pairs = zip(self.durations, other.durations, strict=True)
        chain = chain and all(np.array_equal(a.numbers, b.numbers) for a, b in pairs)
        return chain and all(np.array_equal(array, other.emission[name]) for name, array in self.emission.items())


@dataclass(frozen=True, eq=False)
class SegmentCounts:
    """Counts (D, K) of segments of d + 1 steps that ended, and of those that the end of their sequence cut off."""

    ended: Floats
    cut: Floats

    def __add__(self, other: SegmentCounts) -> SegmentCounts:
        """Of both sets of sequences, which may have segments of other lengths."""
        longest = max(len(self.ended), len(other.ended))
        mine, others = self._padded(longest), other._padded(longest)
        return SegmentCounts(mine.ended + others.ended, mine.cut + others.cut)

    def without(self, other: SegmentCounts) -> SegmentCounts:
        """With the segments of the other taken out."""
        longest = max(len(self.ended), len(other.ended))
        mine, others = self._padded(longest), other._padded(longest)
        return SegmentCounts(
            contract.counts_left(mine.ended - others.ended, mine.ended),
            contract.counts_left(mine.cut - others.cut, mine.cut),
        )

    def _padded(self, longest: int) -> SegmentCounts:
        more = ((0, longest - len(self.ended)), (0, 0))
        return SegmentCounts(np.pad(self.ended, more), np.pad(self.cut, more))

    @property
    def steps(self) -> Floats:
        """Steps in each state (K,)."""
        return np.asarray(np.arange(1, len(self.ended) + 1) @ (self.ended + self.cut))


@dataclass(frozen=True)
class Statistics:
    """Counts of first states (K,) and of transitions (K, K), and the statistics of the emissions; they add up.

    `log_likelihood` is the weighted sum over sequences at the parameters under which they were expected. `segments` are
    counted where states have explicit durations.
    """

    initial: Floats
    transitions: Floats
    emission: contract.Statistics
    log_likelihood: float = 0.0
    segments: SegmentCounts | None = None

    def __add__(self, other: Statistics) -> Statistics:
        """Of both sets of sequences."""
        return Statistics(
            self.initial + other.initial,
            self.transitions + other.transitions,
            contract.add(self.emission, other.emission),
            self.log_likelihood + other.log_likelihood,
            None if self.segments is None or other.segments is None else self.segments + other.segments,
        )

    def without(self, other: Statistics, emission: contract.Emission) -> Statistics:
        """With the sequences of the other taken out, rounding set to 0; what no sequences can leave is an error."""
        rest = {name: sums - other.emission[name] for name, sums in self.emission.items()}
        return Statistics(
            contract.counts_left(self.initial - other.initial, self.initial),
            contract.counts_left(self.transitions - other.transitions, self.transitions),
            emission.left(rest, self.emission),
            segments=None if self.segments is None or other.segments is None else self.segments.without(other.segments),
        )

    def __radd__(self, other: object) -> Any:
        """Let ``sum`` start from 0."""
        return self if other == 0 else NotImplemented

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a file."""
        emission = {name: part.tolist() if part.dtype == object else part for name, part in self.emission.items()}
        return {
            "initial": self.initial,
            "transitions": self.transitions,
            "emission": emission,
            "log_likelihood": self.log_likelihood,
            "segments": None if self.segments is None else vars(self.segments),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Statistics:
        """Rebuild from plain data."""
        sums = {name: _array(value) for name, value in plain["emission"].items()}
        value = plain["log_likelihood"]
        if not isinstance(value, float) or math.isnan(value):
            raise FileFormatError(f"The log-likelihood of the statistics in this file is {value!r}, which is none.")
        segments = plain.get("segments")
        counts = None if segments is None else SegmentCounts(**{name: np.asarray(n) for name, n in segments.items()})
        return cls(np.asarray(plain["initial"]), np.asarray(plain["transitions"]), sums, value, counts)

    @property
    def visits(self) -> Floats:
        """Expected steps in each state (K,): first steps, and those that a transition leads to, or a segment holds."""
        if self.segments is not None:
            return self.segments.steps
        return np.asarray(self.initial + self.transitions.sum(axis=0))


def _array(value: Any) -> NDArray[Any]:
    """An array of numbers, or of summaries."""
    if isinstance(value, np.ndarray):
        return value
    summaries = np.empty(len(value), dtype=object)
    summaries[:] = value
    return summaries


def stationary(transitions: Floats) -> Floats:
    """The distribution (K,) that the transitions leave as it is: delta (I - P + 1) = 1'."""
    size = len(transitions)
    try:
        shares = np.linalg.solve((np.eye(size) - transitions + 1.0).T, np.ones(size))
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eig(transitions.T)
        vector = np.abs(np.real(vectors[:, int(np.argmin(np.abs(values - 1)))]))
        return np.asarray(vector / vector.sum())
    shares = np.maximum(shares, 0.0)
    return np.asarray(shares / shares.sum())
