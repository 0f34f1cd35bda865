"""Sequences in and answers out: labels keep type and order, tables on disk, impossible sequences, clear errors."""

import copy
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import suffice as sf
from suffice.sources import stream

HMM = sf.HiddenMarkovModel


def counted() -> sf.HiddenMarkovModel:
    """A model of three symbols of which one was never seen."""
    return HMM(["F", "L"], sf.Categorical(states=list("abc"))).fit(["aab", "abba"], states=["FFL", "LFFL"])


# -- impossible sequences --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "ask",
    [
        lambda m, x: m.predict_proba(x),
        lambda m, x: m.filter(x),
        lambda m, x: m.pairwise(x),
        lambda m, x: m.forecast(x),
        lambda m, x: m.predict(x),
        lambda m, x: m.predict(x, method="posterior"),
        lambda m, x: m.best_paths(x),
        lambda m, x: m.sample_paths(x, random_state=0),
        lambda m, x: m.standard_errors_of(x),
        lambda m, x: m.accuracy(x, ["FFF", "FFF"]),
    ],
)
def test_nothing_is_said_about_the_states_of_an_impossible_sequence(ask: Any) -> None:
    model = counted()
    chances = []
    for word in ("aab", "aca"):
        codes = ["abc".index(symbol) for symbol in word]
        chance = 0.0
        for path in itertools.product(range(2), repeat=3):
            steps = model.initial_[path[0]] * np.prod([model.transitions_[a, b] for a, b in itertools.pairwise(path)])
            chance += steps * np.prod([model.emission_probabilities_[k, c] for k, c in zip(path, codes, strict=True)])
        chances.append(chance)
    assert chances[0] > 0
    assert chances[1] == 0
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(model.score_samples(["aab", "aca"]), np.log(chances))
    with pytest.raises(sf.DataError, match="Sequence 1 is impossible"):
        ask(model, ["aab", "aca"])


def test_huge_observations_have_no_density() -> None:
    for law, start in ((sf.Normal(), [(0, 1.0), (1, 1.0)]), (sf.MultivariateNormal(), [([0, 0], 1.0), ([1, 1], 1.0)])):
        steps: Any = [0.0, 1.0] if isinstance(law, sf.Normal) else [[0.0, 1.0], [1.0, 1.0]]
        huge: Any = [1e200] if isinstance(law, sf.Normal) else [[1e200, -1e200]]
        model = HMM(2, law, emissions=start, fixed=["emissions"], max_iter=0, tolerance=10.0).fit([steps])
        found = model.score_samples([steps, [steps[0], huge[0]], steps[:1]])
        assert found[1] == -np.inf
        assert np.isfinite(found[[0, 2]]).all()
        with pytest.raises(sf.DataError, match="impossible"):
            model.predict_proba([huge])


def test_a_whole_number_beyond_floats_is_named() -> None:
    with pytest.raises(sf.DataError, match="about 401 digits"):
        HMM(2, sf.Normal()).fit([[1.0, 10**400, 2.0]])


# -- labels ----------------------------------------------------------------------------------------------------------


def test_a_gap_does_not_change_the_type_of_labels() -> None:
    fit: dict[str, Any] = {"tolerance": 1.0}
    assert [type(s) for s in HMM(2, sf.Categorical(), **fit).fit([[1, 2, None, 1, 3]]).symbols_] == [int] * 3
    whole = pd.DataFrame({"x": pd.array([1, 2, None, 1], dtype="Int64")})
    assert HMM(2, sf.Categorical(), **fit).fit(whole).symbols_ == (1, 2)
    widened = HMM(2, sf.Categorical(), **fit).fit(pd.DataFrame({"x": [1, 2, None, 1]}))
    assert [type(s) for s in widened.symbols_] == [int, int]
    known = HMM(2, sf.Categorical(), **fit).fit([["a", "b", "a"]], states=[[1, None, 2]])
    assert [type(s) for s in known.states_] == [int, int]
    assert {type(step) for step in widened.sample(20, random_state=0)[0].tolist()} == {int}
    reals = HMM(1, sf.Normal()).fit([[1, 2, None, 4]])
    assert reals.emissions_[0].mean_ == pytest.approx(7 / 3)


