"""Fits of chain CRFs against objectives written out path by path, and generic optimisers."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

import suffice as sf
from label_paths import all_paths, gradient, log_likelihood, random_sequences
from suffice.errors import ConvergenceWarning, OptionError
from suffice.kernels.choice import force


def flat(model: Any) -> Any:
    return np.concatenate([model.state_weights_.ravel(), model.transition_weights_.ravel()])


def split(w: Any, width: Any, size: Any) -> Any:
    return w[: width * size].reshape(width, size), w[width * size :].reshape(size, size)


def optimum(X: Any, Y: Any, width: Any, size: Any, penalty: Any, slope: Any) -> Any:
    """The maximum of the written-out objective by a generic optimiser."""

    def loss(w: Any) -> Any:
        states, transitions = split(w, width, size)
        value = log_likelihood(X, Y, states, transitions) - penalty(w)
        found = sum(gradient(x, y, states, transitions) for x, y in zip(X, Y, strict=True)) - slope(w)
        return -value, -found

    found = minimize(loss, np.zeros(width * size + size**2), jac=True, method="BFGS", options={"gtol": 1e-9})
    return found.x, -found.fun


@pytest.mark.parametrize("path", ["numpy", "compiled"])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_posterior_mode_is_that_of_the_objective_written_out(path: Any, seed: Any) -> None:
    X, Y = random_sequences(seed)
    expected, value = optimum(X, Y, 3, 3, lambda w: w @ w / 20.0, lambda w: w / 10.0)
    with force(path):
        model = sf.ChainCRF(prior=sf.Normal(variance=10.0), labels=[0, 1, 2], tolerance=1e-10).fit(X, Y)
    np.testing.assert_allclose(flat(model), expected, atol=1e-6)
    assert model.report_.objective == pytest.approx(value, rel=1e-12)
    assert model.report_.log_likelihood == pytest.approx(
        log_likelihood(X, Y, model.state_weights_, model.transition_weights_), rel=1e-12
    )
    assert model.converged_
    assert model.gradient_norm_ < 1e-10


def test_the_prior_has_a_mean() -> None:
    X, Y = random_sequences(3)
    expected, _ = optimum(X, Y, 3, 3, lambda w: (w - 0.5) @ (w - 0.5) / 4.0, lambda w: (w - 0.5) / 2.0)
    model = sf.ChainCRF(prior=sf.Normal(mean=0.5, variance=2.0), labels=[0, 1, 2], tolerance=1e-9).fit(X, Y)
    np.testing.assert_allclose(flat(model), expected, atol=1e-6)


def test_a_variance_for_each_weight() -> None:
    X, Y = random_sequences(3)
    variances = np.linspace(0.5, 3.0, 18)
    expected, _ = optimum(X, Y, 3, 3, lambda w: (w**2 / variances).sum() / 2.0, lambda w: w / variances)
    model = sf.ChainCRF(prior=sf.Normal(mean=0.0, variance=variances), labels=[0, 1, 2], tolerance=1e-9).fit(X, Y)
    np.testing.assert_allclose(flat(model), expected, atol=1e-6)


@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_laplace_and_elastic_priors_meet_the_optimality_conditions(ridge: Any) -> None:
    """At the optimum the slope of the smooth part is rate * sign(w), or within the rate where w is 0."""
    X, Y = random_sequences(4, count=8)
    prior = sf.Laplace(scale=0.8) if ridge == 0.0 else (sf.Laplace(scale=0.8), sf.Normal(variance=1.0 / ridge))
    model = sf.ChainCRF(prior=prior, labels=[0, 1, 2], tolerance=1e-9).fit(X, Y)
    w = flat(model)
    slope = sum(gradient(x, y, *split(w, 3, 3)) for x, y in zip(X, Y, strict=True)) - ridge * w
    rate = 1.0 / 0.8
    assert (w == 0.0).any()
    np.testing.assert_allclose(slope[w != 0.0], rate * np.sign(w[w != 0.0]), atol=1e-6)
    assert np.abs(slope[w == 0.0]).max() <= rate
    assert model.report_.method == "orthant-wise L-BFGS"
    gap: Any = model.report_.certificate.value_gap
    assert gap < 1e-8


def test_steps_of_one_are_softmax_regression() -> None:
    """Sequences of length 1 make a multinomial regression without an intercept; with a prior both have one optimum."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), rng.integers(0, 3, size=40)
    model = sf.ChainCRF(prior=sf.Normal(variance=2.0), all_possible_transitions=False, tolerance=1e-10)
    model.fit([row[None] for row in X], [[int(label)] for label in y])

    def loss(w: Any) -> Any:
        scores = X @ w.reshape(2, 3)
        norm = np.log(np.exp(scores).sum(axis=1))
        return norm.sum() - scores[np.arange(40), y].sum() + w @ w / 4.0

    found = minimize(loss, np.zeros(6), method="BFGS", options={"gtol": 1e-8})
    np.testing.assert_allclose(model.state_weights_.ravel(), found.x, atol=1e-5)
    assert model.report_.objective == pytest.approx(-found.fun, rel=1e-10)


