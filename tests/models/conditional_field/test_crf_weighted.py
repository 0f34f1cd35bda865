"""Weights of sequences and examples are repetitions, also in stochastic fits; calls of partial_fit go on."""

import itertools
from typing import Any

import numpy as np
import pytest
from scipy import optimize

import suffice as sf
from field_parts import field_ascent
from graph_labelings import Enumerated, features_of
from label_paths import gradient, log_likelihood, random_sequences

SIZE = WIDTH = 2
REPEATS = np.array([5.0, 1.0, 1.0, 1.0, 1.0, 3.0])
NORMAL = sf.Normal(variance=1.0)


def chains() -> Any:
    rng = np.random.default_rng(1)
    return [rng.normal(size=(3, 2)) for _ in range(6)], [rng.integers(0, 2, 3).tolist() for _ in range(6)]


def split(w: Any) -> Any:
    return w[: WIDTH * SIZE].reshape(WIDTH, SIZE), w[WIDTH * SIZE :].reshape(SIZE, SIZE)


def optimum(X: Any, Y: Any, weights: Any) -> Any:
    """The maximum of the weighted log-likelihood with a Normal prior, path by path, by a generic optimiser."""

    def loss(w: Any) -> Any:
        pairs = zip(weights, X, Y, strict=True)
        return 0.5 * w @ w - sum(share * log_likelihood([x], [y], *split(w)) for share, x, y in pairs)

    return optimize.minimize(loss, np.zeros(8), tol=1e-10).x


@pytest.mark.parametrize("batch", [1, 2])
def test_stochastic_fits_follow_the_weights(batch: Any) -> None:
    X, Y = chains()
    best, unweighted = optimum(X, Y, REPEATS), optimum(X, Y, np.ones(6))
    assert np.abs(best - unweighted).max() > 0.2
    options: Any = {"step_size": 0.3, "decay": 0.6, "average": True, "random_state": 0, "batch_size": batch}
    model = sf.ChainCRF(prior=NORMAL, solver="sgd", max_iter=100, labels=[0, 1], **options)
    model.fit(X, Y, sample_weight=REPEATS)
    assert np.linalg.norm(model.weights_ - best) < 0.3 * np.linalg.norm(model.weights_ - unweighted)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_the_mean_over_minibatches_is_the_gradient_of_the_weighted_mean(size: Any) -> None:
    """(1 / |D'|) sum over D' of w_n / mean(w) [phi - E phi], averaged over all D', less the prior's share."""
    X, Y = chains()
    model = sf.ChainCRF(prior=sf.Normal(variance=3.0), labels=[0, 1])
    run = field_ascent(model, X, Y, REPEATS)
    w = np.random.default_rng(0).normal(size=8)
    batches = [np.array(chosen) for chosen in itertools.combinations(range(6), size)]
    mean = np.mean([run.batch_gradient(w, chosen) for chosen in batches], axis=0)
    whole = sum(share * gradient(x, y, *split(w)) for share, x, y in zip(REPEATS, X, Y, strict=True))
    np.testing.assert_allclose(mean, (whole - w / 3.0) / REPEATS.sum(), rtol=1e-10, atol=1e-12)


def test_the_mean_over_examples_of_graphs_is_the_gradient_of_the_weighted_mean() -> None:
    rng = np.random.default_rng(2)
    X = [sf.GraphExample(rng.normal(size=(3, 2)), [[0, 1], [1, 2], [0, 2]]) for _ in range(4)]
    y = [rng.integers(0, 2, 3) for _ in X]
    shares = np.array([4.0, 1.0, 0.5, 2.0])
    model = sf.GraphCRF(prior=sf.Normal(variance=0.7), labels=[0, 1])
    run = field_ascent(model, X, y, shares)
    w = rng.normal(size=8)
    tables = {"nodes": w[:4].reshape(2, 2), "edges": w[4:].reshape(2, 2, 1)}
    whole = -w / 0.7
    for share, example, codes in zip(shares, X, y, strict=True):
        law = Enumerated(tables, example, 2)
        expected = law.probabilities @ np.array([features_of(example, row, 2) for row in law.codes])
        whole = whole + share * (features_of(example, codes, 2) - expected)
    mean = np.mean([run.batch_gradient(w, np.array([n])) for n in range(4)], axis=0)
    np.testing.assert_allclose(mean, whole / shares.sum(), rtol=1e-10, atol=1e-12)