def test_categories_are_states_in_their_order() -> None:
    column = pd.Categorical(["lo", "hi", "lo"], categories=["lo", "mid", "hi"])
    frame = pd.DataFrame({"x": column})
    ordered = ("lo", "mid", "hi")
    for data in (frame, frame["x"], [frame["x"], frame["x"]]):
        model = HMM(2, sf.Categorical(), prior=1.0, tolerance=1.0).fit(data)
        assert model.symbols_ == ordered
        assert sf.MarkovChain(prior=1.0).fit(data).states_ == ordered
    two = pd.DataFrame({"x": column, "y": [1.0, 2.0, 4.0]})
    both = HMM(1, {"x": sf.Categorical(), "y": sf.Normal()}).fit(two)
    assert both.emissions_[0]["x"].probabilities_.tolist() == pytest.approx([2 / 3, 0.0, 1 / 3])
    counts = sf.MarkovChain(prior=1.0).fit(frame).transitions_.values
    np.testing.assert_allclose(counts, [[0.25, 0.25, 0.5], [1 / 3, 1 / 3, 1 / 3], [0.5, 0.25, 0.25]])
    assert sf.MarkovChain(prior=1.0).fit(frame).partial_fit([["lo", "new"]]).states_ == (*ordered, "new")


# -- tables that are not in memory -----------------------------------------------------------------------------------


def test_tables_on_disk_and_queries_give_the_fit_of_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    duckdb, polars = pytest.importorskip("duckdb"), pytest.importorskip("polars")
    monkeypatch.setattr(stream, "BATCH_ROWS", 64)  # Borders of batches run through sequences.
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "person": rng.integers(0, 12, 500),
            "word": rng.choice(["u", "v", "w"], 500),
            "value": rng.normal(size=500).round(6),
            "state": rng.choice(["A", "B"], 500),
            "at": np.arange(500),
        }
    )
    table.to_parquet(tmp_path / "steps.parquet", row_group_size=50)
    table.to_csv(tmp_path / "steps.csv", index=False)
    connection = duckdb.connect()
    connection.register("steps", table)
    law = {"word": sf.Categorical(), "value": sf.Normal()}
    model = HMM(["A", "B"], law, prior=1.0, tolerance=1e-2)
    form: dict[str, Any] = {"group": "person", "columns": ["word", "value"]}
    learned, labelled = model.clone().fit(table, **form), model.clone().fit(table, "state", **form)
    lists = [part[["word", "value"]].to_numpy() for _, part in table.groupby("person", sort=False)]
    assert learned.report_.log_likelihood == pytest.approx(
        HMM(["A", "B"], list(law.values()), prior=1.0, tolerance=1e-2).fit(lists).report_.log_likelihood, rel=1e-12
    )
    for data in (
        tmp_path / "steps.parquet",
        str(tmp_path / "steps.csv"),
        polars.from_pandas(table).lazy(),
    ):
        # The units of a column are sums over shards here, so that EM begins a rounding error away.
        found = model.clone().fit(data, **form)
        assert found.report_.log_likelihood == pytest.approx(learned.report_.log_likelihood, rel=1e-13)
        np.testing.assert_allclose(found.transitions_, learned.transitions_, rtol=1e-13)
        known = model.clone().fit(data, "state", group="person", columns=["word", "value"])
        np.testing.assert_array_equal(known.transitions_, labelled.transitions_)
        assert known.accuracy(data, "state", group="person") == labelled.accuracy(table, "state", group="person")
    chain = sf.MarkovChain().fit(table, group="person", columns="word")
    for data in (tmp_path / "steps.parquet", polars.from_pandas(table).lazy()):
        other = sf.MarkovChain().fit(data, group="person", columns="word")
        assert other.report_.log_likelihood == chain.report_.log_likelihood
    # The rows of a query have no order but the one that is named; its sequences come by their names.
    query, ordered = connection.sql("select * from steps"), {**form, "order": "at"}
    sorted_ = model.clone().fit(table, **ordered)
    np.testing.assert_allclose(model.clone().fit(query, **ordered).transitions_, sorted_.transitions_, rtol=1e-13)
    known = model.clone().fit(query, "state", **ordered)
    np.testing.assert_allclose(known.transitions_, labelled.transitions_, rtol=1e-14)
    with pytest.raises(sf.DataError, match="no file"):
        model.fit(tmp_path / "none.parquet")


# -- comparing with true labels --------------------------------------------------------------------------------------


