"""Graphs too wide for exact inference: pseudo-likelihood, loopy propagation, Gibbs sampling, annealing; said so."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import suffice as sf
from field_parts import field_objective
from graph_labelings import Enumerated, score_of, tables_of


def grids_of(seed: Any, count: Any = 6, shape: Any = (3, 3), labels: Any = 2) -> Any:
    rng = np.random.default_rng(seed)
    X = [sf.GraphExample.grid(rng.normal(size=(*shape, 2)), directions=True) for _ in range(count)]
    return X, [rng.integers(0, labels, shape) for _ in X]


def conditional_logs(tables: Any, example: Any, codes: Any, labels: Any) -> Any:
    """Log p(label of a node | labels of all others), summed over nodes, from scores of whole labellings."""
    total = 0.0
    for node in range(len(codes)):
        scores = []
        for label in range(labels):
            changed = list(codes)
            changed[node] = label
            scores.append(score_of(tables, example, changed))
        total += scores[codes[node]] - np.log(np.exp(np.array(scores) - max(scores)).sum()) - max(scores)
    return total


def test_wide_graphs_are_fitted_by_the_pseudo_likelihood_and_the_report_says_so() -> None:
    X, y = grids_of(0)
    cliques = [sf.GraphExample(x.nodes, x.edges, x.edge_features, cliques={"corner": [[0, 1, 3]]}) for x in X]
    model = sf.GraphCRF(sf.Normal(variance=1.0), max_cells=10, templates={"corner": "full"}, tolerance=1e-9)
    model.fit(cliques, y)

    def objective(weights: Any) -> Any:
        parts = enumerate(model.fitted_.structure.templates)
        tables = {t.name: t.whole(model.fitted_.structure.block(weights, i)) for i, t in parts}
        pairs = zip(cliques, y, strict=True)
        return sum(conditional_logs(tables, x, c.ravel(), 2) for x, c in pairs) - 0.5 * weights @ weights

    best = model.weights_
    assert model.report_.objective == pytest.approx(objective(best), rel=1e-10)
    for place in range(len(best)):
        step = 1e-5 * np.eye(len(best))[place]
        assert abs(objective(best + step) - objective(best - step)) / 2e-5 < 1e-5
    certificate = model.report_.certificate
    assert not certificate.exact
    assert certificate.engine == "pseudo-likelihood for 6 graphs too wide for exact inference"
    assert "pseudo-log-likelihood" in str(model.report_)
    assert certificate.bound
    assert (certificate.value_gap or 0.0) < 1e-12


def test_exact_and_wide_examples_may_be_mixed() -> None:
    X, y = grids_of(1, count=4)
    small, labels = grids_of(2, count=3, shape=(2, 2))
    model = sf.GraphCRF(sf.Normal(variance=1.0), max_cells=40).fit([*X, *small], [*y, *labels])
    assert model.report_.plan == (
        "junction trees for 3 graphs (1 shape, width 2, largest table 8 cells), pseudo-likelihood for 4 graphs too "
        "wide for exact inference"
    )
    tables = tables_of(model)
    expected = sum(conditional_logs(tables, x, c.ravel(), 2) for x, c in zip(X, y, strict=True))
    for example, codes in zip(small, labels, strict=True):
        law = Enumerated(tables, example, 2)
        expected += law.scores[int("".join(map(str, codes.ravel())), 2)] - law.log_z
    assert model.report_.log_likelihood == pytest.approx(expected, rel=1e-10)
    with pytest.raises(sf.SizeError, match="Example 0 and 3 others need a junction tree of more than 40 cells"):
        sf.GraphCRF(inference="exact", max_cells=40).fit([*X, *small], [*y, *labels])


def test_loopy_propagation_is_exact_on_trees() -> None:
    rng = np.random.default_rng(3)
    edges = [(0, 1), (0, 2), (3, 0), (3, 4)]
    X = [sf.GraphExample(rng.normal(size=(5, 2)), edges, rng.normal(size=(4, 1))) for _ in range(6)]
    y = [rng.integers(0, 3, 5) for _ in X]
    exact = sf.GraphCRF(sf.Normal(variance=1.0), tolerance=1e-7).fit(X, y)
    loopy = sf.GraphCRF(sf.Normal(variance=1.0), tolerance=1e-7, inference="loopy").fit(X, y)
    assert_allclose(loopy.weights_, exact.weights_, atol=1e-6)
    assert loopy.report_.log_likelihood == pytest.approx(exact.report_.log_likelihood, abs=1e-6)
    for one, two in zip(loopy.predict_marginals(X), exact.predict_marginals(X), strict=True):
        assert_allclose(one, two, atol=1e-6)
    certificate = loopy.report_.certificate
    assert not certificate.exact
    assert certificate.value_gap is None
    assert "Bethe" in str(loopy.report_)


def answers_of(model: Any, max_cells: Any, inference: Any = "auto") -> Any:
    """The same model asked with another engine."""
    found = sf.GraphCRF.from_dict(model.to_dict())
    return found.set_params(max_cells=max_cells, inference=inference, random_state=0)


def test_answers_about_wide_graphs_come_near_exact_ones() -> None:
    X, y = grids_of(4, count=8, shape=(4, 4))
    model = sf.GraphCRF(sf.Normal(variance=1.0)).fit(X, y)
    marginals, best, partitions = model.predict_marginals(X), model.predict(X), model.log_partitions(X)
    wide = answers_of(model, 10)
    assert wide.predict(X) == best
    with pytest.warns(sf.SufficeWarning, match="8 graphs are too wide for exact inference, example 0 the first"):
        assert_allclose(wide.log_partitions(X), partitions, atol=0.05)
    assert np.abs(np.concatenate(wide.predict_marginals(X)) - np.concatenate(marginals)).max() < 0.02
    sampled = answers_of(model, 10, "gibbs")
    # 64 chains of 200 draws: at most 0.0045 of standard error were they independent.
    assert np.abs(np.concatenate(sampled.predict_marginals(X)) - np.concatenate(marginals)).max() < 0.025
    draws = np.array(wide.sample_labels(X, 2000, random_state=0))
    error = 5 * np.sqrt(0.25 / 2000)
    assert np.abs(draws.mean(axis=1) - np.array([m[:, 1] for m in marginals])).max() < error


def picture_of(rng: Any, truth: Any) -> Any:
    noisy = truth + rng.normal(scale=1.0, size=truth.shape)
    return sf.GraphExample.grid(np.stack([np.ones_like(noisy), noisy], axis=2))


def test_small_pictures_teach_what_cleans_a_large_one() -> None:
    rng = np.random.default_rng(5)
    truths = []
    for first, second in rng.integers(0, 6, (8, 2)):
        truth = np.zeros((8, 8), int)
        truth[first : first + 4, second : second + 5] = 1
        truths.append(truth)
    X = [picture_of(rng, truth) for truth in truths]
    model = sf.GraphCRF(sf.Normal(variance=10.0), edge_weights="equal", random_state=0).fit(X, truths)
    alone = sf.GraphCRF(sf.Normal(variance=10.0)).fit([sf.GraphExample(x.nodes) for x in X], truths)
    assert model.report_.certificate.exact
    large = np.zeros((40, 40), int)
    large[10:30, 12:28] = 1
    new = picture_of(rng, large)
    assert np.mean(np.reshape(alone.predict([sf.GraphExample(new.nodes)])[0], large.shape) == large) < 0.85
    assert np.mean(np.reshape(model.predict([new])[0], large.shape) == large) > 0.95


def test_a_large_picture_is_learned_by_pseudo_likelihood_and_by_gibbs_sampling() -> None:
    rng = np.random.default_rng(6)
    truth = np.zeros((20, 20), int)
    truth[5:15, 6:14] = 1
    X = [picture_of(rng, truth) for _ in range(2)]
    pseudo = sf.GraphCRF(sf.Normal(variance=10.0), edge_weights="equal", max_cells=1000).fit(X, [truth] * 2)
    assert pseudo.converged_
    assert not pseudo.report_.certificate.exact
    assert "pseudo-log-likelihood" in pseudo.report_.warnings[0]
    options: Any = {"inference": "gibbs", "solver": "adam", "step_size": 0.05, "n_samples": 8, "random_state": 0}
    model = sf.GraphCRF(
        sf.Normal(variance=10.0), edge_weights="equal", max_cells=1000, max_iter=100, batch_size=2, **options
    )
    model.fit(X, [truth] * 2)
    # Where labels hardly change the pseudo-likelihood makes edges too strong; sampling follows the likelihood.
    assert model.edge_weights_[0, 0, 0] < 0.7 * pseudo.edge_weights_[0, 0, 0]
    assert model.accuracy(X, [truth] * 2) > 0.92
    assert "Gibbs sampling" in str(model.report_.plan)
    certificate = model.report_.certificate
    assert certificate.value_gap is None
    assert certificate.monte_carlo is not None


def test_the_certificate_of_gibbs_sampling_is_measured_by_fresh_chains() -> None:
    X, y = grids_of(7, count=4)
    options: Any = {"inference": "gibbs", "step_size": 0.1, "decay": 0.5, "max_iter": 20, "random_state": 0}
    model = sf.GraphCRF(sf.Normal(variance=1.0), max_cells=10, **options).fit(X, y)
    exact = sf.GraphCRF(sf.Normal(variance=1.0))
    slope = field_objective(exact, X, y).smooth(model.weights_)[1]
    certificate = model.report_.certificate
    assert not certificate.exact
    assert certificate.monte_carlo is not None
    assert certificate.slope is not None
    assert abs(certificate.slope - np.abs(slope).max()) < 5 * certificate.monte_carlo.error
    assert certificate.monte_carlo.r_hat < 1.1
