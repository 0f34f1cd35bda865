"""Hidden Markov models against enumeration of all paths, counts, and a network unrolled over time."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

import suffice as sf
from untyped import untyped

Floats = NDArray[np.float64]

INITIAL = np.array([0.6, 0.3, 0.1])
TRANSITIONS = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]])
SYMBOLS = np.array([[0.5, 0.4, 0.1], [0.1, 0.3, 0.6], [0.2, 0.2, 0.6]])
PARTS = ["initial", "transitions", "emissions"]


def given_model(**more: Any) -> sf.HiddenMarkovModel:
    """A model whose parameters are those above."""
    law = sf.Categorical(states=["a", "b", "c"])
    model = sf.HiddenMarkovModel(
        3, law, initial=INITIAL, transitions=TRANSITIONS, emissions=SYMBOLS, fixed=PARTS, max_iter=0, **more
    )
    return model.fit(["abc"])


def enumerated(logs: Floats) -> tuple[float, Floats, Floats, list[tuple[float, tuple[int, ...]]]]:
    """Log-likelihood, posteriors, joint posteriors and paths by their weight, from all K^T paths."""
    length, size = logs.shape
    with np.errstate(divide="ignore"):
        first, matrix = np.log(INITIAL), np.log(TRANSITIONS)
    paths = []
    for path in itertools.product(range(size), repeat=length):
        value = first[path[0]] + sum(logs[t, state] for t, state in enumerate(path))
        value += sum(matrix[a, b] for a, b in itertools.pairwise(path))
        paths.append((float(value), path))
    total = float(np.logaddexp.reduce([value for value, _ in paths]))
    single, double = np.zeros((length, size)), np.zeros((max(length - 1, 0), size, size))
    for value, path in paths:
        share = np.exp(value - total)
        for t, state in enumerate(path):
            single[t, state] += share
        for t, (a, b) in enumerate(itertools.pairwise(path)):
            double[t, a, b] += share
    return total, single, double, sorted(paths, reverse=True)


@pytest.mark.parametrize("text", ["a", "ca", "abcab", "ccbbaac"])
def test_answers_equal_the_sum_over_all_paths(text: str) -> None:
    model = given_model()
    logs = np.log(SYMBOLS[:, ["abc".index(symbol) for symbol in text]]).T
    total, single, double, paths = enumerated(logs)
    assert model.score_samples([text])[0] == pytest.approx(total, rel=1e-12)
    np.testing.assert_allclose(model.predict_proba([text])[0], single, atol=1e-13)
    np.testing.assert_allclose(model.pairwise([text])[0], double, atol=1e-13)
    assert untyped(model.predict([text]))[0].tolist() == list(paths[0][1])
    assert untyped(model.predict([text], method="posterior"))[0].tolist() == single.argmax(axis=1).tolist()
    best = untyped(model.best_paths([text], 3))[0]
    assert [value for _, value in best] == pytest.approx([value for value, _ in paths[:3]], rel=1e-12)
    for t in range(len(text)):
        _, part, _, _ = enumerated(logs[: t + 1])
        np.testing.assert_allclose(model.filter([text])[0][t], part[-1], atol=1e-13)
    ahead = single[-1] @ TRANSITIONS
    np.testing.assert_allclose(model.forecast([text], 2)[0], [ahead, ahead @ TRANSITIONS], atol=1e-13)


def test_a_gap_is_summed_out() -> None:
    model = given_model()
    logs = np.log(SYMBOLS[:, [0, 0, 2]]).T
    logs[1] = 0.0
    total, single, _, _ = enumerated(logs)
    assert model.score_samples([["a", None, "c"]])[0] == pytest.approx(total, rel=1e-12)
    np.testing.assert_allclose(model.predict_proba([["a", None, "c"]])[0], single, atol=1e-13)


def test_posteriors_equal_those_of_the_network_unrolled_over_time() -> None:
    states = [0, 1, 2]
    edges = {"z1": ["z0"], "z2": ["z1"], "x0": ["z0"], "x1": ["z1"], "x2": ["z2"]}
    domain = sf.Domain(
        [sf.Variable.discrete(f"z{t}", states) for t in range(3)]
        + [sf.Variable.discrete(f"x{t}", ["a", "b", "c"]) for t in range(3)]
    )
    tables = {"z0": INITIAL, "z1": TRANSITIONS, "z2": TRANSITIONS} | {f"x{t}": SYMBOLS for t in range(3)}
    net = sf.BayesianNetwork.from_tables(domain, edges, tables)
    seen = {"x0": "c", "x1": "a", "x2": "b"}
    found = given_model().predict_proba(["cab"])[0]
    for t in range(3):
        np.testing.assert_allclose(found[t], net.query(f"z{t}", given=seen).values, atol=1e-12)


def test_ten_rolls_of_a_fair_die_are_counted() -> None:
    rolls = [2, 1, 5, 6, 1, 2, 3, 6, 2, 3]
    model = sf.HiddenMarkovModel(["F", "L"], sf.Categorical(states=range(1, 7))).fit([rolls], states=[["F"] * 10])
    assert model.emission_probabilities_[0].tolist() == [0.2, 0.3, 0.2, 0.0, 0.1, 0.2]
    assert model.transitions_[0].tolist() == [1.0, 0.0]
    assert np.isfinite(model.emission_probabilities_).all()
    assert model.emission_probabilities_.sum(axis=1) == pytest.approx([1, 1])
    assert any("'L' is unused" in note for note in model.report_.warnings)


def test_pseudo_counts_are_the_mean_of_a_dirichlet_and_the_mode_of_the_next() -> None:
    words, paths = ["HTHH", "T", "HHT"], ["FFLL", "L", "LLF"]
    pairs = np.array([[1.0, 1.0], [1.0, 2.0]])  # FF FL LL; LL LF
    symbols = np.array([[1.0, 2.0], [4.0, 1.0]])  # columns H, T
    added = sf.HiddenMarkovModel(["F", "L"], sf.Categorical(), prior=1.5).fit(words, states=paths)
    np.testing.assert_allclose(added.transitions_, (pairs + 1.5) / (pairs + 1.5).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(added.emission_probabilities_, (symbols + 1.5) / (symbols + 1.5).sum(1, keepdims=True))
    np.testing.assert_allclose(added.initial_, [2.5 / 6, 3.5 / 6])
    prior = {"transitions": sf.Dirichlet([2.5, 2.5]), "emissions": sf.Dirichlet(2.5), "initial": 2.5}
    mode = sf.HiddenMarkovModel(["F", "L"], sf.Categorical(), prior=prior, estimate="map").fit(words, states=paths)
    np.testing.assert_allclose(mode.transitions_, added.transitions_)
    np.testing.assert_allclose(mode.emission_probabilities_, added.emission_probabilities_)


def test_known_states_of_real_steps_have_their_own_moments() -> None:
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(60, 2)) @ np.array([[1.0, 0.4], [0.0, 2.0]]), rng.integers(0, 2, 60)
    for shape in ("full", "diagonal", "spherical", "tied"):
        model = sf.HiddenMarkovModel(2, sf.MultivariateNormal(), covariance=shape).fit(x, states=z)
        within = [np.cov(x[z == k].T, ddof=0) for k in range(2)]
        for k, law in enumerate(model.emissions_):
            np.testing.assert_allclose(law.mean_, x[z == k].mean(axis=0), rtol=1e-12)
            expected = {
                "full": within[k],
                "diagonal": np.diag(np.diag(within[k])),
                "spherical": np.eye(2) * np.trace(within[k]) / 2,
                "tied": sum(within[j] * (z == j).mean() for j in range(2)),
            }[shape]
            np.testing.assert_allclose(law.covariance_, expected, rtol=1e-10, atol=1e-12)
    value = sum(
        stats.multivariate_normal(law.mean_, law.covariance_).logpdf(x[z == k]).sum()
        for k, law in enumerate(model.emissions_)
    )
    counts = np.zeros((2, 2))
    np.add.at(counts, (z[:-1], z[1:]), 1)
    value += np.log(model.initial_[z[0]]) + (counts * np.log(model.transitions_)).sum()
    assert model.report_.log_likelihood == pytest.approx(value, rel=1e-12)


def test_a_normal_wishart_prior_gives_its_posterior_mean() -> None:
    rng = np.random.default_rng(1)
    x, z = rng.normal(size=(40, 2)), rng.integers(0, 2, 40)
    prior = sf.NormalWishart(mean=[0, 1], strength=2.0, dof=6.0, inverse_scale=np.eye(2))
    model = sf.HiddenMarkovModel(2, sf.MultivariateNormal(prior=prior)).fit(x, states=z)
    for k, law in enumerate(model.emissions_):
        alone = sf.MultivariateNormal(prior=prior).fit(x[z == k])
        np.testing.assert_allclose(law.mean_, alone.mean_, rtol=1e-9)
        np.testing.assert_allclose(law.covariance_, alone.covariance_, rtol=1e-9)


def test_the_forms_of_sequences_give_one_fit() -> None:
    import pandas as pd

    words = ["abcab", "c", "bbca", "ab"]
    options: dict[str, Any] = {"emission": sf.Categorical(), "max_iter": 20, "tolerance": 0.0, "random_state": 3}
    flat = np.array(list("".join(words)))
    frame = pd.DataFrame({"g": np.repeat([7, 3, 9, 1], [5, 1, 4, 2]), "x": flat})
    with pytest.warns(sf.ConvergenceWarning):
        fits = [
            sf.HiddenMarkovModel(2, **options).fit(words),
            sf.HiddenMarkovModel(2, **options).fit([list(word) for word in words]),
            sf.HiddenMarkovModel(2, **options).fit(flat, lengths=[5, 1, 4, 2]),
            sf.HiddenMarkovModel(2, **options).fit(frame, group="g"),
        ]
    for other in fits[1:]:
        assert np.array_equal(other.transitions_, fits[0].transitions_)
        assert np.array_equal(other.emission_probabilities_, fits[0].emission_probabilities_)
    assert (
        untyped(fits[0].predict(words))[2].tolist()
        == untyped(fits[2].predict(flat, lengths=[5, 1, 4, 2]))[6:10].tolist()
    )


def test_counts_can_be_added_and_taken_out() -> None:
    words, paths = ["HTHH", "TH", "HHT"], ["FFLL", "LF", "LLF"]
    whole = sf.HiddenMarkovModel(["F", "L"], sf.Categorical(states=["H", "T"]), prior=0.5)
    whole.fit(words, states=paths)
    part = sf.HiddenMarkovModel(["F", "L"], sf.Categorical(states=["H", "T"]), prior=0.5)
    part.fit(words[:1], states=paths[:1]).partial_fit(words[1:], states=paths[1:])
    np.testing.assert_allclose(part.transitions_, whole.transitions_, rtol=1e-12)
    assert part.report_.log_likelihood == pytest.approx(whole.report_.log_likelihood, rel=1e-12)
    part.unlearn(words[1:], states=paths[1:])
    first = sf.HiddenMarkovModel(["F", "L"], sf.Categorical(states=["H", "T"]), prior=0.5).fit(words[:1], paths[:1])
    np.testing.assert_allclose(part.emission_probabilities_, first.emission_probabilities_, rtol=1e-12)
    with pytest.raises(sf.OptionError, match="learned by EM"), pytest.warns(sf.SufficeWarning):
        sf.HiddenMarkovModel(2, sf.Categorical(), max_iter=1).fit(words).partial_fit(words, paths)


def test_samples_follow_the_model() -> None:
    model = given_model()
    words, paths = model.sample(400, 50, random_state=0)
    assert len(words) == 50
    assert len(words[0]) == 400
    again = sf.HiddenMarkovModel(3, sf.Categorical(states=["a", "b", "c"])).fit(words, states=paths)
    errors = again.standard_errors_of(words, paths)
    assert (np.abs(again.transitions_ - TRANSITIONS) < 4.5 * errors["transitions"]).all()
    assert (np.abs(again.emission_probabilities_ - SYMBOLS) < 4.5 * errors["emissions"]["probabilities"]).all()
    n = again.statistics_.transitions.sum(axis=1, keepdims=True)
    p = again.transitions_
    np.testing.assert_allclose(errors["transitions"], np.sqrt(p * (1 - p) / n), rtol=1e-4)
    drawn = np.array(model.sample_paths(["cab"], 4000, random_state=1)).reshape(4000, 3)
    _, single, _, _ = enumerated(np.log(SYMBOLS[:, [2, 0, 1]]).T)
    shares = np.stack([(drawn == k).mean(axis=0) for k in range(3)], axis=1)
    assert (np.abs(shares - single) < 4.5 * np.sqrt(single * (1 - single) / 4000)).all()


def test_an_impossible_sequence_scores_minus_infinity() -> None:
    model = sf.HiddenMarkovModel(
        2, sf.Categorical(states=["a", "b"]), initial=[1, 0], transitions=[[1, 0], [0, 1]],
        emissions=[[1, 0], [0, 1]], fixed=PARTS, max_iter=0,
    )  # fmt: skip
    model.fit(["a"])
    assert model.score_samples(["ab", "aa"]).tolist() == [-np.inf, 0.0]
    with pytest.raises(sf.DataError, match="Sequence 0 is impossible"):
        model.predict(["ab"])


def test_hidden_states_are_matched_to_labels() -> None:
    model = given_model()
    path = model.predict(["abccab"])[0]
    names = {0: "x", 1: "y", 2: "z"}
    truth = [names[int(state)] for state in path]
    assert model.accuracy(["abccab"], [truth]) == 1.0
    found = model.match_states(["abccab"], [truth])
    assert all(found[int(state)] == names[int(state)] for state in path)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"states": 0}, "at least 1"),
        ({"states": "FL"}, "list of their names"),
        ({"prior": {"start": 1}}, "'start'"),
        ({"fixed": ["transitions"]}, "needs start values"),
        ({"tied": [(0, 7)]}, "7"),
        ({"n_init": 0}, "n_init"),
        ({"estimate": "median"}, "median"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], words: str) -> None:
    with pytest.raises(sf.OptionError, match=words):
        sf.HiddenMarkovModel(**{"states": 2, "emission": sf.Categorical(), **options})


def test_wrong_data_are_named() -> None:
    model = sf.HiddenMarkovModel(2, sf.Categorical(states=["a", "b"]))
    with pytest.raises(sf.UnknownStateError, match="'c'"):
        model.fit(["abc"])
    with pytest.raises(sf.DataError, match="3 steps"):
        model.fit(["abab"], states=[[0, 1, 0]])
    with pytest.raises(sf.DataError, match="one weight for each of 1"):
        model.fit(["abab"], sample_weight=[1, 2])
    with pytest.raises(sf.NotFittedError):
        model.predict(["ab"])
    with pytest.raises(sf.OptionError, match="shape"):
        sf.HiddenMarkovModel(2, sf.Categorical(), transitions=np.eye(3)).fit(["ab"])
    with pytest.raises(sf.DataError, match="expected a count"):
        sf.HiddenMarkovModel(2, sf.Poisson()).fit([[1.5, 2.0]])


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_permuting_states_permutes_the_answers(data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(3)))
    word = data.draw(st.text("abc", min_size=1, max_size=8))
    moved = sf.HiddenMarkovModel(
        3, sf.Categorical(states=["a", "b", "c"]), initial=INITIAL[order],
        transitions=TRANSITIONS[np.ix_(order, order)], emissions=SYMBOLS[order], fixed=PARTS, max_iter=0,
    ).fit(["abc"])  # fmt: skip
    plain = given_model()
    np.testing.assert_allclose(moved.score_samples([word]), plain.score_samples([word]), rtol=1e-12)
    np.testing.assert_allclose(moved.predict_proba([word])[0], plain.predict_proba([word])[0][:, order], atol=1e-12)


def test_a_number_as_prior_leaves_densities_alone_and_the_report_says_so() -> None:
    x = np.random.default_rng(0).normal(size=60)
    known = [np.repeat(["a", "b"], 30)]
    plain = sf.HiddenMarkovModel(["a", "b"], sf.Normal()).fit([x], states=known)
    with_counts = sf.HiddenMarkovModel(["a", "b"], sf.Normal(), prior=1.0).fit([x], states=known)
    assert [law.parameters_ for law in with_counts.emissions_] == [law.parameters_ for law in plain.emissions_]
    np.testing.assert_allclose(with_counts.transitions_, [[30 / 32, 2 / 32], [1 / 31, 30 / 31]])
    assert not any("have no prior" in note for note in plain.report_.warnings)
    assert any("the distributions of 'Normal' have no prior" in note for note in with_counts.report_.warnings)
    fixed = sf.HiddenMarkovModel(["a", "b"], sf.Poisson(), prior=1.0, emissions=[2.0, 5.0], fixed=["emissions"])
    assert not any(
        "have no prior" in note for note in fixed.fit([[1, 2, 5]], states=[["a", "a", "b"]]).report_.warnings
    )
