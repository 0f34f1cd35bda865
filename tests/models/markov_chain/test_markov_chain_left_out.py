"""Deleted interpolation against its definition: take each event out by hand, refit with the weights held, score it."""

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar

import suffice as sf
from suffice.fitting.control import Control
from suffice.models.markov_chain.interpolation import WeightEvidence, learn_weights

TEXT = [
    line.split()
    for line in (
        "the cat sat on the mat",
        "the dog sat on the log",
        "a cat and a dog ran",
        "the cat ran to the log",
        "a dog sat",
        "on the mat the cat sat and sat",
        "the log",
    )
]

Event = tuple[tuple[Any, ...], Any]


def events_of(sequences: Sequence[Sequence[Any]], order: int, *, bounded: bool) -> Counter[Event]:
    """(history, word) of every step: histories have at most `order` words, one start mark before them where short."""
    found: Counter[Event] = Counter()
    for sequence in sequences:
        steps = ["<s>", *sequence, *(["</s>"] if bounded else [])]
        for at in range(1 if bounded else 2, len(steps)):
            found[tuple(steps[max(at - order, 0) : at]), steps[at]] += 1
    return found


class Refit:
    """Interpolation by dictionaries: counts of every history of every length, from whole events."""

    def __init__(self, events: Counter[Event], words: Sequence[Any], background: str = "unigram") -> None:
        self.own: Counter[Event] = Counter()
        self.total: Counter[tuple[Any, ...]] = Counter()
        self.words, self.background = words, background
        for (history, word), n in events.items():
            for length in range(len(history) + 1):
                short = history[len(history) - length :]
                self.own[short, word] += n
                self.total[short] += n

    def p(self, history: tuple[Any, ...], word: Any, weights: Sequence[Any], limits: Sequence[float]) -> float:
        if not history:
            if self.background == "uniform" or not self.total[()]:
                return 1 / len(self.words)
            return self.own[(), word] / self.total[()]
        shorter = self.p(history[1:], word, weights, limits)
        n = self.total[history]
        if not n > 0:
            return shorter
        weight = weights[len(history) - 1][sum(n >= limit for limit in limits)]
        return weight * shorter + (1 - weight) * self.own[history, word] / n  # type: ignore[no-any-return]


class LeftOut:
    """Every event whose history has `order` words, beside a refit of all events but one of its occurrences."""

    def __init__(
        self, sequences: Sequence[Sequence[Any]], order: int, words: Sequence[Any],
        *, bounded: bool = False, limits: Sequence[float] = (), background: str = "unigram",
    ) -> None:  # fmt: skip
        events = events_of(sequences, order, bounded=bounded)
        self.order, self.limits = order, limits
        self.refits = []
        for (history, word), n in events.items():
            if len(history) == order:
                rest = events.copy()
                rest[history, word] -= 1
                self.refits.append((Refit(rest, words, background), history, word, n))

    def score(self, weights: Sequence[Any]) -> float:
        """The sum of the log probabilities; what is impossible whatever the weight says nothing about it."""
        total = 0.0
        even = [*weights[: self.order - 1], np.full_like(weights[self.order - 1], 0.5)]
        for refit, history, word, n in self.refits:
            if refit.p(history, word, even, self.limits) > 0:
                p = refit.p(history, word, weights, self.limits)
                total += n * math.log(p) if p > 0 else -math.inf
        return total


def random_texts(seed: int, n: int, length: int, card: int) -> list[list[str]]:
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.full(card, 0.5), card)
    found = []
    for _ in range(n):
        walk = [int(rng.integers(card))]
        for _ in range(int(rng.integers(1, length))):
            walk.append(int(rng.choice(card, p=table[walk[-1]])))
        found.append([f"w{k}" for k in walk])
    return found


TEXTS: dict[str, Any] = {
    "words": TEXT,
    "ties": ["abab", "abab", "baba", "aabb"],
    "tiny": ["aab", "ba"],
    "repeated": ["abcab"] * 3 + ["acb"],
    "random": random_texts(0, 8, 12, 4),
    "wide": random_texts(5, 12, 9, 9),
}