def test_without_a_prior_the_probabilities_of_steps_of_one_are_those_of_a_glm() -> None:
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(60, 2)), rng.integers(0, 3, size=60)
    model = sf.ChainCRF(bias=True, tolerance=1e-9).fit([row[None] for row in X], [[int(label)] for label in y])
    glm = sf.GLM("multinomial").fit(X, y)
    found = np.concatenate([np.asarray(rows) for rows in model.predict_marginals([row[None] for row in X])])
    np.testing.assert_allclose(found, glm.predict_proba(X), atol=1e-6)


def test_a_chain_without_features_is_a_markov_network() -> None:
    """A chain of three steps whose only feature is a bias has the law of a Markov network with tied tables."""
    paths = [["a", "b", "b"], ["b", "b", "a"], ["a", "a", "b"], ["b", "a", "a"], ["a", "b", "a"], ["b", "b", "b"]]
    model = sf.ChainCRF(prior=sf.Normal(variance=1.0), all_possible_transitions=True, tolerance=1e-10)
    model.fit([[["bias"]] * 3 for _ in paths], paths)
    pairs = [("0", "1"), ("1", "2")]
    weights = [sf.Feature([(step,) for step in "012"], lambda a, s=state: a == s) for state in "ab"]
    weights += [sf.Feature(pairs, lambda a, b, s=x, t=y: a == s and b == t) for x in "ab" for y in "ab"]
    net = sf.MarkovNetwork(weights, prior=sf.Normal(mean=0.0, variance=1.0), solver="newton")
    net.fit({step: [path[int(step)] for path in paths] for step in "012"})
    np.testing.assert_allclose(model.weights_, net.weights_, atol=1e-6)


@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
def test_solvers_meet(solver: Any) -> None:
    X, Y = random_sequences(5)
    prior = sf.Normal(variance=1.0)
    exact = sf.ChainCRF(prior=prior, tolerance=1e-11).fit(X, Y)
    found = sf.ChainCRF(prior=prior, solver=solver, tolerance=1e-8).fit(X, Y)
    np.testing.assert_allclose(found.weights_, exact.weights_, atol=1e-6)


def test_newton_refuses_many_weights() -> None:
    X = [np.random.default_rng(0).normal(size=(4, 900))]
    with pytest.raises(OptionError, match="newton"):
        sf.ChainCRF(prior=sf.Normal(variance=1.0), solver="newton").fit(X, [[0, 1, 2, 0]])


def test_boundaries_have_weights_of_their_own() -> None:
    X, Y = random_sequences(6)
    model = sf.ChainCRF(prior=sf.Normal(variance=1.0), boundaries=True, labels=[0, 1, 2], tolerance=1e-10).fit(X, Y)
    ends = {"start": model.start_weights_, "end": model.end_weights_}
    value = log_likelihood(X, Y, model.state_weights_, model.transition_weights_, **ends)
    assert model.report_.log_likelihood == pytest.approx(value, rel=1e-12)
    # The prior pulls each weight back by what is left between observed and expected first labels.
    observed = np.bincount([y[0] for y in Y], minlength=3)
    expected = np.zeros(3)
    for x in X:
        paths, probabilities, _ = all_paths(x, model.state_weights_, model.transition_weights_, **ends)
        for path, p in zip(paths, probabilities, strict=True):
            expected[path[0]] += p
    np.testing.assert_allclose(model.start_weights_, observed - expected, atol=1e-8)


