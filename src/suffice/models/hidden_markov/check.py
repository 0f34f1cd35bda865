"""The judge of a fit: expected statistics once more, in log space and one step after the other.

Nothing here is used by the steps of EM, so that a fault of theirs shows. Of long data a sample is computed again: what
differs there is added to the gap that all of the data show.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from suffice.array_types import Floats
from suffice.models.hidden_markov.chains import Observed
from suffice.models.hidden_markov.durations.check import lasting_again
from suffice.models.hidden_markov.durations.segments import tables_of
from suffice.models.hidden_markov.emissions.contract import Emission
from suffice.models.hidden_markov.expectation import ChainExpectation
from suffice.models.hidden_markov.parameters import ChainParameters, SegmentCounts, Statistics
from suffice.models.hidden_markov.rounds import HeldChains, SumsTogether

#: Steps that are computed again, and those of each of many shards.
MOST, LEAST = 2_000, 50


def judged_statistics(chains: HeldChains, parameters: ChainParameters) -> tuple[Statistics, float]:
    """Expected statistics of the sequences, and by how much two computations of them differ, as a share of steps.

    All of the sequences are computed again where they are short; of long ones a sample, some steps of every shard.
    """
    if chains.rows <= MOST:
        return chains.sum(parameters, by=computed_again), 0.0
    there, again, weight = chains.sum(parameters, by=ComputedTwice(max(MOST // chains.held.shards, LEAST))).parts
    return chains.expect(parameters), _distance(there, again) / max(weight, 1.0)


def computed_again(prepared: ChainExpectation, parameters: ChainParameters) -> Statistics:
    """The statistics of a shard by other code."""
    return expected_again(prepared.observed, prepared.emission, parameters)


@dataclass(frozen=True)
class ComputedTwice:
    """The statistics of the first `most` steps of a shard, by the code of EM, and by other code; and their weight."""

    most: int

    def __call__(self, prepared: ChainExpectation, parameters: ChainParameters) -> SumsTogether:
        """Of one shard."""
        sample = prepared.observed.head(self.most)
        there = ChainExpectation(sample, prepared.emission, 1).expect(parameters)
        return SumsTogether((there, expected_again(sample, prepared.emission, parameters), sample.weight))


def _distance(left: Statistics, right: Statistics) -> float:
    return float(
        max(
            np.abs(left.initial - right.initial).max(),
            np.abs(left.transitions - right.transitions).max(),
            abs(left.log_likelihood - right.log_likelihood),
            *(np.abs(a - b).max() for a, b in zip(_segments(left), _segments(right), strict=True)),
        )
    )


def _segments(statistics: Statistics) -> tuple[Floats, ...]:
    counts = statistics.segments
    return () if counts is None else (counts.ended, counts.cut)


def expected_again(observed: Observed, emission: Emission, parameters: ChainParameters) -> Statistics:
    """Expected statistics by sums of logarithms."""
    size = len(parameters.initial)
    initial, pairs, total = np.zeros(size), np.zeros((size, size)), 0.0
    scores = np.array(emission.log_densities(observed.values, parameters.emission))
    if observed.labels is not None:
        known = observed.labels >= 0
        other = known[:, None] & (np.arange(size) != observed.labels[:, None])
        scores[other] = -np.inf
    posteriors = np.zeros_like(scores)
    segments = _no_segments(observed, parameters)
    for s, weight in enumerate(observed.weights.tolist()):
        span = slice(int(observed.offsets[s]), int(observed.offsets[s + 1]))
        if segments is None:
            mass, gamma, joint = _one(scores[span], parameters)
        else:
            mass, gamma, joint, counts = lasting_again(scores[span], parameters)
            segments = segments + SegmentCounts(weight * counts.ended, weight * counts.cut)
        posteriors[span] = weight * gamma
        initial += weight * gamma[0]
        pairs += weight * joint
        total += weight * mass if weight > 0 else 0.0
    sums = emission.statistics(observed.values, posteriors, parameters.emission)
    return Statistics(initial, pairs, sums, total, segments)


def _no_segments(observed: Observed, parameters: ChainParameters) -> SegmentCounts | None:
    if not parameters.durations:
        return None
    longest = len(tables_of(parameters.durations, max(int(observed.lengths.max(initial=0)), 1))[0])
    return SegmentCounts(*np.zeros((2, longest, len(parameters.durations))))


def _one(scores: Floats, parameters: ChainParameters) -> tuple[float, Floats, Floats]:
    """Log-likelihood, posteriors (steps, K) and sums of joint posteriors (K, K) of one sequence."""
    with np.errstate(divide="ignore", invalid="ignore"):
        first, matrix = np.log(parameters.initial), np.log(parameters.transitions)
        ahead, back = np.empty_like(scores), np.zeros_like(scores)
        ahead[0] = first + scores[0]
        for t in range(1, len(scores)):
            ahead[t] = np.logaddexp.reduce(ahead[t - 1][:, None] + matrix, axis=0) + scores[t]
        for t in range(len(scores) - 2, -1, -1):
            back[t] = np.logaddexp.reduce(matrix + (scores[t + 1] + back[t + 1]), axis=1)
        mass = float(np.logaddexp.reduce(ahead[-1]))
        gamma = np.exp(ahead + back - mass)
        right = scores[1:] + back[1:]
        joint = np.zeros_like(matrix)
        for i in range(len(matrix)):
            joint[i] = np.exp(ahead[:-1, [i]] + matrix[i] + right - mass).sum(axis=0)
    return mass, gamma, joint
