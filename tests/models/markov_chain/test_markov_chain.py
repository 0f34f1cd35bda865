"""Markov chains: counts by hand, closed forms, conventions of data, priors, likelihoods, the long run."""

import gzip
import itertools
import json
import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate
from scipy.special import gammaln

import suffice as sf
from network_files import shared
from suffice.domain import sort_states

LETTERS = st.sampled_from("abc")
SEQUENCES = st.lists(st.lists(LETTERS, min_size=1, max_size=6), min_size=1, max_size=6)
WEATHER = ["sunny sunny rain rain sunny cloud".split(), ["rain"], "cloud rain sunny sunny".split()]


def transitions(sequences: Any) -> Counter[tuple[Any, Any]]:
    """Pairs of neighbours, never across the end of a sequence."""
    return Counter(pair for sequence in sequences for pair in itertools.pairwise(sequence))


def same(left: sf.MarkovChain, right: sf.MarkovChain) -> bool:
    """Same states, same counts, same probabilities to the bit."""
    return (
        left.states_ == right.states_
        and left.statistics_ == right.statistics_
        and np.array_equal(left.initial_.values, right.initial_.values)
        and np.array_equal(left.transitions_.values, right.transitions_.values)
    )


# -- maximum likelihood ----------------------------------------------------------------------------------------------


def test_rows_are_relative_frequencies_of_transitions() -> None:
    chain = sf.MarkovChain().fit(WEATHER)
    pairs = transitions(WEATHER)
    assert chain.transitions_.variables == ("from", "to")
    for start in chain.states_:
        total = sum(n for (a, _), n in pairs.items() if a == start)
        for end in chain.states_:
            expected = pairs[start, end] / total
            assert chain.transitions_.at({"from": start, "to": end}) == pytest.approx(expected, abs=1e-15)
            assert chain.probability(end, start) == pytest.approx(expected, abs=1e-15)
    assert chain.initial_.at(to="sunny") == pytest.approx(1 / 3)
    by_hand = sum(n * math.log(pairs[a, b] / sum(pairs[a, c] for c in chain.states_)) for (a, b), n in pairs.items())
    assert chain.report_.log_likelihood == pytest.approx(by_hand + 3 * math.log(1 / 3), rel=1e-12)
    assert chain.report_.certificate.moment_gap < 1e-12
    assert chain.n_params_ == 2 + 3 * 2


@pytest.mark.parametrize("order", [1, 2, 3])
def test_every_order_counts_as_a_counter_does(order: int) -> None:
    rng = np.random.default_rng(order)
    sequences = [list(rng.integers(0, 3, rng.integers(1, 12))) for _ in range(40)]
    chain = sf.MarkovChain(order).fit(sequences)
    padded = [["<s>"] * order + sequence for sequence in sequences]
    runs = Counter(tuple(s[at - order : at + 1]) for s in padded for at in range(order, len(s)))
    rows = Counter(run[:-1] for run in runs.elements())
    for run, n in runs.items():
        assert chain.probability(run[-1], list(run[:-1])) == pytest.approx(n / rows[run[:-1]], rel=1e-14)
    assert chain.score_samples(sequences).sum() == pytest.approx(
        sum(n * math.log(n / rows[run[:-1]]) for run, n in runs.items()), rel=1e-12
    )


def test_events_never_seen_score_minus_infinity() -> None:
    chain = sf.MarkovChain().fit(["abab", "aab"])
    assert chain.score_samples(["bb"]).sum() == -math.inf
    assert chain.score(["abb"]) == -math.inf
    assert chain.score_samples(["abz"]).sum() == -math.inf
    assert chain.perplexity(["abb"]) == math.inf
    assert not np.isnan(chain.score_samples(["ab", "bb", "zz"])).any()


def test_histories_never_followed_are_flagged() -> None:
    chain = sf.MarkovChain().fit(["abc", "ac"])
    assert chain.unseen_histories_ == ["c"]
    assert "never followed" in chain.report_.warnings[0]
    assert chain.transitions_.at({"from": "c"}).values == pytest.approx([1 / 3] * 3)
    undefined = sf.MarkovChain(unseen="nan").fit(["abc", "ac"])
    assert np.isnan(undefined.transitions_.at({"from": "c"}).values).all()
    assert undefined.score_samples(["ca"]).sum() == -math.inf
    with pytest.raises(sf.EstimateError, match="never followed"):
        sf.MarkovChain(unseen="raise").fit(["abc", "ac"])


