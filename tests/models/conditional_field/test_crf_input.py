"""Features, labels, weights and options as users give them: taken where they make sense, named where they do not."""

import decimal
from typing import Any, cast

import numpy as np
import pytest
from scipy import sparse

import suffice as sf

NORMAL = sf.Normal(variance=1.0)
PAIR = [["A", "B"]]


def weights_of(model: Any) -> Any:
    return dict(zip(model.weight_names_, model.weights_, strict=True))


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[["a"], ["a", ["b"]]]], r"Sequence 0 of X, step 1: the feature \['b'\] is no text"),
        ([[["a"], ["a", {"b": 1}]]], r"Sequence 0 of X, step 1: the feature \{'b': 1\} is no text"),
        ([[["a"], {"a", 3}]], "Sequence 0 of X, step 1: the feature 3 is no text"),
        ([[["a"], ("a", 3)]], "Sequence 0 of X, step 1: the feature 3 is no text"),
        ([[["a"], [("w", "x")]]], r"Sequence 0 of X, step 1: the feature \('w', 'x'\) is no text"),
        ([[{"a": 1}, {("w", "x"): 1}]], r"Sequence 0 of X, step 1: the feature \('w', 'x'\) is no text"),
        ([[{"a": 1}, {5: "x"}]], "Sequence 0 of X, step 1: the feature 5 is no text"),
        ([[{"a": 1}, {"w": 10**400}]], "Sequence 0 of X, step 1: feature 'w' is too large"),
        ([[{"a": 1}, {"w": 1e200}]], "Sequence 0 of X, step 1: feature 'w' is 1e.200; sums of numbers beyond 1e.100"),
        ([[{"a": 1}, {"w": decimal.Decimal(2)}]], "step 1: feature 'w' is Decimal.*, of type Decimal; expected a num"),
        ([[{"a": 1}, {"w": 2j}]], "step 1: feature 'w' is 2j, of type complex; expected a number"),
        ([[{"a": 1}, {"w": b"\xff"}]], "Sequence 0 of X, step 1: the feature .* is no text in UTF-8"),
        ([[["a"], 3]], "Sequence 0 of X, step 1 is of type int; expected a dict"),
        ([np.array([[1.0, 0.0], [1e200, 0.0]])], "Sequence 0 of X, step 1: feature 0 is 1e.200; sums"),
        ([[[1.0, 2.0], [3.0]]], r"Sequence 0 of X is no array of numbers: step 1 has 1 features and step 0 has 2\.$"),
        ([[[1.0, 2.0], 3.0]], r"Sequence 0 of X is no array of numbers: step 1 is of type float\.$"),
        (np.ones((2, 3)), r"X is one array of shape \(2, 3\); .* single sequence goes into a list: \[X\]"),
        (sparse.csr_matrix(np.ones((2, 3))), r"X is one array of shape \(2, 3\); .* single sequence goes into a list"),
    ],
)
def test_features_that_cannot_be_are_named(X: Any, message: Any) -> None:
    with pytest.raises(sf.DataError, match=message) as found:
        sf.ChainCRF().fit(X, PAIR)
    assert not isinstance(found.value, sf.MissingValueError)


def test_gaps_are_gaps() -> None:
    for value in (None, np.nan):
        with pytest.raises(sf.MissingValueError, match="Sequence 0 of X, step 1: feature 'w' is"):
            sf.ChainCRF().fit([[{"a": 1}, {"w": value}]], PAIR)


def test_bytes_are_text_in_utf_8() -> None:
    texts = [[{"w": "ä", "n": 2.0, "s": ["p", "q"]}, ["x", "y"], {"u", "v"}, "z"]]
    octets = [[{b"w": "ä".encode(), b"n": 2.0, "s": [b"p", b"q"]}, [b"x", "y"], {b"u", "v"}, b"z"]]
    labels = [["A", "B", "A", "B"]]
    one, two = sf.ChainCRF(prior=NORMAL).fit(texts, labels), sf.ChainCRF(prior=NORMAL).fit(octets, labels)
    assert set(one.feature_names_) == {"w:ä", "n", "s:p", "s:q", "x", "y", "u", "v", "z"}
    assert weights_of(one) == pytest.approx(weights_of(two), abs=1e-12)
    lists = [[["x", "y"], ["z"]]], [[[b"x", b"y"], [b"z"]]]
    assert sf.ChainCRF(prior=NORMAL).fit(lists[1], PAIR).predict(lists[0]) == PAIR