def test_a_weight_of_partial_fit_is_the_length_of_the_step() -> None:
    X, Y = chains()
    one = sf.ChainCRF(labels=[0, 1], step_size=0.1).partial_fit(X[:1], Y[:1])
    seven = sf.ChainCRF(labels=[0, 1], step_size=0.1).partial_fit(X[:1], Y[:1], sample_weight=[7.0])
    np.testing.assert_allclose(seven.weights_, 7.0 * one.weights_, rtol=1e-12)


# -- nothing is left of what has no weight -----------------------------------------------------------------------------


def test_a_sequence_of_weight_0_leaves_nothing_behind() -> None:
    X, Y = [[{"a": 1}, {"c": 1}], [{"b": 1}, {"a": 1}]], [["A", "A"], ["B", "A"]]
    alone = sf.ChainCRF(prior=NORMAL).fit(X[:1], Y[:1])
    both = sf.ChainCRF(prior=NORMAL).fit(X, Y, sample_weight=[1.0, 0.0])
    assert both.labels_ == alone.labels_ == ("A",)
    assert both.weight_names_ == alone.weight_names_
    np.testing.assert_allclose(both.weights_, alone.weights_, atol=1e-12)
    assert both.report_.rows == 1
    with pytest.raises(sf.DataError, match="Sequence 1: X has 2 steps and y has 1 label"):
        sf.ChainCRF().fit(X, [["A", "A"], ["B"]], sample_weight=[1.0, 0.0])


def test_an_example_of_weight_0_leaves_nothing_behind() -> None:
    rng = np.random.default_rng(3)
    X = [sf.GraphExample(rng.normal(size=(3, 2)), [[0, 1], [1, 2]]) for _ in range(3)]
    y = [["a", "b", "a"], ["c", "a", "b"], ["b", "b", "a"]]
    both = sf.GraphCRF(prior=NORMAL).fit(X, y, sample_weight=[2.0, 0.0, 1.0])
    alone = sf.GraphCRF(prior=NORMAL).fit([X[0], X[2]], [y[0], y[2]], sample_weight=[2.0, 1.0])
    assert both.labels_ == ("a", "b")
    np.testing.assert_allclose(both.weights_, alone.weights_, atol=1e-12)


# -- calls of partial_fit ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [{"solver": "adam", "step_size": 0.01}, {"average": True}, {"solver": "perceptron"}]
)
@pytest.mark.parametrize("written", [False, True])
def test_six_calls_are_one_pass(options: Any, written: Any, tmp_path: Any) -> None:
    X, Y = random_sequences(4, width=WIDTH, size=SIZE)
    whole = sf.ChainCRF(labels=[0, 1], **options).partial_fit(X, Y)
    parts = sf.ChainCRF(labels=[0, 1], **options)
    for x, y in zip(X, Y, strict=True):
        parts.partial_fit([x], [y])
        if written:
            parts.write(tmp_path / "model.json")
            parts = sf.read(tmp_path / "model.json")
    np.testing.assert_allclose(parts.weights_, whole.weights_, atol=1e-13)


@pytest.mark.parametrize(
    "options", [{"solver": "adam", "step_size": 0.01}, {"average": True}, {"solver": "perceptron"}]
)
def test_six_calls_with_graphs_are_one_pass(options: Any) -> None:
    rng = np.random.default_rng(5)
    X = [sf.GraphExample(rng.normal(size=(3, 2)), [[0, 1], [1, 2]]) for _ in range(6)]
    y = [rng.integers(0, 2, 3) for _ in X]
    whole = sf.GraphCRF(labels=[0, 1], **options).partial_fit(X, y)
    parts = sf.GraphCRF(labels=[0, 1], **options)
    for example, codes in zip(X, y, strict=True):
        parts.partial_fit([example], [codes])
    np.testing.assert_allclose(parts.weights_, whole.weights_, atol=1e-13)


