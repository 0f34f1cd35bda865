"""Networks with a target: classifiers and regressors, also trained for P(target | rest).

The judges are logistic regressions and naive Bayes of scikit-learn, a generic optimiser on tables that are written out,
and formulas.
"""

from __future__ import annotations

import itertools
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import optimize

import suffice as sf
from suffice.models.bayesian.blanket import hands_on_normalisers

RNG = np.random.default_rng(18)
N = 300
CLASS = RNG.integers(0, 3, N)
ROWS = pd.DataFrame(
    {
        "y": np.array(["low", "mid", "top"])[CLASS],
        "a": RNG.integers(0, 3, N),
        "b": (RNG.random(N) < 0.2 + 0.25 * CLASS).astype(int),
        "c": np.where(RNG.random(N) < 0.6, CLASS % 2, RNG.integers(0, 2, N)),
    }
)
LABELS = ROWS["y"]
FEATURES = ROWS[["a", "b", "c"]]
STRUCTURES: dict[str, dict[str, list[str]]] = {
    "naive Bayes": {"y": [], "a": ["y"], "b": ["y"], "c": ["y"]},
    "tree over it": {"y": [], "a": ["y"], "b": ["y", "a"], "c": ["y", "b"]},
    "parents": {"a": [], "b": [], "c": [], "y": ["b", "c"]},
    "common child": {"y": [], "b": [], "a": [], "c": ["y", "b"]},
    "both sides": {"b": [], "a": [], "y": ["b"], "c": ["y", "a"]},
}
HANDED_ON = {"naive Bayes": True, "tree over it": True, "parents": True, "common child": False, "both sides": False}


CARDS = {"y": 3, "a": 3, "b": 2, "c": 2}


def by_hand(parents: dict[str, list[str]], alpha: float = 0.0) -> tuple[Any, int]:
    """Minus the penalised conditional log-likelihood as a function of all logits, written out; how many there are."""
    columns: dict[str, Any] = dict(zip("abc", np.indices((3, 2, 2)).reshape(3, -1), strict=True))
    counts, shapes = np.zeros((12, 3)), {}
    np.add.at(counts, (np.ravel_multi_index(tuple(FEATURES.to_numpy().T), (3, 2, 2)), CLASS), 1.0)
    for node, above in parents.items():
        if node == "y" or "y" in above:
            shapes[node] = tuple(CARDS[name] for name in (*above, node))
    size = sum(int(np.prod(shape)) for shape in shapes.values())

    def loss(theta: Any) -> float:
        scores, penalty, first = np.zeros((12, 3)), 0.0, 0
        for node, shape in shapes.items():
            logits = theta[first : first + int(np.prod(shape))].reshape(shape)
            first += int(np.prod(shape))
            logs = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
            penalty += alpha * logs.sum()
            for state in range(3):
                where = [np.full(12, state) if name == "y" else columns[name] for name in (*parents[node], node)]
                scores[:, state] += logs[tuple(where)]
        logs = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
        return -float((counts * logs).sum() + penalty)

    return loss, size


@pytest.mark.parametrize("name", STRUCTURES)
@pytest.mark.parametrize("alpha", [None, 0.7])
def test_the_conditional_likelihood_is_as_high_as_a_generic_optimiser_gets_it(name: str, alpha: float | None) -> None:
    net = sf.BayesianNetwork(STRUCTURES[name], target="y", objective="conditional", prior=alpha).fit(ROWS)
    loss, size = by_hand(STRUCTURES[name], alpha or 0.0)
    # Where rows that add up to one are a restriction there may be several maxima.
    starts = [np.zeros(size), *np.random.default_rng(2).normal(size=(0 if HANDED_ON[name] else 2, size))]
    best = -min(optimize.minimize(loss, start, method="BFGS", jac="3-point").fun for start in starts)
    np.testing.assert_allclose(net.report_.objective, best, rtol=1e-9)
    shares = net.predict_proba(FEATURES)[np.arange(N), CLASS]
    np.testing.assert_allclose(net.log_likelihood_, np.log(shares).sum(), rtol=1e-12)
    assert net.converged_
    certificate = net.report_.certificate
    assert certificate.moment_gap < 1e-5
    if alpha is None:
        assert (certificate.value_gap is not None) is HANDED_ON[name]
        assert certificate.exists is (True if HANDED_ON[name] else None)
    else:
        assert certificate.exists is True
        assert certificate.value_gap is not None or not HANDED_ON[name]
        assert (certificate.value_gap or 0.0) * N < 1e-8
    matched = net.matched_statistics()
    assert matched is not None
    assert np.abs(matched.gaps).max() < 1e-6


