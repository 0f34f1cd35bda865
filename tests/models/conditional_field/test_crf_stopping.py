"""How fits end: early stopping, validation sets, maxima that do not exist, singular information."""

import itertools
from typing import Any

import numpy as np
import pytest
from scipy import optimize

import suffice as sf
from graph_labelings import Enumerated, features_of
from label_paths import features, log_likelihood, random_sequences

NORMAL = sf.Normal(variance=100.0)


def sets(seed: Any = 0) -> Any:
    X, Y = random_sequences(seed, count=8, width=4, size=2)
    X2, Y2 = random_sequences(seed + 1, count=8, width=4, size=2)
    return X, Y, X2, Y2


def interrupted(at: int) -> Any:
    def callback(state: Any) -> None:
        if state.iteration == at:
            raise KeyboardInterrupt

    return callback


@pytest.mark.parametrize("end", ["max_iter", "interrupted", "callback", "converged", "sgd"])
def test_early_stopping_takes_the_best_weights_however_the_fit_ends(end: Any) -> None:
    X, Y, X2, Y2 = sets()
    seen: list[Any] = [np.zeros(12)]
    options: Any = {"labels": [0, 1], "patience": 1000, "max_iter": 12}
    late = interrupted(12) if end == "interrupted" else (lambda state: end == "callback" and state.iteration == 12)

    def watch(state: Any) -> Any:
        seen.append(state.parameters.copy())
        return late(state)

    if end == "converged":
        options |= {"max_iter": 500, "tolerance": 1e-6}
    if end == "sgd":
        options |= {"solver": "sgd", "random_state": 0}
    if end in ("interrupted", "callback"):
        options["max_iter"] = 500
    model = sf.ChainCRF(prior=NORMAL, callback=watch, **options)
    if end == "max_iter":
        with pytest.warns(sf.ConvergenceWarning, match="max_iter"):
            model.fit(X, Y, validation=(X2, Y2))
    else:
        model.fit(X, Y, validation=(X2, Y2))
    values = [log_likelihood(X2, Y2, w[:8].reshape(4, 2), w[8:].reshape(2, 2)) / 8 for w in seen]
    best = int(np.argmax(values))
    assert best < len(seen) - 1
    np.testing.assert_allclose(model.weights_, seen[best], atol=1e-12)
    assert model.score(X2, Y2) == pytest.approx(values[best], rel=1e-10)
    assert model.n_iter_ == best
    assert not model.converged_
    assert model.history_[-1] == pytest.approx(model.report_.objective, rel=1e-12)


def test_a_validation_set_ends_the_fit_of_graphs() -> None:
    rng = np.random.default_rng(0)
    X = [sf.GraphExample(rng.normal(size=(3, 4)), [[0, 1], [1, 2], [0, 2]]) for _ in range(12)]
    y = [rng.integers(0, 2, 3) for _ in X]
    model = sf.GraphCRF(prior=NORMAL, labels=[0, 1], patience=3)
    model.fit(X[:6], y[:6], validation=(X[6:], y[6:]))
    whole = sf.GraphCRF(prior=NORMAL, labels=[0, 1]).fit(X[:6], y[:6])
    assert model.report_.stop_reason == "early stopping"
    assert model.score(X[6:], y[6:]) > whole.score(X[6:], y[6:])
    with pytest.raises(sf.UnknownStateError, match="In the validation set: Example 0 of y, node 1: the label 7"):
        model.fit(X, y, validation=(X[:1], [[0, 7, 1]]))


def test_validation_labels_that_the_constraints_forbid_are_named() -> None:
    X = [[["a"], ["b"]]]
    model = sf.ChainCRF(prior=NORMAL, constraints=[("A", "B")], labels=["A", "B", "C"])
    with pytest.raises(sf.DataError, match=r"In the validation set: Sequence 0 of y, step 1: the label 'B' after 'A'"):
        model.fit(X, [["B", "A"]], validation=(X, [["A", "B"]]))


# -- maxima that do not exist ------------------------------------------------------------------------------------------


def separable(rows: Any) -> bool:
    """Whether some d has ``rows d >= 0`` and is not 0 on all of them: a linear programme over all other labellings."""
    found: Any = optimize.linprog(-rows.sum(axis=0), A_ub=-rows, b_ub=np.zeros(len(rows)), bounds=(-1.0, 1.0))
    return bool(-found.fun > 1e-9)


def path_rows(X: Any, Y: Any, size: Any) -> Any:
    def vector(x: Any, path: Any) -> Any:
        return np.concatenate([part.ravel() for part in features(x, path, size)])

    rows = []
    for x, y in zip(X, Y, strict=True):
        rows += [vector(x, y) - vector(x, path) for path in itertools.product(range(size), repeat=len(x))]
    return np.array(rows)


@pytest.mark.filterwarnings("ignore:.*no maximum:suffice.ConvergenceWarning")
@pytest.mark.parametrize("seed", range(12))
def test_a_chain_says_that_there_is_no_maximum(seed: Any) -> None:
    """As a linear programme over all labellings tells it, complete separation or not."""
    rng = np.random.default_rng(seed)
    count = [2, 3, 8, 30][seed % 4]
    X = [rng.normal(size=(3, 1)) for _ in range(count)]
    Y = [rng.integers(0, 2, 3).tolist() for _ in X]
    model = sf.ChainCRF(labels=[0, 1]).fit(X, Y)
    certificate = model.report_.certificate
    none = separable(path_rows(X, Y, 2))
    assert certificate.exists is not none
    assert model.converged_ is not none
    if none:
        assert "infinity" in certificate.directions[0]
        assert "no maximum" in str(model.report_)
    with_prior = sf.ChainCRF(prior=NORMAL, labels=[0, 1]).fit(X, Y)
    assert with_prior.converged_
    assert with_prior.report_.certificate.exists


