"""Labels with two modes: sampled marginals and draws of graph CRFs against sums over all labelings."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.engines.tempering import Lengths
from suffice.models.graph_crf import sampling
from untyped import untyped

NODES = 9
EDGES = np.array(list(itertools.combinations(range(NODES), 2)))


def clique(rng: np.random.Generator) -> sf.GraphExample:
    """Every node is joined to every other; one feature of nodes."""
    return sf.GraphExample(rng.normal(0.1, 0.3, (NODES, 1)), EDGES, np.ones((len(EDGES), 1)))


def model_of(edge: float, **options: Any) -> sf.GraphCRF:
    """Labels 0 and 1, the feature of a node for label 1, and `edge` for equal neighbours."""
    X = [clique(np.random.default_rng(seed)) for seed in range(2)]
    y = [[0, 1] * 4 + [0], [1] * NODES]
    fitted = sf.GraphCRF(sf.Normal(variance=1.0), edge_weights="equal").fit(X, y)
    plain = fitted.to_dict()
    weights = np.array(
        [{"nodes": {0: 0.0, 1: 1.0}.get(name[1], 0.0)}.get(name[0], edge) for name in fitted.weight_names_]
    )
    plain["fitted"]["weights"] = weights
    found = sf.GraphCRF.from_dict(plain)
    return found.set_params(inference="gibbs", max_cells=10, random_state=0, **options)


def exact_marginals(example: sf.GraphExample, edge: float) -> np.ndarray:
    labels = np.array(list(itertools.product([0, 1], repeat=NODES)))
    logs = labels @ np.asarray(example.nodes)[:, 0]
    logs = logs + edge * (labels[:, EDGES[:, 0]] == labels[:, EDGES[:, 1]]).sum(axis=1)
    p = np.exp(logs - logs.max())
    return np.asarray((p / p.sum()) @ labels)


def test_marginals_and_draws_between_two_modes() -> None:
    X = [clique(np.random.default_rng(seed)) for seed in (5, 6)]
    model = model_of(1.0)
    for example, found in zip(X, untyped(model.predict_marginals(X)), strict=True):
        assert isinstance(found, sampling.SampledMarginals)
        truth = exact_marginals(example, 1.0)
        assert found.r_hat is not None
        assert found.r_hat < 1.05
        assert found.effective_sample_size is not None
        assert found.effective_sample_size > 500
        assert found.standard_errors is not None
        assert found.standard_errors.shape == (NODES, 2)
        assert (np.abs(found.of(1) - truth) < 4.5 * found.standard_errors[:, 1]).all()
        assert found.standard_errors.max() < 0.03
        assert found[:2].r_hat is None
    drawn = np.array(model.sample_labels(X[:1], 1_000, random_state=1)[0])
    truth = exact_marginals(X[0], 1.0)
    assert (np.abs(drawn.mean(axis=0) - truth) < 4.5 * np.sqrt(truth * (1 - truth) / 1_000)).all()


def test_chains_that_do_not_mix_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "ANSWERS", Lengths(burn_in=50, draws=100, tempering=False))
    X = [clique(np.random.default_rng(5))]
    model = model_of(2.0)
    with pytest.warns(
        sf.SamplingWarning, match=r"marginals are not to be relied on: of example 0 its chains"
    ) as caught:
        found = untyped(model.predict_marginals(X))[0]
    assert found.r_hat > 2.0
    assert caught[0].filename == __file__
    with pytest.warns(sf.SamplingWarning, match="labels drawn are not to be relied on"):
        model.sample_labels(X, 3, random_state=0)