def test_which_structures_are_logistic_regressions() -> None:
    for name, parents in STRUCTURES.items():
        tuples: Any = {node: tuple(above) for node, above in parents.items()}
        free = [node for node, above in parents.items() if node == "y" or "y" in above]
        assert hands_on_normalisers(tuples, "y", free) is HANDED_ON[name]
    # A table that is fixed takes no normaliser of another one.
    assert not hands_on_normalisers({"y": (), "a": ("y",)}, "y", ["a"])


@pytest.mark.parametrize("classes", [2, 3])
def test_naive_bayes_for_its_target_is_a_logistic_regression(classes: int) -> None:
    linear = pytest.importorskip("sklearn.linear_model")
    rows = ROWS[CLASS < classes]
    net = sf.BayesianNetwork("naive-bayes", target="y", objective="conditional").fit(rows.drop(columns="y"), rows["y"])
    indicators = pd.get_dummies(rows[["a", "b", "c"]].astype(str)).to_numpy(float)
    logistic = linear.LogisticRegression(C=np.inf, tol=1e-12, max_iter=10_000).fit(indicators, rows["y"])
    assert logistic.classes_.tolist() == net.classes_.tolist()
    own = logistic.predict_proba(indicators)[np.arange(len(rows)), CLASS[CLASS < classes]]
    np.testing.assert_allclose(net.log_likelihood_, np.log(own).sum(), rtol=1e-8)
    np.testing.assert_allclose(net.predict_proba(rows), logistic.predict_proba(indicators), atol=1e-4)
    assert net.report_.n_params == (classes - 1) * 5
    # The joint likelihood has a closed form, and is not as good at telling the target.
    joint = sf.BayesianNetwork("naive-bayes", target="y").fit(rows)
    assert net.log_likelihood_ > np.log(joint.predict_proba(rows)[np.arange(len(rows)), CLASS[CLASS < classes]]).sum()


@pytest.mark.parametrize("steps", [1, 2, 4, 6])
def test_the_bound_holds_before_the_end(steps: int) -> None:
    best = sf.BayesianNetwork("naive-bayes", target="y", objective="conditional").fit(ROWS).log_likelihood_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sf.ConvergenceWarning)
        early = sf.BayesianNetwork("naive-bayes", target="y", objective="conditional", max_iter=steps).fit(ROWS)
    bound = early.report_.certificate.value_gap
    assert best - early.log_likelihood_ > 0
    assert bound is None or (best - early.log_likelihood_) / N <= bound
    if steps >= 3:
        assert bound is not None
        assert bound < 3 * (best - early.log_likelihood_) / N + 1e-12


def test_separated_states_are_told() -> None:
    rows = pd.DataFrame({"y": ["u", "u", "v", "v", "v", "u"], "x": [0, 0, 1, 1, 1, 0]})
    with pytest.warns(sf.SeparationWarning, match="states of the target are separated") as caught:
        net = sf.BayesianNetwork([("y", "x")], target="y", objective="conditional").fit(rows)
    assert caught[0].filename == __file__
    assert net.report_.certificate.exists is False
    assert any("log P(x=1 | y=u) -> -inf" in each for each in net.report_.certificate.directions)
    assert not net.converged_
    assert sf.BayesianNetwork([("y", "x")], target="y", objective="conditional", prior=1.0).fit(rows).converged_


