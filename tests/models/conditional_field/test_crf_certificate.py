"""The certificate of conditional random fields: judge, Newton decrement, existence and the number of parameters."""

from __future__ import annotations

import itertools
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import suffice as sf
from suffice.errors import DataError, EstimateError, OptionError
from suffice.models.conditional_field import learning as label_learning

Floats = NDArray[np.float64]


def sequences(seed: int, count: int = 25, width: int = 2, labels: str = "abc") -> tuple[list[Floats], list[list[str]]]:
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(int(length), width)) for length in rng.integers(1, 6, count)]
    return X, [[str(label) for label in rng.choice(list(labels), len(x))] for x in X]


def graphs(seed: int, count: int = 25, width: int = 2, labels: str = "ab") -> tuple[list[Any], list[list[str]]]:
    rng = np.random.default_rng(seed)
    X, y = [], []
    for size in rng.integers(2, 6, count).tolist():
        ring = [(a, a + 1) for a in range(size - 1)] + ([(0, size - 1)] if size > 2 else [])
        X.append(sf.GraphExample(rng.normal(size=(size, width)), ring))
        y.append([str(label) for label in rng.choice(list(labels), size)])
    return X, y


MODELS: dict[str, Any] = {"chain": (sf.ChainCRF, sequences), "graph": (sf.GraphCRF, graphs)}
PRIORS: dict[str, Any] = {
    "normal": sf.Normal(variance=2.0),
    "laplace": sf.Laplace(0.5),
    "both": (sf.Normal(variance=2.0), sf.Laplace(0.5)),
    "none": None,
}


