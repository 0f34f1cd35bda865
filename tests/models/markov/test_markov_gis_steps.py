"""Iterative scaling step by step: the weights after one, two and ten iterations are those of its formula."""

from typing import Any

import numpy as np
import pytest

import suffice as sf

STATES = [0, 1, 2, 3]
ROWS = np.array([0, 0, 1, 1, 1, 2, 3, 3, 0, 1])


def stopped(tables: Any, steps: int, solver: str = "gis", **options: Any) -> Any:
    terms = [sf.Feature("x", np.array(table, float)) for table in tables]
    network = sf.MarkovNetwork(terms, states={"x": STATES}, solver=solver, max_iter=steps, tolerance=0.0, **options)  # type: ignore[arg-type]
    with pytest.warns(sf.ConvergenceWarning):
        network.fit({"x": ROWS})
    return network.weights_


def by_hand(features: Any, steps: int, total: float) -> Any:
    """weight += log(observed / expected) / total for features (states, k) that add up to the total in every state."""
    observed, weights = features[ROWS].mean(axis=0), np.zeros(features.shape[1])
    for _ in range(steps):
        law = np.exp(features @ weights)
        weights = weights + np.log(observed / (law / law.sum() @ features)) / total
    return weights


@pytest.mark.parametrize("steps", [1, 2, 10])
def test_features_that_sum_to_one(steps: int) -> None:
    """All are positive everywhere: nothing is shifted, and a step is log(observed / expected)."""
    first, second = np.array([0.2, 0.5, 0.3, 0.6]), np.array([0.5, 0.3, 0.4, 0.1])
    tables = [first, second, 1.0 - first - second]
    np.testing.assert_allclose(stopped(tables, steps), by_hand(np.stack(tables, 1), steps, 1.0), rtol=1e-9)


@pytest.mark.parametrize("steps", [1, 2, 10])
def test_features_that_sum_to_at_most_a_total(steps: int) -> None:
    """One more feature takes up the rest; its weight is the same for all states up to what the others lack."""
    tables = np.array([[1.0, 2.0, 0.5, 3.0], [0.25, 1.0, 2.0, 0.5]])
    whole = np.column_stack([*tables, 3.5 - tables.sum(axis=0)])
    weights = by_hand(whole, steps, 3.5)
    np.testing.assert_allclose(stopped(tables, steps), weights[:2] - weights[2], rtol=1e-9)


def test_a_negative_feature_is_less_its_least_value() -> None:
    tables = np.array([[1.0, -2.0, 0.5, 1.0], [0.25, 1.0, 2.0, 0.5]])
    above = tables - np.array([[-2.0], [0.0]])
    whole = np.column_stack([*above, above.sum(axis=0).max() - above.sum(axis=0)])
    weights = by_hand(whole, 3, float(above.sum(axis=0).max()))
    np.testing.assert_allclose(stopped(tables, 3), weights[:2] - weights[2], rtol=1e-9)


def test_features_far_from_zero_or_of_different_size_are_standardised_first() -> None:
    """Their total would make the steps tiny: after 200 iterations the law is the maximum whatever offset and size."""
    plain = [[0.0, 1.0, 2.0, 3.0], [1.0, 0.0, 0.0, 2.0]]
    for offset, size in ((0.0, 1e6), (1e9, 1.0)):
        terms = [sf.Feature("x", np.array(plain[0])), sf.Feature("x", offset + size * np.array(plain[1]))]
        mrf = sf.MarkovNetwork(terms, states={"x": STATES}, solver="gis").fit({"x": ROWS})
        best = sf.MarkovNetwork(terms, states={"x": STATES}, solver="newton").fit({"x": ROWS})
        assert mrf.converged_
        np.testing.assert_allclose(mrf.to_joint().values, best.to_joint().values, atol=1e-9)


@pytest.mark.parametrize("steps", [1, 2])
def test_one_step_of_scaling_as_the_m_step_of_em(steps: int) -> None:
    """The visible x and a hidden h: expected features given the rows take the place of the observed ones."""
    first = np.array([[0.2, 0.5], [0.5, 0.3], [0.3, 0.1], [0.6, 0.2]])
    features = np.stack([first, 1.0 - first], axis=2)  # (x, h, 2), adding up to one.
    start = np.array([0.4, -0.3])
    terms = [sf.Feature(("x", "h"), features[:, :, k]) for k in range(2)]
    options: Any = {"hidden": {"h": 2}, "states": {"x": STATES}, "solver": "gis", "m_steps": 1, "tolerance": 0.0}
    with pytest.warns(sf.ConvergenceWarning):
        mrf = sf.MarkovNetwork(terms, start=start, max_iter=steps, **options).fit({"x": ROWS})
    weights = start
    for _ in range(steps):
        joint = np.exp(features @ weights)
        given = joint[ROWS] / joint[ROWS].sum(axis=1, keepdims=True)
        expected = np.einsum("nh,nhk->k", given, features[ROWS]) / len(ROWS)
        weights = weights + np.log(expected / np.einsum("xh,xhk->k", joint / joint.sum(), features))
    np.testing.assert_allclose(mrf.weights_, weights, rtol=1e-9)


@pytest.mark.parametrize("solver", ["auto", "newton", "lbfgs", "gis", "newton-cg", "ipf"])
def test_the_m_step_goes_to_its_maximum(solver: str) -> None:
    """After one step of EM the law has the margins that the rows are expected to have at the start."""
    rng = np.random.default_rng(5)
    rows = rng.integers(0, 2, (60, 3))
    cliques = [("h", "a"), ("h", "b"), ("h", "c"), ("a", "b")]
    start = rng.normal(size=16)
    options: Any = {"hidden": {"h": 2}, "states": {name: [0, 1] for name in "abc"}, "solver": solver, "start": start}
    with pytest.warns(sf.ConvergenceWarning):
        mrf = sf.MarkovNetwork(cliques, max_iter=1, **options).fit(rows, columns=list("abc"))
    names = ["h", "a", "b", "c"]
    joint = np.zeros((2, 2, 2, 2))
    for place, clique in enumerate(cliques):
        table = start[4 * place : 4 * place + 4].reshape(2, 2)
        wide = [2 if name in clique else 1 for name in names]
        order = sorted(range(2), key=lambda axis: names.index(clique[axis]))
        joint = joint + table.transpose(order).reshape(wide)
    law = np.exp(joint)
    counts = np.zeros((2, 2, 2))
    np.add.at(counts, tuple(rows.T), 1.0 / 60)
    expected = law / law.sum(axis=0) * counts
    found = mrf.query(names).values
    for clique in cliques:
        axes = tuple(axis for axis, name in enumerate(names) if name not in clique)
        np.testing.assert_allclose(found.sum(axis=axes), expected.sum(axis=axes), atol=2e-8)
