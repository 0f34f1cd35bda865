"""Answers: sequences without a path, marginals by label, chunks, plain counts."""

import copy
import itertools
import pickle
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.models.conditional_field.evaluation import evaluate
from suffice.models.conditional_field.marginals import Marginals

NORMAL = sf.Normal(variance=1.0)
LABELS = ("A", "B", "C")


# -- sequences without a path ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def strict() -> Any:
    return sf.ChainCRF(prior=NORMAL, constraints="bioes").fit([[{"w": "a"}, {"w": "b"}]], [["B-X", "E-X"]])


@pytest.mark.parametrize(
    "ask",
    [
        lambda model, X: model.predict(X),
        lambda model, X: model.predict_marginals(X),
        lambda model, X: model.predict_k_best(X, 2),
        lambda model, X: model.sample_labels(X, 2),
        lambda model, X: model.score_samples(X, [["B-X", "E-X"], ["B-X"]]),
        lambda model, X: model.evaluate(X, [["B-X", "E-X"], ["B-X"]]),
    ],
)
def test_a_sequence_that_has_no_path_is_named(strict: Any, ask: Any) -> None:
    with pytest.raises(sf.DataError, match="Sequence 1 of X has 1 step, and the constraints allow no labels"):
        ask(strict, [[{"w": "a"}, {"w": "b"}], [{"w": "a"}]])


@pytest.mark.parametrize("seed", range(10))
def test_lengths_that_have_a_path_are_those_that_enumeration_finds(seed: Any) -> None:
    rng = np.random.default_rng(seed)
    forbidden: list[Any] = [(a, b) for a in LABELS for b in LABELS if rng.random() < 0.55]
    forbidden += [(None, label) for label in LABELS[:2] if rng.random() < 0.5]
    forbidden += [(label, None) for label in LABELS[1:] if rng.random() < 0.5]
    model = sf.ChainCRF(prior=NORMAL, labels=LABELS, constraints=forbidden)

    def fine(path: Any) -> bool:
        whole = (None, *path, None)
        return not any(pair in forbidden for pair in itertools.pairwise(whole))

    lengths = {n for n in range(1, 8) if any(map(fine, itertools.product(LABELS, repeat=n)))}
    if not lengths:
        return
    first = min(lengths)
    path = next(path for path in itertools.product(LABELS, repeat=first) if fine(path))
    model.fit([np.ones((first, 1))], [list(path)])
    for n in range(1, 8):
        if n in lengths:
            assert fine(model.predict([np.ones((n, 1))])[0])
        else:
            with pytest.raises(sf.DataError, match="allow no labels"):
                model.predict([np.ones((n, 1))])


# -- marginals by label ------------------------------------------------------------------------------------------------


def marginals() -> Any:
    return Marginals(np.arange(12.0).reshape(4, 3), LABELS)


@pytest.mark.parametrize(
    "key",
    [1, slice(1, 3), [0, 2], np.array([True, False, True, False]), (slice(None), slice(None)), (..., slice(0, 3))],
)
def test_a_part_with_all_columns_is_read_by_label(key: Any) -> None:
    p = marginals()
    np.testing.assert_array_equal(p[key]["C"], np.asarray(p)[key][..., 2])


@pytest.mark.parametrize(
    "part",
    [
        lambda p: p[:, ::-1],
        lambda p: p[:, 1:],
        lambda p: p[:, :2],
        lambda p: p[:, [1, 0, 2]],
        lambda p: p[0][1:],
        lambda p: p.T,
        lambda p: p[:3].T,
        lambda p: p.sum(axis=1),
        lambda p: np.sort(p, axis=1),
        lambda p: p > 1.0,
    ],
)
def test_a_part_that_has_lost_its_columns_has_no_labels(part: Any) -> None:
    found = part(marginals())
    assert found.labels == ()
    with pytest.raises(KeyError, match="no labels"):
        found["A"]