def test_names_are_plain_text_and_the_bias_has_one_of_its_own() -> None:
    model = sf.ChainCRF(prior=NORMAL).fit([[list(np.array(["a", "b"])), {np.str_("c"): 1, "d": np.str_("e")}]], PAIR)
    assert [type(name) for name in model.feature_names_] == [str] * 4
    biased = sf.ChainCRF(prior=NORMAL, bias=True).fit([[["bias"], ["x"]]], PAIR)
    assert biased.feature_names_ == ("bias", "x", "bias (of every step)")
    assert sf.ChainCRF(prior=NORMAL, bias=True).fit([[["a"], ["x"]]], PAIR).feature_names_ == ("a", "x", "bias")


# -- rare features -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["array", "sparse"])
@pytest.mark.parametrize("every", [True, False])
def test_rare_columns_of_arrays_are_left_out(kind: Any, every: Any) -> None:
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(4, 3)) * (rng.random((4, 3)) < 0.7) for _ in range(3)]
    X = [np.column_stack([x, np.zeros(4)]) for x in X]
    X[0][0, 3] = 5.0
    Y = [rng.integers(0, 2, 4).tolist() for _ in X]
    given = [sparse.csr_matrix(x) for x in X] if kind == "sparse" else X
    options: Any = {"prior": NORMAL, "all_possible_states": every, "all_possible_transitions": True}
    model = sf.ChainCRF(min_frequency=2, **options).fit(given, Y)
    alone = sf.ChainCRF(**options).fit([x[:, :3] for x in given], Y)
    assert model.n_params_ == alone.n_params_ < sf.ChainCRF(**options).fit(given, Y).n_params_
    np.testing.assert_allclose(model.state_weights_[:3], alone.state_weights_, atol=1e-9)
    assert (model.state_weights_[3] == 0.0).all()
    assert model.predict(given) == alone.predict([x[:, :3] for x in given])
    # Two labels: four weights of transitions, of which adding the same to all changes no probability.
    assert sf.ChainCRF(min_frequency=99, **options).fit(given, Y).n_params_ == 3


def test_rare_hashed_columns_are_left_out() -> None:
    X, Y = [[["a", "b"], ["a", "c"]], [["a"], ["b"]]], [["A", "B"], ["B", "A"]]
    named = sf.ChainCRF(prior=NORMAL, min_frequency=2).fit(X, Y)
    hashed = sf.ChainCRF(prior=NORMAL, min_frequency=2, hashing=2**16).fit(X, Y)
    assert hashed.n_params_ == named.n_params_
    assert hashed.score(X, Y) == pytest.approx(named.score(X, Y), rel=1e-10)


# -- weights and options -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_frequency": "2"}, "min_frequency is '2'"),
        ({"min_frequency": -1}, "min_frequency is -1"),
        ({"hashing": True}, "hashing, the number of columns, is True"),
        ({"hashing": 0}, "hashing, the number of columns, is 0"),
        ({"threads": "a"}, "threads is 'a'"),
        ({"threads": 0}, "threads is 0"),
        ({"random_state": "a"}, "random_state is 'a'"),
        ({"step_size": "a"}, "step_size is 'a'"),
        ({"step_size": [0.1, "a"]}, "step_size is"),
        ({"step_size": [0.1, np.inf]}, "step_size is"),
        ({"decay": "a"}, "decay is 'a'"),
        ({"patience": 0}, "patience is 0"),
        ({"batch_size": True}, "batch_size is True"),
        ({"n_sweeps": 0}, "n_sweeps is 0"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: Any, message: Any) -> None:
    with pytest.raises(sf.OptionError, match=message):
        sf.ChainCRF(**options)
    if not {"min_frequency", "hashing"} & options.keys():
        with pytest.raises(sf.OptionError, match=message):
            sf.GraphCRF(**options)


@pytest.mark.parametrize("value", ["x", -0.1, np.nan, None, [0.1]])
def test_a_function_of_steps_gives_numbers_that_go_up(value: Any) -> None:
    model = sf.ChainCRF(solver="sgd", step_size=lambda t: 0.1 if t == 0 else value, max_iter=3)
    with pytest.raises(sf.OptionError, match=r"step_size gives .* at update 1"):
        model.fit([[["a"], ["b"]]], PAIR)