def test_weights_rows_and_files_give_the_same(tmp_path: Path) -> None:
    def made() -> Any:
        return sf.BayesianNetwork(STRUCTURES["naive Bayes"], target="y", objective="conditional", tolerance=1e-9)

    whole = made().fit(ROWS)
    twice = made().fit(pd.concat([ROWS, ROWS[:100]]))
    weighted = made().fit(ROWS, sample_weight=np.where(np.arange(N) < 100, 2.0, 1.0))
    np.testing.assert_allclose(weighted.log_likelihood_, twice.log_likelihood_, rtol=1e-12)
    np.testing.assert_allclose(weighted.table("b").values, twice.table("b").values, atol=1e-6)
    joined = made().fit(ROWS[:200]).partial_fit(ROWS[200:])
    np.testing.assert_allclose(joined.table("c").values, whole.table("c").values, atol=1e-6)
    left = made().fit(pd.concat([ROWS, ROWS[:100]])).unlearn(ROWS[:100])
    np.testing.assert_allclose(left.table("c").values, whole.table("c").values, atol=1e-6)
    ROWS.to_csv(tmp_path / "rows.csv", index=False)
    read = made().fit(tmp_path / "rows.csv")
    np.testing.assert_allclose(read.log_likelihood_, whole.log_likelihood_, rtol=1e-12)
    whole.write(tmp_path / "net.json")
    again: Any = sf.read(tmp_path / "net.json")
    np.testing.assert_array_equal(again.predict_proba(FEATURES), whole.predict_proba(FEATURES))
    assert again.target == "y"
    matched, kept = again.matched_statistics(), whole.matched_statistics()
    np.testing.assert_allclose(matched.expected, kept.expected, rtol=1e-12)


def test_a_form_is_written_as_the_structure_that_it_became(tmp_path: Path) -> None:
    net = sf.BayesianNetwork("naive-bayes", target="y", prior=1.0).fit(FEATURES, LABELS)
    assert net.get_params()["structure"] == "naive-bayes"
    assert set(net.edges) == {("y", "a"), ("y", "b"), ("y", "c")}
    net.write(tmp_path / "net.json")
    again: Any = sf.read(tmp_path / "net.json")
    assert set(again.edges) == set(net.edges)
    np.testing.assert_array_equal(again.predict(FEATURES), net.predict(FEATURES))


def test_fixed_tables_stay() -> None:
    fixed = {"a": np.array([[0.2, 0.3, 0.5], [0.4, 0.3, 0.3], [0.1, 0.1, 0.8]])}
    net = sf.BayesianNetwork(STRUCTURES["naive Bayes"], target="y", objective="conditional", fixed=fixed).fit(ROWS)
    np.testing.assert_array_equal(net.table("a").values, fixed["a"])
    free = sf.BayesianNetwork(STRUCTURES["naive Bayes"], target="y", objective="conditional").fit(ROWS)
    assert net.log_likelihood_ < free.log_likelihood_
    # Of rows that the fixed table forbids no estimate exists.
    fixed = {"a": np.array([[0.0, 0.5, 0.5], [0.4, 0.3, 0.3], [0.1, 0.1, 0.8]])}
    with pytest.raises(sf.EstimateError, match="probability 0 under the fixed tables"):
        sf.BayesianNetwork(STRUCTURES["naive Bayes"], target="y", objective="conditional", fixed=fixed).fit(ROWS)


def test_what_is_not_determined_has_no_errors() -> None:
    net = sf.BayesianNetwork("naive-bayes", target="y", objective="conditional", prior=1.0).fit(ROWS)
    with pytest.raises(sf.EstimateError, match="learned for the target"):
        net.standard_errors_  # noqa: B018
    with pytest.raises(sf.EstimateError, match="learned for the target"):
        net.posterior_  # noqa: B018