def test_sequences_of_one_step_have_no_transitions() -> None:
    chain = sf.MarkovChain().fit([["a"], ["b"], ["a"]])
    assert chain.initial_.values == pytest.approx([2 / 3, 1 / 3])
    with pytest.raises(sf.DataError, match="no transitions"):
        chain.perplexity([["a"]])


def test_declared_states_keep_their_order_and_are_closed() -> None:
    chain = sf.MarkovChain(states=["z", "b", "a"], prior=1.0).fit(["ab"])
    assert chain.states_ == ("z", "b", "a")
    assert chain.probability("z", "a") == pytest.approx(1 / 4)
    with pytest.raises(sf.UnknownStateError, match="'q'"):
        chain.fit(["aq"])


def test_states_are_told_apart_by_type() -> None:
    chain = sf.MarkovChain().fit([[1, "1", True, 1]])
    assert len(chain.states_) == 3


def test_standard_errors_are_binomial() -> None:
    chain = sf.MarkovChain().fit([list("aabbabab")])
    assert chain.standard_errors_.at({"from": "a", "to": "b"}) == pytest.approx(math.sqrt(0.75 * 0.25 / 4))
    smoothed = sf.MarkovChain(prior=1.0).fit([list("aabbabab")])
    sd = math.sqrt(sf.Dirichlet([2.0, 4.0]).variance()[1])
    assert smoothed.standard_errors_.at({"from": "a", "to": "b"}) == pytest.approx(sd)


# -- one data convention ---------------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(SEQUENCES, st.sampled_from([1, 2]))
def test_all_forms_of_data_give_the_same_fit(sequences: list[list[str]], order: int) -> None:
    flat = [state for sequence in sequences for state in sequence]
    lengths = [len(sequence) for sequence in sequences]
    groups = np.repeat(np.arange(len(sequences)), lengths)
    frame = pd.DataFrame({"who": groups, "state": flat})
    first = sf.MarkovChain(order).fit(sequences)
    others = [
        sf.MarkovChain(order).fit(np.array(flat), lengths=lengths),
        sf.MarkovChain(order).fit(flat, lengths=lengths),
        sf.MarkovChain(order).fit([np.array(s) for s in sequences]),
        sf.MarkovChain(order).fit(["".join(s) for s in sequences]),
        sf.MarkovChain(order).fit(tuple(map(tuple, sequences))),
        sf.MarkovChain(order).fit(iter(sequences)),
        sf.MarkovChain(order).fit(frame, group="who"),
        sf.MarkovChain(order).fit(pl.from_pandas(frame), group="who", columns=["state"]),
        sf.MarkovChain(order).fit(frame["state"], lengths=lengths),
    ]
    assert all(same(first, other) for other in others)


def test_rows_of_a_group_need_not_be_neighbours() -> None:
    frame = pd.DataFrame({"who": [1, 2, 1, 2, 1], "state": list("axbyc")})
    assert same(sf.MarkovChain().fit(frame, group="who"), sf.MarkovChain().fit(["abc", "xy"]))


@settings(max_examples=25, deadline=None)
@given(SEQUENCES, st.randoms(use_true_random=False), st.data())
def test_order_weights_and_chunks_do_not_matter(sequences: list[list[str]], random: Any, data: Any) -> None:
    whole = sf.MarkovChain(2, prior=0.5).fit(sequences)
    shuffled = sequences[:]
    random.shuffle(shuffled)
    assert same(whole, sf.MarkovChain(2, prior=0.5).fit(shuffled))
    cut = data.draw(st.integers(1, len(sequences)))
    chunks = sf.MarkovChain(2, prior=0.5).fit(sequences[:cut])
    if sequences[cut:]:
        chunks.partial_fit(sequences[cut:])
    assert same(whole, chunks)
    weights = data.draw(st.lists(st.integers(0, 3), min_size=len(sequences), max_size=len(sequences)))
    repeated = [sequence for sequence, weight in zip(sequences, weights, strict=True) for _ in range(weight)]
    if repeated:
        weighted = sf.MarkovChain(2, prior=0.5).fit(sequences, sample_weight=weights)
        plain = sf.MarkovChain(2, prior=0.5).fit(repeated)
        assert weighted.states_ == plain.states_
        assert weighted.transitions_.allclose(plain.transitions_, rtol=1e-14)
        assert weighted.score(sequences, sample_weight=weights) == pytest.approx(plain.score(repeated), rel=1e-12)


