"""Wide graphs learned by Gibbs sampling with the options as they come: steps scaled by the examples, or a warning."""

from typing import Any

import numpy as np
import pytest

import suffice as sf
from field_parts import field_objective

NORMAL = sf.Normal(variance=1.0)


def grids(seed: Any, count: Any, side: Any) -> Any:
    """Pictures whose labels hang together: the sign of a smoothed field, with a noisy feature and a constant one."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(count):
        field = rng.normal(size=(side + 1, side + 1))
        truth = (field[1:, 1:] + field[:-1, 1:] + field[1:, :-1] + field[:-1, :-1] > 0).astype(int)
        noisy = truth + rng.normal(size=truth.shape)
        X.append(sf.GraphExample.grid(np.stack([np.ones_like(noisy), noisy], axis=2)))
        y.append(truth)
    return X, y


@pytest.mark.parametrize("prior", [NORMAL, (sf.Normal(variance=1.0), sf.Laplace(scale=1.0))])
def test_the_fit_comes_near_the_exact_optimum(prior: Any) -> None:
    X, y = grids(0, 10, 6)
    exact = sf.GraphCRF(prior, edge_weights="equal").fit(X, y)
    model = sf.GraphCRF(prior, edge_weights="equal", inference="gibbs", max_cells=10, random_state=0).fit(X, y)
    assert model.converged_
    assert model.report_.method == "stochastic ascent"
    judge = sf.GraphCRF(prior, edge_weights="equal")
    objective = field_objective(judge, X, y)
    value = objective.smooth(model.weights_)[0]
    value -= 0.0 if objective.penalties.laplace is None else objective.penalties.laplace.value(model.weights_)
    # The slope may be a quarter of its standard error: a loss of tenths of a nat among hundreds.
    assert exact.report_.objective - value < 0.5
    assert exact.report_.objective - field_objective(judge, X, y).smooth(np.zeros(5))[0] > 50


def test_large_pictures_do_not_run_away() -> None:
    """900 nodes with labels at random: slopes of hundreds, and weights near 0."""
    rng = np.random.default_rng(0)
    picture = sf.GraphExample.grid(rng.normal(size=(30, 30, 2)))
    labels = rng.integers(0, 2, (30, 30))
    model = sf.GraphCRF(NORMAL, edge_weights="equal", inference="gibbs", random_state=0).fit([picture], [labels])
    pseudo = sf.GraphCRF(NORMAL, edge_weights="equal").fit([picture], [labels])
    assert model.converged_
    # Both estimate the same weights, with standard errors of about 1 / 30.
    assert np.abs(model.weights_ - pseudo.weights_).max() < 0.03
    certificate = model.report_.certificate
    assert certificate.monte_carlo is not None
    assert certificate.slope is not None
    assert certificate.slope < 15 + 5 * certificate.monte_carlo.error


def test_ascent_cleans_pictures_better_than_the_pseudo_likelihood() -> None:
    rng = np.random.default_rng(1)
    rows, columns = np.mgrid[:24, :24]
    truths = [((rows - r) ** 2 + (columns - c) ** 2 < 64).astype(int) for r, c in ((12, 12), (9, 14), (14, 10))]

    def pictures() -> Any:
        found = [truth + rng.normal(size=truth.shape) for truth in truths]
        return [sf.GraphExample.grid(np.stack([np.ones_like(one), one], axis=2)) for one in found]

    X, new = pictures(), pictures()
    options: Any = {"edge_weights": "equal", "max_cells": 1000, "random_state": 0}
    # Whole regions would have to flip at once: chains do not mix, and nobody can say that the slope is small.
    with pytest.warns(sf.ConvergenceWarning, match=r"has not converged: its chains do not agree \(R-hat"):
        sampled = sf.GraphCRF(sf.Normal(variance=10.0), inference="gibbs", **options).fit(X, truths)
    pseudo = sf.GraphCRF(sf.Normal(variance=10.0), **options).fit(X, truths)
    assert not sampled.converged_
    assert sampled.stop_reason_ == "denied by fresh chains"
    assert sampled.edge_weights_[0, 0, 0] < 0.8 * pseudo.edge_weights_[0, 0, 0]
    assert sampled.accuracy(new, truths) > max(0.94, pseudo.accuracy(new, truths))


@pytest.mark.parametrize("options", [{"step_size": 0.1}, {"solver": "sgd"}])
def test_steps_that_are_too_long_are_told(options: Any) -> None:
    """Plain ascent takes the steps it is given; where they lead down, the fit says so."""
    rng = np.random.default_rng(0)
    picture = sf.GraphExample.grid(rng.normal(size=(30, 30, 2)))
    model = sf.GraphCRF(NORMAL, edge_weights="equal", inference="gibbs", max_iter=5, random_state=0, **options)
    with pytest.warns(sf.ConvergenceWarning, match="runs away.*lower step_size"):
        model.fit([picture], [rng.integers(0, 2, (30, 30))])


def test_seeds_repeat_and_a_stopped_fit_goes_on(tmp_path: Any) -> None:
    X, y = grids(2, 3, 4)
    options: Any = {"edge_weights": "equal", "inference": "gibbs", "max_cells": 10, "tolerance": 0.0}
    path = tmp_path / "fit.suffice"

    def stop(at: int) -> Any:
        return lambda state: state.iteration == at

    whole = [sf.GraphCRF(NORMAL, random_state=s, callback=stop(90), **options).fit(X, y).weights_ for s in (0, 0, 1)]
    np.testing.assert_array_equal(whole[0], whole[1])
    assert (whole[0] != whole[2]).any()
    sf.GraphCRF(NORMAL, random_state=0, callback=stop(30), checkpoint=path, **options).fit(X, y)
    rest = sf.GraphCRF(NORMAL, random_state=0, callback=stop(90), checkpoint=path, **options).fit(X, y)
    np.testing.assert_array_equal(rest.weights_, whole[0])


def test_graphs_that_are_not_wide_are_learned_exactly() -> None:
    X, y = grids(3, 4, 3)
    exact = sf.GraphCRF(NORMAL).fit(X, y)
    model = sf.GraphCRF(NORMAL, inference="gibbs").fit(X, y)
    assert model.report_.method == "L-BFGS"
    np.testing.assert_allclose(model.weights_, exact.weights_, atol=1e-12)


def test_cliques_of_one_node_and_exact_examples_take_part() -> None:
    """A small graph beside a wide one, a template of single nodes: the fit is near the exact one."""
    X, y = grids(4, 6, 5)
    X = [sf.GraphExample(x.nodes, x.edges, cliques={"odd": np.arange(1, 25, 2)[:, None]}) for x in X]
    small = sf.GraphExample(X[0].nodes[:3], [[0, 1], [1, 2]], cliques={"odd": [[1]]})
    X, y = [*X, small], [*y, np.array([0, 1, 1])]
    options: Any = {"edge_weights": "equal", "templates": {"odd": "full"}}
    exact = sf.GraphCRF(NORMAL, **options).fit(X, y)
    model = sf.GraphCRF(NORMAL, inference="gibbs", max_cells=100, random_state=0, **options).fit(X, y)
    assert "forward-backward for 1 graph" in str(model.report_.plan)
    judge = sf.GraphCRF(NORMAL, **options)
    objective = field_objective(judge, X, y)
    assert 0.0 <= exact.report_.objective - objective.smooth(model.weights_)[0] < 0.5


def test_a_validation_set_does_not_end_the_fit_while_it_measures() -> None:
    """The answer stands still for whole stages of the ascent; that is not a set on which nothing rises any more."""
    X, y = grids(1, 3, 14)
    options: Any = {"edge_weights": "equal", "inference": "gibbs", "max_cells": 10, "random_state": 0}
    free = sf.GraphCRF(NORMAL, **options).fit(X[:2], y[:2])
    watched = sf.GraphCRF(NORMAL, patience=60, **options).fit(X[:2], y[:2], validation=(X[2:], y[2:]))
    answers: list[Any] = []

    def remember(state: Any) -> None:
        if not answers or not np.array_equal(answers[-1], state.parameters):
            answers.append(state.parameters.copy())

    sf.GraphCRF(NORMAL, callback=remember, **options).fit(X[:2], y[:2])
    assert free.report_.iterations > 60 > len(answers)
    values = []
    for weights in (np.zeros(5), *answers):
        objective = free._task().watch((X[2:], y[2:]), free.fitted_.structure)
        values.append(objective(weights))
    best = [np.zeros(5), *answers][int(np.argmax(values))]
    np.testing.assert_array_equal(watched.weights_, best)


def test_with_a_prior_the_maximum_exists() -> None:
    X, y = grids(2, 2, 8)
    for prior in (NORMAL, sf.Laplace(scale=1.0)):
        model = sf.GraphCRF(prior, edge_weights="equal", inference="gibbs", max_cells=10, random_state=0).fit(X, y)
        assert model.report_.certificate.exists
        assert model.report_.certificate.value_gap is None