def test_moments_and_means_move_with_new_features() -> None:
    """Adam by the book over two calls, the second of which brings a feature and a label that the first had not."""
    options: Any = {"solver": "adam", "step_size": 0.1, "all_possible_states": True, "all_possible_transitions": True}
    both = sf.ChainCRF(labels=["x", "y"], **options).partial_fit([[["a"], ["b"]]], [["x", "x"]])
    both.partial_fit([[["a"], ["c"]]], [["x", "y"]])
    w, first, second = np.zeros((3, 2)), np.zeros((3, 2)), np.zeros((3, 2))
    v, first_v, second_v = np.zeros((2, 2)), np.zeros((2, 2)), np.zeros((2, 2))
    for t, (columns, labels) in enumerate([((0, 1), (0, 0)), ((0, 2), (0, 1))], start=1):
        slope = gradient(np.eye(3)[list(columns)], labels, w, v)
        parts = slope[:6].reshape(3, 2), slope[6:].reshape(2, 2)
        first, first_v = 0.9 * first + 0.1 * parts[0], 0.9 * first_v + 0.1 * parts[1]
        second, second_v = 0.999 * second + 0.001 * parts[0] ** 2, 0.999 * second_v + 0.001 * parts[1] ** 2
        a, b = 1 - 0.9**t, 1 - 0.999**t
        w = w + 0.1 * (first / a) / (np.sqrt(second / b) + 1e-8)
        v = v + 0.1 * (first_v / a) / (np.sqrt(second_v / b) + 1e-8)
    np.testing.assert_allclose(both.state_weights_, w, atol=1e-12)
    np.testing.assert_allclose(both.transition_weights_, v, atol=1e-12)


def test_labels_of_several_calls_are_told_apart_by_type() -> None:
    model = sf.ChainCRF().partial_fit([[["a"], ["b"]]], [[1, 0]])
    model.partial_fit([[["a"], ["c"]]], [[1, True]])
    assert [(type(label), label) for label in model.labels_] == [(int, 0), (int, 1), (bool, True)]
    found = model.evaluate([[["a"], ["c"]]], [[1, True]])
    assert found.accuracy == 1.0
    assert sum(rates.support for rates in found.labels.values()) == 2


# -- chains of samples -------------------------------------------------------------------------------------------------


def test_gibbs_chains_go_on_from_update_to_update() -> None:
    """All labels given are 0, and steps of 1e-9 leave the weights where both labels are as probable by symmetry.

    Chains that began anew at each update would hardly ever leave the labels given: one sweep flips a label between two
    equal neighbours with probability 1 / (1 + e^6).
    """
    X, Y = [np.ones((20, 1))], [[0] * 20]
    options: Any = {"expectations": "gibbs", "n_samples": 200, "n_sweeps": 4, "step_size": 1e-9, "random_state": 0}
    model = sf.ChainCRF(labels=[0, 1], solver="sgd", **options)
    run = field_ascent(model, X, Y)
    memory = run.memory_at(np.array([0.0, 0.0, 1.5, -1.5, -1.5, 1.5]), 0)
    shares = []
    for epoch in range(120):
        memory = run.epoch(memory)
        if epoch >= 40:
            shares.append(memory["chains"].mean())
    # 200 chains, each correlated with itself over tens of epochs: a standard error below 0.02.
    assert abs(np.mean(shares) - 0.5) < 0.08


def test_sampled_and_gibbs_fits_end_where_exact_ones_do() -> None:
    X, Y = random_sequences(6, count=12, width=WIDTH, size=SIZE)
    options: Any = {"step_size": 0.2, "decay": 0.6, "batch_size": 3, "average": True, "random_state": 0}
    exact = sf.ChainCRF(prior=NORMAL, solver="sgd", max_iter=25, **options).fit(X, Y)
    for kind in ("sampled", "gibbs"):
        drawn = sf.ChainCRF(prior=NORMAL, solver="sgd", max_iter=25, expectations=kind, n_samples=30, **options)
        assert np.abs(drawn.fit(X, Y).weights_ - exact.weights_).max() < 0.1