@settings(max_examples=25, deadline=None)
@given(SEQUENCES, SEQUENCES)
def test_what_is_added_can_be_unlearned(sequences: list[list[str]], more: list[list[str]]) -> None:
    before = sf.MarkovChain(smoothing="kneser-ney").fit(sequences)
    after = sf.MarkovChain(smoothing="kneser-ney").fit(sequences).partial_fit(more).unlearn(more)
    assert before.states_ == after.states_
    assert after.transitions_.allclose(before.transitions_, rtol=1e-12)


def test_summaries_of_two_sites_merge() -> None:
    model = sf.MarkovChain(2)
    merged = sf.summarize(model, ["abca", "b"]) + sf.summarize(model, ["cab", "dd"])
    assert same(sf.MarkovChain(2).fit(merged), sf.MarkovChain(2).fit(["abca", "b", "cab", "dd"]))


def test_weights_may_be_a_column() -> None:
    frame = pd.DataFrame({"who": [1, 1, 2, 2], "state": list("abaa"), "w": [2.0, 2.0, 1.0, 1.0]})
    chain = sf.MarkovChain().fit(frame, sample_weight="w", group="who")
    assert chain.probability("b", "a") == pytest.approx(2 / 3)
    frame.loc[1, "w"] = 3.0
    with pytest.raises(sf.DataError, match="changes within sequence 0"):
        sf.MarkovChain().fit(frame, sample_weight="w", group="who")