def test_transitions_may_depend_on_features() -> None:
    """By hand: the matrix of each step is the shared one plus the feature's value times its own."""
    X, Y = random_sequences(7, size=2)
    model = sf.ChainCRF(prior=sf.Normal(variance=1.0), conditioned_transitions=[1], tolerance=1e-9).fit(X, Y)
    shared, own = model.transition_weights_, model.conditioned_transition_weights_[0]
    total = 0.0
    for x, y in zip(X, Y, strict=True):
        scores = {}
        for path in itertools.product(range(2), repeat=len(x)):
            score = sum(float(x[t] @ model.state_weights_[:, label]) for t, label in enumerate(path))
            for t in range(1, len(x)):
                score += shared[path[t - 1], path[t]] + x[t, 1] * own[path[t - 1], path[t]]
            scores[path] = score
        total += scores[tuple(y)] - np.log(sum(np.exp(list(scores.values()))))
    assert model.report_.log_likelihood == pytest.approx(total, rel=1e-12)
    assert model.gradient_norm_ < 1e-9
    assert np.abs(own).max() > 0.01


def test_impossible_transitions_have_no_probability() -> None:
    X, Y = random_sequences(8, count=10, size=3)
    Y = [[{0: "O", 1: "B-x", 2: "I-x"}[label] for label in y] for y in Y]
    Y = [[("B-x" if label == "I-x" and (t == 0 or y[t - 1] == "O") else label) for t, label in enumerate(y)] for y in Y]
    model = sf.ChainCRF(prior=sf.Normal(variance=10.0), constraints="bio").fit(X, Y)
    place = {label: p for p, label in enumerate(model.labels_)}
    assert model.transition_weights_[place["O"], place["I-x"]] == -np.inf
    assert np.isfinite(model.weights_).all()
    for x, path in zip(X, model.predict(X), strict=True):
        assert path[0] != "I-x"
        paths, probabilities, _ = all_paths(
            x, model.state_weights_, model.transition_weights_, start=model.start_weights_
        )
        best = paths[int(np.argmax(probabilities))]
        assert [model.labels_[label] for label in best] == path


@pytest.mark.parametrize("threads", [1, 2])
def test_weights_are_repetitions(threads: Any) -> None:
    X, Y = random_sequences(9)
    counts = np.array([1, 2, 0, 3, 1, 1])
    options: dict[str, Any] = {
        "prior": sf.Normal(variance=1.0),
        "labels": [0, 1, 2],
        "tolerance": 1e-10,
        "threads": threads,
    }
    weighted = sf.ChainCRF(**options).fit(X, Y, sample_weight=counts)
    longer = [(x, y) for x, y, count in zip(X, Y, counts, strict=True) for _ in range(count)]
    repeated = sf.ChainCRF(**options).fit([x for x, _ in longer], [y for _, y in longer])
    np.testing.assert_allclose(flat(weighted), flat(repeated), atol=1e-8)
    assert weighted.report_.log_likelihood == pytest.approx(repeated.report_.log_likelihood, rel=1e-9)
    assert weighted.score(X, Y, sample_weight=counts) == pytest.approx(
        repeated.score([x for x, _ in longer], [y for _, y in longer]), rel=1e-9
    )


def test_the_certificate_bounds_the_distance_to_the_optimum() -> None:
    X, Y = random_sequences(10)
    prior = sf.Normal(variance=5.0)
    best = sf.ChainCRF(prior=prior, tolerance=1e-11).fit(X, Y).report_.objective
    for iterations in (0, 1, 3):
        with pytest.warns(ConvergenceWarning):
            model = sf.ChainCRF(prior=prior, max_iter=iterations, tolerance=1e-11).fit(X, Y)
        certificate = model.report_.certificate
        assert certificate.bound
        gap: Any = certificate.value_gap
        assert gap * len(X) >= best - model.report_.objective > 0.0
        assert not model.converged_


