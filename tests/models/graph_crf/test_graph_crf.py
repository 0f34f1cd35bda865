"""Graph CRFs: exact answers by enumeration, optima by a generic optimiser, and the models they contain."""

import itertools
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

import suffice as sf
from field_parts import field_objective
from graph_labelings import Enumerated, features_of, tables_of
from suffice.models.conditional_field.curvature import information

SHAPES = {
    "alone": [],
    "path": [(0, 1), (2, 1), (3, 2)],
    "pieces": [(3, 0)],
    "star": [(0, 1), (0, 2), (3, 0)],
    "cycle": [(0, 1), (1, 2), (3, 2), (0, 3)],
    "chord": [(0, 1), (1, 2), (2, 0), (2, 3)],
    "complete": list(itertools.combinations(range(4), 2)),
}


def example_of(rng: Any, edges: Any, *, nodes: Any = 4, features: Any = 2, edge_features: Any = 2) -> Any:
    pairs = np.array(edges, int).reshape(-1, 2)
    return sf.GraphExample(
        nodes=rng.normal(size=(nodes, features)),
        edges=pairs,
        edge_features=rng.normal(size=(len(pairs), edge_features)),
    )


def data_of(rng: Any, count: Any = 21, labels: Any = 3) -> Any:
    shapes = list(SHAPES.values())
    X = [example_of(rng, shapes[i % len(shapes)]) for i in range(count)]
    return X, [rng.integers(0, labels, 4) for _ in X]


# -- answers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["full", "symmetric", "equal", lambda a, b: [a == b, abs(a - b)]])
def test_answers_equal_enumeration_on_every_shape(form: Any) -> None:
    rng = np.random.default_rng(1)
    X, y = data_of(rng)
    model = sf.GraphCRF(prior=sf.Normal(variance=2.0), edge_weights=form).fit(X, y)
    tables = tables_of(model)
    laws = [Enumerated(tables, example, 3) for example in X]
    assert_allclose(model.log_partitions(X), [law.log_z for law in laws], rtol=1e-12)
    assert model.log_partition(X[4]) == pytest.approx(laws[4].log_z, rel=1e-12)
    for found, law in zip(model.predict_marginals(X), laws, strict=True):
        assert_allclose(found, law.marginals(), atol=1e-12)
    assert model.predict(X) == [law.best() for law in laws]
    own = [law.scores[int("".join(map(str, codes)), 3)] - law.log_z for law, codes in zip(laws, y, strict=True)]
    assert_allclose(model.score_samples(X, y), own, rtol=1e-11)
    assert model.score_samples(X, y).sum() == pytest.approx(sum(own), rel=1e-12)
    assert_allclose(model.fitted_.score_samples(X, y), model.score_samples(X, y), rtol=1e-14)
    assert model.score(X, y) == pytest.approx(np.mean(own), rel=1e-12)
    assert model.report_.log_likelihood == pytest.approx(sum(own), rel=1e-10)
    assert model.report_.certificate.exact


def test_symmetric_and_equal_weights_have_their_form() -> None:
    rng = np.random.default_rng(2)
    X, y = data_of(rng)
    full = sf.GraphCRF(sf.Normal(variance=1.0)).fit(X, y)
    symmetric = sf.GraphCRF(sf.Normal(variance=1.0), edge_weights="symmetric").fit(X, y)
    equal = sf.GraphCRF(sf.Normal(variance=1.0), edge_weights="equal").fit(X, y)
    assert full.node_weights_.shape == (3, 2)
    assert full.edge_weights_.shape == symmetric.edge_weights_.shape == equal.edge_weights_.shape == (3, 3, 2)
    assert [len(model.weights_) for model in (full, symmetric, equal)] == [6 + 18, 6 + 12, 6 + 2]
    assert len(full.weight_names_) == 24
    assert full.weight_names_[0] == ("nodes", 0, 0)
    assert full.weight_names_[-1] == ("edges", 2, 2, 1)
    assert_allclose(symmetric.edge_weights_, symmetric.edge_weights_.transpose(1, 0, 2), atol=0)
    assert np.abs(full.edge_weights_ - full.edge_weights_.transpose(1, 0, 2)).max() > 0.01
    assert_allclose(equal.edge_weights_, np.eye(3)[:, :, None] * equal.edge_weights_[0, 0], atol=0)


