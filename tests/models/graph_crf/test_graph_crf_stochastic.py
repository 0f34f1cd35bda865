"""Stochastic ascent on graphs: the very steps, the scaling of minibatches, sampled expectations."""

import itertools
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import suffice as sf
from field_parts import field_ascent, field_objective
from graph_labelings import Enumerated, features_of
from suffice.models.graph_crf.stochastic import GraphStochastic

CYCLE = [(0, 1), (1, 2), (3, 2), (0, 3)]


def data_of(seed: Any, count: Any = 5, labels: Any = 2) -> Any:
    rng = np.random.default_rng(seed)
    X = [
        sf.GraphExample(rng.normal(size=(4, 2)), CYCLE[: 3 + i % 2], rng.normal(size=(3 + i % 2, 1)))
        for i in range(count)
    ]
    return X, [rng.integers(0, labels, 4) for _ in X]


def expected_of(weights: Any, example: Any, labels: Any = 2) -> Any:
    """The expected features by enumeration, full weights."""
    tables = {"nodes": weights[: 2 * labels].reshape(labels, 2)}
    tables["edges"] = weights[2 * labels :].reshape(labels, labels, 1)
    law = Enumerated(tables, example, labels)
    return law.probabilities @ np.array([features_of(example, codes, labels) for codes in law.codes])


def test_one_pass_takes_the_steps_that_the_formula_says() -> None:
    X, y = data_of(0)
    steps = [0.5, 0.25, 0.125]
    model = sf.GraphCRF(solver="sgd", step_size=steps, batch_size=2, shuffle=False, max_iter=1).fit(X, y)
    weights = np.zeros(8)
    for eta, batch in zip(steps, ([0, 1], [2, 3], [4]), strict=True):
        mean = np.mean([features_of(X[i], y[i], 2) - expected_of(weights, X[i]) for i in batch], axis=0)
        weights = weights + eta * mean
    assert_allclose(model.weights_, weights, atol=1e-12)
    assert not model.converged_


def test_steps_go_up() -> None:
    X, y = data_of(1)
    model = sf.GraphCRF(solver="sgd", step_size=1e-3, batch_size=5, shuffle=False, max_iter=1).fit(X, y)
    before, after = model.history_
    slope = np.mean([features_of(x, c, 2) - expected_of(np.zeros(8), x) for x, c in zip(X, y, strict=True)], axis=0)
    assert after > before
    assert (after - before) / len(X) == pytest.approx(1e-3 * slope @ slope, rel=1e-2)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_the_mean_over_all_minibatches_is_the_gradient_of_the_mean(size: Any) -> None:
    X, y = data_of(2)
    model = sf.GraphCRF(sf.Normal(variance=0.3), solver="sgd", batch_size=size)
    objective, run = field_objective(model, X, y), field_ascent(model, X, y)
    weights = np.random.default_rng(0).normal(size=8)
    batches = [np.array(batch) for batch in itertools.combinations(range(5), size)]
    mean = np.mean([run.batch_gradient(weights, batch) for batch in batches], axis=0)
    assert_allclose(mean, objective.smooth(weights)[1] / 5, atol=1e-12)


def test_a_step_with_given_draws_is_exact(monkeypatch: Any) -> None:
    X, y = data_of(3, count=3)
    draws = np.random.default_rng(4).integers(0, 2, (6, 12))
    monkeypatch.setattr(GraphStochastic, "draws", lambda self, part, x: draws)
    prior = sf.Normal(mean=0.2, variance=0.5)
    options: Any = {"solver": "sgd", "expectations": "gibbs", "batch_size": 3, "shuffle": False, "max_iter": 1}
    model = sf.GraphCRF(prior, step_size=0.3, **options).fit(X, y)
    found = np.zeros(8)
    for i, (example, codes) in enumerate(zip(X, y, strict=True)):
        drawn = np.mean([features_of(example, draw[4 * i : 4 * i + 4], 2) for draw in draws], axis=0)
        found += features_of(example, codes, 2) - drawn
    # The prior belongs to the sum over the three examples: its slope at 0, mean / variance, counts a third.
    expected = 0.3 * (found / 3 + (0.2 / 0.5) / 3)
    assert_allclose(model.weights_, expected, atol=1e-13)


@pytest.mark.parametrize("kind", ["gibbs", "sampled"])
def test_sampled_gradients_agree_with_exact_ones(kind: Any) -> None:
    X, y = data_of(5, count=3)
    model = sf.GraphCRF(solver="sgd", expectations=kind, n_samples=4000, n_sweeps=30, random_state=0)
    run = field_ascent(model, X, y)
    weights = np.random.default_rng(1).normal(size=8) * 0.5
    chosen = np.arange(3)
    drawn = run.draws(run.part(chosen), weights)
    assert drawn.shape == (4000, 12)
    for i, example in enumerate(X):
        rows = np.array([features_of(example, draw[4 * i : 4 * i + 4], 2) for draw in drawn])
        error = rows.std(axis=0) / np.sqrt(4000)
        assert (np.abs(rows.mean(axis=0) - expected_of(weights, example)) < 5 * error + 1e-9).all()