REFUSED: list[tuple[str, Any, Any]] = [
    ("name the node with target=", lambda: {"objective": "conditional"}, None),
    ("which is no node", lambda: {"target": "z"}, None),
    ("is hidden", lambda: {"target": "y", "hidden": {"y": 2}}, None),
    ("has no effect with objective='joint'", lambda: {"target": "y", "solver": "lbfgs"}, None),
    ("objective is 'discriminative'", lambda: {"target": "y", "objective": "discriminative"}, None),
    ("solver is 'magic'", lambda: {"target": "y", "objective": "conditional", "solver": "magic"}, None),
    (
        "around the target 'y' is real",
        lambda: {"target": "y", "objective": "conditional", "states": {"a": "real"}},
        ROWS,
    ),
    ("'b' is hidden", lambda: {"target": "y", "objective": "conditional", "hidden": {"b": 2}}, ROWS),
    ("is tied", lambda: {"target": "y", "objective": "conditional", "tied": [["b", "c"]]}, ROWS),
    ("estimate='mean'", lambda: {"target": "y", "objective": "conditional", "prior": 1.0, "estimate": "mean"}, ROWS),
    ("below 1", lambda: {"target": "y", "objective": "conditional", "prior": 0.5, "estimate": "map"}, ROWS),
    (
        "start= has no effect",
        lambda: {"target": "y", "objective": "conditional", "start": {"y": [0.2, 0.3, 0.5]}},
        ROWS,
    ),
    (
        "needs complete ones",
        lambda: {"target": "y", "objective": "conditional"},
        ROWS.assign(b=ROWS["b"].astype(object).where(np.arange(N) > 3, None)),
    ),
]


@pytest.mark.parametrize(("words", "options", "rows"), REFUSED, ids=[words for words, _, _ in REFUSED])
def test_what_has_no_meaning_is_refused(words: str, options: Any, rows: Any) -> None:
    with pytest.raises(sf.SufficeError, match=words):  # noqa: PT012
        net = sf.BayesianNetwork(STRUCTURES["naive Bayes"], **options())
        if rows is not None:
            net.fit(rows)


# -- the joint likelihood ----------------------------------------------------------------------------------------------


def test_a_categorical_naive_bayes_is_that_of_scikit_learn() -> None:
    bayes = pytest.importorskip("sklearn.naive_bayes")
    peer = bayes.CategoricalNB(alpha=1.0, class_prior=np.bincount(CLASS) / N).fit(FEATURES.to_numpy(), LABELS)
    net = sf.BayesianNetwork("naive-bayes", target="y", prior=dict.fromkeys(FEATURES, 1.0)).fit(FEATURES, LABELS)
    np.testing.assert_allclose(net.predict_proba(FEATURES), peer.predict_proba(FEATURES.to_numpy()), rtol=1e-12)
    assert net.predict(FEATURES).tolist() == peer.predict(FEATURES.to_numpy()).tolist()
    np.testing.assert_allclose(net.score(FEATURES, LABELS), peer.score(FEATURES.to_numpy(), LABELS), rtol=1e-15)
    # Of an array the columns are the nodes in their order, without the target.
    np.testing.assert_array_equal(net.predict(FEATURES.to_numpy()), net.predict(FEATURES))


def test_a_gaussian_naive_bayes_is_that_of_scikit_learn() -> None:
    bayes = pytest.importorskip("sklearn.naive_bayes")
    X = RNG.normal(size=(N, 4)) + CLASS[:, None]
    peer = bayes.GaussianNB(var_smoothing=0.0).fit(X, CLASS)
    net = sf.BayesianNetwork("gaussian-naive-bayes", target="class").fit(X, CLASS)
    np.testing.assert_allclose(net.predict_proba(X), peer.predict_proba(X), rtol=1e-9, atol=1e-12)
    assert net.score(X, CLASS) == peer.score(X, CLASS)
    weights = RNG.random(N)
    np.testing.assert_allclose(
        net.score(X, CLASS, sample_weight=weights), peer.score(X, CLASS, sample_weight=weights), rtol=1e-12
    )


