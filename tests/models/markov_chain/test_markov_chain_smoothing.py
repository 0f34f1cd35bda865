"""Smoothing: rows that add up to one, formulas by hand, weights against root finders, NLTK where it is right."""

import itertools
import math
from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

import suffice as sf
from suffice.models.markov_chain.levels import build_levels

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
WAYS: list[Any] = [
    {"prior": 0.5},
    {"prior": 2.0, "estimate": "map"},
    {"smoothing": sf.Interpolation(0.4)},
    {"smoothing": sf.Interpolation("deleted")},
    {"smoothing": sf.Interpolation("deleted", buckets=(1, 3, 10))},
    {"smoothing": sf.Interpolation(0.2, background="uniform")},
    {"smoothing": sf.AbsoluteDiscount()},
    {"smoothing": sf.AbsoluteDiscount(0.6)},
    {"smoothing": sf.AbsoluteDiscount(0.6, backoff=True)},
    {"smoothing": sf.Katz()},
    {"smoothing": sf.Katz(1)},
    {"smoothing": sf.KneserNey()},
    {"smoothing": sf.KneserNey(modified=False)},
    {"smoothing": sf.KneserNey(0.75, uniform=False)},
]


@pytest.mark.parametrize("options", WAYS, ids=str)
@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("bounds", [False, True])
def test_every_row_adds_up_to_one(options: Any, order: int, bounds: bool) -> None:
    chain = sf.MarkovChain(order, bounds=bounds, unknown="<unk>", **options).fit(TEXT)
    words = [state for state in chain.states_ if state != "</s>"]
    histories: list[Any] = [(), ["<s>"], *(["<s>", word] for word in words[:3] if order > 1)]
    histories += [list(run) for run in itertools.islice(itertools.product(words, repeat=order), 0, None, 97)]
    seen = [row[at : at + order] for row in TEXT for at in range(len(row) - order + 1)]
    for history in [*histories, *seen]:
        row = chain.row(history).values
        assert row.min() >= 0.0
        assert row.sum() == pytest.approx(1.0, abs=1e-12)
    assert chain.report_.certificate.moment_gap < 1e-6
    assert chain.converged_
    assert chain.report_.log_likelihood == pytest.approx(chain.score_samples(TEXT).sum(), rel=1e-11)


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from("abcd"), min_size=1, max_size=8), min_size=1, max_size=8),
    st.sampled_from(WAYS[2:]),
    st.sampled_from([1, 2]),
)
def test_rows_add_up_for_any_sequences(sequences: list[list[str]], options: Any, order: int) -> None:
    chain = sf.MarkovChain(order, **options).fit(sequences)
    assert chain.transitions_.values.sum(axis=-1) == pytest.approx(1.0, abs=1e-10)
    assert not np.isnan(chain.score_samples(sequences)).any()


# -- interpolation ---------------------------------------------------------------------------------------------------


def pairs_of(sequences: Any) -> Counter[tuple[Any, Any]]:
    return Counter(pair for sequence in sequences for pair in itertools.pairwise(sequence))


def test_a_fixed_weight_mixes_each_row_with_the_background() -> None:
    chain = sf.MarkovChain(smoothing=sf.Interpolation(0.3)).fit(TEXT)
    plain = sf.MarkovChain().fit(TEXT)
    pairs = pairs_of(TEXT)
    total = sum(pairs.values())
    next_ones = Counter(b for _, b in pairs.elements())
    assert chain.interpolation_weight_ == 0.3
    for word in chain.states_:
        assert chain.background_.at(to=word) == pytest.approx(next_ones[word] / total, rel=1e-14)
        for history in ("the", "cat", "sat"):
            expected = 0.3 * next_ones[word] / total + 0.7 * plain.probability(word, history)
            assert chain.probability(word, history) == pytest.approx(expected, rel=1e-13)


def test_the_held_out_weight_maximises_the_held_out_likelihood() -> None:
    held = [TEXT[0], TEXT[3], ["a", "cat", "sat"]]
    chain = sf.MarkovChain(smoothing=sf.Interpolation("held-out")).fit(TEXT[1:3] + TEXT[4:], held_out=held)

    def loss(weight: float) -> float:
        fixed = sf.MarkovChain(smoothing=sf.Interpolation(float(weight))).fit(TEXT[1:3] + TEXT[4:])
        plain = sf.MarkovChain().fit(TEXT[1:3] + TEXT[4:])
        total = 0.0
        for (a, b), n in pairs_of(held).items():
            if a in plain.states_ and b in plain.states_ and plain.counts(a).sum() > 0:
                total += n * fixed.log_probability(b, a)
        return -total

    best = minimize_scalar(loss, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-9})
    assert chain.interpolation_weight_ == pytest.approx(best.x, abs=1e-5)
    with pytest.raises(sf.DataError, match="held_out="):
        sf.MarkovChain(smoothing=sf.Interpolation("held-out")).fit(TEXT)