def test_one_sequence_may_be_flat_and_names_may_be_long() -> None:
    rng = np.random.default_rng(1)
    x, z = rng.integers(0, 6, 50), np.where(rng.random(50) < 0.5, "fair", "loaded")
    model = HMM(["fair", "loaded"], sf.Categorical(), prior=1.0)
    first = model.clone().fit(x, states=z)
    np.testing.assert_array_equal(model.clone().fit(x, states=z.tolist()).transitions_, first.transitions_)
    path = first.predict(x)
    direct = max(np.mean(path == z), np.mean(path != z))
    for sequences, states in ((x, z), (x, z.tolist()), ([x], [z]), ([x], [z.tolist()])):
        assert first.accuracy(sequences, states) == pytest.approx(direct)
    hidden = z.astype(object)
    hidden[10:] = None
    assert first.accuracy(x, hidden) == pytest.approx(max(np.mean(path[:10] == z[:10]), np.mean(path[:10] != z[:10])))
    with pytest.raises(sf.DataError, match="No step has a true label"):
        first.accuracy(x, [None] * 50)
    with pytest.raises(sf.DataError, match="Give one state a step"):
        first.accuracy(x, z[:49])


def test_answers_have_the_form_of_the_sequences() -> None:
    model = counted()
    assert isinstance(model.pairwise(["aab"]), list)
    flat = model.pairwise(np.array(list("aab")))
    np.testing.assert_array_equal(flat, model.pairwise(["aab"])[0])
    assert HMM(2, sf.Categorical(), tolerance=1.0).fit(["abab"], states=[None]).states_ == (0, 1)


# -- arrays and criteria ---------------------------------------------------------------------------------------------


def test_what_is_shown_cannot_change_the_model() -> None:
    for model in (counted(), copy.deepcopy(counted())):
        before = model.score_samples(["aab"])[0]
        for array in (model.transitions_, model.initial_, model.emission_probabilities_):
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 0.1
        assert model.score_samples(["aab"])[0] == before
    normal = HMM(1, sf.MultivariateNormal()).fit([np.eye(3)[:, :2]])
    mean = normal.emissions_[0].mean_
    mean.flags.writeable = True
    mean[:] = 9.0
    assert normal.emissions_[0].mean_.tolist() == pytest.approx([1 / 3, 1 / 3])


def test_criteria_are_those_of_the_report() -> None:
    model = counted()
    count, value = 1 + 2 + 4, model.report_.log_likelihood
    assert model.n_params_ == count
    assert model.aic_ == pytest.approx(2 * count - 2 * value)
    assert model.bic_ == pytest.approx(count * np.log(7) - 2 * value)
    model.set_params(states=3)
    assert model.n_params_ == count
    for name in ("n_params_", "emissions_", "aic_", "states_", "transitions_"):
        with pytest.raises(sf.NotFittedError):
            getattr(HMM(2, sf.Normal()), name)
    with pytest.raises(sf.NotFittedError):
        HMM(2, sf.Normal()).forecast_distribution([0.5, 0.5])


# -- mistakes --------------------------------------------------------------------------------------------------------

STEPS = np.random.default_rng(0).normal(size=30)
PAIRS = np.random.default_rng(0).normal(size=(30, 2))


@pytest.mark.parametrize(
    ("law", "options", "data", "words"),
    [
        (sf.Normal(), {"emissions": [0, 3]}, STEPS, "expected a normal distribution of 1 column"),
        (
            sf.MultivariateNormal(),
            {"emissions": [([0, 0], 1), ([1, 2, 3], 1)]},
            PAIRS,
            "normal distribution of 2 columns",
        ),
        (sf.Poisson(), {"emissions": [sf.Poisson(1.0), sf.Normal(0, 1)]}, [1, 2, 0], "expected parameters of Poisson"),
        (sf.Categorical(), {"emissions": [["a"], ["b"]]}, list("abab"), "expected probabilities of shape"),
        ([sf.Normal(), sf.Normal()], {"emissions": [3, 4]}, PAIRS, "expected 2 distributions for each state"),
        (sf.Normal(), {"emissions": [(0, 1e-12), (3, 1.0)]}, STEPS, "below the floor, which is 1e-06"),
        (sf.Gamma(), {"emissions": [(1e12, 1.0), (3, 1.0)]}, np.abs(STEPS), "narrower than its floor"),
        (
            sf.MultivariateNormal(),
            {"covariance": "diagonal", "emissions": [([0, 0], [[1, 0.9], [0.9, 1]])] * 2},
            PAIRS,
            "beside the diagonal",
        ),
        (
            sf.MultivariateNormal(),
            {"covariance": "spherical", "emissions": [([0, 0], [1, 2])] * 2},
            PAIRS,
            "different variances of one distribution",
        ),
        (sf.Normal(), {"covariance": "tied", "emissions": [(0, 1), (0, 2)]}, STEPS, "different covariances"),
    ],
)
def test_wrong_start_values_are_named(law: Any, options: dict[str, Any], data: Any, words: str) -> None:
    with pytest.raises(sf.OptionError, match=words):
        HMM(2, law, **options).fit(data)


