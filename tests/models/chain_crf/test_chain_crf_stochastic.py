"""Stochastic fits of chain CRFs against gradients written out path by path."""

import itertools
from typing import Any

import numpy as np
import pytest

import suffice as sf
from label_paths import features, gradient, random_sequences
from suffice.errors import OptionError
from suffice.models.chain_crf.features import read_sequences
from suffice.models.chain_crf.stochastic import ChainStochastic
from suffice.models.chain_crf.structure import ChainWeightOptions, SeenLabels, structure_of
from suffice.models.conditional_field.labels import read_labels
from suffice.models.conditional_field.priors import read_prior
from suffice.models.conditional_field.stochastic import StochasticPlan

WIDTH, SIZE = 2, 2


def flat(model: Any) -> Any:
    return np.concatenate([model.state_weights_.ravel(), model.transition_weights_.ravel()])


def split(w: Any) -> Any:
    return w[: WIDTH * SIZE].reshape(WIDTH, SIZE), w[WIDTH * SIZE :].reshape(SIZE, SIZE)


def data(seed: Any = 0, count: Any = 6) -> Any:
    X, Y = random_sequences(seed, count=count, width=WIDTH, size=SIZE)
    return X, Y


def stochastic(X: Any, Y: Any, prior: Any = None, **plan: Any) -> Any:
    sequences = read_sequences(X)
    codes, labels = read_labels(Y, sequences.offsets, (0, 1))
    design = sequences.values
    seen = SeenLabels.of(design.matrix, codes, sequences.offsets, 2)
    structure = structure_of(design.space, seen, labels, ChainWeightOptions())
    return ChainStochastic(
        structure,
        sequences.reading(design.without_zeros().matrix),
        codes,
        np.ones(len(X)),
        read_prior(prior, structure.length),
        StochasticPlan(**plan),
    )