def test_a_background_may_be_given() -> None:
    flat = dict.fromkeys(["a", "b"], 0.5)
    chain = sf.MarkovChain(smoothing=sf.Interpolation(0.4, background=flat)).fit(["aab"])
    assert chain.probability("b", "a") == pytest.approx(0.4 * 0.5 + 0.6 * 0.5)
    assert chain.probability("a", "b") == pytest.approx(0.5)
    with pytest.raises(sf.OptionError, match="add up to 1"):
        sf.MarkovChain(smoothing=sf.Interpolation(0.4, background={"a": 0.1})).fit(["aab"])


def test_orders_above_one_have_a_weight_for_each_length() -> None:
    chain = sf.MarkovChain(2, smoothing=sf.Interpolation((0.5, 0.25))).fit(TEXT)
    one = sf.MarkovChain(1, smoothing=sf.Interpolation(0.5)).fit(TEXT)
    plain = sf.MarkovChain(2).fit(TEXT)
    expected = 0.25 * one.probability("sat", "cat") + 0.75 * plain.probability("sat", ["the", "cat"])
    assert chain.probability("sat", ["the", "cat"]) == pytest.approx(expected, rel=1e-13)
    assert chain.interpolation_weight_ == (0.5, 0.25)
    with pytest.raises(sf.OptionError, match="needs as many"):
        sf.MarkovChain(3, smoothing=sf.Interpolation((0.5, 0.25))).fit(TEXT)


# -- discounts -------------------------------------------------------------------------------------------------------


def test_absolute_discounting_by_hand() -> None:
    chain = sf.MarkovChain(smoothing=sf.AbsoluteDiscount(0.5), bounds=True).fit(["ab", "aa", "b"])
    # Events after a: b, </s> (from aa), a; after b twice </s>. Single events: a 3, b 2, </s> 3; 8 in all.
    single = (2 - 0.5) / 8 + 3 * 0.5 / 8 / 3
    assert chain.probability("b", "a") == pytest.approx((1 - 0.5) / 3 + 3 * 0.5 / 3 * single)
    assert chain.probability("b", "b") == pytest.approx(0.5 / 2 * single)
    backoff = sf.MarkovChain(smoothing=sf.AbsoluteDiscount(0.5, backoff=True), bounds=True).fit(["ab", "aa", "b"])
    left = 0.5 / 2
    assert backoff.probability("</s>", "b") == pytest.approx(1.5 / 2)
    assert backoff.probability("b", "b") == pytest.approx(left * (2 / 8) / (5 / 8))


def test_good_turing_ratios_by_hand() -> None:
    rng = np.random.default_rng(0)
    p = 1.0 / np.arange(1, 201)
    words = rng.choice(200, size=6000, p=p / p.sum())
    chain = sf.MarkovChain(smoothing=sf.Katz(5)).fit([words])
    pairs = pairs_of([words.tolist()])
    numbers = Counter(pairs.values())
    # The first word is an event after the start, a run of two of its own.
    numbers[1] += 1
    shared = 6 * numbers[6] / numbers[1]
    rows = Counter(a for a, _ in pairs.elements())
    for (a, b), r in list(pairs.items())[:300]:
        full = len({y for x, y in pairs if x == a}) == len(chain.states_)
        ratio = ((r + 1) * numbers[r + 1] / (r * numbers[r]) - shared) / (1 - shared) if r <= 5 else 1.0
        if not full:
            assert chain.probability(b, a) == pytest.approx(r * ratio / rows[a], rel=1e-12)
    assert chain.report_.warnings == ()


def brute_force_kneser_ney(sequences: Any, order: int, discounts: Any) -> Any:
    """Interpolated Kneser-Ney by the definition: dictionaries of runs, one start mark, recursion on histories."""
    runs: list[Counter[tuple[str, ...]]] = [Counter() for _ in range(order + 2)]
    for sequence in sequences:
        padded = ["<s>", *sequence, "</s>"]
        for end in range(1, len(padded)):
            for n in range(1, order + 2):
                if end - n + 1 >= 0:
                    runs[n][tuple(padded[end - n + 1 : end + 1])] += 1
    vocabulary = sorted({run[-1] for run in runs[1]})
    adjusted = {order + 1: dict(runs[order + 1])}
    for n in range(1, order + 1):
        before: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)
        for run in runs[n + 1]:
            before[run[1:]].add(run[0])
        adjusted[n] = {run: count if run[0] == "<s>" else len(before[run]) for run, count in runs[n].items()}

    def off(count: float) -> float:
        return min(count, discounts[min(int(count), 3) - 1]) if count else 0.0

    def p(word: str, history: tuple[str, ...]) -> float:
        n = len(history) + 1
        children = {run[-1]: count for run, count in adjusted[n].items() if run[:-1] == history}
        total = sum(children.values())
        lower = 1.0 / len(vocabulary) if n == 1 else p(word, history[1:])
        if total == 0:
            return lower
        count = children.get(word, 0)
        return (count - off(count)) / total + sum(map(off, children.values())) / total * lower

    return p, vocabulary