@pytest.mark.parametrize(
    ("law", "data", "words"),
    [
        (sf.Normal(), [[np.nan, np.nan]], "The observations hold missing values alone"),
        (sf.Gamma(), [[np.nan, np.nan]], "missing values alone"),
        (sf.MultivariateNormal(), [np.array([[1, np.nan], [2, np.nan]])], "Column 1 holds missing values alone"),
        (sf.Normal(), pd.DataFrame({"temp": ["x", "y"]}), r"Column 'temp' holds 'x' \(str\)"),
        (sf.Normal(), [["1", "2"]], r"'1' \(str\)"),
        (sf.Normal(), [[1 + 2j, 3]], "complex"),
        (sf.Gamma(), [[1.0, 0.0, 2.0]], "on its edge"),
        (sf.Normal(), [STEPS * 1e-160], "whose square is no float64"),
        (sf.Normal(), [STEPS * 1e160], "whose square is no float64"),
    ],
)
def test_wrong_observations_are_named(law: Any, data: Any, words: str) -> None:
    with pytest.raises(sf.DataError, match=words):
        HMM(2, law).fit(data)


def test_wrong_questions_are_named() -> None:
    model = counted()
    with pytest.raises(sf.OptionError, match=r"n is 1\.5"):
        model.best_paths(["aab"], 1.5)  # type: ignore[arg-type]
    with pytest.raises(sf.OptionError, match="n is -1"):
        model.sample(3, -1)
    with pytest.raises(sf.OptionError, match="state of every step is known"):
        sf.summarize(model, ["aab"])
    with pytest.raises(sf.OptionError, match="numbers of at least 0"):
        model.forecast_distribution([1.5, -0.5])
    mixed = HMM(1, [sf.Normal(), sf.Poisson()]).fit([np.c_[STEPS, np.arange(30)]])
    assert mixed.forecast_distribution([1.0]).mean() == pytest.approx([STEPS.mean(), 14.5])
    with pytest.raises(sf.DataError, match="Column 0 holds 'x'"):
        mixed.emissions_[0].log_prob(pd.DataFrame({"a": ["x"], "b": [1]}))


def test_pairs_in_an_array_and_old_generators_are_taken() -> None:
    rows = HMM(2, sf.Normal(), emissions=np.array([[0, 1], [3, 1.0]]), max_iter=0, tolerance=10.0).fit(STEPS)
    assert [law.mean_ for law in rows.emissions_] == pytest.approx([0.0, 3.0], abs=1e-15)
    old = HMM(2, sf.Normal(), random_state=np.random.RandomState(0), tolerance=1e-2, max_iter=4000).fit(STEPS)
    assert np.isfinite(old.report_.log_likelihood)


def test_notes_name_the_state_and_the_component() -> None:
    steps = np.r_[np.ones(20), STEPS + 5]
    model = HMM(["p", "q"], sf.Mixture(sf.Normal(), 2), random_state=2, tolerance=1e-2, max_iter=4000).fit(steps)
    held = [note for note in model.report_.warnings if "floor" in note]
    assert held
    assert all("of state 'p'" in note or "of state 'q'" in note for note in held)


@pytest.mark.parametrize("people", [["ann", "ann", "bob", "bob"], ["ann", "ann", "ann", "ann"]])
def test_groups_are_answered_by_a_list_however_many_there_are(people: list[str]) -> None:
    """One group, and one length, are lists of one sequence."""
    model = sf.HiddenMarkovModel(2, sf.Categorical(), random_state=0).fit([["a", "b", "a", "a", "b"]])
    table = pd.DataFrame({"person": people, "word": ["a", "b", "b", "a"]})
    each = [["a", "b"], ["b", "a"]] if people[-1] == "bob" else [["a", "b", "b", "a"]]
    for ask in (model.predict, model.predict_proba, model.pairwise, model.best_paths, model.forecast):
        found, expected = ask(table, group="person"), ask(each)
        assert isinstance(found, list)
        assert len(found) == len(each)
        assert repr(found) == repr(expected)
    lengths = [len(one) for one in each]
    assert len(model.best_paths(table["word"].to_numpy(), lengths=lengths)) == len(each)