def test_ascent_with_gibbs_sampling_comes_near_the_optimum() -> None:
    X, y = data_of(6, count=12)
    best = sf.GraphCRF(sf.Normal(variance=0.5)).fit(X, y)
    model = sf.GraphCRF(
        sf.Normal(variance=0.5),
        solver="sgd",
        expectations="gibbs",
        batch_size=3,
        step_size=0.3,
        decay=0.6,
        average=True,
        max_iter=60,
        n_samples=30,
        random_state=0,
    ).fit(X, y)
    assert 0.0 <= best.report_.objective - model.report_.objective < 0.05
    assert (model.report_.certificate.value_gap or 0.0) >= (best.report_.objective - model.report_.objective) / 12


@pytest.mark.parametrize(
    "options", [{"solver": "sgd"}, {"solver": "adam"}, {"inference": "gibbs", "max_cells": 1, "step_size": 0.1}]
)
def test_equal_seeds_give_equal_bits_and_the_global_generator_is_left_alone(options: Any) -> None:
    X, y = data_of(7)
    np.random.seed(3)
    before = np.random.get_state(legacy=False)
    one, two = (sf.GraphCRF(random_state=0, max_iter=3, **options).fit(X, y) for _ in range(2))
    other = sf.GraphCRF(random_state=1, max_iter=3, **options).fit(X, y)
    assert (one.weights_ == two.weights_).all()
    assert (one.weights_ != other.weights_).any()
    np.testing.assert_equal(np.random.get_state(legacy=False), before)


def test_the_perceptron_separates_what_can_be_separated() -> None:
    rng = np.random.default_rng(8)
    X = [sf.GraphExample(rng.normal(size=(4, 2)), CYCLE) for _ in range(10)]
    y = [(example.nodes[:, 0] > 0).astype(int) for example in X]
    model = sf.GraphCRF(solver="perceptron", max_iter=100, random_state=0).fit(X, y)
    assert model.accuracy(X, y) == 1.0
    assert model.report_.estimate == "averaged perceptron"
    with pytest.raises(sf.OptionError, match="perceptron"):
        sf.GraphCRF(sf.Normal(variance=1.0), solver="perceptron")


def test_partial_fit_goes_on_from_the_last_update() -> None:
    X, y = data_of(9, count=4)
    whole = sf.GraphCRF(solver="sgd", step_size=[0.4, 0.3, 0.2, 0.1], shuffle=False, max_iter=1).fit(X, y)
    parts = sf.GraphCRF(solver="sgd", step_size=[0.4, 0.3, 0.2, 0.1], labels=[0, 1])
    parts.partial_fit(X[:1], y[:1]).partial_fit(X[1:3], y[1:3]).partial_fit(X[3:], y[3:])
    assert_allclose(parts.weights_, whole.weights_, atol=1e-14)
    with pytest.raises(sf.UnknownStateError, match="Example 0 of y, node 2: the label 7 is unknown"):
        parts.partial_fit(X[:1], [[0, 0, 7, 1]])


@pytest.mark.parametrize(
    "options",
    [{"solver": "lbfgs"}, {"solver": "sgd", "step_size": 0.2, "random_state": 0, "expectations": "gibbs"}],
    ids=["lbfgs", "sgd"],
)
def test_a_stopped_fit_goes_on_from_its_checkpoint(tmp_path: Any, options: Any) -> None:
    X, y = data_of(10)
    options = {**options, "tolerance": 1e-9}
    prior = sf.Normal(variance=1.0)
    path = tmp_path / "fit.suffice"
    whole = sf.GraphCRF(prior, max_iter=6, callback=lambda state: state.iteration == 6, **options).fit(X, y)
    sf.GraphCRF(prior, max_iter=6, callback=lambda state: state.iteration == 3, checkpoint=path, **options).fit(X, y)
    assert path.exists()
    rest = sf.GraphCRF(prior, max_iter=6, callback=lambda s: s.iteration == 6, checkpoint=path, **options).fit(X, y)
    assert (rest.weights_ == whole.weights_).all()
    assert rest.n_iter_ == whole.n_iter_ == 6
    with pytest.raises(sf.OptionError, match="another fit"):
        sf.GraphCRF(prior, checkpoint=path, **options).fit(X[:4], y[:4])
