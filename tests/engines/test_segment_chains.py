"""Chains of segments against all segmentations, and against plain chains."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest

from suffice.array_types import Floats
from suffice.engines.chain import chains_of
from suffice.engines.segment_chains import SegmentChains
from suffice.kernels.choice import force

K = 3


@pytest.fixture(params=["numpy", "compiled"], autouse=True)
def path_of_kernels(request: pytest.FixtureRequest) -> Iterator[None]:
    with force(request.param):
        yield


def random_chains(seed: int, lengths: list[int], *, holes: bool = False) -> SegmentChains:
    """Label 0 lasts up to 3 steps, label 1 up to 5, label 2 for one step and may follow itself."""
    rng = np.random.default_rng(seed)
    moves = rng.dirichlet(np.ones(K), size=K)
    moves[[0, 1], [0, 1]] = 0.0
    moves /= moves.sum(axis=1, keepdims=True)
    durations = np.zeros((5, K))
    durations[:3, 0], durations[:, 1], durations[0, 2] = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(5)), 1.0
    survival = durations[::-1].cumsum(axis=0)[::-1]
    scores = rng.normal(size=(sum(lengths), K))
    if holes:
        scores[2, 0], scores[1, 1] = -np.inf, -np.inf
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    with np.errstate(divide="ignore"):
        logs = np.log(rng.dirichlet(np.ones(K))), np.log(moves), np.log(durations), np.log(survival)
    return SegmentChains(scores, offsets, *logs)


def segmentations(chain: SegmentChains, scores: Floats) -> Iterator[tuple[float, list[tuple[int, int]]]]:
    """Log-probability and segments (label, steps) of every path; the last segment is cut."""
    steps = len(scores)
    for lengths in (c for n in range(1, steps + 1) for c in itertools.product(range(1, steps + 1), repeat=n)):
        if sum(lengths) != steps or max(lengths) > len(chain.lasts):
            continue
        for labels in itertools.product(range(K), repeat=len(lengths)):
            value, t = float(chain.first[labels[0]]), 0
            for place, (label, length) in enumerate(zip(labels, lengths, strict=True)):
                final = place == len(labels) - 1
                value += float((chain.stays if final else chain.lasts)[length - 1, label])
                value += float(scores[t : t + length, label].sum())
                if not final:
                    value += float(chain.moves[label, labels[place + 1]])
                t += length
            if value > -math.inf:
                yield value, list(zip(labels, lengths, strict=True))


def path_of(segments: list[tuple[int, int]]) -> list[int]:
    return [label for label, length in segments for _ in range(length)]


@pytest.mark.parametrize("holes", [False, True])
def test_every_answer_equals_the_sum_over_all_segmentations(holes: bool) -> None:
    chain = random_chains(3, [5], holes=holes)
    every = list(segmentations(chain, chain.scores))
    logs = np.array([value for value, _ in every])
    log_z = float(np.logaddexp.reduce(logs))
    shares = np.exp(logs - log_z)
    posteriors, pairs = np.zeros((5, K)), np.zeros((5, K, K))
    initial, moves, ended, cut = np.zeros(K), np.zeros((K, K)), np.zeros((5, K)), np.zeros((5, K))
    for share, (_, segments) in zip(shares, every, strict=True):
        path = path_of(segments)
        posteriors[np.arange(5), path] += share
        for t, (before, label) in enumerate(itertools.pairwise(path), start=1):
            pairs[t, before, label] += share
        initial[path[0]] += share
        for (label, length), (after, _) in itertools.pairwise(segments):
            ended[length - 1, label] += share
            moves[label, after] += share
        cut[segments[-1][1] - 1, segments[-1][0]] += share
    answer = chain.expectations(np.array([2.0]))
    np.testing.assert_allclose(chain.log_partition(), [log_z], rtol=1e-13)
    np.testing.assert_allclose(answer.log_partition, [log_z], rtol=1e-13)
    np.testing.assert_allclose(answer.posteriors, posteriors, atol=1e-14)
    for there, expected in zip(answer.sums.arrays, (initial, moves, ended, cut), strict=True):
        np.testing.assert_allclose(there, 2.0 * expected, atol=1e-13)
    np.testing.assert_allclose(chain.pairs()[1], pairs, atol=1e-14)
    codes, values = chain.best_paths()
    by_path: dict[tuple[int, ...], float] = {}
    for value, segments in every:
        by_path[tuple(path_of(segments))] = np.logaddexp(by_path.get(tuple(path_of(segments)), -np.inf), value)
    assert values[0] == pytest.approx(logs.max(), rel=1e-13)
    assert tuple(codes.tolist()) == max(by_path, key=lambda path: by_path[path])
    drawn = chain.draw(4000, np.random.default_rng(1))
    frequencies = np.stack([(drawn == label).mean(axis=0) for label in range(K)], axis=1)
    np.testing.assert_allclose(frequencies, posteriors, atol=4 * 0.5 / math.sqrt(4000))


def test_filtered_labels_are_the_posteriors_of_last_steps_and_forecasts_those_of_silent_steps() -> None:
    chain = random_chains(8, [6])
    rows = chain.filtered()[1]
    for t in range(6):
        head = SegmentChains(
            chain.scores[: t + 1], np.array([0, t + 1]), chain.first, chain.moves, chain.lasts, chain.stays
        )
        np.testing.assert_allclose(rows[t], head.expectations(np.ones(1)).posteriors[-1], atol=1e-14)
    longer = np.vstack([chain.scores, np.zeros((4, K))])
    whole = SegmentChains(longer, np.array([0, 10]), chain.first, chain.moves, chain.lasts, chain.stays)
    np.testing.assert_allclose(chain.ahead(4)[1][0], whole.expectations(np.ones(1)).posteriors[6:], atol=1e-14)
    np.testing.assert_allclose(whole.log_partition(), chain.log_partition(), rtol=1e-13)


def test_labels_of_one_step_are_a_plain_chain() -> None:
    rng = np.random.default_rng(0)
    scores, moves, first = rng.normal(size=(40, K)), rng.dirichlet(np.ones(K), size=K), rng.dirichlet(np.ones(K))
    offsets = np.array([0, 12, 40])
    one = np.zeros((1, K))
    segments = SegmentChains(scores, offsets, np.log(first), np.log(moves), one, one)
    plain = chains_of(np.exp(scores), moves, offsets=offsets, initial=first)
    there, expected = segments.expectations(np.array([1.0, 3.0])), plain.expectations([1.0, 3.0])
    np.testing.assert_allclose(there.log_partition, expected.log_partition, rtol=1e-12)
    np.testing.assert_allclose(there.posteriors, expected.posteriors, atol=1e-12)
    np.testing.assert_allclose(there.sums.pairs, expected.transition_sums, rtol=1e-11)
    assert segments.best_paths()[0].tolist() == plain.best_paths(1)[0][0].tolist()


def test_sequences_are_independent_and_impossible_ones_have_no_posterior() -> None:
    chain = random_chains(5, [4, 7])
    parts = [
        SegmentChains(chain.scores[span], np.array([0, n]), chain.first, chain.moves, chain.lasts, chain.stays)
        for span, n in ((slice(0, 4), 4), (slice(4, 11), 7))
    ]
    np.testing.assert_allclose(chain.log_partition(), [part.log_partition()[0] for part in parts], rtol=1e-14)
    never = SegmentChains(
        np.full((3, K), -np.inf), np.array([0, 3]), chain.first, chain.moves, chain.lasts, chain.stays
    )
    answer = never.expectations(np.ones(1))
    assert answer.log_partition[0] == -np.inf
    assert not answer.posteriors.any()