def test_cliques_of_one_three_and_four_nodes_with_tied_weights() -> None:
    rng = np.random.default_rng(3)
    forms = {"triples": "full", "alike": "equal", "extra": "full", "sums": lambda a, b, c: [a + b + c, a * b * c]}
    X, y = [], []
    for edges in ([(0, 1), (1, 2)], [(0, 1)], [(0, 1), (2, 3)]) * 5:
        cliques = {
            "triples": ([[0, 1, 2], [3, 1, 0]], rng.normal(size=(2, 2))),
            "alike": [[3, 2, 1, 0]],
            "extra": ([[2]], [[1.5]]),
        }
        if len(edges) == 2:
            cliques["sums"] = ([[1, 2, 3]], rng.normal(size=(1, 1)))
        base = example_of(rng, edges, edge_features=1)
        X.append(sf.GraphExample(base.nodes, base.edges, base.edge_features, cliques=cliques))
        y.append(rng.integers(0, 2, 4))
    model = sf.GraphCRF(sf.Normal(variance=1.0), templates=forms, edge_weights="symmetric").fit(X, y)
    assert model.converged_
    assert model.template_weights("triples").shape == (2, 2, 2, 2)
    laws = [Enumerated(tables_of(model), example, 2) for example in X]
    assert_allclose(model.log_partitions(X), [law.log_z for law in laws], rtol=1e-12)
    for found, law in zip(model.predict_marginals(X), laws, strict=True):
        assert_allclose(found, law.marginals(), atol=1e-12)
    assert model.predict(X) == [law.best() for law in laws]
    # The weights are stationary for the objective that enumeration gives.
    eps = 1e-5
    trained = model.fitted_

    def objective(weights: Any) -> Any:
        tables = {
            t.name: t.whole(trained.structure.block(weights, i)) for i, t in enumerate(trained.structure.templates)
        }
        total = -0.5 * float(weights @ weights)
        for example, codes in zip(X, y, strict=True):
            law = Enumerated(tables, example, 2)
            total += law.scores[int("".join(map(str, codes)), 2)] - law.log_z
        return total

    base = model.weights_
    for place in range(0, len(base), 5):
        step = np.eye(len(base))[place] * eps
        assert abs(objective(base + step) - objective(base - step)) / (2 * eps) < 2e-4
    assert model.report_.objective == pytest.approx(objective(base), rel=1e-10)


# -- optimum ---------------------------------------------------------------------------------------------------------


def written_out(X: Any, y: Any, labels: Any, mean: Any, precision: Any) -> Any:
    """Minus the objective with full weights, straight from the definition."""
    rows = [np.array([features_of(x, c, labels) for c in itertools.product(range(labels), repeat=4)]) for x in X]
    own: Any = sum(features_of(x, c, labels) for x, c in zip(X, y, strict=True))

    def value(weights: Any) -> Any:
        total, gradient = float(own @ weights), own.copy()
        for features in rows:
            scores = features @ weights
            top = scores.max()
            shares = np.exp(scores - top)
            total -= top + np.log(shares.sum())
            gradient -= shares @ features / shares.sum()
        off = weights - mean
        return -(total - 0.5 * off @ precision @ off), -(gradient - precision @ off)

    return value


@pytest.mark.parametrize("solver", ["lbfgs", "newton"])
def test_map_with_a_full_gaussian_prior_equals_a_generic_optimiser(solver: Any) -> None:
    rng = np.random.default_rng(4)
    X, y = data_of(rng, count=14, labels=2)
    k = 4 + 8
    root = rng.normal(size=(k, k))
    covariance = root @ root.T / k + 0.5 * np.eye(k)
    mean = rng.normal(size=k)
    prior = sf.MultivariateNormal(mean=mean, covariance=covariance)
    model = sf.GraphCRF(prior, solver=solver, tolerance=1e-9).fit(X, y)
    function = written_out(X, y, 2, mean, np.linalg.inv(covariance))
    best = minimize(function, np.zeros(k), jac=True, method="BFGS", options={"gtol": 1e-9})
    assert_allclose(model.weights_, best.x, atol=2e-7)
    assert model.report_.objective == pytest.approx(-best.fun, abs=1e-9)
    certificate = model.report_.certificate
    assert model.converged_
    assert certificate.bound
    assert (certificate.value_gap or 0.0) < 1e-12
    assert certificate.slope == pytest.approx(np.abs(function(model.weights_)[1]).max(), abs=1e-8)


def test_the_value_gap_bounds_what_is_left() -> None:
    rng = np.random.default_rng(5)
    X, y = data_of(rng, count=14, labels=2)
    best = sf.GraphCRF(sf.Normal(variance=0.5), tolerance=1e-10).fit(X, y)
    with pytest.warns(sf.ConvergenceWarning):
        early = sf.GraphCRF(sf.Normal(variance=0.5), max_iter=2).fit(X, y)
    left = (best.report_.objective - early.report_.objective) / len(X)
    assert not early.converged_
    assert 0.0 < left <= (early.report_.certificate.value_gap or 0.0)


