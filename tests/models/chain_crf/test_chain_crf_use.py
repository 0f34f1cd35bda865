"""Chain CRFs as they are used: every form of input, predictions, evaluation, files, and clear errors."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

import suffice as sf
from label_paths import all_paths, random_sequences
from suffice.errors import (
    ConvergenceWarning,
    DataError,
    FileFormatError,
    MissingValueError,
    NotFittedError,
    OptionError,
    UnknownStateError,
)
from suffice.models.conditional_field.evaluation import chunks, evaluate

PRIOR = sf.Normal(variance=1.0)
DICTS = [
    [{"word": "The", "upper": True, "length": 3}, {"word": "dog", "upper": False, "length": 3}],
    [{"word": "A", "upper": True, "length": 1}, {"word": "cat", "upper": False}, {"word": "sat", "length": 3}],
]
LABELS = [["D", "N"], ["D", "N", "V"]]


def weights_by_name(model: Any) -> Any:
    return dict(zip(model.weight_names_, model.weights_, strict=True))


# -- input ------------------------------------------------------------------------------------------------------------


def test_dicts_become_named_columns() -> None:
    model = sf.ChainCRF(prior=PRIOR).fit(DICTS, LABELS)
    assert model.feature_names_ == ("word:The", "upper", "length", "word:dog", "word:A", "word:cat", "word:sat")
    assert model.labels_ == ("D", "N", "V")
    # The pairs of a feature and a label that are seen together, a value of False or 0 included.
    names = {name[1:] for name in model.weight_names_ if name[0] == "state"}
    assert ("upper", "N") in names
    assert ("word:The", "N") not in names
    assert {name[1:] for name in model.weight_names_ if name[0] == "transition"} == {("D", "N"), ("N", "V")}


def test_dicts_lists_and_matrices_of_the_same_features_fit_alike() -> None:
    lists = [[["a", "b"], ["b"]], [["c"], ["a", "c"], ["b"]]]
    dicts = [[dict.fromkeys(step, True) for step in sequence] for sequence in lists]
    names = ["a", "b", "c"]
    dense = [np.array([[float(n in step) for n in names] for step in sequence]) for sequence in lists]
    labels = [["X", "Y"], ["Y", "X", "X"]]
    options: dict[str, Any] = {
        "prior": PRIOR,
        "all_possible_states": True,
        "all_possible_transitions": True,
        "tolerance": 1e-10,
    }
    found = [
        sf.ChainCRF(**options).fit(X, labels).state_weights_
        for X in (lists, dicts, dense, [sparse.csr_matrix(x) for x in dense], [x.tolist() for x in dense])
    ]
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], atol=1e-9)


def test_values_multiply_the_weights() -> None:
    X = [[{"a": 2.0}, {"a": -1, "b": 0.5}]]
    model = sf.ChainCRF(prior=PRIOR).fit(X, [["X", "Y"]])
    dense = sf.ChainCRF(prior=PRIOR, all_possible_states=False, all_possible_transitions=False)
    dense.fit([np.array([[2.0, 0.0], [-1.0, 0.5]])], [["X", "Y"]])
    assert model.report_.objective == pytest.approx(
        sf.ChainCRF(prior=PRIOR).fit([[["a", "a"], {"a": -1, "b": 0.5}]], [["X", "Y"]]).report_.objective, rel=1e-9
    )
    assert len(model.weights_) == 4  # (a, X), (a, Y), (b, Y) and the transition from X to Y.
    assert model.report_.n_params == 3  # Adding 1 to both weights of a changes nothing.
    assert len(dense.weights_) == 5  # A dense array has (b, X) too, with a value of 0.


def test_nested_features_and_sets_have_names_of_two_parts() -> None:
    X = [[{"shape": {"first": "A", "digits": 2}, "tags": ["x", "y"]}, {"tags": {"y", "z"}}]]
    model = sf.ChainCRF(prior=PRIOR).fit(X, [["P", "Q"]])
    assert model.feature_names_ == ("shape:first:A", "shape:digits", "tags:x", "tags:y", "tags:z")


def test_equal_names_are_one_feature() -> None:
    model = sf.ChainCRF(prior=PRIOR).fit([[{"a": "b"}, {"a:b": True}]], [["X", "Y"]])
    assert model.feature_names_ == ("a:b",)


def test_hashed_features_need_no_names() -> None:
    plain = sf.ChainCRF(prior=PRIOR, tolerance=1e-9).fit(DICTS, LABELS)
    hashed = sf.ChainCRF(prior=PRIOR, tolerance=1e-9, hashing=2**16).fit(DICTS, LABELS)
    assert hashed.report_.objective == pytest.approx(plain.report_.objective, rel=1e-9)
    assert hashed.predict(DICTS) == plain.predict(DICTS) == LABELS
    assert hashed.predict([[{"unseen": "word"}]])[0][0] in hashed.labels_
    crowded = sf.ChainCRF(prior=PRIOR, hashing=1).fit(DICTS, LABELS)
    assert crowded.state_weights_.shape == (1, 3)


def test_rare_features_are_left_out() -> None:
    X = [[["a", "b"], ["a"]], [["a", "c"], ["c"]]]
    model = sf.ChainCRF(prior=PRIOR, min_frequency=2).fit(X, [["X", "Y"], ["X", "Y"]])
    assert model.feature_names_ == ("a", "c")
    weighted = sf.ChainCRF(prior=PRIOR, min_frequency=2).fit(X, [["X", "Y"], ["X", "Y"]], sample_weight=[2, 1])
    assert weighted.feature_names_ == ("a", "b", "c")


def test_labels_may_be_anything_hashable() -> None:
    X = [np.eye(3)]
    for labels in ([1, 2, 3], [(0, "a"), (0, "b"), (1, "a")], [None.__class__, int, str], [True, 1, "1"]):
        model = sf.ChainCRF(prior=PRIOR).fit(X, [labels])
        assert len(model.labels_) == 3
        assert model.predict(X) == [labels]


def test_declared_labels_keep_their_place() -> None:
    model = sf.ChainCRF(prior=PRIOR, labels=["c", "b", "a"]).fit([np.eye(2)], [["a", "b"]])
    assert model.labels_ == ("c", "b", "a")
    assert model.state_weights_.shape == (2, 3)


def test_a_bias_is_there_only_when_asked_for() -> None:
    X, Y = random_sequences(0)
    assert sf.ChainCRF(prior=PRIOR).fit(X, Y).feature_names_ == (0, 1, 2)
    model = sf.ChainCRF(prior=PRIOR, bias=True, tolerance=1e-9).fit(X, Y)
    longer = [np.column_stack([x, np.ones(len(x))]) for x in X]
    wider = sf.ChainCRF(prior=PRIOR, tolerance=1e-9).fit(longer, Y)
    assert model.feature_names_[-1] == "bias"
    np.testing.assert_allclose(model.state_weights_, wider.state_weights_, atol=1e-7)
    assert model.predict(X) == wider.predict(longer)


# -- predictions ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted() -> Any:
    X, Y = random_sequences(1, count=8)
    return sf.ChainCRF(prior=PRIOR, labels=[0, 1, 2]).fit(X, Y), X, Y


def test_predictions_are_those_of_all_paths(fitted: Any) -> None:
    model, X, Y = fitted
    best, marginals, lists = model.predict(X), model.predict_marginals(X), model.predict_k_best(X, 3)
    for s, x in enumerate(X):
        paths, probabilities, _ = all_paths(x, model.state_weights_, model.transition_weights_)
        order = np.argsort(-probabilities)
        assert tuple(best[s]) == paths[order[0]]
        rows = np.zeros((len(x), 3))
        for path, p in zip(paths, probabilities, strict=True):
            rows[np.arange(len(x)), list(path)] += p
        np.testing.assert_allclose(marginals[s], rows, rtol=1e-10)
        assert [tuple(path) for path, _ in lists[s]] == [paths[p] for p in order[:3]]
        np.testing.assert_allclose([log for _, log in lists[s]], np.log(probabilities[order[:3]]), rtol=1e-9)
        own = probabilities[paths.index(tuple(Y[s]))]
        assert model.score_samples([x], [Y[s]])[0] == pytest.approx(np.log(own), rel=1e-10)
    assert model.score_samples(X, Y).sum() == pytest.approx(model.report_.log_likelihood, rel=1e-12)
    np.testing.assert_array_equal(model.fitted_.score_samples(X, Y), model.score_samples(X, Y))
    assert model.score(X, Y) == pytest.approx(model.report_.log_likelihood / len(X), rel=1e-12)


def test_there_are_no_more_paths_than_there_are(fitted: Any) -> None:
    model, _, _ = fitted
    assert [len(paths) for paths in model.predict_k_best([np.ones((1, 3)), np.ones((2, 3))], 7)] == [3, 7]
    with pytest.raises(OptionError, match="k is 0"):
        model.predict_k_best([np.ones((1, 3))], 0)


def test_marginals_are_read_by_place_or_by_label() -> None:
    model = sf.ChainCRF(prior=PRIOR).fit(DICTS, LABELS)
    found = model.predict_marginals(DICTS)
    assert found[1].shape == (3, 3)
    assert found[1][0]["D"] == found[1][0, 0] == found[1]["D"][0]
    assert dict(found[0][1].items())["N"] == found[0][1][1]
    np.testing.assert_allclose(found[1].sum(axis=1), 1.0, rtol=1e-12)
    with pytest.raises(KeyError, match="no label"):
        found[0]["Q"]


def test_drawn_labels_follow_the_marginals(fitted: Any) -> None:
    model, X, _ = fitted
    drawn = np.array(model.sample_labels(X[:1], 4000, random_state=0)[0])
    rows = np.asarray(model.predict_marginals(X[:1])[0])
    for label in range(3):
        p = rows[:, label]
        assert (np.abs((drawn == label).mean(axis=0) - p) < 5.0 * np.sqrt(p * (1.0 - p) / 4000)).all()


def test_unseen_features_are_passed_over() -> None:
    model = sf.ChainCRF(prior=PRIOR).fit(DICTS, LABELS)
    plain = model.predict_marginals([[{"word": "dog"}]])[0]
    more = model.predict_marginals([[{"word": "dog", "novel": "x", "new": 3.0}]])[0]
    np.testing.assert_array_equal(plain, more)


def test_the_largest_weights_are_listed() -> None:
    model = sf.ChainCRF(prior=PRIOR).fit(DICTS, LABELS)
    top = model.top_features(3)
    assert top[0].weight == model.state_weights_.max()
    assert [entry.weight for entry in top] == sorted((entry.weight for entry in top), reverse=True)
    assert {entry.label for entry in model.top_features(label="V")} == {"V"}
    assert model.top_transitions(1)[0].weight == model.transition_weights_.max()
    assert model.top_features(1, lowest=True)[0].weight == min(
        value for name, value in weights_by_name(model).items() if name[0] == "state"
    )
    with pytest.raises(DataError, match="no label"):
        model.top_features(label="Q")


# -- evaluation -------------------------------------------------------------------------------------------------------


def test_rates_by_hand() -> None:
    truth = [["B-x", "I-x", "O"], ["B-y", "O", "O"]]
    guess = [["B-x", "I-x", "O"], ["B-x", "O", "B-y"]]
    found: Any = evaluate(truth, guess)
    assert found.accuracy == pytest.approx(4 / 6)
    assert found.sequence_accuracy == 0.5
    assert found.labels["B-x"] == (0.5, 1.0, pytest.approx(2 / 3), 1)
    assert found.labels["O"] == (1.0, pytest.approx(2 / 3), pytest.approx(0.8), 3)
    assert found.spans["x"] == (0.5, 1.0, pytest.approx(2 / 3), 1)
    assert found.spans["y"] == (0.0, 0.0, 0.0, 1)
    assert found.span_f1 == pytest.approx(2 * (1 / 3) * (1 / 2) / (1 / 3 + 1 / 2))
    assert "chunk" in str(found)
    assert list(found.to_frame().columns) == ["kind", "name", "precision", "recall", "f1", "support"]
    assert evaluate([["a", "b"]], [["a", "a"]]).span_f1 is None


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ("B-x I-x I-x O", {(0, 2, "x")}),
        ("B-x B-x", {(0, 0, "x"), (1, 1, "x")}),
        ("I-x I-x", {(0, 1, "x")}),
        ("B-x I-y", {(0, 0, "x"), (1, 1, "y")}),
        ("O I-x O I-x", {(1, 1, "x"), (3, 3, "x")}),
        ("B-x E-x S-y I-y", {(0, 1, "x"), (2, 2, "y"), (3, 3, "y")}),
        ("O", set()),
    ],
)
def test_chunks_are_read_as_the_shared_tasks_read_them(labels: Any, expected: Any) -> None:
    assert chunks(labels.split()) == expected


def test_unknown_labels_count_as_missed_in_an_evaluation() -> None:
    model = sf.ChainCRF(prior=PRIOR).fit(DICTS, LABELS)
    found = model.evaluate(DICTS, [["D", "N"], ["D", "N", "?"]])
    assert found.accuracy == model.accuracy(DICTS, [["D", "N"], ["D", "N", "?"]]) == 0.8
    assert found.labels["?"].recall == 0.0


# -- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("X", "y", "error", "message"),
    [
        ([[["a"]]], [["x"], ["y"]], DataError, "X has 1 sequence and y has 2"),
        ([[["a"], ["b"]], [["a"]]], [["x", "y"], ["x", "y"]], DataError, "Sequence 1: X has 1 step and y has 2"),
        ([[["a"]], []], [["x"], []], DataError, "Sequence 1 of X is empty"),
        ([np.zeros((2, 2)), np.zeros((0, 2))], [["x", "y"], []], DataError, "Sequence 1 of X is empty"),
        ([[{"a": 1.0}, {"a": np.nan}]], [["x", "y"]], MissingValueError, "Sequence 0 of X, step 1: feature 'a' is nan"),
        ([[{"a": None}]], [["x"]], MissingValueError, "Sequence 0 of X, step 0: feature 'a' is None"),
        (
            [np.ones((1, 2)), np.array([[1.0, 2.0], [3.0, np.nan]])],
            [["x"], ["x", "y"]],
            MissingValueError,
            "Sequence 1 of X, step 1: feature 1 is nan",
        ),
        ([sparse.csr_matrix([[0.0, np.inf]])], [["x"]], MissingValueError, "step 0: feature 1 is inf"),
        ([np.ones((1, 2)), np.ones((1, 3))], [["x"], ["x"]], DataError, "Sequence 1 of X has 3 features"),
        ([[["a"], ["b"]]], [["x", None]], MissingValueError, "Sequence 0 of y, step 1: the label is None"),
        ([[["a"], ["b"]]], [["x", ["y"]]], DataError, "not hashable"),
        ([[["a"], [3]]], [["x", "y"]], DataError, "Sequence 0 of X, step 1: the feature 3 is no text"),
        ([[["a"], 3.5]], [["x", "y"]], DataError, "Sequence 0 of X, step 1 is of type float"),
        ([[1.0, 2.0]], [["x", "y"]], DataError, "shape \\(steps, 1\\)"),
        ([], [], DataError, "no sequence"),
        ("text", [["x"]], DataError, "X is of type str"),
        (["text"], [["x"]], DataError, "Sequence 0 of X is of type str"),
        ([[["a"]]], ["x"], DataError, "Sequence 0 of y is 'x'"),
    ],
)
def test_bad_input_is_named(X: Any, y: Any, error: Any, message: Any) -> None:
    with pytest.raises(error, match=message):
        sf.ChainCRF(prior=PRIOR).fit(X, y)


def test_labels_unknown_to_the_model_are_named() -> None:
    model = sf.ChainCRF(prior=PRIOR).fit(DICTS, LABELS)
    for ask in (model.score, model.score_samples, model.fitted_.score_samples):
        with pytest.raises(UnknownStateError, match="Sequence 1 of y, step 2: the label 'Q' is unknown"):
            ask(DICTS, [["D", "N"], ["D", "N", "Q"]])
    with pytest.raises(UnknownStateError, match="the labels are 'a'"):
        sf.ChainCRF(labels=["a"]).fit([[["f"]]], [["b"]])


def test_other_columns_than_those_fitted_are_refused(fitted: Any) -> None:
    model, _, _ = fitted
    with pytest.raises(DataError, match="2 columns; the model was fitted to 3"):
        model.predict([np.ones((2, 2))])
    with pytest.raises(DataError, match="fitted to arrays"):
        model.predict(DICTS)


def test_labels_that_the_constraints_forbid_are_named() -> None:
    with pytest.raises(DataError, match="Sequence 0 of y, step 1: the label 'I-x' after 'O' is forbidden"):
        sf.ChainCRF(constraints="bio").fit([np.eye(3)], [["O", "I-x", "B-x"]])
    with pytest.raises(DataError, match="Sequence 0 of y, step 0: the label 'I-x' at the start"):
        sf.ChainCRF(constraints="bio").fit([np.eye(2)], [["I-x", "B-x"]])
    with pytest.raises(DataError, match="step 1: the label 'B-x' at the end"):
        sf.ChainCRF(constraints="bioes").fit([np.eye(2)], [["O", "B-x"]])
    with pytest.raises(OptionError, match="no chunk label"):
        sf.ChainCRF(constraints="bio").fit([np.eye(2)], [["O", "Z"]])
    with pytest.raises(OptionError, match="None is the outside"):
        sf.ChainCRF(constraints=[("O", "Q")]).fit([np.eye(2)], [["O", "Z"]])


@pytest.mark.parametrize("weights", [[1.0], [1.0, -1.0], [1.0, np.nan], [0.0, 0.0]])
def test_weights_that_make_no_sense_are_refused(weights: Any) -> None:
    with pytest.raises(DataError, match="sample_weight"):
        sf.ChainCRF(prior=PRIOR).fit(DICTS, LABELS, sample_weight=weights)


def test_a_fit_that_fails_leaves_the_model_as_it_was(fitted: Any) -> None:
    model, X, Y = fitted
    before = model.weights_
    with pytest.raises(DataError):
        model.fit(X, Y[:-1])
    np.testing.assert_array_equal(model.weights_, before)


def test_an_unfitted_model_says_so() -> None:
    asks: list[Any] = [
        lambda model: model.predict(DICTS),
        lambda model: model.state_weights_,
        lambda model: model.score(DICTS, LABELS),
    ]
    for ask in asks:
        with pytest.raises(NotFittedError, match="fit"):
            ask(sf.ChainCRF())


# -- files and options ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["json", "suffice"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"boundaries": True, "bias": True, "conditioned_transitions": ["word:dog"]},
        {"hashing": 64},
        {"constraints": [("V", "D"), (None, "V")]},
    ],
)
def test_a_model_is_written_and_read(tmp_path: Any, ending: Any, options: Any) -> None:
    model = sf.ChainCRF(prior=PRIOR, **options).fit(DICTS, LABELS)
    path = tmp_path / f"model.{ending}"
    model.write(path)
    again = sf.read(path)
    np.testing.assert_array_equal(again.weights_, model.weights_)
    np.testing.assert_array_equal(again.transition_weights_, model.transition_weights_)
    assert again.predict(DICTS) == model.predict(DICTS)
    assert again.report_ == model.report_
    assert again.get_params(deep=False).keys() == model.get_params(deep=False).keys()
    assert again.weight_names_ == model.weight_names_


def test_a_file_whose_parts_do_not_fit_is_refused() -> None:
    plain = sf.ChainCRF(prior=PRIOR).fit(DICTS, LABELS).to_dict()
    plain["fitted"]["pair_labels"] = plain["fitted"]["pair_labels"] + 7
    with pytest.raises(FileFormatError, match="damaged"):
        sf.ChainCRF.from_dict(plain)


def test_options_are_read_set_and_cloned() -> None:
    model = sf.ChainCRF(prior=sf.Normal(variance=2.0), max_iter=7)
    assert model.get_params()["prior__variance"] == 2.0
    copy = model.clone().set_params(prior__variance=3.0)
    assert (copy.prior.variance_, model.prior.variance_, copy.max_iter) == (3.0, 2.0, 7)  # type: ignore[attr-defined]
    assert "max_iter=7" in repr(model)
    with pytest.raises(OptionError, match="prior"):
        sf.ChainCRF(prior=sf.Gamma(shape=1.0, rate=1.0)).fit(DICTS, LABELS)


def test_progress_is_shown(capsys: Any) -> None:
    with pytest.warns(ConvergenceWarning):
        sf.ChainCRF(prior=PRIOR, progress=True, max_iter=2).fit(DICTS, LABELS)
    assert "2" in capsys.readouterr().err


def test_the_report_is_a_receipt() -> None:
    report = sf.ChainCRF(prior=PRIOR).fit(DICTS, LABELS).report_
    text = str(report)
    assert "3 labels, 7 features" in text
    assert "MAP" in text
    assert "at most" in text