def check_weights(chain: Any, sequences: Any, order: int, **how: Any) -> None:
    """Each level's weight maximises the score, the others held: no better value is found by a search of [0, 1]."""
    weights: list[list[float]] = [np.ravel(level).tolist() for level in chain.fitted_.weights]
    for length in range(1, order + 1):
        by_hand = LeftOut(sequences, length, chain.states_, **how)
        for bucket in range(len(weights[length - 1])):

            def loss(weight: float, by_hand: LeftOut = by_hand, bucket: int = bucket) -> float:
                tried = [list(level) for level in weights]
                tried[by_hand.order - 1][bucket] = weight
                return -by_hand.score(tried)

            here = loss(weights[length - 1][bucket])
            grid = [loss(float(weight)) for weight in np.linspace(0, 1, 11)]
            found = minimize_scalar(loss, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-9})
            assert here <= min(found.fun, *grid) + 1e-9
            if max(grid[1:-1]) - min(grid) > 1e-3 and 1e-3 < found.x < 1 - 1e-3:
                assert weights[length - 1][bucket] == pytest.approx(found.x, abs=1e-5)


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("name", TEXTS)
def test_the_weight_maximises_the_score_of_events_taken_out_by_hand(name: str, order: int) -> None:
    chain = sf.MarkovChain(order, smoothing="deleted").fit(TEXTS[name])
    assert chain.converged_
    check_weights(chain, TEXTS[name], order)
    whole = LeftOut(TEXTS[name], order, chain.states_).score([np.ravel(level) for level in chain.fitted_.weights])
    assert chain.report_.objective == pytest.approx(whole, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("order", [1, 2])
def test_ends_are_events_and_a_flat_background_stays(order: int) -> None:
    bounded = sf.MarkovChain(order, smoothing="deleted", bounds=True).fit(TEXT)
    check_weights(bounded, TEXT, order, bounded=True)
    flat = sf.MarkovChain(order, smoothing=sf.Interpolation("deleted", background="uniform")).fit(TEXT)
    check_weights(flat, TEXT, order, background="uniform")


def test_a_history_is_in_the_bucket_of_the_counts_that_are_left() -> None:
    limits = (2, 4)
    chain = sf.MarkovChain(2, smoothing=sf.Interpolation("deleted", buckets=limits)).fit(TEXT)
    check_weights(chain, TEXT, 2, limits=limits)
    histories = Counter(a for line in TEXT for a, _ in itertools.pairwise(line))
    one = sf.MarkovChain(1, smoothing=sf.Interpolation("deleted", buckets=limits)).fit(TEXT)
    for word, n in histories.items():
        bucket = sum(n >= limit for limit in limits)
        # Weights are kept as logarithms, so that the last bit may differ.
        assert one.interpolation_weight_.at({"from": word}) == pytest.approx(one.fitted_.weights[0][bucket], rel=1e-15)


@pytest.mark.parametrize("seed", range(4))
def test_weights_are_exact_where_the_objective_is_rounded(seed: int) -> None:
    """Many events near the end of the range: their sum is rounded by more than the last steps gain."""
    rng = np.random.default_rng(seed)
    size = 50_000
    shorter = rng.uniform(1e-6, 1e-4, size)
    own = shorter * np.where(rng.random(size) < 2e-3, rng.uniform(1.0, 2e3, size), rng.uniform(0.98, 1.0, size))
    number, bucket = rng.integers(1, 50, size).astype(float), rng.integers(0, 2, size)
    evidence = WeightEvidence(own, shorter, number, bucket, 2)
    outcome = learn_weights(evidence, Control(tolerance=1e-9, max_iter=40))
    assert outcome.converged
    for each, weight in enumerate(outcome.state.parameters):
        a, b, n = own[bucket == each], shorter[bucket == each], number[bucket == each]
        best = brentq(lambda w: (n * (b - a) / (w * b + (1.0 - w) * a)).sum(), 0.0, 1.0, xtol=1e-15)  # noqa: B023
        assert 0.5 < best < 1.0
        assert weight == pytest.approx(best, abs=1e-7)


def test_weights_stop_at_the_ends_and_before_what_is_impossible() -> None:
    one, two = np.ones(3), np.full(3, 2.0)
    outcome = learn_weights(WeightEvidence(one, two, one, np.arange(3), 3), Control(tolerance=1e-12))
    assert outcome.state.parameters.tolist() == [1.0, 1.0, 1.0]
    assert outcome.converged
    outcome = learn_weights(WeightEvidence(two, one, one, np.arange(3), 3), Control(tolerance=1e-12))
    assert outcome.state.parameters.tolist() == [0.0, 0.0, 0.0]
    # One event in a hundred is impossible by the shorter history, the others are a thousand times as probable by it.
    own, shorter = np.array([1e-3, 0.5]), np.array([1.0, 0.0])
    outcome = learn_weights(WeightEvidence(own, shorter, np.array([99.0, 1.0]), np.zeros(2, int), 1), Control())
    best = brentq(lambda w: 99.0 * (1.0 - 1e-3) / (w + (1.0 - w) * 1e-3) - 1.0 / (1.0 - w), 0.0, 0.999999)
    assert outcome.state.parameters[0] == pytest.approx(best, abs=1e-9)


def test_a_weight_of_a_sequence_is_its_repetition() -> None:
    twice = sf.MarkovChain(2, smoothing="deleted").fit(TEXT, sample_weight=[1, 2, 1, 3, 1, 1, 2])
    repeated = [line for line, n in zip(TEXT, [1, 2, 1, 3, 1, 1, 2], strict=True) for _ in range(n)]
    written_out = sf.MarkovChain(2, smoothing="deleted").fit(repeated)
    assert twice.interpolation_weight_ == pytest.approx(written_out.interpolation_weight_, abs=1e-12)
    check_weights(twice, repeated, 2)


def test_fractions_of_events_are_left_out_whole() -> None:
    # Every event weighs less than one, so that leaving it out leaves nothing of its cell.
    chain = sf.MarkovChain(smoothing="deleted").fit(["aab", "abb", "bab"], sample_weight=[0.25, 0.25, 0.25])
    n = {("a", "a"): 0.25, ("a", "b"): 0.75, ("b", "a"): 0.25, ("b", "b"): 0.25}

    def loss(weight: float) -> float:
        total = 0.0
        for (a, b), count in n.items():
            taken = min(count, 1.0)
            row, column = (sum(v for pair, v in n.items() if pair[at] == (a, b)[at]) for at in (0, 1))
            total += count * math.log(
                weight * (column - taken) / (1.5 - taken) + (1 - weight) * (count - taken) / (row - taken)
            )
        return -total

    best = minimize_scalar(loss, bounds=(1e-9, 1.0), method="bounded", options={"xatol": 1e-10})
    assert chain.interpolation_weight_ == pytest.approx(best.x, abs=1e-6)


def test_shorter_histories_have_the_weights_of_the_chain_of_that_order() -> None:
    weights = sf.MarkovChain(3, smoothing="deleted").fit(TEXT).interpolation_weight_
    for order in (1, 2):
        assert np.ravel(sf.MarkovChain(order, smoothing="deleted").fit(TEXT).interpolation_weight_) == pytest.approx(
            weights[:order], abs=1e-9
        )