def test_a_laplace_prior_meets_its_conditions() -> None:
    rng = np.random.default_rng(6)
    X, y = data_of(rng, count=14, labels=2)
    model = sf.GraphCRF(sf.Laplace(scale=0.25), tolerance=1e-9).fit(X, y)
    slope = -written_out(X, y, 2, np.zeros(12), np.zeros((12, 12)))(model.weights_)[1]
    zero = model.weights_ == 0.0
    assert model.report_.method == "orthant-wise L-BFGS"
    assert 0 < zero.sum() < 12
    assert np.abs(slope[zero]).max() <= 4.0
    assert_allclose(slope[~zero], 4.0 * np.sign(model.weights_[~zero]), atol=1e-6)


def test_newton_uses_the_covariance_of_the_features() -> None:
    rng = np.random.default_rng(7)
    X, y = data_of(rng, count=7, labels=2)
    model = sf.GraphCRF(sf.Normal(variance=1.0)).fit(X, y)
    objective = field_objective(model, X, y)
    weights = model.weights_
    total = np.eye(12)
    for example in X:
        law = Enumerated(tables_of(model), example, 2)
        features = np.array([features_of(example, codes, 2) for codes in law.codes])
        centred = features - law.probabilities @ features
        total += (law.probabilities[:, None] * centred).T @ centred
    assert_allclose(information(objective, weights), total, atol=1e-6)


# -- the models it contains ------------------------------------------------------------------------------------------


def softmax_data(seed: Any, labels: Any) -> Any:
    rng = np.random.default_rng(seed)
    rows = np.column_stack([np.ones(120), rng.normal(size=(120, 2))])
    y = np.array(["a", "b", "c"])[rng.integers(0, labels, 120)]
    y[rows[:, 1] > 0.8] = "a"
    return rows, y, [sf.GraphExample(nodes=row[None]) for row in rows]


def test_graphs_of_one_node_are_softmax_regression() -> None:
    rows, y, X = softmax_data(8, 3)
    prior = sf.Normal(variance=0.7)
    glm = sf.GLM(family=sf.Categorical(), prior=prior, fit_intercept=False).fit(rows, y)
    # The regression holds the weights of the last label at 0; a prior of next to no variance does the same here.
    held = sf.Normal(mean=0.0, variance=np.repeat([0.7, 0.7, 1e-13], 3))
    model = sf.GraphCRF(held, solver="newton", tolerance=1e-9).fit(X, y)
    assert_allclose(np.concatenate(model.predict_marginals(X)), np.asarray(glm.predict_proba(rows)), atol=1e-8)
    assert_allclose(model.node_weights_, np.asarray(glm.coefficients_).T, atol=1e-8)
    assert model.report_.log_likelihood == pytest.approx(glm.log_likelihood_, abs=1e-7)
    assert model.labels_ == ("a", "b", "c")
    assert "softmax" in str(model.report_.plan)


def test_two_labels_with_the_same_prior_on_their_difference_are_logistic_regression() -> None:
    rows, y, X = softmax_data(8, 2)
    # Two independent weights of variance v have a difference of variance 2 v.
    glm = sf.GLM(family=sf.Bernoulli(), prior=sf.Normal(variance=1.4), fit_intercept=False).fit(rows, y == "b")
    model = sf.GraphCRF(sf.Normal(variance=0.7), tolerance=1e-10).fit(X, y)
    assert_allclose([found[0]["b"] for found in model.predict_marginals(X)], glm.predict_proba(rows)[:, 1], atol=1e-8)
    assert model.report_.log_likelihood == pytest.approx(glm.log_likelihood_, abs=1e-9)


def test_graphs_of_one_node_without_a_prior_are_softmax_regression() -> None:
    rows, y, X = softmax_data(9, 3)
    glm = sf.GLM(family=sf.Categorical(), fit_intercept=False).fit(rows, y)
    model = sf.GraphCRF(tolerance=1e-8).fit(X, y)
    assert model.report_.log_likelihood == pytest.approx(glm.log_likelihood_, abs=1e-9)
    assert_allclose(model.node_weights_ - model.node_weights_[2], np.asarray(glm.coefficients_).T, atol=1e-6)


EDGES = [("A", "B"), ("B", "C"), ("C", "D"), ("D", "A")]


