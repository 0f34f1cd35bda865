"""Pseudo-likelihood against the written-out objective, and loopy belief propagation in learning."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import optimize, special

import suffice as sf

EDGES = sf.MarkovNetwork.grid_edges(4, 4)
NODES = list(dict.fromkeys(node for edge in EDGES for node in edge))


def ising_rows(n: int, seed: int = 0) -> dict[Any, Any]:
    rng = np.random.default_rng(seed)
    weights = np.concatenate([rng.normal(0.0, 0.2, 16), rng.uniform(0.0, 0.5, len(EDGES))])
    drawn: dict[Any, Any] = sf.MarkovNetwork.ising(EDGES).with_weights(weights).sample(n, random_state=seed + 1)
    return drawn


def exact_gap(network: sf.MarkovNetwork) -> float:
    """The moment gap of an approximate fit by the junction tree."""
    drawn = network.report_.certificate.monte_carlo
    assert drawn is not None
    assert drawn.exact_gap is not None
    return drawn.exact_gap


def ising_pseudo(weights: np.ndarray, x: np.ndarray) -> float:
    """Mean over rows of sum_i log sigma(2 x_i (u_i + sum_j w_ij x_j)), written out for spins (n, 16)."""
    place = {node: number for number, node in enumerate(NODES)}
    coupling = np.zeros((16, 16))
    for value, (a, b) in zip(weights[16:], EDGES, strict=True):
        coupling[place[a], place[b]] = coupling[place[b], place[a]] = value
    return float(special.log_expit(2.0 * x * (weights[:16] + x @ coupling)).sum(axis=1).mean())


@pytest.mark.parametrize("prior", [None, 0.05])
def test_an_ising_lattice_by_a_generic_optimiser(prior: float | None) -> None:
    rows = ising_rows(600)
    x = np.stack([rows[node] for node in NODES], axis=1).astype(float)

    def loss(weights: np.ndarray) -> float:
        return -ising_pseudo(weights, x) + (0.0 if prior is None else float(weights @ weights) / (2 * prior * 600))

    wanted = optimize.minimize(loss, np.zeros(40), method="BFGS", options={"gtol": 1e-7})
    options: dict[str, Any] = {} if prior is None else {"prior": sf.Normal(variance=prior)}
    found = sf.MarkovNetwork.ising(EDGES, solver="pseudolikelihood", random_state=0, **options).fit(rows)
    assert found.converged_
    np.testing.assert_allclose(found.weights_, wanted.x, atol=2e-6)
    assert found.report_.objective == pytest.approx(-600 * wanted.fun, rel=1e-9)
    assert found.report_.certificate.engine.startswith("pseudo-likelihood")
    assert not found.report_.certificate.exact
    assert exact_gap(found) > 1e-4  # It is not the likelihood that was maximised.


def test_tables_and_tied_features_by_a_generic_optimiser() -> None:
    rng = np.random.default_rng(3)
    rows = {"a": rng.integers(0, 2, 300), "b": rng.integers(0, 3, 300), "c": rng.integers(0, 3, 300)}
    rows["b"] = np.where(rng.random(300) < 0.4, rows["c"], rows["b"])
    structure = [("a", "b"), sf.Feature([("b", "c"), ("a", "c")], lambda x, y: 2.0 * (x == y)), ("c",)]
    counts = sf.Normal(variance=4.0)
    network = sf.MarkovNetwork(structure, prior=counts, solver="pseudolikelihood", random_state=0).fit(rows)

    def energy(weights: np.ndarray, a: Any, b: Any, c: Any) -> Any:
        return weights[:6].reshape(2, 3)[a, b] + weights[6] * 2.0 * ((b == c) * 1.0 + (a == c)) + weights[7:][c]

    def loss(weights: np.ndarray) -> float:
        columns = (rows["a"], rows["b"], rows["c"])
        own, total = energy(weights, *columns), 0.0
        for axis, card in enumerate((2, 3, 3)):
            moved = [energy(weights, *(k if n == axis else v for n, v in enumerate(columns))) for k in range(card)]
            total += float((own - special.logsumexp(np.broadcast_arrays(*moved), axis=0)).mean())
        return -total + float(weights @ weights) / (2.0 * 4.0 * 300)

    wanted = optimize.minimize(loss, np.zeros(10), method="BFGS", options={"gtol": 1e-8})
    np.testing.assert_allclose(network.weights_, wanted.x, atol=2e-5)


def test_a_laplace_prior_sets_weights_to_zero() -> None:
    rows = ising_rows(400)
    x = np.stack([rows[node] for node in NODES], axis=1).astype(float)
    found = sf.MarkovNetwork.ising(EDGES, solver="pseudolikelihood", prior=sf.Laplace(scale=0.02), random_state=0).fit(
        rows
    )
    assert 0 < np.count_nonzero(found.weights_) < 40

    def pseudo(weights: np.ndarray) -> float:
        return ising_pseudo(weights, x)

    # At the optimum the slope of the pseudo-likelihood is at most the rate, and equal to it where a weight is not 0.
    slope = optimize.approx_fprime(found.weights_, pseudo, 1e-6)
    rate = 1.0 / (0.02 * 400)
    assert np.abs(slope).max() < rate + 1e-5
    used = found.weights_ != 0.0
    np.testing.assert_allclose(slope[used], rate * np.sign(found.weights_[used]), atol=1e-5)


def test_both_estimators_are_consistent() -> None:
    """With many rows likelihood and pseudo-likelihood both find the weights that made them."""
    rng = np.random.default_rng(0)
    weights = np.concatenate([rng.normal(0.0, 0.2, 16), rng.uniform(0.0, 0.5, len(EDGES))])
    rows = sf.MarkovNetwork.ising(EDGES).with_weights(weights).sample(50_000, random_state=1)
    exact = sf.MarkovNetwork.ising(EDGES).fit(rows)
    found = sf.MarkovNetwork.ising(EDGES, solver="pseudolikelihood", random_state=0, tolerance=1e-8).fit(rows)
    away = (found.weights_ - weights) / exact.standard_errors_
    assert np.sqrt(np.mean(away**2)) < 1.6
    assert np.abs(found.weights_ - weights).max() < 0.04


def test_loopy_propagation_is_exact_on_a_tree() -> None:
    rng = np.random.default_rng(5)
    rows = {name: rng.integers(0, 3, 500) for name in "abcde"}
    rows["b"] = np.where(rng.random(500) < 0.5, rows["a"], rows["b"])
    tree = [("a", "b"), ("b", "c"), ("b", "d"), ("d", "e")]
    exact = sf.MarkovNetwork(tree, prior=sf.Normal(variance=2.0)).fit(rows)
    found = sf.MarkovNetwork(tree, prior=sf.Normal(variance=2.0), solver="loopy-bp", random_state=0).fit(rows)
    assert found.converged_
    np.testing.assert_allclose(found.weights_, exact.weights_, atol=1e-7)
    assert exact_gap(found) < 1e-9 * np.sqrt(500) / 0.2  # In standard errors: no cell has a deviation below 0.2.
    assert not found.report_.certificate.exact


def test_loopy_propagation_on_a_grid_is_marked_as_approximate() -> None:
    rows = ising_rows(2000)
    exact = sf.MarkovNetwork.ising(EDGES).fit(rows)
    found = sf.MarkovNetwork.ising(EDGES, solver="loopy-bp", random_state=0, tolerance=1e-8).fit(rows)
    assert found.converged_
    certificate = found.report_.certificate
    assert not certificate.exact
    assert "loopy belief propagation" in certificate.engine
    assert exact_gap(found) > 1e-3
    assert np.abs(found.weights_ - exact.weights_).max() < 0.3
