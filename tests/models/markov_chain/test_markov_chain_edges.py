"""Chains at their edges: without counts, without histories, with unknown states, with priors that run to a limit."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import gammaln

import suffice as sf
from suffice.engines import ngram_tree

TEXT = ["the cat sat on the mat".split(), "the dog sat".split(), "a cat saw the dog".split()]


def test_states_may_be_pairs_beside_texts_in_sequences_of_one_length() -> None:
    chain = sf.MarkovChain(1).fit([["a", "b"], [("x", 1), "a"], ["a", "a"]])
    assert chain.probability("a", [("x", 1)]) == 1.0
    assert chain.probability("b", ["a"]) == 0.5


# -- probabilities without counts ------------------------------------------------------------------------------------


def from_arpa(folder: Path, order: int = 2) -> sf.MarkovChain:
    sf.MarkovChain(order, bounds=True, smoothing="kneser-ney", unknown="<unk>").fit(TEXT).write(folder / "p.arpa")
    chain: sf.MarkovChain = sf.read(folder / "p.arpa")
    return chain


@pytest.mark.parametrize("again", [False, True])
def test_a_chain_of_probabilities_has_no_counts_to_change(tmp_path: Path, again: bool) -> None:
    chain = from_arpa(tmp_path)
    if again:
        chain.write(tmp_path / "p.json")
        chain = sf.read(tmp_path / "p.json")
    states, p = chain.states_, chain.probability("cat", ["<s>", "the"])
    for change in (chain.partial_fit, chain.unlearn):
        with pytest.raises(sf.EstimateError, match="without counts"):
            change([["z"]])
    assert chain.states_ == states
    assert chain.probability("cat", ["<s>", "the"]) == p
    for name in ("unseen_histories_", "n_unseen_histories_"):
        with pytest.raises(sf.EstimateError, match="without counts"):
            getattr(chain, name)
    with pytest.raises(sf.EstimateError, match="without counts"):
        chain.standard_errors_  # noqa: B018
    with pytest.raises(sf.EstimateError, match="without counts"):
        chain.counts(["the", "cat"])
    assert chain.fit(TEXT).counts(["the", "cat"]).sum() == 1.0


# -- states and histories that are not known -------------------------------------------------------------------------


@pytest.mark.parametrize("states", [None, ["a", "b"]])
def test_sequences_with_an_unknown_state_score_as_impossible(states: list[str] | None) -> None:
    chain = sf.MarkovChain(states=states, prior=1.0).fit(["abab", "bb"])
    assert chain.score_samples(["ab", "aq"]).sum() == -math.inf
    assert chain.score(["aq"]) == -math.inf
    assert chain.perplexity(["aq"]) == math.inf
    assert chain.score_samples(["ab", "aq"]).tolist() == [chain.score_samples(["ab"]).sum(), -math.inf]
    for question in (chain.probability, chain.log_probability):
        with pytest.raises(sf.UnknownStateError, match="'q'"):
            question("q", "a")


def test_an_undefined_row_is_shown_alike_everywhere() -> None:
    chain = sf.MarkovChain(unseen="nan").fit(["abc", "ac"])
    assert np.isnan(chain.row("c").values).all()
    assert np.array_equal(chain.row("a").values, chain.transitions_.at({"from": "a"}).values)
    assert chain.log_probability("a", "c") == -math.inf
    assert chain.score_samples(["ca"]).sum() == -math.inf


WRONG: dict[str, Callable[[], Any]] = {
    "prior of texts": lambda: sf.MarkovChain(prior=["x", "y"]).fit(["abab"]),
    "prior of rows of texts": lambda: sf.MarkovChain(prior=[["x"]]).fit(["abab"]),
    "prior by state": lambda: sf.MarkovChain(prior={"a": "x", "b": 1}).fit(["abab"]),
    "number of states": lambda: sf.MarkovChain(states=3),
    "states that do not hash": lambda: sf.MarkovChain(states=[["a"], ["b"]]),
    "marks that do not hash": lambda: sf.MarkovChain(bounds=(["x"], "b")),
    "unknown that does not hash": lambda: sf.MarkovChain(unknown=["a"]),  # type: ignore[arg-type]
    "weights of lists": lambda: sf.Interpolation(weight=[["a"]]),
    "one bucket": lambda: sf.Interpolation(buckets=("a",)),  # type: ignore[arg-type]
    "discounts": lambda: sf.KneserNey(discounts=object()),
    "background": lambda: sf.MarkovChain(smoothing=sf.Interpolation(background=["a", "b"])).fit(["abab"]),
    "background by state": lambda: sf.MarkovChain(smoothing=sf.Interpolation(background={"a": "x"})).fit(["abab"]),
    "a state that does not hash": lambda: sf.MarkovChain().fit(["abab"]).probability(["a"], "b"),  # type: ignore[arg-type]
    "row before fit": lambda: sf.MarkovChain().row("a"),
}


@pytest.mark.parametrize("name", WRONG)
def test_mistakes_are_named(name: str) -> None:
    with pytest.raises(sf.SufficeError):
        WRONG[name]()


# -- priors learned from rows ----------------------------------------------------------------------------------------


def letters(seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    return ["".join(rng.choice(list("abcd"), 6)) for _ in range(40)]


def test_a_learned_prior_is_the_maximum_of_the_evidence() -> None:
    chain = sf.MarkovChain(prior=1.0, learn_prior=True).fit(letters(1))
    assert chain.converged_
    assert chain.n_iter_ < 20
    counts = np.array([chain.counts(state) for state in chain.states_])

    def loss(logs: Any) -> float:
        alpha = np.exp(logs)
        total = gammaln(alpha.sum()) - gammaln(counts.sum(axis=1) + alpha.sum())
        return -float((total + (gammaln(counts + alpha) - gammaln(alpha)).sum(axis=1)).sum())

    best = minimize(loss, np.zeros(4), method="BFGS", options={"gtol": 1e-8})
    assert chain.history_[-1] == pytest.approx(-best.fun, abs=1e-8)
    assert chain.prior_.alpha_ == pytest.approx(np.exp(best.x), rel=1e-4)
    assert chain.report_.certificate.directions == ()


def test_pseudo_counts_that_run_to_infinity_are_told() -> None:
    # These rows differ less than rows of one law do by chance: the more pseudo-counts, the better.
    chain = sf.MarkovChain(prior=1.0, learn_prior=True).fit(letters(0))
    assert chain.converged_
    assert chain.report_.certificate.exists is False
    assert "run to infinity" in chain.report_.certificate.directions[0]
    assert "run to infinity" in chain.report_.warnings[0]
    counts = np.array([chain.counts(state) for state in chain.states_])
    shared = counts.sum(axis=0) / counts.sum()
    assert chain.history_[-1] == pytest.approx(float((counts @ np.log(shared)).sum()), abs=1e-3)
    assert chain.row("a").values == pytest.approx(shared, abs=1e-4)


def test_a_mixture_of_priors_is_learned_in_few_steps() -> None:
    rng = np.random.default_rng(0)
    kinds = np.array([[20.0, 2, 2, 1, 1, 1], [1.0, 1, 1, 1, 8, 8]])
    rows = np.array([rng.dirichlet(kinds[at % 2]) for at in range(6)])
    path = [0]
    for _ in range(2000):
        path.append(int(rng.choice(6, p=rows[path[-1]])))
    start = sf.DirichletMixture(weights=[0.5, 0.5], alphas=[[3.0, 1, 1, 1, 1, 1], [1.0, 1, 1, 1, 2, 2]])
    chain = sf.MarkovChain(prior=start, learn_prior=True, max_iter=100).fit([path])
    assert chain.converged_
    assert (np.diff(chain.history_) >= -1e-9 * abs(chain.history_[-1])).all()
    learned, counts = chain.prior_, [chain.counts(state) for state in chain.states_]
    best = sum(learned.log_evidence(row) for row in counts)
    for component in range(2):
        for factor in (0.97, 1.03):
            alphas = learned.alphas_.copy()
            alphas[component] *= factor
            other = sf.DirichletMixture(weights=learned.weights_, alphas=alphas)
            assert sum(other.log_evidence(row) for row in counts) <= best + 1e-9


# -- many runs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("smoothing", ["kneser-ney", "absolute", "katz", None])
def test_runs_that_are_gone_through_in_blocks_give_the_same_law(
    smoothing: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(5)
    sequences = [rng.integers(0, 9, rng.integers(1, 30)).tolist() for _ in range(60)]
    at_once = sf.MarkovChain(3, bounds=True, smoothing=smoothing).fit(sequences)
    monkeypatch.setattr(ngram_tree, "BLOCK", 7)
    in_blocks = sf.MarkovChain(3, bounds=True, smoothing=smoothing).fit(sequences)
    assert in_blocks.score_samples(sequences) == pytest.approx(at_once.score_samples(sequences), rel=1e-13)
    assert in_blocks.report_.log_likelihood == pytest.approx(at_once.report_.log_likelihood, rel=1e-13)
    for history in ([], ["<s>", 1, 2], [3, 4, 5], [8, 8, 8]):
        assert in_blocks.row(history).values == pytest.approx(at_once.row(history).values, rel=1e-13)


def test_runs_are_kept_in_32_bits() -> None:
    chain = sf.MarkovChain(2, bounds=True, smoothing="kneser-ney").fit(TEXT)
    for level in chain.fitted_.levels.levels:  # type: ignore[union-attr]
        assert {level.history.dtype, level.word.dtype, level.suffix.dtype} == {np.dtype(np.int32)}


# -- no histories ----------------------------------------------------------------------------------------------------


def test_a_chain_of_order_0_counts_single_states() -> None:
    chain = sf.MarkovChain(0).fit(["aab", "b", "aac"])
    assert chain.initial_.values == pytest.approx([4 / 7, 2 / 7, 1 / 7])
    assert np.array_equal(chain.transitions_.values, chain.initial_.values)
    assert chain.probability("a") == chain.probability("a", "b") == pytest.approx(4 / 7)
    assert chain.score_samples(["ab"]).sum() == pytest.approx(math.log(4 / 7) + math.log(2 / 7))
    assert chain.report_.log_likelihood == pytest.approx(chain.score_samples(["aab", "b", "aac"]).sum())
    assert chain.perplexity(["ab"]) == pytest.approx((8 / 49) ** -0.5)
    assert chain.score_samples(["a", "bb"]) == pytest.approx([math.log(4 / 7), 2 * math.log(2 / 7)])
    assert chain.n_params_ == 2
    assert chain.unseen_histories_ == []
    assert chain.n_unseen_histories_ == 0
    assert chain.counts().tolist() == [4.0, 2.0, 1.0]
    assert chain.standard_errors_.values == pytest.approx(np.sqrt([12 / 49 / 7, 10 / 49 / 7, 6 / 49 / 7]))
    assert chain.report_.certificate.moment_gap < 1e-12
    drawn = [sequence[-1] for sequence in chain.sample(20_000, 2, random_state=0)]
    assert drawn.count("a") / 20_000 == pytest.approx(4 / 7, abs=0.02)
    more = sf.MarkovChain(0).fit(["aab", "b"]).partial_fit(["aac"])
    assert np.array_equal(more.initial_.values, chain.initial_.values)


def test_priors_of_a_chain_of_order_0() -> None:
    counts = np.array([4.0, 2.0, 1.0])
    chain = sf.MarkovChain(0, prior=2.0).fit(["aab", "b", "aac"])
    assert chain.initial_.values == pytest.approx((counts + 2) / 13)
    assert chain.report_.log_evidence == pytest.approx(sf.Dirichlet([2.0] * 3).log_evidence(counts))
    mode = sf.MarkovChain(0, prior=2.0, estimate="map").fit(["aab", "b", "aac"])
    assert mode.initial_.values == pytest.approx((counts + 1) / 10)
    prior = sf.DirichletMixture(weights=[0.3, 0.7], alphas=[[5.0, 1, 1], [1.0, 1, 5]])
    mixed = sf.MarkovChain(0, prior=prior).fit(["aab", "b", "aac"])
    assert mixed.initial_.values == pytest.approx(prior.posterior(counts).mean())
    assert mixed.report_.log_evidence == pytest.approx(prior.log_evidence(counts))
    for options in ({"learn_prior": True, "prior": 1.0}, {"prior": {"initial": 1.0, "transitions": 1.0}}):
        with pytest.raises(sf.OptionError):
            sf.MarkovChain(0, **options).fit(["aab"])


@pytest.mark.parametrize("smoothing", [None, "kneser-ney", "absolute", "katz", "deleted"])
def test_single_words_go_to_an_arpa_file_and_back(tmp_path: Path, smoothing: Any) -> None:
    chain = sf.MarkovChain(0, bounds=True, smoothing=smoothing, unknown="<unk>").fit(TEXT)
    assert chain.row().values.sum() == pytest.approx(1.0, abs=1e-12)
    chain.write(tmp_path / "single.arpa")
    again = sf.read(tmp_path / "single.arpa")
    assert again.order == 0
    assert again.states_ == chain.states_
    assert again.row().values == pytest.approx(chain.row().values, rel=1e-10)
    assert "ngram 2" not in (tmp_path / "single.arpa").read_text()
    chain.write(tmp_path / "single.json")
    assert np.array_equal(sf.read(tmp_path / "single.json").row().values, chain.row().values)


def test_an_arpa_file_of_single_words_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "hand.arpa"
    path.write_text("\\data\\\nngram 1=3\n\n\\1-grams:\n-0.30103\ta\n-0.60206\tb\n-0.60206\t</s>\n\n\\end\\\n")
    chain = sf.read(path)
    assert chain.probability("a") == pytest.approx(0.5, rel=1e-5)
    assert chain.score_samples([["a", "b"]]) == pytest.approx([math.log(1 / 32)], rel=1e-5)


# -- sequences shorter than the order --------------------------------------------------------------------------------

SHORT_WAYS: list[dict[str, Any]] = [
    {},
    {"unseen": "nan"},
    {"prior": 1.0},
    {"prior": sf.DirichletMixture(weights=[0.5, 0.5], alphas=[[1.0, 1.0], [2.0, 3.0]])},
    {"smoothing": sf.Interpolation(0.3)},
    {"smoothing": "deleted"},
    {"smoothing": "absolute"},
    {"smoothing": sf.AbsoluteDiscount(backoff=True)},
    {"smoothing": "katz"},
    {"smoothing": "kneser-ney"},
]


@pytest.mark.parametrize("options", SHORT_WAYS, ids=str)
@pytest.mark.parametrize("order", [2, 3, 5])
def test_sequences_shorter_than_the_order_have_a_law(options: dict[str, Any], order: int) -> None:
    """The first steps have laws of their own; a history of the whole order was never seen."""
    chain = sf.MarkovChain(order, states=["a", "b"], **options).fit(["ab", "a"])
    assert np.isfinite(chain.score(["ab", "a"]))
    assert chain.row(()).values.sum() == pytest.approx(1.0)
    nothing = options.get("unseen") == "nan"
    row = chain.row(["a"] * order).values
    assert np.isnan(row).all() if nothing else row.sum() == pytest.approx(1.0)
    assert chain.counts(["a"] * order).tolist() == [0.0, 0.0]
    assert chain.probability("a", ["<s>"]) == chain.initial_.at(to="a")
    again = type(chain).from_dict(chain.to_dict())
    assert again.score(["ab"]) == chain.score(["ab"])
    if "prior" in options or "smoothing" in options:
        weights = chain.interpolation_weight_
        assert np.all(np.ravel(getattr(weights, "values", weights)) >= 0)


@pytest.mark.parametrize("options", SHORT_WAYS[2:], ids=str)
def test_single_words_have_no_weight_of_a_background(options: dict[str, Any]) -> None:
    with pytest.raises(sf.EstimateError, match="order 0"):
        _ = sf.MarkovChain(0, **options).fit(["ab", "a"]).interpolation_weight_


def test_the_fitted_value_scores_what_a_user_gives() -> None:
    words = ["the dog runs", "the cat runs"]
    chain = sf.MarkovChain(tokens="words").fit(words)
    assert chain.fitted_.score_samples(words) == pytest.approx(chain.score_samples(words), abs=0)
    table = {"who": [1, 1, 2, 2], "word": ["the", "dog", "the", "cat"]}
    grouped = chain.fitted_.score_samples(table, group="who")
    assert grouped == pytest.approx(chain.score_samples(["the dog", "the cat"]), abs=0)
    with pytest.raises(sf.DataError, match="Sequence 1 has a missing value at step 1"):
        chain.score_samples([["the"], ["dog", None]])