# -- the judge -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("kind", MODELS)
def test_a_wrong_solver_is_found_out(kind: str, prior: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights that were moved off the maximum: bounds hold, estimates are near, and the slope shows."""
    make, draw = MODELS[kind]
    X, y = draw(3)
    best = make(PRIORS[prior], tolerance=1e-9, max_iter=5_000).fit(X, y)
    solve = label_learning._solved

    for size in (1e-3, 0.1, 2.0):

        def faulty(*given: Any, size: float = size) -> Any:
            outcome = solve(*given)
            moved = outcome.state.parameters + size * np.random.default_rng(1).normal(
                size=len(outcome.state.parameters)
            )
            return replace(outcome, state=replace(outcome.state, parameters=moved))

        monkeypatch.setattr(label_learning, "_solved", faulty)
        with pytest.warns(sf.ConvergenceWarning, match="not converged"):
            fit = make(PRIORS[prior]).fit(X, y)
        certificate = fit.report_.certificate
        lost = (best.report_.objective - fit.report_.objective) / len(X)
        assert lost > 0.0
        assert certificate.value_gap is not None
        assert certificate.slope > 1e-2 * size
        if prior == "none":
            assert not certificate.bound
            assert lost / 10 < certificate.value_gap < 10 * lost
        else:
            assert certificate.bound
            assert lost <= certificate.value_gap


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("units", [1e-3, 1.0, 1e3])
def test_without_a_prior_the_newton_decrement_says_what_is_left(kind: str, units: float) -> None:
    make, draw = MODELS[kind]
    X, y = draw(0)
    if kind == "chain":
        X = [x * np.array([1.0, units]) for x in X]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sf.errors.ConvergenceWarning)  # Rounding may hide the last digits.
        best = make(solver="newton", tolerance=1e-10, max_iter=200).fit(X, y)
    assert best.report_.certificate.exists is True
    assert best.report_.certificate.value_gap is not None
    assert best.report_.certificate.value_gap < 1e-12
    for most in (2, 5, 1000):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", sf.errors.ConvergenceWarning)
            fit = make(max_iter=most).fit(X, y)
        lost = (best.report_.log_likelihood - fit.report_.log_likelihood) / len(X)
        found = fit.report_.certificate.value_gap
        assert found is not None
        assert not fit.report_.certificate.bound
        if lost > 1e-12:
            assert lost / 3 < found < 3 * lost


# -- existence ---------------------------------------------------------------------------------------------------------


def path_features(x: Any, path: Any, labels: str) -> Floats:
    """Sums of (feature, label) and of (label, label) along a path, for steps that are sets of features."""
    width = max(max(step) for step in itertools.chain([[0]], x)) + 1
    states, transitions = np.zeros((max(width, 40), len(labels))), np.zeros((len(labels), len(labels)))
    for step, label in zip(x, path, strict=True):
        states[list(step), labels.index(label)] += 1.0
    for before, after in itertools.pairwise(path):
        transitions[labels.index(before), labels.index(after)] += 1.0
    return np.concatenate([states.ravel(), transitions.ravel()])


def separable(X: Any, y: Any, labels: str) -> bool:
    """Whether a direction favours the given labels over all others, by a linear programme over all paths."""
    from scipy.optimize import linprog

    rows = []
    for x, path in zip(X, y, strict=True):
        own = path_features(x, path, labels)
        rows += [own - path_features(x, other, labels) for other in itertools.product(labels, repeat=len(x))]
    D = np.unique(np.array(rows), axis=0)
    D = D[np.abs(D).max(axis=1) > 0][:, np.abs(D).max(axis=0) > 0]
    found = linprog(-D.sum(axis=0), A_ub=-D, b_ub=np.zeros(len(D)), bounds=(-1.0, 1.0), method="highs")
    assert found.fun is not None
    return bool(-found.fun > 1e-7)


@pytest.mark.filterwarnings("ignore:.*no maximum:suffice.ConvergenceWarning")
@pytest.mark.parametrize("seed", range(4))
def test_many_weights_are_decided_as_by_a_linear_programme_over_all_paths(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = (70, 70, 30, 40)[seed]
    X = [[sorted(rng.choice(24, 3, replace=False).tolist()) for _ in range(n)] for n in rng.integers(1, 5, count)]
    y = [[str(label) for label in rng.choice(list("abc"), len(x))] for x in X]
    named = [[[f"f{place}" for place in step] for step in x] for x in X]
    fit = sf.ChainCRF(all_possible_states=True, all_possible_transitions=True).fit(named, y)
    assert len(fit.weights_) == 24 * 3 + 9
    assert fit.report_.certificate.exists is not separable(X, y, "abc")
    assert fit.report_.certificate.exists is not None


# -- the number of parameters ------------------------------------------------------------------------------------------


def enumerated_rank(rows: list[list[Floats]]) -> int:
    """The rank of features of all labellings, each example about its first."""
    matrix = np.concatenate([np.array(some) - some[0] for some in rows])
    sizes = np.abs(matrix).max(axis=0)
    return int(np.linalg.matrix_rank(matrix[:, sizes > 0] / sizes[sizes > 0]))


def chain_features(model: sf.ChainCRF, x: Any, path: Any) -> Floats:
    """What each weight of a model is multiplied by along a path, by its name."""
    found = dict.fromkeys(map(tuple, model.weight_names_), 0.0)

    def add(key: Any, value: float) -> None:
        if key in found:
            found[key] += value

    for t, (step, label) in enumerate(zip(x, path, strict=True)):
        for name, value in step.items():
            add(("state", name, label), value)
            if t:
                add(("transition", name, path[t - 1], label), value)
        if t:
            add(("transition", path[t - 1], label), 1.0)
    add(("start", path[0]), 1.0)
    add(("end", path[-1]), 1.0)
    return np.array(list(found.values()))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"all_possible_states": True, "all_possible_transitions": True},
        {"all_possible_states": True},
        {"boundaries": True},
        {"conditioned_transitions": True},
        {"constraints": [("a", "c")]},
        {"constraints": [("a", "c"), (None, "b")], "boundaries": True, "all_possible_states": True},
    ],
)
def test_parameters_are_the_rank_of_the_features_of_all_paths(options: dict[str, Any]) -> None:
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = []
        for length in rng.integers(1, 4, 6):
            steps = [{f"w{rng.integers(3)}": 1.0, "v": float(rng.normal())} for _ in range(length)]
            X.append([{**step, "twice": 2.0 * step["v"]} for step in steps])  # Never told apart from v.
        y = [["c" if t == 0 else "b" for t in range(len(x))] for x in X]
        y[0][-1] = "a" if len(y[0]) == 1 and "constraints" not in options else y[0][-1]
        model = sf.ChainCRF(labels=list("abc"), max_iter=2, **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", sf.errors.ConvergenceWarning)
            model.fit(X, y)
        forbidden = set(options.get("constraints", ()))
        rows = [
            [
                chain_features(model, x, path)
                for path in itertools.product("abc", repeat=len(x))
                if not forbidden & {(None, path[0]), *itertools.pairwise(path)}
            ]
            for x in X
        ]
        assert model.n_params_ == model.report_.n_params == enumerated_rank(rows) < len(model.weights_)
        assert not any("bound" in text for text in model.report_.warnings)


@pytest.mark.parametrize("form", ["full", "symmetric", "equal"])
def test_parameters_of_graphs_are_the_rank_of_the_features_of_all_labellings(form: Any) -> None:
    rng = np.random.default_rng(2)
    X = []
    for size in (2, 3, 3, 4):
        values = rng.normal(size=(size, 2))
        X.append(sf.GraphExample(np.c_[values, values.sum(axis=1)], [(a, a + 1) for a in range(size - 1)]))
    y = [[str(label) for label in rng.choice(list("abc"), len(x.nodes))] for x in X]
    model = sf.GraphCRF(edge_weights=form, labels=list("abc"), max_iter=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sf.errors.ConvergenceWarning)
        model.fit(X, y)

    def features(x: Any, path: Any) -> Floats:
        found = dict.fromkeys(map(tuple, model.weight_names_), 0.0)
        for values, label in zip(np.asarray(x.nodes), path, strict=True):
            for place, value in enumerate(values):
                found["nodes", label, place] += value
        for one, other in itertools.pairwise(path):
            pair = {"full": (one, other), "symmetric": tuple(sorted((one, other))), "equal": ("equal",)}[form]
            if form != "equal" or one == other:
                found["edges", *pair, 0] += 1.0
        return np.array(list(found.values()))

    rows = [[features(x, path) for path in itertools.product("abc", repeat=len(x.nodes))] for x in X]
    assert model.n_params_ == enumerated_rank(rows)
    report = model.report_
    assert report.aic == pytest.approx(2 * model.n_params_ - 2 * report.log_likelihood)


def test_many_weights_of_arrays_are_counted_exactly_and_of_words_bounded() -> None:
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(5, 120)) for _ in range(60)]
    y = [[str(label) for label in rng.choice(list("abcdefghijkl"), 5)] for _ in X]
    arrays = sf.ChainCRF(prior=sf.Normal(variance=1.0)).fit(X, y)
    assert len(arrays.weights_) == 120 * 12 + 144
    # Of the 120 columns and those of "a step before" and "a step after" none is a combination of others.
    assert arrays.n_params_ == 122 * 11 + 11**2
    words = [[[f"w{rng.integers(700)}", "every"] for _ in range(5)] for _ in range(900)]
    y = [[str(label) for label in rng.choice(list("abc"), 5)] for _ in words]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sf.errors.ConvergenceWarning)
        fit = sf.ChainCRF(prior=sf.Normal(variance=1.0), max_iter=3).fit(words, y)
    assert len(fit.weights_) > 1_000
    assert fit.n_params_ < len(fit.weights_)
    assert any("bound from above" in text for text in fit.report_.warnings)


# -- extreme numbers ---------------------------------------------------------------------------------------------------


def test_extreme_weights_of_examples_and_steps_are_named_without_a_warning_of_numpy() -> None:
    X, y = sequences(0)
    G, z = graphs(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", sf.errors.ConvergenceWarning)
        for make, some, labels in ((sf.ChainCRF, X, y), (sf.GraphCRF, G, z)):
            with pytest.raises(DataError, match=r"sample_weight of (sequence|example) 0 is 1e\+308"):
                make().fit(some, labels, [1e308] * len(some))
            with pytest.raises(OptionError, match=r"step_size is 1e\+308"):
                make(solver="sgd", step_size=1e308)
            with pytest.raises(EstimateError, match="Use a smaller step_size"):
                make(solver="sgd", step_size=1e30, max_iter=3, random_state=0).fit(some, labels)
            plain = make(sf.Normal(variance=1.0)).fit(some, labels)
            heavy = make(sf.Normal(variance=1e-50), tolerance=1e45).fit(some, labels, [1e50] * len(some))
            np.testing.assert_allclose(heavy.weights_, plain.weights_, atol=1e-3)


# -- what does not depend on how often an example counts -------------------------------------------------------------


def fit_alone(kind: str, rows: Any, labels: str, shares: Any) -> Any:
    """A model of examples of one node each, with features (n, d)."""
    y = [[label] for label in labels]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sf.ConvergenceWarning)
        if kind == "chain":
            X: Any = [np.array([row]) for row in rows]
            return sf.ChainCRF().fit(X, y, sample_weight=shares)
        return sf.GraphCRF().fit([sf.GraphExample(np.array([row]), []) for row in rows], y, sample_weight=shares)


@pytest.mark.parametrize("heavy", [1.0, 1e3, 1e5, 1e8])
@pytest.mark.parametrize("kind", MODELS)
def test_one_light_example_is_enough_to_have_no_maximum(kind: str, heavy: float) -> None:
    """Of features (1, 1) both labels are seen; (2, 1) alone is separated, by the difference of the features."""
    fit = fit_alone(kind, [[1.0, 1.0], [1.0, 1.0], [2.0, 1.0]], "abb", [heavy, 0.3 * heavy, 1.0])
    assert fit.report_.certificate.exists is False
    assert not fit.converged_


@pytest.mark.parametrize("heavy", [1.0, 1e3, 1e7, 1e12])
@pytest.mark.parametrize("overlap", [1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("kind", MODELS)
def test_light_examples_that_overlap_are_enough_for_a_maximum(kind: str, overlap: float, heavy: float) -> None:
    """Heavy examples that a threshold separates, and two light ones on the wrong sides of each other."""
    rows = [[1.0, 0.0], [1.0, 1.0], [1.0, 0.5 + overlap], [1.0, 0.5]]
    assert fit_alone(kind, rows, "abab", [heavy, heavy, 1.0, 1.0]).report_.certificate.exists is not False


def test_the_curvature_proves_a_maximum_of_more_weights_than_a_linear_programme_takes() -> None:
    """The range of a feature over the labels of one sequence counts, not its range over those of all sequences."""
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(int(rng.integers(5, 15)), 8)) for _ in range(60)]
    y = [[str(int(v)) for v in np.clip((2 * x[:, 0] + rng.normal(size=len(x))).round() + 3, 0, 6)] for x in X]
    certificate = sf.ChainCRF().fit(X, y).report_.certificate
    assert certificate.exists is True
    assert certificate.value_gap is not None
    assert 0.0 < certificate.value_gap < 1e-9


def test_large_weights_do_not_hide_the_slope() -> None:
    """The tolerance is relative to the norm of the weights, which is large for features in small units.

    The Newton decrement has no unit: a fit that it puts far from the maximum has not converged.
    """
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(4, 2)) for _ in range(12)]
    y = [rng.integers(0, 2, 4) for _ in X]
    right = sf.ChainCRF(tolerance=1e-9).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sf.ConvergenceWarning)
        fits = [sf.ChainCRF().fit([unit * x for x in X], y) for unit in (1.0, 1e-3, 1e-6, 1e-7)]
    lost = [right.report_.log_likelihood - fit.report_.log_likelihood for fit in fits]
    assert [fit.converged_ for fit in fits] == [rise < 0.005 for rise in lost]
    assert lost[0] < 1e-6
    assert lost[-1] > 0.1