def test_a_feature_seen_with_one_label_alone_has_no_maximum() -> None:
    with pytest.warns(sf.SeparationWarning, match="no maximum: the labels are separated"):
        model = sf.ChainCRF().fit([[{"w": "a"}, {"w": "b"}], [{"w": "b"}]], [["A", "B"], ["B"]])
    certificate = model.report_.certificate
    assert certificate.exists is False
    assert "state w:a A to +infinity" in certificate.directions
    assert not model.converged_
    assert model.report_.stop_reason == "no maximum"


def test_constraints_count_in_the_proof() -> None:
    """The only possible path has probability 1 whatever the weights: nothing runs to infinity."""
    model = sf.ChainCRF(labels=["A", "B"], constraints=[("A", "A"), ("B", "B"), (None, "B")])
    model.fit([[["x"], ["y"]]], [["A", "B"]])
    assert model.report_.certificate.exists is not False
    assert model.report_.log_likelihood == pytest.approx(0.0, abs=1e-12)


@pytest.mark.filterwarnings("ignore:.*no maximum:suffice.ConvergenceWarning")
@pytest.mark.parametrize("seed", range(6))
def test_a_graph_says_that_there_is_no_maximum(seed: Any) -> None:
    rng = np.random.default_rng(seed)
    X = [sf.GraphExample(rng.normal(size=(3, 1)), [[0, 1], [1, 2], [0, 2]]) for _ in range([2, 20][seed % 2])]
    y = [rng.integers(0, 2, 3) for _ in X]
    model = sf.GraphCRF(labels=[0, 1]).fit(X, y)
    rows = []
    for example, codes in zip(X, y, strict=True):
        own = features_of(example, codes, 2)
        law = Enumerated({"nodes": np.zeros((2, 1)), "edges": np.zeros((2, 2, 1))}, example, 2)
        rows += [own - features_of(example, other, 2) for other in law.codes]
    none = separable(np.array(rows))
    assert model.report_.certificate.exists is not none
    assert model.converged_ is not none


@pytest.mark.parametrize("form", ["full", "symmetric", "equal"])
def test_one_label_alone_has_nothing_that_runs_away(form: Any) -> None:
    """Its probability is 1 whatever the weights."""
    X = [sf.GraphExample([[1.0], [-2.0]], [[0, 1]]), sf.GraphExample([[3.0]])]
    model = sf.GraphCRF(edge_weights=form).fit(X, [["a", "a"], ["a"]])
    assert model.report_.log_likelihood == pytest.approx(0.0, abs=1e-12)
    assert model.report_.certificate.exists
    assert model.converged_


# -- Newton's method ---------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*no maximum:suffice.ConvergenceWarning")
def test_newton_takes_singular_information() -> None:
    X = [[{"w": "a", "n": 1.5, "b": True}, {"w": "b", "n": 2}], [{"w": "b"}]]
    model = sf.ChainCRF(solver="newton").fit(X, [["A", "B"], ["B"]])
    assert model.report_.log_likelihood > -0.01


@pytest.mark.parametrize("seed", range(5))
def test_newton_and_lbfgs_agree_without_a_prior(seed: Any) -> None:
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(3, 2)) for _ in range(12)]
    Y = [rng.integers(0, 2, 3).tolist() for _ in X]
    newton = sf.ChainCRF(solver="newton", labels=[0, 1]).fit(X, Y)
    other = sf.ChainCRF(labels=[0, 1], tolerance=1e-8).fit(X, Y)
    assert newton.report_.log_likelihood == pytest.approx(other.report_.log_likelihood, rel=1e-8)
    np.testing.assert_allclose(
        np.concatenate(newton.predict_marginals(X)), np.concatenate(other.predict_marginals(X)), atol=1e-4
    )


@pytest.mark.filterwarnings("ignore:.*no maximum:suffice.ConvergenceWarning")
@pytest.mark.parametrize("seed", range(6))
def test_newton_stays_near_where_weights_change_nothing(seed: Any) -> None:
    """Shifting a feature's weights for all labels changes nothing; errors there must not send the weights away."""
    rng = np.random.default_rng(seed)
    X = [rng.integers(-1, 2, size=(int(rng.integers(1, 4)), 2)).astype(float) for _ in range(6)]
    Y = [rng.integers(0, 3, len(x)).tolist() for x in X]
    options: Any = {"labels": [0, 1, 2], "boundaries": True, "bias": True, "all_possible_states": False}
    newton = sf.ChainCRF(solver="newton", **options).fit(X, Y)
    other = sf.ChainCRF(tolerance=1e-7, **options).fit(X, Y)
    assert newton.report_.log_likelihood == pytest.approx(other.report_.log_likelihood, abs=1e-3)
    assert newton.report_.iterations < 60
    assert np.abs(newton.weights_).max() < 100.0