def test_the_result_does_not_depend_on_the_number_of_threads(monkeypatch: Any) -> None:
    from suffice.kernels import chain as kernels

    monkeypatch.setattr(kernels, "PIECE", 200)
    X, Y = random_sequences(11, count=60)
    with force("compiled"):
        found = [sf.ChainCRF(prior=sf.Normal(variance=1.0), threads=n).fit(X, Y).weights_ for n in (1, 2, 3)]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_a_warm_start_needs_fewer_steps_and_ends_at_the_same_place() -> None:
    X, Y = random_sequences(12)
    model = sf.ChainCRF(prior=sf.Normal(variance=1.0), warm_start=True, tolerance=1e-9).fit(X, Y)
    first = model.n_iter_
    weights = model.weights_
    model.fit(X, Y)
    assert model.n_iter_ == 0 < first
    np.testing.assert_array_equal(model.weights_, weights)


def test_a_warm_start_finds_its_weights_by_name() -> None:
    X = [[["a", "b"], ["b"]], [["c"], ["a"]]]
    Y = [["X", "Y"], ["Y", "X"]]
    model = sf.ChainCRF(prior=sf.Normal(variance=1.0), warm_start=True).fit(X, Y)
    before = dict(zip(model.weight_names_, model.weights_, strict=True))
    model.set_params(max_iter=0, tolerance=1e-30)
    with pytest.warns(ConvergenceWarning):
        model.fit([[["new"], ["b"]], *X], [["Z", "Y"], *Y])
    after = dict(zip(model.weight_names_, model.weights_, strict=True))
    assert len(after) > len(before)
    assert {name: after[name] for name in before} == before
    assert all(value == 0.0 for name, value in after.items() if name not in before)


def test_a_validation_set_ends_the_fit() -> None:
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(5, 30)) for _ in range(12)]
    Y = [rng.integers(0, 2, size=5).tolist() for _ in X]
    held = ([rng.normal(size=(5, 30)) for _ in range(12)], [rng.integers(0, 2, size=5).tolist() for _ in range(12)])
    whole = sf.ChainCRF(prior=sf.Normal(variance=1e4), max_iter=500).fit(X, Y)
    early = sf.ChainCRF(prior=sf.Normal(variance=1e4), patience=2).fit(X, Y, validation=held)
    assert early.stop_reason_ == "early stopping"
    assert not early.converged_
    assert early.score(*held) > whole.score(*held)


def test_a_callback_stops_the_fit() -> None:
    X, Y = random_sequences(2)
    seen: list[float] = []

    def stop(state: Any) -> bool:
        seen.append(state.objective)
        return len(seen) == 2

    model = sf.ChainCRF(callback=stop).fit(X, Y)
    assert len(seen) == 2
    assert model.stop_reason_ == "callback"
    assert list(model.history_[1:]) == seen


@pytest.mark.parametrize("prior", [sf.Normal(variance=2.0), sf.Laplace(scale=5.0)])
def test_a_checkpoint_goes_on_to_the_same_bits(tmp_path: Path, prior: Any) -> None:
    X = [[{"word": word} for word in words] for words in ("abcdac", "cab")]
    y = [list("xyxyxx"), list("yxy")]
    path = tmp_path / "fit.json"
    whole = sf.ChainCRF(prior=prior, tolerance=1e-9).fit(X, y)
    with pytest.warns(ConvergenceWarning):
        sf.ChainCRF(prior=prior, tolerance=1e-9, max_iter=3, checkpoint=path).fit(X, y)
    assert path.exists()
    with pytest.raises(OptionError, match="another fit"):
        sf.ChainCRF(prior=prior, tolerance=1e-9, checkpoint=path).fit(X, [list("xyxyxy"), list("yxy")])
    again = sf.ChainCRF(prior=prior, tolerance=1e-9, checkpoint=path).fit(X, y)
    assert again.n_iter_ == whole.n_iter_ > 3
    np.testing.assert_array_equal(again.fitted_.weights, whole.fitted_.weights)
    assert not path.exists()


def test_a_stochastic_fit_has_no_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="checkpoint"):
        sf.ChainCRF(solver="sgd", checkpoint=tmp_path / "fit.json").fit([[{"a": 1}]], [["x"]])
