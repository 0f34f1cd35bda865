"""The gap of a conditional random field in standard errors, against variances by enumeration of all labels."""

import itertools
from typing import Any

import numpy as np
import pytest

import suffice as sf
from field_parts import field_objective

LABELS = (0, 1, 2)


def chain(options: dict[str, Any], rng: np.random.Generator) -> Any:
    X = [rng.normal(size=(4, 2)), rng.normal(size=(1, 2)), rng.normal(size=(2, 2))]
    y = [rng.integers(0, 3, len(x)).tolist() for x in X]
    return sf.ChainCRF(labels=LABELS, **options), X, y


def graph(options: dict[str, Any], rng: np.random.Generator) -> Any:
    X = [
        sf.GraphExample(rng.normal(size=(4, 2)), [[0, 1], [1, 2], [2, 3], [3, 0]], rng.normal(size=(4, 2))),
        sf.GraphExample(rng.normal(size=(3, 2)), [[2, 1]], rng.normal(size=(1, 2))),
    ]
    y = [rng.integers(0, 3, 4).tolist(), rng.integers(0, 3, 3).tolist()]
    return sf.GraphCRF(labels=LABELS, **options), X, y


CASES: Any = {
    "chain": (chain, {}),
    "chain with ends": (chain, {"boundaries": True}),
    "chain with features of transitions": (chain, {"conditioned_transitions": True, "bias": True}),
    "graph": (graph, {}),
    "graph with equal labels": (graph, {"edge_weights": "equal"}),
    "graph with symmetric weights": (graph, {"edge_weights": "symmetric"}),
}


@pytest.mark.parametrize("case", CASES)
def test_the_variance_is_bounded_from_below_in_the_mean_over_labels(case: str) -> None:
    """E over labels of what is measured at them, and the variance of the features, by all labels of each example."""
    make, options = CASES[case]
    model, X, y = make(options, np.random.default_rng(5))
    weights = np.random.default_rng(6).normal(size=field_objective(model, X, y).structure.length) * 0.7
    bounds, variance = np.zeros(len(weights)), np.zeros(len(weights))
    for one, labels in zip(X, y, strict=True):
        paths = list(itertools.product(LABELS, repeat=len(labels)))
        objectives = [field_objective(model, [one], [list(path)]) for path in paths]
        logs = np.array([objective.log_likelihood(weights) for objective in objectives])
        shares, features = np.exp(logs), np.array([objective.observed() for objective in objectives])
        np.testing.assert_allclose(shares.sum(), 1.0, rtol=1e-10)
        variance += shares @ (features - shares @ features) ** 2
        bounds += shares @ np.array([objective.variance(weights) for objective in objectives])
    assert (bounds <= variance * (1 + 1e-9) + 1e-12).all()
    assert (bounds >= 0.05 * variance - 1e-12).all()


def test_one_open_label_has_its_own_variance() -> None:
    """Of sequences of one step, whose labels are independent, the variance is exact."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(6, 1, 2)), rng.integers(0, 2, (6, 1)).tolist()
    objective = field_objective(sf.ChainCRF(labels=(0, 1)), list(X), y)
    weights = rng.normal(size=objective.structure.length)
    scores = X[:, 0] @ weights[:4].reshape(2, 2)
    shares = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    exact = ((X[:, 0] ** 2).T @ (shares * (1 - shares))).ravel()
    np.testing.assert_allclose(objective.variance(weights)[:4], exact, rtol=1e-12)


@pytest.mark.parametrize("make", [chain, graph])
def test_the_gap_is_in_standard_errors_and_the_slope_stands_beside_it(make: Any) -> None:
    model, X, y = make({"prior": sf.Normal(variance=2.0), "max_iter": 3}, np.random.default_rng(1))
    with pytest.warns(sf.ConvergenceWarning):
        certificate = model.fit(X, y).report_.certificate
    objective = field_objective(model, X, y)
    slope = objective.smooth(model.weights_)[1]
    errors = np.sqrt(objective.variance(model.weights_) + 0.5)
    assert certificate.moment_gap == pytest.approx(np.max(np.abs(slope) / errors), rel=1e-9)
    assert certificate.slope == pytest.approx(np.abs(slope).max(), rel=1e-9)