def test_marginals_keep_their_labels_in_pickles_and_name_unknown_ones() -> None:
    p = pickle.loads(pickle.dumps(marginals()))
    assert p.labels == LABELS
    np.testing.assert_array_equal(p["B"], [1.0, 4.0, 7.0, 10.0])
    assert p[2]["B"] == 7.0
    assert dict(p[0].items()) == {"A": 0.0, "B": 1.0, "C": 2.0}
    with pytest.raises(KeyError, match="is no label"):
        p["D"]


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
def test_copies_of_marginals_keep_their_labels(duplicate: Any) -> None:
    p = marginals()
    q = duplicate(p)
    q[0] = -1.0
    np.testing.assert_array_equal(q["B"], [-1.0, 4.0, 7.0, 10.0])
    np.testing.assert_array_equal(p["B"], [1.0, 4.0, 7.0, 10.0])
    assert duplicate(p[:, 1:]).labels == ()


def test_tuples_of_numbers_are_places_and_of_reads_any_label() -> None:
    p = Marginals(np.arange(6.0).reshape(3, 2), ((0, 1), (1, 0)))
    assert p[0, 1] == 1.0
    assert p[1][0] == 2.0
    np.testing.assert_array_equal(p.of((1, 0)), [1.0, 3.0, 5.0])
    q = Marginals(np.arange(6.0).reshape(3, 2), (("x", 1), True))
    np.testing.assert_array_equal(q["x", 1], [0.0, 2.0, 4.0])
    np.testing.assert_array_equal(q.of(True), [1.0, 3.0, 5.0])
    with pytest.raises(KeyError, match="is no label"):
        q.of(1)


# -- counts that make no sense -----------------------------------------------------------------------------------------


def test_counts_that_make_no_sense_are_refused(strict: Any) -> None:
    X = [[{"w": "a"}, {"w": "b"}]]
    graph = sf.GraphCRF(prior=NORMAL).fit([sf.GraphExample(np.eye(2))], [["a", "b"]])
    wrong: Any
    for wrong in (True, 0, 1.5, "2"):
        with pytest.raises(sf.OptionError, match=r"k is .*; expected a whole number of at least 1"):
            strict.predict_k_best(X, wrong)
    for wrong in (True, -1, 1.5):
        with pytest.raises(sf.OptionError, match=r"n is .*; expected a whole number of at least 0"):
            strict.sample_labels(X, wrong)
        with pytest.raises(sf.OptionError, match=r"n is .*; expected a whole number of at least 0"):
            graph.sample_labels([sf.GraphExample(np.eye(2))], wrong)
        with pytest.raises(sf.OptionError, match=r"n is .*; expected a whole number of at least 0"):
            strict.top_features(wrong)
    with pytest.raises(sf.OptionError, match="random_state is 'a'"):
        strict.sample_labels(X, 1, random_state="a")
    assert strict.top_features(0) == []


# -- chunks ------------------------------------------------------------------------------------------------------------


def test_chunk_labels_without_types_are_chunks() -> None:
    truth = [["B", "I", "O", "B", "O"], ["O", "B"]]
    guess = [["B", "I", "O", "O", "B"], ["O", "B"]]
    found = evaluate(truth, guess)
    assert found.all_spans == (2 / 3, 2 / 3, 2 / 3, 3)
    assert found.span_f1 == pytest.approx(2 / 3)


@pytest.mark.parametrize("labels", [["B-x", "E"], ["E", "S"], ["N", "V"], [1, 0]])
def test_labels_that_are_no_chunks_have_no_spans(labels: Any) -> None:
    assert evaluate([labels], [labels]).spans is None


def test_labels_of_an_evaluation_are_told_apart_by_type() -> None:
    found = evaluate([[True, 1, 0]], [[1, 1, False]])
    assert found.accuracy == pytest.approx(1 / 3)
    assert sum(rates.support for rates in found.labels.values()) == 3
    assert len(found.labels) == 4