def test_one_pass_of_ascent_is_the_loop_written_out() -> None:
    """w <- w + eta_t [phi(y) - E phi] for each sequence in order, from zero, with given steps; the prior by 1 / N."""
    X, Y = data()
    steps = [0.5, 0.4, 0.3, 0.2, 0.1, 0.05]
    w = np.zeros(8)
    for x, y, step in zip(X, Y, steps, strict=True):
        w = w + step * (gradient(x, y, *split(w)) - (w / 2.0) / len(X))
    options: dict[str, Any] = {"solver": "sgd", "step_size": steps, "shuffle": False, "max_iter": 1, "labels": [0, 1]}
    model = sf.ChainCRF(prior=sf.Normal(variance=2.0), **options).fit(X, Y)
    np.testing.assert_allclose(flat(model), w, rtol=1e-12)
    again = sf.ChainCRF(prior=sf.Normal(variance=2.0), step_size=steps, labels=[0, 1]).partial_fit(X, Y)
    np.testing.assert_allclose(flat(again), w, rtol=1e-12)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_the_mean_over_all_minibatches_is_the_gradient_of_the_mean(size: Any) -> None:
    """The scale is one over the sequences of the minibatch: the mean log-likelihood, with the prior over N."""
    X, Y = data(1)
    run = stochastic(X, Y, sf.Normal(variance=3.0))
    w = np.random.default_rng(0).normal(size=8)
    batches = [np.array(chosen) for chosen in itertools.combinations(range(len(X)), size)]
    mean = np.mean([run.batch_gradient(w, chosen) for chosen in batches], axis=0)
    whole = sum(gradient(x, y, *split(w)) for x, y in zip(X, Y, strict=True))
    np.testing.assert_allclose(mean, (whole - w / 3.0) / len(X), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("expectations", ["sampled", "gibbs"])
def test_sampled_gradients_have_the_exact_mean(expectations: Any) -> None:
    X, Y = data(2)
    n = 4000
    run = stochastic(X, Y, expectations=expectations, samples=n, sweeps=20, seed=1)
    w = 0.5 * np.random.default_rng(0).normal(size=8)
    chosen = np.array([0, 2])
    found = run.batch_gradient(w, chosen)
    exact = stochastic(X, Y).batch_gradient(w, chosen)
    spread = np.zeros(8)
    for s in chosen:
        paths = list(itertools.product(range(SIZE), repeat=len(X[s])))
        each = np.array([np.concatenate([part.ravel() for part in features(X[s], path, SIZE)]) for path in paths])
        spread += np.ptp(each, axis=0) ** 2 / 4.0
    assert (np.abs(found - exact) <= 5.0 * np.sqrt(spread / n) / len(chosen) + 1e-12).all()
    assert not np.allclose(found, exact, atol=1e-12)


def test_gibbs_refuses_what_it_cannot_pass() -> None:
    X, Y = data(2)
    model = sf.ChainCRF(solver="sgd", expectations="gibbs", constraints=[(None, 0)], labels=[0, 1], max_iter=1)
    kept = [s for s, y in enumerate(Y) if y[0] != 0]
    with pytest.raises(OptionError, match="Gibbs"):
        model.fit([X[s] for s in kept], [Y[s] for s in kept])


def test_adam_is_the_recursion_written_out() -> None:
    X, Y = data(3)
    w, first, second = np.zeros(8), np.zeros(8), np.zeros(8)
    for t, (x, y) in enumerate(zip(X, Y, strict=True), start=1):
        slope = gradient(x, y, *split(w))
        first, second = 0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2
        w = w + 0.05 * (first / (1.0 - 0.9**t)) / (np.sqrt(second / (1.0 - 0.999**t)) + 1e-8)
    model = sf.ChainCRF(solver="adam", step_size=0.05, shuffle=False, max_iter=1, labels=[0, 1]).fit(X, Y)
    np.testing.assert_allclose(flat(model), w, rtol=1e-9, atol=1e-12)


def test_averages_are_means_of_all_updates() -> None:
    X, Y = data(4)
    w, seen = np.zeros(8), []
    for _ in range(2):
        for x, y in zip(X, Y, strict=True):
            w = w + 0.2 * gradient(x, y, *split(w))
            seen.append(w)
    options: dict[str, Any] = {
        "solver": "sgd",
        "step_size": 0.2,
        "shuffle": False,
        "max_iter": 2,
        "labels": [0, 1],
        "average": True,
    }
    model = sf.ChainCRF(**options).fit(X, Y)
    assert model.n_iter_ == 2
    np.testing.assert_allclose(flat(model), np.mean(seen, axis=0), rtol=1e-10, atol=1e-13)


def test_the_perceptron_is_the_update_written_out() -> None:
    X, Y = data(5)
    w, seen = np.zeros(8), []
    for _ in range(3):
        for x, y in zip(X, Y, strict=True):
            paths = list(itertools.product(range(SIZE), repeat=len(x)))
            vectors = [np.concatenate([part.ravel() for part in features(x, path, SIZE)]) for path in paths]
            scores = [float(vector @ w) for vector in vectors]
            # Of equal paths the one whose labels come first, compared from the end.
            best = max(range(len(paths)), key=lambda p: (scores[p], tuple(-label for label in reversed(paths[p]))))
            truth = np.concatenate([part.ravel() for part in features(x, y, SIZE)])
            w = w + truth - vectors[best]
            seen.append(w)
    model = sf.ChainCRF(solver="perceptron", shuffle=False, max_iter=3, labels=[0, 1]).fit(X, Y)
    np.testing.assert_allclose(flat(model), np.mean(seen, axis=0), rtol=1e-9, atol=1e-12)
    assert not model.converged_
    with pytest.raises(OptionError, match="perceptron"):
        sf.ChainCRF(solver="perceptron", prior=sf.Normal(variance=1.0))


@pytest.mark.parametrize("solver", ["sgd", "adam"])
def test_stochastic_solvers_come_near_the_optimum(solver: Any) -> None:
    X, Y = data(6, count=20)
    prior = sf.Normal(variance=1.0)
    best = sf.ChainCRF(prior=prior, tolerance=1e-9).fit(X, Y).report_.objective
    options: dict[str, Any] = {
        "step_size": 0.3,
        "decay": 0.6,
        "average": True,
        "batch_size": 2,
        "random_state": 0,
        "max_iter": 40,
    }
    model = sf.ChainCRF(prior=prior, solver=solver, **options).fit(X, Y)
    assert best - model.report_.objective < 0.02 * abs(best)
    gap: Any = model.report_.certificate.value_gap
    assert gap * len(X) >= best - model.report_.objective


def test_seeds_repeat_and_leave_the_global_generator_alone() -> None:
    X, Y = data(7)
    before: Any = np.random.get_state()
    options: dict[str, Any] = {"solver": "sgd", "max_iter": 2, "expectations": "sampled", "n_samples": 2}
    found = [sf.ChainCRF(random_state=seed, **options).fit(X, Y).weights_ for seed in (0, 0, 1)]
    np.testing.assert_array_equal(found[0], found[1])
    assert not np.array_equal(found[0], found[2])
    after: Any = np.random.get_state()
    np.testing.assert_array_equal(before[1], after[1])


def test_partial_fit_takes_new_features_and_labels() -> None:
    model = sf.ChainCRF(step_size=0.5).partial_fit([[["a"], ["b"]]], [["X", "Y"]])
    first = dict(zip(model.weight_names_, model.weights_, strict=True))
    model.partial_fit([[["a"], ["c"]]], [["X", "Z"]])
    names = model.weight_names_
    assert model.labels_ == ("X", "Y", "Z")
    assert ("state", "c", "Z") in names
    assert set(first) <= set(names)
    assert model.predict([[["a"], ["c"]]]) == [["X", "Z"]]


def test_partial_fit_goes_on_with_its_schedule() -> None:
    X, Y = data(8)
    steps = [0.5 / (1 + t) for t in range(6)]
    whole = sf.ChainCRF(step_size=steps, labels=[0, 1]).partial_fit(X, Y)
    parts = sf.ChainCRF(step_size=steps, labels=[0, 1]).partial_fit(X[:2], Y[:2]).partial_fit(X[2:], Y[2:])
    np.testing.assert_allclose(parts.weights_, whole.weights_, rtol=1e-12)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"expectations": "exactly"}, "expectations"),
        ({"batch_size": 0}, "batch_size"),
        ({"n_samples": 0}, "n_samples"),
        ({"n_sweeps": 1.5}, "n_sweeps"),
        ({"solver": "magic"}, "solver"),
    ],
)
def test_options_that_make_no_sense_are_refused(option: Any, message: Any) -> None:
    with pytest.raises(OptionError, match=message):
        sf.ChainCRF(**option)