def test_a_real_target_is_a_regression() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    X = RNG.normal(size=(N, 3))
    y = X @ [1.0, -2.0, 0.5] + RNG.normal(size=N)
    edges = [("x0", "z"), ("x1", "z"), ("x2", "z")]
    net = sf.BayesianNetwork(edges, target="z", states={"z": "real"}).fit(X, y)
    design = np.column_stack((np.ones(N), X))
    expected = design @ np.linalg.lstsq(design, y, rcond=None)[0]
    np.testing.assert_allclose(net.predict(X), expected, rtol=1e-9)
    np.testing.assert_allclose(net.score(X, y), metrics.r2_score(y, expected), rtol=1e-12)
    weights = RNG.random(N)
    weighed = metrics.r2_score(y, expected, sample_weight=weights)
    np.testing.assert_allclose(net.score(X, y, sample_weight=weights), weighed, rtol=1e-12)
    # The target as the parent of all columns: the mean of the conditional normal distribution, by hand.
    star = sf.BayesianNetwork("gaussian-naive-bayes", target="z", states={"z": "real"}).fit(X, y)
    slopes = [np.polyfit(y, column, 1) for column in X.T]
    noise = [np.mean((column - np.polyval(line, y)) ** 2) for column, line in zip(X.T, slopes, strict=True)]
    precision = 1 / y.var() + sum(line[0] ** 2 / v for line, v in zip(slopes, noise, strict=True))
    pull = sum(line[0] * (column - line[1]) / v for column, line, v in zip(X.T, slopes, noise, strict=True))
    np.testing.assert_allclose(star.predict(X), (y.mean() / y.var() + pull) / precision, rtol=1e-8)


def test_the_target_may_stand_among_the_columns() -> None:
    edges = list(itertools.product(["y"], ["a", "b", "c"]))
    within = sf.BayesianNetwork(edges, target="y").fit(ROWS)
    beside = sf.BayesianNetwork(edges, target="y").fit(FEATURES, LABELS)
    both = sf.BayesianNetwork(edges, target="y").fit(ROWS, LABELS)
    assert within.log_likelihood_ == beside.log_likelihood_ == both.log_likelihood_
    np.testing.assert_array_equal(within.predict(ROWS), within.predict(FEATURES))
    # Without y the score is that of the rows.
    np.testing.assert_allclose(within.score(ROWS), within.log_likelihood_ / N, rtol=1e-12)
    np.testing.assert_allclose(within.score_samples(FEATURES).mean(), within.score(FEATURES), rtol=1e-12)
    with pytest.raises(sf.DataError, match="y has other values"):
        sf.BayesianNetwork(edges, target="y").fit(ROWS, LABELS[::-1].to_numpy())
    with pytest.raises(sf.DataError, match="requires y to be passed"):
        sf.BayesianNetwork(edges, target="y").fit(FEATURES.to_numpy())
    with pytest.raises(sf.DataError, match="y has 5 values for 300 rows"):
        sf.BayesianNetwork(edges, target="y").fit(FEATURES, LABELS[:5])
    with pytest.raises(sf.DataError, match=r"Unknown label type: continuous.*states="):
        sf.BayesianNetwork(edges, target="y").fit(FEATURES, RNG.normal(size=N))
    with pytest.raises(sf.OptionError, match=r"predict\(rows, 'node'\)"):
        sf.BayesianNetwork(edges).fit(ROWS).predict(FEATURES)


def test_a_missing_target_is_learned_by_em() -> None:
    some = LABELS.astype(object).where(np.arange(N) % 5 > 0, None)
    net = sf.BayesianNetwork("naive-bayes", target="y", prior=1.0).fit(FEATURES, some)
    assert net.predict_proba(FEATURES).shape == (N, 3)
    assert net.report_.iterations > 0