def test_constraints_and_weights_that_make_no_sense_are_refused() -> None:
    X = [[["a"], ["b"]]]
    with pytest.raises(sf.OptionError, match="constraints is 5"):
        sf.ChainCRF(constraints=5).fit(X, PAIR)
    with pytest.raises(sf.DataError, match="sample_weight holds values that are not numbers"):
        sf.ChainCRF().fit(X, PAIR, sample_weight=["a"])
    with pytest.raises(sf.DataError, match="sample_weight holds values that are not numbers"):
        sf.GraphCRF().fit([sf.GraphExample(np.eye(2))], PAIR, sample_weight=["a"])
    with pytest.raises(sf.OptionError, match="expectations is 'no'; expected one of 'auto', 'exact'"):
        sf.GraphCRF(expectations="no")  # type: ignore[arg-type]


# -- graphs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sf.GraphExample([[1, 2], [3]]), "nodes of a GraphExample make no array"),
        (lambda: sf.GraphExample(np.eye(3), [[0, 1], [2]]), "edges of a GraphExample make no array"),
        (lambda: sf.GraphExample(np.eye(3), [[0, 1]], [[1], [2, 3]]), "edge_features of a GraphExample make no array"),
        (lambda: sf.GraphExample.grid(np.ones((0, 3))), "with at least one pixel"),
        (lambda: sf.GraphExample.grid([["a", "b"]]), "have type .*; expected numbers"),
        (lambda: sf.GraphExample.chain(np.ones(3)), r"features of a chain have shape \(3,\)"),
        (lambda: sf.GraphCRF().fit([sf.GraphExample(3.0)], [["a"]]), r"Example 0: nodes has shape \(\)"),
        (
            lambda: sf.GraphCRF().fit([sf.GraphExample(np.eye(2), [[0, 1]], [[1.0], [2.0]])], PAIR),
            "Example 0: 1 edge and 2 rows of edge_features",
        ),
        (
            lambda: sf.GraphCRF().fit([sf.GraphExample([[1e200], [1.0]])], PAIR),
            "Example 0, node 0: feature 0 is 1e.200; sums",
        ),
        (
            lambda: sf.GraphCRF().fit([sf.GraphExample.grid(np.ones((2, 3)))], [[[0, 1, 1], [0, 0, 0]]]),
            r"Example 0 of y is a list of lists; .* np\.array",
        ),
    ],
)
def test_graphs_that_cannot_be_are_named(make: Any, message: Any) -> None:
    with pytest.raises(sf.DataError, match=message):
        make()


def test_graphs_are_shown_whatever_they_hold_and_may_be_sparse() -> None:
    assert repr(sf.GraphExample(3.0)) == "GraphExample(0 nodes, 0 edges)"
    dense = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
    labels, thin = [["a", "b", "a"]], cast(Any, sparse.csr_matrix(dense))
    one = sf.GraphCRF(prior=NORMAL).fit([sf.GraphExample(dense, [[0, 1]])], labels)
    two = sf.GraphCRF(prior=NORMAL).fit([sf.GraphExample(thin, [[0, 1]])], labels)
    np.testing.assert_array_equal(one.weights_, two.weights_)


def test_a_function_of_labels_that_fails_is_an_option_that_is_wrong() -> None:
    with pytest.raises(sf.OptionError, match=r"fails at \('A', 'A'\): KeyError, 'A'"):
        sf.GraphCRF(edge_weights=lambda a, b: {}[a]).fit([sf.GraphExample(np.eye(2), [[0, 1]])], PAIR)


def test_numbers_agree_with_their_nouns() -> None:
    wide = sf.GraphExample.grid(np.ones((3, 3)))
    y = [np.arange(9).reshape(3, 3) % 2]
    with pytest.raises(sf.SizeError, match="Example 0 needs a junction tree"):
        sf.GraphCRF(inference="exact", max_cells=4).fit([wide], y)
    with pytest.raises(sf.SizeError, match="Example 0 and 1 other need a junction tree"):
        sf.GraphCRF(inference="exact", max_cells=4).fit([wide, wide], y * 2)
    model = sf.GraphCRF(prior=NORMAL, max_cells=4).fit([wide], y)
    assert model.report_.warnings[0].startswith("log-likelihood of 1 graph is")
    with pytest.warns(sf.SufficeWarning, match="1 graph is too wide for exact inference, example 0 the first"):
        model.log_partition(wide)