@pytest.mark.parametrize(
    ("data", "options", "error", "message"),
    [
        (None, {}, sf.DataError, "None"),
        ([], {}, sf.DataError, "no sequences"),
        ([["a"], []], {}, sf.DataError, "Sequence 1 is empty"),
        ([["a"], None], {}, sf.DataError, "Sequence 1 is None"),
        (["a", 3], {}, sf.DataError, "Sequence 1 is 3"),
        ([["a", None, "b"]], {}, sf.MissingValueError, "step 1"),
        (list("abc"), {"lengths": [2, 2]}, sf.DataError, "add up to 4"),
        (list("abc"), {"lengths": [3, 0]}, sf.DataError, "0 steps"),
        (np.zeros((3, 2)), {}, sf.DataError, "2 observations"),
        ([["<s>", "a"]], {}, sf.DataError, "marks the bounds"),
        ("no such file", {}, sf.DataError, "no file"),
        ([["a"]], {"group": "g"}, sf.OptionError, "no column names"),
        (pd.DataFrame({"a": [1]}), {"group": "g"}, sf.MissingColumnError, "'g'"),
    ],
)
def test_data_that_cannot_be_used_say_why(data: Any, options: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        sf.MarkovChain().fit(data, **options)


def test_a_failed_fit_leaves_the_chain_as_it_was() -> None:
    chain = sf.MarkovChain().fit(["ab"])
    with pytest.raises(sf.DataError):
        chain.partial_fit([[]])
    assert chain.states_ == ("a", "b")
    assert chain.report_.rows == 2


# -- Dirichlet rows --------------------------------------------------------------------------------------------------


def test_posterior_mean_and_mode_differ() -> None:
    counts = {"a": 3, "b": 1}
    data = [list("aaaab")]
    mean = sf.MarkovChain(prior=[2.0, 3.0]).fit(data)
    mode = sf.MarkovChain(prior=[2.0, 3.0], estimate="map").fit(data)
    assert mean.probability("a", "a") == pytest.approx((counts["a"] + 2) / (4 + 5))
    assert mode.probability("a", "a") == pytest.approx((counts["a"] + 1) / (4 + 3))
    top, _ = integrate.quad(lambda p: p * p ** (3 + 1) * (1 - p) ** (1 + 2), 0, 1)
    bottom, _ = integrate.quad(lambda p: p ** (3 + 1) * (1 - p) ** (1 + 2), 0, 1)
    assert mean.probability("a", "a") == pytest.approx(top / bottom, rel=1e-10)


def test_a_prior_is_an_interpolation_whose_weight_adapts() -> None:
    beta = np.array([1.5, 0.5, 2.0])
    chain = sf.MarkovChain(prior=beta).fit(WEATHER)
    plain = sf.MarkovChain().fit(WEATHER)
    weight = chain.interpolation_weight_
    assert weight.variables == ("from",)
    for state in chain.states_:
        n = sum(k for (a, _), k in transitions(WEATHER).items() if a == state)
        lam = weight.at({"from": state})
        assert lam == pytest.approx(beta.sum() / (beta.sum() + n), rel=1e-14)
        row = lam * chain.background_.values + (1 - lam) * plain.transitions_.at({"from": state}).values
        assert chain.transitions_.at({"from": state}).values == pytest.approx(row, rel=1e-13)


def test_evidence_is_the_product_of_sequential_predictions() -> None:
    data = [list("abcab"), list("ca")]
    chain = sf.MarkovChain(prior=0.7, states="a b c".split()).fit(data)
    seen: Counter[tuple[str, str]] = Counter()
    total = 0.0
    for sequence in data:
        for history, word in itertools.pairwise(["<s>", *sequence]):
            row = sum(seen[history, other] for other in "abc")
            total += math.log((seen[history, word] + 0.7) / (row + 3 * 0.7))
            seen[history, word] += 1
    assert chain.report_.log_evidence == pytest.approx(total, rel=1e-12)


def test_rows_may_have_priors_of_their_own() -> None:
    prior = np.array([[1.0, 2.0], [3.0, 4.0]])
    chain = sf.MarkovChain(prior=prior).fit([list("aabab")])
    assert chain.transitions_.values == pytest.approx(np.array([[2 / 6, 4 / 6], [4 / 8, 4 / 8]]))
    assert chain.interpolation_weight_.values == pytest.approx([3 / 6, 7 / 8])
    assert chain.posterior("a").alpha_ == pytest.approx([2.0, 4.0])


def test_first_states_may_have_a_prior_of_their_own() -> None:
    chain = sf.MarkovChain(prior={"initial": 5.0, "transitions": 1.0}).fit(["ab", "aa"])
    assert chain.initial_.values == pytest.approx([7 / 12, 5 / 12])
    assert chain.transitions_.at({"from": "b"}).values == pytest.approx([0.5, 0.5])


MIXTURE = sf.DirichletMixture(weights=[0.3, 0.7], alphas=[[4.0, 1.0, 1.0], [0.5, 2.0, 3.0]])


def test_a_mixture_prior_gives_responsibilities_and_predictions() -> None:
    chain = sf.MarkovChain(prior=MIXTURE).fit(WEATHER)
    for history in ((), *chain.states_):
        counts = chain.counts(history)
        assert chain.responsibilities(history) == pytest.approx(MIXTURE.responsibilities(counts), rel=1e-10)
        expected = MIXTURE.posterior(counts).mean()
        assert chain.row(history).values == pytest.approx(expected, rel=1e-10)
        assert chain.posterior(history).mean() == pytest.approx(expected, rel=1e-10)
    rows = [chain.counts(history) for history in ((), *chain.states_)]
    assert chain.report_.log_evidence == pytest.approx(sum(MIXTURE.log_evidence(row) for row in rows), rel=1e-11)
    with pytest.raises(sf.EstimateError):
        sf.MarkovChain(prior=MIXTURE).fit(WEATHER).standard_errors_  # noqa: B018


def test_the_prior_of_rows_is_learned_by_em() -> None:
    rng = np.random.default_rng(0)
    kinds = [np.array([20.0, 2.0, 2.0, 1.0]), np.array([1.0, 1.0, 8.0, 8.0])]
    rows = np.array([rng.dirichlet(kinds[at % 2]) for at in range(4)])
    sequences = []
    for _ in range(40):
        state, path = int(rng.integers(4)), []
        for _ in range(40):
            path.append("abcd"[state])
            state = int(rng.choice(4, p=rows[state]))
        sequences.append(path)
    start = sf.DirichletMixture(weights=[0.5, 0.5], alphas=[[3.0, 1.0, 1.0, 1.0], [1.0, 1.0, 2.0, 2.0]])
    chain = sf.MarkovChain(prior=start, learn_prior=True, max_iter=200).fit(sequences)
    assert chain.converged_
    history = np.array(chain.history_)
    assert (np.diff(history) >= -1e-9 * np.abs(history[1:])).all()
    assert history[-1] > history[0] + 1.0
    counts = [chain.counts(state) for state in "abcd"]
    assert history[-1] == pytest.approx(sum(chain.prior_.log_evidence(row) for row in counts), rel=1e-9)


def test_a_learned_single_prior_is_a_stationary_point() -> None:
    rng = np.random.default_rng(3)
    truth = np.array([4.0, 2.0, 1.0])
    rows = rng.dirichlet(truth, size=3)
    path = [0]
    for _ in range(3000):
        path.append(int(rng.choice(3, p=rows[path[-1]])))
    chain = sf.MarkovChain(prior=1.0, learn_prior=True, max_iter=50_000, tolerance=1e-6).fit([path])
    counts = np.array([chain.counts(state) for state in range(3)])

    def evidence(alpha: Any) -> float:
        total = gammaln(alpha.sum()) - gammaln(counts.sum(axis=1) + alpha.sum())
        return float((total + (gammaln(counts + alpha) - gammaln(alpha)).sum(axis=1)).sum())

    best = chain.prior_.alpha_
    assert chain.converged_
    for axis in range(3):
        for factor in (0.98, 1.02):
            other = best.copy()
            other[axis] *= factor
            assert evidence(other) < evidence(best)


# -- figures of texts ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tinyshakespeare.txt.gz", "pride_and_prejudice.txt.gz"])
def test_published_figures_of_texts(name: str) -> None:
    path = shared(f"text/{name}")
    figures = json.loads(path.with_name("expected.json").read_text())[name]
    text = gzip.decompress(Path(path).read_bytes()).decode("utf-8")
    words = re.findall(r"[^\W\d_]+", text.lower())
    expected = figures["word"]
    assert (len(words), len(set(words))) == (expected["tokens"], expected["types"])
    train, test = words[: expected["train_tokens"]], words[expected["train_tokens"] :]
    chain = sf.MarkovChain().fit([train])
    assert chain.report_.log_likelihood == pytest.approx(expected["train_mle_loglik_nats"], rel=1e-12)
    assert chain.perplexity([train]) == pytest.approx(expected["train_mle_perplexity"], rel=1e-12)
    one_more = sf.MarkovChain(prior=1.0, states=sorted(set(words))).fit([train])
    assert one_more.perplexity([test]) == pytest.approx(expected["test_add1_perplexity"], rel=1e-12)
    for first, second, number in expected["top5"]:
        assert chain.counts(first)[chain.states_.index(second)] == number
    letters = figures["char"]
    cut = letters["train_chars"]
    by_letter = sf.MarkovChain().fit([text[:cut]])
    bits = -by_letter.report_.log_likelihood / math.log(2) / (cut - 1)
    assert bits == pytest.approx(letters["train_bits_per_char"], rel=1e-12)
    smooth = sf.MarkovChain(prior=1.0, states=sorted(set(text))).fit([text[:cut]])
    assert math.log2(smooth.perplexity([text[cut:]])) == pytest.approx(letters["test_add1_bits_per_char"], rel=1e-12)


def test_dinucleotides_of_phage_lambda() -> None:
    path = shared("text/lambda_phage.fa.gz")
    figures = json.loads(path.with_name("expected.json").read_text())["lambda_phage.fa.gz"]
    lines = gzip.decompress(Path(path).read_bytes()).decode().splitlines()
    genome = "".join(line for line in lines if not line.startswith(">"))
    chain = sf.MarkovChain().fit([genome])
    for pair, number in figures["dinucleotide_counts"].items():
        assert chain.counts(pair[0])[chain.states_.index(pair[1])] == number
    assert chain.is_ergodic()
    assert chain.stationary_distribution().values.sum() == pytest.approx(1.0)


# -- the long run ----------------------------------------------------------------------------------------------------


def matrix_chain(matrix: Any) -> sf.MarkovChain:
    """A chain with (nearly) this matrix, from counts in proportion to it."""
    sequences, weights = [], []
    for a, row in enumerate(np.asarray(matrix)):
        for b, p in enumerate(row):
            if p > 0:
                sequences.append([a, b])
                weights.append(p)
    return sf.MarkovChain(states=range(len(matrix))).fit(sequences, sample_weight=weights)


def test_stationary_law_is_left_as_it_is() -> None:
    rng = np.random.default_rng(1)
    matrix = rng.dirichlet(np.ones(6), size=6)
    chain = matrix_chain(matrix)
    found = chain.stationary_distribution().values
    assert found @ chain.transitions_.values == pytest.approx(found, rel=1e-12)
    values, vectors = np.linalg.eig(matrix.T)
    expected = np.real(vectors[:, np.argmax(values.real)])
    assert found == pytest.approx(expected / expected.sum(), rel=1e-9)


def test_gamblers_ruin() -> None:
    """From i of N coins a fair game lasts i (N - i) rounds and is won with probability i / N."""
    coins = 6
    matrix = np.zeros((coins + 1, coins + 1))
    matrix[0, 0] = matrix[coins, coins] = 1.0
    for i in range(1, coins):
        matrix[i, i - 1] = matrix[i, i + 1] = 0.5
    chain = matrix_chain(matrix)
    assert chain.absorbing_states_ == [0, coins]
    assert chain.hitting_times([0, coins]).values == pytest.approx([i * (coins - i) for i in range(coins + 1)])
    won = chain.absorption_probabilities().values[:, 1]
    assert won == pytest.approx([i / coins for i in range(coins + 1)])
    assert chain.hitting_times(0).values[1:] == pytest.approx([math.inf] * coins)
    assert not chain.is_ergodic()
    with pytest.raises(sf.EstimateError, match="2 closed classes"):
        chain.stationary_distribution()


def test_periodic_chains_are_not_ergodic() -> None:
    chain = sf.MarkovChain().fit([list("abababab")])
    assert not chain.is_ergodic()
    assert chain.stationary_distribution().values == pytest.approx([0.5, 0.5])


def test_expected_length_of_a_sentence_is_a_hitting_time() -> None:
    chain = sf.MarkovChain(bounds=True).fit([["a"], ["a", "a"], ["a", "a", "a"]])
    assert chain.probability("</s>", "a") == pytest.approx(0.5)
    assert chain.hitting_times("</s>").at({"from": "a"}) == pytest.approx(2.0)


# -- samples, files, options -----------------------------------------------------------------------------------------


def test_samples_follow_the_law() -> None:
    chain = sf.MarkovChain().fit([list("aabbabaabb"), list("ba")])
    drawn = chain.sample(400, 50, random_state=0)
    again = sf.MarkovChain().fit(drawn)
    assert again.transitions_.values == pytest.approx(chain.transitions_.values, abs=0.02)
    assert chain.sample(3, 5, random_state=0) == [path[:5] for path in chain.sample(3, 5, random_state=0)]
    with pytest.raises(sf.OptionError, match="length"):
        chain.sample(2)


@pytest.mark.parametrize("ending", [".json", ".suffice"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"prior": 1.0},
        {"prior": MIXTURE},
        {"prior": [[1.0, 2.0, 3.0]] * 3},
        {"smoothing": sf.Interpolation("deleted", buckets=(2, 4))},
        {"smoothing": sf.KneserNey(), "order": 2, "bounds": True, "unknown": "<unk>"},
    ],
)
def test_a_file_gives_the_same_chain(tmp_path: Path, ending: str, options: Any) -> None:
    chain = sf.MarkovChain(**options).fit(WEATHER)
    chain.write(tmp_path / f"chain{ending}")
    again = sf.read(tmp_path / f"chain{ending}")
    assert same(chain, again)
    assert str(again.report_) == str(chain.report_)
    assert same(chain.partial_fit(WEATHER), again.partial_fit(WEATHER))


def test_options_are_checked_and_cloned() -> None:
    chain = sf.MarkovChain(2, smoothing=sf.Interpolation(0.5))
    assert chain.clone().get_params()["smoothing__weight"] == 0.5
    assert chain.set_params(smoothing__weight=0.25).smoothing.weight == 0.25  # type: ignore[attr-defined]
    for options in (
        {"order": -1},
        {"smoothing": sf.Katz(), "prior": 1.0},
        {"smoothing": "good"},
        {"min_count": 2},
        {"estimate": "map"},
        {"bounds": ("x", "x")},
        {"unseen": "zero"},
    ):
        with pytest.raises(sf.OptionError):
            sf.MarkovChain(**options)
    with pytest.raises(sf.NotFittedError):
        sf.MarkovChain().transitions_  # noqa: B018
    with pytest.raises(sf.NotFittedError):
        sf.MarkovChain().probability("a")


def test_states_of_seen_chains_are_sorted() -> None:
    chain = sf.MarkovChain().fit([["b", "a", "c"], [3, 1]])
    assert chain.states_ == sort_states(["b", "a", "c", 3, 1])