@pytest.mark.parametrize("order", [1, 2, 3])
def test_kneser_ney_by_its_definition(order: int) -> None:
    discounts = (0.6, 1.1, 1.4)
    p, vocabulary = brute_force_kneser_ney(TEXT, order, discounts)
    chain = sf.MarkovChain(order, smoothing=sf.KneserNey(discounts), bounds=True).fit(TEXT)
    assert chain.states_ == tuple(vocabulary)
    padded = [["<s>", *row, "</s>"] for row in TEXT]
    histories = {tuple(row[max(at - order, 0) : at]) for row in padded for at in range(1, len(row))}
    for history in sorted(histories):
        for word in vocabulary:
            assert chain.probability(word, list(history)) == pytest.approx(p(word, history), rel=1e-12)


def test_chen_and_goodmans_discounts() -> None:
    rng = np.random.default_rng(1)
    p = 1.0 / np.arange(1, 301)
    words = rng.choice(300, size=20_000, p=p / p.sum()).tolist()
    pairs = Counter(itertools.pairwise(["<s>", *words]))
    n = Counter(pairs.values())
    y = n[1] / (n[1] + 2 * n[2])
    expected = [r - (r + 1) * y * n[r + 1] / n[r] for r in (1, 2, 3)]
    free = sf.MarkovChain(smoothing=sf.KneserNey(uniform=False)).fit([words])
    given_ = sf.MarkovChain(smoothing=sf.KneserNey(expected, uniform=False)).fit([words])
    assert free.report_.warnings == ()
    assert free.transitions_.allclose(given_.transitions_, rtol=1e-10)


def test_discounts_that_counts_do_not_give_are_named() -> None:
    chain = sf.MarkovChain(smoothing=sf.KneserNey()).fit(["ab"])
    assert any("took 0.5, 1.0, 1.5" in note for note in chain.report_.warnings)


def test_nltk_agrees_on_kneser_ney_and_lidstone() -> None:
    pytest.importorskip("nltk")
    from nltk.lm import KneserNeyInterpolated, Lidstone
    from nltk.lm.preprocessing import padded_everygram_pipeline

    peer = KneserNeyInterpolated(2, discount=0.1)
    peer.fit(*padded_everygram_pipeline(2, TEXT))
    chain = sf.MarkovChain(smoothing=sf.KneserNey(0.1, uniform=False), bounds=True).fit(TEXT)
    histories = ["<s>", *(state for state in chain.states_ if state != "</s>")]
    for history in histories:
        for word in chain.states_:
            assert chain.probability(word, [history]) == pytest.approx(peer.score(word, [history]), rel=1e-12)
    lidstone = Lidstone(0.2, 2)
    lidstone.fit(*padded_everygram_pipeline(2, TEXT))
    # NLTK counts its <UNK> and its <s> among the words that may come next.
    states = [*chain.states_[:-1], chain.states_[-1], "<UNK>", "start again"]
    ours = sf.MarkovChain(prior=0.2, bounds=True, states=[s for s in states if s != "</s>"]).fit(TEXT)
    for history in histories:
        for word in chain.states_:
            assert ours.probability(word, [history]) == pytest.approx(lidstone.score(word, [history]), rel=1e-12)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=6), min_size=1, max_size=6), st.integers(1, 4))
def test_levels_hold_every_run(sequences: list[list[int]], order: int) -> None:
    padded = [[4] * order + sequence for sequence in sequences]
    windows = np.array([row[at - order : at + 1] for row in padded for at in range(order, len(row))])
    levels = build_levels(list(windows.T.astype(np.int32)), np.ones(len(windows)), 4, first_events=True)
    for n in range(1, order + 2):
        expected: Counter[tuple[int, ...]] = Counter()
        for sequence in sequences:
            whole = [4, *sequence]
            expected.update(tuple(whole[e - n + 1 : e + 1]) for e in range(1, len(whole)) if e - n + 1 >= 0)
        level = levels.levels[n - 1]
        found = {tuple(run): count for run, count in zip(levels.words(n).tolist(), level.count, strict=True) if count}
        assert found == dict(expected)
        if n > 1:
            assert np.array_equal(levels.words(n - 1)[level.history], levels.words(n)[:, :-1])
            assert np.array_equal(levels.words(n - 1)[level.suffix], levels.words(n)[:, 1:])
    assert math.isclose(levels.levels[0].count.sum(), len(windows))
