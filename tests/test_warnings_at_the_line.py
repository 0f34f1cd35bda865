"""What matters for the meaning of a result is a Python warning at the user's line, once a fit, and in the report."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import suffice as sf

RNG = np.random.default_rng(8)
N = 60
X = RNG.normal(size=(N, 2))
SIDES = np.where(X[:, 0] > 0, "up", "down")
BINARY = {name: RNG.integers(0, 2, N) for name in "abc"}
CYCLE = [("a", "b"), ("b", "c"), ("c", "a")]
GAPPY = {"a": [0, 1, None, 1, 0, 1], "b": [0, None, 1, 1, 0, 0]}
EMPTY_CORNER = {"a": [0, 0, 1, 1], "b": [0, 1, 0, 0]}
STEPS = np.concatenate([RNG.normal(0, 1, 40), RNG.normal(6, 1, 40)])
SENTENCES = [[{"w": letter} for letter in word] for word in ("abab", "ba", "aab", "bba")]
TAGS = [["A" if token["w"] == "a" else "B" for token in sentence] for sentence in SENTENCES]
GRAPHS = [sf.GraphExample(np.array([[1.0], [-1.0]]), [(0, 1)]) for _ in range(4)]
LABELS = [np.array(["u", "v"])] * 4
FLAT = np.concatenate([RNG.normal(0, 1, 30), np.full(10, 3.0)])
LOGISTIC = {name: sf.GLM("multinomial") for name in "st"}
STOPPED = {name: sf.GLM("multinomial", max_iter=1) for name in "st"}


#: By model and case: the fit, which makes one warning, and its category.
CASES: dict[str, tuple[Callable[[], Any], type[sf.SufficeWarning]]] = {
    "GLM, separation": (lambda: sf.GLM("binomial").fit(X, SIDES), sf.SeparationWarning),
    "GLM, multinomial, separation": (lambda: sf.GLM("multinomial").fit(X, SIDES), sf.SeparationWarning),
    "GLM, one pass, separation": (lambda: sf.GLM("binomial").partial_fit(X, SIDES), sf.SeparationWarning),
    "GLM, a perfect fit": (lambda: sf.GLM().fit(X, X[:, 0]), sf.ExistenceWarning),
    "GLM, iterations": (
        lambda: sf.GLM("poisson", max_iter=1, solver="lbfgs").fit(X, BINARY["a"]),
        sf.ConvergenceWarning,
    ),
    "ChainCRF, one pass, separation": (lambda: sf.ChainCRF().partial_fit(SENTENCES, TAGS), sf.SeparationWarning),
    "GraphCRF, one pass, separation": (lambda: sf.GraphCRF().partial_fit(GRAPHS, LABELS), sf.SeparationWarning),
    "Poisson, zeros": (lambda: sf.Poisson().fit([0, 0, 0]), sf.ExistenceWarning),
    "Poisson, zeros, partial fit": (lambda: sf.Poisson().partial_fit([0, 0, 0]), sf.ExistenceWarning),
    "Bernoulli, no success": (lambda: sf.Bernoulli(states=[0, 1]).fit([0, 0]), sf.ExistenceWarning),
    "Categorical, a state never seen": (lambda: sf.Categorical(["a", "b"]).fit(["a"]), sf.ExistenceWarning),
    "Geometric, zeros": (lambda: sf.Geometric().fit([0, 0]), sf.ExistenceWarning),
    "NegativeBinomial, zeros": (lambda: sf.NegativeBinomial(size=2.0).fit([0, 0]), sf.ExistenceWarning),
    "BayesianNetwork, iterations": (
        lambda: sf.BayesianNetwork([("h", "a"), ("h", "b")], hidden={"h": 2}, max_iter=1, n_init=3).fit(GAPPY),
        sf.ConvergenceWarning,
    ),
    "BayesianNetwork, a start that is not used": (
        lambda: sf.BayesianNetwork([("a", "b")], start={"a": [0.5, 0.5]}).fit(BINARY),
        sf.OptionWarning,
    ),
    "BayesianNetwork, whole floats": (
        lambda: sf.BayesianNetwork([("a", "b")]).fit({"a": [0.0, 1.0, 1.0], "b": [0, 1, 0]}),
        sf.KindWarning,
    ),
    "BayesianNetwork, a node that its parents determine": (
        lambda: sf.BayesianNetwork([("u", "v")]).fit({"u": X[:, 0], "v": 2.0 * X[:, 0]}),
        sf.ExistenceWarning,
    ),
    "BayesianNetwork, GLM nodes, separation": (
        lambda: sf.BayesianNetwork([("u", "s"), ("v", "t")], nodes=LOGISTIC).fit(
            {"u": X[:, 0], "v": X[:, 1], "s": SIDES, "t": np.where(X[:, 1] > 0.3, "far", "near")}
        ),
        sf.SeparationWarning,
    ),
    "BayesianNetwork, GLM nodes, iterations": (
        lambda: sf.BayesianNetwork([("u", "s"), ("u", "t")], nodes=STOPPED).fit(
            {"u": X[:, 0], "s": BINARY["a"], "t": BINARY["b"]}
        ),
        sf.ConvergenceWarning,
    ),
    "BayesianNetwork, for its target, separation": (
        lambda: sf.BayesianNetwork("naive-bayes", target="s", objective="conditional").fit(
            {"a": np.where(SIDES == "up", 1, 0), "b": BINARY["b"], "s": SIDES}
        ),
        sf.SeparationWarning,
    ),
    "MarkovNetwork, no maximum": (lambda: sf.MarkovNetwork([("a", "b")]).fit(EMPTY_CORNER), sf.ExistenceWarning),
    "MarkovNetwork, iterations": (
        lambda: sf.MarkovNetwork(CYCLE, max_iter=1, solver="ipf").fit(BINARY),
        sf.ConvergenceWarning,
    ),
    "MarkovNetwork, runs of EM": (
        lambda: sf.MarkovNetwork([("h", "a"), ("h", "b")], hidden={"h": 2}, max_iter=1, n_init=3).fit(BINARY),
        sf.ConvergenceWarning,
    ),
    "GaussianGraph, iterations": (
        lambda: sf.GaussianGraph([(0, 1), (1, 2), (2, 3), (3, 0)], max_iter=1, tolerance=1e-14).fit(
            RNG.normal(size=(30, 4)) @ (np.eye(4) + 0.7)
        ),
        sf.ConvergenceWarning,
    ),
    "MarkovChain, iterations": (
        lambda: sf.MarkovChain(order=2, smoothing=sf.Interpolation("deleted"), max_iter=1, tolerance=1e-14).fit(
            ["abacabadab", "bacbacab"]
        ),
        sf.ConvergenceWarning,
    ),
    "HiddenMarkovModel, iterations": (
        lambda: sf.HiddenMarkovModel(2, emission=sf.Normal(), max_iter=1, n_init=3).fit(STEPS),
        sf.ConvergenceWarning,
    ),
    "HiddenMarkovModel, a floor": (lambda: sf.HiddenMarkovModel(2, emission=sf.Normal()).fit(FLAT), sf.FloorWarning),
    "ChainCRF, separation": (lambda: sf.ChainCRF(max_iter=200).fit(SENTENCES, TAGS), sf.SeparationWarning),
    "ChainCRF, iterations": (
        lambda: sf.ChainCRF(prior=sf.Normal(variance=1.0), max_iter=1).fit(SENTENCES, TAGS),
        sf.ConvergenceWarning,
    ),
    "GraphCRF, iterations": (
        lambda: sf.GraphCRF(prior=sf.Normal(variance=1.0), max_iter=1).fit(GRAPHS, LABELS),
        sf.ConvergenceWarning,
    ),
    "Gamma, iterations": (lambda: sf.Gamma(max_iter=1, tolerance=1e-15).fit(np.exp(STEPS[:9])), sf.ConvergenceWarning),
}


def caught_in(call: Callable[[], Any]) -> tuple[Any, list[warnings.WarningMessage]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        return call(), caught


@pytest.mark.parametrize("case", CASES)
def test_one_warning_at_the_line_of_the_call(case: str) -> None:
    fit, category = CASES[case]
    model, caught = caught_in(fit)
    assert [warning.category for warning in caught] == [category], [str(warning.message) for warning in caught]
    assert caught[0].filename == __file__
    first = fit.__code__.co_firstlineno
    assert first <= caught[0].lineno <= first + 4
    said = str(caught[0].message)
    if category is sf.ConvergenceWarning:
        assert not model.converged_
        assert model.report_.stop_reason in said
    else:
        assert said in "; ".join(model.report_.warnings)


def test_a_later_pass_and_a_prior_say_nothing_of_separation() -> None:
    glm = sf.GLM("binomial")
    assert [warning.category for warning in caught_in(lambda: glm.partial_fit(X, SIDES))[1]] == [sf.SeparationWarning]
    # The rows of the first call are gone: whether all of them together are separated is not known.
    assert caught_in(lambda: glm.partial_fit(X, SIDES))[1] == []
    assert glm.report_.certificate.exists is None
    ridge = sf.Normal(variance=1.0)
    assert caught_in(lambda: sf.GLM("binomial", prior=ridge).partial_fit(X, SIDES))[1] == []
    assert caught_in(lambda: sf.ChainCRF(prior=ridge).partial_fit(SENTENCES, TAGS))[1] == []
    mixed = np.where(np.arange(N) % 2, SIDES, SIDES[::-1])
    assert caught_in(lambda: sf.GLM("binomial").partial_fit(X, mixed))[1] == []


def test_every_model_has_a_case() -> None:
    models = {"GLM", "BayesianNetwork", "MarkovNetwork", "GaussianGraph", "MarkovChain", "HiddenMarkovModel"}
    assert {case.partition(",")[0] for case in CASES} >= models | {"ChainCRF", "GraphCRF"}


def test_a_search_over_options_warns_at_its_own_line_once_a_fit() -> None:
    search = pytest.importorskip("sklearn.model_selection").GridSearchCV
    grid = search(sf.GLM("poisson", solver="lbfgs"), {"max_iter": [1, 2]}, cv=2, refit=False)
    _, caught = caught_in(lambda: grid.fit(X, BINARY["a"]))
    assert len(caught) == 4
    assert {warning.filename for warning in caught} == {__file__}


def test_a_category_is_said_once_whatever_the_number_of_parts() -> None:
    flat = np.concatenate([np.full(20, 0.0), np.full(20, 5.0)])
    flat[7] += 1e-9
    _, caught = caught_in(lambda: sf.HiddenMarkovModel(2, emission=sf.Normal()).fit(flat))
    assert sum(warning.category is sf.FloorWarning for warning in caught) == 1


def test_a_warning_in_every_class_is_one_of_the_library() -> None:
    for name in ("Convergence", "Existence", "Floor", "Kind", "LeftOut", "Option", "Sampling", "Separation"):
        assert issubclass(getattr(sf, f"{name}Warning"), sf.SufficeWarning)