def rows_of_a_cycle(rng: Any, count: Any = 400) -> Any:
    codes = rng.integers(0, 2, (count, 4))
    codes[: count // 2, 1] = codes[: count // 2, 0]
    return codes


def test_inputless_graphs_are_a_markov_network() -> None:
    codes = rows_of_a_cycle(np.random.default_rng(10))
    network = sf.MarkovNetwork(EDGES).fit({name: codes[:, i] for i, name in enumerate("ABCD")})
    # One feature for each edge: each has weights of its own.
    graph = sf.GraphExample(nodes=np.zeros((4, 0)), edges=[[0, 1], [1, 2], [2, 3], [3, 0]], edge_features=np.eye(4))
    model = sf.GraphCRF(tolerance=1e-9).fit([graph] * len(codes), codes)
    assert model.report_.log_likelihood == pytest.approx(network.report_.log_likelihood, abs=1e-7)
    expected = [network.marginal((name,)).values for name in "ABCD"]
    assert_allclose(model.predict_marginals([graph])[0], expected, atol=1e-8)


def test_inputless_graphs_with_tied_weights_are_a_markov_network() -> None:
    codes = rows_of_a_cycle(np.random.default_rng(11))
    same = sf.Feature(EDGES, lambda a, b: float(a == b), name="same")
    prior = sf.Normal(mean=0.1, variance=0.02)
    states = {name: [0, 1] for name in "ABCD"}
    network = sf.MarkovNetwork([same], states=states, prior=prior).fit({n: codes[:, i] for i, n in enumerate("ABCD")})
    graph = sf.GraphExample(nodes=np.zeros((4, 0)), edges=[[0, 1], [1, 2], [2, 3], [3, 0]])
    model = sf.GraphCRF(prior, edge_weights="equal", tolerance=1e-9).fit([graph] * len(codes), codes)
    assert model.weights_[0] == pytest.approx(float(network.weights_[0]), abs=1e-8)
    assert model.log_partition(graph) == pytest.approx(network.log_partition_, abs=1e-8)


def test_chains_are_chain_crfs() -> None:
    rng = np.random.default_rng(12)
    arrays = [rng.normal(size=(n, 3)) for n in (1, 4, 7, 2, 5)]
    y = [rng.integers(0, 3, len(array)) for array in arrays]
    chain = sf.ChainCRF(sf.Normal(variance=1.0), tolerance=1e-9).fit(arrays, y)
    model = sf.GraphCRF(sf.Normal(variance=1.0), tolerance=1e-9).fit([sf.GraphExample.chain(a) for a in arrays], y)
    assert_allclose(model.node_weights_, chain.state_weights_.T, atol=1e-7)
    assert_allclose(model.edge_weights_[:, :, 0], chain.transition_weights_, atol=1e-7)
    assert model.report_.objective == pytest.approx(chain.report_.objective, abs=1e-9)
    assert "forward-backward" in str(model.report_.plan)


# -- laws ------------------------------------------------------------------------------------------------------------


def test_weights_count_as_repetition_and_equal_examples_once() -> None:
    rng = np.random.default_rng(13)
    X, y = data_of(rng, count=7)
    counts = np.array([1, 2, 0, 3, 1, 1, 2])
    repeated = [i for i, n in enumerate(counts) for _ in range(n)]
    prior = sf.Normal(variance=1.0)
    weighted = sf.GraphCRF(prior, tolerance=1e-9).fit(X, y, sample_weight=counts)
    plain = sf.GraphCRF(prior, tolerance=1e-9).fit([X[i] for i in repeated], [y[i] for i in repeated])
    assert_allclose(weighted.weights_, plain.weights_, atol=1e-8)
    assert weighted.report_.log_likelihood == pytest.approx(plain.report_.log_likelihood, abs=1e-8)
    assert weighted.report_.weight == 10.0


def test_the_order_of_examples_edges_and_nodes_does_not_matter() -> None:
    rng = np.random.default_rng(14)
    X, y = data_of(rng, count=14, labels=2)
    first = sf.GraphCRF(sf.Normal(variance=1.0), tolerance=1e-10).fit(X, y)
    moved, labels = [], []
    for example, codes in zip(reversed(X), reversed(y), strict=True):
        order, rows = rng.permutation(4), rng.permutation(len(example.edges))
        place = np.argsort(order)
        moved.append(sf.GraphExample(example.nodes[order], place[example.edges[rows]], example.edge_features[rows]))
        labels.append(codes[order])
    second = sf.GraphCRF(sf.Normal(variance=1.0), tolerance=1e-10).fit(moved, labels)
    assert_allclose(first.weights_, second.weights_, atol=1e-8)


def test_draws_follow_the_law() -> None:
    rng = np.random.default_rng(15)
    X, y = data_of(rng, count=7, labels=2)
    model = sf.GraphCRF(sf.Normal(variance=1.0)).fit(X, y)
    draws = model.sample_labels(X, 4000, random_state=0)
    for example, found in zip(X, draws, strict=True):
        law = Enumerated(tables_of(model), example, 2)
        cells = np.array(found) @ (2 ** np.arange(3, -1, -1))
        shares = np.bincount(cells, minlength=16) / 4000
        error = np.sqrt(law.probabilities * (1 - law.probabilities) / 4000)
        assert (np.abs(shares - law.probabilities) < 5 * error + 1e-3).all()
    assert draws == model.sample_labels(X, 4000, random_state=0)
