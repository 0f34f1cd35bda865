"""One small fitted model of every kind, and questions for each: what fuzzers damage, and then use.

`ZOO` maps a name to `Animal`: how the model is made, and calls that a model of this kind must answer. The data are a
handful of rows, so that all of them are fitted in a few seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import suffice as sf

Ask = Callable[[Any], Any]


@dataclass(frozen=True)
class Animal:
    """How a model is made, and what may be asked of it."""

    make: Callable[[], Any]
    asks: tuple[Ask, ...] = ()


ROWS: dict[str, list[Any]] = {
    "a": ["x", "y", "x", "x", "y", "y"],
    "b": ["p", "p", "q", "q", "q", "p"],
    "c": [0, 1, 1, 0, 1, 0],
}
GAPS = {**ROWS, "b": ["p", None, "q", "q", None, "p"]}
REALS = {"u": [1.0, 2.5, 3.0, 4.5, 2.0, 0.5], "v": [2.0, 2.5, 4.0, 4.0, 3.0, 1.5], "w": [0.5, 1.0, 1.5, 3.0, 1.0, 0.25]}
MIXED = {"a": ROWS["a"], "u": REALS["u"], "v": REALS["v"]}
COUNTS = {"u": REALS["u"], "n": [0, 1, 3, 5, 1, 0]}
WORDS = [list("abca"), list("bcab"), list("ccab"), list("abab")]
STEPS = [[1.0, 2.0, 1.5, 4.0, 4.5], [4.0, 4.2, 1.0, 1.1, 0.9]]
TAGS = [[{"w": "the"}, {"w": "cat"}], [{"w": "a"}, {"w": "dog"}, {"w": "runs"}]], [["D", "N"], ["D", "N", "V"]]
GRAPHS = (
    [
        sf.GraphExample(nodes=[[1.0, 0.3], [1.0, -0.2], [1.0, 1.1]], edges=[[0, 1], [1, 2]]),
        sf.GraphExample(nodes=[[1.0, -0.9], [1.0, 0.1]], edges=[[0, 1]]),
    ],
    [["s", "t", "s"], ["t", "t"]],
)


def _law(make: Callable[[], Any], points: Any, *more: Ask) -> Animal:
    asks: tuple[Ask, ...] = (
        lambda law: law.log_prob(points),
        lambda law: law.mean(),
        lambda law: law.sample(2, random_state=0),
        repr,
    )
    return Animal(make, asks + more)


def _fitted(make: Callable[[], Any], data: Any, *more: Ask) -> Animal:
    return _law(lambda: make().fit(data), data, lambda law: law.score(data), lambda law: str(law.report_), *more)


def _posterior(make: Callable[[], Any], data: Any) -> Animal:
    asks: tuple[Ask, ...] = (lambda law: law.predictive_.mean(), lambda law: law.credible_intervals())
    return _fitted(make, data, *asks)


def _model(make: Callable[[], Any], *asks: Ask) -> Animal:
    return Animal(make, (repr, lambda model: str(model.report_), *asks))


def _network(make: Callable[[], Any], data: Any, *asks: Ask) -> Animal:
    common: tuple[Ask, ...] = (
        lambda net: net.score(data),
        lambda net: net.sample(2, random_state=0),
        lambda net: net.clone().fit(data),
    )
    return _model(lambda: make().fit(data), *common, *asks)


def _tables(net: Any) -> Any:
    return [net.table(name) for name in net.nodes]


def _asked(name: str, given: dict[str, Any]) -> Ask:
    return lambda net: net.query(name, given)


LAWS: dict[str, Animal] = {
    "normal": _fitted(sf.Normal, REALS["u"]),
    "normal-posterior": _posterior(lambda: sf.Normal(prior=sf.NormalInverseGamma(2, 1, 1, 0)), REALS["u"]),
    "normal-mean": _posterior(lambda: sf.Normal(variance=2.0, prior=sf.Normal(0, 1)), REALS["u"]),
    "multivariate-normal": _fitted(sf.MultivariateNormal, REALS),
    "multivariate-normal-posterior": _posterior(
        lambda: sf.MultivariateNormal(prior=sf.NormalWishart([0, 0, 0], 1, 5, np.eye(3))), REALS
    ),
    "categorical": _fitted(sf.Categorical, ROWS["a"]),
    "categorical-posterior": _posterior(lambda: sf.Categorical(prior=sf.Dirichlet([1, 2])), ROWS["a"]),
    "categorical-mixture": _fitted(
        lambda: sf.Categorical(prior=sf.DirichletMixture([0.5, 0.5], [[1, 9], [9, 1]])), ROWS["a"]
    ),
    "bernoulli": _posterior(lambda: sf.Bernoulli(prior=sf.Beta(1, 1)), ROWS["c"]),
    "poisson": _posterior(lambda: sf.Poisson(prior=sf.Gamma(1, 1)), COUNTS["n"]),
    "geometric": _posterior(lambda: sf.Geometric(prior=sf.Beta(1, 1)), COUNTS["n"]),
    "negative-binomial": _fitted(lambda: sf.NegativeBinomial(size=2.5), COUNTS["n"]),
    "exponential": _posterior(lambda: sf.Exponential(prior=sf.Gamma(1, 1)), REALS["u"]),
    "gamma": _fitted(sf.Gamma, REALS["u"]),
    "gamma-posterior": _posterior(lambda: sf.Gamma(shape=2.0, prior=sf.Gamma(1, 1)), REALS["u"]),
    "inverse-gamma": _fitted(sf.InverseGamma, REALS["u"]),
    "von-mises": _fitted(sf.VonMises, REALS["u"]),
    "student-fitted": _fitted(sf.StudentT, [0.5, 0.7, 0.2, 2.0, 0.9, 1.1, 0.4]),
    "beta": _fitted(sf.Beta, [0.2, 0.5, 0.4, 0.9]),
    "dirichlet": _fitted(sf.Dirichlet, [[0.2, 0.8], [0.5, 0.5], [0.3, 0.7]]),
    "normal-inverse-gamma": _law(lambda: sf.NormalInverseGamma(2, 1, 1, 0), [0.5, 2.0]),
    "normal-wishart": _law(lambda: sf.NormalWishart([0, 0], 1, 5, np.eye(2)), ([0.0, 1.0], np.eye(2))),
    "wishart": _law(lambda: sf.Wishart(5, np.eye(2)), np.eye(2)),
    "student": _law(lambda: sf.StudentT(3, 1, 2), [0.5]),
    "multivariate-student": _law(lambda: sf.MultivariateStudentT(3, [0, 1], np.eye(2)), [[0.5, 1.0]]),
    "lomax": _law(lambda: sf.Lomax(3, 4), [0.5]),
    "beta-prime": _law(lambda: sf.BetaPrime(2, 3, 4), [0.5]),
    "beta-negative-binomial": _law(lambda: sf.BetaNegativeBinomial(2, 3, 4), [1]),
    "dirichlet-multinomial": _law(lambda: sf.DirichletMultinomial(2, [1, 1]), [[1, 1]]),
    "dirichlet-mixture": _law(lambda: sf.DirichletMixture([0.5, 0.5], [[1, 9], [9, 1]]), [[0.5, 0.5]]),
    "laplace": Animal(lambda: sf.Laplace(2.0), (lambda law: law.log_prob([0.5]), repr)),
    "linear-gaussian-prior": Animal(lambda: sf.LinearGaussianPrior(2, 1), (repr,)),
}

EDGES = [("a", "b"), ("b", "c")]
NETWORKS: dict[str, Animal] = {
    "network": _network(lambda: sf.BayesianNetwork(EDGES), ROWS, _asked("a", {"c": 1}), _tables),
    "network-prior": _network(
        lambda: sf.BayesianNetwork(EDGES, prior="bdeu"), ROWS, _asked("b", {}), lambda net: net.posterior_
    ),
    "network-gaps": _network(lambda: sf.BayesianNetwork(EDGES, max_iter=5, tolerance=1.0), GAPS, _asked("a", {"c": 1})),
    "network-linear": _network(
        lambda: sf.BayesianNetwork([("u", "v"), ("u", "w")], prior=sf.LinearGaussianPrior(2, 1)),
        REALS,
        _asked("u", {"v": 1.0}),
    ),
    "network-mixed": _network(lambda: sf.BayesianNetwork([("a", "v"), ("u", "v")]), MIXED, _asked("a", {"v": 2.0})),
    "network-noisy-or": _network(
        lambda: sf.BayesianNetwork([("a", "c"), ("b", "c")], nodes={"c": sf.NoisyOr()}, prior=1.0),
        {name: [value in ("x", "p", 1) for value in column] for name, column in ROWS.items()},
        _asked("a", {"c": True}),
    ),
    "network-noisy-max": _network(
        lambda: sf.BayesianNetwork([("a", "b")], nodes={"b": sf.NoisyMax(order=["r", "p", "q"])}, prior=1.0),
        ROWS,
        _asked("a", {"b": "p"}),
    ),
    "network-constrained": _network(
        lambda: sf.BayesianNetwork(
            [("a", "b")], nodes={"b": sf.ConstrainedTable({"a": "+"}, bounds={"p": (0.1, None)})}, prior=1.0
        ),
        ROWS,
        _asked("a", {"b": "p"}),
    ),
    "network-glm": _network(lambda: sf.BayesianNetwork([("u", "n")], nodes={"n": sf.GLM(family=sf.Poisson())}), COUNTS),
    "network-tied": _network(
        lambda: sf.BayesianNetwork([("r", "s"), ("s", "t")], tied=[["s", "t"]]),
        {"r": [0, 1, 1, 0], "s": [1, 1, 0, 0], "t": [1, 0, 0, 1]},
        _asked("t", {"r": 1}),
    ),
}
MARKOV: dict[str, Animal] = {
    "markov": _network(lambda: sf.MarkovNetwork(EDGES), ROWS, lambda net: net.marginal("a")),
    "markov-ising": _network(
        lambda: sf.MarkovNetwork.ising([("u", "v")], prior=sf.Normal(variance=4.0)),
        {"u": [1, -1, 1, -1], "v": [1, -1, 1, 1]},
        lambda net: net.couplings_,
    ),
    "markov-hidden": _network(
        lambda: sf.MarkovNetwork([("h", "a"), ("h", "b")], hidden={"h": 2}, max_iter=3, tolerance=1.0, random_state=0),
        {"a": ROWS["a"], "b": ROWS["b"]},
        lambda net: net.marginal("a"),
    ),
    "gaussian-graph": _model(
        lambda: sf.GaussianGraph([("u", "v"), ("v", "w")], prior=sf.Wishart(5, np.eye(3))).fit(REALS),
        lambda net: net.score(REALS),
        lambda net: net.precision_,
        lambda net: net.sample(2, random_state=0),
    ),
}
SLICES = [{"a": ["x", "y", "y", "x"], "b": ["p", "q", "p", "p"]}, {"a": ["y", "x"], "b": ["q", "q"]}]
SEQUENCES: dict[str, Animal] = {
    "chain": _model(
        lambda: sf.MarkovChain().fit(WORDS),
        lambda chain: chain.score(WORDS),
        lambda chain: chain.transitions_,
        lambda chain: chain.sample(3, length=4, random_state=0),
    ),
    "chain-kneser-ney": _model(
        lambda: sf.MarkovChain(2, smoothing=sf.KneserNey()).fit(WORDS), lambda chain: chain.score(WORDS)
    ),
    "chain-interpolation": _model(
        lambda: sf.MarkovChain(2, smoothing=sf.Interpolation()).fit(WORDS), lambda chain: chain.score(WORDS)
    ),
    "dynamic": _model(
        lambda: sf.DynamicBayesianNetwork([(("a", -1), "a"), ("a", "b")], prior=1.0).fit(SLICES),
        lambda net: net.score(SLICES),
        lambda net: net.sample(3, random_state=0),
    ),
    "dynamic-hidden": _model(
        lambda: sf.DynamicBayesianNetwork.hmm(2, "a", prior=1.0, max_iter=3, tolerance=1.0).fit(SLICES),
        lambda net: net.smooth(SLICES),
        lambda net: net.map_query(SLICES),
    ),
    "hmm-categorical": _model(
        lambda: sf.HiddenMarkovModel(
            2, emission=sf.Categorical(), max_iter=3, tolerance=1.0, prior=1.0, random_state=0
        ).fit(WORDS),
        lambda hmm: hmm.score(WORDS),
        lambda hmm: hmm.predict(WORDS),
    ),
    "hmm-normal": _model(
        lambda: sf.HiddenMarkovModel(2, emission=sf.Normal(), max_iter=3, tolerance=1.0, random_state=0).fit(STEPS),
        lambda hmm: hmm.score(STEPS),
        lambda hmm: hmm.predict(STEPS),
    ),
    "hmm-gamma": _model(
        lambda: sf.HiddenMarkovModel(2, emission=sf.Gamma(), max_iter=3, tolerance=1.0, random_state=0).fit(STEPS),
        lambda hmm: hmm.score(STEPS),
    ),
    "crf": _model(
        lambda: sf.ChainCRF(prior=sf.Normal(variance=4.0), max_iter=5, tolerance=1.0).fit(*TAGS),
        lambda crf: crf.score(*TAGS),
        lambda crf: crf.predict(TAGS[0]),
    ),
    "graph-crf": _model(
        lambda: sf.GraphCRF(prior=sf.Normal(variance=4.0), max_iter=5, tolerance=1.0).fit(*GRAPHS),
        lambda crf: crf.score(*GRAPHS),
        lambda crf: crf.predict(GRAPHS[0]),
    ),
}
REGRESSIONS: dict[str, Animal] = {
    "glm-gaussian": _model(
        lambda: sf.GLM("gaussian").fit(REALS, y="v", columns=["u", "w"]),
        lambda glm: glm.predict(REALS),
        lambda glm: glm.coefficients_,
    ),
    "glm-poisson": _model(lambda: sf.GLM("poisson").fit(COUNTS, y="n", columns=["u"]), lambda glm: glm.predict(COUNTS)),
    "glm-binomial": _model(
        lambda: sf.GLM("binomial", prior=sf.Normal(variance=4.0)).fit({**REALS, "c": ROWS["c"]}, y="c", columns=["u"]),
        lambda glm: glm.predict(REALS),
    ),
}
SUMMARIES: dict[str, Animal] = {
    "summary-counts": Animal(
        lambda: sf.summarize(sf.BayesianNetwork(EDGES), ROWS), (repr, lambda s: sf.BayesianNetwork(EDGES).fit(s))
    ),
    "summary-gaps": Animal(
        lambda: sf.summarize(sf.BayesianNetwork(EDGES), GAPS),
        (repr, lambda s: sf.BayesianNetwork(EDGES, max_iter=2, tolerance=1.0).fit(s)),
    ),
    "summary-moments": Animal(
        lambda: sf.summarize(sf.MultivariateNormal(), REALS), (repr, lambda s: sf.MultivariateNormal().fit(s))
    ),
    "summary-sums": Animal(lambda: sf.summarize(sf.Gamma(), REALS["u"]), (repr, lambda s: sf.Gamma().fit(s))),
}
ZOO: dict[str, Animal] = {**LAWS, **NETWORKS, **MARKOV, **SEQUENCES, **REGRESSIONS, **SUMMARIES}
